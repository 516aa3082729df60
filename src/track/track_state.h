/* SPDX-License-Identifier: Apache-2.0 */
/*
 * track_state.h - the tracker itself, for the files that its functions are in:
 * track.c (what is to be measured), track_start.c (on which target), track_tick.c (all
 * sources, read together), track_late.c (sources that join later), track_loop.c (the ticks,
 * to the end), track_result.c (what came of it).
 */
#ifndef WM_TRACK_STATE_H
#define WM_TRACK_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "analyze/analyze.h"
#include "base/base_clock.h"
#include "record/record.h"
#include "source/set/source_set.h"
#include "source/tree/source_tree.h"
#include "track/account/track_account.h"
#include "track/account/track_events.h"
#include "track/launch/track_launch.h"
#include "track/track_regions.h"
#include "wattmeter/tracker.h"

/* A gap is a time in which a channel has no value. What a channel of a process that has
 * ended shows is none: it was read up to its end. So "nothing" counts only before the
 * first value. */
struct wm_channel_gap {
    bool had_value;
    struct wm_gap gap; /* WM_READING_OK: there is none now */
};

/* A command that ends before its first tick is due has the memory that it was seen to have
 * after so long, after twice as long, and so on: in the second half of its life in any
 * case. */
#define WM_TRACK_FIRST_LOOK_NS WM_NS_PER_MS

struct wm_tracker {
    enum wm_tracker_state state;
    bool own_process, self, wait_all, is_silent, waits_for_drivers;
    bool opens_at_start; /* all sources: beside the making of the command's processes */
    bool is_renewed;     /* what is known of the machine stands since its first run */
    bool wants_estimate; /* the user gave watts for the estimate of the CPUs */
    int64_t baseline_ns;
    bool baseline_anyway;

    char *record_target;
    char *metrics_path; /* what the target writes of itself; NULL: nothing */
    enum wm_record_mode record_mode;

    struct wm_run run;
    struct wm_result result;

    struct wm_source_set *sources;
    struct wm_tree *tree;
    struct wm_account *account;
    int64_t counted_ns;       /* when one with counters was freed; 0: none was */
    struct wm_launch *launch; /* of a command only */
    uint32_t wanted_events;   /* of a command, by enum wm_event */
    struct wm_events events;
    struct wm_batch *batch; /* the runs of a command that is run back to back, or NULL */
    struct wm_recorder *recorder;
    struct wm_analysis *analysis;
    struct wm_recording *live;        /* the ticks for a view, NULL: nobody has asked */
    struct wm_track_regions *regions; /* NULL: they are not to be had */
    struct wm_late *late; /* ticks kept for recorder and analysis, which are made when it
                           * goes; NULL: they are there */

    /* Of all sources that are there, in one list: first the tracker's own (CPU time of
     * the tree, and what it has of each GPU), then the tree's, then source by source. */
    struct wm_channel *channels;
    struct wm_reading *readings; /* one per channel, as each of */
    struct wm_channel_gap *gaps;
    size_t channel_count;
    size_t first_share_channel, first_tree_channel, first_source_channel;
    struct wm_shares *shares;
    struct wm_track_processes *processes; /* NULL: nobody has asked for them */
    int64_t round_ns;                     /* when the drivers were asked for this tick */
    int64_t before_ns;                    /* when they were asked for the tick before it */
    double main_cpu, descendants_cpu;     /* seconds, as in the last tick, */
    double own_cpu; /* and what the tracker had used then of the root's */

    pid_t pid;
    int pid_fd;  /* of the target; -1: this kernel has none, or it is not ours */
    int end_fd;  /* readable when the target has ended; -1: each tick finds out */
    int wake_fd; /* an eventfd that ends the thread's waiting */

    int64_t interval_ns;
    int64_t start_ns;        /* of the first tick */
    int64_t tick_ns;         /* of the last one that was handed out */
    int64_t due_ns;          /* of the next one */
    int64_t look_ns;         /* when the tree is looked at before its first tick is due */
    int64_t cost_ns;         /* CPU time in functions of the tracker that have returned */
    int64_t begun_ns;        /* the thread's CPU clock when the one now at work began */
    int64_t self_base_ns;    /* the cost when the CPU time of "self" began to count */
    int64_t process_base_ns; /* the CPU time of this process in the runs before */
    pid_t owner;             /* a child that the program forks is not to touch it */

