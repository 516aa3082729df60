/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analysis.h - analyzes blocks of code: the samples of a session, all of them and those
 * inside the calls of each block. gpu_tracker calls it sub-tracking analysis; it works for
 * gpu_tracker's files and for recordings.
 *
 *     const char *files[] = { "sub-tracking.csv" };
 *     struct wm_analysis_input input = { .tracking = "tracking.csv", .run = WM_LAST_RUN,
 *                                        .sub_tracking = files, .sub_tracking_count = 1 };
 *     const struct wm_report_style style = { .blocks_only = true };
 *     struct wm_report *report;
 *     if (wm_report_from_files(&input, &report, &err) == WM_OK) {
 *         wm_report_print(report, WM_FORMAT_TEXT, &style, stdout, &err);
 *         wm_report_free(report);
 *     }
 *
 * The rules of source.h hold here too.
 */
#ifndef WATTMETER_ANALYSIS_H
#define WATTMETER_ANALYSIS_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "wattmeter/api.h"
#include "wattmeter/error.h"
#include "wattmeter/recording.h"
#include "wattmeter/report.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wm_analysis_input {
    size_t size;                     /* sizeof this struct */
    const char *tracking;            /* a tracking file of gpu_tracker, a recording, or */
                                     /* gpu_tracker's JSON of an analysis */
    size_t run;                      /* of a recording; WM_LAST_RUN */
    const char *const *sub_tracking; /* sub-tracking files, read as one; if there */
    size_t sub_tracking_count;       /* are none: the regions of the recording */
};

/* Reads a report whose regions are the blocks of code, ordered by name. The figures of
 * gpu_tracker's files are missing, so only the blocks of such a report can be printed. */
WM_API int wm_report_from_files(const struct wm_analysis_input *input,
                                struct wm_report **ret_report, struct wm_error *err);

/* Joins sub-tracking files of one format (by their suffix, .csv or .sqlite) into the new
 * file `target`. A folder stands for its sub-tracking files of that format. `tell` (may be
 * NULL) is called with a line for each part that is left out. If a signal handler sets
 * `*stop` (`stop` may be NULL) to another value than 0, the function returns WM_ECANCELED
 * and leaves no file. */
WM_API int wm_sub_tracking_combine(const char *const *paths, size_t count,
                                   const char *target,
                                   void (*tell)(void *opaque, const char *remark),
                                   void *opaque, const volatile sig_atomic_t *stop,
                                   struct wm_error *err);

#ifdef __cplusplus
}
#endif
#endif
