/* SPDX-License-Identifier: Apache-2.0 */
/* record_timepoints.c - timepoints of any file that has them; those of a recording are
 * computed from its ticks where the file does not hold them. */
#include "record/calls/record_timepoints.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_file.h"
#include "base/text/base_number.h"
#include "record/calls/record_timepoints_ops.h"
#include "record/record_read.h"
#include "record/sql/record_sql_read.h"

/* How much of a file has to be known to tell what it is. */
enum { HEAD_SIZE = 1024 };

struct ticks {
    struct wm_timepoints base;
    struct wm_recording *recording;
    struct wm_timepoint_builder *builder;
};

const char *const wm_static_names[WM_STATIC_COUNT] = {
    [WM_STATIC_RAM_UNIT] = "ram_unit",
    [WM_STATIC_GPU_RAM_UNIT] = "gpu_ram_unit",
    [WM_STATIC_TIME_UNIT] = "time_unit",
    [WM_STATIC_RAM_CAPACITY] = "ram_system_capacity",
    [WM_STATIC_GPU_RAM_CAPACITY] = "gpu_ram_system_capacity",
    [WM_STATIC_SYSTEM_CORES] = "system_core_count",
    [WM_STATIC_EXPECTED_CORES] = "n_expected_cores",
    [WM_STATIC_GPUS] = "system_gpu_count",
    [WM_STATIC_EXPECTED_GPUS] = "n_expected_gpus",
};

const char *const wm_memory_units[] = { "bytes",     "kilobytes", "megabytes",
                                        "gigabytes", "terabytes", NULL };
const char *const wm_time_units[] = { "seconds", "minutes", "hours", "days", NULL };

void wm_timepoint_columns(const char **ret_names)
{
    for (int i = 0; i < WM_MEASUREMENT_COUNT; i++)
        ret_names[i] = wm_measurement_name((enum wm_measurement)i);
    ret_names[WM_TIMESTAMP] = "timestamp";
}

static bool set_unit(char unit[16], const char *const *units, const char *text)
{
    for (; *units; units++) {
        if (strcmp(*units, text) == 0) {
            memcpy(unit, text, strlen(text) + 1);
            return true;
        }
    }
    return false;
}

/* gpu_tracker too cuts off what a number of cores has behind its point. */
static bool set_count(int *count, const char *text)
{
    double value = -1;

    if (text[0] != '\0' &&
        (!wm_number_parse(text, strlen(text), &value) || value < 0 || value > INT_MAX))
        return false;
    *count = (int)value;
    return true;
}

static bool set_capacity(double *capacity, const char *text)
{
    double value = NAN;

    if (text[0] != '\0' && (!wm_number_parse(text, strlen(text), &value) || value < 0))
        return false;
    *capacity = value;
    return true;
}

bool wm_static_set(struct wm_static_data *data, enum wm_static_column column,
                   const char *text)
{
    switch (column) {
    case WM_STATIC_RAM_UNIT:
        return set_unit(data->ram_unit, wm_memory_units, text);
    case WM_STATIC_GPU_RAM_UNIT:
        return set_unit(data->gpu_ram_unit, wm_memory_units, text);
    case WM_STATIC_TIME_UNIT:
        return set_unit(data->time_unit, wm_time_units, text);
    case WM_STATIC_RAM_CAPACITY:
        return set_capacity(&data->ram_capacity, text);
    case WM_STATIC_GPU_RAM_CAPACITY:
        return set_capacity(&data->gpu_ram_capacity, text);
    case WM_STATIC_SYSTEM_CORES:
        return set_count(&data->system_cores, text);
    case WM_STATIC_EXPECTED_CORES:
        return set_count(&data->expected_cores, text);
    case WM_STATIC_GPUS:
        return set_count(&data->gpus, text);
    case WM_STATIC_EXPECTED_GPUS:
        return set_count(&data->expected_gpus, text);
    case WM_STATIC_COUNT:
        break;
    }
    return false;
}

static int ticks_next(struct wm_timepoints *timepoints, struct wm_timepoint *ret_timepoint,
                      struct wm_error *err)
{
    struct ticks *ticks = (struct ticks *)timepoints;
    const struct wm_run *run = wm_recording_run(ticks->recording);
    struct wm_tick tick;
    int status;

