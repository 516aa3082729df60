/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_pg.h - a connection to PostgreSQL on which nothing takes for ever.
 *
 * Every call returns within `patience_ns` of the last sign of life of the server; what only
 * the system's resolver of names can delay is outside our reach. After a failure the
 * connection is good for wm_pg_close() alone. Messages never have a password in them.
 */
#ifndef WM_RECORD_PG_H
#define WM_RECORD_PG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/sql/record_pg_library.h"

#define WM_PG_PATIENCE_NS (INT64_C(10) * 1000 * 1000 * 1000)

/* The version of the tables, and where they are. */
#define WM_PG_SCHEMA "wattmeter"

struct wm_pg {
    struct wm_libpq library;
    PGconn *connection;
    int64_t patience_ns;        /* WM_PG_PATIENCE_NS unless the owner changes it */
    char *shown;                /* what messages call the database */
    const atomic_bool *give_up; /* whoever sets it ends all waiting; may be NULL */
};

/* What a query gave. All zero: nothing. */
struct wm_pg_rows {
    const struct wm_pg *pg;
    PGresult *result;
};

/* What messages call the database of that URL, the caller's to free: its user,
 * host, port and name. NULL when out of memory. */
char *wm_pg_shown(const char *url);

/* Connects, and looks whether the server can hold a recording. wm_pg_close() is
 * due whatever this returned. */
int wm_pg_open(struct wm_pg *pg, const char *url, const atomic_bool *give_up,
               struct wm_error *err);

/* Accepts one that was never opened, all zero. */
void wm_pg_close(struct wm_pg *pg);

/* Runs statements that give no rows. */
int wm_pg_exec(struct wm_pg *pg, const char *sql, struct wm_error *err);

/* Runs one statement with `count` texts for $1, $2... of which any may be NULL.
 * wm_pg_rows_free() is due after success. */
int wm_pg_query(struct wm_pg *pg, const char *sql, const char *const *texts, int count,
                struct wm_pg_rows *ret_rows, struct wm_error *err);

/* The same where there are no rows to see. */
int wm_pg_run(struct wm_pg *pg, const char *sql, const char *const *texts, int count,
              struct wm_error *err);

/* Sends a query whose rows, in binary, come one by one from wm_pg_next(): 1 and
 * a result of one row, 0 past the last. */
int wm_pg_send(struct wm_pg *pg, const char *sql, const char *const *texts, int count,
               struct wm_error *err);
int wm_pg_next(struct wm_pg *pg, struct wm_pg_rows *ret_row, struct wm_error *err);

void wm_pg_rows_free(struct wm_pg_rows *rows);

int wm_pg_rows_count(const struct wm_pg_rows *rows);

/* NULL for NULL; borrowed. */
const char *wm_pg_rows_text(const struct wm_pg_rows *rows, int row, int column);

/* `otherwise` where there is no number. */
int64_t wm_pg_rows_number(const struct wm_pg_rows *rows, int row, int column,
                          int64_t otherwise);

/* The types that are known in their binary form. */
enum { WM_PG_INT8 = 20, WM_PG_FLOAT8 = 701 };

/* The bits of a value of that type in a row that came in binary; false where it is
 * NULL or of another type. */
bool wm_pg_rows_bits(const struct wm_pg_rows *rows, int column, Oid type,
                     uint64_t *ret_bits);

/* The server takes rows from the end of this statement on. */
int wm_pg_copy_begin(struct wm_pg *pg, const char *sql, struct wm_error *err);
int wm_pg_copy(struct wm_pg *pg, const char *bytes, size_t length, struct wm_error *err);
int wm_pg_copy_end(struct wm_pg *pg, struct wm_error *err);

/* Fails with the database in front. */
int wm_pg_fail(const struct wm_pg *pg, int status, const char *text, struct wm_error *err);

#endif
