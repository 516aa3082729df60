/* SPDX-License-Identifier: Apache-2.0 */
/* view_fold.c - many lines as one. */
#include "view/chart/view_fold.h"

#include <math.h>

static void add(struct wm_chart_fold *fold, double low, double high)
{
    fold->low = fold->count == 0 ? low : fmin(fold->low, low);
    fold->high = fold->count == 0 ? high : fmax(fold->high, high);
    fold->sum += (low + high) / 2;
    fold->count++;
}

void wm_chart_fold_value(struct wm_chart_fold *fold, double value)
{
    add(fold, value, value);
}

/* Devices are read one after the other, so that a tick may lie in two columns: a line goes
 * on for one column at its ends. */
static void extend(struct wm_chart_fold *folds, const struct wm_chart_column *columns,
                   size_t count, const struct wm_chart_column *first,
                   const struct wm_chart_column *last)
{
    if (first > columns && !first[-1].is_sampled)
        wm_chart_fold_value(&folds[first - columns - 1], first->first);
    if (last + 1 < columns + count && !last[1].is_sampled)
        wm_chart_fold_value(&folds[last - columns + 1], last->last);
}

void wm_chart_fold_add(struct wm_chart_fold *folds, const struct wm_chart_column *columns,
                       size_t count)
{
    const struct wm_chart_column *first = NULL, *last = NULL;

    for (size_t i = 0; i < count; i++) {
        const struct wm_chart_column *column = &columns[i];
        if (!column->is_sampled || column->state != WM_READING_OK)
            continue;
        for (const struct wm_chart_column *at = last;
             last && column->is_joined && ++at < column;) {
            double part = (double)(at - last) / (double)(column - last);
            double value = last->last + part * (column->first - last->last);
            wm_chart_fold_value(&folds[at - columns], value);
        }
        add(&folds[i], column->low, column->high);
        first = first ? first : column;
        last = column;
    }
    if (first)
        extend(folds, columns, count, first, last);
}

double wm_chart_fold_mean(const struct wm_chart_fold *fold)
{
    return fold->sum / (double)fold->count;
}

double wm_chart_fold_low(const struct wm_chart_fold *fold)
{
    return fold->low;
}

double wm_chart_fold_high(const struct wm_chart_fold *fold)
{
    return fold->high;
}

void wm_chart_fold_columns(const struct wm_chart_fold *folds,
                           double (*value_of)(const struct wm_chart_fold *),
                           struct wm_chart_column *ret_columns, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ret_columns[i] = (struct wm_chart_column) { 0 };
        if (folds[i].count == 0)
            continue;
        double value = value_of(&folds[i]);
        ret_columns[i] = (struct wm_chart_column) {
            .is_sampled = true,
            .is_joined = i > 0 && folds[i - 1].count > 0,
            .state = WM_READING_OK,
            .low = value,
            .high = value,
            .first = value,
            .last = value,
        };
    }
}
