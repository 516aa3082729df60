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

struct sqlite {
    struct wm_tracking_reader base;
    const char *path;
    sqlite3 *db;
    struct wm_ahead *rows; /* NULL: there are none */
};

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

static int sqlite_again(void *state, struct wm_error *err)
{
    struct sqlite *sqlite = state;

    wm_ahead_close(sqlite->rows);
    sqlite->rows = NULL;
    return wm_ahead_open(sqlite->db, sqlite->path, sqlite->base.shown, &sqlite->rows, err);
}

static int sqlite_row(void *state, struct wm_timepoint *ret_row, struct wm_error *err)
{
    struct sqlite *sqlite = state;

    return sqlite->rows ? wm_ahead_next(sqlite->rows, ret_row, err) : 0;
}

static void sqlite_close(void *state)
{
    struct sqlite *sqlite = state;

    wm_ahead_close(sqlite->rows);
    if (sqlite->db)
        sqlite3_close(sqlite->db);
    wm_tracking_reader_release(&sqlite->base);
}

/* gpu_tracker makes the table with its first row. */
static int load_data(struct sqlite *sqlite, struct wm_error *err)
{
    sqlite3_int64 count = 0;

    int status =
        wm_sql_number(sqlite->db, "SELECT count(*) FROM sqlite_master WHERE name = 'data'",
                      sqlite->base.shown, &count, err);
    if (status < 0 || count == 0)
        return status;
    status = wm_sql_check_table(sqlite->db, "data", sqlite->base.shown, err);
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
