/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_series.c - arithmetic on series in segments. */
#include "analyze/experiment/analyze_experiment.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_array.h"
#include "base/text/base_number.h"
#include "record/record_stats.h"

int wm_series_new(const char *name, enum wm_series_kind kind, const char *unit,
                  struct wm_series **ret_series, struct wm_error *err)
{
    struct wm_series *series = calloc(1, sizeof(*series));

    if (series)
        series->name = strdup(name);
    if (!series || !series->name) {
        free(series);
        return wm_fail_memory(err, "series");
    }
    series->kind = kind;
    snprintf(series->unit, sizeof(series->unit), "%s", unit);
    *ret_series = series;
    return WM_OK;
}

void wm_series_free(struct wm_series *series)
{
    if (!series)
        return;
    free(series->name);
    free(series->times);
    free(series->values);
    free(series->starts);
    free(series);
}

static int add_start(struct wm_series *series)
{
    if (wm_array_reserve(&series->starts, series->start_count, &series->start_room,
                         sizeof(*series->starts)) < 0)
        return WM_ENOMEM;
    series->starts[series->start_count++] = series->count;
    return WM_OK;
}

int wm_series_add(struct wm_series *series, int64_t unix_ns, double value,
                  struct wm_error *err)
{
    if (series->is_open && unix_ns < series->times[series->count - 1])
        return WM_OK;
    if (wm_array_reserve(&series->times, series->count, &series->time_room,
                         sizeof(*series->times)) < 0 ||
        wm_array_reserve(&series->values, series->count, &series->value_room,
                         sizeof(*series->values)) < 0)
        return wm_fail_memory(err, "series");
    if (!series->is_open && add_start(series) < 0)
        return wm_fail_memory(err, "series");
    series->is_open = true;
    series->times[series->count] = unix_ns;
    series->values[series->count] = value;
    series->count++;
    return WM_OK;
}

void wm_series_break(struct wm_series *series)
{
    series->is_open = false;
}

size_t wm_series_segment_count(const struct wm_series *series)
{
    return series->start_count;
}

struct wm_series_segment wm_series_segment(const struct wm_series *series, size_t index)
{
    size_t start = series->starts[index];
    size_t end =
        index + 1 < series->start_count ? series->starts[index + 1] : series->count;

    return (struct wm_series_segment) {
        .unix_ns = series->times + start,
        .values = series->values + start,
        .count = end - start,
        .first_known = series->kind == WM_SERIES_MEANS ? 1 : 0,
    };
}

/* From one point to the next. */
struct span {
    int64_t from_ns, to_ns;
    double from, to; /* the values there */
};

/* A span of the line from point `index` - 1 to `index`. */
static struct span span_of(const struct wm_series *series,
                           const struct wm_series_segment *segment, size_t index)
{
    struct span span = {
        .from_ns = segment->unix_ns[index - 1],
        .to_ns = segment->unix_ns[index],
        .from = segment->values[index - 1],
        .to = segment->values[index],
    };

    if (series->kind == WM_SERIES_MEANS)
        span.from = span.to;
    return span;
}

static double value_within(const struct span *span, int64_t unix_ns)
{
    double length = (double)(span->to_ns - span->from_ns);
    double part = length > 0 ? (double)(unix_ns - span->from_ns) / length : 1;

    return span->from + (span->to - span->from) * part;
}

/* The part of a span that lies in the range; false where none does. */
static bool clip(struct span *span, const struct wm_range *range)
{
    const struct span whole = *span;

    if (span->from_ns < range->from_ns)
        span->from_ns = range->from_ns;
    if (span->to_ns > range->to_ns)
        span->to_ns = range->to_ns;
    if (span->from_ns >= span->to_ns)
        return false;
    span->from = value_within(&whole, span->from_ns);
    span->to = value_within(&whole, span->to_ns);
    return true;
}

static struct wm_range range_or_all(const struct wm_range *range)
{
    struct wm_range result = range ? *range : (struct wm_range) { 0 };

    if (result.to_ns == 0)
        result.to_ns = INT64_MAX;
    return result;
}

/* What the range holds. */
struct sums {
    double area, growth; /* value by time; last less first */
    double seconds;
    struct wm_known max;
    double points; /* those in the range, and their sum, for want of any time */
    double points_sum;
};

static void raise_max(struct wm_known *max, double value)
{
    *max = (struct wm_known) { true, max->known ? fmax(max->number, value) : value };
}

