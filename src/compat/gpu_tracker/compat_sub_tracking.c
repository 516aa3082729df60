/* SPDX-License-Identifier: Apache-2.0 */
/* compat_sub_tracking.c - gpu_tracker's sub-tracking file, row by row. */
#include "compat/gpu_tracker/compat_sub_tracking.h"

#include <string.h>

#include "base/base_clock.h"
#include "base/base_file.h"
#include "base/base_utf8.h"
#include "base/text/base_number.h"
#include "record/sql/record_sql.h"
#include "region/mark/region_file.h"

/* The whole numbers up to here are doubles. An export has numbers that no process can have.
 */
#define PROCESS_MAX ((double)(INT64_C(1) << 53))

const char *const wm_sub_names[WM_SUB_COLUMNS] = {
    [WM_SUB_PROCESS] = "process_id",
    [WM_SUB_NAME] = "code_block_name",
    [WM_SUB_POSITION] = "position",
    [WM_SUB_TIMESTAMP] = "timestamp",
};

/* What a cell of that column has to be. */
static const char *const expected[WM_SUB_COLUMNS] = {
    [WM_SUB_PROCESS] = "the number of a process",
    [WM_SUB_NAME] = "a name",
    [WM_SUB_POSITION] = "0 (start) or 1 (stop)",
    [WM_SUB_TIMESTAMP] = "a time in seconds since 1970",
};

/* Of all columns but the name. */
static bool set_number(struct wm_sub_row *row, int column, double value)
{
    int64_t when_ns;

    switch (column) {
    case WM_SUB_PROCESS:
        if (!(value >= 0 && value <= PROCESS_MAX))
            return false;
        row->process = (int64_t)value;
        return (double)row->process == value;
    case WM_SUB_POSITION:
        row->is_stop = value == 1;
        return value == 0 || value == 1;
    case WM_SUB_TIMESTAMP:
        row->seconds = value;
        return wm_clock_from_seconds(value, &when_ns);
    default:
        return false;
    }
}

static bool set_text(struct wm_sub_row *row, int column, const char *text, size_t length)
{
    double value;

    if (column == WM_SUB_NAME) {
        row->name = text;
        return strlen(text) == length;
    }
    return wm_number_parse(text, length, &value) && set_number(row, column, value);
}

static int open_csv(struct wm_sub_tracking *file, const char *path, struct wm_error *err)
{
    int status = wm_cells_open(&file->file.cells, path, err);
    if (status == WM_OK)
        status = wm_cells_next(&file->file.cells, err);
    if (status < 0)
        return status;
    if (status == 0)
        return wm_fail(
            err, WM_EFORMAT,
            "%s: is empty: a sub-tracking file begins with the line " WM_REGION_FILE_HEADER,
            file->path);
    status = wm_gpu_tracker_csv_header(&file->file, wm_sub_names, WM_SUB_COLUMNS,
                                       "a sub-tracking file", err);
    if (status == WM_EFORMAT && file->file.cells.ending != WM_CELLS_ENDED)
        return wm_fail(err, WM_EFORMAT, "%s: cut off in its first line", file->path);
    return status;
}

static int read_cells(struct wm_sub_tracking *file, struct wm_sub_row *ret_row,
                      struct wm_error *err)
{
    struct wm_cell *cells = ret_row->cells;

    int status = wm_gpu_tracker_csv_row(&file->file, cells, err);
    for (int i = 0; i < WM_SUB_COLUMNS && status > 0; i++) {
        if (!set_text(ret_row, i, cells[i].text, cells[i].length))
            return wm_gpu_tracker_csv_wrong(&file->file, (size_t)i, &cells[i], expected[i],
                                            err);
    }
    return status;
}

static int next_csv(struct wm_sub_tracking *file, struct wm_sub_row *ret_row,
                    struct wm_error *err)
{
    double before = file->last_seconds;

    int status = wm_cells_next(&file->file.cells, err);
    if (status > 0)
        status = read_cells(file, ret_row, err);
    if (status > 0)
        file->last_seconds = ret_row->seconds;
    return wm_gpu_tracker_csv_counts(
        &file->file, status, status > 0 && ret_row->seconds >= before, &file->remarks, err);
}

static int open_sqlite(struct wm_sub_tracking *file, const char *path, struct wm_error *err)
{
    int status = wm_sql_open_to_read(path, file->path, &file->db, err);
    if (status == WM_OK)
        status = wm_sql_check_table(file->db, "data", file->path, err);
    if (status == WM_OK)
        status = wm_sql_prepare(file->db,
                                "SELECT data.process_id, data.code_block_name,"
                                " data.position, data.timestamp FROM data NOT INDEXED",
                                file->path, &file->rows, err);
    file->most_rows = wm_sql_most_rows(path, WM_SUB_COLUMNS);
    return status;
}

/* A column may hold anything, whatever its type was declared to be. */
static bool set_value(struct wm_sub_row *row, int column, sqlite3_stmt *rows)
{
    int type = sqlite3_column_type(rows, column);
    bool is_number = type == SQLITE_INTEGER || type == SQLITE_FLOAT;

    if (is_number && column != WM_SUB_NAME)
        return set_number(row, column, sqlite3_column_double(rows, column));
    if (!is_number && type != SQLITE_TEXT)
        return false;
    const char *text = (const char *)sqlite3_column_text(rows, column);
    return text && set_text(row, column, text, (size_t)sqlite3_column_bytes(rows, column));
}

static int next_sqlite(struct wm_sub_tracking *file, struct wm_sub_row *ret_row,
                       struct wm_error *err)
{
    int result = sqlite3_step(file->rows);
    if (result == SQLITE_DONE)
        return 0;
    if (result != SQLITE_ROW)
        return wm_sql_fail(file->db, result, file->path, err);
    if (file->row++ == file->most_rows)
        return wm_fail(err, WM_EFORMAT, "%s: table data: more rows than it has room for",
                       file->path);
    for (int i = 0; i < WM_SUB_COLUMNS; i++) {
        if (!set_value(ret_row, i, file->rows))
            return wm_fail(err, WM_EFORMAT, "%s: table data, row %lld: %s is not %s",
                           file->path, (long long)file->row, wm_sub_names[i], expected[i]);
    }
    return 1;
}

int wm_sub_tracking_open(struct wm_sub_tracking *file, const char *path,
                         struct wm_error *err)
{
    char head[64];
    size_t length = 0;

    *file = (struct wm_sub_tracking) { .path = wm_text_path(path) };
    int status = wm_file_head(path, head, sizeof(head), &length, err);
    if (status < 0)
        return status;
    return wm_sql_is_database(head, length) ? open_sqlite(file, path, err)
                                            : open_csv(file, path, err);
}

int wm_sub_tracking_next(struct wm_sub_tracking *file, struct wm_sub_row *ret_row,
                         struct wm_error *err)
{
    return file->db ? next_sqlite(file, ret_row, err) : next_csv(file, ret_row, err);
}

void wm_sub_tracking_close(struct wm_sub_tracking *file)
{
    wm_gpu_tracker_csv_close(&file->file);
    wm_remarks_release(&file->remarks);
    if (file->db) {
        sqlite3_finalize(file->rows);
        sqlite3_close(file->db);
    }
    *file = (struct wm_sub_tracking) { 0 };
}
