/* SPDX-License-Identifier: Apache-2.0 */
/* record_pg_shipper.c - what runs in the thread, and then what the recorder calls. */
#include "record/sql/record_pg.h"

#include <errno.h>
#include <stdlib.h>

#include "base/base_clock.h"
#include "base/base_thread.h"
#include "record/record_ops.h"

/* Of the spool. It is opened here and not as any recording is, because whoever
 * closes a file that SQLite has open ends SQLite's locks on it. */
static const struct wm_reader_ops *const reader_ops = &wm_reader_sqlite;

/* How long the server may take to make room on a full disk. */
#define ROOM_NS (2 * WM_NS_PER_S)

/* How long the server is left alone after a failure; doubled up to the second. */
#define PAUSE_MIN_NS (WM_NS_PER_S / 4)
#define PAUSE_MAX_NS (2 * WM_NS_PER_S)

enum { GAPS_AT_ONCE = 1000 };

static void close_reader(struct wm_pg_shipper *shipper)
{
    if (shipper->reader)
        reader_ops->close(shipper->reader);
    free(shipper->reader);
    shipper->reader = NULL;
}

void wm_pg_shipper_disconnect(struct wm_pg_shipper *shipper)
{
    wm_pg_writer_close(&shipper->writer);
    shipper->is_connected = false;

    /* The next writer begins with the first tick that is left. */
    close_reader(shipper);
}

static int connect_writer(struct wm_pg_shipper *shipper, struct wm_error *err)
{
    int status =
        wm_pg_writer_open(&shipper->writer, shipper->url, shipper->run, shipper->channels,
                          shipper->count, &shipper->give_up, err);
    if (status < 0)
        wm_pg_shipper_disconnect(shipper);
    else
        shipper->is_connected = true;
    return status;
}

static int read_spool(struct wm_pg_shipper *shipper, uint64_t generation,
                      struct wm_error *err)
{
    if (shipper->reader && shipper->reader_generation == generation)
        return reader_ops->more(shipper->reader, err);
    close_reader(shipper);
    shipper->reader_generation = generation;
    wm_pg_writer_resume(&shipper->writer);
    shipper->reader = calloc(1, reader_ops->state_size);
    if (!shipper->reader)
        return wm_fail(err, WM_ENOMEM, "out of memory");
    return reader_ops->open(shipper->reader, shipper->spool_path, WM_LAST_RUN, err);
}

static void note_progress(struct wm_pg_shipper *shipper)
{
    pthread_mutex_lock(&shipper->lock);
    shipper->progress_ns = wm_clock_monotonic_ns();
    pthread_mutex_unlock(&shipper->lock);
}

static int ship_batch(struct wm_pg_shipper *shipper, struct wm_error *err)
{
    size_t count = wm_queue_take(&shipper->batch);
    int status = wm_pg_writer_ticks(&shipper->writer, shipper->batch.batch, count, err);

    wm_queue_done(&shipper->batch, count);
    if (status == WM_OK)
        note_progress(shipper);
    return status;
}

static int ship_ticks(struct wm_pg_shipper *shipper, struct wm_error *err)
{
    struct wm_tick tick;
    int status;

    while ((status = reader_ops->next(shipper->reader, &tick, err)) > 0) {
        wm_queue_push(&shipper->batch, &tick);
        if (shipper->batch.length == shipper->batch.batch_max)
            status = ship_batch(shipper, err);
        if (status < 0)
            break;
    }
    if (status == 0 && shipper->batch.length > 0)
        status = ship_batch(shipper, err);
    wm_queue_done(&shipper->batch, wm_queue_take(&shipper->batch));
    return status;
}

static int ship_gaps(struct wm_pg_shipper *shipper, struct wm_error *err)
{
    const struct wm_reader_head *head = shipper->reader;
    const struct wm_gap *gaps = head->gaps;
    size_t count = head->gap_count;
    int status = WM_OK;

    for (size_t i = 0; i < count && status == WM_OK; i += GAPS_AT_ONCE) {
        size_t some = count - i < GAPS_AT_ONCE ? count - i : GAPS_AT_ONCE;
        status = wm_pg_writer_gaps(&shipper->writer, &gaps[i], some, err);
        if (status == WM_OK)
            note_progress(shipper);
    }
    return status;
}

static int ship_regions(struct wm_pg_shipper *shipper, struct wm_error *err)
{
    struct wm_region_batch batch;
    int status;

    while ((status = reader_ops->regions(shipper->reader, &batch, err)) > 0) {
        status = wm_pg_writer_regions(&shipper->writer, &batch, err);
        if (status < 0)
            break;
        note_progress(shipper);
    }
    return status;
}

