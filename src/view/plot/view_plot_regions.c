/* SPDX-License-Identifier: Apache-2.0 */
/* view_plot_regions.c - what each region took, without the regions inside it, as bars. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_array.h"
#include "base/base_utf8.h"
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
#define NAME_LINE 1.3  /* lines of names, in their size */
#define BAR_LEAST 13.0 /* height of a bar with its number */
#define NOTES 80.0     /* height of the note and the legend */
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

struct wm_plot_regions {
    const struct wm_plot_request *request;
    struct wm_report **reports;
    struct bar *bars; /* the largest first */
    size_t count, room, shown;
    const struct wm_flame_measure *measure;
    char title[WM_PLOT_TITLE_SIZE], note[WM_PLOT_NOTE_SIZE];
};

void wm_plot_regions_free(struct wm_plot_regions *regions)
{
    if (!regions)
        return;
    for (size_t i = 0; i < regions->count; i++) {
        free(regions->bars[i].name);
        free(regions->bars[i].figures);
    }
    for (size_t i = 0; regions->reports && i < regions->request->input_count; i++)
        wm_report_free(regions->reports[i]);
    free(regions->reports);
    free(regions->bars);
    free(regions);
}

static struct bar *find(struct wm_plot_regions *bars, const char *name)
{
    for (size_t i = 0; i < bars->count; i++) {
        if (strcmp(bars->bars[i].name, name) == 0)
            return &bars->bars[i];
    }
    if (wm_array_reserve(&bars->bars, bars->count, &bars->room, sizeof(*bars->bars)) < 0)
        return NULL;
    struct bar *bar = &bars->bars[bars->count];
    *bar = (struct bar) { .name = strdup(name),
                          .figures =
                              calloc(bars->request->input_count, sizeof(*bar->figures)) };
    bars->count++;
    return bar->name && bar->figures ? bar : NULL;
}

static int add(struct wm_plot_regions *bars, size_t input,
               const struct wm_report_part *part, const char *name, struct wm_error *err)
{
    struct wm_report_figure figure;

    if (wm_report_figure(bars->reports[input], part, bars->measure->key, &figure) < 0 ||
        !wm_flame_has(&figure))
        return WM_OK;
    struct bar *bar = find(bars, name);
    if (!bar)
        return wm_fail_memory(err, "figure");
    bar->figures[input] = figure;
    bar->is_known = bar->is_known || wm_plot_is_known(&figure);
    bar->order = fmax(bar->order, figure.value);
    bar->end = fmax(bar->end, figure.has_range ? figure.high : figure.value);
    return WM_OK;
}

