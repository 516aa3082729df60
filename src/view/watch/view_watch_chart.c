/* SPDX-License-Identifier: Apache-2.0 */
/* view_watch_chart.c - a panel over the last seconds in the terminal. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "view/text/view_text_line.h"
#include "view/watch/view_watch_draw.h"

/* REST_WIDTH: of "+99 more, highest 1.23 kW", FEW_WIDTH of "+9". More lines of GPUs than
 * GPU_LINES_MOST are drawn as their mean and their range. */
enum {
    LABELS_WIDTH = 8,
    TEXT_MAX = 128,
    REST_WIDTH = 26,
    FEW_WIDTH = 3,
    GPU_LINES_MOST = 4
};

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

/* The sum has the terminal's own colour. */
static int ink_of(const struct wm_watch_series *series)
{
    return series->channel ? (int)(series->colour % WM_WATCH_INKS) + 1 : 0;
}

static bool is_of_gpu(const struct wm_watch_series *series)
{
    return series->channel && series->channel->device_kind == WM_DEVICE_GPU;
}

static double now_of(const struct wm_watch_series *series)
{
    return series->state == WM_READING_OK ? series->now : NAN;
}

/* How wide the entry of a series in the legend is, with its text. */
static int legend_entry(const struct wm_watch_series *series, char *text, size_t size)
{
    snprintf(text, size, "%s %.24s %s%s", series->is_hidden ? "○" : "●", series->label,
             wm_watch_text(now_of(series), series->feed.unit).text,
             wm_watch_origin(series));
    return wm_view_width(text) + 1;
}

static bool is_same_gpu(const struct wm_watch_series *a, const struct wm_watch_series *b)
{
    return is_of_gpu(a) && is_of_gpu(b) && a->gpu == b->gpu;
}

/* Entries [first..end) of a panel's legend are shown, the rest in one. */
struct legend {
    const struct wm_watch_data *data;
    const char *panel;
    const struct wm_watch_series *chosen; /* in the first chart; NULL: none */
    bool is_first, is_folded;
    size_t first, end, count;
};

/* Whether a series is drawn as a part of its GPUs alone. */
static bool is_folded(const struct legend *legend, const struct wm_watch_series *series)
{
    return legend->is_folded && is_of_gpu(series) &&
           !(legend->chosen && is_same_gpu(series, legend->chosen));
}

/* The series that have an entry. */
static const struct wm_watch_series *next_entry(const struct legend *legend, size_t *at)
{
    const struct wm_watch_series *series;

    while ((series = wm_watch_next(legend->data, legend->panel, at)) &&
           is_folded(legend, series))
        ;
    return series;
}

static struct legend legend_of(const struct wm_watch_view *view,
                               const struct wm_watch_chart *chart)
{
    struct legend legend = { .data = &view->data,
                             .panel = chart->panel,
                             .chosen = wm_watch_entry(view, view->selected),
                             .is_first = chart == view->charts };
    const struct wm_watch_series *series;
    size_t at = 0, gpus = 0;

    while ((series = wm_watch_next(&view->data, chart->panel, &at)))
        gpus += is_of_gpu(series);
    legend.is_folded = gpus > GPU_LINES_MOST;
    return legend;
}

/* How many entries fit from `first` on; counts all. */
static size_t entries_that_fit(struct legend *legend, size_t first, int width)
{
    const struct wm_watch_series *series;
    char text[TEXT_MAX];
    size_t at = 0, fitting = 0;

    legend->count = 0;
    while ((series = next_entry(legend, &at))) {
        if (legend->count++ < first || width < 0)
            continue;
        width -= legend_entry(series, text, sizeof(text));
        fitting += width >= -1; /* no blank follows the last */
    }
    return fitting;
}