/* Ships all that has been written up to now. */
static int ship(struct wm_pg_shipper *shipper, struct wm_error *err)
{
    pthread_mutex_lock(&shipper->lock);
    uint64_t written = shipper->written_count, generation = shipper->generation;
    bool has_spool = shipper->has_spool, is_ending = shipper->is_ending;
    shipper->is_reading = has_spool;
    const struct wm_result *result = shipper->result;
    pthread_mutex_unlock(&shipper->lock);

    int status = shipper->is_connected ? WM_OK : connect_writer(shipper, err);
    if (status == WM_OK && has_spool) {
        status = read_spool(shipper, generation, err);
        if (status == WM_OK)
            status = ship_ticks(shipper, err);
        if (status == WM_OK)
            status = ship_regions(shipper, err);
        if (status == WM_OK)
            status = ship_gaps(shipper, err);
    }
    if (status == WM_OK && is_ending && result)
        status = wm_pg_writer_result(&shipper->writer, result, err);
    if (status < 0) {
        wm_pg_shipper_disconnect(shipper);
        return status;
    }

    pthread_mutex_lock(&shipper->lock);
    shipper->shipped_count = written;
    shipper->has_ended = is_ending;
    pthread_mutex_unlock(&shipper->lock);
    return WM_OK;
}

/* Waits, with the lock held, until there is something to ship and the time to
 * try it has come. */
static void wait_for_work(struct wm_pg_shipper *shipper)
{
    while (!shipper->stop) {
        if (shipper->is_reading && !shipper->has_spool) {
            close_reader(shipper);
            shipper->is_reading = false;
            pthread_cond_signal(&shipper->shipped);
        }
        bool has_work = shipper->shipped_count != shipper->written_count ||
                        (shipper->is_ending && !shipper->has_ended);
        if (has_work && wm_clock_monotonic_ns() >= shipper->next_try_ns)
            return;
        if (has_work)
            wm_thread_wait(&shipper->wake, &shipper->lock, shipper->next_try_ns);
        else
            pthread_cond_wait(&shipper->wake, &shipper->lock);
    }
}

static void *run_shipper(void *argument)
{
    struct wm_pg_shipper *shipper = argument;
    int64_t pause_ns = PAUSE_MIN_NS;

    pthread_mutex_lock(&shipper->lock);
    for (;;) {
        struct wm_error err = { 0 };
        wait_for_work(shipper);
        if (shipper->stop)
            break;
        pthread_mutex_unlock(&shipper->lock);
        bool shipped = ship(shipper, &err) == WM_OK;
        pthread_mutex_lock(&shipper->lock);

        if (shipped || shipper->is_ending)
            pause_ns = PAUSE_MIN_NS;
        if (shipped) {
            shipper->next_try_ns = 0;
        } else {
            shipper->trouble = err;
            shipper->next_try_ns = wm_clock_monotonic_ns() + pause_ns;
            pause_ns = 2 * pause_ns < PAUSE_MAX_NS ? 2 * pause_ns : PAUSE_MAX_NS;
        }
        shipper->cpu_ns = wm_clock_thread_cpu_ns();
        pthread_cond_signal(&shipper->shipped);
    }
    pthread_mutex_unlock(&shipper->lock);
    return NULL;
}

static int init_lock(struct wm_pg_shipper *shipper, struct wm_error *err)
{
    int number = wm_thread_condition(&shipper->wake);
    if (number == 0 && (number = wm_thread_condition(&shipper->shipped)) != 0)
        pthread_cond_destroy(&shipper->wake);
    if (number == 0 && (number = pthread_mutex_init(&shipper->lock, NULL)) != 0) {
        pthread_cond_destroy(&shipper->wake);
        pthread_cond_destroy(&shipper->shipped);
    }
    shipper->has_lock = number == 0;
    errno = number;
    return number == 0 ? WM_OK : wm_fail_errno(err, "no lock for the recording");
}

int wm_pg_shipper_open(struct wm_pg_shipper *shipper, const char *url,
                       const struct wm_run *run, const struct wm_channel *channels,
                       size_t count, struct wm_error *err)
{
    shipper->url = url;
    shipper->run = run;
    shipper->channels = channels;
    shipper->count = count;
    int status = init_lock(shipper, err);
    if (status == WM_OK)
        status = wm_queue_init(&shipper->batch, count, err);
    return status < 0 ? status : connect_writer(shipper, err);
}

