/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_experiment_choose.h - of which devices an energy is that an experiment is
 * asked for, and what they had used by a tick.
 *
 *     struct wm_experiment_chosen chosen = { 0 };
 *     wm_experiment_choose(analysis, &subject, &chosen, err);    after the last tick
 *     wm_experiment_joules(analysis, &chosen);                   of another one, each tick
 *     wm_experiment_chosen_release(&chosen);
 */
#ifndef WM_ANALYZE_EXPERIMENT_CHOOSE_H
#define WM_ANALYZE_EXPERIMENT_CHOOSE_H

#include "analyze/analyze_state.h"
#include "analyze/experiment/analyze_experiment.h"

/* What an energy is of: some kinds of device, or the one that is labelled so. */
struct wm_experiment_subject {
    bool cpu, dram, gpu;
    char label[64];
    bool is_power;
};

/* The devices whose joules are added up. */
struct wm_experiment_chosen {
    bool *devices, *gpus; /* of the analysis: whether each is one of them */
    size_t count;         /* of those that are */
    bool has_subject;     /* the machine has such devices, known or not */
    struct wm_cover cover;
    enum wm_origin origin;
    double period_s; /* of the slowest of their sensors */
    struct wm_series_doubt doubt;
};

/* The same as in the report of that analysis. wm_experiment_chosen_release() is due
 * whatever this returned. */
int wm_experiment_choose(const struct wm_analysis *analysis,
                         const struct wm_experiment_subject *subject,
                         struct wm_experiment_chosen *chosen, struct wm_error *err);

void wm_experiment_chosen_release(struct wm_experiment_chosen *chosen);

/* What they have used in an analysis of the same run; NAN: it is no number. */
double wm_experiment_joules(const struct wm_analysis *analysis,
                            const struct wm_experiment_chosen *chosen);

#endif
