/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_energy.c - joules from a counter that may lie and a power that may lag. */
#include "analyze/analyze_energy.h"

#include <math.h>

#include "analyze/analyze_stats.h"

/* No board comes near: a jump beyond it is a broken counter, whatever the power. */
#define MOST_WATTS 100e3

/* How many times the highest power seen a jump may imply. Power may be averaged
 * over a second or looked at for a quarter of the time, hence the wide margin. */
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

#define SHORT_PERIODS 3.0

static double period_s(const struct wm_energy *energy)
{
    return (double)energy->period_ns / 1e9;
}

static bool there(const struct wm_reading *reading)
{
    return reading && wm_stats_usable(reading) && reading->value >= 0;
}

/* The integral of power since the last tick, and how much time it covers. */
static void add_power(struct wm_energy *energy, double tick_s,
                      const struct wm_reading *power)
{
    double joules = 0, seconds = 0;

    energy->since_s += tick_s;
    if (!there(power)) {
        /* The last value may have stood for several ticks. */
        energy->hole_s +=
            energy->powered ? wm_stats_seconds(energy->power_ns, energy->last_ns) : tick_s;
        energy->powered = false;
        return;
    }

    if (energy->powered) {
        seconds = wm_stats_seconds(energy->power_ns, power->when_ns);
        joules = seconds * (energy->power + power->value) / 2;
    } else {
        energy->hole_s += tick_s;
    }
    energy->powered = true;
    energy->power = power->value;
    energy->power_ns = power->when_ns;
    energy->max_power = fmax(energy->max_power, power->value);
    energy->integral += joules;
    energy->covered_s += seconds;
    energy->since_integral += joules;
    energy->since_covered_s += seconds;
}

/* The counter tells nothing about the time since it last changed: the integral
 * stands in, as far as there is one. */
static void fill(struct wm_energy *energy)
{
    energy->total += energy->since_integral;
    energy->filled_s += energy->since_covered_s;
    energy->missing_s += fmax(energy->since_s - energy->since_covered_s, 0);
}

static bool is_less_than(double seconds, double periods, const struct wm_energy *energy)
{
    return round(seconds * 1e9) < periods * (double)energy->period_ns;
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
        energy->implausible++;
    }
    energy->suspect_count = 0;
}

static void count_increase(struct wm_energy *energy, double joules, double seconds)
{
    double watts = joules / fmax(fmax(seconds, period_s(energy)), SLOWEST_RENEWAL_S);

    if (watts > MOST_WATTS) {
        energy->implausible++;
        fill(energy);
        return;
    }
    energy->total += joules;
    if (!is_too_much(watts, energy->max_power))
        return;

    if (energy->suspect_count == WM_ENERGY_SUSPECTS)
        settle(energy);
    energy->suspects[energy->suspect_count++] = (struct wm_energy_suspect) {
        .watts = watts,
        .joules = joules,
        .fill = energy->since_integral,
    };
}

/* A driver was loaded anew, or a 32-bit counter ran over: how far it had got
 * nobody knows. What it shows now is the least that was used since. */
static void count_reset(struct wm_energy *energy, double value, double seconds)
{
    energy->resets++;
    fill(energy);
    if (energy->since_covered_s <= 0 &&
        value / fmax(seconds, SLOWEST_RENEWAL_S) <= MOST_WATTS)
        energy->total += value;
}

static void restart(struct wm_energy *energy, const struct wm_reading *counter)
{
    energy->counted = true;
    energy->count = counter->value;
    energy->change_ns = counter->when_ns;
    energy->since_s = 0;
    energy->since_integral = 0;
    energy->since_covered_s = 0;
    energy->stalled = false;
}

static bool has_caught_up(const struct wm_energy *energy, double joules)
{
    return !energy->stalled || joules >= CAUGHT_UP * energy->since_integral;
}

static void add_counter(struct wm_energy *energy, const struct wm_reading *counter)
{
    double value = counter->value;
    double seconds = wm_stats_seconds(energy->change_ns, counter->when_ns);

    if (!energy->counted) {
        fill(energy);
        restart(energy, counter);
        return;
    }
    if (value == energy->count) {
        if (energy->since_integral > 0 && seconds >= STALL_S &&
            !is_less_than(seconds, STALL_PERIODS, energy))
            energy->stalled = true;
        return;
    }

    if (value < energy->count) {
        count_reset(energy, value, seconds);
    } else if (has_caught_up(energy, value - energy->count)) {
        count_increase(energy, value - energy->count, seconds);
    } else {
        energy->stalls++;
        fill(energy);
    }
    energy->changes++;
    restart(energy, counter);
}

void wm_energy_add(struct wm_energy *energy, int64_t when_ns,
                   const struct wm_reading *counter, const struct wm_reading *power)
{
    double tick_s = energy->started ? wm_stats_seconds(energy->last_ns, when_ns) : 0;

    if (!energy->started)
        energy->first_ns = when_ns;
    energy->started = true;
    energy->last_ns = when_ns;

    add_power(energy, tick_s, power);
    energy->present = there(counter);
    if (energy->present)
        add_counter(energy, counter);
}

static void use_counter(struct wm_energy *energy, struct wm_energy_result *result)
{
    settle(energy);
    if (!energy->present || energy->stalled)
        fill(energy);

    result->joules = energy->total;
    result->missing_s = energy->missing_s;
    result->filled_s = energy->filled_s;
    result->method = WM_ENERGY_COUNTER;
    if (energy->filled_s > 0 || (energy->implausible > 0 && energy->covered_s > 0))
        result->method = WM_ENERGY_COUNTER_FILLED;
}

static void use_integral(const struct wm_energy *energy, struct wm_energy_result *result)
{
    result->method = WM_ENERGY_INTEGRAL;
    result->joules = energy->integral;
    result->missing_s = energy->hole_s;
}

/* Both are brought to the time that the counter covers, the integral with its own
 * mean, so that holes do not pass for a disagreement. */
static void compare(const struct wm_energy *energy, struct wm_energy_result *result)
{
    if (energy->covered_s <= 0 || result->joules <= 0)
        return;

    result->checked = true;
    result->counter = result->joules;
    result->integral =
        energy->integral / energy->covered_s * (result->span_s - result->missing_s);
    result->gap = fabs(result->counter - result->integral) / result->counter;
}

void wm_energy_result(const struct wm_energy *energy, struct wm_energy_result *ret_result)
{
    struct wm_energy state = *energy;
    struct wm_energy_result result = {
        .span_s = wm_stats_seconds(energy->first_ns, energy->last_ns),
    };
    bool moved = energy->counted && energy->changes > 0;
    bool had_nothing_to_count =
        energy->counted && energy->covered_s > 0 && energy->integral <= 0;

    result.is_short = is_less_than(result.span_s, SHORT_PERIODS, energy);
    /* In less time than that even a counter that works may not move. */
    result.stuck =
        energy->stalled || (energy->counted && !moved && energy->since_integral > 0 &&
                            !is_less_than(energy->since_s, SHORT_PERIODS, energy));

    if (moved || had_nothing_to_count) {
        use_counter(&state, &result);
        compare(&state, &result);
    } else if (energy->covered_s > 0) {
        use_integral(&state, &result);
    }
    result.resets = state.resets;
    result.implausible = state.implausible;
    result.stalls = state.stalls;
    *ret_result = result;
}
