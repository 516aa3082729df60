/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_live.h - a recording in memory alone: the ticks of a session that goes on, for a
 * view of it.
 *
 *     wm_live_open(&run, channels, n, &live, &err);
 *     wm_live_push(live, &tick);             the tracker's thread
 *     wm_recording_next(live, &tick, &err);  the view's: 0 where it has seen all
 *     wm_recording_close(live);
 *
 * About 1 MB of ticks wait for the view; after that the oldest go for the newest, so that a
 * view that is slow delays no tick.
 */
#ifndef WM_RECORD_LIVE_H
#define WM_RECORD_LIVE_H

#include "base/base_error.h"
#include "record/run/record_run.h"
#include "wattmeter/recording.h"

/* The channels are borrowed. Of the run it has the clocks and the number of cores */
int wm_live_open(const struct wm_run *run, const struct wm_channel *channels, size_t count,
                 struct wm_recording **ret_live, struct wm_error *err);

/* Copies the tick, and never waits for the disk. */
void wm_live_push(struct wm_recording *live, const struct wm_tick *tick);

#endif
