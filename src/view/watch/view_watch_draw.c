/* SPDX-License-Identifier: Apache-2.0 */
/* view_watch_draw.c - what stands where in the terminal. */
#include "view/watch/view_watch_draw.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/base_clock.h"
#include "view/text/view_text_line.h"

enum { ROWS_LEAST = 10, COLUMNS_LEAST = 40, CHART_ROWS_LEAST = 3, TEXT_MAX = 512 };

static void draw_title(const struct wm_watch_screen *screen,
                       const struct wm_watch_view *view, int columns)
{
    char left[TEXT_MAX], right[64];

    int64_t seconds = view->newest_ns / WM_NS_PER_S;
    snprintf(right, sizeof(right), "%s%" PRId64 ":%02d:%02d ",
             view->is_paused ? "PAUSED  " : "", seconds / 3600, (int)(seconds / 60 % 60),
             (int)(seconds % 60));
    int width = wm_view_width(right);
    snprintf(left, sizeof(left), " %.300s", view->title);
    wm_watch_screen_style(screen, WM_WATCH_REVERSE, 0);
    for (int column = 0; column < columns; column++)
        wm_watch_screen_put(0, column, 1, " ");
    wm_watch_screen_put(0, 0, columns - width - 1, left);
    wm_watch_screen_put(0, columns - width, width, right);
    wm_watch_screen_style(screen, WM_WATCH_PLAIN, 0);
    snprintf(left, sizeof(left), "Energy  %s%s%.300s",
             view->energy[0] ? view->energy : "...",
             view->where[0] ? "   recorded to " : "", view->where);
    wm_watch_screen_put(1, 0, columns, left);
}

static void draw_keys(const struct wm_watch_screen *screen, int row, int columns)
{
    static const char text[] =
        "q quit  space pause  tab panel  +- zoom  \u2190\u2192 choose  "
        "x hide  a all  s sort  h help";

    wm_watch_screen_style(screen, WM_WATCH_PLAIN, WM_WATCH_FAINT);
    wm_watch_screen_put(row, 0, columns, text);
    wm_watch_screen_style(screen, WM_WATCH_PLAIN, 0);
}

static void draw_help(int columns)
{
    static const char *const lines[] = {
        "q         end the view; a process that was there goes on",
        "space     hold the picture; samples are taken on",
        "tab       the next panel: power, utilization, memory, temperature, clocks",
        "+ -       a shorter or a longer time",
        "left, right  choose a line in the legend; x hides it or shows it, a shows all",
        "s         sort the processes by CPU, CPU time, memory, PID",
        "h         back",
        "",
        "est: estimated; sim: simulated; n/a: wattmeter doctor says why",
        "total: the power of the CPUs, their memory and the GPUs, as far as it is known",
    };

    for (int i = 0; i < (int)(sizeof(lines) / sizeof(lines[0])); i++)
        wm_watch_screen_put(2 + i, 2, columns - 2, lines[i]);
}

/* The chart gets what the tables leave, and they a third each at most. */
static void draw_parts(struct wm_watch_screen *screen, struct wm_watch_view *view, int rows)
{
    int room = rows - 5; /* without the title, the energy, the legend, times and keys */
    int devices = (int)wm_watch_device_count(view) + 1;
    int processes = (int)view->processes.count + 1;

    devices = devices > room / 3 ? room / 3 : devices;
    processes = processes > room / 3 ? room / 3 : processes;
    if (room - devices - processes < CHART_ROWS_LEAST)
        processes = 0;
    int chart = room - devices - processes;
    wm_watch_draw_chart(screen, view, 2, chart);
    wm_watch_draw_devices(screen, view, 4 + chart, devices);
    if (processes > 1)
        wm_watch_draw_processes(screen, view, 4 + chart + devices, processes);
}

void wm_watch_draw(struct wm_watch_screen *screen, struct wm_watch_view *view)
{
    int rows, columns;

    wm_watch_screen_clear(screen);
    wm_watch_screen_size(&rows, &columns);
    bool is_drawn = rows >= ROWS_LEAST && columns >= COLUMNS_LEAST && !view->has_help &&
                    view->data.has_sample;
    if (!is_drawn)
        view->chart.is_there = false;
    if (rows < ROWS_LEAST || columns < COLUMNS_LEAST) {
        wm_watch_screen_put(0, 0, columns, "40 x 10 characters are needed");
    } else {
        draw_title(screen, view, columns);
        if (is_drawn)
            draw_parts(screen, view, rows);
        else if (view->has_help)
            draw_help(columns);
        else
            wm_watch_screen_put(3, 2, columns, "waiting for the drivers");
        draw_keys(screen, rows - 1, columns);
    }
    wm_watch_screen_show(screen);
}
