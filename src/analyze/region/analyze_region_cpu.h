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

/* Joules go where the CPU time went. Within a stretch they are divided by time; where the
 * clocks tell that a path had more CPU time than its part by time, what is lacking comes
 * from those that had less, as far as nobody else can have had it: threads and processes
 * that no clock tells of keep their part by time. */
struct wm_region_move {
    double joules_per_s; /* of CPU time */
    bool is_in_turn;     /* all calls are of one thread: what a region has inside, it has */
    struct wm_region_item *rest;
};

/* By time, what an item has exclusively of the CPU time, and of each energy that moves. */
struct wm_region_by_time {
    double cpu_s, joules;
};

/* Finds `moved_j` of all items, for which `by_time` has a place per path, and then one for
 * the rest. After wm_region_cpu_find(). */
void wm_region_cpu_move(struct wm_region_items *items, const struct wm_region_move *move,
                        const struct wm_region_by_time *by_time);

#endif
