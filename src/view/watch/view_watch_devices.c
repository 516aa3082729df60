/* SPDX-License-Identifier: Apache-2.0 */
/* view_watch_devices.c - the table of the machine and its devices. */
#include <math.h>
#include <string.h>

#include "view/text/view_text_line.h"
#include "view/watch/view_watch_draw.h"

enum {
    TEXT_MAX = 256,
    MODEL_COLUMNS_LEAST = 90,
    LABEL_COLUMNS = 14,
    CORE_COLUMNS = 16, /* " 12 ██▌   67 %  " */
    BAR_COLUMNS = 4
};

/* Each core has its number, a bar and percent where the rows suffice. */
static size_t cores_across(int columns)
{
    return columns > LABEL_COLUMNS + CORE_COLUMNS
               ? (size_t)(columns - LABEL_COLUMNS) / CORE_COLUMNS
               : 1;
}

static size_t core_rows(const struct wm_watch_view *view, int columns)
{
    size_t across = cores_across(columns);

    return view->data.core_count > 1 ? (view->data.core_count + across - 1) / across : 0;
}

/* The heading, the machine, what is measured of it, the cores and the GPUs. */
int wm_watch_device_rows(const struct wm_watch_view *view, int columns, int most)
{
    int rows = 3 + (int)view->data.gpu_count, cores = (int)core_rows(view, columns);

    rows += rows + cores <= most ? cores : cores > 0;
    rows = rows < most ? rows : most;
    return rows > 1 ? rows : 0; /* no heading alone */
}

/* What a row of the table is of: all devices of that kind, or a GPU. */
struct subject {
    enum wm_device_kind kind;
    size_t gpu;
};

/* The power of the machine is that of its CPUs and memory. */
static bool is_of(const struct wm_watch_series *series, const struct subject *subject,
                  bool is_power)
{
    if (!series->channel)
        return false;
    enum wm_device_kind kind = series->channel->device_kind;
    if (is_power && !series->is_summed)
        return false;
    if (subject->kind == WM_DEVICE_GPU)
        return kind == WM_DEVICE_GPU && series->gpu == subject->gpu;
    if (is_power && subject->kind == WM_DEVICE_CPU)
        return kind != WM_DEVICE_GPU;
    return kind == subject->kind;
}

/* What they have in a panel: their sum, or of temperatures and GPUs the highest. */
static struct wm_quantity find(const struct wm_watch_view *view, const char *panel,
                               const struct subject *subject)
{
    bool is_power = strcmp(panel, "power") == 0;
    bool is_highest = subject->kind == WM_DEVICE_GPU || strcmp(panel, "temperature") == 0;
    const struct wm_watch_series *last = NULL, *series;
    double found = NAN;
    size_t at = 0;

    while ((series = wm_watch_next(&view->data, panel, &at))) {
        if (series->state != WM_READING_OK || !is_of(series, subject, is_power))
            continue;
        last = series;
        found = isnan(found) ? series->now
                : is_highest ? fmax(found, series->now)
                             : found + series->now;
    }
    struct wm_quantity text = wm_watch_text(found, last ? last->feed.unit : "");
    if (is_power && last)
        strncat(text.text, wm_watch_origin(last),
                sizeof(text.text) - strlen(text.text) - 1);
    return text;
}

/* Of a row, in this order. */
enum { POWER, USE, MEMORY, TEMPERATURE, CLOCK, CELLS };

/* Cells that do not fit are left out, with all after them. */
static void put_row(int row, int columns, const char *device, const char *model,
                    const struct wm_quantity cells[CELLS])
{
    static const int widths[CELLS] = {
        [POWER] = 10, [USE] = 8, [MEMORY] = 21, [TEMPERATURE] = 7, [CLOCK] = 9
    };
    char text[TEXT_MAX];

    snprintf(text, sizeof(text), "%-13.13s", device);
    int end = wm_view_width(text);
    for (int i = 0; i < CELLS; i++) {
        int lack = widths[i] - wm_view_width(cells[i].text);
        end += 1 + widths[i];
        if (end > columns)
            break;
        snprintf(text + strlen(text), sizeof(text) - strlen(text), " %*s%s",
                 lack > 0 ? lack : 0, "", cells[i].text);
    }
    if (columns >= MODEL_COLUMNS_LEAST)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "  %.64s", model);
    wm_watch_screen_put(row, 0, columns, text);
}

