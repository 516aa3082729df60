/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_series.h - one metric over time, in segments: totals, averages and highest
 * values over a part of it, and its value at any moment.
 *
 * Between two points of a segment the metric is known; between two segments, and
 * before the first and behind the last, it is not, and none of that time counts.
 */
#ifndef WM_ANALYZE_SERIES_H
#define WM_ANALYZE_SERIES_H

#include <stdbool.h>

#include "base/base_error.h"
#include "wattmeter/experiment.h"

/* What lies between two points. */
enum wm_series_kind {
    WM_SERIES_GAUGE, /* a straight line of the value */
    WM_SERIES_TOTAL, /* of what has been counted; of interest are its increases */
    WM_SERIES_MEANS, /* the mean of all that time, which is the value of the later point */
};

/* How sure a sum over runs is, and what it lacks. Sensors are the same in each run, and so
 * are their own errors. */
struct wm_series_doubt {
    bool is_energy; /* the rest says something */
    bool is_vague;  /* a part of the time is missing that is too long for a figure */
    double joules, systematic, random_squares;
    double missing_s;  /* for which devices were not known */
    size_t unfinished; /* runs whose recording ends without a result */
};

struct wm_series {
    char *name;
    char unit[16];
    enum wm_series_kind kind;
    enum wm_origin origin;
    bool is_told; /* by the program that was measured */
    struct wm_series_doubt doubt;
    double period_s; /* how often the sensor has something new; 0: unknown */
    int64_t zero_ns; /* from where people count the seconds; unix */

    int64_t *times; /* unix, growing within a segment */
    double *values;
    size_t count, time_room, value_room;
    size_t *starts; /* the first point of each segment */
    size_t start_count, start_room;
    bool is_open; /* the next point belongs to the last segment */
};

int wm_series_new(const char *name, enum wm_series_kind kind, const char *unit,
                  struct wm_series **ret_series, struct wm_error *err);

/* Adds a point to the end of the last segment; one that is earlier than the one
 * before it is left out. */
int wm_series_add(struct wm_series *series, int64_t unix_ns, double value,
                  struct wm_error *err);

/* The next point begins a segment. */
void wm_series_break(struct wm_series *series);

/* The value at that moment; false where it is not known. */
bool wm_series_at(const struct wm_series *series, int64_t unix_ns, double *ret_value);

/* The rate of a total, as means over windows that are back to back and no shorter than
 * `shortest_s`, but for a segment that is. */
int wm_series_rate(const struct wm_series *total, double shortest_s, const char *name,
                   const char *unit, struct wm_series **ret_rate, struct wm_error *err);

/* The times of all series within the range, once each and in order; the caller frees
 * them. */
int wm_series_union(const struct wm_series *const series[], size_t count,
                    const struct wm_range *range, int64_t **ret_times, size_t *ret_count,
                    struct wm_error *err);

#endif
