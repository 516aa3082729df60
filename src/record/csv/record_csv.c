/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_csv.c - a recording as one CSV file, which gpu_tracker can read too.
 *
 * What is not known yet when the second row is written has room kept for it and
 * is written over in place later: the capacities, and the last cell with the
 * gaps and the result. All other rows are only ever appended.
 */
#include "record/csv/record_csv.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_text.h"
#include "base/base_utf8.h"
#include "base/text/base_json.h"
#include "base/text/base_number.h"
#include "base/text/base_out.h"
#include "record/record_channel.h"
#include "record/record_ops.h"
#include "record/record_timepoint.h"

enum {
    /* gpu_tracker's static values and the format, short enough for one page of
     * the file, so that a kill cannot leave half of them. */
    STATIC_SIZE = 224,

    /* Of the last cell, between its quotes. */
    STATE_SIZE = 16 * 1024,

    /* Of the gaps in it; the rest is for the result. */
    GAPS_SIZE = 10 * 1024,

    /* More have no room there, however short their names are. */
    PROCESSES_MAX = STATE_SIZE / 128,
};

struct csv {
    const char *path; /* for messages */
    const struct wm_run *run;
    size_t count;
    struct wm_columns columns;
    struct wm_timepoint_builder *builder;
    struct wm_timepoint_builder *before; /* the builder at the start of a batch */
    struct wm_out out;
    off_t static_at, state_at;
    bool has_static;              /* the capacities are written */
    struct wm_known ram, gpu_ram; /* as they are written */
    int format;
    char *gaps; /* objects, each followed by a comma */
    size_t gaps_length;
    uint64_t gaps_left_out;
};

static const char *const suffixes[] = { ".csv", NULL };

/* The length of a cell between its quotes. */
static size_t quoted_length(const char *text)
{
    size_t length = strlen(text);

    for (; (text = strchr(text, '"')) != NULL; text++)
        length++;
    return length;
}

static void put_known(struct wm_out *out, struct wm_known value)
{
    if (value.known)
        wm_out_number(out, value.number);
}

/* Empty where it is not known. */
static void format_known(struct wm_known value, char text[WM_NUMBER_SIZE])
{
    text[0] = '\0';
    if (value.known)
        wm_number_format(value.number, text);
}

/* The cells up to wattmeter_format, blanks after it. */
static void format_static(const struct csv *csv, char text[STATIC_SIZE + 1])
{
    const struct wm_run *run = csv->run;
    char ram_text[WM_NUMBER_SIZE], gpu_ram_text[WM_NUMBER_SIZE], cores[WM_NUMBER_SIZE];
    char cells[STATIC_SIZE + 1];

    format_known(csv->ram, ram_text);
    format_known(csv->gpu_ram, gpu_ram_text);
    format_known((struct wm_known) { run->expected_cores > 0, run->expected_cores }, cores);
    snprintf(cells, sizeof(cells), "bytes,bytes,seconds,%s,%s,%d,%s,%d,%d,%d", ram_text,
             gpu_ram_text, run->core_count, cores, run->gpu_count, run->expected_gpu_count,
             csv->format);
    snprintf(text, STATIC_SIZE + 1, "%-*s", STATIC_SIZE, cells);
}

/* Puts the JSON of the last cell together; `result` may be NULL. */
static char *state_json(const struct csv *csv, const struct wm_result *result,
                        bool with_gaps)
{
    char *result_text = NULL, *text = NULL;

    if (result && wm_result_to_json(result, &result_text, NULL) < 0)
        return NULL;
    size_t gaps_length = with_gaps && csv->gaps_length > 0 ? csv->gaps_length - 1 : 0;
    if (asprintf(&text, "{\"gaps\":[%.*s],\"gaps_left_out\":%llu,\"result\":%s}",
                 (int)gaps_length, csv->gaps, (unsigned long long)csv->gaps_left_out,
                 result_text ? result_text : "null") < 0)
        text = NULL;
    free(result_text);
    return text;
}

/* The metrics and the list of processes have no bound, and the cell has: the metrics go
 * as a whole, then the cheapest processes. */
