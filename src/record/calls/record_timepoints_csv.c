/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_timepoints_csv.c - gpu_tracker's tracking file in CSV, and our CSV recordings,
 * which begin with the same columns.
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
#include "record/calls/record_timepoints_ops.h"
#include "record/csv/record_csv.h"
#include "record/record_ops.h"

#define WHAT "a tracking file"
#define FORMAT_NAME "wattmeter_format"

/* Columns that are none of gpu_tracker's. */
enum { OTHER_COLUMN = WM_TIMEPOINT_COLUMNS, REGION_COLUMN };

struct place {
    int64_t when_ns;
    uint64_t offset;
    size_t line;
};

struct csv {
    struct wm_timepoints base;
    char *path;
    struct wm_cells cells;
    unsigned char *uses;   /* what stands in each column */
    size_t columns;        /* 0: no timepoint was written */
    uint64_t first_offset; /* of the first row, */
    size_t first_line;     /* and its line */
    int64_t last_ns;
    struct place *places; /* of all rows by time; NULL: they are in order */
    size_t place_count, next_place;
};

bool wm_timepoints_is_csv(const char *head, size_t length)
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
    if (wm_cells_remark(&csv->cells, taken, &csv->base.remarks) < 0)
        return out_of_memory(csv, err);
    return taken;
}

/* The last line, without its end: what was cut off in a number looks like another one. We
 * end each line of ours. */
static bool is_whole(const struct csv *csv, int64_t when_ns, int64_t before_ns)
{
    return csv->cells.ending == WM_CELLS_UNENDED && !csv->base.is_recording &&
           when_ns >= before_ns;
}

/* The first two rows; ours has more columns there. */
static int read_static(struct csv *csv, struct wm_error *err)
{
    const char *names[WM_STATIC_COUNT + 1];
    size_t places[WM_STATIC_COUNT + 1], column = 0;
    struct wm_cell cell;

    int status = next_row(csv, "first", err);
    if (status < 0)
        return status;
    memcpy(names, wm_static_names, sizeof(wm_static_names));
    names[WM_STATIC_COUNT] = FORMAT_NAME;
    int columns = wm_cells_header(&csv->cells, names, WM_STATIC_COUNT + 1, WM_STATIC_COUNT,
                                  WHAT, places, err);
    if (columns < 0)
        return columns;
    csv->base.is_recording = places[WM_STATIC_COUNT] != SIZE_MAX;

    status = next_row(csv, "second", err);
    for (; status >= 0 && wm_cells_take(&csv->cells, &cell); column++) {
        for (size_t i = 0; i < WM_STATIC_COUNT && status >= 0; i++) {
            if (places[i] == column &&
                !wm_static_set(&csv->base.static_data, (enum wm_static_column)i, cell.text))
                status = wrong_cell(csv, column, &cell, names[i], err);
        }
        if (status >= 0 && places[WM_STATIC_COUNT] == column)
            status = wm_csv_check_format(cell.text, csv->cells.path, csv->cells.line, err);
    }
    if (status < 0)
        return status;
    return column == (size_t)columns ? WM_OK : wrong_count(csv, err);
}

