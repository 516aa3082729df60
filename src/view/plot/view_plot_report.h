/* SPDX-License-Identifier: Apache-2.0 */
/* view_plot_report.h - the report of an input, for the figures that are made from it. */
#ifndef WM_VIEW_PLOT_REPORT_H
#define WM_VIEW_PLOT_REPORT_H

#include "wattmeter/plot.h"
#include "wattmeter/report.h"

/* The caller frees it. */
int wm_plot_report(const struct wm_plot_request *request, const struct wm_plot_input *input,
                   struct wm_report **ret_report, struct wm_error *err);

#endif
