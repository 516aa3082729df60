/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view_column.h - a series of any length as the least and the greatest value of each column
 * of a chart, in one pass and in bounded memory: a value that was there for one sample is
 * seen however narrow the chart is.
 *
 *     struct wm_chart_line line;
 *     wm_chart_line_init(&line, 4096, 1000000, &err);
 *     wm_chart_line_add(&line, tick.when_ns, reading->state, reading->value);  each sample
 *     wm_chart_line_show(&line, from_ns, to_ns, columns, 80);
 *     wm_chart_line_release(&line);
 *
 * A line keeps fine columns, which become twice as long when there is no room for more, so
 * that a series that is still growing needs no end. To lose none of the places, it has
 * twice as many as the chart.
 */
#ifndef WM_VIEW_COLUMN_H
#define WM_VIEW_COLUMN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base_error.h"
#include "wattmeter/source.h"

struct wm_chart_column {
    bool is_sampled; /* false: there was no sample, and the rest is zero */
    bool is_joined; /* all samples since the last column with values had one, so a line goes
                     * on from there; false in the first such column */
    enum wm_reading_state state; /* WM_READING_OK: there are values; otherwise why the last
                                  * sample had none */
    double low, high;            /* of the values */
    double first, last;
};

struct wm_chart_line {
    struct wm_chart_column *columns;
    size_t room, begin, end; /* those in use are [begin..end) */
    int64_t start_ns;        /* where columns[begin] begins */
    uint64_t step_ns;        /* how long each is; a line over all time has room for two */
    bool is_broken;          /* the last sample had no value, or there was none */
};

/* Room for so many columns, 2 at least, that are `step_ns` long as yet. */
int wm_chart_line_init(struct wm_chart_line *line, size_t room, int64_t step_ns,
                       struct wm_error *err);

/* Accepts one that is all zero. */
void wm_chart_line_release(struct wm_chart_line *line);

/* The next sample. One that is earlier than the last counts as if it were at the same time,
 * and what is no number as one that failed. */
void wm_chart_line_add(struct wm_chart_line *line, int64_t when_ns,
                       enum wm_reading_state state, double value);

/* Drops the columns that end before that moment, of a window that moves. */
void wm_chart_line_forget(struct wm_chart_line *line, int64_t before_ns);

/* The least and the greatest value between two moments, with those of the columns that they
 * lie in; false where there is none. */
bool wm_chart_line_range(const struct wm_chart_line *line, int64_t from_ns, int64_t to_ns,
                         double *ret_least, double *ret_greatest);

/* What each of `count` columns shows that are equally long and cover from_ns to to_ns,
 * which is later. */
void wm_chart_line_show(const struct wm_chart_line *line, int64_t from_ns, int64_t to_ns,
                        struct wm_chart_column *ret_columns, size_t count);

#endif
