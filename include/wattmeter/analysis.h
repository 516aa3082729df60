/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analysis.h - a session's timepoints, all of them and those inside the calls of each
 * block of code: what gpu_tracker calls sub-tracking analysis, for its files and for
 * recordings of ours alike.
 *
 *     const char *files[] = { "sub-tracking.csv" };
 *     struct wm_analysis_input input = { .tracking = "tracking.csv", .run = WM_LAST_RUN,
 *                                        .sub_tracking = files, .sub_tracking_count = 1 };
 *     struct wm_report *report;
 *     if (wm_report_from_files(&input, &report, &err) == WM_OK) {
 *         wm_report_print_blocks(report, WM_REPORT_TEXT, stdout, &err);
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
    const char *tracking;            /* a tracking file of gpu_tracker's, a recording, or */
                                     /* its JSON of an analysis, which has its calls */
    size_t run;                      /* of a recording; WM_LAST_RUN */
    const char *const *sub_tracking; /* sub-tracking files, read as one; none: the */
    size_t sub_tracking_count;       /* regions of the recording */
};

/* Reads a report that has the blocks of code as its regions, in the order of their names,
 * and what wm_report_print_blocks() prints. Of gpu_tracker's files its figures are missing,
 * and wm_report_print() refuses it. */
WM_API int wm_report_from_files(const struct wm_analysis_input *input,
                                struct wm_report **ret_report, struct wm_error *err);

/* Prints the blocks of such a report; docs/analysis.md has the structures. gpu_tracker's
 * own layouts come byte by byte, without the line end that it adds on the screen. WM_EIO
 * when `out` did not take all of it. */
WM_API int wm_report_print_blocks(const struct wm_report *report,
                                  enum wm_report_format format, FILE *out,
                                  struct wm_error *err);

/* What a person should know of the files, such as a last line that was cut off: the
 * index-th of it, from 0, or NULL past the last; borrowed. Text and JSON have them, too. */
WM_API const char *wm_report_file_remark(const struct wm_report *report, size_t index);

/* What makes no call: stops that nothing had started, and starts that nothing stopped.
 * gpu_tracker's layouts have no place for them. */
WM_API void wm_report_unpaired(const struct wm_report *report, uint64_t *ret_stray,
                               uint64_t *ret_unfinished);

/* Joins sub-tracking files of one format (by their suffix, .csv or .sqlite) into the new
 * file `target`. A path that is a folder stands for the sub-tracking files of that format
 * in it. `tell` (may be NULL) gets a line for a person about whatever is left out. Once
 * `*stop` (`stop` may be NULL) is not 0, as a signal handler may set it, it ends with
 * WM_ECANCELED and leaves no file. */
WM_API int wm_sub_tracking_combine(const char *const *paths, size_t count,
                                   const char *target,
                                   void (*tell)(void *opaque, const char *remark),
                                   void *opaque, const volatile sig_atomic_t *stop,
                                   struct wm_error *err);

#ifdef __cplusplus
}
#endif
#endif
