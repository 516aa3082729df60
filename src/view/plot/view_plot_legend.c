/* SPDX-License-Identifier: Apache-2.0 */
/* view_plot_legend.c - what colours and dashes mean: above the panels, or beside them where
 * that takes too many lines. No entry is ever left out. */
#include "view/plot/view_plot_legend.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define TEXT 12.0
#define TEXT_LEAST 4.0
#define SWATCH 20.0
#define SWATCH_HALF 5.0  /* of its height */
#define BORDER_LEAST 3.0 /* pixels of a region that has a border */
#define GAP 6.0          /* between a swatch and its name */
#define APART 18.0       /* entries of a line */
#define LINE 1.5         /* lines of text, in its size */
#define MARGIN 14.0
#define WIDEST 0.45 /* of the figure, for a legend beside */
#define HIGHEST 0.4 /* of the figure, for a legend above */

enum { LINES_MOST = 5 };

struct legend {
    const struct wm_plot_canvas *canvas;
    const struct wm_plot_entry *entries;
    size_t count;
    double size; /* of text */
};

static const struct {
    double lengths[6];
    int count;
} dashes[] = {
    { { 0 }, 0 },
    { { 6, 3 }, 2 },
    { { 1.5, 2.5 }, 2 },
    { { 8, 3, 1.5, 3 }, 4 },
    { { 12, 4 }, 2 },
    { { 3, 1.5 }, 2 },
    { { 8, 2, 2, 2, 2, 2 }, 6 },
    { { 4, 6 }, 2 },
};

void wm_plot_dash(const struct wm_plot_canvas *canvas, size_t dash)
{
    size_t index = dash % (sizeof(dashes) / sizeof(dashes[0]));

    cairo_set_dash(canvas->cairo, dashes[index].lengths, dashes[index].count, 0);
}

static double indent_of(const struct wm_plot_entry *entry)
{
    return entry->sign == WM_PLOT_NO_SIGN ? 0 : SWATCH + GAP;
}

static double width_of(const struct legend *legend, size_t index)
{
    const struct wm_plot_entry *entry = &legend->entries[index];

    return indent_of(entry) + wm_plot_text_width(legend->canvas, legend->size, entry->name);
}

void wm_plot_region_area(const struct wm_plot_canvas *canvas, size_t colour,
                         const struct wm_plot_box *box)
{
    cairo_t *cairo = canvas->cairo;

    wm_plot_colour(canvas, wm_chart_colour(colour), 0.12);
    cairo_rectangle(cairo, box->left, box->top, box->right - box->left,
                    box->bottom - box->top);
    cairo_fill(cairo);
    if (box->right - box->left < BORDER_LEAST)
        return;
    wm_plot_colour(canvas, wm_chart_colour(colour), 0.5);
    cairo_set_line_width(cairo, 0.7);
    cairo_move_to(cairo, box->left, box->top);
    cairo_line_to(cairo, box->left, box->bottom);
    cairo_move_to(cairo, box->right, box->top);
    cairo_line_to(cairo, box->right, box->bottom);
    cairo_stroke(cairo);
}

static void draw_sign(const struct wm_plot_canvas *canvas,
                      const struct wm_plot_entry *entry, double x, double y)
{
    const struct wm_plot_box box = { x, y - SWATCH_HALF, x + SWATCH, y + SWATCH_HALF };
    uint32_t colour =
        entry->is_device ? canvas->theme->ink : wm_chart_colour(entry->colour);

    if (entry->sign == WM_PLOT_REGION) {
        wm_plot_region_area(canvas, entry->colour, &box);
        return;
    }
    if (entry->sign == WM_PLOT_FOLDED) {
        wm_plot_colour(canvas, colour, WM_PLOT_BAND_ALPHA);
        cairo_rectangle(canvas->cairo, x, box.top, SWATCH, 2 * SWATCH_HALF);
        cairo_fill(canvas->cairo);
    }
    wm_plot_colour(canvas, colour, 1);
    cairo_set_line_width(canvas->cairo, entry->is_device ? 1.5 : 3);
    wm_plot_dash(canvas, entry->dash);
    cairo_move_to(canvas->cairo, x, y);
    cairo_line_to(canvas->cairo, x + SWATCH, y);
    cairo_stroke(canvas->cairo);
    wm_plot_dash(canvas, 0);
}

