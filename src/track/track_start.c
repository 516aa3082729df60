/* SPDX-License-Identifier: Apache-2.0 */
/* track_start.c - the tracker's start on a target: a command, a process that runs
 * already, or the calling one; and its first tick. */
#include "wattmeter/tracker.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "base/base_file.h"
#include "base/base_guard.h"
#include "base/base_options.h"
#include "region/mark/region_file.h"
#include "region/region_ring.h"
#include "track/track_state.h"

void wm_track_forget_target(struct wm_tracker *tracker)
{
    wm_recorder_close(tracker->recorder);
    wm_track_regions_free(tracker->regions);
    if (tracker->account && wm_account_counts(tracker->account))
        tracker->counted_ns = wm_clock_monotonic_ns();
    wm_account_free(tracker->account);
    wm_events_close(&tracker->events);
    wm_tree_close(tracker->tree);
    wm_launch_free(tracker->launch); /* waits for the launcher's end */
    if (tracker->pid_fd >= 0)
        close(tracker->pid_fd);
    tracker->recorder = NULL;
    tracker->regions = NULL;
    tracker->account = NULL;
    tracker->launch = NULL;
    tracker->tree = NULL;
    tracker->pid_fd = tracker->end_fd = -1;
}

/* With the signals let in that were held back while the sources were read, so that none
 * goes unnoticed; false after one. */
static bool sleep_until(int64_t when_ns, const sigset_t *signals)
{
    int64_t left_ns = when_ns - wm_clock_monotonic_ns();
    const struct timespec left = {
        .tv_sec = left_ns > 0 ? left_ns / WM_NS_PER_S : 0,
        .tv_nsec = left_ns > 0 ? left_ns % WM_NS_PER_S : 0,
    };

    return ppoll(NULL, 0, &left, signals) == 0;
}

static int take_ticks(struct wm_tracker *tracker, struct wm_analysis *analysis,
                      const sigset_t *signals, struct wm_error *err)
{
    int64_t due_ns = wm_clock_monotonic_ns();
    int64_t begin_ns = due_ns, end_ns = due_ns + tracker->baseline_ns;

    for (;;) {
        wm_track_begin_round(tracker, due_ns == begin_ns || due_ns == end_ns);
        wm_track_read_tree(tracker);
        wm_track_read_sources(tracker, WM_TRACK_NEW, WM_GUARD_HANG_NS);
        int64_t now_ns = wm_clock_monotonic_ns();
        struct wm_tick tick = wm_track_tick(tracker, now_ns);
        wm_analysis_tick(analysis, &tick);
        if (now_ns >= end_ns)
            return WM_OK;
        while (due_ns <= now_ns)
            due_ns += tracker->interval_ns;
        if (due_ns > end_ns)
            due_ns = end_ns;
        if (!sleep_until(due_ns, signals))
            return wm_fail(err, WM_EIO, "the baseline was interrupted by a signal");
    }
}

/* What the machine takes with nothing to do, before a run: keeps in it what each device
 * took meanwhile. WM_EIO when a signal came in between. */
static int take_baseline(struct wm_tracker *tracker, struct wm_error *err)
{
    struct wm_analysis *analysis = NULL;
    sigset_t all, before;

    int status = wm_analysis_new(&tracker->run, tracker->channels, tracker->channel_count,
                                 &analysis, err);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    if (status == WM_OK)
        status = take_ticks(tracker, analysis, &before, err);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (status == WM_OK)
        status =
            wm_analysis_baselines(analysis, tracker->baseline_anyway, &tracker->run, err);
    wm_analysis_free(analysis);
    return status;
}

int wm_track_describe_gpus(struct wm_tracker *tracker, struct wm_error *err)
{
    struct wm_source_gpu_count gpus = wm_source_set_gpu_count(tracker->sources);
    const char *remark = wm_source_set_remark(tracker->sources);
    struct wm_run *run = &tracker->run;

    run->expected_gpu_count = (int)gpus.read;
    run->gpu_count = (int)gpus.there;
    run->gpus_unknown |= wm_source_set_lacks_gpus(tracker->sources);
    return remark ? wm_run_add_gpu_remark(run, remark, err) : WM_OK;
}

int wm_track_make_takers(struct wm_tracker *tracker, struct wm_error *err)
{
    int status = wm_analysis_new(&tracker->run, tracker->channels, tracker->channel_count,
                                 &tracker->analysis, err);
    if (status == WM_OK && tracker->record_target)
        status = wm_recorder_open(tracker->record_target, tracker->record_mode,
                                  &tracker->run, tracker->channels, tracker->channel_count,
                                  &tracker->recorder, err);
    return status;
}

/* What all kinds of target have in common, once tree and account are there. A recording
 * that cannot be opened keeps a command from its start. */
