/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_region_share.c - parts of stretches, and how sure they are. */
#include "analyze/region/analyze_region_items.h"

#include <math.h>

/* A tick that comes a little early still ends a stretch of a period. */
#define ALMOST 0.75

/* A sensor that shows nothing new for so many of its periods had nothing to show. */
#define LATE 1.5

/* What is random is taken twice: k = 2. */
#define K 2.0

#define SHORT_STRETCHES 3.0

/* A device may be used so many times faster than it was seen to be at least; where a
 * stretch was the region's alone, what went on in it was seen. A machine with nothing to do
 * draws a tenth of what it can, and less. */
#define UNSEEN_TIMES 15.0
#define SEEN_TIMES 6.0
#define ALL_OF_IT 0.9

/* What a line through stretches needs: so many calls, and calls and a period that are
 * small beside them. */
#define MANY_CALLS 10
#define SMALL 0.1

/* What goes on within a stretch may be faster than it by so much, and unseen. */
#define INSIDE 0.25

/* Fewer stretches say nothing of how the use goes with the region. */
#define LEAST_STRETCHES 4

/* No more than this of another quantum may be a clock that was read late. */
#define HARDLY_ANY 0.05

/* What is left of a difference of sums of that size is rounding. */
#define ROUNDING 1e-9

static double to_seconds(int64_t from_ns, int64_t to_ns)
{
    return to_ns > from_ns ? (double)(to_ns - from_ns) / 1e9 : 0;
}

void wm_region_meter_start(struct wm_region_meter *meter, int64_t when_ns, double used)
{
    meter->started = true;
    meter->from_ns = when_ns;
    meter->base = used;
}

bool wm_region_meter_is_due(const struct wm_region_meter *meter, int64_t when_ns,
                            double used)
{
    double seconds = to_seconds(meter->from_ns, when_ns);
    double least_s = (used == meter->base ? LATE : ALMOST) * meter->period_s;

    return seconds > 0 && seconds >= least_s;
}

/* How much of a time of `seconds` the region may have had more of than is known of its
 * part on average: nothing where its weight was the same all the time, and the most where
 * it was all or nothing. */
static double doubtful_part(double part, double square)
{
    double spread = fmax(square - part * part, 0);

    return fmin(sqrt(spread) / 2, fmax(part * (1 - part), 0));
}

void wm_region_share_take(struct wm_region_share *share,
                          const struct wm_region_meter *meter,
                          const struct wm_region_time *time, int64_t when_ns, double used)
{
    double length = to_seconds(meter->from_ns, when_ns);
    double seconds = (time->ns - share->mark.ns) / 1e9;
    double part = seconds / length;
    double before = meter->count > 0 ? share->last_s / meter->last_s : part;
    double share_change = fabs(part - before);
    double square = (time->squares - share->mark.squares) / 1e9 / length;
    double doubt_s = length * doubtful_part(part, square);

    share->used += part * (used - meter->base);
    share->seconds += seconds;
    share->squares += part * seconds;
    share->doubt_s += doubt_s;
    share->doubt_squares += doubt_s * doubt_s;
    share->share_changes += share_change;
    share->share_change_squares += share_change * share_change;
    share->most_part = fmax(share->most_part, part);
    share->last_s = seconds;
    share->mark = *time;
}

void wm_region_meter_take(struct wm_region_meter *meter, int64_t when_ns, double used)
{
    double length = to_seconds(meter->from_ns, when_ns);
    double step = used - meter->base;
    double rate = step / length;

    meter->most = meter->count > 0 ? fmax(meter->most, rate) : rate;
    meter->least = meter->count > 0 ? fmin(meter->least, rate) : rate;
    meter->count++;
    meter->seconds += length;
    meter->used += step;
    meter->squares += step * rate;
    meter->last_s = length;
    meter->last_rate = rate;
    meter->from_ns = when_ns;
    meter->base = used;
    meter->waited = 0;
}

bool wm_region_share_is_still(const struct wm_region_share *share,
                              const struct wm_region_time *time)
{
    return share->mark.ns == time->ns && share->last_s == 0;
}

/* How much more can be used per second at one time than at another. */
static double most_difference(const struct wm_region_share *share,
                              const struct wm_region_meter *meter,
                              const struct wm_region_whole *whole)
{
    double times = share->most_part >= ALL_OF_IT ? SEEN_TIMES : UNSEEN_TIMES;
    double most = fmax(meter->most, times * fmax(meter->least, 0));

    return whole->most.known && whole->most.number < most ? whole->most.number : most;
}

