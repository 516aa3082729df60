/* SPDX-License-Identifier: Apache-2.0 */
/* track.c - the tracker: what it is to measure, chosen before the start. */
#include "wattmeter/tracker.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "base/base_options.h"
#include "record/record_experiment.h"
#include "record/record_live.h"
#include "source/source_advice.h"
#include "source/source_traits.h"
#include "track/account/track_processes.h"
#include "track/account/track_shares.h"
#include "track/track_state.h"
#include "wattmeter/experiment.h"

#define DEFAULT_INTERVAL_NS (100 * WM_NS_PER_MS)

/* How long a start waits for all drivers together, and for each that is asked after that:
 * with what else there is to do less than a second. */
#define PATIENCE_NS (850 * WM_NS_PER_MS)
#define LEAST_PATIENCE_NS (50 * WM_NS_PER_MS)

int wm_tracker_new(const struct wm_tracker_options *given, struct wm_tracker **ret_tracker,
                   struct wm_error *err)
{
    struct wm_tracker_options own;
    const struct wm_tracker_options *options = &own;
    int status = wm_options_read(given, &own, sizeof(own), err);

    if (status < 0)
        return status;
    const struct wm_source_config config = { .gpus = options->gpus,
                                             .channels = options->channels,
                                             .cpu_watts = options->cpu_watts };

    int64_t interval_ns = options->interval_ns ? options->interval_ns : DEFAULT_INTERVAL_NS;
    if (interval_ns < WM_INTERVAL_MIN_NS || interval_ns > WM_INTERVAL_MAX_NS)
        return wm_fail(err, WM_EINVAL, "an interval of %g s is not between 1 ms and 1 h",
                       (double)interval_ns / 1e9);
    if (!(options->expected_cores >= 0) || options->expected_cores > 1e6)
        return wm_fail(err, WM_EINVAL, "%g is no number of cores", options->expected_cores);

    if (options->baseline_ns < 0 || options->baseline_ns > WM_BASELINE_MAX_NS)
        return wm_fail(err, WM_EINVAL, "a baseline of %g s is not between 0 and 1 h",
                       (double)options->baseline_ns / 1e9);

    uint32_t wanted_events;
    if (wm_events_parse(options->events, &wanted_events, err) < 0)
        return WM_EINVAL;

    struct wm_tracker *tracker = calloc(1, sizeof(*tracker));
    if (!tracker)
        return wm_fail_memory(err, "tracker");
    pthread_mutex_init(&tracker->lock, NULL);
    pthread_mutex_init(&tracker->stop_lock, NULL);
    pthread_mutex_init(&tracker->log_lock, NULL);
    tracker->baseline_ns = options->baseline_ns;
    tracker->baseline_anyway = options->baseline_anyway;
    tracker->interval_ns = interval_ns;
    tracker->own_process = options->own_process;
    tracker->wait_all = options->wait_all;
    tracker->is_silent = options->silent;
    tracker->waits_for_drivers = options->wait_for_drivers;
    tracker->wants_estimate = options->cpu_watts != NULL;
    tracker->wanted_events = wanted_events;
    tracker->run.interval_ns = interval_ns;
    tracker->run.expected_cores = options->expected_cores;
    tracker->pid_fd = tracker->end_fd = -1;
    tracker->owner = getpid();
    tracker->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    status = wm_source_set_new(&config, options->visible_to, &tracker->sources, err);
    if (status == WM_OK && tracker->wake_fd < 0)
        status = wm_fail_errno(err, "tracker: eventfd");
    if (status < 0) {
        wm_tracker_free(tracker);
        return status;
    }
    *ret_tracker = tracker;
    return WM_OK;
}

/* What a run leaves behind. */
static void forget_run(struct wm_tracker *tracker)
{
    wm_track_forget_target(tracker);
    wm_analysis_free(tracker->analysis);
    wm_recording_close(tracker->live);
    wm_track_forget_channels(tracker);
    free(tracker->late);
    wm_result_release(&tracker->result);
    wm_metrics_release(&tracker->logged);
    wm_batch_free(tracker->batch);
    free(tracker->record_target);
    free(tracker->metrics_path);
}

