/* SPDX-License-Identifier: Apache-2.0 */
/* view_plot_repeats.c - repeated runs: a panel for each metric, in it a box for each
 * command and a point for each run, in their order, so that a drift is seen. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyze/compare/analyze_compare.h"
#include "view/plot/view_plot.h"
#include "view/plot/view_plot_legend.h"
#include "view/plot/view_plot_report.h"
#include "view/view_units.h"
#include "wattmeter/comparison.h"

#define LEFT 82.0
#define RIGHT 14.0
#define TOP 8.0
#define BOTTOM 12.0
#define PANEL_LEAST 112.0 /* height in which the name of an axis is read */
#define LEGEND_LINE 18.0  /* of a command, but no more than all together */
#define LEGEND_MOST 90.0
#define POINT 2.5
#define MARGIN 0.08 /* of the range of an axis, on both sides */
#define BOX 0.5     /* of the room of a command */

enum { PANELS_MAX = WM_COMPARE_MOST_FIGURES, HEADING_SIZE = 96 };

struct wm_plot_repeats {
    const struct wm_plot_request *request;
    struct wm_comparison *comparison;
    const struct wm_compare *compare;
    unsigned items[PANELS_MAX];
    size_t panels;
    struct wm_compare_cell *cells; /* of each session */
    double *values, *sorted;       /* room for those of a session */
};

/* The known values of a session, in the order of the runs. */
static size_t find_values(const struct wm_plot_repeats *figure, size_t session,
                          unsigned item)
{
    const struct wm_compare_session *of = &figure->compare->sessions[session];
    size_t known = 0;

    wm_compare_values(figure->compare, of, WM_COMPARE_OVERALL, item, figure->values);
    for (size_t i = 0; i < of->count; i++) {
        if (!isnan(figure->values[i]))
            figure->values[known++] = figure->values[i];
    }
    return known;
}

static bool is_known(const struct wm_plot_repeats *figure, unsigned item)
{
    for (size_t i = 0; i < figure->compare->session_count; i++) {
        size_t count = find_values(figure, i, item);
        for (size_t k = 0; k < count; k++) {
            if (figure->values[k] > 0)
                return true;
        }
    }
    return false;
}

static void find_panels(struct wm_plot_repeats *figure)
{
    for (unsigned place = 0; place < wm_compare_items(); place++) {
        unsigned item = wm_compare_item_at(place);
        if (wm_compare_item_row(item) && wm_compare_item_is_main(figure->compare, item) &&
            wm_compare_item_matters(item) && is_known(figure, item))
            figure->items[figure->panels++] = item;
    }
}

static struct wm_axis find_axis(const struct wm_plot_repeats *figure, unsigned item)
{
    double least = INFINITY, greatest = -INFINITY;

    for (size_t i = 0; i < figure->compare->session_count; i++) {
        size_t count = find_values(figure, i, item);
        for (size_t k = 0; k < count; k++) {
            least = fmin(least, figure->values[k]);
            greatest = fmax(greatest, figure->values[k]);
        }
    }
    double margin = MARGIN * (greatest > least ? greatest - least : fabs(least));
    return (struct wm_axis) { least - margin, greatest + margin };
}

/* Between two of the values, which are sorted. */
static double quantile(const double *sorted, size_t count, double part)
{
    double at = part * (double)(count - 1);
    size_t below = (size_t)at;
    size_t above = below + 1 < count ? below + 1 : below;

    return sorted[below] + (at - (double)below) * (sorted[above] - sorted[below]);
}

static void line(const struct wm_plot_canvas *canvas, double x0, double y0, double x1,
                 double y1, double width)
{
    cairo_set_line_width(canvas->cairo, width);
    cairo_move_to(canvas->cairo, x0, y0);
    cairo_line_to(canvas->cairo, x1, y1);
    cairo_stroke(canvas->cairo);
}

/* The middle half of the runs, their median, and lines to the least and the greatest. */
static void draw_box(const struct wm_plot_repeats *figure,
                     const struct wm_plot_canvas *canvas, const struct wm_plot_box *box,
                     const struct wm_axis *axis, double x, double half, size_t count)
{
    static const double parts[] = { 0, 0.25, 0.5, 0.75, 1 };
    double y[5];

    for (size_t i = 0; i < 5; i++)
        y[i] = wm_plot_place(axis, quantile(figure->sorted, count, parts[i]), box->bottom,
                             box->top);
    cairo_rectangle(canvas->cairo, x - half, y[3], 2 * half, y[1] - y[3]);
    cairo_set_line_width(canvas->cairo, 1.2);
    cairo_stroke(canvas->cairo);
    line(canvas, x - half, y[2], x + half, y[2], 2.4);
    line(canvas, x, y[0], x, y[1], 1.2);
    line(canvas, x, y[3], x, y[4], 1.2);
}

