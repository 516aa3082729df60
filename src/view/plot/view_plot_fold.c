/* SPDX-License-Identifier: Apache-2.0 */
/* view_plot_fold.c - many devices of one kind as one line, their mean, with a band from the
 * least to the greatest; a device far away from the others keeps a line with its name. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_array.h"
#include "view/chart/view_fold.h"
#include "view/plot/view_plot_legend.h"
#include "view/plot/view_plot_panel.h"

#define NAME_TEXT 11.0
#define POINT_WIDTH 3.0 /* of a mean that no line leads to */

/* An outlier is away from the median of the means by so much of the axis, and so many
 * standard deviations, which of a normal distribution are 1.4826 median deviations. */
#define OUTLIER_OF_AXIS 0.1
#define OUTLIER_SIGMA (4 * 1.4826)

/* Of several recordings, devices differ by their dashes alone. */
enum { DEVICES_LEAST = 9, DASHES_LEAST = 5, OUTLIERS_MOST = 3 };

static bool is_same(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static bool is_drawn(const struct wm_plot_series *series)
{
    return series->is_chosen && series->has_values;
}

static bool is_of_kind(const struct wm_plot_series *a, const struct wm_plot_series *b)
{
    return a->input == b->input && a->channel.device_kind == b->channel.device_kind;
}

/* How many devices of its kind are drawn, and the first and the last of them. */
static size_t devices_of(const struct wm_plot_data *data,
                         const struct wm_plot_series *series,
                         const struct wm_plot_series **ret_first,
                         const struct wm_plot_series **ret_last)
{
    size_t count = 0;

    for (size_t i = 0; i < data->series_count; i++) {
        const struct wm_plot_series *other = &data->series[i];
        if (!is_drawn(other) || !is_of_kind(series, other))
            continue;
        size_t k = 0;
        while (!is_drawn(&data->series[k]) || !is_of_kind(series, &data->series[k]) ||
               !is_same(data->series[k].channel.label, other->channel.label))
            k++;
        if (k < i)
            continue;
        if (count++ == 0)
            *ret_first = other;
        *ret_last = other;
    }
    return count;
}

/* As an earlier one of its kind. */
static void fold(struct wm_plot_data *data, size_t index)
{
    struct wm_plot_series *series = &data->series[index];
    const struct wm_plot_series *first = NULL, *last = NULL;
    size_t least = data->request->input_count > 1 ? DASHES_LEAST : DEVICES_LEAST;
    size_t earlier = 0;

    while (!is_drawn(&data->series[earlier]) || !is_of_kind(&data->series[earlier], series))
        earlier++;
    if (earlier == index) {
        series->is_folded = devices_of(data, series, &first, &last) >= least;
        if (series->is_folded)
            snprintf(series->name, sizeof(series->name), "%.20s–%.20s%s: mean, range",
                     first->device_name, last->device_name,
                     wm_plot_origin(series->channel.origin));
    } else if (data->series[earlier].is_folded) {
        series->is_folded = true;
        memcpy(series->name, data->series[earlier].name, sizeof(series->name));
    }
}

void wm_plot_fold(struct wm_plot_data *data)
{
    for (size_t i = 0; i < data->series_count; i++) {
        if (is_drawn(&data->series[i]))
            fold(data, i);
    }
}

/* Of a panel, rates of energy and power are the same. */
static bool is_of_group(const struct wm_plot_series *a, const struct wm_plot_series *b)
{
    bool is_power = a->feed.panel && b->feed.panel && is_same(a->feed.panel, "power") &&
                    is_same(b->feed.panel, "power");

    return a->is_folded && b->is_folded && is_of_kind(a, b) &&
           (is_power || is_same(a->channel.metric, b->channel.metric));
}

bool wm_plot_is_in_earlier(const struct wm_plot_panel_view *view, size_t index, size_t side)
{
    const struct wm_plot_series *series = view->data->series;

    for (size_t i = 0; i < index && series[index].is_folded; i++) {
        if (wm_plot_is_shown(view, &series[i], side) &&
            is_of_group(&series[i], &series[index]))
            return true;
    }
    return false;
}

/* A member of the group, and its mean over what is seen. */
struct member {
    const struct wm_plot_series *series;
    double mean;
    bool is_outlier;
};

struct group {
    const struct wm_plot_panel_view *view;
    size_t side;
    struct wm_chart_column *columns;
    struct wm_chart_fold *folds;
    size_t column_count;
    struct member *members;
    size_t count, room;
    size_t devices; /* with those that have no values */
};

static void add_line(const struct group *group, const struct wm_plot_series *series)
{
    wm_plot_show(group->view, series, group->columns, group->column_count);
    wm_chart_fold_add(group->folds, group->columns, group->column_count);
}

static void clear_folds(const struct group *group)
{
    memset(group->folds, 0, group->column_count * sizeof(*group->folds));
}

static double mean_of(const struct group *group, const struct wm_plot_series *series)
{
    double sum = 0;
    size_t count = 0;

    clear_folds(group);
    add_line(group, series);
    for (size_t i = 0; i < group->column_count; i++) {
        sum += group->folds[i].sum;
        count += group->folds[i].count;
    }
    return count > 0 ? sum / (double)count : NAN;
}

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

static double median_of(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), by_value);
    return count == 0 ? 0 : (values[(count - 1) / 2] + values[count / 2]) / 2;
}