void wm_tracker_free(struct wm_tracker *tracker)
{
    if (!tracker || tracker->owner != getpid())
        return;
    if (tracker->state == WM_TRACKER_RUNNING || tracker->state == WM_TRACKER_ENDED)
        wm_tracker_stop(tracker, NULL);
    forget_run(tracker);
    wm_source_set_close(tracker->sources);
    if (tracker->wake_fd >= 0)
        close(tracker->wake_fd);
    wm_run_release(&tracker->run);
    pthread_mutex_destroy(&tracker->lock);
    pthread_mutex_destroy(&tracker->stop_lock);
    pthread_mutex_destroy(&tracker->log_lock);
    free(tracker);
}

/* What is known of the machine and its sources stays. */
static struct wm_tracker renewed(const struct wm_tracker *tracker)
{
    return (struct wm_tracker) {
        .own_process = tracker->own_process,
        .wait_all = tracker->wait_all,
        .is_silent = tracker->is_silent,
        .is_renewed = tracker->is_renewed || tracker->state == WM_TRACKER_STOPPED,
        .baseline_anyway = tracker->baseline_anyway,
        .baseline_ns = tracker->baseline_ns,
        .wanted_events = tracker->wanted_events,
        .run = tracker->run,
        .sources = tracker->sources,
        .pid_fd = -1,
        .end_fd = -1,
        .wake_fd = tracker->wake_fd,
        .interval_ns = tracker->interval_ns,
        .cost_ns = -wm_source_set_cpu_ns(tracker->sources),
        .counted_ns = tracker->counted_ns,
        .process_base_ns = wm_clock_process_cpu_ns(),
        .owner = tracker->owner,
    };
}

int wm_tracker_renew(struct wm_tracker *tracker, struct wm_error *err)
{
    uint64_t wakes;

    if (tracker->state != WM_TRACKER_NEW && tracker->state != WM_TRACKER_STOPPED)
        return wm_fail(err, WM_EINVAL, "this tracker has not been stopped");
    forget_run(tracker);
    wm_run_forget_target(&tracker->run);
    pthread_mutex_destroy(&tracker->lock);
    pthread_mutex_destroy(&tracker->stop_lock);
    pthread_mutex_destroy(&tracker->log_lock);
    *tracker = renewed(tracker);
    pthread_mutex_init(&tracker->lock, NULL);
    pthread_mutex_init(&tracker->stop_lock, NULL);
    pthread_mutex_init(&tracker->log_lock, NULL);
    /* A wake of the run before is none of the next. */
    if (read(tracker->wake_fd, &wakes, sizeof(wakes)) < 0 && errno != EAGAIN)
        return wm_fail_errno(err, "tracker: eventfd");
    return WM_OK;
}

int wm_track_check_new(const struct wm_tracker *tracker, struct wm_error *err)
{
    if (tracker->state != WM_TRACKER_NEW)
        return wm_fail(err, WM_EINVAL, "this tracker has been started already");
    return WM_OK;
}

/* Adds the command that gives access to a denied source to the source noted last. */
static void note_remedy(struct wm_run *run, const char *name)
{
    char command[WM_ADVICE_SIZE];

    if (wm_source_remedy(name, command))
        run->sources[run->source_count - 1].remedy = strdup(command);
}

/* Notes why this user may not read a part of a source that was opened. */
static void note_denied(struct wm_run *run, const struct wm_source_member *added)
{
    const char *denied = wm_source_denied(added->source);

    if (!denied)
        return;
    run->sources[run->source_count - 1].denied = strdup(denied);
    note_remedy(run, added->name);
}

/* Notes that the source was opened, and which of its GPUs it leaves out. */
static int note_source(struct wm_run *run, const struct wm_source_set *sources,
                       struct wm_error *err)
{
    const struct wm_source_member *added =
        wm_source_set_member(sources, wm_source_set_count(sources) - 1);
    struct wm_source_gpu_count gpus = wm_source_gpu_count(added->source);
    const char *detail = wm_source_detail(added->source);
    const char *left_out = wm_source_set_left_out(sources, added);
    char text[1200];

