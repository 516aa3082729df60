/* SPDX-License-Identifier: Apache-2.0 */
/* view_plot_energy.c - energy over time, a point for each recording, and arrows from each
 * to the next: from before to after. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_utf8.h"
#include "view/plot/view_plot_label.h"
#include "view/plot/view_plot_report.h"
#include "view/view_units.h"

#define LEFT 80.0
#define RIGHT 24.0
#define BOTTOM 50.0
#define TEXT 12.0
#define POINT 5.0
#define BLOCK 10.0 /* pixels of an arrow that no label lies on */

struct point {
    struct wm_report *report;
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
    point.report = report;
    *ret_point = point;
    return status;
}

/* "-12.3 % energy" */
static void write_change(char *text, size_t size, const char *what, double ratio)
{
    double percent = round(1000 * (ratio - 1)) / 10;

    snprintf(text, size, "%s%s %% %s", percent > 0 ? "+" : "",
             wm_view_number(percent, 3).text, what);
}

static void block(struct wm_plot_labels *labels, double x, double y, double radius)
{
    const struct wm_plot_box box = { x - radius, y - radius, x + radius, y + radius };

    wm_plot_block(labels, &box);
}

static void draw_arrow(struct wm_plot_labels *labels, const struct point *from,
                       const struct point *to)
{
    const struct wm_plot_canvas *canvas = labels->canvas;
    double length = hypot(to->x - from->x, to->y - from->y);
    double along_x = (to->x - from->x) / length, along_y = (to->y - from->y) / length;
    double end_x = to->x - along_x * (POINT + 3), end_y = to->y - along_y * (POINT + 3);

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
    for (double at = 0; at < length; at += BLOCK)
        block(labels, from->x + along_x * at, from->y + along_y * at, BLOCK / 4);
}

static void label_arrow(struct wm_plot_labels *labels, const struct point *from,
                        const struct point *to)
{
    char energy[64], time[64];
    const struct wm_plot_label label = { .lines = { energy, time },
                                         .size = TEXT,
                                         .colour = labels->canvas->theme->faint };

    if (hypot(to->x - from->x, to->y - from->y) < 3 * POINT || from->energy.value <= 0 ||
        from->time.value <= 0)
        return;
    write_change(energy, sizeof(energy), "energy", to->energy.value / from->energy.value);
    write_change(time, sizeof(time), "time", to->time.value / from->time.value);
    wm_plot_label_point(labels, (from->x + to->x) / 2, (from->y + to->y) / 2, &label);
}

/* In the digits that the uncertainty of the energy leaves. */
static void label_point(struct wm_plot_labels *labels, const struct point *point,
                        const char *name)
{
    const struct wm_report_figure *energy = &point->energy;
    double half = energy->has_range ? (energy->high - energy->low) / 2 : 0;
    double ratio = energy->value > 0 ? half / energy->value : 0;
    char text[160];
    const struct wm_plot_label label = { .lines = { name, text },
                                         .size = TEXT,
                                         .is_bold = true,
                                         .colour = labels->canvas->theme->ink };

    snprintf(text, sizeof(text), "%s%s, %s%s",
             energy->state == WM_REPORT_AT_LEAST ? "at least " : "",
             wm_view_approximate(energy->value, ratio, "J").text,
             wm_view_duration(point->time.value, NULL).text,
             wm_plot_origin(energy->origin));
    wm_plot_label_point(labels, point->x, point->y, &label);
}

static void draw_point(struct wm_plot_labels *labels, const struct wm_axis *axis,
                       const struct point *point, size_t index)
{
    const struct wm_report_figure *energy = &point->energy;
    const struct wm_plot_canvas *canvas = labels->canvas;
    const struct wm_plot_box *box = &labels->area;

    wm_plot_colour(canvas, wm_chart_colour(index), 1);
    if (energy->has_range) {
        double low = wm_plot_place(axis, energy->low, box->bottom, box->top);
        double high = wm_plot_place(axis, energy->high, box->bottom, box->top);
        const struct wm_plot_box whisker = { point->x - 2, high, point->x + 2, low };
        cairo_set_line_width(canvas->cairo, 1.6);
        cairo_move_to(canvas->cairo, point->x, low);
        cairo_line_to(canvas->cairo, point->x, high);
        cairo_stroke(canvas->cairo);
        wm_plot_block(labels, &whisker);
    }
    block(labels, point->x, point->y, POINT);
    cairo_arc(canvas->cairo, point->x, point->y, POINT, 0, 2 * M_PI);
    cairo_fill(canvas->cairo);
}

static void draw_all(const struct wm_plot_request *request,
                     const struct wm_plot_canvas *canvas, const char *title,
                     struct point *points)
{
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
    struct wm_plot_labels labels = { .canvas = canvas, .area = box };
    for (size_t i = 0; i < request->input_count; i++) {
        points[i].x = wm_plot_place(&time, points[i].time.value, box.left, box.right);
        points[i].y = wm_plot_place(&joules, points[i].energy.value, box.bottom, box.top);
        if (i > 0)
            draw_arrow(&labels, &points[i - 1], &points[i]);
    }
    for (size_t i = 0; i < request->input_count; i++)
        draw_point(&labels, &joules, &points[i], i);
    for (size_t i = 0; i < request->input_count; i++) {
        char name[WM_PLOT_NAME_SIZE];
        wm_plot_input_name(&request->inputs[i], name);
        label_point(&labels, &points[i], name);
    }
    for (size_t i = 1; i < request->input_count; i++)
        label_arrow(&labels, &points[i - 1], &points[i]);
}

int wm_plot_energy(const struct wm_plot_request *request, struct wm_plot_canvas *canvas,
                   struct wm_error *err)
{
    struct point *points = calloc(request->input_count, sizeof(*points));
    const struct wm_report **reports = calloc(request->input_count, sizeof(*reports));
    int status = points && reports ? WM_OK : wm_fail_memory(err, "figure");
    char title[WM_PLOT_TITLE_SIZE];

    for (size_t i = 0; i < request->input_count && status == WM_OK; i++) {
        status = read_point(request, i, &points[i], err);
        reports[i] = points[i].report;
    }
    if (status == WM_OK) {
        wm_plot_title_of("Energy and time", reports, request->input_count,
                         request->input_count, title);
        draw_all(request, canvas, request->title ? request->title : title, points);
    }
    for (size_t i = 0; points && i < request->input_count; i++)
        wm_report_free(points[i].report);
    free(reports);
    free(points);
    return status;
}
