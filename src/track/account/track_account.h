/* SPDX-License-Identifier: Apache-2.0 */
/*
 * track_account.h - the CPU time of a whole process tree, exactly: of short
 * children, of orphans, and of those nobody waits for.
 *
 * The clocks of the processes in sight, and what they and the launcher have waited for, are
 * what was used at least. What others have used beyond that is known by the best way that
 * this machine allows, in this order:
 *   1. a perf software counter (task clock) that is inherited by every process
 *      and thread made later; needs no privilege, but containers often forbid it;
 *   2. a cgroup of our own (version 2), where we may make one;
 *   3. what the processes in sight have used and waited for, and at the end
 *      what the launcher has reaped. Children nobody waits for are missing.
 */
#ifndef WM_TRACK_ACCOUNT_H
#define WM_TRACK_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base_error.h"
#include "source/tree/source_tree.h"

struct wm_account;

/* Seconds. Making a process takes several times as much, so descendants that used less
 * did not exist. */
#define WM_ACCOUNT_NOTICEABLE 50e-6

/* The CPU time of all but the root, in seconds. perf's clock runs on while the core is
 * taken away, by the hypervisor or an interrupt; the processes' own clocks do not. */
struct wm_others {
    double seen;        /* by the clocks of processes in sight, and of those waited for */
    double counted;     /* by a counter of all; NAN: no counter */
    double exposed;     /* the counter's time in which cores may have been taken away */
    double lost;        /* the part of the machine's busy time that was taken away */
    double lost_by_all; /* the same in seconds, at most */
    double error;       /* what else the counter may have too much */
    double unclocked;   /* what it may lack of processes that nobody waited for */
    bool is_stolen;     /* a hypervisor takes cores away, by time slices */
    bool has_unwaited;  /* processes may have ended that were neither seen nor waited for */
};

/* The least that it can be, as a sum that is shown may only grow. */
double wm_others_by_now(const struct wm_others *known);

/* The best estimate at the end, if the root has used `main`. `ret_more` is how much more it
 * may have been: 0 if that is negligible, infinite if it is unknown. */
double wm_others_in_all(const struct wm_others *known, double main, double *ret_more);

int wm_account_new(struct wm_account **ret_account, struct wm_error *err);

/* What can be done before there is a process: begins to find out whether perf is to be
 * had, as that may take a while. Once that is known `wake_fd`, an eventfd, is written to.
 * `counted_ns` is when the last account of this process that counted was freed, 0: none. */
int wm_account_expect(struct wm_account *account, int wake_fd, int64_t counted_ns,
                      struct wm_error *err);

/* Whether it has counters of perf's. */
bool wm_account_counts(const struct wm_account *account);

/* Attaches to a process that has no children or threads yet and waits at its
 * gate. Its time counts from now. Where perf is not ready, the third way is taken
 * until it is. */
void wm_account_start_command(struct wm_account *account, pid_t pid,
                              const struct wm_tree *tree);

/* The command has just been let go. What the machine did before is not counted: the kernel
 * counts in steps of 10 ms, so that this may be read when nobody waits for it any more. */
void wm_account_released(struct wm_account *account);

/* Goes over to perf where that has become ready since, and refreshes the tree. Lost is
 * what was used by then by processes that ended before and that nobody waited for. */
void wm_account_catch_up(struct wm_account *account, struct wm_tree *tree);

/* Counts from now on: what was used since the start is taken out. The tree has
 * been refreshed just now. */
void wm_account_rebase(struct wm_account *account, const struct wm_tree *tree);

/* Attaches to a tree that runs already; `own` says that its pids are those of
 * our own system calls. Where perf was expected and is not ready, the tree is sampled until
 * it is. */
void wm_account_start_tree(struct wm_account *account, const struct wm_tree *tree,
                           bool own);

/* CPU time since the start, in seconds: of the tree and of its root alone. The
 * tree has been refreshed just now. Never less than the time before, nor is their
 * difference. Readings that follow each other closely are partly sampled. */
void wm_account_read(struct wm_account *account, const struct wm_tree *tree,
                     double *ret_total, double *ret_main);

/* Has the next reading be exact whatever it costs the tree, as the last must. */
void wm_account_want_exact(struct wm_account *account);

/* Ends the account, after the last reading. What the launcher has reaped is exact but for
 * processes that no parent waited for; NAN: there is no launcher. `switches` are its
 * context switches; 0 where they are not known. */
void wm_account_finish(struct wm_account *account, const struct wm_tree *tree,
                       double reaped_seconds, double switches);

/* How a command's time would be counted here, for people, and why by no better
 * way: 0, or the errno value with which perf refused. */
int wm_account_check(const char **ret_method);

/* Why the total is a lower bound; empty if it is not. */
const char *wm_account_note(const struct wm_account *account);

/* How it was done, for people: "perf task clock, inherited". */
const char *wm_account_method(const struct wm_account *account);

/* Accepts NULL. */
void wm_account_free(struct wm_account *account);

/* A control group (version 2) around the command, where perf is forbidden and a group may
 * be made: its cpu.stat counts whatever was ever in it, even without the cpu controller. */
struct wm_cgroup;

/* Makes a group below our own. NULL where that is not possible. */
struct wm_cgroup *wm_cgroup_new(void);

/* Moves a process into the group; false where that is forbidden. */
bool wm_cgroup_enter(struct wm_cgroup *cgroup, pid_t pid);

/* CPU time used in the group so far. */
bool wm_cgroup_cpu_ns(const struct wm_cgroup *cgroup, int64_t *ret_ns);

/* Moves what still runs in it back to our own group and removes it. Accepts
 * NULL. */
void wm_cgroup_free(struct wm_cgroup *cgroup);

#endif
