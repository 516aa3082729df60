/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_meter.c - the CSV file of an external power meter: a header that names its
 * columns and their units ("timestamp,power_W"), or what wattmetre-read writes for
 * AIPowerMeter (omegawatt.csv: a free line before the header, a flag for rows that
 * are good).
 *
 * Rows are left out where they cannot be read, and the recording says how many.
 * Where more than three periods of the meter are missing nothing is known of the
 * time between.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_number.h"
#include "record/read_meter_columns.h"
#include "record/record_lines.h"
#include "record/record_ops.h"
#include "record/record_text.h"

enum { LINE_MAX_LENGTH = 1024 * 1024 };

/* So many rows tell the meter's period. */
enum { SPACINGS_MAX = 1024 };

enum { LONGEST_SPACINGS = 3 };

/* What a row comes to. */
enum row {
    ROW_GOOD,
    ROW_BAD,    /* it cannot be read */
    ROW_MARKED, /* the meter says that it may not be used */
};

struct meter_reader {
    const char *path; /* for messages */
    struct wm_lines lines;
    struct wm_meter_columns columns;
    char *header;       /* the names in `columns` */
    size_t header_line; /* where it stands */
    struct wm_run run;
    struct wm_result result;
    struct wm_channel *channels;
    char (*labels)[16];
    struct wm_reading *readings, *none;
    int64_t period_ns; /* 0: unknown */
    int64_t when_ns;   /* of the last good row; -1: there was none */
    int64_t row_ns;    /* of the row in `readings` that is due; -1: none is */
    size_t first_bad_line;
    uint64_t marked;
};

static int out_of_memory(const struct meter_reader *reader, struct wm_error *err)
{
    return wm_fail(err, WM_ENOMEM, "%s: out of memory", reader->path);
}

/* The header is the first line, or the second. Cut off by the end of `head` it
 * may still be recognised by its first columns. */
static bool meter_recognises(const char *head, size_t length)
{
    for (int line = 0; line < 2 && length > 0; line++) {
        const char *end = memchr(head, '\n', length);
        size_t line_length = end ? (size_t)(end - head) : length;
        struct wm_meter_columns columns;
        char copy[513];

        if (line_length >= sizeof(copy) || memchr(head, '\0', line_length))
            return false;
        memcpy(copy, head, line_length);
        copy[line_length] = '\0';
        if (wm_meter_read_header(copy, &columns) && (columns.powers > 0 || columns.bare))
            return true;
        if (!end)
            return false;
        head = end + 1;
        length -= line_length + 1;
    }
    return false;
}