    int status = wm_run_add_source(run, added->name, true, detail, err);
    if (status == WM_OK)
        note_denied(run, added);
    if (status < 0 || !left_out)
        return status;
    snprintf(text, sizeof(text), "%zu of %zu %s not measured: %s", gpus.there - gpus.read,
             gpus.there, gpus.there - gpus.read == 1 ? "is" : "are", left_out);
    run->gpus_unknown = true;
    return wm_run_add_gpu_remark(run, text, err);
}

/* GPUs that nobody knows of are in no sum; one that is denied is reported as such. */
static void note_trouble(struct wm_run *run, const char *name, const struct wm_error *why)
{
    char text[1200];

    run->gpus_unknown = true;
    if (why->status == WM_EACCES)
        return;
    snprintf(text, sizeof(text), "those of %s are not measured: %s", name, why->text);
    wm_run_add_gpu_remark(run, text, NULL);
}

int wm_track_note_source(struct wm_tracker *tracker, const char *name, int status,
                         const struct wm_error *why, struct wm_error *err)
{
    if (status < 0) {
        if (status != WM_EEXIST &&
            wm_run_add_source(&tracker->run, name, false, why->text, NULL) == WM_OK &&
            status == WM_EACCES)
            note_remedy(&tracker->run, name);
        if (status != WM_ENODEV && status != WM_EINVAL && status != WM_EEXIST &&
            wm_source_traits(name)->has_gpus)
            note_trouble(&tracker->run, name, why);
        return wm_fail(err, status, "%s", why->text);
    }
    status = note_source(&tracker->run, tracker->sources, err);
    if (status < 0)
        wm_source_set_drop_last(tracker->sources);
    return status;
}

/* Waits for its driver until `deadline_ns`; 0: as long as any is waited for. */
static int add(struct wm_tracker *tracker, const char *name, int64_t deadline_ns,
               struct wm_error *err)
{
    struct wm_error why = { 0 };

    int status = wm_track_check_new(tracker, err);
    if (status < 0)
        return status;
    if (wm_source_traits(name)->is_of_every_target)
        return WM_OK; /* it is always there */
    status = deadline_ns == 0
                 ? wm_source_set_open(tracker->sources, name, &why)
                 : wm_source_set_open_until(tracker->sources, name, deadline_ns, &why);
    return status > 0 ? WM_OK : wm_track_note_source(tracker, name, status, &why, err);
}

int wm_tracker_add(struct wm_tracker *tracker, const char *name, struct wm_error *err)
{
    return add(tracker, name, 0, err);
}

static int64_t find_deadline(int64_t begun_ns)
{
    int64_t all_ns = begun_ns + PATIENCE_NS;
    int64_t least_ns = wm_clock_monotonic_ns() + LEAST_PATIENCE_NS;

    return all_ns > least_ns ? all_ns : least_ns;
}

int wm_track_open_all(struct wm_tracker *tracker, struct wm_error *err)
{
    int64_t begun_ns = wm_clock_monotonic_ns();
    bool waits = tracker->waits_for_drivers;
    const char *name;

    for (size_t i = 0; (name = wm_source_name(i)) != NULL; i++) {
        if (wm_source_traits(name)->cpu_sensor == WM_SENSOR_MODEL &&
            !tracker->wants_estimate && wm_source_set_has_cpu_energy(tracker->sources))
            continue;
        int status = add(tracker, name, waits ? 0 : find_deadline(begun_ns), err);
        if (status == WM_EINVAL || status == WM_ENOMEM)
            return status;
    }
    tracker->opens_at_start = false;
    return WM_OK;
}

int wm_tracker_add_all(struct wm_tracker *tracker, struct wm_error *err)
{
    int status = wm_track_check_new(tracker, err);

    tracker->opens_at_start = tracker->own_process && !tracker->waits_for_drivers;
    return status < 0 || tracker->opens_at_start ? status : wm_track_open_all(tracker, err);
}

int wm_tracker_note(struct wm_tracker *tracker, const char *key, const char *value,
                    struct wm_error *err)
{
    int status = wm_track_check_new(tracker, err);
    return status < 0 ? status : wm_run_add_note(&tracker->run, key, value, err);
}

static int keep_path(char **copy, const char *path, struct wm_error *err)
{
    char *made = strdup(path);

    if (!made)
        return wm_fail_memory(err, path);
    free(*copy);
    *copy = made;
    return WM_OK;
}

