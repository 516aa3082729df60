/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat_gpu_tracker_read.h - what the readers of the two forms of gpu_tracker's tracking
 * file share: a row as a tick with its timepoint, and the static data.
 *
 * Rows are in the order of time unless the clock was set back while gpu_tracker wrote
 * them. Only when that shows are all of them kept in memory and sorted.
 */
#ifndef WM_COMPAT_GPU_TRACKER_READ_H
#define WM_COMPAT_GPU_TRACKER_READ_H

#include "record/record_ops.h"
#include "record/record_timepoint.h"

struct wm_tracking_row;

/* The first member of the state of such a reader. */
struct wm_tracking_reader {
    struct wm_reader_head head;
    struct wm_static_data static_data;
    const char *shown; /* the file, in messages */
    int64_t last_ns;

    /* 1 and the next row as it stands there, borrowed, or 0 past the last one. */
    int (*row)(void *state, const struct wm_timepoint **ret_row, struct wm_error *err);

    /* Back to before the first row. */
    int (*again)(void *state, struct wm_error *err);

    struct wm_tracking_row *sorted; /* NULL: they are in order */
    size_t count, next;
};

/* Fills in the head, and finds that the file has such a run. `row` and `again` are the
 * caller's to set; wm_tracking_reader_release() is due. */
int wm_tracking_reader_init(struct wm_tracking_reader *reader, const char *path, size_t run,
                            struct wm_error *err);
void wm_tracking_reader_release(struct wm_tracking_reader *reader);

/* Takes the value of a column of the static data as text, "" where it is not known. False
 * when it cannot be one. */
bool wm_tracking_reader_set(struct wm_tracking_reader *reader, size_t column,
                            const char *text);

/* The next tick in the order of time, as a reader gives it. */
int wm_tracking_reader_next(void *state, struct wm_tick *ret_tick, struct wm_error *err);

#endif
