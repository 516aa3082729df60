/* SPDX-License-Identifier: Apache-2.0 */
/* view_plot_energy.c - energy over time, a point for each recording, and arrows from each
 * to the next: from before to after. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/base_utf8.h"
#include "view/plot/view_plot.h"
#include "view/plot/view_plot_report.h"
#include "view/text/view_units.h"

#define LEFT 80.0
#define RIGHT 24.0
#define BOTTOM 50.0
#define TEXT 12.0
#define POINT 5.0

struct point {
    struct wm_report_figure time, energy;
    double x, y;
};

static int read_point(const struct wm_plot_request *request, size_t index,
                      struct point *ret_point, struct wm_error *err)
{
    const struct wm_plot_input *input = &request->inputs[index];
    struct wm_report *report;
    struct point point = { 0 };

    int status = wm_plot_report(request, input, &report, err);
    if (status < 0)
        return status;
    wm_report_figure(report, NULL, "time", &point.time);
    wm_report_figure(report, NULL, "energy", &point.energy);
    const struct wm_report_figure *missing =
        point.time.state == WM_REPORT_MISSING     ? &point.time
        : point.energy.state == WM_REPORT_MISSING ? &point.energy
                                                  : NULL;
    if (missing)
        status =
            wm_fail(err, WM_ENODEV, "%s: its %s is not known%s%s",
                    wm_text_path(input->path), missing == &point.time ? "time" : "energy",
                    missing->why ? ": " : "", missing->why ? missing->why : "");
    wm_report_free(report);
    *ret_point = point;
    return status;
}

/* "-12.3 % energy" */
static void write_change(char *text, size_t size, const char *what, double ratio)
{
    double percent = 100 * (ratio - 1);

    snprintf(text, size, "%s%s %% %s", percent > 0 ? "+" : "",
             wm_view_number(percent, 3).text, what);
}

static void draw_arrow(const struct wm_plot_canvas *canvas, const struct point *from,
                       const struct point *to)
{
    double length = hypot(to->x - from->x, to->y - from->y);
    double along_x = (to->x - from->x) / length, along_y = (to->y - from->y) / length;
    double end_x = to->x - along_x * (POINT + 3), end_y = to->y - along_y * (POINT + 3);
    const struct wm_plot_style style = { .size = TEXT,
                                         .colour = canvas->theme->faint,
                                         .align = WM_PLOT_CENTRE,
                                         .has_halo = true };
    char text[128];

    if (length < 3 * POINT)
        return;
    wm_plot_colour(canvas, canvas->theme->faint, 1);
    cairo_set_line_width(canvas->cairo, 1.6);
    cairo_move_to(canvas->cairo, from->x + along_x * (POINT + 2),
                  from->y + along_y * (POINT + 2));
    cairo_line_to(canvas->cairo, end_x - along_x * 6, end_y - along_y * 6);
    cairo_stroke(canvas->cairo);
    cairo_move_to(canvas->cairo, end_x, end_y);
    cairo_line_to(canvas->cairo, end_x - along_x * 10 - along_y * 4.5,
                  end_y - along_y * 10 + along_x * 4.5);
    cairo_line_to(canvas->cairo, end_x - along_x * 10 + along_y * 4.5,
                  end_y - along_y * 10 - along_x * 4.5);
    cairo_close_path(canvas->cairo);
    cairo_fill(canvas->cairo);
    if (length < 120 || from->energy.value <= 0 || from->time.value <= 0)
        return;
    write_change(text, sizeof(text), "energy", to->energy.value / from->energy.value);
    size_t used = strlen(text);
    snprintf(text + used, sizeof(text) - used, ", ");
    used = strlen(text);
    write_change(text + used, sizeof(text) - used, "time",
                 to->time.value / from->time.value);
    wm_plot_text(canvas, (from->x + to->x) / 2, (from->y + to->y) / 2, &style, text);
}

/* Beside the arrows: of a way that falls to the right, above it at the right or below it at
 * the left. */