static void fill_cells(const struct wm_watch_view *view, const struct subject *subject,
                       struct wm_quantity cells[CELLS])
{
    bool is_gpu = subject->kind == WM_DEVICE_GPU;

    cells[POWER] = find(view, "power", subject);
    cells[USE] = find(view, is_gpu ? "gpu_use" : "cpu_use", subject);
    cells[MEMORY] = find(view, "memory", subject);
    cells[TEMPERATURE] = find(view, "temperature", subject);
    cells[CLOCK] = is_gpu ? find(view, "clocks", subject) : (struct wm_quantity) { "" };
}

/* The first series of a GPU. */
static const struct wm_watch_series *series_of(const struct wm_watch_view *view, size_t gpu)
{
    size_t i = 1;

    while (view->data.series[i].channel->device_kind != WM_DEVICE_GPU ||
           view->data.series[i].gpu != gpu)
        i++;
    return &view->data.series[i];
}

static void put_gpu(const struct wm_watch_view *view, size_t gpu, int row, int columns)
{
    const struct subject subject = { WM_DEVICE_GPU, gpu };
    const struct wm_watch_series *series = series_of(view, gpu);
    double total = wm_watch_latest(&view->data, series->label, "memory_total");
    struct wm_quantity cells[CELLS];

    fill_cells(view, &subject, cells);
    if (!isnan(total)) {
        struct wm_quantity used = cells[MEMORY];
        snprintf(cells[MEMORY].text, sizeof(cells[MEMORY].text), "%.12s of %.12s",
                 used.text, wm_view_bytes(total, NULL).text);
    }
    put_row(row, columns, series->label,
            series->channel->model ? series->channel->model : "", cells);
}

static bool is_of_rest(const struct wm_watch_series *series, size_t first, size_t end)
{
    return series->channel && series->channel->device_kind == WM_DEVICE_GPU &&
           (series->gpu < first || series->gpu >= end);
}

/* "+57, highest: gpu40 615 W sim, gpu9 97 %, gpu63 85.0 GB, gpu40 91 °C" of the GPUs that
 * have no row: those outside of [first..end). */
static void put_rest(const struct wm_watch_view *view, size_t first, size_t end, int row,
                     int columns)
{
    static const char *const panels[] = { "power", "gpu_use", "memory", "temperature" };
    struct wm_detail text = { "" };

    const char *between = ", highest: ";

    wm_line_add(&text, "", "+%zu", view->data.gpu_count - (end - first));
    for (size_t i = 0; i < sizeof(panels) / sizeof(panels[0]); i++) {
        const struct wm_watch_series *series, *highest = NULL;
        for (size_t at = 0; (series = wm_watch_next(&view->data, panels[i], &at));) {
            if (series->state == WM_READING_OK && is_of_rest(series, first, end) &&
                (!highest || series->now > highest->now))
                highest = series;
        }
        if (!highest)
            continue;
        wm_line_add(&text, between, "%s %s%s", highest->label,
                    wm_watch_text(highest->now, highest->feed.unit).text,
                    i == 0 ? wm_watch_origin(highest) : "");
        between = ", ";
    }
    wm_watch_screen_put_words(row, 0, columns, text.text);
}

/* The chosen GPU is among those that have a row. */
static void put_gpus(const struct wm_watch_screen *screen, const struct wm_watch_view *view,
                     int row, int rows, int columns)
{
    size_t count = view->data.gpu_count, room = rows > 0 ? (size_t)rows : 0;
    size_t shown = count <= room ? count : room > 0 ? room - 1 : 0;
    const struct wm_watch_series *chosen = wm_watch_entry(view, view->selected);
    size_t first = chosen ? chosen->gpu : 0; /* 0 of what is no GPU */
    first = first < shown ? 0 : first + 1 - shown;
    for (size_t i = first; i < first + shown; i++) {
        bool is_chosen =
            chosen && is_of(chosen, &(struct subject) { WM_DEVICE_GPU, i }, false);
        wm_watch_screen_style(screen, is_chosen ? WM_WATCH_CHOSEN : WM_WATCH_PLAIN, 0);
        put_gpu(view, i, row++, columns);
    }
    wm_watch_screen_style(screen, WM_WATCH_PLAIN, 0);
    if (shown < count && room > 0)
        put_rest(view, first, first + shown, row, columns);
}

