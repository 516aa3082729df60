/* SPDX-License-Identifier: Apache-2.0 */
/* view_plot_words.c - which channels the words of a request mean: panels, devices, metrics
 * and columns. */
#include <stdio.h>
#include <string.h>

#include "view/plot/view_plot.h"

enum { LIST_WIDTH = 78 };

static bool is_same(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* By the name of its column, "gpu0_power_W", or without the unit, as Python has it. */
static bool is_column(const struct wm_plot_series *series, const char *word)
{
    size_t length = strlen(word);

    if (strncmp(series->column, word, length) != 0)
        return false;
    const char *rest = series->column + length;
    return rest[0] == '\0' || (rest[0] == '_' && is_same(rest + 1, series->channel.unit));
}

bool wm_plot_is_meant(const struct wm_plot_series *series, const char *word)
{
    bool is_own = is_same(word, series->channel.metric) || is_column(series, word);
    const char *panel = series->feed.panel;
    bool is_use = panel && (is_same(panel, "gpu_use") || is_same(panel, "cpu_use"));
    bool is_of_panel =
        panel &&
        (is_same(word, panel) || is_same(word, series->channel.label) ||
         is_same(word, series->device_name) || (is_use && is_same(word, "utilization")));

    return is_of_panel || (is_own && !series->feed.is_rate);
}

bool wm_plot_next_word(const char **at, char *word, size_t size, char *ret_before)
{
    static const char between[] = " +,/"; /* of several the last of these counts */
    const char *before = between;

    for (; **at && strchr(between, **at); (*at)++)
        before = strchr(between, **at) > before ? strchr(between, **at) : before;
    bool is_quoted = **at == '"' || **at == '\'';
    const char end[] = { **at, '\0' };
    *at += is_quoted;
    size_t length = strcspn(*at, is_quoted ? end : between);
    snprintf(word, size, "%.*s", (int)length, *at);
    *at += length;
    *at += is_quoted && **at;
    *ret_before = *before;
    return length > 0 || is_quoted;
}

static bool is_in_layout(const struct wm_plot_data *data,
                         const struct wm_plot_series *series)
{
    const char *at = data->request->layout;
    char word[WM_PLOT_NAME_SIZE], before;

    while (wm_plot_next_word(&at, word, sizeof(word), &before)) {
        if (wm_plot_is_meant(series, word))
            return true;
    }
    return false;
}

bool wm_plot_is_chosen(const struct wm_plot_data *data, const struct wm_plot_series *series)
{
    const struct wm_plot_request *request = data->request;

    for (size_t i = 0; i < request->channel_count; i++) {
        if (wm_plot_is_meant(series, request->channels[i]))
            return true;
    }
    if (request->channel_count > 0)
        return false;
    return request->layout ? is_in_layout(data, series) : series->feed.panel != NULL;
}

/* A list of names, broken into lines. */
struct list {
    FILE *out;
    size_t column; /* 0: nothing was written yet */
};

static void add_name(struct list *list, const char *heading, const char *name)
{
    size_t length = strlen(name) + 2;

    if (list->column == 0)
        list->column = (size_t)fprintf(list->out, "  %-13s", heading);
    else if (list->column + length > LIST_WIDTH)
        list->column = (size_t)fprintf(list->out, ",\n  %-13s", "");
    else
        list->column += (size_t)fprintf(list->out, ", ");
    list->column += (size_t)fprintf(list->out, "%s", name);
}

static void end_list(const struct list *list)
{
    if (list->column > 0)
        fputc('\n', list->out);
}

static const char *panel_of(const struct wm_plot_series *series)
{
    return series->feed.panel;
}

static const char *device_of(const struct wm_plot_series *series)
{
    return series->feed.panel ? series->device_name : NULL;
}

static const char *column_of(const struct wm_plot_series *series)
{
    return series->feed.is_rate ? NULL : series->column;
}

/* Each name once: of all series, or of one device. */
static void list_names(const struct wm_plot_data *data, const char *heading,
                       const char *device,
                       const char *(*name_of)(const struct wm_plot_series *))
{
    struct list list = { .out = data->request->names };

    for (size_t i = 0; i < data->series_count; i++) {
        const struct wm_plot_series *series = &data->series[i];
        const char *name = name_of(series);
        bool is_new = name && (!device || is_same(device, series->device_name));
        for (size_t k = 0; k < i && is_new; k++) {
            const char *other = name_of(&data->series[k]);
            is_new = !other || !is_same(name, other);
        }
        if (is_new)
            add_name(&list, heading, name);
    }
    end_list(&list);
}

static void list_all(const struct wm_plot_data *data)
{
    list_names(data, "panels", NULL, panel_of);
    list_names(data, "devices", NULL, device_of);
    for (size_t i = 0; i < data->series_count; i++) {
        const char *device = data->series[i].device_name;
        size_t first = 0;
        while (!is_same(data->series[first].device_name, device))
            first++;
        if (first == i)
            list_names(data, device, device, column_of);
    }
}

static int check_word(const struct wm_plot_data *data, const char *option, const char *word,
                      struct wm_error *err)
{
    for (size_t i = 0; i < data->series_count; i++) {
        if (wm_plot_is_meant(&data->series[i], word))
            return WM_OK;
    }
    if (data->request->names)
        list_all(data);
    return wm_fail(err, WM_EINVAL, "%s: there is no channel '%.60s'%s", option, word,
                   data->request->names ? "; choose from these:" : "");
}

int wm_plot_check_words(const struct wm_plot_data *data, struct wm_error *err)
{
    const struct wm_plot_request *request = data->request;
    const char *at = request->layout ? request->layout : "";
    char word[WM_PLOT_NAME_SIZE], before;
    int status = WM_OK;

    for (size_t i = 0; i < request->channel_count && status == WM_OK; i++)
        status = check_word(data, "--channels", request->channels[i], err);
    while (status == WM_OK && wm_plot_next_word(&at, word, sizeof(word), &before))
        status = check_word(data, "--layout", word, err);
    return status;
}
