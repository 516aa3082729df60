/* SPDX-License-Identifier: Apache-2.0 */
/* view_watch_chart.c - a panel over the last seconds in the terminal. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "view/text/view_text_line.h"
#include "view/watch/view_watch_draw.h"

/* REST_WIDTH: of "+99 more, highest 1.23 kW", FEW_WIDTH of "+9". */
enum { LABELS_WIDTH = 8, TEXT_MAX = 128, REST_WIDTH = 26, FEW_WIDTH = 3 };

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

static bool is_same_gpu(const struct wm_watch_series *a, const struct wm_watch_series *b)
{
    return is_of_gpu(a) && is_of_gpu(b) && a->gpu == b->gpu;
}

/* Entries [first..end) of a panel's legend are shown, the rest in one. */
struct legend {
    const struct wm_watch_data *data;
    const char *panel;
    const struct wm_watch_series *chosen; /* in the first chart; NULL: none */
    bool is_first, is_folded, has_forms;
    size_t first, end, count;
};

/* The mark of a line, in the legend and, where colours do not tell lines apart, at its end.
 */
static const char *mark_of(const struct legend *legend, int ink)
{
    static const char *const forms[] = { "●", "■", "▲", "◆", "▼", "★", "+", "×" };

    return forms[legend->has_forms ? (size_t)ink % (sizeof(forms) / sizeof(forms[0])) : 0];
}

/* How wide the entry of a series in the legend is, with its text. */
static int legend_entry(const struct legend *legend, const struct wm_watch_series *series,
                        char *text, size_t size)
{
    snprintf(text, size, "%s %.24s %s%s",
             series->is_hidden ? "○" : mark_of(legend, ink_of(series)), series->label,
             wm_watch_text(now_of(series), series->feed.unit).text,
             wm_watch_origin(series));
    return wm_view_width(text) + 1;
}

/* In another panel than the first it is the chosen GPU's. */
static bool is_chosen(const struct legend *legend, const struct wm_watch_series *series)
{
    return series == legend->chosen ||
           (legend->chosen && is_same_gpu(series, legend->chosen));
}

/* Whether a series is drawn as a part of its GPUs alone. */
static bool is_folded(const struct legend *legend, const struct wm_watch_series *series)
{
    return legend->is_folded && is_of_gpu(series) && !is_chosen(legend, series);
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

static struct legend legend_of(const struct wm_watch_screen *screen,
                               const struct wm_watch_view *view,
                               const struct wm_watch_chart *chart)
{
    struct legend legend = { .data = &view->data,
                             .has_forms = !wm_watch_screen_has_colour(screen),
                             .panel = chart->panel,
                             .chosen = wm_watch_entry(view, view->selected),
                             .is_first = chart == view->charts };
    const struct wm_watch_series *series;
    size_t at = 0, gpus = 0;

    while ((series = wm_watch_next(&view->data, chart->panel, &at)))
        gpus += is_of_gpu(series);
    legend.is_folded = gpus > WM_WATCH_GPU_LINES;
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
        width -= legend_entry(legend, series, text, sizeof(text));
        fitting += width >= -1; /* no blank follows the last */
    }
    return fitting;
}

/* The place of the chosen entry, and its series; NULL: there is none. */
static size_t find_chosen(const struct legend *legend,
                          const struct wm_watch_series **ret_series)
{
    size_t place = 0, at = 0;

    while ((*ret_series = next_entry(legend, &at)) && !is_chosen(legend, *ret_series))
        place++;
    return place;
}

