/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_csv.c - reading back our CSV files.
 *
 * The file may have been cut off anywhere by a kill, a full disk or a copy, and
 * edited by anybody: a last line without an end is dropped, anything else that
 * is not as it should be is named with its line.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_number.h"
#include "base/base_text.h"
#include "record/record_channel.h"
#include "record/record_csv.h"
#include "record/record_lines.h"
#include "record/record_ops.h"
#include "record/record_regions.h"
#include "record/record_text.h"

/* What the cells of a column are. */
struct cell {
    enum { CELL_IGNORED, CELL_REGION, CELL_TIME, CELL_CLOCK, CELL_VALUE } use;
    size_t index; /* of the clock or channel */
};

/* Calls in a batch. */
enum { CALLS_AT_ONCE = 4096 };

struct csv_reader {
    struct wm_reader_head head;
    const char *file;
    const char *path; /* the same for messages */
    struct wm_lines lines;

    struct wm_channel_set set;

    struct cell *cells;
    size_t cell_count; /* 0: there are no ticks */
    int64_t *clocks;   /* -1: not known */
    struct wm_reading *readings;
    int64_t last_ns;

    size_t region_column;         /* with the kind of row; SIZE_MAX: there is none */
    struct wm_lines region_lines; /* the file once more */
    struct wm_regions_part regions;
    struct wm_regions_row named; /* the one whose name is being read */
    char *name;                  /* NULL: none is */
    size_t name_length, name_known;
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

static int read_format(const struct csv_reader *reader, const char *cell,
                       struct wm_error *err)
{
    const char *end = cell;
    int64_t format = 0;

    if (!wm_text_i64(cell, &end, &format) || *wm_text_skip_blanks(end) != '\0' ||
        format < 1)
        return wrong(reader, "wattmeter_format is not a version", err);
    if (format > WM_CSV_FORMAT_REGIONS)
        return wm_fail(
            err, WM_EFORMAT,
            "%s: made by a newer wattmeter (format %lld, this one knows up to %d)",
            reader->path, (long long)format, WM_CSV_FORMAT_REGIONS);
    return WM_OK;
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
    int status = read_format(reader, cells[WM_CSV_FORMAT], err);
    if (status < 0)
        return status;
    status = wm_run_from_json(cells[WM_CSV_RUN], &reader->head.run, &why);
    if (status == WM_OK)
        status = wm_channel_set_from_json(&reader->set, cells[WM_CSV_CHANNELS], &why);
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

/* Whether it is one of those, which need not be there. */
static bool use_region_column(struct csv_reader *reader, const char *name,
                              struct cell *cell)
{
    static const char start[] = "wattmeter_region";
    size_t length = sizeof(start) - 1;

    if (strncmp(name, start, length) != 0)
        return false;
    if (name[length] == '\0') {
        *cell = (struct cell) { CELL_REGION, 0 };
        reader->region_column = (size_t)(cell - reader->cells);
        return true;
    }
    if (name[length] != '_' || name[length + 1] < '1' || name[length + 1] > '4' ||
        name[length + 2] != '\0')
        return false;
    *cell = (struct cell) { CELL_REGION, (size_t)(name[length + 1] - '0') };
    return true;
}

/* `seen` has a place for each use of the set, and one more for the time. */
static int use_column(struct csv_reader *reader, const char *name, bool *seen,
                      struct wm_error *err)
{
    struct cell *cell = &reader->cells[reader->cell_count++];
    const struct wm_column_use *use = wm_channel_set_find(&reader->set, name);

    if (use_region_column(reader, name, cell))
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
    reader->region_column = SIZE_MAX;
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

    reader->file = path;
    reader->path = wm_text_path(path);
    reader->last_ns = -1;
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
    case CELL_REGION:
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

/* Whether the row is about regions and no tick. */
static bool is_region_row(const struct csv_reader *reader, const char *line, size_t length)
{
    const char *cell = line, *end = line + length;

    if (reader->region_column == SIZE_MAX)
        return false;
    for (size_t column = 0; column < reader->region_column; column++) {
        cell = memchr(cell, ',', (size_t)(end - cell));
        if (!cell)
            return false;
        cell++;
    }
    return cell < end && *cell != ',';
}

/* 1, or 0 past the last row of a tick. */
static int next_tick_row(struct csv_reader *reader, char **ret_line, size_t *ret_length,
                         struct wm_error *err)
{
    int status;

