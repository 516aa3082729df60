/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat_gpu_tracker_csv.h - rows of gpu_tracker's CSV files, whose columns are found by
 * their names and may stand in any order, with others between them.
 *
 *     wm_cells_open(&csv.cells, path, &err);
 *     wm_cells_next(&csv.cells, &err);
 *     wm_gpu_tracker_csv_header(&csv, names, count, "a tracking file", &err);
 *     while ((status = wm_cells_next(&csv.cells, &err)) > 0)
 *         status = wm_gpu_tracker_csv_row(&csv, cells, &err);
 *     wm_gpu_tracker_csv_close(&csv);
 *
 * All zero is a closed file.
 */
#ifndef WM_COMPAT_GPU_TRACKER_CSV_H
#define WM_COMPAT_GPU_TRACKER_CSV_H

#include "base/text/base_cells.h"

struct wm_gpu_tracker_csv {
    struct wm_cells cells;
    unsigned char *uses; /* the name of each column */
    size_t columns;      /* of the file; 0 before a header */
};

void wm_gpu_tracker_csv_close(struct wm_gpu_tracker_csv *csv);

/* Takes the row for the header of what follows; WM_EFORMAT where it is none of `what`.
 * There are 32 names at most. */
int wm_gpu_tracker_csv_header(struct wm_gpu_tracker_csv *csv, const char *const *names,
                              size_t count, const char *what, struct wm_error *err);

/* The cells of the row in the order of the names: 1, or WM_EFORMAT where there are not as
 * many as columns. */
int wm_gpu_tracker_csv_row(struct wm_gpu_tracker_csv *csv, struct wm_cell *ret_cells,
                           struct wm_error *err);

/* Fails since that cell, of the `use`-th name, is not `what`. */
int wm_gpu_tracker_csv_wrong(const struct wm_gpu_tracker_csv *csv, size_t use,
                             const struct wm_cell *cell, const char *what,
                             struct wm_error *err);

/* Whether the row counts, of which reading gave `status`: the last line may be cut off in a
 * number, which then looks like another one, an earlier time in all likelihood. 1, or 0
 * past the last row that does; what became of that line is a remark. */
int wm_gpu_tracker_csv_counts(const struct wm_gpu_tracker_csv *csv, int status,
                              bool is_later, struct wm_remarks *remarks,
                              struct wm_error *err);

#endif