/* From the chosen one on, where not all up to it fit. */
static void fit_legend(struct legend *legend, int width)
{
    const struct wm_watch_series *series;
    size_t chosen = find_chosen(legend, &series);

    legend->end = entries_that_fit(legend, 0, width);
    if (legend->end == legend->count)
        return;
    width -= FEW_WIDTH;
    legend->end = entries_that_fit(legend, 0, width);
    if (!series || chosen < legend->end)
        return;
    legend->first = chosen;
    legend->end = chosen + entries_that_fit(legend, chosen, width);
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

/* "8 GPUs: mean 118 W, 100 W to 135 W" now, without those that are hidden; without the
 * range; "8 GPUs: all 118 W" of equal ones. */
static struct wm_detail folded_text(const struct legend *legend, bool has_range)
{
    struct wm_detail text = { "" };
    struct wm_chart_fold fold = { .low = NAN, .high = NAN };
    const struct wm_watch_series *series;
    const char *unit = "", *origin = "";
    size_t at = 0, shown = 0, lost = 0;

    while ((series = wm_watch_next(legend->data, legend->panel, &at))) {
        bool is_shown = is_of_gpu(series) && !series->is_hidden;
        shown += is_shown;
        unit = series->feed.unit;
        origin = is_of_gpu(series) ? wm_watch_origin(series) : origin;
        if (is_shown && series->state == WM_READING_OK)
            wm_chart_fold_value(&fold, series->now);
        else
            lost += is_shown && series->has_value && series->state == WM_READING_FAILED;
    }
    const struct wm_quantity low = wm_watch_text(fold.low, unit),
                             high = wm_watch_text(fold.high, unit);
    bool is_level = strcmp(low.text, high.text) == 0;
    double mean = wm_chart_fold_mean(&fold); /* NAN of none */
    if (fold.count == 0)
        wm_line_add(&text, "", "● %s",
                    shown > 0 ? "no GPU has a value" : "all GPUs hidden");
    else
        wm_line_add(&text, "", "● %zu GPUs: %s %s", fold.count, is_level ? "all" : "mean",
                    is_level ? low.text : wm_watch_text(mean, unit).text);
    if (has_range && !is_level)
        wm_line_add(&text, ", ", "%s to %s", low.text, high.text);
    wm_line_add(&text, "", "%s", fold.count > 0 ? origin : "");
    if (lost > 0)
        wm_line_add(&text, ", ", "%zu lost", lost);
    return text;
}

/* As much of it as leaves room for the chosen entry; the columns it takes. */
static int put_folded(const struct legend *legend, int row, int column, int width)
{
    const struct wm_watch_series *series;
    char text[TEXT_MAX];

    find_chosen(legend, &series);
    width -= FEW_WIDTH + (series ? legend_entry(legend, series, text, sizeof(text)) : 0);
    for (int has_range = 1; has_range >= 0; has_range--) {
        const struct wm_detail whole = folded_text(legend, has_range);
        int taken = wm_view_width(whole.text);
        if (taken > width)
            continue;
        wm_watch_screen_put(row, column, taken, whole.text);
        return taken + 1;
    }
    return 0;
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
    if (legend->is_folded)
        column += put_folded(legend, row, column, end - column);
    fit_legend(legend, end - column);
    for (size_t i = 0; (series = next_entry(legend, &at)); i++) {
        bool is_marked = legend->is_first && series == legend->chosen;
        if (i < legend->first || i >= legend->end)
            continue;
        int width = legend_entry(legend, series, text, sizeof(text));
        wm_watch_screen_style(screen, is_marked ? WM_WATCH_CHOSEN : WM_WATCH_PLAIN,
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

/* As in the head: "0:22:57"; "0:22:57.5" */
static void print_time(double seconds, bool has_tenths, char *text, size_t size)
{
    int64_t tenths = llround(seconds * 10), whole = tenths / 10;

    snprintf(text, size, "%" PRId64 ":%02d:%02d", whole / 3600, (int)(whole / 60 % 60),
             (int)(whole % 60));
    if (has_tenths)
        snprintf(text + strlen(text), size - strlen(text), ".%d", (int)(tenths % 10));
}

/* Marks are at whole seconds, minutes or hours, or at parts of them. */
static void put_time_marks(const struct wm_watch_chart *chart)
{
    const struct wm_axis *time = &chart->time;
    size_t columns = chart->canvas.columns, most = columns / 12;
    double places[WM_CHART_MARKS], length = time->high - time->low;
    int row = chart->place.row + chart->place.rows - 1;
    char text[32];

    most = most < WM_CHART_MARKS ? most : WM_CHART_MARKS;
    double step = length / (double)most;
    double size = step > 1200 ? 3600 : step > 20 ? 60 : 1;
    const struct wm_axis scaled = { time->low / size, time->high / size };
    size_t count = wm_axis_marks(&scaled, most, places);
    bool has_tenths = count > 1 && (places[1] - places[0]) * size < 0.9;
    for (size_t i = 0; i < count; i++) {
        double at = places[i] * size;
        size_t column = (size_t)((at - time->low) / length * (double)columns);
        print_time(at, has_tenths, text, sizeof(text));
        if (column + strlen(text) <= columns)
            wm_watch_screen_put(row, left_of(chart) + (int)column, LABELS_WIDTH + 2, text);
    }
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

static void fold_gpus(struct wm_watch_chart *chart, const struct legend *legend)
{
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
}

static void draw_fold(struct wm_watch_chart *chart,
                      double (*value_of)(const struct wm_chart_fold *), int ink)
{
    wm_chart_fold_columns(chart->folds, value_of, chart->line, chart->canvas.columns * 2);
    draw_line(chart, ink);
}

/* A cell that lines share has the colour of the last: the mean of the GPUs stays in sight,
 * and their range gives way. */
static void draw_lines(struct wm_watch_chart *chart, const struct legend *legend)
{
    const struct wm_watch_series *series;

    if (legend->is_folded) {
        fold_gpus(chart, legend);
        draw_fold(chart, wm_chart_fold_low, WM_WATCH_FAINT);
        draw_fold(chart, wm_chart_fold_high, WM_WATCH_FAINT);
    }
    for (size_t at = 0; (series = next_entry(legend, &at));) {
        if (series->is_hidden)
            continue;
        show(chart, series);
        draw_line(chart, ink_of(series));
    }
    if (legend->is_folded)
        draw_fold(chart, wm_chart_fold_mean, 0);
}

/* A mark behind the newest value of a line. */
static void put_mark(const struct wm_watch_chart *chart, const struct legend *legend,
                     double seconds, double value, int ink)
{
    const struct wm_axis *time = &chart->time, *values = &chart->values;
    double columns = (double)chart->canvas.columns, rows = (double)chart->canvas.rows;
    double column = (seconds - time->low) / (time->high - time->low) * columns + 1;
    double row = (values->high - value) / (values->high - values->low) * rows;

    if (row >= 0 && row < rows) /* which NAN is not */
        wm_watch_screen_put(chart->place.row + 1 + (int)row,
                            left_of(chart) + (int)fmin(column, columns - 1), 1,
                            mark_of(legend, ink));
}

static void put_marks(const struct wm_watch_chart *chart, const struct legend *legend,
                      double seconds)
{
    const struct wm_chart_fold *fold = chart->folds + 2 * chart->canvas.columns;
    const struct wm_watch_series *series;

    while (legend->is_folded && fold > chart->folds && (--fold)->count == 0)
        ;
    for (size_t at = 0; (series = next_entry(legend, &at));) {
        if (!series->is_hidden)
            put_mark(chart, legend, seconds, now_of(series), ink_of(series));
    }
    if (legend->is_folded)
        put_mark(chart, legend, seconds, wm_chart_fold_mean(fold), 0);
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
    struct legend legend = legend_of(screen, view, chart);
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
    if (legend.has_forms)
        put_marks(chart, &legend, (double)view->newest_ns / 1e9);
    put_time_marks(chart);
    wm_watch_screen_shift(screen, place->row + 1, place->rows - 1, left_of(chart),
                          place->column + place->columns, cells_moved(&before, chart));
}
