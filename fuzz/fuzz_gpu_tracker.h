/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_gpu_tracker.h - what the fuzz targets of gpu_tracker's files have in common:
 * reading all of one and checking what a reader promises to whoever uses it. */
#ifndef WM_FUZZ_GPU_TRACKER_H
#define WM_FUZZ_GPU_TRACKER_H

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/base_utf8.h"
#include "fuzz_recording.h"
#include "record/calls/record_calls.h"
#include "record/record_timepoint.h"
#include "wattmeter/analysis.h"

/* A file with a name, for the suffix counts and SQLite looks for others beside it. */
static char fuzz_folder[] = "/tmp/wattmeter-fuzz-XXXXXX";
static char fuzz_path[64], fuzz_target[64];

static inline void fuzz_remove_folder(void)
{
    unlink(fuzz_path);
    unlink(fuzz_target);
    rmdir(fuzz_folder);
}

static inline void fuzz_write(const uint8_t *data, size_t size, const char *suffix)
{
    if (fuzz_path[0] == '\0') {
        require(mkdtemp(fuzz_folder) != NULL);
        snprintf(fuzz_path, sizeof(fuzz_path), "%s/a%s", fuzz_folder, suffix);
        snprintf(fuzz_target, sizeof(fuzz_target), "%s/b%s", fuzz_folder, suffix);
        atexit(fuzz_remove_folder);
    }
    int fd = open(fuzz_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    close(fd);
}

static inline void require_failure(int status, const struct wm_error *err)
{
    require(status < 0 && err->status == status && err->text[0] != '\0');
}

static inline void fuzz_tracking(const char *path)
{
    struct wm_recording *recording = NULL;
    struct wm_tick tick;
    struct wm_error err = { 0 };
    int64_t last_ns = INT64_MIN;
    int begun_anew = 0;

    int status = wm_recording_open_any(path, WM_LAST_RUN, &recording, &err);
    if (status < 0) {
        require_failure(status, &err);
        return;
    }
    const struct wm_static_data *data = wm_recording_static_data(recording);
    if (!data) { /* it is one of ours */
        wm_recording_close(recording);
        return;
    }
    require(data->ram_unit[0] && data->gpu_ram_unit[0] && data->time_unit[0]);
    require(data->system_cores.number >= 0 && data->expected_cores.number >= 0);
    while ((status = wm_recording_next(recording, &tick, &err)) > 0) {
        if (status == 2) {
            require(begun_anew++ == 0);
            last_ns = INT64_MIN;
            continue;
        }
        const struct wm_timepoint *timepoint = wm_recording_timepoint(recording);
        require(timepoint->when_ns >= last_ns);
        last_ns = timepoint->when_ns;
        for (int i = 0; i < WM_MEASUREMENT_COUNT; i++)
            require(isfinite(timepoint->values[i]));
    }
    if (status < 0)
        require_failure(status, &err);
    require(isfinite(data->ram_capacity.number) && isfinite(data->gpu_ram_capacity.number));
    wm_recording_close(recording);
}

static inline struct wm_calls *fuzz_open_calls(const char *path)
{
    struct wm_calls *calls = NULL;
    struct wm_error err = { 0 };

    int status = wm_calls_open_files(&path, 1, &calls, &err);
    if (status < 0)
        require_failure(status, &err);
    return calls;
}

/* CSV has the bytes as they are, SQLite as UTF-8. */
static inline bool is_name(const char *written, const char *read)
{
    char *copy = wm_text_copy(read);
    require(copy != NULL);
    bool is_same = strcmp(written, read) == 0 || strcmp(written, copy) == 0;

    free(copy);
    return is_same;
}

/* What it holds is the same once it has been combined into another file. */
static inline void fuzz_sub_tracking(const char *path, const char *target)
{
    struct wm_call call, again;
    struct wm_error err = { 0 };
    int64_t last_ns = 0;

    unlink(target);
    struct wm_calls *calls = fuzz_open_calls(path);
    int status = wm_sub_tracking_combine(&path, 1, target, NULL, NULL, NULL, &err);
    if (status < 0) {
        /* Or its suffix does not tell what it is. */
        require_failure(status, &err);
        require(access(target, F_OK) < 0);
        wm_calls_close(calls);
        return;
    }
    require(calls != NULL);
    struct wm_calls *copy = fuzz_open_calls(target);
    require(copy && wm_calls_stray(calls) == wm_calls_stray(copy));
    while (wm_calls_next(calls, &call, &err) > 0) {
        require(wm_calls_next(copy, &again, &err) == 1);
        require(call.start_ns >= last_ns && call.pid >= 0 && call.tid == 0);
        last_ns = call.start_ns;
        require(call.is_open || (call.stop_ns >= call.start_ns && call.seconds >= 0));
        require(is_name(again.name, call.name) && call.pid == again.pid &&
                call.start_ns == again.start_ns && call.is_open == again.is_open &&
                (call.is_open || call.stop_ns == again.stop_ns));
    }
    require(wm_calls_next(copy, &again, &err) == 0);
    wm_calls_close(calls);
    wm_calls_close(copy);
}

#endif
