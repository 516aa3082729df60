/* SPDX-License-Identifier: Apache-2.0 */
/* view_plot_time.c - panels over a time axis. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_clock.h"
#include "base/base_text.h"
#include "view/chart/view_fold.h"
#include "view/plot/view_plot_legend.h"
#include "view/plot/view_plot_panel.h"

#define LEFT 76.0
#define RIGHT 18.0
#define RIGHT_WITH_AXIS 74.0
#define BOTTOM 46.0
#define BETWEEN 14.0
#define NAME_TEXT 11.0
#define CROSS 4.0        /* half of it */
#define PANEL_LEAST 92.0 /* height in which the name of an axis is read */
#define LEGEND 30.0

/* That the legend names. */
enum { REGIONS_MOST = 6 };

/* The yellow first and no grey, so that few regions have other colours than few devices. */
static size_t region_colour(size_t name)
{
    return 6 - name % 7;
}

bool wm_plot_is_shown(const struct wm_plot_panel_view *view,
                      const struct wm_plot_series *series, size_t side)
{
    const char *word = view->panel->words[side];

    return word && series->is_chosen &&
           strcmp(series->feed.unit, view->panel->unit[side]) == 0 &&
           wm_plot_is_meant(series, word);
}

static int64_t ns_of(double seconds)
{
    return (int64_t)llround(seconds * 1e9);
}

/* False where nothing has a value then. */
static bool find_axis_between(const struct wm_plot_panel_view *view, size_t side,
                              int64_t from_ns, int64_t to_ns, struct wm_axis *ret_axis)
{
    double least = INFINITY, greatest = -INFINITY, low, high;

    for (size_t i = 0; i < view->data->series_count; i++) {
        const struct wm_plot_series *series = &view->data->series[i];
        if (wm_plot_is_shown(view, series, side) &&
            wm_chart_line_range(&series->line, from_ns, to_ns, &low, &high)) {
            least = fmin(least, low);
            greatest = fmax(greatest, high);
        }
    }
    const char *unit = view->panel->unit[side];
    *ret_axis = wm_chart_panel_axis(least, greatest, unit, view->data->request->fits);
    return least <= greatest;
}

/* The axis of one side; false where nothing ever has a value. What has no value yet in a
 * film, as a rate at the first tick, has the axis of all its values. */
static bool find_axis(const struct wm_plot_panel_view *view, size_t side,
                      struct wm_axis *ret_axis)
{
    const struct wm_plot_window *window = view->window;

    return find_axis_between(view, side, ns_of(window->axis.low), ns_of(window->newest),
                             ret_axis) ||
           find_axis_between(view, side, INT64_MIN, INT64_MAX, ret_axis);
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

static double time_x(const struct wm_plot_panel_view *view, double seconds)
{
    return wm_plot_place(&view->window->axis, seconds, view->box.left, view->box.right);
}

/* Up to where there may be samples. */
static double newest_x(const struct wm_plot_panel_view *view)
{
    return time_x(view, view->window->newest);
}

void wm_plot_show(const struct wm_plot_panel_view *view,
                  const struct wm_plot_series *series, struct wm_chart_column *columns,
                  size_t count)
{
    wm_chart_line_show(&series->line, ns_of(view->window->axis.low),
                       ns_of(view->window->newest) + 1, columns, count);
}

double wm_plot_column_x(const struct wm_plot_panel_view *view, size_t index, size_t count)
{
    return view->box.left +
           ((double)index + 0.5) * (newest_x(view) - view->box.left) / (double)count;
}

size_t wm_plot_end(const struct wm_chart_column *columns, size_t count)
{
    while (count > 0 && !has_value(&columns[count - 1]))
        count--;
    return count;
}

void wm_plot_name_end(const struct wm_plot_panel_view *view, double x, double y,
                      const char *name)
{
    double width = wm_plot_text_width(view->canvas, NAME_TEXT, name);
    bool is_before = x + width + 6 > view->box.right;
    const struct wm_plot_style style = { .size = NAME_TEXT,
                                         .colour = view->canvas->theme->ink,
                                         .align = is_before ? WM_PLOT_RIGHT : WM_PLOT_LEFT,
                                         .has_halo = true };

    wm_plot_text(view->canvas, is_before ? x - 4 : x + 4,
                 y + (y - view->box.top > 24 ? -10 : 10), &style, name);
}

/* A cross where a line ends before the samples do, as that of a GPU that is lost. The first
 * panel says why. */
static void mark_end(const struct wm_plot_panel_view *view,
                     const struct wm_plot_series *series, size_t side,
                     const struct wm_chart_column *columns, size_t count)
{
    cairo_t *cairo = view->canvas->cairo;
    size_t end = wm_plot_end(columns, count), after = end;
    char text[2 * WM_PLOT_NAME_SIZE + 2];

    while (after < count && !columns[after].is_sampled)
        after++;
    if (end == 0 || after == count || !series->why[0])
        return;
    double x = wm_plot_column_x(view, end - 1, count);
    double y = wm_plot_place(&view->axes[side], columns[end - 1].last, view->box.bottom,
                             view->box.top);
    cairo_set_dash(cairo, NULL, 0, 0);
    cairo_move_to(cairo, x - CROSS, y - CROSS);
    cairo_rel_line_to(cairo, 2 * CROSS, 2 * CROSS);
    cairo_move_to(cairo, x - CROSS, y + CROSS);
    cairo_rel_line_to(cairo, 2 * CROSS, -2 * CROSS);
    cairo_stroke(cairo);
    snprintf(text, sizeof(text), "%s: %s", series->device_name, series->why);
    if (view->panel->row == 0)
        wm_plot_name_end(view, x, y, text);
}

void wm_plot_line(const struct wm_plot_panel_view *view,
                  const struct wm_plot_series *series, size_t side,
                  struct wm_chart_column *columns, size_t count)
{
    const struct wm_plot_canvas *canvas = view->canvas;
    const struct wm_plot_box *box = &view->box;
    const struct wm_axis *axis = &view->axes[side];

