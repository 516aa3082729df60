/* SPDX-License-Identifier: Apache-2.0 */
/*
 * axis.h - the axes of all charts, in the terminal, in figures, in films and in Python.
 *
 *     struct wm_axis x = wm_axis_of_time(0.0, 20.0);
 *     struct wm_axis y = wm_axis_of_values(35.2, 41.7);
 *     double marks[8];
 *     size_t count = wm_axis_marks(&y, 8, marks);
 *
 * The functions depend only on their arguments. Any thread may call them.
 */
#ifndef WATTMETER_AXIS_H
#define WATTMETER_AXIS_H

#include <stddef.h>

#include "wattmeter/api.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wm_axis {
    double low, high; /* low < high, and both are finite */
};

/* From the oldest sample to one second past the newest; in seconds. */
WM_API struct wm_axis wm_axis_of_time(double oldest, double newest);

/* From the least to the greatest value. Both sides get a margin: a tenth of the range, plus
 * 0.1 of the unit. */
WM_API struct wm_axis wm_axis_of_values(double least, double greatest);

/* Computes at most `most` places for marks: multiples of 1, 2 or 5 times a power of ten, in
 * ascending order. Returns how many; 0 if `most` is too small, or the axis too short for
 * its distance from 0. */
WM_API size_t wm_axis_marks(const struct wm_axis *axis, size_t most, double *ret_marks);

#ifdef __cplusplus
}
#endif
#endif
