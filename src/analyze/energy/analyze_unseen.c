/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_unseen.c - readings, their structure and the utilization, held against each
 * other. Constants without a source were chosen so that the truth lies inside in
 * tests/unit/test_coverage.c. */
#include "analyze/energy/analyze_uncertainty.h"

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

/* Part of the figure that a load in step may hide although readings and utilization are
 * steady, and part of the unseen time's that dips of a busy device may. Steady loads and
 * those in step are equally likely, and 95 % of both together are to be inside. */
#define STEADY_HIDES 0.07
#define BUSY_HIDES 0.14

/* A pattern shows if each of its readings was there so often, and if readings that follow
 * it differ by less than this part (in squares) of what those differ by that follow each
 * other. Smaller changes than this are noise. */
#define LEAST_PATTERNS 3.0
#define PATTERN 0.5
#define PATTERN_NOISE 0.02

/* The mean of n phases of a load that is busy for a random part of each cycle is off by
 * the root of 1/6 over n, of the range; taken twice. */
#define PHASES_OFF (2 * 0.408)

/* An incomplete swing adds the worst of all phases at most; 95 % of them add less. */
#define SWING_OFF 0.6

/* Readings of a device whose levels were seen, and its utilization, differ by less in how
 * busy it was; readings that mix both levels by as much more as their window is long. */
#define MOST_APART 0.2

/* The power of the idle and of the busy device: as seen, and how low and high it may be. */
struct levels {
    double mean;
    double idle, busy;
    double least_idle, most_busy;
};

static double count_of(const struct wm_energy_variation *variation)
{
    return (double)variation->count;
}

static double mean_of(const struct wm_energy_variation *variation)
{
    return variation->first + variation->sum / count_of(variation);
}

static double variance_of(const struct wm_energy_variation *variation)
{
    double mean = variation->sum / count_of(variation);

    return fmax(variation->sum_squares / count_of(variation) - mean * mean, 0);
}

static bool is_steady(const struct wm_energy_variation *variation)
{
    return variation->count < 3 ||
           sqrt(variance_of(variation)) <= WM_ENERGY_NOISE * mean_of(variation);
}

static struct levels levels_of(const struct wm_unseen_case *what)
{
    const struct wm_energy_variation *variation = what->variation;
    struct levels levels = { .mean = what->watts,
                             .idle = what->watts,
                             .busy = what->watts };
    double near =
        PLATEAU * variation->differences[0].watts / fmax(count_of(variation) - 1, 1);
    double limit = what->most_watts > 0 ? what->most_watts : HUGE_VAL;

    if (variation->count > 0)
        levels = (struct levels) { .mean = mean_of(variation),
                                   .idle = variation->least,
                                   .busy = variation->most };
    levels.least_idle = fmin(levels.busy / MOST_TIMES, levels.idle);
    levels.most_busy = fmax(fmin(levels.idle * MOST_TIMES, limit), levels.busy);
    if (!is_steady(variation) && variation->highest_pair >= levels.busy - near)
        levels.most_busy = levels.busy;
    if (!is_steady(variation) && variation->lowest_pair <= levels.idle + near)
        levels.least_idle = levels.idle;

    /* The device was idle before the run, if its power was lower then. */
    if (variation->count > 0 && variation->first < DRIFTED * levels.idle)
        levels.idle = levels.least_idle = variation->first;
    return levels;
}

static double range_of(const struct wm_energy_variation *variation)
{
    return variation->most - variation->least;
}

/* How often each `order`-th reading swung up and down, in all of these sequences. */
static double swings_of(const struct wm_energy_variation *variation, size_t order)
{
    return variation->differences[order - 1].watts / (2 * fmax(range_of(variation), 1e-9));
}

/* Readings repeat themselves after so many: the load is in step with that many periods of
 * the sensor, or nearly so. */
static bool is_pattern(const struct wm_energy_variation *variation, size_t order)
{
    return count_of(variation) >= LEAST_PATTERNS * (double)order &&
           variation->differences[order - 1].squares <
               PATTERN * variation->differences[0].squares;
}

static bool has_begun(const struct wm_energy_variation *variation)
{
    return variation->count > 0 && mean_of(variation) > ROSE * variation->first;
}

