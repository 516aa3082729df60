/* SPDX-License-Identifier: Apache-2.0 */
/* record_pg.h - recordings in PostgreSQL: the connection, the tables, a run on its way into
 * them, the thread that brings it there, and where it waits meanwhile; for this folder
 * alone. */
#ifndef WM_RECORD_PG_H
#define WM_RECORD_PG_H

#include <libpq-fe.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base_error.h"
#include "record/record.h"
#include "record/record_column.h"
#include "record/record_queue.h"
#include "record/run/record_run.h"

/* Libpq is opened when it is needed: with what it needs in turn (TLS, Kerberos, LDAP) it
 * would cost every command 4 ms and 5 MB. */
#define WM_LIBPQ_FUNCTIONS(FUNCTION)                                                       \
    FUNCTION(PQclear)                                                                      \
    FUNCTION(PQconnectPoll)                                                                \
    FUNCTION(PQconnectStartParams)                                                         \
    FUNCTION(PQconninfoFree)                                                               \
    FUNCTION(PQconninfoParse)                                                              \
    FUNCTION(PQconsumeInput)                                                               \
    FUNCTION(PQerrorMessage)                                                               \
    FUNCTION(PQfformat)                                                                    \
    FUNCTION(PQfinish)                                                                     \
    FUNCTION(PQflush)                                                                      \
    FUNCTION(PQfreemem)                                                                    \
    FUNCTION(PQftype)                                                                      \
    FUNCTION(PQgetResult)                                                                  \
    FUNCTION(PQgetisnull)                                                                  \
    FUNCTION(PQgetlength)                                                                  \
    FUNCTION(PQgetvalue)                                                                   \
    FUNCTION(PQisBusy)                                                                     \
    FUNCTION(PQntuples)                                                                    \
    FUNCTION(PQparameterStatus)                                                            \
    FUNCTION(PQputCopyData)                                                                \
    FUNCTION(PQputCopyEnd)                                                                 \
    FUNCTION(PQresultErrorField)                                                           \
    FUNCTION(PQresultStatus)                                                               \
    FUNCTION(PQsendQuery)                                                                  \
    FUNCTION(PQsendQueryParams)                                                            \
    FUNCTION(PQserverVersion)                                                              \
    FUNCTION(PQsetNoticeReceiver)                                                          \
    FUNCTION(PQsetSingleRowMode)                                                           \
    FUNCTION(PQsetnonblocking)                                                             \
    FUNCTION(PQsocket)                                                                     \
    FUNCTION(PQstatus)

/* Each function under its own name. */
struct wm_libpq {
#define WM_LIBPQ_MEMBER(name) __typeof__(name) *name;
    WM_LIBPQ_FUNCTIONS(WM_LIBPQ_MEMBER)
#undef WM_LIBPQ_MEMBER
};

/* It stays loaded: its libraries do not like to be unloaded. WM_ENODEV where it
 * is not installed. */
int wm_libpq_load(struct wm_libpq *ret_library, struct wm_error *err);

/*
 * A connection to PostgreSQL on which nothing takes for ever.
 *
 * Every call returns within `patience_ns` of the last sign of life of the server; what only
 * the system's resolver of names can delay is outside our reach. After a failure the
 * connection is good for wm_pg_close() alone. Messages never have a password in them.
 */

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

/* The tables of a recording in PostgreSQL, and how a run
 * begins in them; docs/postgres.md explains them. */

struct wm_pg_run {
    const struct wm_run *run;
    const struct wm_channel *channels;
    size_t count;
    char id[24];               /* of the run, in decimal */
    struct wm_columns columns; /* of `sample` */
    int64_t last_ns;           /* the newest tick that is there; -1: none */
    bool is_new;               /* it was not there, and is now */
};

/* WM_EFORMAT unless the database holds recordings of a version that we know, or
 * none at all. */
int wm_pg_check_format(struct wm_pg *pg, bool *ret_is_there, struct wm_error *err);

/* The same for the database of that URL. */
int wm_pg_check(const char *url, struct wm_error *err);

/* Whether it has the tables of regions, which came later than the others. */
int wm_pg_has_regions(struct wm_pg *pg, bool *ret_has, struct wm_error *err);

/* Makes the tables unless they are there, and describes the run, all or nothing.
 * A run that is there already, by its `id`, is gone on with. The first three
 * members are given; wm_columns_release() is due whatever this returned. */
int wm_pg_begin_run(struct wm_pg *pg, struct wm_pg_run *run, struct wm_error *err);

/* Takes the run out again. */
int wm_pg_delete_run(struct wm_pg *pg, const struct wm_pg_run *run, struct wm_error *err);

/* Writes gpu_tracker's static data. NAN: not known. */
int wm_pg_static_data(struct wm_pg *pg, const struct wm_pg_run *run, double ram,
                      double gpu_ram, struct wm_error *err);

/*
 * One run on its way into PostgreSQL.
 *
 * A run that is there already is gone on with: ticks up to the newest one that
 * is there are left out, and so are gaps that are there. So the same ticks can
 * be handed over again from the beginning after any failure, by anybody, and
 * stand there once. So can regions, in the order of their stops. After a failure a writer
 * is good for closing alone.
 */

struct wm_timepoint_builder;

struct wm_pg_writer {
    struct wm_pg pg;
    struct wm_pg_run run;
    struct wm_timepoint_builder *builder; /* where the last tick left it */
    int64_t built_ns;                     /* the last tick that the builder got */
    bool has_static;                      /* the capacities are written */
    int64_t mark_ns;                      /* the stop of the last call that is there */
    int64_t mark_calls;                   /* how many of the calls there stop then */
    bool is_resuming;                     /* what comes may be there already: */
    int64_t skipped_calls;                /* so many that stop then were */
    char *copy_sample, *copy_data;        /* statements */
    char *row;                            /* room for one row */
};

