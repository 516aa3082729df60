/* SPDX-License-Identifier: Apache-2.0 */
/* track_gaps.h - notices when a channel has no value, since when, and why. */
#ifndef WM_TRACK_GAPS_H
#define WM_TRACK_GAPS_H

#include "base/base_error.h"
#include "record/record.h"

/* Called with each gap that is over. */
typedef void wm_gap_sink(void *context, const struct wm_gap *gap);

struct wm_gaps;

int wm_gaps_new(size_t channel_count, struct wm_gaps **ret_gaps, struct wm_error *err);

/* Accepts NULL. */
void wm_gaps_free(struct wm_gaps *gaps);

/* Takes one reading of each tick and channel. `why` may be NULL, and is asked
 * for only where `opens` says so. */
bool wm_gaps_opens(const struct wm_gaps *gaps, size_t channel,
                   const struct wm_reading *reading);
void wm_gaps_note(struct wm_gaps *gaps, size_t channel, const struct wm_reading *reading,
                  int64_t when_ns, const char *why, wm_gap_sink *sink, void *context);

/* Hands out the gaps that are still open. */
void wm_gaps_close(struct wm_gaps *gaps, wm_gap_sink *sink, void *context);

#endif
