/* SPDX-License-Identifier: Apache-2.0 */
/* view_plot_caps.c - energy over time of a unit of work under each cap of a sweep, with the
 * curve of the model through them, and the best caps. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base_text.h"
#include "base/text/base_number.h"
#include "view/plot/view_plot_label.h"
#include "view/plot/view_plot_legend.h"
#include "view/view_units.h"
#include "wattmeter/cap_search.h"

#define LEFT 80.0
#define RIGHT 24.0
#define BOTTOM 50.0
#define TEXT 12.0
#define POINT 4.0
#define CROSS 3.0 /* half of a cross, in both directions */
#define NOTE                                                                               \
    "Points: estimates with 95 % intervals (rings: not measured). Crosses: means of "      \
    "measurements. Bold: a gain beyond noise."

/* The points of the curve are so far from each other, of the panel, and it bends by less
 * than so much between them, and back by less than that; else the model does not know its
 * shape. */
#define APART 0.01
#define CORNER (M_PI / 7)
#define WIGGLE (M_PI / 20)
#define ROUNDING 1e-4

struct spot {
    double x, y;
};

struct figure {
    const struct wm_plot_request *request;
    const struct wm_plot_canvas *canvas;
    struct wm_plot_box box;
    struct wm_axis time, energy;
    struct wm_plot_labels labels;
};

static int read_sweep(const struct wm_plot_input *input, struct wm_cap_search **ret_search,
                      struct wm_cap_answer *ret_answer, struct wm_error *err)
{
    const struct wm_cap_plan plan = { 0 };
    struct wm_cap_table table;
    struct wm_error found;
    int status = wm_cap_table_load(input->path, &table, &found);

    if (status < 0)
        return wm_fail(err, status, "%.180s%s", found.text,
                       status == WM_EFORMAT
                           ? "; --kind caps needs a table by `wattmeter cap profile`"
                           : "");
    status = wm_cap_search_fit(&plan, &table, ret_search, err);
    wm_cap_table_release(&table);
    return status == WM_OK ? wm_cap_search_answer(*ret_search, ret_answer, err) : status;
}

static double x_of(const struct figure *figure, double seconds)
{
    return wm_plot_place(&figure->time, seconds, figure->box.left, figure->box.right);
}

static double y_of(const struct figure *figure, double joules)
{
    return wm_plot_place(&figure->energy, joules, figure->box.bottom, figure->box.top);
}

/* Where the model says that a cap is, of those that were not measured: at a measured one
 * it has what differs there from the smooth curve. */
static size_t find_curve(const struct figure *figure, const struct wm_cap_answer *answer,
                         struct spot *spots)
{
    double width = figure->box.right - figure->box.left;
    double height = figure->box.bottom - figure->box.top;
    size_t count = 0;

    for (size_t i = 0; i < answer->count; i++) {
        const struct wm_cap_point *point = &answer->curve[i];
        struct spot spot = { x_of(figure, point->seconds.value),
                             y_of(figure, point->joules.value) };
        bool is_apart =
            count == 0 || hypot((spot.x - spots[count - 1].x) / width,
                                (spot.y - spots[count - 1].y) / height) >= APART;
        if (point->windows == 0 && is_apart)
            spots[count++] = spot;
    }
    return count;
}

/* A lower cap takes no less time, and the curve bends one way, without corners. */
static bool is_smooth(const struct figure *figure, const struct spot *spots, size_t count)
{
    double scale_x = 1 / (figure->box.right - figure->box.left);
    double scale_y = 1 / (figure->box.bottom - figure->box.top);
    double left = 0, right = 0;

    for (size_t i = 1; i + 1 < count; i++) {
        double x0 = (spots[i].x - spots[i - 1].x) * scale_x;
        double y0 = (spots[i].y - spots[i - 1].y) * scale_y;
        double x1 = (spots[i + 1].x - spots[i].x) * scale_x;
        double y1 = (spots[i + 1].y - spots[i].y) * scale_y;
        double turn = atan2(x0 * y1 - y0 * x1, x0 * x1 + y0 * y1);
        if (x0 > ROUNDING || x1 > ROUNDING || fabs(turn) > CORNER)
            return false;
        left += fmax(turn, 0);
        right += fmax(-turn, 0);
    }
    return count > 2 && fmin(left, right) < WIGGLE;
}

static int draw_curve(struct figure *figure, const struct wm_cap_answer *answer,
                      size_t colour, struct wm_error *err)
{
    cairo_t *cairo = figure->canvas->cairo;
    struct spot *spots = calloc(answer->count + 1, sizeof(*spots));

    if (!spots)
        return wm_fail_memory(err, "figure");
    size_t count = find_curve(figure, answer, spots);
    if (is_smooth(figure, spots, count)) {
        wm_plot_colour(figure->canvas, wm_chart_colour(colour), 1);
        cairo_set_line_width(cairo, 1.6);
        cairo_new_path(cairo);
        for (size_t i = 0; i < count; i++) {
            const struct wm_plot_box block = { spots[i].x - 3, spots[i].y - 3,
                                               spots[i].x + 3, spots[i].y + 3 };
            cairo_line_to(cairo, spots[i].x, spots[i].y);
            wm_plot_block(&figure->labels, &block);
        }
        cairo_stroke(cairo);
    }
    free(spots);
    return WM_OK;
}

