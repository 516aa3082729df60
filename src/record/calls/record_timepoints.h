/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_timepoints.h - a recording as gpu_tracker's analysis sees it: timepoints with its
 * 21 measurements, and static data. Those of gpu_tracker's tracking files stand there as
 * they are; those of our recordings are computed from the ticks.
 */
#ifndef WM_RECORD_TIMEPOINTS_H
#define WM_RECORD_TIMEPOINTS_H

#include "base/base_error.h"
#include "record/calls/record_timepoint.h"

/* As gpu_tracker keeps it. A number that is not known is 0. */
struct wm_static_data {
    char ram_unit[16], gpu_ram_unit[16], time_unit[16]; /* "gigabytes", "hours" */
    struct wm_known ram_capacity, gpu_ram_capacity;
    struct wm_known system_cores, expected_cores, gpus, expected_gpus; /* whole ones */
};

/* That of a run of ours, but for the capacities. */
struct wm_static_data wm_static_data_of(const struct wm_run *run);

/* Its columns in gpu_tracker's order. */
enum wm_static_kind {
    WM_STATIC_MEMORY_UNIT,
    WM_STATIC_TIME_UNIT,
    WM_STATIC_CAPACITY,
    WM_STATIC_COUNT,
};

struct wm_static_column {
    const char *name;
    enum wm_static_kind kind;
    size_t offset; /* in struct wm_static_data */
};

enum { WM_STATIC_COLUMNS = 9 };
extern const struct wm_static_column wm_static_columns[WM_STATIC_COLUMNS];

/* The value of a column. */
struct wm_static_entry {
    const char *key;
    const char *text; /* NULL: it is a number */
    struct wm_known number;
    bool is_whole;
};

struct wm_static_entry wm_static_data_entry(const struct wm_static_data *data,
                                            size_t index);

struct wm_timepoints;

/* `recording` outlives the result. */
int wm_timepoints_of_recording(const struct wm_recording *recording,
                               struct wm_timepoints **ret_timepoints, struct wm_error *err);

/* In place of 1, wm_recording_next() says so once at most, of gpu_tracker's files: the file
 * is not in the order of time, which comes of a clock that was set back; what was handed
 * out so far is void, and from the next call on ticks come anew, from the first one,
 * sorted. */
#define WM_TIMEPOINTS_ANEW 2

/* Takes the next tick of the recording. False where it gives no timepoint, as the first one
 * of ours does not. In the units of wm_timepoints_static(); its time is the tick's. */
bool wm_timepoints_take(struct wm_timepoints *timepoints, const struct wm_tick *tick,
                        struct wm_timepoint *ret_timepoint);

/* Since 1970, as gpu_tracker's column has it, a double, which is off by a tenth of a
 * microsecond: that of the recording's own table `data`, so that whoever analyzes this
 * comes to the same. Of gpu_tracker's files it is the tick's. */
int64_t wm_timepoints_unix_ns(const struct wm_timepoints *timepoints, int64_t when_ns);

/* Once the first tick was taken, all of it is known. */
const struct wm_static_data *wm_timepoints_static(const struct wm_timepoints *timepoints);

/* Accepts NULL. */
void wm_timepoints_close(struct wm_timepoints *timepoints);

#endif
