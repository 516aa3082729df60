/* SPDX-License-Identifier: Apache-2.0 */
/* view.h - the forms a report can take; for src/view alone. */
#ifndef WM_VIEW_H
#define WM_VIEW_H

#include <jansson.h>
#include <stdio.h>

#include "analyze/analyze_report.h"
#include "view/text/view_units.h"

/* The report as a JSON object, the caller's; NULL when out of memory. */
json_t *wm_view_json(const struct wm_report *report, const struct wm_units *units);

/* The report for people. Whether `out` took it all, it knows itself. */
void wm_view_text(const struct wm_report *report, const struct wm_units *units, FILE *out);

/* gpu_tracker's layouts. WM_ENOMEM is the only failure; whether `out` took it all, it knows
 * itself. */
int wm_view_gpu_tracker(const struct wm_report *report, const struct wm_units *units,
                        enum wm_report_format format, FILE *out);

#endif
