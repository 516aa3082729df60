/* SPDX-License-Identifier: Apache-2.0 */
/*
 * track_cgroup.h - a control group (version 2) around the command, where perf
 * is forbidden and a group may be made: its cpu.stat counts whatever was ever
 * in it, even without the cpu controller.
 */
#ifndef WM_TRACK_CGROUP_H
#define WM_TRACK_CGROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

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
