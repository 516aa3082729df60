/* SPDX-License-Identifier: Apache-2.0 */
/* compat_gpu_tracker_csv.c - gpu_tracker's tracking file as CSV, as Python's csv module
 * writes it. Its lines are only ever appended. */

#include "base/text/base_number.h"
#include "base/text/base_out.h"
#include "compat/gpu_tracker/compat_gpu_tracker.h"
#include "record/record_ops.h"

struct csv {
    struct wm_gpu_tracker tracker;
    struct wm_out out;
};

static const char *csv_path(const char *target)
{
    return wm_gpu_tracker_path(target, ".csv");
}

static int csv_open(void *state, const char *target, const struct wm_run *run,
                    const struct wm_channel *channels, size_t count, struct wm_error *err)
{
    struct csv *csv = state;

    int status = wm_gpu_tracker_init(&csv->tracker, target, run, channels, count, err);
    return status < 0 ? status : wm_out_open(&csv->out, csv_path(target), err);
}

static void put_cell(struct wm_out *out, const struct wm_gpu_tracker_cell *cell)
{
    char text[WM_NUMBER_SIZE];

    if (cell->text) {
        wm_out_text(out, cell->text);
        return;
    }
    if (cell->is_count)
        wm_number_format(cell->number, text);
    else
        wm_number_format_float(cell->number, text);
    wm_out_text(out, text);
}

static void put_static(struct csv *csv)
{
    for (int i = 0; i < WM_STATIC_COUNT; i++) {
        wm_out_text(&csv->out, i > 0 ? "," : "");
        wm_out_text(&csv->out, wm_static_names[i]);
    }
    wm_out_text(&csv->out, "\r\n");
    for (int i = 0; i < WM_STATIC_COUNT; i++) {
        const struct wm_gpu_tracker_cell cell = wm_gpu_tracker_static(&csv->tracker, i);
        wm_out_text(&csv->out, i > 0 ? "," : "");
        put_cell(&csv->out, &cell);
    }
    wm_out_text(&csv->out, "\r\n");
}

static void put_header(struct wm_out *out)
{
    const char *names[WM_TIMEPOINT_COLUMNS];

    wm_timepoint_columns(names);
    for (int i = 0; i < WM_TIMEPOINT_COLUMNS; i++) {
        wm_out_text(out, i > 0 ? "," : "");
        wm_out_text(out, names[i]);
    }
    wm_out_text(out, "\r\n");
}

static void put_tick(struct csv *csv, const struct wm_tick *tick)
{
    struct wm_gpu_tracker_cell row[WM_TIMEPOINT_COLUMNS];

    bool has_header = csv->tracker.has_rows;
    if (!wm_gpu_tracker_row(&csv->tracker, tick, row))
        return;
    if (!has_header) /* it comes with the first of them */
        put_header(&csv->out);
    for (int i = 0; i < WM_TIMEPOINT_COLUMNS; i++) {
        wm_out_text(&csv->out, i > 0 ? "," : "");
        put_cell(&csv->out, &row[i]);
    }
    wm_out_text(&csv->out, "\r\n");
}

static int csv_write(void *state, const struct wm_tick *ticks, size_t count,
                     struct wm_error *err)
{
    struct csv *csv = state;

    if (count == 0)
        return WM_OK;
    wm_gpu_tracker_begin(&csv->tracker, &ticks[0]);
    if (!csv->tracker.has_static)
        put_static(csv);
    for (size_t i = 0; i < count; i++)
        put_tick(csv, &ticks[i]);
    int status = wm_out_flush(&csv->out, err);
    if (status < 0) {
        wm_gpu_tracker_take_back(&csv->tracker);
        return status;
    }
    csv->tracker.has_static = true;
    return WM_OK;
}

/* The cells of a value that is missing are empty; why has no place here. */
static int csv_gap(void *state, const struct wm_gap *gap, struct wm_error *err)
{
    (void)state, (void)gap, (void)err;
    return WM_OK;
}

static int csv_finish(void *state, const struct wm_result *result, struct wm_error *err)
{
    struct csv *csv = state;

    (void)result;
    return wm_out_sync(&csv->out, err);
}

static void csv_close(void *state)
{
    struct csv *csv = state;

    wm_out_close(&csv->out);
    wm_gpu_tracker_release(&csv->tracker);
}

const struct wm_recorder_ops wm_recorder_gpu_tracker_csv = {
    .name = "gpu_tracker's CSV",
    .path_in = csv_path,
    .survives_kill = true,
    .state_size = sizeof(struct csv),
    .open = csv_open,
    .write = csv_write,
    .gap = csv_gap,
    .finish = csv_finish,
    .close = csv_close,
};
