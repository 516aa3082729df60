/* SPDX-License-Identifier: Apache-2.0 */
/* view_plot_regions.c - what each region took, without the regions inside it, as bars. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_array.h"
#include "base/text/base_utf8.h"
#include "view/plot/view_plot.h"
#include "view/plot/view_plot_legend.h"
#include "view/plot/view_plot_report.h"
#include "view/text/view_units.h"

#define LEFT 190.0
#define RIGHT 100.0
#define BOTTOM 50.0
#define TEXT 12.0
#define THICKEST 40.0

enum { REGIONS_MOST = 24 };

/* What a figure is of: energy where any region has some, else time. */
struct measure {
    const char *key, *unit, *heading;
};

static const struct measure measures[] = {
    { "energy", "J", "Energy without regions inside" },
    { "time", "s", "Time without regions inside" },
};

struct bar {
    char *name;
    struct wm_report_figure *figures; /* of each input */
    double order, end;
};

struct bars {
    struct bar *bars;
    size_t count, room;
    const struct measure *measure;
};

static void release(struct bars *bars)
{
    for (size_t i = 0; i < bars->count; i++) {
        free(bars->bars[i].name);
        free(bars->bars[i].figures);
    }
    free(bars->bars);
    *bars = (struct bars) { 0 };
}

static struct bar *find(struct bars *bars, const char *name, size_t inputs)
{
    for (size_t i = 0; i < bars->count; i++) {
        if (strcmp(bars->bars[i].name, name) == 0)
            return &bars->bars[i];
    }
    if (wm_array_reserve(&bars->bars, bars->count, &bars->room, sizeof(*bars->bars)) < 0)
        return NULL;
    struct bar *bar = &bars->bars[bars->count];
    *bar = (struct bar) { .name = strdup(name),
                          .figures = calloc(inputs, sizeof(*bar->figures)) };
    bars->count++;
    return bar->name && bar->figures ? bar : NULL;
}

static int add(struct bars *bars, const struct wm_plot_request *request, size_t input,
               const struct wm_report *report, const struct wm_report_part *part,
               const char *name, struct wm_error *err)
{
    struct wm_report_figure figure;

    if (wm_report_figure(report, part, bars->measure->key, &figure) < 0 ||
        figure.state == WM_REPORT_MISSING)
        return WM_OK;
    struct bar *bar = find(bars, name, request->input_count);
    if (!bar)
        return wm_fail_memory(err, "figure");
    bar->figures[input] = figure;
    bar->order = fmax(bar->order, figure.value);
    bar->end = fmax(bar->end, figure.has_range ? figure.high : figure.value);
    return WM_OK;
}

static int add_report(struct bars *bars, const struct wm_plot_request *request,
                      size_t input, const struct wm_report *report, struct wm_error *err)
{
    size_t count = wm_report_count(report, WM_REPORT_REGION);
    struct wm_report_part part = { .kind = WM_REPORT_REGION, .share = WM_REPORT_EXCLUSIVE };
    struct wm_report_region region;
    int status = WM_OK;

    for (; part.index < count && status == WM_OK; part.index++) {
        if (wm_report_region(report, WM_REPORT_REGION, part.index, &region) == WM_OK)
            status = add(bars, request, input, report, &part, region.name, err);
    }
    if (count > 0 && status == WM_OK) {
        part = (struct wm_report_part) { .kind = WM_REPORT_REST };
        status = add(bars, request, input, report, &part, "(outside of regions)", err);
    }
    return status;
}

static int by_order(const void *a, const void *b)
{
    double left = ((const struct bar *)a)->order, right = ((const struct bar *)b)->order;

    return (left < right) - (left > right);
}