/* Ours also has rows that tell of regions, in a column of theirs. */
static int read_header(struct csv *csv, struct wm_error *err)
{
    const char *names[WM_TIMEPOINT_COLUMNS + 1];
    size_t places[WM_TIMEPOINT_COLUMNS + 1];

    int status = wm_cells_next(&csv->cells, err);
    if (csv->cells.ending != WM_CELLS_ENDED)
        return remark_tail(csv, false, err);
    if (status <= 0)
        return status;
    wm_timepoint_columns(names);
    names[WM_TIMEPOINT_COLUMNS] = WM_CSV_REGION_KIND;
    int columns =
        wm_cells_header(&csv->cells, names, WM_TIMEPOINT_COLUMNS + csv->base.is_recording,
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
    if (csv->base.is_recording && places[WM_TIMEPOINT_COLUMNS] != SIZE_MAX)
        csv->uses[places[WM_TIMEPOINT_COLUMNS]] = REGION_COLUMN;
    csv->first_offset = wm_cells_offset(&csv->cells);
    csv->first_line = csv->cells.lines + 1;
    return WM_OK;
}

/* 1, or 0 for the first tick of a recording, which ends no window. */
static int read_time(const struct csv *csv, size_t column, const struct wm_cell *cell,
                     int64_t *ret_when_ns, struct wm_error *err)
{
    double seconds;

    if (cell->length == 0 && csv->base.is_recording)
        return 0;
    if (!wm_number_parse(cell->text, cell->length, &seconds) ||
        !wm_clock_from_seconds(seconds, ret_when_ns))
        return wrong_cell(csv, column, cell, "a time in seconds since 1970", err);
    return 1;
}

/* As read_time(). */
static int read_row(struct csv *csv, struct wm_timepoint *ret_timepoint,
                    struct wm_error *err)
{
    struct wm_cell cell;
    size_t column = 0;
    int has_time = 0;

    for (; wm_cells_take(&csv->cells, &cell); column++) {
        size_t use = column < csv->columns ? csv->uses[column] : OTHER_COLUMN;
        if (use == REGION_COLUMN && cell.length > 0)
            return 0;
        if (use >= OTHER_COLUMN)
            continue;
        if (use == WM_TIMESTAMP) {
            has_time = read_time(csv, column, &cell, &ret_timepoint->when_ns, err);
            if (has_time < 0)
                return has_time;
            continue;
        }
        ret_timepoint->values[use] = NAN;
        if (cell.length > 0 &&
            !wm_number_parse(cell.text, cell.length, &ret_timepoint->values[use]))
            return wrong_cell(csv, column, &cell, "a number", err);
    }
    return column == csv->columns ? has_time : wrong_count(csv, err);
}

/* Its time alone. */
static int read_row_time(struct csv *csv, int64_t *ret_when_ns, struct wm_error *err)
{
    struct wm_cell cell;

    for (size_t column = 0; wm_cells_take(&csv->cells, &cell); column++) {
        if (column < csv->columns && csv->uses[column] == WM_TIMESTAMP)
            return read_time(csv, column, &cell, ret_when_ns, err);
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

static int csv_next(struct wm_timepoints *timepoints, struct wm_timepoint *ret_timepoint,
                    struct wm_error *err)
{
    struct csv *csv = (struct csv *)timepoints;
    int status = 0, has_time = 0;

    while (csv->columns > 0 && has_time == 0 && (status = go_on(csv, err)) != 0) {
        if (status > 0)
            status = has_time = read_row(csv, ret_timepoint, err);
        if (csv->cells.ending != WM_CELLS_ENDED)
            status = has_time = remark_tail(
                csv, has_time > 0 && is_whole(csv, ret_timepoint->when_ns, csv->last_ns),
                err);
        if (status < 0)
            return status;
    }
    if (has_time == 0)
        return 0;
    if (ret_timepoint->when_ns < csv->last_ns) {
        /* Our own times are those of a clock that nobody sets. */
        if (csv->base.is_recording || csv->places)
            return wm_cells_wrong(&csv->cells, err, "earlier than the row before");
        return sort(csv, err);
    }
    csv->last_ns = ret_timepoint->when_ns;
    return 1;
}

static void csv_close(struct wm_timepoints *timepoints)
{
    struct csv *csv = (struct csv *)timepoints;

    wm_cells_close(&csv->cells);
    wm_remarks_release(&csv->base.remarks);
    free(csv->uses);
    free(csv->places);
    free(csv->path);
    free(csv);
}

static const struct wm_timepoints_ops csv_ops = {
    .next = csv_next,
    .close = csv_close,
};

int wm_timepoints_open_csv(const char *path, size_t run,
                           struct wm_timepoints **ret_timepoints, struct wm_error *err)
{
    size_t index = 0;
    int status = wm_reader_choose_run(path, run, 1, &index, err);
    if (status < 0)
        return status;

    struct csv *csv = calloc(1, sizeof(*csv));
    if (!csv)
        return wm_fail(err, WM_ENOMEM, "out of memory");
    csv->base.ops = &csv_ops;
    csv->path = strdup(path);
    status = csv->path ? wm_cells_open(&csv->cells, csv->path, err)
                       : wm_fail(err, WM_ENOMEM, "out of memory");
    if (status == WM_OK)
        status = read_static(csv, err);
    if (status == WM_OK)
        status = read_header(csv, err);
    if (status < 0) {
        csv_close(&csv->base);
        return status;
    }
    *ret_timepoints = &csv->base;
    return WM_OK;
}