    wm_plot_show(view, series, columns, count);
    for (size_t i = 0; i < count; i++) {
        if (!has_value(&columns[i]))
            continue;
        double x = wm_plot_short(canvas, wm_plot_column_x(view, i, count));
        double low = wm_plot_place(axis, columns[i].low, box->bottom, box->top);
        double high = wm_plot_place(axis, columns[i].high, box->bottom, box->top);
        low = wm_plot_short(canvas, low);
        high = wm_plot_short(canvas, high);
        add_column(canvas, &columns[i], x, low, high);
        if (low == high && is_lone(columns, i, count))
            add_dot(canvas, x, low);
    }
    if (series->dash > 0)
        wm_plot_dash(canvas, series->dash);
    wm_plot_colour(canvas, wm_chart_colour(series->colour), 1);
    cairo_stroke(canvas->cairo);
    mark_end(view, series, side, columns, count);
}

/* How many lines before it a line lies on, in most of the columns in which both have
 * values. */
static size_t count_hidden(const struct wm_plot_panel_view *view, size_t index, size_t side,
                           struct wm_chart_column *columns, struct wm_chart_fold *folds,
                           size_t count)
{
    const struct wm_plot_series *series = view->data->series;
    double pixel =
        (view->axes[side].high - view->axes[side].low) / (view->box.bottom - view->box.top);
    size_t hidden = 0;

    for (size_t i = 0; i < index; i++) {
        size_t both = 0, same = 0;
        if (!wm_plot_is_shown(view, &series[i], side) || series[i].is_folded)
            continue;
        memset(folds, 0, count * sizeof(*folds));
        wm_plot_show(view, &series[i], columns, count);
        wm_chart_fold_add(folds, columns, count);
        wm_plot_show(view, &series[index], columns, count);
        wm_chart_fold_add(folds, columns, count);
        for (size_t k = 0; k < count; k++) {
            both += folds[k].count == 2;
            same += folds[k].count == 2 && folds[k].high - folds[k].low <= pixel;
        }
        hidden += 2 * same > both;
    }
    return hidden;
}

/* The second axis has dashes; of several recordings, whose devices have them, thin lines. A
 * line on others has dashes that leave room for theirs. */
static void set_line(const struct wm_plot_panel_view *view, size_t side, size_t hidden)
{
    cairo_t *cairo = view->canvas->cairo;
    const double dashes[] = { 5, side > 0 ? 3 : 5 * (double)hidden };
    bool is_thin = side > 0 && view->data->request->input_count > 1;
    bool is_dashed = (side > 0 && !is_thin) || hidden > 0;

    cairo_set_line_width(cairo, is_thin ? 0.7 : 1.5);
    cairo_set_antialias(cairo, CAIRO_ANTIALIAS_FAST); /* a third of the time */
    cairo_set_line_join(cairo, CAIRO_LINE_JOIN_BEVEL);
    cairo_set_line_cap(cairo, !is_dashed && view->data->request->input_count == 1
                                  ? CAIRO_LINE_CAP_ROUND
                                  : CAIRO_LINE_CAP_BUTT);
    cairo_set_dash(cairo, dashes, is_dashed ? 2 : 0, 0);
}

static int draw_lines(const struct wm_plot_panel_view *view, size_t side,
                      struct wm_error *err)
{
    const struct wm_plot_box *box = &view->box;
    cairo_t *cairo = view->canvas->cairo;
    double fineness = view->canvas->is_vector ? 1 : view->canvas->scale;
    size_t count = (size_t)ceil((newest_x(view) - box->left) * fineness);
    /* In a film the dashes would move; beside a second axis they would be taken for its. */
    bool has_dashes = !view->has_axis[1] && view->data->request->input_count == 1 &&
                      view->window->newest >= view->window->axis.high;

