/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_postgres.c - recordings in a PostgreSQL database, while the ticks go on.
 *
 * Every tick goes to a spool on the disk first, an SQLite recording like any
 * other, and from there to the server, in a thread of its own. So a server that
 * is slow, hangs or goes away delays and loses nothing, and a kill costs what it
 * costs an SQLite recording. The spool is removed once the server has it all.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/base_clock.h"
#include "record/record_ops.h"
#include "record/record_pg_writer.h"
#include "record/record_queue.h"
#include "record/record_regions.h"
#include "record/record_spool.h"
#include "record/record_target.h"
#include "record/record_text.h"
#include "record/record_url.h"

/* Of the spool. It is opened here and not as any recording is, because whoever
 * closes a file that SQLite has open ends SQLite's locks on it. */
static const struct wm_reader_ops *const reader_ops = &wm_reader_sqlite;

/* A spool of this size begins anew as soon as the server has all of it. */
#define SPOOL_LARGE ((off_t)64 << 20)

/* How long the server may take to make room on a full disk. */
#define ROOM_NS (2 * WM_NS_PER_S)

/* How long the server is left alone after a failure; doubled up to the second. */
#define PAUSE_MIN_NS (WM_NS_PER_S / 4)
#define PAUSE_MAX_NS (2 * WM_NS_PER_S)

enum { GAPS_AT_ONCE = 1000 };

struct live {
    char *url;
    const struct wm_run *run;
    const struct wm_channel *channels;
    size_t count;
    char *spool_path;
    bool has_lock, has_thread;
    pthread_t thread;
    atomic_bool give_up; /* ends all waiting for the server */

    /* The recorder's own. */
    struct wm_target spool;    /* `ops` is NULL while there is none */
    struct wm_reading *newest; /* the tick that a new spool begins with */
    int64_t newest_ns;         /* -1: there is no tick yet */

    /* All paths and threads, and the calls that stop last: a new spool begins with them
     * too, for the server's mark is told by how many there are. */
    struct wm_regions_part regions;
    bool must_keep_spool; /* there was no memory for them */
    bool finished;

    /* The shipper's own, and before and after its time the recorder's. */
    struct wm_pg_writer writer;
    bool is_connected;
    void *reader; /* of the spool: the state of wm_reader_sqlite, or NULL */
    uint64_t reader_generation;
    struct wm_queue batch;

    pthread_mutex_t lock;
    pthread_cond_t wake, shipped; /* for the shipper, and from it */

