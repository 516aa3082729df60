/* SPDX-License-Identifier: Apache-2.0 */
/* compat_gpu_tracker.c - writing gpu_tracker's tracking file: ticks as its rows. */
#include "compat/gpu_tracker/compat_gpu_tracker.h"

#include <math.h>
#include <string.h>

#include "compat/gpu_tracker/compat_gpu_tracker_file.h"
#include "record/record_ops.h"

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

static const char *csv_path(const char *target)
{
    return wm_gpu_tracker_path(target, ".csv");
}

static const char *sqlite_path(const char *target)
{
    return wm_gpu_tracker_path(target, ".sqlite");
}

struct tracking {
    struct wm_gpu_tracker_file file;
    const struct wm_run *run;
    const char *units[UNITS];
    double sizes[UNITS];     /* in bytes, of both memories */
    bool has_static;         /* the static data is written */
    bool has_rows, had_rows; /* now, and at the start of the batch */
    struct wm_timepoint_builder *builder;
    struct wm_timepoint_builder *before; /* the builder at the start of a batch */
};

static int open_tracking(void *state, const char *target, const struct wm_run *run,
                         const struct wm_channel *channels, size_t count,
                         struct wm_error *err)
{
    struct tracking *tracking = state;

    tracking->run = run;
    int status = wm_timepoint_builder_new(run, channels, count, &tracking->builder, err);
    if (status == WM_OK)
        status = wm_timepoint_builder_new(run, channels, count, &tracking->before, err);
    const char *path = parse(target, tracking->units, tracking->sizes);
    return status < 0 ? status
                      : wm_gpu_tracker_file_open(&tracking->file, path,
                                                 sqlite_path(target) != NULL, err);
}

static int write_static(struct tracking *tracking, const struct wm_tick *first,
                        struct wm_error *err)
{
    const struct wm_run *run = tracking->run;
    double ram, gpu_ram;

    wm_timepoint_capacities(tracking->builder, first, &ram, &gpu_ram);
    const struct wm_gpu_tracker_cell cells[WM_STATIC_COUNT] = {
        [WM_STATIC_RAM_UNIT] = { .text = tracking->units[0] },
        [WM_STATIC_GPU_RAM_UNIT] = { .text = tracking->units[1] },
        [WM_STATIC_TIME_UNIT] = { .text = tracking->units[2] },
        [WM_STATIC_RAM_CAPACITY] = { .number = ram / tracking->sizes[0] },
        [WM_STATIC_GPU_RAM_CAPACITY] = { .number = gpu_ram / tracking->sizes[1] },
        [WM_STATIC_SYSTEM_CORES] = { .number = run->core_count, .is_count = true },
        [WM_STATIC_EXPECTED_CORES] = { .number = run->expected_cores > 0
                                                     ? run->expected_cores
                                                     : run->core_count,
                                       .is_count = true },
        [WM_STATIC_GPUS] = { .number = run->gpu_count, .is_count = true },
        [WM_STATIC_EXPECTED_GPUS] = { .number = run->expected_gpu_count, .is_count = true },
    };
    int status = wm_gpu_tracker_file_table(&tracking->file, "static_data", wm_static_names,
                                           cells, WM_STATIC_COUNT, err);
    return status < 0
               ? status
               : wm_gpu_tracker_file_row(&tracking->file, cells, WM_STATIC_COUNT, err);
}

static double unit_of(const struct tracking *tracking, int measurement)
{
    if (measurement <= WM_SYSTEM_RAM)
        return tracking->sizes[0];
    return measurement <= WM_SYSTEM_GPU_RAM ? tracking->sizes[1] : 1;
}

/* The command is gone. What it used since the tick before is over in a moment, and would
 * count as much as any other window; the original takes no sample then. */
static bool is_after_end(const struct wm_timepoint *timepoint)
{
    return isnan(timepoint->values[WM_MAIN_RAM]) &&
           isnan(timepoint->values[WM_MAIN_THREADS]);
}

