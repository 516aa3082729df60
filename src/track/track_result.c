/* SPDX-License-Identifier: Apache-2.0 */
/* track_result.c - what came of a session: CPU time, the processes and their peaks, the
 * tracker's own cost. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_clock.h"
#include "base/base_file.h"
#include "base/base_text.h"
#include "record/run/record_metrics.h"
#include "source/source_kernel_text.h"
#include "track/track_state.h"

/* How long processes that have outlived the target may take to end. */
#define GRACE_NS (20 * WM_NS_PER_MS)

/* Of those that go on. */
enum { SURVIVORS_NAMED = 3 };

/* The most processes that are reported one by one. */
enum { PEAK_MAX = 100 };

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
        return wm_fail_memory(err, "the processes' peaks");
    }
    for (size_t i = 0; i < count; i++)
        all[i] = i < here_count ? &here[i] : &gone[i - here_count];
    qsort(all, count, sizeof(*all), by_cost);

    for (size_t i = 0; i < count && i < PEAK_MAX; i++) {
        peaks[i] = (struct wm_process_peak) {
            .pid = all[i]->pid,
            .parent = all[i]->parent,
            .cpu_seconds = { all[i]->cpu_ns > 0, (double)used_ns(all[i]) / 1e9 },
            .max_memory_bytes = { all[i]->max_rss_bytes > 0,
                                  (double)all[i]->max_rss_bytes },
            .max_private_bytes = all[i]->max_private_bytes,
            .max_threads = all[i]->max_threads,
        };
        memcpy(peaks[i].name, all[i]->name, sizeof(peaks[i].name));
    }
    free(all);
    result->processes = peaks;
    result->process_count = count < PEAK_MAX ? count : PEAK_MAX;
    return WM_OK;
}

static int by_cpu_time(const void *a, const void *b)
{
    const struct wm_process_peak *x = a, *y = b;

    if (x->cpu_seconds.number != y->cpu_seconds.number)
        return x->cpu_seconds.number < y->cpu_seconds.number ? 1 : -1;
    if (x->max_memory_bytes.number != y->max_memory_bytes.number)
        return x->max_memory_bytes.number < y->max_memory_bytes.number ? 1 : -1;
    return x->pid - y->pid;
}

/* Its CPU time is the one that is reported of it, which may be by another clock; and the
 * kernel saw what memory it had between two ticks. */
static void complete_main(struct wm_result *result, pid_t main)
{
    const struct wm_known *bytes = &result->peak_rss_bytes;

    for (size_t i = 0; i < result->process_count; i++) {
        struct wm_process_peak *peak = &result->processes[i];
        if (peak->pid != main)
            continue;
        peak->cpu_seconds = result->cpu_main_seconds;
        if (result->peak_rss_is_main && bytes->known &&
            peak->max_memory_bytes.number < bytes->number)
            peak->max_memory_bytes = *bytes;
        break;
    }
    qsort(result->processes, result->process_count, sizeof(*result->processes),
          by_cpu_time);
}

static struct wm_memory_peak memory_peak(const struct wm_tree_peak *peak)
{
    return (struct wm_memory_peak) {
        .total = { true, (double)peak->total },
        .private_ = { true, (double)peak->private_ },
        .shared = { true, (double)peak->shared },
        .low = { true, (double)peak->low },
        .high = { true, (double)peak->high },
    };
}

/* What no parent waited for is in the CPU time, but not in what the launcher has reaped. */
#define MOST_UNREAPED 0.002
#define MOST_UNREAPED_SHARE 0.01

static void note_usage(struct wm_result *result, const struct wm_tree_census *census)
{
    struct wm_usage *usage = &result->usage;
    double reaped = usage->user_seconds.number + usage->system_seconds.number;
    double all = result->cpu_total_seconds.number;

    if (usage->user_seconds.known &&
        (census->has_unwaited || result->cpu_note[0] ||
         all - reaped > MOST_UNREAPED + MOST_UNREAPED_SHARE * all))
        snprintf(usage->note, sizeof(usage->note),
                 "child processes that no parent waited for may be missing");
}

