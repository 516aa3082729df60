/* SPDX-License-Identifier: Apache-2.0 */
/* compat_gpu_tracker.c - ticks as rows of gpu_tracker's tracking file. */
#include "compat/gpu_tracker/compat_gpu_tracker.h"

#include <math.h>
#include <string.h>

#include "base/text/base_utf8.h"

#define PREFIX "gpu-tracker:"

enum { UNITS = 3 };

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

/* The unit that text[0..length) names, of `names`; `ret_size` (may be NULL) gets its size
 * in bytes. NULL where it is none. */
static const char *find_unit(const char *const *names, const char *text, size_t length,
                             double *ret_size)
{
    double size = 1;

    for (; *names; names++, size *= 1000) {
        if (strlen(*names) == length && memcmp(*names, text, length) == 0) {
            if (ret_size)
                *ret_size = size;
            return *names;
        }
    }
    return NULL;
}

/* Takes the units out of `target`; where the path begins, or NULL. */
static const char *parse(const char *target, const char *ret_units[UNITS],
                         double ret_sizes[UNITS])
{
    static const char *const *const names[UNITS] = { wm_memory_units, wm_memory_units,
                                                     wm_time_units };
    static const char ends[UNITS] = { ',', ',', ':' };

    if (strncmp(target, PREFIX, strlen(PREFIX)) != 0)
        return NULL;
    target += strlen(PREFIX);
    for (int i = 0; i < UNITS; i++) {
        size_t length = strcspn(target, ",:");
        ret_units[i] = find_unit(names[i], target, length, &ret_sizes[i]);
        if (!ret_units[i] || target[length] != ends[i])
            return NULL;
        target += length + 1;
    }
    return target;
}

const char *wm_gpu_tracker_path(const char *target, const char *suffix)
{
    const char *units[UNITS];
    double sizes[UNITS];

    const char *path = parse(target, units, sizes);
    size_t length = path ? strlen(path) : 0, end = strlen(suffix);

    return length > end && strcmp(path + length - end, suffix) == 0 ? path : NULL;
}

int wm_gpu_tracker_init(struct wm_gpu_tracker *tracker, const char *target,
                        const struct wm_run *run, const struct wm_channel *channels,
                        size_t count, struct wm_error *err)
{
    double sizes[UNITS];

    tracker->path = wm_text_path(parse(target, tracker->units, sizes));
    tracker->run = run;
    tracker->ram_unit = sizes[0];
    tracker->gpu_ram_unit = sizes[1];
    int status = wm_timepoint_builder_new(run, channels, count, &tracker->builder, err);
    return status < 0
               ? status
               : wm_timepoint_builder_new(run, channels, count, &tracker->before, err);
}

void wm_gpu_tracker_release(struct wm_gpu_tracker *tracker)
{
    wm_timepoint_builder_free(tracker->builder);
    wm_timepoint_builder_free(tracker->before);
}

void wm_gpu_tracker_begin(struct wm_gpu_tracker *tracker, const struct wm_tick *first)
{
    wm_timepoint_builder_copy(tracker->before, tracker->builder);
    tracker->had_rows = tracker->has_rows;
    if (tracker->has_static)
        return;
    wm_timepoint_capacities(tracker->builder, first, &tracker->ram_capacity,
                            &tracker->gpu_ram_capacity);
    tracker->ram_capacity /= tracker->ram_unit;
    tracker->gpu_ram_capacity /= tracker->gpu_ram_unit;
}

void wm_gpu_tracker_take_back(struct wm_gpu_tracker *tracker)
{
    wm_timepoint_builder_copy(tracker->builder, tracker->before);
    tracker->has_rows = tracker->had_rows;
}

struct wm_gpu_tracker_cell wm_gpu_tracker_static(const struct wm_gpu_tracker *tracker,
                                                 int index)
{
    const struct wm_run *run = tracker->run;
    double cores = run->expected_cores > 0 ? run->expected_cores : run->core_count;

    switch (index) {
    case WM_STATIC_RAM_UNIT:
    case WM_STATIC_GPU_RAM_UNIT:
    case WM_STATIC_TIME_UNIT:
        return (struct wm_gpu_tracker_cell) {
            .text = tracker->units[index - WM_STATIC_RAM_UNIT]
        };
    case WM_STATIC_RAM_CAPACITY:
        return (struct wm_gpu_tracker_cell) { .number = tracker->ram_capacity };
    case WM_STATIC_GPU_RAM_CAPACITY:
        return (struct wm_gpu_tracker_cell) { .number = tracker->gpu_ram_capacity };
    case WM_STATIC_SYSTEM_CORES:
        return (struct wm_gpu_tracker_cell) { .number = run->core_count, .is_count = true };
    case WM_STATIC_EXPECTED_CORES:
        return (struct wm_gpu_tracker_cell) { .number = cores, .is_count = true };
    case WM_STATIC_GPUS:
        return (struct wm_gpu_tracker_cell) { .number = run->gpu_count, .is_count = true };
    default:
        return (struct wm_gpu_tracker_cell) { .number = run->expected_gpu_count,
                                              .is_count = true };
    }
}

static double unit_of(const struct wm_gpu_tracker *tracker, int measurement)
{
    if (measurement <= WM_SYSTEM_RAM)
        return tracker->ram_unit;
    return measurement <= WM_SYSTEM_GPU_RAM ? tracker->gpu_ram_unit : 1;
}

/* The command is gone. What it used since the tick before is over in a moment, and would
 * count as much as any other window; the original takes no sample then. */
static bool is_after_end(const struct wm_timepoint *timepoint)
{
    return isnan(timepoint->values[WM_MAIN_RAM]) &&
           isnan(timepoint->values[WM_MAIN_THREADS]);
}

bool wm_gpu_tracker_row(struct wm_gpu_tracker *tracker, const struct wm_tick *tick,
                        struct wm_gpu_tracker_cell ret_row[WM_TIMEPOINT_COLUMNS])
{
    struct wm_timepoint timepoint;

    if (!wm_timepoint_next(tracker->builder, tick, &timepoint) ||
        (tracker->has_rows && is_after_end(&timepoint)))
        return false;
    tracker->has_rows = true;
    for (int i = 0; i < WM_MEASUREMENT_COUNT; i++)
        ret_row[i] = (struct wm_gpu_tracker_cell) {
            .number = timepoint.values[i] / unit_of(tracker, i),
            .is_count = i >= WM_MAIN_THREADS && i <= WM_COMBINED_THREADS,
        };
    ret_row[WM_TIMESTAMP] =
        (struct wm_gpu_tracker_cell) { .number = wm_timepoint_unix_seconds(tracker->run,
                                                                           tick->when_ns) };
    return true;
}
