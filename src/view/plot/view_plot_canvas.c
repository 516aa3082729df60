/* SPDX-License-Identifier: Apache-2.0 */
/* view_plot_canvas.c - text and axes. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text/base_text.h"
#include "view/plot/view_plot.h"

const uint32_t wm_plot_ink = 0x222222, wm_plot_faint = 0x6b6b6b, wm_plot_grid = 0xe4e4e4;

enum { AXIS_TEXT = 11, LABEL_TEXT = 12, LABEL_TEXT_LEAST = 8, TITLE_TEXT = 15 };

/* How far apart marks are at least, in pixels. */
#define APART_DOWN 22.0
#define APART_ALONG 64.0
#define MOST_DOWN 9.0 /* more are no help */

void wm_plot_colour(const struct wm_plot_canvas *canvas, uint32_t colour, double alpha)
{
    cairo_set_source_rgba(canvas->cairo, (colour >> 16) / 255.0,
                          (colour >> 8 & 255) / 255.0, (colour & 255) / 255.0, alpha);
}

/* Names come from files; pango takes valid UTF-8 alone. */
static void set_text(const struct wm_plot_canvas *canvas, const struct wm_plot_style *style,
                     const char *text)
{
    PangoFontDescription *font = pango_font_description_new();
    char line[512];

    wm_text_line(line, sizeof(line), text);
    pango_font_description_set_family_static(font, "DejaVu Sans, Noto Sans, sans-serif");
    pango_font_description_set_absolute_size(font, style->size * PANGO_SCALE);
    pango_font_description_set_weight(font, style->is_bold ? PANGO_WEIGHT_BOLD
                                                           : PANGO_WEIGHT_NORMAL);
    pango_layout_set_font_description(canvas->text, font);
    pango_font_description_free(font);
    pango_layout_set_width(canvas->text,
                           style->room > 0 ? (int)(style->room * PANGO_SCALE) : -1);
    pango_layout_set_ellipsize(canvas->text, style->room > 0 ? PANGO_ELLIPSIZE_END
                                                             : PANGO_ELLIPSIZE_NONE);
    pango_layout_set_text(canvas->text, line, -1);
}

void wm_plot_text(const struct wm_plot_canvas *canvas, double x, double y,
                  const struct wm_plot_style *style, const char *text)
{
    PangoRectangle extents;

    set_text(canvas, style, text);
    pango_layout_get_extents(canvas->text, NULL, &extents);
    double width = (double)extents.width / PANGO_SCALE;
    double height = (double)extents.height / PANGO_SCALE;
    double part = style->align == WM_PLOT_LEFT     ? 0
                  : style->align == WM_PLOT_CENTRE ? 0.5
                                                   : 1;

    cairo_save(canvas->cairo);
    cairo_translate(canvas->cairo, x, y);
    cairo_rotate(canvas->cairo, style->turn);
    if (style->has_halo) {
        wm_plot_colour(canvas, 0xffffff, 0.85);
        cairo_rectangle(canvas->cairo, -part * width - 2, -height / 2, width + 4, height);
        cairo_fill(canvas->cairo);
    }
    wm_plot_colour(canvas, style->colour, 1);
    cairo_move_to(canvas->cairo, -part * width - (double)extents.x / PANGO_SCALE,
                  -height / 2);
    pango_cairo_show_layout(canvas->cairo, canvas->text);
    cairo_restore(canvas->cairo);
}

double wm_plot_text_width(const struct wm_plot_canvas *canvas, double size,
                          const char *text)
{
    const struct wm_plot_style style = { .size = size };
    PangoRectangle extents;

    set_text(canvas, &style, text);
    pango_layout_get_extents(canvas->text, NULL, &extents);
    return (double)extents.width / PANGO_SCALE;
}

double wm_plot_place(const struct wm_axis *axis, double value, double at_low,
                     double at_high)
{
    return at_low + (value - axis->low) / (axis->high - axis->low) * (at_high - at_low);
}

/* Sharp at any place: in the middle of a pixel. */
static double crisp(double place)
{
    return floor(place) + 0.5;
}

static void rule(const struct wm_plot_canvas *canvas, double x0, double y0, double x1,
                 double y1, uint32_t colour)
{
    wm_plot_colour(canvas, colour, 1);
    cairo_set_line_width(canvas->cairo, 1);
    cairo_move_to(canvas->cairo, crisp(x0), crisp(y0));
    cairo_line_to(canvas->cairo, crisp(x1), crisp(y1));
    cairo_stroke(canvas->cairo);
}