static void add_span(struct sums *sums, const struct span *span)
{
    double seconds = wm_stats_seconds(span->from_ns, span->to_ns);

    sums->area += (span->from + span->to) / 2 * seconds;
    sums->growth += span->to - span->from;
    sums->seconds += seconds;
    raise_max(&sums->max, fmax(span->from, span->to));
}

static struct sums sum_up(const struct wm_series *series, const struct wm_range *range)
{
    struct sums sums = { 0 };

    for (size_t i = 0; i < series->start_count; i++) {
        struct wm_series_segment segment = wm_series_segment(series, i);
        for (size_t k = 0; k < segment.count; k++) {
            if (segment.unix_ns[k] >= range->from_ns &&
                segment.unix_ns[k] <= range->to_ns && k >= segment.first_known) {
                sums.points++;
                sums.points_sum += segment.values[k];
                raise_max(&sums.max, segment.values[k]);
            }
            if (k == 0)
                continue;
            struct span span = span_of(series, &segment, k);
            if (clip(&span, range))
                add_span(&sums, &span);
        }
    }
    return sums;
}

/* "W" of "J", "W s" of "W" but for the joules that those are. */
static void unit_of(const struct wm_series *series, enum wm_figure_kind kind,
                    struct wm_figure *figure)
{
    bool is_rate = series->kind == WM_SERIES_TOTAL && kind != WM_FIGURE_TOTAL;
    bool is_area = series->kind != WM_SERIES_TOTAL && kind == WM_FIGURE_TOTAL;
    const char *unit = series->unit;

    if (is_rate && strcmp(unit, "J") == 0)
        snprintf(figure->unit, sizeof(figure->unit), "W");
    else if (is_area && strcmp(unit, "W") == 0)
        snprintf(figure->unit, sizeof(figure->unit), "J");
    else if (is_rate && strcmp(unit, "s") == 0)
        snprintf(figure->unit, sizeof(figure->unit), "s/s");
    else
        snprintf(figure->unit, sizeof(figure->unit), "%s%s%s", unit,
                 is_area && unit[0] ? " " : "",
                 is_rate   ? "/s"
                 : is_area ? "s"
                           : "");
}

static int highest_rate(const struct wm_series *series, const struct wm_range *range,
                        struct wm_known *ret_max, struct wm_error *err)
{
    struct wm_series *rate = NULL;

    int status = wm_series_rate(series, WM_PEAK_PERIODS * series->period_s, series->name,
                                series->unit, &rate, err);
    if (status < 0)
        return status;
    *ret_max = sum_up(rate, range).max;
    wm_series_free(rate);
    return WM_OK;
}

/* Of all that there is; how sure a part of it is nobody has found out. */
static void add_doubt(const struct wm_series *series, enum wm_figure_kind kind,
                      const struct wm_range *range, struct wm_figure *figure)
{
    const struct wm_series_doubt *doubt = &series->doubt;
    bool is_part = range && (range->from_ns != 0 || range->to_ns != 0);
    double ratio = hypot(doubt->systematic, sqrt(doubt->random_squares)) / doubt->joules;

    figure->missing_s = doubt->missing_s;
    figure->unfinished = doubt->unfinished;
    figure->has_uncertainty = doubt->is_energy && !doubt->is_vague && !is_part &&
                              kind != WM_FIGURE_MAX && doubt->joules > 0 && isfinite(ratio);
    figure->uncertainty = figure->has_uncertainty ? ratio : 0;
}

/* A total or an average; that of lone points, which cover no time, is of their values. */
static struct wm_known value_of(const struct wm_series *series, enum wm_figure_kind kind,
                                const struct sums *sums)
{
    bool is_total = series->kind == WM_SERIES_TOTAL, is_average = kind == WM_FIGURE_AVERAGE;
    double total = is_total ? sums->growth : sums->area;

    if (sums->seconds > 0)
        return (struct wm_known) { true, is_average ? total / sums->seconds : total };
    if (is_total || !is_average || sums->points == 0)
        return (struct wm_known) { 0 };
    return (struct wm_known) { true, sums->points_sum / sums->points };
}

int wm_series_figure(const struct wm_series *series, enum wm_figure_kind kind,
                     const struct wm_range *range, struct wm_figure *ret_figure,
                     struct wm_error *err)
{
    const struct wm_range whole = range_or_all(range);
    const struct sums sums = sum_up(series, &whole);
    struct wm_figure figure = { .seconds = sums.seconds };
    struct wm_known value = sums.max;
    int status = WM_OK;

