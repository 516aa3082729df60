/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat_meter.c - the CSV file of an external power meter: a header that names a time and
 * watts ("time,plug_W"), or what wattmetre-read writes for AIPowerMeter (omegawatt.csv: a
 * line of words before the header, and a flag for rows that are good).
 *
 * Rows are left out where they cannot be read, and single values too, for which the
 * column's last one stands a while; the recording says how many. Where more than three
 * periods of the meter are missing nothing is known of the time between.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_clock.h"
#include "base/base_text.h"
#include "base/base_utf8.h"
#include "base/text/base_cells.h"
#include "base/text/base_localtime.h"
#include "base/text/base_number.h"
#include "record/record_ops.h"

enum {
    COLUMNS_MAX = 256,   /* time, flags, and what a meter with many sockets has for each */
    SPACINGS_MAX = 1024, /* rows from which the meter's period is taken */
    LONGEST_SPACINGS = 3,
};

/* At k = 2: our assumption. */
#define METER_GAIN 0.02

/* In place of a column: there is none. */
#define NONE SIZE_MAX

/* What the columns are called, and their units in seconds or watts. The last two are
 * omegawatt.csv's, whose names begin with a '#' as well. */
static const struct meaning {
    const char *name;
    enum { WHOLE, BEGIN, END } part; /* of the column's name */
    enum { TIME, POWER, IS_GOOD } use;
    double scale;
} meanings[] = {
    { "time", WHOLE, TIME, 1 },
    { "timestamp", WHOLE, TIME, 1 },
    { "time_ms", WHOLE, TIME, 1e-3 },
    { "timestamp_ms", WHOLE, TIME, 1e-3 },
    { "time_us", WHOLE, TIME, 1e-6 },
    { "timestamp_us", WHOLE, TIME, 1e-6 },
    { "time_ns", WHOLE, TIME, 1e-9 },
    { "timestamp_ns", WHOLE, TIME, 1e-9 },
    { "_W", END, POWER, 1 },
    { "_mW", END, POWER, 1e-3 },
    { "_kW", END, POWER, 1e3 },
    { "activepow", BEGIN, POWER, 1 },
    { "frame_is_ok", WHOLE, IS_GOOD, 1 },
    { NULL, WHOLE, IS_GOOD, 0 },
};

struct column {
    size_t place;
    double scale;
    char name[64];
};

/* What a row comes to. */
enum row {
    ROW_GOOD,
    ROW_BAD,    /* it cannot be read */
    ROW_MARKED, /* the meter says that it may not be used */
};

struct meter_reader {
    struct wm_reader_head head;
    struct wm_cells cells;
    size_t column_count, power_count;
    struct column time, is_good, powers[COLUMNS_MAX];
    struct wm_channel *channels;
    char (*labels)[16];
    struct wm_reading *row;   /* as it stands in the file */
    struct wm_reading *shown; /* as they were last given out */
    int64_t period_ns;        /* 0: unknown */
    int64_t when_ns;          /* of the last good row; -1: there was none */
    int64_t row_ns;           /* of the row in `row` that is due; -1: none is */
    struct wm_error fault;    /* what is wrong with the first row or value left out */
    uint64_t left_out, marked;
};

/* The next cell without the blanks around it. */
static bool take_cell(struct meter_reader *reader, struct wm_cell *ret_cell)
{
    if (!wm_cells_take(&reader->cells, ret_cell))
        return false;
    size_t blanks = strspn(ret_cell->text, " \t");
    ret_cell->text += blanks;
    ret_cell->length -= blanks;
    while (ret_cell->length > 0 && strchr(" \t", ret_cell->text[ret_cell->length - 1]))
        ret_cell->length--;
    return true;
}

static bool is_meant(const struct meaning *meaning, const struct wm_cell *name)
{
    size_t length = strlen(meaning->name);

    if (name->length < length || (meaning->part == WHOLE && name->length != length))
        return false;
    size_t from = meaning->part == END ? name->length - length : 0;
    return memcmp(name->text + from, meaning->name, length) == 0;
}

static void take_name(struct meter_reader *reader, const struct wm_cell *name, size_t place)
{
    const struct meaning *meaning = meanings;

    while (meaning->name && !is_meant(meaning, name))
        meaning++;
    if (!meaning->name || (meaning->use == TIME && reader->time.place != NONE))
        return;
    struct column *column = meaning->use == TIME    ? &reader->time
                            : meaning->use == POWER ? &reader->powers[reader->power_count++]
                                                    : &reader->is_good;
    *column = (struct column) { .place = place, .scale = meaning->scale };
    wm_text_utf8(column->name, sizeof(column->name), name->text, name->length);
}

