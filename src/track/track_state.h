/* SPDX-License-Identifier: Apache-2.0 */
/*
 * track_state.h - the tracker itself, for the files that its functions are in:
 * track.c (what is to be measured, and what came of it), track_start.c (on which
 * target), track_loop.c (the ticks, to the end).
 */
#ifndef WM_TRACK_STATE_H
#define WM_TRACK_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "analyze/analyze.h"
#include "record/record.h"
#include "track/launch/track_launch.h"
#include "track/track_regions.h"
#include "track/track_tick.h"
#include "wattmeter/tracker.h"

/* A gap is a time in which a channel has no value. What a channel of a process that has
 * ended shows is none: it was read up to its end. So "nothing" counts only before the
 * first value. */
struct wm_channel_gap {
    bool had_value;
    struct wm_gap gap; /* WM_READING_OK: there is none now */
};

struct wm_tracker {
    enum wm_tracker_state state;
    bool own_process, self;
    bool wants_estimate; /* of the CPUs, as its watts were told */
    int64_t baseline_ns;

    char *record_target;
    char *metrics_path; /* what the target writes of itself; NULL: nothing */
    enum wm_record_mode record_mode;

    struct wm_run run;
    struct wm_result result;

    struct wm_source_set *sources;
    struct wm_ticker *ticker; /* from the start on */
    struct wm_tree *tree;
    struct wm_account *account;
    struct wm_launch *launch; /* of a command only */
    struct wm_recorder *recorder;
    struct wm_analysis *analysis;
    struct wm_channel_gap *gaps;      /* one per channel */
    struct wm_track_regions *regions; /* NULL: they are not to be had */

    pid_t pid;
    int pid_fd;  /* of the target; -1: this kernel has none, or it is not ours */
    int end_fd;  /* readable when the target has ended; -1: ticks tell */
    int wake_fd; /* an eventfd that ends the thread's waiting */

    int64_t interval_ns;
    int64_t start_ns;     /* of the first tick */
    int64_t due_ns;       /* of the next one */
    int64_t cost_ns;      /* CPU time in functions of the tracker that have returned, */
    int64_t begun_ns;     /* and the thread's CPU clock when the one now at work began */
    int64_t self_base_ns; /* the cost when the CPU time of "self" began to count */
    pid_t owner;          /* a child that the program forks is not to touch it */

    pthread_t thread;
    bool has_thread;
    atomic_bool stopping;
};

/* WM_EINVAL when it has been started. */
int wm_track_check_new(const struct wm_tracker *tracker, struct wm_error *err);

/* Back to what it was before the start; a command at its gate ends there. */
void wm_track_forget_target(struct wm_tracker *tracker);

/* What is done between these two is the tracker's cost. */
void wm_track_begin_work(struct wm_tracker *tracker);
void wm_track_end_work(struct wm_tracker *tracker);

/* What functions of the tracker have used up to now, and its sources' threads;
 * between the two above. */
int64_t wm_track_cost_ns(const struct wm_tracker *tracker);

/* The parts of the first tick: all sources, which are worth some patience then; and
 * what has been read, to the recorder and to the analysis. */
void wm_track_read_first(struct wm_tracker *tracker);
void wm_track_hand_out(struct wm_tracker *tracker, int64_t when_ns);

/* What is known when a session is over: CPU time and its method, the processes' peaks,
 * what is uncertain. The tracker has used `own_seconds` in process `main_pid` itself, which
 * are taken out. */
int wm_track_take_tree(struct wm_result *result, const struct wm_tree *tree,
                       struct wm_account *account, pid_t main_pid, double own_seconds,
                       struct wm_error *err);

/* Our own cost: `cost_ns` of CPU time, or all that this process has used where
 * it does nothing else. Adds to what is there. */
void wm_track_take_cost(struct wm_result *result, int64_t cost_ns, bool own_process);

#endif
