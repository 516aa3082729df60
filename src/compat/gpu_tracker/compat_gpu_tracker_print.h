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

/* The members of the formats; text is as gpu_tracker's str() has it, line end and all. */
int wm_gpu_tracker_report_text(const struct wm_report *report, const struct wm_units *units,
                               FILE *out, struct wm_error *err);
int wm_gpu_tracker_report_json(const struct wm_report *report, const struct wm_units *units,
                               FILE *out, struct wm_error *err);
int wm_gpu_tracker_blocks_text(const struct wm_report *report, FILE *out,
                               struct wm_error *err);
int wm_gpu_tracker_blocks_json(const struct wm_report *report, FILE *out,
                               struct wm_error *err);

/* A table of numbers, each with six decimals, less the zeros that all of its column end in,
 * one stays; a blank stands in the place of its sign. */
struct wm_gpu_tracker_table {
    int indent;              /* blanks before each line */
    const char *const *rows; /* their names; NULL: one row without */
    size_t row_count;
    const char *const *columns;
    size_t column_count;
    const struct wm_known *cells; /* row after row */
};

int wm_gpu_tracker_table(const struct wm_gpu_tracker_table *table, FILE *out,
                         struct wm_error *err);

/* Enough for the largest double with six decimals. */
#define WM_GPU_TRACKER_NUMBER_SIZE 328

/* What a number becomes with so many decimals, 1 to 6: " 0.5", "-0.5"; "NaN" where it is
 * not known. */
void wm_gpu_tracker_number(char text[WM_GPU_TRACKER_NUMBER_SIZE], struct wm_known value,
                           int decimals);

/* How many decimals a number needs of six, one at least. */
int wm_gpu_tracker_decimals(struct wm_known value);

#define WM_PYTHON_NUMBER_SIZE 48

/* What Python's repr() makes of a finite float: 1.0, 16.376, 2.867e-05, 1e+16. */
void wm_python_number(char text[WM_PYTHON_NUMBER_SIZE], double value);

/* As Python's json.dumps(..., indent=1) writes it, without a line end, as there. Takes
 * `root` over; NULL is out of memory. */
int wm_gpu_tracker_json(json_t *root, FILE *out, struct wm_error *err);

#endif
