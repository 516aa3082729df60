/* SPDX-License-Identifier: Apache-2.0 */
/* view_plot_panel.h - a panel while it is drawn, and the lines that are folded in it. */
#ifndef WM_VIEW_PLOT_PANEL_H
#define WM_VIEW_PLOT_PANEL_H

#include "view/plot/view_plot.h"

struct wm_plot_panel_view {
    const struct wm_plot_canvas *canvas;
    const struct wm_plot_data *data;
    const struct wm_plot_panel *panel;
    const struct wm_plot_window *window;
    struct wm_plot_box box;
    bool is_lowest;
    bool has_axis[2];
    struct wm_axis axes[2]; /* of the left and the right side */
};

/* Whether it is drawn on that side of the panel. */
bool wm_plot_is_shown(const struct wm_plot_panel_view *view,
                      const struct wm_plot_series *series, size_t side);

/* What `count` columns show of a line, up to the newest sample. */
void wm_plot_show(const struct wm_plot_panel_view *view,
                  const struct wm_plot_series *series, struct wm_chart_column *columns,
                  size_t count);

/* The place of a column. */
double wm_plot_column_x(const struct wm_plot_panel_view *view, size_t index, size_t count);

void wm_plot_line(const struct wm_plot_panel_view *view,
                  const struct wm_plot_series *series, size_t side,
                  struct wm_chart_column *columns, size_t count);

/* How many columns there are up to the last value. */
size_t wm_plot_end(const struct wm_chart_column *columns, size_t count);

/* Writes a name beside a point of a line, inside the panel. */
void wm_plot_name_end(const struct wm_plot_panel_view *view, double x, double y,
                      const char *name);

/* Folds the devices of a kind where a panel would have more lines than people can follow.
 */
void wm_plot_fold(struct wm_plot_data *data);

/* Draws the mean and the range of the lines that are folded with line number `first`, the
 * first of them on that side, and those far away from the others by themselves. */
int wm_plot_group(const struct wm_plot_panel_view *view, size_t first, size_t side,
                  struct wm_chart_column *columns, size_t count, struct wm_error *err);

/* Whether it is folded with an earlier one of that side, which stands for both. */
bool wm_plot_is_in_earlier(const struct wm_plot_panel_view *view, size_t index,
                           size_t side);

#endif