    pthread_mutex_t lock;      /* held while what was measured changes, for its report */
    pthread_mutex_t stop_lock; /* one stop waits for another */
    pthread_mutex_t log_lock;  /* of what is logged, which waits for no tick */
    struct wm_metrics logged;
    bool takes_log;
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

/* What it has used in the tracked process itself, in seconds, since the start. */
double wm_track_own_seconds(const struct wm_tracker *tracker);

/* Makes the list of channels. `own_numbers`: the tree's pids are those of our own pid
 * namespace. What the tree has of GPUs is among them only where no source is pending. No
 * source is added after it, unless the channels are forgotten first. */
int wm_track_make_channels(struct wm_tracker *tracker, bool own_numbers,
                           struct wm_error *err);
void wm_track_forget_channels(struct wm_tracker *tracker);

/* Opens all sources, waiting a second at most for their drivers. */
int wm_track_open_all(struct wm_tracker *tracker, struct wm_error *err);

/* Notes in the run that a source was opened, as the last of the set, or why it was not.
 * Returns `status`, or why it could not be noted. */
int wm_track_note_source(struct wm_tracker *tracker, const char *name, int status,
                         const struct wm_error *why, struct wm_error *err);

/* Notes in the run how many GPUs there are. */
int wm_track_describe_gpus(struct wm_tracker *tracker, struct wm_error *err);

/* Makes analysis and recorder, to which the ticks go. The analysis is there where only the
 * recorder has failed. */
int wm_track_make_takers(struct wm_tracker *tracker, struct wm_error *err);

/* Has the regions go to these two. */
void wm_track_take_regions(struct wm_tracker *tracker);

/* Late sources, whose drivers have not answered when the target starts; in track_late.c. */

/* Adds the pending sources where all have answered, or where the run cannot begin without
 * them; before the channels are made. */
int wm_track_await_late(struct wm_tracker *tracker, struct wm_error *err);

/* Keeps the ticks from here on, with the channels that there are. */
int wm_track_begin_late(struct wm_tracker *tracker, bool own_numbers, struct wm_error *err);

/* Keeps a tick. */
void wm_track_keep_tick(struct wm_late *late, const struct wm_tick *tick);

/* Whether the drivers have answered, or are to be given up. */
bool wm_track_late_is_over(const struct wm_tracker *tracker);

/* Adds the sources that have answered, gives up the others, and hands out the ticks that
 * were kept. WM_ENOMEM: the tracker is stopped, as after a start that fails. */
int wm_track_join_late(struct wm_tracker *tracker, struct wm_error *err);

/* A tick: the drivers that may hang are asked; the tree is read; then all else,
 * for which the drivers are waited for, until `patience_ns` after the begin. None
 * allocates in a stable tree. `is_end`: the run begins or ends (source_ops.h). */
void wm_track_begin_round(struct wm_tracker *tracker, bool is_end);
void wm_track_read_tree(struct wm_tracker *tracker);

enum wm_track_demand {
    WM_TRACK_RECENT, /* a reading of a moment ago will do where a driver is slow */
    WM_TRACK_NEW,    /* one of after the begin is waited for; else the last one stands */
    WM_TRACK_FIRST, /* nothing of before the begin, and nothing that is old when all drivers
                     * have answered */
};
void wm_track_read_sources(struct wm_tracker *tracker, enum wm_track_demand demand,
                           int64_t patience_ns);

/* Sets the CPU times to 0 at `when_ns`, the moment from which they count. */
void wm_track_start_cpu(struct wm_tracker *tracker, int64_t when_ns);

/* The readings of all of it; good until the next begin. */
struct wm_tick wm_track_tick(const struct wm_tracker *tracker, int64_t when_ns);

/* Why the last reading of a channel is missing, or NULL. */
const char *wm_track_why(const struct wm_tracker *tracker, size_t channel);

/* The parts of the first tick: all sources, which are worth some patience then; and
 * what has been read, to the recorder and to the analysis. */
void wm_track_read_first(struct wm_tracker *tracker);
void wm_track_hand_out(struct wm_tracker *tracker, int64_t when_ns);

/* What came of it; in track_result.c. Each adds to `tracker->result`: CPU time, its method,
 * the processes' peaks and what is uncertain of them; the runs of a batch; the tracker's
 * own cost; what the target has reported of itself. What outlives the target is noted where
 * it has ended. */
int wm_track_take_tree(struct wm_tracker *tracker, struct wm_error *err);
void wm_track_take_batch(struct wm_tracker *tracker);
void wm_track_note_survivors(struct wm_tracker *tracker);
void wm_track_take_cost(struct wm_tracker *tracker);
int wm_track_take_metrics(struct wm_tracker *tracker, struct wm_error *err);

/* The processes besides the target that are alive, as the tree was seen last. */
size_t wm_track_count_survivors(const struct wm_tracker *tracker);

/* The facts of a session that stand before its first tick, in track_run.c. */

/* Fills in environment, cores and the anchor of time, and makes room for the rest. What
 * the caller has set already (notes, sources, command) stays. */
int wm_run_describe(struct wm_run *run, char *const *environment, struct wm_error *err);

/* Fills that in: identity and machine. It takes as long as a fork. */
void wm_run_read_facts(struct wm_run *run);

int wm_run_set_command(struct wm_run *run, char *const argv[], struct wm_error *err);

/* The command line of a process that runs already, in the /proc at `procfs`. */
int wm_run_set_command_of(struct wm_run *run, const char *procfs, pid_t pid,
                          struct wm_error *err);

int wm_run_add_note(struct wm_run *run, const char *key, const char *value,
                    struct wm_error *err);

/* Leaves what is known of the machine and its sources. */
void wm_run_forget_target(struct wm_run *run);

int wm_run_set_regions_remark(struct wm_run *run, const char *remark, struct wm_error *err);

/* Adds to what is to be said about the choice of GPUs. */
int wm_run_add_gpu_remark(struct wm_run *run, const char *remark, struct wm_error *err);

#endif
