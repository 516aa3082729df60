/* SPDX-License-Identifier: Apache-2.0 */
/* compat_aipm_write_results.c - an experiment's own numbers, as AIPowerMeter keeps them. */
#include "compat/aipowermeter/compat_aipm_write_results.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/text/base_json.h"
#include "base/text/base_localtime.h"
#include "base/text/base_utf8.h"
#include "compat/aipowermeter/compat_aipm_beside.h"
#include "record/record_metrics.h"

#define RESULTS "results_exp.json"
#define TIME_KEY "end_training_epoch"

enum { FILE_MAX = 16 * 1024 * 1024 };

static int out_of_memory(const char *path, struct wm_error *err)
{
    return wm_fail(err, WM_ENOMEM, "%s: out of memory", wm_text_path(path));
}

/* What there is of the array already; a new one where there is no file. */
static int load_array(const char *name, json_t **ret_array, struct wm_error *err)
{
    char *text = NULL;
    size_t length = 0;
    json_t *array = NULL;

    if (access(name, F_OK) < 0) {
        *ret_array = json_array();
        return *ret_array ? WM_OK : out_of_memory(name, err);
    }
    int status = wm_file_slurp(name, FILE_MAX, &text, &length, err);
    if (status < 0)
        return status;
    int loaded = wm_python_json(text, length, &array);
    free(text);
    if (loaded < 0)
        return out_of_memory(name, err);
    if (!json_is_array(array)) {
        json_decref(array);
        return wm_fail(err, WM_EFORMAT, "%s: no array of records; nothing is added to it",
                       wm_text_path(name));
    }
    *ret_array = array;
    return WM_OK;
}

/* The earliest time of all metrics from `next` of each on; false past the last. */
static bool next_time(const struct wm_result *result, const size_t *next, int64_t *ret_ns)
{
    bool found = false;

    for (size_t i = 0; i < result->metrics.count; i++) {
        const struct wm_metric *metric = &result->metrics.all[i];
        if (next[i] == metric->count)
            continue;
        int64_t when_ns = metric->points[next[i]].when_ns;
        if (!found || when_ns < *ret_ns)
            *ret_ns = when_ns;
        found = true;
    }
    return found;
}

/* What was told at one time is one record. */
static json_t *record_at(const struct wm_run *run, const struct wm_result *result,
                         size_t *next, int64_t when_ns)
{
    char time[WM_LOCALTIME_SIZE];

    wm_localtime_format(run->anchor_unix_ns - run->anchor_ns + when_ns, time);
    json_t *record = json_pack("{s:s}", TIME_KEY, time);
    for (size_t i = 0; i < result->metrics.count && record; i++) {
        const struct wm_metric *metric = &result->metrics.all[i];
        if (next[i] == metric->count || metric->points[next[i]].when_ns != when_ns)
            continue;
        wm_json_set(&record, metric->name, json_real(metric->points[next[i]].value));
        next[i]++;
    }
    return record;
}

static int add_records(json_t *array, const char *path, const struct wm_run *run,
                       const struct wm_result *result, struct wm_error *err)
{
    size_t *next = calloc(result->metrics.count + 1, sizeof(*next));
    int64_t when_ns = 0;
    int status = next ? WM_OK : out_of_memory(path, err);

    while (status == WM_OK && next_time(result, next, &when_ns)) {
        if (json_array_append_new(array, record_at(run, result, next, when_ns)) < 0)
            status = out_of_memory(path, err);
    }
    free(next);
    return status;
}

static int write_array(const char *path, const json_t *array, struct wm_error *err)
{
    static const size_t style =
        JSON_ENSURE_ASCII | JSON_INDENT(1) | JSON_REAL_PRECISION(15);
    char *dumped = json_dumps(array, style), *text = NULL;
    int status;

    if (dumped && asprintf(&text, "%s\n", dumped) < 0)
        text = NULL;
    status = text ? wm_beside_write(path, RESULTS, text, err) : out_of_memory(path, err);
    free(text);
    free(dumped);
    return status;
}

