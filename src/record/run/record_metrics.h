/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_metrics.h - what the measured program reports of itself: accuracy, latency,
 * the number of the epoch. The series are part of the result of a run.
 *
 * They come from a file that the program writes, a JSON object per line:
 *
 *     {"time": 1795247379.25, "epoch": 1, "accuracy": 0.61}
 *     {"time": "2026-11-21T08:49:40+01:00", "epoch": 2, "accuracy": 0.74}
 */
#ifndef WM_RECORD_METRICS_H
#define WM_RECORD_METRICS_H

#include <jansson.h>
#include <stdint.h>

#include "base/base_error.h"

/* Of all metrics of a run together, and the names and their length. */
#define WM_METRIC_POINTS_MAX 100000
#define WM_METRICS_MAX 1000
#define WM_METRIC_NAME_MAX 128

/* One value of a metric that the measured program writes itself; `order` is its place
 * in what was read. */
struct wm_metric_point {
    int64_t when_ns; /* CLOCK_MONOTONIC, as in the ticks */
    double value;
    size_t order;
};

struct wm_metric {
    char *name;
    struct wm_metric_point *points; /* in the order of time */
    size_t count, room;
};

/* All zero is none. */
struct wm_metrics {
    struct wm_metric *all;
    size_t count;
    char note[512]; /* what was wrong with their file; empty if nothing */
};

/* Adds one value, in the order of time or not. WM_EINVAL when it is beyond these
 * limits or no number, else WM_ENOMEM. */
int wm_metrics_add(struct wm_metrics *metrics, const char *name, int64_t when_ns,
                   double value, struct wm_error *err);

/* Puts the values of each metric into the order of time; due after the last one. */
void wm_metrics_sort(struct wm_metrics *metrics);

/* The moments of the run at which a value may be: CLOCK_MONOTONIC. A time without a
 * fraction may be off by up to a second, and is moved to them; what lies outside
 * otherwise is of another run that wrote to the same file. */
struct wm_metrics_window {
    int64_t from_ns, to_ns;
    int64_t unix_at_zero_ns; /* what the wall clock showed at 0 */
};

/* Adds what the file at `path` says. The note says what was wrong with it: a missing file,
 * and lines, by their numbers. WM_ENOMEM is the only failure. */
int wm_metrics_read(const char *path, const struct wm_metrics_window *window,
                    struct wm_metrics *metrics, struct wm_error *err);

/* {"series": {"accuracy": [[when_ns, value], ...]}, "note": "..."}; NULL when out of
 * memory. */
json_t *wm_metrics_json(const struct wm_metrics *metrics);

/* From there, or from what is missing or null. */
int wm_metrics_from_json(const json_t *object, struct wm_metrics *metrics,
                         struct wm_error *err);

void wm_metrics_release(struct wm_metrics *metrics);

#endif
