/* SPDX-License-Identifier: Apache-2.0 */
/* record_timepoints.c - timepoints of any recording. */
#include "record/calls/record_timepoints.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/base_clock.h"
#include "record/record_read.h"
#include "record/run/record_run.h"

#define IN(member) offsetof(struct wm_static_data, member)

const struct wm_static_column wm_static_columns[WM_STATIC_COLUMNS] = {
    { "ram_unit", WM_STATIC_MEMORY_UNIT, IN(ram_unit) },
    { "gpu_ram_unit", WM_STATIC_MEMORY_UNIT, IN(gpu_ram_unit) },
    { "time_unit", WM_STATIC_TIME_UNIT, IN(time_unit) },
    { "ram_system_capacity", WM_STATIC_CAPACITY, IN(ram_capacity) },
    { "gpu_ram_system_capacity", WM_STATIC_CAPACITY, IN(gpu_ram_capacity) },
    { "system_core_count", WM_STATIC_COUNT, IN(system_cores) },
    { "n_expected_cores", WM_STATIC_COUNT, IN(expected_cores) },
    { "system_gpu_count", WM_STATIC_COUNT, IN(gpus) },
    { "n_expected_gpus", WM_STATIC_COUNT, IN(expected_gpus) },
};

struct wm_static_entry wm_static_data_entry(const struct wm_static_data *data, size_t index)
{
    const struct wm_static_column *column = &wm_static_columns[index];
    const void *place = (const char *)data + column->offset;
    struct wm_static_entry entry = { .key = column->name,
                                     .is_whole = column->kind == WM_STATIC_COUNT };

    if (entry.is_whole || column->kind == WM_STATIC_CAPACITY)
        entry.number = *(const struct wm_known *)place;
    else
        entry.text = place;
    return entry;
}

struct wm_timepoints {
    const struct wm_recording *recording;
    const struct wm_run *run;
    struct wm_timepoint_builder *builder; /* NULL: the ticks are timepoints */
    bool has_begun;
    struct wm_static_data static_data;
};

static struct wm_known count_of(double count)
{
    return count >= 0 && count <= INT_MAX ? (struct wm_known) { true, trunc(count) }
                                          : (struct wm_known) { 0 };
}

struct wm_static_data wm_static_data_of(const struct wm_run *run)
{
    return (struct wm_static_data) {
        .ram_unit = "bytes",
        .gpu_ram_unit = "bytes",
        .time_unit = "seconds",
        .system_cores = count_of(run->core_count),
        .expected_cores = run->expected_cores > 0 ? count_of(run->expected_cores)
                                                  : (struct wm_known) { 0 },
        .gpus = count_of(run->gpu_count),
        .expected_gpus = count_of(run->expected_gpu_count),
    };
}

int wm_timepoints_of_recording(const struct wm_recording *recording,
                               struct wm_timepoints **ret_timepoints, struct wm_error *err)
{
    const struct wm_static_data *static_data = wm_recording_static_data(recording);
    struct wm_timepoints *timepoints = calloc(1, sizeof(*timepoints));
    int status = WM_OK;
    size_t count;

    if (!timepoints)
        return wm_fail_memory(err, NULL);
    timepoints->recording = recording;
    timepoints->run = wm_recording_run(recording);
    timepoints->static_data =
        static_data ? *static_data : wm_static_data_of(timepoints->run);
    const struct wm_channel *channels = wm_recording_channels(recording, &count);
    if (!static_data)
        status = wm_timepoint_builder_new(timepoints->run, channels, count,
                                          &timepoints->builder, err);
    if (status < 0)
        wm_timepoints_close(timepoints);
    else
        *ret_timepoints = timepoints;
    return status;
}

int64_t wm_timepoints_unix_ns(const struct wm_timepoints *timepoints, int64_t when_ns)
{
    const struct wm_run *run = timepoints->run;
    int64_t told_ns = when_ns - run->anchor_ns + run->anchor_unix_ns;

    if (!timepoints->builder)
        return when_ns;
    wm_clock_from_seconds(wm_timepoint_unix_seconds(run, when_ns), &told_ns);
    return told_ns;
}

bool wm_timepoints_take(struct wm_timepoints *timepoints, const struct wm_tick *tick,
                        struct wm_timepoint *ret_timepoint)
{
    struct wm_static_data *data = &timepoints->static_data;

    if (!timepoints->builder) {
        *ret_timepoint = *wm_recording_timepoint(timepoints->recording);
        return true;
    }
    if (!timepoints->has_begun)
        wm_timepoint_capacities(timepoints->builder, tick, &data->ram_capacity,
                                &data->gpu_ram_capacity);
    timepoints->has_begun = true;
    return wm_timepoint_next(timepoints->builder, tick, ret_timepoint);
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
