/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat_sub_tracking_read.c - the calls in sub-tracking files, several read as one.
 *
 * All that a row says is that a block of this name was entered or left in that process. So
 * the rows of each process and name are taken in the order of time, those of the same time
 * in the order of the files, and a stop ends the latest call that is open: right for calls
 * that follow each other and for such as nest. Which thread they are of is not in the
 * file: where threads of one process run the same block at the same time, starts, stops
 * and the sum of the calls' times are right, but not which stop ends which call.
 *
 * Calls are kept in memory, 32 bytes each, and so are the rows that they are made of until
 * then.
 */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_array.h"
#include "base/base_clock.h"
#include "base/base_utf8.h"
#include "base/text/base_names.h"
#include "compat/gpu_tracker/compat_sub_tracking.h"
#include "record/record_ops.h"

/* Calls in a batch. */
enum { CALLS_AT_ONCE = 4096 };

/* The rows of a process and a name. A row is its time, with a minus (also before a zero)
 * where it is a stop. */
struct series {
    const char *name;
    uint32_t path; /* the number of the name */
    int64_t process;
    bool is_disordered; /* an earlier time came after a later one */
    double *rows;
    size_t count, room;
};

struct paired_call {
    double start, stop; /* s since 1970 */
    const struct series *series;
    bool is_open; /* it has no stop */
};

struct calls {
    struct wm_reader_head head;
    struct wm_names names;
    struct wm_map numbers; /* from name and process to the series */
    struct series *series;
    size_t series_count, series_room;
    size_t last;   /* the series of the row before */
    size_t starts; /* rows that are */

    struct paired_call *calls; /* by their starts; NULL before the first is asked for */
    size_t call_count, next;
    struct wm_regions_part batch;
    double seconds[CALLS_AT_ONCE]; /* of the calls in it */
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

static bool is_of(const struct series *series, int64_t process, const char *name)
{
    return series->process == process && strcmp(series->name, name) == 0;
}

/* The number of the series, which is made where there is none. */
static int find_series(struct calls *calls, int64_t process, const char *name,
                       size_t *ret_index)
{
    uint32_t known = wm_names_add(&calls->names, name);
    if (known == WM_MAP_NONE)
        return WM_ENOMEM;
    uint32_t found = wm_map_find(&calls->numbers, known, (uint64_t)process);
    if (found == WM_MAP_NONE) {
        if (calls->series_count == WM_MAP_NONE || wm_map_reserve(&calls->numbers) < 0 ||
            wm_array_reserve(&calls->series, calls->series_count, &calls->series_room,
                             sizeof(*calls->series)) < 0)
            return WM_ENOMEM;
        found = (uint32_t)calls->series_count++;
        calls->series[found] = (struct series) {
            .name = calls->names.texts[known],
            .path = known,
            .process = process,
        };
        wm_map_put(&calls->numbers, known, (uint64_t)process, found);
    }
    *ret_index = found;
    return WM_OK;
}

static int add_row(struct calls *calls, int64_t process, const char *name, bool is_stop,
                   double seconds)
{
    if (calls->series_count == 0 || !is_of(&calls->series[calls->last], process, name)) {
        if (find_series(calls, process, name, &calls->last) < 0)
            return WM_ENOMEM;
    }
    struct series *series = &calls->series[calls->last];
    if (wm_array_reserve(&series->rows, series->count, &series->room,
                         sizeof(*series->rows)) < 0)
        return WM_ENOMEM;
    if (series->count > 0 && seconds < fabs(series->rows[series->count - 1]))
        series->is_disordered = true;
    series->rows[series->count++] = copysign(seconds, is_stop ? -1 : 1);
    calls->starts += !is_stop;
    return WM_OK;
}

static int compare_rows(const void *a, const void *b)
{
    const struct ordered_row *left = a, *right = b;

    if (fabs(left->row) != fabs(right->row))
        return fabs(left->row) < fabs(right->row) ? -1 : 1;
    return (left->order > right->order) - (left->order < right->order);
}

static int sort_rows(struct series *series)
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

static void end_call(struct paired_call *call, double when)
{
    call->stop = when;
    call->is_open = false;
}

/* A stop before any start waits for one of the same time: together they are a call that
 * took no time, put down the wrong way round. */
static int pair_series(struct calls *calls, const struct series *series,
                       struct stack *stack)
{
    uint64_t early = 0;
    double last = -1;

