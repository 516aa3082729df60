/* SPDX-License-Identifier: Apache-2.0 */
/* view_plot_canvas.c - text and axes. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base_text.h"
#include "base/text/base_number.h"
#include "view/plot/view_plot.h"
#include "view/plot/view_plot_page.h"

static const struct wm_plot_theme light = { 0xffffff, 0x222222, 0x6b6b6b, 0xe4e4e4 };
static const struct wm_plot_theme dark = { 0x16181d, 0xe8e8e8, 0xa3a3a3, 0x363a42 };

enum {
    UNIT_SIZE = 64,
    AXIS_TEXT = 11,
    LABEL_TEXT = 12,
    TITLE_TEXT = 15,
    LABEL_SIZE = 128,
    LINE_SIZE = 512
};

#define LABEL_TEXT_LEAST 9.0
#define TEXT_LINE 16.0
#define TEXT_MARGIN 16.0
#define TITLE_LINES 1.8 /* two, of which the first is not full */

/* How much longer than its axis a label may be. */
#define LABEL_OVER 10.0

/* In a vector figure, places are told apart to a quarter of a pixel. */
#define STEPS_PER_PIXEL 4.0

/* How far apart marks are at least, in pixels. */
#define APART_DOWN 22.0
#define APART_ALONG 64.0
#define MOST_DOWN 9.0 /* more are no help */

/* XML has no control characters but white space. */
static void write_escaped(const struct wm_plot_canvas *canvas, const char *text)
{
    for (; *text; text++) {
        bool is_control = (unsigned char)*text < ' ' && *text != '\n';
        const char *escape = *text == '&'   ? "&amp;"
                             : *text == '<' ? "&lt;"
                             : *text == '>' ? "&gt;"
                             : *text == '"' ? "&quot;"
                             : is_control   ? "?"
                                            : NULL;
        if (escape)
            fputs(escape, canvas->overlay);
        else
            fputc(*text, canvas->overlay);
    }
}

static void write_attribute(const struct wm_plot_canvas *canvas, const char *name,
                            const char *value)
{
    fprintf(canvas->overlay, " %s=\"", name);
    write_escaped(canvas, value);
    fputc('"', canvas->overlay);
}

/* name="12.5", name="scale(0.5)": to a thousandth; the locale has no say. */
static void write_numbers(const struct wm_plot_canvas *canvas, const char *name,
                          const char *function, const double *values, size_t count)
{
    char number[WM_NUMBER_SIZE];

    fprintf(canvas->overlay, " %s=\"%s", name, function);
    for (size_t i = 0; i < count; i++) {
        wm_number_format(round(values[i] * 1000) / 1000, number);
        fprintf(canvas->overlay, "%s%s", i > 0 ? " " : "", number);
    }
    fprintf(canvas->overlay, "%s\"", function[0] ? ")" : "");
}

/* The text that is set, as an element; `y` is its middle. */
static void write_text(const struct wm_plot_canvas *canvas, double x, double y,
                       const struct wm_plot_style *style, double height)
{
    static const char *const anchors[] = { NULL, "middle", "end" };
    double below =
        (double)pango_layout_get_baseline(canvas->text) / PANGO_SCALE - height / 2;

    fputs("<text", canvas->overlay);
    if (style->turn != 0) {
        const double turn[] = { style->turn * 180 / M_PI, x, y };
        write_numbers(canvas, "transform", "rotate(", turn, 3);
    }
    write_numbers(canvas, "x", "", &x, 1);
    write_numbers(canvas, "y", "", (double[]) { y + below }, 1);
    write_numbers(canvas, "font-size", "", &style->size, 1);
    if (style->is_bold)
        write_attribute(canvas, "font-weight", "bold");
    if (anchors[style->align])
        write_attribute(canvas, "text-anchor", anchors[style->align]);
    fprintf(canvas->overlay, " fill=\"#%06x\">", style->colour);
    write_escaped(canvas, pango_layout_get_text(canvas->text));
    fputs("</text>\n", canvas->overlay);
}

