/* SPDX-License-Identifier: Apache-2.0 */
/* view_plot_caps.c - energy over time of a unit of work under each cap of a sweep, with the
 * curve of the model through them, and the best caps. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text/base_number.h"
#include "base/text/base_text.h"
#include "view/plot/view_plot_legend.h"
#include "view/text/view_units.h"
#include "wattmeter/cap_search.h"

#define LEFT 80.0
#define RIGHT 24.0
#define BOTTOM 50.0
#define TEXT 12.0
#define LINE 15.0
#define POINT 4.0
#define BOLDER 1.12 /* how much wider bold text is */

/* The labels that were drawn; one that would overlap another is left out. */
enum { LABELS_MAX = 64 };
struct labels {
    struct wm_plot_box boxes[LABELS_MAX];
    size_t count;
};

struct figure {
    const struct wm_plot_request *request;
    const struct wm_plot_canvas *canvas;
    struct wm_plot_box box;
    struct wm_axis time, energy;
    struct labels labels;
};

static int read_sweep(const struct wm_plot_input *input, struct wm_cap_search **ret_search,
                      struct wm_cap_answer *ret_answer, struct wm_error *err)
{
    const struct wm_cap_plan plan = { 0 };
    struct wm_cap_table table;
    int status = wm_cap_table_load(input->path, &table, err);

    if (status < 0)
        return status;
    status = wm_cap_search_fit(&plan, &table, ret_search, err);
    wm_cap_table_release(&table);
    return status == WM_OK ? wm_cap_search_answer(*ret_search, ret_answer, err) : status;
}

/* As it was measured, or by the model. */
static void point_of(const struct wm_cap_point *point, double *ret_seconds,
                     double *ret_joules)
{
    *ret_seconds = point->windows > 0 ? point->measured_seconds : point->seconds.value;
    *ret_joules = point->windows > 0 ? point->measured_joules : point->joules.value;
}

static double x_of(const struct figure *figure, double seconds)
{
    return wm_plot_place(&figure->time, seconds, figure->box.left, figure->box.right);
}

static double y_of(const struct figure *figure, double joules)
{
    return wm_plot_place(&figure->energy, joules, figure->box.bottom, figure->box.top);
}

static bool is_free(const struct labels *labels, const struct wm_plot_box *box)
{
    for (size_t i = 0; i < labels->count; i++) {
        const struct wm_plot_box *other = &labels->boxes[i];
        if (box->left < other->right && other->left < box->right &&
            box->top < other->bottom && other->top < box->bottom)
            return false;
    }
    return labels->count < LABELS_MAX;
}

/* At the right of a point, above it; or where there is no room, at its left, below it. */
static void draw_label(struct figure *figure, double x, double y, size_t colour,
                       bool is_bold, const char *text)
{
    const struct wm_plot_style style = {
        .size = TEXT,
        .colour = figure->request->input_count > 1 ? wm_chart_colour(colour)
                                                   : figure->canvas->theme->ink,
        .is_bold = is_bold,
        .has_halo = true,
    };
    double width = (is_bold ? BOLDER : 1) * wm_plot_text_width(figure->canvas, TEXT, text);
    bool has_room = x + 8 + width <= figure->box.right;
    double left = has_room ? x + 8 : x - 8 - width, top = has_room ? y - LINE : y;
    struct wm_plot_box box = { left, top, left + width, top + LINE };

    if (!is_free(&figure->labels, &box))
        return;
    figure->labels.boxes[figure->labels.count++] = box;
    wm_plot_text(figure->canvas, left, top + LINE / 2, &style, text);
}

static void draw_curve(const struct figure *figure, const struct wm_cap_answer *answer,
                       size_t colour)
{
    cairo_t *cairo = figure->canvas->cairo;

    wm_plot_colour(figure->canvas, wm_chart_colour(colour), 1);
    cairo_set_line_width(cairo, 1.6);
    cairo_new_path(cairo);
    for (size_t i = 0; i < answer->count; i++)
        cairo_line_to(cairo, x_of(figure, answer->curve[i].seconds.value),
                      y_of(figure, answer->curve[i].joules.value));
    cairo_stroke(cairo);
}

/* "175 W: least energy, edp"; the default limit is no gain by any objective. */
static bool write_best(char *text, size_t size, const struct wm_cap_answer *answer,
                       double cap)
{
    char number[WM_NUMBER_SIZE];
    size_t found = 0;

    wm_number_format(answer->plan.is_clock ? cap / 1e6 : cap, number);
    snprintf(text, size, "%s %s", number, answer->plan.is_clock ? "MHz" : "W");
    if (cap == answer->plan.maximum) {
        wm_text_list(text, size, ", ", "default");
        return true;
    }
    for (size_t i = 0; i < WM_CAP_OBJECTIVES; i++)
        if (answer->of[i].cap == cap)
            wm_text_list(text, size, found++ ? ", " : ": least ", "%s",
                         wm_cap_objective_name(i));
    return found > 0;
}

/* Those that are best, or the others that were measured. */
static void draw_points(struct figure *figure, const struct wm_cap_answer *answer,
                        size_t colour, bool is_best)
{
    cairo_t *cairo = figure->canvas->cairo;
    char text[96];

    for (size_t i = 0; i < answer->count; i++) {
        const struct wm_cap_point *point = &answer->curve[i];
        double seconds, joules;
        if (write_best(text, sizeof(text), answer, point->cap) != is_best ||
            (point->windows == 0 && !is_best))
            continue;
        point_of(point, &seconds, &joules);
        double x = x_of(figure, seconds), y = y_of(figure, joules);
        wm_plot_colour(figure->canvas, wm_chart_colour(colour), 1);
        cairo_new_path(cairo);
        cairo_arc(cairo, x, y, is_best ? POINT + 2 : POINT, 0, 2 * M_PI);
        if (point->windows > 0)
            cairo_fill(cairo);
        else
            cairo_stroke(cairo);
        draw_label(figure, x, y, colour, is_best, text);
    }
}

static void draw_all(struct figure *figure, const struct wm_cap_answer *answers)
{
    const char *title = figure->request->title;
    double fast = INFINITY, slow = 0, least = INFINITY, greatest = 0;

    figure->box = wm_plot_title(figure->canvas, title ? title : "Energy and time by cap");
    for (size_t i = 0; i < figure->request->input_count; i++)
        for (size_t k = 0; k < answers[i].count; k++) {
            const struct wm_cap_point *point = &answers[i].curve[k];
            double seconds, joules;
            point_of(point, &seconds, &joules);
            fast = fmin(fast, fmin(seconds, point->seconds.value));
            slow = fmax(slow, fmax(seconds, point->seconds.value));
            least = fmin(least, fmin(joules, point->joules.value));
            greatest = fmax(greatest, fmax(joules, point->joules.value));
        }
    figure->time = wm_chart_axis(fast, slow, "s");
    figure->energy = wm_chart_axis(least, greatest, "J");
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
    for (size_t i = 0; i < figure->request->input_count; i++)
        draw_curve(figure, &answers[i], i);
    /* The best caps of all tables have their labels before any other. */
    for (int is_best = 1; is_best >= 0; is_best--)
        for (size_t i = 0; i < figure->request->input_count; i++)
            draw_points(figure, &answers[i], i, is_best);
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
        draw_all(&figure, answers);
    for (size_t i = 0; searches && i < request->input_count; i++)
        wm_cap_search_free(searches[i]);
    free(searches);
    free(answers);
    return status;
}
