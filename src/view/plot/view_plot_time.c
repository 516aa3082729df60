/* SPDX-License-Identifier: Apache-2.0 */
/* view_plot_time.c - panels over a time axis. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_clock.h"
#include "base/text/base_text.h"
#include "view/plot/view_plot.h"

#define LEFT 76.0
#define RIGHT 18.0
#define RIGHT_WITH_AXIS 74.0
#define BOTTOM 46.0
#define BETWEEN 14.0
#define LEGEND 22.0
#define SMALL_TEXT 11.0
#define LEGEND_TEXT 12.0

/* In a vector figure, places are told apart to a quarter of a pixel. */
#define STEPS_PER_PIXEL 4.0

enum { LEGEND_LINES_MOST = 3 };

struct panel_view {
    const struct wm_plot_canvas *canvas;
    const struct wm_plot_data *data;
    const struct wm_plot_panel *panel;
    struct wm_plot_box box;
    const struct wm_plot_window *window;
    bool is_lowest;
};

static bool is_shown(const struct panel_view *view, const struct wm_plot_series *series,
                     size_t side)
{
    const char *word = view->panel->words[side];

    return word && series->is_chosen &&
           strcmp(series->feed.unit, view->panel->unit[side]) == 0 &&
           wm_plot_is_meant(series, word);
}

static bool has_values(const struct wm_plot_series *series, double *ret_least,
                       double *ret_greatest)
{
    return wm_chart_line_range(&series->line, INT64_MIN, INT64_MAX, ret_least,
                               ret_greatest);
}

static int64_t ns_of(double seconds)
{
    return (int64_t)llround(seconds * 1e9);
}

/* False where nothing has a value then. */
static bool find_axis_between(const struct panel_view *view, size_t side, int64_t from_ns,
                              int64_t to_ns, struct wm_axis *ret_axis)
{
    double least = INFINITY, greatest = -INFINITY, low, high;

    for (size_t i = 0; i < view->data->series_count; i++) {
        const struct wm_plot_series *series = &view->data->series[i];
        if (is_shown(view, series, side) &&
            wm_chart_line_range(&series->line, from_ns, to_ns, &low, &high)) {
            least = fmin(least, low);
            greatest = fmax(greatest, high);
        }
    }
    *ret_axis = wm_chart_axis(least, greatest, view->panel->unit[side]);
    return least <= greatest;
}

/* The axis of one side; false where nothing ever has a value. What has no value yet in a
 * film, as a rate at the first tick, has the axis of all its values. */
static bool find_axis(const struct panel_view *view, size_t side, struct wm_axis *ret_axis)
{
    const struct wm_plot_window *window = view->window;

    return find_axis_between(view, side, ns_of(window->axis.low), ns_of(window->newest),
                             ret_axis) ||
           find_axis_between(view, side, INT64_MIN, INT64_MAX, ret_axis);
}

static double short_place(const struct wm_plot_canvas *canvas, double place)
{
    return canvas->is_vector ? round(place * STEPS_PER_PIXEL) / STEPS_PER_PIXEL : place;
}

static bool has_value(const struct wm_chart_column *column)
{
    return column->is_sampled && column->state == WM_READING_OK;
}

/* Whether no line leads to or from a column. */
static bool is_lone(const struct wm_chart_column *columns, size_t index, size_t count)
{
    size_t next = index + 1;

    while (next < count && !has_value(&columns[next]))
        next++;
    return !columns[index].is_joined && (next == count || !columns[next].is_joined);
}

/* The lowest and the highest point of a column, that first which is nearer to its first
 * value. */
static void add_column(const struct wm_plot_canvas *canvas,
                       const struct wm_chart_column *column, double x, double low_y,
                       double high_y)
{
    bool is_low_first = column->first - column->low <= column->high - column->first;
    double y = is_low_first ? low_y : high_y, end_y = is_low_first ? high_y : low_y;

    if (column->is_joined)
        cairo_line_to(canvas->cairo, x, y);
    else
        cairo_move_to(canvas->cairo, x, y);
    if (end_y != y)
        cairo_line_to(canvas->cairo, x, end_y);
}

static void add_dot(const struct wm_plot_canvas *canvas, double x, double y)
{
    cairo_new_sub_path(canvas->cairo);
    cairo_arc(canvas->cairo, x, y, 1.5, 0, 2 * M_PI);
}

static double time_x(const struct panel_view *view, double seconds)
{
    return wm_plot_place(&view->window->axis, seconds, view->box.left, view->box.right);
}

/* Up to where there may be samples. */
static double newest_x(const struct panel_view *view)
{
    return time_x(view, view->window->newest);
}

