/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_pg.h - recordings in PostgreSQL: the connection, and a run on its way into the
 * tables; for this folder alone.
 */
#ifndef WM_RECORD_PG_H
#define WM_RECORD_PG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base_error.h"
#include "record/sql/record_sql.h"

/*
 * A connection to PostgreSQL on which nothing takes for ever.
 *
 * Every call returns within WM_PG_PATIENCE_NS, a reader's within two minutes, of the last
 * sign of life of the server; what only the system's resolver of names can delay is outside
 * our reach. After a failure the connection is good for wm_pg_close() alone. Messages never
 * have a password in them.
 */

#define WM_PG_PATIENCE_NS (INT64_C(10) * 1000 * 1000 * 1000)

/* Where the tables are. */
#define WM_PG_SCHEMA "wattmeter"

struct wm_pg;

/* What messages call the database of that URL, the caller's to free: its user,
 * host, port and name. NULL when out of memory. */
char *wm_pg_shown(const char *url);

/* Connects, and looks whether the server can hold a recording. Whoever sets `give_up`,
 * which may be NULL, ends all waiting. */
int wm_pg_open(const char *url, const atomic_bool *give_up, struct wm_pg **ret_pg,
               struct wm_error *err);

/* Accepts NULL. */
void wm_pg_close(struct wm_pg *pg);

const struct wm_db *wm_pg_db(const struct wm_pg *pg);

/* Adds rows to a table: `sql` is a COPY from stdin, and `text` what it gets. */
int wm_pg_copy(struct wm_pg *pg, const char *sql, const char *text, size_t length,
               struct wm_error *err);

/* WM_EFORMAT unless the database holds recordings of a version that we know, or
 * none at all. In a transaction. */
int wm_pg_check_format(const struct wm_pg *pg, bool *ret_is_there, struct wm_error *err);

/*
 * One run on its way from its spool, an SQLite recording of this run alone, to PostgreSQL.
 *
 *     wm_delivery_connect(&delivery, err);
 *     while ((status = wm_delivery_step(&delivery, spool_path, err)) > 0)
 *         ;
 *     wm_delivery_finish(&delivery, result, err);
 *     wm_delivery_disconnect(&delivery);
 *
 * A run that is there already, by its `id`, is gone on with: what the server has of the
 * spool is left out. So after any failure the same spool can be delivered from the
 * beginning, by anybody, and everything stands there once.
 */

enum { WM_DELIVERED_TABLES = 5 };

/* How far a table has come. */
struct wm_delivery_mark {
    int64_t key;          /* the row of the spool that came last; -1: none */
    bool is_resuming;     /* the server may have some of the next rows */
    int64_t whole, count; /* it has them up to this time, and so many rows of it */
};

struct wm_delivery {
    const char *url; /* the first five are given */
    const struct wm_run *run;
    const struct wm_channel *channels;
    size_t count;
    const atomic_bool *give_up;

    struct wm_pg *pg; /* NULL: not connected */
    struct wm_schema schema;
    bool has_begun; /* the server has the run */
    bool is_new;    /* the run was not there before */
    bool has_ticks; /* the server has a tick */
    sqlite3 *spool; /* open, or NULL */
    const char *spool_shown;
    struct wm_delivery_mark marks[WM_DELIVERED_TABLES];
};

/* Looks whether the server can be used. */
int wm_delivery_connect(struct wm_delivery *delivery, struct wm_error *err);

/* Connects, makes the tables, and describes the run, where that is due, all or nothing;
 * else delivers some of what the spool has, which may be NULL. 1, or 0 when it is all
 * there. */
int wm_delivery_step(struct wm_delivery *delivery, const char *spool, struct wm_error *err);

int wm_delivery_finish(struct wm_delivery *delivery, const struct wm_result *result,
                       struct wm_error *err);

/* Takes the run out of the database again, if that can be reached. */
void wm_delivery_take_back(struct wm_delivery *delivery);

/* The spool is another one from here on, or none. */
void wm_delivery_close_spool(struct wm_delivery *delivery);

/* After a failure, when the next step begins anew, and at the end. */
void wm_delivery_disconnect(struct wm_delivery *delivery);

/* Where a run is kept that has yet to be delivered, in a file of that name; the caller's to
 * free. */
int wm_spool_path(const char *name, char **ret_path, struct wm_error *err);

#endif
