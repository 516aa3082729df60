/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comparison.h - what differs between sessions: overall, and block by block.
 *
 *     wm_comparison_new(&comparison, &err);
 *     wm_comparison_add(comparison, "before", "before.sqlite", &err);
 *     wm_comparison_add(comparison, "after", "after.json", &err);
 *     if (wm_comparison_run(comparison, "mean", &err) == WM_OK)
 *         wm_comparison_print(comparison, WM_COMPARISON_TEXT, stdout, &err);
 *     wm_comparison_free(comparison);
 *
 * The first session is the one that the others are compared with. The rules of source.h
 * hold here too.
 */
#ifndef WATTMETER_COMPARISON_H
#define WATTMETER_COMPARISON_H

#include <stdbool.h>
#include <stdio.h>

#include "wattmeter/api.h"
#include "wattmeter/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wm_comparison;

enum wm_comparison_format {
    WM_COMPARISON_TEXT,
    WM_COMPARISON_JSON,
    WM_COMPARISON_GPU_TRACKER_TEXT, /* gpu_tracker's own layouts, byte by byte */
    WM_COMPARISON_GPU_TRACKER_JSON,
};

WM_API int wm_comparison_new(struct wm_comparison **ret_comparison, struct wm_error *err);

/* Accepts NULL. */
WM_API void wm_comparison_free(struct wm_comparison *comparison);

/* Adds a session of that name: a recording, a tracking file, or the JSON that an analysis
 * printed. A pickle is refused with what to do about it. Units are converted to those of
 * the first session. */
WM_API int wm_comparison_add(struct wm_comparison *comparison, const char *name,
                             const char *path, struct wm_error *err);

/* `statistic` is min, max, mean, std or total. WM_EINVAL when the sessions' blocks do not
 * match. */
WM_API int wm_comparison_run(struct wm_comparison *comparison, const char *statistic,
                             struct wm_error *err);

/* The largest increase of any figure over that of the first session which is larger than
 * the noise, as a ratio (0.05 is 5 %); 0: there is none. After wm_comparison_run(). */
WM_API double wm_comparison_worst(const struct wm_comparison *comparison);

/* Remarks, such as blocks that were matched by their file but not their line; NULL past
 * the last one. */
WM_API const char *wm_comparison_remark(const struct wm_comparison *comparison,
                                        size_t index);

/* WM_EIO when `out` did not take all of it. */
WM_API int wm_comparison_print(const struct wm_comparison *comparison,
                               enum wm_comparison_format format, FILE *out,
                               struct wm_error *err);

#ifdef __cplusplus
}
#endif
#endif
