/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat_gpu_tracker_read_sqlite.c - reading gpu_tracker's tracking file in SQLite: the
 * tables `static_data` and `data`.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/text/base_number.h"
#include "compat/gpu_tracker/compat_gpu_tracker_ahead.h"
#include "compat/gpu_tracker/compat_gpu_tracker_read.h"
#include "record/sql/record_sql.h"

/* Not `rowid`, which some column may be called. */
#define IN_RANGE " WHERE data._rowid_ BETWEEN ? AND ?"

struct sqlite {
    struct wm_tracking_reader base;
    const char *path;
    sqlite3 *db;
    char *sql;
    bool has_range; /* rows are found by their numbers, from first to last */
    sqlite3_int64 first, last;
    int64_t row_count, most_rows; /* were read, and can be */
    struct wm_ahead *rows;        /* NULL: there are none */
};

static int number(const struct sqlite *sqlite, const char *sql, sqlite3_int64 *ret_number,
                  struct wm_error *err)
{
    return wm_sql_number(sqlite->db, sql, sqlite->base.shown, ret_number, err);
}

/* Copies the value as text, exactly; "" for NULL, false for what is no text or number. */
static bool value_text(sqlite3_stmt *statement, int column, char *text, size_t size)
{
    int type = sqlite3_column_type(statement, column);

    text[0] = '\0';
    if (type == SQLITE_NULL)
        return true;
    if (type == SQLITE_INTEGER || type == SQLITE_FLOAT)
        return wm_number_format(sqlite3_column_double(statement, column), text) > 0;
    const char *value =
        type == SQLITE_TEXT ? (const char *)sqlite3_column_text(statement, column) : NULL;
    return value && (size_t)snprintf(text, size, "%s", value) < size;
}

static int read_static(struct sqlite *sqlite, sqlite3_stmt *statement, struct wm_error *err)
{
    char text[WM_NUMBER_SIZE];

    int result = sqlite3_step(statement);
    if (result == SQLITE_DONE)
        return wm_fail(err, WM_EFORMAT, "%s: table static_data is empty",
                       sqlite->base.shown);
    if (result != SQLITE_ROW)
        return wm_sql_fail(sqlite->db, result, sqlite->base.shown, err);
    for (int i = 0; i < WM_STATIC_COLUMNS; i++) {
        if (!value_text(statement, i, text, sizeof(text)) ||
            !wm_tracking_reader_set(&sqlite->base, (size_t)i, text))
            return wm_fail(err, WM_EFORMAT, "%s: table static_data: '%s' is not %s",
                           sqlite->base.shown, text, wm_static_columns[i].name);
    }
    return WM_OK;
}

static int load_static(struct sqlite *sqlite, struct wm_error *err)
{
    sqlite3_stmt *statement = NULL;

    int status = wm_sql_check_table(sqlite->db, "static_data", sqlite->base.shown, err);
    if (status < 0)
        return status;
    sqlite3_str *sql = sqlite3_str_new(sqlite->db);
    for (size_t i = 0; i < WM_STATIC_COLUMNS; i++)
        sqlite3_str_appendf(sql, "%s static_data.%s", i == 0 ? "SELECT" : ",",
                            wm_static_columns[i].name);
    sqlite3_str_appendall(sql, " FROM static_data LIMIT 1");
    char *text = sqlite3_str_finish(sql);
    status = text ? wm_sql_prepare(sqlite->db, text, sqlite->base.shown, &statement, err)
                  : wm_fail(err, WM_ENOMEM, "%s: out of memory", sqlite->base.shown);
    if (status == WM_OK)
        status = read_static(sqlite, statement, err);
    sqlite3_finalize(statement);
    sqlite3_free(text);
    return status;
}

/* Whether the numbers of the rows run from `first` to `last` without great holes. A table
 * without such numbers has another order; one with holes could be made so that looking
 * for its rows never ends, and how many pages there are is what a hostile file says. */
static int find_range(struct sqlite *sqlite, struct wm_error *err)
{
    sqlite3_int64 hidden = 0;

    int status = number(sqlite,
                        "SELECT count(*) FROM pragma_table_info('data')"
                        " WHERE name = '_rowid_' COLLATE NOCASE",
                        &hidden, err);
    if (status < 0 || hidden > 0)
        return status;
    if (number(sqlite, "SELECT min(_rowid_) FROM data", &sqlite->first, NULL) == WM_OK &&
        number(sqlite, "SELECT max(_rowid_) FROM data", &sqlite->last, NULL) == WM_OK)
        sqlite->has_range = sqlite->first >= 0 && sqlite->last >= sqlite->first &&
                            sqlite->last - sqlite->first < sqlite->most_rows;
    return WM_OK;
}

