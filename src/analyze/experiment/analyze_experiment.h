/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_experiment.h - the runs of an experiment, and what they come to together. */
#ifndef WM_ANALYZE_EXPERIMENT_H
#define WM_ANALYZE_EXPERIMENT_H

#include <stdbool.h>

#include "analyze/analyze_report.h"
#include "base/base_error.h"
#include "record/record_experiment.h"
#include "wattmeter/experiment.h"

/*
 * One metric over time, in segments: totals, averages and highest
 * values over a part of it, and its value at any moment.
 *
 * Between two points of a segment the metric is known; between two segments, and
 * before the first and behind the last, it is not, and none of that time counts.
 */

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

/* A run that has been read: the recording, at its end, and all its ticks. */
struct wm_experiment_ticks {
    struct wm_recording *recording; /* NULL: it has not been read yet, or is too long */
    int64_t *when_ns;
    struct wm_reading *readings; /* of all channels of each tick */
    size_t count;
    bool is_too_long;
    size_t *kept; /* readings that the experiment has of all its runs */
};

/* A run is opened when it is needed, by its place. */
struct wm_experiment_run {
    char *path;
    size_t index; /* in that recording */
    char *name;   /* of its experiment; NULL: it has none */
    struct wm_run run;
    int64_t start_unix_ns; /* of its first tick */
    struct wm_experiment_ticks *ticks;
};

struct wm_experiment {
    char *name;
    struct wm_experiment_run *runs;
    size_t count;
    int64_t zero_ns;   /* when the first of them started */
    size_t kept;       /* readings of runs that have been read */
    size_t broken;     /* runs at the target that could not be read */
    char trouble[256]; /* why the first of them could not */
};

/* The names at a target, the oldest first. */
struct wm_experiment_entry {
    const char *name; /* NULL: of the runs without one */
    const char *description;
    size_t runs;
    int64_t first_unix_ns, last_unix_ns; /* starts of the first run and the last */
};

struct wm_experiment_list {
    struct wm_experiment found; /* all runs, which the texts of the entries belong to */
    struct wm_experiment_entry *entries;
    size_t count;
};

/* wm_experiment_list_release() is due whatever this returned. */
int wm_experiment_list_load(const char *target, struct wm_experiment_list *list,
                            struct wm_error *err);
void wm_experiment_list_release(struct wm_experiment_list *list);

/* The energy of a run, or of all. */
struct wm_cost {
    struct wm_value total, uncertainty;
    enum wm_origin origin;
    struct wm_cover cover;
    struct wm_value parts[WM_COST_COUNT];
    enum wm_origin origins[WM_COST_DEVICES];
};

/* Whether the energies of two runs are of different kinds, so that their sum would be
 * one of nothing; `why` is then which run lacks what. */
bool wm_cover_differs(const struct wm_cover *one, size_t one_run,
                      const struct wm_cover *other, size_t other_run, char why[64]);

void wm_experiment_ticks_free(struct wm_experiment_ticks *ticks);

/* Adds the values of one metric in one run to `series`, which is made with the first
 * of them; `ret_cover` is what an energy is of, nothing for another metric. WM_ENOENT:
 * this run has no such metric; WM_ENODEV: nor any value of it. */
int wm_experiment_collect(const struct wm_experiment_run *run, const char *metric,
                          struct wm_series **series, struct wm_cover *ret_cover,
                          struct wm_error *err);

/* One run in the summary. */
struct wm_run_summary {
    const struct wm_experiment_run *run;
    struct wm_report *report;
    struct wm_cost cost;
};

/* From one value of a metric to the next. */
struct wm_step {
    size_t run;
    int64_t unix_ns; /* its end */
    double value;
    struct wm_value joules;
};

struct wm_experiment_summary {
    struct wm_run_summary *runs;
    size_t run_count;
    struct wm_value seconds;
    struct wm_cost cost;
    const char *unlike;      /* why the energy is not of the same in each run, and so
                              * unknown; NULL: it is */
    const char *description; /* of the newest run that has one; NULL: none has */
    const char *model;       /* the card, as JSON text; the same */
    struct wm_value per_parameter, per_flop; /* J */
    struct wm_step *steps;
    size_t step_count;
    struct wm_value per_step; /* J, the mean of those that are known */
};

/* `idle_watts`: 0 for what was measured. `per` may be NULL. The summary points into
 * the experiment; wm_experiment_summary_release() is due whatever this returned. */
int wm_experiment_summarize(const struct wm_experiment *experiment, double idle_watts,
                            const char *per, struct wm_experiment_summary *summary,
                            struct wm_error *err);
void wm_experiment_summary_release(struct wm_experiment_summary *summary);

#endif