static int prepare(struct wm_tracker *tracker, const char *mode, bool own_numbers,
                   struct wm_error *err)
{
    tracker->run.pid = tracker->pid;
    tracker->run.mode = strdup(mode);
    if (!tracker->run.mode)
        return wm_fail_memory(err, "tracker");
    int status = wm_track_await_late(tracker, err);
    if (status == WM_OK)
        status = wm_track_make_channels(tracker, own_numbers, err);
    if (status == WM_OK && wm_source_set_pending_since(tracker->sources) != 0)
        return wm_track_begin_late(tracker, own_numbers, err);
    if (status == WM_OK && !tracker->is_renewed)
        status = wm_track_describe_gpus(tracker, err);
    if (status == WM_OK && tracker->baseline_ns > 0 && !tracker->is_renewed)
        status = take_baseline(tracker, err);
    return status < 0 || !tracker->record_target ? status
                                                 : wm_track_make_takers(tracker, err);
}

/* Whether the program, which may add rows to it, can. */
static bool can_write(const char *file)
{
    char folder[PATH_MAX];
    struct stat info;

    if (stat(file, &info) == 0)
        return S_ISREG(info.st_mode) && access(file, W_OK) == 0;
    if (errno != ENOENT || snprintf(folder, sizeof(folder), "%s", file) >= PATH_MAX)
        return false;
    return access(dirname(folder), W_OK | X_OK) == 0;
}

static int go_without_regions(struct wm_tracker *tracker, const char *why,
                              struct wm_error *err)
{
    wm_track_regions_free(tracker->regions);
    tracker->regions = NULL;
    return wm_run_set_regions_remark(&tracker->run, why, err);
}

/* Without regions the rest is as good; the report says why there are none. Where the user
 * has the program write its regions into a file, that is left alone. */
static int make_regions(struct wm_tracker *tracker, struct wm_error *err)
{
    const char *file = wm_env_trusted(WM_REGIONS_VARIABLE, "");
    struct wm_error why = { 0 };
    char text[512];

    if (wm_region_file_is_path(file)) {
        snprintf(text, sizeof(text),
                 can_write(file)
                     ? "the program writes them to %s, as " WM_REGIONS_VARIABLE " says"
                     : "there are none: " WM_REGIONS_VARIABLE
                       " has the program write them to %s, which cannot be written",
                 file);
        return wm_run_set_regions_remark(&tracker->run, text, err);
    }
    int status = wm_track_regions_new(&tracker->regions, &why);
    if (status == WM_OK && tracker->self)
        status = wm_track_regions_listen(tracker->regions, &why);
    return status < 0 ? go_without_regions(tracker, why.text, err) : WM_OK;
}

void wm_track_take_regions(struct wm_tracker *tracker)
{
    struct wm_error why = { 0 };

    if (tracker->regions && wm_track_regions_set_takers(tracker->regions, tracker->analysis,
                                                        tracker->recorder, &why) < 0)
        go_without_regions(tracker, why.text, NULL);
}

/* The first tick, with what was read for it before. The analysis, if nothing is recorded,
 * and what regions take are made as late as this, as the command runs by now. Where there
 * is no memory for regions there are none. */
static int begin(struct wm_tracker *tracker, int64_t start_ns, struct wm_error *err)
{
    struct wm_error why = { 0 };

    int status =
        tracker->late || tracker->analysis ? WM_OK : wm_track_make_takers(tracker, err);
    if (status < 0)
        return status;
    wm_track_read_tree(tracker);
    wm_track_start_cpu(tracker, start_ns);
    if (tracker->regions && wm_track_regions_open(tracker->regions, &why) < 0)
        go_without_regions(tracker, why.text, NULL);
    if (!tracker->late)
        wm_track_take_regions(tracker);
    wm_track_hand_out(tracker, start_ns);
    tracker->start_ns = start_ns;
    tracker->due_ns = start_ns + tracker->interval_ns;
    tracker->look_ns = tracker->launch ? start_ns + WM_TRACK_FIRST_LOOK_NS : INT64_MAX;
    tracker->state = WM_TRACKER_RUNNING;
    pthread_mutex_lock(&tracker->log_lock);
    tracker->takes_log = true;
    pthread_mutex_unlock(&tracker->log_lock);
    return WM_OK;
}

static int open_sources(struct wm_tracker *tracker, struct wm_error *err)
{
    return tracker->opens_at_start ? wm_track_open_all(tracker, err) : WM_OK;
}

/* `ret_released` says whether the command has been let go, so that a failure is
 * that of its execution. */
