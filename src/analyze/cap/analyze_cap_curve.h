/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_cap_curve.h - a smooth curve through noisy measurements, with its uncertainty.
 *
 * It is a Gaussian process: nearby caps behave alike, and how near, how much the curve
 * bends and how noisy a measurement is are weighed by how likely they make what was
 * measured. So a few points do not bend it, and where there are none it says that it does
 * not know. Everything is of logarithms, so that errors are ratios.
 */
#ifndef WM_ANALYZE_CAP_CURVE_H
#define WM_ANALYZE_CAP_CURVE_H

#include <stddef.h>

/* Caps that were measured, and caps that the curve is wanted at. */
enum { WM_CAP_MEASURED_MAX = 64, WM_CAP_PLACES_MAX = 512 };

/* The measurements at one place: how many, their mean, and how they scatter about it. */
struct wm_cap_sample {
    double place;   /* 0 to 1 */
    double mean;    /* of logarithms */
    double squares; /* sum of squared differences from the mean */
    size_t count;   /* 1 or more */
};

struct wm_cap_curve {
    double mean[WM_CAP_PLACES_MAX];
    double sd[WM_CAP_PLACES_MAX];
    double sd_to_last[WM_CAP_PLACES_MAX]; /* of the difference from the last place */
    double noise;                         /* of one measurement */
};

/* What is known of a curve before it is drawn. */
struct wm_cap_shape {
    double level;  /* from some place between this and the last it is level; 1: nowhere */
    double step;   /* below this place all of it may be shifted; 0: there is no step */
    double uneven; /* standard deviation, a ratio, from the smooth curve at each place,
                    * which is the same in all measurements there */
};

/* The curve at `places`. `count` is 1 to WM_CAP_MEASURED_MAX. */
void wm_cap_curve_fit(const struct wm_cap_sample *samples, size_t count,
                      const struct wm_cap_shape *shape, const double *places,
                      size_t place_count, struct wm_cap_curve *ret_curve);

/* Makes mean[0..count) go down or stay level, changing it as little as that takes. */
void wm_cap_curve_go_down(double *mean, size_t count);

#endif
