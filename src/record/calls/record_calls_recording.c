/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_calls_recording.c - the regions of a recording, by their starts.
 *
 * They stand there by their stops, and the first to start may be the last to stop; so all
 * of them are read and sorted when the recording is opened.
 */
#include <stdlib.h>

#include "base/text/base_utf8.h"
#include "record/calls/record_calls_ops.h"
#include "record/calls/record_calls_sort.h"
#include "record/record_read.h"
#include "record/record_regions.h"

struct recording_calls {
    struct wm_calls base;
    struct wm_regions_part regions; /* paths and threads */
    struct wm_call_sort sort;
    int64_t unix_offset_ns; /* from CLOCK_MONOTONIC to since 1970 */
    uint64_t stray;
};

static int recording_next(struct wm_calls *base, struct wm_call *ret_call,
                          struct wm_error *err)
{
    struct recording_calls *calls = (struct recording_calls *)base;
    struct wm_region_record record;

    int status = wm_call_sort_next(&calls->sort, &record, err);
    if (status <= 0)
        return status;
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
    wm_call_sort_release(&calls->sort);
    free(calls);
}

static const struct wm_calls_ops recording_ops = {
    .next = recording_next,
    .path = recording_path,
    .stray = recording_stray,
    .close = recording_close,
};

static int take_batch(struct recording_calls *calls, const struct wm_region_batch *batch,
                      struct wm_error *err)
{
    int status = WM_OK;

    for (uint32_t i = 0; i < batch->path_count && status == WM_OK; i++)
        status = wm_regions_part_add_path(&calls->regions, &batch->paths[i]);
    for (uint32_t i = 0; i < batch->thread_count && status == WM_OK; i++)
        status = wm_regions_part_add_thread(&calls->regions, batch->threads[i]);
    if (status < 0)
        return wm_fail(err, status, "out of memory");
    for (size_t i = 0; i < batch->call_count && status == WM_OK; i++)
        status = wm_call_sort_add(&calls->sort, &batch->calls[i], err);
    return status;
}

static int read_all(struct recording_calls *calls, struct wm_recording *recording,
                    struct wm_error *err)
{
    const struct wm_run *run = wm_recording_run(recording);
    const struct wm_result *result = wm_recording_result(recording);
    struct wm_region_batch batch;
    bool is_empty = true;
    int status;

    calls->unix_offset_ns = run->anchor_unix_ns - run->anchor_ns;
    calls->stray = result ? result->stray_regions : 0;
    while ((status = wm_recording_regions(recording, &batch, err)) > 0) {
        is_empty = false;
        status = take_batch(calls, &batch, err);
        if (status < 0)
            return status;
    }
    if (status == 0 && is_empty)
        return wm_fail(err, WM_ENODEV, "%s: holds no regions",
                       wm_text_path(wm_recording_path(recording)));
    return status < 0 ? status : wm_call_sort_end(&calls->sort, err);
}

int wm_calls_of_recording(struct wm_recording *recording, struct wm_calls **ret_calls,
                          struct wm_error *err)
{
    struct recording_calls *calls = calloc(1, sizeof(*calls));

    if (!calls)
        return wm_fail(err, WM_ENOMEM, "out of memory");
    calls->base.ops = &recording_ops;
    int status = read_all(calls, recording, err);
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

    int status = wm_recording_open(path, run, &recording, err);
    if (status == WM_OK)
        status = wm_calls_of_recording(recording, ret_calls, err);
    wm_recording_close(recording);
    return status;
}
