/* SPDX-License-Identifier: Apache-2.0 */
/* compat_aipm_beside.c - the other files in the folder of a recording: what they say of the
 * run, and the experiment's own numbers. */
#include "compat/aipowermeter/compat_aipm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/base_utf8.h"
#include "base/text/base_json.h"
#include "base/text/base_localtime.h"
#include "base/text/base_out.h"

#define RESULTS "results_exp.json"
#define TIME_KEY "end_training_epoch"

enum { FILE_MAX = 16 * 1024 * 1024 };

char *wm_aipm_beside(const char *path, const char *name)
{
    char *result = NULL;

    if (asprintf(&result, "%.*s%s", (int)wm_file_folder_length(path), path, name) < 0)
        return NULL;
    return result;
}

/* Its text, the caller's to free, and NULL where it cannot be had: only being out of memory
 * is a failure. */
static int read_text(const char *path, const char *name, char **ret_text,
                     size_t *ret_length, struct wm_error *err)
{
    char *beside = wm_aipm_beside(path, name);

    *ret_text = NULL;
    *ret_length = 0;
    if (!beside)
        return wm_fail_memory(err, wm_text_path(path));
    int status = wm_file_slurp(beside, FILE_MAX, ret_text, ret_length, NULL);
    free(beside);
    return status == WM_ENOMEM ? wm_fail_memory(err, wm_text_path(path)) : WM_OK;
}

/* As JSON; NULL where there is none. */
static int read_json(const char *path, const char *name, json_t **ret_value,
                     struct wm_error *err)
{
    char *text;
    size_t length;

    *ret_value = NULL;
    int status = read_text(path, name, &text, &length, err);
    if (text && wm_python_json(text, length, ret_value) < 0)
        status = wm_fail_memory(err, wm_text_path(path));
    free(text);
    return status;
}

static int write_text(const char *name, const char *text, struct wm_error *err)
{
    struct wm_out out;

    int status = wm_out_open(&out, name, err);
    if (status == WM_OK) {
        wm_out_text(&out, text);
        status = wm_out_flush(&out, err);
    }
    wm_out_close(&out);
    return status;
}

/* One that replaces another may be read by whoever could read that. A draft that a kill
 * leaves behind is in nobody's way. */
static int replace(const char *name, const char *text, struct wm_error *err)
{
    struct stat info;
    char *draft;

    int status = wm_file_make_draft(name, &draft, err);
    if (status < 0)
        return status;
    if (stat(name, &info) == 0) {
        int ignored = chmod(draft, info.st_mode & 0666);
        (void)ignored;
    }
    status = write_text(draft, text, err);
    if (status == WM_OK && rename(draft, name) < 0)
        status = wm_fail_errno(err, wm_text_path(name));
    if (status < 0)
        unlink(draft);
    free(draft);
    return status;
}

int wm_aipm_write_beside(const char *path, const char *name, const char *text,
                         struct wm_error *err)
{
    char *beside = wm_aipm_beside(path, name);
    int status =
        beside ? replace(beside, text, err) : wm_fail_memory(err, wm_text_path(path));

    free(beside);
    return status;
}

bool wm_aipm_is_ours(const char *path)
{
    json_t *metadata = NULL;

    read_json(path, WM_AIPM_METADATA, &metadata, NULL);
    bool is_ours = json_is_object(json_object_get(metadata, "wattmeter"));
    json_decref(metadata);
    return is_ours;
}

int wm_aipm_read_run(const char *path, struct wm_run *run, struct wm_error *err)
{
    struct wm_run found = { 0 };
    json_t *metadata;

    int status = read_json(path, WM_AIPM_METADATA, &metadata, err);
    const json_t *ours = json_object_get(metadata, "wattmeter");
    char *text = json_is_object(ours) ? json_dumps(ours, JSON_COMPACT) : NULL;
    if (text && wm_run_from_json(text, &found, NULL) == WM_OK) {
        wm_run_release(run);
        *run = found;
    }
    free(text);
    json_decref(metadata);
    return status;
}

int wm_aipm_read_start(const char *path, int64_t *ret_start_ns, struct wm_error *err)
{
    json_t *metadata;

    *ret_start_ns = 0;
    int status = read_json(path, WM_AIPM_METADATA, &metadata, err);
    const json_t *date = json_object_get(metadata, "date");
    if (json_is_object(json_object_get(metadata, "wattmeter")) && json_is_string(date))
        wm_localtime_parse(json_string_value(date), json_string_length(date), 0,
                           ret_start_ns);
    json_decref(metadata);
    return status;
}

static int note_description(const char *path, struct wm_run *run, struct wm_error *err)
{
    json_t *metadata;

    int status = read_json(path, WM_AIPM_METADATA, &metadata, err);
    const char *text = json_string_value(json_object_get(metadata, "description"));
    if (text && *text && !json_object_get(metadata, "wattmeter") &&
        wm_run_set_note(run, "description", "%s", text) < 0)
        status = wm_fail_memory(err, wm_text_path(path));
    json_decref(metadata);
    return status;
}

static int note_json(const char *path, struct wm_run *run, const char *key,
                     const char *prefix, const json_t *value, struct wm_error *err)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    int status = WM_OK;

    if (!text || wm_run_set_note(run, key, "%s%s", prefix, text) < 0)
        status = wm_fail_memory(err, wm_text_path(path));
    free(text);
    return status;
}

/* AIPowerMeter writes a record per line. */
static json_t *read_lines(char *text)
{
    json_t *records = json_array();

    for (char *line = text; *line && records;) {
        size_t length = strcspn(line, "\n");
        bool is_last = line[length] == '\0';
        json_t *record = NULL;
        if (wm_python_json(line, length, &record) < 0)
            wm_json_add(&records, NULL);
        else if (json_is_object(record))
            wm_json_add(&records, json_incref(record));
        json_decref(record);
        line += length + !is_last;
    }
    return records;
}

