/* SPDX-License-Identifier: Apache-2.0 */
/* record_sql.h - what the writer and the reader of SQLite recordings share. */
#ifndef WM_RECORD_SQL_H
#define WM_RECORD_SQL_H

#include "base/base_error.h"
#include "base/base_sqlite.h"
#include "record/record_column.h"

/* Says in the file's header that it is ours: "WMtr". */
#define WM_SQL_APPLICATION_ID 0x574d7472

/* A query: whether the table of channels has what is known of their sensors, which that of
 * earlier versions has not. */
#define WM_SQL_HAS_SENSOR                                                                  \
    "SELECT count(*) FROM pragma_table_info('channel') WHERE name = 'sensor'"

/* SQLite's reason for `result`, and the system's where it has one. `db` may be
 * NULL, `path` is what the message calls the file. */
int wm_sql_fail(sqlite3 *db, int result, const char *path, struct wm_error *err);

int wm_sql_exec(sqlite3 *db, const char *sql, const char *path, struct wm_error *err);

/* The same for a text that SQLite has made, which it takes over; NULL means out
 * of memory. */
int wm_sql_exec_made(sqlite3 *db, char *sql, const char *path, struct wm_error *err);

/* sqlite3_finalize() gives the statement back. */
int wm_sql_prepare(sqlite3 *db, const char *sql, const char *path,
                   sqlite3_stmt **ret_statement, struct wm_error *err);

/* Runs a statement that gives no rows, and makes it ready for the next time. */
int wm_sql_run(sqlite3_stmt *statement, const char *path, struct wm_error *err);

/* NULL for NULL; what is not UTF-8 is made so. */
int wm_sql_bind_text(sqlite3_stmt *statement, int index, const char *text, const char *path,
                     struct wm_error *err);

/* NULL for NaN and infinity. */
void wm_sql_bind_number(sqlite3_stmt *statement, int index, double value);

/* The number that a query of one row and column gives. */
int wm_sql_number(sqlite3 *db, const char *sql, const char *path, sqlite3_int64 *ret_number,
                  struct wm_error *err);

/* Adds the columns of `sample` but the time, in the order in which they are read and
 * written, each with `before` in front: the clocks, then the values. */
void wm_sql_append_columns(sqlite3_str *sql, const char *before,
                           const struct wm_columns *columns);

/* WM_EFORMAT unless the database is a recording of a version that we know. */
int wm_sql_check_format(sqlite3 *db, const char *path, struct wm_error *err);

/* What to call `path` towards SQLite, which would take a name that begins with
 * "file:" for a URI with options in it. In `name`, or `path` itself. */
const char *wm_sql_file_name(const char *path, char name[4096]);

#endif
