/* SPDX-License-Identifier: Apache-2.0 */
/* record_sql.h - recordings in SQLite: what writer and reader share, databases of others,
 * and the tables. */
#ifndef WM_RECORD_SQL_H
#define WM_RECORD_SQL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base_error.h"
#include "base/base_sqlite.h"
#include "record/record_column.h"
#include "record/run/record_run.h"

/* What the writer and the reader of SQLite recordings share. */

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

/* SQLite databases that others may have written, and may be writing:
 * opened to be read. */

/* Whether a file that begins with these bytes is a database. */
bool wm_sql_is_database(const char *head, size_t length);

/* Opens the database at `path` and begins a transaction, so that a writer that goes on does
 * not show in one table and not in the other; also in a folder that may not be written to.
 * `shown` is what messages call it. `*ret_db` is NULL before;
 * where it is none afterwards, sqlite3_close() is due whatever this returned. */
int wm_sql_open_to_read(const char *path, const char *shown, sqlite3 **ret_db,
                        struct wm_error *err);

/* WM_EFORMAT unless there is a table of that name, which holds no quotes; a view could take
 * for ever to answer. */
int wm_sql_check_table(sqlite3 *db, const char *name, const char *path,
                       struct wm_error *err);

/* More rows of so many columns the file at `path` and its log have no room for. A scan of a
 * database whose pages point back at each other would go on for ever. */
int64_t wm_sql_most_rows(const char *path, int columns);

/* The tables of an SQLite recording, and how a run begins in
 * them; docs/recordings.md explains them. */

struct wm_schema {
    sqlite3 *db;
    const char *path; /* for messages */
    const struct wm_run *run;
    const struct wm_channel *channels;
    size_t count;
    sqlite3_int64 id;          /* of the run */
    struct wm_columns columns; /* of `sample` */
};

/* Makes the tables unless they are there, adds the columns that `sample` lacks,
 * and describes the run and its channels, all or nothing. Fills in the last two
 * members; wm_columns_release() is due whatever this returned. */
int wm_schema_begin_run(struct wm_schema *schema, struct wm_error *err);

/* Writes gpu_tracker's static data. NAN: not known. */
int wm_schema_static_data(const struct wm_schema *schema, double ram, double gpu_ram,
                          struct wm_error *err);

#endif
