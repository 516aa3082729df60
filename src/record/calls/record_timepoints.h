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

/* As gpu_tracker keeps it. NAN and -1: not known. */
struct wm_static_data {
    char ram_unit[16], gpu_ram_unit[16], time_unit[16]; /* "gigabytes", "hours" */
    double ram_capacity, gpu_ram_capacity;
    int system_cores, expected_cores, gpus, expected_gpus;
};

struct wm_timepoints;

/* `recording` stands at its start; it stays the caller's and outlives the result. */
int wm_timepoints_of_recording(struct wm_recording *recording,
                               struct wm_timepoints **ret_timepoints, struct wm_error *err);

/* In the units of wm_timepoints_static(), times since 1970 in UTC, in the order of time. 1
 * and `ret_timepoint`, 0 past the last one. WM_TIMEPOINTS_ANEW, once at most: the file is
 * not in that order, which comes of a clock that was set back; what was handed out so far
 * is void, and from the next call on they come anew, from the first one, sorted. */
#define WM_TIMEPOINTS_ANEW 2
int wm_timepoints_next(struct wm_timepoints *timepoints, struct wm_timepoint *ret_timepoint,
                       struct wm_error *err);

const struct wm_static_data *wm_timepoints_static(const struct wm_timepoints *timepoints);

/* Accepts NULL. */
void wm_timepoints_close(struct wm_timepoints *timepoints);

#endif