static double step_s(const struct wm_region_meter *meter)
{
    return meter->count > 0 ? meter->seconds / (double)meter->count : 0;
}

/* By how much the use per second in a region differs from that outside of it, within a
 * stretch. Where the region's part varies from one stretch to the next, the use varies
 * with it. At most it does so as much as uses vary at all; how much it does, a line
 * through all stretches shows, if calls are short, as long ones may be uneven, if they are
 * many, and if the sensor is quick, as one that lags puts their use into another stretch.
 */
static double find_difference(const struct wm_region_share *share,
                              const struct wm_region_meter *meter, uint64_t openings,
                              double most)
{
    double n = (double)meter->count;
    double mean = meter->seconds > 0 ? meter->used / meter->seconds : 0;
    double parts = share->squares - share->seconds * share->seconds / meter->seconds;
    double uses = fmax(meter->squares - meter->used * mean, ROUNDING * meter->squares);

    if (meter->count < LEAST_STRETCHES || parts <= ROUNDING * share->seconds)
        return most;
    double difference =
        fmax(K * sqrt(uses / parts * n / (n - 2)), meter->most - meter->least);
    if (openings >= MANY_CALLS &&
        share->seconds < SMALL * step_s(meter) * (double)openings &&
        meter->period_s < SMALL * step_s(meter)) {
        double slope = (share->used - share->seconds * mean) / parts;
        double left = fmax(uses - slope * slope * parts, 0) / (n - 2);
        difference = fmin(difference, fabs(slope) + K * sqrt(left / parts));
    }
    return fmin(most, difference);
}

/* How far the use per second inside a region may differ from that outside. */
struct difference {
    double most;   /* within a stretch, whatever the readings show */
    double within; /* the same, as far as the readings allow */
    double late;   /* from one stretch to the next, which a slow sensor shows late */
    double inside; /* from one call to the next */
};

static struct difference difference_of(const struct wm_region_share *share,
                                       const struct wm_region_meter *meter,
                                       uint64_t openings,
                                       const struct wm_region_whole *whole,
                                       const struct wm_region_shift *shift)
{
    double most = most_difference(share, meter, whole);
    double shown = find_difference(share, meter, openings, most);
    double rate = share->seconds > 0 ? fabs(share->used) / share->seconds : 0;

    if (!shift)
        return (struct difference) { most, shown, shown, rate };
    double residual = fmin(most, shift->residual);
    double loose = fmin(most, residual + shift->loose);
    return (struct difference) { loose, residual, fmin(shown, shift->difference),
                                 fmin(rate, loose) };
}

/* What goes wrong in the same direction in each stretch adds up, and the rest averages out
 * over many. */
static double find_random(const struct wm_region_share *share,
                          const struct wm_region_meter *meter,
                          const struct difference *difference, double step)
{
    double rate = share->seconds > 0 ? fabs(share->used) / share->seconds : 0;
    double variation = fmin(difference->most, meter->most - meter->least);
    double within = fmin(difference->within * share->doubt_s +
                             K * variation * sqrt(share->doubt_squares),
                         difference->most * share->doubt_s);
    double late = difference->late * meter->period_s * share->share_changes / 2;
    double reach =
        fmax(rate * meter->period_s, difference->inside * INSIDE * step_s(meter));
    double edge_error = K * reach * sqrt(share->share_change_squares / 12);

    return hypot(within + late,
                 hypot(edge_error, step * sqrt(share->share_change_squares)));
}

/* The end of the run, of which a sensor may report nothing more. All zero: nothing of it.
 */
struct ending {
    double seconds;           /* since the last stretch but for one that comes to its end */
    double part_before, part; /* the region's part of the stretch before it, and of it */

    /* Where it is too short to be a stretch itself. */
    double left_s, of_region; /* its time, and what of it the region has */
    double used;              /* in it, by the region */
    double late;              /* what was reported beyond that, for the stretch before */
    double doubt_s;           /* as in a share */
};

static struct ending start_ending(const struct wm_region_share *share,
                                  const struct wm_region_meter *meter,
                                  const struct wm_region_time *time, double left_s)
{
    struct ending ending = { .seconds = left_s };

    if (left_s > 0)
        ending.part = (time->ns - share->mark.ns) / 1e9 / left_s;
    ending.part_before = meter->count > 0 ? share->last_s / meter->last_s : ending.part;
    return ending;
}

/* Of what a sensor reports last, as much is of the ending as was used in such a time
 * before. What is more may be of the stretch before, too, where the ending is shorter than
 * the sensor's period. */
