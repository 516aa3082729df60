/* SPDX-License-Identifier: Apache-2.0 */
/* track.c - the tracker: what it is to measure, chosen before the start, and what
 * came of it. */
#include "wattmeter/tracker.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "base/base_file.h"
#include "record/run/record_experiment.h"
#include "source/source_kernel_text.h"
#include "source/source_traits.h"
#include "track/account/track_shares.h"
#include "track/track_state.h"
#include "wattmeter/experiment.h"

#define DEFAULT_INTERVAL_NS (100 * WM_NS_PER_MS)

/* Most processes that are told one by one. */
enum { PEAK_MAX = 100 };

/* A descendant that used less than this did not exist: making a process alone
 * takes several times as much. */
#define NOTICEABLE_SECONDS 50e-6

int wm_tracker_new(const struct wm_tracker_options *options,
                   struct wm_tracker **ret_tracker, struct wm_error *err)
{
    static const struct wm_tracker_options defaults = { 0 };
    if (!options)
        options = &defaults;
    const struct wm_source_config config = { .gpus = options->gpus,
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

    struct wm_tracker *tracker = calloc(1, sizeof(*tracker));
    if (!tracker)
        return wm_fail(err, WM_ENOMEM, "tracker: out of memory");
    tracker->baseline_ns = options->baseline_ns;
    tracker->interval_ns = interval_ns;
    tracker->own_process = options->own_process;
    tracker->wants_estimate = options->cpu_watts != NULL;
    tracker->run.interval_ns = interval_ns;
    tracker->run.expected_cores = options->expected_cores;
    tracker->pid_fd = tracker->end_fd = -1;
    tracker->owner = getpid();
    tracker->result.exit_status = -1;
    tracker->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    int status = wm_source_set_new(&config, options->visible_to, &tracker->sources, err);
    if (status == WM_OK && tracker->wake_fd < 0)
        status = wm_fail_errno(err, "tracker: eventfd");
    if (status < 0) {
        wm_tracker_free(tracker);
        return status;
    }
    *ret_tracker = tracker;
    return WM_OK;
}

void wm_tracker_free(struct wm_tracker *tracker)
{
    if (!tracker || tracker->owner != getpid())
        return;
    if (tracker->state == WM_TRACKER_RUNNING || tracker->state == WM_TRACKER_ENDED)
        wm_tracker_stop(tracker, NULL);
    wm_track_forget_target(tracker);
    wm_analysis_free(tracker->analysis);
    wm_shares_free(tracker->shares);
    free(tracker->channels);
    free(tracker->readings);
    free(tracker->gaps);
    wm_source_set_close(tracker->sources);
    if (tracker->wake_fd >= 0)
        close(tracker->wake_fd);
    wm_result_release(&tracker->result);
    wm_run_release(&tracker->run);
    free(tracker->record_target);
    free(tracker->metrics_path);
    free(tracker);
}

int wm_track_check_new(const struct wm_tracker *tracker, struct wm_error *err)
{
    if (tracker->state != WM_TRACKER_NEW)
        return wm_fail(err, WM_EINVAL, "this tracker has been started already");
    return WM_OK;
}

/* Notes that the source was opened, and which of its GPUs it leaves out. */
static int note_source(struct wm_run *run, const struct wm_source_set *sources,
                       struct wm_error *err)
{
    const struct wm_source_member *added =
        wm_source_set_member(sources, wm_source_set_count(sources) - 1);
    struct wm_source_gpu_count gpus = wm_source_gpu_count(added->source);
    const char *detail = wm_source_detail(added->source);
    char text[1200];

