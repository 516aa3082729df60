/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region_left.h - what a tracker that was killed has left in the folder of its inbox: its
 * journal, and the rings as the program filled them on. Only reads, so that it may be done
 * again, also while the program still runs.
 */
#ifndef WM_REGION_LEFT_H
#define WM_REGION_LEFT_H

#include "region/region_calls.h"

/* Hands out the edges, in the order of time, of all calls that may not be in the recording
 * yet; some may be. `calls` is new, and what is open at the end is left open there.
 * `ret_last_ns` is the time of the last event. WM_ENODEV: there is no such folder, or its
 * tracker is not dead. */
int wm_region_left_read(const char *folder, struct wm_region_calls *calls,
                        wm_region_take_edge *take, void *context, int64_t *ret_last_ns,
                        struct wm_error *err);

#endif
