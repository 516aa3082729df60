/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comparison.h - compares sessions, overall and block by block. A session is one run, or
 * all runs of a recording with several: its repeats.
 *
 *     const struct wm_analysis_input before = { .tracking = "before.sqlite",
 *                                               .run = WM_ALL_RUNS },
 *                                    after = { .tracking = "after.json" };
 *     struct wm_comparison *comparison;
 *     if (wm_comparison_new(&comparison, &err) < 0)
 *         return fail(&err);
 *     wm_comparison_add(comparison, "before", &before, &err);
 *     wm_comparison_add(comparison, "after", &after, &err);
 *     if (wm_comparison_run(comparison, NULL, NULL, &err) == WM_OK)
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
 * analysis (`tracking`), with the calls of its sub-tracking files or of one run.
 * WM_ALL_RUNS: all runs are repeats; of a database the newest run. A pickle is refused; the
 * error says how to convert it. Units are converted to the units of the first session.
 * Returns WM_EINVAL if the name is taken. */
WM_API int wm_comparison_add(struct wm_comparison *comparison, const char *name,
                             const struct wm_analysis_input *input, struct wm_error *err);

/* How sessions are compared. Zero-initialize it for the defaults. */
struct wm_comparison_options {
    size_t size;           /* sizeof this struct */
    const char *statistic; /* min, max, mean, std or total; NULL: mean */

    /* Text, JSON or one of gpu_tracker's, which lack total and match blocks by its rules:
     * WM_EINVAL if blocks do not match. In the other formats a block may be missing in some
     * sessions. */
    enum wm_format format;

    /* A smaller difference counts as none, a ratio up to 1; 0: 0.01; negative: none does.
     */
    double threshold;

    /* Only these metrics, such as "cpu_time", are tested for the result. Only times,
     * energies and memory can be chosen, for which more is worse. If there are none: all of
     * these. */
    const char *const *metrics;
    size_t metric_count;
};

/* The result of a comparison. The strings live until the next run. */
struct wm_comparison_result {
    size_t sessions;

    /* The largest increase over the first session that is certain: the lower end of its 95
     * % interval, as a ratio (0.05 is 5 %). Only figures that matter count. 0: no figure
     * has grown; infinite: a figure has grown from 0. */
    double worst;
    const char *worst_figure; /* "after: my-code-block: time"; NULL: no figure has grown */

    /* The first session without any tested figure, of which `worst` knows nothing: a test
     * takes 6 runs of both sessions. With `metrics`: the first session and metric that
     * could not be tested ("after: cpu_time"). NULL: all could be tested. */
    const char *untested;
};

/* Compares the sessions. `options` and `ret_result` may be NULL. WM_EINVAL: an option is
 * wrong; the error lists the valid ones. */
WM_API int wm_comparison_run(struct wm_comparison *comparison,
                             const struct wm_comparison_options *options,
                             struct wm_comparison_result *ret_result, struct wm_error *err);

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
