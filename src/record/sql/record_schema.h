/* SPDX-License-Identifier: Apache-2.0 */
/* record_schema.h - the tables of an SQLite recording, and how a run begins in
 * them; docs/recordings.md explains them. */
#ifndef WM_RECORD_SCHEMA_H
#define WM_RECORD_SCHEMA_H

#include "record/record_column.h"
#include "record/run/record_run.h"
#include "record/sql/record_sql.h"

struct wm_schema {
    sqlite3 *db;
    const char *path; /* for messages */
    const struct wm_run *run;
    const struct wm_channel *channels;
    size_t count;
    sqlite3_int64 id;          /* of the run */
    struct wm_columns columns; /* of `sample` */
};

/* Makes the tables unless they are there, adds the columns that `sample` lacks,
 * and describes the run and its channels, all or nothing. Fills in the last two
 * members; wm_columns_release() is due whatever this returned. */
int wm_schema_begin_run(struct wm_schema *schema, struct wm_error *err);

/* Writes gpu_tracker's static data. NAN: not known. */
int wm_schema_static_data(const struct wm_schema *schema, double ram, double gpu_ram,
                          struct wm_error *err);

#endif
