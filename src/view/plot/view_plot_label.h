/* SPDX-License-Identifier: Apache-2.0 */
/* view_plot_label.h - names of points that lie on nothing else: each is put where there is
 * room, with a line to its point if that is far. */
#ifndef WM_VIEW_PLOT_LABEL_H
#define WM_VIEW_PLOT_LABEL_H

#include "view/plot/view_plot.h"

enum { WM_PLOT_LABEL_LINES = 2, WM_PLOT_BLOCKS_MAX = 512 };

struct wm_plot_labels {
    const struct wm_plot_canvas *canvas;
    struct wm_plot_box area;
    struct wm_plot_box blocks[WM_PLOT_BLOCKS_MAX]; /* what no label may lie on */
    size_t count;
};

struct wm_plot_label {
    const char *lines[WM_PLOT_LABEL_LINES]; /* the second may be NULL */
    double size;
    bool is_bold; /* the first line */
    uint32_t colour;
};

void wm_plot_block(struct wm_plot_labels *labels, const struct wm_plot_box *box);

/* Puts it beside a point. Where there is no free place it lies on as little as possible. */
void wm_plot_label_point(struct wm_plot_labels *labels, double x, double y,
                         const struct wm_plot_label *label);

#endif
