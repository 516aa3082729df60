/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_region_cpu.h - the CPU time of regions by what their threads' own clocks told;
 * for src/analyze alone.
 *
 * A call that was clocked has its thread's CPU time from its begin to its end, with that of
 * the calls inside. One that was not, inside of one that was, has its part by time of what
 * the clocked calls right inside that one left: it ran in the same thread. One that lies in
 * none has its part by time of what all processes used, as all regions had before there
 * were clocks. Nothing of other threads and of child processes is in what is clocked: that
 * is their own regions', or the rest.
 */
#ifndef WM_ANALYZE_REGION_CPU_H
#define WM_ANALYZE_REGION_CPU_H

#include "analyze/region/analyze_region_items.h"

/* For each path: what it has of all by the time that it was open, the time of its calls
 * that are open still, and its times. */
void wm_region_cpu_begin(struct wm_region_item *path, struct wm_region_use by_time,
                         double open_s, const struct wm_region_time times[WM_REGION_PARTS]);

/* Then finds `clocked.uses` of all paths and names. What paths have exclusively, of which
 * the sum is returned, is `total` at most, but for what the two clocks may differ by. */
double wm_region_cpu_find(struct wm_region_items *items, double total);

#endif