    count = count > 0 ? count : 1;
    struct wm_chart_column *columns = calloc(count, sizeof(*columns));
    struct wm_chart_fold *folds = calloc(count, sizeof(*folds));
    int status = columns && folds ? WM_OK : wm_fail_memory(err, "figure");
    cairo_save(cairo);
    cairo_rectangle(cairo, box->left - 3, box->top, box->right - box->left + 3,
                    box->bottom - box->top);
    cairo_clip(cairo);
    for (size_t i = 0; i < view->data->series_count && status == WM_OK; i++) {
        const struct wm_plot_series *series = &view->data->series[i];
        if (!wm_plot_is_shown(view, series, side))
            continue;
        size_t hidden = 0;
        if (has_dashes && !series->is_folded)
            hidden = count_hidden(view, i, side, columns, folds, count);
        set_line(view, side, hidden);
        if (!series->is_folded)
            wm_plot_line(view, series, side, columns, count);
        else if (!wm_plot_is_in_earlier(view, i, side))
            status = wm_plot_group(view, i, side, columns, count, err);
    }
    cairo_restore(cairo);
    free(columns);
    free(folds);
    return status;
}

/* What 100 % is, where it is the use of CPUs: "% of one core". */
static const char *find_base(const struct wm_plot_panel_view *view, size_t side)
{
    bool has_cpu = false, has_other = false;

    for (size_t i = 0; i < view->data->series_count; i++) {
        const struct wm_plot_series *series = &view->data->series[i];
        if (!wm_plot_is_shown(view, series, side) || !series->has_values)
            continue;
        bool is_cpu = strcmp(series->channel.metric, "cpu_time") == 0 &&
                      strcmp(series->feed.unit, "ratio") == 0 &&
                      series->channel.device_kind != WM_DEVICE_CPU;
        has_cpu = has_cpu || is_cpu;
        has_other = has_other || !is_cpu;
    }
    return !has_cpu ? "" : has_other ? "; CPU: of one core" : " of one core";
}

/* "power" as the heading "Power", a column of the recording as it is. */
static void write_label(const struct wm_plot_panel_view *view, size_t side, char *label,
                        size_t size)
{
    bool is_one = view->data->request->input_count == 1;

    snprintf(label, size, "%s%s", wm_chart_heading(view->panel->words[side]),
             side == 0 ? ""
             : is_one  ? ", dashed"
                       : ", thin");
}

static void draw_bands(const struct wm_plot_panel_view *view)
{
    for (size_t i = 0; i < view->data->band_count; i++) {
        const struct wm_plot_band *band = &view->data->bands[i];
        struct wm_plot_box box = view->box;
        box.left = fmax(time_x(view, (double)band->from_ns / 1e9), box.left);
        box.right = fmin(time_x(view, (double)band->to_ns / 1e9), newest_x(view));
        if (box.right < view->box.left || box.left > newest_x(view))
            continue;
        box.right = fmax(box.right, box.left + 0.5);
        wm_plot_region_area(view->canvas, region_colour(band->name), &box);
    }
}

static int draw_panel(const struct wm_plot_panel_view *view, struct wm_error *err)
{
    char label[WM_PLOT_NAME_SIZE];
    int status = WM_OK;

    draw_bands(view);
    wm_plot_axis(view->canvas, &view->box, WM_PLOT_AT_BOTTOM, &view->window->axis, "s",
                 view->is_lowest ? "Time" : "");
    for (size_t side = 0; side < 2; side++) {
        if (!view->panel->words[side])
            continue;
        write_label(view, side, label, sizeof(label));
        wm_plot_axis_of(view->canvas, &view->box,
                        side == 0 ? WM_PLOT_AT_LEFT : WM_PLOT_AT_RIGHT, &view->axes[side],
                        view->panel->unit[side], find_base(view, side), label);
    }
    wm_plot_frame(view->canvas, &view->box);
    for (size_t side = 0; side < 2 && status == WM_OK; side++) {
        if (view->has_axis[side])
            status = draw_lines(view, side, err);
    }
    return status;
}

/* The regions that are seen. */
static size_t add_regions(const struct wm_plot_data *data, struct wm_plot_entry *entries)
{
    size_t count = 0, more = 0;

    for (size_t name = 0; name < data->name_count; name++) {
        size_t band = 0;
        while (band < data->band_count && data->bands[band].name != name)
            band++;
        if (band == data->band_count)
            continue;
        if (count == REGIONS_MOST) {
            more++;
            continue;
        }
        entries[count] = (struct wm_plot_entry) { .sign = WM_PLOT_REGION,
                                                  .colour = region_colour(name) };
        snprintf(entries[count].name, WM_PLOT_NAME_SIZE, "%s", data->names[name]);
        count++;
    }
    if (more > 0) {
        entries[count].sign = WM_PLOT_NO_SIGN;
        snprintf(entries[count].name, WM_PLOT_NAME_SIZE, "+%zu more regions", more);
        count++;
    }
    return count;
}

/* "Power: no value of gpu6 (Not Supported)", "Memory: no value of gpu31 and 32 more": what
 * one side of a panel lacks of an input; false: nothing. */
static bool write_missing(const struct wm_plot_panel_view *view, size_t side, size_t input,
                          char text[WM_PLOT_NAME_SIZE])
{
    const struct wm_plot_data *data = view->data;
    const struct wm_plot_series *first = NULL;
    size_t count = 0;

    for (size_t i = 0; i < data->series_count; i++) {
        const struct wm_plot_series *series = &data->series[i];
        if (series->input != input || series->has_values ||
            !wm_plot_is_shown(view, series, side))
            continue;
        first = first ? first : series;
        count++;
    }
    if (count == 0)
        return false;
    if (data->request->input_count > 1)
        wm_plot_input_name(&data->request->inputs[input], text);
    wm_text_list(text, WM_PLOT_NAME_SIZE, ", ", "%s: no value of %s",
                 wm_chart_heading(view->panel->words[side]), first->device_name);
    if (count == 1)
        wm_text_list(text, WM_PLOT_NAME_SIZE, " ", "(%s)", first->why);
    else
        wm_text_list(text, WM_PLOT_NAME_SIZE, " ", "and %zu more", count - 1);
    return true;
}

static bool has_values(const struct wm_plot_data *data, size_t input)
{
    for (size_t i = 0; i < data->series_count; i++) {
        const struct wm_plot_series *series = &data->series[i];
        if (series->input == input && series->is_chosen && series->has_values)
            return true;
    }
    return false;
}

/* What has no value, an entry for each axis, or one for all of a recording. */
static size_t add_missing(const struct wm_plot_data *data,
                          const struct wm_plot_layout *layout,
                          struct wm_plot_entry *entries)
{
    size_t count = 0;

