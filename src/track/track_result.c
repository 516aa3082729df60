/* SPDX-License-Identifier: Apache-2.0 */
/* track_result.c - sums up a session that is over. */
#include "track/track_result.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_clock.h"
#include "base/base_file.h"
#include "source/source_kernel_text.h"

/* Most processes that are told one by one. */
enum { PEAK_MAX = 100 };

/* A descendant that used less than this did not exist: making a process alone
 * takes several times as much. */
#define NOTICEABLE_SECONDS 50e-6

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

int wm_result_take_tree(struct wm_result *result, const struct wm_tree *tree,
                        struct wm_account *account, pid_t main_pid, double own_seconds,
                        struct wm_error *err)
{
    struct wm_tree_census census;
    double total, main;

    wm_account_read(account, tree, &total, &main);
    total -= own_seconds < main ? own_seconds : main;
    main -= own_seconds < main ? own_seconds : main;
    result->cpu_total_seconds = total;
    result->cpu_main_seconds = main;
    result->cpu_descendants_seconds = total - main;
    snprintf(result->cpu_method, sizeof(result->cpu_method), "%s",
             wm_account_method(account));

    wm_tree_count(tree, &census);
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
    int status = take_peaks(result, tree, err);
    raise_main_peak(result, main_pid);
    return status;
}

void wm_result_take_cost(struct wm_result *result, int64_t cost_ns, bool own_process)
{
    char text[8192];
    uint64_t peak_bytes;

    result->tool_max_rss_bytes = -1;
    if (!own_process) {
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
