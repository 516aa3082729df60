/* SPDX-License-Identifier: Apache-2.0 */
/* track_run.h - the facts of a session that stand before its first tick. */
#ifndef WM_TRACK_RUN_H
#define WM_TRACK_RUN_H

#include "record/run/record_run.h"

/* Fills in identity, machine, environment and the anchor of time. What the
 * caller has set already (notes, sources, command) stays. */
int wm_run_describe(struct wm_run *run, struct wm_error *err);

int wm_run_set_command(struct wm_run *run, char *const argv[], struct wm_error *err);

/* The command line of a process that runs already, in the /proc at `procfs`. */
int wm_run_set_command_of(struct wm_run *run, const char *procfs, pid_t pid,
                          struct wm_error *err);

int wm_run_add_note(struct wm_run *run, const char *key, const char *value,
                    struct wm_error *err);

int wm_run_set_regions_remark(struct wm_run *run, const char *remark, struct wm_error *err);

/* Adds to what is to be said about the choice of GPUs. */
int wm_run_add_gpu_remark(struct wm_run *run, const char *remark, struct wm_error *err);

#endif
