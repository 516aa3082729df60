/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat_gpu_tracker_print.h - gpu_tracker's layouts of a report, of an analysis and of a
 * comparison, and what they are made of: tables as pandas prints them, JSON as Python does.
 *
 * Whether `out` took it all, it knows itself; WM_ENOMEM is the only failure here.
 */
#ifndef WM_COMPAT_GPU_TRACKER_PRINT_H
#define WM_COMPAT_GPU_TRACKER_PRINT_H

#include "view/view.h"

/* A report in gpu_tracker's structure, from which its text is made as well. The caller's;
 * NULL when out of memory. */
json_t *wm_gpu_tracker_report(const struct wm_report *report, const struct wm_units *units);
void wm_gpu_tracker_report_text(json_t *root, FILE *out);

/* As gpu_tracker's str() of it, line end and all. */
int wm_gpu_tracker_blocks(const struct wm_block_analysis *results, FILE *out);

/* The same. `is_cli`: the names of blocks stand at the start of their lines. */
int wm_gpu_tracker_comparison(const struct wm_compare *compare, bool is_cli, FILE *out);

/* gpu_tracker's structure. The caller's; NULL when out of memory. */
json_t *wm_gpu_tracker_comparison_json(const struct wm_compare *compare);

/* A table of numbers, each with six decimals, less the zeros that all of its column end in,
 * one stays; a blank stands in the place of its sign. */
struct wm_gpu_tracker_table {
    int indent;              /* blanks before each line */
    const char *const *rows; /* their names; NULL: one row without */
    size_t row_count;
    const char *const *columns;
    size_t column_count;
    const double *cells; /* row after row; NAN is printed as NaN */
};

int wm_gpu_tracker_table(const struct wm_gpu_tracker_table *table, FILE *out);

/* Enough for the largest double with six decimals. */
#define WM_GPU_TRACKER_NUMBER_SIZE 328

/* What a number becomes with so many decimals, 1 to 6: " 0.5", "-0.5", "NaN". */
void wm_gpu_tracker_number(char text[WM_GPU_TRACKER_NUMBER_SIZE], double value,
                           int decimals);

/* How many decimals a number needs of six, one at least. */
int wm_gpu_tracker_decimals(double value);

#define WM_PYTHON_NUMBER_SIZE 48

/* What Python's repr() makes of a finite float: 1.0, 16.376, 2.867e-05, 1e+16. */
void wm_python_number(char text[WM_PYTHON_NUMBER_SIZE], double value);

/* As Python's json.dumps(..., indent=1) writes it, without a line end, as there. */
void wm_gpu_tracker_json(const json_t *root, FILE *out);

#endif