static int start_command(struct wm_tracker *tracker, const char *path, char *const argv[],
                         const struct wm_launch_place *place, bool *ret_released,
                         struct wm_error *err)
{
    int status = wm_run_set_command(&tracker->run, argv, err);
    if (status == WM_OK)
        status = wm_account_new(&tracker->account, err);
    if (status == WM_OK)
        status = make_regions(tracker, err);
    const struct wm_launch_plan plan = {
        .path = path,
        .argv = argv,
        .place = place,
        .variable = WM_REGIONS_VARIABLE,
        .value = tracker->regions ? wm_track_regions_path(tracker->regions) : NULL,
        .waits_all = tracker->wait_all,
        .is_silent = tracker->is_silent,
        .batch = tracker->batch,
    };
    if (status == WM_OK)
        status = wm_launch_new(&plan, &tracker->launch, err);
    if (status == WM_OK) /* this and what follows while the processes are made */
        status =
            wm_account_expect(tracker->account, tracker->wake_fd, tracker->counted_ns, err);
    if (status == WM_OK)
        status = open_sources(tracker, err);
    if (status == WM_OK)
        status = wm_run_describe(&tracker->run, place->environment, err);
    if (status == WM_OK && tracker->record_target)
        wm_run_read_facts(&tracker->run);
    if (status == WM_OK)
        status = wm_launch_wait_fork(tracker->launch, err);
    if (status < 0)
        return status;

    tracker->pid = wm_launch_command_pid(tracker->launch);
    tracker->pid_fd = (int)syscall(SYS_pidfd_open, tracker->pid, 0);
    tracker->end_fd =
        tracker->pid_fd >= 0 ? tracker->pid_fd : wm_launch_end_fd(tracker->launch);
    status = wm_tree_open_command(tracker->pid, wm_launch_launcher_pid(tracker->launch),
                                  &tracker->tree, err);
    if (status == WM_OK)
        status = prepare(tracker, "run", true, err);
    if (status < 0)
        return status;
    wm_account_start_command(tracker->account, tracker->pid, tracker->tree);
    wm_events_open(&tracker->events, tracker->wanted_events, tracker->pid,
                   &wm_events_kernel);

    /* The machine's counters from just before the start, the processes from
     * just after exec: before, the command's memory is a copy of ours. */
    wm_track_read_first(tracker);
    int64_t start_ns = wm_clock_monotonic_ns();
    status = wm_launch_go(tracker->launch, err);
    if (status < 0)
        return status;
    *ret_released = true;
    wm_account_released(tracker->account);
    if (!tracker->record_target) /* nobody has wanted them yet; now there is time */
        wm_run_read_facts(&tracker->run);
    status = wm_launch_wait_exec(tracker->launch, err);
    if (status < 0)
        return status;
    wm_tree_executed(tracker->tree);
    return begin(tracker, start_ns, err);
}

static int end_start(struct wm_tracker *tracker, int status)
{
    if (status < 0) {
        wm_track_forget_target(tracker);
        tracker->state = WM_TRACKER_STOPPED;
    }
    wm_track_end_work(tracker);
    return status;
}

static int start_at(struct wm_tracker *tracker, char *const argv[],
                    const struct wm_launch_place *place, struct wm_error *err)
{
    char *path = NULL;

    int status = wm_launch_find(argv[0], place, &path, err);
    if (status < 0)
        return status;

    bool released = false;
    wm_track_begin_work(tracker);
    status = end_start(tracker, start_command(tracker, path, argv, place, &released, err));
    free(path);

    /* These two speak of the command; here it is a recording's file, say. */
    if (!released && (status == WM_ENOENT || status == WM_EACCES)) {
        status = WM_EIO;
        if (err)
            err->status = status;
    }
    return status;
}

static int start_in(struct wm_tracker *tracker, const struct wm_tracker_target *target,
                    struct wm_error *err)
{
    const char *folder = target->folder;
    struct wm_launch_place place = { .folder_fd = AT_FDCWD,
                                     .environment = target->environment };

    if (!target->argv[0])
        return wm_fail(err, WM_EINVAL, "there is no command to start");
    if (folder)
        place.folder_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (place.folder_fd == -1)
        return wm_fail_errno(err, folder);
    int status = start_at(tracker, target->argv, &place, err);
    if (folder)
        close(place.folder_fd);
    return status;
}

static int start_runs(struct wm_tracker *tracker, const struct wm_tracker_target *target,
                      struct wm_error *err)
{
    if (target->runs > WM_TRACKER_BATCH_MAX)
        return wm_fail(err, WM_EINVAL, "a batch has at most %d runs", WM_TRACKER_BATCH_MAX);
    int status = target->runs > 0
                     ? wm_batch_new(target->runs, target->goes_on, &tracker->batch, err)
                     : WM_OK;
    if (status == WM_OK)
        status = start_in(tracker, target, err);
    if (status < 0) {
        wm_batch_free(tracker->batch);
        tracker->batch = NULL;
    }
    return status;
}

