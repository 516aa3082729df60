/* SPDX-License-Identifier: Apache-2.0 */
/*
 * track_late.c - sources whose drivers take long to start, and join a run that has begun.
 *
 * Analysis and recorder take the channels once and for all, and nobody knows those of a
 * driver that has not answered. So the readings of the other sources are kept here; when
 * the driver has answered, or is given up, analysis and recorder are made, and get them
 * with a gap where the late channels are.
 */
#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base_clock.h"
#include "base/base_utf8.h"
#include "track/track_state.h"

#define OPEN_NS (WM_SOURCE_OPEN_S * WM_NS_PER_S)

/* A driver is given up sooner where the ticks take more, as with a short interval and many
 * channels. */
#define KEPT_BYTES ((size_t)32 << 20)

/* Ticks beside those of the interval: the first, the last, some to spare. */
enum { MORE_TICKS = 8 };

/* How long a slow disk may hold up the handing out of the ticks that were kept. */
#define HOLD_NS (2 * WM_NS_PER_S)

struct kept_tick {
    int64_t when_ns;
    struct wm_reading readings[];
};

struct wm_late {
    bool own_numbers; /* of wm_track_make_channels() */
    size_t width;     /* readings of a tick */
    size_t tick_size, room, count;
    max_align_t ticks[];
};

static struct kept_tick *tick_at(struct wm_late *late, size_t index)
{
    return (struct kept_tick *)(void *)((char *)late->ticks + index * late->tick_size);
}

/* Whether there is room for one tick more and the last one. */
static bool has_room(const struct wm_tracker *tracker)
{
    return tracker->late->count + 1 < tracker->late->room &&
           (!tracker->regions || wm_track_regions_has_room(tracker->regions));
}

/* Says why a driver that has not answered is given up. */
static int give_up(const struct wm_tracker *tracker, int64_t asked_ns,
                   struct wm_error *ret_why)
{
    double seconds = (double)(wm_clock_monotonic_ns() - asked_ns) / 1e9;
    bool has_ended = tracker->state == WM_TRACKER_STOPPED;

    if (!has_ended && (!tracker->late || has_room(tracker)))
        return wm_fail(ret_why, WM_EIO, "the driver has not answered for %.0f s", seconds);
    return wm_fail(
        ret_why, WM_EIO, "the driver had not answered when %s, after %.1f s",
        has_ended ? "the run ended" : "no more samples and regions could be kept", seconds);
}

/* Adds the pending sources that have answered, and gives up the others. */
static int settle(struct wm_tracker *tracker, struct wm_error *err)
{
    struct wm_source_set *sources = tracker->sources;
    int64_t asked_ns;

    while ((asked_ns = wm_source_set_pending_since(sources)) != 0) {
        struct wm_error why;
        const char *name;
        int status = wm_source_set_take_pending(sources, &name, &why);
        if (status > 0)
            status = give_up(tracker, asked_ns, &why);
        if (wm_track_note_source(tracker, name, status, &why, err) == WM_ENOMEM)
            return WM_ENOMEM;
    }
    return WM_OK;
}

static bool have_answered(const struct wm_tracker *tracker, int64_t deadline_ns)
{
    return wm_source_set_await(tracker->sources, deadline_ns) ||
           wm_clock_monotonic_ns() >=
               wm_source_set_pending_since(tracker->sources) + OPEN_NS;
}

/* What is measured before the start is measured whole. To connect to a server may take
 * seconds, in which no tick could be taken. A program that measures itself may change its
 * folder before the recording is made. */
int wm_track_await_late(struct wm_tracker *tracker, struct wm_error *err)
{
    int64_t asked_ns = wm_source_set_pending_since(tracker->sources);
    const char *target = tracker->record_target;
    bool opens_now = target && (tracker->self || wm_url_is_postgres(target));
    bool waits = tracker->baseline_ns > 0 || opens_now;

    if (asked_ns == 0 || !have_answered(tracker, waits ? asked_ns + OPEN_NS : 0))
        return WM_OK;
    return settle(tracker, err);
}

