/* SPDX-License-Identifier: Apache-2.0 */
/* compat_gpu_tracker_read.c - gpu_tracker's tracking file as a recording. */
#include "compat/gpu_tracker/compat_gpu_tracker_read.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_array.h"
#include "base/base_utf8.h"
#include "base/text/base_number.h"
#include "view/view_units.h"

/* More than a month of ticks a second; kept in memory they take 770 MB. */
#define SORTED_MAX 4000000

struct wm_tracking_row {
    struct wm_timepoint timepoint;
    size_t order; /* in the file */
};

int wm_tracking_reader_init(struct wm_tracking_reader *reader, const char *path, size_t run,
                            struct wm_error *err)
{
    size_t index;

    reader->head.run_count = 1;
    reader->head.static_data = &reader->static_data;
    reader->shown = wm_text_path(path);
    return wm_reader_choose_run(reader->shown, run, 1, &index, err);
}

void wm_tracking_reader_release(struct wm_tracking_reader *reader)
{
    wm_reader_head_release(&reader->head);
    free(reader->sorted);
}

static bool set_unit(char unit[16], bool is_time, const char *text)
{
    const struct wm_report_style style = { .ram_unit = is_time ? NULL : text,
                                           .time_unit = is_time ? text : NULL };
    struct wm_units units;

    if (wm_units_of_style(&style, &units, NULL) < 0)
        return false;
    memcpy(unit, text, strlen(text) + 1);
    return true;
}

/* gpu_tracker too cuts off what a number of cores has behind its point. */
static bool set_number(struct wm_known *number, bool is_count, const char *text)
{
    double value = 0;
    bool known = text[0] != '\0';

    if (known && (!wm_number_parse(text, strlen(text), &value) || value < 0 ||
                  (is_count && value > INT_MAX)))
        return false;
    *number = (struct wm_known) { known, is_count ? trunc(value) : value };
    return true;
}

bool wm_tracking_reader_set(struct wm_tracking_reader *reader, size_t column,
                            const char *text)
{
    enum wm_static_kind kind = wm_static_columns[column].kind;
    void *place = (char *)&reader->static_data + wm_static_columns[column].offset;

    if (kind == WM_STATIC_COUNT || kind == WM_STATIC_CAPACITY)
        return set_number(place, kind == WM_STATIC_COUNT, text);
    return set_unit(place, kind == WM_STATIC_TIME_UNIT, text);
}

static int compare_rows(const void *a, const void *b)
{
    const struct wm_tracking_row *left = a, *right = b;

    if (left->timepoint.when_ns != right->timepoint.when_ns)
        return left->timepoint.when_ns < right->timepoint.when_ns ? -1 : 1;
    return (left->order > right->order) - (left->order < right->order);
}

/* Begins anew, and takes all rows. */
static int take_all(struct wm_tracking_reader *reader, struct wm_error *err)
{
    const struct wm_timepoint *row;
    size_t room = 0;

    int status = reader->again(reader, err);
    while (status >= 0 && (status = reader->row(reader, &row, err)) > 0) {
        if (reader->count == SORTED_MAX)
            return wm_fail(err, WM_EFORMAT,
                           "%s: its clock was set back, and it has more rows than are "
                           "sorted, which is %d",
                           reader->shown, SORTED_MAX);
        if (wm_array_reserve(&reader->sorted, reader->count, &room,
                             sizeof(*reader->sorted)) < 0)
            return wm_fail_memory(err, reader->shown);
        reader->sorted[reader->count] = (struct wm_tracking_row) { *row, reader->count };
        reader->count++;
    }
    return status;
}

int wm_tracking_reader_next(void *state, struct wm_tick *ret_tick, struct wm_error *err)
{
    struct wm_tracking_reader *reader = state;
    const struct wm_timepoint *row;
    int status;

    if (reader->sorted) {
        status = reader->next < reader->count;
        row = &reader->sorted[status ? reader->next++ : 0].timepoint;
    } else {
        status = reader->row(state, &row, err);
    }
    if (status <= 0)
        return status;
    if (row->when_ns < reader->last_ns) {
        status = take_all(reader, err);
        if (status < 0)
            return status;
        qsort(reader->sorted, reader->count, sizeof(*reader->sorted), compare_rows);
        reader->last_ns = 0;
        return WM_TIMEPOINTS_ANEW;
    }
    reader->last_ns = row->when_ns;
    reader->head.timepoint = row;
    *ret_tick = (struct wm_tick) { .when_ns = row->when_ns };
    return 1;
}
