/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_energy.c - joules from a counter that may lie and a power that may lag. */
#include "analyze/energy/analyze_energy.h"

#include <math.h>

#include "record/record_stats.h"

/* No board comes near: a jump beyond it is a broken counter, whatever the power. */
#define MOST_WATTS 100e3

/* A step of a counter may imply this many times the highest power limit: it may have been
 * made in one period more than it was seen in, and power exceeds the limit for moments. */
#define LIMIT_TIMES 4.0

/* How many times the highest power seen a jump may imply. Power may be averaged over a
 * second or measured for a quarter of the time, hence the wide margin. */
#define MOST_TIMES 10.0

/* Boards renew their counters every 20 to 100 ms. The first change may come
 * right after the first reading and still stand for that long. */
#define SLOWEST_RENEWAL_S 0.1

/* A counter that shows nothing new for so long, and for so many of its periods,
 * is not merely slow. */
#define STALL_S 1.0
#define STALL_PERIODS 5.0

/* The part of the integral of power that the step after a stall has to reach, so
 * that nothing was lost. Counter and power disagree by some percent, and the ends
 * of a stall are known to a period only. */
#define CAUGHT_UP 0.8

/* In less time the ends of a run hide the ratio of counter and power. */
#define SHAPE_S 0.5

/* A counter that shows nothing new for so many of its periods had nothing to count. */
#define LATE_PERIODS 1.5

/* And so has one that shows nothing new for so long, whatever its period. */
#define LATE_S 5.0

/* But one that has had so many steps, and never so far apart, may be broken. */
#define LEAST_STEPS 3

/* Where power is not known: a window that is shorter by so much than the one before it
 * distinguishes a counter that runs on from one that waits for its period. The joules of
 * the former are fewer in about that proportion. */
#define SHORT_LOOK 0.75
#define RUNS_ON 1.25

/* A reading of utilization is of the time before it, and counts for no more than this. */
#define BUSY_S 1.0

/* The part of the time that a figure has to cover to be one. */
#define LEAST_COVERED 0.01

/* The same where a counter or power was refused: what is left is an end that was guessed.
 */
#define LEAST_BELIEVED 0.1

/* If the first reading is later, the driver has hung, and the time before it is missing. */
#define LATEST_S 0.5

/* Readings that carry their own time have a gap where they are so many periods apart. */
#define GAP_PERIODS 1.5

/* Points nearer to each other than this part of a period make no straight line. */
#define LINE_PERIODS 1e-3

/* A smaller part of the range of readings is no swing. */
#define SWING_PART 0.2

/* A value that stands for so long is a new one, of a period after the last, that equals
 * it. */
#define SAME_PERIODS 1.25

static double counter_period_s(const struct wm_energy *energy)
{
    return wm_sensor_period_s(&energy->counter_sensor, &energy->counter_pace);
}

static double power_period_s(const struct wm_energy *energy)
{
    return wm_sensor_period_s(&energy->power_sensor, &energy->power_pace);
}

double wm_energy_period_s(const struct wm_energy *energy)
{
    return energy->counted ? counter_period_s(energy) : power_period_s(energy);
}

/* The same as far as it matters at the ends: a counter that was seen to be faster
 * cannot lag by more. */
static double lag_period_s(const struct wm_energy *energy)
{
    double period_s = counter_period_s(energy);

    if (energy->bound_s <= 0)
        return period_s;
    return fmin(period_s, fmax(energy->bound_s, energy->quiet_s));
}

/* Below 0 where the latter is the earlier one. */
static double seconds_to(int64_t from_ns, int64_t to_ns)
{
    return wm_stats_seconds(from_ns, to_ns) - wm_stats_seconds(to_ns, from_ns);
}

static bool there(const struct wm_reading *reading)
{
    return reading && wm_stats_usable(reading) && reading->value >= 0;
}

double wm_energy_impossible_watts(const struct wm_sensor *sensor)
{
    return sensor->range > 0 ? fmin(LIMIT_TIMES * sensor->range, MOST_WATTS) : MOST_WATTS;
}

/* `count` readings were before this one. */
static void go_on(struct wm_energy_variation *variation, size_t order, uint64_t count,
                  double watts)
{
    struct wm_energy_differences *differences = &variation->differences[order - 1];
    double *from = &differences->from[count % order];
    double noise =
        fmax(WM_ENERGY_NOISE * *from, SWING_PART * (variation->most - variation->least));

    if (count >= order) {
        double far = fabs(watts - *from);
        double apart = watts - variation->recent[(count - order) % WM_ENERGY_ORDERS];
        differences->squares += apart * apart;
        if (far <= noise)
            return;
        differences->watts += far;
    }
    *from = watts;
}

/* Sums are of what powers are more than the first, so that no digits are lost. */
static void add_spread(struct wm_energy_variation *variation, double watts)
{
    double more = watts - variation->first;
    double pair_least = fmin(variation->last, watts),
           pair_most = fmax(variation->last, watts);

    variation->sum += more;
    variation->sum_squares += more * more;
    if (variation->count == 1)
        variation->most = variation->least = watts;
    if (variation->count <= 2) {
        variation->highest_pair = pair_least;
        variation->lowest_pair = pair_most;
    }
    variation->most = fmax(variation->most, watts);
    variation->least = fmin(variation->least, watts);
    variation->highest_pair = fmax(variation->highest_pair, pair_least);
    variation->lowest_pair = fmin(variation->lowest_pair, pair_most);
    for (size_t order = 1; order <= WM_ENERGY_ORDERS; order++)
        go_on(variation, order, variation->count - 1, watts);
    variation->recent[(variation->count - 1) % WM_ENERGY_ORDERS] = watts;
}

