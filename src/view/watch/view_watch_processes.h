/* SPDX-License-Identifier: Apache-2.0 */
/* view_watch_processes.h - the table of processes: which are shown, in which order, and
 * which one is chosen; for src/view/watch alone. */
#ifndef WM_VIEW_WATCH_PROCESSES_H
#define WM_VIEW_WATCH_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wattmeter/watch.h"

/* What the table is sorted by. */
enum wm_watch_order {
    WM_WATCH_BY_POWER,
    WM_WATCH_BY_ENERGY,
    WM_WATCH_BY_CPU,
    WM_WATCH_BY_GPU,
    WM_WATCH_BY_GPU_MEMORY,
    WM_WATCH_BY_MEMORY,
    WM_WATCH_BY_TIME,
    WM_WATCH_BY_PID,
    WM_WATCH_ORDERS
};

enum { WM_WATCH_FILTER_SIZE = 256 };

struct wm_watch_process {
    struct wm_tracker_process process;
    double cores; /* that it used since the news before; NAN: it is new */
    double rank;  /* by the order, the highest first */
    int depth;    /* in the tree */
};

struct wm_watch_processes {
    struct wm_watch_process *all;
    size_t count;
    double time_s;
    size_t *rows; /* those that are shown, in their order */
    size_t row_count;
    enum wm_watch_order order;
    bool is_inverted, is_tree;
    char filter[WM_WATCH_FILTER_SIZE];
    pid_t chosen; /* 0: none */
    size_t top;   /* the first row on the screen */
};

/* Takes what is told of them now; out of memory, all stays as it was. The chosen one is
 * none any more where it has ended, also if another process has its number. */
void wm_watch_processes_take(struct wm_watch_processes *processes,
                             const struct wm_watch_news *news);

/* The highest first, or the lowest PID. */
void wm_watch_processes_sort(struct wm_watch_processes *processes,
                             enum wm_watch_order order);

/* After filter, tree or direction has changed. */
void wm_watch_processes_arrange(struct wm_watch_processes *processes);

/* NULL: none is. */
const struct wm_watch_process *
wm_watch_processes_chosen(const struct wm_watch_processes *processes);

/* Chooses the process so many rows further down, or up; the first one where none was. */
void wm_watch_processes_move(struct wm_watch_processes *processes, long rows);

/* Moves the rows on the screen, of which there are `room`, to the chosen one. */
void wm_watch_processes_scroll(struct wm_watch_processes *processes, size_t room);

void wm_watch_processes_release(struct wm_watch_processes *processes);

#endif
