/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat_aipm_write_results.h - results_exp.json, in which AIPowerMeter's readers look for
 * what an experiment told of itself: an array of records, each with numbers and the
 * local time "end_training_epoch" at which they were true.
 *
 * AIPowerMeter's own writer leaves a record {"date", "metrics"} per line instead, which
 * is read as well.
 */
#ifndef WM_COMPAT_AIPM_WRITE_RESULTS_H
#define WM_COMPAT_AIPM_WRITE_RESULTS_H

#include "record/record_metrics.h"
#include "record/run/record_run.h"

/* Adds the metrics of the result to the file beside the recording at `path`. The file is
 * there as it was or with all of them; one that is no such array stays as it is
 * (WM_EFORMAT). */
int wm_aipm_write_results(const char *path, const struct wm_run *run,
                          const struct wm_result *result, struct wm_error *err);

/* Adds what the file beside the recording at `path` says of the time from `from_ns` until
 * before `to_ns`. One that is not there, or cannot be read, costs nothing. */
int wm_aipm_read_results(const char *path, const struct wm_metrics_window *window,
                         struct wm_metrics *metrics, struct wm_error *err);

#endif
