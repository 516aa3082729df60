/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_csv_read.c - reading back our CSV files.
 *
 * The file may have been cut off anywhere by a kill, a full disk or a copy, and
 * edited by anybody: a last line without an end is dropped, anything else that
 * is not as it should be is named with its line.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_clock.h"
#include "base/text/base_lines.h"
#include "base/text/base_number.h"
#include "base/text/base_text.h"
#include "base/text/base_utf8.h"
#include "record/csv/record_csv.h"
#include "record/csv/record_csv_read_regions.h"
#include "record/record_channel.h"
#include "record/record_ops.h"

/* What the cells of a column are. */
struct cell {
    enum { CELL_IGNORED, CELL_TIME, CELL_CLOCK, CELL_VALUE } use;
    size_t index; /* of the clock or channel */
};

struct csv_reader {
    struct wm_reader_head head;
    const char *path; /* for messages */
    struct wm_lines lines;

    struct wm_channel_set set;

    struct cell *cells;
    size_t cell_count; /* 0: there are no ticks */
    int64_t *clocks;   /* -1: not known */
    struct wm_reading *readings;
    int64_t last_ns;

    struct wm_csv_regions regions; /* reads the file once more */
};

static bool csv_recognises(const char *head, size_t length)
{
    static const char start[] = WM_CSV_STATIC WM_CSV_STATIC_OURS;

    return length >= sizeof(start) - 1 && memcmp(head, start, sizeof(start) - 1) == 0;
}

static int out_of_memory(const struct csv_reader *reader, struct wm_error *err)
{
    return wm_fail(err, WM_ENOMEM, "%s: out of memory", reader->path);
}

static int wrong(const struct csv_reader *reader, const char *what, struct wm_error *err)
{
    return wm_fail(err, WM_EFORMAT, "%s: line %zu: %s", reader->path, reader->lines.number,
                   what);
}

/* Puts the file in front of what went wrong with one of its cells. */
static int wrong_cell(const struct csv_reader *reader, int status,
                      const struct wm_error *why, struct wm_error *err)
{
    return wm_fail(err, status, "%s: line %zu: %.150s", reader->path, reader->lines.number,
                   why->text);
}

/* Takes the cell at *cursor, without its quotes, and moves on to the next one;
 * *cursor is NULL after the last. NULL where quotes are not closed, or stand in
 * the middle. */
static char *next_cell(char **cursor)
{
    char *cell = *cursor, *to = cell, *from = cell;

    if (*from != '"') {
        from += strcspn(from, ",\"");
        to = from;
    } else {
        for (from++; *from && (*from != '"' || from[1] == '"'); from++) {
            from += *from == '"';
            *to++ = *from;
        }
        if (*from++ != '"')
            return NULL;
    }
    if (*from != ',' && *from != '\0')
        return NULL;
    *cursor = *from == ',' ? from + 1 : NULL;
    *to = '\0';
    return cell;
}

static int read_gaps(struct csv_reader *reader, const json_t *array, struct wm_error *err)
{
    size_t count = json_array_size(array);

    reader->head.gaps = calloc(count + 1, sizeof(*reader->head.gaps));
    if (!reader->head.gaps)
        return out_of_memory(reader, err);
    for (size_t i = 0; i < count; i++) {
        if (wm_gap_from_json(&reader->set, json_array_get(array, i),
                             &reader->head.gaps[reader->head.gap_count]))
            reader->head.gap_count++;
    }
    return WM_OK;
}

static int read_result(struct csv_reader *reader, const json_t *object,
                       struct wm_error *err)
{
    struct wm_error why;

    if (!object || json_is_null(object))
        return WM_OK;
    char *text = json_dumps(object, JSON_COMPACT | JSON_ENCODE_ANY);
    if (!text)
        return out_of_memory(reader, err);
    int status = wm_result_from_json(text, &reader->head.result, &why);
    free(text);
    if (status < 0)
        return wrong_cell(reader, status, &why, err);
    reader->head.has_result = true;
    return WM_OK;
}

/* This cell is written over in place, and a kill may have left half of that:
 * then it says nothing, and the run counts as one that was killed. */
static int read_state(struct csv_reader *reader, const char *cell, struct wm_error *err)
{
    json_t *state = json_loads(cell, 0, NULL);

    int status = read_gaps(reader, json_object_get(state, "gaps"), err);
    if (status == WM_OK)
        status = read_result(reader, json_object_get(state, "result"), err);
    json_decref(state);
    return status;
}

