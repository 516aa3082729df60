/* SPDX-License-Identifier: Apache-2.0 */
/*
 * axis.h - the axes of all charts, in the terminal, in figures, in films and in Python.
 *
 *     struct wm_axis x = wm_axis_of_time(0.0, 20.0);
 *     struct wm_axis y = wm_axis_of_values(35.2, 41.7);
 *
 * The functions depend only on their arguments. Any thread may call them.
 */
#ifndef WATTMETER_AXIS_H
#define WATTMETER_AXIS_H

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

#ifdef __cplusplus
}
#endif
#endif
