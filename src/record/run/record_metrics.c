/* SPDX-License-Identifier: Apache-2.0 */
/* record_metrics.c - series of numbers that the measured program writes itself. */
#include "record/run/record_metrics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base_array.h"
#include "base/base_clock.h"
#include "base/text/base_json.h"
#include "base/text/base_lines.h"
#include "base/text/base_localtime.h"

enum {
    LINE_MAX_LENGTH = 1024 * 1024,
    BAD_LINES_SHOWN = 8, /* of more only the number is said */
};

/* What a time may lie outside of the run: one in whole seconds, and any, as two clocks
 * are not read at the same moment. */
#define SECOND_SLACK_NS WM_NS_PER_S
#define SLACK_NS (10 * WM_NS_PER_MS)

/* Beyond it nanoseconds would overflow; it is in the year 2100. */
#define LATEST_S 4.1e9

static struct wm_metric *find_metric(const struct wm_metrics *metrics, const char *name)
{
    for (size_t i = 0; i < metrics->count; i++) {
        if (strcmp(metrics->all[i].name, name) == 0)
            return &metrics->all[i];
    }
    return NULL;
}

static struct wm_metric *add_metric(struct wm_metrics *metrics, const char *name)
{
    struct wm_metric *grown = realloc(metrics->all, (metrics->count + 1) * sizeof(*grown));

    if (!grown)
        return NULL;
    metrics->all = grown;
    grown += metrics->count;
    *grown = (struct wm_metric) { .name = strdup(name) };
    if (!grown->name)
        return NULL;
    metrics->count++;
    return grown;
}

static size_t count_points(const struct wm_metrics *metrics)
{
    size_t count = 0;

    for (size_t i = 0; i < metrics->count; i++)
        count += metrics->all[i].count;
    return count;
}

int wm_metrics_add(struct wm_metrics *metrics, const char *name, int64_t when_ns,
                   double value, struct wm_error *err)
{
    struct wm_metric *metric = find_metric(metrics, name);

    if (!isfinite(value) || when_ns < 0 || when_ns > WM_TIME_MAX_NS)
        return wm_fail(err, WM_EINVAL, "no number");
    if (name[0] == '\0')
        return wm_fail(err, WM_EINVAL, "a number without a name");
    if (strlen(name) > WM_METRIC_NAME_MAX)
        return wm_fail(err, WM_EINVAL, "a name of more than %d bytes", WM_METRIC_NAME_MAX);
    if ((!metric && metrics->count == WM_METRICS_MAX) ||
        count_points(metrics) == WM_METRIC_POINTS_MAX)
        return wm_fail(err, WM_EINVAL, "more than %d values or %d names",
                       WM_METRIC_POINTS_MAX, WM_METRICS_MAX);
    if (!metric && !(metric = add_metric(metrics, name)))
        return wm_fail_memory(err, "metrics");
    if (wm_array_reserve(&metric->points, metric->count, &metric->room,
                         sizeof(*metric->points)) < 0)
        return wm_fail_memory(err, "metrics");
    metric->points[metric->count] = (struct wm_metric_point) {
        .when_ns = when_ns,
        .value = value,
        .order = metric->count,
    };
    metric->count++;
    return WM_OK;
}

/* Two of the same time stay as they came. */
static int compare_points(const void *a, const void *b)
{
    const struct wm_metric_point *left = a, *right = b;

    if (left->when_ns != right->when_ns)
        return left->when_ns < right->when_ns ? -1 : 1;
    return (left->order > right->order) - (left->order < right->order);
}

void wm_metrics_sort(struct wm_metrics *metrics)
{
    for (size_t i = 0; i < metrics->count; i++) {
        struct wm_metric *metric = &metrics->all[i];
        if (metric->count > 1)
            qsort(metric->points, metric->count, sizeof(*metric->points), compare_points);
    }
}

void wm_metrics_release(struct wm_metrics *metrics)
{
    for (size_t i = 0; i < metrics->count; i++) {
        free(metrics->all[i].name);
        free(metrics->all[i].points);
    }
    free(metrics->all);
    metrics->all = NULL;
    metrics->count = 0;
}

