/* SPDX-License-Identifier: Apache-2.0 */
/* view_plot_flame.c - a flame graph: regions by where they stand in the tree of calls, the
 * run at the bottom, as wide as the joules or seconds in them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/base_utf8.h"
#include "view/plot/view_plot.h"
#include "view/plot/view_plot_report.h"

#define MARGIN 16.0
#define TOP 10.0
#define BOTTOM 46.0
#define ROW 26.0
#define TEXT 11.0
#define PADDING 5.0
#define NARROWEST 0.25 /* pixels of a box that is drawn */
#define NARROWEST_TEXT 34.0
#define HATCH 6.0
#define NOTE_HEIGHT 16.0
#define STRENGTH 0.5 /* of the colours, on which text is read */

#define NOTE "Hatched: most of it is not known, the uncertainty is larger than the energy."

enum { TITLE_SIZE = 800, PATH_SIZE = 400, NAME_SIZE = 64, HEADING_SIZE = 64 };

/* A box: a path, the run at the bottom, or what no region has. */
struct flame_box {
    struct wm_report_part part;
    struct wm_report_region region;
    size_t parent; /* of the boxes */
    size_t row;    /* 0: the run */
    size_t colour;
    double own, width; /* without the boxes above it, and with them */
    double unknown;    /* of the width: what the report calls "-" */
    double left, used; /* where it begins, and how much of it boxes above have taken */
};

static void set_own(const struct wm_plot_flame *flame, struct flame_box *box)
{
    struct wm_report_figure figure;

    if (wm_report_figure(flame->report, &box->part, flame->measure->key, &figure) < 0 ||
        figure.state == WM_REPORT_MISSING)
        return;
    box->own = fmax(figure.value, 0);
    box->unknown = wm_plot_is_known(&figure) ? 0 : box->own;
}

static bool is_unknown(const struct flame_box *box)
{
    return box->unknown > box->width / 2;
}

/* The first box of that name has the colour of all of them. */
static size_t colour_of(const struct wm_plot_flame *flame, const char *name, size_t *next)
{
    for (size_t i = 1; i < flame->count; i++) {
        const struct flame_box *box = &flame->boxes[i];
        if (box->part.kind == WM_REPORT_PATH && strcmp(box->region.name, name) == 0)
            return box->colour;
    }
    return (*next)++;
}

/* A path comes before those inside it, so that a box has its parent's number below it. */
static void add_paths(struct wm_plot_flame *flame, size_t paths)
{
    size_t next = 0;

    flame->boxes[0].part.kind = WM_REPORT_RUN;
    flame->count = 1;
    for (size_t i = 0; i < paths; i++) {
        struct flame_box box = {
            .part = { .kind = WM_REPORT_PATH, .index = i, .share = WM_REPORT_EXCLUSIVE }
        };
        wm_report_region(flame->report, WM_REPORT_PATH, i, &box.region);
        bool is_outer = box.region.parent == WM_REPORT_NO_PARENT;
        box.parent = is_outer ? 0 : box.region.parent + 1;
        box.row = box.region.depth + 1;
        set_own(flame, &box);
        box.colour = colour_of(flame, box.region.name, &next);
        flame->boxes[flame->count++] = box;
        flame->rows = box.row + 1 > flame->rows ? box.row + 1 : flame->rows;
    }
    struct flame_box rest = { .part = { .kind = WM_REPORT_REST }, .row = 1 };
    set_own(flame, &rest);
    if (rest.own > 0)
        flame->boxes[flame->count++] = rest;
}

static void place_boxes(struct wm_plot_flame *flame)
{
    for (size_t i = flame->count; i-- > 0;) {
        struct flame_box *box = &flame->boxes[i], *parent = &flame->boxes[box->parent];
        box->width += box->own;
        if (i == 0)
            continue;
        parent->width += box->width;
        parent->unknown += box->unknown;
    }
    for (size_t i = 1; i < flame->count; i++) {
        struct flame_box *box = &flame->boxes[i], *parent = &flame->boxes[box->parent];
        box->left = parent->left + parent->used;
        parent->used += box->width;
    }
}