/* The row with the static values and ours. */
static int read_static(struct csv_reader *reader, char *line, struct wm_error *err)
{
    const char *cells[WM_CSV_STATIC_COUNT];
    char *cursor = line;
    struct wm_error why;

    for (size_t i = 0; i < WM_CSV_STATIC_COUNT; i++) {
        cells[i] = cursor ? next_cell(&cursor) : NULL;
        if (!cells[i])
            return wrong(reader, "lacks some of its cells", err);
    }
    int status =
        wm_csv_check_format(cells[WM_CSV_FORMAT], reader->path, reader->lines.number, err);
    if (status < 0)
        return status;
    status = wm_run_from_json(cells[WM_CSV_RUN], &reader->head.run, &why);
    if (status == WM_OK)
        status = wm_channel_set_from_json(&reader->set, cells[WM_CSV_CHANNELS],
                                          &reader->head.run, &why);
    if (status < 0)
        return wrong_cell(reader, status, &why, err);
    return read_state(reader, cells[WM_CSV_STATE], err);
}

static size_t count_cells(const char *line)
{
    size_t count = 1;

    for (; (line = strchr(line, ',')) != NULL; line++)
        count++;
    return count;
}

/* `seen` has a place for each use of the set, and one more for the time. */
static int use_column(struct csv_reader *reader, const char *name, bool *seen,
                      struct wm_error *err)
{
    struct cell *cell = &reader->cells[reader->cell_count++];
    const struct wm_column_use *use = wm_channel_set_find(&reader->set, name);

    if (wm_csv_regions_use_column(&reader->regions, name, reader->cell_count - 1))
        return WM_OK;
    if (strcmp(name, "time_ns") == 0)
        cell->use = CELL_TIME;
    else if (use)
        *cell = (struct cell) { use->is_clock ? CELL_CLOCK : CELL_VALUE, use->index };
    else
        return WM_OK;

    size_t place = use ? (size_t)(use - reader->set.uses) : reader->set.use_count;
    if (seen[place])
        return wm_fail(err, WM_EFORMAT, "%s: line %zu: column '%.64s' stands there twice",
                       reader->path, reader->lines.number, name);
    seen[place] = true;
    return WM_OK;
}

static int use_columns(struct csv_reader *reader, char *line, bool *seen,
                       struct wm_error *err)
{
    char *cursor = line;

    while (cursor) {
        const char *name = next_cell(&cursor);
        if (!name)
            return wrong(reader, "quotes in the wrong place", err);
        int status = use_column(reader, name, seen, err);
        if (status < 0)
            return status;
    }
    for (size_t i = 0; i <= reader->set.use_count; i++) {
        if (!seen[i])
            return wm_fail(err, WM_EFORMAT, "%s: line %zu: column '%.64s' is missing",
                           reader->path, reader->lines.number,
                           i < reader->set.use_count ? reader->set.uses[i].name
                                                     : "time_ns");
    }
    return WM_OK;
}

static int read_header(struct csv_reader *reader, char *line, struct wm_error *err)
{
    bool *seen = calloc(reader->set.use_count + 1, sizeof(*seen));

    reader->cells = calloc(count_cells(line), sizeof(*reader->cells));
    int status = seen && reader->cells ? use_columns(reader, line, seen, err)
                                       : out_of_memory(reader, err);
    free(seen);
    return status;
}

/* 1, or 0 where the file ends before that. */
static int read_front(struct csv_reader *reader, struct wm_error *err)
{
    char *line = NULL;
    size_t length = 0;

    for (int row = 0; row < 2; row++) {
        int status = wm_lines_next(&reader->lines, &line, &length, err);
        if (status < 0)
            return status;
        if (status == 0)
            return wm_fail(err, WM_EFORMAT, "%s: cut off in its second line", reader->path);
    }
    int status = read_static(reader, line, err);
    if (status < 0)
        return status;

    status = wm_lines_next(&reader->lines, &line, &length, err);
    return status <= 0 ? status : read_header(reader, line, err);
}

static int csv_open(void *state, const char *path, size_t run, struct wm_error *err)
{
    struct csv_reader *reader = state;
    size_t index = 0;

    reader->path = wm_text_path(path);
    reader->last_ns = -1;
    wm_csv_regions_init(&reader->regions, path);
    int status = wm_reader_choose_run(path, run, 1, &index, err);
    if (status < 0)
        return status;
    status = wm_lines_open(&reader->lines, path, WM_CSV_LINE_MAX, err);
    if (status == WM_OK)
        status = read_front(reader, err);
    if (status < 0)
        return status;
    reader->clocks = calloc(reader->set.columns.clock_count + 1, sizeof(*reader->clocks));
    reader->head.run_count = 1;
    reader->head.channels = reader->set.channels;
    reader->head.channel_count = reader->set.count;
    reader->readings = calloc(reader->set.count + 1, sizeof(*reader->readings));
    return reader->clocks && reader->readings ? WM_OK : out_of_memory(reader, err);
}

static bool parse_time(const char *text, size_t length, int64_t *ret_ns)
{
    const char *end = text;
    int64_t value = 0;

    if (!wm_text_i64(text, &end, &value) || end != text + length || value < 0 ||
        value > WM_TIME_MAX_NS)
        return false;
    *ret_ns = value;
    return true;
}

