/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_comparison.h - what the views of a comparison need of it. */
#ifndef WM_ANALYZE_COMPARISON_H
#define WM_ANALYZE_COMPARISON_H

#include "analyze/compare/analyze_compare.h"
#include "wattmeter/comparison.h"

/* Borrowed; NULL before wm_comparison_run(). */
const struct wm_compare *wm_comparison_compare(const struct wm_comparison *comparison);

enum wm_comparison_format wm_comparison_format(const struct wm_comparison *comparison);

#endif