int wm_pg_shipper_start(struct wm_pg_shipper *shipper, const char *spool_path,
                        struct wm_error *err)
{
    shipper->spool_path = spool_path;
    int status = wm_thread_start(&shipper->thread, run_shipper, shipper,
                                 "no thread for the recording", err);
    shipper->has_thread = status == WM_OK;
    return status;
}

void wm_pg_shipper_stop(struct wm_pg_shipper *shipper)
{
    if (!shipper->has_thread)
        return;
    atomic_store(&shipper->give_up, true);
    pthread_mutex_lock(&shipper->lock);
    shipper->stop = true;
    pthread_cond_signal(&shipper->wake);
    pthread_mutex_unlock(&shipper->lock);
    pthread_join(shipper->thread, NULL);
    shipper->has_thread = false;
    atomic_store(&shipper->give_up, false);
}

bool wm_pg_shipper_has_all(struct wm_pg_shipper *shipper)
{
    pthread_mutex_lock(&shipper->lock);
    bool all = shipper->shipped_count == shipper->written_count;
    pthread_mutex_unlock(&shipper->lock);
    return all;
}

bool wm_pg_shipper_await_all(struct wm_pg_shipper *shipper)
{
    int64_t until_ns = wm_clock_monotonic_ns() + ROOM_NS;
    bool in_time = true;

    pthread_mutex_lock(&shipper->lock);
    shipper->next_try_ns = 0;
    pthread_cond_signal(&shipper->wake);
    while (in_time && shipper->shipped_count != shipper->written_count &&
           shipper->next_try_ns == 0)
        in_time = wm_thread_wait(&shipper->shipped, &shipper->lock, until_ns);
    bool all = shipper->shipped_count == shipper->written_count;
    pthread_mutex_unlock(&shipper->lock);
    return all;
}

void wm_pg_shipper_new_spool(struct wm_pg_shipper *shipper)
{
    pthread_mutex_lock(&shipper->lock);
    shipper->has_spool = true;
    shipper->generation++;
    pthread_mutex_unlock(&shipper->lock);
}

void wm_pg_shipper_wake(struct wm_pg_shipper *shipper)
{
    pthread_mutex_lock(&shipper->lock);
    shipper->written_count++;
    pthread_cond_signal(&shipper->wake);
    pthread_mutex_unlock(&shipper->lock);
}

void wm_pg_shipper_leave_spool(struct wm_pg_shipper *shipper)
{
    int64_t until_ns = wm_clock_monotonic_ns() + ROOM_NS;
    bool in_time = true;

    pthread_mutex_lock(&shipper->lock);
    shipper->has_spool = false;
    pthread_cond_signal(&shipper->wake);
    while (in_time && shipper->is_reading)
        in_time = wm_thread_wait(&shipper->shipped, &shipper->lock, until_ns);
    pthread_mutex_unlock(&shipper->lock);
}

bool wm_pg_shipper_end(struct wm_pg_shipper *shipper, const struct wm_result *result)
{
    pthread_mutex_lock(&shipper->lock);
    shipper->result = result;
    shipper->is_ending = true;
    shipper->next_try_ns = 0;
    shipper->progress_ns = wm_clock_monotonic_ns();
    pthread_cond_signal(&shipper->wake);
    while (!shipper->has_ended &&
           wm_clock_monotonic_ns() < shipper->progress_ns + WM_PG_PATIENCE_NS)
        wm_thread_wait(&shipper->shipped, &shipper->lock,
                       shipper->progress_ns + WM_PG_PATIENCE_NS);
    pthread_mutex_unlock(&shipper->lock);
    wm_pg_shipper_stop(shipper);
    return shipper->has_ended;
}

int64_t wm_pg_shipper_cpu_ns(struct wm_pg_shipper *shipper)
{
    pthread_mutex_lock(&shipper->lock);
    int64_t cpu_ns = shipper->cpu_ns;
    pthread_mutex_unlock(&shipper->lock);
    return cpu_ns;
}

void wm_pg_shipper_delete_run(struct wm_pg_shipper *shipper)
{
    if (shipper->is_connected)
        wm_pg_delete_run(&shipper->writer.pg, &shipper->writer.run, NULL);
}

void wm_pg_shipper_close(struct wm_pg_shipper *shipper)
{
    wm_pg_shipper_stop(shipper);
    wm_pg_shipper_disconnect(shipper);
    if (shipper->has_lock) {
        pthread_mutex_destroy(&shipper->lock);
        pthread_cond_destroy(&shipper->wake);
        pthread_cond_destroy(&shipper->shipped);
    }
    wm_queue_release(&shipper->batch);
}
