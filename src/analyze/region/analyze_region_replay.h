/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_region_replay.h - the regions of a recording, handed to an analysis between its
 * ticks; for src/analyze alone. */
#ifndef WM_ANALYZE_REGION_REPLAY_H
#define WM_ANALYZE_REGION_REPLAY_H

#include "analyze/analyze.h"

struct wm_region_replay;

/* NULL where the recording has no regions. The analysis has had no tick yet, and lives
 * longer. */
int wm_region_replay_open(struct wm_analysis *analysis, struct wm_recording *recording,
                          struct wm_region_replay **ret_replay, struct wm_error *err);

/* After the tick of that time; INT64_MAX after the last one. */
int wm_region_replay_until(struct wm_region_replay *replay, int64_t when_ns,
                           struct wm_error *err);

/* Accepts NULL. */
void wm_region_replay_close(struct wm_region_replay *replay);

#endif
