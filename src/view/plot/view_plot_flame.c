/* SPDX-License-Identifier: Apache-2.0 */
/* view_plot_flame.c - a flame graph: regions by where they stand in the tree of calls, the
 * run at the bottom, as wide as the joules or seconds in them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

#define NOTE "Hatched: most of it is not known, or less than its uncertainty."

enum { TITLE_SIZE = 800, PATH_SIZE = 400, NAME_SIZE = 64, HEADING_SIZE = 64 };

/* A node of the tree as a box. */
struct flame_box {
    size_t colour;
    double unknown;    /* of the width: what the report calls "-" */
    double left, used; /* where it begins, and how much of it boxes above have taken */
};

static bool is_unknown(const struct wm_plot_flame *flame, size_t index)
{
    return flame->boxes[index].unknown > flame->tree.nodes[index].whole / 2;
}

static void add_unknown(struct wm_plot_flame *flame)
{
    for (size_t i = flame->tree.count; i-- > 1;) {
        const struct wm_flame_node *node = &flame->tree.nodes[i];
        struct wm_report_figure figure;

        if (wm_report_figure(flame->tree.report, &node->part, flame->tree.measure->key,
                             &figure) == WM_OK &&
            !wm_plot_is_known(&figure))
            flame->boxes[i].unknown += node->own;
        flame->boxes[node->parent].unknown += flame->boxes[i].unknown;
    }
}

/* The first box of that name has the colour of all of them. */
static size_t colour_of(const struct wm_plot_flame *flame, size_t index, size_t *next)
{
    const struct wm_flame_node *nodes = flame->tree.nodes;

    for (size_t i = 1; i < index; i++) {
        if (nodes[i].part.kind == WM_REPORT_PATH &&
            strcmp(nodes[i].region.name, nodes[index].region.name) == 0)
            return flame->boxes[i].colour;
    }
    return (*next)++;
}

static void place_boxes(struct wm_plot_flame *flame)
{
    size_t next = 0;

    for (size_t i = 1; i < flame->tree.count; i++) {
        const struct wm_flame_node *node = &flame->tree.nodes[i];
        struct flame_box *box = &flame->boxes[i], *parent = &flame->boxes[node->parent];
        box->left = parent->left + parent->used;
        parent->used += node->whole;
        if (node->part.kind == WM_REPORT_PATH)
            box->colour = colour_of(flame, i, &next);
    }
}

int wm_plot_flame_read(const struct wm_plot_request *request, struct wm_plot_flame *flame,
                       struct wm_error *err)
{
    if (request->input_count != 1)
        return wm_fail(err, WM_EINVAL, "--kind flame: one recording at a time");
    int status = wm_plot_report(request, &request->inputs[0], &flame->report, err);
    if (status == WM_OK)
        status = wm_flame_init(&flame->tree, flame->report, request->by_time,
                               request->inputs[0].path, err);
    if (status == WM_OK && !request->by_time)
        status = wm_flame_note_time(flame->tree.measure, request->by_energy, flame->report,
                                    request->inputs[0].path, request->names, err);
    if (status < 0)
        return status;
    flame->boxes = calloc(flame->tree.count, sizeof(*flame->boxes));
    if (!flame->boxes)
        return wm_fail_memory(err, "figure");
    place_boxes(flame);
    add_unknown(flame);
    return WM_OK;
}

void wm_plot_flame_release(struct wm_plot_flame *flame)
{
    wm_flame_release(&flame->tree);
    wm_report_free(flame->report);
    free(flame->boxes);
}

double wm_plot_flame_height(const struct wm_plot_flame *flame)
{
    return WM_PLOT_TITLE_HEIGHT + NOTE_HEIGHT + TOP + ROW * (double)flame->tree.rows +
           BOTTOM;
}

/* "epoch > forward"; of a deep one the inner part. */
static void write_path(const struct wm_plot_flame *flame, const struct wm_flame_node *node,
                       char text[PATH_SIZE])
{
    char inner[PATH_SIZE];

    snprintf(text, PATH_SIZE, "%s", wm_flame_name(node));
    while (node->parent > 0 && strlen(text) < PATH_SIZE - NAME_SIZE) {
        node = &flame->tree.nodes[node->parent];
        memcpy(inner, text, PATH_SIZE);
        snprintf(text, PATH_SIZE, "%.60s > %.*s", wm_flame_name(node),
                 PATH_SIZE - NAME_SIZE, inner);
    }
}