static void mark_time(const struct wm_plot_canvas *canvas, const struct wm_plot_box *box,
                      double x, const char *label)
{
    const struct wm_plot_style style = { .size = AXIS_TEXT,
                                         .colour = wm_plot_ink,
                                         .align = WM_PLOT_CENTRE };

    rule(canvas, x, box->top, x, box->bottom, wm_plot_grid);
    if (label)
        wm_plot_text(canvas, x, box->bottom + 12, &style, label);
}

static void mark_value(const struct wm_plot_canvas *canvas, const struct wm_plot_box *box,
                       enum wm_plot_side side, double y, const char *label)
{
    bool is_left = side == WM_PLOT_AT_LEFT;
    const struct wm_plot_style style = { .size = AXIS_TEXT,
                                         .colour = wm_plot_ink,
                                         .align = is_left ? WM_PLOT_RIGHT : WM_PLOT_LEFT };

    if (is_left)
        rule(canvas, box->left, y, box->right, y, wm_plot_grid);
    wm_plot_text(canvas, is_left ? box->left - 6 : box->right + 6, y, &style, label);
}

void wm_plot_axis(const struct wm_plot_canvas *canvas, const struct wm_plot_box *box,
                  enum wm_plot_side side, const struct wm_axis *axis, const char *unit,
                  const char *label)
{
    bool is_time = side == WM_PLOT_AT_BOTTOM;
    double room = is_time ? (box->right - box->left) / APART_ALONG
                          : fmin((box->bottom - box->top) / APART_DOWN, MOST_DOWN);
    struct wm_plot_style style = { .size = LABEL_TEXT,
                                   .colour = wm_plot_ink,
                                   .align = WM_PLOT_CENTRE };
    struct wm_chart_marks marks;
    char text[128];

    wm_chart_marks_of(axis, unit, room < 2 ? 2 : (size_t)room, &marks);
    for (size_t i = 0; i < marks.count; i++) {
        double at = marks.marks[i].at;
        if (is_time)
            mark_time(canvas, box, wm_plot_place(axis, at, box->left, box->right),
                      label[0] ? marks.marks[i].label : NULL);
        else
            mark_value(canvas, box, side, wm_plot_place(axis, at, box->bottom, box->top),
                       marks.marks[i].label);
    }
    if (!label[0])
        return;
    snprintf(text, sizeof(text), marks.symbol[0] ? "%s (%s)" : "%s", label, marks.symbol);
    if (is_time) {
        wm_plot_text(canvas, (box->left + box->right) / 2, box->bottom + 30, &style, text);
        return;
    }
    style.turn = side == WM_PLOT_AT_LEFT ? -M_PI / 2 : M_PI / 2;
    style.room = box->bottom - box->top + 10;
    while (style.size > LABEL_TEXT_LEAST &&
           wm_plot_text_width(canvas, style.size, text) > style.room)
        style.size--;
    wm_plot_text(canvas, side == WM_PLOT_AT_LEFT ? box->left - 58 : box->right + 56,
                 (box->top + box->bottom) / 2, &style, text);
}

void wm_plot_frame(const struct wm_plot_canvas *canvas, const struct wm_plot_box *box)
{
    wm_plot_colour(canvas, wm_plot_faint, 1);
    cairo_set_line_width(canvas->cairo, 1);
    cairo_rectangle(canvas->cairo, crisp(box->left), crisp(box->top),
                    floor(box->right - box->left), floor(box->bottom - box->top));
    cairo_stroke(canvas->cairo);
}

struct wm_plot_box wm_plot_title(const struct wm_plot_canvas *canvas, const char *title)
{
    const struct wm_plot_style style = { .size = TITLE_TEXT,
                                         .colour = wm_plot_ink,
                                         .align = WM_PLOT_CENTRE,
                                         .is_bold = true,
                                         .room = canvas->width - 32 };
    struct wm_plot_box left = { 0, 12, canvas->width, canvas->height };

    if (title[0]) {
        wm_plot_text(canvas, canvas->width / 2, 20, &style, title);
        left.top = 36;
    }
    return left;
}

void wm_plot_legend(const struct wm_plot_canvas *canvas,
                    const struct wm_plot_request *request, double x, double y)
{
    const struct wm_plot_style style = { .size = LABEL_TEXT, .colour = wm_plot_ink };

    for (size_t i = 0; i < request->input_count && x < canvas->width; i++) {
        const char *name = wm_plot_input_name(&request->inputs[i]);
        wm_plot_colour(canvas, wm_chart_colour(i), 1);
        cairo_rectangle(canvas->cairo, x, y - 5, 14, 10);
        cairo_fill(canvas->cairo);
        wm_plot_text(canvas, x + 20, y, &style, name);
        x += 40 + wm_plot_text_width(canvas, LABEL_TEXT, name);
    }
}