static void add_swing(struct wm_energy_variation *variation, double watts, int64_t when_ns)
{
    if (variation->started) {
        double difference = watts - variation->last;
        variation->squares += difference * difference;
        variation->count++;
        add_spread(variation, watts);
    } else {
        variation->first = watts;
    }
    variation->started = true;
    variation->last = watts;
    variation->last_ns = when_ns;
}

static void add_power_variation(struct wm_energy *energy, const struct wm_reading *power)
{
    struct wm_energy_variation *variation = &energy->power_variation;
    double period_s = power_period_s(energy);
    double seconds = wm_stats_seconds(variation->last_ns, power->when_ns);

    if (!variation->started || power->value != variation->last)
        add_swing(variation, power->value, power->when_ns);
    else if (period_s <= 0 || seconds >= SAME_PERIODS * period_s)
        add_swing(variation, power->value, variation->last_ns + (int64_t)(period_s * 1e9));
}

/* Of a sensor whose readings carry their own time. */
static void add_dated_reading(struct wm_energy *energy, const struct wm_reading *power)
{
    struct wm_energy_reading *last = energy->last_readings;

    if (!wm_sensor_is_dated(&energy->power_sensor) ||
        (energy->reading_count > 0 && power->when_ns <= last[0].when_ns))
        return;
    for (size_t i = WM_ENERGY_READINGS - 1; i > 0; i--)
        last[i] = last[i - 1];
    last[0] = (struct wm_energy_reading) { power->when_ns, power->value };
    if (energy->reading_count < WM_ENERGY_READINGS)
        energy->first_readings[energy->reading_count++] = last[0];
}

/* The straight line over a gap in such readings is a guess for all but a period of it. */
static double bridged_s(const struct wm_energy *energy, double seconds)
{
    double period_s = power_period_s(energy);

    if (!wm_sensor_is_dated(&energy->power_sensor) || period_s <= 0 ||
        seconds < GAP_PERIODS * period_s)
        return 0;
    return seconds - period_s;
}

/* How long before the first tick the first reading was. A driver may answer late; one that
 * takes too long has a hole there. */
static double early_s(const struct wm_energy *energy, const struct wm_reading *first)
{
    double seconds = seconds_to(first->when_ns, energy->first_ns);

    return seconds < -LATEST_S ? 0 : seconds;
}

/* A reading has the time of the middle of its call, but the driver may have measured at any
 * moment of it. The call began after the tick or, the first one, ended before it; the call
 * for power came next to it. */
static double stamp_s(const struct wm_energy *energy, const struct wm_reading *counter,
                      const struct wm_reading *power)
{
    double seconds = fabs(seconds_to(energy->last_ns, counter->when_ns));

    if (!energy->has_driver)
        return 0;
    if (!there(power))
        return seconds;
    return fmin(seconds, fabs(seconds_to(counter->when_ns, power->when_ns)));
}

static void start_power(struct wm_energy *energy, const struct wm_reading *power)
{
    energy->first_power = power->value;
    energy->early_s = early_s(energy, power);
    if (energy->early_s < 0)
        energy->hole_s = 0;
}

/* The joules from the last reading of power to that moment: below 0 if the moment is
 * earlier. */
static double power_to(const struct wm_energy *energy, int64_t when_ns)
{
    double seconds = seconds_to(energy->power_ns, when_ns);
    const struct wm_energy_reading *before = &energy->power_before;

    if (!energy->powered)
        return 0;
    if (seconds >= 0 || !energy->is_joined)
        return seconds * energy->power;
    double length_s = wm_stats_seconds(before->when_ns, energy->power_ns);
    double beyond_s = fmin(seconds + length_s, 0);
    double part = length_s > 0 ? (beyond_s - seconds) / length_s : 0;
    double there_watts = energy->power + part * (before->watts - energy->power);

    return beyond_s * before->watts +
           (seconds - beyond_s) * (energy->power + there_watts) / 2;
}

/* The integral of power since the last tick, and how much time it covers. A hole ends with
 * the first reading after it. */
