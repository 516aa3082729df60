/* SPDX-License-Identifier: Apache-2.0 */
/* record_csv_read_regions.c - the rows of regions in our CSV files, in a pass of their own.
 */
#include "record/csv/record_csv.h"

#include <stdlib.h>
#include <string.h>

#include "base/base_text.h"
#include "base/base_utf8.h"
#include "record/sql/record_sql.h"

/* Calls in a batch. */
enum { CALLS_AT_ONCE = 4096 };

void wm_csv_regions_init(struct wm_csv_regions *regions, const char *file)
{
    *regions = (struct wm_csv_regions) { .file = file };
    for (size_t i = 0; i < WM_CSV_REGION_CELLS; i++)
        regions->columns[i] = SIZE_MAX;
}

bool wm_csv_regions_use_column(struct wm_csv_regions *regions, const char *name,
                               size_t column)
{
    static const char start[] = WM_CSV_REGION_KIND "_";
    size_t length = sizeof(start) - 1, cell = 0;

    if (strncmp(name, start, length) == 0 && name[length] >= '1' && name[length] <= '4' &&
        name[length + 1] == '\0')
        cell = (size_t)(name[length] - '0');
    else if (strcmp(name, WM_CSV_REGION_KIND) != 0)
        return false;
    regions->columns[cell] = column;
    return true;
}

/* A whole number, which another program may have written as 5.0; -1 for an empty cell. */
static bool parse_number(const struct wm_cell *cell, int64_t *ret_number)
{
    const char *end = cell->text;

    *ret_number = -1;
    if (cell->length == 0)
        return true;
    if (!wm_text_i64(cell->text, &end, ret_number))
        return false;
    if (end[0] == '.' && end[1] == '0')
        end += 2;
    return end == cell->text + cell->length;
}

/* 1, or 0 where the row is one of a tick. */
static int read_numbers(struct wm_csv_regions *regions,
                        int64_t numbers[WM_CSV_REGION_CELLS], struct wm_error *err)
{
    struct wm_cell cell;

    for (size_t i = 0; i < WM_CSV_REGION_CELLS; i++)
        numbers[i] = -1;
    for (size_t place = 0; wm_cells_take(&regions->cells, &cell); place++) {
        size_t i = 0;
        while (i < WM_CSV_REGION_CELLS && regions->columns[i] != place)
            i++;
        if (i == 0 && cell.length == 0)
            return 0;
        if (i < WM_CSV_REGION_CELLS && !parse_number(&cell, &numbers[i]))
            return wm_fail(err, WM_EFORMAT, "cell %zu: '%.32s' is not a number", place + 1,
                           cell.text);
    }
    return 1;
}

static int end_name(struct wm_csv_regions *regions, struct wm_error *err)
{
    regions->name[regions->name_known] = '\0';
    regions->named.name = regions->name;
    int status = wm_regions_read_path(&regions->part, &regions->named, err);
    free(regions->name);
    regions->name = NULL;
    return status;
}

static int begin_path(struct wm_csv_regions *regions, const int64_t *numbers,
                      struct wm_error *err)
{
    if (numbers[3] < 0 || numbers[3] > WM_REGIONS_NAME_MAX)
        return wm_fail(err, WM_EFORMAT, "path %lld has a name of %lld bytes",
                       (long long)numbers[0], (long long)numbers[3]);
    regions->named = (struct wm_regions_row) {
        .number = numbers[0],
        .parent = numbers[1],
        .is_free = numbers[2],
    };
    regions->name_length = (size_t)numbers[3];
    regions->name_known = 0;
    regions->name = malloc(regions->name_length + 1);
    if (!regions->name)
        return wm_fail_memory(err, NULL);
    return regions->name_length == 0 ? end_name(regions, err) : WM_OK;
}

static int add_to_name(struct wm_csv_regions *regions, const int64_t *numbers,
                       struct wm_error *err)
{
    for (int i = 0; i < WM_CSV_REGION_CELLS - 1; i++) {
        for (int byte = WM_CSV_NAME_BYTES - 1; byte >= 0; byte--) {
            if (regions->name_known < regions->name_length)
                regions->name[regions->name_known++] =
                    (char)((uint64_t)numbers[i] >> (8 * byte) & 0xff);
        }
    }
    return regions->name_known == regions->name_length ? end_name(regions, err) : WM_OK;
}

static int add_told(struct wm_csv_regions *regions, const int64_t *numbers,
                    struct wm_error *err)
{
    size_t count = WM_CSV_REGION_CELLS - 1;

