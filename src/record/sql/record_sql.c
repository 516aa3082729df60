/* SPDX-License-Identifier: Apache-2.0 */
/* record_sql.c - SQLite, and a database of either kind. */
#include "record/sql/record_sql.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_error.h"
#include "base/base_utf8.h"
#include "record/run/record_run.h"

static int status_of_result(int result, int number)
{
    switch (result & 0xff) {
    case SQLITE_NOMEM:
        return WM_ENOMEM;
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_READONLY:
        return WM_EACCES;
    case SQLITE_CANTOPEN:
        return number != 0 ? wm_status_of_errno(number) : WM_EIO;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_PROTOCOL:
        return WM_EIO;
    default:
        return WM_EFORMAT;
    }
}

/* The errno of what failed, or 0. SQLite remembers it when a statement fails,
 * but not when a commit does; there it is still the thread's own. */
static int system_number(sqlite3 *db, int result)
{
    int number = errno;
    int kind = result & 0xff;

    if (!db || (kind != SQLITE_IOERR && kind != SQLITE_CANTOPEN) ||
        sqlite3_extended_errcode(db) == SQLITE_IOERR_SHORT_READ)
        return 0;
    int remembered = sqlite3_system_errno(db);
    return remembered != 0 ? remembered : number;
}

int wm_sql_fail(sqlite3 *db, int result, const char *path, struct wm_error *err)
{
    int number = system_number(db, result);
    const char *reason = db ? sqlite3_errmsg(db) : sqlite3_errstr(result);

    if (number == 0)
        return wm_fail(err, status_of_result(result, number), "%s: %s", path, reason);
    return wm_fail(err, status_of_result(result, number), "%s: %s (%s)", path, reason,
                   wm_errno_text(number));
}

int wm_sql_exec(sqlite3 *db, const char *sql, const char *path, struct wm_error *err)
{
    int result = sqlite3_exec(db, sql, NULL, NULL, NULL);

    return result == SQLITE_OK ? WM_OK : wm_sql_fail(db, result, path, err);
}

int wm_sql_prepare(sqlite3 *db, const char *sql, const char *path,
                   sqlite3_stmt **ret_statement, struct wm_error *err)
{
    int result = sqlite3_prepare_v2(db, sql, -1, ret_statement, NULL);

    return result == SQLITE_OK ? WM_OK : wm_sql_fail(db, result, path, err);
}

int wm_sql_exec_made(sqlite3 *db, char *sql, const char *path, struct wm_error *err)
{
    int status = sql ? wm_sql_exec(db, sql, path, err) : wm_fail_memory(err, path);

    sqlite3_free(sql);
    return status;
}

int wm_sql_run(sqlite3_stmt *statement, const char *path, struct wm_error *err)
{
    int result = sqlite3_step(statement);
    int status = WM_OK;

    if (result != SQLITE_DONE)
        status = wm_sql_fail(sqlite3_db_handle(statement), result, path, err);
    sqlite3_reset(statement);
    return status;
}

int wm_sql_bind_text(sqlite3_stmt *statement, int index, const char *text, const char *path,
                     struct wm_error *err)
{
    char *copy = text ? wm_text_copy(text) : NULL;

    if (text && !copy)
        return wm_fail_memory(err, path);
    int result = sqlite3_bind_text(statement, index, copy, -1, free);
    return result == SQLITE_OK
               ? WM_OK
               : wm_sql_fail(sqlite3_db_handle(statement), result, path, err);
}

void wm_sql_bind_number(sqlite3_stmt *statement, int index, struct wm_known value)
{
    if (value.known && isfinite(value.number))
        sqlite3_bind_double(statement, index, value.number);
    else
        sqlite3_bind_null(statement, index);
}

static int put(sqlite3_stmt *statement, const char *path, const char *types, va_list list,
               struct wm_error *err)
{
    int status = WM_OK;