    /* Guarded by the lock. */
    bool has_spool;
    bool is_reading;                       /* the shipper may have the spool open */
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

/* What follows runs in the shipper's thread. */

static void close_reader(struct live *live)
{
    if (live->reader)
        reader_ops->close(live->reader);
    free(live->reader);
    live->reader = NULL;
}

static void disconnect(struct live *live)
{
    wm_pg_writer_close(&live->writer);
    live->is_connected = false;

    /* The next writer begins with the first tick that is left. */
    close_reader(live);
}

static int connect_writer(struct live *live, struct wm_error *err)
{
    int status = wm_pg_writer_open(&live->writer, live->url, live->run, live->channels,
                                   live->count, &live->give_up, err);
    if (status < 0)
        disconnect(live);
    else
        live->is_connected = true;
    return status;
}

static int read_spool(struct live *live, uint64_t generation, struct wm_error *err)
{
    if (live->reader && live->reader_generation == generation)
        return reader_ops->more(live->reader, err);
    close_reader(live);
    live->reader_generation = generation;
    wm_pg_writer_resume(&live->writer);
    live->reader = calloc(1, reader_ops->state_size);
    if (!live->reader)
        return wm_fail(err, WM_ENOMEM, "out of memory");
    return reader_ops->open(live->reader, live->spool_path, WM_LAST_RUN, err);
}

static void note_progress(struct live *live)
{
    pthread_mutex_lock(&live->lock);
    live->progress_ns = wm_clock_monotonic_ns();
    pthread_mutex_unlock(&live->lock);
}

static int ship_batch(struct live *live, struct wm_error *err)
{
    size_t count = wm_queue_take(&live->batch);
    int status = wm_pg_writer_ticks(&live->writer, live->batch.batch, count, err);

    wm_queue_done(&live->batch, count);
    if (status == WM_OK)
        note_progress(live);
    return status;
}

static int ship_ticks(struct live *live, struct wm_error *err)
{
    struct wm_tick tick;
    int status;

    while ((status = reader_ops->next(live->reader, &tick, err)) > 0) {
        wm_queue_push(&live->batch, &tick);
        if (live->batch.length == live->batch.batch_max)
            status = ship_batch(live, err);
        if (status < 0)
            break;
    }
    if (status == 0 && live->batch.length > 0)
        status = ship_batch(live, err);
    wm_queue_done(&live->batch, wm_queue_take(&live->batch));
    return status;
}

static int ship_gaps(struct live *live, struct wm_error *err)
{
    const struct wm_reader_head *head = live->reader;
    const struct wm_gap *gaps = head->gaps;
    size_t count = head->gap_count;
    int status = WM_OK;

    for (size_t i = 0; i < count && status == WM_OK; i += GAPS_AT_ONCE) {
        size_t some = count - i < GAPS_AT_ONCE ? count - i : GAPS_AT_ONCE;
        status = wm_pg_writer_gaps(&live->writer, &gaps[i], some, err);
        if (status == WM_OK)
            note_progress(live);
    }
    return status;
}

static int ship_regions(struct live *live, struct wm_error *err)
{
    struct wm_region_batch batch;
    int status;

    while ((status = reader_ops->regions(live->reader, &batch, err)) > 0) {
        status = wm_pg_writer_regions(&live->writer, &batch, err);
        if (status < 0)
            break;
        note_progress(live);
    }
    return status;
}

/* Ships all that has been written up to now. */
static int ship(struct live *live, struct wm_error *err)
{
    pthread_mutex_lock(&live->lock);
    uint64_t written = live->written_count, generation = live->generation;
    bool has_spool = live->has_spool, is_ending = live->is_ending;
    live->is_reading = has_spool;
    const struct wm_result *result = live->result;
    pthread_mutex_unlock(&live->lock);

    int status = live->is_connected ? WM_OK : connect_writer(live, err);
    if (status == WM_OK && has_spool) {
        status = read_spool(live, generation, err);
        if (status == WM_OK)
            status = ship_ticks(live, err);
        if (status == WM_OK)
            status = ship_regions(live, err);
        if (status == WM_OK)
            status = ship_gaps(live, err);
    }
    if (status == WM_OK && is_ending && result)
        status = wm_pg_writer_result(&live->writer, result, err);
    if (status < 0) {
        disconnect(live);
        return status;
    }

    pthread_mutex_lock(&live->lock);
    live->shipped_count = written;
    live->has_ended = is_ending;
    pthread_mutex_unlock(&live->lock);
    return WM_OK;
}

static struct timespec at(int64_t when_ns)
{
    return (struct timespec) {
        .tv_sec = when_ns / WM_NS_PER_S,
        .tv_nsec = when_ns % WM_NS_PER_S,
    };
}

/* Waits, with the lock held, until there is something to ship and the time to
 * try it has come. */
static void wait_for_work(struct live *live)
{
    while (!live->stop) {
        if (live->is_reading && !live->has_spool) {
            close_reader(live);
            live->is_reading = false;
            pthread_cond_signal(&live->shipped);
        }
        bool has_work = live->shipped_count != live->written_count ||
                        (live->is_ending && !live->has_ended);
        if (has_work && wm_clock_monotonic_ns() >= live->next_try_ns)
            return;
        struct timespec until = at(live->next_try_ns);
        if (has_work)
            pthread_cond_timedwait(&live->wake, &live->lock, &until);
        else
            pthread_cond_wait(&live->wake, &live->lock);
    }
}

static void *run_shipper(void *argument)
{
    struct live *live = argument;
    int64_t pause_ns = PAUSE_MIN_NS;

    pthread_mutex_lock(&live->lock);
    for (;;) {
        struct wm_error err = { 0 };
        wait_for_work(live);
        if (live->stop)
            break;
        pthread_mutex_unlock(&live->lock);
        bool shipped = ship(live, &err) == WM_OK;
        pthread_mutex_lock(&live->lock);

        if (shipped || live->is_ending)
            pause_ns = PAUSE_MIN_NS;
        if (shipped) {
            live->next_try_ns = 0;
        } else {
            live->trouble = err;
            live->next_try_ns = wm_clock_monotonic_ns() + pause_ns;
            pause_ns = 2 * pause_ns < PAUSE_MAX_NS ? 2 * pause_ns : PAUSE_MAX_NS;
        }
        live->cpu_ns = wm_clock_thread_cpu_ns();
        pthread_cond_signal(&live->shipped);
    }
    pthread_mutex_unlock(&live->lock);
    return NULL;
}

/* What follows runs in the recorder's thread, or before and after its time. */

static int init_lock(struct live *live, struct wm_error *err)
{
    pthread_condattr_t attributes;

    int number = pthread_condattr_init(&attributes);
    if (number == 0) {
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        number = pthread_cond_init(&live->wake, &attributes);
        if (number == 0 && (number = pthread_cond_init(&live->shipped, &attributes)) != 0)
            pthread_cond_destroy(&live->wake);
        pthread_condattr_destroy(&attributes);
    }
    if (number == 0 && (number = pthread_mutex_init(&live->lock, NULL)) != 0) {
        pthread_cond_destroy(&live->wake);
        pthread_cond_destroy(&live->shipped);
    }
    live->has_lock = number == 0;
    errno = number;
    return number == 0 ? WM_OK : wm_fail_errno(err, "no lock for the recording");
}

/* With all signals blocked, as in the recorder's thread. */
static int start_shipper(struct live *live, struct wm_error *err)
{
    sigset_t all, before;

    sigfillset(&all);
    int number = pthread_sigmask(SIG_SETMASK, &all, &before);
    if (number == 0) {
        number = pthread_create(&live->thread, NULL, run_shipper, live);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    live->has_thread = number == 0;
    errno = number;
    return number == 0 ? WM_OK : wm_fail_errno(err, "no thread for the recording");
}

static void stop_shipper(struct live *live)
{
    if (!live->has_thread)
        return;
    atomic_store(&live->give_up, true);
    pthread_mutex_lock(&live->lock);
    live->stop = true;
    pthread_cond_signal(&live->wake);
    pthread_mutex_unlock(&live->lock);
    pthread_join(live->thread, NULL);
    live->has_thread = false;
    atomic_store(&live->give_up, false);
}

static bool is_all_shipped(struct live *live)
{
    pthread_mutex_lock(&live->lock);
    bool all = live->shipped_count == live->written_count;
    pthread_mutex_unlock(&live->lock);
    return all;
}

/* The same, but has it tried at once, and waits while the server gets on. */
static bool await_all_shipped(struct live *live)
{
    struct timespec until = at(wm_clock_monotonic_ns() + ROOM_NS);
    int result = 0;

    pthread_mutex_lock(&live->lock);
    live->next_try_ns = 0;
    pthread_cond_signal(&live->wake);
    while (result == 0 && live->shipped_count != live->written_count &&
           live->next_try_ns == 0)
        result = pthread_cond_timedwait(&live->shipped, &live->lock, &until);
    bool all = live->shipped_count == live->written_count;
    pthread_mutex_unlock(&live->lock);
    return all;
}

static void note_written(struct live *live)
{
    pthread_mutex_lock(&live->lock);
    live->written_count++;
    pthread_cond_signal(&live->wake);
    pthread_mutex_unlock(&live->lock);
}

/* The disk has its room back once the shipper has closed the file too. */
static void drop_spool(struct live *live)
{
    struct timespec until = at(wm_clock_monotonic_ns() + ROOM_NS);
    int result = 0;

    pthread_mutex_lock(&live->lock);
    live->has_spool = false;
    pthread_cond_signal(&live->wake);
    while (result == 0 && live->is_reading)
        result = pthread_cond_timedwait(&live->shipped, &live->lock, &until);
    pthread_mutex_unlock(&live->lock);
    wm_target_discard(&live->spool);
    wm_target_close(&live->spool);
}

/* Begins with the last tick of the spool before it, from which on rates count. */
static int open_spool(struct live *live, struct wm_error *err)
{
    int status = wm_target_open(&live->spool, &wm_recorder_sqlite, live->spool_path,
                                WM_RECORD_NEW, live->run, live->channels, live->count, err);
    if (status < 0)
        return status;

    const struct wm_tick newest = { live->newest_ns, live->newest, live->count };
    if (live->newest_ns >= 0)
        status = live->spool.ops->write(live->spool.state, &newest, 1, err);
    const struct wm_region_batch regions = wm_regions_part_batch(&live->regions);
    if (status == WM_OK && !wm_regions_part_is_empty(&live->regions))
        status = live->spool.ops->regions(live->spool.state, &regions, err);
    if (status < 0) {
        wm_target_close(&live->spool);
        return status;
    }
    pthread_mutex_lock(&live->lock);
    live->has_spool = true;
    live->generation++;
    pthread_mutex_unlock(&live->lock);
    return WM_OK;
}

static int spool_ticks(struct live *live, const struct wm_tick *ticks, size_t count,
                       struct wm_error *err)
{
    int status = live->spool.ops ? WM_OK : open_spool(live, err);

    return status < 0 ? status
                      : live->spool.ops->write(live->spool.state, ticks, count, err);
}

static bool is_spool_large(const struct live *live)
{
    struct stat info;

    return stat(live->spool_path, &info) == 0 && info.st_size > SPOOL_LARGE;
}

static bool may_drop_spool(const struct live *live)
{
    return live->spool.ops && !live->must_keep_spool;
}

static int postgres_write(void *state, const struct wm_tick *ticks, size_t count,
                          struct wm_error *err)
{
    struct live *live = state;

    if (count == 0)
        return WM_OK;
    if (may_drop_spool(live) && is_spool_large(live) && is_all_shipped(live))
        drop_spool(live);
    int status = spool_ticks(live, ticks, count, err);

    /* On a full disk what the server has already makes room for the rest. */
    if (status < 0 && may_drop_spool(live) && await_all_shipped(live)) {
        drop_spool(live);
        status = spool_ticks(live, ticks, count, err);
    }
    if (status < 0)
        return status;

    wm_target_keep(&live->spool);
    memcpy(live->newest, ticks[count - 1].readings, live->count * sizeof(*live->newest));
    live->newest_ns = ticks[count - 1].when_ns;
    note_written(live);
    return WM_OK;
}

/* What a new spool has to begin with. The calls that stop last are added to those from
 * before. */
static int keep_regions(struct live *live, const struct wm_region_batch *batch)
{
    struct wm_regions_part *part = &live->regions;
    size_t first = batch->call_count;
    int status = WM_OK;

    for (uint32_t i = 0; i < batch->path_count && status == WM_OK; i++)
        status = wm_regions_part_add_path(part, &batch->paths[i]);
    for (uint32_t i = 0; i < batch->thread_count && status == WM_OK; i++)
        status = wm_regions_part_add_thread(part, batch->threads[i]);
    while (first > 0 &&
           batch->calls[first - 1].stop_ns == batch->calls[batch->call_count - 1].stop_ns)
        first--;
    for (size_t i = first; i < batch->call_count && status == WM_OK; i++)
        status = wm_regions_part_add_call(part, &batch->calls[i]);
    return status;
}

/* Forgets the calls that others have stopped after. */
static void forget_calls(struct wm_regions_part *part)
{
    size_t kept = 0;

    for (size_t i = 0; i < part->call_count; i++) {
        if (part->calls[i].stop_ns == part->calls[part->call_count - 1].stop_ns)
            part->calls[kept++] = part->calls[i];
    }
    part->call_count = kept;
}

static int spool_regions(struct live *live, const struct wm_region_batch *batch,
                         struct wm_error *err)
{
    int status = live->spool.ops ? WM_OK : open_spool(live, err);

    return status < 0 ? status : live->spool.ops->regions(live->spool.state, batch, err);
}

static int postgres_regions(void *state, const struct wm_region_batch *batch,
                            struct wm_error *err)
{
    struct live *live = state;

    int status = spool_regions(live, batch, err);
    if (status < 0 && may_drop_spool(live) && await_all_shipped(live)) {
        drop_spool(live);
        status = spool_regions(live, batch, err);
    }
    if (status < 0)
        return status;
    if (keep_regions(live, batch) < 0)
        live->must_keep_spool = true;
    forget_calls(&live->regions);
    note_written(live);
    return WM_OK;
}

static int postgres_gap(void *state, const struct wm_gap *gap, struct wm_error *err)
{
    struct live *live = state;

    int status = live->spool.ops ? WM_OK : open_spool(live, err);
    if (status == WM_OK)
        status = live->spool.ops->gap(live->spool.state, gap, err);
    if (status == WM_OK)
        note_written(live);
    return status;
}

static int postgres_open(void *state, const char *target, const struct wm_run *run,
                         const struct wm_channel *channels, size_t count,
                         struct wm_error *err)
{
    struct live *live = state;

    live->run = run;
    live->channels = channels;
    live->count = count;
    live->newest_ns = -1;
    live->url = strdup(target);
    live->newest = calloc(count + 1, sizeof(*live->newest));
    if (!live->url || !live->newest)
        return wm_fail(err, WM_ENOMEM, "out of memory");
    int status = init_lock(live, err);
    if (status == WM_OK)
        status = wm_queue_init(&live->batch, count, err);
    if (status == WM_OK)
        status = connect_writer(live, err);
    if (status == WM_OK)
        status = wm_spool_path(run->id ? run->id : "run", &live->spool_path, err);
    if (status == WM_OK)
        status = open_spool(live, err);
    return status < 0 ? status : start_shipper(live, err);
}

/* Waits until the shipper has shipped all, as long as it gets on. */
static bool await_end(struct live *live, const struct wm_result *result)
{
    pthread_mutex_lock(&live->lock);
    live->result = result;
    live->is_ending = true;
    live->next_try_ns = 0;
    live->progress_ns = wm_clock_monotonic_ns();
    pthread_cond_signal(&live->wake);
    while (!live->has_ended &&
           wm_clock_monotonic_ns() < live->progress_ns + WM_PG_PATIENCE_NS) {
        struct timespec until = at(live->progress_ns + WM_PG_PATIENCE_NS);
        pthread_cond_timedwait(&live->shipped, &live->lock, &until);
    }
    pthread_mutex_unlock(&live->lock);
    stop_shipper(live);
    return live->has_ended;
}

/* The reason without the database, which is named already. */
static const char *bare_reason(const struct live *live, const char *shown)
{
    const char *text = live->trouble.text;
    size_t length = strlen(shown);

    if (strncmp(text, shown, length) == 0 && strncmp(text + length, ": ", 2) == 0)
        text += length + 2;
    return text[0] ? text : "too slow";
}

static int not_delivered(const struct live *live, struct wm_error *err)
{
    char *shown = wm_pg_shown(live->url);
    const char *name = shown ? shown : WM_URL_HIDDEN;

    int status =
        wm_fail(err, WM_EIO, "%.60s: not delivered; `wattmeter export` loads %s (%s)", name,
                wm_text_path(live->spool_path), bare_reason(live, name));
    free(shown);
    return status;
}

static int postgres_finish(void *state, const struct wm_result *result,
                           struct wm_error *err)
{
    struct live *live = state;

    /* What is in the spool is a whole recording too. Where that fails, on a full
     * disk, the spool has all but its result. */
    if (live->spool.ops)
        live->spool.ops->finish(live->spool.state, result, NULL);
    if (await_end(live, result)) {
        live->finished = true;
        return WM_OK;
    }
    if (!live->spool.ops)
        return wm_fail(err, live->trouble.status, "%s", live->trouble.text);
    wm_target_keep(&live->spool);
    int status = wm_target_verify(&live->spool, err);
    return status < 0 ? status : not_delivered(live, err);
}

static int64_t postgres_cpu_ns(void *state)
{
    struct live *live = state;

    pthread_mutex_lock(&live->lock);
    int64_t cpu_ns = live->cpu_ns;
    pthread_mutex_unlock(&live->lock);
    return cpu_ns;
}

static void postgres_close(void *state)
{
    struct live *live = state;
    bool is_needless;

    stop_shipper(live);
    is_needless =
        live->finished || live->newest_ns < 0 || live->shipped_count == live->written_count;

    /* A run that never got a tick is none. */
    if (live->is_connected && live->newest_ns < 0 && !live->finished)
        wm_pg_delete_run(&live->writer.pg, &live->writer.run, NULL);
    disconnect(live);
    if (live->spool.ops) {
        if (is_needless)
            wm_target_discard(&live->spool);
        else
            wm_target_keep(&live->spool);
        wm_target_close(&live->spool);
    }

    if (live->has_lock) {
        pthread_mutex_destroy(&live->lock);
        pthread_cond_destroy(&live->wake);
        pthread_cond_destroy(&live->shipped);
    }
    wm_queue_release(&live->batch);
    wm_regions_part_release(&live->regions);
    free(live->newest);
    free(live->spool_path);
    free(live->url);
}

const struct wm_recorder_ops wm_recorder_postgres = {
    .name = "PostgreSQL",
    .is_target = wm_url_is_postgres,
    .check = wm_pg_check,
    .shown = wm_pg_shown,
    .exporter = &wm_exporter_postgres,
    .can_append = true,
    .survives_kill = true,
    .state_size = sizeof(struct live),
    .open = postgres_open,
    .write = postgres_write,
    .gap = postgres_gap,
    .regions = postgres_regions,
    .finish = postgres_finish,
    .cpu_ns = postgres_cpu_ns,
    .close = postgres_close,
};