    if (regions->told_count + count > sizeof(regions->told) / sizeof(regions->told[0]))
        return wm_fail(err, WM_EFORMAT, "more of a call than there can be");
    memcpy(regions->told + regions->told_count, numbers, count * sizeof(*numbers));
    regions->told_count += count;
    return WM_OK;
}

static int read_call(struct wm_csv_regions *regions, const int64_t *cells,
                     struct wm_error *err)
{
    struct wm_regions_row row = {
        .path = cells[1],
        .thread = cells[2],
        .start_ns = cells[3],
        .stop_ns = cells[4],
        .is_open = cells[0] == WM_CSV_OPEN,
    };

    if (regions->told_count > 0 && regions->told[0] >= 0 && regions->told[0] < INT64_MAX)
        row.clocked = regions->told[0] + 1;
    if (regions->told_count == sizeof(regions->told) / sizeof(regions->told[0]))
        memcpy(row.fold, regions->told + 1, sizeof(row.fold));
    regions->told_count = 0;
    return wm_regions_read_call(&regions->part, &row, err);
}

/* Rows of other kinds are those of a later version. */
static int read_row(struct wm_csv_regions *regions, struct wm_error *err)
{
    struct wm_regions_part *part = &regions->part;
    int64_t cells[WM_CSV_REGION_CELLS];
    const int64_t *numbers = cells + 1;

    int status = read_numbers(regions, cells, err);
    if (status <= 0)
        return status;
    if ((cells[0] == WM_CSV_NAME) != (regions->name != NULL))
        return wm_fail(err, WM_EFORMAT, "%s",
                       regions->name ? "the rest of a name is missing"
                                     : "a name without a path");
    switch (cells[0]) {
    case WM_CSV_PATH:
        return begin_path(regions, numbers, err);
    case WM_CSV_NAME:
        return add_to_name(regions, numbers, err);
    case WM_CSV_THREAD:
        return wm_regions_read_thread(part,
                                      &(const struct wm_regions_row) {
                                          .number = numbers[0],
                                          .pid = numbers[1],
                                          .tid = numbers[2],
                                          .process = numbers[3],
                                      },
                                      err);
    case WM_CSV_TOLD:
        return add_told(regions, numbers, err);
    case WM_CSV_CALL:
    case WM_CSV_OPEN:
        return read_call(regions, cells, err);
    default:
        return WM_OK;
    }
}

/* After the header: 1, or 0 where the file ends in it. */
static int open_cells(struct wm_csv_regions *regions, struct wm_error *err)
{
    int status = wm_cells_open(&regions->cells, regions->file, err);

    for (int row = 0; row < 3 && status >= 0; row++) {
        status = wm_cells_next(&regions->cells, err);
        if (status == 0)
            return 0;
    }
    return status;
}

int wm_csv_regions_next(struct wm_csv_regions *regions, struct wm_region_batch *ret_batch,
                        struct wm_error *err)
{
    struct wm_regions_part *part = &regions->part;
    struct wm_error why;
    int status = 1;

    if (regions->columns[0] == SIZE_MAX)
        return 0;
    wm_regions_part_next(part);
    if (!regions->cells.file.is_open)
        status = open_cells(regions, err);
    while (status > 0 && part->call_count < CALLS_AT_ONCE) {
        status = wm_cells_next(&regions->cells, err);
        if (status <= 0 || regions->cells.ending != WM_CELLS_ENDED)
            break;
        int read = read_row(regions, &why);
        if (read < 0)
            return wm_fail(err, read, "%s:%zu: %.150s", regions->cells.path,
                           regions->cells.line, why.text);
    }
    if (status < 0)
        return status;
    *ret_batch = wm_regions_part_batch(part);
    return !wm_regions_part_is_empty(part);
}

/* In a file without a name, in TMPDIR, where they are too many for SQLite's cache. */
static int open_sorter(struct wm_csv_regions *regions, sqlite3_stmt **ret_insert,
                       struct wm_error *err)
{
    const char *path = wm_text_path(regions->file);

