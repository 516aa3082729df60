/* SPDX-License-Identifier: Apache-2.0 */
/* view_plot_regions.c - what each region took, without the regions inside it, as bars. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_array.h"
#include "base/text/base_utf8.h"
#include "view/chart/view_flame.h"
#include "view/plot/view_plot.h"
#include "view/plot/view_plot_legend.h"
#include "view/plot/view_plot_report.h"
#include "view/view_units.h"

#define MARGIN 14.0
#define BESIDE 8.0      /* between a bar and its name, and its number */
#define NAMES_MOST 0.35 /* of the width */
#define BOTTOM 50.0
#define TEXT 12.0
#define TEXT_LEAST 5.0
#define THICKEST 40.0
#define NOTE                                                                               \
    "Lines: 95 % intervals. -: not known, or less than its uncertainty. est: estimated, "  \
    "sim: simulated."

enum { REGIONS_MOST = 24, FIGURE_SIZE = 64 };

struct bar {
    char *name;
    struct wm_report_figure *figures; /* of each input */
    bool is_known;                    /* of one input at least */
    double order, end;
};

struct bars {
    struct bar *bars;
    size_t count, room;
    const struct wm_flame_measure *measure;
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
        !wm_flame_has(&figure))
        return WM_OK;
    struct bar *bar = find(bars, name, request->input_count);
    if (!bar)
        return wm_fail_memory(err, "figure");
    bar->figures[input] = figure;
    bar->is_known = bar->is_known || wm_plot_is_known(&figure);
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
            status = add(bars, request, input, report, &part,
                         region.name[0] ? region.name : "(no name)", err);
    }
    if (count > 0 && status == WM_OK) {
        part = (struct wm_report_part) { .kind = WM_REPORT_REST };
        status = add(bars, request, input, report, &part, "(outside of all regions)", err);
    }
    return status;
}

static int by_order(const void *a, const void *b)
{
    const struct bar *left = a, *right = b;

    if (left->is_known != right->is_known)
        return left->is_known ? -1 : 1;
    return (left->order < right->order) - (left->order > right->order);
}

/* The figure in as many digits as its uncertainty leaves, or "-" as in the report, where it
 * is not known or larger than the figure. */
static void write_figure(char *text, size_t size, const struct wm_report_figure *figure,
                         const char *unit)
{
    bool is_energy = strcmp(unit, "J") == 0;
    double half = (figure->high - figure->low) / 2;

    if (!wm_plot_is_known(figure)) {
        snprintf(text, size, "-");
        return;
    }
    snprintf(text, size, "%s%s",
             is_energy ? wm_view_approximate(figure->value, half / figure->value, unit).text
                       : wm_view_duration(figure->value, NULL).text,
             figure->origin == WM_ESTIMATED   ? " est"
             : figure->origin == WM_SIMULATED ? " sim"
                                              : "");
}

static void draw_whisker(const struct wm_plot_canvas *canvas, double low, double high,
                         double middle, double half)
{
    cairo_t *cairo = canvas->cairo;

    wm_plot_colour(canvas, canvas->theme->ink, 1);
    cairo_set_line_width(cairo, 1.2);
    cairo_move_to(cairo, low, middle);
    cairo_line_to(cairo, high, middle);
    cairo_move_to(cairo, low, middle - half);
    cairo_line_to(cairo, low, middle + half);
    cairo_move_to(cairo, high, middle - half);
    cairo_line_to(cairo, high, middle + half);
    cairo_stroke(cairo);
}

/* The number stands at the right of the bar and of its interval. */
static void draw_bar(const struct wm_plot_canvas *canvas, const struct wm_plot_box *box,
                     const struct wm_axis *axis, const struct wm_report_figure *figure,
                     const char *unit, size_t input)
{
    const struct wm_plot_style style = {
        .size =
            fmax(fmin(TEXT, box->bottom - box->top), TEXT_LEAST), /* no higher than it */
        .colour = canvas->theme->ink,
    };
    double end = wm_plot_place(axis, figure->value, box->left, box->right);
    double middle = (box->top + box->bottom) / 2, last = end;
    char text[FIGURE_SIZE];

    if (wm_plot_is_known(figure)) {
        wm_plot_colour(canvas, wm_chart_colour(input), 1);
        cairo_rectangle(canvas->cairo, box->left, box->top, fmax(end - box->left, 1),
                        box->bottom - box->top);
        cairo_fill(canvas->cairo);
    }
    if (figure->has_range) {
        double low = wm_plot_place(axis, fmax(figure->low, 0), box->left, box->right);
        double high = wm_plot_place(axis, figure->high, box->left, box->right);
        draw_whisker(canvas, low, high, middle, fmin((box->bottom - box->top) / 4, 4));
        last = fmax(end, high);
    }
    write_figure(text, sizeof(text), figure, unit);
    wm_plot_text(canvas, last + BESIDE, middle, &style, text);
}

