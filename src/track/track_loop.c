/* SPDX-License-Identifier: Apache-2.0 */
/* track_loop.c - the tracker takes ticks on absolute deadlines, hands them to the
 * recorder and to the analysis, and ends with a result. */
#include "wattmeter/tracker.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "base/base_text.h"
#include "base/base_thread.h"
#include "record/record_live.h"
#include "track/track_state.h"

/* How long a tick waits for drivers: never so long that the next one is late, nor
 * that the end of the command is noticed late. The first and the last tick are
 * worth more patience, as totals go from one to the other. */
#define PATIENCE_NS (100 * WM_NS_PER_MS)
#define PATIENCE_AT_ENDS_NS (250 * WM_NS_PER_MS)

/* How often it is checked whether a late driver has answered, where ticks are seldom. */
#define LATE_STEP_NS (100 * WM_NS_PER_MS)

/* How long regions are taken at a time. */
#define DRAIN_NS (50 * WM_NS_PER_MS)

static bool is_missing(const struct wm_channel_gap *channel,
                       const struct wm_reading *reading)
{
    if (reading->state == WM_READING_NONE)
        return !channel->had_value;
    return reading->state != WM_READING_OK;
}

static void close_gap(struct wm_tracker *tracker, struct wm_gap *gap)
{
    if (gap->state == WM_READING_OK)
        return;
    wm_analysis_gap(tracker->analysis, gap);
    if (tracker->recorder)
        wm_recorder_gap(tracker->recorder, gap);
    gap->state = WM_READING_OK;
}

/* A driver that hangs has been asked before we call its readings stale. */
static int64_t begin_of(const struct wm_reading *reading, int64_t when_ns)
{
    bool was_asked = reading->state == WM_READING_STALE && reading->when_ns > 0;

    return was_asked && reading->when_ns < when_ns ? reading->when_ns : when_ns;
}

static void open_gap(const struct wm_tracker *tracker, struct wm_gap *gap,
                     const struct wm_reading *reading, int64_t when_ns)
{
    const char *why = wm_track_why(tracker, gap->channel);

    gap->state = reading->state;
    gap->from_ns = begin_of(reading, when_ns);
    wm_text_utf8(gap->why, sizeof(gap->why), why ? why : "", why ? strlen(why) : 0);
}

/* Another state is another reason, and so another gap. */
static void note_gap(struct wm_tracker *tracker, struct wm_channel_gap *channel,
                     const struct wm_reading *reading, int64_t when_ns)
{
    bool missing = is_missing(channel, reading);

    channel->had_value |= reading->state == WM_READING_OK;
    if (channel->gap.state != (missing ? reading->state : WM_READING_OK))
        close_gap(tracker, &channel->gap);
    if (missing && channel->gap.state == WM_READING_OK)
        open_gap(tracker, &channel->gap, reading, when_ns);
    channel->gap.to_ns = when_ns;
}

static void close_gaps(struct wm_tracker *tracker)
{
    for (size_t i = 0; i < tracker->channel_count; i++)
        close_gap(tracker, &tracker->gaps[i].gap);
}

void wm_track_hand_out(struct wm_tracker *tracker, int64_t when_ns)
{
    struct wm_tick tick = wm_track_tick(tracker, when_ns);

    tracker->tick_ns = when_ns;
    if (tracker->late) {
        wm_track_keep_tick(tracker->late, &tick);
        return;
    }
    for (size_t i = 0; i < tick.count; i++)
        note_gap(tracker, &tracker->gaps[i], &tick.readings[i], when_ns);
    wm_analysis_tick(tracker->analysis, &tick);
    if (tracker->recorder)
        wm_recorder_tick(tracker->recorder, &tick);
    if (tracker->live)
        wm_live_push(tracker->live, &tick);
    tracker->result.ticks++;
}

int64_t wm_track_cost_ns(const struct wm_tracker *tracker)
{
    return tracker->cost_ns + wm_clock_thread_cpu_ns() - tracker->begun_ns +
           wm_source_set_cpu_ns(tracker->sources);
}

