/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_share.c - joules by work done; idling is nobody's, but for what is held. */
#include "analyze/analyze_share.h"

#include <math.h>
#include <stdbool.h>

static double ratio(double part, double whole)
{
    if (!(whole > 0) || !(part > 0))
        return 0;
    return part < whole ? part / whole : 1;
}

/* The part of the energy that the device would have used with nothing to do. What
 * it takes then was measured, or else the time that it stood idle stands for it. */
static double idle_ratio(const struct wm_share *share, double joules)
{
    if (!isnan(share->idle_watts))
        return ratio(share->idle_watts * share->seconds, fabs(joules));
    return 1 - ratio(share->busy, share->capacity);
}

static void divide(struct wm_share *share, double joules)
{
    double step = joules - share->joules;

    /* The machine's work is told in steps, that of the tree is not. */
    share->busy = fmax(share->busy, share->tree_work);
    if (share->known_s <= 0) {
        share->unknown_joules += step;
    } else {
        double idle = step * idle_ratio(share, step);
        bool is_measured = !isnan(share->idle_watts);
        double held = share->hold_s > 0 && !is_measured ? share->hold / share->hold_s : 0;
        share->tree += (step - idle) * ratio(share->tree_work, share->busy) + idle * held;
        share->idle += idle * (1 - held);
    }
    share->joules = joules;
    share->rest = share->joules - share->tree - share->idle;
    share->seconds = share->known_s = share->capacity = share->busy = share->tree_work = 0;
    share->hold = share->hold_s = 0;
}

void wm_share_add(struct wm_share *share, double joules, const struct wm_work *work)
{
    share->joules_now = joules;
    share->seconds += work->seconds;
    if (!isnan(work->busy) && !isnan(work->tree) && !isnan(work->capacity)) {
        share->known_s += work->seconds;
        share->capacity += work->capacity;
        share->busy += work->busy;
        share->tree_work += work->tree;
    }
    if (!isnan(work->tree_hold)) {
        share->hold_s += work->seconds;
        share->hold += work->seconds * fmin(fmax(work->tree_hold, 0), 1);
    }
    if (joules != share->joules && share->seconds > 0 &&
        share->seconds >= share->shortest_s)
        divide(share, joules);
}

/* What a sensor tells only after the end is divided like what came before. */
static void stretch(struct wm_share *share, double joules)
{
    double factor =
        (joules - share->unknown_joules) / (share->joules - share->unknown_joules);

    share->tree *= factor;
    share->idle *= factor;
    share->joules = joules;
    share->rest = joules - share->tree - share->idle;
}

void wm_share_end(struct wm_share *share, double joules)
{
    if (joules == share->joules)
        return;
    if (share->known_s <= 0 && share->joules > share->unknown_joules)
        stretch(share, joules);
    else
        divide(share, joules);
}