/* The room for the names at the left. */
static double left_of(const struct wm_plot_canvas *canvas, const struct bars *bars,
                      size_t shown)
{
    double width = 0;

    for (size_t i = 0; i < shown; i++)
        width = fmax(width, wm_plot_text_width(canvas, TEXT, bars->bars[i].name));
    return fmin(width + MARGIN + BESIDE, NAMES_MOST * canvas->width);
}

/* The room for the numbers at the right of the longest bar. */
static double right_of(const struct wm_plot_canvas *canvas, const struct bars *bars,
                       size_t shown, size_t inputs)
{
    double width = 0;
    char text[FIGURE_SIZE];

    for (size_t i = 0; i < shown * inputs; i++) {
        const struct wm_report_figure *figure = &bars->bars[i / inputs].figures[i % inputs];
        if (!figure->key)
            continue;
        write_figure(text, sizeof(text), figure, bars->measure->unit);
        width = fmax(width, wm_plot_text_width(canvas, TEXT, text));
    }
    return width + BESIDE + MARGIN;
}

static void draw_all(const struct wm_plot_request *request,
                     const struct wm_plot_canvas *canvas, const char *title,
                     const char *note, struct bars *bars)
{
    struct wm_plot_box box = wm_plot_title(canvas, title);
    size_t shown = bars->count < REGIONS_MOST ? bars->count : REGIONS_MOST;
    struct wm_axis axis = { 0, 0 };

    box = wm_plot_note(canvas, &box, note);
    qsort(bars->bars, bars->count, sizeof(*bars->bars), by_order);
    for (size_t i = 0; i < shown; i++)
        axis.high = fmax(axis.high, bars->bars[i].end);
    axis.high = wm_chart_axis(0, axis.high, bars->measure->unit).high;
    box.left = left_of(canvas, bars, shown);
    box.right -= MARGIN;
    box = wm_plot_legend_of_inputs(canvas, request, &box);
    box.right -= right_of(canvas, bars, shown, request->input_count) - MARGIN;
    box.top += 8;
    box.bottom -= BOTTOM;
    wm_plot_axis(canvas, &box, WM_PLOT_AT_BOTTOM, &axis, bars->measure->unit,
                 bars->measure->bars_heading);
    double high = (box.bottom - box.top) / (double)shown;
    double each = fmin(0.76 * high / (double)request->input_count, THICKEST);
    double all = each * (double)request->input_count;
    const struct wm_plot_style name = { .size = TEXT,
                                        .colour = canvas->theme->ink,
                                        .align = WM_PLOT_RIGHT,
                                        .room = box.left - BESIDE - 4 };
    for (size_t i = 0; i < shown; i++) {
        double top = box.top + high * ((double)i + 0.5) - all / 2;
        wm_plot_text(canvas, box.left - BESIDE, top + all / 2, &name, bars->bars[i].name);
        for (size_t k = 0; k < request->input_count; k++) {
            struct wm_plot_box own = { box.left, top + each * (double)k, box.right,
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
    char title[WM_PLOT_TITLE_SIZE], note[WM_PLOT_NOTE_SIZE] = "";

    for (size_t i = 0; i < request->input_count && status == WM_OK; i++)
        status = wm_plot_report(request, &request->inputs[i], &reports[i], err);
    for (size_t m = request->by_time; m < WM_FLAME_MEASURES && bars.count == 0; m++) {
        bars.measure = &wm_flame_measures[m];
        for (size_t i = 0; i < request->input_count && status == WM_OK; i++)
            status = add_report(&bars, request, i, reports[i], err);
    }
    if (status == WM_OK && bars.count == 0)
        status = wm_fail(err, WM_ENODEV, "%s: has no regions",
                         wm_text_path(request->inputs[0].path));
    if (status == WM_OK) {
        wm_plot_title_of(bars.measure->title, (const struct wm_report *const *)reports,
                         request->input_count, request->input_count, title);
        if (strcmp(bars.measure->unit, "J") == 0)
            snprintf(note, sizeof(note), "%s", NOTE);
        for (size_t i = 0; i < request->input_count; i++)
            wm_plot_add_missing(request, i, reports[i], note);
        draw_all(request, canvas, request->title ? request->title : title, note, &bars);
    }
    release(&bars);
    for (size_t i = 0; reports && i < request->input_count; i++)
        wm_report_free(reports[i]);
    free(reports);
    return status;
}
