/* SPDX-License-Identifier: Apache-2.0 */
/* record_timepoints.c - timepoints of any recording. */
#include "record/calls/record_timepoints.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "base/base_clock.h"
#include "record/record_read.h"
#include "record/run/record_run.h"

struct wm_timepoints {
    struct wm_recording *recording;
    struct wm_timepoint_builder *builder; /* NULL: the ticks are timepoints */
    struct wm_static_data static_data;
};

/* The first tick ends no window; what it is good for is the capacities. */
static int take_static(struct wm_timepoints *timepoints, struct wm_error *err)
{
    const struct wm_run *run = wm_recording_run(timepoints->recording);
    double ram = NAN, gpu_ram = NAN;
    struct wm_timepoint none;
    struct wm_tick tick;

    int status = wm_recording_next(timepoints->recording, &tick, err);
    if (status < 0)
        return status;
    if (status > 0) {
        wm_timepoint_next(timepoints->builder, &tick, &none);
        wm_timepoint_capacities(timepoints->builder, &tick, &ram, &gpu_ram);
    }
    timepoints->static_data = (struct wm_static_data) {
        .ram_unit = "bytes",
        .gpu_ram_unit = "bytes",
        .time_unit = "seconds",
        .ram_capacity = ram,
        .gpu_ram_capacity = gpu_ram,
        .system_cores = run->core_count,
        .expected_cores = run->expected_cores > 0 && run->expected_cores <= INT_MAX
                              ? (int)run->expected_cores
                              : -1,
        .gpus = run->gpu_count,
        .expected_gpus = run->expected_gpu_count,
    };
    return WM_OK;
}

/* Those that a recording is to be made into. */
static int begin(struct wm_timepoints *timepoints, struct wm_error *err)
{
    size_t count;
    const struct wm_channel *channels =
        wm_recording_channels(timepoints->recording, &count);

    int status = wm_timepoint_builder_new(wm_recording_run(timepoints->recording), channels,
                                          count, &timepoints->builder, err);
    return status < 0 ? status : take_static(timepoints, err);
}

int wm_timepoints_of_recording(struct wm_recording *recording,
                               struct wm_timepoints **ret_timepoints, struct wm_error *err)
{
    const struct wm_static_data *static_data = wm_recording_static_data(recording);
    struct wm_timepoints *timepoints = calloc(1, sizeof(*timepoints));
    int status = WM_OK;

    if (!timepoints)
        return wm_fail(err, WM_ENOMEM, "out of memory");
    timepoints->recording = recording;
    if (static_data)
        timepoints->static_data = *static_data;
    else
        status = begin(timepoints, err);
    if (status < 0)
        wm_timepoints_close(timepoints);
    else
        *ret_timepoints = timepoints;
    return status;
}

/* gpu_tracker's own measurements, one in each channel. */
static void copy_tick(const struct wm_tick *tick, struct wm_timepoint *ret_timepoint)
{
    ret_timepoint->when_ns = tick->when_ns;
    for (size_t i = 0; i < WM_MEASUREMENT_COUNT; i++)
        ret_timepoint->values[i] =
            tick->readings[i].state == WM_READING_OK ? tick->readings[i].value : NAN;
}

/* Since 1970, as gpu_tracker's column has it, a double, which is off by a tenth of a
 * microsecond: that of the recording's own table `data`, so that whoever analyzes this
 * comes to the same. */
static int64_t time_of(const struct wm_run *run, int64_t when_ns)
{
    int64_t told_ns = when_ns - run->anchor_ns + run->anchor_unix_ns;

    wm_clock_from_seconds(wm_timepoint_unix_seconds(run, when_ns), &told_ns);
    return told_ns;
}

int wm_timepoints_next(struct wm_timepoints *timepoints, struct wm_timepoint *ret_timepoint,
                       struct wm_error *err)
{
    const struct wm_run *run = wm_recording_run(timepoints->recording);
    struct wm_tick tick;
    int status;

    while ((status = wm_recording_next(timepoints->recording, &tick, err)) == 1) {
        if (!timepoints->builder) {
            copy_tick(&tick, ret_timepoint);
            break;
        }
        if (!wm_timepoint_next(timepoints->builder, &tick, ret_timepoint))
            continue;
        ret_timepoint->when_ns = time_of(run, tick.when_ns);
        break;
    }
    return status;
}

const struct wm_static_data *wm_timepoints_static(const struct wm_timepoints *timepoints)
{
    return &timepoints->static_data;
}

void wm_timepoints_close(struct wm_timepoints *timepoints)
{
    if (!timepoints)
        return;
    wm_timepoint_builder_free(timepoints->builder);
    free(timepoints);
}
