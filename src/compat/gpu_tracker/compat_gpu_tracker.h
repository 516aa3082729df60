/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat_gpu_tracker.h - gpu_tracker's tracking file: the names of its columns, and the
 * units that the user chose.
 *
 * Such a recording has what gpu_tracker's has and nothing else. It is named
 * "gpu-tracker:RAM,GPU_RAM,TIME:FILE", since the units are a part of it.
 */
#ifndef WM_COMPAT_GPU_TRACKER_H
#define WM_COMPAT_GPU_TRACKER_H

#include "record/calls/record_timepoint.h"

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

#endif
