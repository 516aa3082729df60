/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat_meter.c - the CSV file of an external power meter: a header that names its
 * columns and their units ("timestamp,power_W"), or what wattmetre-read writes for
 * AIPowerMeter (omegawatt.csv: a flag for rows that are good). Free lines may stand
 * before the header.
 *
 * Rows are left out where they cannot be read, and single values too, for which the
 * column's last one stands a while; the recording says how many. Where more than three
 * periods of the meter are missing nothing is known of the time between.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/base_lines.h"
#include "base/text/base_number.h"
#include "base/text/base_utf8.h"
#include "compat/meter_csv/compat_meter_columns.h"
#include "record/record_ops.h"

/* So many rows tell the meter's period. */
enum { SPACINGS_MAX = 1024 };

enum { LONGEST_SPACINGS = 3 };

/* At k = 2: our assumption. */
#define METER_GAIN 0.02

/* What a row comes to. */
enum row {
    ROW_GOOD,
    ROW_BAD,    /* it cannot be read */
    ROW_MARKED, /* the meter says that it may not be used */
};

struct meter_reader {
    struct wm_reader_head head;
    const char *path; /* for messages */
    struct wm_lines lines;
    struct wm_meter_csv_columns columns;
    char *names;        /* in `columns` */
    size_t header_line; /* where it stands */
    struct wm_channel *channels;
    char (*labels)[16];
    struct wm_reading *row;    /* as it stands in the file */
    struct wm_reading *latest; /* the last value of each column */
    struct wm_reading *shown;  /* as they were last given out */
    int64_t period_ns;         /* 0: unknown */
    int64_t when_ns;           /* of the last good row; -1: there was none */
    int64_t row_ns;            /* of the row in `row` that is due; -1: none is */
    char fault[128];           /* what is wrong with the last row that is bad, */
    char first_fault[128];     /* and with the first, */
    char value_fault[128];     /* and with the first value that cannot be used */
    uint64_t bad_values, marked;
};

static int out_of_memory(const struct meter_reader *reader, struct wm_error *err)
{
    return wm_fail(err, WM_ENOMEM, "%s: out of memory", reader->path);
}

/* Less than nothing is no power that was drawn. */
static struct wm_reading read_power(const char *cell, size_t length, double scale)
{
    struct wm_reading reading = { 0 };
    double value;

    if (wm_number_parse(cell, length, &value) && value >= 0 && value * scale <= 1e15) {
        reading.value = value * scale;
        reading.state = WM_READING_OK;
    }
    return reading;
}

/* Says what is wrong with a cell, as text[0..size). */
static void describe(const struct meter_reader *reader, const char *name, const char *cell,
                     size_t length, const char *what, char *text, size_t size)
{
    char shown[WM_METER_CSV_SHOWN], column[WM_METER_CSV_SHOWN];

    snprintf(text, size, "line %zu: column '%s': '%s' is no %s", reader->lines.number,
             wm_meter_csv_show(name, strlen(name), column),
             wm_meter_csv_show(cell, length, shown), what);
}

/* An empty cell is missing and not wrong. */
static struct wm_reading take_power(struct meter_reader *reader, const char *name,
                                    const char *cell, size_t length, double scale)
{
    struct wm_reading reading = read_power(cell, length, scale);

    if (reading.state != WM_READING_OK && length > 0 && reader->bad_values++ == 0)
        describe(reader, name, cell, length, "power", reader->value_fault,
                 sizeof(reader->value_fault));
    return reading;
}

/* Into `row`, whose readings get their time later. */
static enum row read_row(struct meter_reader *reader, char *line, int64_t *ret_when_ns)
{
    const struct wm_meter_csv_columns *columns = &reader->columns;
    enum row row = ROW_GOOD;
    char *cursor = line;
    size_t place = 0, column = 0;

