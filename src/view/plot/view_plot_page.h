/* SPDX-License-Identifier: Apache-2.0 */
/* view_plot_page.h - how large a figure is, and its font. */
#ifndef WM_VIEW_PLOT_PAGE_H
#define WM_VIEW_PLOT_PAGE_H

#include <stdbool.h>

#include "wattmeter/plot.h"

#define WM_PLOT_PIXELS_PER_INCH 96.0

enum { WM_PLOT_DPI_MOST = 1200 };

struct wm_plot_page {
    double width, height; /* in pixels at 96 dpi */
    bool is_paper;        /* it was given in millimetres */
    bool has_height;      /* it was given, and not as the name of a size */
    char font[64];        /* names of families */
    double zoom;          /* of text, lines and margins; 1: text of 9 points */
};

/* WM_EINVAL where there is no such size, resolution or font. */
int wm_plot_page_init(const struct wm_plot_request *request, struct wm_plot_page *ret_page,
                      struct wm_error *err);

#endif