static void draw_bar(const struct wm_plot_canvas *canvas, const struct wm_plot_box *box,
                     const struct wm_axis *axis, const struct wm_report_figure *figure,
                     const char *unit, size_t input)
{
    const struct wm_plot_style style = { .size = TEXT, .colour = canvas->theme->ink };
    double end = wm_plot_place(axis, figure->value, box->left, box->right);
    double middle = (box->top + box->bottom) / 2, told = end;
    char text[64];

    wm_plot_colour(canvas, wm_chart_colour(input), 1);
    cairo_rectangle(canvas->cairo, box->left, box->top, fmax(end - box->left, 1),
                    box->bottom - box->top);
    cairo_fill(canvas->cairo);
    if (figure->has_range) {
        double high = wm_plot_place(axis, figure->high, box->left, box->right);
        wm_plot_colour(canvas, canvas->theme->ink, 1);
        cairo_set_line_width(canvas->cairo, 1.2);
        cairo_move_to(canvas->cairo,
                      wm_plot_place(axis, fmax(figure->low, 0), box->left, box->right),
                      middle);
        cairo_line_to(canvas->cairo, high, middle);
        cairo_stroke(canvas->cairo);
        told = fmax(end, high);
    }
    snprintf(text, sizeof(text), "%s%s",
             strcmp(unit, "J") == 0 ? wm_view_prefixed(figure->value, unit).text
                                    : wm_view_duration(figure->value, NULL).text,
             figure->origin == WM_ESTIMATED   ? " est"
             : figure->origin == WM_SIMULATED ? " sim"
                                              : "");
    wm_plot_text(canvas, told + 8, middle, &style, text);
}

static void draw_all(const struct wm_plot_request *request,
                     const struct wm_plot_canvas *canvas, struct bars *bars)
{
    const char *title = request->title ? request->title : "Regions";
    struct wm_plot_box box = wm_plot_title(canvas, title);
    const struct wm_plot_style name = { .size = TEXT,
                                        .colour = canvas->theme->ink,
                                        .align = WM_PLOT_RIGHT,
                                        .room = LEFT - 24 };
    size_t shown = bars->count < REGIONS_MOST ? bars->count : REGIONS_MOST;
    struct wm_axis axis = { 0, 0 };

    box.left = LEFT;
    box.right -= RIGHT;
    box = wm_plot_legend_of_inputs(canvas, request, &box);
    qsort(bars->bars, bars->count, sizeof(*bars->bars), by_order);
    for (size_t i = 0; i < shown; i++)
        axis.high = fmax(axis.high, bars->bars[i].end);
    axis.high = wm_chart_axis(0, axis.high, bars->measure->unit).high;
    box.top += 8;
    box.bottom -= BOTTOM;
    wm_plot_axis(canvas, &box, WM_PLOT_AT_BOTTOM, &axis, bars->measure->unit,
                 bars->measure->heading);
    double high = (box.bottom - box.top) / (double)shown;
    double each = fmin(0.76 * high / (double)request->input_count, THICKEST);
    double all = each * (double)request->input_count;
    for (size_t i = 0; i < shown; i++) {
        double top = box.top + high * ((double)i + 0.5) - all / 2;
        wm_plot_text(canvas, LEFT - 10, top + all / 2, &name, bars->bars[i].name);
        for (size_t k = 0; k < request->input_count; k++) {
            struct wm_plot_box own = { LEFT, top + each * (double)k, box.right,
                                       top + each * (double)(k + 1) };
            if (bars->bars[i].figures[k].key)
                draw_bar(canvas, &own, &axis, &bars->bars[i].figures[k],
                         bars->measure->unit, k);
        }
    }
}

int wm_plot_regions(const struct wm_plot_request *request, struct wm_plot_canvas *canvas,
                    struct wm_error *err)
{
    struct wm_report **reports = calloc(request->input_count, sizeof(*reports));
    struct bars bars = { 0 };
    int status = reports ? WM_OK : wm_fail_memory(err, "figure");

    for (size_t i = 0; i < request->input_count && status == WM_OK; i++)
        status = wm_plot_report(request, &request->inputs[i], &reports[i], err);
    for (size_t m = 0; m < sizeof(measures) / sizeof(measures[0]) && bars.count == 0; m++) {
        bars.measure = &measures[m];
        for (size_t i = 0; i < request->input_count && status == WM_OK; i++)
            status = add_report(&bars, request, i, reports[i], err);
    }
    if (status == WM_OK && bars.count == 0)
        status = wm_fail(err, WM_ENODEV, "%s: has no regions",
                         wm_text_path(request->inputs[0].path));
    if (status == WM_OK)
        draw_all(request, canvas, &bars);
    release(&bars);
    for (size_t i = 0; reports && i < request->input_count; i++)
        wm_report_free(reports[i]);
    free(reports);
    return status;
}