/* CPU time and its method, the processes' peaks, what is uncertain. */
int wm_track_take_tree(struct wm_tracker *tracker, struct wm_error *err)
{
    double own_seconds = tracker->own_cpu, total, main;
    struct wm_result *result = &tracker->result;
    struct wm_tree_census census;

    wm_account_finish(tracker->account, tracker->tree, NAN, 0);
    wm_account_read(tracker->account, tracker->tree, &total, &main);
    total -= own_seconds < main ? own_seconds : main;
    main -= own_seconds < main ? own_seconds : main;
    result->cpu_total_seconds = (struct wm_known) { true, total };
    result->cpu_main_seconds = (struct wm_known) { true, main };
    result->cpu_descendants_seconds = (struct wm_known) { true, total - main };
    snprintf(result->cpu_method, sizeof(result->cpu_method), "%s",
             wm_account_method(tracker->account));
    snprintf(result->cpu_note, sizeof(result->cpu_note), "%s",
             wm_account_note(tracker->account));

    wm_tree_count(tracker->tree, &census);
    note_usage(result, &census);
    wm_events_take(&tracker->events, &wm_events_kernel, result);
    if (wm_tree_is_blind(tracker->tree))
        return WM_OK;
    result->processes_seen = census.seen;
    result->peak_rss_is_main = census.seen <= 1 && total - main < WM_ACCOUNT_NOTICEABLE;
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
    const struct wm_tree_peak *peaks = wm_tree_peaks(tracker->tree);
    result->main_peak = memory_peak(&peaks[WM_TREE_MAIN]);
    result->descendants_peak = memory_peak(&peaks[WM_TREE_DESCENDANTS]);
    result->tree_peak = memory_peak(&peaks[WM_TREE_ALL]);
    int status = take_peaks(result, tracker->tree, err);
    if (status == WM_OK)
        complete_main(result, tracker->pid);
    return status;
}

void wm_track_take_batch(struct wm_tracker *tracker)
{
    struct wm_result *result = &tracker->result;
    size_t count = tracker->batch ? tracker->batch->done : 0;
    struct wm_tracker_run run;
    double seconds = 0, memory = 0;

    if (count == 0)
        return;
    for (size_t i = 0; i < count && wm_tracker_batch_run(tracker, i, &run) == WM_OK; i++) {
        seconds += run.time_s;
        memory = fmax(memory, run.max_memory_bytes);
    }
    result->run_seconds = (struct wm_known) { true, seconds / (double)count };
    result->run_memory_bytes = (struct wm_known) { memory > 0, memory };
}

static bool outlives(const struct wm_tracker *tracker, const struct wm_process *process)
{
    return process->pid != tracker->pid && process->state != 'Z' && process->state != 'X';
}

size_t wm_track_count_survivors(const struct wm_tracker *tracker)
{
    size_t count, survivors = 0;
    const struct wm_process *here = wm_tree_processes(tracker->tree, &count);

    for (size_t i = 0; i < count; i++)
        survivors += outlives(tracker, &here[i]);
    return survivors;
}

/* What was told to end by the target's end takes a moment for it. */
static size_t await_survivors(struct wm_tracker *tracker)
{
    const struct timespec moment = { .tv_nsec = WM_NS_PER_MS };
    size_t count = wm_track_count_survivors(tracker);

    for (int64_t waited = 0; count > 0 && waited < GRACE_NS; waited += moment.tv_nsec) {
        nanosleep(&moment, NULL);
        wm_tree_refresh(tracker->tree);
        count = wm_track_count_survivors(tracker);
    }
    return count;
}

/* The first few names, each once, into `text`, and what they all have used. */
static double name_survivors(const struct wm_tracker *tracker, char *text, size_t size)
{
    const char *names[SURVIVORS_NAMED] = { NULL };
    size_t count, named = 0, length = 0;
    const struct wm_process *here = wm_tree_processes(tracker->tree, &count);
    int64_t total_ns = 0;

    for (size_t i = 0; i < count; i++) {
        bool is_new = outlives(tracker, &here[i]);
        if (is_new)
            total_ns += used_ns(&here[i]);
        for (size_t n = 0; n < named && n < SURVIVORS_NAMED && is_new; n++)
            is_new = strcmp(names[n], here[i].name) != 0;
        if (!is_new)
            continue;
        if (named < SURVIVORS_NAMED)
            names[named] = here[i].name;
        named++;
    }
    for (size_t n = 0; n < named && n < SURVIVORS_NAMED && length < size; n++)
        length += (size_t)snprintf(text + length, size - length, "%s%s", n > 0 ? ", " : "",
                                   names[n]);
    if (named > SURVIVORS_NAMED && length < size)
        snprintf(text + length, size - length, ", ...");
    return (double)total_ns / 1e9;
}