double wm_track_own_seconds(const struct wm_tracker *tracker)
{
    return tracker->self ? (double)(wm_track_cost_ns(tracker) - tracker->self_base_ns) / 1e9
                         : 0;
}

void wm_track_begin_work(struct wm_tracker *tracker)
{
    tracker->begun_ns = wm_clock_thread_cpu_ns();
}

void wm_track_end_work(struct wm_tracker *tracker)
{
    tracker->cost_ns += wm_clock_thread_cpu_ns() - tracker->begun_ns;
}

void wm_track_read_first(struct wm_tracker *tracker)
{
    wm_track_begin_round(tracker, true);
    wm_track_read_sources(tracker, WM_TRACK_FIRST, PATIENCE_AT_ENDS_NS);
}

static void take_tick(struct wm_tracker *tracker, int64_t when_ns,
                      enum wm_track_demand demand, int64_t patience_ns)
{
    wm_track_begin_round(tracker, demand != WM_TRACK_RECENT);
    wm_track_read_tree(tracker);
    wm_track_read_sources(tracker, demand, patience_ns);
    wm_track_hand_out(tracker, when_ns);
}

/* How long regions are taken at a time: then a tick may be due, or the target may have
 * ended. */
static int64_t drain_until(const struct wm_tracker *tracker, int64_t now_ns)
{
    return tracker->due_ns - now_ns < DRAIN_NS ? tracker->due_ns : now_ns + DRAIN_NS;
}

static int64_t patience(const struct wm_tracker *tracker, int64_t most_ns)
{
    int64_t half_ns = tracker->interval_ns / 2;

    return half_ns < most_ns ? half_ns : most_ns;
}

/* A tick follows at once, as the next one may be far. */
static int join_late(struct wm_tracker *tracker, struct wm_error *err)
{
    int status = wm_track_join_late(tracker, err);

    if (status == WM_OK)
        take_tick(tracker, wm_clock_monotonic_ns(), WM_TRACK_NEW,
                  patience(tracker, PATIENCE_AT_ENDS_NS));
    return status;
}

/* The deadlines stand fast: a tick that comes late moves no other one, and
 * those it made impossible are counted. */
static void take_due_tick(struct wm_tracker *tracker, int64_t now_ns)
{
    if (now_ns - tracker->due_ns > tracker->interval_ns / 2)
        tracker->result.late_ticks++;
    take_tick(tracker, now_ns, WM_TRACK_RECENT, patience(tracker, PATIENCE_NS));

    tracker->due_ns += tracker->interval_ns;
    int64_t after_ns = wm_clock_monotonic_ns();
    if (after_ns >= tracker->due_ns) {
        int64_t missed = (after_ns - tracker->due_ns) / tracker->interval_ns + 1;
        tracker->result.missed_ticks += (uint64_t)missed;
        tracker->due_ns += missed * tracker->interval_ns;
    }
    if (tracker->regions)
        wm_track_regions_tick(tracker->regions, drain_until(tracker, after_ns));
}

/* The tracker may have been held up by a slow driver when the command ended. What runs on
 * has used its CPU time up to the reading of it. */
static int64_t find_end(const struct wm_tracker *tracker, int64_t now_ns, bool has_ended)
{
    int64_t end_ns = has_ended ? now_ns : tracker->readings[0].when_ns;
    int64_t told_ns =
        has_ended && tracker->launch ? wm_launch_ended_ns(tracker->launch) : 0;

    if (told_ns > 0 && told_ns < end_ns)
        end_ns = told_ns;
    return end_ns > tracker->tick_ns ? end_ns : tracker->tick_ns + 1;
}