static void add_power(struct wm_energy *energy, double tick_s,
                      const struct wm_reading *power)
{
    double joules = 0, seconds = 0;

    energy->since_s += tick_s;
    if (!there(power) || power->value > wm_energy_impossible_watts(&energy->power_sensor)) {
        /* The last value may have stood for several ticks. */
        energy->hole_s +=
            energy->powered ? wm_stats_seconds(energy->power_ns, energy->last_ns) : tick_s;
        energy->powered = false;
        return;
    }

    if (energy->powered) {
        seconds = wm_stats_seconds(energy->power_ns, power->when_ns);
        joules = seconds * (energy->power + power->value) / 2;
        energy->bridged_s += bridged_s(energy, seconds);
    } else {
        double late_s = wm_stats_seconds(power->when_ns, energy->last_ns);
        energy->hole_s += fmin(fmax(tick_s - late_s, 0), tick_s);
    }
    add_dated_reading(energy, power);
    if (!energy->power_pace.started)
        start_power(energy, power);
    if (!energy->powered || power->when_ns > energy->power_ns) {
        energy->is_joined = energy->powered;
        energy->power_before =
            (struct wm_energy_reading) { energy->power_ns, energy->power };
    }
    wm_sensor_pace_show(&energy->power_pace, &energy->power_sensor, power);
    add_power_variation(energy, power);
    energy->powered = true;
    energy->power = power->value;
    energy->power_ns = power->when_ns;
    energy->max_power = fmax(energy->max_power, power->value);
    energy->integral += joules;
    energy->covered_s += seconds;
    energy->since_integral += joules;
    energy->since_covered_s += seconds;
}

/* The counter reports nothing about the time since it last changed, up to that moment: the
 * integral stands in, as far as there is one. */
static void fill(struct wm_energy *energy, int64_t until_ns)
{
    double seconds = energy->since_s + seconds_to(energy->last_ns, until_ns);
    double covered_s = energy->since_covered_s;

    if (energy->powered)
        covered_s += seconds_to(energy->power_ns, until_ns);
    energy->total += energy->since_integral + power_to(energy, until_ns);
    energy->filled_s += covered_s;
    energy->missing_s += fmax(seconds - covered_s, 0);
}

/* In whole nanoseconds, so that three periods are not less than three periods. */
static bool is_fewer(double seconds, double periods, double period_s)
{
    return round(seconds * 1e9) < round(periods * period_s * 1e9);
}

static bool is_less_than(double seconds, double periods, const struct wm_energy *energy)
{
    return is_fewer(seconds, periods, wm_energy_period_s(energy));
}

static bool is_too_much(double watts, double max_power)
{
    return watts > MOST_WATTS || (max_power > 0 && watts > MOST_TIMES * max_power);
}

/* Takes back the jumps that are still too high for all the power seen. */
static void settle(struct wm_energy *energy)
{
    for (size_t i = 0; i < energy->suspect_count; i++) {
        const struct wm_energy_suspect *suspect = &energy->suspects[i];
        if (!is_too_much(suspect->watts, energy->max_power))
            continue;
        energy->total += suspect->fill - suspect->joules;
        energy->filled_s += suspect->covered_s;
        energy->missing_s += fmax(suspect->seconds - suspect->covered_s, 0);
        energy->implausible++;
    }
    energy->suspect_count = 0;
}

/* Between two readings of its inputs an estimate is as exact as it can be, except for
 * what was done since the last of them: that may be all that the machine can do. */
static struct wm_energy_edge smooth_edge(const struct wm_energy *energy)
{
    double seconds = wm_stats_seconds(energy->first_ns, energy->last_ns);

    return (struct wm_energy_edge) {
        .blur_s = fmin(counter_period_s(energy), seconds) / 2,
        .watts = energy->counter_sensor.range,
    };
}

/* How many of its periods a step took is known only to a whole one. */
static double step_rate(const struct wm_energy *energy, double joules, double seconds)
{
    double period_s = lag_period_s(energy);

    if (period_s > 0 && seconds < 5 * period_s)
        seconds = fmax(round(seconds / period_s), 1) * period_s;
    return seconds > 0 ? joules / seconds : 0;
}

/* The counter was seen twice only, at the ends of less than a period, and power too. Its
 * period is then not known: it may be as long as assumed, or the counter may run on. */
static bool is_read_twice(const struct wm_energy *energy)
{
    const struct wm_energy_start *start = &energy->start;

    return start->steps == 1 && energy->poll_ns == energy->change_ns && start->is_first &&
           wm_stats_seconds(start->from_ns, start->step_ns) <= start->tick_s &&
           start->tick_s < counter_period_s(energy) && start->power.known &&
           start->power.number > 0 && energy->change_power.known &&
           energy->change_power.number > 0;
}

/* Then the step is of the time that power makes of it, up to a period before the end; and
 * with a steady load that comes to the power in between, whatever the period is. One that
 * moves by less than one half of that can only be seen to by a counter that knows better,
 * and it never was fewer than both power and the counter say. */
static struct wm_energy_edge read_twice_edge(const struct wm_energy *energy)
{
    const struct wm_energy_start *start = &energy->start;
    double half_s = start->tick_s / 2;
    double least = fmin(start->power.number, energy->change_power.number);
    double stands_s = start->step / least;
    double most = start->step + half_s * energy->change_power.number -
                  fmin(start->step, least * start->tick_s);
    struct wm_energy_edge edge = { .blur_s = half_s, .watts = start->power.number };

    stands_s = fmin(stands_s, fmax(counter_period_s(energy), 2 * start->tick_s));
    edge.lag_s = stands_s < half_s ? half_s : stands_s - half_s;
    edge.watts = fmin(edge.watts, most / fmax(edge.lag_s, 1e-9));
    return edge;
}

/* A counter that is much slower than it should be, of which one step was seen: how long it
 * stood still before or after that is a part of its period. */
