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

static int add_panel(struct wm_plot_layout *layout, const struct wm_plot_data *data,
                     size_t column, char *words, struct wm_error *err)
{
    struct wm_plot_panel *panel = &layout->panels[layout->count];
    size_t count = 0;

    if (layout->count == WM_PLOT_PANELS_MAX || layout->rows[column] == 16)
        return wm_fail(err, WM_EINVAL, "--layout: too many panels");
    *panel = (struct wm_plot_panel) { .column = column, .row = layout->rows[column] };
    for (char *rest = NULL, *word = strtok_r(words, "+ ", &rest); word;
         word = strtok_r(NULL, "+ ", &rest)) {
        if (count == 2)
            return wm_fail(err, WM_EINVAL, "--layout: '%.60s' is a third axis", word);
        panel->words[count] = word;
        panel->unit[count] = unit_of(data, word);
        if (!panel->unit[count++])
            return wm_fail(err, WM_EINVAL,
                           "--layout: nothing of '%.60s' is among the channels that are "
                           "drawn",
                           word);
    }
    if (count == 0)
        return wm_fail(err, WM_EINVAL, "--layout: a panel has no name");
    layout->rows[column]++;
    layout->count++;
    return WM_OK;
}

static int parse(struct wm_plot_layout *layout, const struct wm_plot_data *data,
                 struct wm_error *err)
{
    int status = WM_OK;
    char *columns = NULL, *rows = NULL;

    for (char *column = strtok_r(layout->text, "/", &columns); column && status == WM_OK;
         column = strtok_r(NULL, "/", &columns)) {
        if (layout->columns == WM_PLOT_COLUMNS_MAX)
            return wm_fail(err, WM_EINVAL, "--layout: more than %d columns",
                           WM_PLOT_COLUMNS_MAX);
        for (char *panel = strtok_r(column, ",", &rows); panel && status == WM_OK;
             panel = strtok_r(NULL, ",", &rows))
            status = add_panel(layout, data, layout->columns, panel, err);
        layout->columns++;
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
    const char *text = data->request->layout;
    int status = WM_OK;

    *layout = (struct wm_plot_layout) { 0 };
    if (text) {
        layout->text = strdup(text);
        status = layout->text ? parse(layout, data, err) : wm_fail_memory(err, "figure");
    } else {
        use_defaults(layout, data);
    }
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
