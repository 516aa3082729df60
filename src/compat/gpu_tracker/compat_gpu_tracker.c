/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat_gpu_tracker.c - writing gpu_tracker's tracking file: ticks as its rows.
 *
 * Such a recording has what gpu_tracker's has and nothing else. It is named
 * "gpu-tracker:RAM,GPU_RAM,TIME:FILE", since the units are a part of it.
 */
#include <string.h>

#include "base/base_text.h"
#include "compat/gpu_tracker/compat_gpu_tracker_file.h"
#include "record/record_ops.h"
#include "record/record_timepoint.h"
#include "view/view_units.h"

#define PREFIX "gpu-tracker:"

/* Takes the units out of `target`; where the path begins, or NULL. */
static const char *parse(const char *target, struct wm_units *ret_units)
{
    static const char ends[] = ",,:";
    char words[3][16];
    const struct wm_report_style style = {
        .ram_unit = words[0],
        .gpu_ram_unit = words[1],
        .time_unit = words[2],
    };

    if (strncmp(target, PREFIX, strlen(PREFIX)) != 0)
        return NULL;
    target += strlen(PREFIX);
    for (int i = 0; i < 3; i++) {
        size_t length = strcspn(target, ",:");
        if (length >= sizeof(words[i]) || target[length] != ends[i])
            return NULL;
        memcpy(words[i], target, length);
        words[i][length] = '\0';
        target += length + 1;
    }
    return wm_units_of_style(&style, ret_units, NULL) == WM_OK ? target : NULL;
}

/* Of a target whose FILE ends in `suffix`: where FILE begins; NULL of any other. */
static const char *path_of(const char *target, const char *suffix)
{
    struct wm_units units;

    const char *path = parse(target, &units);

    return path && path[0] && wm_text_ends(path + 1, suffix) ? path : NULL;
}

static const char *csv_path(const char *target)
{
    return path_of(target, ".csv");
}

static const char *sqlite_path(const char *target)
{
    return path_of(target, ".sqlite");
}

struct tracking {
    struct wm_gpu_tracker_file file;
    const struct wm_run *run;
    struct wm_units units;
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
    const char *path = parse(target, &tracking->units);
    return status < 0 ? status
                      : wm_gpu_tracker_file_open(&tracking->file, path,
                                                 sqlite_path(target) != NULL, err);
}

static int write_static(struct tracking *tracking, const struct wm_tick *first,
                        struct wm_error *err)
{
    const struct wm_run *run = tracking->run;
    const struct wm_units *units = &tracking->units;
    double cores = run->expected_cores > 0 ? run->expected_cores : run->core_count;
    const char *names[WM_STATIC_COLUMNS];
    struct wm_known ram, gpu_ram;

    wm_timepoint_capacities(tracking->builder, first, &ram, &gpu_ram);
    const struct wm_gpu_tracker_cell cells[WM_STATIC_COLUMNS] = {
        { .text = units->ram->name },
        { .text = units->gpu_ram->name },
        { .text = units->time->name },
        { .number = { ram.known, ram.number / units->ram->size } },
        { .number = { gpu_ram.known, gpu_ram.number / units->gpu_ram->size } },
        { .number = { true, run->core_count }, .is_count = true },
        { .number = { true, cores }, .is_count = true },
        { .number = { true, run->gpu_count }, .is_count = true },
        { .number = { true, run->expected_gpu_count }, .is_count = true },
    };
    for (int i = 0; i < WM_STATIC_COLUMNS; i++)
        names[i] = wm_static_columns[i].name;
    int status = wm_gpu_tracker_file_table(&tracking->file, "static_data", names, cells,
                                           WM_STATIC_COLUMNS, err);
    return status < 0
               ? status
               : wm_gpu_tracker_file_row(&tracking->file, cells, WM_STATIC_COLUMNS, err);
}

static double unit_of(const struct tracking *tracking, int measurement)
{
    if (measurement <= WM_SYSTEM_RAM)
        return tracking->units.ram->size;
    return measurement <= WM_SYSTEM_GPU_RAM ? tracking->units.gpu_ram->size : 1;
}

/* The command is gone. What it used since the tick before is over in a moment, and would
 * count as much as any other window; the original takes no sample then. */
static bool is_after_end(const struct wm_timepoint *timepoint)
{
    return !wm_timepoint_value(timepoint, WM_MAIN_RAM).known &&
           !wm_timepoint_value(timepoint, WM_MAIN_THREADS).known;
}

/* The table is there from its first row on. The first tick ends no window. */
static int write_tick(struct tracking *tracking, const struct wm_tick *tick,
                      struct wm_error *err)
{
    struct wm_gpu_tracker_cell row[WM_TIMEPOINT_COLUMNS];
    struct wm_timepoint timepoint;
    int status = WM_OK;

    if (!wm_timepoint_next(tracking->builder, tick, &timepoint) ||
        (tracking->has_rows && is_after_end(&timepoint)))
        return WM_OK;
    for (int i = 0; i < WM_MEASUREMENT_COUNT; i++) {
        row[i] = (struct wm_gpu_tracker_cell) {
            .number = wm_timepoint_value(&timepoint, (size_t)i),
            .is_count = i >= WM_MAIN_THREADS && i <= WM_COMBINED_THREADS,
        };
        row[i].number.number /= unit_of(tracking, i);
    }
    row[WM_TIMESTAMP] = (struct wm_gpu_tracker_cell) {
        .number = { true, wm_timepoint_unix_seconds(tracking->run, tick->when_ns) },
    };
    if (!tracking->has_rows)
        status = wm_gpu_tracker_file_table(&tracking->file, "data", wm_timepoint_columns,
                                           row, WM_TIMEPOINT_COLUMNS, err);
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