static void draw_session(const struct wm_plot_repeats *figure,
                         const struct wm_plot_canvas *canvas, const struct wm_plot_box *box,
                         const struct wm_axis *axis, unsigned item, size_t session)
{
    double room = (box->right - box->left) / (double)figure->compare->session_count;
    double x = box->left + room * ((double)session + 0.5), half = BOX * room / 2;
    size_t count = find_values(figure, session, item);

    if (count == 0)
        return;
    for (size_t i = 0; i < count; i++) {
        double along = count > 1 ? 2 * (double)i / (double)(count - 1) - 1 : 0;
        figure->sorted[i] = figure->values[i];
        wm_plot_colour(canvas, wm_chart_colour(session), 0.6);
        cairo_arc(canvas->cairo, x + 0.85 * half * along,
                  wm_plot_place(axis, figure->values[i], box->bottom, box->top), POINT, 0,
                  2 * M_PI);
        cairo_fill(canvas->cairo);
    }
    wm_runs_sum_up(figure->sorted, count);
    wm_plot_colour(canvas, wm_chart_colour(session), 1);
    draw_box(figure, canvas, box, axis, x, half, count);
}

/* Of the first command for which it was not measured. */
static enum wm_origin origin_of(const struct wm_plot_repeats *figure, unsigned item)
{
    enum wm_origin origin = WM_MEASURED;

    wm_compare_cells(figure->compare, WM_COMPARE_OVERALL, item, figure->cells);
    for (size_t i = 0; i < figure->compare->session_count && origin == WM_MEASURED; i++)
        origin = figure->cells[i].origin;
    return origin;
}

/* "Energy (simulated)" */
static void write_heading(const struct wm_plot_repeats *figure, unsigned item,
                          char heading[HEADING_SIZE])
{
    const struct wm_figure_row *row = wm_compare_item_row(item);

    snprintf(heading, HEADING_SIZE, "%s%s", row->label ? row->label : wm_figure_key(row),
             wm_plot_origin(origin_of(figure, item)));
}

static const char *unit_of(unsigned item)
{
    return wm_unit_plain(wm_compare_item_row(item)->unit)->symbol;
}

static void draw_panel(const struct wm_plot_repeats *figure,
                       const struct wm_plot_canvas *canvas, const struct wm_plot_box *box,
                       unsigned item)
{
    char heading[HEADING_SIZE];
    struct wm_axis axis = find_axis(figure, item);

    write_heading(figure, item, heading);
    wm_plot_axis(canvas, box, WM_PLOT_AT_LEFT, &axis, unit_of(item), heading);
    wm_plot_frame(canvas, box);
    for (size_t i = 0; i < figure->compare->session_count; i++)
        draw_session(figure, canvas, box, &axis, item, i);
}

static size_t columns_of(const struct wm_plot_repeats *figure)
{
    return figure->panels > 1 ? 2 : 1;
}

static size_t rows_of(const struct wm_plot_repeats *figure)
{
    return (figure->panels + columns_of(figure) - 1) / columns_of(figure);
}

double wm_plot_repeats_height(const struct wm_plot_repeats *repeats)
{
    double legend = LEGEND_LINE * (double)repeats->compare->session_count;

    return WM_PLOT_TITLE_HEIGHT + fmin(legend, LEGEND_MOST) +
           (TOP + PANEL_LEAST + BOTTOM) * (double)rows_of(repeats);
}

/* Of several commands. */
static struct wm_plot_box draw_legend(const struct wm_plot_repeats *figure,
                                      const struct wm_plot_canvas *canvas,
                                      const struct wm_plot_box *room)
{
    size_t count = figure->compare->session_count;
    struct wm_plot_entry *entries = calloc(count, sizeof(*entries));
    struct wm_plot_box left = *room;

    for (size_t i = 0; i < count && entries; i++) {
        entries[i].colour = i;
        snprintf(entries[i].name, sizeof(entries[i].name), "%s",
                 figure->compare->sessions[i].name);
    }
    left.left = LEFT;
    left.right -= RIGHT;
    if (entries && count > 1)
        left = wm_plot_legend(canvas, entries, count, &left);
    free(entries);
    left.left = 0;
    left.right += RIGHT;
    return left;
}