static void take_last_tick(struct wm_tracker *tracker, int64_t now_ns, bool has_ended)
{
    wm_account_want_exact(tracker->account);
    wm_track_begin_round(tracker, true);
    wm_track_read_tree(tracker);
    tracker->result.end_ns = find_end(tracker, now_ns, has_ended);
    /* A driver may have something to tell of a process that is still there. */
    if (has_ended && tracker->launch && tracker->pid_fd >= 0 &&
        wm_source_set_gpu_count(tracker->sources).read == 0)
        wm_launch_let_reap(tracker->launch, NULL);
    wm_track_read_sources(tracker, WM_TRACK_NEW, PATIENCE_AT_ENDS_NS);
    wm_track_hand_out(tracker, tracker->result.end_ns);
    tracker->state = WM_TRACKER_ENDED;
}

/* The second look at a tree comes after twice the time of the first. */
static void look_early(struct wm_tracker *tracker, int64_t now_ns)
{
    wm_tree_refresh(tracker->tree);
    tracker->look_ns = tracker->start_ns + 2 * (now_ns - tracker->start_ns);
    if (tracker->look_ns >= tracker->start_ns + tracker->interval_ns)
        tracker->look_ns = INT64_MAX;
}

/* False: the launcher is gone, and with it what it knew. */
static bool reap(struct wm_tracker *tracker, struct wm_launch_end *ret_end)
{
    struct wm_result *result = &tracker->result;

    if (wm_launch_reap(tracker->launch, ret_end, NULL) < 0)
        return false;
    int status = ret_end->wait_status;
    result->usage = ret_end->usage;
    result->exit_status = (struct wm_known) { WIFEXITED(status), WEXITSTATUS(status) };
    result->exit_signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return true;
}

static void end_command(struct wm_tracker *tracker)
{
    struct wm_launch_end end;
    struct wm_result *result = &tracker->result;

    if (!tracker->launch || !reap(tracker, &end))
        return;
    wm_account_finish(tracker->account, tracker->tree, end.children_seconds,
                      end.usage.voluntary_switches.number +
                          end.usage.involuntary_switches.number);
    result->tool_cpu_seconds.number += end.launcher_seconds;
    result->peak_rss_bytes = end.peak_rss_bytes;
    result->peak_rss_bound_bytes = end.peak_rss_bound_bytes;
}

/* The command has ended, and its last counters are read; the session goes on with what it
 * has left behind, where there is any. */
static bool go_on_without_command(struct wm_tracker *tracker, int64_t now_ns)
{
    struct wm_launch_end end;

    if (!tracker->launch || !wm_launch_waits(tracker->launch))
        return false;
    wm_tree_refresh(tracker->tree);
    if (wm_track_count_survivors(tracker) == 0 && !wm_tree_is_blind(tracker->tree))
        return false;
    take_tick(tracker, now_ns, WM_TRACK_NEW, patience(tracker, PATIENCE_AT_ENDS_NS));
    if (!reap(tracker, &end))
        return false;
    tracker->end_fd = wm_launch_end_fd(tracker->launch);
    return true;
}

/* What one wait came to. */
struct wake {
    bool target_ended, asked, has_regions;
    int64_t begun_ns, now_ns;
    int64_t regions_ns; /* when regions were to be drained at the latest, from the begin */
};

static int act(struct wm_tracker *tracker, const struct wake *wake, struct wm_error *err)
{
    if (wake->asked) {
        uint64_t wakes;
        if (read(tracker->wake_fd, &wakes, sizeof(wakes)) < 0 && errno != EAGAIN)
            return wm_fail_errno(err, "waiting for the next sample: eventfd");
        wm_account_catch_up(tracker->account, tracker->tree);
    }
    if (wake->target_ended && !go_on_without_command(tracker, wake->now_ns)) {
        take_last_tick(tracker, wake->now_ns, true);
        return WM_TRACKER_ENDED;
    }
    if (tracker->late && wm_track_late_is_over(tracker)) {
        int status = join_late(tracker, err);
        if (status < 0)
            return status;
    } else if (wake->now_ns >= tracker->due_ns)
        take_due_tick(tracker, wake->now_ns);
    else if (wake->now_ns >= tracker->look_ns)
        look_early(tracker, wake->now_ns);
    else if (tracker->regions &&
             (wake->now_ns - wake->begun_ns >= wake->regions_ns || wake->has_regions))
        wm_track_regions_drain(tracker->regions, drain_until(tracker, wake->now_ns));
    if (wake->now_ns >= wm_source_set_keep_ns(tracker->sources))
        wm_source_set_keep(tracker->sources, wake->now_ns);

    size_t alive = 1;
    if (tracker->end_fd < 0 && !tracker->self)
        wm_tree_processes(tracker->tree, &alive);
    if (alive == 0) {
        tracker->result.end_ns = wake->now_ns;
        tracker->state = WM_TRACKER_ENDED;
    }
    return (int)tracker->state;
}

