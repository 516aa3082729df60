/* SPDX-License-Identifier: Apache-2.0 */
/* view_watch_chart.c - a panel over the last seconds in the terminal. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "view/text/view_text_line.h"
#include "view/watch/view_watch_draw.h"

enum { LABELS_WIDTH = 8, TEXT_MAX = 128 };

struct wm_quantity wm_watch_text(double value, const char *unit)
{
    struct wm_quantity text = { "n/a" };

    if (isnan(value))
        return text;
    if (strcmp(unit, "ratio") == 0)
        return wm_view_percent(value);
    if (strcmp(unit, "B") == 0)
        return wm_view_bytes(value, NULL);
    if (strcmp(unit, "celsius") == 0) {
        snprintf(text.text, sizeof(text.text), "%.40s °C", wm_view_fixed(value, 0).text);
        return text;
    }
    return wm_view_prefixed(value, unit);
}

struct wm_watch_series *wm_watch_next(const struct wm_watch_view *view, size_t *at)
{
    const char *panel = wm_watch_panel(view->panel);

    while (*at < view->data.count) {
        struct wm_watch_series *series = &view->data.series[(*at)++];
        if (wm_watch_is_in(&view->data, series, panel))
            return series;
    }
    return NULL;
}

static const char *origin_text(const struct wm_watch_series *series)
{
    enum wm_origin origin = series->channel ? series->channel->origin : WM_MEASURED;

    return origin == WM_ESTIMATED ? " est" : origin == WM_SIMULATED ? " sim" : "";
}

/* The sum has the terminal's own colour. */
static int ink_of(const struct wm_watch_series *series)
{
    return series->channel ? (int)(series->colour % WM_WATCH_INKS) + 1 : 0;
}

/* How wide the entry of a series in the legend is, with its text. */
static int legend_entry(const struct wm_watch_series *series, char *text, size_t size)
{
    double now = series->state == WM_READING_OK ? series->now : NAN;

    snprintf(text, size, "%s %.24s %s%s", series->is_hidden ? "○" : "●", series->label,
             wm_watch_text(now, series->feed.unit).text, origin_text(series));
    return wm_view_width(text) + 1;
}

/* From the chosen one on, where not all up to it fit. */
static size_t first_in_legend(const struct wm_watch_view *view, int width)
{
    const struct wm_watch_series *series;
    char text[TEXT_MAX];
    size_t at = 0, index = 0;

    while ((series = wm_watch_next(view, &at)) && index++ <= view->selected)
        width -= legend_entry(series, text, sizeof(text));
    return width >= 0 ? 0 : view->selected;
}

static void draw_legend(const struct wm_watch_screen *screen,
                        const struct wm_watch_view *view, int row, int columns,
                        const char *symbol)
{
    const char *panel = wm_watch_panel(view->panel);
    const struct wm_watch_series *series;
    char text[TEXT_MAX];
    size_t at = 0;

    snprintf(text, sizeof(text), "%c%s%s%s%s", panel[0] - 'a' + 'A', panel + 1,
             symbol[0] ? " (" : "", symbol, symbol[0] ? ")" : "");
    wm_watch_screen_style(screen, WM_WATCH_BOLD, 0);
    wm_watch_screen_put(row, 0, columns, text);
    int column = wm_view_width(text) + 2;
    size_t first = first_in_legend(view, columns - column);
    for (size_t i = 0; (series = wm_watch_next(view, &at)); i++) {
        int width = legend_entry(series, text, sizeof(text));
        if (i < first)
            continue;
        if (column + width - 1 > columns) {
            wm_watch_screen_style(screen, WM_WATCH_PLAIN, 0);
            wm_watch_screen_put(row, columns - 1, 1, "…");
            break;
        }
        wm_watch_screen_style(screen,
                              i == view->selected ? WM_WATCH_CHOSEN : WM_WATCH_PLAIN,
                              series->is_hidden ? WM_WATCH_FAINT : ink_of(series));
        wm_watch_screen_put(row, column, width, text);
        column += width;
    }
    wm_watch_screen_style(screen, WM_WATCH_PLAIN, 0);
}

void wm_watch_chart_release(struct wm_watch_chart *chart)
{
    wm_watch_canvas_release(&chart->canvas);
    free(chart->line);
    *chart = (struct wm_watch_chart) { 0 };
}

/* An empty canvas of that size. */
static bool fit_canvas(struct wm_watch_chart *chart, size_t columns, size_t rows)
{
    if (chart->canvas.columns == columns && chart->canvas.rows == rows) {
        wm_watch_canvas_clear(&chart->canvas);
        return true;
    }
    wm_watch_canvas_release(&chart->canvas);
    free(chart->line);
    chart->line = calloc(columns * 2, sizeof(*chart->line));
    return chart->line &&
           wm_watch_canvas_init(&chart->canvas, columns, rows, NULL) == WM_OK;
}