/* From the chosen one on, where not all up to it fit. */
static void fit_legend(struct legend *legend, int width)
{
    const struct wm_watch_series *series;
    size_t chosen = 0, at = 0;

    legend->end = entries_that_fit(legend, 0, width);
    if (legend->end == legend->count)
        return;
    int rest = legend->is_folded ? FEW_WIDTH : REST_WIDTH;
    legend->end = entries_that_fit(legend, 0, width - rest);
    while ((series = next_entry(legend, &at)) && series != legend->chosen)
        chosen++;
    if (!legend->is_first || chosen < legend->end)
        return;
    legend->first = chosen;
    legend->end = legend->first + entries_that_fit(legend, legend->first, width - rest);
}

static void put_rest(const struct legend *legend, int row, int column, int width)
{
    size_t more = legend->count - (legend->end - legend->first), at = 0;
    const struct wm_watch_series *series;
    const char *unit = "";
    double highest = NAN;
    char text[TEXT_MAX];

    if (more == 0)
        return;
    for (size_t i = 0; (series = next_entry(legend, &at)); i++) {
        unit = series->feed.unit;
        if (i < legend->first || i >= legend->end)
            highest = fmax(highest, now_of(series)); /* which ignores NAN */
    }
    if (width < REST_WIDTH)
        snprintf(text, sizeof(text), "+%zu", more);
    else
        snprintf(text, sizeof(text), "+%zu more, highest %.15s", more,
                 wm_watch_text(highest, unit).text);
    wm_watch_screen_put(row, column, width, text);
}

/* "8 GPUs: mean 118 W, 100 W to 135 W" now, without those that are hidden. */
static void write_folded(const struct legend *legend, char *text, size_t size)
{
    struct wm_chart_fold fold = { 0 };
    const struct wm_watch_series *series;
    const char *unit = "", *origin = "";
    size_t at = 0;

    while ((series = wm_watch_next(legend->data, legend->panel, &at))) {
        unit = series->feed.unit;
        origin = is_of_gpu(series) ? wm_watch_origin(series) : origin;
        if (is_of_gpu(series) && !series->is_hidden && series->state == WM_READING_OK)
            wm_chart_fold_value(&fold, series->now);
    }
    if (fold.count == 0)
        fold.low = fold.high = NAN;
    double mean = wm_chart_fold_mean(&fold); /* NAN of none */
    snprintf(text, size, "● %zu GPUs: mean %.15s, %.15s to %.15s%s", fold.count,
             wm_watch_text(mean, unit).text, wm_watch_text(fold.low, unit).text,
             wm_watch_text(fold.high, unit).text, origin);
}

/* "Power (kW)", "CPU use (% of one core)" */
static void panel_title(const char *panel, const char *symbol, char *text, size_t size)
{
    bool is_cpu = strcmp(panel, "cpu_use") == 0;

    snprintf(text, size, symbol[0] ? "%s (%s%s)" : "%s", wm_chart_heading(panel), symbol,
             is_cpu ? " of one core" : "");
}

static void draw_legend(const struct wm_watch_screen *screen, struct legend *legend,
                        const struct wm_watch_chart *chart, const char *symbol)
{
    int row = chart->place.row, end = chart->place.column + chart->place.columns;
    const struct wm_watch_series *series;
    char text[TEXT_MAX];
    size_t at = 0;

    panel_title(chart->panel, symbol, text, sizeof(text));
    wm_watch_screen_style(screen, WM_WATCH_BOLD, 0);
    wm_watch_screen_put(row, chart->place.column, chart->place.columns, text);
    int column = chart->place.column + wm_view_width(text) + 2;
    wm_watch_screen_style(screen, WM_WATCH_PLAIN, 0);
    if (legend->is_folded) {
        write_folded(legend, text, sizeof(text));
        wm_watch_screen_put(row, column, end - column, text);
        column += wm_view_width(text) + 1;
    }
    fit_legend(legend, end - column);
    for (size_t i = 0; (series = next_entry(legend, &at)); i++) {
        bool is_chosen = legend->is_first && series == legend->chosen;
        if (i < legend->first || i >= legend->end)
            continue;
        int width = legend_entry(series, text, sizeof(text));
        wm_watch_screen_style(screen, is_chosen ? WM_WATCH_CHOSEN : WM_WATCH_PLAIN,
                              series->is_hidden ? WM_WATCH_FAINT : ink_of(series));
        wm_watch_screen_put(row, column, width, text);
        column += width;
    }
    wm_watch_screen_style(screen, WM_WATCH_PLAIN, 0);
    put_rest(legend, row, column, end - column);
}