void wm_track_note_survivors(struct wm_tracker *tracker)
{
    struct wm_result *result = &tracker->result;
    char names[128] = "", text[sizeof(result->survivors_note)];

    if (tracker->self || wm_tree_is_blind(tracker->tree))
        return;
    size_t count = await_survivors(tracker);
    if (count == 0)
        return;
    if (result->usage.user_seconds.known)
        snprintf(result->usage.note, sizeof(result->usage.note),
                 "processes of the command still run");
    double seconds = name_survivors(tracker, names, sizeof(names));
    const char *them = count == 1 ? "it" : "them";
    bool is_short = seconds < 1;
    int length = snprintf(
        text, sizeof(text),
        "%zu process%s of the command still run%s (%s; %.3g %s of CPU time so far); the "
        "rest is not measured%s%s",
        count, count == 1 ? "" : "es", count == 1 ? "s" : "", names,
        is_short ? 1e3 * seconds : seconds, is_short ? "ms" : "s",
        tracker->launch ? "; --wait-all waits for " : "", tracker->launch ? them : "");
    wm_text_utf8(result->survivors_note, sizeof(result->survivors_note), text,
                 (size_t)length < sizeof(text) ? (size_t)length : sizeof(text) - 1);
}

/* Our own cost, or all that this process has used where it does nothing else. Adds to what
 * is there. */
void wm_track_take_cost(struct wm_tracker *tracker)
{
    struct wm_result *result = &tracker->result;
    char text[8192];
    uint64_t peak_bytes;

    result->tool_cpu_seconds.known = true;
    if (!tracker->own_process) {
        int64_t cost_ns = tracker->cost_ns + wm_source_set_cpu_ns(tracker->sources);
        result->tool_cpu_seconds.number += (double)cost_ns / 1e9;
        return;
    }
    result->tool_cpu_seconds.number +=
        (double)(wm_clock_process_cpu_ns() - tracker->process_base_ns) / 1e9;

    /* Not getrusage(): its high-water mark is inherited through exec, so that a large
     * launcher's memory would be reported as ours. */
    if (wm_file_read_at(AT_FDCWD, "/proc/self/status", text, sizeof(text)) > 0 &&
        wm_parse_status_kb(text, "VmHWM", &peak_bytes) == WM_OK)
        result->tool_max_rss_bytes = (struct wm_known) { true, (double)peak_bytes };
}

/* What was logged, of which the last may have come after the end. */
static void take_log(struct wm_tracker *tracker)
{
    struct wm_metrics *logged = &tracker->logged;

    pthread_mutex_lock(&tracker->log_lock);
    tracker->takes_log = false;
    for (size_t i = 0; i < logged->count; i++) {
        struct wm_metric *metric = &logged->all[i];
        for (size_t k = metric->count;
             k > 0 && metric->points[k - 1].when_ns > tracker->result.end_ns; k--)
            metric->points[k - 1].when_ns = tracker->result.end_ns;
    }
    tracker->result.metrics = *logged;
    *logged = (struct wm_metrics) { 0 };
    pthread_mutex_unlock(&tracker->log_lock);
}

/* What the target has reported of itself. */
int wm_track_take_metrics(struct wm_tracker *tracker, struct wm_error *err)
{
    const struct wm_metrics_window window = {
        .from_ns = tracker->start_ns,
        .to_ns = tracker->result.end_ns,
        .unix_at_zero_ns = tracker->run.anchor_unix_ns - tracker->run.anchor_ns,
    };

    take_log(tracker);
    if (!tracker->metrics_path)
        return WM_OK;
    return wm_metrics_read(tracker->metrics_path, &window, &tracker->result.metrics, err);
}
