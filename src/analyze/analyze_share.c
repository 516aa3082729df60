/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_share.c - joules by work done; idling is nobody's, but for what is held. */
#include "analyze/analyze_state.h"

#include <math.h>

/* The kernel's busy time is a sum of so many, each of which moves in such steps. */
#define BUSY_COUNTERS 6.0

static double ratio(double part, double whole)
{
    if (!(whole > 0) || !(part > 0))
        return 0;
    return part < whole ? part / whole : 1;
}

/* What is reported at the end of one window is the beginning of the next, so that an error
 * there matters as far as the two depend on it. The busy time may be a step less. */
static void add_slope(struct wm_share *share, double joules)
{
    double least = fmax(share->busy - share->busy_step, share->tree_work);
    double slope = fabs(joules) * ratio(share->tree_work, share->busy) *
                   ratio(share->busy_step, least);

    share->slopes2 += (slope - share->slope) * (slope - share->slope);
    share->most_slope = fmax(share->most_slope, slope);
    share->slope = slope;
}

/* The busy time cancels out of the tree's part where the time that was not busy stands for
 * the idling, so that each step can be divided by itself. */
static void end_step(struct wm_share *share, double joules, double part)
{
    share->tree_steps += (joules - share->step_joules) * part;
    share->step_joules = joules;
    share->step_capacity = share->step_tree = 0;
}

/* What the device takes with nothing to do was measured. */
static void divide_beyond_idle(struct wm_share *share, double step)
{
    double idle = step * ratio(share->idle_watts.number * share->seconds, fabs(step));

    share->tree += (step - idle) * ratio(share->tree_work, share->busy);
    share->idle += idle;
    add_slope(share, step - idle);
}

/* The time that it stood idle stands for that. */
static void divide_by_time(struct wm_share *share, double step)
{
    double idle = step * (1 - ratio(share->busy, share->capacity));
    double held = share->hold_s > 0 ? share->hold / share->hold_s : 0;

    if (step > 0)
        idle = fmin(idle, step - share->tree_steps);
    share->tree += share->tree_steps + idle * held;
    share->idle += idle * (1 - held);
}

static void divide(struct wm_share *share, double joules)
{
    double step = joules - share->joules;

    /* The machine's work is reported in steps, what it can do and that of the tree are not.
     * With a measured idle the next window makes up for a step too many. */
    if (!share->idle_watts.known &&
        share->busy < share->capacity + BUSY_COUNTERS * share->busy_step)
        share->busy = fmin(share->busy, share->capacity);
    share->busy = fmax(share->busy, share->tree_work);
    if (share->step_capacity > 0)
        end_step(share, joules, ratio(share->step_tree, share->step_capacity));
    else
        end_step(share, joules, ratio(share->tree_work, share->capacity));
    if (share->known_s <= 0)
        share->unknown_joules += step;
    else if (!share->idle_watts.known)
        divide_by_time(share, step);
    else
        divide_beyond_idle(share, step);
    share->tree_steps = 0;
    share->joules = joules;
    share->rest = share->joules - share->tree - share->idle;
    share->seconds = share->known_s = share->capacity = share->busy = share->tree_work = 0;
    share->hold = share->hold_s = 0;
}

void wm_share_add(struct wm_share *share, double joules, const struct wm_work *work)
{
    share->joules_now = joules;
    share->seconds += work->seconds;
    if (work->is_known) {
        share->known_s += work->seconds;
        share->capacity += work->capacity;
        share->busy += work->busy;
        share->tree_work += work->tree;
        share->step_capacity += work->capacity;
        share->step_tree += work->tree;
    }
    if (work->tree_hold.known) {
        share->hold_s += work->seconds;
        share->hold += work->seconds * fmin(fmax(work->tree_hold.number, 0), 1);
    }
    if (joules != share->joules && share->seconds > 0 &&
        share->seconds >= share->shortest_s)
        divide(share, joules);
    else if (joules != share->step_joules && share->step_capacity > 0)
        end_step(share, joules, ratio(share->step_tree, share->step_capacity));
}

/* What a sensor reports only after the end is divided like what came before. */
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

/* What a counter is off at each end is any part of a step: a twelfth of its square. Twice
 * what that makes of all. */
double wm_share_off(const struct wm_share *share)
{
    return 2 * sqrt((share->slopes2 + share->slope * share->slope) * BUSY_COUNTERS / 12);
}
