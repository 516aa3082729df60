/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_stats.h - what a series comes to, one reading at a time. Nothing here
 * allocates or keeps more than the last reading, however long the series is.
 * All zero is the right start for each struct.
 */
#ifndef WM_RECORD_STATS_H
#define WM_RECORD_STATS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/text/base_number.h"
#include "wattmeter/recording.h"

/* Updates of a sensor that make a rate, good to a third, or more than a rough figure. */
#define WM_SENSOR_PERIODS 3.0

/* Those of a window for the highest power. Its joules may be off by those of one period, as
 * it is not known when the sensor last measured: a tenth of them at most. */
#define WM_PEAK_PERIODS 10.0

/* Seconds from one moment to a later one; 0 where it is not later, which only a
 * damaged recording can claim. */
double wm_stats_seconds(int64_t from_ns, int64_t to_ns);

/* Whether a reading is there and is a number to calculate with. */
static inline bool wm_stats_usable(const struct wm_reading *reading)
{
    return reading->state == WM_READING_OK && isfinite(reading->value);
}

/* That number; `reading` may be NULL. */
static inline struct wm_known wm_stats_value(const struct wm_reading *reading)
{
    if (!reading || !wm_stats_usable(reading))
        return (struct wm_known) { 0 };
    return (struct wm_known) { true, reading->value };
}

/* Whether nothing is known at it. */
bool wm_tick_is_pause(const struct wm_tick *tick);

/* A gauge. The area under it is that of straight lines between neighbouring
 * readings; where one is missing there is no line, and the time is not covered. */
struct wm_gauge_stats {
    uint64_t count; /* usable readings; the rest is meaningful when there are any */
    double min, max, last;
    double integral; /* value times seconds, over the covered time */
    double covered_s;
    int64_t last_ns;
    bool joined; /* the last reading was usable, so a line can go on from it */
};

void wm_gauge_add(struct wm_gauge_stats *stats, const struct wm_reading *reading);

/* The mean over the covered time; of a lone reading, its value. */
double wm_gauge_mean(const struct wm_gauge_stats *stats);

/* A counter. A missing reading costs nothing, as the next one makes up for it. A
 * decrease adds nothing: these are counters since boot, of which the kernel may
 * take a little back, and counting anew from zero would add the whole uptime. */
struct wm_counter_stats {
    uint64_t count; /* usable readings; the rest is meaningful when there are any */
    double first, last;
    double total; /* of the increases */
    int64_t first_ns, last_ns;
};

void wm_counter_add(struct wm_counter_stats *stats, const struct wm_reading *reading);

/* A running total from one time that it was told to the next: what every rate is made of.
 * What was not reported in between is part of the next step. A total that was set back
 * makes a step below 0, and who asks knows what that means; all that wraps was made whole
 * before.
 */
struct wm_stride {
    bool is_told;
    int64_t when_ns; /* when it was reported last */
    double total;    /* what it was then */
    double most;     /* it can come to in a second; 0: as much as it says */
};

/* Takes what is told now. False where nothing was told before; otherwise how far it has
 * come since then, and in what time. */
bool wm_stride_next(struct wm_stride *stride, int64_t when_ns, double total,
                    double *ret_step, double *ret_seconds);

/* The rate since then, per second. Where less than `least_s` has passed, or no time at all,
 * none is known yet, and the step goes on. It is no more than the most there can be: the
 * total and the time are read a moment apart, which makes 201 % of two cores. */
struct wm_known wm_stride_rate(struct wm_stride *stride, int64_t when_ns, double total,
                               double least_s);

/* The highest mean over any window that is long enough to be trusted. Windows
 * come back to back; a short one is joined with its neighbour, since a rate over
 * a millisecond between two late ticks says nothing. */
struct wm_window_max {
    double sum, seconds;           /* of the windows still too short */
    double last_sum, last_seconds; /* of the last one that was long enough */
    double max; /* the highest such mean; meaningful when last_seconds > 0 */
    double all_sum, all_seconds; /* of those that were long enough, */
    double shortest_s;           /* as it was known then */
};

/* What is beyond a number is left out. Once windows have to be much longer than was known
 * before, those that were too short are one; infinite says no more than not yet. */
void wm_window_max_add(struct wm_window_max *windows, double value, double seconds,
                       double shortest_s);

/* Not known when there was no window. */
struct wm_known wm_window_max_value(const struct wm_window_max *windows);

#endif
