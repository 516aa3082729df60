/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_sensor.h - what is known of the sensors behind joules and watts: how often
 * they have something new, how much of the time they see, and how far they are off.
 *
 *     struct wm_sensor sensor = wm_sensor_of(channel);
 *     struct wm_sensor_pace pace = { 0 };
 *     wm_sensor_pace_add(&pace, reading);                     each tick
 *     double period_s = wm_sensor_period_s(&sensor, &pace);
 */
#ifndef WM_ANALYZE_SENSOR_H
#define WM_ANALYZE_SENSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "wattmeter/source.h"

/* The sensor of a channel of energy or power. What its source does not know is assumed,
 * and its period is the channel's where it has none of its own. */
struct wm_sensor wm_sensor_of(const struct wm_channel *channel);

/* Whether its readings carry the time that they are of, so that they lag by nothing. */
static inline bool wm_sensor_is_dated(const struct wm_sensor *sensor)
{
    return sensor->kind == WM_SENSOR_METER;
}

/* The part of the time that goes into its values, 0 to 1. */
double wm_sensor_seen(const struct wm_sensor *sensor, double period_s);

/* How often a value was seen to change. All zero is the right start. */
struct wm_sensor_pace {
    bool started;
    double value;
    int64_t first_ns, last_ns, change_ns;
    uint64_t polls, changes;
    double sum_s, square_s; /* of the times from one change to the next */

    /* Of a counter: the longest that it stood still before it moved on, and the most that
     * a period can be, as two changes followed each other so soon; 0: not known. */
    double standstill_s, most_s;
    double change_poll_s; /* time from the reading before the last change to it */
};

/* Readings that have no value, or that stand for an earlier one, are left out. */
void wm_sensor_pace_add(struct wm_sensor_pace *pace, const struct wm_reading *reading);

/* The same of a counter. One that stands still has nothing new, whatever the load is: its
 * period is no shorter than that. */
void wm_sensor_pace_count(struct wm_sensor_pace *pace, const struct wm_reading *reading);

/* The same of a gauge. If its period is unknown, the time that it stands still is taken for
 * its period. */
void wm_sensor_pace_show(struct wm_sensor_pace *pace, const struct wm_sensor *sensor,
                         const struct wm_reading *reading);

/* Its period was seen to be no longer than that; 0: it was not. */
void wm_sensor_pace_bound(struct wm_sensor_pace *pace, double most_s);

/* Time between two readings of it; 0: there were not two. */
double wm_sensor_pace_poll_s(const struct wm_sensor_pace *pace);

/* Whether readings came often enough to see the period, and showed it clearly, or
 * showed that it is shorter than published, or longer. */
bool wm_sensor_is_measured(const struct wm_sensor *sensor,
                           const struct wm_sensor_pace *pace);

/* What was measured, else what was published; 0: neither. */
double wm_sensor_period_s(const struct wm_sensor *sensor,
                          const struct wm_sensor_pace *pace);

/* The same, however long a counter has stood still meanwhile. */
double wm_sensor_beat_s(const struct wm_sensor *sensor, const struct wm_sensor_pace *pace);

#endif