void wm_plot_colour(const struct wm_plot_canvas *canvas, uint32_t colour, double alpha)
{
    cairo_set_source_rgba(canvas->cairo, (colour >> 16) / 255.0,
                          (colour >> 8 & 255) / 255.0, (colour & 255) / 255.0, alpha);
}

void wm_plot_canvas_init(struct wm_plot_canvas *canvas,
                         const struct wm_plot_request *request,
                         const struct wm_plot_page *page, cairo_surface_t *surface)
{
    canvas->width /= page->zoom;
    canvas->height /= page->zoom;
    canvas->scale *= page->zoom;
    canvas->theme = request->is_dark ? &dark : &light;
    canvas->font = page->font;
    canvas->has_legend = !request->without_legend;
    canvas->label_size = LABEL_TEXT;
    canvas->cairo = cairo_create(surface);
    cairo_scale(canvas->cairo, canvas->scale, canvas->scale);
    canvas->text = pango_cairo_create_layout(canvas->cairo);
    wm_plot_colour(canvas, canvas->theme->paper, 1);
    cairo_paint(canvas->cairo);
    if (canvas->overlay) {
        fputs("<g", canvas->overlay);
        write_attribute(canvas, "font-family", page->font);
        write_numbers(canvas, "transform", "scale(", (double[]) { canvas->scale }, 1);
        fputs(">\n", canvas->overlay);
    }
}

cairo_status_t wm_plot_canvas_release(struct wm_plot_canvas *canvas)
{
    cairo_status_t status = cairo_status(canvas->cairo);

    if (canvas->overlay)
        fputs("</g>\n", canvas->overlay);
    g_object_unref(canvas->text);
    cairo_destroy(canvas->cairo);
    return status;
}

static double set_line(const struct wm_plot_canvas *canvas, const char *line)
{
    PangoRectangle extents;

    pango_layout_set_text(canvas->text, line, -1);
    pango_layout_get_extents(canvas->text, NULL, &extents);
    return (double)extents.width / PANGO_SCALE;
}

static bool is_inside_character(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Cuts a line in the middle until it fits, as names differ in their ends. */
static void cut(const struct wm_plot_canvas *canvas, double room,
                const char line[LINE_SIZE])
{
    size_t length = strlen(line), head = length / 2;
    char text[LINE_SIZE + sizeof("…")];

    while (is_inside_character(line[head]))
        head++;
    size_t tail = head;
    do {
        if (head > length - tail)
            while (is_inside_character(line[--head]))
                ;
        else if (tail < length)
            while (is_inside_character(line[++tail]))
                ;
        snprintf(text, sizeof(text), "%.*s…%s", (int)head, line, line + tail);
    } while (set_line(canvas, text) > room && (head > 0 || tail < length));
}

/* Names come from files; pango takes valid UTF-8 alone. */
static void set_text(const struct wm_plot_canvas *canvas, const struct wm_plot_style *style,
                     const char *text)
{
    PangoFontDescription *font = pango_font_description_new();
    char line[LINE_SIZE];

    wm_text_line(line, sizeof(line), text);
    wm_text_clean(line);
    pango_font_description_set_family_static(font, canvas->font);
    pango_font_description_set_absolute_size(font, style->size * PANGO_SCALE);
    pango_font_description_set_weight(font, style->is_bold ? PANGO_WEIGHT_BOLD
                                                           : PANGO_WEIGHT_NORMAL);
    pango_layout_set_font_description(canvas->text, font);
    pango_font_description_free(font);
    if (set_line(canvas, line) > style->room && style->room > 0)
        cut(canvas, style->room, line);
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
        wm_plot_colour(canvas, canvas->theme->paper, 0.85);
        cairo_rectangle(canvas->cairo, -part * width - 2, -height / 2, width + 4, height);
        cairo_fill(canvas->cairo);
    }
    if (!canvas->overlay) {
        wm_plot_colour(canvas, style->colour, 1);
        cairo_move_to(canvas->cairo, -part * width - (double)extents.x / PANGO_SCALE,
                      -height / 2);
        pango_cairo_show_layout(canvas->cairo, canvas->text);
    }
    cairo_restore(canvas->cairo);
    if (canvas->overlay)
        write_text(canvas, x, y, style, height);
}