/* Connects and begins the run. The arguments outlive the writer.
 * wm_pg_writer_close() is due whatever this returned. */
int wm_pg_writer_open(struct wm_pg_writer *writer, const char *url,
                      const struct wm_run *run, const struct wm_channel *channels,
                      size_t count, const atomic_bool *give_up, struct wm_error *err);

/* All of them or none. */
int wm_pg_writer_ticks(struct wm_pg_writer *writer, const struct wm_tick *ticks,
                       size_t count, struct wm_error *err);

int wm_pg_writer_gaps(struct wm_pg_writer *writer, const struct wm_gap *gaps, size_t count,
                      struct wm_error *err);

int wm_pg_writer_regions(struct wm_pg_writer *writer, const struct wm_region_batch *batch,
                         struct wm_error *err);

/* The regions come from another place, which may begin before the last of those that are
 * there. */
void wm_pg_writer_resume(struct wm_pg_writer *writer);

int wm_pg_writer_result(struct wm_pg_writer *writer, const struct wm_result *result,
                        struct wm_error *err);

void wm_pg_writer_close(struct wm_pg_writer *writer);

/*
 * A thread that brings a run from its spool to PostgreSQL, while
 * the recorder goes on writing to the spool.
 *
 *     wm_pg_shipper_open(&shipper, url, run, channels, count, err);
 *     wm_pg_shipper_start(&shipper, spool_path, err);
 *     wm_pg_shipper_new_spool(&shipper);      whenever a spool is begun,
 *     wm_pg_shipper_wake(&shipper);           whenever something was written to it,
 *     wm_pg_shipper_leave_spool(&shipper);    before it is removed
 *     wm_pg_shipper_end(&shipper, result);
 *     wm_pg_shipper_close(&shipper);
 *
 * All zero is a closed one. Its functions are the recorder's to call.
 */

struct wm_pg_shipper {
    const char *url;
    const struct wm_run *run;
    const struct wm_channel *channels;
    size_t count;
    const char *spool_path;
    bool has_lock, has_thread;
    pthread_t thread;
    atomic_bool give_up; /* ends all waiting for the server */

    /* The thread's own, and before and after its time the recorder's. */
    struct wm_pg_writer writer;
    bool is_connected;
    void *reader; /* of the spool: the state of wm_reader_sqlite, or NULL */
    uint64_t reader_generation;
    struct wm_queue batch;

    pthread_mutex_t lock;
    pthread_cond_t wake, shipped; /* for the thread, and from it */

    /* Guarded by the lock. */
    bool has_spool;
    bool is_reading;                       /* the thread may have the spool open */
    uint64_t generation;                   /* of the spool */
    uint64_t written_count, shipped_count; /* writings to spools, and those shipped */
    bool is_ending, has_ended;             /* the result is to be shipped, and has been */
    const struct wm_result *result;
    bool stop;
    int64_t next_try_ns;
    int64_t progress_ns; /* when the server last took something */
    int64_t cpu_ns;
    struct wm_error trouble; /* why shipping failed the last time */
};

/* Connects and begins the run. The arguments outlive the shipper. wm_pg_shipper_close() is
 * due whatever this returned. */
int wm_pg_shipper_open(struct wm_pg_shipper *shipper, const char *url,
                       const struct wm_run *run, const struct wm_channel *channels,
                       size_t count, struct wm_error *err);

/* Starts the thread. */
int wm_pg_shipper_start(struct wm_pg_shipper *shipper, const char *spool_path,
                        struct wm_error *err);

/* A spool has been begun; it may be read from now on. */
void wm_pg_shipper_new_spool(struct wm_pg_shipper *shipper);

/* Something has been written to the spool. */
void wm_pg_shipper_wake(struct wm_pg_shipper *shipper);

/* Whether the server has all of it. */
bool wm_pg_shipper_has_all(struct wm_pg_shipper *shipper);

/* The same, but has it tried at once, and waits while the server gets on. */
bool wm_pg_shipper_await_all(struct wm_pg_shipper *shipper);

/* Waits until the thread has closed the spool: the disk has its room back only then. */
void wm_pg_shipper_leave_spool(struct wm_pg_shipper *shipper);

/* Ships what is left and the result, as long as the server gets on, and ends the thread.
 * Whether the server has it all; if not, `trouble` says why. */
bool wm_pg_shipper_end(struct wm_pg_shipper *shipper, const struct wm_result *result);

/* Ends the thread. */
void wm_pg_shipper_stop(struct wm_pg_shipper *shipper);

/* Of the thread. */
int64_t wm_pg_shipper_cpu_ns(struct wm_pg_shipper *shipper);

/* Takes the run out of the database again, if that can be reached; after the end of the
 * thread. */
void wm_pg_shipper_delete_run(struct wm_pg_shipper *shipper);

/* Closes the connection and the spool; after the end of the thread. */
void wm_pg_shipper_disconnect(struct wm_pg_shipper *shipper);

void wm_pg_shipper_close(struct wm_pg_shipper *shipper);

/* Where a run is kept that has yet to be delivered. */

/* The path for the spool of that run, the caller's to free: in the user's folder
 * for state, or in the one for temporary files where that cannot be had. The
 * folder is there when this returns, and its owner's alone if we made it. */
int wm_spool_path(const char *run_id, char **ret_path, struct wm_error *err);

#endif