static void tell_point(const struct wm_plot_canvas *canvas, const struct point *point,
                       bool is_left, bool is_below, const char *name)
{
    const struct wm_report_figure *energy = &point->energy;
    struct wm_plot_style style = { .size = TEXT,
                                   .colour = canvas->theme->ink,
                                   .align = is_left ? WM_PLOT_RIGHT : WM_PLOT_LEFT,
                                   .is_bold = true,
                                   .has_halo = true };
    double half = energy->has_range ? (energy->high - energy->low) / 2 : 0;
    double ratio = energy->value > 0 ? half / energy->value : 0;
    double x = point->x + (is_left ? -8 : 8), y = point->y + (is_below ? 16 : -32);
    char text[160];

    wm_plot_text(canvas, x, y, &style, name);
    style.is_bold = false;
    style.colour = canvas->theme->faint;
    snprintf(text, sizeof(text), "%s%s, %s%s",
             energy->state == WM_REPORT_AT_LEAST ? "at least " : "",
             wm_view_approximate(energy->value, ratio, "J").text,
             wm_view_duration(point->time.value, NULL).text,
             energy->origin == WM_ESTIMATED   ? " (estimated)"
             : energy->origin == WM_SIMULATED ? " (simulated)"
                                              : "");
    wm_plot_text(canvas, x, y + 16, &style, text);
}

static void draw_point(const struct wm_plot_canvas *canvas, const struct wm_plot_box *box,
                       const struct wm_axis *axis, const struct point *point, size_t index)
{
    const struct wm_report_figure *energy = &point->energy;

    wm_plot_colour(canvas, wm_chart_colour(index), 1);
    if (energy->has_range) {
        cairo_set_line_width(canvas->cairo, 1.6);
        cairo_move_to(canvas->cairo, point->x,
                      wm_plot_place(axis, energy->low, box->bottom, box->top));
        cairo_line_to(canvas->cairo, point->x,
                      wm_plot_place(axis, energy->high, box->bottom, box->top));
        cairo_stroke(canvas->cairo);
    }
    cairo_arc(canvas->cairo, point->x, point->y, POINT, 0, 2 * M_PI);
    cairo_fill(canvas->cairo);
}

/* Whether the way through a point leads down to the right, or up to the left. */
static bool falls(const struct point *points, size_t count, size_t index)
{
    const struct point *from = &points[index > 0 ? index - 1 : 0];
    const struct point *to = &points[index > 0 || count == 1 ? index : 1];

    return (to->x - from->x) * (to->y - from->y) >= 0;
}

static void draw_all(const struct wm_plot_request *request,
                     const struct wm_plot_canvas *canvas, struct point *points)
{
    const char *title = request->title ? request->title : "Energy and time";
    struct wm_plot_box box = wm_plot_title(canvas, title);
    double fast = INFINITY, slow = 0, least = INFINITY, greatest = 0;

    for (size_t i = 0; i < request->input_count; i++) {
        const struct wm_report_figure *energy = &points[i].energy;
        fast = fmin(fast, points[i].time.value);
        slow = fmax(slow, points[i].time.value);
        least = fmin(least, energy->has_range ? energy->low : energy->value);
        greatest = fmax(greatest, energy->has_range ? energy->high : energy->value);
    }
    struct wm_axis time = wm_chart_axis(fast, slow, "s");
    struct wm_axis joules = wm_chart_axis(least, greatest, "J");
    box.left = LEFT;
    box.right = canvas->width - RIGHT;
    box.top += 14;
    box.bottom = canvas->height - BOTTOM;
    wm_plot_axis(canvas, &box, WM_PLOT_AT_BOTTOM, &time, "s", "Time");
    wm_plot_axis(canvas, &box, WM_PLOT_AT_LEFT, &joules, "J", "Energy");
    wm_plot_frame(canvas, &box);
    for (size_t i = 0; i < request->input_count; i++) {
        points[i].x = wm_plot_place(&time, points[i].time.value, box.left, box.right);
        points[i].y = wm_plot_place(&joules, points[i].energy.value, box.bottom, box.top);
        if (i > 0)
            draw_arrow(canvas, &points[i - 1], &points[i]);
    }
    for (size_t i = 0; i < request->input_count; i++)
        draw_point(canvas, &box, &joules, &points[i], i);
    for (size_t i = 0; i < request->input_count; i++) {
        bool is_left = points[i].x > (box.left + 2 * box.right) / 3;
        tell_point(canvas, &points[i], is_left,
                   falls(points, request->input_count, i) == is_left,
                   wm_plot_input_name(&request->inputs[i]));
    }
}

int wm_plot_energy(const struct wm_plot_request *request, struct wm_plot_canvas *canvas,
                   struct wm_error *err)
{
    struct point *points = calloc(request->input_count, sizeof(*points));
    int status = points ? WM_OK : wm_fail_memory(err, "figure");

    for (size_t i = 0; i < request->input_count && status == WM_OK; i++)
        status = read_point(request, i, &points[i], err);
    if (status == WM_OK)
        draw_all(request, canvas, points);
    free(points);
    return status;
}