/* When there is something to do, if nothing happens. */
static int64_t next_deadline(const struct wm_tracker *tracker)
{
    int64_t next_ns = wm_source_set_keep_ns(tracker->sources);

    if (tracker->look_ns < next_ns)
        next_ns = tracker->look_ns;
    return tracker->due_ns < next_ns ? tracker->due_ns : next_ns;
}

static int poll_once(struct wm_tracker *tracker, int64_t limit_ns, struct wm_error *err)
{
    struct pollfd fds[] = { { .fd = tracker->end_fd, .events = POLLIN },
                            { .fd = tracker->wake_fd, .events = POLLIN },
                            { .fd = -1, .events = POLLIN } };
    struct wake wake = { .begun_ns = wm_clock_monotonic_ns(), .regions_ns = INT64_MAX };
    int64_t wait_ns = next_deadline(tracker) - wake.begun_ns;

    if (tracker->regions)
        fds[2].fd = wm_track_regions_fd(tracker->regions, &wake.regions_ns);
    if (wait_ns > wake.regions_ns)
        wait_ns = wake.regions_ns;
    if (tracker->late && wait_ns > LATE_STEP_NS)
        wait_ns = LATE_STEP_NS;
    if (limit_ns >= 0 && wait_ns > limit_ns)
        wait_ns = limit_ns;
    if (wait_ns < 0)
        wait_ns = 0;
    struct timespec wait = { wait_ns / WM_NS_PER_S, wait_ns % WM_NS_PER_S };
    int ready = ppoll(fds, 3, &wait, NULL);

    if (ready < 0 && errno != EINTR)
        return wm_fail_errno(err, "waiting for the next sample");
    wake.now_ns = wm_clock_monotonic_ns();
    wake.target_ended = ready > 0 && fds[0].revents;
    wake.asked = ready > 0 && fds[1].revents;
    wake.has_regions = ready > 0 && fds[2].revents;
    pthread_mutex_lock(&tracker->lock);
    int state = act(tracker, &wake, err);
    pthread_mutex_unlock(&tracker->lock);
    return state;
}

int wm_tracker_poll(struct wm_tracker *tracker, int timeout_ms, struct wm_error *err)
{
    if (tracker->state != WM_TRACKER_RUNNING)
        return (int)tracker->state;

    /* Where the whole process is ours its own clock gives the cost at the end. */
    if (!tracker->own_process)
        wm_track_begin_work(tracker);
    int state = poll_once(tracker, timeout_ms < 0 ? -1 : timeout_ms * WM_NS_PER_MS, err);
    if (!tracker->own_process)
        wm_track_end_work(tracker);
    return state;
}

static void *run_thread(void *context)
{
    struct wm_tracker *tracker = context;

    while (!atomic_load(&tracker->stopping) &&
           wm_tracker_poll(tracker, -1, NULL) == WM_TRACKER_RUNNING)
        ;
    return NULL;
}

int wm_tracker_run_thread(struct wm_tracker *tracker, struct wm_error *err)
{
    if (tracker->state != WM_TRACKER_RUNNING || tracker->has_thread)
        return wm_fail(err, WM_EINVAL, "this tracker is not in a state to run a thread");
    int status = wm_thread_start(&tracker->thread, run_thread, tracker,
                                 "starting the tracker's thread", err);
    tracker->has_thread = status == WM_OK;
    return status;
}