static void put_core(const struct wm_watch_core *core, int row, int column)
{
    static const char *const parts[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
    double use = isnan(core->use) ? 0 : fmin(fmax(core->use, 0), 1);
    int eighths = (int)lround(use * BAR_COLUMNS * 8);
    char text[TEXT_MAX];

    snprintf(text, sizeof(text), "%3s %.*s%s", core->number,
             eighths / 8 * (int)(sizeof("█") - 1), "████", parts[eighths % 8]);
    wm_watch_screen_put(row, column, CORE_COLUMNS, text);
    snprintf(text, sizeof(text), "%5s",
             isnan(core->use) ? "-" : wm_view_percent(round(use * 100) / 100).text);
    wm_watch_screen_put(row, column + 5 + BAR_COLUMNS, CORE_COLUMNS, text);
}

/* In a row: a bar for each, of the busiest of several where there is no room for all. */
static void put_core_bars(const struct wm_watch_view *view, int row, int columns)
{
    static const char *const bars[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
    enum { BARS = sizeof(bars) / sizeof(bars[0]) };
    size_t count = view->data.core_count, room = (size_t)(columns - LABEL_COLUMNS);
    size_t each = (count + room - 1) / room;

    for (size_t i = 0; i < count; i += each) {
        double use = NAN;
        for (size_t k = i; k < i + each && k < count; k++)
            use = fmax(use, view->data.cores[k].use);
        int bar = isnan(use) ? 0 : (int)(use * BARS);
        wm_watch_screen_put(row, LABEL_COLUMNS + (int)(i / each), 1,
                            bars[bar < BARS - 1 ? bar : BARS - 1]);
    }
}

/* In at most so many rows; returns how many they are. */
static int put_cores(const struct wm_watch_view *view, int row, int rows, int columns)
{
    size_t across = cores_across(columns), wanted = core_rows(view, columns);

    if (wanted == 0 || rows < 1)
        return 0;
    wm_watch_screen_put(row, 0, LABEL_COLUMNS, "cores");
    if (wanted > (size_t)rows) {
        put_core_bars(view, row, columns);
        return 1;
    }
    for (size_t i = 0; i < view->data.core_count; i++)
        put_core(&view->data.cores[i], row + (int)(i / across),
                 LABEL_COLUMNS + (int)(i % across) * CORE_COLUMNS);
    return (int)wanted;
}

/* Its power is that of the CPUs and of memory, as far as they have some. */
static const char *name_of_cpus(const struct wm_watch_view *view)
{
    for (size_t i = 1; i < view->data.count; i++) {
        const struct wm_watch_series *series = &view->data.series[i];
        if (series->is_summed && series->channel->device_kind == WM_DEVICE_DRAM)
            return "CPU, memory";
    }
    return "CPU";
}

void wm_watch_draw_devices(const struct wm_watch_screen *screen,
                           const struct wm_watch_view *view, int top, int rows)
{
    const struct subject cpus = { .kind = WM_DEVICE_CPU },
                         host = { .kind = WM_DEVICE_HOST },
                         tree = { .kind = WM_DEVICE_TREE };
    struct wm_quantity headings[CELLS] = {
        { "power" }, { "use" }, { "memory" }, { "temp." }, { "clock" }
    };
    struct wm_quantity cells[CELLS];
    int lines, columns, row = top;

    if (rows == 0)
        return;
    wm_watch_screen_size(&lines, &columns);
    if (view->data.gpu_count == 0)
        headings[CLOCK].text[0] = '\0';
    wm_watch_screen_style(screen, WM_WATCH_BOLD, 0);
    put_row(row++, columns, "", "", headings);
    wm_watch_screen_style(screen, WM_WATCH_PLAIN, 0);
    fill_cells(view, &host, cells);
    cells[POWER] = find(view, "power", &cpus);
    cells[TEMPERATURE] = find(view, "temperature", &cpus);
    put_row(row++, columns, name_of_cpus(view), "", cells);
    fill_cells(view, &tree, cells);
    cells[POWER] = wm_watch_text(view->told_s > 0 ? view->target.rate : NAN, "W");
    cells[USE] = wm_watch_text(view->told_s > 0 ? view->target_cpu.rate : NAN, "ratio");
    cells[TEMPERATURE] = cells[CLOCK] = (struct wm_quantity) { "" };
    put_row(row++, columns, view->data.target, "", cells);
    int left = top + rows - row, gpus = (int)view->data.gpu_count;
    row += put_cores(view, row, left - gpus, columns);
    put_gpus(screen, view, row, top + rows - row, columns);
}