    for (; cursor && column < columns->count; column++) {
        const struct wm_meter_csv_column *meant = &columns->columns[column];
        size_t length;
        char *cell = wm_meter_csv_next_cell(&cursor, columns->separator, &length);
        if (meant->use == WM_METER_CSV_IS_GOOD &&
            (length != 4 || memcmp(cell, "true", 4) != 0))
            row = ROW_MARKED;
        if (meant->use == WM_METER_CSV_TIME || meant->use == WM_METER_CSV_POWER)
            wm_meter_csv_make_point(cell, length, columns->separator);
        if (meant->use == WM_METER_CSV_TIME &&
            !wm_meter_csv_read_time(cell, length, meant->scale,
                                    reader->when_ns >= 0 ? reader->when_ns : 0,
                                    ret_when_ns)) {
            describe(reader, meant->name, cell, length,
                     "time since 1970, nor a date as 2026-03-07T18:45:00Z", reader->fault,
                     sizeof(reader->fault));
            return ROW_BAD;
        }
        if (meant->use == WM_METER_CSV_POWER)
            reader->row[place++] =
                take_power(reader, meant->name, cell, length, meant->scale);
    }
    if (!cursor && column == columns->count)
        return row;
    snprintf(reader->fault, sizeof(reader->fault),
             "line %zu: not as many cells as the header has names (%zu)",
             reader->lines.number, columns->count);
    return ROW_BAD;
}

/* A row that is good by itself has its place behind the last. */
static enum row place_row(struct meter_reader *reader, char *line, size_t length,
                          int64_t *ret_when_ns)
{
    if (strlen(line) != length) {
        snprintf(reader->fault, sizeof(reader->fault), "line %zu: has a NUL in it",
                 reader->lines.number);
        return ROW_BAD;
    }
    enum row row = read_row(reader, line, ret_when_ns);
    if (row == ROW_GOOD && *ret_when_ns <= reader->when_ns) {
        snprintf(reader->fault, sizeof(reader->fault),
                 "line %zu: is not later than the one before", reader->lines.number);
        return ROW_BAD;
    }
    return row;
}

/* What has been left out so far: whoever reads no further is told, too. */
static void say_trouble(struct meter_reader *reader)
{
    struct wm_result *result = &reader->head.result;
    char *text = result->recording_trouble;
    size_t size = sizeof(result->recording_trouble), used = 0;

    text[0] = '\0';
    if (result->lost_ticks > 0)
        used +=
            (size_t)snprintf(text, size, "the meter's %s (%llu row%s left out)",
                             reader->first_fault, (unsigned long long)result->lost_ticks,
                             result->lost_ticks == 1 ? " is" : "s are");
    if (reader->bad_values > 0 && used < size)
        used += (size_t)snprintf(text + used, size - used,
                                 "%sthe meter's %s (%llu value%s left out)",
                                 used > 0 ? "; " : "", reader->value_fault,
                                 (unsigned long long)reader->bad_values,
                                 reader->bad_values == 1 ? " is" : "s are");
    if (reader->marked > 0 && used < size)
        snprintf(text + used, size - used,
                 "%sthe meter marks %llu of its readings as not good: left out",
                 used > 0 ? "; " : "", (unsigned long long)reader->marked);
}

/* 1 and the time of the next good row, which is in `row`; 0 past the last. */
static int next_row(struct meter_reader *reader, int64_t *ret_when_ns, struct wm_error *err)
{
    size_t length;
    char *line;

    for (;;) {
        int status = wm_lines_next(&reader->lines, &line, &length, err);
        if (status <= 0)
            return status;
        if (strspn(line, " \t") >= length || line[0] == '#')
            continue;

        uint64_t bad_values = reader->bad_values;
        enum row row = place_row(reader, line, length, ret_when_ns);
        reader->head.result.ticks++;
        if (row == ROW_MARKED)
            reader->marked++;
        else if (row == ROW_BAD && reader->head.result.lost_ticks++ == 0)
            memcpy(reader->first_fault, reader->fault, sizeof(reader->fault));
        if (row != ROW_GOOD)
            reader->bad_values = bad_values;
        if (row != ROW_GOOD || reader->bad_values > bad_values)
            say_trouble(reader);
        if (row == ROW_GOOD)
            break;
    }
    reader->when_ns = *ret_when_ns;
    return 1;
}

static int compare_times(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

    return (left > right) - (left < right);
}