    for (int i = 0; types[i] && status == WM_OK; i++) {
        if (types[i] == 't')
            status =
                wm_sql_bind_text(statement, i + 1, va_arg(list, const char *), path, err);
        else if (types[i] == 'n')
            wm_sql_bind_number(statement, i + 1, va_arg(list, struct wm_known));
        else
            sqlite3_bind_int64(statement, i + 1, va_arg(list, int64_t));
    }
    return status < 0 ? status : wm_sql_run(statement, path, err);
}

int wm_sql_put(sqlite3_stmt *statement, const char *path, struct wm_error *err,
               const char *types, ...)
{
    va_list list;

    va_start(list, types);
    int status = put(statement, path, types, list, err);
    va_end(list);
    return status;
}

int wm_db_put(const struct wm_db *db, const char *sql, struct wm_error *err,
              const char *types, ...)
{
    sqlite3_stmt *statement = NULL;
    int status = wm_sql_prepare(db->handle, sql, db->shown, &statement, err);
    va_list list;

    if (status < 0)
        return status;
    va_start(list, types);
    status = put(statement, db->shown, types, list, err);
    va_end(list);
    sqlite3_finalize(statement);
    return status;
}

int wm_sql_number(sqlite3 *db, const char *sql, const char *path, sqlite3_int64 *ret_number,
                  struct wm_error *err)
{
    sqlite3_stmt *statement = NULL;

    int status = wm_sql_prepare(db, sql, path, &statement, err);
    if (status < 0)
        return status;
    int result = sqlite3_step(statement);
    if (result == SQLITE_ROW)
        *ret_number = sqlite3_column_int64(statement, 0);
    else
        status = wm_sql_fail(db, result, path, err);
    sqlite3_finalize(statement);
    return status;
}

void wm_sql_append_columns(sqlite3_str *sql, const char *before,
                           const struct wm_columns *columns)
{
    for (size_t i = 0; i < columns->clock_count; i++)
        sqlite3_str_appendf(sql, "%s\"%w\"", before, columns->clocks[i]);
    for (size_t i = 0; i < columns->count; i++)
        sqlite3_str_appendf(sql, "%s\"%w\"", before, columns->values[i]);
}

/* Drafts of the format, which no released version wrote, lack some of these. */
static int check_columns(sqlite3 *db, const char *path, struct wm_error *err)
{
    static const char sql[] = "SELECT sensor, cpu_ns FROM channel, region_call";
    sqlite3_stmt *statement = NULL;

    int result = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    sqlite3_finalize(statement);
    if (result == SQLITE_ERROR)
        return wm_fail(err, WM_EFORMAT, "%s: recorded before version 0.1.0", path);
    return result == SQLITE_OK ? WM_OK : wm_sql_fail(db, result, path, err);
}

int wm_sql_check_format(sqlite3 *db, const char *path, struct wm_error *err)
{
    static const char *const tables[] = { "run",        "channel",     "sample",
                                          "gap",        "region_path", "region_thread",
                                          "region_call" };
    sqlite3_int64 id = 0, version = 0;

    int status = wm_sql_number(db, "PRAGMA application_id", path, &id, err);
    if (status == WM_OK)
        status = wm_sql_number(db, "PRAGMA user_version", path, &version, err);
    if (status < 0)
        return status;
    if (id != WM_SQL_APPLICATION_ID)
        return wm_fail(err, WM_ENODEV, "%s: a database, but not a recording of wattmeter",
                       path);
    if (version > WM_RECORDING_FORMAT)
        return wm_fail(
            err, WM_EFORMAT,
            "%s: made by a newer wattmeter (format %lld, this one knows up to %d)", path,
            (long long)version, WM_RECORDING_FORMAT);
    status = check_columns(db, path, err);
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]) && status == WM_OK; i++)
        status = wm_sql_check_table(db, tables[i], path, err);
    return status;
}

const char *wm_sql_file_name(const char *path, char name[4096])
{
    if (strncmp(path, "file:", 5) != 0)
        return path;
    snprintf(name, 4096, "./%s", path);
    return name;
}

static int sqlite_exec(const struct wm_db *db, const char *sql, struct wm_error *err)
{
    return wm_sql_exec(db->handle, sql, db->shown, err);
}

