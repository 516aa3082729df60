/* SPDX-License-Identifier: Apache-2.0 */
/* view_watch_data.h - what a session's view in the terminal shows, between its samples and
 * the screen; for src/view/watch alone. */
#ifndef WM_VIEW_WATCH_DATA_H
#define WM_VIEW_WATCH_DATA_H

#include "base/base_error.h"
#include "view/chart/view_column.h"
#include "view/chart/view_feed.h"
#include "view/chart/view_mark.h"
#include "wattmeter/watch.h"

/* How far the chart can be zoomed out, times the window: so much is kept. More lines of
 * GPUs than WM_WATCH_GPU_LINES are drawn as their mean and range, with the chosen one. */
enum { WM_WATCH_KEPT = 4, WM_WATCH_GPU_LINES = 4 };

/* A channel, or the sum of the devices' power. */
struct wm_watch_series {
    const char *label, *panel;
    const struct wm_channel *channel; /* NULL: the sum */
    size_t place;                     /* of its reading in a tick */
    struct wm_chart_feed feed;
    struct wm_chart_line line;
    size_t gpu;     /* of a GPU: which one, from 0, as in the table */
    size_t partner; /* what has the device's power by its other channel; 0: nothing */
    bool has_value; /* one at least */
    bool is_summed; /* its power is a part of the sum */
    enum wm_reading_state state; /* of the last sample; OK: it was `now` */
    double now;
    size_t colour;
    bool is_hidden;
};

/* A core of the machine, in use over the last second; NAN: not known. */
struct wm_watch_core {
    size_t place;
    const char *number; /* as the kernel counts */
    struct wm_chart_feed feed;
    double use;
};

/* Joules or seconds of CPU time up to a report, and how many a second since the report
 * before. */
struct wm_watch_meter {
    enum wm_report_state state;
    double total, rate;   /* NAN: not known */
    double seconds;       /* that the rate is of */
    const char *origin;   /* "ESTIMATED", "SIMULATED", "" */
    char text[128];       /* "3.21 kJ", "n/a (not measured)" */
    char uncertainty[16]; /* "± 4 %"; "" */
};

void wm_watch_meter_take(struct wm_watch_meter *meter,
                         const struct wm_report_figure *figure, double seconds);

struct wm_watch_data {
    struct wm_watch_series *series; /* [0] is the sum */
    size_t count;
    size_t summands;
    const char *const *panels; /* what matters most on this machine first; ends with NULL */
    size_t gpu_count;
    struct wm_watch_core *cores;
    size_t core_count;
    const struct wm_channel *channels;
    double *latest; /* of each channel; NAN: no value yet */
    size_t channel_count;
    int64_t window_ns;
    int64_t first_ns, newest_ns; /* of the samples */
    bool has_sample;
    const char *target; /* "command", "process", "all processes" */
    bool is_of_all;
};

/* The series that are of a panel, borrowing from the channels. The window is what is shown
 * at first. */
int wm_watch_data_init(struct wm_watch_data *data, const struct wm_recording *live,
                       int64_t window_ns, struct wm_error *err);
void wm_watch_data_release(struct wm_watch_data *data);
void wm_watch_data_add(struct wm_watch_data *data, const struct wm_tick *tick);

/* The panels that have a series, in their order, from 0; NULL past the last. */
const char *wm_watch_panel(const struct wm_watch_data *data, size_t index);

/* The series of a panel one after the other, from `*at` = 0; NULL past the last. */
struct wm_watch_series *wm_watch_next(const struct wm_watch_data *data, const char *panel,
                                      size_t *at);

/* How a series is marked whose values are not measured: " est", " sim"; "". */
const char *wm_watch_origin(const struct wm_watch_series *series);

/* Whether a series is of that panel. A device that has both its power and its energy is
 * there once. */
bool wm_watch_is_in(const struct wm_watch_data *data, const struct wm_watch_series *series,
                    const char *panel);

/* The last value of a channel; NAN: there is none. */
double wm_watch_latest(const struct wm_watch_data *data, const char *label,
                       const char *metric);

/* The chart's time in seconds since the first sample, up to `newest_ns`. Its ends are whole
 * columns, so that what stays in the chart looks the same when it moves. */
struct wm_axis wm_watch_time(int64_t newest_ns, int64_t window_ns, size_t columns);

/* What the series of a panel that are not hidden have in that time; false: nothing. An
 * axis of power, use or memory begins at 0 unless it is to fit the values. */
bool wm_watch_values(const struct wm_watch_data *data, const char *panel,
                     const struct wm_axis *time, bool fits, struct wm_axis *ret_values);

/* Cells of two by four dots, as braille has them. */
struct wm_watch_canvas {
    size_t columns, rows;
    uint8_t *dots; /* of each cell, in the order of Unicode's braille */
    uint8_t *inks; /* of each cell; 0: none */
};

int wm_watch_canvas_init(struct wm_watch_canvas *canvas, size_t columns, size_t rows,
                         struct wm_error *err);
void wm_watch_canvas_release(struct wm_watch_canvas *canvas);
void wm_watch_canvas_clear(struct wm_watch_canvas *canvas);

/* A line of two columns for each cell. */
void wm_watch_canvas_draw(struct wm_watch_canvas *canvas,
                          const struct wm_chart_column *line, const struct wm_axis *values,
                          uint8_t ink);

#endif