int wm_plot_flame_read(const struct wm_plot_request *request, struct wm_plot_flame *flame,
                       struct wm_error *err)
{
    if (request->input_count != 1)
        return wm_fail(err, WM_EINVAL, "--kind flame: one recording at a time");
    int status = wm_plot_report(request, &request->inputs[0], &flame->report, err);
    if (status < 0)
        return status;
    size_t paths = wm_report_count(flame->report, WM_REPORT_PATH);
    if (paths == 0)
        return wm_fail(err, WM_ENODEV, "%s: has no regions",
                       wm_text_path(request->inputs[0].path));
    for (size_t m = request->by_time; m < WM_PLOT_MEASURES; m++) {
        free(flame->boxes);
        flame->boxes = calloc(paths + 2, sizeof(*flame->boxes));
        if (!flame->boxes)
            return wm_fail_memory(err, "figure");
        flame->measure = &wm_plot_measures[m];
        add_paths(flame, paths);
        place_boxes(flame);
        if (flame->boxes[0].width > 0)
            return WM_OK;
    }
    return wm_fail(err, WM_ENODEV, "%s: its regions have neither energy nor time",
                   wm_text_path(request->inputs[0].path));
}

void wm_plot_flame_release(struct wm_plot_flame *flame)
{
    wm_report_free(flame->report);
    free(flame->boxes);
}

double wm_plot_flame_height(const struct wm_plot_flame *flame)
{
    return WM_PLOT_TITLE_HEIGHT + NOTE_HEIGHT + TOP + ROW * (double)flame->rows + BOTTOM;
}

static const char *name_of(const struct flame_box *box)
{
    if (box->part.kind == WM_REPORT_RUN)
        return "(run)";
    if (box->part.kind == WM_REPORT_REST)
        return "(outside of all regions)";
    return box->region.name[0] ? box->region.name : "(no name)";
}

/* "epoch > forward"; of a deep one the inner part. */
static void write_path(const struct wm_plot_flame *flame, const struct flame_box *box,
                       char text[PATH_SIZE])
{
    char inner[PATH_SIZE];

    snprintf(text, PATH_SIZE, "%s", name_of(box));
    while (box->parent > 0 && strlen(text) < PATH_SIZE - NAME_SIZE) {
        box = &flame->boxes[box->parent];
        memcpy(inner, text, PATH_SIZE);
        snprintf(text, PATH_SIZE, "%.60s > %.*s", name_of(box), PATH_SIZE - NAME_SIZE,
                 inner);
    }
}

/* A figure of a box with the boxes above it, as the report has it. */
static void add_figure(const struct wm_plot_flame *flame, const struct flame_box *box,
                       const char *key, char *text, size_t size)
{
    struct wm_report_part part = box->part;
    struct wm_report_figure figure;
    size_t used = strlen(text);
    char found[160];

    part.share = WM_REPORT_INCLUSIVE;
    if (wm_report_figure(flame->report, &part, key, &figure) < 0 ||
        figure.state == WM_REPORT_MISSING)
        return;
    wm_report_figure_text(&figure, found, sizeof(found));
    snprintf(text + used, size - used, "\n%s", found);
}

static void write_title(const struct wm_plot_flame *flame, const struct flame_box *box,
                        char *text, size_t size)
{
    write_path(flame, box, text);
    add_figure(flame, box, "energy", text, size);
    add_figure(flame, box, "time", text, size);
    size_t used = strlen(text);
    snprintf(text + used, size - used, "\n%.1f %% of the run's %s",
             100 * box->width / flame->boxes[0].width, flame->measure->key);
    used = strlen(text);
    if (box->part.kind == WM_REPORT_PATH)
        snprintf(text + used, size - used, "\n%llu calls",
                 (unsigned long long)(box->region.calls + box->region.unfinished));
}

