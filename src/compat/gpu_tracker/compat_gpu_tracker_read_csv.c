/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat_gpu_tracker_read_csv.c - reading gpu_tracker's tracking file in CSV.
 *
 * Rows are in the order of time unless the clock was set back while gpu_tracker wrote
 * them. Only when that shows is there a list of where the rows stand, to be read anew in
 * the order of their times.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_array.h"
#include "base/base_clock.h"
#include "base/text/base_cells.h"
#include "base/text/base_number.h"
#include "compat/gpu_tracker/compat_gpu_tracker_read.h"

#define WHAT "a tracking file"

/* A column that is none of gpu_tracker's. */
enum { OTHER_COLUMN = WM_TIMEPOINT_COLUMNS };

struct place {
    int64_t when_ns;
    uint64_t offset;
    size_t line;
};

struct csv {
    struct wm_tracking_reader base;
    struct wm_cells cells;
    unsigned char *uses;   /* what stands in each column */
    size_t columns;        /* 0: no timepoint was written */
    uint64_t first_offset; /* of the first row, */
    size_t first_line;     /* and its line */
    int64_t last_ns;
    struct place *places; /* of all rows by time; NULL: they are in order */
    size_t place_count, next_place;
};

/* Our own recordings begin with the same columns, but have a reader of their own. */
static bool csv_recognises(const char *head, size_t length)
{
    const char *end = memchr(head, '\n', length);
    size_t first = end ? (size_t)(end - head) : length;

    return memmem(head, first, "ram_unit", strlen("ram_unit")) != NULL;
}

static int out_of_memory(const struct csv *csv, struct wm_error *err)
{
    return wm_fail(err, WM_ENOMEM, "%s: out of memory", csv->cells.path);
}

static int wrong_cell(const struct csv *csv, size_t column, const struct wm_cell *cell,
                      const char *what, struct wm_error *err)
{
    return wm_cells_wrong(&csv->cells, err, "cell %zu: '%.32s' is not %s", column + 1,
                          cell->text, what);
}

static int wrong_count(const struct csv *csv, struct wm_error *err)
{
    return wm_cells_wrong(&csv->cells, err, "not as many cells as there are columns");
}

static int next_row(struct csv *csv, const char *which, struct wm_error *err)
{
    int status = wm_cells_next(&csv->cells, err);

    if (status == 0 || csv->cells.ending != WM_CELLS_ENDED)
        return wm_fail(err, WM_EFORMAT, "%s: cut off in its %s line", csv->cells.path,
                       which);
    return status;
}

/* 1 where it was taken, or 0. */
static int remark_tail(struct csv *csv, bool taken, struct wm_error *err)
{
    if (wm_cells_remark(&csv->cells, taken, &csv->base.head.remarks) < 0)
        return out_of_memory(csv, err);
    return taken;
}

/* The last line, without its end: what was cut off in a number looks like another one. */
static bool is_whole(const struct csv *csv, int64_t when_ns, int64_t before_ns)
{
    return csv->cells.ending == WM_CELLS_UNENDED && when_ns >= before_ns;
}

/* The first two rows. */
static int read_static(struct csv *csv, struct wm_error *err)
{
    size_t places[WM_STATIC_COUNT], column = 0;
    struct wm_cell cell;

    int status = next_row(csv, "first", err);
    if (status < 0)
        return status;
    int columns = wm_cells_header(&csv->cells, wm_static_names, WM_STATIC_COUNT,
                                  WM_STATIC_COUNT, WHAT, places, err);
    if (columns < 0)
        return columns;

    status = next_row(csv, "second", err);
    for (; status >= 0 && wm_cells_take(&csv->cells, &cell); column++) {
        for (size_t i = 0; i < WM_STATIC_COUNT && status >= 0; i++) {
            if (places[i] == column &&
                !wm_tracking_reader_set(&csv->base, (enum wm_static_column)i, cell.text))
                status = wrong_cell(csv, column, &cell, wm_static_names[i], err);
        }
    }
    if (status < 0)
        return status;
    return column == (size_t)columns ? WM_OK : wrong_count(csv, err);
}

static int read_header(struct csv *csv, struct wm_error *err)
{
    const char *names[WM_TIMEPOINT_COLUMNS];
    size_t places[WM_TIMEPOINT_COLUMNS];

    int status = wm_cells_next(&csv->cells, err);
    if (csv->cells.ending != WM_CELLS_ENDED)
        return remark_tail(csv, false, err);
    if (status <= 0)
        return status;
    wm_timepoint_columns(names);
    int columns = wm_cells_header(&csv->cells, names, WM_TIMEPOINT_COLUMNS,
                                  WM_TIMEPOINT_COLUMNS, WHAT, places, err);
    if (columns < 0)
        return columns;

    csv->columns = (size_t)columns;
    csv->uses = malloc(csv->columns);
    if (!csv->uses)
        return out_of_memory(csv, err);
    memset(csv->uses, OTHER_COLUMN, csv->columns);
    for (size_t i = 0; i < WM_TIMEPOINT_COLUMNS; i++)
        csv->uses[places[i]] = (unsigned char)i;
    csv->first_offset = wm_cells_offset(&csv->cells);
    csv->first_line = csv->cells.lines + 1;
    return WM_OK;
}

static int read_time(const struct csv *csv, size_t column, const struct wm_cell *cell,
                     int64_t *ret_when_ns, struct wm_error *err)
{
    double seconds;

    if (!wm_number_parse(cell->text, cell->length, &seconds) ||
        !wm_clock_from_seconds(seconds, ret_when_ns))
        return wrong_cell(csv, column, cell, "a time in seconds since 1970", err);
    return WM_OK;
}