void wm_watch_chart_release(struct wm_watch_chart *chart)
{
    wm_watch_canvas_release(&chart->canvas);
    free(chart->line);
    free(chart->folds);
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
    free(chart->folds);
    chart->line = calloc(columns * 2, sizeof(*chart->line));
    chart->folds = calloc(columns * 2, sizeof(*chart->folds));
    return chart->line && chart->folds &&
           wm_watch_canvas_init(&chart->canvas, columns, rows, NULL) == WM_OK;
}

/* The column of the screen in which the canvas begins. */
static int left_of(const struct wm_watch_chart *chart)
{
    return chart->place.column + LABELS_WIDTH;
}

static void put_cells(const struct wm_watch_screen *screen,
                      const struct wm_watch_chart *chart)
{
    const struct wm_watch_canvas *canvas = &chart->canvas;

    for (size_t i = 0; i < canvas->columns * canvas->rows; i++) {
        if (canvas->dots[i])
            wm_watch_screen_put_braille(screen,
                                        chart->place.row + 1 + (int)(i / canvas->columns),
                                        left_of(chart) + (int)(i % canvas->columns),
                                        canvas->dots[i], canvas->inks[i] - 1);
    }
}

static void put_label(const struct wm_watch_chart *chart, int row, const char *text)
{
    int width = (int)strlen(text), room = LABELS_WIDTH - 2;

    wm_watch_screen_put(row, chart->place.column + (room > width ? room - width : 0), room,
                        text);
}

static void put_value_marks(const struct wm_watch_chart *chart,
                            const struct wm_chart_marks *marks)
{
    const struct wm_axis *values = &chart->values;
    int rows = (int)chart->canvas.rows, top = chart->place.row + 1;

    for (int row = 0; row < rows; row++)
        wm_watch_screen_put(top + row, left_of(chart) - 1, 1, "│");
    for (size_t i = 0; i < marks->count; i++) {
        double part = (values->high - marks->marks[i].at) / (values->high - values->low);
        int row = top + (int)fmin(part * rows, rows - 1);
        put_label(chart, row, marks->marks[i].label);
        wm_watch_screen_put(row, left_of(chart) - 1, 1, "┤");
    }
}

static void put_time_marks(const struct wm_watch_chart *chart)
{
    const struct wm_axis *time = &chart->time;
    size_t columns = chart->canvas.columns;
    int row = chart->place.row + chart->place.rows - 1;
    struct wm_chart_marks marks;

    wm_chart_marks_of(time, "s", columns / 12, &marks);
    for (size_t i = 0; i < marks.count; i++) {
        double part = (marks.marks[i].at - time->low) / (time->high - time->low);
        size_t column = (size_t)(part * (double)columns);
        if (column + strlen(marks.marks[i].label) <= columns)
            wm_watch_screen_put(row, left_of(chart) + (int)column, LABELS_WIDTH,
                                marks.marks[i].label);
    }
    put_label(chart, row, marks.symbol);
}

static bool is_same_place(const struct wm_watch_place *a, const struct wm_watch_place *b)
{
    return a->row == b->row && a->column == b->column && a->rows == b->rows &&
           a->columns == b->columns;
}