static void put_cells(const struct wm_watch_screen *screen,
                      const struct wm_watch_canvas *canvas, int top)
{
    for (size_t i = 0; i < canvas->columns * canvas->rows; i++) {
        if (canvas->dots[i])
            wm_watch_screen_put_braille(screen, top + (int)(i / canvas->columns),
                                        LABELS_WIDTH + (int)(i % canvas->columns),
                                        canvas->dots[i], canvas->inks[i] - 1);
    }
}

static void put_label(int row, const char *text)
{
    int width = (int)strlen(text);

    wm_watch_screen_put(row, LABELS_WIDTH - 2 > width ? LABELS_WIDTH - 2 - width : 0,
                        LABELS_WIDTH - 2, text);
}

static void put_value_marks(const struct wm_watch_chart *chart,
                            const struct wm_chart_marks *marks, int top)
{
    const struct wm_axis *values = &chart->values;
    int rows = (int)chart->canvas.rows;

    for (int row = 0; row < rows; row++)
        wm_watch_screen_put(top + row, LABELS_WIDTH - 1, 1, "│");
    for (size_t i = 0; i < marks->count; i++) {
        double part = (values->high - marks->marks[i].at) / (values->high - values->low);
        int row = top + (int)fmin(part * rows, rows - 1);
        put_label(row, marks->marks[i].label);
        wm_watch_screen_put(row, LABELS_WIDTH - 1, 1, "┤");
    }
}

static void put_time_marks(const struct wm_watch_chart *chart, int row)
{
    const struct wm_axis *time = &chart->time;
    size_t columns = chart->canvas.columns;
    struct wm_chart_marks marks;

    wm_chart_marks_of(time, "s", columns / 12, &marks);
    for (size_t i = 0; i < marks.count; i++) {
        double part = (marks.marks[i].at - time->low) / (time->high - time->low);
        size_t column = (size_t)(part * (double)columns);
        if (column + strlen(marks.marks[i].label) <= columns)
            wm_watch_screen_put(row, LABELS_WIDTH + (int)column, LABELS_WIDTH,
                                marks.marks[i].label);
    }
    put_label(row, marks.symbol);
}

/* By how many cells the chart has moved since `before`, if it has but moved. */
static int cells_moved(const struct wm_watch_chart *before,
                       const struct wm_watch_chart *now)
{
    double columns = (double)now->canvas.columns;
    double length = now->time.high - now->time.low, cell = length / columns;
    double moved = (now->time.low - before->time.low) / cell;

    if (!before->is_there || before->panel != now->panel ||
        before->canvas.columns != now->canvas.columns ||
        before->canvas.rows != now->canvas.rows || before->values.low != now->values.low ||
        before->values.high != now->values.high ||
        fabs(before->time.high - before->time.low - length) > cell / 100 ||
        moved > columns / 2)
        return 0;
    return moved > 0.5 ? (int)lround(moved) : 0;
}

static void draw_lines(struct wm_watch_chart *chart, const struct wm_watch_view *view)
{
    const struct wm_watch_series *series;

    for (size_t at = 0; (series = wm_watch_next(view, &at));) {
        if (series->is_hidden)
            continue;
        wm_chart_line_show(&series->line, (int64_t)(chart->time.low * 1e9),
                           (int64_t)(chart->time.high * 1e9), chart->line,
                           chart->canvas.columns * 2);
        wm_watch_canvas_draw(&chart->canvas, chart->line, &chart->values,
                             (uint8_t)(ink_of(series) + 1));
    }
}

void wm_watch_draw_chart(struct wm_watch_screen *screen, struct wm_watch_view *view,
                         int top, int rows)
{
    struct wm_watch_chart *chart = &view->chart, before = *chart;
    const char *panel = wm_watch_panel(view->panel);
    struct wm_chart_marks marks = { .symbol = "" };
    int lines, columns;
    size_t at = 0;

    wm_watch_screen_size(&lines, &columns);
    size_t cells = (size_t)(columns - LABELS_WIDTH);
    const struct wm_watch_series *first = wm_watch_next(view, &at);
    chart->panel = view->panel;
    chart->time = wm_watch_time(view->newest_ns, view->window_ns, cells);
    chart->is_there =
        first && wm_watch_values(&view->data, panel, &chart->time, &chart->values);
    if (chart->is_there)
        wm_chart_marks_of(&chart->values, first->feed.unit, (size_t)rows / 3 + 2, &marks);
    draw_legend(screen, view, top, columns, marks.symbol);
    if (!chart->is_there || !fit_canvas(chart, cells, (size_t)rows)) {
        chart->is_there = false;
        wm_watch_screen_put(top + 1 + rows / 2, LABELS_WIDTH, columns, "no value to draw");
        return;
    }
    draw_lines(chart, view);
    put_value_marks(chart, &marks, top + 1);
    put_cells(screen, &chart->canvas, top + 1);
    put_time_marks(chart, top + 1 + rows);
    wm_watch_screen_shift(screen, top + 1, rows + 1, LABELS_WIDTH,
                          cells_moved(&before, chart));
}
