/* SPDX-License-Identifier: Apache-2.0 */
/* record_calls_files.c - the calls in sub-tracking files, several read as one. */
#include <math.h>
#include <stdlib.h>

#include "base/base_clock.h"
#include "record/calls/record_calls_ops.h"
#include "record/calls/record_calls_rows.h"
#include "record/calls/record_sub_tracking.h"

struct files {
    struct wm_calls base;
    struct wm_call_rows rows;
    size_t next;
};

static int files_next(struct wm_calls *calls, struct wm_call *ret_call,
                      struct wm_error *err)
{
    struct files *files = (struct files *)calls;
    (void)err;

    if (files->next == files->rows.call_count)
        return 0;
    const struct wm_paired_call *call = &files->rows.calls[files->next++];
    *ret_call = (struct wm_call) {
        .name = call->name,
        .pid = call->process,
        .is_open = call->is_open,
        .path = WM_REGION_NO_PATH,
        .seconds = call->is_open ? NAN : call->stop - call->start,
    };
    wm_clock_from_seconds(call->start, &ret_call->start_ns);
    wm_clock_from_seconds(call->stop, &ret_call->stop_ns);
    return 1;
}

static uint64_t files_stray(const struct wm_calls *calls)
{
    return ((const struct files *)calls)->rows.stray;
}

static void files_close(struct wm_calls *calls)
{
    struct files *files = (struct files *)calls;

    wm_call_rows_release(&files->rows);
    wm_remarks_release(&files->base.remarks);
    free(files);
}

static const struct wm_calls_ops files_ops = {
    .next = files_next,
    .stray = files_stray,
    .close = files_close,
};

static int read_file(struct files *files, const char *path, struct wm_error *err)
{
    struct wm_sub_tracking file;
    struct wm_sub_row row;

    int status = wm_sub_tracking_open(&file, path, err);
    while (status >= 0 && (status = wm_sub_tracking_next(&file, &row, err)) > 0) {
        if (wm_call_rows_add(&files->rows, row.process, row.name, row.is_stop,
                             row.seconds) < 0)
            status = wm_fail(err, WM_ENOMEM, "%s: out of memory", file.path);
    }
    for (size_t i = 0; i < file.remarks.count && status == WM_OK; i++) {
        if (wm_remarks_add(&files->base.remarks, "%s", file.remarks.all[i]) < 0)
            status = wm_fail(err, WM_ENOMEM, "%s: out of memory", file.path);
    }
    wm_sub_tracking_close(&file);
    return status;
}

int wm_calls_open_files(const char *const *paths, size_t count, struct wm_calls **ret_calls,
                        struct wm_error *err)
{
    int status = WM_OK;

    struct files *files = calloc(1, sizeof(*files));
    if (!files)
        return wm_fail(err, WM_ENOMEM, "out of memory");
    files->base.ops = &files_ops;
    for (size_t i = 0; i < count && status == WM_OK; i++)
        status = read_file(files, paths[i], err);
    if (status == WM_OK && wm_call_rows_pair(&files->rows) < 0)
        status = wm_fail(err, WM_ENOMEM, "out of memory");
    if (status < 0) {
        files_close(&files->base);
        return status;
    }
    *ret_calls = &files->base;
    return WM_OK;
}