/* The median of the means, and how far away from it an outlier is at least. */
static bool find_middle(const struct group *group, double *ret_middle, double *ret_far)
{
    const struct wm_axis *axis = &group->view->axes[group->side];
    double *values = calloc(group->count, sizeof(*values));
    size_t count = 0;

    for (size_t i = 0; i < group->count && values; i++) {
        if (!isnan(group->members[i].mean))
            values[count++] = group->members[i].mean;
    }
    if (!values)
        return false;
    *ret_middle = median_of(values, count);
    for (size_t i = 0; i < count; i++)
        values[i] = fabs(values[i] - *ret_middle);
    *ret_far = fmax(OUTLIER_OF_AXIS * (axis->high - axis->low),
                    OUTLIER_SIGMA * median_of(values, count));
    free(values);
    return true;
}

/* The farthest ones, and few. */
static bool find_outliers(const struct group *group)
{
    double middle, far;

    if (!find_middle(group, &middle, &far))
        return false;
    for (size_t found = 0; found < OUTLIERS_MOST; found++) {
        struct member *farthest = NULL;
        for (size_t i = 0; i < group->count; i++) {
            struct member *member = &group->members[i];
            if (!member->is_outlier && fabs(member->mean - middle) > far &&
                (!farthest || fabs(member->mean - middle) > fabs(farthest->mean - middle)))
                farthest = member;
        }
        if (!farthest)
            break;
        farthest->is_outlier = true;
    }
    return true;
}

static double value_y(const struct group *group, double value)
{
    const struct wm_plot_box *box = &group->view->box;
    double y = wm_plot_place(&group->view->axes[group->side], value, box->bottom, box->top);

    return wm_plot_short(group->view->canvas, y);
}

static double cell_x(const struct group *group, size_t index)
{
    return wm_plot_short(group->view->canvas,
                         wm_plot_column_x(group->view, index, group->column_count));
}

/* How many of the devices have values, where some lack them. */
static void write_count(const struct group *group, size_t begin, size_t end)
{
    const struct wm_plot_canvas *canvas = group->view->canvas;
    const struct wm_plot_style style = { .size = NAME_TEXT,
                                         .colour = canvas->theme->ink,
                                         .has_halo = true };
    double left = cell_x(group, begin), room = cell_x(group, end - 1) - left;
    char text[32];

    snprintf(text, sizeof(text), "%zu of %zu", group->folds[begin].count, group->devices);
    if (wm_plot_text_width(canvas, NAME_TEXT, text) > room)
        return;
    double y = value_y(group, group->folds[begin].high);
    y += y - group->view->box.top > 24 ? -10 : 10;
    wm_plot_text(canvas, left + 2, y, &style, text);
}