    while ((status = wm_lines_next(&reader->lines, ret_line, ret_length, err)) > 0) {
        if (!is_region_row(reader, *ret_line, *ret_length))
            break;
    }
    return status;
}

static int csv_next(void *state, struct wm_tick *ret_tick, struct wm_error *err)
{
    struct csv_reader *reader = state;
    const struct wm_columns *columns = &reader->set.columns;
    int64_t when_ns = 0;
    char *line = NULL;
    size_t length = 0;

    if (reader->cell_count == 0)
        return 0;
    int status = next_tick_row(reader, &line, &length, err);
    if (status <= 0)
        return status;
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

/* A whole number, which another program may have written as 5.0; -1 for an empty cell. */
static bool parse_region_number(const char *text, size_t length, int64_t *ret_number)
{
    const char *end = text;

    if (length == 0) {
        *ret_number = -1;
        return true;
    }
    if (!wm_text_i64(text, &end, ret_number))
        return false;
    if (end[0] == '.' && end[1] == '0')
        end += 2;
    return end == text + length;
}

static int read_region_cells(const struct csv_reader *reader, const char *line,
                             size_t length, int64_t numbers[WM_CSV_REGION_CELLS],
                             struct wm_error *err)
{
    const char *text = line, *end = line + length;

    for (size_t i = 0; i < WM_CSV_REGION_CELLS; i++)
        numbers[i] = -1;
    for (size_t column = 0; column < reader->cell_count; column++) {
        const struct cell *cell = &reader->cells[column];
        const char *comma = memchr(text, ',', (size_t)(end - text));
        size_t cell_length = (size_t)((comma ? comma : end) - text);
        if (cell->use == CELL_REGION &&
            !parse_region_number(text, cell_length, &numbers[cell->index]))
            return wm_fail(err, WM_EFORMAT, "cell %zu: '%.*s' is not a number", column + 1,
                           cell_length < 32 ? (int)cell_length : 32, text);
        if (!comma)
            break;
        text = comma + 1;
    }
    return WM_OK;
}

static int end_name(struct csv_reader *reader, struct wm_error *err)
{
    reader->name[reader->name_known] = '\0';
    reader->named.name = reader->name;
    int status = wm_regions_read_path(&reader->regions, &reader->named, err);
    free(reader->name);
    reader->name = NULL;
    return status;
}

static int begin_path(struct csv_reader *reader, const int64_t *numbers,
                      struct wm_error *err)
{
    if (numbers[3] < 0 || numbers[3] > WM_REGIONS_NAME_MAX)
        return wm_fail(err, WM_EFORMAT, "path %lld has a name of %lld bytes",
                       (long long)numbers[0], (long long)numbers[3]);
    reader->named = (struct wm_regions_row) {
        .number = numbers[0],
        .parent = numbers[1],
        .is_free = numbers[2],
    };
    reader->name_length = (size_t)numbers[3];
    reader->name_known = 0;
    reader->name = malloc(reader->name_length + 1);
    if (!reader->name)
        return wm_fail(err, WM_ENOMEM, "out of memory");
    return reader->name_length == 0 ? end_name(reader, err) : WM_OK;
}

static int add_to_name(struct csv_reader *reader, const int64_t *numbers,
                       struct wm_error *err)
{
    for (int i = 0; i < WM_CSV_REGION_CELLS - 1; i++) {
        for (int byte = WM_CSV_NAME_BYTES - 1; byte >= 0; byte--) {
            if (reader->name_known < reader->name_length)
                reader->name[reader->name_known++] =
                    (char)((uint64_t)numbers[i] >> (8 * byte) & 0xff);
        }
    }
    return reader->name_known == reader->name_length ? end_name(reader, err) : WM_OK;
}

/* Rows of other kinds are those of a later version. */
static int read_region(struct csv_reader *reader, const char *line, size_t length,
                       struct wm_error *err)
{
    struct wm_regions_part *part = &reader->regions;
    int64_t cells[WM_CSV_REGION_CELLS];
    const int64_t *numbers = cells + 1;

    int status = read_region_cells(reader, line, length, cells, err);
    if (status < 0)
        return status;
    if ((cells[0] == WM_CSV_NAME) != (reader->name != NULL))
        return wm_fail(err, WM_EFORMAT, "%s",
                       reader->name ? "the rest of a name is missing"
                                    : "a name without a path");
    switch (cells[0]) {
    case WM_CSV_PATH:
        return begin_path(reader, numbers, err);
    case WM_CSV_NAME:
        return add_to_name(reader, numbers, err);
    case WM_CSV_THREAD:
        return wm_regions_read_thread(part,
                                      &(const struct wm_regions_row) {
                                          .number = numbers[0],
                                          .pid = numbers[1],
                                          .tid = numbers[2],
                                          .process = numbers[3],
                                      },
                                      err);
    case WM_CSV_CALL:
    case WM_CSV_OPEN:
        return wm_regions_read_call(part,
                                    &(const struct wm_regions_row) {
                                        .path = numbers[0],
                                        .thread = numbers[1],
                                        .start_ns = numbers[2],
                                        .stop_ns = numbers[3],
                                        .is_open = cells[0] == WM_CSV_OPEN,
                                    },
                                    err);
    default:
        return WM_OK;
    }
}

/* After the header: 1, or 0 where the file ends in it. */
static int open_regions(struct csv_reader *reader, struct wm_error *err)
{
    char *line = NULL;
    size_t length = 0;
    int status = wm_lines_open(&reader->region_lines, reader->file, WM_CSV_LINE_MAX, err);

    for (int row = 0; row < 3 && status >= 0; row++) {
        status = wm_lines_next(&reader->region_lines, &line, &length, err);
        if (status == 0)
            return 0;
    }
    return status;
}

static int csv_regions(void *state, struct wm_region_batch *ret_batch, struct wm_error *err)
{
    struct csv_reader *reader = state;
    struct wm_regions_part *part = &reader->regions;
    struct wm_error why;
    char *line = NULL;
    size_t length = 0;
    int status = 1;

    if (reader->cell_count == 0 || reader->region_column == SIZE_MAX)
        return 0;
    wm_regions_part_next(part);
    if (!reader->region_lines.is_open)
        status = open_regions(reader, err);
    while (status > 0 && part->call_count < CALLS_AT_ONCE) {
        status = wm_lines_next(&reader->region_lines, &line, &length, err);
        if (status <= 0 || !is_region_row(reader, line, length))
            continue;
        int read = read_region(reader, line, length, &why);
        if (read < 0)
            return wm_fail(err, read, "%s: line %zu: %.150s", reader->path,
                           reader->region_lines.number, why.text);
    }
    if (status < 0)
        return status;
    *ret_batch = wm_regions_part_batch(part);
    return !wm_regions_part_is_empty(part);
}

static void csv_close(void *state)
{
    struct csv_reader *reader = state;

    wm_lines_close(&reader->lines);
    wm_lines_close(&reader->region_lines);
    wm_regions_part_release(&reader->regions);
    free(reader->name);
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
    .close = csv_close,
};