/* A figure of a box with the boxes above it, as the report has it. */
static void add_figure(const struct wm_plot_flame *flame, const struct wm_flame_node *node,
                       const char *key, char *text, size_t size)
{
    struct wm_report_part part = node->part;
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

static void write_title(const struct wm_plot_flame *flame, const struct wm_flame_node *node,
                        char *text, size_t size)
{
    write_path(flame, node, text);
    add_figure(flame, node, "energy", text, size);
    add_figure(flame, node, "time", text, size);
    struct wm_report_figure run;
    size_t used = strlen(text);
    if (wm_report_figure(flame->tree.report, NULL, flame->tree.measure->key, &run) ==
            WM_OK &&
        run.state != WM_REPORT_MISSING && run.value > 0)
        snprintf(text + used, size - used, "\n%.1f %% of the run's %s",
                 100 * node->whole / run.value, flame->tree.measure->key);
    used = strlen(text);
    unsigned long long calls = node->region.calls + node->region.unfinished;
    if (node->part.kind == WM_REPORT_PATH)
        snprintf(text + used, size - used, "\n%llu call%s", calls, calls == 1 ? "" : "s");
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
                     const struct wm_plot_box *place, size_t index)
{
    const struct wm_flame_node *node = &flame->tree.nodes[index];
    double width = place->right - place->left;
    const struct wm_plot_style style = { .size = TEXT,
                                         .colour = canvas->theme->ink,
                                         .room = width - 2 * PADDING };
    char title[TITLE_SIZE];
    bool is_region = node->part.kind == WM_REPORT_PATH;

    wm_plot_colour(canvas,
                   is_region ? wm_chart_colour(flame->boxes[index].colour)
                             : canvas->theme->grid,
                   is_region ? STRENGTH : 1);
    cairo_rectangle(canvas->cairo, place->left, place->top, width,
                    place->bottom - place->top);
    cairo_fill_preserve(canvas->cairo);
    wm_plot_colour(canvas, canvas->theme->paper, 1);
    cairo_set_line_width(canvas->cairo, fmin(1, width / 4));
    cairo_stroke(canvas->cairo);
    if (is_unknown(flame, index))
        hatch(canvas, place);
    if (width > NARROWEST_TEXT)
        wm_plot_text(canvas, place->left + PADDING, (place->top + place->bottom) / 2,
                     &style, wm_flame_name(node));
    write_title(flame, node, title, sizeof(title));
    wm_plot_hover(canvas, place, title);
}

int wm_plot_flame(const struct wm_plot_request *request, struct wm_plot_canvas *canvas,
                  const struct wm_plot_flame *flame, struct wm_error *err)
{
    const struct wm_flame *tree = &flame->tree;
    char title[WM_PLOT_TITLE_SIZE], heading[HEADING_SIZE], note[WM_PLOT_NOTE_SIZE] = "";
    struct wm_report_figure whole = { .origin = WM_MEASURED };
    bool all_known = true;

    wm_plot_title_of(tree->measure->title, &tree->report, 1, 1, title);
    wm_report_figure(tree->report, NULL, tree->measure->key, &whole);
    snprintf(heading, sizeof(heading), "%s%s", tree->measure->heading,
             wm_plot_origin(whole.origin));
    struct wm_plot_box box = wm_plot_title(canvas, request->title ? request->title : title);
    for (size_t i = 0; i < tree->count; i++)
        all_known = all_known && !is_unknown(flame, i);
    if (!all_known)
        snprintf(note, sizeof(note), "%s", NOTE);
    wm_plot_add_missing(request, 0, flame->report, note);
    box = wm_plot_note(canvas, &box, note);
    const struct wm_axis axis = { 0, tree->nodes[0].whole };

    box.left += MARGIN;
    box.right -= MARGIN;
    box.top += TOP;
    box.bottom -= BOTTOM;
    double row = fmin((box.bottom - box.top) / (double)flame->tree.rows, ROW);
    if (row < 4)
        return wm_fail(err, WM_EINVAL,
                       "the figure is too small for its regions; --size makes it larger");
    box.top = box.bottom - row * (double)flame->tree.rows;
    wm_plot_axis(canvas, &box, WM_PLOT_AT_BOTTOM, &axis, flame->tree.measure->unit,
                 heading);
    for (size_t i = 0; i < flame->tree.count; i++) {
        const struct wm_flame_node *node = &flame->tree.nodes[i];
        double left = flame->boxes[i].left;
        double bottom = box.bottom - row * (double)node->row;
        struct wm_plot_box place = {
            .left = wm_plot_place(&axis, left, box.left, box.right),
            .right = wm_plot_place(&axis, left + node->whole, box.left, box.right),
            .top = bottom - row,
            .bottom = bottom,
        };
        if (place.right - place.left >= NARROWEST)
            draw_box(flame, canvas, &place, i);
    }
    return WM_OK;
}