static char *fit_state(const struct csv *csv, const struct wm_result *result)
{
    struct wm_result shown = result ? *result : (struct wm_result) { 0 };
    bool with_gaps = true;

    if (shown.process_count > PROCESSES_MAX)
        shown.process_count = PROCESSES_MAX;
    for (;;) {
        char *text = state_json(csv, result ? &shown : NULL, with_gaps);
        if (!text || quoted_length(text) <= STATE_SIZE)
            return text;
        free(text);
        if (shown.metrics.count > 0) {
            shown.metrics.count = 0;
            snprintf(shown.metrics.note, sizeof(shown.metrics.note),
                     "a CSV file has no room for them");
        } else if (shown.process_count > 0)
            shown.process_count--;
        else if (with_gaps)
            with_gaps = false;
        else
            return NULL;
    }
}

static int write_state(struct csv *csv, const struct wm_result *result,
                       struct wm_error *err)
{
    char *json = fit_state(csv, result);
    char *cell = malloc(STATE_SIZE);
    int status;

    if (json && cell) {
        size_t length = wm_text_double_quotes(cell, json, strlen(json));
        memset(cell + length, ' ', STATE_SIZE - length);
        status = wm_out_overwrite(&csv->out, csv->state_at, cell, STATE_SIZE, err);
    } else {
        status = wm_fail_memory(err, csv->path);
    }
    free(cell);
    free(json);
    return status;
}

static void put_name_of_column(struct wm_out *out, const char *name)
{
    wm_out_text(out, ",");
    wm_out_text(out, name);
}

static void put_header(struct csv *csv, const char *run, const char *channels)
{
    struct wm_out *out = &csv->out;
    char text[STATIC_SIZE + 1];

    wm_out_text(out, WM_CSV_STATIC WM_CSV_STATIC_OURS "\r\n");

    csv->static_at = wm_out_position(out);
    format_static(csv, text);
    wm_out_text(out, text);
    wm_out_text(out, ",");
    wm_out_cell(out, run, strlen(run));
    wm_out_text(out, ",");
    wm_out_cell(out, channels, strlen(channels));
    wm_out_text(out, ",\"");
    csv->state_at = wm_out_position(out);
    for (size_t i = 0; i < STATE_SIZE; i++)
        wm_out_text(out, " ");
    wm_out_text(out, "\"\r\n" WM_CSV_REGION);

    for (int i = 0; i < WM_MEASUREMENT_COUNT; i++)
        put_name_of_column(out, wm_measurement_name((enum wm_measurement)i));
    wm_out_text(out, ",timestamp,time_ns");
    for (size_t i = 0; i < csv->columns.clock_count; i++)
        put_name_of_column(out, csv->columns.clocks[i]);
    for (size_t i = 0; i < csv->columns.count; i++)
        put_name_of_column(out, csv->columns.values[i]);
    wm_out_text(out, "\r\n");
}

static int write_header(struct csv *csv, const struct wm_channel *channels,
                        struct wm_error *err)
{
    char *run_text = NULL, *channel_text = NULL;

    int status = wm_run_to_json(csv->run, &run_text, err);
    if (status == WM_OK)
        status = wm_channels_to_json(channels, &csv->columns, &channel_text, err);
    if (status < 0)
        goto out;
    if (quoted_length(run_text) + quoted_length(channel_text) + STATIC_SIZE + STATE_SIZE +
            8 >
        WM_CSV_LINE_MAX) {
        status =
            wm_fail(err, WM_EINVAL,
                    "%s: the channels' names do not fit into a CSV file; record to .sqlite",
                    csv->path);
        goto out;
    }
    put_header(csv, run_text, channel_text);
    status = wm_out_flush(&csv->out, err);
    if (status == WM_OK)
        status = write_state(csv, NULL, err);

out:
    free(run_text);
    free(channel_text);
    return status;
}

static int csv_open(void *state, const char *target, const struct wm_run *run,
                    const struct wm_channel *channels, size_t count, struct wm_error *err)
{
    struct csv *csv = state;

    csv->path = wm_text_path(target);
    csv->run = run;
    csv->count = count;
    csv->format = WM_RECORDING_FORMAT;
    csv->gaps = calloc(1, GAPS_SIZE + 1);
    if (!csv->gaps)
        return wm_fail_memory(err, csv->path);

    int status = wm_columns_plan(channels, count, NULL, 0, &csv->columns, err);
    if (status == WM_OK)
        status = wm_timepoint_builder_new(run, channels, count, &csv->builder, err);
    if (status == WM_OK)
        status = wm_timepoint_builder_new(run, channels, count, &csv->before, err);
    if (status == WM_OK)
        status = wm_out_open(&csv->out, target, err);
    if (status == WM_OK)
        status = write_header(csv, channels, err);
    return status;
}

