/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view_fold.h - many lines as one: the mean and the range of their values in each column.
 *
 *     struct wm_chart_fold *folds = calloc(count, sizeof(*folds));
 *     for (size_t i = 0; i < line_count; i++) {
 *         wm_chart_line_show(&lines[i], from_ns, to_ns, columns, count);
 *         wm_chart_fold_add(folds, columns, count);
 *     }
 *     wm_chart_fold_trim(folds, count);
 *     wm_chart_fold_columns(folds, wm_chart_fold_mean, columns, count);
 */
#ifndef WM_VIEW_FOLD_H
#define WM_VIEW_FOLD_H

#include "view/chart/view_column.h"

/* A column of all lines. */
struct wm_chart_fold {
    size_t count; /* of the lines that have values */
    size_t held;  /* of these: lines that are not sampled here */
    double sum;   /* of the middles of their ranges */
    double low, high;
};

/* Adds a value of another line. */
void wm_chart_fold_value(struct wm_chart_fold *fold, double value);

/* Adds what the columns show of a line, and what lies between its samples. A line holds its
 * last value until its next sample, and its first value back to where it has no sample. */
void wm_chart_fold_add(struct wm_chart_fold *folds, const struct wm_chart_column *columns,
                       size_t count);

/* Drops the columns in which all lines hold a value, as past the last sample of all. */
void wm_chart_fold_trim(struct wm_chart_fold *folds, size_t count);

double wm_chart_fold_mean(const struct wm_chart_fold *fold);
double wm_chart_fold_low(const struct wm_chart_fold *fold);
double wm_chart_fold_high(const struct wm_chart_fold *fold);

/* One of these values as a line. */
void wm_chart_fold_columns(const struct wm_chart_fold *folds,
                           double (*value_of)(const struct wm_chart_fold *),
                           struct wm_chart_column *ret_columns, size_t count);

#endif
