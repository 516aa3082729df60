/* SPDX-License-Identifier: Apache-2.0 */
/* view_watch_processes.c - the table of processes, without the screen. */
#include "view/watch/view_watch_processes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_pid(const void *a, const void *b)
{
    const struct wm_watch_process *x = a, *y = b;

    return x->process.pid < y->process.pid ? -1 : x->process.pid > y->process.pid;
}

/* What is not known ranks below 0. */
static double known_or(double value, double other)
{
    return isnan(value) ? other : value;
}

static int by_rank(const void *a, const void *b)
{
    const struct wm_watch_process *x = a, *y = b;
    double cores = known_or(x->cores, 0), other = known_or(y->cores, 0);

    if (x->rank != y->rank)
        return x->rank > y->rank ? -1 : 1;
    if (cores != other)
        return cores > other ? -1 : 1;
    if (x->process.cpu_s != y->process.cpu_s)
        return x->process.cpu_s > y->process.cpu_s ? -1 : 1;
    return by_pid(a, b);
}

static double rank_of(const struct wm_watch_process *own, enum wm_watch_order order)
{
    const double values[WM_WATCH_ORDERS] = {
        [WM_WATCH_BY_POWER] = own->process.power_w,
        [WM_WATCH_BY_ENERGY] = own->process.energy_j,
        [WM_WATCH_BY_CPU] = own->cores,
        [WM_WATCH_BY_GPU] = own->process.gpus > 0 ? own->process.gpu_use : NAN,
        [WM_WATCH_BY_GPU_MEMORY] =
            own->process.gpus > 0 ? own->process.gpu_memory_bytes : NAN,
        [WM_WATCH_BY_MEMORY] = own->process.memory_bytes,
        [WM_WATCH_BY_TIME] = own->process.cpu_s,
        [WM_WATCH_BY_PID] = -(double)own->process.pid,
    };

    return order == WM_WATCH_BY_PID ? values[order] : known_or(values[order], -1);
}

/* The filter's text is in its command, or its name. */
static bool is_shown(const struct wm_watch_processes *processes,
                     const struct wm_watch_process *own)
{
    return !processes->filter[0] || strcasestr(own->process.command, processes->filter) ||
           strcasestr(own->process.name, processes->filter);
}

/* Where a process stands among those sorted by PID; count: nowhere. */
static size_t find_pid(const struct wm_watch_process *all, size_t count, pid_t pid)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (all[middle].process.pid < pid)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && all[low].process.pid == pid ? low : count;
}

#define NONE SIZE_MAX

/* Links from a process to its children, and from a child to the next one; NONE ends them.
 */
struct links {
    size_t *child, *next;
};

/* Each process with its children behind it. One whose parent is not there is a root. */
static void put_tree(struct wm_watch_processes *processes, const size_t *parents,
                     const struct links *links)
{
    struct wm_watch_process *all = processes->all;

    for (size_t root = 0; root < processes->count; root++) {
        size_t at = root;
        int depth = 0;
        if (parents[root] != processes->count)
            continue;
        while (true) {
            all[at].depth = depth;
            if (is_shown(processes, &all[at]))
                processes->rows[processes->row_count++] = at;
            if (links->child[at] != NONE) {
                at = links->child[at];
                depth++;
                continue;
            }
            while (at != root && links->next[at] == NONE) {
                at = parents[at];
                depth--;
            }
            if (at == root)
                break;
            at = links->next[at];
        }
    }
}

/* By PID, and where each stands by rank. */
static bool link_tree(struct wm_watch_processes *processes)
{
    size_t count = processes->count;
    size_t *memory = calloc(3 * count + 1, sizeof(*memory));
    struct wm_watch_process *sorted = calloc(count + 1, sizeof(*sorted));
    struct links links = { memory, memory + count };
    size_t *parents = memory + 2 * count;
    bool is_done = memory && sorted;

    /* `rank` becomes the place in the order, with which a process is found again. */
    for (size_t i = 0; i < count && is_done; i++) {
        sorted[i] = processes->all[i];
        sorted[i].rank = (double)i;
        links.child[i] = links.next[i] = NONE;
    }
    if (is_done)
        qsort(sorted, count, sizeof(*sorted), by_pid);
    for (size_t i = count; i-- > 0 && is_done;) {
        size_t place = find_pid(sorted, count, processes->all[i].process.parent);
        size_t parent = place < count ? (size_t)sorted[place].rank : count;
        parents[i] = parent == i ? count : parent;
        if (parents[i] == count)
            continue;
        links.next[i] = links.child[parent];
        links.child[parent] = i;
    }
    if (is_done)
        put_tree(processes, parents, &links);
    free(sorted);
    free(memory);
    return is_done;
}