/* gpu_tracker's 22 columns. The first tick ends no window, and an empty cell
 * spoils nobody's mean. */
static void put_timepoint(struct csv *csv, const struct wm_tick *tick)
{
    struct wm_timepoint timepoint;
    bool is_there = wm_timepoint_next(csv->builder, tick, &timepoint);

    for (size_t i = 0; i < WM_MEASUREMENT_COUNT; i++) {
        if (is_there)
            put_known(&csv->out, wm_timepoint_value(&timepoint, i));
        wm_out_text(&csv->out, ",");
    }
    if (is_there)
        wm_out_number(&csv->out, wm_timepoint_unix_seconds(csv->run, tick->when_ns));
}

static void put_tick(struct csv *csv, const struct wm_tick *tick)
{
    const struct wm_columns *columns = &csv->columns;
    struct wm_out *out = &csv->out;

    wm_out_text(out, ",,,,,"); /* nothing of regions */
    put_timepoint(csv, tick);
    wm_out_text(out, ",");
    wm_out_int(out, tick->when_ns);
    for (size_t clock = 0; clock < columns->clock_count; clock++) {
        int64_t when_ns;
        wm_out_text(out, ",");
        if (wm_columns_clock(columns, clock, tick->readings, &when_ns))
            wm_out_int(out, when_ns);
    }
    for (size_t i = 0; i < csv->count; i++) {
        const struct wm_reading *reading = &tick->readings[i];
        wm_out_text(out, ",");
        if (reading->state == WM_READING_OK)
            wm_out_number(out, reading->value);
    }
    wm_out_text(out, "\r\n");
}

static int write_static(struct csv *csv, struct wm_error *err)
{
    char text[STATIC_SIZE + 1];

    format_static(csv, text);
    return wm_out_overwrite(&csv->out, csv->static_at, text, STATIC_SIZE, err);
}

/* They are readings too, and so not known before a tick is. */
static int write_capacities(struct csv *csv, const struct wm_tick *tick,
                            struct wm_error *err)
{
    wm_timepoint_capacities(csv->builder, tick, &csv->ram, &csv->gpu_ram);
    int status = write_static(csv, err);
    csv->has_static = status == WM_OK && csv->ram.known && csv->gpu_ram.known;
    return status;
}

static int csv_write(void *state, const struct wm_tick *ticks, size_t count,
                     struct wm_error *err)
{
    struct csv *csv = state;
    int status = WM_OK;

    wm_timepoint_builder_copy(csv->before, csv->builder);
    if (!csv->has_static && count > 0)
        status = write_capacities(csv, &ticks[0], err);
    for (size_t i = 0; i < count && status == WM_OK; i++)
        put_tick(csv, &ticks[i]);
    if (status == WM_OK)
        status = wm_out_flush(&csv->out, err);
    if (status < 0)
        wm_timepoint_builder_copy(csv->builder, csv->before);
    return status;
}

static int csv_gap(void *state, const struct wm_gap *gap, struct wm_error *err)
{
    struct csv *csv = state;
    size_t length = csv->gaps_length;
    uint64_t left_out = csv->gaps_left_out;

    char *text = wm_json_dump(wm_gap_json(gap, &csv->columns), JSON_COMPACT);
    if (!text)
        return wm_fail_memory(err, csv->path);

    if (quoted_length(csv->gaps) + quoted_length(text) + 1 <= GAPS_SIZE) {
        size_t added = strlen(text);
        memcpy(csv->gaps + length, text, added);
        memcpy(csv->gaps + length + added, ",", sizeof(","));
        csv->gaps_length += added + 1;
    } else {
        csv->gaps_left_out++;
    }
    free(text);

    int status = write_state(csv, NULL, err);
    if (status < 0) {
        csv->gaps[length] = '\0';
        csv->gaps_length = length;
        csv->gaps_left_out = left_out;
    }
    return status;
}

/* A negative number is an empty cell. */
static void put_region(struct wm_out *out, enum wm_csv_region kind,
                       const int64_t numbers[WM_CSV_REGION_CELLS - 1])
{
    wm_out_int(out, kind);
    for (int i = 0; i < WM_CSV_REGION_CELLS - 1; i++) {
        wm_out_text(out, ",");
        if (numbers[i] >= 0)
            wm_out_int(out, numbers[i]);
    }
    wm_out_text(out, "\r\n");
}

