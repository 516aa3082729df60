/* SPDX-License-Identifier: Apache-2.0 */
/* view_plot_report.h - the report of an input, for the figures that are made from it. */
#ifndef WM_VIEW_PLOT_REPORT_H
#define WM_VIEW_PLOT_REPORT_H

#include <stdbool.h>

#include "wattmeter/plot.h"
#include "wattmeter/report.h"

/* Whether the report has a figure there, no "-": energy whose uncertainty is larger than it
 * is not known. */
bool wm_plot_is_known(const struct wm_report_figure *figure);

enum { WM_PLOT_TITLE_SIZE = 256, WM_PLOT_NOTE_SIZE = 512 };

/* Adds to a note why an input has energy of none of its regions, if it has none. */
void wm_plot_add_missing(const struct wm_plot_request *request, size_t input,
                         const struct wm_report *report, char note[WM_PLOT_NOTE_SIZE]);

/* "Repeated runs, 40 runs: sort numbers, sort -n numbers": the commands of the reports,
 * each once. */
void wm_plot_title_of(const char *what, const struct wm_report *const *reports,
                      size_t count, size_t runs, char ret_title[WM_PLOT_TITLE_SIZE]);

/* The caller frees it. */
int wm_plot_report(const struct wm_plot_request *request, const struct wm_plot_input *input,
                   struct wm_report **ret_report, struct wm_error *err);

#endif
