/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_csv_read.c - reading back our CSV files.
 *
 * The file may have been cut off anywhere by a kill, a full disk or a copy, and
 * edited by anybody: a last line without an end is left out, anything else that
 * is not as it should be is named with its line.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_array.h"
#include "base/base_clock.h"
#include "base/base_text.h"
#include "base/text/base_cells.h"
#include "base/text/base_number.h"
#include "record/csv/record_csv.h"
#include "record/record_channel.h"
#include "record/record_ops.h"

/* What the cells of a column are. */
struct column {
    enum { IGNORED, REGION_KIND, TIME, CLOCK, VALUE } use;
    size_t index; /* of the clock or channel */
};

struct csv_reader {
    struct wm_reader_head head;
    struct wm_cells cells;
    struct wm_channel_set set;
    struct column *columns;
    size_t column_count, column_room; /* 0: there are no ticks */
    int64_t *clocks;                  /* -1: not known */
    struct wm_reading *readings;
    int64_t last_ns;
    struct wm_csv_regions regions; /* reads the file once more */
};

static bool csv_recognises(const char *head, size_t length)
{
    static const char start[] = WM_CSV_STATIC WM_CSV_STATIC_OURS;

    return length >= sizeof(start) - 1 && memcmp(head, start, sizeof(start) - 1) == 0;
}

/* Puts the file in front of what went wrong with one of its cells. */
static int wrong_cell(const struct csv_reader *reader, int status,
                      const struct wm_error *why, struct wm_error *err)
{
    return wm_fail(err, status, "%s:%zu: %.150s", reader->cells.path, reader->cells.line,
                   why->text);
}

