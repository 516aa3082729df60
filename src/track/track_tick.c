/* SPDX-License-Identifier: Apache-2.0 */
/* track_tick.c - reads every source once, and what only all of them together can
 * show. */
#include <stdlib.h>

#include "base/base_clock.h"
#include "base/base_guard.h"
#include "track/account/track_processes.h"
#include "track/account/track_shares.h"
#include "track/track_state.h"

/* How long one GPU holds up the others before it is given up; some more for the
 * round after it. */
#define HELD_UP_NS (WM_GUARD_HANG_NS + 100 * WM_NS_PER_MS)

static void append_all(struct wm_tracker *tracker, const struct wm_channel *tree_channels,
                       size_t tree_count)
{
    for (enum wm_part m = 0; m < WM_PART_COUNT; m++)
        tracker->channels[tracker->channel_count++] =
            wm_part_channel(m, "cpu_time", "s", WM_COUNTER);
    tracker->first_share_channel = tracker->channel_count;
    tracker->channel_count +=
        wm_shares_channels(tracker->shares, tracker->channels + tracker->channel_count);
    tracker->first_tree_channel = tracker->channel_count;
    for (size_t i = 0; i < tree_count; i++)
        tracker->channels[tracker->channel_count++] = tree_channels[i];
    tracker->first_source_channel = tracker->channel_count;
    for (size_t i = 0; i < wm_source_set_channel_count(tracker->sources); i++)
        tracker->channels[tracker->channel_count++] =
            *wm_source_set_channel(tracker->sources, i);
}

void wm_track_forget_channels(struct wm_tracker *tracker)
{
    wm_shares_free(tracker->shares);
    wm_track_processes_free(tracker->processes);
    free(tracker->channels);
    free(tracker->readings);
    free(tracker->gaps);
    tracker->shares = NULL;
    tracker->processes = NULL;
    tracker->channels = NULL;
    tracker->readings = NULL;
    tracker->gaps = NULL;
    tracker->channel_count = 0;
}

int wm_track_make_channels(struct wm_tracker *tracker, bool own_numbers,
                           struct wm_error *err)
{
    const struct wm_channel *tree_channels;
    size_t tree_count = wm_tree_channels(tracker->tree, &tree_channels);
    bool has_all = wm_source_set_pending_since(tracker->sources) == 0;

    int status = wm_shares_new(&tracker->shares, err);
    if (status < 0)
        return status;
    for (size_t i = 0; has_all && i < wm_source_set_count(tracker->sources); i++)
        wm_shares_add_source(tracker->shares,
                             wm_source_set_member(tracker->sources, i)->source);
    size_t room = WM_PART_COUNT + wm_shares_channels(tracker->shares, NULL) + tree_count +
                  wm_source_set_channel_count(tracker->sources);
    tracker->channels = calloc(room, sizeof(*tracker->channels));
    tracker->readings = calloc(room, sizeof(*tracker->readings));
    tracker->gaps = calloc(room, sizeof(*tracker->gaps));
    if (!tracker->channels || !tracker->readings || !tracker->gaps)
        return wm_fail_memory(err, "tracker");
    append_all(tracker, tree_channels, tree_count);
    for (size_t i = 0; i < room; i++)
        tracker->gaps[i].gap = (struct wm_gap) { .channel = i, .state = WM_READING_OK };
    return wm_shares_set_target(tracker->shares, tracker->tree, tracker->pid, own_numbers,
                                err);
}

static void set(struct wm_tracker *tracker, size_t channel, int64_t when_ns, double value)
{
    tracker->readings[channel] = (struct wm_reading) { when_ns, value, WM_READING_OK };
}

void wm_track_read_tree(struct wm_tracker *tracker)
{
    double total, main;

    tracker->own_cpu = wm_track_own_seconds(tracker);
    /* Right behind the root's clock, which is read last: a counter may take a while, and
     * memory far longer. */
    wm_tree_find_all(tracker->tree);
    wm_account_read(tracker->account, tracker->tree, &total, &main);
    int64_t when_ns = wm_clock_monotonic_ns();
    wm_tree_measure(tracker->tree);
    wm_tree_read(tracker->tree, tracker->readings + tracker->first_tree_channel);

    /* The two clocks are read a moment apart; that must not look like a counter
     * that goes back. */
    double own = tracker->own_cpu < main ? tracker->own_cpu : main;
    if (main - own > tracker->main_cpu)
        tracker->main_cpu = main - own;
    if (total - main > tracker->descendants_cpu)
        tracker->descendants_cpu = total - main;
    set(tracker, WM_PART_MAIN, when_ns, tracker->main_cpu);
    set(tracker, WM_PART_DESCENDANTS, when_ns, tracker->descendants_cpu);
    set(tracker, WM_PART_TREE, when_ns, tracker->main_cpu + tracker->descendants_cpu);
}

void wm_track_start_cpu(struct wm_tracker *tracker, int64_t when_ns)
{
    for (size_t m = 0; m < WM_PART_COUNT; m++)
        set(tracker, m, when_ns, 0);
}

void wm_track_begin_round(struct wm_tracker *tracker, bool is_end)
{
    tracker->before_ns = tracker->round_ns;
    tracker->round_ns = wm_source_set_begin(tracker->sources, is_end);
}

/* The readings of a driver that takes longer than our patience come late, each with
 * its own time: its last ones stand until the next are there. They may have been
 * made for the tick before; then a GPU that hangs may have kept the others waiting,
 * until the first tick in which that was seen. */
static int64_t oldest_that_counts(const struct wm_tracker *tracker)
{
    int64_t between_ns = tracker->round_ns - tracker->before_ns;

    return tracker->round_ns - 2 * between_ns - HELD_UP_NS;
}

void wm_track_read_sources(struct wm_tracker *tracker, enum wm_track_demand demand,
                           int64_t patience_ns)
{
    struct wm_reading *readings = tracker->readings + tracker->first_source_channel;
    int64_t oldest_ns =
        demand == WM_TRACK_RECENT ? oldest_that_counts(tracker) : tracker->round_ns;
    int64_t deadline_ns = tracker->round_ns + patience_ns;

    if (demand == WM_TRACK_FIRST) {
        wm_source_set_wait(tracker->sources, deadline_ns, oldest_ns, readings);
        wm_source_set_read(tracker->sources, readings);
    } else {
        wm_source_set_collect(tracker->sources, deadline_ns, oldest_ns, readings);
    }
    if (demand == WM_TRACK_NEW)
        wm_source_set_wait(tracker->sources, 0, oldest_that_counts(tracker), readings);
    wm_shares_read(tracker->shares, tracker->round_ns,
                   tracker->readings + tracker->first_share_channel);
}

struct wm_tick wm_track_tick(const struct wm_tracker *tracker, int64_t when_ns)
{
    return (struct wm_tick) { when_ns, tracker->readings, tracker->channel_count };
}

const char *wm_track_why(const struct wm_tracker *tracker, size_t channel)
{
    if (channel < tracker->first_share_channel)
        return NULL; /* CPU times are always there */
    if (channel < tracker->first_tree_channel)
        return wm_shares_why(tracker->shares, channel - tracker->first_share_channel);
    if (channel < tracker->first_source_channel)
        return wm_tree_why(tracker->tree, channel - tracker->first_tree_channel);
    return wm_source_set_why(tracker->sources, channel - tracker->first_source_channel);
}