static void draw_line(const struct panel_view *view, const struct wm_plot_series *series,
                      const struct wm_axis *axis, struct wm_chart_column *columns,
                      size_t count)
{
    const struct wm_plot_canvas *canvas = view->canvas;
    const struct wm_plot_box *box = &view->box;
    double step = (newest_x(view) - box->left) / (double)count;

    wm_chart_line_show(&series->line, ns_of(view->window->axis.low),
                       ns_of(view->window->newest) + 1, columns, count);
    for (size_t i = 0; i < count; i++) {
        if (!has_value(&columns[i]))
            continue;
        double x = short_place(canvas, box->left + ((double)i + 0.5) * step);
        double low = wm_plot_place(axis, columns[i].low, box->bottom, box->top);
        double high = wm_plot_place(axis, columns[i].high, box->bottom, box->top);
        low = short_place(canvas, low);
        high = short_place(canvas, high);
        add_column(canvas, &columns[i], x, low, high);
        if (low == high && is_lone(columns, i, count))
            add_dot(canvas, x, low);
    }
    wm_plot_colour(canvas, wm_chart_colour(series->colour), 1);
    cairo_stroke(canvas->cairo);
}

static int draw_lines(const struct panel_view *view, size_t side,
                      const struct wm_axis *axis, struct wm_error *err)
{
    const struct wm_plot_box *box = &view->box;
    cairo_t *cairo = view->canvas->cairo;
    const double dashes[] = { 5, 3 };
    size_t count = (size_t)ceil((newest_x(view) - box->left) * view->canvas->scale);

    count = count > 0 ? count : 1;
    struct wm_chart_column *columns = calloc(count, sizeof(*columns));
    if (!columns)
        return wm_fail_memory(err, "figure");
    cairo_save(cairo);
    cairo_rectangle(cairo, box->left - 3, box->top, box->right - box->left + 3,
                    box->bottom - box->top);
    cairo_clip(cairo);
    cairo_set_line_width(cairo, 1.5);
    cairo_set_antialias(cairo, CAIRO_ANTIALIAS_FAST); /* a third of the time */
    cairo_set_line_join(cairo, CAIRO_LINE_JOIN_BEVEL);
    cairo_set_line_cap(cairo, side == 0 ? CAIRO_LINE_CAP_ROUND : CAIRO_LINE_CAP_BUTT);
    cairo_set_dash(cairo, dashes, side == 0 ? 0 : 2, 0);
    for (size_t i = 0; i < view->data->series_count; i++) {
        if (is_shown(view, &view->data->series[i], side))
            draw_line(view, &view->data->series[i], axis, columns, count);
    }
    cairo_restore(cairo);
    free(columns);
    return WM_OK;
}

/* "power" as the heading "Power", a column of the recording as it is. */
static void write_label(const char *word, bool is_second, char *label, size_t size)
{
    static const char *const headings[][2] = {
        { "power", "Power" },   { "utilization", "Utilisation" },
        { "memory", "Memory" }, { "temperature", "Temperature" },
        { "clocks", "Clocks" },
    };
    const char *heading = word;

    for (size_t i = 0; i < sizeof(headings) / sizeof(headings[0]); i++) {
        if (strcmp(headings[i][0], word) == 0)
            heading = headings[i][1];
    }
    snprintf(label, size, "%s%s", heading, is_second ? ", dashed" : "");
}

/* What has no value, and why. */
static void tell_missing(const struct panel_view *view)
{
    const struct wm_plot_style style = { .size = SMALL_TEXT,
                                         .colour = wm_plot_faint,
                                         .room = view->box.right - view->box.left - 16,
                                         .has_halo = true };
    char text[400] = "";
    double low, high;

    for (size_t i = 0; i < view->data->series_count; i++) {
        const struct wm_plot_series *series = &view->data->series[i];
        bool is_here = is_shown(view, series, 0) || is_shown(view, series, 1);
        if (is_here && !has_values(series, &low, &high))
            wm_text_list(text, sizeof(text), ", ", "%s n/a (%s)", series->name,
                         series->why);
    }
    if (text[0])
        wm_plot_text(view->canvas, view->box.left + 8, view->box.top + 10, &style, text);
}

static void draw_bands(const struct panel_view *view)
{
    const struct wm_plot_box *box = &view->box;
    cairo_t *cairo = view->canvas->cairo;
    bool is_top = view->panel->row == 0;
    double told_to = box->left;

    for (size_t i = 0; i < view->data->band_count; i++) {
        const struct wm_plot_band *band = &view->data->bands[i];
        const char *name = view->data->names[band->name];
        double from = fmax(time_x(view, (double)band->from_ns / 1e9), box->left);
        double to = fmin(time_x(view, (double)band->to_ns / 1e9), newest_x(view));
        if (to < box->left || from > newest_x(view))
            continue;
        to = fmax(to, from + 0.5);
        wm_plot_colour(view->canvas, wm_chart_colour(band->name), 0.09);
        cairo_rectangle(cairo, from, box->top, to - from, box->bottom - box->top);
        cairo_fill(cairo);
        const struct wm_plot_style style = { .size = SMALL_TEXT,
                                             .colour = wm_plot_faint,
                                             .align = WM_PLOT_CENTRE,
                                             .room = to - from };
        bool fits = is_top && from >= told_to - 0.5 && to - from > 12 &&
                    wm_plot_text_width(view->canvas, SMALL_TEXT, name) <= to - from;
        if (fits) {
            wm_plot_text(view->canvas, (from + to) / 2, box->top - 8, &style, name);
            told_to = to;
        }
    }
}