static void put_name(struct wm_out *out, const char *name, size_t length)
{
    for (size_t at = 0; at < length;) {
        int64_t numbers[WM_CSV_REGION_CELLS - 1] = { 0 };
        for (int i = 0; i < WM_CSV_REGION_CELLS - 1; i++) {
            for (int byte = 0; byte < WM_CSV_NAME_BYTES; byte++, at++)
                numbers[i] = numbers[i] << 8 | (at < length ? (unsigned char)name[at] : 0);
        }
        put_region(out, WM_CSV_NAME, numbers);
    }
}

static int put_path(struct csv *csv, uint32_t number, const struct wm_region_path *path,
                    struct wm_error *err)
{
    bool has_parent = path->parent != WM_REGION_NO_PATH;
    char *name = wm_text_copy(path->name);

    if (!name)
        return wm_fail_memory(err, csv->path);
    size_t length = strlen(name);
    put_region(&csv->out, WM_CSV_PATH,
               (const int64_t[]) { number, has_parent ? (int64_t)path->parent : -1,
                                   path->is_free, (int64_t)length });
    put_name(&csv->out, name, length);
    free(name);
    return WM_OK;
}

static void put_told(struct wm_out *out, const struct wm_region_record *call,
                     const struct wm_region_fold *fold)
{
    int64_t cells[1 + WM_REGION_FOLD_CELLS] = { (int64_t)call->clocked - 1, -1, -1, -1 };
    int rows = call->clocked > 0;

    if (fold) {
        wm_region_fold_cells(fold, cells + 1);
        rows = (1 + WM_REGION_FOLD_CELLS) / (WM_CSV_REGION_CELLS - 1);
    }
    for (int i = 0; i < rows; i++)
        put_region(out, WM_CSV_TOLD, cells + i * (WM_CSV_REGION_CELLS - 1));
}

static int csv_regions(void *state, const struct wm_region_batch *batch,
                       struct wm_error *err)
{
    struct csv *csv = state;
    struct wm_out *out = &csv->out;
    int status = WM_OK;

    if (csv->format != WM_CSV_FORMAT_REGIONS) {
        csv->format = WM_CSV_FORMAT_REGIONS;
        status = write_static(csv, err);
        if (status < 0)
            csv->format = WM_RECORDING_FORMAT;
    }
    for (uint32_t i = 0; i < batch->path_count && status == WM_OK; i++)
        status = put_path(csv, batch->first_path + i, &batch->paths[i], err);
    if (status < 0) {
        wm_out_discard(out);
        return status;
    }
    for (uint32_t i = 0; i < batch->thread_count; i++) {
        const struct wm_region_thread *thread = &batch->threads[i];
        put_region(out, WM_CSV_THREAD,
                   (const int64_t[]) { batch->first_thread + i, thread->pid, thread->tid,
                                       thread->process });
    }
    for (size_t i = 0; i < batch->call_count; i++) {
        const struct wm_region_record *call = &batch->calls[i];
        put_told(out, call, wm_region_batch_fold(batch, call));
        put_region(
            out, call->is_open ? WM_CSV_OPEN : WM_CSV_CALL,
            (const int64_t[]) { call->path, call->thread, call->start_ns, call->stop_ns });
    }
    return wm_out_flush(out, err);
}

static int csv_finish(void *state, const struct wm_result *result, struct wm_error *err)
{
    struct csv *csv = state;
    int status = result ? write_state(csv, result, err) : WM_OK;

    return status < 0 ? status : wm_out_sync(&csv->out, err);
}

static void csv_close(void *state)
{
    struct csv *csv = state;

    wm_out_close(&csv->out);
    wm_timepoint_builder_free(csv->builder);
    wm_timepoint_builder_free(csv->before);
    wm_columns_release(&csv->columns);
    free(csv->gaps);
}

const struct wm_recorder_ops wm_recorder_csv = {
    .name = "CSV",
    .suffixes = suffixes,
    .survives_kill = true,
    .state_size = sizeof(struct csv),
    .open = csv_open,
    .write = csv_write,
    .gap = csv_gap,
    .regions = csv_regions,
    .finish = csv_finish,
    .close = csv_close,
};
