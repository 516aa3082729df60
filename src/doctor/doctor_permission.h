/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_permission.h - permissions that this process lacks, and the commands that
 * give them: to files, by a capability, to perf counters. */
#ifndef WM_DOCTOR_PERMISSION_H
#define WM_DOCTOR_PERMISSION_H

#include <stdbool.h>
#include <stddef.h>

#include "doctor/doctor_advice.h"

/* For each file that fits the shell's `pattern` below the folder `root` (both may
 * have links in them) and is there but refuses us what `access` says, R_OK or
 * R_OK | W_OK: how to get at it. */
void wm_permission_files(struct wm_advice *advice, const char *root, const char *pattern,
                         int access);

/* The same, to be read, of files that tell some who ought not to know: to this user
 * alone, or to the group that may read them already. */
void wm_permission_private_files(struct wm_advice *advice, const char *root,
                                 const char *pattern);

/* Whether any such file is there and refuses us. */
bool wm_permission_is_refused(const char *root, const char *pattern, int access);

/* Our name, or our number where we have none that fits. */
#define WM_PERMISSION_NAME_SIZE 64
void wm_permission_user(char *name, size_t size);

/* Whether the program is the command, and no interpreter that has loaded the
 * library. */
bool wm_permission_is_ours(const char *program);

/* `problem`, which is gone when `program` has the capability `name`; it is what
 * /proc/self/exe says, or "". A command is given for ours alone: whoever grants an
 * interpreter that has loaded the library a capability, grants it to every script. */
void wm_permission_capability(struct wm_advice *advice, const char *problem,
                              const char *name, const char *program);

/* Whether this kernel says that perf counters are for root alone, as far as they need
 * a kernel.perf_event_paranoid of `level` or less. */
bool wm_permission_is_paranoid(const char *procfs, int level);

#endif