/* One stretch in which members have values. */
static void draw_stretch(const struct group *group, size_t begin, size_t end)
{
    const struct wm_plot_series *series = group->members[0].series;
    cairo_t *cairo = group->view->canvas->cairo;

    for (size_t i = begin; i < end; i++)
        cairo_line_to(cairo, cell_x(group, i), value_y(group, group->folds[i].high));
    for (size_t i = end; i > begin; i--)
        cairo_line_to(cairo, cell_x(group, i - 1), value_y(group, group->folds[i - 1].low));
    cairo_close_path(cairo);
    wm_plot_colour(group->view->canvas, wm_chart_colour(series->colour),
                   WM_PLOT_BAND_ALPHA);
    cairo_fill(cairo);
    for (size_t i = begin; i < end; i++)
        cairo_line_to(cairo, cell_x(group, i),
                      value_y(group, wm_chart_fold_mean(&group->folds[i])));
    if (end - begin == 1)
        cairo_rel_line_to(cairo, POINT_WIDTH, 0);
    wm_plot_dash(group->view->canvas, series->dash);
    wm_plot_colour(group->view->canvas, wm_chart_colour(series->colour), 1);
    cairo_stroke(cairo);
}

/* Up to where the next column has another count. */
static size_t same_count(const struct group *group, size_t begin)
{
    size_t end = begin + 1;

    while (end < group->column_count &&
           group->folds[end].count == group->folds[begin].count)
        end++;
    return end;
}

static void draw_band(const struct group *group)
{
    size_t end;

    clear_folds(group);
    for (size_t i = 0; i < group->count; i++)
        add_line(group, group->members[i].series);
    wm_chart_fold_trim(group->folds, group->column_count);
    for (size_t i = 0; i < group->column_count; i = end + 1) {
        end = i;
        while (end < group->column_count && group->folds[end].count > 0)
            end++;
        if (end > i)
            draw_stretch(group, i, end);
    }
    for (size_t i = 0; i < group->column_count; i = end) {
        end = same_count(group, i);
        if (group->folds[i].count > 0 && group->folds[i].count < group->devices)
            write_count(group, i, end);
    }
}

static void draw_outlier(const struct group *group, const struct member *member)
{
    const struct wm_plot_panel_view *view = group->view;

    cairo_set_line_width(view->canvas->cairo, 0.9);
    wm_plot_line(view, member->series, group->side, group->columns, group->column_count);
    size_t end = wm_plot_end(group->columns, group->column_count);
    if (end > 0)
        wm_plot_name_end(view, cell_x(group, end - 1),
                         value_y(group, group->columns[end - 1].last),
                         member->series->channel.label);
}

int wm_plot_group(const struct wm_plot_panel_view *view, size_t first, size_t side,
                  struct wm_chart_column *columns, size_t count, struct wm_error *err)
{
    struct group group = { .view = view,
                           .side = side,
                           .columns = columns,
                           .column_count = count,
                           .folds = calloc(count, sizeof(*group.folds)) };
    bool has_memory = group.folds != NULL;

    for (size_t i = 0; i < view->data->series_count && has_memory; i++) {
        const struct wm_plot_series *series = &view->data->series[i];
        if (!wm_plot_is_shown(view, series, side) ||
            !is_of_kind(series, &view->data->series[first]))
            continue;
        group.devices += !series->has_values;
        if (!is_of_group(series, &view->data->series[first]))
            continue;
        group.devices++;
        has_memory = wm_array_reserve(&group.members, group.count, &group.room,
                                      sizeof(*group.members)) == 0;
        if (has_memory)
            group.members[group.count++] =
                (struct member) { series, mean_of(&group, series), false };
    }
    has_memory = has_memory && find_outliers(&group);
    if (has_memory)
        draw_band(&group);
    for (size_t i = 0; i < group.count && has_memory; i++) {
        if (group.members[i].is_outlier)
            draw_outlier(&group, &group.members[i]);
    }
    free(group.members);
    free(group.folds);
    return has_memory ? WM_OK : wm_fail_memory(err, "figure");
}
