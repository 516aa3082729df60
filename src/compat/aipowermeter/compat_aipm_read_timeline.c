/* SPDX-License-Identifier: Apache-2.0 */
/* compat_aipm_read_timeline.c - the dates of records become times that only grow. */
#include "compat/aipowermeter/compat_aipm_read_timeline.h"

#include <stddef.h>

#include "base/base_clock.h"
#include "record/run/record_run.h"

/* A recorder that is merely slow is back within a minute. */
#define LONGEST_SPACING_NS (60 * WM_NS_PER_S)
#define LONGEST_SPACINGS 10

void wm_aipm_timeline_restart(struct wm_aipm_timeline *timeline)
{
    *timeline = (struct wm_aipm_timeline) { .spacing_ns = timeline->spacing_ns };
}

/* Why a record of that date begins a segment, after another one; NULL: it does not. */
static const char *reason_to_cut(const struct wm_aipm_timeline *timeline, int64_t date_ns)
{
    int64_t since_ns = date_ns - timeline->date_ns;

    if (since_ns < 0)
        return "the clock was set back";
    if (timeline->spacing_ns > 0 && since_ns > LONGEST_SPACING_NS &&
        since_ns / LONGEST_SPACINGS > timeline->spacing_ns)
        return "the recording has no record for a while";
    return NULL;
}

bool wm_aipm_timeline_place(struct wm_aipm_timeline *timeline, int64_t date_ns,
                            const char *why, struct wm_aipm_placed *ret_placed)
{
    if (!timeline->started)
        why = NULL;
    else if (!why)
        why = reason_to_cut(timeline, date_ns);
    struct wm_aipm_placed placed = {
        .hole_ns = why ? timeline->when_ns + 1 : -1,
        .window_ns = -1,
        .when_ns = date_ns + timeline->shift_ns,
        .why = why,
    };

    if (timeline->started && !why) {
        /* A record in the same microsecond as the last. */
        if (placed.when_ns <= timeline->when_ns) {
            placed.when_ns = timeline->when_ns + 1;
            timeline->same_dates++;
        }
    } else {
        int64_t earliest_ns = why ? placed.hole_ns + 1 : 0;
        if (placed.when_ns <= earliest_ns) {
            placed.when_ns =
                earliest_ns + (timeline->spacing_ns > 0 ? timeline->spacing_ns : 1);
            timeline->shift_ns = placed.when_ns - date_ns;
        }
        timeline->set_back += timeline->started && date_ns < timeline->date_ns;
        if (timeline->spacing_ns > 0) {
            placed.window_ns = placed.when_ns - timeline->spacing_ns;
            if (placed.window_ns < earliest_ns)
                placed.window_ns = earliest_ns;
        }
    }
    if (placed.when_ns > WM_TIME_MAX_NS)
        return false;

    timeline->started = true;
    timeline->date_ns = date_ns;
    timeline->when_ns = placed.when_ns;
    timeline->records++;
    *ret_placed = placed;
    return true;
}
