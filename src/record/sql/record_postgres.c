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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "base/base_thread.h"
#include "base/base_utf8.h"
#include "record/record_ops.h"
#include "record/record_regions.h"
#include "record/record_target.h"
#include "record/sql/record_pg.h"

/* A spool of this size begins anew as soon as the server has all of it. */
#define SPOOL_LARGE ((off_t)64 << 20)

/* How long the server may take to make room on a full disk. */
#define ROOM_NS (2 * WM_NS_PER_S)

/* How long the server is left alone after a failure; doubled up to the second. */
#define PAUSE_MIN_NS (WM_NS_PER_S / 4)
#define PAUSE_MAX_NS (2 * WM_NS_PER_S)

struct live {
    char *url;
    char *spool_path;
    struct wm_target spool; /* `ops` is NULL while there is none */
    bool has_ticks;

    /* All paths and threads, and the calls that stop last: a new spool begins with them,
     * which show what of it the server has. */
    struct wm_regions_part regions;
    bool must_keep_spool; /* there was no memory for them */
    bool is_export;       /* it is delivered at once, without a thread */
    bool finished;

    pthread_t thread;
    bool has_lock, has_thread;
    atomic_bool give_up; /* ends all waiting for the server */

    /* The thread's while there is something to deliver, else the recorder's. */
    struct wm_delivery delivery;

    pthread_mutex_t lock;
    pthread_cond_t wake, delivered; /* for the thread, and from it */

    /* Guarded by the lock. */
    bool has_spool;
    uint64_t written_count, delivered_count; /* writings to spools, and those delivered */
    bool is_ending, has_ended; /* the result is to be delivered, and has been */
    const struct wm_result *result;
    bool stop;
    int64_t next_try_ns;
    int64_t progress_ns; /* when the server last took something */
    int64_t cpu_ns;
    struct wm_error trouble; /* why delivering failed the last time */
};

static void note_progress(struct live *live)
{
    pthread_mutex_lock(&live->lock);
    live->progress_ns = wm_clock_monotonic_ns();
    pthread_mutex_unlock(&live->lock);
}

/* Delivers all that has been written up to now. */
static int deliver(struct live *live, struct wm_error *err)
{
    int status;

    pthread_mutex_lock(&live->lock);
    uint64_t written = live->written_count;
    bool is_ending = live->is_ending;
    const struct wm_result *result = live->result;
    const char *spool = live->has_spool ? live->spool_path : NULL;
    pthread_mutex_unlock(&live->lock);

    while ((status = wm_delivery_step(&live->delivery, spool, err)) > 0)
        note_progress(live);
    if (status == WM_OK && is_ending && result)
        status = wm_delivery_finish(&live->delivery, result, err);
    if (status < 0) {
        wm_delivery_disconnect(&live->delivery);
        return status;
    }
    pthread_mutex_lock(&live->lock);
    live->delivered_count = written;
    live->has_ended = is_ending;
    pthread_mutex_unlock(&live->lock);
    return WM_OK;
}

/* Waits, with the lock held, until there is something to deliver and the time to
 * try it has come. */
static void wait_for_work(struct live *live)
{
    while (!live->stop) {
        bool has_work = live->delivered_count != live->written_count ||
                        (live->is_ending && !live->has_ended);
        if (!has_work)
            pthread_cond_wait(&live->wake, &live->lock);
        else if (wm_clock_monotonic_ns() >= live->next_try_ns)
            return;
        else
            wm_thread_wait(&live->wake, &live->lock, live->next_try_ns);
    }
}

static void *run_thread(void *argument)
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
        bool delivered = deliver(live, &err) == WM_OK;
        pthread_mutex_lock(&live->lock);

        if (delivered || live->is_ending)
            pause_ns = PAUSE_MIN_NS;
        if (delivered) {
            live->next_try_ns = 0;
        } else {
            live->trouble = err;
            live->next_try_ns = wm_clock_monotonic_ns() + pause_ns;
            pause_ns = 2 * pause_ns < PAUSE_MAX_NS ? 2 * pause_ns : PAUSE_MAX_NS;
        }
        live->cpu_ns = wm_clock_thread_cpu_ns();
        pthread_cond_signal(&live->delivered);
    }
    pthread_mutex_unlock(&live->lock);
    return NULL;
}

static int init_lock(struct live *live, struct wm_error *err)
{
    int number = wm_thread_condition(&live->wake);

    if (number == 0 && (number = wm_thread_condition(&live->delivered)) != 0)
        pthread_cond_destroy(&live->wake);
    if (number == 0 && (number = pthread_mutex_init(&live->lock, NULL)) != 0) {
        pthread_cond_destroy(&live->wake);
        pthread_cond_destroy(&live->delivered);
    }
    live->has_lock = number == 0;
    errno = number;
    return number == 0 ? WM_OK : wm_fail_errno(err, "no lock for the recording");
}

static void stop_thread(struct live *live)
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

/* Whether the server has all that was written. */
static bool has_all(struct live *live)
{
    pthread_mutex_lock(&live->lock);
    bool all = live->delivered_count == live->written_count;
    pthread_mutex_unlock(&live->lock);
    return all;
}

