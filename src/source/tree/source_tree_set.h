/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_tree_set.h - the processes of a tracked tree, found and forgotten.
 *
 * A process is found as a child of one that is known, and stays in the set
 * while it lives, whoever its parent becomes. Searching is done only when some
 * process has been made since (the kernel tells the newest pid), and only among
 * the children of those that have run.
 */
#ifndef WM_SOURCE_TREE_SET_H
#define WM_SOURCE_TREE_SET_H

#include "base/base_error.h"
#include "base/base_map.h"
#include "source/tree/source_process.h"

/* Most dead processes that are remembered. */
enum { WM_TREE_GONE_MAX = 128 };

struct wm_tree_census {
    uint64_t seen;     /* processes that were ever in the tree */
    uint64_t denied;   /* of those, whose private memory may not be read */
    uint64_t unlisted; /* times a process could not be followed for lack of room */
};

struct wm_tree_set {
    struct wm_procfs procfs;
    pid_t root;
    pid_t reaper;        /* adopts the orphans of the tree; 0: none */
    bool started;        /* whatever is found from now on is new */
    bool lists_children; /* this kernel has PID/task/TID/children */
    bool search_pending; /* a search was put off for its cost */
    bool anybody_ran;    /* before the last refresh */

    struct wm_process *processes; /* the root first, while it lives */
    size_t count, room;

    struct wm_map places; /* of the processes in that list, by pid */

    pid_t *found; /* what a search brings up */
    pid_t *found_parents;

    int loadavg_fd;
    pid_t newest_pid;
    int64_t searched_ns;

    struct wm_process gone[WM_TREE_GONE_MAX]; /* the dearest of the dead */
    size_t gone_count;
    int64_t gone_ns; /* used by dead orphans, which no process of the set has reaped */
    struct wm_tree_census census;
};

/* Starts with `root` in the /proc at `procfs`. WM_ENOENT when there is no such
 * process. Release it in either case. */
int wm_tree_set_init(struct wm_tree_set *set, const char *procfs, pid_t root,
                     struct wm_error *err);
void wm_tree_set_release(struct wm_tree_set *set);

/* Looks at all processes, forgets dead ones, finds new ones. */
void wm_tree_set_refresh(struct wm_tree_set *set, int64_t now_ns);

/* NULL when there is none; good until the next refresh. */
struct wm_process *wm_tree_set_find(const struct wm_tree_set *set, pid_t pid);

#endif