/* While a file is read. */
struct reading {
    const struct wm_metrics_window *window;
    struct wm_metrics *metrics;
    size_t lines, bad_lines, outside;
};

static void note(struct reading *reading, const char *text)
{
    char *all = reading->metrics->note;
    size_t size = sizeof(reading->metrics->note), used = strlen(all);

    snprintf(all + used, size - used, "%s%s", used > 0 ? "; " : "", text);
}

static void note_bad_line(struct reading *reading, size_t number, const char *why)
{
    char text[96];

    if (reading->bad_lines++ >= BAD_LINES_SHOWN)
        return;
    snprintf(text, sizeof(text), "line %zu: %.70s", number, why);
    note(reading, text);
}

/* Why there is none, or NULL. */
static const char *read_time(const json_t *value, int64_t *ret_unix_ns)
{
    if (!value)
        return "no \"time\"";
    if (json_is_number(value)) {
        double seconds = json_number_value(value);
        if (!(seconds > 0 && seconds < LATEST_S))
            return "its time is not in seconds since 1970";
        *ret_unix_ns = (int64_t)(seconds * 1e9);
        return NULL;
    }
    if (json_is_string(value) &&
        wm_localtime_parse_zoned(json_string_value(value), json_string_length(value), 0,
                                 ret_unix_ns))
        return NULL;
    return "its time is neither in seconds since 1970 nor RFC 3339";
}

/* The same in the time of the run; false where the run was not there. */
static bool place(const struct reading *reading, int64_t unix_ns, int64_t *ret_when_ns)
{
    const struct wm_metrics_window *window = reading->window;
    int64_t when_ns = unix_ns - window->unix_at_zero_ns;
    int64_t slack_ns = unix_ns % WM_NS_PER_S == 0 ? SECOND_SLACK_NS : SLACK_NS;

    if (when_ns < window->from_ns - slack_ns || when_ns > window->to_ns + slack_ns)
        return false;
    if (when_ns > window->to_ns)
        when_ns = window->to_ns;
    *ret_when_ns = when_ns < window->from_ns ? window->from_ns : when_ns;
    return true;
}

/* What is no number in a line is not for us: names, texts, lists. A number that cannot be
 * used costs itself alone. */
static int take_numbers(struct reading *reading, json_t *line, size_t number,
                        int64_t when_ns, struct wm_error *err)
{
    struct wm_error first = { 0 };
    bool has_number = false;
    const char *name;
    json_t *value;

    json_object_foreach(line, name, value)
    {
        struct wm_error why;
        if (strcmp(name, "time") == 0 || !json_is_number(value))
            continue;
        has_number = true;
        int status =
            wm_metrics_add(reading->metrics, name, when_ns, json_number_value(value), &why);
        if (status == WM_ENOMEM)
            return wm_fail_memory(err, "metrics");
        if (status < 0 && first.text[0] == '\0')
            first = why;
    }
    if (!has_number)
        note_bad_line(reading, number, "no number");
    else if (first.text[0])
        note_bad_line(reading, number, first.text);
    return WM_OK;
}

static int take_line(struct reading *reading, char *text, size_t length, size_t number,
                     struct wm_error *err)
{
    int64_t unix_ns = 0, when_ns = 0;
    json_t *line = NULL;
    int status = WM_OK;

    if (strspn(text, " \t\r") >= length)
        return WM_OK;
    reading->lines++;
    if (wm_python_json(text, length, &line) < 0)
        return wm_fail_memory(err, "metrics");
    const char *why = json_is_object(line)
                          ? read_time(json_object_get(line, "time"), &unix_ns)
                          : "not a JSON object";
    if (why)
        note_bad_line(reading, number, why);
    else if (!place(reading, unix_ns, &when_ns))
        reading->outside++;
    else
        status = take_numbers(reading, line, number, when_ns, err);
    json_decref(line);
    return status;
}

/* A program that was killed leaves half a line, or one without its end. What follows a line
 * that is too long is not read. */
