/* SPDX-License-Identifier: Apache-2.0 */
/* view_watch_processes.c - the table of processes, and what each uses now. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "view/watch/view_watch_data.h"

static int by_pid(const void *a, const void *b)
{
    const struct wm_watch_process *x = a, *y = b;

    return x->process.pid < y->process.pid ? -1 : x->process.pid > y->process.pid;
}

static int by_number(double x, double y, const void *a, const void *b)
{
    return x > y ? -1 : x < y ? 1 : by_pid(a, b);
}

static int by_time(const void *a, const void *b)
{
    const struct wm_watch_process *x = a, *y = b;

    return by_number(x->process.cpu_s, y->process.cpu_s, a, b);
}

static int by_memory(const void *a, const void *b)
{
    const struct wm_watch_process *x = a, *y = b;

    return by_number(x->process.memory_bytes, y->process.memory_bytes, a, b);
}

static int by_cpu(const void *a, const void *b)
{
    const struct wm_watch_process *x = a, *y = b;
    double own = isnan(x->cores) ? 0 : x->cores, other = isnan(y->cores) ? 0 : y->cores;

    return own != other ? by_number(own, other, a, b) : by_time(a, b);
}

void wm_watch_processes_sort(struct wm_watch_processes *processes,
                             enum wm_watch_order order)
{
    static int (*const by[])(const void *, const void *) = {
        [WM_WATCH_BY_CPU] = by_cpu,
        [WM_WATCH_BY_TIME] = by_time,
        [WM_WATCH_BY_MEMORY] = by_memory,
        [WM_WATCH_BY_PID] = by_pid,
    };

    if (processes->count > 0)
        qsort(processes->all, processes->count, sizeof(*processes->all), by[order]);
}

void wm_watch_processes_take(struct wm_watch_processes *processes,
                             const struct wm_watch_news *news)
{
    double seconds = (double)(news->when_ns - processes->when_ns) / 1e9;

    struct wm_watch_process *all = calloc(news->process_count + 1, sizeof(*all));
    if (!all)
        return;
    wm_watch_processes_sort(processes, WM_WATCH_BY_PID);
    for (size_t i = 0; i < news->process_count; i++) {
        all[i].process = news->processes[i];
        const struct wm_watch_process *before = NULL;
        if (processes->count > 0)
            before =
                bsearch(&all[i], processes->all, processes->count, sizeof(*all), by_pid);
        double used = before ? all[i].process.cpu_s - before->process.cpu_s : NAN;
        /* Another process may have got its number. */
        all[i].cores = seconds > 0 && used >= 0 ? used / seconds : NAN;
    }
    free(processes->all);
    *processes = (struct wm_watch_processes) { all, news->process_count, news->when_ns };
}

void wm_watch_processes_release(struct wm_watch_processes *processes)
{
    free(processes->all);
    *processes = (struct wm_watch_processes) { 0 };
}