static bool is_partly_busy(const struct wm_unseen_case *what)
{
    bool is_late = has_begun(what->variation) && what->seconds < BUSY_S;
    bool is_idle = what->busy <= BUSY_STEP && !is_late;

    return !is_idle && what->busy < 1 - BUSY_STEP;
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
    double reported_s = what->seconds - (has_begun(what->variation) ? BUSY_LATE_S : 0);
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
static double swings_off(const struct wm_energy_variation *variation, double part,
                         size_t order)
{
    return SWING_OFF * range_of(variation) * part * (1 - part) /
           fmax(swings_of(variation, order), 1e-9);
}

/* In a pattern of n readings n phases of the load are seen, again and again; more only as
 * far as the pattern itself drifts. */
static double pattern_off(const struct wm_energy_variation *variation, double part)
{
    double most = 0;

    if (variation->count == 0 ||
        sqrt(variance_of(variation)) <= PATTERN_NOISE * mean_of(variation))
        return 0;
    for (size_t order = 2; order <= WM_ENERGY_ORDERS; order++) {
        double phases = PHASES_OFF * range_of(variation) / (double)order;
        if (is_pattern(variation, order))
            most = fmax(most, fmin(phases, swings_off(variation, part, order)));
    }
    return most;
}

/* How much higher the mean is by the levels that were seen and the utilization. */
static double more_by_use(const struct wm_unseen_case *what)
{
    const struct wm_energy_variation *variation = what->variation;

    if (is_steady(variation) || !is_partly_busy(what) || what->known < ALL_SEEN ||
        what->seconds < BUSY_S)
        return 0;
    return between(variation->least, variation->most, what->busy) - mean_of(variation);
}

/* The error of the mean by the structure of the readings; HUGE_VAL if that shows nothing.
 */
static double structure_off(const struct wm_unseen_case *what, double mean, double part,
                            double pattern)
{
    const struct wm_energy_variation *variation = what->variation;

    if (is_steady(variation))
        return what->is_even ? STEADY_HIDES * mean : HUGE_VAL;
    if (pattern <= 0 && swings_of(variation, 1) < 1)
        return HUGE_VAL;
    return fmax(pattern, swings_off(variation, part, 1));
}

/* In one direction: the lesser of `by_levels` and what the structure shows (`most`), unless
 * the utilization clearly says more, or clearly says the other direction. */
static double one_way(const struct wm_unseen_case *what, double by_levels, double most,
                      double pattern, double by_use)
{
    double far = (MOST_APART + what->seen) * range_of(what->variation);

    if (by_use > far)
        return fmax(by_levels, pattern);
    return fmax(fmin(by_levels, fmax(most, by_use)), by_use < -far / 2 ? 0 : pattern);
}

/* By the levels and the utilization, in watts. */
static struct wm_unseen levels_off(const struct wm_unseen_case *what,
                                   const struct levels *seen, const struct work *work)
{
    struct levels levels = *seen;

    narrow(&levels, 1 - fmin((1 - work->least) / what->seen, 1),
           fmin(work->most / what->seen, 1));
    double more = between(levels.idle, levels.most_busy, work->most) - levels.mean;
    double less = levels.mean - between(levels.least_idle, levels.busy, work->least);
    return (struct wm_unseen) {
        .more = fmin(more, work->missed * (levels.most_busy - levels.idle)),
        .less = fmin(less, work->rest_missed * (levels.most_busy - levels.least_idle)),
    };
}

/* Where the utilization is not known the device may have been idle in all of the time that
 * is not seen. A sensor that measures when it is read shows both of its levels unless the
 * load is in step with our readings. */
static double unknown_off(const struct wm_unseen_case *what, double mean)
{
    double off = (1 - what->known) * (1 - what->seen) * mean;

    return what->is_sample && !is_steady(what->variation)
               ? fmin(off, range_of(what->variation))
               : off;
}

/* A busy device may have dips in step with the sensor. */
static double dips_off(const struct wm_unseen_case *what, double mean)
{
    return is_steady(what->variation) ? BUSY_HIDES * (1 - what->seen) * what->busy * mean
                                      : 0;
}

void wm_unseen_find(const struct wm_unseen_case *what, struct wm_unseen *ret_unseen)
{
    *ret_unseen = (struct wm_unseen) { 0 };
    const struct levels levels = levels_of(what);
    if (what->seen >= ALL_SEEN || levels.mean <= 0)
        return;

    const struct work work = work_of(what);
    double part = is_partly_busy(what) ? fmin(fmax(0.5, work.least), work.most) : 0.5;
    double pattern = pattern_off(what->variation, part), by_use = more_by_use(what);
    double most = structure_off(what, levels.mean, part, pattern);
    double unknown = unknown_off(what, levels.mean);
    struct wm_unseen off = { 0 };
    if (is_partly_busy(what) && what->known > 0)
        off = levels_off(what, &levels, &work);
    off.more = one_way(what, what->partly * off.more + unknown, most, pattern, by_use);
    off.less = one_way(what, what->partly * off.less + unknown, most, pattern, -by_use);
    ret_unseen->more = off.more / levels.mean;
    ret_unseen->less = hypot(off.less, dips_off(what, levels.mean)) / levels.mean;
}
