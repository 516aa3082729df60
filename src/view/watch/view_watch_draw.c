/* SPDX-License-Identifier: Apache-2.0 */
/* view_watch_draw.c - what stands where in the terminal. */
#include "view/watch/view_watch_draw.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base_clock.h"
#include "view/text/view_text_line.h"

enum {
    ROWS_LEAST = 10,
    COLUMNS_LEAST = 40,
    CHART_ROWS_LEAST = 3,
    CHART_ROWS_GOOD = 10, /* with legend and times, so that two stand one below the other */
    CHART_COLUMNS_LEAST = 75,
    UNIT_COLUMNS_LEAST = 76,
    POWER_COLUMNS = 7, /* of "1.23 kW", so that two rows are in line */
    TEXT_MAX = 512
};

/* The rows of the title, what is measured and the machine. */
static int head_rows(const struct wm_watch_view *view)
{
    return view->data.target && !view->data.is_of_all ? 3 : 2;
}

/* "machine  SIMULATED  1.01 kW (mean of 1 s)  6.27 kJ ± 0.87 %": what is not measured says
 * so before all that a small terminal has no room for. */
static void draw_energy(const struct wm_watch_view *view, const char *name,
                        const struct wm_watch_meter *meter, int row, int columns)
{
    bool is_last = row + 1 == head_rows(view), has_room = columns >= UNIT_COLUMNS_LEAST;
    const char *at_least = meter->state != WM_REPORT_AT_LEAST ? ""
                           : has_room                         ? "at least "
                                                              : "≥ ";
    struct wm_detail text = { "" };

    wm_line_add(&text, "", "%s", name);
    if (view->told_s > 0) {
        if (meter->origin[0])
            wm_line_add(&text, "  ", "%s", meter->origin);
        if (!isnan(meter->rate))
            wm_line_add(&text, "  ", "%s%*s", at_least, at_least[0] ? 0 : POWER_COLUMNS,
                        wm_watch_text(meter->rate, "W").text);
        if (!isnan(meter->rate) && has_room)
            wm_line_add(&text, " ", "(mean of %.*f s)", meter->seconds < 0.95 ? 1 : 0,
                        meter->seconds);
        wm_line_add(&text, "  ", "%s%s", at_least, meter->text);
        if (has_room && meter->uncertainty[0])
            wm_line_add(&text, " ", "%s", meter->uncertainty);
    }
    if (is_last && view->where[0])
        wm_line_add(&text, "   ", "recorded to %s", view->where);
    wm_watch_screen_put_words(row, 0, columns, text.text);
}

static void draw_title(const struct wm_watch_screen *screen,
                       const struct wm_watch_view *view, int columns)
{
    char left[TEXT_MAX], right[96];

    int64_t seconds = view->newest_ns / WM_NS_PER_S;
    snprintf(right, sizeof(right), "%s%swindow %g s  %" PRId64 ":%02d:%02d ",
             view->is_paused ? "PAUSED  " : "",
             columns < UNIT_COLUMNS_LEAST ? ""
             : view->data.gpu_count > 0   ? "% of one core or GPU  "
                                          : "CPU: % of one core  ",
             (double)view->window_ns / WM_NS_PER_S, seconds / 3600,
             (int)(seconds / 60 % 60), (int)(seconds % 60));
    int width = wm_view_width(right);
    snprintf(left, sizeof(left), " %.300s", view->title);
    wm_watch_screen_style(screen, WM_WATCH_REVERSE, 0);
    for (int column = 0; column < columns; column++)
        wm_watch_screen_put(0, column, 1, " ");
    wm_watch_screen_put(0, 0, columns - width - 1, left);
    wm_watch_screen_put(0, columns - width, width, right);
    wm_watch_screen_style(screen, WM_WATCH_PLAIN, 0);
    if (head_rows(view) > 2)
        draw_energy(view, view->data.target, &view->target, 1, columns);
    draw_energy(view, "machine", &view->machine, head_rows(view) - 1, columns);
}

static void draw_last_row(const struct wm_watch_screen *screen,
                          const struct wm_watch_view *view, int row, int columns)
{
    bool is_said = view->question != WM_WATCH_NO_QUESTION || view->message[0];
    char text[TEXT_MAX];

    wm_watch_last_row(view, columns, text, sizeof(text));
    wm_watch_screen_style(screen, is_said ? WM_WATCH_BOLD : WM_WATCH_PLAIN,
                          is_said ? 0 : WM_WATCH_FAINT);
    wm_watch_screen_put_words(row, 0, columns, text);
    wm_watch_screen_style(screen, WM_WATCH_PLAIN, 0);
}

static struct wm_detail help_text(const struct wm_watch_view *view, const char *text)
{
    struct wm_detail all = { "" };
    const char *panel;

