/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_unseen.c - readings, their structure and the utilization, held against each
 * other. Constants without a source were chosen so that the truth lies inside in
 * tests/unit/test_coverage.c. */
#include "analyze/energy/analyze_unseen.h"

#include <math.h>

/* A busy device may draw up to this many times what it draws when idle. */
#define MOST_TIMES 10.0

/* A device was busy for the whole of two windows in a row if both readings are this close
 * to the highest one; and likewise idle. The scale is the mean change from one reading to
 * the next, because two in a row are always alike if the load is nearly in step. */
#define PLATEAU 0.25

/* With a load within 3 % of the sensor's rhythm, readings change by less than this from one
 * to the next. So a first one below this share of all others is of an idle device. */
#define DRIFTED 0.85

/* A driver's utilization is a mean over up to a second. */
#define BUSY_S 1.0

/* It is late, too: at the ends of a run it is that of this much time outside of it. */
#define BUSY_OFF_S 0.15

/* If the work began with the run, utilization is late by half of its second on average. */
#define BUSY_LATE_S (BUSY_S / 2)

/* The work began with the run if the mean power is above that before by this factor. */
#define ROSE 1.05

/* A sensor that sees this part of the time sees all of it: periods are measured to some
 * percent only. */
#define ALL_SEEN 0.95

/* Utilization is reported in percent: below half of one it may be none, and likewise all.
 */
#define BUSY_STEP 0.005

/* The power of the idle and of the busy device: as seen, and how low and high it may be. */
struct levels {
    double mean;
    double idle, busy;
    double least_idle, most_busy;
};

static double count_of(const struct wm_energy_swing *swing)
{
    return (double)swing->count;
}

static double mean_of(const struct wm_energy_swing *swing)
{
    return swing->first + swing->sum / count_of(swing);
}

static double variance_of(const struct wm_energy_swing *swing)
{
    double mean = swing->sum / count_of(swing);

    return fmax(swing->sum_squares / count_of(swing) - mean * mean, 0);
}

static bool is_steady(const struct wm_energy_swing *swing)
{
    return swing->count < 3 || sqrt(variance_of(swing)) <= WM_ENERGY_NOISE * mean_of(swing);
}

static struct levels levels_of(const struct wm_unseen_case *what)
{
    const struct wm_energy_swing *swing = what->swing;
    struct levels levels = { .mean = what->watts,
                             .idle = what->watts,
                             .busy = what->watts };
    double near = PLATEAU * swing->way.watts / fmax(count_of(swing) - 1, 1);
    double limit = what->most_watts > 0 ? what->most_watts : HUGE_VAL;

    if (swing->count > 0)
        levels = (struct levels) { .mean = mean_of(swing),
                                   .idle = swing->least,
                                   .busy = swing->most };
    levels.least_idle = fmin(levels.busy / MOST_TIMES, levels.idle);
    levels.most_busy = fmax(fmin(levels.idle * MOST_TIMES, limit), levels.busy);
    if (!is_steady(swing) && swing->highest_pair >= levels.busy - near)
        levels.most_busy = levels.busy;
    if (!is_steady(swing) && swing->lowest_pair <= levels.idle + near)
        levels.least_idle = levels.idle;

    /* The device was idle before the run, if its power was lower then. */
    if (swing->count > 0 && swing->first < DRIFTED * levels.idle)
        levels.idle = levels.least_idle = swing->first;
    return levels;
}

/* How often readings swung up and down. In step with twice the period they do so from each
 * one to the next: then the swings of every other one count, of both halves together. */
static double swings_of(const struct wm_energy_swing *swing)
{
    double each_other = swing->each_other[0].watts + swing->each_other[1].watts;

    if (is_steady(swing))
        return 0;
    return fmin(swing->way.watts, each_other) / (2 * (swing->most - swing->least));
}

static bool has_begun(const struct wm_energy_swing *swing)
{
    return swing->count > 0 && mean_of(swing) > ROSE * swing->first;
}

static bool is_partly_busy(const struct wm_unseen_case *what)
{
    bool is_late = has_begun(what->swing) && what->seconds < BUSY_S;
    bool is_idle = what->busy <= BUSY_STEP && !is_late;

    return what->seen < ALL_SEEN && !is_idle && what->busy < 1 - BUSY_STEP;
}

static double between(double low, double high, double part)
{
    return low + (high - low) * part;
}

/* A device that is nearly always busy was so for most of what was seen, too, which limits
 * what it draws then. Likewise for one that hardly ever is. */
static void narrow(struct levels *levels, double least_seen, double most_seen)
{
    double more = levels->mean - levels->least_idle;
    double less = levels->most_busy - levels->mean;

    if (least_seen > 0)
        levels->most_busy = fmin(levels->most_busy, levels->least_idle + more / least_seen);
    if (most_seen < 1)
        levels->least_idle =
            fmax(levels->least_idle, levels->most_busy - less / (1 - most_seen));
    levels->most_busy = fmax(levels->most_busy, levels->busy);
    levels->least_idle = fmin(levels->least_idle, levels->idle);
}

/* Parts of the run: in which there was work, and in which work, or idleness, was not seen.
 */
struct work {
    double least, most;
    double missed, rest_missed;
};

static struct work work_of(const struct wm_unseen_case *what)
{
    double off = wm_energy_partly_busy(what->busy) * BUSY_OFF_S / fmax(what->seconds, 1);
    double times = (1 - what->seen) / what->seen;
    double reported_s = what->seconds - (has_begun(what->swing) ? BUSY_LATE_S : 0);
    struct work work = {
        .least = fmax(what->busy - off, 0),
        .most = 1,
    };

    if (reported_s > 0)
        work.most = fmin((what->busy + off) * what->seconds / reported_s, 1);
    work.missed = fmin(work.most, (1 - work.least) * times);
    work.rest_missed = fmin(1 - work.least, work.most * times);
    return work;
}

/* Once readings have swung up and down, each phase of the load was seen. Their mean is then
 * off by no more than an incomplete swing adds: for n swings of a device that is busy for a
 * part p of each, p (1 - p) / n of their range. */
static double most_off(const struct wm_energy_swing *swing, const struct work *work)
{
    double part = fmin(fmax(0.5, work->least), work->most), swings = swings_of(swing);

    if (swings < 1)
        return HUGE_VAL;
    return (swing->most - swing->least) * part * (1 - part) / swings;
}

void wm_unseen_find(const struct wm_unseen_case *what, struct wm_unseen *ret_unseen)
{
    *ret_unseen = (struct wm_unseen) { 0 };
    struct levels levels = levels_of(what);
    if (!is_partly_busy(what) || levels.mean <= 0)
        return;

    const struct work work = work_of(what);
    double most = most_off(what->swing, &work);
    narrow(&levels, 1 - fmin((1 - work.least) / what->seen, 1),
           fmin(work.most / what->seen, 1));
    double more = between(levels.idle, levels.most_busy, work.most) - levels.mean;
    double less = levels.mean - between(levels.least_idle, levels.busy, work.least);
    more = fmin(more, work.missed * (levels.most_busy - levels.idle));
    less = fmin(less, work.rest_missed * (levels.most_busy - levels.least_idle));
    ret_unseen->more = fmax(fmin(more, most), 0) / levels.mean;
    ret_unseen->less = fmax(fmin(less, most), 0) / levels.mean;
}