static int sqlite_query(const struct wm_db *db, const char *sql,
                        struct wm_db_rows *ret_rows, struct wm_error *err)
{
    sqlite3_stmt *statement = NULL;
    int status = wm_sql_prepare(db->handle, sql, db->shown, &statement, err);

    if (status == WM_OK)
        *ret_rows = (struct wm_db_rows) { .db = db, .result = statement };
    return status;
}

static int sqlite_next(struct wm_db_rows *rows, struct wm_error *err)
{
    int result = sqlite3_step(rows->result);

    if (result == SQLITE_ROW)
        return 1;
    return result == SQLITE_DONE
               ? 0
               : wm_sql_fail(rows->db->handle, result, rows->db->shown, err);
}

static const char *sqlite_text(const struct wm_db_rows *rows, int column)
{
    return (const char *)sqlite3_column_text(rows->result, column);
}

static enum wm_db_cell sqlite_integer(const struct wm_db_rows *rows, int column,
                                      int64_t *ret)
{
    int type = sqlite3_column_type(rows->result, column);

    if (type != SQLITE_INTEGER)
        return type == SQLITE_NULL ? WM_DB_NULL : WM_DB_WRONG;
    *ret = sqlite3_column_int64(rows->result, column);
    return WM_DB_OK;
}

static enum wm_db_cell sqlite_number(const struct wm_db_rows *rows, int column, double *ret)
{
    int type = sqlite3_column_type(rows->result, column);

    if (type != SQLITE_INTEGER && type != SQLITE_FLOAT)
        return type == SQLITE_NULL ? WM_DB_NULL : WM_DB_WRONG;
    *ret = sqlite3_column_double(rows->result, column);
    return WM_DB_OK;
}

static void sqlite_end(struct wm_db_rows *rows)
{
    if (rows->result)
        sqlite3_finalize(rows->result);
    *rows = (struct wm_db_rows) { 0 };
}

static const struct wm_db_ops sqlite_ops = {
    .exec = sqlite_exec,
    .query = sqlite_query,
    .next = sqlite_next,
    .text = sqlite_text,
    .integer = sqlite_integer,
    .number = sqlite_number,
    .end = sqlite_end,
};

struct wm_db wm_db_sqlite(sqlite3 *handle, const char *shown)
{
    size_t limit = (size_t)sqlite3_limit(handle, SQLITE_LIMIT_COLUMN, -1);

    return (struct wm_db) {
        .ops = &sqlite_ops,
        .dialect = &wm_dialect_sqlite,
        .handle = handle,
        .shown = shown,
        .row_max = limit,
        .width_max = limit,
    };
}

int wm_db_exec_made(const struct wm_db *db, char *sql, struct wm_error *err)
{
    int status = sql ? db->ops->exec(db, sql, err) : wm_fail_memory(err, db->shown);

    sqlite3_free(sql);
    return status;
}

/* Takes over `sql`. */
static int query_made(const struct wm_db *db, char *sql, struct wm_db_rows *ret_rows,
                      struct wm_error *err)
{
    int status =
        sql ? db->ops->query(db, sql, ret_rows, err) : wm_fail_memory(err, db->shown);

    sqlite3_free(sql);
    return status;
}

int wm_db_query(const struct wm_db *db, struct wm_db_rows *ret_rows, struct wm_error *err,
                const char *format, ...)
{
    va_list list;

    va_start(list, format);
    char *sql = sqlite3_vmprintf(format, list);
    va_end(list);
    return query_made(db, sql, ret_rows, err);
}

int wm_db_number(const struct wm_db *db, int64_t *ret_number, struct wm_error *err,
                 const char *format, ...)
{
    struct wm_db_rows rows = { 0 };
    va_list list;

    va_start(list, format);
    char *sql = sqlite3_vmprintf(format, list);
    va_end(list);
    int status = query_made(db, sql, &rows, err);
    if (status < 0)
        return status;
    status = db->ops->next(&rows, err);
    if (status > 0)
        db->ops->integer(&rows, 0, ret_number);
    db->ops->end(&rows);
    return status < 0 ? status : WM_OK;
}