/* The same, but has it tried at once, and waits while the server gets on. */
static bool await_all(struct live *live)
{
    int64_t until_ns = wm_clock_monotonic_ns() + ROOM_NS;
    bool in_time = true;

    pthread_mutex_lock(&live->lock);
    live->next_try_ns = 0;
    pthread_cond_signal(&live->wake);
    while (in_time && live->delivered_count != live->written_count &&
           live->next_try_ns == 0)
        in_time = wm_thread_wait(&live->delivered, &live->lock, until_ns);
    bool all = live->delivered_count == live->written_count;
    pthread_mutex_unlock(&live->lock);
    return all;
}

/* Once the server has all of it, when the thread does not look at it. */
static void drop_spool(struct live *live)
{
    pthread_mutex_lock(&live->lock);
    live->has_spool = false;
    pthread_mutex_unlock(&live->lock);
    wm_delivery_close_spool(&live->delivery);
    wm_target_discard(&live->spool);
    wm_target_close(&live->spool);
}

static int open_spool(struct live *live, struct wm_error *err)
{
    const struct wm_delivery *delivery = &live->delivery;

    int status =
        wm_target_open(&live->spool, &wm_recorder_sqlite, live->spool_path, WM_RECORD_NEW,
                       delivery->run, delivery->channels, delivery->count, err);
    if (status < 0)
        return status;

    const struct wm_region_batch regions = wm_regions_part_batch(&live->regions);
    if (!wm_regions_part_is_empty(&live->regions))
        status = live->spool.ops->regions(live->spool.state, &regions, err);
    if (status < 0) {
        wm_target_close(&live->spool);
        return status;
    }
    pthread_mutex_lock(&live->lock);
    live->has_spool = true;
    pthread_mutex_unlock(&live->lock);
    return WM_OK;
}

/* What a recorder gets: one of these. */
struct piece {
    const struct wm_tick *ticks;
    size_t tick_count;
    const struct wm_region_batch *regions;
    const struct wm_gap *gap;
};