/* The table is there from its first row on. The first tick ends no window. */
static int write_tick(struct tracking *tracking, const struct wm_tick *tick,
                      struct wm_error *err)
{
    struct wm_gpu_tracker_cell row[WM_TIMEPOINT_COLUMNS];
    const char *names[WM_TIMEPOINT_COLUMNS];
    struct wm_timepoint timepoint;
    int status = WM_OK;

    if (!wm_timepoint_next(tracking->builder, tick, &timepoint) ||
        (tracking->has_rows && is_after_end(&timepoint)))
        return WM_OK;
    for (int i = 0; i < WM_MEASUREMENT_COUNT; i++)
        row[i] = (struct wm_gpu_tracker_cell) {
            .number = timepoint.values[i] / unit_of(tracking, i),
            .is_count = i >= WM_MAIN_THREADS && i <= WM_COMBINED_THREADS,
        };
    row[WM_TIMESTAMP] = (struct wm_gpu_tracker_cell) {
        .number = wm_timepoint_unix_seconds(tracking->run, tick->when_ns),
    };
    if (!tracking->has_rows) {
        wm_timepoint_columns(names);
        status = wm_gpu_tracker_file_table(&tracking->file, "data", names, row,
                                           WM_TIMEPOINT_COLUMNS, err);
    }
    tracking->has_rows = true;
    return status < 0
               ? status
               : wm_gpu_tracker_file_row(&tracking->file, row, WM_TIMEPOINT_COLUMNS, err);
}

static int write_ticks(void *state, const struct wm_tick *ticks, size_t count,
                       struct wm_error *err)
{
    struct tracking *tracking = state;

    if (count == 0)
        return WM_OK;
    wm_timepoint_builder_copy(tracking->before, tracking->builder);
    tracking->had_rows = tracking->has_rows;
    int status = wm_gpu_tracker_file_begin(&tracking->file, err);
    if (status == WM_OK && !tracking->has_static)
        status = write_static(tracking, &ticks[0], err);
    for (size_t i = 0; i < count && status == WM_OK; i++)
        status = write_tick(tracking, &ticks[i], err);
    if (status == WM_OK)
        status = wm_gpu_tracker_file_commit(&tracking->file, err);
    if (status == WM_OK) {
        tracking->has_static = true;
        return WM_OK;
    }
    wm_gpu_tracker_file_take_back(&tracking->file);
    wm_timepoint_builder_copy(tracking->builder, tracking->before);
    tracking->has_rows = tracking->had_rows;
    return status;
}

/* A value that is missing is an empty cell or NULL; why has no place here. */
static int write_gap(void *state, const struct wm_gap *gap, struct wm_error *err)
{
    (void)state, (void)gap, (void)err;
    return WM_OK;
}

static int finish(void *state, const struct wm_result *result, struct wm_error *err)
{
    struct tracking *tracking = state;

    (void)result;
    return wm_gpu_tracker_file_sync(&tracking->file, err);
}

static void close_tracking(void *state)
{
    struct tracking *tracking = state;

    wm_gpu_tracker_file_close(&tracking->file);
    wm_timepoint_builder_free(tracking->builder);
    wm_timepoint_builder_free(tracking->before);
}

const struct wm_recorder_ops wm_recorder_gpu_tracker_csv = {
    .name = "gpu_tracker's CSV",
    .path_in = csv_path,
    .survives_kill = true,
    .state_size = sizeof(struct tracking),
    .open = open_tracking,
    .write = write_ticks,
    .gap = write_gap,
    .finish = finish,
    .close = close_tracking,
};

static const char *const companions[] = { "-journal", NULL };

const struct wm_recorder_ops wm_recorder_gpu_tracker_sqlite = {
    .name = "gpu_tracker's SQLite",
    .path_in = sqlite_path,
    .companions = companions,
    .survives_kill = true,
    .state_size = sizeof(struct tracking),
    .open = open_tracking,
    .write = write_ticks,
    .gap = write_gap,
    .finish = finish,
    .close = close_tracking,
};
