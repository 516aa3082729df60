/* SPDX-License-Identifier: Apache-2.0 */
/* compat_gpu_tracker_read.c - gpu_tracker's tracking file as a recording. */
#include "compat/gpu_tracker/compat_gpu_tracker_read.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/text/base_number.h"

void wm_tracking_reader_init(struct wm_tracking_reader *reader)
{
    for (int i = 0; i < WM_MEASUREMENT_COUNT; i++) {
        const char *name = wm_measurement_name((enum wm_measurement)i);
        reader->channels[i] = (struct wm_channel) {
            .source = "gpu_tracker",
            .device = name,
            .label = name,
            .metric = name,
            .unit = "",
            .device_kind = WM_DEVICE_OTHER,
        };
    }
    reader->head.run_count = 1;
    reader->head.channels = reader->channels;
    reader->head.channel_count = WM_MEASUREMENT_COUNT;
    reader->head.static_data = &reader->static_data;
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

bool wm_tracking_reader_set(struct wm_tracking_reader *reader, enum wm_static_column column,
                            const char *text)
{
    struct wm_static_data *data = &reader->static_data;

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

struct wm_tick wm_tracking_reader_tick(struct wm_tracking_reader *reader,
                                       const struct wm_timepoint *timepoint)
{
    for (int i = 0; i < WM_MEASUREMENT_COUNT; i++) {
        double value = timepoint->values[i];
        reader->readings[i] =
            isnan(value) ? (struct wm_reading) { 0 }
                         : (struct wm_reading) { timepoint->when_ns, value, WM_READING_OK };
    }
    return (struct wm_tick) {
        .when_ns = timepoint->when_ns,
        .readings = reader->readings,
        .count = WM_MEASUREMENT_COUNT,
    };
}