static bool is_lone_step(const struct wm_energy *energy)
{
    return energy->start.steps == 1 && !energy->start.power.known &&
           energy->since_covered_s <= 0 &&
           energy->counter_pace.standstill_s >
               LATE_PERIODS * (double)energy->counter_sensor.period_ns / 1e9;
}

/* Where a run is as long as a period and has a step at any time in it, the longer of the
 * two parts is three quarters of a period on average. */
static struct wm_energy_edge lone_step_edge(const struct wm_energy *energy, bool is_end)
{
    const struct wm_energy_start *start = &energy->start;
    double before_s = wm_stats_seconds(start->from_ns, start->step_ns);
    double after_s = wm_stats_seconds(start->step_ns, energy->poll_ns);
    double period_s = 4 * fmax(before_s, after_s) / 3;
    double more_s = before_s + after_s - period_s;

    return (struct wm_energy_edge) {
        .lag_s = fmax(is_end ? more_s : -more_s, 0),
        .blur_s = is_end ? 0 : (before_s + after_s) / 2,
        .watts = start->step / period_s,
    };
}

/* At the start: the counter stands for a moment of up to a period ago, and its first
 * step is in part of the time before. By the power then, else by that of the step. */
static struct wm_energy_edge start_lag(const struct wm_energy *energy)
{
    const struct wm_energy_start *start = &energy->start;
    double period_s = lag_period_s(energy);
    double seconds = wm_stats_seconds(start->from_ns, start->step_ns);
    struct wm_energy_edge edge = { .lag_s = period_s / 2, .blur_s = period_s / 2 };

    if (start->steps == 0 || period_s <= 0)
        return (struct wm_energy_edge) { 0 };
    if (energy->counter_sensor.kind == WM_SENSOR_MODEL)
        return smooth_edge(energy);
    if (is_read_twice(energy))
        return read_twice_edge(energy);
    if (is_lone_step(energy))
        return lone_step_edge(energy, false);
    if (start->tick_s < period_s) {
        edge.blur_s = start->tick_s / 2;
        edge.lag_s = fmin(fmax(period_s - (seconds - edge.blur_s), 0), period_s);
    }
    edge.watts =
        start->power.known ? start->power.number : step_rate(energy, start->step, seconds);
    edge.watts = fmin(edge.watts, start->step / fmax(edge.lag_s, 1e-9));
    return edge;
}

/* What is counted begins at the first tick, and not with the first reading. */
static struct wm_energy_edge start_edge(const struct wm_energy *energy)
{
    const struct wm_energy_start *start = &energy->start;
    double seconds = wm_stats_seconds(start->from_ns, start->step_ns);
    struct wm_energy_edge edge = start_lag(energy);

    if (start->steps == 0 || !start->is_first)
        return edge;
    edge.cut_s = start->early_s;
    edge.stamp_s = start->stamp_s;
    edge.joules =
        edge.cut_s * (start->power.known ? start->power.number
                                         : step_rate(energy, start->step, seconds));
    return edge;
}

/* At the end: from the counter's last step to when it was last seen to change. */
static struct wm_energy_edge end_edge(const struct wm_energy *energy)
{
    double period_s =
        is_read_twice(energy) ? counter_period_s(energy) : lag_period_s(energy);
    double half_s = fmin(energy->change_tick_s, period_s) / 2;

    if (energy->start.steps == 0)
        return (struct wm_energy_edge) { 0 };
    if (energy->counter_sensor.kind == WM_SENSOR_MODEL)
        return smooth_edge(energy);
    if (is_lone_step(energy))
        return lone_step_edge(energy, true);
    return (struct wm_energy_edge) {
        .lag_s = half_s,
        .blur_s = half_s,
        .watts = energy->change_power.known ? energy->change_power.number : energy->rate,
    };
}

/* And from there to when it was last seen. */
static double joules_since(const struct wm_energy *energy)
{
    double seconds = wm_stats_seconds(energy->change_ns, energy->poll_ns);

    if (energy->start.steps == 0 || counter_period_s(energy) <= 0 ||
        energy->counter_sensor.kind == WM_SENSOR_MODEL || is_lone_step(energy))
        return 0;
    if (energy->poll_covered_s > 0)
        return energy->poll_joules;
    return is_less_than(seconds, LATE_PERIODS, energy) ? energy->rate * seconds : 0;
}

/* Adds the joules from the last reading to the last tick, by power if that is known. */
static void cut_end(const struct wm_energy *energy, struct wm_energy_edge *edge)
{
    double seconds = wm_stats_seconds(energy->change_ns, energy->poll_ns);
    bool is_late = seconds > 0 && !is_less_than(seconds, LATE_PERIODS, energy);

    edge->stamp_s = energy->stamp_s;
    if (energy->powered) {
        edge->cut_s = seconds_to(energy->power_ns, energy->last_ns);
        edge->joules = energy->since_integral - energy->poll_joules +
                       power_to(energy, energy->last_ns);
        return;
    }
    edge->cut_s = seconds_to(energy->poll_ns, energy->last_ns);
    edge->joules = is_late ? 0
                           : edge->cut_s * (energy->beside.known ? energy->beside.number
                                                                 : energy->rate);
}

/* A counter that has moved all the time, and no longer does: it had nothing to count,
 * or it is broken, and hides as much as is usual. */
