/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_json.c - a whole run as one JSON document, written by export: the
 * ticks first, then the regions, the gaps, the result.
 */
#include <jansson.h>
#include <stdlib.h>

#include "base/base_utf8.h"
#include "base/text/base_json.h"
#include "base/text/base_out.h"
#include "record/record_channel.h"
#include "record/record_ops.h"

struct json {
    const char *path; /* for messages */
    struct wm_columns columns;
    struct wm_out out;
    bool has_ticks, has_regions, has_calls, has_gaps;
    json_t *paths, *threads; /* of regions: they stand behind the calls */
};

static const char *const suffixes[] = { ".json", NULL };

static void put_names(struct wm_out *out, const struct wm_columns *columns)
{
    wm_out_text(out, "\"time_ns\"");
    for (size_t i = 0; i < columns->clock_count; i++) {
        wm_out_text(out, ",\"");
        wm_out_text(out, columns->clocks[i]);
        wm_out_text(out, "\"");
    }
    for (size_t i = 0; i < columns->count; i++) {
        wm_out_text(out, ",\"");
        wm_out_text(out, columns->values[i]);
        wm_out_text(out, "\"");
    }
}

static int json_open(void *state, const char *target, const struct wm_run *run,
                     const struct wm_channel *channels, size_t count, struct wm_error *err)
{
    struct json *json = state;
    char *run_text = NULL, *channel_text = NULL;

    json->path = wm_text_path(target);
    json->paths = json_array();
    json->threads = json_array();
    if (!json->paths || !json->threads)
        return wm_fail_memory(err, json->path);
    int status = wm_columns_plan(channels, count, NULL, 0, &json->columns, err);
    if (status == WM_OK)
        status = wm_run_to_json(run, &run_text, err);
    if (status == WM_OK)
        status = wm_channels_to_json(channels, &json->columns, &channel_text, err);
    if (status == WM_OK)
        status = wm_out_open(&json->out, target, err);
    if (status == WM_OK) {
        struct wm_out *out = &json->out;
        wm_out_text(out, "{\"wattmeter_format\":");
        wm_out_int(out, WM_RECORDING_FORMAT);
        wm_out_text(out, ",\n\"run\":");
        wm_out_text(out, run_text);
        wm_out_text(out, ",\n\"channels\":");
        wm_out_text(out, channel_text);
        wm_out_text(out, ",\n\"columns\":[");
        put_names(out, &json->columns);
        wm_out_text(out, "],\n\"samples\":[");
        status = wm_out_flush(out, err);
    }
    free(run_text);
    free(channel_text);
    return status;
}

static void put_value(struct wm_out *out, const struct wm_reading *reading)
{
    off_t before = wm_out_position(out);

    if (reading->state == WM_READING_OK)
        wm_out_number(out, reading->value);
    if (wm_out_position(out) == before)
        wm_out_text(out, "null");
}

static void put_tick(struct json *json, const struct wm_tick *tick)
{
    const struct wm_columns *columns = &json->columns;
    struct wm_out *out = &json->out;

    wm_out_text(out, json->has_ticks ? ",\n[" : "\n[");
    json->has_ticks = true;
    wm_out_int(out, tick->when_ns);
    for (size_t clock = 0; clock < columns->clock_count; clock++) {
        int64_t when_ns;
        wm_out_text(out, ",");
        if (wm_columns_clock(columns, clock, tick->readings, &when_ns))
            wm_out_int(out, when_ns);
        else
            wm_out_text(out, "null");
    }
    for (size_t i = 0; i < columns->count; i++) {
        wm_out_text(out, ",");
        put_value(out, &tick->readings[i]);
    }
    wm_out_text(out, "]");
}

/* Not tried again when it fails: the document is written in one go or not at
 * all. */
static int json_write(void *state, const struct wm_tick *ticks, size_t count,
                      struct wm_error *err)
{
    struct json *json = state;

    for (size_t i = 0; i < count; i++)
        put_tick(json, &ticks[i]);
    return wm_out_flush(&json->out, err);
}

static void begin_regions(struct json *json)
{
    if (!json->has_regions)
        wm_out_text(&json->out, "\n],\n\"regions\":{\"calls\":[");
    json->has_regions = true;
}

static int keep_paths(struct json *json, const struct wm_region_batch *batch)
{
    for (uint32_t i = 0; i < batch->path_count; i++) {
        const struct wm_region_path *path = &batch->paths[i];
        json_t *parent = path->parent == WM_REGION_NO_PATH
                             ? json_null()
                             : json_integer((json_int_t)path->parent);
        wm_json_add(&json->paths,
                    json_pack("{s:o, s:o, s:b}", "name", wm_text_json(path->name), "parent",
                              parent, "is_free", path->is_free));
    }
    for (uint32_t i = 0; i < batch->thread_count; i++) {
        const struct wm_region_thread *thread = &batch->threads[i];
        wm_json_add(&json->threads,
                    json_pack("{s:i, s:i, s:I}", "pid", (int)thread->pid, "tid",
                              (int)thread->tid, "process", (json_int_t)thread->process));
    }
    return json->paths && json->threads ? WM_OK : WM_ENOMEM;
}

