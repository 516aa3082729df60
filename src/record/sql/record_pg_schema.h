/* SPDX-License-Identifier: Apache-2.0 */
/* record_pg_schema.h - the tables of a recording in PostgreSQL, and how a run
 * begins in them; docs/postgres.md explains them. */
#ifndef WM_RECORD_PG_SCHEMA_H
#define WM_RECORD_PG_SCHEMA_H

#include <stdbool.h>

#include "record/record_column.h"
#include "record/run/record_run.h"
#include "record/sql/record_pg.h"

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

#endif