static void draw_entry(const struct legend *legend, size_t index, double x, double y,
                       double room)
{
    const struct wm_plot_canvas *canvas = legend->canvas;
    const struct wm_plot_entry *entry = &legend->entries[index];
    bool has_sign = entry->sign != WM_PLOT_NO_SIGN;
    const struct wm_plot_style style = {
        .size = legend->size,
        .colour = has_sign ? canvas->theme->ink : canvas->theme->faint,
        .room = fmax(room - indent_of(entry), 1),
    };

    if (has_sign)
        draw_sign(canvas, entry, x, y);
    wm_plot_text(canvas, x + indent_of(entry), y, &style, entry->name);
}

/* In lines from left to right; the result is how many. */
static size_t lay_above(const struct legend *legend, const struct wm_plot_box *box,
                        bool is_drawn)
{
    double x = box->left, room = box->right - box->left, line = legend->size * LINE;
    size_t lines = 1;

    for (size_t i = 0; i < legend->count; i++) {
        double width = fmin(width_of(legend, i), room);
        if (x + width > box->right + 0.5 && x > box->left) {
            lines++;
            x = box->left;
        }
        if (is_drawn)
            draw_entry(legend, i, x, box->top + line * ((double)lines - 0.5), room);
        x += width + APART;
    }
    return lines;
}

static double widest(const struct legend *legend)
{
    double width = 0;

    for (size_t i = 0; i < legend->count; i++)
        width = fmax(width, width_of(legend, i));
    return width;
}

/* In columns at the right; the result is the room that they take, 0: too much. */
static double lay_beside(const struct legend *legend, const struct wm_plot_box *box)
{
    double line = legend->size * LINE;
    double rows = floor((box->bottom - box->top - MARGIN) / line);
    double width = widest(legend) + MARGIN;
    double columns = rows < 1 ? INFINITY : ceil((double)legend->count / rows);

    return columns * width <= WIDEST * legend->canvas->width ? columns * width : 0;
}

static void draw_beside(const struct legend *legend, const struct wm_plot_box *box,
                        double room)
{
    double line = legend->size * LINE, width = widest(legend) + MARGIN;
    size_t rows = (size_t)((box->bottom - box->top - MARGIN) / line);

    for (size_t i = 0; i < legend->count; i++)
        draw_entry(legend, i, box->right - room + width * (double)(i / rows),
                   box->top + line * ((double)(i % rows) + 0.5), width - MARGIN);
}

struct wm_plot_box wm_plot_legend(const struct wm_plot_canvas *canvas,
                                  const struct wm_plot_entry *entries, size_t count,
                                  const struct wm_plot_box *box)
{
    struct legend legend = { canvas, entries, count, TEXT };
    struct wm_plot_box left = *box;
    double most = HIGHEST * canvas->height;

    if (count == 0 || !canvas->has_legend)
        return left;
    size_t lines = lay_above(&legend, box, false);
    double room = lines > LINES_MOST ? lay_beside(&legend, box) : 0;
    if (room > 0) {
        draw_beside(&legend, box, room);
        left.right -= room + MARGIN;
        return left;
    }
    while (lines > LINES_MOST && (double)lines * legend.size * LINE > most &&
           legend.size > TEXT_LEAST) {
        legend.size--;
        lines = lay_above(&legend, box, false);
    }
    lay_above(&legend, box, true);
    left.top += (double)lines * legend.size * LINE + 4;
    return left;
}

struct wm_plot_box wm_plot_legend_of_inputs(const struct wm_plot_canvas *canvas,
                                            const struct wm_plot_request *request,
                                            const struct wm_plot_box *box)
{
    struct wm_plot_entry *entries = calloc(request->input_count, sizeof(*entries));
    struct wm_plot_box left = *box;

    for (size_t i = 0; i < request->input_count && entries; i++) {
        entries[i].colour = i;
        wm_plot_input_name(&request->inputs[i], entries[i].name);
    }
    if (entries && request->input_count > 1)
        left = wm_plot_legend(canvas, entries, request->input_count, box);
    free(entries);
    return left;
}