    for (size_t input = 0; input < data->request->input_count; input++) {
        if (!has_values(data, input)) {
            wm_plot_input_name(&data->request->inputs[input], entries[count].name);
            wm_text_list(entries[count].name, WM_PLOT_NAME_SIZE, ": ", "no value");
            entries[count++].sign = WM_PLOT_NO_SIGN;
            continue;
        }
        for (size_t i = 0; i < 2 * layout->count; i++) {
            const struct wm_plot_panel_view view = { .data = data,
                                                     .panel = &layout->panels[i / 2] };
            if (write_missing(&view, i % 2, input, entries[count].name))
                entries[count++].sign = WM_PLOT_NO_SIGN;
        }
    }
    return count;
}

/* One for each colour; of several recordings one for each of them, and for each device. */
static size_t add_devices(const struct wm_plot_data *data, struct wm_plot_entry *entries)
{
    size_t inputs = data->request->input_count > 1 ? data->request->input_count : 0;
    size_t count = inputs;

    for (size_t i = 0; i < inputs; i++) {
        entries[i].colour = i;
        wm_plot_input_name(&data->request->inputs[i], entries[i].name);
    }
    if (inputs > 0 && data->device_count == 1)
        return inputs; /* the device is in the axis, and all are solid */
    for (size_t i = 0; i < data->series_count; i++) {
        const struct wm_plot_series *series = &data->series[i];
        struct wm_plot_entry *entry = &entries[inputs + series->device];
        if (!series->is_chosen || !series->has_values || entry->name[0])
            continue;
        *entry = (struct wm_plot_entry) { .colour = series->colour,
                                          .dash = series->dash,
                                          .is_device = inputs > 0,
                                          .sign = series->is_folded ? WM_PLOT_FOLDED
                                                                    : WM_PLOT_LINE };
        memcpy(entry->name, series->name, sizeof(entry->name));
        count++;
    }
    return count;
}

static struct wm_plot_box draw_legend(const struct wm_plot_canvas *canvas,
                                      const struct wm_plot_data *data,
                                      const struct wm_plot_layout *layout,
                                      const struct wm_plot_box *box)
{
    size_t inputs = data->request->input_count;
    struct wm_plot_entry *entries =
        calloc(inputs * (2 * layout->count + 1) + data->device_count + REGIONS_MOST + 1,
               sizeof(*entries));
    struct wm_plot_box left = *box;

    if (entries) {
        size_t count = add_devices(data, entries);
        count += add_regions(data, entries + count);
        count += add_missing(data, layout, entries + count);
        left = wm_plot_legend(canvas, entries, count, box);
    }
    free(entries);
    return left;
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

/* All panels, each with its place and its axes. */
struct page {
    struct wm_plot_panel_view views[WM_PLOT_PANELS_MAX];
    size_t count;
};

static void fit_labels(const struct page *page, struct wm_plot_canvas *canvas)
{
    char label[WM_PLOT_NAME_SIZE];

    for (size_t i = 0; i < 2 * page->count; i++) {
        const struct wm_plot_panel_view *view = &page->views[i / 2];
        size_t side = i % 2;
        if (!view->has_axis[side])
            continue;
        write_label(view, side, label, sizeof(label));
        wm_plot_fit_label(canvas, &view->box, &view->axes[side], view->panel->unit[side],
                          find_base(view, side), label);
    }
}

static void place_panels(struct page *page, const struct wm_plot_canvas *canvas,
                         const struct wm_plot_window *window,
                         const struct wm_plot_data *data,
                         const struct wm_plot_layout *layout,
                         const struct wm_plot_box *area)
{
    bool has_second = false;

    for (size_t i = 0; i < layout->count; i++)
        has_second = has_second || layout->panels[i].words[1];
    double right = has_second ? RIGHT_WITH_AXIS : RIGHT;
    double wide = (area->right - area->left) / (double)layout->columns;
    for (size_t i = 0; i < layout->count; i++) {
        const struct wm_plot_panel *panel = &layout->panels[i];
        double rows = (double)layout->rows[panel->column], row = (double)panel->row;
        double left = area->left + wide * (double)panel->column;
        double high = (area->bottom - BOTTOM - area->top + BETWEEN) / rows;
        struct wm_plot_panel_view *view = &page->views[page->count++];
        *view = (struct wm_plot_panel_view) {
            .canvas = canvas,
            .data = data,
            .panel = panel,
            .window = window,
            .is_lowest = panel->row + 1 == layout->rows[panel->column],
            .box = { .left = left + LEFT,
                     .right = left + wide - right,
                     .top = area->top + high * row,
                     .bottom = area->top + high * (row + 1) - BETWEEN },
        };
        for (size_t side = 0; side < 2; side++) {
            view->has_axis[side] =
                panel->words[side] && find_axis(view, side, &view->axes[side]);
            if (!view->has_axis[side]) /* it has a name, and no marks */
                view->axes[side] = (struct wm_axis) { 0, 0 };
        }
    }
}

double wm_plot_time_height(const struct wm_plot_layout *layout)
{
    size_t most = 0;

    for (size_t i = 0; i < layout->columns; i++)
        most = layout->rows[i] > most ? layout->rows[i] : most;
    return WM_PLOT_TITLE_HEIGHT + LEGEND + (double)most * (PANEL_LEAST + BETWEEN) + BOTTOM;
}

int wm_plot_time(const struct wm_plot_window *window, const struct wm_plot_canvas *canvas,
                 const struct wm_plot_data *data, const struct wm_plot_layout *layout,
                 struct wm_error *err)
{
    struct wm_plot_canvas own = *canvas;
    struct wm_plot_box area = wm_plot_title(&own, data->title);
    struct page page = { .count = 0 };
    int status = WM_OK;

    area.left = LEFT;
    area.right -= RIGHT;
    area = draw_legend(&own, data, layout, &area);
    area.left = 0;
    area.right += RIGHT;
    area.top += 6;
    place_panels(&page, &own, window, data, layout, &area);
    fit_labels(&page, &own);
    for (size_t i = 0; i < page.count && status == WM_OK; i++) {
        const struct wm_plot_box *box = &page.views[i].box;
        if (box->right - box->left < 20 || box->bottom - box->top < 20)
            return wm_fail(
                err, WM_EINVAL,
                "the figure is too small for its panels; --size makes it larger");
        status = draw_panel(&page.views[i], err);
    }
    return status;
}
