/* SPDX-License-Identifier: Apache-2.0 */
/* view_gpu_brief.c - the GPUs of a machine at a glance: a line for each. */
#include <stdio.h>

#include "view/gpu/view_gpu.h"

/* "122 / 250", of which both may be missing. */
static struct wm_words pair_text(const struct wm_gpu_view *view, enum wm_gpu_field part,
                                 enum wm_gpu_field whole, double scale)
{
    struct wm_gpu_value values[2] = { wm_gpu_view_get(view, part),
                                      wm_gpu_view_get(view, whole) };
    struct wm_quantity numbers[2] = { { "n/a" }, { "n/a" } };
    struct wm_words text;

    for (int i = 0; i < 2; i++) {
        if (values[i].state == WM_READING_OK)
            numbers[i] = wm_view_fixed(values[i].number * scale, 0);
    }
    snprintf(text.text, sizeof(text.text), "%s / %s", numbers[0].text, numbers[1].text);
    return text;
}

static struct wm_words brief_text(const struct wm_gpu_view *view, enum wm_gpu_field field,
                                  double scale, const char *suffix)
{
    struct wm_gpu_value value = wm_gpu_view_get(view, field);
    struct wm_words text = { "n/a" };

    return value.state == WM_READING_OK ? wm_words_number(value.number * scale, 0, suffix)
                                        : text;
}

static struct wm_words processes_text(const struct wm_gpu_view *view)
{
    struct wm_gpu_value list;
    size_t count = wm_gpu_process_count(view->gpus, view->gpu, &list);
    struct wm_words text = { "n/a" };

    if (list.state == WM_READING_OK || count > 0)
        snprintf(text.text, sizeof(text.text), "%zu%s", count,
                 list.state == WM_READING_OK ? "" : "+");
    return text;
}

static const struct {
    const char *title;
    int width; /* below 0: to the left */
} brief_columns[] = {
    { "GPU", 3 },  { "NAME", -20 },     { "USE", 5 }, { "MEMORY (MiB)", 15 },
    { "TEMP", 6 }, { "POWER (W)", 11 }, { "FAN", 5 }, { "PROCESSES", 9 },
};

static void print_brief_cell(FILE *out, size_t column, const char *text)
{
    int width = brief_columns[column].width;

    fputs(column > 0 ? "  " : "", out);
    if (width < 0)
        fprintf(out, "%*s", -width - wm_view_cut(out, text, -width), "");
    else
        wm_view_right(out, text, width);
}

/* In front, where the GPUs are those that a program sees. */
static void print_seen_as(const struct wm_gpu_view *view, bool is_title)
{
    struct wm_gpu_value value;

    wm_gpu_seen_as(view->gpus, view->gpu, &value);
    if (value.state == WM_READING_NONE)
        return;
    if (is_title)
        fputs("SEEN AS  ", view->out);
    else if (value.state == WM_READING_OK)
        fprintf(view->out, "%7.0f  ", value.number);
    else
        fprintf(view->out, "%7s  ", "n/a");
}

static void print_brief(const struct wm_gpu_view *view)
{
    const struct wm_words cells[WM_COUNT(brief_columns)] = {
        wm_words_field(view, WM_GPU_INDEX, true),
        wm_words_field(view, WM_GPU_NAME, true),
        brief_text(view, WM_GPU_UTILIZATION_GPU, 100, " %"),
        pair_text(view, WM_GPU_MEMORY_USED, WM_GPU_MEMORY_TOTAL, 1 / WM_MIB),
        brief_text(view, WM_GPU_TEMPERATURE, 1, " °C"),
        pair_text(view, WM_GPU_POWER_DRAW, WM_GPU_POWER_LIMIT, 1),
        brief_text(view, WM_GPU_FAN, 100, " %"),
        processes_text(view),
    };

    print_seen_as(view, false);
    for (size_t i = 0; i < WM_COUNT(cells); i++)
        print_brief_cell(view->out, i, cells[i].text);
    fputs(wm_gpu_view_simulated(view) ? "  SIMULATED\n" : "\n", view->out);
}

void wm_view_gpu_brief(const struct wm_gpus *gpus, FILE *out)
{
    size_t count = wm_gpus_count(gpus);

    if (count == 0) {
        wm_gpu_view_print_none(gpus, out);
        return;
    }
    print_seen_as(&(struct wm_gpu_view) { .gpus = gpus, .gpu = 0, .out = out }, true);
    for (size_t i = 0; i < WM_COUNT(brief_columns); i++)
        print_brief_cell(out, i, brief_columns[i].title);
    fputc('\n', out);
    for (size_t i = 0; i < count; i++) {
        const struct wm_gpu_view view = { .gpus = gpus, .gpu = i, .out = out };
        print_brief(&view);
    }
    wm_gpu_view_print_broken(gpus, out);
}