void wm_plot_hover(const struct wm_plot_canvas *canvas, const struct wm_plot_box *box,
                   const char *title)
{
    char text[1024];

    if (!canvas->overlay)
        return;
    wm_text_utf8(text, sizeof(text), title, strlen(title));
    fputs("<rect", canvas->overlay);
    write_numbers(canvas, "x", "", &box->left, 1);
    write_numbers(canvas, "y", "", &box->top, 1);
    write_numbers(canvas, "width", "", (double[]) { box->right - box->left }, 1);
    write_numbers(canvas, "height", "", (double[]) { box->bottom - box->top }, 1);
    fputs(" fill-opacity=\"0\"><title>", canvas->overlay);
    write_escaped(canvas, text);
    fputs("</title></rect>\n", canvas->overlay);
}

static double width_of(const struct wm_plot_canvas *canvas,
                       const struct wm_plot_style *style, const char *text)
{
    struct wm_plot_style whole = *style;
    PangoRectangle extents;

    whole.room = 0;
    set_text(canvas, &whole, text);
    pango_layout_get_extents(canvas->text, NULL, &extents);
    return (double)extents.width / PANGO_SCALE;
}

double wm_plot_text_width(const struct wm_plot_canvas *canvas, double size,
                          const char *text)
{
    return width_of(canvas, &(struct wm_plot_style) { .size = size }, text);
}

double wm_plot_place(const struct wm_axis *axis, double value, double at_low,
                     double at_high)
{
    return at_low + (value - axis->low) / (axis->high - axis->low) * (at_high - at_low);
}

double wm_plot_short(const struct wm_plot_canvas *canvas, double place)
{
    return canvas->is_vector ? round(place * STEPS_PER_PIXEL) / STEPS_PER_PIXEL : place;
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
                                         .colour = canvas->theme->ink,
                                         .align = WM_PLOT_CENTRE };

    rule(canvas, x, box->top, x, box->bottom, canvas->theme->grid);
    if (label)
        wm_plot_text(canvas, x, box->bottom + 12, &style, label);
}

static void mark_value(const struct wm_plot_canvas *canvas, const struct wm_plot_box *box,
                       enum wm_plot_side side, double y, const char *label)
{
    bool is_left = side == WM_PLOT_AT_LEFT;
    const struct wm_plot_style style = { .size = AXIS_TEXT,
                                         .colour = canvas->theme->ink,
                                         .align = is_left ? WM_PLOT_RIGHT : WM_PLOT_LEFT };

    if (is_left)
        rule(canvas, box->left, y, box->right, y, canvas->theme->grid);
    wm_plot_text(canvas, is_left ? box->left - 6 : box->right + 6, y, &style, label);
}

/* "Power (W)", "Energy (simulated, J)" */
static void write_label(char *text, size_t size, const char *label, const char *unit)
{
    size_t length = strlen(label);

    if (!unit[0])
        snprintf(text, size, "%s", label);
    else if (length > 0 && label[length - 1] == ')')
        snprintf(text, size, "%.*s, %s)", (int)length - 1, label, unit);
    else
        snprintf(text, size, "%s (%s)", label, unit);
}

/* The label and its unit, of which the unit stays whole where there is no room for both. */
static void write_fitting(const struct wm_plot_canvas *canvas, char *text, size_t size,
                          const char *label, const char *unit, double room)
{
    char alone[LABEL_SIZE];

    write_label(text, size, label, unit);
    if (wm_plot_text_width(canvas, canvas->label_size, text) <= room)
        return;
    write_label(alone, sizeof(alone), "", unit);
    const struct wm_plot_style style = {
        .size = canvas->label_size,
        .room = fmax(room - wm_plot_text_width(canvas, canvas->label_size, alone), 1),
    };
    set_text(canvas, &style, label);
    write_label(text, size, pango_layout_get_text(canvas->text), unit);
}

