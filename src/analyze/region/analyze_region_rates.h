/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_region_rates.h - how many joules of the CPU packages a second of CPU time takes;
 * for src/analyze alone.
 *
 * A model of the CPU says it. A measured idle power says it within its uncertainty. Else it
 * lies between what a machine takes that draws little when idle and one that draws much;
 * where the load varies enough, a line through all stretches narrows that.
 */
#ifndef WM_ANALYZE_REGION_RATES_H
#define WM_ANALYZE_REGION_RATES_H

#include <stdbool.h>
#include <stdint.h>

#include "analyze/region/analyze_region_items.h"
#include "base/text/base_number.h"

/* What the packages drew in a run, and what is known about them. */
struct wm_region_package {
    double joules, seconds, cores;
    double busy_s, tree_s;  /* CPU time of the machine, and of the tree */
    double tree_j;          /* the part of `joules` that the report gives to the tree */
    struct wm_known most_w; /* of a model, whose power depends on CPU time alone */
    struct wm_known idle_w; /* measured before the run */
    double idle_off_w;      /* the uncertainty of that */
    bool is_alone;          /* all energy of the tree is from the packages */
};

/* Sums for a line through the packages' energy and the machine's CPU time, stretch by
 * stretch. Starts all zero. */
struct wm_region_line {
    bool started;
    double joules, busy_s; /* where the last one ended */
    uint64_t count;
    double seconds, sum_j, sum_s, square_s, square_j, product;
};

/* `busy_s`: the machine's CPU time so far. */
void wm_region_line_take(struct wm_region_line *line, double seconds, double joules,
                         struct wm_known busy_s);

/* Joules per second of CPU time: an estimate, and the range that it lies in. */
struct wm_region_rates {
    double of[WM_REGION_RATES]; /* all 0: unknown */
    double mix;        /* one program may differ from another by this part of the rate */
    double residual_w; /* how far power may vary without a change of CPU time */
};

struct wm_region_rates wm_region_rates_of(const struct wm_region_package *package,
                                          const struct wm_region_line *line);

#endif
