/* SPDX-License-Identifier: Apache-2.0 */
/* region_file.h - what a kind of sub-tracking file provides. */
#ifndef WM_REGION_FILE_H
#define WM_REGION_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/base_error.h"

struct wm_region_row;

union wm_region_file_state {
    int fd;
    struct wm_region_database *database;
};

struct wm_region_file_ops {
    const char *suffix;

    /* Removes a file that is to be replaced, with what belongs to it. */
    int (*remove)(const char *path, struct wm_error *err);

    /* Makes the file, or finds one to add rows to. On failure close() comes all the
     * same; the state was all zero. */
    int (*open)(union wm_region_file_state *state, const char *path, bool may_exist,
                struct wm_error *err);

    /* From any thread. */
    int (*write)(union wm_region_file_state *state, const char *path,
                 const struct wm_region_row *row, struct wm_error *err);

    void (*close)(union wm_region_file_state *state);
};

extern const struct wm_region_file_ops wm_region_file_sqlite;

/* From here on fork() waits for rows that are being written. Who holds a lock of its own
 * while it writes registers its handlers after this, so that fork() has them run in the
 * order in which writing takes the locks. False: out of memory. */
bool wm_region_file_watch_forks(void);

#endif
