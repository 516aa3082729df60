/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region_left.h - what a tracker that was killed has left in the folder of its inbox: its
 * journal, and the rings as the program filled them on. Only reads, so that it may be done
 * again, also while the program still runs.
 *
 * The folder may be any, as its path comes out of a file: no more is believed of what is in
 * it than the inbox believes of its rings.
 */
#ifndef WM_REGION_LEFT_H
#define WM_REGION_LEFT_H

#include "region/drain/region_calls.h"

struct wm_region_left {
    int64_t last_ns;   /* the time of the last event */
    uint64_t dropped;  /* events that the rings had no room for, or that had no ring */
    int no_ring_errno; /* why a thread could not make its ring; 0: all could */
    char trouble[256]; /* why there may have been more; empty: that is all */
};

/* Hands out the edges, in the order of time, of all calls that may not be in the recording
 * yet; some may be. `calls` is new, and what is open at the end is left open there.
 * WM_ENODEV: there is no such folder, or its tracker is not dead; WM_ENOMEM, which may come
 * from `take`; and any other failure is a trouble. */
int wm_region_left_read(const char *folder, struct wm_region_calls *calls,
                        wm_region_take_edge *take, void *context,
                        struct wm_region_left *ret_left, struct wm_error *err);

#endif
