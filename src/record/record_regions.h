/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_regions.h - regions as recorders and readers pass them on, and a batch of them
 * that grows: what waits to be written, and what has been read. Each name is copied.
 *
 * A part that is all zero is an empty one.
 */
#ifndef WM_RECORD_REGIONS_H
#define WM_RECORD_REGIONS_H

#include <stdbool.h>

#include "base/base_error.h"
#include "region/drain/region_calls.h"

/* The stop of a call of which not even that is known when it became known that it would
 * not come. */
#define WM_CALL_NEVER_STOPS INT64_MAX

/* A call of a region that is over. */
struct wm_region_record {
    int64_t start_ns, stop_ns; /* CLOCK_MONOTONIC */
    uint32_t path, thread;
    bool is_open;     /* it never ended: stop_ns is when this became known */
    uint64_t clocked; /* one more than its thread's CPU time in ns; 0: it is not known */
    uint32_t fold; /* of what the row stands for: its number in the batch, from 1; or 0 */
};

/* Calls in the order of their stops, with the paths and threads that are new since the
 * batch before. Paths and threads are counted from 0, and none is left out. */
struct wm_region_batch {
    const struct wm_region_path *paths; /* of first_path and so on */
    const struct wm_region_thread *threads;
    const struct wm_region_record *calls;
    const struct wm_region_fold *folds;
    const double *seconds; /* time of each call, by the file's own numbers; or NULL */
    uint32_t first_path, path_count;
    uint32_t first_thread, thread_count;
    size_t call_count;
};

/* What a call of the batch stands for; NULL: itself. */
const struct wm_region_fold *wm_region_batch_fold(const struct wm_region_batch *batch,
                                                  const struct wm_region_record *call);

struct wm_regions_part {
    struct wm_region_path *paths;
    struct wm_region_thread *threads;
    struct wm_region_record *calls;
    struct wm_region_fold *folds;
    uint32_t first_path, first_thread; /* the numbers of paths[0] and threads[0] */
    size_t old_paths, old_threads;     /* number of those that were in an earlier batch */
    size_t path_count, path_room;
    size_t thread_count, thread_room;
    size_t call_count, call_room;
    size_t fold_count, fold_room;
};

/* The number that the next path, and the next thread, gets. */
uint32_t wm_regions_part_next_path(const struct wm_regions_part *part);
uint32_t wm_regions_part_next_thread(const struct wm_regions_part *part);

/* WM_ENOMEM is the only failure; nothing has changed then. */
int wm_regions_part_add_path(struct wm_regions_part *part,
                             const struct wm_region_path *path);
int wm_regions_part_add_thread(struct wm_regions_part *part,
                               struct wm_region_thread thread);
int wm_regions_part_add_call(struct wm_regions_part *part,
                             const struct wm_region_record *call,
                             const struct wm_region_fold *fold);

/* Forgets calls but for those from that one on. */
void wm_regions_part_drop_calls(struct wm_regions_part *part, size_t first);

/* Adds the paths and threads of the batch that the part does not have yet, from the next
 * one on; those up to the failure stay. */
int wm_regions_part_add_new(struct wm_regions_part *part,
                            const struct wm_region_batch *batch);

bool wm_regions_part_is_empty(const struct wm_regions_part *part);

/* Borrowed. */
struct wm_region_batch wm_regions_part_batch(const struct wm_regions_part *part);

/* Begins the next batch, and forgets what is in this one... */
void wm_regions_part_clear(struct wm_regions_part *part);

/* ...but for its paths and threads. */
void wm_regions_part_next(struct wm_regions_part *part);

void wm_regions_part_release(struct wm_regions_part *part);

/* Bytes of a name in a file; what a program reports of itself is shorter. */
enum { WM_REGIONS_NAME_MAX = 65536 };

/* Numbers of a fold as files have them: calls, sum_ns, squares, min_ns, max_ns, and the
 * buckets. */
enum { WM_REGION_FOLD_CELLS = 5 + WM_REGION_FOLD_BUCKETS };

void wm_region_fold_cells(const struct wm_region_fold *fold,
                          int64_t ret_cells[WM_REGION_FOLD_CELLS]);

/* The buckets as text, "0 12 3", which is shorter than as columns. */
enum { WM_REGION_BUCKETS_SIZE = 11 * WM_REGION_FOLD_BUCKETS + 1 };

void wm_region_buckets_format(const struct wm_region_fold *fold,
                              char text[WM_REGION_BUCKETS_SIZE]);

/* Of what such a text says; all -1 where it says something else. */
void wm_region_buckets_parse(const char *text, int64_t cells[WM_REGION_FOLD_BUCKETS]);

/* What a file says of a path, a thread and a call, from which it is made; -1: nothing. */
struct wm_regions_row {
    int64_t number; /* of the path or thread */
    int64_t parent, is_free;
    const char *name; /* may be NULL */
    int64_t pid, tid, process;
    int64_t path, thread, start_ns, stop_ns, is_open;
    int64_t clocked;                    /* as in a record */
    int64_t fold[WM_REGION_FOLD_CELLS]; /* its members; the first is 0 or -1: none */
};

/* Add it to a part that has kept all its paths. WM_EFORMAT for what makes no sense: a path
 * below one that comes later, a call of a path or thread that is not there. */
int wm_regions_read_path(struct wm_regions_part *part, const struct wm_regions_row *row,
                         struct wm_error *err);
int wm_regions_read_thread(struct wm_regions_part *part, const struct wm_regions_row *row,
                           struct wm_error *err);
int wm_regions_read_call(struct wm_regions_part *part, const struct wm_regions_row *row,
                         struct wm_error *err);

#endif
