/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_pg_shipper.h - a thread that brings a run from its spool to PostgreSQL, while
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
#ifndef WM_RECORD_PG_SHIPPER_H
#define WM_RECORD_PG_SHIPPER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "record/record_queue.h"
#include "record/sql/record_pg_writer.h"

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

#endif
