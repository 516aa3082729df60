/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_meter.c - hostile CSV files of meters, read, and joined to a recording that
 * is one of them; tests/data/meter has seeds. */
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz_recording.h"

static void join_to_itself(const char *path)
{
    struct wm_recording *recording = NULL;
    struct wm_error err = { 0 };
    struct wm_tick tick;
    int64_t last_ns = -1;

    require(wm_recording_open(path, WM_LAST_RUN, &recording, &err) == WM_OK);
    size_t own = wm_recording_channel_count(recording);
    if (wm_recording_join_meter(recording, path, 0, &recording, &err) == WM_OK) {
        require(wm_recording_channel_count(recording) == 2 * own);
        while (wm_recording_next(recording, &tick, &err) > 0) {
            require(tick.count == 2 * own);
            require_tick(&tick, last_ns);
            last_ns = tick.when_ns;
            for (size_t i = 0; i < own; i++)
                require(tick.readings[i].state == tick.readings[own + i].state &&
                        tick.readings[i].value == tick.readings[own + i].value);
        }
    }
    wm_recording_close(recording);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];

    int fd = memfd_create("meter.csv", MFD_CLOEXEC);
    require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (fuzz_recording(path))
        join_to_itself(path);
    close(fd);
    return 0;
}