static void divide_ending(struct ending *ending, const struct wm_region_share *share,
                          const struct wm_region_meter *meter,
                          const struct wm_region_time *time, double told)
{
    double left_s = ending->seconds, in_it = 0;

    if (left_s > 0) {
        double square = (time->squares - share->mark.squares) / 1e9 / left_s;
        ending->left_s = left_s;
        ending->of_region = ending->part * left_s;
        ending->doubt_s = left_s * doubtful_part(ending->part, square);
        in_it = left_s >= meter->period_s ? told : fmin(told, meter->last_rate * left_s);
        in_it = fmax(in_it, 0);
    }
    double spread_over = (share->last_s + ending->of_region) / (meter->last_s + left_s);
    ending->late = told - in_it;
    ending->used = ending->part * in_it + spread_over * ending->late;
}

/* What goes on in a time that a sensor reports nothing of may be anything where it had not
 * gone on before. */
static double doubt_ending(const struct ending *ending, double period_s,
                           const struct difference *difference, double most)
{
    double share_change = fabs(ending->part - ending->part_before);
    double unseen_s =
        fmin(share_change * ending->seconds, period_s); /* all at its end, it may be */

    return difference->most * ending->doubt_s +
           (ending->part > ending->part_before ? most : difference->late) * unseen_s +
           fabs(ending->late) * share_change;
}

static void find_uncertainty(const struct wm_region_share *share,
                             const struct wm_region_meter *meter,
                             const struct ending *ending, uint64_t openings,
                             const struct wm_region_whole *whole,
                             const struct wm_region_shift *shift, struct wm_region_use *use)
{
    const struct difference difference =
        difference_of(share, meter, openings, whole, shift);
    double most = shift ? difference.late : difference.most;
    double resolution_s = fmax(meter->period_s, step_s(meter));
    double seconds = share->seconds + ending->of_region;
    double all_s = meter->seconds + ending->left_s;
    double seen = all_s > 0 ? sqrt(seconds / all_s) : 0;
    double used = use->used.number;
    double doubt = find_random(share, meter, &difference, whole->step) +
                   doubt_ending(ending, meter->period_s, &difference, most) +
                   (shift ? shift->off : 0);

    use->systematic = whole->systematic * fabs(used);
    /* A use is between 0 and all; if it is divided by time alone, it is also at most what
     * the device can use in that time. */
    double all = whole->used.number;
    if (whole->most.known && !shift)
        all = fmin(all, whole->most.number * seconds);
    use->random = fmin(hypot(doubt, whole->random * whole->used.number * seen),
                       fmax(fabs(used), fabs(all - used)));
    use->has_uncertainty = whole->has_uncertainty && !isnan(use->random);
    use->is_short = seconds < SHORT_STRETCHES * resolution_s * (double)openings;
}

void wm_region_share_result(const struct wm_region_share *share,
                            const struct wm_region_meter *meter,
                            const struct wm_region_time *time, int64_t now_ns,
                            uint64_t openings, const struct wm_region_whole *whole,
                            const struct wm_region_shift *shift,
                            struct wm_region_use *ret_use)
{
    struct wm_region_share last = *share;
    struct wm_region_meter end = *meter;
    double left_s = to_seconds(meter->from_ns, now_ns);

    *ret_use = (struct wm_region_use) { 0 };
    if (!whole->used.known || !meter->started)
        return;
    struct ending ending = start_ending(share, meter, time, left_s);
    double told = whole->used.number - meter->base;
    if (left_s > 0 && told >= 0 &&
        (meter->count == 0 || left_s >= fmax(ALMOST * meter->last_s, meter->period_s))) {
        wm_region_share_take(&last, meter, time, now_ns, whole->used.number);
        wm_region_meter_take(&end, now_ns, whole->used.number);
    } else if (meter->count > 0) {
        divide_ending(&ending, share, meter, time, told);
        last.used += told >= 0 ? ending.used : 0;
    }
    /* Less in the end than was reported, as by another way of asking: all have that much
     * less, and none has less than nothing. */
    if (told < 0 && meter->base > 0)
        last.used *= whole->used.number / meter->base;
    last.used += shift ? shift->moved : 0;
    /* Sums of numbers that a file made up may be none. */
    ret_use->used = (struct wm_known) { !isnan(last.used), last.used };
    if (whole->quantum > 0)
        end.most =
            fmax(end.most, whole->quantum * ceil(end.most / whole->quantum - HARDLY_ANY));
    find_uncertainty(&last, &end, &ending, openings, whole, shift, ret_use);
}
