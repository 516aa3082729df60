/* SPDX-License-Identifier: Apache-2.0 */
/* region_rows.h - regions that go to a sub-tracking file, as rows that this process writes
 * itself. Each end needs the name, so that names of open regions are kept here. */
#ifndef WM_REGION_ROWS_H
#define WM_REGION_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "base/base_error.h"

struct wm_region_rows;

/* The names of what a thread has open; all zero is nothing. */
struct wm_region_names {
    char *bytes; /* each name with a NUL, and its length behind that */
    size_t length, room;
    uint64_t dropped; /* the innermost of those that are open: memory ran out */
};

int wm_region_rows_open(const char *path, struct wm_region_rows **ret_rows,
                        struct wm_error *err);

/* Accepts NULL. */
void wm_region_rows_close(struct wm_region_rows *rows);

/* Around fork(), so that the child finds nothing half done. It begins with nothing open:
 * there, forget comes before unlock. */
void wm_region_rows_lock(struct wm_region_rows *rows);
void wm_region_rows_forget(struct wm_region_rows *rows);
void wm_region_rows_unlock(struct wm_region_rows *rows);

void wm_region_rows_begin(struct wm_region_rows *rows, struct wm_region_names *names,
                          const char *name);
void wm_region_rows_end(struct wm_region_rows *rows, struct wm_region_names *names);
void wm_region_rows_start(struct wm_region_rows *rows, const char *name, uint64_t id);
void wm_region_rows_stop(struct wm_region_rows *rows, uint64_t id);

#endif