/* Diagonal lines over what is not known. */
static void hatch(const struct wm_plot_canvas *canvas, const struct wm_plot_box *place)
{
    double height = place->bottom - place->top;

    cairo_save(canvas->cairo);
    cairo_rectangle(canvas->cairo, place->left, place->top, place->right - place->left,
                    height);
    cairo_clip(canvas->cairo);
    for (double x = place->left - height; x < place->right; x += HATCH) {
        cairo_move_to(canvas->cairo, x, place->bottom);
        cairo_line_to(canvas->cairo, x + height, place->top);
    }
    wm_plot_colour(canvas, canvas->theme->paper, 1);
    cairo_set_line_width(canvas->cairo, HATCH / 3);
    cairo_stroke(canvas->cairo);
    cairo_restore(canvas->cairo);
}

static void draw_box(const struct wm_plot_flame *flame, const struct wm_plot_canvas *canvas,
                     const struct wm_plot_box *place, const struct flame_box *box)
{
    double width = place->right - place->left;
    const struct wm_plot_style style = { .size = TEXT,
                                         .colour = canvas->theme->ink,
                                         .room = width - 2 * PADDING };
    char title[TITLE_SIZE];
    bool is_region = box->part.kind == WM_REPORT_PATH;

    wm_plot_colour(canvas, is_region ? wm_chart_colour(box->colour) : canvas->theme->grid,
                   is_region ? STRENGTH : 1);
    cairo_rectangle(canvas->cairo, place->left, place->top, width,
                    place->bottom - place->top);
    cairo_fill_preserve(canvas->cairo);
    wm_plot_colour(canvas, canvas->theme->paper, 1);
    cairo_set_line_width(canvas->cairo, fmin(1, width / 4));
    cairo_stroke(canvas->cairo);
    if (is_unknown(box))
        hatch(canvas, place);
    if (width > NARROWEST_TEXT)
        wm_plot_text(canvas, place->left + PADDING, (place->top + place->bottom) / 2,
                     &style, name_of(box));
    write_title(flame, box, title, sizeof(title));
    wm_plot_hover(canvas, place, title);
}

int wm_plot_flame(const struct wm_plot_request *request, struct wm_plot_canvas *canvas,
                  const struct wm_plot_flame *flame, struct wm_error *err)
{
    const struct wm_report *report = flame->report;
    char title[WM_PLOT_TITLE_SIZE], heading[HEADING_SIZE];
    struct wm_report_figure whole = { .origin = WM_MEASURED };
    bool all_known = true;

    wm_plot_title_of(flame->measure->title, &report, 1, 1, title);
    wm_report_figure(report, NULL, flame->measure->key, &whole);
    snprintf(heading, sizeof(heading), "%s%s", flame->measure->heading,
             wm_plot_origin(whole.origin));
    struct wm_plot_box box = wm_plot_title(canvas, request->title ? request->title : title);
    for (size_t i = 0; i < flame->count; i++)
        all_known = all_known && !is_unknown(&flame->boxes[i]);
    if (!all_known)
        box = wm_plot_note(canvas, &box, NOTE);
    const struct wm_axis axis = { 0, flame->boxes[0].width };

    box.left += MARGIN;
    box.right -= MARGIN;
    box.top += TOP;
    box.bottom -= BOTTOM;
    double row = fmin((box.bottom - box.top) / (double)flame->rows, ROW);
    if (row < 4)
        return wm_fail(err, WM_EINVAL,
                       "the figure is too small for its regions; --size makes it larger");
    box.top = box.bottom - row * (double)flame->rows;
    wm_plot_axis(canvas, &box, WM_PLOT_AT_BOTTOM, &axis, flame->measure->unit, heading);
    for (size_t i = 0; i < flame->count; i++) {
        const struct flame_box *of = &flame->boxes[i];
        double bottom = box.bottom - row * (double)of->row;
        struct wm_plot_box place = {
            .left = wm_plot_place(&axis, of->left, box.left, box.right),
            .right = wm_plot_place(&axis, of->left + of->width, box.left, box.right),
            .top = bottom - row,
            .bottom = bottom,
        };
        if (place.right - place.left >= NARROWEST)
            draw_box(flame, canvas, &place, of);
    }
    return WM_OK;
}