    while ((status = wm_recording_next(ticks->recording, &tick, err)) > 0) {
        if (!wm_timepoint_next(ticks->builder, &tick, ret_timepoint))
            continue;
        ret_timepoint->when_ns = tick.when_ns - run->anchor_ns + run->anchor_unix_ns;
        return 1;
    }
    return status;
}

static void ticks_close(struct wm_timepoints *timepoints)
{
    struct ticks *ticks = (struct ticks *)timepoints;

    wm_timepoint_builder_free(ticks->builder);
    wm_recording_close(ticks->recording);
    free(ticks);
}

static const struct wm_timepoints_ops ticks_ops = {
    .next = ticks_next,
    .close = ticks_close,
};

/* The first tick ends no window; what it is good for is the capacities. */
static int take_static(struct ticks *ticks, struct wm_error *err)
{
    const struct wm_run *run = wm_recording_run(ticks->recording);
    double ram = NAN, gpu_ram = NAN;
    struct wm_timepoint none;
    struct wm_tick tick;

    int status = wm_recording_next(ticks->recording, &tick, err);
    if (status < 0)
        return status;
    if (status > 0) {
        wm_timepoint_next(ticks->builder, &tick, &none);
        wm_timepoint_capacities(ticks->builder, &tick, &ram, &gpu_ram);
    }
    ticks->base.static_data = (struct wm_static_data) {
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

static int open_ticks(const char *path, size_t run, struct wm_timepoints **ret_timepoints,
                      struct wm_error *err)
{
    const struct wm_channel *channels;
    size_t count;

    struct ticks *ticks = calloc(1, sizeof(*ticks));
    if (!ticks)
        return wm_fail(err, WM_ENOMEM, "out of memory");
    ticks->base.ops = &ticks_ops;
    ticks->base.is_recording = true;

    int status = wm_recording_open(path, run, &ticks->recording, err);
    if (status == WM_OK) {
        channels = wm_recording_channels(ticks->recording, &count);
        status = wm_timepoint_builder_new(wm_recording_run(ticks->recording), channels,
                                          count, &ticks->builder, err);
    }
    if (status == WM_OK)
        status = take_static(ticks, err);
    if (status < 0) {
        ticks_close(&ticks->base);
        return status;
    }
    *ret_timepoints = &ticks->base;
    return WM_OK;
}

int wm_timepoints_open(const char *path, size_t run, struct wm_timepoints **ret_timepoints,
                       struct wm_error *err)
{
    struct wm_timepoints *timepoints = NULL;
    char head[HEAD_SIZE];
    size_t length = 0;
    int status = WM_OK;

    /* What is no file may be the URL of a recording, or the folder of one. */
    if (wm_file_head(path, head, sizeof(head), &length, NULL) < 0)
        length = 0;
    if (wm_timepoints_is_csv(head, length))
        status = wm_timepoints_open_csv(path, run, &timepoints, err);
    else if (wm_sql_is_database(head, length))
        status = wm_timepoints_open_sqlite(path, run, &timepoints, err);
    if (status == WM_OK && !timepoints)
        status = open_ticks(path, run, &timepoints, err);
    if (status == WM_OK)
        *ret_timepoints = timepoints;
    return status;
}

int wm_timepoints_next(struct wm_timepoints *timepoints, struct wm_timepoint *ret_timepoint,
                       struct wm_error *err)
{
    return timepoints->ops->next(timepoints, ret_timepoint, err);
}

const struct wm_static_data *wm_timepoints_static(const struct wm_timepoints *timepoints)
{
    return &timepoints->static_data;
}

bool wm_timepoints_is_recording(const struct wm_timepoints *timepoints)
{
    return timepoints->is_recording;
}

const char *wm_timepoints_remark(const struct wm_timepoints *timepoints, size_t index)
{
    return wm_remarks_get(&timepoints->remarks, index);
}

void wm_timepoints_close(struct wm_timepoints *timepoints)
{
    if (timepoints)
        timepoints->ops->close(timepoints);
}