int wm_tracker_record(struct wm_tracker *tracker, const char *target,
                      enum wm_record_mode mode, struct wm_error *err)
{
    int status = wm_track_check_new(tracker, err);
    if (status == WM_OK)
        status = wm_recorder_check(target, mode, err);
    if (status == WM_OK)
        status = keep_path(&tracker->record_target, target, err);
    if (status == WM_OK)
        tracker->record_mode = mode;
    return status;
}

int wm_tracker_experiment(struct wm_tracker *tracker,
                          const struct wm_experiment_setup *given, struct wm_error *err)
{
    struct wm_experiment_setup own;
    const struct wm_experiment_setup *setup = &own;
    char *card = NULL, *path = NULL;

    int status = wm_options_read(given, &own, sizeof(own), err);
    if (status == WM_OK)
        status = wm_track_check_new(tracker, err);
    if (status == WM_OK && setup->model_card)
        status = wm_model_card_load(setup->model_card, &card, err);
    if (status == WM_OK)
        status = wm_experiment_make_place(setup->target, setup->name, &path, err);
    if (status == WM_OK)
        status = wm_tracker_record(tracker, path, WM_RECORD_APPEND, err);
    if (status == WM_OK)
        status = wm_tracker_note(tracker, WM_NOTE_EXPERIMENT, setup->name, err);
    if (status == WM_OK && setup->description)
        status = wm_tracker_note(tracker, WM_NOTE_DESCRIPTION, setup->description, err);
    if (status == WM_OK && card)
        status = wm_tracker_note(tracker, WM_NOTE_MODEL, card, err);
    free(path);
    free(card);
    return status;
}

int wm_tracker_metrics(struct wm_tracker *tracker, const char *path, struct wm_error *err)
{
    int status = wm_track_check_new(tracker, err);
    return status < 0 ? status : keep_path(&tracker->metrics_path, path, err);
}

int wm_tracker_log(struct wm_tracker *tracker, const char *name, double value,
                   int64_t when_ns, struct wm_error *err)
{
    if (when_ns == 0)
        when_ns = wm_clock_monotonic_ns();
    pthread_mutex_lock(&tracker->log_lock);
    int status = tracker->takes_log
                     ? wm_metrics_add(&tracker->logged, name, when_ns, value, err)
                     : wm_fail(err, WM_EINVAL, "nothing is being measured");
    pthread_mutex_unlock(&tracker->log_lock);
    return status;
}

pid_t wm_tracker_pid(const struct wm_tracker *tracker)
{
    return tracker->pid;
}

const char *wm_tracker_regions(const struct wm_tracker *tracker)
{
    return tracker->regions ? wm_track_regions_path(tracker->regions) : NULL;
}

void wm_tracker_break_off(struct wm_tracker *tracker)
{
    tracker->result.is_broken_off = true;
}

int wm_tracker_signal(const struct wm_tracker *tracker, int signal_number)
{
    int result = -1;

    /* Through the descriptor, which can never mean a later process; without one
     * a command's pid is good as well until the launcher is asked to reap it. */
    if (tracker->pid_fd >= 0)
        result =
            (int)syscall(SYS_pidfd_send_signal, tracker->pid_fd, signal_number, NULL, 0);
    else if (tracker->launch && tracker->state == WM_TRACKER_RUNNING &&
             wm_tracker_exit_code(tracker) < 0)
        result = kill(tracker->pid, signal_number);
    return result == 0 ? WM_OK : WM_ENOENT;
}

int wm_tracker_exit_code(const struct wm_tracker *tracker)
{
    if (tracker->result.exit_signal > 0)
        return 128 + tracker->result.exit_signal;
    return tracker->result.exit_status.known ? (int)tracker->result.exit_status.number : -1;
}

int wm_tracker_exit_signal(const struct wm_tracker *tracker)
{
    return tracker->result.exit_signal;
}

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static struct wm_tracker_run only_run(const struct wm_tracker *tracker)
{
    const struct wm_usage *usage = &tracker->result.usage;

    return (struct wm_tracker_run) {
        .time_s = (double)(tracker->result.end_ns - tracker->start_ns) / 1e9,
        .user_s = usage->user_seconds.number,
        .system_s = usage->system_seconds.number,
        .exit_code = wm_tracker_exit_code(tracker),
        .voluntary_switches = usage->voluntary_switches.number,
        .involuntary_switches = usage->involuntary_switches.number,
        .minor_faults = usage->minor_faults.number,
        .major_faults = usage->major_faults.number,
    };
}

