/* SPDX-License-Identifier: Apache-2.0 */
/* fake_nvml_curve.h - a value over time, and the exact area under it. */
#ifndef FAKE_NVML_CURVE_H
#define FAKE_NVML_CURVE_H

#include <stdbool.h>
#include <stddef.h>

struct curve_point {
    double time; /* seconds */
    double value;
};

/* Times never go back. Before the first point its value holds, after the last
 * one that one's. Without points there is no value: NAN. */
struct curve {
    struct curve_point *points;
    size_t count;
    bool steps;    /* each value holds until the next point; else straight lines */
    double repeat; /* seconds after which all begins again; 0: never */
};

double curve_value(const struct curve *curve, double time);

/* The integral from 0 to `time`: watts become joules. */
double curve_area(const struct curve *curve, double time);

#endif
