/* SPDX-License-Identifier: Apache-2.0 */
/* track.c - the tracker: starts on a target, takes ticks on absolute deadlines,
 * hands them to the recorder and to the analysis, and ends with a result. */
#include "wattmeter/tracker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analyze/analyze.h"
#include "base/base_clock.h"
#include "base/base_file.h"
#include "record/record.h"
#include "track/track_gaps.h"
#include "track/track_gpus.h"
#include "track/track_launch.h"
#include "track/track_result.h"
#include "track/track_run.h"
#include "track/track_tick.h"

#define DEFAULT_INTERVAL_NS (100 * WM_NS_PER_MS)

/* How long a tick waits for drivers: never so long that the next one is late, nor
 * that the end of the command is noticed late. The first and the last tick are
 * worth more patience, as totals go from one to the other. */
#define PATIENCE_NS (100 * WM_NS_PER_MS)
#define PATIENCE_AT_ENDS_NS (250 * WM_NS_PER_MS)

struct wm_tracker {
    enum wm_tracker_state state;
    bool own_process, self;
    char *gpus; /* as asked for */
    pid_t visible_to;
    struct wm_track_gpus *choice; /* made when the first source is added */

    char *record_target;
    enum wm_record_mode record_mode;

    struct wm_run run;
    struct wm_result result;

    struct wm_ticker *ticker;
    struct wm_tree *tree;
    struct wm_account *account;
    struct wm_launch *launch; /* of a command only */
    struct wm_recorder *recorder;
    struct wm_analysis *analysis;
    struct wm_gaps *gaps;

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

int wm_tracker_new(const struct wm_tracker_options *options,
                   struct wm_tracker **ret_tracker, struct wm_error *err)
{
    static const struct wm_tracker_options defaults = { 0 };
    if (!options)
        options = &defaults;

    int64_t interval_ns = options->interval_ns ? options->interval_ns : DEFAULT_INTERVAL_NS;
    if (interval_ns < WM_INTERVAL_MIN_NS || interval_ns > WM_INTERVAL_MAX_NS)
        return wm_fail(err, WM_EINVAL, "an interval of %g s is not between 1 ms and 1 h",
                       (double)interval_ns / 1e9);
    if (!(options->expected_cores >= 0) || options->expected_cores > 1e6)
        return wm_fail(err, WM_EINVAL, "%g is no number of cores", options->expected_cores);

    struct wm_tracker *tracker = calloc(1, sizeof(*tracker));
    if (!tracker)
        return wm_fail(err, WM_ENOMEM, "tracker: out of memory");
    tracker->interval_ns = interval_ns;
    tracker->own_process = options->own_process;
    tracker->visible_to = options->visible_to;
    tracker->run.interval_ns = interval_ns;
    tracker->run.expected_cores = options->expected_cores;
    tracker->pid_fd = tracker->end_fd = -1;
    tracker->owner = getpid();
    tracker->result.exit_status = -1;
    tracker->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    int status = wm_ticker_new(&tracker->ticker, err);
    if (status == WM_OK && tracker->wake_fd < 0)
        status = wm_fail_errno(err, "tracker: eventfd");
    if (status == WM_OK && options->gpus) {
        tracker->gpus = strdup(options->gpus);
        if (!tracker->gpus)
            status = wm_fail(err, WM_ENOMEM, "tracker: out of memory");
    }
    if (status < 0) {
        wm_tracker_free(tracker);
        return status;
    }
    *ret_tracker = tracker;
    return WM_OK;
}

/* Back to what it was before the start; a command at its gate ends there. */
static void forget_target(struct wm_tracker *tracker)
{
    wm_recorder_close(tracker->recorder);
    wm_gaps_free(tracker->gaps);
    wm_account_free(tracker->account);
    wm_launch_free(tracker->launch);
    wm_tree_close(tracker->tree);
    if (tracker->pid_fd >= 0)
        close(tracker->pid_fd);
    tracker->recorder = NULL;
    tracker->gaps = NULL;
    tracker->account = NULL;
    tracker->launch = NULL;
    tracker->tree = NULL;
    tracker->pid_fd = tracker->end_fd = -1;
}

void wm_tracker_free(struct wm_tracker *tracker)
{
    if (!tracker || tracker->owner != getpid())
        return;
    if (tracker->state == WM_TRACKER_RUNNING || tracker->state == WM_TRACKER_ENDED)
        wm_tracker_stop(tracker, NULL);
    forget_target(tracker);
    wm_analysis_free(tracker->analysis);
    wm_ticker_free(tracker->ticker);
    if (tracker->wake_fd >= 0)
        close(tracker->wake_fd);
    wm_result_release(&tracker->result);
    wm_run_release(&tracker->run);
    free(tracker->record_target);
    wm_track_gpus_free(tracker->choice);
    free(tracker->gpus);
    free(tracker);
}

static int check_new(const struct wm_tracker *tracker, struct wm_error *err)
{
    if (tracker->state != WM_TRACKER_NEW)
        return wm_fail(err, WM_EINVAL, "this tracker has been started already");
    return WM_OK;
}

/* What the source called `name` is to be told of GPUs. */
static int choose_gpus(struct wm_tracker *tracker, const char *name, const char **ret_list,
                       struct wm_error *err)
{
    const char *words = tracker->gpus;