static double frozen_joules(const struct wm_energy *energy)
{
    double seconds = wm_stats_seconds(energy->change_ns, energy->poll_ns);
    double usual_s = fmax(counter_period_s(energy), energy->longest_s);
    double moved_s = wm_stats_seconds(energy->first_ns, energy->change_ns);

    if (energy->start.steps < LEAST_STEPS || energy->since_covered_s > 0 ||
        seconds <= LATE_PERIODS * usual_s)
        return 0;
    return seconds * fmax(energy->rate, energy->total / fmax(moved_s, usual_s));
}

static double edge_joules(const struct wm_energy *energy)
{
    struct wm_energy_edge start = start_edge(energy), end = end_edge(energy);

    return end.lag_s * end.watts - start.lag_s * start.watts - start.joules;
}

/* What comes after is not joined to what has been counted, and that it stood still until
 * it broke says nothing of its period. */
static void end_count(struct wm_energy *energy, const struct wm_reading *counter)
{
    energy->counter_pace.standstill_s = 0;
    energy->total += edge_joules(energy);
    energy->start.steps = 0;
    fill(energy, counter->when_ns);
}

/* What is drawn at this tick, for the ends of what is counted. */
static struct wm_known power_beside(const struct wm_energy *energy)
{
    return energy->powered ? (struct wm_known) { true, energy->power } : energy->beside;
}

static void start_count(struct wm_energy *energy, const struct wm_reading *counter)
{
    energy->start = (struct wm_energy_start) {
        .from_ns = counter->when_ns,
        .power = power_beside(energy),
        .stamp_s = energy->stamp_s,
    };
}

/* Power may have been known before the counter was. */
static void start_counting(struct wm_energy *energy, const struct wm_reading *counter)
{
    double early = early_s(energy, counter);

    start_count(energy, counter);
    if (energy->since_covered_s > 0) {
        energy->total -= energy->early_s * energy->first_power;
        fill(energy, counter->when_ns);
    } else if (early != 0 || energy->since_s <= 0) {
        energy->start.is_first = true;
        energy->start.early_s = early;
    } else {
        fill(energy, counter->when_ns);
    }
}

/* The least power that a step can have been made of. A mean of longer than the counter's
 * period says nothing of its last step. */
static struct wm_known least_power(const struct wm_energy *energy)
{
    const struct wm_known *before =
        energy->start.steps > 0 ? &energy->change_power : &energy->start.power;
    const struct wm_known now = power_beside(energy);

    return (struct wm_known) {
        .known = now.known && before->known &&
                 energy->power_sensor.window_s <= counter_period_s(energy),
        .number = fmin(now.number, before->number),
    };
}

/* Between two changes that were seen there were as many periods at least, and one
 * period is in a step at least. */
static void bound_period(struct wm_energy *energy, double joules, double seconds,
                         double tick_s, int64_t when_ns)
{
    const struct wm_energy_start *start = &energy->start;
    double bound_s = energy->bound_s > 0 ? energy->bound_s : INFINITY;
    const struct wm_known watts = least_power(energy);

    if (start->steps > 0) {
        double since_first_s = wm_stats_seconds(start->step_ns, when_ns) + start->tick_s;
        bound_s = fmin(bound_s, since_first_s / (double)start->steps);
        bound_s = fmin(bound_s, seconds + energy->change_tick_s);
    }
    if (watts.known && watts.number > 0)
        bound_s = fmin(bound_s, joules / watts.number);
    else if (!watts.known && start->steps > 0 && energy->poll_ns == energy->change_ns &&
             tick_s <= SHORT_LOOK * energy->change_tick_s &&
             joules <= RUNS_ON * tick_s * energy->rate)
        bound_s = fmin(bound_s, joules / energy->rate);

    energy->bound_s = isfinite(bound_s) ? bound_s : 0;
    wm_sensor_pace_bound(&energy->counter_pace, energy->bound_s);
    energy->quiet_s =
        fmax(energy->quiet_s, wm_stats_seconds(energy->change_ns, energy->poll_ns));
    energy->longest_s = fmax(energy->longest_s, seconds);
}

static void note_step(struct wm_energy *energy, double joules, double seconds,
                      const struct wm_reading *counter)
{
    double tick_s = wm_stats_seconds(energy->poll_ns, counter->when_ns);

    bound_period(energy, joules, seconds, tick_s, counter->when_ns);
    energy->rate = step_rate(energy, joules, seconds);
    energy->change_tick_s = tick_s;
    energy->change_power = power_beside(energy);
    if (energy->start.steps++ > 0) {
        add_swing(&energy->counter_variation, energy->rate, counter->when_ns);
        return;
    }
    energy->start.step = joules;
    energy->start.step_ns = counter->when_ns;
    energy->start.tick_s = tick_s;
}

/* False where it cannot be. */
static bool count_increase(struct wm_energy *energy, double joules, double seconds)
{
    double watts =
        joules / fmax(fmax(seconds, counter_period_s(energy)), SLOWEST_RENEWAL_S);

    if (watts > wm_energy_impossible_watts(&energy->counter_sensor)) {
        energy->implausible++;
        return false;
    }
    energy->total += joules;
    if (!is_too_much(watts, energy->max_power))
        return true;

    if (energy->suspect_count == WM_ENERGY_SUSPECTS)
        settle(energy);
    energy->suspects[energy->suspect_count++] = (struct wm_energy_suspect) {
        .watts = watts,
        .joules = joules,
        .fill = energy->since_integral,
        .seconds = energy->since_s,
        .covered_s = energy->since_covered_s,
    };
    return true;
}

