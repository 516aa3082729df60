/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_timepoints_ops.h - what a kind of file with timepoints provides; nothing outside
 * src/record sees it. Each kind has a struct of its own that begins with a struct
 * wm_timepoints, which its wm_timepoints_open_...() allocates and hands out.
 */
#ifndef WM_RECORD_TIMEPOINTS_OPS_H
#define WM_RECORD_TIMEPOINTS_OPS_H

#include "base/text/base_remarks.h"
#include "record/calls/record_timepoints.h"

struct wm_timepoints_ops {
    /* As wm_timepoints_next(). */
    int (*next)(struct wm_timepoints *timepoints, struct wm_timepoint *ret_timepoint,
                struct wm_error *err);

    /* Frees `timepoints` too, whatever state open left it in. */
    void (*close)(struct wm_timepoints *timepoints);
};

struct wm_timepoints {
    const struct wm_timepoints_ops *ops;
    struct wm_static_data static_data;
    struct wm_remarks remarks;
    bool is_recording;
};

/* Whether a file that begins with these bytes is gpu_tracker's tracking file in CSV, or
 * ours, which has the same columns. */
bool wm_timepoints_is_csv(const char *head, size_t length);

/* gpu_tracker's files, and ours by the columns or tables that they share. `run` as in
 * wm_timepoints_open(). */
int wm_timepoints_open_csv(const char *path, size_t run,
                           struct wm_timepoints **ret_timepoints, struct wm_error *err);

/* `*ret_timepoints` stays NULL where it is a recording of several runs, whose rows do not
 * say to which they belong. */
int wm_timepoints_open_sqlite(const char *path, size_t run,
                              struct wm_timepoints **ret_timepoints, struct wm_error *err);

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

/* Takes one of them as text, "" where it is not known. False when it cannot be one. */
bool wm_static_set(struct wm_static_data *data, enum wm_static_column column,
                   const char *text);

#endif