    if (!words || strcmp(words, "all") == 0 || strcmp(words, "none") == 0) {
        *ret_list = words;
        return WM_OK;
    }
    if (!tracker->choice) {
        int status = wm_track_gpus_new(words, tracker->visible_to, &tracker->choice, err);
        if (status < 0)
            return status;
        const char *remark = wm_track_gpus_remark(tracker->choice);
        tracker->run.gpu_remark = remark ? strdup(remark) : NULL;
        if (remark && !tracker->run.gpu_remark)
            return wm_fail(err, WM_ENOMEM, "tracker: out of memory");
    }
    return wm_track_gpus_of(tracker->choice, name, ret_list, err);
}

int wm_tracker_add(struct wm_tracker *tracker, const char *name, struct wm_error *err)
{
    struct wm_source_config config = { 0 };
    struct wm_source *source = NULL;
    struct wm_error why = { 0 };

    int status = check_new(tracker, err);
    if (status < 0)
        return status;
    if (strcmp(name, "tree") == 0)
        return WM_OK; /* it is always there */
    if (wm_ticker_has(tracker->ticker, name))
        return wm_fail(err, WM_EEXIST, "%s: this source has been added already", name);
    status = choose_gpus(tracker, name, &config.gpus, &why);
    if (status == WM_OK)
        status = wm_source_open(name, &config, &source, &why);
    if (status < 0) {
        wm_run_add_source(&tracker->run, name, false, why.text, NULL);
        return wm_fail(err, status, "%s", why.text);
    }
    status = wm_run_add_source(&tracker->run, name, true, wm_source_detail(source), err);
    if (status < 0) {
        wm_source_close(source);
        return status;
    }
    return wm_ticker_add(tracker->ticker, source, err);
}

int wm_tracker_add_all(struct wm_tracker *tracker, struct wm_error *err)
{
    const char *name;

    for (size_t i = 0; (name = wm_source_name(i)) != NULL; i++) {
        int status = wm_tracker_add(tracker, name, err);
        if (status == WM_EINVAL || status == WM_ENOMEM)
            return status;
    }
    return WM_OK;
}

int wm_tracker_note(struct wm_tracker *tracker, const char *key, const char *value,
                    struct wm_error *err)
{
    int status = check_new(tracker, err);
    return status < 0 ? status : wm_run_add_note(&tracker->run, key, value, err);
}

int wm_tracker_record(struct wm_tracker *tracker, const char *target,
                      enum wm_record_mode mode, struct wm_error *err)
{
    int status = check_new(tracker, err);
    if (status == WM_OK)
        status = wm_recorder_check(target, mode, err);
    if (status < 0)
        return status;

