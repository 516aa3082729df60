/* SPDX-License-Identifier: Apache-2.0 */
/* record_calls_recording.c - the regions of a recording, by their starts. */
#include <stdlib.h>

#include "base/text/base_utf8.h"
#include "record/calls/record_calls_ops.h"
#include "record/record_read.h"
#include "record/record_regions.h"

struct recording_calls {
    struct wm_calls base;
    struct wm_recording *recording;
    bool is_own;                    /* it was opened for these calls */
    struct wm_regions_part regions; /* paths and threads */
    struct wm_region_batch batch;
    size_t next;            /* call of the batch */
    int64_t unix_offset_ns; /* from CLOCK_MONOTONIC to since 1970 */
    uint64_t stray;
};

/* 1 and calls, or 0 past the last. */
static int next_batch(struct recording_calls *calls, struct wm_error *err)
{
    const struct wm_region_batch *batch = &calls->batch;
    int status;

    do {
        status = wm_recording_calls(calls->recording, &calls->batch, err);
        calls->next = 0;
        if (status <= 0) {
            calls->batch.call_count = 0;
            return status;
        }
        status = WM_OK;
        for (uint32_t i = 0; i < batch->path_count && status == WM_OK; i++)
            status = wm_regions_part_add_path(&calls->regions, &batch->paths[i]);
        for (uint32_t i = 0; i < batch->thread_count && status == WM_OK; i++)
            status = wm_regions_part_add_thread(&calls->regions, batch->threads[i]);
        if (status < 0)
            return wm_fail(err, status, "out of memory");
    } while (batch->call_count == 0);
    return 1;
}

static int recording_next(struct wm_calls *base, struct wm_call *ret_call,
                          struct wm_error *err)
{
    struct recording_calls *calls = (struct recording_calls *)base;

    if (calls->next == calls->batch.call_count) {
        int status = next_batch(calls, err);
        if (status <= 0)
            return status;
    }
    const struct wm_region_record record = calls->batch.calls[calls->next++];
    const struct wm_region_thread *thread = &calls->regions.threads[record.thread];
    *ret_call = (struct wm_call) {
        .name = calls->regions.paths[record.path].name,
        .pid = thread->pid,
        .tid = thread->tid,
        .start_ns = record.start_ns + calls->unix_offset_ns,
        .stop_ns = record.stop_ns + calls->unix_offset_ns,
        .is_open = record.is_open,
        .path = record.path,
        .thread = record.thread,
        .process = thread->process,
        .monotonic_start_ns = record.start_ns,
        .monotonic_stop_ns = record.stop_ns,
        .seconds = (double)(record.stop_ns - record.start_ns) / 1e9,
    };
    return 1;
}

static const struct wm_region_path *recording_path(const struct wm_calls *base,
                                                   uint32_t path)
{
    return &((const struct recording_calls *)base)->regions.paths[path];
}

static uint64_t recording_stray(const struct wm_calls *base)
{
    return ((const struct recording_calls *)base)->stray;
}

static void recording_close(struct wm_calls *base)
{
    struct recording_calls *calls = (struct recording_calls *)base;

    wm_regions_part_release(&calls->regions);
    if (calls->is_own)
        wm_recording_close(calls->recording);
    free(calls);
}

static const struct wm_calls_ops recording_ops = {
    .next = recording_next,
    .path = recording_path,
    .stray = recording_stray,
    .close = recording_close,
};

static int begin(struct recording_calls *calls, struct wm_recording *recording,
                 struct wm_error *err)
{
    const struct wm_run *run = wm_recording_run(recording);
    const struct wm_result *result = wm_recording_result(recording);

    calls->recording = recording;
    calls->unix_offset_ns = run->anchor_unix_ns - run->anchor_ns;
    calls->stray = result ? result->stray_regions : 0;
    int status = next_batch(calls, err);
    if (status == 0 && calls->regions.path_count == 0 && calls->regions.thread_count == 0)
        return wm_fail(err, WM_ENODEV, "%s: holds no regions",
                       wm_text_path(wm_recording_path(recording)));
    return status < 0 ? status : WM_OK;
}

int wm_calls_of_recording(struct wm_recording *recording, struct wm_calls **ret_calls,
                          struct wm_error *err)
{
    struct recording_calls *calls = calloc(1, sizeof(*calls));

    if (!calls)
        return wm_fail(err, WM_ENOMEM, "out of memory");
    calls->base.ops = &recording_ops;
    int status = begin(calls, recording, err);
    if (status < 0)
        recording_close(&calls->base);
    else
        *ret_calls = &calls->base;
    return status;
}

int wm_calls_open_recording(const char *path, size_t run, struct wm_calls **ret_calls,
                            struct wm_error *err)
{
    struct wm_recording *recording = NULL;
    struct wm_calls *calls = NULL;

    int status = wm_recording_open(path, run, &recording, err);
    if (status == WM_OK)
        status = wm_calls_of_recording(recording, &calls, err);
    if (status < 0) {
        wm_recording_close(recording);
        return status;
    }
    ((struct recording_calls *)calls)->is_own = true;
    *ret_calls = calls;
    return WM_OK;
}
