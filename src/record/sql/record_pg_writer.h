/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_pg_writer.h - one run on its way into PostgreSQL.
 *
 * A run that is there already is gone on with: ticks up to the newest one that
 * is there are left out, and so are gaps that are there. So the same ticks can
 * be handed over again from the beginning after any failure, by anybody, and
 * stand there once. So can regions, in the order of their stops. After a failure a writer
 * is good for closing alone.
 */
#ifndef WM_RECORD_PG_WRITER_H
#define WM_RECORD_PG_WRITER_H

#include "record/record.h"
#include "record/sql/record_pg_schema.h"

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

#endif
