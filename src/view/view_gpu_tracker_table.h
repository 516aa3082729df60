/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view_gpu_tracker_table.h - tables as gpu_tracker's documents print them; for src/view
 * alone. A number has six decimals, less the zeros that all of its column end in, one
 * stays; a blank stands in the place of its sign.
 */
#ifndef WM_VIEW_GPU_TRACKER_TABLE_H
#define WM_VIEW_GPU_TRACKER_TABLE_H

#include <stdio.h>

/* Enough for the largest double with six decimals. */
#define WM_GPU_TRACKER_NUMBER_SIZE 328

/* What a number becomes with so many decimals, 1 to 6: " 0.5", "-0.5", "NaN". */
void wm_view_gpu_tracker_number(char text[WM_GPU_TRACKER_NUMBER_SIZE], double value,
                                int decimals);

/* How many decimals a number needs of six, one at least. */
int wm_view_gpu_tracker_decimals(double value);

struct wm_gpu_tracker_table {
    int indent;              /* blanks before each line */
    const char *const *rows; /* their names; NULL: one row without */
    size_t row_count;
    const char *const *columns;
    size_t column_count;
    const double *cells; /* row after row; NAN is printed as NaN */
};

/* WM_ENOMEM is the only failure; whether `out` took it all, it knows itself. */
int wm_view_gpu_tracker_table(const struct wm_gpu_tracker_table *table, FILE *out);

#endif