/* Where there is something: the CPU time, and of several calls what they come to. */
static void put_told(struct wm_out *out, const struct wm_region_record *call,
                     const struct wm_region_fold *fold)
{
    int64_t cells[WM_REGION_FOLD_CELLS];

    if (call->clocked == 0 && !fold)
        return;
    wm_out_text(out, ",");
    if (call->clocked > 0)
        wm_out_int(out, (int64_t)call->clocked - 1);
    else
        wm_out_text(out, "null");
    if (!fold)
        return;
    wm_region_fold_cells(fold, cells);
    for (int i = 0; i < WM_REGION_FOLD_CELLS; i++) {
        wm_out_text(out, i == 5 ? ",[" : ",");
        wm_out_int(out, cells[i]);
    }
    wm_out_text(out, "]");
}

static int json_regions(void *state, const struct wm_region_batch *batch,
                        struct wm_error *err)
{
    struct json *json = state;
    struct wm_out *out = &json->out;

    if (keep_paths(json, batch) < 0)
        return wm_fail_memory(err, json->path);
    begin_regions(json);
    for (size_t i = 0; i < batch->call_count; i++) {
        const struct wm_region_record *call = &batch->calls[i];
        wm_out_text(out, json->has_calls ? ",\n[" : "\n[");
        json->has_calls = true;
        wm_out_int(out, call->path);
        wm_out_text(out, ",");
        wm_out_int(out, call->thread);
        wm_out_text(out, ",");
        wm_out_int(out, call->start_ns);
        wm_out_text(out, ",");
        wm_out_int(out, call->stop_ns);
        wm_out_text(out, call->is_open ? ",true" : ",false");
        put_told(out, call, wm_region_batch_fold(batch, call));
        wm_out_text(out, "]");
    }
    return wm_out_flush(out, err);
}

static int put_array(struct json *json, const json_t *array, struct wm_error *err)
{
    char *text = array ? json_dumps(array, JSON_COMPACT) : NULL;

    if (!text)
        return wm_fail_memory(err, json->path);
    wm_out_text(&json->out, text);
    free(text);
    return WM_OK;
}

static int begin_gaps(struct json *json, struct wm_error *err)
{
    struct wm_out *out = &json->out;

    if (json->has_gaps)
        return WM_OK;
    begin_regions(json);
    wm_out_text(out, "\n],\n\"paths\":");
    int status = put_array(json, json->paths, err);
    wm_out_text(out, ",\n\"threads\":");
    if (status == WM_OK)
        status = put_array(json, json->threads, err);
    wm_out_text(out, "},\n\"gaps\":[");
    json->has_gaps = true;
    return status;
}

static int json_gap(void *state, const struct wm_gap *gap, struct wm_error *err)
{
    struct json *json = state;
    bool first = !json->has_gaps;

    char *text = wm_json_dump(wm_gap_json(gap, &json->columns), JSON_COMPACT);
    if (!text)
        return wm_fail_memory(err, json->path);

    int status = begin_gaps(json, err);
    wm_out_text(&json->out, first ? "\n" : ",\n");
    wm_out_text(&json->out, text);
    free(text);
    return status < 0 ? status : wm_out_flush(&json->out, err);
}

static int json_finish(void *state, const struct wm_result *result, struct wm_error *err)
{
    struct json *json = state;
    char *text = NULL;

    int status = begin_gaps(json, err);
    if (status == WM_OK && result)
        status = wm_result_to_json(result, &text, err);
    if (status < 0)
        return status;
    wm_out_text(&json->out, "\n],\n\"result\":");
    wm_out_text(&json->out, text ? text : "null");
    wm_out_text(&json->out, "}\n");
    free(text);
    status = wm_out_flush(&json->out, err);
    return status < 0 ? status : wm_out_sync(&json->out, err);
}

static void json_close(void *state)
{
    struct json *json = state;

    wm_out_close(&json->out);
    json_decref(json->paths);
    json_decref(json->threads);
    wm_columns_release(&json->columns);
}

const struct wm_recorder_ops wm_recorder_json = {
    .name = "JSON",
    .suffixes = suffixes,
    .state_size = sizeof(struct json),
    .open = json_open,
    .write = json_write,
    .gap = json_gap,
    .regions = json_regions,
    .finish = json_finish,
    .close = json_close,
};