static void write_upright(const struct wm_plot_canvas *canvas,
                          const struct wm_plot_box *box, enum wm_plot_side side,
                          const char *label, const char *unit)
{
    bool is_left = side == WM_PLOT_AT_LEFT, is_split = canvas->splits_labels && unit[0];
    const struct wm_plot_style style = { .size = canvas->label_size,
                                         .colour = canvas->theme->ink,
                                         .align = WM_PLOT_CENTRE,
                                         .turn = is_left ? -M_PI / 2 : M_PI / 2 };
    double x = is_left ? box->left - 58 : box->right + 56;
    double y = (box->top + box->bottom) / 2, apart = is_split ? 7 : 0;
    char text[LABEL_SIZE];

    write_fitting(canvas, text, sizeof(text), label, is_split ? "" : unit,
                  box->bottom - box->top + LABEL_OVER);
    wm_plot_text(canvas, is_left ? x - apart : x + apart, y, &style, text);
    if (!is_split)
        return;
    snprintf(text, sizeof(text), "(%s)", unit);
    wm_plot_text(canvas, is_left ? x + apart : x - apart, y, &style, text);
}

/* Two marks at least, since one alone does not give the scale: where more than there is
 * room for would be needed, the lowest and the highest of them. */
static void find_marks(const struct wm_axis *axis, const char *unit, double room,
                       struct wm_chart_marks *ret_marks)
{
    size_t most = room < 2 ? 2 : (size_t)room, asked = most;

    wm_chart_marks_of(axis, unit, asked, ret_marks);
    while (ret_marks->count < 2 && asked < WM_CHART_MARKS)
        wm_chart_marks_of(axis, unit, ++asked, ret_marks);
    if (ret_marks->count > most + 1) {
        ret_marks->marks[1] = ret_marks->marks[ret_marks->count - 1];
        ret_marks->count = 2;
    }
}

void wm_plot_axis(const struct wm_plot_canvas *canvas, const struct wm_plot_box *box,
                  enum wm_plot_side side, const struct wm_axis *axis, const char *unit,
                  const char *label)
{
    wm_plot_axis_of(canvas, box, side, axis, unit, "", label);
}

void wm_plot_axis_of(const struct wm_plot_canvas *canvas, const struct wm_plot_box *box,
                     enum wm_plot_side side, const struct wm_axis *axis, const char *unit,
                     const char *of, const char *label)
{
    bool is_time = side == WM_PLOT_AT_BOTTOM;
    double room = is_time ? (box->right - box->left) / APART_ALONG
                          : fmin((box->bottom - box->top) / APART_DOWN, MOST_DOWN);
    const struct wm_plot_style style = { .size = canvas->label_size,
                                         .colour = canvas->theme->ink,
                                         .align = WM_PLOT_CENTRE };
    double middle = (box->left + box->right) / 2;
    struct wm_chart_marks marks;
    char whole[UNIT_SIZE], text[LABEL_SIZE];

    find_marks(axis, unit, room, &marks);
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
    snprintf(whole, sizeof(whole), "%s%s", marks.symbol, of);
    if (!is_time) {
        write_upright(canvas, box, side, label, whole);
        return;
    }
    write_fitting(canvas, text, sizeof(text), label, whole,
                  2 * fmin(middle, canvas->width - middle));
    wm_plot_text(canvas, middle, box->bottom + 30, &style, text);
}