static void join_thread(struct wm_tracker *tracker)
{
    const uint64_t one = 1;

    if (!tracker->has_thread)
        return;
    atomic_store(&tracker->stopping, true);
    while (write(tracker->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
    pthread_join(tracker->thread, NULL);
    tracker->has_thread = false;
}

/* WM_EIO where not all of it was recorded, WM_ECANCELED where that is what another program
 * did to the file; the report says so too. */
static int end_recording(struct wm_tracker *tracker, struct wm_error *err)
{
    struct wm_error trouble = { 0 };
    struct wm_result *result = &tracker->result;
    int status =
        tracker->recorder ? wm_recorder_finish(tracker->recorder, result, &trouble) : WM_OK;

    if (status < 0)
        snprintf(result->recording_trouble, sizeof(result->recording_trouble), "%s",
                 trouble.text);
    wm_recorder_close(tracker->recorder);
    tracker->recorder = NULL;
    if (!result->recording_trouble[0])
        return WM_OK;
    return wm_fail(err, status == WM_ECANCELED ? status : WM_EIO, "%s",
                   result->recording_trouble);
}

/* Whether the target has ended since the last poll. */
static bool has_ended(const struct wm_tracker *tracker)
{
    struct pollfd end = { .fd = tracker->end_fd, .events = POLLIN };

    return tracker->state == WM_TRACKER_ENDED || (poll(&end, 1, 0) > 0 && end.revents);
}

static void finish_takers(struct wm_tracker *tracker)
{
    struct wm_result *result = &tracker->result;

    close_gaps(tracker);
    if (tracker->regions)
        wm_track_regions_finish(tracker->regions, result->end_ns, result);
}

static int finish(struct wm_tracker *tracker, struct wm_error *err)
{
    struct wm_result *result = &tracker->result;

    wm_track_begin_work(tracker);
    bool ended = has_ended(tracker);
    if (tracker->state == WM_TRACKER_RUNNING)
        take_last_tick(tracker, wm_clock_monotonic_ns(), ended);
    tracker->state = WM_TRACKER_STOPPED;
    int status = tracker->late ? wm_track_join_late(tracker, err) : WM_OK;
    if (status == WM_OK) /* while the launcher reaps */
        finish_takers(tracker);
    if (ended)
        end_command(tracker);
    if (status < 0) {
        wm_track_end_work(tracker);
        return status;
    }

    wm_track_take_batch(tracker);
    status = wm_track_take_tree(tracker, err);
    if (ended || wm_tracker_exit_code(tracker) >= 0)
        wm_track_note_survivors(tracker);
    if (tracker->recorder) {
        wm_recorder_flush(tracker->recorder, result);
        tracker->cost_ns += wm_recorder_cpu_ns(tracker->recorder);
    }
    wm_track_end_work(tracker);
    wm_track_take_cost(tracker);
    if (status == WM_OK)
        status = wm_track_take_metrics(tracker, err);
    int recorded = end_recording(tracker, err);
    wm_track_forget_target(tracker);
    return status < 0 ? status : recorded;
}

static int stop(struct wm_tracker *tracker, struct wm_error *err)
{
    join_thread(tracker);
    if (tracker->state == WM_TRACKER_STOPPED)
        return WM_OK;
    if (tracker->state == WM_TRACKER_NEW)
        return wm_fail(err, WM_EINVAL, "this tracker has not been started");
    pthread_mutex_lock(&tracker->lock);
    int status = finish(tracker, err);
    pthread_mutex_unlock(&tracker->lock);
    return status;
}

int wm_tracker_stop(struct wm_tracker *tracker, struct wm_error *err)
{
    pthread_mutex_lock(&tracker->stop_lock);
    int status = stop(tracker, err);
    pthread_mutex_unlock(&tracker->stop_lock);
    return status;
}