static int read_cell(struct csv_reader *reader, size_t column, const char *text,
                     size_t length, int64_t *ret_when_ns, struct wm_error *err)
{
    const struct cell *cell = &reader->cells[column];
    bool good = true;

    switch (cell->use) {
    case CELL_IGNORED:
        return WM_OK;
    case CELL_TIME:
        good = parse_time(text, length, ret_when_ns);
        break;
    case CELL_CLOCK:
        reader->clocks[cell->index] = -1;
        good = length == 0 || parse_time(text, length, &reader->clocks[cell->index]);
        break;
    case CELL_VALUE: {
        struct wm_reading *reading = &reader->readings[cell->index];
        *reading = (struct wm_reading) { 0 };
        if (length > 0) {
            reading->state = WM_READING_OK;
            good = wm_number_parse(text, length, &reading->value);
        }
        break;
    }
    }
    if (good)
        return WM_OK;
    return wm_fail(err, WM_EFORMAT, "%s: line %zu, cell %zu: '%.*s' is not %s",
                   reader->path, reader->lines.number, column + 1,
                   length < 32 ? (int)length : 32, text,
                   cell->use == CELL_VALUE ? "a number" : "a time");
}

static int read_row(struct csv_reader *reader, const char *line, size_t length,
                    int64_t *ret_when_ns, struct wm_error *err)
{
    const char *cell = line, *end = line + length;
    size_t column = 0;

    for (;; column++) {
        const char *comma = memchr(cell, ',', (size_t)(end - cell));
        const char *cell_end = comma ? comma : end;
        if (column == reader->cell_count)
            return wrong(reader, "more cells than columns", err);
        int status =
            read_cell(reader, column, cell, (size_t)(cell_end - cell), ret_when_ns, err);
        if (status < 0)
            return status;
        if (!comma)
            break;
        cell = comma + 1;
    }
    if (column + 1 != reader->cell_count)
        return wrong(reader, "fewer cells than columns", err);
    return WM_OK;
}

/* 1, or 0 past the last row of a tick. */
static int next_tick_row(struct csv_reader *reader, char **ret_line, size_t *ret_length,
                         struct wm_error *err)
{
    int status;

    while ((status = wm_lines_next(&reader->lines, ret_line, ret_length, err)) > 0) {
        if (!wm_csv_regions_is_row(&reader->regions, *ret_line, *ret_length))
            break;
    }
    return status;
}

/* Past the last whole line: 0. */
static int note_tail(struct csv_reader *reader, struct wm_error *err)
{
    char *rest;

    if (reader->head.remarks.count == 0 && wm_lines_rest(&reader->lines, &rest) > 0 &&
        wm_remarks_add(&reader->head.remarks,
                       "%s:%zu: the last line was cut off, and is left out", reader->path,
                       reader->lines.number) < 0)
        return out_of_memory(reader, err);
    return 0;
}

static int csv_next(void *state, struct wm_tick *ret_tick, struct wm_error *err)
{
    struct csv_reader *reader = state;
    const struct wm_columns *columns = &reader->set.columns;
    int64_t when_ns = 0;
    char *line = NULL;
    size_t length = 0;

    int status = reader->cell_count > 0 ? next_tick_row(reader, &line, &length, err) : 0;
    if (status <= 0)
        return status < 0 ? status : note_tail(reader, err);
    status = read_row(reader, line, length, &when_ns, err);
    if (status < 0)
        return status;
    if (when_ns <= reader->last_ns)
        return wrong(reader, "not later than the line before", err);
    reader->last_ns = when_ns;

    for (size_t i = 0; i < reader->set.count; i++) {
        struct wm_reading *reading = &reader->readings[i];
        size_t clock = columns->clock_of[i];
        bool has_clock = clock != WM_TICK_CLOCK && reader->clocks[clock] >= 0;
        if (reading->state == WM_READING_OK)
            reading->when_ns = has_clock ? reader->clocks[clock] : when_ns;
    }
    *ret_tick = (struct wm_tick) {
        .when_ns = when_ns,
        .readings = reader->readings,
        .count = reader->set.count,
    };
    return 1;
}

static int csv_regions(void *state, struct wm_region_batch *ret_batch, struct wm_error *err)
{
    struct csv_reader *reader = state;

    return wm_csv_regions_next(&reader->regions, ret_batch, err);
}

static int csv_calls(void *state, struct wm_region_batch *ret_batch, struct wm_error *err)
{
    struct csv_reader *reader = state;

    return wm_csv_regions_next_call(&reader->regions, ret_batch, err);
}

static void csv_close(void *state)
{
    struct csv_reader *reader = state;

    wm_lines_close(&reader->lines);
    wm_csv_regions_release(&reader->regions);
    free(reader->cells);
    free(reader->clocks);
    free(reader->readings);
    wm_channel_set_release(&reader->set);
    wm_reader_head_release(&reader->head);
}

const struct wm_reader_ops wm_reader_csv = {
    .name = "CSV",
    .recognises = csv_recognises,
    .state_size = sizeof(struct csv_reader),
    .open = csv_open,
    .next = csv_next,
    .regions = csv_regions,
    .calls = csv_calls,
    .close = csv_close,
};
