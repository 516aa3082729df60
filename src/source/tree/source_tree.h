/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_tree.h - a process and all its descendants: their memory, threads and
 * sampled CPU time, as sums over the root, the rest, and both.
 */
#ifndef WM_SOURCE_TREE_H
#define WM_SOURCE_TREE_H

#include "base/base_error.h"
#include "source/tree/source_process.h"
#include "source/tree/source_tree_set.h"
#include "wattmeter/source.h"

struct wm_tree;

/* The tree under `root` in the /proc at `procfs`. WM_ENOENT when there is no
 * such process. */
int wm_tree_open(const char *procfs, pid_t root, struct wm_tree **ret_tree,
                 struct wm_error *err);

/* Accepts NULL. */
void wm_tree_close(struct wm_tree *tree);

/* Names the process that adopts orphans of the tree (a subreaper of ours). */
void wm_tree_set_reaper(struct wm_tree *tree, pid_t reaper);

/* Tells that the root has just executed another program. */
void wm_tree_executed(struct wm_tree *tree);

/* Looks at all processes, finds new ones, forgets dead ones. */
void wm_tree_refresh(struct wm_tree *tree);

size_t wm_tree_channels(const struct wm_tree *tree, const struct wm_channel **ret_channels);

/* The readings as of the last refresh, in the order of the channels. */
void wm_tree_read(struct wm_tree *tree, struct wm_reading *readings);

/* Why the last reading of that channel was not ok, or NULL. */
const char *wm_tree_why(const struct wm_tree *tree, size_t channel);

/* Sum over the tree of what its processes have used and what those they have
 * waited for had used. Short-lived processes nobody waited for are missing. */
int64_t wm_tree_cpu_ns(const struct wm_tree *tree);

/* What the processes now in the tree have used themselves. */
int64_t wm_tree_live_cpu_ns(const struct wm_tree *tree);

/* The root's own CPU time by now; where its pid is not one of our own system calls, as of
 * the last refresh. */
int64_t wm_tree_main_cpu_ns(const struct wm_tree *tree);

/* Lets the CPU time of each process count from now. */
void wm_tree_rebase(struct wm_tree *tree);

bool wm_tree_contains(const struct wm_tree *tree, pid_t pid);

/* All processes now in the tree; [0] is the root while it is there. */
const struct wm_process *wm_tree_processes(const struct wm_tree *tree, size_t *ret_count);

/* The dearest of those that are gone. */
const struct wm_process *wm_tree_gone(const struct wm_tree *tree, size_t *ret_count);

void wm_tree_count(const struct wm_tree *tree, struct wm_tree_census *ret_census);

#endif
