/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat_gpu_tracker_read.h - what the readers of the two forms of gpu_tracker's tracking
 * file share: its measurements as channels, a row as a tick, and the static data.
 */
#ifndef WM_COMPAT_GPU_TRACKER_READ_H
#define WM_COMPAT_GPU_TRACKER_READ_H

#include "compat/gpu_tracker/compat_gpu_tracker.h"
#include "record/calls/record_timepoints.h"
#include "record/record_ops.h"

/* The first member of the state of such a reader. */
struct wm_tracking_reader {
    struct wm_reader_head head;
    struct wm_static_data static_data;
    struct wm_channel channels[WM_MEASUREMENT_COUNT];
    struct wm_reading readings[WM_MEASUREMENT_COUNT];
};

/* Fills in the head. wm_reader_head_release() is due. */
void wm_tracking_reader_init(struct wm_tracking_reader *reader);

/* Takes one value of the static data as text, "" where it is not known. False when it
 * cannot be one. */
bool wm_tracking_reader_set(struct wm_tracking_reader *reader, enum wm_static_column column,
                            const char *text);

/* Borrowed until the next one. */
struct wm_tick wm_tracking_reader_tick(struct wm_tracking_reader *reader,
                                       const struct wm_timepoint *timepoint);

#endif