/* A driver was loaded anew, or a 32-bit counter ran over: how far it had got
 * nobody knows. What it shows now is the least that was used since, if it began at 0:
 * one that went back a little shows far more. */
static void count_reset(struct wm_energy *energy, double value, double seconds)
{
    double span_s = wm_stats_seconds(energy->first_ns, energy->last_ns);
    double usual = span_s > 0 ? energy->total / span_s : 0;

    energy->resets++;
    energy->shown = 0;
    energy->told = 0;
    if (energy->since_covered_s <= 0 &&
        value / fmax(seconds, SLOWEST_RENEWAL_S) <= MOST_TIMES * usual)
        energy->total += value;
}

/* What power makes of the time up to a new reading of the counter. */
static void note_poll(struct wm_energy *energy, const struct wm_reading *counter)
{
    energy->poll_ns = counter->when_ns;
    energy->poll_joules = energy->since_integral + power_to(energy, counter->when_ns);
    energy->poll_covered_s = energy->since_covered_s;
}

static void restart(struct wm_energy *energy, const struct wm_reading *counter)
{
    energy->counted = true;
    energy->count = counter->value;
    energy->change_ns = counter->when_ns;
    energy->since_s = seconds_to(counter->when_ns, energy->last_ns);
    energy->since_integral = -power_to(energy, counter->when_ns);
    energy->since_covered_s =
        energy->powered ? seconds_to(counter->when_ns, energy->power_ns) : 0;
    energy->stalled = false;
    note_poll(energy, counter);
}

static bool has_caught_up(const struct wm_energy *energy, double joules)
{
    return !energy->stalled || joules >= CAUGHT_UP * energy->since_integral;
}

static void add_change(struct wm_energy *energy, const struct wm_reading *counter)
{
    double joules = counter->value - energy->count;
    double seconds = wm_stats_seconds(energy->change_ns, counter->when_ns);
    bool counted = false;

    if (joules < 0)
        count_reset(energy, counter->value, seconds);
    else if (!has_caught_up(energy, joules))
        energy->stalls++;
    else
        counted = count_increase(energy, joules, seconds);

    if (counted) {
        note_step(energy, joules, seconds, counter);
    } else {
        end_count(energy, counter);
        start_count(energy, counter);
    }
    energy->changes++;
    restart(energy, counter);
}

static void add_counter(struct wm_energy *energy, const struct wm_reading *counter,
                        const struct wm_reading *power)
{
    wm_sensor_pace_count(&energy->counter_pace, counter);
    if (!energy->counted || counter->when_ns > energy->poll_ns)
        energy->stamp_s = stamp_s(energy, counter, power);
    if (!energy->counted) {
        start_counting(energy, counter);
        restart(energy, counter);
        return;
    }
    if (counter->value != energy->count) {
        add_change(energy, counter);
        return;
    }

    double seconds = wm_stats_seconds(energy->change_ns, counter->when_ns);
    if (energy->since_integral > 0 && seconds >= STALL_S &&
        !is_fewer(seconds, STALL_PERIODS,
                  wm_sensor_beat_s(&energy->counter_sensor, &energy->counter_pace)))
        energy->stalled = true;
    if (counter->when_ns > energy->poll_ns)
        note_poll(energy, counter);
}

bool wm_energy_is_late(const struct wm_energy *energy)
{
    double seconds = wm_stats_seconds(energy->change_ns, energy->poll_ns);

    return energy->present && energy->counter_sensor.kind != WM_SENSOR_MODEL &&
           seconds > 0 && seconds < LATE_S && !is_less_than(seconds, LATE_PERIODS, energy);
}

void wm_energy_set_busy(struct wm_energy *energy, struct wm_known ratio)
{
    energy->busy = (struct wm_known) { ratio.known, fmin(fmax(ratio.number, 0), 1) };
}

void wm_energy_set_beside(struct wm_energy *energy, struct wm_known watts)
{
    energy->beside = watts;
    energy->beside.known &=
        watts.number >= 0 && energy->power_sensor.window_s <= counter_period_s(energy);
}

double wm_energy_partly_busy(double busy)
{
    return fmin(10 * busy * (1 - busy), 1);
}

static void add_settled(struct wm_energy *energy, double tick_s)
{
    double busy = energy->busy.number;
    bool may_settle = wm_stats_seconds(energy->first_ns, energy->last_ns) < BUSY_S;

    if (energy->busy_known_s <= 0 ||
        (may_settle &&
         fmax(energy->most_busy, busy) - fmin(energy->least_busy, busy) > WM_ENERGY_EVEN)) {
        energy->least_busy = energy->most_busy = busy;
        energy->settled_s = 0;
    }
    energy->settled_s += tick_s;
    energy->least_busy = fmin(energy->least_busy, busy);
    energy->most_busy = fmax(energy->most_busy, busy);
}