static int read_gaps(struct csv_reader *reader, const json_t *array, struct wm_error *err)
{
    size_t count = json_array_size(array);

    reader->head.gaps = calloc(count + 1, sizeof(*reader->head.gaps));
    if (!reader->head.gaps)
        return wm_fail_memory(err, reader->cells.path);
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
        return wm_fail_memory(err, reader->cells.path);
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

static int check_format(const struct csv_reader *reader, const char *cell,
                        struct wm_error *err)
{
    const char *end = cell;
    int64_t format = 0;

    /* The blanks are room for what was not known when the file was begun. */
    if (!wm_text_i64(cell, &end, &format) || *wm_text_skip_blanks(end) != '\0' ||
        format < 1)
        return wm_cells_wrong(&reader->cells, err, "wattmeter_format is not a version");
    if (format > WM_CSV_FORMAT_REGIONS)
        return wm_fail(
            err, WM_EFORMAT,
            "%s: made by a newer wattmeter (format %lld, this one knows up to %d)",
            reader->cells.path, (long long)format, WM_CSV_FORMAT_REGIONS);
    return WM_OK;
}

/* The row with the static values and ours. */
static int read_static(struct csv_reader *reader, struct wm_error *err)
{
    struct wm_cell cells[WM_CSV_STATIC_COUNT];
    struct wm_error why;

    for (size_t i = 0; i < WM_CSV_STATIC_COUNT; i++) {
        if (!wm_cells_take(&reader->cells, &cells[i]))
            return wm_cells_wrong(&reader->cells, err, "lacks some of its cells");
    }
    int status = check_format(reader, cells[WM_CSV_FORMAT].text, err);
    if (status < 0)
        return status;
    status = wm_run_from_json(cells[WM_CSV_RUN].text, &reader->head.run, &why);
    if (status == WM_OK)
        status = wm_channel_set_from_json(&reader->set, cells[WM_CSV_CHANNELS].text, &why);
    if (status < 0)
        return wrong_cell(reader, status, &why, err);
    return read_state(reader, cells[WM_CSV_STATE].text, err);
}

/* `seen` has a place for each use of the set, and one more for the time. */
static int use_column(struct csv_reader *reader, const char *name, bool *seen,
                      struct wm_error *err)
{
    const struct wm_column_use *use = wm_channel_set_find(&reader->set, name);
    struct column column = { .use = IGNORED };
    size_t place = use ? (size_t)(use - reader->set.uses) : reader->set.use_count;

    if (wm_csv_regions_use_column(&reader->regions, name, reader->column_count))
        column.use = strcmp(name, WM_CSV_REGION_KIND) == 0 ? REGION_KIND : IGNORED;
    else if (strcmp(name, "time_ns") == 0)
        column.use = TIME;
    else if (use)
        column = (struct column) { use->is_clock ? CLOCK : VALUE, use->index };
    if (column.use > REGION_KIND && seen[place])
        return wm_cells_wrong(&reader->cells, err, "column '%.64s' stands there twice",
                              name);
    seen[place] |= column.use > REGION_KIND;
    if (wm_array_reserve(&reader->columns, reader->column_count, &reader->column_room,
                         sizeof(column)) < 0)
        return wm_fail_memory(err, reader->cells.path);
    reader->columns[reader->column_count++] = column;
    return WM_OK;
}

static int use_columns(struct csv_reader *reader, bool *seen, struct wm_error *err)
{
    const struct wm_channel_set *set = &reader->set;
    struct wm_cell name;

    while (wm_cells_take(&reader->cells, &name)) {
        int status = use_column(reader, name.text, seen, err);
        if (status < 0)
            return status;
    }
    for (size_t i = 0; i <= set->use_count; i++) {
        if (!seen[i])
            return wm_cells_wrong(&reader->cells, err, "column '%.64s' is missing",
                                  i < set->use_count ? set->uses[i].name : "time_ns");
    }
    reader->cells.commas = reader->column_count - 1;
    return WM_OK;
}

static int read_header(struct csv_reader *reader, struct wm_error *err)
{
    bool *seen = calloc(reader->set.use_count + 1, sizeof(*seen));
    int status =
        seen ? use_columns(reader, seen, err) : wm_fail_memory(err, reader->cells.path);

    free(seen);
    return status;
}

/* 1 and a row, or 0 past the last whole one. */
static int next_row(struct csv_reader *reader, struct wm_error *err)
{
    int status = wm_cells_next(&reader->cells, err);

    if (status <= 0 || reader->cells.ending == WM_CELLS_ENDED)
        return status;
    status = wm_cells_remark(&reader->cells, false, &reader->head.remarks);
    return status < 0 ? wm_fail_memory(err, reader->cells.path) : 0;
}

static int read_front(struct csv_reader *reader, struct wm_error *err)
{
    for (int row = 0; row < 2; row++) {
        int status = next_row(reader, err);
        if (status < 0)
            return status;
        if (status == 0)
            return wm_fail(err, WM_EFORMAT, "%s: cut off in its second line",
                           reader->cells.path);
    }
    int status = read_static(reader, err);
    if (status == WM_OK)
        status = next_row(reader, err);
    return status <= 0 ? status : read_header(reader, err);
}

static int csv_open(void *state, const char *path, size_t run, struct wm_error *err)
{
    struct csv_reader *reader = state;
    size_t index = 0;

    reader->last_ns = -1;
    wm_csv_regions_init(&reader->regions, path);
    int status = wm_reader_choose_run(path, run, 1, &index, err);
    if (status == WM_OK)
        status = wm_cells_open(&reader->cells, path, err);
    if (status == WM_OK)
        status = read_front(reader, err);
    if (status < 0)
        return status;
    reader->clocks = calloc(reader->set.columns.clock_count + 1, sizeof(*reader->clocks));
    reader->head.run_count = 1;
    reader->head.channels = reader->set.channels;
    reader->head.channel_count = reader->set.count;
    reader->readings = calloc(reader->set.count + 1, sizeof(*reader->readings));
    return reader->clocks && reader->readings ? WM_OK
                                              : wm_fail_memory(err, reader->cells.path);
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

static bool read_cell(struct csv_reader *reader, const struct column *column,
                      const struct wm_cell *cell, int64_t *ret_when_ns)
{
    struct wm_reading *reading;

    switch (column->use) {
    case TIME:
        return parse_time(cell->text, cell->length, ret_when_ns);
    case CLOCK:
        reader->clocks[column->index] = -1;
        return cell->length == 0 ||
               parse_time(cell->text, cell->length, &reader->clocks[column->index]);
    case VALUE:
        reading = &reader->readings[column->index];
        *reading = (struct wm_reading) { 0 };
        if (cell->length == 0)
            return true;
        reading->state = WM_READING_OK;
        return wm_number_parse(cell->text, cell->length, &reading->value);
    case IGNORED:
    case REGION_KIND:
        break;
    }
    return true;
}

/* 1, or 0 where the row is about regions. */
static int read_row(struct csv_reader *reader, int64_t *ret_when_ns, struct wm_error *err)
{
    const struct column *bad = NULL;
    struct wm_cell cell, bad_cell = { 0 };
    size_t count = 0;

    for (; wm_cells_take(&reader->cells, &cell); count++) {
        const struct column *column = &reader->columns[count];
        if (count == reader->column_count)
            return wm_cells_wrong(&reader->cells, err, "more cells than columns");
        if (column->use == REGION_KIND && cell.length > 0)
            return 0;
        if (bad || read_cell(reader, column, &cell, ret_when_ns))
            continue;
        bad = column;
        bad_cell = cell;
    }
    if (bad)
        return wm_cells_wrong(&reader->cells, err, "cell %zu: '%.32s' is not %s",
                              (size_t)(bad - reader->columns) + 1, bad_cell.text,
                              bad->use == VALUE ? "a number" : "a time");
    return count == reader->column_count
               ? 1
               : wm_cells_wrong(&reader->cells, err, "fewer cells than columns");
}

/* 1, or 0 past the last row of a tick. */
static int next_tick_row(struct csv_reader *reader, int64_t *ret_when_ns,
                         struct wm_error *err)
{
    int status = 0;

    while (status == 0 && reader->column_count > 0) {
        status = next_row(reader, err);
        if (status <= 0)
            return status;
        status = read_row(reader, ret_when_ns, err);
    }
    return status;
}

static int csv_next(void *state, struct wm_tick *ret_tick, struct wm_error *err)
{
    struct csv_reader *reader = state;
    const struct wm_columns *columns = &reader->set.columns;
    int64_t when_ns = 0;

    int status = next_tick_row(reader, &when_ns, err);
    if (status <= 0)
        return status;
    if (when_ns <= reader->last_ns)
        return wm_cells_wrong(&reader->cells, err, "not later than the line before");
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

    wm_cells_close(&reader->cells);
    wm_csv_regions_release(&reader->regions);
    free(reader->columns);
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
