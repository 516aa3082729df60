/* SPDX-License-Identifier: Apache-2.0 */
/* view_comparison.h - the forms that a comparison can take; for src/view alone. */
#ifndef WM_VIEW_COMPARISON_H
#define WM_VIEW_COMPARISON_H

#include <jansson.h>
#include <stdio.h>

#include "analyze/compare/analyze_comparison.h"

/* For people. WM_ENOMEM is the only failure of all of these; whether `out` took it all, it
 * knows itself. */
int wm_view_comparison_text(const struct wm_comparison *comparison, FILE *out);

/* The caller's; NULL when out of memory. */
json_t *wm_view_comparison_json(const struct wm_comparison *comparison);

/* As gpu_tracker's str() of it, line end and all. `is_cli`: the names of blocks stand at
 * the start of their lines. */
int wm_view_comparison_gpu_tracker(const struct wm_compare *compare, bool is_cli,
                                   FILE *out);

/* gpu_tracker's structure. The caller's; NULL when out of memory. */
json_t *wm_view_comparison_gpu_tracker_json(const struct wm_compare *compare);

/* "percent", "gigabytes", "joules". */
const char *wm_view_comparison_unit(const struct wm_compare *compare, unsigned item);

#endif