    char *copy = strdup(target);
    if (!copy)
        return wm_fail(err, WM_ENOMEM, "%s: out of memory", target);
    free(tracker->record_target);
    tracker->record_target = copy;
    tracker->record_mode = mode;
    return WM_OK;
}

static void keep_gap(void *context, const struct wm_gap *gap)
{
    struct wm_tracker *tracker = context;

    wm_analysis_gap(tracker->analysis, gap);
    if (tracker->recorder)
        wm_recorder_gap(tracker->recorder, gap);
}

static void hand_out(struct wm_tracker *tracker, int64_t when_ns)
{
    struct wm_tick tick = wm_ticker_tick(tracker->ticker, when_ns);

    for (size_t i = 0; i < tick.count; i++) {
        const struct wm_reading *reading = &tick.readings[i];
        const char *why = wm_gaps_opens(tracker->gaps, i, reading)
                              ? wm_ticker_why(tracker->ticker, i)
                              : NULL;
        wm_gaps_note(tracker->gaps, i, reading, when_ns, why, keep_gap, tracker);
    }
    wm_analysis_tick(tracker->analysis, &tick);
    if (tracker->recorder)
        wm_recorder_tick(tracker->recorder, &tick);
    tracker->result.ticks++;
}

/* What functions of the tracker have used up to now, and its sources' threads. */
static int64_t cost_so_far_ns(const struct wm_tracker *tracker)
{
    return tracker->cost_ns + wm_clock_thread_cpu_ns() - tracker->begun_ns +
           wm_ticker_cpu_ns(tracker->ticker);
}

static void begin_work(struct wm_tracker *tracker)
{
    tracker->begun_ns = wm_clock_thread_cpu_ns();
}

static void end_work(struct wm_tracker *tracker)
{
    tracker->cost_ns += wm_clock_thread_cpu_ns() - tracker->begun_ns;
}

static void read_first_sources(struct wm_tracker *tracker)
{
    wm_ticker_begin(tracker->ticker);
    wm_ticker_read_sources(tracker->ticker, WM_TICKER_NEW, PATIENCE_AT_ENDS_NS);
}

static void take_tick(struct wm_tracker *tracker, int64_t when_ns,
                      enum wm_ticker_demand demand, int64_t patience_ns)
{
    if (tracker->self)
        wm_ticker_set_own_cpu(tracker->ticker,
                              cost_so_far_ns(tracker) - tracker->self_base_ns);
    wm_ticker_begin(tracker->ticker);
    wm_ticker_read_tree(tracker->ticker);
    wm_ticker_read_sources(tracker->ticker, demand, patience_ns);
    hand_out(tracker, when_ns);
}

/* What all kinds of target have in common, once tree and account are there. */
static int prepare(struct wm_tracker *tracker, const char *mode, bool own_numbers,
                   struct wm_error *err)
{
    const struct wm_channel *channels;
    size_t count;
    struct wm_run *run = &tracker->run;

    int status = wm_ticker_set_target(tracker->ticker, tracker->tree, tracker->pid,
                                      own_numbers, tracker->account, err);
    if (status < 0)
        return status;
    channels = wm_ticker_channels(tracker->ticker, &count);

    run->mode = strdup(mode);
    if (!run->mode)
        return wm_fail(err, WM_ENOMEM, "tracker: out of memory");
    run->pid = tracker->pid;
    wm_ticker_count_gpus(tracker->ticker, &run->expected_gpu_count, &run->gpu_count);
    if (tracker->choice) /* sources without a chosen GPU are not there to be counted */
        run->gpu_count = (int)wm_track_gpus_present(tracker->choice);
    status = wm_run_describe(run, err);
    if (status == WM_OK)
        status = wm_gaps_new(count, &tracker->gaps, err);
    if (status == WM_OK)
        status = wm_analysis_new(run, channels, count, &tracker->analysis, err);
    if (status == WM_OK && tracker->record_target)
        status = wm_recorder_open(tracker->record_target, tracker->record_mode, run,
                                  channels, count, &tracker->recorder, err);
    return status;
}

static void set_running(struct wm_tracker *tracker, int64_t start_ns)
{
    tracker->start_ns = start_ns;
    tracker->due_ns = start_ns + tracker->interval_ns;
    tracker->state = WM_TRACKER_RUNNING;
}

/* `ret_released` says whether the command has been let go, so that a failure is
 * that of its execution. */
static int start_command(struct wm_tracker *tracker, const char *path, char *const argv[],
                         bool *ret_released, struct wm_error *err)
{
    int status = wm_run_set_command(&tracker->run, argv, err);
    if (status == WM_OK)
        status = wm_account_new(&tracker->account, err);
    if (status == WM_OK)
        status = wm_launch_new(path, argv, &tracker->launch, err);
    if (status < 0)
        return status;

    tracker->pid = wm_launch_command_pid(tracker->launch);
    tracker->pid_fd = (int)syscall(SYS_pidfd_open, tracker->pid, 0);
    tracker->end_fd =
        tracker->pid_fd >= 0 ? tracker->pid_fd : wm_launch_end_fd(tracker->launch);
    status = wm_tree_open("/proc", tracker->pid, &tracker->tree, err);
    if (status == WM_OK) {
        wm_tree_set_reaper(tracker->tree, wm_launch_launcher_pid(tracker->launch));
        status =
            wm_account_start_command(tracker->account, tracker->pid, tracker->tree, err);
    }
    if (status == WM_OK)
        status = prepare(tracker, "run", true, err);
    if (status < 0)
        return status;

    /* The machine's counters from just before the start, the processes from
     * just after exec: before, the command's memory is a copy of ours. */
    read_first_sources(tracker);
    int64_t start_ns = wm_clock_monotonic_ns();
    status = wm_launch_go(tracker->launch, err);
    if (status < 0)
        return status;
    *ret_released = true;
    status = wm_launch_wait_exec(tracker->launch, err);
    if (status < 0)
        return status;
    wm_tree_executed(tracker->tree);
    wm_ticker_read_tree(tracker->ticker);
    wm_ticker_start_cpu(tracker->ticker, start_ns);
    hand_out(tracker, start_ns);
    set_running(tracker, start_ns);
    return WM_OK;
}

int wm_tracker_start_command(struct wm_tracker *tracker, char *const argv[],
                             struct wm_error *err)
{
    char *path = NULL;

