/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_rapl_total.h - joules out of a register that wraps, is set back, or
 * is dead. Time is passed in and nothing is read.
 *
 *     struct wm_rapl_total total = { .unit_j = 1e-6, .range = 262143328850,
 *                                    .most_watts = 1000, .most_s = 262 };
 *     if (wm_rapl_total_add(&total, microjoules, when_ns, &err) == WM_OK)
 *         joules = wm_rapl_total_joules(&total);
 */
#ifndef WM_SOURCE_RAPL_TOTAL_H
#define WM_SOURCE_RAPL_TOTAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/base_error.h"

struct wm_rapl_total {
    double unit_j;     /* of the register, in joules */
    uint64_t range;    /* it counts up to this and then from 0; 0: unknown */
    double most_watts; /* no such device draws more for longer than a moment */
    double most_s;     /* time in which it cannot wrap twice at most_watts */
    bool may_rest;     /* it may stand still without being dead */

    /* All zero at the start. */
    bool started;
    uint64_t last; /* what the register said, and when */
    int64_t last_ns;
    int64_t moved_ns; /* when it was last seen to have moved */
    unsigned looks;   /* number of readings since it moved */
    bool is_lost;     /* the last step that was seen: the total must begin again */
    bool has_jumped;  /* as that step was too high */
    double start_j;   /* what it began with */
    uint64_t units; /* the total since then; with more of it in full_j on a very long run */
    double full_j;
};

/* Takes what the register says now. The first value is where the total begins, at
 * a microjoule. WM_EIO where the register seems dead, and the total stays as it was;
 * or where the step since the last value is not known: set back, too high, after too
 * long a time, with nothing to tell whether it ran over. What was lost there must not
 * pass for nothing, which is what it would look like if the total went on. So it
 * begins again with the next value that is good, a trifle lower than ever before;
 * that it falls then, and only then, is how a counter reports that it was set back. */
int wm_rapl_total_add(struct wm_rapl_total *total, uint64_t value, int64_t when_ns,
                      struct wm_error *err);

/* Where a total begins: above 0, so that there is less to begin again with. `before` is
 * where it began last, 0 if it never did; each new beginning lies a little below, for
 * 10^12 times. */
double wm_total_beginning(double before);

double wm_rapl_total_joules(const struct wm_rapl_total *total);

#endif
