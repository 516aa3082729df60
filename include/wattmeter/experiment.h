/* SPDX-License-Identifier: Apache-2.0 */
/*
 * experiment.h - runs that are kept under one name, and what they come to together:
 * totals, averages and curves of any metric, over all of them or a part.
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
 * Where experiments are kept, a target: an SQLite recording, a folder that has one of
 * AIPowerMeter's folders for each name, or a PostgreSQL database by its URL. The rules
 * of source.h hold here too. docs/experiments.md has the rest.
 */
#ifndef WATTMETER_EXPERIMENT_H
#define WATTMETER_EXPERIMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "wattmeter/api.h"
#include "wattmeter/error.h"
#include "wattmeter/report.h"
#include "wattmeter/tracker.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wm_experiment;
struct wm_series;

/* What a run is part of. Texts are copied. */
struct wm_experiment_setup {
    const char *target;
    const char *name;        /* 1 to 100 bytes, without '/' and not beginning with '.' */
    const char *description; /* may be NULL */
    const char *model_card;  /* path of a JSON file; may be NULL */
};

/* Has the tracker record its session as one more run of that experiment, before the
 * start. What is there stays. */
WM_API int wm_tracker_experiment(struct wm_tracker *tracker,
                                 const struct wm_experiment_setup *setup,
                                 struct wm_error *err);

/* Prints which experiments there are at `target`, the oldest first. */
WM_API int wm_experiment_print_list(const char *target, enum wm_report_format format,
                                    FILE *out, struct wm_error *err);

/* Opens all runs called `name`; "-" are those without a name. WM_ENOENT, and a list of
 * the names there are, when there is none. */
WM_API int wm_experiment_open(const char *target, const char *name,
                              struct wm_experiment **ret_experiment, struct wm_error *err);

/* Accepts NULL. */
WM_API void wm_experiment_close(struct wm_experiment *experiment);

/* How an experiment is printed; all zero is right for nearly everybody. */
struct wm_experiment_style {
    struct wm_report_style report; /* units, money and CO2e */
    double idle_watts; /* what all that the energy covers takes idle; 0: as measured */
    const char *per;   /* a metric: energy from each of its values to the next */
};

/* Prints the runs and what they cost, each and together. */
WM_API int wm_experiment_print(const struct wm_experiment *experiment,
                               enum wm_report_format format,
                               const struct wm_experiment_style *style, FILE *out,
                               struct wm_error *err);

/* The moment that a person means, in nanoseconds since 1970: seconds since the start of
 * the first run ("12.5"), or RFC 3339. */
WM_API int wm_experiment_time(const struct wm_experiment *experiment, const char *text,
                              int64_t *ret_unix_ns, struct wm_error *err);

/* One metric over all runs; an energy has to be of the same kinds of device in each run
 * that knows it, or there is no value. `metric` is an energy ("energy", "cpu_energy",
 * "dram_energy", "gpu_energy", "package0_energy"), the power of the same
 * ("cpu_power"), a column of the recording, or what the measured program wrote
 * itself. WM_ENOENT, with a list of what there is; WM_ENODEV, with the reason, when
 * it has no value. The caller frees the series. */
WM_API int wm_experiment_series(const struct wm_experiment *experiment, const char *metric,
                                struct wm_series **ret_series, struct wm_error *err);

/* Accepts NULL. */
WM_API void wm_series_free(struct wm_series *series);

/* Nanoseconds since 1970; 0: from the start, to the end. */
struct wm_range {
    int64_t from_ns, to_ns;
};

enum wm_figure_kind {
    /* Of an energy or another counter: how much it grew. Of anything else: the area
     * under its curve, for power joules. */
    WM_FIGURE_TOTAL,

    /* That divided by the time that the metric is known for. */
    WM_FIGURE_AVERAGE,

    /* The highest value; of a counter the highest rate, over no less time than its
     * sensor needs to tell it. */
    WM_FIGURE_MAX,
};

struct wm_figure {
    double value;
    double seconds; /* for which it is known in the range, without pauses */
    char unit[32];  /* "J", "W", "accuracy s" */
    bool is_short;  /* fewer than three updates of its sensor: a rough figure */

    /* Of an energy or a power of it, over all of the time: the truth lies within this
     * ratio with 95 % confidence. */
    bool has_uncertainty;
    double uncertainty; /* 0 where it has none */
    double missing_s;   /* of an energy: for so long a device of it was not known */
    size_t unfinished;  /* runs whose recording ends without a result */
};

/* Where the range begins or ends between two values a straight line joins them.
 * `range` may be NULL. WM_ENODEV: there is no value in it. */
WM_API int wm_series_figure(const struct wm_series *series, enum wm_figure_kind kind,
                            const struct wm_range *range, struct wm_figure *ret_figure,
                            struct wm_error *err);

/* A segment without pauses: times and values, `count` of each, borrowed. Of a power
 * that was made of an energy each value is the mean since the time before, so at the
 * first time none is known: `values[0]` is 0 then, and `first_known` is 1. */
struct wm_series_segment {
    const int64_t *unix_ns;
    const double *values;
    size_t count;
    size_t first_known; /* the place of the first value that is known */
};

WM_API size_t wm_series_segment_count(const struct wm_series *series);

/* `index` is below that count. */
WM_API struct wm_series_segment wm_series_segment(const struct wm_series *series,
                                                  size_t index);

/* Prints that. */
WM_API int wm_series_print_figure(const struct wm_series *series, enum wm_figure_kind kind,
                                  const struct wm_range *range,
                                  enum wm_report_format format, FILE *out,
                                  struct wm_error *err);

/* Prints the values of one series, or of several on all their times together: between
 * two values of a segment by straight lines, outside of them nothing. As text it is
 * CSV. WM_EINVAL: `count` is 0. */
WM_API int wm_series_print(const struct wm_series *const series[], size_t count,
                           const struct wm_range *range, enum wm_report_format format,
                           FILE *out, struct wm_error *err);

#ifdef __cplusplus
}
#endif
#endif
