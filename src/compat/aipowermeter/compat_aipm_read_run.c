/* SPDX-License-Identifier: Apache-2.0 */
/* compat_aipm_read_run.c - what the other files of an AIPowerMeter folder say of a run. */
#include "compat/aipowermeter/compat_aipm_read_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/base_json.h"
#include "base/text/base_utf8.h"
#include "compat/aipowermeter/compat_aipm_beside.h"

static int out_of_memory(const char *path, struct wm_error *err)
{
    return wm_fail(err, WM_ENOMEM, "%s: out of memory", wm_text_path(path));
}

/* A file beside the recording as JSON; NULL where there is none. */
static int load_beside(const char *path, const char *name, json_t **ret_value,
                       struct wm_error *err)
{
    char *text;
    size_t length;

    *ret_value = NULL;
    int status = wm_beside_read(path, name, &text, &length, err);
    if (text && wm_python_json(text, length, ret_value) < 0)
        status = out_of_memory(path, err);
    free(text);
    return status;
}

int wm_aipm_read_run(const char *path, struct wm_run *run, struct wm_error *err)
{
    struct wm_run found = { 0 };
    json_t *metadata;

    int status = load_beside(path, "metadata.json", &metadata, err);
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

static int note_description(const char *path, struct wm_run *run, struct wm_error *err)
{
    json_t *metadata;

    int status = load_beside(path, "metadata.json", &metadata, err);
    const char *text = json_string_value(json_object_get(metadata, "description"));
    if (text && *text && !json_object_get(metadata, "wattmeter") &&
        wm_run_set_note(run, "description", "%s", text) < 0)
        status = out_of_memory(path, err);
    json_decref(metadata);
    return status;
}

static int note_json(const char *path, struct wm_run *run, const char *key,
                     const char *prefix, const json_t *value, struct wm_error *err)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    int status = WM_OK;

    if (!text || wm_run_set_note(run, key, "%s%s", prefix, text) < 0)
        status = out_of_memory(path, err);
    free(text);
    return status;
}

static int note_last_result(const char *path, struct wm_run *run, size_t count,
                            const json_t *last, struct wm_error *err)
{
    char prefix[64];

    if (!last)
        return WM_OK;
    snprintf(prefix, sizeof(prefix), "%zu, the last: ", count);
    return note_json(path, run, "results", prefix, last, err);
}

/* AIPowerMeter writes a record per line, each with its metrics. */
static int note_result_lines(const char *path, struct wm_run *run, char *text,
                             struct wm_error *err)
{
    json_t *last = NULL;
    size_t count = 0;
    int status = WM_OK;

    for (char *line = text; *line && status == WM_OK;) {
        size_t length = strcspn(line, "\n");
        json_t *value = NULL;
        if (wm_python_json(line, length, &value) < 0)
            status = out_of_memory(path, err);
        if (json_is_object(value)) {
            json_decref(last);
            last = json_incref(value);
            count++;
        }
        json_decref(value);
        line += length + (line[length] == '\n');
    }
    const json_t *metrics = json_object_get(last, "metrics");
    if (status == WM_OK)
        status = note_last_result(path, run, count, metrics ? metrics : last, err);
    json_decref(last);
    return status;
}

/* And reads one array of records, or an object of them, which people make. */
static int note_results(const char *path, struct wm_run *run, struct wm_error *err)
{
    json_t *whole = NULL;
    char *text;
    size_t length;

    int status = wm_beside_read(path, "results_exp.json", &text, &length, err);
    if (!text)
        return status;

    int loaded = wm_python_json(text, length, &whole);
    if (loaded < 0)
        status = out_of_memory(path, err);
    if (loaded == 0 || json_object_get(whole, "metrics")) {
        status = note_result_lines(path, run, text, err);
    } else if (json_is_array(whole)) {
        size_t count = json_array_size(whole);
        status = note_last_result(path, run, count,
                                  count > 0 ? json_array_get(whole, count - 1) : NULL, err);
    } else if (json_is_object(whole)) {
        const json_t *last = NULL;
        const char *key;
        json_t *value;
        json_object_foreach(whole, key, value)
        {
            last = value;
        }
        status = note_last_result(path, run, json_object_size(whole), last, err);
    }
    json_decref(whole);
    free(text);
    return status;
}

static int note_model(const char *path, struct wm_run *run, struct wm_error *err)
{
    json_t *model;

    int status = load_beside(path, "model_summary.json", &model, err);
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
