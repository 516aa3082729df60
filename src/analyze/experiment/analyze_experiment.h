/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_experiment.h - the runs of an experiment, and what they come to together. */
#ifndef WM_ANALYZE_EXPERIMENT_H
#define WM_ANALYZE_EXPERIMENT_H

#include "analyze/analyze_report.h"
#include "analyze/energy/analyze_series.h"
#include "record/run/record_experiment.h"
#include "wattmeter/experiment.h"

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
