/* SPDX-License-Identifier: Apache-2.0 */
/* compat_gpu_tracker_read_csv.c - reading gpu_tracker's tracking file in CSV. */
#include <string.h>

#include "base/base_clock.h"
#include "base/text/base_number.h"
#include "compat/gpu_tracker/compat_gpu_tracker_csv.h"
#include "compat/gpu_tracker/compat_gpu_tracker_read.h"

#define WHAT "a tracking file"

struct csv {
    struct wm_tracking_reader base;
    const char *path;
    struct wm_gpu_tracker_csv file;
    bool has_rows;
    struct wm_timepoint row;
    int64_t before_ns; /* the time of the row before */
};

/* Our own recordings begin with the same columns, but have a reader of their own. */
static bool csv_recognises(const char *head, size_t length)
{
    const char *end = memchr(head, '\n', length);
    size_t first = end ? (size_t)(end - head) : length;

    return memmem(head, first, "ram_unit", strlen("ram_unit")) != NULL;
}

static int next_row(struct csv *csv, const char *which, struct wm_error *err)
{
    int status = wm_cells_next(&csv->file.cells, err);

    if (status == 0 || csv->file.cells.ending != WM_CELLS_ENDED)
        return wm_fail(err, WM_EFORMAT, "%s: cut off in its %s line", csv->base.shown,
                       which);
    return status;
}

/* The first two rows. */
static int read_static(struct csv *csv, struct wm_error *err)
{
    const char *names[WM_STATIC_COLUMNS];
    struct wm_cell cells[WM_STATIC_COLUMNS];

    for (size_t i = 0; i < WM_STATIC_COLUMNS; i++)
        names[i] = wm_static_columns[i].name;
    int status = next_row(csv, "first", err);
    if (status > 0)
        status = wm_gpu_tracker_csv_header(&csv->file, names, WM_STATIC_COLUMNS, WHAT, err);
    if (status == WM_OK)
        status = next_row(csv, "second", err);
    if (status > 0)
        status = wm_gpu_tracker_csv_row(&csv->file, cells, err);
    for (size_t i = 0; i < WM_STATIC_COLUMNS && status > 0; i++) {
        if (!wm_tracking_reader_set(&csv->base, i, cells[i].text))
            return wm_gpu_tracker_csv_wrong(&csv->file, i, &cells[i], names[i], err);
    }
    return status < 0 ? status : WM_OK;
}

/* It is missing where no timepoint was written. */
static int read_header(struct csv *csv, struct wm_error *err)
{
    int status = wm_cells_next(&csv->file.cells, err);
    if (csv->file.cells.ending != WM_CELLS_ENDED)
        return wm_gpu_tracker_csv_counts(&csv->file, 0, false, &csv->base.head.remarks,
                                         err);
    if (status <= 0)
        return status;
    status = wm_gpu_tracker_csv_header(&csv->file, wm_timepoint_columns,
                                       WM_TIMEPOINT_COLUMNS, WHAT, err);
    csv->has_rows = status == WM_OK;
    return status;
}

static int read_row(struct csv *csv, struct wm_timepoint *ret_row, struct wm_error *err)
{
    struct wm_cell cells[WM_TIMEPOINT_COLUMNS];
    double seconds;

    int status = wm_gpu_tracker_csv_row(&csv->file, cells, err);
    if (status < 0)
        return status;
    ret_row->known = 0;
    for (size_t i = 0; i < WM_MEASUREMENT_COUNT; i++) {
        ret_row->values[i] = 0;
        if (cells[i].length == 0)
            continue;
        if (!wm_number_parse(cells[i].text, cells[i].length, &ret_row->values[i]))
            return wm_gpu_tracker_csv_wrong(&csv->file, i, &cells[i], "a number", err);
        ret_row->known |= UINT32_C(1) << i;
    }
    const struct wm_cell *time = &cells[WM_TIMESTAMP];
    if (!wm_number_parse(time->text, time->length, &seconds) ||
        !wm_clock_from_seconds(seconds, &ret_row->when_ns))
        return wm_gpu_tracker_csv_wrong(&csv->file, WM_TIMESTAMP, time,
                                        "a time in seconds since 1970", err);
    return 1;
}

static int csv_row(void *state, const struct wm_timepoint **ret_row, struct wm_error *err)
{
    struct csv *csv = state;

    if (!csv->has_rows)
        return 0;
    int status = wm_cells_next(&csv->file.cells, err);
    if (status == 0)
        return 0;
    if (status > 0)
        status = read_row(csv, &csv->row, err);
    bool is_later = status > 0 && csv->row.when_ns >= csv->before_ns;
    if (status > 0)
        csv->before_ns = csv->row.when_ns;
    *ret_row = &csv->row;
    return wm_gpu_tracker_csv_counts(&csv->file, status, is_later, &csv->base.head.remarks,
                                     err);
}

static int csv_again(void *state, struct wm_error *err)
{
    struct csv *csv = state;

    csv->before_ns = 0;
    wm_gpu_tracker_csv_close(&csv->file);
    int status = wm_cells_open(&csv->file.cells, csv->path, err);
    if (status == WM_OK)
        status = read_static(csv, err);
    return status < 0 ? status : read_header(csv, err);
}

static int csv_open(void *state, const char *path, size_t run, struct wm_error *err)
{
    struct csv *csv = state;

    csv->path = path;
    csv->base.row = csv_row;
    csv->base.again = csv_again;
    int status = wm_tracking_reader_init(&csv->base, path, run, err);
    return status < 0 ? status : csv_again(csv, err);
}

static void csv_close(void *state)
{
    struct csv *csv = state;

    wm_gpu_tracker_csv_close(&csv->file);
    wm_tracking_reader_release(&csv->base);
}

const struct wm_reader_ops wm_reader_gpu_tracker_csv = {
    .name = "gpu_tracker's CSV",
    .is_foreign = true,
    .recognises = csv_recognises,
    .state_size = sizeof(struct csv),
    .open = csv_open,
    .next = wm_tracking_reader_next,
    .close = csv_close,
};