    stack->count = 0;
    for (size_t i = 0; i < series->count; i++) {
        double when = fabs(series->rows[i]);
        if (when != last) {
            calls->head.result.stray_regions += early;
            early = 0;
            last = when;
        }
        if (signbit(series->rows[i])) {
            if (stack->count > 0)
                end_call(&calls->calls[stack->calls[--stack->count]], when);
            else
                early++;
            continue;
        }
        struct paired_call *call = &calls->calls[calls->call_count++];
        *call = (struct paired_call) {
            .start = when,
            .series = series,
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
        stack->calls[stack->count++] = calls->call_count - 1;
    }
    calls->head.result.stray_regions += early;
    return WM_OK;
}

/* Of equal starts the longest first. */
static int compare_calls(const void *a, const void *b)
{
    const struct paired_call *left = a, *right = b;

    if (left->start != right->start)
        return left->start < right->start ? -1 : 1;
    if (left->is_open != right->is_open)
        return left->is_open ? -1 : 1;
    if (left->stop != right->stop)
        return left->stop > right->stop ? -1 : 1;
    if (left->series->process != right->series->process)
        return left->series->process < right->series->process ? -1 : 1;
    return strcmp(left->series->name, right->series->name);
}

/* When all rows are there: makes the calls of them. WM_ENOMEM. */
static int pair(struct calls *calls)
{
    struct stack stack = { 0 };
    int status = WM_OK;

    calls->calls = calloc(calls->starts + 1, sizeof(*calls->calls));
    if (!calls->calls)
        return WM_ENOMEM;
    for (size_t i = 0; i < calls->series_count && status == WM_OK; i++) {
        struct series *series = &calls->series[i];
        status = sort_rows(series);
        if (status == WM_OK)
            status = pair_series(calls, series, &stack);
        free(series->rows);
        series->rows = NULL;
        series->count = 0;
    }
    free(stack.calls);
    if (status == WM_OK && calls->call_count > 0)
        qsort(calls->calls, calls->call_count, sizeof(*calls->calls), compare_calls);
    return status;
}

static int calls_add(void *state, const char *path, struct wm_error *err)
{
    struct calls *calls = state;
    struct wm_sub_tracking file;
    struct wm_sub_row row;

    int status = wm_sub_tracking_open(&file, path, err);
    while (status >= 0 && (status = wm_sub_tracking_next(&file, &row, err)) > 0) {
        if (add_row(calls, row.process, row.name, row.is_stop, row.seconds) < 0)
            status = wm_fail_memory(err, wm_text_path(path));
    }
    for (size_t i = 0; i < file.remarks.count && status == WM_OK; i++) {
        if (wm_remarks_add(&calls->head.remarks, "%s", file.remarks.all[i]) < 0)
            status = wm_fail_memory(err, wm_text_path(path));
    }
    wm_sub_tracking_close(&file);
    return status;
}

static int calls_open(void *state, const char *path, size_t run, struct wm_error *err)
{
    struct calls *calls = state;

    (void)run;
    calls->head.run_count = 1;
    calls->head.result = (struct wm_result) { 0 };
    calls->head.has_result = true;
    return calls_add(state, path, err);
}

/* There are none in these files. */
static int calls_next(void *state, struct wm_tick *ret_tick, struct wm_error *err)
{
    (void)state, (void)ret_tick, (void)err;
    return 0;
}

/* A name is a path, and each series a thread. */
static int begin(struct calls *calls)
{
    int status = pair(calls);

    for (size_t i = 0; i < calls->names.count && status == WM_OK; i++)
        status = wm_regions_part_add_path(
            &calls->batch, &(const struct wm_region_path) { .name = calls->names.texts[i],
                                                            .parent = WM_REGION_NO_PATH });
    for (size_t i = 0; i < calls->series_count && status == WM_OK; i++) {
        int64_t process = calls->series[i].process;
        status = wm_regions_part_add_thread(
            &calls->batch,
            (struct wm_region_thread) { .pid = process <= INT_MAX ? (pid_t)process : 0 });
    }
    return status;
}

static int take_call(struct calls *calls, const struct paired_call *call)
{
    struct wm_region_record record = {
        .stop_ns = WM_CALL_NEVER_STOPS,
        .path = call->series->path,
        .thread = (uint32_t)(call->series - calls->series),
        .is_open = call->is_open,
    };

    calls->seconds[calls->batch.call_count] = call->is_open ? 0 : call->stop - call->start;
    wm_clock_from_seconds(call->start, &record.start_ns);
    if (!call->is_open)
        wm_clock_from_seconds(call->stop, &record.stop_ns);
    return wm_regions_part_add_call(&calls->batch, &record, NULL);
}

static int calls_calls(void *state, struct wm_region_batch *ret_batch, struct wm_error *err)
{
    struct calls *calls = state;
    int status = WM_OK;

    if (calls->calls)
        wm_regions_part_next(&calls->batch);
    else
        status = begin(calls);
    while (status == WM_OK && calls->next < calls->call_count &&
           calls->batch.call_count < CALLS_AT_ONCE)
        status = take_call(calls, &calls->calls[calls->next++]);
    if (status < 0)
        return wm_fail_memory(err, NULL);
    *ret_batch = wm_regions_part_batch(&calls->batch);
    ret_batch->seconds = calls->seconds;
    return !wm_regions_part_is_empty(&calls->batch);
}

static void calls_close(void *state)
{
    struct calls *calls = state;

    for (size_t i = 0; i < calls->series_count; i++)
        free(calls->series[i].rows);
    free(calls->series);
    wm_map_release(&calls->numbers);
    wm_names_release(&calls->names);
    free(calls->calls);
    wm_regions_part_release(&calls->batch);
    wm_reader_head_release(&calls->head);
}

const struct wm_reader_ops wm_reader_sub_tracking = {
    .name = "gpu_tracker's sub-tracking",
    .is_foreign = true,
    .state_size = sizeof(struct calls),
    .open = calls_open,
    .add = calls_add,
    .next = calls_next,
    .calls = calls_calls,
    .close = calls_close,
};
