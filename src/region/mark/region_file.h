/* SPDX-License-Identifier: Apache-2.0 */
/* region_file.h - gpu_tracker's sub-tracking files as they are written: what one begins
 * with, its rows in CSV and in SQLite. */
#ifndef WM_REGION_FILE_H
#define WM_REGION_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base_error.h"
#include "wattmeter/region.h"

#define WM_REGION_FILE_HEADER "process_id,code_block_name,position,timestamp"

/* A block of code was entered or left. */
struct wm_region_row {
    int64_t process;
    const char *name; /* valid UTF-8 */
    size_t name_length;
    bool is_stop;
    double when_s; /* since 1970, finite */
};

/* A file in SQLite. The functions below are of any thread; messages name it by `path`. */
struct wm_region_database;

/* Makes the file, or finds one to add rows to. */
int wm_region_database_open(const char *path, bool may_exist,
                            struct wm_region_database **ret_database, struct wm_error *err);
int wm_region_database_write(struct wm_region_database *database, const char *path,
                             const struct wm_region_row *row, struct wm_error *err);
void wm_region_database_close(struct wm_region_database *database);

/* Removes a file that is to be replaced, with what belongs to it. */
int wm_region_database_remove(const char *path, struct wm_error *err);

/* From here on fork() waits for rows that are being written. Who holds a lock of its own
 * while it writes registers its handlers after this, so that fork() has them run in the
 * order in which writing takes the locks. False: out of memory. */
bool wm_region_file_watch_forks(void);

/* Whether what WM_REGIONS_VARIABLE says is the path of such a file, by its suffix. */
bool wm_region_file_is_path(const char *path);

#endif