/* The names in a row, which may be the header. Whether it may be a comment. */
static bool take_names(struct meter_reader *reader)
{
    struct wm_cell name;
    bool is_comment = false;

    reader->time.place = reader->is_good.place = NONE;
    reader->power_count = reader->column_count = 0;
    while (take_cell(reader, &name)) {
        size_t place = reader->column_count++;
        bool has_mark = name.text[0] == '#';
        is_comment |= place == 0 && has_mark;
        name.text += has_mark;
        name.length -= has_mark;
        if (place < COLUMNS_MAX)
            take_name(reader, &name, place);
    }
    return is_comment;
}

static int wrong_header(const struct meter_reader *reader, bool is_of_calls,
                        struct wm_error *err)
{
    return wm_fail(err, WM_EFORMAT, "%s: %s", reader->cells.path,
                   is_of_calls
                       ? "a sub-tracking file, which has calls of blocks and no session; "
                         "`wattmeter analyze SESSION --regions FILE` reads both"
                       : "not a recording, nor a meter's CSV: no header with a time and "
                         "watts, as 'time,plug_W'");
}

/* Comments may stand before the header, and one line of words. */
static int read_header(struct meter_reader *reader, struct wm_error *err)
{
    static const char calls[] = "process_id,code_block_name,";
    bool is_of_calls = false, may_follow = true;
    int status = 1;

    while (may_follow && (status = wm_cells_next(&reader->cells, err)) > 0) {
        is_of_calls |= strncmp(reader->cells.cursor, calls, strlen(calls)) == 0;
        may_follow = take_names(reader) || reader->cells.line == 1;
        if (reader->time.place != NONE && reader->power_count > 0 &&
            reader->column_count <= COLUMNS_MAX) {
            reader->cells.commas = reader->column_count - 1;
            return WM_OK;
        }
    }
    return status < 0 ? status : wrong_header(reader, is_of_calls, err);
}

/* A table that may have times: if it is no meter's, it is worth a better message than that
 * it is nothing at all. */
static bool meter_recognises(const char *head, size_t length)
{
    return length > 0 && head[0] != '{' && !memchr(head, '\0', length) &&
           memchr(head, ',', length) && memmem(head, length, "time", strlen("time"));
}

/* Says what is wrong with a cell, if it is the first that is. */
static void note_cell(struct meter_reader *reader, const struct column *column,
                      const struct wm_cell *cell, const char *what)
{
    if (reader->left_out == 0)
        wm_fail(&reader->fault, WM_EFORMAT, "line %zu: column '%.32s': '%.*s' is no %s",
                reader->cells.line, column->name,
                cell->length < 32 ? (int)cell->length : 32, cell->text, what);
}

/* Whole and broken part apart: a double has no room for nanoseconds since 1970. */
static bool read_number(const struct wm_cell *cell, double scale, int64_t *ret_ns)
{
    double unit_ns = round(scale * (double)WM_NS_PER_S), broken = 0;
    const char *rest;
    uint64_t whole;

    if (!wm_text_u64(cell->text, &rest, &whole) ||
        ((double)whole + 1) * unit_ns >= (double)WM_TIME_MAX_NS)
        return false;
    size_t left = cell->length - (size_t)(rest - cell->text);
    if (left > 0 && (*rest != '.' || 1 + strspn(rest + 1, "0123456789") < left))
        return false;
    if (left > 1 && !wm_number_parse(rest, left, &broken))
        return false;
    *ret_ns = (int64_t)whole * (int64_t)unit_ns + (int64_t)llround(broken * unit_ns);
    return true;
}

static bool read_time(const struct meter_reader *reader, const struct wm_cell *cell,
                      int64_t *ret_ns)
{
    int64_t after_ns = reader->when_ns >= 0 ? reader->when_ns : 0;

    return read_number(cell, reader->time.scale, ret_ns) ||
           (wm_localtime_parse_zoned(cell->text, cell->length, after_ns, ret_ns) &&
            *ret_ns >= 0);
}

/* What has been left out so far: whoever reads no further is told, too. */
static void say_trouble(struct meter_reader *reader)
{
    char *text = reader->head.result.recording_trouble;
    size_t size = sizeof(reader->head.result.recording_trouble);

    text[0] = '\0';
    if (reader->left_out > 0)
        wm_text_list(text, size, "; ", "the meter's %s (rows and values left out: %llu)",
                     reader->fault.text, (unsigned long long)reader->left_out);
    if (reader->marked > 0)
        wm_text_list(text, size, "; ",
                     "the meter marks %llu of its readings as not good: left out",
                     (unsigned long long)reader->marked);
}

