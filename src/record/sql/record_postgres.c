/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_postgres.c - recordings in a PostgreSQL database, while the ticks go on.
 *
 * Every tick goes to a spool on the disk first, an SQLite recording like any
 * other, and from there to the server, in a thread of its own. So a server that
 * is slow, hangs or goes away delays and loses nothing, and a kill costs what it
 * costs an SQLite recording. The spool is removed once the server has it all.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text/base_url.h"
#include "base/text/base_utf8.h"
#include "record/record_ops.h"
#include "record/record_regions.h"
#include "record/record_target.h"
#include "record/sql/record_pg.h"

/* A spool of this size begins anew as soon as the server has all of it. */
#define SPOOL_LARGE ((off_t)64 << 20)

struct live {
    char *url;
    const struct wm_run *run;
    const struct wm_channel *channels;
    size_t count;
    char *spool_path;
    struct wm_pg_shipper shipper;

    struct wm_target spool;    /* `ops` is NULL while there is none */
    struct wm_reading *newest; /* the tick that a new spool begins with */
    int64_t newest_ns;         /* -1: there is no tick yet */

    /* All paths and threads, and the calls that stop last: a new spool begins with them
     * too, for the server's mark is told by how many there are. */
    struct wm_regions_part regions;
    bool must_keep_spool; /* there was no memory for them */
    bool finished;
};

static void drop_spool(struct live *live)
{
    wm_pg_shipper_leave_spool(&live->shipper);
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
    wm_pg_shipper_new_spool(&live->shipper);
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
    if (may_drop_spool(live) && is_spool_large(live) &&
        wm_pg_shipper_has_all(&live->shipper))
        drop_spool(live);
    int status = spool_ticks(live, ticks, count, err);

    /* On a full disk what the server has already makes room for the rest. */
    if (status < 0 && may_drop_spool(live) && wm_pg_shipper_await_all(&live->shipper)) {
        drop_spool(live);
        status = spool_ticks(live, ticks, count, err);
    }
    if (status < 0)
        return status;

    wm_target_keep(&live->spool);
    memcpy(live->newest, ticks[count - 1].readings, live->count * sizeof(*live->newest));
    live->newest_ns = ticks[count - 1].when_ns;
    wm_pg_shipper_wake(&live->shipper);
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
    if (status < 0 && may_drop_spool(live) && wm_pg_shipper_await_all(&live->shipper)) {
        drop_spool(live);
        status = spool_regions(live, batch, err);
    }
    if (status < 0)
        return status;
    if (keep_regions(live, batch) < 0)
        live->must_keep_spool = true;
    forget_calls(&live->regions);
    wm_pg_shipper_wake(&live->shipper);
    return WM_OK;
}

static int postgres_gap(void *state, const struct wm_gap *gap, struct wm_error *err)
{
    struct live *live = state;

    int status = live->spool.ops ? WM_OK : open_spool(live, err);
    if (status == WM_OK)
        status = live->spool.ops->gap(live->spool.state, gap, err);
    if (status == WM_OK)
        wm_pg_shipper_wake(&live->shipper);
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
    int status = wm_pg_shipper_open(&live->shipper, live->url, run, channels, count, err);
    if (status == WM_OK)
        status = wm_spool_path(run->id ? run->id : "run", &live->spool_path, err);
    if (status == WM_OK)
        status = open_spool(live, err);
    return status < 0 ? status : wm_pg_shipper_start(&live->shipper, live->spool_path, err);
}

/* The reason without the database, which is named already. */
static const char *bare_reason(const struct live *live, const char *shown)
{
    const char *text = live->shipper.trouble.text;
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
    if (wm_pg_shipper_end(&live->shipper, result)) {
        live->finished = true;
        return WM_OK;
    }
    if (!live->spool.ops)
        return wm_fail(err, live->shipper.trouble.status, "%s", live->shipper.trouble.text);
    wm_target_keep(&live->spool);
    int status = wm_target_verify(&live->spool, err);
    return status < 0 ? status : not_delivered(live, err);
}

static int64_t postgres_cpu_ns(void *state)
{
    struct live *live = state;

    return wm_pg_shipper_cpu_ns(&live->shipper);
}

static void postgres_close(void *state)
{
    struct live *live = state;

    wm_pg_shipper_stop(&live->shipper);

    /* A run that never got a tick is none. */
    if (live->newest_ns < 0 && !live->finished)
        wm_pg_shipper_delete_run(&live->shipper);
    wm_pg_shipper_disconnect(&live->shipper);
    if (live->spool.ops) {
        if (live->finished || live->newest_ns < 0 || wm_pg_shipper_has_all(&live->shipper))
            wm_target_discard(&live->spool);
        else
            wm_target_keep(&live->spool);
        wm_target_close(&live->spool);
    }
    wm_pg_shipper_close(&live->shipper);
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