/* NOT INDEXED: in the order in which they were written, whatever index there is. */
static int make_query(struct sqlite *sqlite, struct wm_error *err)
{
    sqlite3_str *sql = sqlite3_str_new(sqlite->db);

    sqlite3_str_appendall(sql, "SELECT " WM_AHEAD_ROW "(data.timestamp");
    for (int i = 0; i < WM_MEASUREMENT_COUNT; i++)
        sqlite3_str_appendf(sql, ", data.%s", wm_measurement_name((enum wm_measurement)i));
    sqlite3_str_appendall(sql, ") FROM data NOT INDEXED");
    sqlite3_str_appendall(sql, sqlite->has_range ? IN_RANGE : "");
    sqlite->sql = sqlite3_str_finish(sql);
    return sqlite->sql ? WM_OK
                       : wm_fail(err, WM_ENOMEM, "%s: out of memory", sqlite->base.shown);
}

static int sqlite_again(void *state, struct wm_error *err)
{
    struct sqlite *sqlite = state;
    const struct wm_ahead_query query = {
        .path = sqlite->path,
        .shown = sqlite->base.shown,
        .db = sqlite->db,
        .sql = sqlite->sql,
        .has_range = sqlite->has_range,
        .first = sqlite->first,
        .last = sqlite->last,
    };

    wm_ahead_close(sqlite->rows);
    sqlite->rows = NULL;
    sqlite->row_count = 0;
    return wm_ahead_open(&query, &sqlite->rows, err);
}

static int sqlite_row(void *state, struct wm_timepoint *ret_row, struct wm_error *err)
{
    struct sqlite *sqlite = state;

    int status = sqlite->rows ? wm_ahead_next(sqlite->rows, ret_row, err) : 0;
    if (status > 0 && sqlite->row_count++ == sqlite->most_rows)
        return wm_fail(err, WM_EFORMAT, "%s: table data: more rows than it has room for",
                       sqlite->base.shown);
    return status;
}

static void sqlite_close(void *state)
{
    struct sqlite *sqlite = state;

    wm_ahead_close(sqlite->rows);
    if (sqlite->db) {
        sqlite3_free(sqlite->sql);
        sqlite3_close(sqlite->db);
    }
    wm_tracking_reader_release(&sqlite->base);
}

/* gpu_tracker makes the table with its first row. */
static int load_data(struct sqlite *sqlite, struct wm_error *err)
{
    sqlite3_int64 count = 0;

    int status = number(sqlite, "SELECT count(*) FROM sqlite_master WHERE name = 'data'",
                        &count, err);
    if (status < 0 || count == 0)
        return status;
    status = wm_sql_check_table(sqlite->db, "data", sqlite->base.shown, err);
    sqlite->most_rows = wm_sql_most_rows(sqlite->path, WM_TIMEPOINT_COLUMNS);
    if (status == WM_OK)
        status = find_range(sqlite, err);
    if (status == WM_OK)
        status = make_query(sqlite, err);
    return status < 0 ? status : sqlite_again(sqlite, err);
}

static int sqlite_open(void *state, const char *path, size_t run, struct wm_error *err)
{
    struct sqlite *sqlite = state;

    sqlite->path = path;
    sqlite->base.row = sqlite_row;
    sqlite->base.again = sqlite_again;
    int status = wm_tracking_reader_init(&sqlite->base, path, run, err);
    if (status == WM_OK)
        status = wm_sql_open_to_read(path, sqlite->base.shown, &sqlite->db, err);
    if (status == WM_OK)
        status = load_static(sqlite, err);
    return status < 0 ? status : load_data(sqlite, err);
}

const struct wm_reader_ops wm_reader_gpu_tracker_sqlite = {
    .name = "gpu_tracker's SQLite",
    .is_foreign = true,
    .recognises = wm_sql_is_database,
    .state_size = sizeof(struct sqlite),
    .open = sqlite_open,
    .next = wm_tracking_reader_next,
    .close = sqlite_close,
};