    int status = wm_sqlite_load(err);
    if (status < 0)
        return status;
    int result = sqlite3_open_v2(
        "", &regions->sorter,
        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
    if (result != SQLITE_OK)
        return wm_sql_fail(regions->sorter, result, path, err);
    status = wm_sql_exec(regions->sorter,
                         "PRAGMA journal_mode = OFF; BEGIN;"
                         "CREATE TABLE call (path, thread, start_ns, stop_ns, is_open,"
                         " clocked, fold)",
                         path, err);
    return status < 0 ? status
                      : wm_sql_prepare(regions->sorter,
                                       "INSERT INTO call VALUES (?, ?, ?, ?, ?, ?, ?)",
                                       path, ret_insert, err);
}

static int insert_calls(const struct wm_csv_regions *regions, sqlite3_stmt *insert,
                        const struct wm_region_batch *batch, struct wm_error *err)
{
    int status = WM_OK;

    for (size_t i = 0; i < batch->call_count && status == WM_OK; i++) {
        const struct wm_region_record *call = &batch->calls[i];
        sqlite3_bind_int64(insert, 1, call->path);
        sqlite3_bind_int64(insert, 2, call->thread);
        sqlite3_bind_int64(insert, 3, call->start_ns);
        sqlite3_bind_int64(insert, 4, call->stop_ns);
        sqlite3_bind_int64(insert, 5, call->is_open);
        sqlite3_bind_int64(insert, 6, (int64_t)call->clocked);
        sqlite3_bind_null(insert, 7);
        if (call->fold > 0)
            sqlite3_bind_blob(insert, 7, wm_region_batch_fold(batch, call),
                              sizeof(*batch->folds), SQLITE_TRANSIENT);
        status = wm_sql_run(insert, wm_text_path(regions->file), err);
    }
    return status;
}

static int select_calls(struct wm_csv_regions *regions, struct wm_error *err)
{
    return wm_sql_prepare(regions->sorter,
                          "SELECT path, thread, start_ns, stop_ns, is_open, clocked, fold"
                          " FROM call ORDER BY start_ns, path, stop_ns",
                          wm_text_path(regions->file), &regions->calls, err);
}

/* Reads all calls of the file into the table, which is made for the first of them: without
 * regions a file needs no SQLite. */
static int sort_calls(struct wm_csv_regions *regions, struct wm_error *err)
{
    struct wm_region_batch batch;
    sqlite3_stmt *insert = NULL;
    int status = WM_OK;

    while (status >= 0 && (status = wm_csv_regions_next(regions, &batch, err)) > 0) {
        if (batch.call_count > 0 && !regions->sorter)
            status = open_sorter(regions, &insert, err);
        if (status >= 0)
            status = insert_calls(regions, insert, &batch, err);
    }
    if (insert)
        sqlite3_finalize(insert);
    regions->is_sorted = true;
    regions->part.old_paths = 0;
    regions->part.old_threads = 0;
    regions->part.call_count = regions->part.fold_count = 0;
    return status < 0 || !regions->sorter ? status : select_calls(regions, err);
}

/* 1, or 0 past the last one. */
static int take_sorted(struct wm_csv_regions *regions, struct wm_error *err)
{
    sqlite3_stmt *calls = regions->calls;

    int result = sqlite3_step(calls);
    if (result == SQLITE_DONE) {
        sqlite3_finalize(calls);
        regions->calls = NULL;
        return 0;
    }
    if (result != SQLITE_ROW)
        return wm_sql_fail(regions->sorter, result, wm_text_path(regions->file), err);
    struct wm_region_fold fold;
    bool is_fold = sqlite3_column_bytes(calls, 6) == sizeof(fold);
    const struct wm_region_record call = {
        .path = (uint32_t)sqlite3_column_int64(calls, 0),
        .thread = (uint32_t)sqlite3_column_int64(calls, 1),
        .start_ns = sqlite3_column_int64(calls, 2),
        .stop_ns = sqlite3_column_int64(calls, 3),
        .is_open = sqlite3_column_int64(calls, 4) != 0,
        .clocked = (uint64_t)sqlite3_column_int64(calls, 5),
    };
    if (is_fold)
        memcpy(&fold, sqlite3_column_blob(calls, 6), sizeof(fold));
    if (wm_regions_part_add_call(&regions->part, &call, is_fold ? &fold : NULL) < 0)
        return wm_fail_memory(err, wm_text_path(regions->file));
    return 1;
}

int wm_csv_regions_next_call(struct wm_csv_regions *regions,
                             struct wm_region_batch *ret_batch, struct wm_error *err)
{
    struct wm_regions_part *part = &regions->part;
    int status = WM_OK;

    if (regions->columns[0] == SIZE_MAX)
        return 0;
    if (regions->is_sorted)
        wm_regions_part_next(part);
    else
        status = sort_calls(regions, err);
    while (status >= 0 && regions->calls && part->call_count < CALLS_AT_ONCE)
        status = take_sorted(regions, err);
    if (status < 0)
        return status;
    *ret_batch = wm_regions_part_batch(part);
    return !wm_regions_part_is_empty(part);
}

void wm_csv_regions_release(struct wm_csv_regions *regions)
{
    wm_cells_close(&regions->cells);
    if (regions->sorter) {
        sqlite3_finalize(regions->calls);
        sqlite3_close(regions->sorter);
    }
    wm_regions_part_release(&regions->part);
    free(regions->name);
}