static int draw_panel(const struct panel_view *view, struct wm_error *err)
{
    struct wm_axis axes[2];
    char label[WM_PLOT_NAME_SIZE];
    int status = WM_OK;

    draw_bands(view);
    wm_plot_axis(view->canvas, &view->box, WM_PLOT_AT_BOTTOM, &view->window->axis, "s",
                 view->is_lowest ? "Time" : "");
    wm_plot_frame(view->canvas, &view->box);
    for (size_t side = 0; side < 2 && status == WM_OK; side++) {
        if (!view->panel->words[side])
            continue;
        write_label(view->panel->words[side], side == 1, label, sizeof(label));
        if (!find_axis(view, side, &axes[side]))
            continue;
        wm_plot_axis(view->canvas, &view->box,
                     side == 0 ? WM_PLOT_AT_LEFT : WM_PLOT_AT_RIGHT, &axes[side],
                     view->panel->unit[side], label);
        status = draw_lines(view, side, &axes[side], err);
    }
    tell_missing(view);
    return status;
}

/* The first line of that colour; NULL: there is none. */
static const struct wm_plot_series *find_colour(const struct wm_plot_data *data,
                                                size_t colour)
{
    double low, high;

    for (size_t i = 0; i < data->series_count; i++) {
        const struct wm_plot_series *series = &data->series[i];
        if (series->is_chosen && series->colour == colour &&
            has_values(series, &low, &high))
            return series;
    }
    return NULL;
}

/* Each device once. Those that there is no room for are not told. */
static double draw_legend(const struct wm_plot_canvas *canvas,
                          const struct wm_plot_data *data, double top)
{
    const struct wm_plot_style style = { .size = LEGEND_TEXT, .colour = wm_plot_ink };
    const struct wm_plot_series *series;
    double x = LEFT, y = top + LEGEND / 2;
    size_t lines = 1;

    for (size_t i = 0; (series = find_colour(data, i)) != NULL; i++) {
        double width = 44 + wm_plot_text_width(canvas, style.size, series->name);
        if (x + width > canvas->width - RIGHT && x > LEFT) {
            if (lines++ == LEGEND_LINES_MOST) {
                wm_plot_text(canvas, x, y, &style, "...");
                break;
            }
            x = LEFT;
            y += LEGEND - 4;
        }
        wm_plot_colour(canvas, wm_chart_colour(i), 1);
        cairo_set_line_width(canvas->cairo, 3);
        cairo_move_to(canvas->cairo, x, y);
        cairo_line_to(canvas->cairo, x + 20, y);
        cairo_stroke(canvas->cairo);
        wm_plot_text(canvas, x + 26, y, &style, series->name);
        x += width;
    }
    return y + LEGEND / 2;
}

struct wm_plot_window wm_plot_whole(const struct wm_plot_data *data)
{
    const struct wm_plot_request *request = data->request;
    double low = (double)(request->from ? data->axis_from_ns : data->from_ns) / 1e9;
    double high = (double)(request->to ? data->axis_to_ns : data->to_ns) / 1e9;

    if (low >= high) /* one sample */
        high = low + 1;
    return (struct wm_plot_window) { { low, high }, high };
}

int wm_plot_time(const struct wm_plot_window *window, const struct wm_plot_canvas *canvas,
                 const struct wm_plot_data *data, const struct wm_plot_layout *layout,
                 struct wm_error *err)
{
    struct wm_plot_box area = wm_plot_title(canvas, data->title);
    int status = WM_OK;
    bool has_second = false;

    area.top = draw_legend(canvas, data, area.top) + (data->band_count > 0 ? 22 : 8);
    for (size_t i = 0; i < layout->count; i++)
        has_second = has_second || layout->panels[i].words[1];
    double right = has_second ? RIGHT_WITH_AXIS : RIGHT;
    double wide = canvas->width / (double)layout->columns;
    for (size_t i = 0; i < layout->count && status == WM_OK; i++) {
        const struct wm_plot_panel *panel = &layout->panels[i];
        double rows = (double)layout->rows[panel->column], row = (double)panel->row;
        double high = (area.bottom - BOTTOM - area.top + BETWEEN) / rows;
        bool is_lowest = panel->row + 1 == layout->rows[panel->column];
        struct panel_view view = {
            .canvas = canvas,
            .data = data,
            .panel = panel,
            .window = window,
            .is_lowest = is_lowest,
            .box = { .left = wide * (double)panel->column + LEFT,
                     .right = wide * (double)(panel->column + 1) - right,
                     .top = area.top + high * row,
                     .bottom = area.top + high * (row + 1) - BETWEEN },
        };
        if (view.box.right - view.box.left < 20 || view.box.bottom - view.box.top < 20)
            return wm_fail(
                err, WM_EINVAL,
                "the figure is too small for its panels; --size makes it larger");
        status = draw_panel(&view, err);
    }
    return status;
}