int wm_track_begin_late(struct wm_tracker *tracker, bool own_numbers, struct wm_error *err)
{
    size_t width = tracker->channel_count;
    size_t tick_size = sizeof(struct kept_tick) + width * sizeof(struct wm_reading);
    size_t room = (size_t)(OPEN_NS / tracker->interval_ns) + MORE_TICKS;

    if (room > KEPT_BYTES / tick_size)
        room = KEPT_BYTES / tick_size;
    tracker->late = malloc(sizeof(*tracker->late) + room * tick_size);
    if (!tracker->late)
        return wm_fail_memory(err, "tracker");
    *tracker->late = (struct wm_late) { own_numbers, width, tick_size, room, .count = 0 };
    return WM_OK;
}

void wm_track_keep_tick(struct wm_late *late, const struct wm_tick *tick)
{
    struct kept_tick *kept = tick_at(late, late->count++);

    assert(late->count <= late->room && tick->count == late->width);
    kept->when_ns = tick->when_ns;
    memcpy(kept->readings, tick->readings, late->width * sizeof(*tick->readings));
}

bool wm_track_late_is_over(const struct wm_tracker *tracker)
{
    return !has_room(tracker) || have_answered(tracker, 0);
}

/* The late channels are those of the tree's part of GPUs, and those of the late sources,
 * which come last. */
static bool is_late(const struct wm_tracker *tracker, const struct wm_late *late,
                    size_t channel)
{
    size_t shares = tracker->first_tree_channel - tracker->first_share_channel;

    return channel >= late->width + shares || (channel >= tracker->first_share_channel &&
                                               channel < tracker->first_tree_channel);
}

static void begin_gaps(struct wm_tracker *tracker, struct wm_late *late)
{
    for (size_t i = 0; i < tracker->channel_count; i++) {
        if (is_late(tracker, late, i))
            tracker->gaps[i].gap = (struct wm_gap) {
                .channel = i,
                .from_ns = tick_at(late, 0)->when_ns,
                .state = WM_READING_STALE,
                .why = "the driver was still starting",
            };
    }
}

static void await_room(struct wm_recorder *recorder, int64_t deadline_ns)
{
    const struct timespec moment = { .tv_nsec = WM_NS_PER_MS };

    while (recorder && !wm_recorder_has_tick_room(recorder) &&
           wm_clock_monotonic_ns() < deadline_ns)
        nanosleep(&moment, NULL);
}

static void hand_out(struct wm_tracker *tracker, struct wm_late *late)
{
    int64_t deadline_ns = wm_clock_monotonic_ns() + HOLD_NS;

    begin_gaps(tracker, late);
    for (size_t t = 0; t < late->count; t++) {
        const struct kept_tick *kept = tick_at(late, t);
        const struct wm_reading *next = kept->readings;
        for (size_t i = 0; i < tracker->channel_count; i++)
            tracker->readings[i] =
                is_late(tracker, late, i)
                    ? (struct wm_reading) { kept->when_ns, 0, WM_READING_STALE }
                    : *next++;
        await_room(tracker->recorder, deadline_ns);
        wm_track_hand_out(tracker, kept->when_ns);
        if (tracker->regions)
            wm_track_regions_catch_up(tracker->regions, kept->when_ns);
    }
}

/* A recording that cannot be opened any more is one that has failed during the run. */
static int make_whole(struct wm_tracker *tracker, struct wm_error *err)
{
    struct wm_result *result = &tracker->result;
    struct wm_error why = { 0 };

    wm_source_set_await(tracker->sources, 0);
    int status = settle(tracker, err);
    if (status < 0)
        return status;
    wm_track_forget_channels(tracker);
    status = wm_track_make_channels(tracker, tracker->late->own_numbers, err);
    if (status == WM_OK)
        status = wm_track_describe_gpus(tracker, err);
    if (status < 0)
        return status;
    status = wm_track_make_takers(tracker, &why);
    if (!tracker->analysis)
        return wm_fail(err, status, "%s", why.text);
    snprintf(result->recording_trouble, sizeof(result->recording_trouble), "%s", why.text);
    return WM_OK;
}

int wm_track_join_late(struct wm_tracker *tracker, struct wm_error *err)
{
    struct wm_late *late = tracker->late;

    int status = make_whole(tracker, err);
    if (status < 0) {
        wm_track_forget_target(tracker);
        tracker->state = WM_TRACKER_STOPPED;
        return status;
    }
    tracker->late = NULL;
    wm_track_take_regions(tracker);
    hand_out(tracker, late);
    free(late);
    return WM_OK;
}
