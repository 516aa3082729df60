/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat_gpu_tracker.h - what the two forms of gpu_tracker's tracking file share: the
 * names of its columns, the units that the user chose, and each tick as a row of it.
 *
 * Such a recording has what gpu_tracker's has and nothing else. It is named
 * "gpu-tracker:RAM,GPU_RAM,TIME:FILE", since the units are a part of it.
 */
#ifndef WM_COMPAT_GPU_TRACKER_H
#define WM_COMPAT_GPU_TRACKER_H

#include "record/calls/record_timepoint.h"
#include "record/run/record_run.h"

/* The nine values of the static data, in gpu_tracker's order. */
enum wm_static_column {
    WM_STATIC_RAM_UNIT,
    WM_STATIC_GPU_RAM_UNIT,
    WM_STATIC_TIME_UNIT,
    WM_STATIC_RAM_CAPACITY,
    WM_STATIC_GPU_RAM_CAPACITY,
    WM_STATIC_SYSTEM_CORES,
    WM_STATIC_EXPECTED_CORES,
    WM_STATIC_GPUS,
    WM_STATIC_EXPECTED_GPUS,
    WM_STATIC_COUNT,
};

extern const char *const wm_static_names[WM_STATIC_COUNT];

/* The names of units, ending with NULL; of memory each is 1000 of the one before. */
extern const char *const wm_memory_units[];
extern const char *const wm_time_units[];

/* gpu_tracker's columns of a row: the measurements, then "timestamp". */
enum { WM_TIMESTAMP = WM_MEASUREMENT_COUNT, WM_TIMEPOINT_COLUMNS };

/* `ret_names` has WM_TIMEPOINT_COLUMNS places. */
void wm_timepoint_columns(const char **ret_names);

/* Of a target whose FILE ends in `suffix`: where FILE begins; NULL where `target` is no
 * such one, or a unit is none. */
const char *wm_gpu_tracker_path(const char *target, const char *suffix);

struct wm_gpu_tracker {
    const char *path; /* for messages */
    const struct wm_run *run;
    const char *units[3];          /* of memory, of GPU memory, of time */
    double ram_unit, gpu_ram_unit; /* in bytes */
    double ram_capacity, gpu_ram_capacity;
    bool has_static;         /* the static data is written */
    bool has_rows, had_rows; /* now, and at the start of the batch */
    struct wm_timepoint_builder *builder;
    struct wm_timepoint_builder *before; /* the builder at the start of a batch */
};

/* `target` is one for which wm_gpu_tracker_path() has a path. WM_ENOMEM is the only
 * failure; the release is due in any case. */
int wm_gpu_tracker_init(struct wm_gpu_tracker *tracker, const char *target,
                        const struct wm_run *run, const struct wm_channel *channels,
                        size_t count, struct wm_error *err);
void wm_gpu_tracker_release(struct wm_gpu_tracker *tracker);

/* Begins a batch of ticks, the first of which tells the capacities. */
void wm_gpu_tracker_begin(struct wm_gpu_tracker *tracker, const struct wm_tick *first);

/* Back to where the batch began. */
void wm_gpu_tracker_take_back(struct wm_gpu_tracker *tracker);

/* A value of the file; NAN: it is not known. */
struct wm_gpu_tracker_cell {
    const char *text; /* NULL: the number */
    double number;
    bool is_count; /* a whole number */
};

/* `index` is an enum of WM_STATIC_.... */
struct wm_gpu_tracker_cell wm_gpu_tracker_static(const struct wm_gpu_tracker *tracker,
                                                 int index);

/* Takes the next tick: the row that it comes to. False for the first one, which ends no
 * window, and for one that finds the command gone, unless it is the only one. */
bool wm_gpu_tracker_row(struct wm_gpu_tracker *tracker, const struct wm_tick *tick,
                        struct wm_gpu_tracker_cell ret_row[WM_TIMEPOINT_COLUMNS]);

#endif