/* Less than nothing is no power that was drawn. An empty cell is missing and not wrong. */
static void take_power(struct meter_reader *reader, size_t index,
                       const struct wm_cell *cell)
{
    const struct column *column = &reader->powers[index];
    struct wm_reading *reading = &reader->row[index];
    double value;

    *reading = (struct wm_reading) { 0 };
    if (wm_number_parse(cell->text, cell->length, &value) && value >= 0 &&
        value * column->scale <= 1e15) {
        reading->value = value * column->scale;
        reading->state = WM_READING_OK;
    } else if (cell->length > 0) {
        note_cell(reader, column, cell, "power");
        reader->left_out++;
        say_trouble(reader);
    }
}

static enum row bad_row(struct meter_reader *reader, const char *why)
{
    if (reader->left_out == 0)
        wm_fail(&reader->fault, WM_EFORMAT, "line %zu: %s", reader->cells.line, why);
    return ROW_BAD;
}

/* Into `row`, whose readings get their time later. */
static enum row take_row(struct meter_reader *reader, const struct wm_cell *cells,
                         size_t count, int64_t *ret_when_ns)
{
    const struct wm_cell *time = &cells[reader->time.place];

    if (count != reader->column_count)
        return bad_row(reader, "not as many cells as the header has names");
    if (reader->is_good.place != NONE && strcmp(cells[reader->is_good.place].text, "true"))
        return ROW_MARKED;
    if (!read_time(reader, time, ret_when_ns)) {
        note_cell(reader, &reader->time, time,
                  "time since 1970, nor a date as 2026-03-07T18:45:00Z");
        return ROW_BAD;
    }
    if (*ret_when_ns <= reader->when_ns)
        return bad_row(reader, "is not later than the one before");
    for (size_t i = 0; i < reader->power_count; i++)
        take_power(reader, i, &cells[reader->powers[i].place]);
    return ROW_GOOD;
}

/* 1 and the time of the next good row, which is in `row`; 0 past the last whole one. */
static int next_row(struct meter_reader *reader, int64_t *ret_when_ns, struct wm_error *err)
{
    struct wm_cell cells[COLUMNS_MAX], more;
    enum row row = ROW_BAD;

    while (row != ROW_GOOD) {
        size_t count = 0;
        int status = wm_cells_next(&reader->cells, err);
        if (status <= 0 || reader->cells.ending != WM_CELLS_ENDED)
            return status < 0 ? status : 0;
        while (take_cell(reader, count < COLUMNS_MAX ? &cells[count] : &more))
            count++;
        if (cells[0].text[0] == '#' || (count == 1 && cells[0].length == 0))
            continue;
        row = take_row(reader, cells, count, ret_when_ns);
        reader->head.result.ticks++;
        reader->head.result.lost_ticks += row == ROW_BAD;
        reader->left_out += row == ROW_BAD;
        reader->marked += row == ROW_MARKED;
        if (row != ROW_GOOD)
            say_trouble(reader);
    }
    reader->when_ns = *ret_when_ns;
    return 1;
}

static int find_period(struct meter_reader *reader, int64_t *ret_first_ns,
                       struct wm_error *err)
{
    int64_t *spacings = calloc(SPACINGS_MAX, sizeof(*spacings));
    int64_t when_ns = 0, before_ns = -1;
    size_t count = 0;
    int status = 0;

    if (!spacings)
        return wm_fail_memory(err, reader->cells.path);
    while (count < SPACINGS_MAX && (status = next_row(reader, &when_ns, err)) > 0) {
        if (before_ns < 0)
            *ret_first_ns = when_ns;
        else
            spacings[count++] = when_ns - before_ns;
        before_ns = when_ns;
    }
    reader->period_ns = wm_clock_median(spacings, count);
    free(spacings);
    if (status >= 0 && before_ns < 0)
        return wm_fail(err, WM_EFORMAT, "%s: %s", reader->cells.path,
                       reader->left_out > 0 ? reader->fault.text : "holds no reading");
    return status < 0 ? status : WM_OK;
}

