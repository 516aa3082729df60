/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cap_model.h - what was measured under each cap, and the curves through that: of
 * the time, and of each objective, over all caps that may be the answer.
 *
 * A place is the number of such a cap, from 0, the lowest; the last is the default limit.
 */
#ifndef WM_CAP_MODEL_H
#define WM_CAP_MODEL_H

#include <stddef.h>

#include "base/base_error.h"
#include "wattmeter/cap_search.h"

/*
 * A smooth curve through noisy measurements, with its uncertainty.
 *
 * It is a Gaussian process: nearby caps behave alike, and how near, how much the curve
 * bends and how noisy a measurement is are weighed by how likely they make what was
 * measured. So a few points do not bend it, and where there are none it says that it does
 * not know. Everything is of logarithms, so that errors are ratios.
 */

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

/* A curve of each objective, in their order, and one of the time. */
enum { WM_CAP_CURVE_TIME = WM_CAP_OBJECTIVES, WM_CAP_CURVES };

/* Standard deviations from the mean to an end of the 95 % interval. */
#define WM_CAP_CONFIDENCE_95 1.96

struct wm_cap_measured {
    double cap;
    double seconds, joules;                      /* means */
    struct wm_cap_sample samples[WM_CAP_CURVES]; /* of the same windows */
};

struct wm_cap_model {
    struct wm_cap_plan plan; /* without zeros that stand for something */
    double *caps;            /* those of the plan, going up; NULL: any */

    struct wm_cap_measured measured[WM_CAP_MEASURED_MAX]; /* going up */
    size_t measured_count;

    bool is_fitted;
    size_t above_step; /* the number of the measured cap above a step; 0: there is none */
    double caps_fitted[WM_CAP_PLACES_MAX]; /* that may be the answer, going up */
    double places[WM_CAP_PLACES_MAX];      /* the same from 0 to 1 */
    size_t place_count;
    struct wm_cap_curve curves[WM_CAP_CURVES];
};

/* Whether both are the same setting, whatever arithmetic they come from. */
bool wm_cap_is_same(double one, double other);

/* Sorts, and lets one of each stay. Returns how many. */
size_t wm_cap_sort(double *caps, size_t count);

/* What was measured at that cap; NULL: nothing. */
struct wm_cap_measured *wm_cap_model_find(struct wm_cap_model *model, double cap);
struct wm_cap_measured *wm_cap_model_at(struct wm_cap_model *model, size_t place);

/* How many windows; 0 of NULL. */
size_t wm_cap_windows(const struct wm_cap_measured *measured);

/* As wm_cap_search_add(). */
int wm_cap_model_add(struct wm_cap_model *model, double cap, double seconds, double joules,
                     struct wm_error *err);

/* The logarithm of what a curve is of. */
double wm_cap_model_log(const struct wm_cap_plan *plan, size_t curve, double seconds,
                        double joules);

/* Draws the curves through what was measured since the last time. */
void wm_cap_model_fit(struct wm_cap_model *model);

/* The functions below are about a model that is fitted. */

/* The logarithm of the ratio to the default limit. */
double wm_cap_model_above(const struct wm_cap_model *model, size_t curve, size_t place);

/* The lowest place of the curve that is fast enough; the default limit always is. */
size_t wm_cap_model_lowest(struct wm_cap_model *model, enum wm_cap_objective objective,
                           bool only_measured);

/* The place that is the answer, by that objective, and why. */
size_t wm_cap_model_choose(struct wm_cap_model *model, enum wm_cap_objective objective,
                           enum wm_cap_reason *ret_reason);

/* Whether no cap has an effect. The model need not be fitted for this. */
bool wm_cap_model_never_binds(struct wm_cap_model *model);

#endif