static int read_header(struct meter_reader *reader, struct wm_error *err)
{
    size_t length;
    char *line;

    for (int i = 0; i < 2; i++) {
        int status = wm_lines_next(&reader->lines, &line, &length, err);
        if (status < 0)
            return status;
        if (status == 0)
            break;
        free(reader->header);
        reader->header = strdup(line);
        if (!reader->header)
            return out_of_memory(reader, err);
        if (wm_meter_read_header(reader->header, &reader->columns) &&
            (reader->columns.powers > 0 || reader->columns.bare))
            break;
        reader->columns = (struct wm_meter_columns) { 0 };
    }
    if (reader->columns.powers > 0)
        return WM_OK;
    if (reader->columns.bare)
        return wm_fail(
            err, WM_EFORMAT,
            "%s: line %zu: what unit has '%.64s'? Name the column %.64s_W, _mW or "
            "_kW",
            reader->path, reader->lines.number, reader->columns.bare, reader->columns.bare);
    return wm_fail(err, WM_EFORMAT, "%s: no header with a time and watts", reader->path);
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

/* Into `readings`, which get their time later. */
static enum row read_row(struct meter_reader *reader, char *line, int64_t *ret_when_ns)
{
    const struct wm_meter_columns *columns = &reader->columns;
    enum row row = ROW_GOOD;
    char *cursor = line;
    size_t place = 0, column = 0;

    for (; cursor && column < columns->count; column++) {
        const struct wm_meter_column *meant = &columns->columns[column];
        size_t length;
        const char *cell = wm_meter_next_cell(&cursor, columns->separator, &length);
        if (meant->use == WM_METER_TIME &&
            !wm_meter_read_time(cell, length, meant->scale,
                                reader->when_ns >= 0 ? reader->when_ns : 0, ret_when_ns))
            return ROW_BAD;
        if (meant->use == WM_METER_IS_GOOD && (length != 4 || memcmp(cell, "true", 4) != 0))
            row = ROW_MARKED;
        if (meant->use == WM_METER_POWER)
            reader->readings[place++] = read_power(cell, length, meant->scale);
    }
    return cursor || column < columns->count ? ROW_BAD : row;
}

static void note_bad_row(struct meter_reader *reader)
{
    if (reader->result.lost_ticks++ == 0)
        reader->first_bad_line = reader->lines.number;
}

/* 1 and the time of the next good row, which is in `readings`; 0 past the last. */
static int next_row(struct meter_reader *reader, int64_t *ret_when_ns, struct wm_error *err)
{
    size_t length;
    char *line;

    for (;;) {
        int status = wm_lines_next(&reader->lines, &line, &length, err);
        if (status <= 0)
            return status;
        if (strspn(line, " \t") >= length)
            continue;

        enum row row =
            strlen(line) == length ? read_row(reader, line, ret_when_ns) : ROW_BAD;
        reader->result.ticks++;
        if (row == ROW_MARKED)
            reader->marked++;
        else if (row == ROW_BAD || *ret_when_ns <= reader->when_ns)
            note_bad_row(reader);
        else
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
        return reader->first_bad_line > 0
                   ? wm_fail(err, WM_EFORMAT, "%s: line %zu: not a row of its table",
                             reader->path, reader->first_bad_line)
                   : wm_fail(err, WM_EFORMAT, "%s: holds no reading", reader->path);
    return status < 0 ? status : WM_OK;
}

/* Back to the first row, with nothing counted yet. */
static int start_again(struct meter_reader *reader, struct wm_error *err)
{
    size_t length;
    char *line;

    reader->when_ns = -1;
    reader->result.ticks = 0;
    reader->result.lost_ticks = 0;
    reader->marked = 0;
    int status = wm_lines_rewind(&reader->lines, err);
    while (status >= 0 && reader->lines.number < reader->header_line)
        status = wm_lines_next(&reader->lines, &line, &length, err);
    return status < 0 ? status : WM_OK;
}

/* They have no period: what a sensor shows lags behind by about that much, but here
 * the meter says of what time its readings are. */
static int make_channels(struct meter_reader *reader, struct wm_error *err)
{
    const struct wm_meter_columns *columns = &reader->columns;
    size_t place = 0;

    reader->channels = calloc(columns->powers, sizeof(*reader->channels));
    reader->labels = calloc(columns->powers, sizeof(*reader->labels));
    reader->readings = calloc(columns->powers, sizeof(*reader->readings));
    reader->none = calloc(columns->powers, sizeof(*reader->none));
    if (!reader->channels || !reader->labels || !reader->readings || !reader->none)
        return out_of_memory(reader, err);

    for (size_t i = 0; i < columns->count; i++) {
        if (columns->columns[i].use != WM_METER_POWER)
            continue;
        snprintf(reader->labels[place], sizeof(reader->labels[place]),
                 columns->powers > 1 ? "meter%zu" : "meter", place + 1);
        reader->channels[place] = (struct wm_channel) {
            .source = "meter",
            .device = columns->columns[i].name,
            .label = reader->labels[place],
            .metric = "power",
            .unit = "W",
            .device_kind = WM_DEVICE_PLATFORM,
            .kind = WM_GAUGE,
        };
        place++;
    }
    return WM_OK;
}

static int fill_run(struct meter_reader *reader, int64_t first_ns, struct wm_error *err)
{
    struct wm_run *run = &reader->run;

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
        status = wm_lines_open(&reader->lines, path, LINE_MAX_LENGTH, err);
    if (status == WM_OK)
        status = read_header(reader, err);
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
    reader->result = (struct wm_result) {
        .exit_status = -1,
        .cpu_total_seconds = -1,
        .cpu_main_seconds = -1,
        .cpu_descendants_seconds = -1,
        .peak_rss_bytes = -1,
        .peak_rss_bound_bytes = -1,
        .tool_cpu_seconds = -1,
        .tool_max_rss_bytes = -1,
    };
    return status;
}

static size_t meter_run_count(const void *state)
{
    (void)state;
    return 1;
}

static const struct wm_run *meter_run(const void *state)
{
    return &((const struct meter_reader *)state)->run;
}

static const struct wm_result *meter_result(const void *state)
{
    return &((const struct meter_reader *)state)->result;
}

static size_t meter_channels(const void *state, const struct wm_channel **ret_channels)
{
    const struct meter_reader *reader = state;

    *ret_channels = reader->channels;
    return reader->columns.powers;
}

static size_t meter_gaps(const void *state, const struct wm_gap **ret_gaps)
{
    (void)state;
    *ret_gaps = NULL;
    return 0;
}

/* At the end, when everything has been seen. */
static void say_trouble(struct meter_reader *reader)
{
    struct wm_result *result = &reader->result;
    char *text = result->recording_trouble;
    size_t size = sizeof(result->recording_trouble), used = 0;

    text[0] = '\0';
    if (result->lost_ticks > 0)
        used = (size_t)snprintf(text, size, "line %zu of the meter cannot be used",
                                reader->first_bad_line);
    if (reader->marked > 0)
        snprintf(text + used, size - used,
                 "%sthe meter marks %llu of its readings as not good: left out",
                 used > 0 ? "; " : "", (unsigned long long)reader->marked);
}

static int meter_next(void *state, struct wm_tick *ret_tick, struct wm_error *err)
{
    struct meter_reader *reader = state;
    int64_t before_ns = reader->when_ns;
    struct wm_tick tick = { .readings = reader->readings, .count = reader->columns.powers };

    if (reader->row_ns < 0) {
        int status = next_row(reader, &reader->row_ns, err);
        if (status == 0)
            say_trouble(reader);
        if (status <= 0) {
            reader->row_ns = -1;
            return status;
        }
        for (size_t i = 0; i < tick.count; i++) {
            if (reader->readings[i].state == WM_READING_OK)
                reader->readings[i].when_ns = reader->row_ns;
        }
        reader->result.end_ns = reader->row_ns;
        if (before_ns >= 0 && reader->period_ns > 0 &&
            (reader->row_ns - before_ns) / LONGEST_SPACINGS > reader->period_ns) {
            tick.when_ns = before_ns + 1;
            tick.readings = reader->none;
            *ret_tick = tick;
            return 1;
        }
    }
    tick.when_ns = reader->row_ns;
    reader->row_ns = -1;
    *ret_tick = tick;
    return 1;
}

static void meter_close(void *state)
{
    struct meter_reader *reader = state;

    wm_lines_close(&reader->lines);
    wm_run_release(&reader->run);
    wm_result_release(&reader->result);
    free(reader->header);
    free(reader->channels);
    free(reader->labels);
    free(reader->readings);
    free(reader->none);
}

const struct wm_reader_ops wm_reader_meter = {
    .name = "CSV of a meter",
    .recognises = meter_recognises,
    .state_size = sizeof(struct meter_reader),
    .open = meter_open,
    .run_count = meter_run_count,
    .run = meter_run,
    .result = meter_result,
    .channels = meter_channels,
    .gaps = meter_gaps,
    .next = meter_next,
    .close = meter_close,
};
