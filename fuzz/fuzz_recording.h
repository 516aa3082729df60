/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_recording.h - what the fuzz targets of recordings have in common: reading
 * all of one and checking what a reader promises to whoever uses it. */
#ifndef WM_FUZZ_RECORDING_H
#define WM_FUZZ_RECORDING_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_clock.h"
#include "fuzz.h"
#include "record/record_column.h"
#include "record/record_read.h"

static inline bool is_time(int64_t when_ns)
{
    return when_ns >= 0 && when_ns <= WM_TIME_MAX_NS;
}

static inline void require_front(const struct wm_recording *recording)
{
    const struct wm_run *run = wm_recording_run(recording);
    size_t channel_count = wm_recording_channel_count(recording);
    const struct wm_gap *gaps = NULL;

    require(is_time(run->anchor_ns) && is_time(run->anchor_unix_ns));
    require(channel_count <= WM_CHANNELS_MAX);
    for (size_t i = 0; i < channel_count; i++) {
        const struct wm_channel *channel = wm_recording_channel(recording, i);
        require(channel->source && channel->device && channel->label && channel->metric &&
                channel->unit && is_time(channel->period_ns));
    }
    size_t gap_count = wm_recording_gaps(recording, &gaps);
    for (size_t i = 0; i < gap_count; i++)
        require(gaps[i].channel < channel_count && is_time(gaps[i].from_ns) &&
                gaps[i].from_ns <= gaps[i].to_ns && is_time(gaps[i].to_ns) &&
                memchr(gaps[i].why, '\0', sizeof(gaps[i].why)));
}

static inline void require_tick(const struct wm_tick *tick, int64_t last_ns)
{
    require(is_time(tick->when_ns) && tick->when_ns > last_ns);
    for (size_t i = 0; i < tick->count; i++) {
        const struct wm_reading *reading = &tick->readings[i];
        if (reading->state == WM_READING_OK)
            require(isfinite(reading->value) && is_time(reading->when_ns));
        else
            require(reading->state == WM_READING_NONE && reading->when_ns == 0);
    }
}

/* Every path lies in one before it, and every call in what has been told of. */
static inline void require_batch(const struct wm_region_batch *batch)
{
    uint32_t paths = batch->first_path + batch->path_count;
    uint32_t threads = batch->first_thread + batch->thread_count;

    for (uint32_t i = 0; i < batch->path_count; i++) {
        const struct wm_region_path *path = &batch->paths[i];
        require(path->name &&
                (path->parent == WM_REGION_NO_PATH ? path->depth == 0
                                                   : path->parent < batch->first_path + i));
    }
    for (size_t i = 0; i < batch->call_count; i++) {
        const struct wm_region_record *call = &batch->calls[i];
        require(call->path < paths && call->thread < threads && is_time(call->start_ns) &&
                is_time(call->stop_ns) && call->start_ns <= call->stop_ns);
    }
}

static inline void require_regions(struct wm_recording *recording)
{
    struct wm_region_batch batch;
    struct wm_error err = { 0 };
    uint32_t paths = 0, threads = 0;
    int status;

    while ((status = wm_recording_regions(recording, &batch, &err)) > 0) {
        require(batch.first_path == paths && batch.first_thread == threads);
        require_batch(&batch);
        paths += batch.path_count;
        threads += batch.thread_count;
    }
    require(status == 0 || (err.status == status && err.text[0] != '\0'));
}

/* Whether it was a recording. A failure has to be told in words. */
static inline bool fuzz_recording(const char *path)
{
    struct wm_recording *recording = NULL;
    struct wm_error err = { 0 };
    struct wm_tick tick;
    int64_t last_ns = -1;

    int status = wm_recording_open(path, WM_LAST_RUN, &recording, &err);
    if (status < 0) {
        require(!recording && err.status == status && err.text[0] != '\0');
        return false;
    }
    require_front(recording);
    while ((status = wm_recording_next(recording, &tick, &err)) > 0) {
        require(tick.count == wm_recording_channel_count(recording));
        require_tick(&tick, last_ns);
        last_ns = tick.when_ns;
    }
    require(status == 0 || (err.status == status && err.text[0] != '\0'));
    require_regions(recording);
    wm_recording_close(recording);
    return true;
}

#endif
