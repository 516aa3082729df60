/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_uncertainty.h - how far a figure of joules may be off.
 *
 * Both parts are at k = 2: 95 % of all figures lie within them. What is systematic is
 * the sensor's own error, the same in each figure from it: it does not shrink with the
 * length of a run, and drops out where two figures from one sensor are compared. What
 * is random is another in each run: its ends, what the sensor did not look at, what
 * was filled in or is missing.
 */
#ifndef WM_ANALYZE_UNCERTAINTY_H
#define WM_ANALYZE_UNCERTAINTY_H

#include "analyze/energy/analyze_energy.h"

struct wm_uncertainty {
    double systematic, random; /* J; the latter: `below` or `above`, whichever is more */
    double below, above; /* the random part: how much less the truth may be, or more */
    double unseen; /* of the random part: what a load in step with the sensor may hide */
    double ends;   /* of the systematic part: what dated readings leave out at the ends */
    bool at_odds;  /* counter and power are, by more than the random part */
};

/* Between which joules the truth lies: none are negative. */
struct wm_between {
    double low, high;
};

struct wm_between wm_uncertainty_between(double joules, double systematic, double below,
                                         double above);

/* All zero for a figure that is not known. */
void wm_uncertainty_find(const struct wm_energy *energy,
                         const struct wm_energy_result *result,
                         struct wm_uncertainty *ret_uncertainty);

/* Both together. */
double wm_uncertainty_total(const struct wm_uncertainty *uncertainty);

/*
 * What a load can hide from a sensor that sees a part of the time only,
 * by keeping step with it.
 *
 *     const struct wm_unseen_case what = { .variation = variation, .watts = 240, .seconds =
 * 3, .seen = 0.25, .known = 1, .busy = 0.4, .partly = 1, .most_watts = 700 }; struct
 * wm_unseen unseen; wm_unseen_find(&what, &unseen);
 *
 * Three things are held against each other: the readings, whose levels are those of a
 * device that is idle and busy, if the sensor saw each of them whole; their structure, as
 * readings that swing many times between the two, and do not repeat a pattern, are not in
 * step; and the utilization, which says for how much of the time the device was busy, and
 * which is itself unsteady if the load is slow.
 */

struct wm_unseen_case {
    const struct wm_energy_variation *variation; /* of the readings */
    double watts;      /* on average, where there are no readings */
    double seconds;    /* of the run */
    double seen;       /* the part of the time that the sensor sees */
    double known;      /* the part of the time of which the utilization is known */
    double busy;       /* the part of that time with work */
    double partly;     /* how sure it is that the device was not always busy, 0 to 1 */
    bool is_even;      /* steady readings are of a steady load: a slow one would move the */
                       /* utilization, or only our own readings can be in step with it */
    bool is_sample;    /* the sensor measures when it is read */
    double most_watts; /* the board's limit; 0: not known */
};

/* Of the mean power, how much less and how much more the true one may be. */
struct wm_unseen {
    double less, more;
};

void wm_unseen_find(const struct wm_unseen_case *what, struct wm_unseen *ret_unseen);

#endif
