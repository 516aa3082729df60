/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_repeat.h - runs of commands, and what comes of them; for their views. */
#ifndef WM_ANALYZE_REPEAT_H
#define WM_ANALYZE_REPEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/analyze_figures.h"
#include "analyze/compare/analyze_runs.h"
#include "base/text/base_number.h"
#include "base/text/base_remarks.h"
#include "wattmeter/repeat.h"

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
    WM_REPEAT_VOLUNTARY,
    WM_REPEAT_INVOLUNTARY,
    WM_REPEAT_MINOR,
    WM_REPEAT_MAJOR,
    WM_REPEAT_READ,
    WM_REPEAT_WRITTEN,
    WM_REPEAT_STORAGE_READ,
    WM_REPEAT_STORAGE_WRITTEN,
    WM_REPEAT_EVENTS, /* the first of enum wm_event */
    WM_REPEAT_METRICS = WM_REPEAT_EVENTS + WM_EVENTS,
};

struct wm_repeat_kind {
    const char *key;   /* of the figure in a report */
    const char *label; /* for people */
    const char *more;  /* "takes 3 % more energy" */
    enum wm_figure_unit unit;
    bool is_detail; /* shown to people who ask for more */
};

const struct wm_repeat_kind *wm_repeat_kind(enum wm_repeat_metric metric);

/* Whether it is compared with the reference. */
bool wm_repeat_is_compared(enum wm_repeat_metric metric);

/* A run, or a batch of them, of which these are the means. */
struct wm_repeat_sample {
    struct wm_known values[WM_REPEAT_METRICS];
    struct wm_known low[WM_REPEAT_METRICS], high[WM_REPEAT_METRICS]; /* of one run alone */
    size_t runs;
    double load; /* the cores that other programs kept busy; NAN: not known */
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
    bool has_events_note; /* among the remarks */
    bool is_stopped;      /* before all planned runs */
    struct wm_known cores;
};

/* Of an event, whether no command has it. */
bool wm_repeat_is_left_out(const struct wm_repeat *repeat, enum wm_repeat_metric metric);

/* The runs of a batch; 1 where they are single ones. */
size_t wm_repeat_runs(const struct wm_repeat_one *one);

/* What the runs of a command come to. All zero: some runs have no value. */
struct wm_repeat_summary {
    struct wm_runs of;
    bool has_interval; /* of the median, with 95 % confidence */
    double low, high;
};

/* Of the samples; with WM_REPEAT_TIME the spread is that of each run. The interval has the
 * systematic part of the uncertainty, too. */
struct wm_repeat_summary wm_repeat_summary(const struct wm_repeat_one *one,
                                           enum wm_repeat_metric metric);

/* Samples whose time is far from the others'. */
struct wm_runs_outliers wm_repeat_outliers(const struct wm_repeat_one *one);

enum { WM_REPEAT_NOTE_SIZE = 128 };

/* The note that other programs kept the machine busy during the runs, if they did. */
bool wm_repeat_load_note(const struct wm_repeat *repeat,
                         char ret_note[WM_REPEAT_NOTE_SIZE]);

/* A command against the reference, pair by pair. */
struct wm_runs_ratio wm_repeat_ratio(const struct wm_repeat *repeat, size_t command,
                                     enum wm_repeat_metric metric);

/* Of that ratio: not measured where one of the two is not. */
enum wm_origin wm_repeat_ratio_origin(const struct wm_repeat *repeat, size_t command,
                                      enum wm_repeat_metric metric);

#endif