/* 1, or what failed. */
static int read_row(struct csv *csv, struct wm_timepoint *ret_timepoint,
                    struct wm_error *err)
{
    struct wm_cell cell;
    size_t column = 0;
    int status = WM_OK;

    for (; status == WM_OK && wm_cells_take(&csv->cells, &cell); column++) {
        size_t use = column < csv->columns ? csv->uses[column] : OTHER_COLUMN;
        if (use == OTHER_COLUMN)
            continue;
        if (use == WM_TIMESTAMP) {
            status = read_time(csv, column, &cell, &ret_timepoint->when_ns, err);
            continue;
        }
        ret_timepoint->values[use] = NAN;
        if (cell.length > 0 &&
            !wm_number_parse(cell.text, cell.length, &ret_timepoint->values[use]))
            status = wrong_cell(csv, column, &cell, "a number", err);
    }
    if (status < 0)
        return status;
    return column == csv->columns ? 1 : wrong_count(csv, err);
}

/* Its time alone: 1, or what failed. */
static int read_row_time(struct csv *csv, int64_t *ret_when_ns, struct wm_error *err)
{
    struct wm_cell cell;

    for (size_t column = 0; wm_cells_take(&csv->cells, &cell); column++) {
        if (column < csv->columns && csv->uses[column] == WM_TIMESTAMP)
            return read_time(csv, column, &cell, ret_when_ns, err) < 0 ? WM_EFORMAT : 1;
    }
    return wrong_count(csv, err);
}

static int add_place(struct csv *csv, size_t *room, int64_t when_ns, struct wm_error *err)
{
    if (wm_array_reserve(&csv->places, csv->place_count, room, sizeof(*csv->places)) < 0)
        return out_of_memory(csv, err);
    csv->places[csv->place_count++] = (struct place) {
        .when_ns = when_ns,
        .offset = csv->cells.row_offset,
        .line = csv->cells.line,
    };
    return WM_OK;
}

static int compare_places(const void *a, const void *b)
{
    const struct place *left = a, *right = b;

    if (left->when_ns != right->when_ns)
        return left->when_ns < right->when_ns ? -1 : 1;
    return (left->line > right->line) - (left->line < right->line);
}

/* Lists all rows by their times, and begins anew. */
static int sort(struct csv *csv, struct wm_error *err)
{
    int64_t when_ns = 0, before_ns;
    size_t room = 0;

    int status = wm_cells_seek(&csv->cells, csv->first_offset, csv->first_line, err);
    while (status >= 0 && (status = wm_cells_next(&csv->cells, err)) > 0) {
        before_ns = when_ns;
        status = read_row_time(csv, &when_ns, err);
        if (csv->cells.ending != WM_CELLS_ENDED &&
            !(status > 0 && is_whole(csv, when_ns, before_ns)))
            status = remark_tail(csv, false, err);
        if (status > 0)
            status = add_place(csv, &room, when_ns, err);
    }
    if (status < 0)
        return status;
    if (csv->place_count > 0)
        qsort(csv->places, csv->place_count, sizeof(*csv->places), compare_places);
    csv->last_ns = 0;
    return 2;
}

/* 1, or 0 past the last row. */
static int go_on(struct csv *csv, struct wm_error *err)
{
    if (csv->places) {
        if (csv->next_place == csv->place_count)
            return 0;
        const struct place *place = &csv->places[csv->next_place++];
        int status = wm_cells_seek(&csv->cells, place->offset, place->line, err);
        if (status < 0)
            return status;
    }
    return wm_cells_next(&csv->cells, err);
}

/* 1 and the next row as it stands there, or 0 past the last. */
static int next_timepoint(struct csv *csv, struct wm_timepoint *ret_timepoint,
                          struct wm_error *err)
{
    if (csv->columns == 0)
        return 0;
    int status = go_on(csv, err);
    if (status == 0)
        return 0;
    if (status > 0)
        status = read_row(csv, ret_timepoint, err);
    if (csv->cells.ending == WM_CELLS_ENDED)
        return status;
    return remark_tail(
        csv, status > 0 && is_whole(csv, ret_timepoint->when_ns, csv->last_ns), err);
}

static int csv_next(void *state, struct wm_tick *ret_tick, struct wm_error *err)
{
    struct csv *csv = state;
    struct wm_timepoint timepoint;

    int status = next_timepoint(csv, &timepoint, err);
    if (status <= 0)
        return status;
    if (timepoint.when_ns < csv->last_ns)
        return csv->places ? wm_cells_wrong(&csv->cells, err, "earlier than the row before")
                           : sort(csv, err);
    csv->last_ns = timepoint.when_ns;
    *ret_tick = wm_tracking_reader_tick(&csv->base, &timepoint);
    return 1;
}

static void csv_close(void *state)
{
    struct csv *csv = state;

    wm_cells_close(&csv->cells);
    wm_reader_head_release(&csv->base.head);
    free(csv->uses);
    free(csv->places);
}

static int csv_open(void *state, const char *path, size_t run, struct wm_error *err)
{
    struct csv *csv = state;
    size_t index = 0;

    wm_tracking_reader_init(&csv->base);
    int status = wm_reader_choose_run(path, run, 1, &index, err);
    if (status == WM_OK)
        status = wm_cells_open(&csv->cells, path, err);
    if (status == WM_OK)
        status = read_static(csv, err);
    return status < 0 ? status : read_header(csv, err);
}

const struct wm_reader_ops wm_reader_gpu_tracker_csv = {
    .name = "gpu_tracker's CSV",
    .is_foreign = true,
    .recognises = csv_recognises,
    .state_size = sizeof(struct csv),
    .open = csv_open,
    .next = csv_next,
    .close = csv_close,
};