/* "175 W: least energy, edp"; the default limit is no gain by any objective. The gain is
 * clear where it is more than noise by each of them. */
static bool write_best(char *text, size_t size, const struct wm_cap_answer *answer,
                       double cap, bool *ret_is_clear)
{
    char number[WM_NUMBER_SIZE];
    size_t found = 0;

    wm_number_format(answer->plan.is_clock ? cap / 1e6 : cap, number);
    snprintf(text, size, "%s %s", number, answer->plan.is_clock ? "MHz" : "W");
    *ret_is_clear = false;
    if (cap == answer->plan.maximum) {
        wm_text_list(text, size, ", ", "default");
        return true;
    }
    for (size_t i = 0; i < WM_CAP_OBJECTIVES; i++)
        if (answer->of[i].cap == cap) {
            bool is_clear = answer->of[i].gain.low > 0;
            *ret_is_clear = is_clear && (*ret_is_clear || found == 0);
            wm_text_list(text, size, found++ ? ", " : ": least ", "%s",
                         wm_cap_objective_name(i));
        }
    return found > 0;
}

/* What is drawn of a cap: those that were measured, and those that are best. */
static bool is_shown(const struct wm_cap_answer *answer, const struct wm_cap_point *point,
                     char *text, size_t size, bool *ret_is_best, bool *ret_is_clear)
{
    *ret_is_best = write_best(text, size, answer, point->cap, ret_is_clear);
    return *ret_is_best || point->windows > 0;
}

static void draw_interval(struct figure *figure, double x0, double y0, double x1, double y1)
{
    cairo_t *cairo = figure->canvas->cairo;
    const struct wm_plot_box block = { fmin(x0, x1) - 2, fmin(y0, y1) - 2, fmax(x0, x1) + 2,
                                       fmax(y0, y1) + 2 };

    cairo_move_to(cairo, x0, y0);
    cairo_line_to(cairo, x1, y1);
    cairo_stroke(cairo);
    wm_plot_block(&figure->labels, &block);
}

/* What was measured: the mean, which the estimate moves towards its neighbours. */
static void draw_measured(struct figure *figure, const struct wm_cap_point *point,
                          size_t colour)
{
    cairo_t *cairo = figure->canvas->cairo;
    double x = x_of(figure, point->measured_seconds);
    double y = y_of(figure, point->measured_joules);

    wm_plot_colour(figure->canvas, wm_chart_colour(colour), 1);
    cairo_set_line_width(cairo, 1);
    cairo_move_to(cairo, x - CROSS, y - CROSS);
    cairo_line_to(cairo, x + CROSS, y + CROSS);
    cairo_move_to(cairo, x - CROSS, y + CROSS);
    cairo_line_to(cairo, x + CROSS, y - CROSS);
    cairo_stroke(cairo);
}

/* A point with the 95 % intervals of time and energy; a ring where it is predicted. */
static void draw_point(struct figure *figure, const struct wm_cap_point *point,
                       size_t colour, bool is_best)
{
    cairo_t *cairo = figure->canvas->cairo;
    double radius = is_best ? POINT + 2 : POINT;
    double x = x_of(figure, point->seconds.value), y = y_of(figure, point->joules.value);
    const struct wm_plot_box block = { x - radius, y - radius, x + radius, y + radius };
    wm_plot_colour(figure->canvas, wm_chart_colour(colour), 1);
    cairo_set_line_width(cairo, 1.2);
    draw_interval(figure, x_of(figure, point->seconds.low), y,
                  x_of(figure, point->seconds.high), y);
    draw_interval(figure, x, y_of(figure, point->joules.low), x,
                  y_of(figure, point->joules.high));
    cairo_new_path(cairo);
    cairo_arc(cairo, x, y, radius, 0, 2 * M_PI);
    if (point->windows == 0) {
        wm_plot_colour(figure->canvas, figure->canvas->theme->paper, 1);
        cairo_fill_preserve(cairo);
        wm_plot_colour(figure->canvas, wm_chart_colour(colour), 1);
        cairo_stroke(cairo);
    } else {
        cairo_fill(cairo);
    }
    wm_plot_block(&figure->labels, &block);
}

