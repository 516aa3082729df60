/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_unseen.c - readings, their structure and the utilization, held against each
 * other. The constants that no source has are those with which tests/unit/test_coverage.c
 * finds the truth inside. */
#include "analyze/energy/analyze_unseen.h"

#include <math.h>

/* How many times what it draws with nothing to do a device may draw when it is busy. */
#define MOST_TIMES 10.0

/* Readings that are spread by so much of their mean are steady: the rest is noise. */
#define STEADY 0.02

/* Two in a row that are so close to the highest, of all that readings are spread by, are of
 * a device that was busy for the whole of both windows; and likewise the lowest. */
#define PLATEAU 0.05

/* A driver's utilization is of up to a second, and has been for some time: at the ends of a
 * run it is that of as much time beside it. */
#define BUSY_OFF_S 0.15

#define BUSY_S 1.0

/* More than before the run by so much is work that began with it. */
#define ROSE 1.05

/* What is seen but for this is all: periods are measured to some percent. */
#define ALL_SEEN 0.95

/* And it is told in percent: nearly none is none. */
#define BUSY_STEP 0.005

/* Readings that have swung between their levels more often than so many times are not in
 * step, and what they may lack decreases with the square: of the levels themselves, and of
 * how often they were at each. */
#define LEVEL_SWINGS 1.3
#define SHARE_SWINGS 2.0

/* So few may be of a load that is nearly in step, whose readings swing slowly. */
#define FEW_SWINGS 2.5

static const double pi = 3.14159265358979;

/* What is known of the two levels: as they were seen, and as they may be at most. */
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
    return swing->count < 3 || sqrt(variance_of(swing)) <= STEADY * mean_of(swing);
}

static struct levels levels_of(const struct wm_unseen_case *what)
{
    const struct wm_energy_swing *swing = what->swing;
    struct levels levels = { what->watts, what->watts, what->watts, 0, 0 };
    double near = PLATEAU * (swing->most - swing->least);
    double limit = what->most_watts > 0 ? what->most_watts : HUGE_VAL;

    if (swing->count > 0)
        levels = (struct levels) { mean_of(swing), swing->least, swing->most, 0, 0 };
    levels.least_idle = fmin(levels.busy / MOST_TIMES, levels.idle);
    levels.most_busy = fmax(fmin(levels.idle * MOST_TIMES, limit), levels.busy);
    if (!is_steady(swing) && swing->highest_pair >= levels.busy - near)
        levels.most_busy = levels.busy;
    if (!is_steady(swing) && swing->lowest_pair <= levels.idle + near)
        levels.least_idle = levels.idle;

    /* What it drew before the run was, if it was less, with nothing to do. */
    if (swing->count > 0 && swing->first < levels.idle)
        levels.idle = levels.least_idle = swing->first;
    return levels;
}

/* In what part of its readings a wave goes up and down once, by how far readings differ
 * beside how far they are spread. */
static double frequency(double squares, double count, double variance)
{
    return sqrt(squares / count / (2 * variance)) / (pi * sqrt(2));
}

/* How often readings swung up and down; and where they do so at each second reading, as in
 * step with twice the period, how often each other one did. */
static double swings_of(const struct wm_energy_swing *swing)
{
    if (is_steady(swing))
        return 0;
    double count = count_of(swing), variance = variance_of(swing);
    double each = frequency(swing->squares_of_one, count - 1, variance);
    double other = frequency(swing->squares_of_two, count - 2, variance) / 2;
    return count * fmin(each, other);
}

static double weight(double least_swings, double swings)
{
    double part = swings > least_swings ? least_swings / swings : 1;

    return part * part;
}

/* How much of the run the utilization may be behind, if the work began with it. */
static double late_part(const struct wm_unseen_case *what)
{
    const struct wm_energy_swing *swing = what->swing;
    bool has_begun = swing->count > 0 && mean_of(swing) > ROSE * swing->first;

    return has_begun ? fmax(1 - what->seconds / BUSY_S, 0) : 0;
}

static bool is_partly_busy(const struct wm_unseen_case *what)
{
    bool is_idle = what->busy <= BUSY_STEP && late_part(what) <= 0;

    return what->seen < ALL_SEEN && !is_idle && what->busy < 1 - BUSY_STEP;
}

static double between(double low, double high, double part)
{
    return low + (high - low) * part;
}

/* A device that is nearly always busy was so for most of what was seen, too; and that says
 * what it draws then. Likewise of one that hardly ever is. */
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

/* For what part of the time there was work, and for how much there was work, or none, that
 * was not seen. */
struct work {
    double least, most;
    double missed, rest_missed;
};

static struct work work_of(const struct wm_unseen_case *what)
{
    double off = wm_energy_partly_busy(what->busy) * BUSY_OFF_S / fmax(what->seconds, 1);
    double times = (1 - what->seen) / what->seen;
    struct work work = {
        .least = fmax(what->busy - off, 0),
        .most = fmin(what->busy + off + late_part(what), 1),
    };

    work.missed = fmin(work.most, (1 - work.least) * times);
    work.rest_missed = fmin(1 - work.least, work.most * times);
    return work;
}

/* By the levels as they were seen, and as they may be, each for as much as the structure of
 * the readings leaves of it. */
void wm_unseen_find(const struct wm_unseen_case *what, struct wm_unseen *ret_unseen)
{
    *ret_unseen = (struct wm_unseen) { 0 };
    struct levels levels = levels_of(what);
    if (!is_partly_busy(what) || levels.mean <= 0)
        return;

    const struct work work = work_of(what);
    double swings = swings_of(what->swing);
    double as_seen = weight(SHARE_SWINGS, swings), as_may_be = weight(LEVEL_SWINGS, swings);
    narrow(&levels, 1 - fmin((1 - work.least) / what->seen, 1),
           fmin(work.most / what->seen, 1));
    double more =
        fmax(as_seen * (between(levels.idle, levels.busy, work.most) - levels.mean),
             as_may_be * (between(levels.idle, levels.most_busy, work.most) - levels.mean));
    double less = fmax(
        as_seen * (levels.mean - between(levels.idle, levels.busy, work.least)),
        as_may_be * (levels.mean - between(levels.least_idle, levels.busy, work.least)));
    more = fmin(more, work.missed * (levels.most_busy - levels.idle));
    less = fmin(less, work.rest_missed * (levels.most_busy - levels.least_idle));
    ret_unseen->more = fmax(more, 0) / levels.mean;
    ret_unseen->less = fmax(less, 0) / levels.mean;
}

bool wm_unseen_is_open(const struct wm_unseen_case *what)
{
    return is_partly_busy(what) && swings_of(what->swing) < FEW_SWINGS;
}
