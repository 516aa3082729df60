/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comparison.h - compares sessions, overall and block by block. A session is one run, or
 * all runs of a recording with several: its repeats.
 *
 *     struct wm_comparison *comparison;
 *     if (wm_comparison_new(&comparison, &err) < 0)
 *         return fail(&err);
 *     wm_comparison_add(comparison, "before", "before.sqlite", &err);
 *     wm_comparison_add(comparison, "after", "after.json", &err);
 *     if (wm_comparison_run(comparison, "mean", WM_FORMAT_TEXT, &err) == WM_OK)
 *         wm_comparison_print(comparison, 0, stdout, &err);
 *     wm_comparison_free(comparison);
 *
 * All sessions are compared with the first. A recording of `run --repeat` with several
 * commands is one session for each command. docs/analysis.md lists the compared figures and
 * explains what counts as noise. The rules of source.h hold here too.
 */
#ifndef WATTMETER_COMPARISON_H
#define WATTMETER_COMPARISON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "wattmeter/analysis.h"
#include "wattmeter/api.h"
#include "wattmeter/error.h"
#include "wattmeter/format.h"
#include "wattmeter/report.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wm_comparison;

WM_API int wm_comparison_new(struct wm_comparison **ret_comparison, struct wm_error *err);

/* Accepts NULL. */
WM_API void wm_comparison_free(struct wm_comparison *comparison);

/* Adds a session of that name: a recording, a tracking file, or gpu_tracker's JSON of an
 * analysis. A pickle is refused; the error says how to convert it. Units are converted to
 * the units of the first session. Returns WM_EINVAL if the name is taken. */
WM_API int wm_comparison_add(struct wm_comparison *comparison, const char *name,
                             const char *path, struct wm_error *err);

/* The same with the calls of sub-tracking files, or of one run. WM_ALL_RUNS is the newest
 * run of a database. */
WM_API int wm_comparison_add_session(struct wm_comparison *comparison, const char *name,
                                     const struct wm_analysis_input *input,
                                     struct wm_error *err);

/* The number of sessions added. */
WM_API size_t wm_comparison_session_count(const struct wm_comparison *comparison);

/* Restricts the figures below to this metric, such as "cpu_time"; further calls add
 * metrics. Only times, energies and memory can be chosen, for which more is worse.
 * WM_EINVAL for other metrics, and the error lists the valid ones. Call it before
 * wm_comparison_run(). */
WM_API int wm_comparison_watch(struct wm_comparison *comparison, const char *metric,
                               struct wm_error *err);

/* Sets the ratio below which a difference counts as none; the default is 0.01. Returns
 * WM_EINVAL unless it is from 0 to 1. Call it before wm_comparison_run(). */
WM_API int wm_comparison_set_threshold(struct wm_comparison *comparison, double threshold,
                                       struct wm_error *err);

/* Compares, to print it as text, as JSON or in one of gpu_tracker's formats. `statistic` is
 * min, max, mean, std, or total; gpu_tracker's formats lack total. Those formats match
 * blocks by gpu_tracker's rules; WM_EINVAL if blocks do not match. In the other formats a
 * block may be missing in some sessions. */
WM_API int wm_comparison_run(struct wm_comparison *comparison, const char *statistic,
                             enum wm_format format, struct wm_error *err);

/* The largest increase over the first session that is certain: the lower end of its 95 %
 * interval, as a ratio (0.05 is 5 %). Only figures that matter count. 0: no figure has
 * grown; infinite: a figure has grown from 0. Call it after wm_comparison_run(). */
WM_API double wm_comparison_worst(const struct wm_comparison *comparison);

/* The figure of wm_comparison_worst(), such as "after: my-code-block: time"; NULL if no
 * figure has grown. */
WM_API const char *wm_comparison_worst_figure(const struct wm_comparison *comparison);

/* The first session without any tested figure, of which wm_comparison_worst() knows
 * nothing: a test takes 6 runs of both sessions. With wm_comparison_watch(): the first
 * session and metric that could not be tested ("after: cpu_time"). NULL if all could be
 * tested. */
WM_API const char *wm_comparison_untested(const struct wm_comparison *comparison);

/* Notes, such as blocks that were matched by file but not by line; NULL past the last. */
WM_API const char *wm_comparison_remark(const struct wm_comparison *comparison,
                                        size_t index);

/* Prints in the format of wm_comparison_run(); with a `verbosity` of 1 text has more.
 * Returns WM_EIO if `out` did not take all of it. */
WM_API int wm_comparison_print(const struct wm_comparison *comparison, int verbosity,
                               FILE *out, struct wm_error *err);

#ifdef __cplusplus
}
#endif
#endif