static bool label_fits(const struct wm_plot_canvas *canvas, const struct wm_plot_box *box,
                       const struct wm_axis *axis, const char *unit, const char *of,
                       const char *label)
{
    double room = box->bottom - box->top + LABEL_OVER;
    struct wm_chart_marks marks;
    char whole[UNIT_SIZE], text[LABEL_SIZE];

    wm_chart_marks_of(axis, unit, 2, &marks);
    snprintf(whole, sizeof(whole), "%s%s", marks.symbol, of);
    write_label(text, sizeof(text), label, canvas->splits_labels ? "" : whole);
    if (wm_plot_text_width(canvas, canvas->label_size, text) > room)
        return false;
    write_label(text, sizeof(text), "", whole);
    return wm_plot_text_width(canvas, canvas->label_size, text) <= room;
}

void wm_plot_fit_label(struct wm_plot_canvas *canvas, const struct wm_plot_box *box,
                       const struct wm_axis *axis, const char *unit, const char *of,
                       const char *label)
{
    while (canvas->label_size > LABEL_TEXT_LEAST &&
           !label_fits(canvas, box, axis, unit, of, label)) {
        canvas->label_size -= canvas->splits_labels ? 0.5 : 0;
        canvas->splits_labels = true;
    }
}

void wm_plot_frame(const struct wm_plot_canvas *canvas, const struct wm_plot_box *box)
{
    wm_plot_colour(canvas, canvas->theme->faint, 1);
    cairo_set_line_width(canvas->cairo, 1);
    cairo_rectangle(canvas->cairo, crisp(box->left), crisp(box->top),
                    floor(box->right - box->left), floor(box->bottom - box->top));
    cairo_stroke(canvas->cairo);
}

static void put_line(const struct wm_plot_canvas *canvas, struct wm_plot_box *box,
                     const struct wm_plot_style *style, const char *line)
{
    wm_plot_text(canvas, canvas->width / 2, box->top + TEXT_LINE / 2, style, line);
    box->top += TEXT_LINE;
}

/* In as many lines as it takes. */
static void put_lines(const struct wm_plot_canvas *canvas, struct wm_plot_box *box,
                      const struct wm_plot_style *style, const char *text)
{
    char line[LINE_SIZE] = "", longer[LINE_SIZE];

    while (*text) {
        size_t word = strcspn(text, " ");
        snprintf(longer, sizeof(longer), "%s%s%.*s", line, line[0] ? " " : "", (int)word,
                 text);
        if (line[0] && width_of(canvas, style, longer) > style->room) {
            put_line(canvas, box, style, line);
            line[0] = '\0';
            continue;
        }
        memcpy(line, longer, sizeof(line));
        text += word + (text[word] == ' ');
    }
    if (line[0])
        put_line(canvas, box, style, line);
}

struct wm_plot_box wm_plot_title(const struct wm_plot_canvas *canvas, const char *title)
{
    const double room = canvas->width - 2 * TEXT_MARGIN;
    struct wm_plot_style style = { .size = TITLE_TEXT,
                                   .colour = canvas->theme->ink,
                                   .align = WM_PLOT_CENTRE,
                                   .is_bold = true };
    struct wm_plot_box left = { 0, 12, canvas->width, canvas->height };
    char text[LINE_SIZE];

    if (!title[0])
        return left;
    if (width_of(canvas, &style, title) > room)
        style.size = LABEL_TEXT;
    style.room = TITLE_LINES * room;
    set_text(canvas, &style, title);
    snprintf(text, sizeof(text), "%s", pango_layout_get_text(canvas->text));
    style.room = room;
    put_lines(canvas, &left, &style, text);
    left.top += WM_PLOT_TITLE_HEIGHT - 12 - TEXT_LINE;
    return left;
}

struct wm_plot_box wm_plot_note(const struct wm_plot_canvas *canvas,
                                const struct wm_plot_box *box, const char *text)
{
    const struct wm_plot_style style = { .size = AXIS_TEXT,
                                         .colour = canvas->theme->faint,
                                         .align = WM_PLOT_CENTRE,
                                         .room = canvas->width - 2 * TEXT_MARGIN };
    struct wm_plot_box left = *box;

    put_lines(canvas, &left, &style, text);
    return left;
}
