/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_read_join.h - two recordings of the same time as one: the ticks and channels of
 * the first, and what a meter saw at each of those ticks.
 *
 * The two are brought together by the time of day: that of the first comes from
 * its anchor. A tick has the meter's newest reading, with the time of that; the first
 * and the last tick have what the straight line between two readings says. Outside of
 * them, and where the meter itself has a hole, nothing is known.
 */
#ifndef WM_RECORD_READ_JOIN_H
#define WM_RECORD_READ_JOIN_H

#include "record/record_ops.h"

/* Sets up the state of wm_reader_join. `name` is what people call the meter's file.
 * Both recordings stand at their start, and belong to the state from here on if
 * this succeeds. */
int wm_join_init(void *state, struct wm_recording *recording, struct wm_recording *meter,
                 const char *name, struct wm_error *err);

/* Its open() is missing: wm_join_init() takes its place. */
extern const struct wm_reader_ops wm_reader_join;

#endif