    unit_of(series, kind, &figure);
    add_doubt(series, kind, range, &figure);
    figure.is_short = sums.seconds < WM_SENSOR_PERIODS * series->period_s;
    if (kind != WM_FIGURE_MAX)
        value = value_of(series, kind, &sums);
    else if (series->kind == WM_SERIES_TOTAL)
        status = highest_rate(series, &whole, &value, err);
    if (status < 0)
        return status;
    if (!value.known || !isfinite(value.number))
        return wm_fail(err, WM_ENODEV, "%.64s: there is no value in this range",
                       series->name);
    figure.value = value.number;
    *ret_figure = figure;
    return WM_OK;
}

/* The first point of the segment that is not before that moment; its count if none. */
static size_t first_from(const struct wm_series_segment *segment, int64_t unix_ns)
{
    size_t low = 0, high = segment->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (segment->unix_ns[middle] < unix_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool wm_series_at(const struct wm_series *series, int64_t unix_ns, double *ret_value)
{
    for (size_t i = 0; i < series->start_count; i++) {
        struct wm_series_segment segment = wm_series_segment(series, i);
        if (unix_ns < segment.unix_ns[0] || unix_ns > segment.unix_ns[segment.count - 1])
            continue;
        size_t index = first_from(&segment, unix_ns);
        if (index < segment.first_known)
            continue;
        double value = segment.values[index];
        if (segment.unix_ns[index] != unix_ns) {
            struct span span = span_of(series, &segment, index);
            value = value_within(&span, unix_ns);
        }
        if (isfinite(value)) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

/* The means of one segment. The last window, where it is short, belongs to the one
 * before it. */
static int add_rates(const struct wm_series_segment *segment, double shortest_s,
                     struct wm_series *rate, struct wm_error *err)
{
    size_t from = 0;

    wm_series_break(rate);
    int status = wm_series_add(rate, segment->unix_ns[0], 0, err);
    for (size_t k = 1; k < segment->count && status == WM_OK; k++) {
        double seconds = wm_stats_seconds(segment->unix_ns[from], segment->unix_ns[k]);
        double left_s =
            wm_stats_seconds(segment->unix_ns[k], segment->unix_ns[segment->count - 1]);
        bool is_last = k + 1 == segment->count;
        if (seconds <= 0 || (!is_last && (seconds < shortest_s || left_s < shortest_s)))
            continue;
        status = wm_series_add(rate, segment->unix_ns[k],
                               (segment->values[k] - segment->values[from]) / seconds, err);
        from = k;
    }
    return status;
}

int wm_series_rate(const struct wm_series *total, double shortest_s, const char *name,
                   const char *unit, struct wm_series **ret_rate, struct wm_error *err)
{
    struct wm_series *rate = NULL;

    int status = wm_series_new(name, WM_SERIES_MEANS, unit, &rate, err);
    if (status < 0)
        return status;
    rate->origin = total->origin;
    rate->doubt = total->doubt;
    rate->period_s = total->period_s;
    rate->zero_ns = total->zero_ns;
    for (size_t i = 0; i < total->start_count && status == WM_OK; i++) {
        struct wm_series_segment segment = wm_series_segment(total, i);
        status = add_rates(&segment, shortest_s, rate, err);
    }
    if (status < 0)
        wm_series_free(rate);
    else
        *ret_rate = rate;
    return status;
}

static int compare_times(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

    return (left > right) - (left < right);
}

int wm_series_union(const struct wm_series *const series[], size_t count,
                    const struct wm_range *range, int64_t **ret_times, size_t *ret_count,
                    struct wm_error *err)
{
    const struct wm_range whole = range_or_all(range);
    size_t room = 1, used = 0, kept = 0;

    for (size_t i = 0; i < count; i++)
        room += series[i]->count;
    int64_t *times = calloc(room, sizeof(*times));
    if (!times)
        return wm_fail_memory(err, "series");
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < series[i]->count; k++) {
            int64_t at_ns = series[i]->times[k];
            if (at_ns >= whole.from_ns && at_ns <= whole.to_ns)
                times[used++] = at_ns;
        }
    }
    qsort(times, used, sizeof(*times), compare_times);
    for (size_t i = 0; i < used; i++) {
        if (kept == 0 || times[i] != times[kept - 1])
            times[kept++] = times[i];
    }
    *ret_times = times;
    *ret_count = kept;
    return WM_OK;
}
