/* SPDX-License-Identifier: Apache-2.0 */
/* record_calls.c - calls of blocks of code, by their starts, of whatever kind of file. */
#include "record/calls/record_calls.h"

#include <stdlib.h>

#include "base/base_utf8.h"
#include "record/record_ops.h"
#include "record/record_read.h"

struct wm_calls {
    struct wm_recording *recording;
    bool is_own;                    /* it was opened for these calls */
    struct wm_regions_part regions; /* paths and threads */
    struct wm_region_batch batch;
    size_t next;            /* call of the batch */
    int64_t unix_offset_ns; /* from CLOCK_MONOTONIC to since 1970 */
};

/* 1 and calls, or 0 past the last. */
static int next_batch(struct wm_calls *calls, struct wm_error *err)
{
    int status;

    do {
        calls->next = 0;
        status = wm_recording_calls(calls->recording, &calls->batch, err);
        if (status <= 0)
            break;
        if (wm_regions_part_add_new(&calls->regions, &calls->batch) < 0)
            status = wm_fail_memory(err, NULL);
    } while (status > 0 && calls->batch.call_count == 0);
    if (status <= 0)
        calls->batch.call_count = 0;
    return status;
}

int wm_calls_next(struct wm_calls *calls, struct wm_call *ret_call, struct wm_error *err)
{
    if (calls->next == calls->batch.call_count) {
        int status = next_batch(calls, err);
        if (status <= 0)
            return status;
    }
    size_t index = calls->next++;
    const struct wm_region_record *record = &calls->batch.calls[index];
    const struct wm_region_thread *thread = &calls->regions.threads[record->thread];
    bool never_stops = record->stop_ns == WM_CALL_NEVER_STOPS;
    *ret_call = (struct wm_call) {
        .name = calls->regions.paths[record->path].name,
        .pid = thread->pid,
        .tid = thread->tid,
        .start_ns = record->start_ns + calls->unix_offset_ns,
        .stop_ns = record->stop_ns + (never_stops ? 0 : calls->unix_offset_ns),
        .is_open = record->is_open,
        .path = record->path,
        .thread = record->thread,
        .process = thread->process,
        .monotonic_start_ns = record->start_ns,
        .monotonic_stop_ns = record->stop_ns,
        .clocked = record->clocked,
        .seconds = calls->batch.seconds
                       ? calls->batch.seconds[index]
                       : (double)(record->stop_ns - record->start_ns) / 1e9,
    };
    if (record->fold > 0)
        ret_call->fold = *wm_region_batch_fold(&calls->batch, record);
    return 1;
}

const struct wm_region_path *wm_calls_path(const struct wm_calls *calls, uint32_t path)
{
    return &calls->regions.paths[path];
}

uint64_t wm_calls_stray(const struct wm_calls *calls)
{
    const struct wm_result *result = wm_recording_result(calls->recording);

    return result ? result->stray_regions : 0;
}

const char *wm_calls_remark(const struct wm_calls *calls, size_t index)
{
    return calls->is_own ? wm_recording_remark(calls->recording, index) : NULL;
}

void wm_calls_close(struct wm_calls *calls)
{
    if (!calls)
        return;
    wm_regions_part_release(&calls->regions);
    if (calls->is_own)
        wm_recording_close(calls->recording);
    free(calls);
}

/* WM_ENODEV: it holds nothing of regions. */
static int begin(struct wm_calls *calls, struct wm_error *err)
{
    const struct wm_run *run = wm_recording_run(calls->recording);

    calls->unix_offset_ns = run->anchor_unix_ns - run->anchor_ns;
    int status = next_batch(calls, err);
    if (status == 0 && calls->regions.path_count == 0 && calls->regions.thread_count == 0)
        return wm_fail(err, WM_ENODEV, "%s: holds no regions",
                       wm_text_path(wm_recording_path(calls->recording)));
    return status < 0 ? status : WM_OK;
}

int wm_calls_of_recording(struct wm_recording *recording, struct wm_calls **ret_calls,
                          struct wm_error *err)
{
    struct wm_calls *calls = calloc(1, sizeof(*calls));

    if (!calls)
        return wm_fail_memory(err, NULL);
    calls->recording = recording;
    int status = begin(calls, err);
    if (status < 0)
        wm_calls_close(calls);
    else
        *ret_calls = calls;
    return status;
}

int wm_calls_open_files(const char *const *paths, size_t count, struct wm_calls **ret_calls,
                        struct wm_error *err)
{
    struct wm_recording *files = NULL;

    int status =
        wm_recording_open_files(&wm_reader_sub_tracking, paths, count, &files, err);
    if (status < 0)
        return status;
    struct wm_calls *calls = calloc(1, sizeof(*calls));
    if (!calls) {
        wm_recording_close(files);
        return wm_fail_memory(err, NULL);
    }
    calls->recording = files;
    calls->is_own = true;
    status = begin(calls, err);
    if (status < 0 && status != WM_ENODEV) {
        wm_calls_close(calls);
        return status;
    }
    *ret_calls = calls;
    return WM_OK;
}
