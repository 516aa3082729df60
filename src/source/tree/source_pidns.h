/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_pidns.h - which of our processes a driver means.
 *
 *     struct wm_pidns_process process;
 *     wm_pidns_find(pidns, told, &process);
 *     if (process.ours > 0)
 *         count_as_ours(process.ours);
 *     else
 *         explain(process.why);
 *
 * In a container a driver may report the numbers of the host's pid namespace, or
 * translate them to ours, and the newer ones do now this, now that. A /proc of
 * an outer namespace settles it (mount the host's into the container and name
 * it in WATTMETER_PROCFS): its PID/status says the numbers that a process has
 * in each namespace from there inward. Without it only a number that exists
 * here can be ours, and one that does may still be so by chance: whoever adds up
 * should not trust it where the same driver reports numbers that do not exist here.
 */
#ifndef WM_SOURCE_PIDNS_H
#define WM_SOURCE_PIDNS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/base_error.h"

struct wm_pidns;

enum wm_pidns_answer {
    WM_PIDNS_UNKNOWN, /* whether it is ours, and which */
    WM_PIDNS_OUTSIDE, /* it is none of ours */
    WM_PIDNS_PERHAPS, /* one of ours has that number */
    WM_PIDNS_OURS,
};

struct wm_pidns_process {
    enum wm_pidns_answer answer;
    pid_t ours;      /* its number in our namespace, for the last two answers; else 0 */
    const char *why; /* for the first two, a constant; else NULL */

    /* Where to read about it: a /proc that has it (borrowed from the struct
     * wm_pidns; -1: none), and its number there. */
    int dir;
    pid_t there;
};

/* `procfs` is the one that the configuration names, `own` is "/proc". A folder
 * that is no /proc of a running kernel is a captured one, whose numbers stand for
 * ours as they are. Fails in WM_ENOMEM only; what cannot be read leaves pids
 * unknown. */
int wm_pidns_open(const char *procfs, const char *own, struct wm_pidns **ret_pidns,
                  struct wm_error *err);

/* Whether we are surely not in the first pid namespace, in whose numbers drivers
 * count. */
bool wm_pidns_is_inner(void);

/* Accepts NULL. */
void wm_pidns_close(struct wm_pidns *pidns);

/* Our process that a driver calls `told`. Allocates nothing. What has once been
 * found out is remembered for as long as the process lives. */
void wm_pidns_find(struct wm_pidns *pidns, pid_t told,
                   struct wm_pidns_process *ret_process);

#endif
