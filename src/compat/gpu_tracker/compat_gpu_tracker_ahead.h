/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat_gpu_tracker_ahead.h - the rows of gpu_tracker's table `data` in an SQLite
 * database, read in blocks. Of a long table two threads read the next few blocks, for
 * SQLite takes longer to hand out a row than the analysis to use it.
 */
#ifndef WM_COMPAT_GPU_TRACKER_AHEAD_H
#define WM_COMPAT_GPU_TRACKER_AHEAD_H

#include "record/calls/record_timepoint.h"
#include "record/sql/record_sql.h"

struct wm_ahead;

/* `db` is open on the database at `path`, which has that table, and which messages call
 * `shown`; they outlive the result. */
int wm_ahead_open(sqlite3 *db, const char *path, const char *shown,
                  struct wm_ahead **ret_ahead, struct wm_error *err);

/* 1 and the next row, whose time may be earlier than that of the one before; 0 past the
 * last one. */
int wm_ahead_next(struct wm_ahead *ahead, struct wm_timepoint *ret_timepoint,
                  struct wm_error *err);

/* Accepts NULL. */
void wm_ahead_close(struct wm_ahead *ahead);

#endif
