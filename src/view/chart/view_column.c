/* SPDX-License-Identifier: Apache-2.0 */
/* view_column.c - a series as the least and the greatest value of each column. */
#include "view/chart/view_column.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int wm_chart_line_init(struct wm_chart_line *line, size_t room, int64_t step_ns,
                       struct wm_error *err)
{
    *line = (struct wm_chart_line) { .room = room,
                                     .step_ns = (uint64_t)step_ns,
                                     .is_broken = true };
    line->columns = calloc(room, sizeof(*line->columns));
    return line->columns ? WM_OK : wm_fail_memory(err, "chart");
}

void wm_chart_line_release(struct wm_chart_line *line)
{
    free(line->columns);
    *line = (struct wm_chart_line) { 0 };
}

/* `later` comes right after `column`, and becomes a part of it. */
static void merge(struct wm_chart_column *column, const struct wm_chart_column *later)
{
    bool has_values = column->is_sampled && column->state == WM_READING_OK;

    if (!later->is_sampled)
        return;
    if (later->state != WM_READING_OK) {
        if (!has_values) {
            column->state = later->state;
            column->is_sampled = true;
        }
    } else if (!has_values) {
        *column = *later;
    } else {
        column->low = fmin(column->low, later->low);
        column->high = fmax(column->high, later->high);
        column->last = later->last;
    }
}

/* Distances may be longer than an int64_t has room for. */
static uint64_t distance(int64_t from_ns, int64_t to_ns)
{
    return to_ns > from_ns ? (uint64_t)to_ns - (uint64_t)from_ns : 0;
}

static int64_t later_by(int64_t ns, uint64_t more_ns)
{
    return more_ns > distance(ns, INT64_MAX) ? INT64_MAX
                                             : (int64_t)((uint64_t)ns + more_ns);
}

static void move_to_front(struct wm_chart_line *line)
{
    size_t count = line->end - line->begin;

    memmove(line->columns, line->columns + line->begin, count * sizeof(*line->columns));
    memset(line->columns + count, 0, line->begin * sizeof(*line->columns));
    line->begin = 0;
    line->end = count;
}

static void fold(struct wm_chart_line *line)
{
    size_t half = (line->end + 1) / 2;

    for (size_t i = 0; i < half; i++) {
        struct wm_chart_column column = line->columns[2 * i];
        if (2 * i + 1 < line->end)
            merge(&column, &line->columns[2 * i + 1]);
        line->columns[i] = column;
    }
    memset(line->columns + half, 0, (line->end - half) * sizeof(*line->columns));
    line->end = half;
    line->step_ns *= 2;
}

/* The column of that moment. */
static struct wm_chart_column *find(struct wm_chart_line *line, int64_t when_ns)
{
    if (line->begin == line->end) {
        line->start_ns = when_ns;
        line->begin = line->end = 0;
    }
    uint64_t index = distance(line->start_ns, when_ns) / line->step_ns;
    if (index >= line->room - line->begin && line->begin > 0)
        move_to_front(line);
    while (index >= line->room) {
        fold(line);
        index = distance(line->start_ns, when_ns) / line->step_ns;
    }
    size_t last = line->end > line->begin ? line->end - 1 : line->begin;
    size_t place = line->begin + (size_t)index;
    if (place < last)
        place = last;
    line->end = place + 1;
    return &line->columns[place];
}

void wm_chart_line_add(struct wm_chart_line *line, int64_t when_ns,
                       enum wm_reading_state state, double value)
{
    bool has_value = state == WM_READING_OK && isfinite(value);
    struct wm_chart_column sample = { .is_sampled = true, .state = state };

    if (has_value) {
        sample.low = sample.high = sample.first = sample.last = value;
        sample.is_joined = !line->is_broken;
    } else if (state == WM_READING_OK) {
        sample.state = WM_READING_FAILED;
    }
    merge(find(line, when_ns), &sample);
    line->is_broken = !has_value;
}

void wm_chart_line_forget(struct wm_chart_line *line, int64_t before_ns)
{
    uint64_t count = distance(line->start_ns, before_ns) / line->step_ns;
    size_t used = line->end - line->begin;
    size_t gone = count < used ? (size_t)count : used;

    memset(line->columns + line->begin, 0, gone * sizeof(*line->columns));
    line->begin += gone;
    line->start_ns = later_by(line->start_ns, gone * line->step_ns);
}

/* Which columns lie between two moments, from *ret_first on. */
static size_t between(const struct wm_chart_line *line, int64_t from_ns, int64_t to_ns,
                      size_t *ret_first)
{
    uint64_t step = line->step_ns;
    uint64_t used = line->end - line->begin;
    uint64_t first = distance(line->start_ns, from_ns) / step;
    uint64_t end = to_ns < line->start_ns ? 0 : distance(line->start_ns, to_ns) / step + 1;

    if (end > used)
        end = used;
    *ret_first = line->begin + (size_t)first;
    return first < end ? (size_t)(end - first) : 0;
}

bool wm_chart_line_range(const struct wm_chart_line *line, int64_t from_ns, int64_t to_ns,
                         double *ret_least, double *ret_greatest)
{
    double least = INFINITY, greatest = -INFINITY;
    size_t first, count = between(line, from_ns, to_ns, &first);

    for (size_t i = first; i < first + count; i++) {
        const struct wm_chart_column *column = &line->columns[i];
        if (!column->is_sampled || column->state != WM_READING_OK)
            continue;
        least = fmin(least, column->low);
        greatest = fmax(greatest, column->high);
    }
    if (least > greatest)
        return false;
    *ret_least = least;
    *ret_greatest = greatest;
    return true;
}

void wm_chart_line_show(const struct wm_chart_line *line, int64_t from_ns, int64_t to_ns,
                        struct wm_chart_column *ret_columns, size_t count)
{
    double per_ns = (double)count / (double)distance(from_ns, to_ns);
    size_t first, found = between(line, from_ns, to_ns, &first);
    bool is_first = true;

    memset(ret_columns, 0, count * sizeof(*ret_columns));
    for (size_t i = first; i < first + found; i++) {
        struct wm_chart_column column = line->columns[i];
        uint64_t offset = (i - line->begin) * line->step_ns;
        /* What is longer than a column of the chart stands where it begins. */
        double at = (double)distance(from_ns, later_by(line->start_ns, offset)) * per_ns;
        size_t place = at < (double)count ? (size_t)at : count - 1;
        if (column.is_sampled && column.state == WM_READING_OK) {
            column.is_joined = column.is_joined && !is_first;
            is_first = false;
        }
        merge(&ret_columns[place], &column);
    }
}
