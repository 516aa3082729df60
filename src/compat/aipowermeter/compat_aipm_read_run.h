/* SPDX-License-Identifier: Apache-2.0 */
/* compat_aipm_read_run.h - what the other files of an AIPowerMeter folder say of a run. */
#ifndef WM_COMPAT_AIPM_READ_RUN_H
#define WM_COMPAT_AIPM_READ_RUN_H

#include "record/run/record_run.h"

/* What metadata.json beside the file at `path` says of the run, if wattmeter wrote
 * it. Where it did not, or there is none, the run is left as it is. */
int wm_aipm_read_run(const char *path, struct wm_run *run, struct wm_error *err);

/* Notes on what metadata.json, results_exp.json and model_summary.json beside the
 * file at `path` say. Those that are not there, or cannot be read, cost nothing. */
int wm_aipm_read_notes(const char *path, struct wm_run *run, struct wm_error *err);

#endif