    int status = check_new(tracker, err);
    if (status == WM_OK && !argv[0])
        status = wm_fail(err, WM_EINVAL, "there is no command to start");
    if (status == WM_OK)
        status = wm_launch_find(argv[0], &path, err);
    if (status < 0)
        return status;

    bool released = false;
    begin_work(tracker);
    status = start_command(tracker, path, argv, &released, err);
    free(path);
    if (status < 0) {
        forget_target(tracker);
        tracker->state = WM_TRACKER_STOPPED;
    }

    /* These two speak of the command; here it is a recording's file, say. */
    if (!released && (status == WM_ENOENT || status == WM_EACCES)) {
        status = WM_EIO;
        if (err)
            err->status = status;
    }
    end_work(tracker);
    return status;
}

/* In another /proc than our own the pid is not one we could wait for; there
 * the ticks tell when the target is gone. */
static int start_running(struct wm_tracker *tracker, pid_t pid, const char *mode,
                         struct wm_error *err)
{
    const char *procfs = tracker->self ? "/proc" : wm_env("WATTMETER_PROCFS", "/proc");
    bool own = wm_file_is_same(procfs, "/proc");

    tracker->pid = pid;
    if (own && !tracker->self) {
        tracker->pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
        if (tracker->pid_fd < 0 && (errno == ESRCH || errno == EINVAL))
            return wm_fail(err, WM_ENOENT, "there is no process %d", (int)pid);
        tracker->end_fd = tracker->pid_fd;
    }

    int status = wm_tree_open(procfs, pid, &tracker->tree, err);
    if (status < 0)
        return status;
    wm_tree_refresh(tracker->tree);
    status = wm_account_new(&tracker->account, err);
    if (status == WM_OK)
        status = wm_account_start_tree(tracker->account, tracker->tree, own, err);
    if (status == WM_OK)
        status = wm_run_set_command_of(&tracker->run, procfs, pid, err);
    if (status == WM_OK)
        status = prepare(tracker, mode, own, err);
    if (status < 0)
        return status;