static int find_period(struct meter_reader *reader, int64_t *ret_first_ns,
                       struct wm_error *err)
{
    int64_t *spacings = calloc(SPACINGS_MAX, sizeof(*spacings));
    int64_t when_ns = 0, before_ns = -1;
    size_t count = 0;
    int status = 0;

    if (!spacings)
        return out_of_memory(reader, err);
    while (count < SPACINGS_MAX && (status = next_row(reader, &when_ns, err)) > 0) {
        if (before_ns < 0)
            *ret_first_ns = when_ns;
        else
            spacings[count++] = when_ns - before_ns;
        before_ns = when_ns;
    }
    if (count > 0) {
        qsort(spacings, count, sizeof(*spacings), compare_times);
        reader->period_ns = spacings[(count - 1) / 2];
    }
    free(spacings);
    if (status >= 0 && before_ns < 0)
        return reader->first_fault[0]
                   ? wm_fail(err, WM_EFORMAT, "%s: %s", reader->path, reader->first_fault)
                   : wm_fail(err, WM_EFORMAT, "%s: holds no reading", reader->path);
    return status < 0 ? status : WM_OK;
}

/* Back to the first row, with nothing counted yet. */
static int start_again(struct meter_reader *reader, struct wm_error *err)
{
    size_t length;
    char *line;

    reader->when_ns = -1;
    reader->head.result.ticks = 0;
    reader->head.result.lost_ticks = 0;
    reader->bad_values = 0;
    reader->marked = 0;
    int status = wm_lines_rewind(&reader->lines, err);
    while (status >= 0 && reader->lines.number < reader->header_line)
        status = wm_lines_next(&reader->lines, &line, &length, err);
    return status < 0 ? status : WM_OK;
}

static int make_buffers(struct meter_reader *reader, struct wm_error *err)
{
    size_t count = reader->columns.powers;

    reader->channels = calloc(count, sizeof(*reader->channels));
    reader->labels = calloc(count, sizeof(*reader->labels));
    reader->row = calloc(count, sizeof(*reader->row));
    reader->latest = calloc(count, sizeof(*reader->latest));
    reader->shown = calloc(count, sizeof(*reader->shown));
    return reader->channels && reader->labels && reader->row && reader->latest &&
                   reader->shown
               ? WM_OK
               : out_of_memory(reader, err);
}

/* Two columns of one name are two devices. */
static bool has_device(const struct meter_reader *reader, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(reader->channels[i].device, name) == 0)
            return true;
    }
    return false;
}

/* They have no period: what a sensor shows lags behind by about that much, but here
 * the meter says of what time its readings are. */
static int make_channels(struct meter_reader *reader, struct wm_error *err)
{
    const struct wm_meter_csv_columns *columns = &reader->columns;
    size_t place = 0;

    int status = make_buffers(reader, err);
    reader->head.run_count = 1;
    reader->head.has_result = true;
    reader->head.channels = reader->channels;
    reader->head.channel_count = columns->powers;
    for (size_t i = 0; i < columns->count && status == WM_OK; i++) {
        const char *name = columns->columns[i].name;
        if (columns->columns[i].use != WM_METER_CSV_POWER)
            continue;
        snprintf(reader->labels[place], sizeof(reader->labels[place]),
                 columns->powers > 1 ? "meter%zu" : "meter", place + 1);
        reader->channels[place] = (struct wm_channel) {
            .source = "meter",
            .device = has_device(reader, place, name) ? reader->labels[place] : name,
            .label = reader->labels[place],
            .metric = "power",
            .unit = "W",
            .device_kind = WM_DEVICE_PLATFORM,
            .kind = WM_GAUGE,
            .sensor = { .kind = WM_SENSOR_TOOL,
                        .gain = METER_GAIN,
                        .text = "an external meter" },
        };
        place++;
    }
    return status;
}

