/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat_sub_tracking.h - gpu_tracker's sub-tracking file, row by row: a CSV file, or an
 * SQLite database with a table `data`. Rows come as they stand in the file.
 *
 * All zero is a closed file. The path is borrowed.
 */
#ifndef WM_COMPAT_SUB_TRACKING_H
#define WM_COMPAT_SUB_TRACKING_H

#include <stdbool.h>
#include <stdint.h>

#include "compat/gpu_tracker/compat_gpu_tracker_csv.h"
#include "record/sql/record_sql.h"

/* Its columns, in gpu_tracker's order; a file may have them in another one, and more. */
enum wm_sub_column {
    WM_SUB_PROCESS,
    WM_SUB_NAME,
    WM_SUB_POSITION,
    WM_SUB_TIMESTAMP,
    WM_SUB_COLUMNS,
};

extern const char *const wm_sub_names[WM_SUB_COLUMNS];

struct wm_sub_tracking {
    const char *path; /* for messages */
    struct wm_gpu_tracker_csv file;
    double last_seconds;       /* of the row before */
    struct wm_remarks remarks; /* of the last line */
    sqlite3 *db;               /* SQLite; NULL: CSV */
    sqlite3_stmt *rows;
    int64_t row, most_rows; /* how many of them were read, and can be */
};

struct wm_sub_row {
    int64_t process;
    const char *name; /* until the next row, as are the cells */
    bool is_stop;
    double seconds;                       /* since 1970 */
    struct wm_cell cells[WM_SUB_COLUMNS]; /* as they stand in a CSV file */
};

/* wm_sub_tracking_close() is due whatever this returned. */
int wm_sub_tracking_open(struct wm_sub_tracking *file, const char *path,
                         struct wm_error *err);

/* 1 and `ret_row`, 0 past the last one; what becomes of a last line without its end is a
 * remark. WM_EFORMAT with the line of what is no row. */
int wm_sub_tracking_next(struct wm_sub_tracking *file, struct wm_sub_row *ret_row,
                         struct wm_error *err);

void wm_sub_tracking_close(struct wm_sub_tracking *file);

#endif
