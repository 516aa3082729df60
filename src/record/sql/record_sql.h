/* SPDX-License-Identifier: Apache-2.0 */
/* record_sql.h - recordings in databases: SQLite, databases of others, what is the same for
 * SQLite and PostgreSQL, and the tables. */
#ifndef WM_RECORD_SQL_H
#define WM_RECORD_SQL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base_error.h"
#include "base/base_sqlite.h"
#include "base/text/base_number.h"
#include "record/record_channel.h"
#include "record/record_ops.h"
#include "record/record_regions.h"
#include "record/run/record_run.h"

/* What the writer and the reader of SQLite recordings share. */

/* Says in the file's header that it is ours: "WMtr". */
#define WM_SQL_APPLICATION_ID 0x574d7472

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

/* NULL where it is not known. */
void wm_sql_bind_number(sqlite3_stmt *statement, int index, struct wm_known value);

/* Gives a statement its values and runs it, as wm_sql_run(). A letter of `types` stands for
 * each: t is a text, i an int64_t, n a struct wm_known. */
int wm_sql_put(sqlite3_stmt *statement, const char *path, struct wm_error *err,
               const char *types, ...);

/* The number that a query of one row and column gives. */
int wm_sql_number(sqlite3 *db, const char *sql, const char *path, sqlite3_int64 *ret_number,
                  struct wm_error *err);

/* Adds the columns of `sample` but the time, in the order in which they are read and
 * written, each with `before` in front: the clocks, then the values. */
void wm_sql_append_columns(sqlite3_str *sql, const char *before,
                           const struct wm_columns *columns);

/* WM_EFORMAT unless the database holds recordings of our format; WM_ENODEV if it is not
 * one of wattmeter at all. */
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

/*
 * A database of either kind, as the reader and whoever makes the tables see it.
 *
 *     wm_db_query(db, &rows, err, "SELECT id, info FROM run WHERE host = %Q", host);
 *     while ((status = db->ops->next(&rows, err)) > 0)
 *         puts(db->ops->text(&rows, 1));
 *     db->ops->end(&rows);
 *
 * Texts are put together by SQLite's printf(), in which %Q is a text in quotes, %w a name
 * within quotes and %z a text that is released. In PostgreSQL a query needs a transaction.
 */

struct wm_db;

/* A query under way. All zero: none. */
struct wm_db_rows {
    const struct wm_db *db;
    void *result; /* a statement of SQLite, or rows of libpq */
    int row;      /* PostgreSQL: the row of `result` */
    int cursor;   /* PostgreSQL: the cursor that gives more rows */
};

/* What a cell of a row holds. */
enum wm_db_cell {
    WM_DB_NULL,
    WM_DB_OK,
    WM_DB_WRONG, /* something of another type */
};

struct wm_db_ops {
    /* Runs statements that give no rows. */
    int (*exec)(const struct wm_db *db, const char *sql, struct wm_error *err);

    /* Begins one that does. end() is due after success. */
    int (*query)(const struct wm_db *db, const char *sql, struct wm_db_rows *ret_rows,
                 struct wm_error *err);

    /* Goes to the next row: 1, and 0 past the last, once. */
    int (*next)(struct wm_db_rows *rows, struct wm_error *err);

    /* Borrowed until the next row; NULL for NULL. */
    const char *(*text)(const struct wm_db_rows *rows, int column);
    enum wm_db_cell (*integer)(const struct wm_db_rows *rows, int column, int64_t *ret);
    enum wm_db_cell (*number)(const struct wm_db_rows *rows, int column, double *ret);

    /* Accepts none. */
    void (*end)(struct wm_db_rows *rows);
};

/* What SQLite and PostgreSQL say in different words. */
struct wm_dialect {
    const char *tables; /* makes the tables of a recording but sample */
    const char *of_run, *integer, *real;
    bool has_devices;                   /* the columns of sample are of one device each */
    const char *sample_names;           /* a query: the names of the columns of sample */
    const char *gap_order, *call_order; /* as they were written */
};

extern const struct wm_dialect wm_dialect_sqlite, wm_dialect_postgres;

struct wm_db {
    const struct wm_db_ops *ops;
    const struct wm_dialect *dialect;
    void *handle;      /* sqlite3, or struct wm_pg */
    const char *shown; /* what messages call it */
    size_t row_max;    /* columns that fit into a row */
    size_t width_max;  /* columns that fit into a table */
};

/* Of an open SQLite database. */
struct wm_db wm_db_sqlite(sqlite3 *handle, const char *shown);

/* Takes over a text that SQLite has made; NULL means out of memory. */
int wm_db_exec_made(const struct wm_db *db, char *sql, struct wm_error *err);

int wm_db_query(const struct wm_db *db, struct wm_db_rows *ret_rows, struct wm_error *err,
                const char *format, ...);

/* The integer that a query of one row and column gives; `*ret_number` stays as it is where
 * that is NULL or there is no row. */
int wm_db_number(const struct wm_db *db, int64_t *ret_number, struct wm_error *err,
                 const char *format, ...);

/* Of SQLite: runs one statement with such values as wm_sql_put() takes. */
int wm_db_put(const struct wm_db *db, const char *sql, struct wm_error *err,
              const char *types, ...);

/* The tables of a recording, and how a run begins in them; docs/recordings.md explains
 * them. */

struct wm_schema {
    struct wm_db db;
    const struct wm_run *run;
    const struct wm_channel *channels;
    size_t count;
    int64_t id;                /* of the run */
    struct wm_columns columns; /* of `sample` */
};

/* Plans the columns and adds those that `sample` lacks. wm_columns_release() is due
 * whatever this returned. */
int wm_schema_make_columns(struct wm_schema *schema, struct wm_error *err);

/* Of SQLite: makes the tables unless they are there, adds the columns that `sample` lacks,
 * and describes the run and its channels, all or nothing. Fills in the last two
 * members; wm_columns_release() is due whatever this returned. */
int wm_schema_begin_run(struct wm_schema *schema, struct wm_error *err);

/*
 * The reader of both kinds: begins the state of their readers, and is all zero before. The
 * database is open, in a transaction, and holds a recording of a version that we know.
 */

struct wm_sql_reader {
    struct wm_reader_head head;
    struct wm_db db;
    int64_t id; /* of the run */
    struct wm_channel_set set;
    size_t gap_room;
    struct wm_reading *readings;
    struct wm_db_rows samples, calls;
    int64_t last_ns;                /* when the newest tick was */
    int64_t call_count, most_calls; /* how many were read, and can be */
    struct wm_regions_part regions;
    bool has_ticks, ended, regions_ended;
};

int wm_sql_reader_open(struct wm_sql_reader *reader, size_t run, struct wm_error *err);

/* These are members of struct wm_reader_ops. */
int wm_sql_reader_next(void *state, struct wm_tick *ret_tick, struct wm_error *err);
int wm_sql_reader_regions(void *state, struct wm_region_batch *ret_batch,
                          struct wm_error *err);
int wm_sql_reader_calls(void *state, struct wm_region_batch *ret_batch,
                        struct wm_error *err);

/* Before the database is closed. */
void wm_sql_reader_release(struct wm_sql_reader *reader);

#endif
