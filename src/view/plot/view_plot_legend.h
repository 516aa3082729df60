/* SPDX-License-Identifier: Apache-2.0 */
/* view_plot_legend.h - what colours and dashes of a figure mean. */
#ifndef WM_VIEW_PLOT_LEGEND_H
#define WM_VIEW_PLOT_LEGEND_H

#include "view/plot/view_plot.h"

#define WM_PLOT_BAND_ALPHA 0.22

/* What stands before the name of an entry: a line, a line in its range, the area of a
 * region, or nothing. */
enum wm_plot_sign { WM_PLOT_LINE, WM_PLOT_FOLDED, WM_PLOT_REGION, WM_PLOT_NO_SIGN };

struct wm_plot_entry {
    char name[WM_PLOT_NAME_SIZE];
    enum wm_plot_sign sign;
    size_t colour, dash;
    bool is_device; /* of several recordings: it has a dash and no colour */
};

/* The background of a region, between two places. */
void wm_plot_region_area(const struct wm_plot_canvas *canvas, size_t colour,
                         const struct wm_plot_box *box);

/* Sets the dash number `dash`; 0 is a solid line. */
void wm_plot_dash(const struct wm_plot_canvas *canvas, size_t dash);

/* Draws it at the top of a box or at its right, and returns the room that is left. */
struct wm_plot_box wm_plot_legend(const struct wm_plot_canvas *canvas,
                                  const struct wm_plot_entry *entries, size_t count,
                                  const struct wm_plot_box *box);

/* The name and the colour of each input, if there are several. */
struct wm_plot_box wm_plot_legend_of_inputs(const struct wm_plot_canvas *canvas,
                                            const struct wm_plot_request *request,
                                            const struct wm_plot_box *box);

#endif
