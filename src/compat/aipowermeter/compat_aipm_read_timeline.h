/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat_aipm_read_timeline.h - where the records of an AIPowerMeter file come to lie.
 * Times only grow, whatever the clock did.
 *
 * A record stands for a window before it. Within a segment that begins at the record
 * before; the first window of a segment is taken to be as long as they usually are.
 */
#ifndef WM_COMPAT_AIPM_READ_TIMELINE_H
#define WM_COMPAT_AIPM_READ_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

struct wm_aipm_timeline {
    int64_t spacing_ns; /* the usual one, which the owner sets; 0: unknown */
    bool started;
    int64_t date_ns;  /* of the last record */
    int64_t when_ns;  /* the same in this timeline, */
    int64_t shift_ns; /* which is ahead of the dates by that */
    uint64_t records, set_back, same_dates;
};

/* The ticks that a record comes to; -1: there is no such tick. */
struct wm_aipm_placed {
    int64_t hole_ns;   /* the first one without values, after a segment */
    int64_t window_ns; /* where the window of a segment's first record begins */
    int64_t when_ns;
    const char *why; /* of the hole */
};

/* Back to the beginning. */
void wm_aipm_timeline_restart(struct wm_aipm_timeline *timeline);

/* Finds the place of a record, from which the timeline goes on. `why`: it begins a segment
 * whatever its date is; or NULL. False where it would lie beyond all times. */
bool wm_aipm_timeline_place(struct wm_aipm_timeline *timeline, int64_t date_ns,
                            const char *why, struct wm_aipm_placed *ret_placed);

#endif