static int take_lines(struct reading *reading, struct wm_lines *lines, struct wm_error *err)
{
    struct wm_error why;
    size_t length;
    char *text;
    int status;

    while ((status = wm_lines_next(lines, &text, &length, &why)) > 0) {
        status = take_line(reading, text, length, lines->number, err);
        if (status < 0)
            return status;
    }
    if (status == WM_ENOMEM)
        return wm_fail_memory(err, "metrics");
    if (status < 0) {
        reading->lines++;
        note_bad_line(reading, lines->number,
                      status == WM_EFORMAT ? "longer than 1 MiB; the rest is not read"
                                           : why.text);
    }
    return WM_OK;
}

static void note_end(struct reading *reading)
{
    char text[96];

    if (reading->bad_lines > BAD_LINES_SHOWN) {
        snprintf(text, sizeof(text), "and %zu lines more that cannot be used",
                 reading->bad_lines - BAD_LINES_SHOWN);
        note(reading, text);
    }
    if (reading->outside > 0) {
        snprintf(text, sizeof(text), "%zu of %zu lines are of another time than the run",
                 reading->outside, reading->lines);
        note(reading, text);
    }
    if (reading->lines == 0)
        note(reading, "the file is empty");
}

int wm_metrics_read(const char *path, const struct wm_metrics_window *window,
                    struct wm_metrics *metrics, struct wm_error *err)
{
    struct reading reading = { .window = window, .metrics = metrics };
    struct wm_lines lines = { 0 };
    struct wm_error why = { 0 };
    struct stat info;

    metrics->note[0] = '\0';

    /* Nothing that could be waited for: a pipe has no end. */
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) {
        note(&reading, "not a regular file");
        return WM_OK;
    }
    int status = wm_lines_open(&lines, path, LINE_MAX_LENGTH, &why);
    if (status == WM_OK) {
        status = take_lines(&reading, &lines, err);
        note_end(&reading);
        wm_metrics_sort(metrics);
    } else if (status == WM_ENOMEM) {
        status = wm_fail_memory(err, "metrics");
    } else {
        note(&reading, why.text);
        status = WM_OK;
    }
    wm_lines_close(&lines);
    return status;
}

static json_t *points_json(const struct wm_metric *metric)
{
    json_t *array = json_array();

    for (size_t i = 0; i < metric->count && array; i++) {
        const struct wm_metric_point *point = &metric->points[i];
        wm_json_add(&array, json_pack("[If]", (json_int_t)point->when_ns, point->value));
    }
    return array;
}

json_t *wm_metrics_json(const struct wm_metrics *metrics)
{
    json_t *series = json_object(), *object = json_object();

    for (size_t i = 0; i < metrics->count; i++)
        wm_json_set(&series, metrics->all[i].name, points_json(&metrics->all[i]));
    wm_json_set(&object, "series", series);
    wm_json_set(&object, "note", wm_text_json(metrics->note));
    return object;
}

static int wrong(struct wm_error *err)
{
    return wm_fail(err, WM_EFORMAT, "'metrics' is not a set of series");
}

static int read_series(const char *name, const json_t *points, struct wm_metrics *metrics,
                       struct wm_error *err)
{
    if (!json_is_array(points))
        return wrong(err);
    for (size_t i = 0; i < json_array_size(points); i++) {
        const json_t *point = json_array_get(points, i);
        const json_t *when = json_array_get(point, 0), *value = json_array_get(point, 1);
        if (!json_is_integer(when) || !json_is_number(value))
            return wrong(err);
        int status = wm_metrics_add(metrics, name, json_integer_value(when),
                                    json_number_value(value), err);
        if (status < 0)
            return status == WM_ENOMEM ? status : wrong(err);
    }
    return WM_OK;
}

int wm_metrics_from_json(const json_t *object, struct wm_metrics *metrics,
                         struct wm_error *err)
{
    json_t *series = json_object_get(object, "series"), *points;
    const char *text = json_string_value(json_object_get(object, "note")), *name;
    int status = WM_OK;

    if (!object || json_is_null(object))
        return WM_OK;
    if (!json_is_object(series))
        return wrong(err);
    snprintf(metrics->note, sizeof(metrics->note), "%s", text ? text : "");
    json_object_foreach(series, name, points)
    {
        status = read_series(name, points, metrics, err);
        if (status < 0)
            return status;
    }
    wm_metrics_sort(metrics);
    return WM_OK;
}
