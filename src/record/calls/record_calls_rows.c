/* SPDX-License-Identifier: Apache-2.0 */
/* record_calls_rows.c - calls out of the rows of sub-tracking files. */
#include "record/calls/record_calls_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_array.h"

/* A row is its time, with a minus (also before a zero) where it is a stop. */
struct wm_call_series {
    const char *name;
    int64_t process;
    bool is_disordered; /* an earlier time came after a later one */
    double *rows;
    size_t count, room;
};

struct ordered_row {
    double row;
    size_t order;
};

/* The calls of a series that are open, innermost last, by their numbers. */
struct stack {
    size_t *calls;
    size_t count, room;
};

void wm_call_rows_release(struct wm_call_rows *rows)
{
    for (size_t i = 0; i < rows->series_count; i++)
        free(rows->series[i].rows);
    free(rows->series);
    wm_map_release(&rows->numbers);
    wm_names_release(&rows->names);
    free(rows->calls);
    *rows = (struct wm_call_rows) { 0 };
}

static bool is_of(const struct wm_call_series *series, int64_t process, const char *name)
{
    return series->process == process && strcmp(series->name, name) == 0;
}

/* The number of the series, which is made where there is none. */
static int find_series(struct wm_call_rows *rows, int64_t process, const char *name,
                       size_t *ret_index)
{
    uint32_t known = wm_names_add(&rows->names, name);
    if (known == WM_MAP_NONE)
        return WM_ENOMEM;
    uint32_t found = wm_map_find(&rows->numbers, known, (uint64_t)process);
    if (found == WM_MAP_NONE) {
        if (rows->series_count == WM_MAP_NONE || wm_map_reserve(&rows->numbers) < 0 ||
            wm_array_reserve(&rows->series, rows->series_count, &rows->series_room,
                             sizeof(*rows->series)) < 0)
            return WM_ENOMEM;
        found = (uint32_t)rows->series_count++;
        rows->series[found] = (struct wm_call_series) {
            .name = rows->names.texts[known],
            .process = process,
        };
        wm_map_put(&rows->numbers, known, (uint64_t)process, found);
    }
    *ret_index = found;
    return WM_OK;
}

int wm_call_rows_add(struct wm_call_rows *rows, int64_t process, const char *name,
                     bool is_stop, double seconds)
{
    if (rows->series_count == 0 || !is_of(&rows->series[rows->last], process, name)) {
        if (find_series(rows, process, name, &rows->last) < 0)
            return WM_ENOMEM;
    }
    struct wm_call_series *series = &rows->series[rows->last];
    if (wm_array_reserve(&series->rows, series->count, &series->room,
                         sizeof(*series->rows)) < 0)
        return WM_ENOMEM;
    if (series->count > 0 && seconds < fabs(series->rows[series->count - 1]))
        series->is_disordered = true;
    series->rows[series->count++] = copysign(seconds, is_stop ? -1 : 1);
    rows->starts += !is_stop;
    return WM_OK;
}

static int compare_rows(const void *a, const void *b)
{
    const struct ordered_row *left = a, *right = b;

    if (fabs(left->row) != fabs(right->row))
        return fabs(left->row) < fabs(right->row) ? -1 : 1;
    return (left->order > right->order) - (left->order < right->order);
}

static int sort_rows(struct wm_call_series *series)
{
    if (!series->is_disordered)
        return WM_OK;
    struct ordered_row *ordered = calloc(series->count, sizeof(*ordered));
    if (!ordered)
        return WM_ENOMEM;
    for (size_t i = 0; i < series->count; i++)
        ordered[i] = (struct ordered_row) { series->rows[i], i };
    qsort(ordered, series->count, sizeof(*ordered), compare_rows);
    for (size_t i = 0; i < series->count; i++)
        series->rows[i] = ordered[i].row;
    free(ordered);
    return WM_OK;
}

static void end_call(struct wm_paired_call *call, double when)
{
    call->stop = when;
    call->is_open = false;
}

/* A stop before any start waits for one of the same time: together they are a call that
 * took no time, put down the wrong way round. */
static int pair_series(struct wm_call_rows *rows, const struct wm_call_series *series,
                       struct stack *stack)
{
    uint64_t early = 0;
    double last = -1;

    stack->count = 0;
    for (size_t i = 0; i < series->count; i++) {
        double when = fabs(series->rows[i]);
        if (when != last) {
            rows->stray += early;
            early = 0;
            last = when;
        }
        if (signbit(series->rows[i])) {
            if (stack->count > 0)
                end_call(&rows->calls[stack->calls[--stack->count]], when);
            else
                early++;
            continue;
        }
        struct wm_paired_call *call = &rows->calls[rows->call_count++];
        *call = (struct wm_paired_call) {
            .start = when,
            .name = series->name,
            .process = series->process,
            .is_open = true,
        };
        if (early > 0) {
            early--;
            end_call(call, when);
            continue;
        }
        if (wm_array_reserve(&stack->calls, stack->count, &stack->room,
                             sizeof(*stack->calls)) < 0)
            return WM_ENOMEM;
        stack->calls[stack->count++] = rows->call_count - 1;
    }
    rows->stray += early;
    return WM_OK;
}

static int compare_calls(const void *a, const void *b)
{
    const struct wm_paired_call *left = a, *right = b;

    if (left->start != right->start)
        return left->start < right->start ? -1 : 1;
    if (left->is_open != right->is_open)
        return left->is_open ? -1 : 1;
    if (left->stop != right->stop)
        return left->stop > right->stop ? -1 : 1;
    if (left->process != right->process)
        return left->process < right->process ? -1 : 1;
    return strcmp(left->name, right->name);
}

int wm_call_rows_pair(struct wm_call_rows *rows)
{
    struct stack stack = { 0 };
    int status = WM_OK;

    rows->calls = calloc(rows->starts + 1, sizeof(*rows->calls));
    if (!rows->calls)
        return WM_ENOMEM;
    for (size_t i = 0; i < rows->series_count && status == WM_OK; i++) {
        struct wm_call_series *series = &rows->series[i];
        status = sort_rows(series);
        if (status == WM_OK)
            status = pair_series(rows, series, &stack);
        free(series->rows);
        series->rows = NULL;
        series->count = 0;
    }
    free(stack.calls);
    if (status == WM_OK && rows->call_count > 0)
        qsort(rows->calls, rows->call_count, sizeof(*rows->calls), compare_calls);
    return status;
}
