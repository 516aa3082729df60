/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_calls_sort.h - calls in the order of their starts, in bounded memory: what is
 * too much for that is kept in a file without a name.
 *
 *     for each call: wm_call_sort_add(&sort, &call, &err);
 *     wm_call_sort_end(&sort, &err);
 *     while (wm_call_sort_next(&sort, &call, &err) > 0) ...
 *     wm_call_sort_release(&sort);
 *
 * All zero is an empty one.
 */
#ifndef WM_RECORD_CALLS_SORT_H
#define WM_RECORD_CALLS_SORT_H

#include <sys/types.h>

#include "record/record.h"

/* A part of the file, sorted, and what has been read of it. */
struct wm_call_run {
    off_t at, end;
    struct wm_region_record *calls;
    size_t first, count; /* in `calls` */
};

struct wm_call_sort {
    struct wm_region_record *calls; /* those that are not in the file */
    size_t count, room, first;
    int fd;
    bool has_file;
    off_t end;
    struct wm_call_run *runs;
    size_t run_count, run_room;
    struct wm_call_run **heap; /* the runs that have not ended, by their next call */
    size_t heap_count;
    struct wm_region_record *buffers;
    size_t buffer_room; /* calls of each run */
};

int wm_call_sort_add(struct wm_call_sort *sort, const struct wm_region_record *call,
                     struct wm_error *err);

/* After the last one. */
int wm_call_sort_end(struct wm_call_sort *sort, struct wm_error *err);

/* 1, or 0 past the last one. Of calls that start at once the one of the outer path comes
 * first. */
int wm_call_sort_next(struct wm_call_sort *sort, struct wm_region_record *ret_call,
                      struct wm_error *err);

void wm_call_sort_release(struct wm_call_sort *sort);

#endif