    int status = wm_run_add_source(run, added->name, true, detail, err);
    if (status < 0 || !wm_source_set_lacks_gpus(sources, added))
        return status;
    snprintf(text, sizeof(text), "%zu of %zu %s not measured: %s", gpus.there - gpus.read,
             gpus.there, gpus.there - gpus.read == 1 ? "is" : "are",
             detail ? detail : "no answer");
    return wm_run_add_gpu_remark(run, text, err);
}

int wm_tracker_add(struct wm_tracker *tracker, const char *name, struct wm_error *err)
{
    struct wm_error why = { 0 };

    int status = wm_track_check_new(tracker, err);
    if (status < 0)
        return status;
    if (wm_source_traits(name)->is_of_every_target)
        return WM_OK; /* it is always there */
    status = wm_source_set_open(tracker->sources, name, &why);
    if (status < 0) {
        if (status != WM_EEXIST)
            wm_run_add_source(&tracker->run, name, false, why.text, NULL);
        if (status != WM_ENODEV && status != WM_EINVAL && status != WM_EEXIST &&
            wm_source_traits(name)->has_gpus)
            tracker->run.gpus_unknown = true;
        return wm_fail(err, status, "%s", why.text);
    }
    status = note_source(&tracker->run, tracker->sources, err);
    if (status < 0)
        wm_source_set_drop_last(tracker->sources);
    return status;
}

int wm_tracker_add_all(struct wm_tracker *tracker, struct wm_error *err)
{
    const char *name;

    for (size_t i = 0; (name = wm_source_name(i)) != NULL; i++) {
        if (wm_source_traits(name)->energy_rank == WM_ENERGY_MODEL &&
            !tracker->wants_estimate && wm_source_set_has_cpu_energy(tracker->sources))
            continue;
        int status = wm_tracker_add(tracker, name, err);
        if (status == WM_EINVAL || status == WM_ENOMEM)
            return status;
    }
    return WM_OK;
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
        return wm_fail(err, WM_ENOMEM, "%s: out of memory", path);
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
                          const struct wm_experiment_setup *setup, struct wm_error *err)
{
    char *card = NULL, *path = NULL;

    int status = wm_track_check_new(tracker, err);
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

static int64_t used_ns(const struct wm_process *process)
{
    return process->cpu_ns - process->cpu_base_ns;
}

static int by_cost(const void *a, const void *b)
{
    const struct wm_process *const *x = a, *const *y = b;

    if (used_ns(*x) != used_ns(*y))
        return used_ns(*x) < used_ns(*y) ? 1 : -1;
    if ((*x)->max_rss_bytes != (*y)->max_rss_bytes)
        return (*x)->max_rss_bytes < (*y)->max_rss_bytes ? 1 : -1;
    return (*x)->pid - (*y)->pid;
}

static int take_peaks(struct wm_result *result, const struct wm_tree *tree,
                      struct wm_error *err)
{
    size_t here_count, gone_count;
    const struct wm_process *here = wm_tree_processes(tree, &here_count);
    const struct wm_process *gone = wm_tree_gone(tree, &gone_count);
    size_t count = here_count + gone_count;

    const struct wm_process **all = calloc(count + 1, sizeof(*all));
    struct wm_process_peak *peaks = calloc(PEAK_MAX, sizeof(*peaks));
    if (!all || !peaks) {
        free(all);
        free(peaks);
        return wm_fail(err, WM_ENOMEM, "the processes' peaks: out of memory");
    }
    for (size_t i = 0; i < count; i++)
        all[i] = i < here_count ? &here[i] : &gone[i - here_count];
    qsort(all, count, sizeof(*all), by_cost);

    for (size_t i = 0; i < count && i < PEAK_MAX; i++) {
        peaks[i] = (struct wm_process_peak) {
            .pid = all[i]->pid,
            .parent = all[i]->parent,
            .cpu_seconds = (double)used_ns(all[i]) / 1e9,
            .max_memory_bytes = (double)all[i]->max_rss_bytes,
            .max_private_bytes = (double)all[i]->max_private_bytes,
            .max_threads = all[i]->max_threads,
        };
        memcpy(peaks[i].name, all[i]->name, sizeof(peaks[i].name));
    }
    free(all);
    result->processes = peaks;
    result->process_count = count < PEAK_MAX ? count : PEAK_MAX;
    return WM_OK;
}

/* The kernel saw what fell between two ticks. */
static void raise_main_peak(struct wm_result *result, pid_t main)
{
    for (size_t i = 0; i < result->process_count; i++) {
        if (result->processes[i].pid == main && result->peak_rss_is_main &&
            result->processes[i].max_memory_bytes < result->peak_rss_bytes)
            result->processes[i].max_memory_bytes = result->peak_rss_bytes;
    }
}

int wm_track_take_tree(struct wm_tracker *tracker, struct wm_error *err)
{
    double own_seconds = wm_track_own_seconds(tracker), total, main;
    struct wm_result *result = &tracker->result;
    struct wm_tree_census census;

    wm_account_read(tracker->account, tracker->tree, &total, &main);
    total -= own_seconds < main ? own_seconds : main;
    main -= own_seconds < main ? own_seconds : main;
    result->cpu_total_seconds = total;
    result->cpu_main_seconds = main;
    result->cpu_descendants_seconds = total - main;
    snprintf(result->cpu_method, sizeof(result->cpu_method), "%s",
             wm_account_method(tracker->account));

    wm_tree_count(tracker->tree, &census);
    result->processes_seen = census.seen;
    result->peak_rss_is_main = census.seen <= 1 && total - main < NOTICEABLE_SECONDS;
    if (census.unlisted > 0)
        snprintf(
            result->memory_note, sizeof(result->memory_note),
            "there were more processes than could be followed one by one; the memory of "
            "the rest is missing");
    else if (census.denied > 0)
        snprintf(
            result->memory_note, sizeof(result->memory_note),
            "%llu of the processes may not be examined; their anonymous memory stands for "
            "their private memory",
            (unsigned long long)census.denied);
    int status = take_peaks(result, tracker->tree, err);
    raise_main_peak(result, tracker->pid);
    return status;
}

void wm_track_take_cost(struct wm_tracker *tracker)
{
    struct wm_result *result = &tracker->result;
    char text[8192];
    uint64_t peak_bytes;

    result->tool_max_rss_bytes = -1;
    if (!tracker->own_process) {
        int64_t cost_ns = tracker->cost_ns + wm_source_set_cpu_ns(tracker->sources);
        result->tool_cpu_seconds += (double)cost_ns / 1e9;
        return;
    }
    result->tool_cpu_seconds += (double)wm_clock_process_cpu_ns() / 1e9;

    /* Not getrusage(): its high-water mark is inherited through exec, so that a
     * large launcher's memory would be told as ours. */
    if (wm_file_read_at(AT_FDCWD, "/proc/self/status", text, sizeof(text)) > 0 &&
        wm_parse_status_kb(text, "VmHWM", &peak_bytes) == WM_OK)
        result->tool_max_rss_bytes = (double)peak_bytes;
}