static int fill_run(struct meter_reader *reader, int64_t first_ns, struct wm_error *err)
{
    struct wm_run *run = &reader->head.run;

    run->anchor_ns = first_ns;
    run->anchor_unix_ns = first_ns;
    run->interval_ns = reader->period_ns;
    run->sources = calloc(1, sizeof(*run->sources));
    if (!run->sources)
        return out_of_memory(reader, err);
    run->source_count = 1;
    run->sources[0].available = true;
    run->sources[0].name = strdup("meter");
    run->sources[0].detail = strdup("a CSV file of an external meter");
    return run->sources[0].name && run->sources[0].detail ? WM_OK
                                                          : out_of_memory(reader, err);
}

static int meter_open(void *state, const char *path, size_t run, struct wm_error *err)
{
    struct meter_reader *reader = state;
    int64_t first_ns = 0;
    size_t index;

    reader->path = wm_text_path(path);
    reader->when_ns = -1;
    reader->row_ns = -1;
    int status = wm_reader_choose_run(path, run, 1, &index, err);
    if (status == WM_OK)
        status =
            wm_meter_csv_open(&reader->lines, path, &reader->columns, &reader->names, err);
    if (status == WM_OK)
        status = make_channels(reader, err);
    if (status < 0)
        return status;
    reader->header_line = reader->lines.number;
    status = find_period(reader, &first_ns, err);
    if (status == WM_OK)
        status = fill_run(reader, first_ns, err);
    if (status == WM_OK)
        status = start_again(reader, err);
    reader->head.result = wm_result_unknown();
    return status;
}

/* Whether too much time has passed since the last value of a column. */
static bool is_long_ago(const struct meter_reader *reader, size_t column)
{
    return reader->period_ns > 0 && reader->latest[column].state == WM_READING_OK &&
           (reader->row_ns - reader->latest[column].when_ns) / LONGEST_SPACINGS >
               reader->period_ns;
}

/* Ends, right behind the last tick, the lines of columns that nothing is known of until
 * the value that is due now. False where there is no such column. */
static bool make_hole(struct meter_reader *reader)
{
    bool has_hole = false;

    for (size_t i = 0; i < reader->columns.powers; i++) {
        if (reader->shown[i].state != WM_READING_OK || !is_long_ago(reader, i))
            continue;
        reader->shown[i] = (struct wm_reading) { 0 };
        has_hole = true;
    }
    return has_hole;
}

/* A value that cannot be used leaves the last one standing, which has its own time. */
static void show_row(struct meter_reader *reader)
{
    for (size_t i = 0; i < reader->columns.powers; i++) {
        struct wm_reading *row = &reader->row[i];
        if (row->state == WM_READING_OK) {
            row->when_ns = reader->row_ns;
            reader->shown[i] = *row;
            reader->latest[i] = *row;
        } else if (is_long_ago(reader, i)) {
            reader->shown[i] = (struct wm_reading) { 0 };
        }
    }
}

static int meter_next(void *state, struct wm_tick *ret_tick, struct wm_error *err)
{
    struct meter_reader *reader = state;
    int64_t before_ns = reader->when_ns;
    struct wm_tick tick = { .readings = reader->shown, .count = reader->columns.powers };

    if (reader->row_ns < 0) {
        int status = next_row(reader, &reader->row_ns, err);
        if (status <= 0) {
            reader->row_ns = -1;
            return status;
        }
        reader->head.result.end_ns = reader->row_ns;
        if (before_ns >= 0 && make_hole(reader)) {
            tick.when_ns = before_ns + 1;
            *ret_tick = tick;
            return 1;
        }
    }
    show_row(reader);
    tick.when_ns = reader->row_ns;
    reader->row_ns = -1;
    *ret_tick = tick;
    return 1;
}

static void meter_close(void *state)
{
    struct meter_reader *reader = state;

    wm_lines_close(&reader->lines);
    wm_reader_head_release(&reader->head);
    free(reader->names);
    free(reader->channels);
    free(reader->labels);
    free(reader->row);
    free(reader->latest);
    free(reader->shown);
}

const struct wm_reader_ops wm_reader_meter = {
    .name = "CSV of a meter",
    .recognises = wm_meter_csv_recognises,
    .state_size = sizeof(struct meter_reader),
    .open = meter_open,
    .next = meter_next,
    .close = meter_close,
};
