/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_postgres_export.c - a recording that is there already, on its way into a
 * PostgreSQL database: straight to the server.
 */
#include "base/text/base_url.h"
#include "record/record_ops.h"
#include "record/sql/record_pg.h"

enum { GAPS_AT_ONCE = 1000 };

/* Gaps come one by one, and are sent together: the server may be far away. */
struct export
{
    const char *url;
    struct wm_pg_writer writer;
    struct wm_gap gaps[GAPS_AT_ONCE];
    size_t gap_count;
    bool finished;
};

static int export_open(void *state, const char *target, const struct wm_run *run,
                       const struct wm_channel *channels, size_t count,
                       struct wm_error *err)
{
    struct export *export = state;

    export->url = target;
    return wm_pg_writer_open(&export->writer, target, run, channels, count, NULL, err);
}

static int export_write(void *state, const struct wm_tick *ticks, size_t count,
                        struct wm_error *err)
{
    struct export *export = state;

    return wm_pg_writer_ticks(&export->writer, ticks, count, err);
}

static int export_gap(void *state, const struct wm_gap *gap, struct wm_error *err)
{
    struct export *export = state;

    export->gaps[export->gap_count++] = *gap;
    if (export->gap_count < GAPS_AT_ONCE)
        return WM_OK;
    export->gap_count = 0;
    return wm_pg_writer_gaps(&export->writer, export->gaps, GAPS_AT_ONCE, err);
}

static int export_regions(void *state, const struct wm_region_batch *batch,
                          struct wm_error *err)
{
    struct export *export = state;

    return wm_pg_writer_regions(&export->writer, batch, err);
}

static int export_finish(void *state, const struct wm_result *result, struct wm_error *err)
{
    struct export *export = state;
    int status = WM_OK;

    if (export->gap_count > 0)
        status = wm_pg_writer_gaps(&export->writer, export->gaps, export->gap_count, err);
    if (status == WM_OK && result)
        status = wm_pg_writer_result(&export->writer, result, err);
    export->finished = status == WM_OK;
    return status;
}

/* A run of which nothing has arrived is none. Nor is a part of one that has no `id`: the
 * next export could not go on with it. A connection is good for nothing after a failure,
 * so this is another one; should that fail too, the run stays. */
static void take_back(const struct export *export)
{
    const struct wm_pg_run *run = &export->writer.run;
    struct wm_pg pg = { 0 };

    if (export->finished || !run->is_new || (run->last_ns >= 0 && run->run->id))
        return;
    if (wm_pg_open(&pg, export->url, NULL, NULL) == WM_OK)
        wm_pg_delete_run(&pg, run, NULL);
    wm_pg_close(&pg);
}

static void export_close(void *state)
{
    struct export *export = state;

    take_back(export);
    wm_pg_writer_close(&export->writer);
}

const struct wm_recorder_ops wm_exporter_postgres = {
    .name = "PostgreSQL",
    .is_target = wm_url_is_postgres,
    .check = wm_pg_check,
    .shown = wm_pg_shown,
    .can_append = true,
    .survives_kill = true,
    .state_size = sizeof(struct export),
    .open = export_open,
    .write = export_write,
    .gap = export_gap,
    .regions = export_regions,
    .finish = export_finish,
    .close = export_close,
};
