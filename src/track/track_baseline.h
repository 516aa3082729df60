/* SPDX-License-Identifier: Apache-2.0 */
/* track_baseline.h - what the machine takes with nothing to do, before a run. */
#ifndef WM_TRACK_BASELINE_H
#define WM_TRACK_BASELINE_H

#include "record/run/record_run.h"
#include "track/track_tick.h"

/* Takes ticks of `ticker`, which has its target, for `duration_ns`, and keeps in
 * `run` what each device took meanwhile. WM_EIO when a signal came in between. */
int wm_track_baseline(struct wm_ticker *ticker, struct wm_run *run, int64_t duration_ns,
                      struct wm_error *err);

#endif