static void add_busy(struct wm_energy *energy, double tick_s)
{
    if (!energy->busy.known)
        return;
    tick_s = fmin(tick_s, BUSY_S);
    add_settled(energy, tick_s);
    energy->busy_known_s += tick_s;
    energy->busy_s += tick_s * energy->busy.number;
    energy->partly_busy_s += tick_s * wm_energy_partly_busy(energy->busy.number);
}

static void use_counter(struct wm_energy *energy, struct wm_energy_result *result)
{
    bool filled = !energy->present || energy->stalled;

    settle(energy);
    result->start = start_edge(energy);
    result->end = end_edge(energy);
    result->told =
        energy->total - result->start.lag_s * result->start.watts - result->start.joules;
    if (!filled) {
        result->frozen = frozen_joules(energy);
        cut_end(energy, &result->end);
        energy->total += joules_since(energy) + result->end.joules;
        result->end.lag_s += wm_stats_seconds(energy->change_ns, energy->poll_ns);
    }
    energy->total += edge_joules(energy);
    if (filled) {
        fill(energy, energy->last_ns);
        result->told = energy->total;
    }

    result->joules = fmax(energy->total, 0);
    result->missing_s = energy->missing_s;
    result->filled_s = energy->filled_s;
    result->method = WM_ENERGY_COUNTER;
    if (energy->filled_s > WM_LEAST_MISSING_S ||
        (energy->implausible > 0 && energy->covered_s > 0))
        result->method = WM_ENERGY_COUNTER_FILLED;
}

/* What power shows was so long ago, on average: half of what it is the mean of, and
 * half of the time for which it stands. */
static double power_lag_s(const struct wm_energy *energy)
{
    double period_s = power_period_s(energy);
    double window_s = energy->power_sensor.window_s;

    if (wm_sensor_is_dated(&energy->power_sensor))
        return 0;
    return (period_s + (window_s > 0 ? window_s : period_s)) / 2;
}

/* The most that was drawn. What has not lasted for a window yet is in its mean for as much
 * of it. */
static double most_power(const struct wm_energy *energy)
{
    double window_s = energy->power_sensor.window_s;
    double times = energy->covered_s > 0 ? fmax(window_s / energy->covered_s, 1) : 1;

    return energy->first_power + (energy->max_power - energy->first_power) * times;
}

/* The time from the last reading of power to the last tick; 0 in a hole. */
static double late_s(const struct wm_energy *energy)
{
    return energy->powered ? seconds_to(energy->power_ns, energy->last_ns) : 0;
}

/* The time from the first tick to the last one, but for holes. */
static double whole_s(const struct wm_energy *energy)
{
    return fmax(energy->covered_s - energy->early_s + late_s(energy), 0);
}

/* The joules of the time after the last reading of power, which itself is of a while ago.
 */
static double joules_after(const struct wm_energy *energy)
{
    double lag_s = power_lag_s(energy);

    return energy->powered ? power_to(energy, energy->last_ns + (int64_t)(lag_s * 1e9))
                           : lag_s * energy->power;
}

/* The integral of power is that of a time which began and ended earlier. */
static double shifted_integral(const struct wm_energy *energy)
{
    double before_s = power_lag_s(energy) + energy->early_s;
    double joules =
        energy->integral + joules_after(energy) - before_s * energy->first_power;

    return fmin(fmax(joules, 0), most_power(energy) * whole_s(energy));
}

/* By how much power changes at an end of the run. What is shown for the very end lies on
 * the straight line between two readings, so that the one beyond the end is known, too. */
static double step_at(const struct wm_energy_reading *readings, size_t count,
                      double period_s)
{
    double least = INFINITY, most = 0;

    for (size_t i = 0; i < count; i++) {
        least = fmin(least, readings[i].watts);
        most = fmax(most, readings[i].watts);
    }
    if (count < 2)
        return 0;
    double seconds = fabs(wm_stats_seconds(readings[0].when_ns, readings[1].when_ns));
    if (seconds > LINE_PERIODS * period_s && seconds < period_s) {
        double slope = (readings[0].watts - readings[1].watts) / seconds;
        double beyond = fmax(readings[1].watts + slope * period_s, 0);
        least = fmin(least, beyond);
        most = fmax(most, beyond);
    }
    return most - least;
}

static void use_integral(const struct wm_energy *energy, struct wm_energy_result *result)
{
    double lag_s = power_lag_s(energy), period_s = power_period_s(energy);
    size_t readings = energy->reading_count;

    result->method = WM_ENERGY_INTEGRAL;
    result->start = (struct wm_energy_edge) {
        .lag_s = lag_s,
        .watts = energy->first_power,
        .cut_s = energy->early_s,
        .step = step_at(energy->first_readings, readings, period_s),
    };
    result->end = (struct wm_energy_edge) {
        .lag_s = lag_s,
        .watts = energy->power,
        .cut_s = late_s(energy),
        .step = step_at(energy->last_readings, readings, period_s),
    };
    result->joules = shifted_integral(energy);
    result->told = fmax(energy->integral - energy->early_s * energy->first_power +
                            fmin(power_to(energy, energy->last_ns), 0),
                        0);
    result->missing_s = energy->hole_s;
}