/* Back to the first row, with nothing counted yet. */
static int start_again(struct meter_reader *reader, struct wm_error *err)
{
    reader->when_ns = -1;
    reader->left_out = 0;
    reader->marked = 0;
    reader->head.result = (struct wm_result) { 0 };
    int status = wm_lines_rewind(&reader->cells.file, err);
    return status < 0 ? status : read_header(reader, err);
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

/* What a sensor shows lags behind by about its period, but here the meter says of what
 * time its readings are. */
static int make_channels(struct meter_reader *reader, struct wm_error *err)
{
    size_t count = reader->power_count;

    reader->channels = calloc(count, sizeof(*reader->channels));
    reader->labels = calloc(count, sizeof(*reader->labels));
    reader->row = calloc(count, sizeof(*reader->row));
    reader->shown = calloc(count, sizeof(*reader->shown));
    if (!reader->channels || !reader->labels || !reader->row || !reader->shown)
        return wm_fail_memory(err, reader->cells.path);
    for (size_t i = 0; i < count; i++) {
        const char *name = reader->powers[i].name;
        snprintf(reader->labels[i], sizeof(reader->labels[i]),
                 count > 1 ? "meter%zu" : "meter", i + 1);
        reader->channels[i] = (struct wm_channel) {
            .source = "meter",
            .device = has_device(reader, i, name) ? reader->labels[i] : name,
            .label = reader->labels[i],
            .metric = "power",
            .unit = "W",
            .device_kind = WM_DEVICE_PLATFORM,
            .kind = WM_GAUGE,
            .sensor = { .kind = WM_SENSOR_METER,
                        .contains = WM_CONTAINS_PLATFORM,
                        .gain = METER_GAIN,
                        .text = "an external meter" },
        };
    }
    reader->head.run_count = 1;
    reader->head.has_result = true;
    reader->head.channels = reader->channels;
    reader->head.channel_count = count;
    return WM_OK;
}

static int meter_open(void *state, const char *path, size_t run, struct wm_error *err)
{
    struct meter_reader *reader = state;
    int64_t first_ns = 0;
    size_t index;

    reader->when_ns = -1;
    reader->row_ns = -1;
    int status = wm_reader_choose_run(path, run, 1, &index, err);
    if (status == WM_OK)
        status = wm_cells_open(&reader->cells, path, err);
    if (status == WM_OK)
        status = read_header(reader, err);
    if (status == WM_OK)
        status = make_channels(reader, err);
    if (status == WM_OK)
        status = find_period(reader, &first_ns, err);
    if (status == WM_OK)
        status = wm_run_add_source(&reader->head.run, "meter", true,
                                   "a CSV file of an external meter", err);
    if (status < 0)
        return status;
    reader->head.run.anchor_ns = first_ns;
    reader->head.run.anchor_unix_ns = first_ns;
    reader->head.run.interval_ns = reader->period_ns;
    for (size_t i = 0; i < reader->power_count; i++)
        reader->channels[i].period_ns = reader->period_ns;
    return start_again(reader, err);
}

/* Ends, right behind the last tick, the lines of columns that nothing is known of until
 * the row that is due now. False where there is no such column. */
static bool make_hole(struct meter_reader *reader)
{
    bool has_hole = false;

    for (size_t i = 0; i < reader->power_count && reader->period_ns > 0; i++) {
        struct wm_reading *shown = &reader->shown[i];
        if (shown->state != WM_READING_OK ||
            (reader->row_ns - shown->when_ns) / LONGEST_SPACINGS <= reader->period_ns)
            continue;
        *shown = (struct wm_reading) { 0 };
        has_hole = true;
    }
    return has_hole;
}

/* A value that cannot be used leaves the last one standing, which has its own time. */
static void show_row(struct meter_reader *reader)
{
    for (size_t i = 0; i < reader->power_count; i++) {
        if (reader->row[i].state != WM_READING_OK)
            continue;
        reader->shown[i] = reader->row[i];
        reader->shown[i].when_ns = reader->row_ns;
    }
}

static int meter_next(void *state, struct wm_tick *ret_tick, struct wm_error *err)
{
    struct meter_reader *reader = state;
    int64_t before_ns = reader->when_ns;
    struct wm_tick tick = { .readings = reader->shown, .count = reader->power_count };

    if (reader->row_ns < 0) {
        int64_t row_ns;
        int status = next_row(reader, &row_ns, err);
        if (status <= 0)
            return status;
        reader->row_ns = row_ns;
        reader->head.result.end_ns = row_ns;
        if (make_hole(reader)) {
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

    wm_cells_close(&reader->cells);
    wm_reader_head_release(&reader->head);
    free(reader->channels);
    free(reader->labels);
    free(reader->row);
    free(reader->shown);
}

const struct wm_reader_ops wm_reader_meter = {
    .name = "CSV of a meter",
    .recognises = meter_recognises,
    .state_size = sizeof(struct meter_reader),
    .open = meter_open,
    .next = meter_next,
    .close = meter_close,
};