static void draw_points(struct figure *figure, const struct wm_cap_answer *answer,
                        size_t colour)
{
    char text[96];
    bool is_best, is_clear;

    for (size_t i = 0; i < answer->count; i++) {
        if (is_shown(answer, &answer->curve[i], text, sizeof(text), &is_best, &is_clear))
            draw_point(figure, &answer->curve[i], colour, is_best);
        if (answer->curve[i].windows > 0)
            draw_measured(figure, &answer->curve[i], colour);
    }
}

/* Those that are best, or the others. */
static void draw_labels(struct figure *figure, const struct wm_cap_answer *answer,
                        bool of_best)
{
    char text[96];
    bool is_best, is_clear;

    for (size_t i = 0; i < answer->count; i++) {
        const struct wm_cap_point *point = &answer->curve[i];
        if (!is_shown(answer, point, text, sizeof(text), &is_best, &is_clear) ||
            is_best != of_best)
            continue;
        const struct wm_plot_label label = {
            .lines = { text },
            .size = TEXT,
            .is_bold = is_clear,
            .colour = figure->canvas->theme->ink,
        };
        wm_plot_label_point(&figure->labels, x_of(figure, point->seconds.value),
                            y_of(figure, point->joules.value), &label);
    }
}

/* Extends a range to an estimate, with its interval, and to what was measured, above 0. */
static void extend(double *least, double *greatest, const struct wm_cap_estimate *estimate,
                   bool has_interval, double measured)
{
    double low = has_interval ? estimate->low : estimate->value;
    double high = has_interval ? estimate->high : estimate->value;

    *least = fmin(*least, measured > 0 ? fmin(low, measured) : low);
    *greatest = fmax(*greatest, fmax(high, measured));
}

/* A unit of work may take milliseconds: a margin is of the range alone. */
static struct wm_axis axis_of(double least, double greatest)
{
    return wm_chart_axis(least, greatest, "");
}

static int draw_all(struct figure *figure, const struct wm_cap_answer *answers,
                    struct wm_error *err)
{
    const char *title = figure->request->title;
    double fast = INFINITY, slow = 0, least = INFINITY, greatest = 0;
    int status = WM_OK;
    char text[96];
    bool is_best, is_clear;

    figure->box = wm_plot_title(figure->canvas, title ? title : "Energy and time by cap");
    figure->box = wm_plot_note(figure->canvas, &figure->box, NOTE);
    for (size_t i = 0; i < figure->request->input_count; i++)
        for (size_t k = 0; k < answers[i].count; k++) {
            const struct wm_cap_point *point = &answers[i].curve[k];
            bool has_interval =
                is_shown(&answers[i], point, text, sizeof(text), &is_best, &is_clear);
            extend(&fast, &slow, &point->seconds, has_interval, point->measured_seconds);
            extend(&least, &greatest, &point->joules, has_interval, point->measured_joules);
        }
    figure->time = axis_of(fast, slow);
    figure->energy = axis_of(least, greatest);
    figure->box.left = LEFT;
    figure->box.right -= RIGHT;
    figure->box = wm_plot_legend_of_inputs(figure->canvas, figure->request, &figure->box);
    figure->box.top += 14;
    figure->box.bottom -= BOTTOM;
    wm_plot_axis(figure->canvas, &figure->box, WM_PLOT_AT_BOTTOM, &figure->time, "s",
                 "Time of a unit of work");
    wm_plot_axis(figure->canvas, &figure->box, WM_PLOT_AT_LEFT, &figure->energy, "J",
                 "Energy of a unit of work");
    wm_plot_frame(figure->canvas, &figure->box);
    figure->labels.canvas = figure->canvas;
    figure->labels.area = figure->box;
    for (size_t i = 0; i < figure->request->input_count && status == WM_OK; i++)
        status = draw_curve(figure, &answers[i], i, err);
    for (size_t i = 0; i < figure->request->input_count; i++)
        draw_points(figure, &answers[i], i);
    /* The best caps of all tables have their labels before any other. */
    for (int of_best = 1; of_best >= 0; of_best--)
        for (size_t i = 0; i < figure->request->input_count; i++)
            draw_labels(figure, &answers[i], of_best);
    return status;
}

int wm_plot_caps(const struct wm_plot_request *request, struct wm_plot_canvas *canvas,
                 struct wm_error *err)
{
    struct figure figure = { .request = request, .canvas = canvas };
    struct wm_cap_search **searches = calloc(request->input_count, sizeof(*searches));
    struct wm_cap_answer *answers = calloc(request->input_count, sizeof(*answers));
    int status = searches && answers ? WM_OK : wm_fail_memory(err, "figure");

    for (size_t i = 0; i < request->input_count && status == WM_OK; i++)
        status = read_sweep(&request->inputs[i], &searches[i], &answers[i], err);
    if (status == WM_OK)
        status = draw_all(&figure, answers, err);
    for (size_t i = 0; searches && i < request->input_count; i++)
        wm_cap_search_free(searches[i]);
    free(searches);
    free(answers);
    return status;
}
