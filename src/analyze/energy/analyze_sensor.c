/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_sensor.c - what is known of a sensor, and how often it was seen to have
 * something new. */
#include "analyze/energy/analyze_energy.h"

#include <math.h>

#include "record/record_stats.h"
#include "source/source_energy.h"

/* At k = 2, as docs/energy-uncertainty.md has it: our assumption. */
#define ASSUMED_GAIN 0.10

struct wm_sensor wm_sensor_of(const struct wm_channel *channel)
{
    bool is_model = channel->origin == WM_ESTIMATED;
    struct wm_sensor sensor = channel->sensor;

    if (is_model)
        sensor.kind = WM_SENSOR_MODEL;
    if (sensor.period_ns == 0)
        sensor.period_ns = channel->period_ns;
    if (channel->origin == WM_SIMULATED)
        sensor.text = "simulated";
    else if (sensor.gain == 0)
        sensor.gain = is_model ? WM_MODEL_GAIN : ASSUMED_GAIN;
    if (!sensor.text)
        sensor.text = is_model ? "a model, not a sensor" : "not in the table";
    return sensor;
}

double wm_sensor_seen(const struct wm_sensor *sensor, double period_s)
{
    if (sensor->window_s <= 0 || sensor->window_s >= period_s)
        return 1;
    return sensor->window_s / period_s;
}

void wm_sensor_pace_add(struct wm_sensor_pace *pace, const struct wm_reading *reading)
{
    if (!wm_stats_usable(reading) || (pace->started && reading->when_ns <= pace->last_ns))
        return;
    if (pace->started) {
        pace->polls++;
        if (reading->value != pace->value) {
            double seconds = wm_stats_seconds(pace->change_ns, reading->when_ns);
            if (pace->changes++ > 0) {
                pace->sum_s += seconds;
                pace->square_s += seconds * seconds;
            }
            pace->change_ns = reading->when_ns;
        }
    }
    if (!pace->started)
        pace->first_ns = reading->when_ns;
    pace->started = true;
    pace->value = reading->value;
    pace->last_ns = reading->when_ns;
}

void wm_sensor_pace_bound(struct wm_sensor_pace *pace, double most_s)
{
    if (most_s > 0)
        pace->most_s = pace->most_s > 0 ? fmin(pace->most_s, most_s) : most_s;
}

void wm_sensor_pace_count(struct wm_sensor_pace *pace, const struct wm_reading *reading)
{
    uint64_t changes = pace->changes;
    int64_t since_ns = changes > 0 ? pace->change_ns : pace->first_ns;
    int64_t last_ns = pace->last_ns;

    wm_sensor_pace_add(pace, reading);
    if (pace->changes == changes)
        return;
    pace->standstill_s = fmax(pace->standstill_s, wm_stats_seconds(since_ns, last_ns));
    if (changes > 0)
        wm_sensor_pace_bound(pace, wm_stats_seconds(since_ns, pace->change_ns) +
                                       pace->change_poll_s);
    pace->change_poll_s = wm_stats_seconds(last_ns, pace->change_ns);
}

void wm_sensor_pace_show(struct wm_sensor_pace *pace, const struct wm_sensor *sensor,
                         const struct wm_reading *reading)
{
    double longest_s = (double)sensor->longest_ns / 1e9;

    if (longest_s <= 0) {
        wm_sensor_pace_add(pace, reading);
        return;
    }
    wm_sensor_pace_count(pace, reading);
    int64_t since_ns = pace->changes > 0 ? pace->change_ns : pace->first_ns;
    double seconds = fmax(pace->standstill_s, wm_stats_seconds(since_ns, pace->last_ns));
    pace->standstill_s = fmin(seconds, longest_s);
}

/* Fewer readings for each change, fewer changes, or changes farther from a beat than
 * readings at a third of the period make them, say nothing. */
#define LEAST_POLLS 3
#define LEAST_CHANGES 9
#define MOST_SPREAD 0.35

/* Steps do not come on the dot; but a counter that stood still for longer than so many
 * times what a period can be had nothing to count. */
#define IDLE_TIMES 1.25

/* But a few changes that come much sooner than they should are enough to know that
 * the sensor is faster; it may be faster yet, where each reading is another. */
#define LEAST_FAST_CHANGES 4
#define FASTER 0.75

static double mean_s(const struct wm_sensor_pace *pace)
{
    return pace->sum_s / (double)(pace->changes - 1);
}

static bool has_beat(const struct wm_sensor_pace *pace)
{
    if (pace->changes < LEAST_CHANGES || pace->polls < LEAST_POLLS * pace->changes)
        return false;

    double mean = mean_s(pace);
    double variance = pace->square_s / (double)(pace->changes - 1) - mean * mean;
    return variance <= MOST_SPREAD * MOST_SPREAD * mean * mean;
}

static bool is_faster(const struct wm_sensor_pace *pace, double period_s)
{
    return pace->changes >= LEAST_FAST_CHANGES && mean_s(pace) < FASTER * period_s;
}

double wm_sensor_pace_poll_s(const struct wm_sensor_pace *pace)
{
    if (pace->polls == 0)
        return 0;
    return wm_stats_seconds(pace->first_ns, pace->last_ns) / (double)pace->polls;
}

static bool is_slower(const struct wm_sensor_pace *pace, double period_s)
{
    return pace->standstill_s > period_s &&
           (pace->most_s <= 0 || pace->standstill_s <= IDLE_TIMES * pace->most_s);
}

bool wm_sensor_is_measured(const struct wm_sensor *sensor,
                           const struct wm_sensor_pace *pace)
{
    double period_s = (double)sensor->period_ns / 1e9;

    return sensor->kind != WM_SENSOR_MODEL && !wm_sensor_is_dated(sensor) &&
           (has_beat(pace) || is_faster(pace, period_s) || is_slower(pace, period_s));
}

double wm_sensor_beat_s(const struct wm_sensor *sensor, const struct wm_sensor_pace *pace)
{
    double period_s = (double)sensor->period_ns / 1e9;

    if (sensor->kind != WM_SENSOR_MODEL && !wm_sensor_is_dated(sensor) &&
        (has_beat(pace) || is_faster(pace, period_s)))
        return mean_s(pace);
    return period_s;
}

double wm_sensor_period_s(const struct wm_sensor *sensor, const struct wm_sensor_pace *pace)
{
    double period_s = wm_sensor_beat_s(sensor, pace);

    if (sensor->kind == WM_SENSOR_MODEL || !is_slower(pace, period_s))
        return period_s;
    /* It moved on at any time between two readings. */
    if (pace->most_s > 0)
        return fmin(pace->standstill_s + pace->change_poll_s, pace->most_s);
    return pace->standstill_s;
}