static int add_report(struct wm_plot_regions *bars, size_t input, struct wm_error *err)
{
    const struct wm_report *report = bars->reports[input];
    size_t count = wm_report_count(report, WM_REPORT_REGION);
    struct wm_report_part part = { .kind = WM_REPORT_REGION, .share = WM_REPORT_EXCLUSIVE };
    struct wm_report_region region;
    int status = WM_OK;

    for (; part.index < count && status == WM_OK; part.index++) {
        if (wm_report_region(report, WM_REPORT_REGION, part.index, &region) == WM_OK)
            status =
                add(bars, input, &part, region.name[0] ? region.name : "(no name)", err);
    }
    if (count > 0 && status == WM_OK) {
        part = (struct wm_report_part) { .kind = WM_REPORT_REST };
        status = add(bars, input, &part, "(outside of all regions)", err);
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

/* The room for the names at the left; 0: they stand above their bars. */
static double left_of(const struct wm_plot_canvas *canvas,
                      const struct wm_plot_regions *bars)
{
    double width = 0;

    for (size_t i = 0; i < bars->shown; i++)
        width = fmax(width, wm_plot_text_width(canvas, TEXT, bars->bars[i].name));
    width += MARGIN + BESIDE;
    return width <= NAMES_MOST * canvas->width ? width : 0;
}

/* The room for the numbers at the right of the longest bar. */
static double right_of(const struct wm_plot_canvas *canvas,
                       const struct wm_plot_regions *bars)
{
    size_t inputs = bars->request->input_count;
    double width = 0;
    char text[FIGURE_SIZE];

    for (size_t i = 0; i < bars->shown * inputs; i++) {
        const struct wm_report_figure *figure = &bars->bars[i / inputs].figures[i % inputs];
        if (!figure->key)
            continue;
        write_figure(text, sizeof(text), figure, bars->measure->unit);
        width = fmax(width, wm_plot_text_width(canvas, TEXT, text));
    }
    return width + BESIDE + MARGIN;
}

static void draw_row(const struct wm_plot_canvas *canvas,
                     const struct wm_plot_regions *bars, const struct wm_plot_box *row,
                     const struct wm_axis *axis, size_t index, bool is_above)
{
    const struct bar *bar = &bars->bars[index];
    size_t inputs = bars->request->input_count;
    double high = row->bottom - row->top, text = fmin(TEXT, high / (is_above ? 2.4 : 1.2));
    double room = is_above ? NAME_LINE * text : 0;
    double each = fmin((0.9 * high - room) / (double)inputs, THICKEST);
    double top = (row->top + row->bottom + room - each * (double)inputs) / 2;
    const struct wm_plot_style name = {
        .size = fmax(text, TEXT_LEAST),
        .colour = canvas->theme->ink,
        .align = is_above ? WM_PLOT_LEFT : WM_PLOT_RIGHT,
        .room = is_above ? canvas->width - 2 * MARGIN : 0,
    };

    wm_plot_text(canvas, is_above ? row->left : row->left - BESIDE,
                 is_above ? top - room / 2 : (row->top + row->bottom) / 2, &name,
                 bar->name);
    for (size_t i = 0; i < inputs; i++) {
        const struct wm_plot_box own = { row->left, top + each * (double)i, row->right,
                                         top + each * (double)(i + 1) };
        if (bar->figures[i].key)
            draw_bar(canvas, &own, axis, &bar->figures[i], bars->measure->unit, i);
    }
}

double wm_plot_regions_height(const struct wm_plot_regions *regions)
{
    double row = NAME_LINE * TEXT + BAR_LEAST * (double)regions->request->input_count;

    return WM_PLOT_TITLE_HEIGHT + NOTES + row * (double)regions->shown + BOTTOM;
}

void wm_plot_regions_draw(const struct wm_plot_canvas *canvas,
                          const struct wm_plot_regions *regions)
{
    const struct wm_plot_request *request = regions->request;
    const char *title = request->title ? request->title : regions->title;
    struct wm_plot_box box = wm_plot_title(canvas, title);
    double left = left_of(canvas, regions);
    struct wm_axis axis = { 0, 0 };

    box = wm_plot_note(canvas, &box, regions->note);
    for (size_t i = 0; i < regions->shown; i++)
        axis.high = fmax(axis.high, regions->bars[i].end);
    axis.high = wm_chart_axis(0, axis.high, regions->measure->unit).high;
    box.left = left > 0 ? left : MARGIN;
    box.right -= MARGIN;
    box = wm_plot_legend_of_inputs(canvas, request, &box);
    box.right -= right_of(canvas, regions) - MARGIN;
    box.top += 8;
    box.bottom -= BOTTOM;
    wm_plot_axis(canvas, &box, WM_PLOT_AT_BOTTOM, &axis, regions->measure->unit,
                 regions->measure->bars_heading);
    double high = (box.bottom - box.top) / (double)regions->shown;
    for (size_t i = 0; i < regions->shown; i++) {
        const struct wm_plot_box row = { box.left, box.top + high * (double)i, box.right,
                                         box.top + high * (double)(i + 1) };
        draw_row(canvas, regions, &row, &axis, i, left == 0);
    }
}

static int read_all(struct wm_plot_regions *regions, struct wm_error *err)
{
    const struct wm_plot_request *request = regions->request;
    size_t inputs = request->input_count;
    int status = WM_OK;

    regions->reports = calloc(inputs, sizeof(struct wm_report *));
    if (!regions->reports)
        return wm_fail_memory(err, "figure");
    for (size_t i = 0; i < inputs && status == WM_OK; i++)
        status = wm_plot_report(request, &request->inputs[i], &regions->reports[i], err);
    for (size_t m = request->by_time; m < WM_FLAME_MEASURES && regions->count == 0; m++) {
        regions->measure = &wm_flame_measures[m];
        for (size_t i = 0; i < inputs && status == WM_OK; i++)
            status = add_report(regions, i, err);
    }
    if (status == WM_OK && regions->count == 0)
        status = wm_fail(err, WM_ENODEV, "%s: has no regions",
                         wm_text_path(request->inputs[0].path));
    if (status == WM_OK && !request->by_time)
        status =
            wm_flame_note_time(regions->measure, request->by_energy, regions->reports[0],
                               request->inputs[0].path, request->names, err);
    return status;
}

int wm_plot_regions_read(const struct wm_plot_request *request,
                         struct wm_plot_regions **ret_regions, struct wm_error *err)
{
    struct wm_plot_regions *regions = calloc(1, sizeof(*regions));

    if (!regions)
        return wm_fail_memory(err, "figure");
    regions->request = request;
    int status = read_all(regions, err);
    if (status < 0) {
        wm_plot_regions_free(regions);
        return status;
    }
    qsort(regions->bars, regions->count, sizeof(*regions->bars), by_order);
    regions->shown = regions->count < REGIONS_MOST ? regions->count : REGIONS_MOST;
    const struct wm_report *const *reports =
        (const struct wm_report *const *)regions->reports;
    wm_plot_title_of(regions->measure->title, reports, request->input_count,
                     request->input_count, regions->title);
    if (strcmp(regions->measure->unit, "J") == 0)
        snprintf(regions->note, sizeof(regions->note), "%s", NOTE);
    for (size_t i = 0; i < request->input_count; i++)
        wm_plot_add_missing(request, i, reports[i], regions->note);
    *ret_regions = regions;
    return WM_OK;
}