static int spool_piece(struct live *live, const struct piece *piece, struct wm_error *err)
{
    const struct wm_target *spool = &live->spool;
    int status = spool->ops ? WM_OK : open_spool(live, err);

    if (status == WM_OK && piece->tick_count > 0)
        status = spool->ops->write(spool->state, piece->ticks, piece->tick_count, err);
    if (status == WM_OK && piece->regions)
        status = spool->ops->regions(spool->state, piece->regions, err);
    if (status == WM_OK && piece->gap)
        status = spool->ops->gap(spool->state, piece->gap, err);
    return status;
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

static int put(struct live *live, const struct piece *piece, struct wm_error *err)
{
    if (may_drop_spool(live) && is_spool_large(live) && has_all(live))
        drop_spool(live);
    int status = spool_piece(live, piece, err);

    /* On a full disk what the server has already makes room for the rest. */
    if (status < 0 && may_drop_spool(live) && await_all(live)) {
        drop_spool(live);
        status = spool_piece(live, piece, err);
    }
    if (status < 0)
        return status;

    pthread_mutex_lock(&live->lock);
    live->written_count++;
    pthread_cond_signal(&live->wake);
    pthread_mutex_unlock(&live->lock);
    return live->is_export ? deliver(live, err) : WM_OK;
}

static int postgres_write(void *state, const struct wm_tick *ticks, size_t count,
                          struct wm_error *err)
{
    const struct piece piece = { .ticks = ticks, .tick_count = count };
    struct live *live = state;

    if (count == 0)
        return WM_OK;
    int status = put(live, &piece, err);
    if (status < 0)
        return status;
    if (!live->is_export)
        wm_target_keep(&live->spool);
    live->has_ticks = true;
    return WM_OK;
}

/* What a new spool has to begin with. The calls that stop last are added to those from
 * before. */
static int keep_regions(struct live *live, const struct wm_region_batch *batch)
{
    struct wm_regions_part *part = &live->regions;
    size_t first = batch->call_count;
    int status = wm_regions_part_add_new(part, batch);

    while (first > 0 &&
           batch->calls[first - 1].stop_ns == batch->calls[batch->call_count - 1].stop_ns)
        first--;
    for (size_t i = first; i < batch->call_count && status == WM_OK; i++)
        status = wm_regions_part_add_call(part, &batch->calls[i],
                                          wm_region_batch_fold(batch, &batch->calls[i]));
    return status;
}

/* Forgets the calls that others have stopped after. */
static void forget_calls(struct wm_regions_part *part)
{
    size_t first = part->call_count;

    while (first > 0 &&
           part->calls[first - 1].stop_ns == part->calls[part->call_count - 1].stop_ns)
        first--;
    wm_regions_part_drop_calls(part, first);
}

static int postgres_regions(void *state, const struct wm_region_batch *batch,
                            struct wm_error *err)
{
    const struct piece piece = { .regions = batch };
    struct live *live = state;

    int status = put(live, &piece, err);
    if (status < 0)
        return status;
    if (keep_regions(live, batch) < 0)
        live->must_keep_spool = true;
    forget_calls(&live->regions);
    return WM_OK;
}

static int postgres_gap(void *state, const struct wm_gap *gap, struct wm_error *err)
{
    const struct piece piece = { .gap = gap };

    return put(state, &piece, err);
}

static void postgres_as_whole(void *state)
{
    struct live *live = state;

    live->is_export = true;
}

/* An export has one of its own: what is exported may be a spool. */
static int name_spool(struct live *live, struct wm_error *err)
{
    const char *id = live->delivery.run->id;
    char name[128];

    snprintf(name, sizeof(name), live->is_export ? "%s-%.64s-%ld" : "%s-%.64s",
             live->is_export ? "export" : "spool", id ? id : "run", (long)getpid());
    return wm_spool_path(name, &live->spool_path, err);
}

static int postgres_open(void *state, const char *target, const struct wm_run *run,
                         const struct wm_channel *channels, size_t count,
                         struct wm_error *err)
{
    struct live *live = state;

    live->url = strdup(target);
    if (!live->url)
        return wm_fail_memory(err, NULL);
    live->delivery = (struct wm_delivery) {
        .url = live->url,
        .run = run,
        .channels = channels,
        .count = count,
        .give_up = &live->give_up,
    };
    int status = init_lock(live, err);
    if (status == WM_OK)
        status = wm_delivery_connect(&live->delivery, err);
    if (status == WM_OK)
        status = name_spool(live, err);
    if (status == WM_OK)
        status = open_spool(live, err);
    if (status == WM_OK)
        status = wm_delivery_step(&live->delivery, live->spool_path, err);
    if (status < 0)
        wm_delivery_disconnect(&live->delivery); /* taking a run back needs another one */
    if (status < 0 || live->is_export)
        return status < 0 ? status : WM_OK;
    status = wm_thread_start(&live->thread, run_thread, live, "no thread for the recording",
                             err);
    live->has_thread = status == WM_OK;
    return status;
}

/* Delivers what is left and the result, as long as the server gets on, and ends the thread.
 * Whether the server has it all; if not, `trouble` says why. */
static bool end_delivery(struct live *live, const struct wm_result *result)
{
    pthread_mutex_lock(&live->lock);
    live->result = result;
    live->is_ending = true;
    live->next_try_ns = 0;
    live->progress_ns = wm_clock_monotonic_ns();
    pthread_cond_signal(&live->wake);
    while (!live->has_ended &&
           wm_clock_monotonic_ns() < live->progress_ns + WM_PG_PATIENCE_NS)
        wm_thread_wait(&live->delivered, &live->lock,
                       live->progress_ns + WM_PG_PATIENCE_NS);
    pthread_mutex_unlock(&live->lock);
    stop_thread(live);
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

    if (live->is_export) {
        live->result = result;
        live->is_ending = true;
        int status = deliver(live, err);
        live->finished = status == WM_OK;
        return status;
    }

    /* What is in the spool is a whole recording too. Where that fails, on a full
     * disk, the spool has all but its result. */
    if (live->spool.ops)
        live->spool.ops->finish(live->spool.state, result, NULL);
    live->finished = end_delivery(live, result);
    if (live->finished)
        return WM_OK;
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

/* A run of which nothing has arrived is none. Nor is a part of an export that has no `id`:
 * the next one could not go on with it. */
static bool is_run(const struct live *live)
{
    const struct wm_delivery *delivery = &live->delivery;

    if (live->finished)
        return true;
    return live->is_export ? delivery->has_ticks && delivery->run->id : live->has_ticks;
}

static void postgres_close(void *state)
{
    struct live *live = state;

    stop_thread(live);
    if (!is_run(live))
        wm_delivery_take_back(&live->delivery);
    wm_delivery_disconnect(&live->delivery);
    if (live->spool.ops) {
        if (live->finished || live->is_export || !live->has_ticks || has_all(live))
            wm_target_discard(&live->spool);
        else
            wm_target_keep(&live->spool);
        wm_target_close(&live->spool);
    }
    if (live->has_lock) {
        pthread_mutex_destroy(&live->lock);
        pthread_cond_destroy(&live->wake);
        pthread_cond_destroy(&live->delivered);
    }
    wm_regions_part_release(&live->regions);
    free(live->spool_path);
    free(live->url);
}

static int postgres_check(const char *target, struct wm_error *err)
{
    struct wm_delivery delivery = { .url = target };

    int status = wm_delivery_connect(&delivery, err);
    wm_delivery_disconnect(&delivery);
    return status;
}

const struct wm_recorder_ops wm_recorder_postgres = {
    .name = "PostgreSQL",
    .is_target = wm_url_is_postgres,
    .check = postgres_check,
    .shown = wm_pg_shown,
    .can_append = true,
    .survives_kill = true,
    .state_size = sizeof(struct live),
    .as_whole = postgres_as_whole,
    .open = postgres_open,
    .write = postgres_write,
    .gap = postgres_gap,
    .regions = postgres_regions,
    .finish = postgres_finish,
    .cpu_ns = postgres_cpu_ns,
    .close = postgres_close,
};
