/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_share.h - whose joules they were: one device's energy, divided among the
 * tracked tree, everybody else, and nobody (the device's idling).
 *
 *     struct wm_share share = { .shortest_s = 0.05 };
 *     wm_share_add(&share, joules_so_far, &work);     each tick
 *     wm_share_end(&share, joules);
 *
 * A device's energy moves in steps that are slower than ticks, and so do the
 * counters of work. A step is divided by the work since the step before, and where that
 * takes the busy time, no window is shorter than `shortest_s`: with a measured idle, and
 * for what is idle and of others. However the joules are corrected later, the parts add up
 * to them at every tick.
 */
#ifndef WM_ANALYZE_SHARE_H
#define WM_ANALYZE_SHARE_H

#include "base/text/base_number.h"

/* What was done on the device since the last tick. */
struct wm_work {
    double seconds;
    bool is_known;   /* the three that follow are */
    double capacity; /* what it could have done: cores times seconds */
    double busy;     /* what it did, in the unit of `capacity` */
    double tree;     /* what the tracked tree did of `busy` */

    /* The tree's part of what it keeps awake (memory), 0 to 1. Where idling was measured,
     * it was with nothing kept awake. */
    struct wm_known tree_hold;
};

struct wm_share {
    double shortest_s;
    struct wm_known idle_watts; /* of the device with nothing to do, if it was measured */
    double idle_off;            /* W that they may be off by */
    double busy_step;           /* steps in which work->busy is counted; 0: exact */

    double joules_now;       /* at the last tick */
    double joules;           /* what of them is divided by now */
    double tree, idle, rest; /* they add up to `joules` */

    /* Since joules were divided. Only the time in which work was known counts
     * for the shares of work, and `hold` is weighted by time. */
    double seconds, known_s, capacity, busy, tree_work, hold_s, hold;
    /* The tree's part of the steps since then, up to the last; and the work since that. */
    double tree_steps, step_joules, step_capacity, step_tree;
    double unknown_joules; /* divided without knowing the work: all in `rest` */

    /* By how many joules the tree's part changes with a step of `busy`: where joules were
     * divided last, and the most; and the squares of its changes. */
    double slope, most_slope, slopes2;
};

/* `joules`: of the device since the start, as far as they are known by now. */
void wm_share_add(struct wm_share *share, double joules, const struct wm_work *work);

/* Divides what is left, up to the final `joules`. */
void wm_share_end(struct wm_share *share, double joules);

/* The error of the tree's part, with 95 % confidence, as `busy` is counted in steps. */
double wm_share_off(const struct wm_share *share);

#endif
