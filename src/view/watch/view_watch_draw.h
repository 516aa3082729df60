/* SPDX-License-Identifier: Apache-2.0 */
/* view_watch_draw.h - the picture of a session in the terminal; for src/view/watch alone.
 */
#ifndef WM_VIEW_WATCH_DRAW_H
#define WM_VIEW_WATCH_DRAW_H

#include "view/watch/view_watch_data.h"
#include "view/watch/view_watch_screen.h"

/* Where something stands on the screen. */
struct wm_watch_place {
    int row, column, rows, columns;
};

/* A chart as it stands on the screen. */
struct wm_watch_chart {
    bool is_there;
    struct wm_watch_place place;
    struct wm_axis time, values;
    const char *panel;
    struct wm_watch_canvas canvas;
    struct wm_chart_column *line; /* two for each column of the canvas */
};

/* At most so many stand on a screen. */
enum { WM_WATCH_CHARTS = 4 };

/* What is to be seen, all of it. */
struct wm_watch_view {
    const char *title, *where;
    struct wm_watch_data data; /* all zero: the samples have not begun */
    struct wm_watch_processes processes;
    struct wm_watch_chart charts[WM_WATCH_CHARTS];
    char energy[128];
    size_t panel;    /* of wm_watch_panel(): the first chart's */
    size_t selected; /* of the series in that panel */
    bool fits;       /* the axes of values, which begin at 0 otherwise */
    enum wm_watch_order order;
    int64_t window_ns, newest_ns;
    bool is_paused, has_help;
};

void wm_watch_draw(struct wm_watch_screen *screen, struct wm_watch_view *view);

/* A panel with its legend above and its times below; in view_watch_chart.c. */
void wm_watch_draw_chart(struct wm_watch_screen *screen, const struct wm_watch_view *view,
                         struct wm_watch_chart *chart, const char *panel,
                         const struct wm_watch_place *place);
void wm_watch_chart_release(struct wm_watch_chart *chart);

/* The devices, and the processes, in so many rows with a heading; in view_watch_tables.c.
 */
size_t wm_watch_device_count(const struct wm_watch_view *view);
void wm_watch_draw_devices(const struct wm_watch_screen *screen,
                           const struct wm_watch_view *view, int top, int rows);
void wm_watch_draw_processes(const struct wm_watch_screen *screen,
                             const struct wm_watch_view *view, int top, int rows);

/* A value as people read it: "250 W", "93 %", "67 °C"; "n/a" of NAN. */
struct wm_quantity wm_watch_text(double value, const char *unit);

#endif
