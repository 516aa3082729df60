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

/* What an item, or the rest, has exclusively if each stretch is divided by time. */
struct wm_region_by_time {
    struct wm_region_item *item;
    bool is_rest;
    double seconds, cpu_s;
    double own_s;  /* time of all its calls in which it was innermost in its thread */
    double joules; /* of the energy that moves */
    double shared; /* the part of its time in which others were innermost, too */
    double loose;  /* the part in which stretches do not tell whose CPU time it was */

    /* Results: CPU time that no clock reports, what the item has beyond `cpu_s`, and the
     * uncertainty of that. */
    double left_s, moved_s, off_s;
};

/* Finds how much CPU time each item has beyond its part by time, or below it: what the
 * clocks report, and its part of what they do not report. `parts` are all paths, in the
 * order of their numbers so that sums do not depend on the file, and the rest. Returns the
 * CPU time that no clock reports. Call it after wm_region_cpu_find(). */
double wm_region_cpu_divide(struct wm_region_items *items, struct wm_region_by_time *parts,
                            size_t count);

/* Joules follow CPU time: they move from items with less CPU time than their part by time
 * to items with more. */
struct wm_region_move {
    enum wm_region_rate rate;
    double joules_per_s; /* of CPU time */
    bool is_in_turn;     /* all calls are of one thread: what a region has inside, it has */
};

/* Finds what moves at one of the rates. */
void wm_region_cpu_move(struct wm_region_items *items, const struct wm_region_move *move,
                        const struct wm_region_by_time *parts, size_t count);

#endif