    /* Opening a recording takes its time; what was used meanwhile is not ours. */
    read_first_sources(tracker);
    int64_t start_ns = wm_clock_monotonic_ns();
    wm_tree_refresh(tracker->tree);
    wm_tree_rebase(tracker->tree);
    wm_account_rebase(tracker->account, tracker->tree);
    tracker->self_base_ns = cost_so_far_ns(tracker);
    wm_ticker_read_tree(tracker->ticker);
    wm_ticker_start_cpu(tracker->ticker, start_ns);
    hand_out(tracker, start_ns);
    set_running(tracker, start_ns);
    return WM_OK;
}

static int start_and_tidy(struct wm_tracker *tracker, pid_t pid, const char *mode,
                          struct wm_error *err)
{
    begin_work(tracker);
    int status = start_running(tracker, pid, mode, err);
    if (status < 0) {
        forget_target(tracker);
        tracker->state = WM_TRACKER_STOPPED;
    }
    end_work(tracker);
    return status;
}

int wm_tracker_start_pid(struct wm_tracker *tracker, pid_t pid, struct wm_error *err)
{
    int status = check_new(tracker, err);

    if (status == WM_OK && pid <= 0)
        status = wm_fail(err, WM_EINVAL, "%d is no process", (int)pid);
    return status < 0 ? status : start_and_tidy(tracker, pid, "attach", err);
}

int wm_tracker_start_self(struct wm_tracker *tracker, struct wm_error *err)
{
    int status = check_new(tracker, err);

    if (status < 0)
        return status;
    tracker->self = true;
    return start_and_tidy(tracker, getpid(), "self", err);
}

pid_t wm_tracker_pid(const struct wm_tracker *tracker)
{
    return tracker->pid;
}

int wm_tracker_signal(const struct wm_tracker *tracker, int signal_number)
{
    int result = -1;

    /* Through the descriptor, which can never mean a later process; without one
     * a command's pid is good as well until the launcher is asked to reap it. */
    if (tracker->pid_fd >= 0)
        result =
            (int)syscall(SYS_pidfd_send_signal, tracker->pid_fd, signal_number, NULL, 0);
    else if (tracker->launch && tracker->state == WM_TRACKER_RUNNING)
        result = kill(tracker->pid, signal_number);
    return result == 0 ? WM_OK : WM_ENOENT;
}

/* The deadlines stand fast: a tick that comes late moves no other one, and
 * those it made impossible are counted. */
static void take_due_tick(struct wm_tracker *tracker, int64_t now_ns)
{
    if (now_ns - tracker->due_ns > tracker->interval_ns / 2)
        tracker->result.late_ticks++;
    int64_t half_ns = tracker->interval_ns / 2;
    take_tick(tracker, now_ns, WM_TICKER_RECENT,
              half_ns < PATIENCE_NS ? half_ns : PATIENCE_NS);

    tracker->due_ns += tracker->interval_ns;
    int64_t after_ns = wm_clock_monotonic_ns();
    if (after_ns >= tracker->due_ns) {
        int64_t missed = (after_ns - tracker->due_ns) / tracker->interval_ns + 1;
        tracker->result.missed_ticks += (uint64_t)missed;
        tracker->due_ns += missed * tracker->interval_ns;
    }
}

static void take_last_tick(struct wm_tracker *tracker, int64_t now_ns)
{
    tracker->result.end_ns = now_ns;
    wm_account_want_exact(tracker->account);
    take_tick(tracker, now_ns, WM_TICKER_NEW, PATIENCE_AT_ENDS_NS);
    tracker->state = WM_TRACKER_ENDED;
}

static int poll_once(struct wm_tracker *tracker, int64_t limit_ns, struct wm_error *err)
{
    struct pollfd fds[] = { { .fd = tracker->end_fd, .events = POLLIN },
                            { .fd = tracker->wake_fd, .events = POLLIN } };
    int64_t wait_ns = tracker->due_ns - wm_clock_monotonic_ns();

    if (limit_ns >= 0 && wait_ns > limit_ns)
        wait_ns = limit_ns;
    if (wait_ns < 0)
        wait_ns = 0;
    struct timespec wait = { wait_ns / WM_NS_PER_S, wait_ns % WM_NS_PER_S };
    int ready = ppoll(fds, 2, &wait, NULL);
    int64_t now_ns = wm_clock_monotonic_ns();

    if (ready < 0 && errno != EINTR)
        return wm_fail_errno(err, "waiting for a tick");
    uint64_t wakes;
    if (ready > 0 && fds[1].revents && read(tracker->wake_fd, &wakes, sizeof(wakes)) < 0 &&
        errno != EAGAIN)
        return wm_fail_errno(err, "waiting for a tick: eventfd");
    if (ready > 0 && fds[0].revents) {
        take_last_tick(tracker, now_ns);
        return WM_TRACKER_ENDED;
    }
    if (now_ns >= tracker->due_ns)
        take_due_tick(tracker, now_ns);

    size_t alive = 1;
    if (tracker->end_fd < 0 && !tracker->self)
        wm_tree_processes(tracker->tree, &alive);
    if (alive == 0) {
        tracker->result.end_ns = now_ns;
        tracker->state = WM_TRACKER_ENDED;
    }
    return (int)tracker->state;
}

int wm_tracker_poll(struct wm_tracker *tracker, int timeout_ms, struct wm_error *err)
{
    if (tracker->state != WM_TRACKER_RUNNING)
        return (int)tracker->state;

    /* Where the whole process is ours its own clock tells the cost at the end. */
    if (!tracker->own_process)
        begin_work(tracker);
    int state = poll_once(tracker, timeout_ms < 0 ? -1 : timeout_ms * WM_NS_PER_MS, err);
    if (!tracker->own_process)
        end_work(tracker);
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
    sigset_t all, old;

    if (tracker->state != WM_TRACKER_RUNNING || tracker->has_thread)
        return wm_fail(err, WM_EINVAL, "this tracker is not in a state to run a thread");

    /* The program's signals are for its own threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int number = pthread_create(&tracker->thread, NULL, run_thread, tracker);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (number != 0) {
        errno = number;
        return wm_fail_errno(err, "starting the tracker's thread");
    }
    tracker->has_thread = true;
    return WM_OK;
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

/* -1, 0: not known, which is what an attached process's end always is. */
static void note_exit(struct wm_tracker *tracker, int wait_status)
{
    tracker->result.exit_status = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1;
    tracker->result.exit_signal = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;
}

static void end_command(struct wm_tracker *tracker)
{
    struct wm_launch_end end;
    struct wm_result *result = &tracker->result;

    if (!tracker->launch || wm_launch_reap(tracker->launch, &end, NULL) < 0)
        return;
    note_exit(tracker, end.wait_status);

    /* The tracker may have been held up by a slow driver when the end came. */
    if (end.ended_ns > tracker->start_ns && end.ended_ns < result->end_ns)
        result->end_ns = end.ended_ns;
    wm_account_finish(tracker->account, tracker->tree, end.children_seconds);
    result->tool_cpu_seconds += end.launcher_seconds;
    result->peak_rss_bytes = end.peak_rss_bytes;
}

/* WM_EIO where not all of it was recorded; the report says so too. */
static int end_recording(struct wm_tracker *tracker, struct wm_error *err)
{
    struct wm_error trouble = { 0 };
    struct wm_result *result = &tracker->result;

    if (!tracker->recorder)
        return WM_OK;
    if (wm_recorder_finish(tracker->recorder, result, &trouble) < 0 &&
        !result->recording_trouble[0])
        snprintf(result->recording_trouble, sizeof(result->recording_trouble), "%s",
                 trouble.text);
    wm_recorder_close(tracker->recorder);
    tracker->recorder = NULL;
    if (!result->recording_trouble[0])
        return WM_OK;
    return wm_fail(err, WM_EIO, "%s", result->recording_trouble);
}

/* Whether the target has ended since the last poll. */
static bool has_ended(const struct wm_tracker *tracker)
{
    struct pollfd end = { .fd = tracker->end_fd, .events = POLLIN };

    return tracker->state == WM_TRACKER_ENDED || (poll(&end, 1, 0) > 0 && end.revents);
}

int wm_tracker_stop(struct wm_tracker *tracker, struct wm_error *err)
{
    struct wm_result *result = &tracker->result;

    join_thread(tracker);
    if (tracker->state == WM_TRACKER_STOPPED)
        return WM_OK;
    if (tracker->state == WM_TRACKER_NEW)
        return wm_fail(err, WM_EINVAL, "this tracker has not been started");

    begin_work(tracker);
    result->exit_status = -1;
    result->peak_rss_bytes = -1;
    bool ended = has_ended(tracker);
    if (tracker->state == WM_TRACKER_RUNNING) {
        take_last_tick(tracker, wm_clock_monotonic_ns());

        /* What runs on has used its CPU time up to the reading of it. */
        if (!ended)
            result->end_ns = wm_ticker_tick(tracker->ticker, 0).readings[0].when_ns;
    }
    if (ended)
        end_command(tracker);
    tracker->state = WM_TRACKER_STOPPED;

    wm_gaps_close(tracker->gaps, keep_gap, tracker);
    double own_seconds =
        tracker->self ? (double)(cost_so_far_ns(tracker) - tracker->self_base_ns) / 1e9 : 0;
    int status = wm_result_take_tree(result, tracker->tree, tracker->account, tracker->pid,
                                     own_seconds, err);
    if (tracker->recorder) {
        wm_recorder_flush(tracker->recorder, result);
        tracker->cost_ns += wm_recorder_cpu_ns(tracker->recorder);
    }
    end_work(tracker);
    wm_result_take_cost(result, tracker->cost_ns + wm_ticker_cpu_ns(tracker->ticker),
                        tracker->own_process);
    int recorded = end_recording(tracker, err);
    forget_target(tracker);
    return status < 0 ? status : recorded;
}

int wm_tracker_exit_code(const struct wm_tracker *tracker)
{
    if (tracker->result.exit_signal > 0)
        return 128 + tracker->result.exit_signal;
    return tracker->result.exit_status;
}

int wm_tracker_report(const struct wm_tracker *tracker, struct wm_report **ret_report,
                      struct wm_error *err)
{
    if (tracker->state != WM_TRACKER_STOPPED || tracker->result.ticks == 0)
        return wm_fail(err, WM_EINVAL, "there is no report before the tracker is stopped");
    return wm_analysis_report(tracker->analysis, &tracker->result, ret_report, err);
}