/* Both are brought to the time that the counter covers, the integral with its own
 * mean, so that holes do not pass for a disagreement. */
static void compare(const struct wm_energy *energy, struct wm_energy_result *result)
{
    double whole = whole_s(energy);

    if (energy->covered_s <= 0 || whole <= 0 || result->joules <= 0)
        return;

    result->checked = true;
    result->counter = result->joules;
    result->integral =
        shifted_integral(energy) / whole * (result->span_s - result->missing_s);
    result->gap = fabs(result->counter - result->integral) / result->counter;
}

bool wm_energy_is_known(const struct wm_energy_result *result)
{
    double least = result->implausible > 0 ? LEAST_BELIEVED : LEAST_COVERED;

    return result->method != WM_ENERGY_UNKNOWN &&
           result->span_s - result->missing_s > least * result->span_s;
}

/* The result, which may be less than what was told before. */
static void make_result(const struct wm_energy *energy, struct wm_energy_result *ret_result)
{
    struct wm_energy state = *energy;
    struct wm_energy_result result = {
        .span_s = wm_stats_seconds(energy->first_ns, energy->last_ns),
    };
    bool moved = energy->counted && energy->changes > 0;
    bool had_nothing_to_count =
        energy->counted && energy->covered_s > 0 && energy->integral <= 0;

    /* In less time than that even a counter that works may not move. */
    double still_s = wm_stats_seconds(energy->change_ns, energy->poll_ns);
    result.stuck =
        energy->stalled || (energy->counted && !moved && energy->since_integral > 0 &&
                            !is_less_than(still_s, WM_SENSOR_PERIODS, energy));

    if (moved || had_nothing_to_count) {
        use_counter(&state, &result);
        compare(&state, &result);
    } else if (energy->covered_s > 0) {
        use_integral(&state, &result);
    }
    result.period_s = wm_energy_period_s(energy);
    if (result.method == WM_ENERGY_INTEGRAL)
        result.period_s = fmax(power_period_s(energy), energy->power_sensor.window_s);
    result.is_short = is_fewer(result.span_s, WM_SENSOR_PERIODS, result.period_s);
    result.resets = state.resets;
    result.implausible = state.implausible;
    result.stalls = state.stalls;
    result.raised = fmax(energy->shown - result.joules, 0);
    result.joules += result.raised;
    result.told = fmin(result.told, result.joules);
    *ret_result = result;
}

void wm_energy_result(const struct wm_energy *energy, struct wm_energy_result *ret_result)
{
    make_result(energy, ret_result);
    ret_result->told = fmax(ret_result->told, energy->told);
}

/* The integral of power up to the tick. */
static double integral_now(const struct wm_energy *energy)
{
    return energy->integral + power_to(energy, energy->last_ns);
}

static double told_by_power(const struct wm_energy *energy)
{
    const struct wm_energy_shape *shape = &energy->shape;
    double joules = integral_now(energy) - shape->integral;
    double part = shape->span > 0 ? fmin(joules / shape->span, 1) : 1;

    return shape->told + shape->ratio * joules + part * shape->left;
}

/* Starts the shape anew at a reading of the counter, which has `counted` so many J up to
 * the tick while `told` were shown. */
static void take_shape(struct wm_energy *energy, double told, double counted)
{
    double integral = integral_now(energy);
    bool is_known = energy->covered_s >= SHAPE_S && integral > 0;

    if (energy->stands)
        told = fmax(told_by_power(energy), energy->told);
    else
        counted = told;
    energy->shape = (struct wm_energy_shape) {
        .told = told,
        .integral = integral,
        .ratio = is_known ? counted / integral : 1,
        .left = counted - told,
        .span = integral - energy->shape.integral,
    };
}

/* From one tick to the next. */
static void keep_up(struct wm_energy *energy, bool stands)
{
    struct wm_energy_result result;

    make_result(energy, &result);
    if (!stands)
        take_shape(energy, result.told, result.told + result.end.joules);
    energy->stands = stands;
    energy->has_stood |= stands;
    energy->told = fmax(energy->told, told_by_power(energy));
    energy->ahead = energy->has_stood ? 0 : result.joules - energy->told;
    if (energy->counted)
        energy->shown = fmax(energy->shown, result.joules - fmax(result.end.joules, 0));
}

/* Whether the counter's last reading is repeated beside a new one of power. */
static bool is_counter_old(const struct wm_energy *energy, const struct wm_reading *counter,
                           const struct wm_reading *power)
{
    return energy->counted && there(counter) && counter->when_ns <= energy->poll_ns &&
           energy->powered && there(power) && power->when_ns > energy->power_ns;
}

void wm_energy_add(struct wm_energy *energy, int64_t when_ns,
                   const struct wm_reading *counter, const struct wm_reading *power)
{
    double tick_s = energy->started ? wm_stats_seconds(energy->last_ns, when_ns) : 0;

    if (!energy->started)
        energy->first_ns = when_ns;
    energy->started = true;
    energy->last_ns = when_ns;
    bool stands = is_counter_old(energy, counter, power);

    add_power(energy, tick_s, power);
    add_busy(energy, tick_s);
    energy->present = there(counter);
    if (energy->present)
        add_counter(energy, counter, power);
    keep_up(energy, stands);
}
