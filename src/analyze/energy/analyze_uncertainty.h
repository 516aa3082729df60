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

#endif
