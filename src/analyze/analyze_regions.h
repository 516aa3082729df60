/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_regions.h - what the regions of a run cost: per name, and per path of the tree of
 * calls.
 *
 * Between two ticks a device is taken to run evenly, so what it used is given to a region
 * by the time that the region was open (any call of it, each moment once): that is all
 * that happened meanwhile, whoever did it. What a path has of its own adds up over the
 * paths: each moment is shared evenly by the innermost open regions of all threads, and a
 * moment without any belongs to none, which is the rest.
 */
#ifndef WM_ANALYZE_REGIONS_H
#define WM_ANALYZE_REGIONS_H

#include "analyze/analyze_blocks.h"
#include "region/region_calls.h"
#include "wattmeter/recording.h"

struct wm_regions;

int wm_regions_new(struct wm_regions **ret_regions, struct wm_error *err);

/* Accepts NULL. */
void wm_regions_free(struct wm_regions *regions);

/* The next edge in the order of time; `path` of it, and of its parents on request. Later
 * than the last wm_regions_complete(). WM_ENOMEM is the only failure. */
int wm_regions_edge(struct wm_regions *regions, const struct wm_region_edge *edge,
                    const struct wm_region_path *path);

/* What has been used up to a tick, as running totals. NAN: not known at this tick. */
struct wm_region_totals {
    int64_t when_ns;
    double cpu_s;                /* CPU time of the tree */
    double cpu_j, dram_j, gpu_j; /* energy of the machine's, */
    double tree_j;               /* and what of it is the tree's, */
};

/* Keeps a tick until the edges up to it are known. `timepoint` may be NULL. */
int wm_regions_tick(struct wm_regions *regions, const struct wm_region_totals *totals,
                    const struct wm_timepoint *timepoint);

/* All edges up to that time have been handed in. */
void wm_regions_complete(struct wm_regions *regions, int64_t when_ns);

#endif