/* The processes that are there already, the first of which is the root. */
static int open_tree(struct wm_tracker *tracker, const char *procfs, const pid_t *pids,
                     size_t count, struct wm_error *err)
{
    int status = wm_tree_open(procfs, pids[0], &tracker->tree, err);

    for (size_t i = 1; i < count && status == WM_OK; i++)
        status = wm_tree_add(tracker->tree, pids[i], err);
    if (status == WM_OK)
        wm_tree_find_all(tracker->tree);
    return status;
}

/* In another /proc than our own the pid is not one we could wait for, and of several one
 * is not all; there each tick finds out whether the target is gone. */
static int start_running(struct wm_tracker *tracker, const pid_t *pids, size_t count,
                         const char *mode, struct wm_error *err)
{
    const pid_t pid = pids[0];
    const char *procfs =
        tracker->self ? "/proc" : wm_env_trusted("WATTMETER_PROCFS", "/proc");
    bool is_other = wm_procfs_is_other(procfs);
    bool own = wm_file_is_same(procfs, "/proc") && !is_other;

    tracker->pid = pid;
    if (is_other && !tracker->self)
        return wm_fail(err, WM_EINVAL,
                       "/proc is of another pid namespace: process %d there is another "
                       "one; mount one of this namespace, or name it in WATTMETER_PROCFS",
                       (int)pid);
    if (own && !tracker->self) {
        tracker->pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
        if (tracker->pid_fd < 0 && (errno == ESRCH || errno == EINVAL))
            return wm_fail(err, WM_ENOENT, "there is no process %d", (int)pid);
        tracker->end_fd = count > 1 ? -1 : tracker->pid_fd;
    }

    int status = wm_account_new(&tracker->account, err);
    if (status == WM_OK && tracker->self)
        status =
            wm_account_expect(tracker->account, tracker->wake_fd, tracker->counted_ns, err);
    if (status == WM_OK)
        status = open_tree(tracker, procfs, pids, count, err);
    if (status < 0)
        return status;
    wm_account_start_tree(tracker->account, tracker->tree, own);
    if (!is_other)
        status = wm_run_set_command_of(&tracker->run, procfs, pid, err);
    if (status == WM_OK)
        status = wm_run_describe(&tracker->run, NULL, err);
    if (status == WM_OK)
        wm_run_read_facts(&tracker->run);
    if (status == WM_OK && tracker->self)
        status = make_regions(tracker, err);
    if (status == WM_OK)
        status = prepare(tracker, mode, own, err);
    if (status < 0)
        return status;

    /* Opening a recording takes its time, and so may drivers; what was used meanwhile is
     * not ours. CPU time is counted from the start on, to the moment. */
    wm_track_read_first(tracker);
    wm_tree_find_all(tracker->tree);
    wm_tree_rebase(tracker->tree);
    wm_account_rebase(tracker->account, tracker->tree);
    int64_t start_ns = wm_clock_monotonic_ns();
    tracker->self_base_ns = wm_track_cost_ns(tracker);
    return begin(tracker, start_ns, err);
}

static int start_and_tidy(struct wm_tracker *tracker, const pid_t *pids, size_t count,
                          const char *mode, struct wm_error *err)
{
    wm_track_begin_work(tracker);
    int status = open_sources(tracker, err);
    if (status == WM_OK)
        status = start_running(tracker, pids, count, mode, err);
    return end_start(tracker, status);
}

static int start_processes(struct wm_tracker *tracker, const pid_t *pids, size_t count,
                           struct wm_error *err)
{
    if (tracker->baseline_ns > 0)
        return wm_fail(err, WM_EINVAL, "a baseline needs a command that has not begun");
    if (count == 0)
        return wm_fail(err, WM_EINVAL, "there is no process to measure");
    for (size_t i = 0; i < count; i++) {
        if (pids[i] <= 0)
            return wm_fail(err, WM_EINVAL, "%d is no process", (int)pids[i]);
    }
    return start_and_tidy(tracker, pids, count, "attach", err);
}

static int start_self(struct wm_tracker *tracker, struct wm_error *err)
{
    const pid_t self = getpid();

    tracker->self = true;
    return start_and_tidy(tracker, &self, 1, "self", err);
}

int wm_tracker_start(struct wm_tracker *tracker, const struct wm_tracker_target *given,
                     struct wm_error *err)
{
    struct wm_tracker_target target;

    int status = wm_options_read(given, &target, sizeof(target), err);
    if (status == WM_OK)
        status = wm_track_check_new(tracker, err);
    if (status < 0)
        return status;
    if (target.argv && target.pids)
        return wm_fail(err, WM_EINVAL, "a target is a command or processes, not both");
    if (target.argv)
        return start_runs(tracker, &target, err);
    if (target.pids)
        return start_processes(tracker, target.pids, target.pid_count, err);
    return start_self(tracker, err);
}
