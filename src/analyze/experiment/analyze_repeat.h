/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_repeat.h - runs of commands, and what comes of them; for their views. */
#ifndef WM_ANALYZE_REPEAT_H
#define WM_ANALYZE_REPEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/analyze_figures.h"
#include "base/text/base_number.h"
#include "base/text/base_remarks.h"
#include "wattmeter/repeat.h"

/* With fewer runs, or pairs of them, no interval holds. */
enum { WM_REPEAT_LEAST_PAIRS = 6 };

/* What is known of each run, in the order in which it is shown. */
enum wm_repeat_metric {
    WM_REPEAT_TIME,
    WM_REPEAT_USER,
    WM_REPEAT_SYSTEM,
    WM_REPEAT_CPU_TIME,
    WM_REPEAT_ENERGY,
    WM_REPEAT_CPU_ENERGY,
    WM_REPEAT_GPU_ENERGY,
    WM_REPEAT_MEMORY,
    WM_REPEAT_METRICS,
};

struct wm_repeat_kind {
    const char *key;   /* of the figure in a report */
    const char *label; /* for people */
    const char *more;  /* "takes 3 % more energy" */
    enum wm_figure_unit unit;
    bool is_compared; /* with the reference */
};

const struct wm_repeat_kind *wm_repeat_kind(enum wm_repeat_metric metric);

/* A run, or a batch of them, of which these are the means. */
struct wm_repeat_sample {
    struct wm_known values[WM_REPEAT_METRICS];
    struct wm_known low[WM_REPEAT_METRICS], high[WM_REPEAT_METRICS]; /* of one run alone */
    size_t runs;
};

struct wm_repeat_one {
    char *command, *name;
    char **parameters; /* name, value, ..., NULL */
    struct wm_repeat_sample *samples;
    size_t sample_count, sample_room;

    /* Of each run. */
    double *times;
    int *exit_codes;
    size_t time_count, time_room, exit_room;
    bool has_survivors; /* processes of a run went on after it */

    char *why[WM_REPEAT_METRICS]; /* the last reason why a value is missing */
    enum wm_origin origin[WM_REPEAT_METRICS];
    double systematic[WM_REPEAT_METRICS]; /* the largest part of the uncertainty that is the
                                             same in each run, a ratio */
};

struct wm_repeat {
    struct wm_repeat_options options;
    struct wm_repeat_one *commands;
    size_t count, room;
    struct wm_repeat_one shell;
    struct wm_remarks remarks;
};

/* The runs of a batch; 1 where they are single ones. */
size_t wm_repeat_runs(const struct wm_repeat_one *one);

/* What the runs of a command come to. All zero: some runs have no value. */
struct wm_repeat_summary {
    size_t count;
    double mean, std, median, min, max; /* std: n - 1, 0 of one value */
    bool has_interval;                  /* of the mean, with 95 % confidence */
    double low, high;
};

/* Of the samples, or with WM_REPEAT_TIME of each run. The interval has the systematic part
 * of the uncertainty, too. */
struct wm_repeat_summary wm_repeat_summary(const struct wm_repeat_one *one,
                                           enum wm_repeat_metric metric);

/* Samples whose time is far from the others'. They count all the same. */
struct wm_repeat_outliers {
    size_t count;
    bool is_first; /* the first is one of them, and slower */
};

struct wm_repeat_outliers wm_repeat_outliers(const struct wm_repeat_one *one);

enum wm_repeat_verdict {
    WM_REPEAT_NOT_TESTED, /* too few pairs, or a value is missing */
    WM_REPEAT_SAME,       /* no difference that matters was found */
    WM_REPEAT_LESS,
    WM_REPEAT_MORE,
};

/* A command against the reference. */
struct wm_repeat_ratio {
    size_t pairs;
    enum wm_repeat_verdict verdict;
    double ratio;     /* of its mean to the reference's; 0: not known */
    double low, high; /* of the ratio, where it was tested: with 95 % confidence those of
                         all metrics hold together */
};

struct wm_repeat_ratio wm_repeat_ratio(const struct wm_repeat *repeat, size_t command,
                                       enum wm_repeat_metric metric);

#endif
