/* SPDX-License-Identifier: Apache-2.0 */
/* view_plot_repeats.c - repeated runs: a panel for each metric, in it a box for each
 * command and a point for each run, in their order, so that a drift is seen. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyze/compare/analyze_compare.h"
#include "view/plot/view_plot.h"
#include "view/plot/view_plot_report.h"
#include "view/view_units.h"
#include "wattmeter/comparison.h"

#define LEFT 82.0
#define RIGHT 14.0
#define BOTTOM 30.0
#define TEXT 12.0
#define POINT 2.5
#define MARGIN 0.08 /* of the range of an axis, on both sides */
#define BOX 0.5     /* of the room of a command */

enum { PANELS_MAX = WM_COMPARE_MOST_FIGURES, HEADING_SIZE = 96 };

struct figure {
    const struct wm_plot_canvas *canvas;
    const struct wm_compare *compare;
    unsigned items[PANELS_MAX];
    size_t panels;
    struct wm_compare_cell *cells; /* of each session */
    double *values, *sorted;       /* room for those of a session */
};

/* The known values of a session, in the order of the runs. */
static size_t find_values(const struct figure *figure, size_t session, unsigned item)
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

static bool is_known(const struct figure *figure, unsigned item)
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

static void find_panels(struct figure *figure)
{
    for (unsigned place = 0; place < wm_compare_items(); place++) {
        unsigned item = wm_compare_item_at(place);
        if (wm_compare_item_row(item) && wm_compare_item_is_main(figure->compare, item) &&
            wm_compare_item_matters(item) && is_known(figure, item))
            figure->items[figure->panels++] = item;
    }
}

static struct wm_axis find_axis(const struct figure *figure, unsigned item)
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
static void draw_box(const struct figure *figure, const struct wm_plot_box *box,
                     const struct wm_axis *axis, double x, double half, size_t count)
{
    static const double parts[] = { 0, 0.25, 0.5, 0.75, 1 };
    const struct wm_plot_canvas *canvas = figure->canvas;
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

static void draw_session(const struct figure *figure, const struct wm_plot_box *box,
                         const struct wm_axis *axis, unsigned item, size_t session)
{
    const struct wm_plot_canvas *canvas = figure->canvas;
    double room = (box->right - box->left) / (double)figure->compare->session_count;
    double x = box->left + room * ((double)session + 0.5), half = BOX * room / 2;
    const struct wm_plot_style style = { .size = TEXT,
                                         .colour = canvas->theme->ink,
                                         .align = WM_PLOT_CENTRE,
                                         .room = room - 6 };
    size_t count = find_values(figure, session, item);

    wm_plot_text(canvas, x, box->bottom + 14, &style,
                 figure->compare->sessions[session].name);
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
    draw_box(figure, box, axis, x, half, count);
}

/* Of the first command for which it was not measured. */
static enum wm_origin origin_of(const struct figure *figure, unsigned item)
{
    enum wm_origin origin = WM_MEASURED;

    wm_compare_cells(figure->compare, WM_COMPARE_OVERALL, item, figure->cells);
    for (size_t i = 0; i < figure->compare->session_count && origin == WM_MEASURED; i++)
        origin = figure->cells[i].origin;
    return origin;
}

static void draw_panel(const struct figure *figure, const struct wm_plot_box *box,
                       unsigned item)
{
    char heading[HEADING_SIZE];
    const struct wm_figure_row *row = wm_compare_item_row(item);
    struct wm_axis axis = find_axis(figure, item);

    snprintf(heading, sizeof(heading), "%s%s", row->label ? row->label : wm_figure_key(row),
             wm_plot_origin(origin_of(figure, item)));
    wm_plot_axis(figure->canvas, box, WM_PLOT_AT_LEFT, &axis,
                 wm_unit_plain(row->unit)->symbol, heading);
    wm_plot_frame(figure->canvas, box);
    for (size_t i = 0; i < figure->compare->session_count; i++)
        draw_session(figure, box, &axis, item, i);
}

/* In two columns. */
static void draw_all(const struct figure *figure, const char *title)
{
    const struct wm_plot_box room = wm_plot_title(figure->canvas, title);
    size_t columns = figure->panels > 1 ? 2 : 1;
    size_t rows = (figure->panels + columns - 1) / columns;
    double width = (room.right - room.left) / (double)columns;
    double height = (room.bottom - room.top) / (double)rows;

    for (size_t i = 0; i < figure->panels; i++) {
        double left = room.left + width * (double)(i % columns);
        double top = room.top + height * (double)(i / columns);
        const struct wm_plot_box box = { left + LEFT, top + 8, left + width - RIGHT,
                                         top + height - BOTTOM };
        draw_panel(figure, &box, figure->items[i]);
    }
}

static int draw_titled(const struct figure *figure, const char *title, struct wm_error *err)
{
    const struct wm_compare *compare = figure->compare;
    const struct wm_report **reports = calloc(compare->session_count, sizeof(*reports));
    char own[WM_PLOT_TITLE_SIZE];

    if (!reports)
        return wm_fail_memory(err, "figure");
    for (size_t i = 0; i < compare->session_count; i++)
        reports[i] = wm_compare_newest(&compare->sessions[i]);
    wm_plot_title_of("Repeated runs", reports, compare->session_count, compare->run_count,
                     own);
    draw_all(figure, title ? title : own);
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

int wm_plot_repeats(const struct wm_plot_request *request, struct wm_plot_canvas *canvas,
                    struct wm_error *err)
{
    struct figure figure = { .canvas = canvas };
    struct wm_comparison *comparison = NULL;

    int status = wm_comparison_new(&comparison, err);
    if (status == WM_OK)
        status = read_runs(request, comparison, err);
    if (status == WM_OK) {
        figure.compare = wm_comparison_compare(comparison);
        figure.values = calloc(2 * figure.compare->run_count, sizeof(*figure.values));
        figure.cells = calloc(figure.compare->session_count, sizeof(*figure.cells));
        if (figure.values && figure.cells)
            figure.sorted = figure.values + figure.compare->run_count;
        else
            status = wm_fail_memory(err, "figure");
    }
    if (status == WM_OK)
        find_panels(&figure);
    if (status == WM_OK && figure.panels == 0)
        status = wm_fail(err, WM_ENODEV, "the recordings have neither time nor energy");
    if (status == WM_OK)
        status = draw_titled(&figure, request->title, err);
    free(figure.cells);
    free(figure.values);
    wm_comparison_free(comparison);
    return status;
}