    wm_line_add(&all, "", "%s", text);
    for (size_t i = 0;
         strchr(text, 0)[-1] == ':' && (panel = wm_watch_panel(&view->data, i)); i++)
        wm_line_add(&all, i > 0 ? ", " : " ", "%s", wm_chart_heading(panel));
    return all;
}

/* Texts are wrapped beside their keys. */
static void draw_help(const struct wm_watch_view *view, int top, int rows, int columns)
{
    enum { KEYS_COLUMNS = 9 };
    const struct wm_watch_help_entry *entry;
    int row = top;

    for (size_t i = 0; (entry = wm_watch_help(i)) && row < rows; i++) {
        const struct wm_detail whole = help_text(view, entry->text);
        const char *text = whole.text;
        wm_watch_screen_put(row, 1, KEYS_COLUMNS - 1, entry->keys);
        while (*text && row < rows) {
            size_t length = wm_view_fit_words(text, columns - KEYS_COLUMNS - 1);
            wm_watch_screen_put(row++, KEYS_COLUMNS + 1, (int)length, text);
            text += length + (text[length] == ' ');
        }
    }
}

/* How many charts a screen has room for, beside each other and below each other. */
static size_t charts_across(int columns)
{
    return columns >= 2 * CHART_COLUMNS_LEAST ? 2 : 1;
}

static size_t charts_down(int rows)
{
    return rows >= 2 * CHART_ROWS_GOOD ? 2 : 1;
}

/* The panels from the chosen one on, as many as the place has room for. The last row has
 * fewer of them where they do not fill it. */
static void draw_charts(struct wm_watch_screen *screen, struct wm_watch_view *view, int top,
                        int rows, int columns)
{
    size_t across = charts_across(columns), down = charts_down(rows), panels = 0;

    while (wm_watch_panel(&view->data, panels))
        panels++;
    if (panels == 0)
        return;
    if (panels < across * down)
        across = panels <= down ? 1 : across;
    down = (panels + across - 1) / across < down ? (panels + across - 1) / across : down;
    size_t count = across * down < panels ? across * down : panels;
    for (size_t i = 0; i < count; i++) {
        size_t line = i / across, first = line * across;
        size_t beside = count - first < across ? count - first : across;
        int width = columns / (int)beside, height = rows / (int)down;
        struct wm_watch_place place = { top + (int)line * height, (int)(i - first) * width,
                                        height, width };
        if (i - first + 1 == beside)
            place.columns = columns - place.column;
        if (line + 1 == down)
            place.rows = rows - (int)line * height;
        wm_watch_draw_chart(screen, view, &view->charts[i],
                            wm_watch_panel(&view->data, (view->panel + i) % panels),
                            &place);
    }
    for (size_t i = count; i < WM_WATCH_CHARTS; i++)
        view->charts[i].is_there = false;
}

/* The charts get what the tables leave, and they a third each at most. */
static void draw_parts(struct wm_watch_screen *screen, struct wm_watch_view *view, int rows,
                       int columns)
{
    int head = head_rows(view);
    int room = rows - head - 3; /* without the legend, times and keys */
    int devices = wm_watch_device_rows(view, columns, room / 3);
    int processes = (int)view->processes.count + 1;

    processes = processes > room / 3 ? room / 3 : processes;
    if (processes < 2 || room - devices - processes < CHART_ROWS_LEAST)
        processes = 0; /* no heading alone */
    if (view->hides_charts)
        processes = room - devices + 2;
    int charts = room - devices - processes + 2;
    if (charts > 0)
        draw_charts(screen, view, head, charts, columns);
    for (size_t i = 0; i < WM_WATCH_CHARTS && charts <= 0; i++)
        view->charts[i].is_there = false;
    wm_watch_draw_devices(screen, view, head + charts, devices);
    wm_watch_draw_processes(screen, view, head + charts + devices, processes);
}

void wm_watch_draw(struct wm_watch_screen *screen, struct wm_watch_view *view)
{
    int rows, columns;

    wm_watch_screen_clear(screen);
    wm_watch_screen_size(&rows, &columns);
    bool is_drawn = rows >= ROWS_LEAST && columns >= COLUMNS_LEAST && !view->has_help &&
                    view->data.has_sample;
    for (size_t i = 0; i < WM_WATCH_CHARTS && !is_drawn; i++)
        view->charts[i].is_there = false;
    if (rows < ROWS_LEAST || columns < COLUMNS_LEAST) {
        wm_watch_screen_put(0, 0, columns, "40 x 10 characters are needed");
    } else {
        draw_title(screen, view, columns);
        if (is_drawn)
            draw_parts(screen, view, rows, columns);
        else if (view->has_help)
            draw_help(view, head_rows(view), rows - 1, columns);
        else
            wm_watch_screen_put(4, 2, columns, "waiting for the drivers");
        draw_last_row(screen, view, rows - 1, columns);
    }
    wm_watch_screen_show(screen);
}