static void fit_labels(const struct wm_plot_repeats *figure, struct wm_plot_canvas *canvas,
                       const struct wm_plot_box *box)
{
    char heading[HEADING_SIZE];

    for (size_t i = 0; i < figure->panels; i++) {
        struct wm_axis axis = find_axis(figure, figure->items[i]);
        write_heading(figure, figure->items[i], heading);
        wm_plot_fit_label(canvas, box, &axis, unit_of(figure->items[i]), "", heading);
    }
}

/* In two columns. */
static void draw_all(const struct wm_plot_repeats *figure,
                     const struct wm_plot_canvas *canvas, const char *title)
{
    struct wm_plot_canvas own = *canvas;
    struct wm_plot_box room = wm_plot_title(&own, title);

    room = draw_legend(figure, &own, &room);
    double width = (room.right - room.left) / (double)columns_of(figure);
    double height = (room.bottom - room.top) / (double)rows_of(figure);
    for (size_t i = 0; i < figure->panels; i++) {
        double left = room.left + width * (double)(i % columns_of(figure));
        double top = room.top + height * (double)(i / columns_of(figure));
        const struct wm_plot_box box = { left + LEFT, top + TOP, left + width - RIGHT,
                                         top + height - BOTTOM };
        if (i == 0)
            fit_labels(figure, &own, &box);
        draw_panel(figure, &own, &box, figure->items[i]);
    }
}

int wm_plot_repeats_draw(const struct wm_plot_canvas *canvas,
                         const struct wm_plot_repeats *repeats, struct wm_error *err)
{
    const struct wm_compare *compare = repeats->compare;
    const struct wm_report **reports = calloc(compare->session_count, sizeof(*reports));
    char title[WM_PLOT_TITLE_SIZE];

    if (!reports)
        return wm_fail_memory(err, "figure");
    for (size_t i = 0; i < compare->session_count; i++)
        reports[i] = wm_compare_newest(&compare->sessions[i]);
    wm_plot_title_of("Repeated runs", reports, compare->session_count, compare->run_count,
                     title);
    draw_all(repeats, canvas, repeats->request->title ? repeats->request->title : title);
    free(reports);
    return WM_OK;
}

static int read_runs(const struct wm_plot_request *request,
                     struct wm_comparison *comparison, struct wm_error *err)
{
    int status = WM_OK;

    for (size_t i = 0; i < request->input_count && status == WM_OK; i++) {
        const struct wm_plot_input *input = &request->inputs[i];
        const struct wm_analysis_input runs = { .tracking = input->path,
                                                .run = input->run == WM_LAST_RUN
                                                           ? WM_ALL_RUNS
                                                           : input->run };
        char name[WM_PLOT_NAME_SIZE];
        wm_plot_input_name(input, name);
        status = wm_comparison_add(comparison, name, &runs, err);
    }
    return status == WM_OK ? wm_comparison_run(comparison, NULL, NULL, err) : status;
}

static int read_all(struct wm_plot_repeats *repeats, struct wm_error *err)
{
    int status = wm_comparison_new(&repeats->comparison, err);
    if (status == WM_OK)
        status = read_runs(repeats->request, repeats->comparison, err);
    if (status < 0)
        return status;
    repeats->compare = wm_comparison_compare(repeats->comparison);
    size_t runs = repeats->compare->run_count;
    repeats->values = calloc(2 * runs, sizeof(*repeats->values));
    repeats->cells = calloc(repeats->compare->session_count, sizeof(*repeats->cells));
    if (!repeats->values || !repeats->cells)
        return wm_fail_memory(err, "figure");
    repeats->sorted = repeats->values + runs;
    find_panels(repeats);
    return repeats->panels > 0
               ? WM_OK
               : wm_fail(err, WM_ENODEV, "the recordings have neither time nor energy");
}

int wm_plot_repeats_read(const struct wm_plot_request *request,
                         struct wm_plot_repeats **ret_repeats, struct wm_error *err)
{
    struct wm_plot_repeats *repeats = calloc(1, sizeof(*repeats));

    if (!repeats)
        return wm_fail_memory(err, "figure");
    repeats->request = request;
    int status = read_all(repeats, err);
    if (status < 0)
        wm_plot_repeats_free(repeats);
    else
        *ret_repeats = repeats;
    return status;
}

void wm_plot_repeats_free(struct wm_plot_repeats *repeats)
{
    if (!repeats)
        return;
    free(repeats->cells);
    free(repeats->values);
    wm_comparison_free(repeats->comparison);
    free(repeats);
}
