/* SPDX-License-Identifier: Apache-2.0 */
/*
 * track_launch.h - starting a command so that nothing of it is missed.
 *
 * Between the tracker and the command stands the launcher, a small process of
 * ours that forks the command, adopts its orphans (as a subreaper, which the
 * tracker's own process must not become), reaps them all, and tells how the
 * command ended. The command waits at a gate until counters are attached. If
 * the tracker is killed the launcher stays, so that the command lives on.
 */
#ifndef WM_TRACK_LAUNCH_H
#define WM_TRACK_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/base_error.h"
#include "base/text/base_number.h"
#include "record/run/record_run.h"
#include "track/launch/track_batch.h"

struct wm_launch;

/* How the command ended, as the launcher saw it. */
struct wm_launch_end {
    int wait_status;         /* as from wait(2) */
    double children_seconds; /* CPU time of the command and all that were reaped */
    double launcher_seconds; /* of the launcher itself: part of our own cost */
    struct wm_usage usage;   /* of all that were reaped, from the exec of the command on */
    struct wm_known peak_rss_bytes;       /* largest process among them */
    struct wm_known peak_rss_bound_bytes; /* but none was larger than this */
};

/* Where a command starts, and with which variables. */
struct wm_launch_place {
    int folder_fd;            /* its working directory; AT_FDCWD: the caller's */
    char *const *environment; /* NULL: the caller's */
};

/* The file that execvp(3) would execute for `name` there. WM_ENOENT: there is none;
 * WM_EACCES: there is, but it cannot be executed. The caller frees it. */
int wm_launch_find(const char *name, const struct wm_launch_place *place, char **ret_path,
                   struct wm_error *err);

/* How a command is started. All zero but `path` and `argv` is right as a rule. */
struct wm_launch_plan {
    const char *path; /* what is executed */
    char *const *argv;
    const struct wm_launch_place *place; /* NULL: the caller's */
    const char *variable, *value; /* one more of the environment; a value of NULL: none */
    bool waits_all; /* the session ends with the last process that the command leaves behind
                     */
    bool is_silent; /* its standard input, output and error are /dev/null */
    struct wm_batch *batch; /* of runs, borrowed; NULL: one */
};

/* Forks the launcher, which forks the command, which stops at its gate. */
int wm_launch_new(const struct wm_launch_plan *plan, struct wm_launch **ret_launch,
                  struct wm_error *err);

/* Waits until the command is there; before, it has no pid. */
int wm_launch_wait_fork(struct wm_launch *launch, struct wm_error *err);

pid_t wm_launch_command_pid(const struct wm_launch *launch);
pid_t wm_launch_launcher_pid(const struct wm_launch *launch);

/* Becomes readable when the command has ended, or the launcher was killed. */
int wm_launch_end_fd(const struct wm_launch *launch);

/* Opens the gate. */
int wm_launch_go(struct wm_launch *launch, struct wm_error *err);

/* Waits until the command has executed its program. WM_ENOENT and WM_EACCES as
 * wm_launch_find(), WM_EIO where it was killed at its gate; it is gone then. */
int wm_launch_wait_exec(struct wm_launch *launch, struct wm_error *err);

/* When what wm_launch_end_fd() shows the end of has ended; 0 where nobody knows, as the
 * launcher was killed. */
int64_t wm_launch_ended_ns(const struct wm_launch *launch);

/* Has the dead command reaped, without waiting for it. */
int wm_launch_let_reap(struct wm_launch *launch, struct wm_error *err);

/* Has the dead command reaped and tells how it ended. Waits for it if it lives
 * still. WM_EIO when the launcher was killed before it could tell. */
int wm_launch_reap(struct wm_launch *launch, struct wm_launch_end *ret_end,
                   struct wm_error *err);

/* Whether the end of the command, which is to be reaped once wm_launch_end_fd() is
 * readable, is not the end of all: then that becomes readable again when they have ended,
 * and wm_launch_reap() tells of them too. */
bool wm_launch_waits(const struct wm_launch *launch);

/* Accepts NULL. A command that has not passed its gate never will; one that
 * runs goes on with the launcher. */
void wm_launch_free(struct wm_launch *launch);

#endif
