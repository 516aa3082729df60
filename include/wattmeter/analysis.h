/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analysis.h - a session's timepoints, all of them and those inside the calls of each
 * block of code: what gpu_tracker calls sub-tracking analysis, for its files and for
 * recordings of ours alike.
 *
 *     const char *files[] = { "sub-tracking.csv" };
 *     struct wm_analysis_input input = { .tracking = "tracking.csv", .run = WM_LAST_RUN,
 *                                        .sub_tracking = files, .sub_tracking_count = 1 };
 *     struct wm_block_analysis *analysis;
 *     if (wm_block_analysis_new(&input, &analysis, &err) == WM_OK) {
 *         wm_block_analysis_print(analysis, WM_ANALYSIS_TEXT, stdout, &err);
 *         wm_block_analysis_free(analysis);
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

#ifdef __cplusplus
extern "C" {
#endif

struct wm_block_analysis;

struct wm_analysis_input {
    const char *tracking;            /* a tracking file of gpu_tracker's, a recording, or */
                                     /* the JSON of an analysis, which has its calls */
    size_t run;                      /* of a recording; WM_LAST_RUN */
    const char *const *sub_tracking; /* sub-tracking files, read as one; none: the */
    size_t sub_tracking_count;       /* regions of the recording */
};

enum wm_analysis_format {
    WM_ANALYSIS_TEXT,             /* for people */
    WM_ANALYSIS_JSON,             /* docs/analysis.md has the structure */
    WM_ANALYSIS_GPU_TRACKER_TEXT, /* gpu_tracker's own layouts, byte by byte, without the */
    WM_ANALYSIS_GPU_TRACKER_JSON, /* line end that it adds on the screen */
};

WM_API int wm_block_analysis_new(const struct wm_analysis_input *input,
                                 struct wm_block_analysis **ret_analysis,
                                 struct wm_error *err);

/* Accepts NULL. */
WM_API void wm_block_analysis_free(struct wm_block_analysis *analysis);

/* WM_EIO when `out` did not take all of it. */
WM_API int wm_block_analysis_print(const struct wm_block_analysis *analysis,
                                   enum wm_analysis_format format, FILE *out,
                                   struct wm_error *err);

/* What a person should know of the files, such as a last line that was cut off: the
 * index-th of it, from 0, or NULL past the last; borrowed. WM_ANALYSIS_TEXT and
 * WM_ANALYSIS_JSON have them, too. */
WM_API const char *wm_block_analysis_remark(const struct wm_block_analysis *analysis,
                                            size_t index);

/* What makes no call: stops that nothing had started, and starts that nothing stopped.
 * gpu_tracker's layouts have no place for them. */
WM_API void wm_block_analysis_unpaired(const struct wm_block_analysis *analysis,
                                       uint64_t *ret_stray, uint64_t *ret_unfinished);

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