static struct wm_tracker_run run_of(const struct wm_batch_run *run, long inherited_kb)
{
    const struct rusage *usage = &run->usage;
    int status = run->wait_status;

    return (struct wm_tracker_run) {
        .time_s = (double)(run->end_ns - run->begin_ns) / 1e9,
        .user_s = seconds_of(usage->ru_utime),
        .system_s = seconds_of(usage->ru_stime),
        .max_memory_bytes =
            usage->ru_maxrss > inherited_kb ? (double)usage->ru_maxrss * 1024 : 0,
        .exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status),
        .voluntary_switches = (double)usage->ru_nvcsw,
        .involuntary_switches = (double)usage->ru_nivcsw,
        .minor_faults = (double)usage->ru_minflt,
        .major_faults = (double)usage->ru_majflt,
    };
}

int wm_tracker_batch_run(const struct wm_tracker *tracker, size_t index,
                         struct wm_tracker_run *ret_run)
{
    const struct wm_batch *batch = tracker->batch;

    if (!batch && index == 0 && wm_tracker_exit_code(tracker) >= 0) {
        *ret_run = only_run(tracker);
        return WM_OK;
    }
    if (!batch || index >= batch->done)
        return WM_ENOENT;
    *ret_run = run_of(&batch->runs[index], batch->inherited_kb);
    return WM_OK;
}

/* Before this nothing has been handed out. */
static int check_begun(const struct wm_tracker *tracker, const char *what,
                       struct wm_error *err)
{
    if (tracker->result.ticks > 0)
        return WM_OK;
    return wm_fail(err, WM_EINVAL, "there %s before %s", what,
                   tracker->late ? "the drivers of the GPUs have started, or are given up"
                                 : "the tracker's start");
}

int wm_tracker_live(struct wm_tracker *tracker, struct wm_recording **ret_live,
                    struct wm_error *err)
{
    pthread_mutex_lock(&tracker->lock);
    int status = check_begun(tracker, "are no samples", err);
    if (status == WM_OK && !tracker->live)
        status = wm_live_open(&tracker->run, tracker->channels, tracker->channel_count,
                              &tracker->live, err);
    if (status == WM_OK)
        *ret_live = tracker->live;
    pthread_mutex_unlock(&tracker->lock);
    return status;
}

void wm_tracker_processes(struct wm_tracker *tracker, const struct wm_report *report,
                          struct wm_tracker_process *ret_processes, size_t room,
                          size_t *ret_count)
{
    *ret_count = 0;
    pthread_mutex_lock(&tracker->lock);
    bool is_ready = tracker->shares && wm_shares_keep_uses(tracker->shares, NULL) == WM_OK;
    if (is_ready && !tracker->processes)
        is_ready = wm_track_processes_new(&tracker->processes, NULL) == WM_OK;
    if (is_ready)
        wm_track_processes_list(tracker->processes, tracker->tree, tracker->shares, report,
                                ret_processes, room, ret_count);
    pthread_mutex_unlock(&tracker->lock);
    if (is_ready && *ret_count <= room)
        wm_track_processes_identify(tracker->processes, tracker->tree, ret_processes);
}

int wm_tracker_report(const struct wm_tracker *tracker, struct wm_report **ret_report,
                      struct wm_error *err)
{
    /* A report changes nothing of the tracker, but waits until nothing else does. */
    pthread_mutex_t *lock = (pthread_mutex_t *)&tracker->lock;

    pthread_mutex_lock(lock);
    bool is_stopped = tracker->state == WM_TRACKER_STOPPED;
    int status = check_begun(tracker, "is no report", err);
    if (status == WM_OK)
        status = wm_analysis_report(tracker->analysis, is_stopped ? &tracker->result : NULL,
                                    ret_report, err);
    pthread_mutex_unlock(lock);
    return status;
}
