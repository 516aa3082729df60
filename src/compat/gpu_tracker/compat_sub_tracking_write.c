/* SPDX-License-Identifier: Apache-2.0 */
/* compat_sub_tracking_write.c - writing gpu_tracker's sub-tracking file. */
#include "compat/gpu_tracker/compat_sub_tracking_write.h"

#include <string.h>

#include "base/base_text.h"
#include "base/base_utf8.h"
#include "compat/gpu_tracker/compat_gpu_tracker_file.h"
#include "record/sql/record_sql.h"

static int csv_open(void *state, const char *path, const struct wm_run *run,
                    const struct wm_channel *channels, size_t count, struct wm_error *err)
{
    (void)run, (void)channels, (void)count;
    return wm_gpu_tracker_file_open(state, path, false, err);
}

/* Nobody else sees the draft, so it needs no journal. */
static int sqlite_open(void *state, const char *path, const struct wm_run *run,
                       const struct wm_channel *channels, size_t count,
                       struct wm_error *err)
{
    struct wm_gpu_tracker_file *file = state;

    (void)run, (void)channels, (void)count;
    int status = wm_gpu_tracker_file_open(file, path, true, err);
    return status < 0 ? status
                      : wm_sql_exec(file->db, "PRAGMA journal_mode = OFF", file->path, err);
}

static void close_file(void *state)
{
    wm_gpu_tracker_file_close(state);
}

/* Its rows are no ticks, so what else a recorder has is missing. */
static const struct wm_recorder_ops csv_ops = {
    .name = "sub-tracking",
    .state_size = sizeof(struct wm_gpu_tracker_file),
    .open = csv_open,
    .close = close_file,
};

static const struct wm_recorder_ops sqlite_ops = {
    .name = "sub-tracking",
    .state_size = sizeof(struct wm_gpu_tracker_file),
    .open = sqlite_open,
    .close = close_file,
};

const char *wm_sub_target_suffix(const char *path, struct wm_error *err)
{
    if (wm_text_ends(path, ".csv"))
        return ".csv";
    if (wm_text_ends(path, ".sqlite"))
        return ".sqlite";
    wm_fail(err, WM_EINVAL, "%s: a sub-tracking file ends in .csv or .sqlite",
            wm_text_path(path));
    return NULL;
}

/* The values of a row; one that was read keeps its cells in a CSV file. */
static void fill(const struct wm_gpu_tracker_file *file, const struct wm_sub_row *row,
                 struct wm_gpu_tracker_cell ret_cells[WM_SUB_COLUMNS])
{
    ret_cells[WM_SUB_PROCESS] =
        (struct wm_gpu_tracker_cell) { .number = { true, (double)row->process },
                                       .is_count = true };
    ret_cells[WM_SUB_NAME] = (struct wm_gpu_tracker_cell) { .text = row->name };
    ret_cells[WM_SUB_POSITION] =
        (struct wm_gpu_tracker_cell) { .number = { true, row->is_stop }, .is_count = true };
    ret_cells[WM_SUB_TIMESTAMP] =
        (struct wm_gpu_tracker_cell) { .number = { true, row->seconds } };
    for (int i = 0; i < WM_SUB_COLUMNS && !file->db; i++) {
        if (row->cells[i].text)
            ret_cells[i].text = row->cells[i].text;
    }
}

/* The table with its names, and with the types of any row. */
static int begin(struct wm_gpu_tracker_file *file, struct wm_error *err)
{
    const struct wm_sub_row row = { .name = "" };
    struct wm_gpu_tracker_cell cells[WM_SUB_COLUMNS];

    fill(file, &row, cells);
    int status = wm_gpu_tracker_file_begin(file, err);
    return status < 0 ? status
                      : wm_gpu_tracker_file_table(file, "data", wm_sub_names, cells,
                                                  WM_SUB_COLUMNS, err);
}

int wm_sub_target_open(struct wm_target *ret_target, const char *path,
                       enum wm_record_mode mode, const char *line_end, struct wm_error *err)
{
    const char *suffix = wm_sub_target_suffix(path, err);

    if (!suffix)
        return WM_EINVAL;
    int status = wm_target_open_draft(ret_target,
                                      strcmp(suffix, ".csv") == 0 ? &csv_ops : &sqlite_ops,
                                      path, mode, NULL, NULL, 0, err);
    if (status < 0)
        return status;
    struct wm_gpu_tracker_file *file = ret_target->state;
    file->line_end = line_end;
    status = begin(file, err);
    return status < 0 ? wm_target_finish(ret_target, status, err) : WM_OK;
}

int wm_sub_target_row(struct wm_target *target, const struct wm_sub_row *row,
                      struct wm_error *err)
{
    struct wm_gpu_tracker_cell cells[WM_SUB_COLUMNS];

    fill(target->state, row, cells);
    return wm_gpu_tracker_file_row(target->state, cells, WM_SUB_COLUMNS, err);
}

int wm_sub_target_finish(struct wm_target *target, int status, struct wm_error *err)
{
    if (status == WM_OK)
        status = wm_gpu_tracker_file_commit(target->state, err);
    if (status == WM_OK)
        status = wm_gpu_tracker_file_sync(target->state, err);
    return wm_target_finish(target, status, err);
}
