/* SPDX-License-Identifier: Apache-2.0 */
/* view_plot_layout.c - which panels there are, and where: "power,memory/clocks". */
#include <stdlib.h>
#include <string.h>

#include "view/plot/view_plot_panel.h"

static const char *const default_panels[] = { "power",  "gpu_use",     "cpu_use",
                                              "memory", "temperature", "clocks" };

/* The unit of what a word means; NULL where nothing of it is drawn. */
static const char *unit_of(const struct wm_plot_data *data, const char *word)
{
    for (size_t i = 0; i < data->series_count; i++) {
        const struct wm_plot_series *series = &data->series[i];
        if (series->is_chosen && wm_plot_is_meant(series, word))
            return series->feed.unit;
    }
    return NULL;
}

static int add_panel(struct wm_plot_layout *layout, bool is_beside, struct wm_error *err)
{
    if (is_beside && layout->columns == WM_PLOT_COLUMNS_MAX)
        return wm_fail(err, WM_EINVAL, "--layout: more than %d columns",
                       WM_PLOT_COLUMNS_MAX);
    layout->columns += is_beside;
    size_t column = layout->columns - 1;
    if (layout->count == WM_PLOT_PANELS_MAX || layout->rows[column] == 16)
        return wm_fail(err, WM_EINVAL, "--layout: too many panels");
    layout->panels[layout->count++] =
        (struct wm_plot_panel) { .column = column, .row = layout->rows[column]++ };
    return WM_OK;
}

static int add_axis(struct wm_plot_layout *layout, const struct wm_plot_data *data,
                    const char *word, struct wm_error *err)
{
    struct wm_plot_panel *panel = &layout->panels[layout->count - 1];
    size_t side = panel->words[0] ? 1 : 0;

    if (panel->words[side])
        return wm_fail(err, WM_EINVAL, "--layout: '%.60s' is a third axis", word);
    panel->words[side] = word;
    panel->unit[side] = unit_of(data, word);
    return panel->unit[side]
               ? WM_OK
               : wm_fail(err, WM_EINVAL,
                         "--layout: nothing of '%.60s' is among the channels that are "
                         "drawn",
                         word);
}

/* Its words, one behind the other in the layout's text. */
static int parse(struct wm_plot_layout *layout, const struct wm_plot_data *data,
                 struct wm_error *err)
{
    const char *at = data->request->layout;
    size_t size = strlen(at) + 1;
    char *word = layout->text = malloc(size), before;
    int status = word ? WM_OK : wm_fail_memory(err, "figure");

    while (status == WM_OK &&
           wm_plot_next_word(&at, word, size - (size_t)(word - layout->text), &before)) {
        bool is_beside = layout->count == 0 || before == '/';
        if (is_beside || before == ',')
            status = add_panel(layout, is_beside, err);
        if (status == WM_OK)
            status = add_axis(layout, data, word, err);
        word += strlen(word) + 1;
    }
    if (status == WM_OK && layout->count == 0)
        return wm_fail(err, WM_EINVAL, "--layout: names no panel");
    return status;
}

static void add_default(struct wm_plot_layout *layout, const char *word, const char *unit)
{
    if (layout->count == WM_PLOT_PANELS_MAX)
        return;
    layout->panels[layout->count++] = (struct wm_plot_panel) {
        .words = { word },
        .unit = { unit },
        .row = layout->rows[0]++,
    };
}

/* All panels below each other, and one for each further metric that was asked for. */
static void use_defaults(struct wm_plot_layout *layout, const struct wm_plot_data *data)
{
    layout->columns = 1;
    for (size_t i = 0; i < sizeof(default_panels) / sizeof(default_panels[0]); i++) {
        const char *unit = unit_of(data, default_panels[i]);
        if (unit)
            add_default(layout, default_panels[i], unit);
    }
    for (size_t i = 0; i < data->series_count; i++) {
        const struct wm_plot_series *series = &data->series[i];
        bool is_there = !series->is_chosen || series->feed.panel;
        for (size_t k = 0; k < layout->count && !is_there; k++)
            is_there = wm_plot_is_meant(series, layout->panels[k].words[0]);
        if (!is_there)
            add_default(layout, series->channel.metric, series->feed.unit);
    }
}

int wm_plot_layout_init(struct wm_plot_data *data, struct wm_plot_layout *layout,
                        struct wm_error *err)
{
    int status = WM_OK;

    *layout = (struct wm_plot_layout) { 0 };
    if (data->request->layout)
        status = parse(layout, data, err);
    else
        use_defaults(layout, data);
    if (status < 0)
        return status;
    wm_plot_fold(data);
    wm_plot_set_colours(data);
    return WM_OK;
}

void wm_plot_layout_release(struct wm_plot_layout *layout)
{
    free(layout->text);
    layout->text = NULL;
}
