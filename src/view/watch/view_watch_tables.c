/* SPDX-License-Identifier: Apache-2.0 */
/* view_watch_tables.c - the devices and the processes. */
#include <math.h>
#include <string.h>

#include "view/text/view_text_line.h"
#include "view/watch/view_watch_draw.h"

enum { TEXT_MAX = 256 };

/* A series whose device has no earlier one: there is a row for each GPU. */
static bool is_row(const struct wm_watch_view *view, size_t index)
{
    const struct wm_watch_series *series = &view->data.series[index];

    if (!series->channel || series->channel->device_kind != WM_DEVICE_GPU)
        return false;
    for (size_t i = 1; i < index; i++) {
        if (strcmp(view->data.series[i].label, series->label) == 0)
            return false;
    }
    return true;
}

/* GPUs, the machine and what is measured of it. */
size_t wm_watch_device_count(const struct wm_watch_view *view)
{
    size_t count = 2;

    for (size_t i = 1; i < view->data.count; i++)
        count += is_row(view, i);
    return count;
}

/* What the devices of such a kind have in a panel: their sum, or of temperature the
 * highest. `label` NULL is any. */
static struct wm_quantity find(const struct wm_watch_view *view, const char *panel,
                               enum wm_device_kind kind, const char *label)
{
    double found = NAN;
    const char *unit = "";

    for (size_t i = 1; i < view->data.count; i++) {
        const struct wm_watch_series *series = &view->data.series[i];
        if (series->channel->device_kind != kind || series->state != WM_READING_OK ||
            (strcmp(panel, "power") == 0 && !series->is_summed) ||
            (label && strcmp(series->label, label) != 0) ||
            !wm_watch_is_in(&view->data, series, panel))
            continue;
        unit = series->feed.unit;
        found = isnan(found)                        ? series->now
                : strcmp(panel, "temperature") == 0 ? fmax(found, series->now)
                                                    : found + series->now;
    }
    return wm_watch_text(found, unit);
}

static void put_row(int row, int columns, const char *device, const char *model,
                    const struct wm_quantity cells[5])
{
    char text[TEXT_MAX];

    int rest = columns - 10 - 10 - 9 - 22 - 8 - 11;
    snprintf(text, sizeof(text), "%-9.9s %9.9s %8.8s %21.21s %7.7s %10.10s  %.*s", device,
             cells[0].text, cells[1].text, cells[2].text, cells[3].text, cells[4].text,
             rest > 0 ? rest : 0, model ? model : "");
    wm_watch_screen_put(row, 0, columns, text);
}

static void put_gpu(const struct wm_watch_view *view, const struct wm_watch_series *series,
                    int row, int columns)
{
    const char *label = series->label;
    double total = wm_watch_latest(&view->data, label, "memory_total");
    struct wm_quantity cells[] = {
        find(view, "power", WM_DEVICE_GPU, label),
        find(view, "utilization", WM_DEVICE_GPU, label),
        find(view, "memory", WM_DEVICE_GPU, label),
        find(view, "temperature", WM_DEVICE_GPU, label),
        find(view, "clocks", WM_DEVICE_GPU, label),
    };

    if (!isnan(total)) {
        struct wm_quantity used = cells[2];
        snprintf(cells[2].text, sizeof(cells[2].text), "%.12s of %.12s", used.text,
                 wm_view_bytes(total, NULL).text);
    }
    put_row(row, columns, label, series->channel->model, cells);
}

void wm_watch_draw_devices(const struct wm_watch_screen *screen,
                           const struct wm_watch_view *view, int top, int rows)
{
    const struct wm_quantity headings[] = {
        { "power" }, { "use" }, { "memory" }, { "temp." }, { "clock" }
    };
    const struct wm_quantity host[] = {
        find(view, "power", WM_DEVICE_CPU, NULL),
        find(view, "utilization", WM_DEVICE_HOST, NULL),
        find(view, "memory", WM_DEVICE_HOST, NULL),
        find(view, "temperature", WM_DEVICE_CPU, NULL),
        { "" },
    };
    const struct wm_quantity tree[] = {
        { "" },
        find(view, "utilization", WM_DEVICE_TREE, NULL),
        find(view, "memory", WM_DEVICE_TREE, NULL),
        { "" },
        { "" },
    };
    int lines, columns, row = top;

    wm_watch_screen_size(&lines, &columns);
    wm_watch_screen_style(screen, WM_WATCH_BOLD, 0);
    put_row(row++, columns, "", NULL, headings);
    wm_watch_screen_style(screen, WM_WATCH_PLAIN, 0);
    put_row(row++, columns, "machine", NULL, host);
    put_row(row++, columns, "processes", NULL, tree);
    for (size_t i = 1; i < view->data.count && row < top + rows; i++) {
        if (is_row(view, i))
            put_gpu(view, &view->data.series[i], row++, columns);
    }
}

void wm_watch_draw_processes(const struct wm_watch_screen *screen,
                             const struct wm_watch_view *view, int top, int rows)
{
    static const char *const headings[] = {
        [WM_WATCH_BY_CPU] = "    PID   [CPU]   CPU time     memory  threads  name",
        [WM_WATCH_BY_TIME] = "    PID    CPU   [CPU time]    memory  threads  name",
        [WM_WATCH_BY_MEMORY] = "    PID    CPU    CPU time   [memory] threads  name",
        [WM_WATCH_BY_PID] = "  [PID]    CPU    CPU time     memory  threads  name",
    };
    int lines, columns;
    char text[TEXT_MAX];

    wm_watch_screen_size(&lines, &columns);
    wm_watch_screen_style(screen, WM_WATCH_BOLD, 0);
    wm_watch_screen_put(top, 0, columns, headings[view->order]);
    snprintf(text, sizeof(text), "%zu process%s", view->processes.count,
             view->processes.count == 1 ? "" : "es");
    int width = wm_view_width(text);
    if (columns - width > 55)
        wm_watch_screen_put(top, columns - width, width, text);
    wm_watch_screen_style(screen, WM_WATCH_PLAIN, 0);
    for (int i = 0; i < rows - 1 && (size_t)i < view->processes.count; i++) {
        const struct wm_watch_process *process = &view->processes.all[i];
        snprintf(text, sizeof(text), "%7d %7s %10s %10s %8d  %.63s", process->process.pid,
                 isnan(process->cores) ? "-" : wm_view_percent(process->cores).text,
                 wm_view_duration(process->process.cpu_s, NULL).text,
                 process->process.memory_bytes > 0
                     ? wm_view_bytes(process->process.memory_bytes, NULL).text
                     : "n/a",
                 process->process.threads, process->process.name);
        wm_watch_screen_put(top + 1 + i, 0, columns, text);
    }
}