int wm_aipm_write_results(const char *path, const struct wm_run *run,
                          const struct wm_result *result, struct wm_error *err)
{
    json_t *array = NULL;

    if (result->metrics.count == 0)
        return WM_OK;
    char *name = wm_beside_path(path, RESULTS);
    if (!name)
        return out_of_memory(path, err);
    int status = load_array(name, &array, err);
    if (status == WM_OK)
        status = add_records(array, path, run, result, err);
    if (status == WM_OK)
        status = write_array(path, array, err);
    json_decref(array);
    free(name);
    return status;
}

/* While records are read; their local times only grow. */
struct reading {
    const struct wm_metrics_window *window;
    struct wm_metrics *metrics;
    int64_t last_unix_ns;
};

/* The numbers of one object; WM_ENOMEM is the only failure. */
static int take_numbers(const struct reading *reading, json_t *object, int64_t when_ns)
{
    const char *name;
    json_t *value;

    json_object_foreach(object, name, value)
    {
        if (json_is_number(value) &&
            wm_metrics_add(reading->metrics, name, when_ns, json_number_value(value),
                           NULL) == WM_ENOMEM)
            return WM_ENOMEM;
    }
    return WM_OK;
}

static int take_record(struct reading *reading, json_t *record)
{
    const json_t *time = json_object_get(record, TIME_KEY);
    const struct wm_metrics_window *window = reading->window;

    if (!time)
        time = json_object_get(record, "date");
    if (!json_is_string(time) ||
        !wm_localtime_parse_zoned(json_string_value(time), json_string_length(time),
                                  reading->last_unix_ns, &reading->last_unix_ns))
        return WM_OK;
    int64_t when_ns = reading->last_unix_ns - window->unix_at_zero_ns;
    if (when_ns < window->from_ns || when_ns >= window->to_ns)
        return WM_OK;
    int status = take_numbers(reading, record, when_ns);
    return status < 0 ? status
                      : take_numbers(reading, json_object_get(record, "metrics"), when_ns);
}

/* A record per line. */
static int take_lines(struct reading *reading, char *text)
{
    int status = WM_OK;

    for (char *line = text; *line && status == WM_OK;) {
        size_t length = strcspn(line, "\n");
        bool is_last = line[length] == '\0';
        json_t *record = NULL;
        if (wm_python_json(line, length, &record) < 0)
            status = WM_ENOMEM;
        else
            status = take_record(reading, record);
        json_decref(record);
        line += length + !is_last;
    }
    return status;
}

static int take_all(struct reading *reading, json_t *whole)
{
    const char *key;
    json_t *record;
    size_t index;

    json_array_foreach(whole, index, record)
    {
        if (take_record(reading, record) < 0)
            return WM_ENOMEM;
    }
    json_object_foreach(whole, key, record)
    {
        if (json_is_object(record) && take_record(reading, record) < 0)
            return WM_ENOMEM;
    }
    return WM_OK;
}

int wm_aipm_read_results(const char *path, const struct wm_metrics_window *window,
                         struct wm_metrics *metrics, struct wm_error *err)
{
    struct reading reading = { .window = window, .metrics = metrics };
    char *text = NULL;
    json_t *whole = NULL;
    size_t length = 0;
    int status = WM_OK;

    if (wm_beside_read(path, RESULTS, &text, &length, err) < 0)
        return WM_ENOMEM;
    if (text) {
        int loaded = wm_python_json(text, length, &whole);
        bool has_lines = loaded == 0 || json_object_get(whole, "metrics");
        status = loaded < 0  ? WM_ENOMEM
                 : has_lines ? take_lines(&reading, text)
                             : take_all(&reading, whole);
        json_decref(whole);
        free(text);
        wm_metrics_sort(metrics);
    }
    return status < 0 ? out_of_memory(path, err) : WM_OK;
}
