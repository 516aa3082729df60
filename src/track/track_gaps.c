/* SPDX-License-Identifier: Apache-2.0 */
/* track_gaps.c - one open gap per channel at most. */
#include "track/track_gaps.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/base_text.h"

/* What a channel of a process that has ended shows is no gap: it was read up to
 * its end. So "nothing" counts only before the first value. */
struct channel_gap {
    bool had_value;
    struct wm_gap gap; /* WM_READING_OK: there is none */
};

struct wm_gaps {
    size_t count;
    struct channel_gap channels[];
};

int wm_gaps_new(size_t channel_count, struct wm_gaps **ret_gaps, struct wm_error *err)
{
    struct wm_gaps *gaps =
        calloc(1, sizeof(*gaps) + channel_count * sizeof(gaps->channels[0]));
    if (!gaps)
        return wm_fail(err, WM_ENOMEM, "tracker: out of memory");
    gaps->count = channel_count;
    for (size_t i = 0; i < channel_count; i++)
        gaps->channels[i].gap = (struct wm_gap) { .channel = i, .state = WM_READING_OK };
    *ret_gaps = gaps;
    return WM_OK;
}

void wm_gaps_free(struct wm_gaps *gaps)
{
    free(gaps);
}

static bool is_missing(const struct channel_gap *channel, const struct wm_reading *reading)
{
    if (reading->state == WM_READING_NONE)
        return !channel->had_value;
    return reading->state != WM_READING_OK;
}

bool wm_gaps_opens(const struct wm_gaps *gaps, size_t channel,
                   const struct wm_reading *reading)
{
    return reading->state != gaps->channels[channel].gap.state &&
           is_missing(&gaps->channels[channel], reading);
}

static void close_gap(struct wm_gap *gap, wm_gap_sink *sink, void *context)
{
    if (gap->state == WM_READING_OK)
        return;
    sink(context, gap);
    gap->state = WM_READING_OK;
}

/* A driver that hangs has been asked before we call its readings stale. */
static int64_t begin_of(const struct wm_reading *reading, int64_t when_ns)
{
    bool was_asked = reading->state == WM_READING_STALE && reading->when_ns > 0;

    return was_asked && reading->when_ns < when_ns ? reading->when_ns : when_ns;
}

void wm_gaps_note(struct wm_gaps *gaps, size_t channel, const struct wm_reading *reading,
                  int64_t when_ns, const char *why, wm_gap_sink *sink, void *context)
{
    struct wm_gap *gap = &gaps->channels[channel].gap;
    enum wm_reading_state state =
        is_missing(&gaps->channels[channel], reading) ? reading->state : WM_READING_OK;

    gaps->channels[channel].had_value |= reading->state == WM_READING_OK;

    /* Another state is another reason, and so another gap. */
    if (state != gap->state) {
        close_gap(gap, sink, context);
        gap->state = state;
        gap->from_ns = begin_of(reading, when_ns);
        wm_text_utf8(gap->why, sizeof(gap->why), why ? why : "", why ? strlen(why) : 0);
    }
    gap->to_ns = when_ns;
}

void wm_gaps_close(struct wm_gaps *gaps, wm_gap_sink *sink, void *context)
{
    for (size_t i = 0; i < gaps->count; i++)
        close_gap(&gaps->channels[i].gap, sink, context);
}
