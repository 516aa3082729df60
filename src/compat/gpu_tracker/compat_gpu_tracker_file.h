/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat_gpu_tracker_file.h - writing gpu_tracker's files: CSV as Python's csv module
 * writes it, whose lines are only ever appended, or tables in an SQLite database. That
 * keeps SQLite's own journal, so that all that was written is in the one file at any time.
 *
 *     wm_gpu_tracker_file_open(&file, path, is_sqlite, &err);
 *     wm_gpu_tracker_file_begin(&file, &err);
 *     wm_gpu_tracker_file_table(&file, "data", names, cells, count, &err);
 *     wm_gpu_tracker_file_row(&file, cells, count, &err);
 *     wm_gpu_tracker_file_commit(&file, &err);
 *     wm_gpu_tracker_file_close(&file);
 */
#ifndef WM_COMPAT_GPU_TRACKER_FILE_H
#define WM_COMPAT_GPU_TRACKER_FILE_H

#include <stdbool.h>

#include "base/base_sqlite.h"
#include "base/text/base_number.h"
#include "base/text/base_out.h"

struct wm_gpu_tracker_file {
    const char *path;     /* for messages */
    const char *line_end; /* of CSV */
    struct wm_out out;    /* CSV */
    sqlite3 *db;          /* SQLite; NULL: CSV */
    sqlite3_stmt *insert; /* a row of the latest table */
};

/* A value of the file. */
struct wm_gpu_tracker_cell {
    const char *text; /* NULL: the number */
    struct wm_known number;
    bool is_count; /* a whole number */
};

/* Opens the file at `path`, which is there and empty. `file` is all zero before;
 * wm_gpu_tracker_file_close() is due whatever this returned. */
int wm_gpu_tracker_file_open(struct wm_gpu_tracker_file *file, const char *path,
                             bool is_sqlite, struct wm_error *err);
void wm_gpu_tracker_file_close(struct wm_gpu_tracker_file *file);

/* All that is written from a begin on is there after the commit, or nothing of it after
 * wm_gpu_tracker_file_take_back(), which is due where something failed. */
int wm_gpu_tracker_file_begin(struct wm_gpu_tracker_file *file, struct wm_error *err);
int wm_gpu_tracker_file_commit(struct wm_gpu_tracker_file *file, struct wm_error *err);
void wm_gpu_tracker_file_take_back(struct wm_gpu_tracker_file *file);

/* Begins a table, whose columns are of the types of `cells`; in CSV it has no name. */
int wm_gpu_tracker_file_table(struct wm_gpu_tracker_file *file, const char *table,
                              const char *const *names,
                              const struct wm_gpu_tracker_cell *cells, int count,
                              struct wm_error *err);

/* The next row of it. */
int wm_gpu_tracker_file_row(struct wm_gpu_tracker_file *file,
                            const struct wm_gpu_tracker_cell *cells, int count,
                            struct wm_error *err);

/* Waits until the disk has what was committed. */
int wm_gpu_tracker_file_sync(struct wm_gpu_tracker_file *file, struct wm_error *err);

#endif
