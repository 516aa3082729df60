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

/* What lies between a sample and the next one, which may be past the end. */
static void fill(struct wm_chart_fold *folds, const struct wm_chart_column *columns,
                 size_t from, size_t to, size_t count)
{
    bool is_joined = to < count && columns[to].is_joined;
    double growth = is_joined ? columns[to].first - columns[from].last : 0;

    for (size_t at = from + 1; at < to; at++) {
        double part = (double)(at - from) / (double)(to - from);
        wm_chart_fold_value(&folds[at], columns[from].last + part * growth);
        folds[at].held += !is_joined;
    }
}

/* Devices are read one after the other, so that a tick lies in several columns. */
void wm_chart_fold_add(struct wm_chart_fold *folds, const struct wm_chart_column *columns,
                       size_t count)
{
    size_t last = count; /* the last sample, if it has a value */
    bool is_first = true;

    for (size_t i = 0; i < count; i++) {
        const struct wm_chart_column *column = &columns[i];
        bool has_value = column->state == WM_READING_OK;
        if (!column->is_sampled)
            continue;
        for (size_t at = 0; at < i && is_first && has_value; at++) {
            wm_chart_fold_value(&folds[at], column->first);
            folds[at].held++;
        }
        if (last < count)
            fill(folds, columns, last, i, count);
        if (has_value)
            add(&folds[i], column->low, column->high);
        last = has_value ? i : count;
        is_first = false;
    }
    if (last < count)
        fill(folds, columns, last, count, count);
}

void wm_chart_fold_trim(struct wm_chart_fold *folds, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (folds[i].held == folds[i].count)
            folds[i] = (struct wm_chart_fold) { 0 };
    }
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
