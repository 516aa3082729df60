/* SPDX-License-Identifier: Apache-2.0 */
/* record_stats.c - means, totals and maxima of a series. */
#include "record/record_stats.h"

#include <math.h>

double wm_stats_seconds(int64_t from_ns, int64_t to_ns)
{
    if (to_ns <= from_ns)
        return 0;
    return (double)((uint64_t)to_ns - (uint64_t)from_ns) / 1e9;
}

bool wm_tick_is_pause(const struct wm_tick *tick)
{
    for (size_t i = 0; i < tick->count; i++) {
        if (tick->readings[i].state == WM_READING_OK)
            return false;
    }
    return true;
}

void wm_gauge_add(struct wm_gauge_stats *stats, const struct wm_reading *reading)
{
    if (!wm_stats_usable(reading)) {
        stats->joined = false;
        return;
    }

    double value = reading->value;
    if (stats->joined) {
        double seconds = wm_stats_seconds(stats->last_ns, reading->when_ns);
        stats->integral += seconds * (stats->last + value) / 2;
        stats->covered_s += seconds;
    }
    stats->min = stats->count ? fmin(stats->min, value) : value;
    stats->max = stats->count ? fmax(stats->max, value) : value;
    stats->last = value;
    stats->last_ns = reading->when_ns;
    stats->joined = true;
    stats->count++;
}

double wm_gauge_mean(const struct wm_gauge_stats *stats)
{
    return stats->covered_s > 0 ? stats->integral / stats->covered_s : stats->last;
}

void wm_counter_add(struct wm_counter_stats *stats, const struct wm_reading *reading)
{
    if (!wm_stats_usable(reading))
        return;

    if (stats->count == 0) {
        stats->first = reading->value;
        stats->first_ns = reading->when_ns;
    } else {
        stats->total += fmax(reading->value - stats->last, 0);
    }
    stats->last = reading->value;
    stats->last_ns = reading->when_ns;
    stats->count++;
}

bool wm_stride_next(struct wm_stride *stride, int64_t when_ns, double total,
                    double *ret_step, double *ret_seconds)
{
    const struct wm_stride last = *stride;

    stride->is_told = true;
    stride->when_ns = when_ns;
    stride->total = total;
    if (!last.is_told)
        return false;
    *ret_step = total - last.total;
    *ret_seconds = wm_stats_seconds(last.when_ns, when_ns);
    return true;
}

struct wm_known wm_stride_rate(struct wm_stride *stride, int64_t when_ns, double total,
                               double least_s)
{
    double step, seconds = wm_stats_seconds(stride->when_ns, when_ns);

    if (stride->is_told && (seconds <= 0 || seconds < least_s))
        return (struct wm_known) { 0 };
    if (!wm_stride_next(stride, when_ns, total, &step, &seconds))
        return (struct wm_known) { 0 };
    double rate = step / seconds;
    bool is_too_much = stride->most > 0 && rate > stride->most;
    return (struct wm_known) { true, is_too_much ? stride->most : rate };
}

/* Periods that are measured differ by some percent. */
#define MUCH_LONGER 1.5

static void join_windows(struct wm_window_max *windows)
{
    windows->sum += windows->all_sum;
    windows->seconds += windows->all_seconds;
    windows->all_sum = windows->all_seconds = 0;
    windows->last_sum = windows->last_seconds = 0;
}

void wm_window_max_add(struct wm_window_max *windows, double value, double seconds,
                       double shortest_s)
{
    if (!isfinite(value) || seconds <= 0)
        return;

    if (isfinite(shortest_s) && shortest_s > MUCH_LONGER * windows->shortest_s)
        join_windows(windows);
    if (isfinite(shortest_s))
        windows->shortest_s = fmax(windows->shortest_s, shortest_s);
    windows->sum += value * seconds;
    windows->seconds += seconds;
    if (windows->seconds < shortest_s)
        return;

    windows->all_sum += windows->sum;
    windows->all_seconds += windows->seconds;
    double mean = windows->sum / windows->seconds;
    windows->max = windows->last_seconds > 0 ? fmax(windows->max, mean) : mean;
    windows->last_sum = windows->sum;
    windows->last_seconds = windows->seconds;
    windows->sum = 0;
    windows->seconds = 0;
}

struct wm_known wm_window_max_value(const struct wm_window_max *windows)
{
    double seconds = windows->last_seconds + windows->seconds;

    if (seconds <= 0)
        return (struct wm_known) { 0 };
    if (windows->seconds <= 0)
        return (struct wm_known) { true, windows->max };

    double mean = (windows->last_sum + windows->sum) / seconds;
    return (struct wm_known) { true, windows->last_seconds > 0 ? fmax(windows->max, mean)
                                                               : mean };
}