/* The records of results_exp.json as an array, which is what AIPowerMeter reads; NULL where
 * there is none. */
static int read_records(const char *path, json_t **ret_records, struct wm_error *err)
{
    json_t *whole = NULL;
    size_t length;
    char *text;

    *ret_records = NULL;
    int status = read_text(path, RESULTS, &text, &length, err);
    if (!text)
        return status;
    int loaded = wm_python_json(text, length, &whole);
    bool is_array = json_is_array(whole);
    *ret_records = loaded < 0 ? NULL : is_array ? json_incref(whole) : read_lines(text);
    json_decref(whole);
    free(text);
    return *ret_records ? WM_OK : wm_fail_memory(err, wm_text_path(path));
}

static int note_results(const char *path, struct wm_run *run, struct wm_error *err)
{
    json_t *records;
    char prefix[64];

    int status = read_records(path, &records, err);
    size_t count = json_array_size(records);
    const json_t *last = count > 0 ? json_array_get(records, count - 1) : NULL;
    const json_t *metrics = json_object_get(last, "metrics");
    snprintf(prefix, sizeof(prefix), "%zu, the last: ", count);
    if (last)
        status = note_json(path, run, "results", prefix, metrics ? metrics : last, err);
    json_decref(records);
    return status;
}

static int note_model(const char *path, struct wm_run *run, struct wm_error *err)
{
    json_t *model;

    int status = read_json(path, "model_summary.json", &model, err);
    if (status == WM_OK && model)
        status = note_json(path, run, "model", "", model, err);
    json_decref(model);
    return status;
}

int wm_aipm_read_notes(const char *path, struct wm_run *run, struct wm_error *err)
{
    int status = note_description(path, run, err);

    if (status == WM_OK)
        status = note_results(path, run, err);
    if (status == WM_OK)
        status = note_model(path, run, err);
    return status;
}

/* What there is of the array already; a new one where there is no file. */
static int load_array(const char *path, json_t **ret_array, struct wm_error *err)
{
    char *name = wm_aipm_beside(path, RESULTS);
    bool is_new = name && access(name, F_OK) < 0;

    *ret_array = is_new ? json_array() : NULL;
    int status =
        !name || (is_new && !*ret_array) ? wm_fail_memory(err, wm_text_path(path)) : WM_OK;
    if (status == WM_OK && !is_new)
        status = read_json(path, RESULTS, ret_array, err);
    if (status == WM_OK && !json_is_array(*ret_array))
        status = wm_fail(err, WM_EFORMAT, "%s: no array of records; nothing is added to it",
                         wm_text_path(name));
    free(name);
    return status;
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

/* What was reported at one time is one record. */
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
    int status = next ? WM_OK : wm_fail_memory(err, wm_text_path(path));

    while (status == WM_OK && next_time(result, next, &when_ns)) {
        if (json_array_append_new(array, record_at(run, result, next, when_ns)) < 0)
            status = wm_fail_memory(err, wm_text_path(path));
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
    status = text ? wm_aipm_write_beside(path, RESULTS, text, err)
                  : wm_fail_memory(err, wm_text_path(path));
    free(text);
    free(dumped);
    return status;
}

int wm_aipm_write_results(const char *path, const struct wm_run *run,
                          const struct wm_result *result, struct wm_error *err)
{
    json_t *array;

    if (result->metrics.count == 0)
        return WM_OK;
    int status = load_array(path, &array, err);
    if (status == WM_OK)
        status = add_records(array, path, run, result, err);
    if (status == WM_OK)
        status = write_array(path, array, err);
    json_decref(array);
    return status;
}

/* The numbers of one object; WM_ENOMEM is the only failure. */
static int take_numbers(struct wm_metrics *metrics, json_t *object, int64_t when_ns)
{
    const char *name;
    json_t *value;

    json_object_foreach(object, name, value)
    {
        if (json_is_number(value) &&
            wm_metrics_add(metrics, name, when_ns, json_number_value(value), NULL) ==
                WM_ENOMEM)
            return WM_ENOMEM;
    }
    return WM_OK;
}

/* Local times of records only grow: `last_ns` is that of the one before. */
static int take_record(json_t *record, const struct wm_metrics_window *window,
                       struct wm_metrics *metrics, int64_t *last_ns)
{
    const json_t *time = json_object_get(record, TIME_KEY);

    if (!time)
        time = json_object_get(record, "date");
    if (!json_is_string(time) ||
        !wm_localtime_parse_zoned(json_string_value(time), json_string_length(time),
                                  *last_ns, last_ns))
        return WM_OK;
    int64_t when_ns = *last_ns - window->unix_at_zero_ns;
    if (when_ns < window->from_ns || when_ns >= window->to_ns)
        return WM_OK;
    int status = take_numbers(metrics, record, when_ns);
    return status < 0 ? status
                      : take_numbers(metrics, json_object_get(record, "metrics"), when_ns);
}

int wm_aipm_read_results(const char *path, const struct wm_metrics_window *window,
                         struct wm_metrics *metrics, struct wm_error *err)
{
    json_t *records, *record;
    int64_t last_ns = 0;
    size_t index;

    int status = read_records(path, &records, err);
    json_array_foreach(records, index, record)
    {
        if (status == WM_OK && take_record(record, window, metrics, &last_ns) < 0)
            status = wm_fail_memory(err, wm_text_path(path));
    }
    json_decref(records);
    wm_metrics_sort(metrics);
    return status;
}