void wm_watch_processes_arrange(struct wm_watch_processes *processes)
{
    for (size_t i = 0; i < processes->count; i++) {
        struct wm_watch_process *own = &processes->all[i];
        double rank = rank_of(own, processes->order);
        own->rank = processes->is_inverted ? -rank : rank;
        own->depth = 0;
    }
    if (processes->count > 0)
        qsort(processes->all, processes->count, sizeof(*processes->all), by_rank);
    processes->row_count = 0;
    if (processes->is_tree && link_tree(processes))
        return;
    for (size_t i = 0; i < processes->count; i++) {
        if (is_shown(processes, &processes->all[i]))
            processes->rows[processes->row_count++] = i;
    }
}

void wm_watch_processes_sort(struct wm_watch_processes *processes,
                             enum wm_watch_order order)
{
    processes->order = order;
    processes->is_inverted = false;
    wm_watch_processes_arrange(processes);
}

void wm_watch_processes_take(struct wm_watch_processes *processes,
                             const struct wm_watch_news *news)
{
    double seconds = news->time_s - processes->time_s;

    struct wm_watch_process *all = calloc(news->process_count + 1, sizeof(*all));
    size_t *rows = calloc(news->process_count + 1, sizeof(*rows));
    if (!all || !rows) {
        free(all);
        free(rows);
        return;
    }
    if (processes->count > 0)
        qsort(processes->all, processes->count, sizeof(*processes->all), by_pid);
    bool has_chosen = false;
    for (size_t i = 0; i < news->process_count; i++) {
        all[i].process = news->processes[i];
        size_t place = find_pid(processes->all, processes->count, all[i].process.pid);
        /* Another process may have got its number. */
        bool is_old = place < processes->count &&
                      processes->all[place].process.start_time == all[i].process.start_time;
        double used =
            is_old ? all[i].process.cpu_s - processes->all[place].process.cpu_s : NAN;
        all[i].cores = seconds > 0 && used >= 0 ? used / seconds : NAN;
        has_chosen |= is_old && all[i].process.pid == processes->chosen;
    }
    free(processes->all);
    free(processes->rows);
    processes->all = all;
    processes->rows = rows;
    processes->count = news->process_count;
    processes->time_s = news->time_s;
    processes->chosen = has_chosen ? processes->chosen : 0;
    wm_watch_processes_arrange(processes);
}

/* The row of the chosen one; the count: it has none. */
static size_t chosen_row(const struct wm_watch_processes *processes)
{
    for (size_t i = 0; i < processes->row_count; i++) {
        if (processes->all[processes->rows[i]].process.pid == processes->chosen)
            return i;
    }
    return processes->row_count;
}

const struct wm_watch_process *
wm_watch_processes_chosen(const struct wm_watch_processes *processes)
{
    size_t row = chosen_row(processes);

    return processes->chosen > 0 && row < processes->row_count
               ? &processes->all[processes->rows[row]]
               : NULL;
}

void wm_watch_processes_move(struct wm_watch_processes *processes, long rows)
{
    size_t row = chosen_row(processes);
    long last = (long)processes->row_count - 1;

    if (last < 0)
        return;
    long to = row > (size_t)last || processes->chosen == 0 ? 0 : (long)row + rows;
    to = to < 0 ? 0 : to > last ? last : to;
    processes->chosen = processes->all[processes->rows[to]].process.pid;
}

void wm_watch_processes_scroll(struct wm_watch_processes *processes, size_t room)
{
    size_t row = chosen_row(processes);

    if (processes->chosen == 0 || row == processes->row_count)
        processes->top = 0;
    else if (row < processes->top)
        processes->top = row;
    else if (row >= processes->top + room)
        processes->top = row + 1 - room;
    if (processes->top + room > processes->row_count)
        processes->top = processes->row_count > room ? processes->row_count - room : 0;
}

void wm_watch_processes_release(struct wm_watch_processes *processes)
{
    free(processes->all);
    free(processes->rows);
    *processes = (struct wm_watch_processes) { 0 };
}