/* By how many cells the chart has moved since `before`, if it has but moved. */
static int cells_moved(const struct wm_watch_chart *before,
                       const struct wm_watch_chart *now)
{
    double columns = (double)now->canvas.columns;
    double length = now->time.high - now->time.low, cell = length / columns;
    double moved = (now->time.low - before->time.low) / cell;

    if (!before->is_there || before->panel != now->panel ||
        !is_same_place(&before->place, &now->place) ||
        before->values.low != now->values.low || before->values.high != now->values.high ||
        fabs(before->time.high - before->time.low - length) > cell / 100 ||
        moved > columns / 2)
        return 0;
    return moved > 0.5 ? (int)lround(moved) : 0;
}

static void show(struct wm_watch_chart *chart, const struct wm_watch_series *series)
{
    wm_chart_line_show(&series->line, (int64_t)(chart->time.low * 1e9),
                       (int64_t)(chart->time.high * 1e9), chart->line,
                       chart->canvas.columns * 2);
}

static void draw_line(struct wm_watch_chart *chart, int ink)
{
    wm_watch_canvas_draw(&chart->canvas, chart->line, &chart->values, (uint8_t)(ink + 1));
}

/* The range of the GPUs as two faint lines, and their mean. */
static void draw_folded(struct wm_watch_chart *chart, const struct legend *legend)
{
    static const struct {
        double (*value_of)(const struct wm_chart_fold *);
        int ink;
    } lines[] = { { wm_chart_fold_low, WM_WATCH_FAINT },
                  { wm_chart_fold_high, WM_WATCH_FAINT },
                  { wm_chart_fold_mean, 0 } };
    const struct wm_watch_series *series;
    size_t count = chart->canvas.columns * 2;

    memset(chart->folds, 0, count * sizeof(*chart->folds));
    for (size_t at = 0; (series = wm_watch_next(legend->data, legend->panel, &at));) {
        if (series->is_hidden || !is_of_gpu(series))
            continue;
        show(chart, series);
        wm_chart_fold_add(chart->folds, chart->line, count);
    }
    wm_chart_fold_trim(chart->folds, count);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        wm_chart_fold_columns(chart->folds, lines[i].value_of, chart->line, count);
        draw_line(chart, lines[i].ink);
    }
}

static void draw_lines(struct wm_watch_chart *chart, const struct legend *legend)
{
    const struct wm_watch_series *series;

    if (legend->is_folded)
        draw_folded(chart, legend);
    for (size_t at = 0; (series = next_entry(legend, &at));) {
        if (series->is_hidden)
            continue;
        show(chart, series);
        draw_line(chart, ink_of(series));
    }
}

void wm_watch_draw_chart(struct wm_watch_screen *screen, const struct wm_watch_view *view,
                         struct wm_watch_chart *chart, const char *panel,
                         const struct wm_watch_place *place)
{
    const struct wm_watch_chart before = *chart;
    struct wm_chart_marks marks = { .symbol = "" };
    size_t cells = (size_t)(place->columns - LABELS_WIDTH), rows = (size_t)place->rows - 2;
    size_t at = 0;

    const struct wm_watch_series *first = wm_watch_next(&view->data, panel, &at);
    chart->panel = panel;
    struct legend legend = legend_of(view, chart);
    chart->place = *place;
    chart->time = wm_watch_time(view->newest_ns, view->window_ns, cells);
    chart->is_there = first && wm_watch_values(&view->data, panel, &chart->time, view->fits,
                                               &chart->values);
    if (chart->is_there)
        wm_chart_marks_of(&chart->values, first->feed.unit, rows / 3 + 2, &marks);
    draw_legend(screen, &legend, chart, marks.symbol);
    if (!chart->is_there || !fit_canvas(chart, cells, rows)) {
        chart->is_there = false;
        wm_watch_screen_put(place->row + place->rows / 2, left_of(chart), (int)cells,
                            "no value to draw");
        return;
    }
    draw_lines(chart, &legend);
    put_value_marks(chart, &marks);
    put_cells(screen, chart);
    put_time_marks(chart);
    wm_watch_screen_shift(screen, place->row + 1, place->rows - 1, left_of(chart),
                          place->column + place->columns, cells_moved(&before, chart));
}
