/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base_cells.h - a CSV file that somebody else wrote, row by row and in bounded memory,
 * as Python's csv module reads it: a cell may stand in quotes, which are doubled inside
 * it, and then hold commas and ends of lines. Lines end with CR LF or LF.
 *
 *     wm_cells_open(&cells, path, &err);
 *     while (wm_cells_next(&cells, &err) > 0)
 *         while (wm_cells_take(&cells, &cell))
 *             use(cell.text, cell.length);
 *     wm_cells_close(&cells);
 *
 * All zero is a closed file. The path is for messages and is borrowed.
 */
#ifndef WM_BASE_CELLS_H
#define WM_BASE_CELLS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/base_error.h"
#include "base/text/base_lines.h"
#include "base/text/base_remarks.h"

/* The longest row. */
#define WM_CELLS_ROW_MAX ((size_t)1 << 20)

/* How a row ends. The last one may lack the end of its line: it is cut off where the rows
 * before it end in CR LF; otherwise it may be cut off, or its writer left the end away. */
enum wm_cells_end { WM_CELLS_ENDED, WM_CELLS_UNENDED, WM_CELLS_CUT };

struct wm_cell {
    const char *text; /* in the buffer, with a NUL behind it, until the next row */
    size_t length;
};

struct wm_cells {
    struct wm_lines file;
    const char *path;
    size_t line;              /* where the row begins, from 1 */
    bool has_cr_lf;           /* the row before */
    enum wm_cells_end ending; /* of the row */
    char *cursor, *row_end;   /* the cells that are left; `cursor` NULL: none */
    size_t commas;            /* in the header */
};

int wm_cells_open(struct wm_cells *cells, const char *path, struct wm_error *err);

void wm_cells_close(struct wm_cells *cells);

/* The next row that is not empty: 1, or 0 past the last one. WM_EFORMAT where no such file
 * goes on. `ending` says how its line ends. */
int wm_cells_next(struct wm_cells *cells, struct wm_error *err);

/* The next cell of the row; false past the last one. */
bool wm_cells_take(struct wm_cells *cells, struct wm_cell *ret_cell);

/* Says of the row, whose line has no end, whether it was taken. */
int wm_cells_remark(const struct wm_cells *cells, bool taken, struct wm_remarks *remarks);

/* Fails with WM_EFORMAT and the row's line in front of `format`. */
int wm_cells_wrong(const struct wm_cells *cells, struct wm_error *err, const char *format,
                   ...) __attribute__((format(printf, 3, 4)));

/* Finds the columns of these names in the row, which is the header: ret_places[i] is where
 * the i-th stands, from 0. Others are let through. Returns how many there are; WM_EFORMAT,
 * with `what` this is no header of, when one stands there twice or is missing. */
int wm_cells_header(struct wm_cells *cells, const char *const *names, size_t count,
                    const char *what, size_t *ret_places, struct wm_error *err);

#endif
