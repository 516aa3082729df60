/* SPDX-License-Identifier: Apache-2.0 */
/* view_watch_draw.h - the picture of a session in the terminal; for src/view/watch alone.
 */
#ifndef WM_VIEW_WATCH_DRAW_H
#define WM_VIEW_WATCH_DRAW_H

#include "view/chart/view_fold.h"
#include "view/watch/view_watch_data.h"
#include "view/watch/view_watch_processes.h"
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
    struct wm_chart_fold *folds;  /* as many */
};

/* At most so many stand on a screen. */
enum { WM_WATCH_CHARTS = 4 };

/* The names of so many users are remembered. */
enum { WM_WATCH_USERS = 64 };

struct wm_watch_user {
    uid_t id;
    char name[32];
};

/* What is asked at the bottom of the screen. */
enum wm_watch_question { WM_WATCH_NO_QUESTION, WM_WATCH_FILTER, WM_WATCH_SIGNAL };

/* What is to be seen, all of it. */
struct wm_watch_view {
    const char *title, *where;
    struct wm_watch_data data; /* all zero: the samples have not begun */
    struct wm_watch_processes processes;
    struct wm_watch_chart charts[WM_WATCH_CHARTS];
    struct wm_watch_meter machine, target, target_cpu;
    double told_s;               /* the time of the report that these are of; 0: none yet */
    size_t panel;                /* of wm_watch_panel(): the first chart's */
    size_t selected;             /* of the series in that panel */
    bool fits;                   /* the axes of values, which begin at 0 otherwise */
    struct wm_watch_place table; /* where the processes stand, with their heading */
    struct wm_watch_user users[WM_WATCH_USERS];
    size_t user_count;
    enum wm_watch_question question;
    int typed_signal;  /* its number, by digits; 0: none */
    char message[160]; /* shown until the next key; "" */
    int64_t window_ns, newest_ns;
    bool is_paused, has_help, hides_charts;
};

void wm_watch_draw(struct wm_watch_screen *screen, struct wm_watch_view *view);

/* A panel with its legend above and its times below; in view_watch_chart.c. */
void wm_watch_draw_chart(struct wm_watch_screen *screen, const struct wm_watch_view *view,
                         struct wm_watch_chart *chart, const char *panel,
                         const struct wm_watch_place *place);
void wm_watch_chart_release(struct wm_watch_chart *chart);

/* The devices with a heading, and how many rows they take, of at most so many; in
 * view_watch_devices.c. */
int wm_watch_device_rows(const struct wm_watch_view *view, int columns, int most);
void wm_watch_draw_devices(const struct wm_watch_screen *screen,
                           const struct wm_watch_view *view, int top, int rows);

/* The processes in so many rows with a heading; in view_watch_table.c. */
void wm_watch_draw_processes(const struct wm_watch_screen *screen,
                             struct wm_watch_view *view, int top, int rows);

/* Somebody has clicked there: chooses a process, or what they are sorted by. False: the
 * table does not stand there. */
bool wm_watch_click(struct wm_watch_view *view, int row, int column);

/* Number `index` in the legend of the first chart; NULL: there are fewer. */
struct wm_watch_series *wm_watch_entry(const struct wm_watch_view *view, size_t index);

/* Does what was typed; false: the user has had enough. In view_watch_keys.c. */
bool wm_watch_obey(struct wm_watch_view *view, const struct wm_watch_input *input);

/* What stands in the last row: a question, a message, or as many keys as it holds. */
void wm_watch_last_row(const struct wm_watch_view *view, int columns, char *text,
                       size_t size);

/* Keys, and what they do; what ends with a colon is followed by the panels. */
struct wm_watch_help_entry {
    const char *keys, *text;
};

/* The help's entries; NULL past the last. */
const struct wm_watch_help_entry *wm_watch_help(size_t entry);

/* A value as people read it: "250 W", "93 %", "67 °C"; "n/a" of NAN. */
struct wm_quantity wm_watch_text(double value, const char *unit);

#endif
