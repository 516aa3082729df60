/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_tree.h - a process and all its descendants: their memory, threads and
 * sampled CPU time, as sums over the root, the rest, and both.
 */
#ifndef WM_SOURCE_TREE_H
#define WM_SOURCE_TREE_H

#include "base/base_error.h"
#include "base/base_map.h"
#include "source/tree/source_process.h"
#include "wattmeter/source.h"

/* Most dead processes that are remembered. */
enum { WM_TREE_GONE_MAX = 128 };

enum wm_tree_member {
    WM_TREE_MAIN,
    WM_TREE_DESCENDANTS,
    WM_TREE_ALL,
    WM_TREE_MEMBERS,
};

struct wm_tree_census {
    uint64_t seen;     /* processes that were ever in the tree */
    uint64_t denied;   /* processes of the tree whose private memory may not be read */
    uint64_t unlisted; /* times a process could not be followed for lack of room */

    /* Processes, perhaps never seen, may have ended without a wait by their parents: a
     * process ignores SIGCHLD, or what a child used never came to its parent. */
    bool has_unwaited;

    bool has_reaped; /* a process has waited for children, which may have left orphans */
};

/* The highest of the main process, of its descendants, or of both, in bytes; and of the
 * interval in which the total lies. */
struct wm_tree_peak {
    int64_t total, private_, shared;
    int64_t low, high;
};

struct wm_tree;

/* Whether this is the machine's own /proc, and of another pid namespace than ours, as where
 * `unshare --pid` did not mount one: its numbers are none of ours. */
bool wm_procfs_is_other(const char *procfs);

/* Whether nothing is known of the tree but the CPU time of its root, for that reason. */
bool wm_tree_is_blind(const struct wm_tree *tree);

/* The tree under `root` in the /proc at `procfs`. WM_ENOENT when there is no
 * such process. */
int wm_tree_open(const char *procfs, pid_t root, struct wm_tree **ret_tree,
                 struct wm_error *err);

/* The tree under a command that has not executed its program yet; `reaper`, a subreaper of
 * ours, adopts its orphans. */
int wm_tree_open_command(pid_t command, pid_t reaper, struct wm_tree **ret_tree,
                         struct wm_error *err);

/* Adds another process, with its descendants. WM_ENOENT when there is none. */
int wm_tree_add(struct wm_tree *tree, pid_t pid, struct wm_error *err);

/* Accepts NULL. */
void wm_tree_close(struct wm_tree *tree);

/* Tells that the root has just executed another program. */
void wm_tree_executed(struct wm_tree *tree);

/* Finds new processes, forgets dead ones, and reads the CPU time of each, the root's last.
 */
void wm_tree_find_all(struct wm_tree *tree);

/* Reads the memory of those that have been found, which takes the most time. */
void wm_tree_measure(struct wm_tree *tree);

/* Both. */
void wm_tree_refresh(struct wm_tree *tree);

/* As of all refreshes, and no less than the kernel's own peak of any one process. There is
 * one for each of enum wm_tree_member. */
const struct wm_tree_peak *wm_tree_peaks(const struct wm_tree *tree);

size_t wm_tree_channels(const struct wm_tree *tree, const struct wm_channel **ret_channels);

/* The readings as of the last refresh, in the order of the channels. */
void wm_tree_read(struct wm_tree *tree, struct wm_reading *readings);

/* Why the last reading of that channel was not ok, or NULL. */
const char *wm_tree_why(const struct wm_tree *tree, size_t channel);

/* The root's own CPU time by now; where its pid is not one of our own system calls, as of
 * the last refresh. */
int64_t wm_tree_main_cpu_ns(const struct wm_tree *tree);

/* The CPU time of all processes but the root, with those that they and the root have waited
 * for, as of the last refresh. Short-lived processes that no parent waited for are missing.
 */
int64_t wm_tree_others_cpu_ns(const struct wm_tree *tree);

/* The part of that which processes now in the tree have used themselves. */
int64_t wm_tree_live_others_cpu_ns(const struct wm_tree *tree);

/* Lets the CPU time of each process, and the peaks of the tree, count from now. */
void wm_tree_rebase(struct wm_tree *tree);

/* As wm_process_identify() of one of its processes; any thread may ask. */
bool wm_tree_identify(const struct wm_tree *tree, pid_t pid, uid_t *ret_user,
                      char *ret_command, size_t size);

bool wm_tree_contains(const struct wm_tree *tree, pid_t pid);

/* All processes now in the tree; [0] is the root while it is there. */
const struct wm_process *wm_tree_processes(const struct wm_tree *tree, size_t *ret_count);

/* Those that used most CPU time of the ones that are gone. */
const struct wm_process *wm_tree_gone(const struct wm_tree *tree, size_t *ret_count);

void wm_tree_count(const struct wm_tree *tree, struct wm_tree_census *ret_census);

/* The processes of a tracked tree, found and forgotten; for the tree alone.
 *
 * A process is found as a child of one that is known, and stays in the set
 * while it lives, whoever its parent becomes. Searching is done only when some
 * process has been made since (the kernel reports the newest pid), and only among
 * the children of those that have run.
 */
struct wm_tree_set {
    struct wm_procfs procfs;
    pid_t root;
    pid_t reaper;        /* of a command: adopts the orphans; 0: none */
    bool started;        /* whatever is found from now on is new */
    bool lists_children; /* this kernel has PID/task/TID/children */
    bool search_pending; /* one was put off for its cost, or a process has ended */
    int64_t ran_ns;      /* the last refresh that found that some process had run */

    struct wm_process *processes; /* the root first, while it lives */
    size_t count, room;

    struct wm_map places; /* of the processes in that list, by pid */

    pid_t *found; /* what a search brings up, and as many parents of it */

    int loadavg_fd;
    pid_t newest_pid;
    int64_t searched_ns;

    struct wm_process gone[WM_TREE_GONE_MAX]; /* the top of the dead by CPU time */
    size_t gone_count;
    int64_t gone_ns; /* used by dead orphans, which no process of the set has reaped,
                      * and by what the root has reaped, once that is gone */
    struct wm_tree_census census;
};

/* Starts with `root` in the /proc at `procfs`. WM_ENOENT when there is no such
 * process. Release it in either case. */
int wm_tree_set_init(struct wm_tree_set *set, const char *procfs, pid_t root, pid_t reaper,
                     struct wm_error *err);
void wm_tree_set_release(struct wm_tree_set *set);

/* Adds a process that is no descendant; again WM_ENOENT. */
int wm_tree_set_add(struct wm_tree_set *set, pid_t pid, struct wm_error *err);

/* Looks at all processes, forgets dead ones, finds new ones. */
void wm_tree_set_refresh(struct wm_tree_set *set, int64_t now_ns);

/* NULL when there is none; good until the next refresh. */
struct wm_process *wm_tree_set_find(const struct wm_tree_set *set, pid_t pid);

#endif
