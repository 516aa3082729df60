/* SPDX-License-Identifier: Apache-2.0 */
/* view_mark.h - the marks of an axis with what is written at them, in the unit that people
 * read it in, and the colours of a chart. */
#ifndef WM_VIEW_MARK_H
#define WM_VIEW_MARK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wattmeter/axis.h"

enum { WM_CHART_MARKS = 16, WM_CHART_LABEL_SIZE = 32 };

struct wm_chart_mark {
    double at;                       /* in the unit of the axis */
    char label[WM_CHART_LABEL_SIZE]; /* in `symbol` */
};

struct wm_chart_marks {
    const char *symbol; /* "kW", "%", "min"; "" of a plain number */
    size_t count;
    struct wm_chart_mark marks[WM_CHART_MARKS];
};

/* The axis of values in that unit of a channel, by the rule of wm_axis_of_values() in the
 * unit that people read: the margin of memory is 0.1 GB, not 0.1 B. That of power is 0.1 W
 * of kilowatts, too. */
struct wm_axis wm_chart_axis(double least, double greatest, const char *unit);

/* The same of a panel: power, use and memory from 0 on unless it fits them, and
 * temperatures and counts of several degrees or things. */
struct wm_axis wm_chart_panel_axis(double least, double greatest, const char *unit,
                                   bool fits);

/* At most `most` marks of an axis in that unit: "W", "B", "ratio", "s". Time
 * becomes minutes, hours or days where it is that long. */
void wm_chart_marks_of(const struct wm_axis *axis, const char *unit, size_t most,
                       struct wm_chart_marks *ret_marks);

/* The colour of device number `index`, 0xRRGGBB: told apart by the colour-blind, on white
 * and on black, and from the ninth on darker. There are 16. */
uint32_t wm_chart_colour(size_t index);

/* Computes at most `most` places for marks: multiples of 1, 2 or 5 times a power of ten, in
 * ascending order. Returns how many; 0 if `most` is too small, or the axis too short for
 * its distance from 0. */
size_t wm_axis_marks(const struct wm_axis *axis, size_t most, double *ret_marks);

#endif
