/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comparison.h - what differs between sessions: overall, and block by block. A session is
 * one run or, of a recording with several runs, all of them: its repeats.
 *
 *     struct wm_comparison *comparison;
 *     if (wm_comparison_new(&comparison, &err) < 0)
 *         return fail(&err);
 *     wm_comparison_add(comparison, "before", "before.sqlite", &err);
 *     wm_comparison_add(comparison, "after", "after.json", &err);
 *     if (wm_comparison_run(comparison, "mean", WM_REPORT_TEXT, &err) == WM_OK)
 *         wm_comparison_print(comparison, 0, stdout, &err);
 *     wm_comparison_free(comparison);
 *
 * The first session is the one that the others are compared with. A recording of `run
 * --repeat` with several commands is a session of each. What is compared, and what is taken
 * for noise, is in docs/analysis.md. The rules of source.h hold here too.
 */
#ifndef WATTMETER_COMPARISON_H
#define WATTMETER_COMPARISON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "wattmeter/analysis.h"
#include "wattmeter/api.h"
#include "wattmeter/error.h"
#include "wattmeter/report.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wm_comparison;

WM_API int wm_comparison_new(struct wm_comparison **ret_comparison, struct wm_error *err);

/* Accepts NULL. */
WM_API void wm_comparison_free(struct wm_comparison *comparison);

/* Adds a session of that name: a recording, a tracking file, or gpu_tracker's JSON of an
 * analysis. A pickle is refused with what to do about it. Units are converted to those of
 * the first session. WM_EINVAL where a session has that name already. */
WM_API int wm_comparison_add(struct wm_comparison *comparison, const char *name,
                             const char *path, struct wm_error *err);

/* The same with the calls of sub-tracking files, or of one run; WM_ALL_RUNS is the newest
 * one of a database. */
WM_API int wm_comparison_add_session(struct wm_comparison *comparison, const char *name,
                                     const struct wm_analysis_input *input,
                                     struct wm_error *err);

/* Of all that was added. */
WM_API size_t wm_comparison_session_count(const struct wm_comparison *comparison);

/* Has the figures below looked for in this metric alone, and those of further calls:
 * "cpu_time". Only times, energies and memory can be chosen, of which more is worse:
 * WM_EINVAL for others, and the error lists them. Before wm_comparison_run(). */
WM_API int wm_comparison_watch(struct wm_comparison *comparison, const char *metric,
                               struct wm_error *err);

/* A smaller difference counts as none; a ratio, 0.01 unless it is called. WM_EINVAL unless
 * it is from 0 to 1. Before wm_comparison_run(). */
WM_API int wm_comparison_set_threshold(struct wm_comparison *comparison, double threshold,
                                       struct wm_error *err);

/* `statistic` is min, max, mean, std, or total, which gpu_tracker's formats do not have.
 * They match blocks by gpu_tracker's rules, and it is WM_EINVAL where the blocks do not;
 * in ours a block may be in some of the sessions only. */
WM_API int wm_comparison_run(struct wm_comparison *comparison, const char *statistic,
                             enum wm_report_format format, struct wm_error *err);

/* The increase over the first session, of a figure that matters, that is the largest for
 * certain: the lower end of its 95 % interval, as a ratio (0.05 is 5 %); 0: there is none;
 * infinite where nothing has become something. After wm_comparison_run(). */
WM_API double wm_comparison_worst(const struct wm_comparison *comparison);

/* Which figure that is: "after: my-code-block: time"; NULL where there is none. */
WM_API const char *wm_comparison_worst_figure(const struct wm_comparison *comparison);

/* The first session of which no figure that matters could be tested, as that takes 6 runs
 * of both, so that wm_comparison_worst() knows nothing of it; or, with the metric behind it
 * ("after: cpu_time"), of which one that is watched could not. NULL where there is none. */
WM_API const char *wm_comparison_untested(const struct wm_comparison *comparison);

/* Notes, such as blocks that were matched by their file but not their line; NULL past
 * the last one. */
WM_API const char *wm_comparison_remark(const struct wm_comparison *comparison,
                                        size_t index);

/* In the format that it was run for; text has more with a `verbosity` of 1. WM_EIO when
 * `out` did not take all of it. */
WM_API int wm_comparison_print(const struct wm_comparison *comparison, int verbosity,
                               FILE *out, struct wm_error *err);

#ifdef __cplusplus
}
#endif
#endif
