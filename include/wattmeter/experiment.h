/* SPDX-License-Identifier: Apache-2.0 */
/*
 * experiment.h - summarizes runs under one name: totals, averages and curves of any metric,
 * over all runs or a time range.
 *
 *     struct wm_experiment *experiment;
 *     struct wm_series *energy;
 *     struct wm_figure total;
 *     if (wm_experiment_open("results.sqlite", "resnet", &experiment, &err) < 0)
 *         return report(&err);
 *     if (wm_experiment_series(experiment, "energy", &energy, &err) == WM_OK) {
 *         if (wm_series_figure(energy, WM_FIGURE_TOTAL, NULL, &total, &err) == WM_OK)
 *             printf("%.1f J in %.1f s\n", total.value, total.seconds);
 *         wm_series_free(energy);
 *     }
 *     wm_experiment_close(experiment);
 *
 * Experiments are stored in a target: an SQLite recording, a folder with an AIPowerMeter
 * folder for each name, or a PostgreSQL database by its URL. The rules of source.h hold
 * here too. docs/experiments.md has the rest.
 */
#ifndef WATTMETER_EXPERIMENT_H
#define WATTMETER_EXPERIMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "wattmeter/api.h"
#include "wattmeter/error.h"
#include "wattmeter/format.h"
#include "wattmeter/report.h"
#include "wattmeter/tracker.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wm_experiment;
struct wm_series;

/* The experiment of a run. The strings are copied. */
struct wm_experiment_setup {
    size_t size; /* sizeof this struct */
    const char *target;
    const char *name;        /* 1 to 100 bytes, without '/' and not beginning with '.' */
    const char *description; /* may be NULL */
    const char *model_card;  /* path of a JSON file; may be NULL */
};

/* Makes the tracker record its session as one more run of that experiment. Existing runs
 * are kept. Call it before the start. */
WM_API int wm_tracker_experiment(struct wm_tracker *tracker,
                                 const struct wm_experiment_setup *setup,
                                 struct wm_error *err);

/* Prints the experiments in `target`, the oldest first. All printing here is in text or
 * JSON. */
WM_API int wm_experiment_print_list(const char *target, enum wm_format format, FILE *out,
                                    struct wm_error *err);

/* Opens all runs called `name`; "-" are the runs without a name. Returns WM_ENOENT if there
 * is no such run; the error lists the names. */
WM_API int wm_experiment_open(const char *target, const char *name,
                              struct wm_experiment **ret_experiment, struct wm_error *err);

/* Accepts NULL. */
WM_API void wm_experiment_close(struct wm_experiment *experiment);

/* How an experiment is printed. Zero-initialize it for the defaults. */
struct wm_experiment_style {
    size_t size;                          /* sizeof this struct */
    const struct wm_report_style *report; /* units, money and CO2e; may be NULL */
    double idle_watts; /* idle power of the measured devices; 0: as measured */
    const char *per;   /* a metric: energy from each of its values to the next */
};

/* Prints the runs and their cost, each and in total. */
WM_API int wm_experiment_print(const struct wm_experiment *experiment,
                               enum wm_format format,
                               const struct wm_experiment_style *style, FILE *out,
                               struct wm_error *err);

/* Parses a time, in nanoseconds since 1970: seconds since the start of the first run
 * ("12.5"), or RFC 3339. */
WM_API int wm_experiment_time(const struct wm_experiment *experiment, const char *text,
                              int64_t *ret_unix_ns, struct wm_error *err);

/* One metric over all runs. `metric` is an energy ("energy", "cpu_energy", "dram_energy",
 * "gpu_energy", "package0_energy"), its power ("cpu_power"), a column of the recording, or
 * a metric of the program. An energy has a value only if all runs that have it measured the
 * same kinds of device. Returns WM_ENOENT, with a list of the metrics, or WM_ENODEV, with
 * the reason, if it has no value. The caller frees the series. */
WM_API int wm_experiment_series(const struct wm_experiment *experiment, const char *metric,
                                struct wm_series **ret_series, struct wm_error *err);

/* Accepts NULL. */
WM_API void wm_series_free(struct wm_series *series);

/* Nanoseconds since 1970; 0: from the start, to the end. */
struct wm_range {
    int64_t from_ns, to_ns;
};

enum wm_figure_kind {
    /* Of an energy or another counter: its growth. Of any other metric: the area under its
     * curve; for power these are joules. */
    WM_FIGURE_TOTAL = 0,

    /* The total divided by the time for which the metric is known. */
    WM_FIGURE_AVERAGE = 1,

    /* The highest value. Of a counter: the highest rate, over at least the time that its
     * sensor needs to resolve it. */
    WM_FIGURE_MAX = 2,
};

struct wm_figure {
    double value;
    double seconds; /* of the range in which it is known, without pauses */
    char unit[32];  /* "J", "W", "accuracy s" */
    bool is_short;  /* fewer than three updates of its sensor: a rough figure */

    /* Of an energy or its power, over all of the time: the true value lies within this
     * ratio with 95 % confidence. */
    bool has_uncertainty;
    double uncertainty; /* 0 if it has none */
    double missing_s;   /* of an energy: time in which one of its devices is unknown */
    size_t unfinished;  /* runs whose recording ends without a result */
};

/* The figure of a series in a range. At the limits of the range values are interpolated
 * linearly. `range` may be NULL. WM_ENODEV: the range has no value. */
WM_API int wm_series_figure(const struct wm_series *series, enum wm_figure_kind kind,
                            const struct wm_range *range, struct wm_figure *ret_figure,
                            struct wm_error *err);

/* A segment without pauses: times and values, `count` of each, borrowed. If power was
 * derived from energy, each value is the mean since the time before. The first is unknown
 * then: `values[0]` is 0, and `first_known` is 1. */
struct wm_series_segment {
    const int64_t *unix_ns;
    const double *values;
    size_t count;
    size_t first_known; /* index of the first known value */
};

WM_API size_t wm_series_segment_count(const struct wm_series *series);

/* `index` is below that count. */
WM_API struct wm_series_segment wm_series_segment(const struct wm_series *series,
                                                  size_t index);

/* Prints the figure. */
WM_API int wm_series_print_figure(const struct wm_series *series, enum wm_figure_kind kind,
                                  const struct wm_range *range, enum wm_format format,
                                  FILE *out, struct wm_error *err);

/* Prints the values of one series, or of several at all their times. Values inside a
 * segment are interpolated linearly; outside of segments they are empty. As text it is CSV.
 * WM_EINVAL: `count` is 0. */
WM_API int wm_series_print(const struct wm_series *const series[], size_t count,
                           const struct wm_range *range, enum wm_format format, FILE *out,
                           struct wm_error *err);

#ifdef __cplusplus
}
#endif
#endif
