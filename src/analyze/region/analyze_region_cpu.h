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

/* What an item, or the rest, has exclusively by time: within a stretch all is divided so.
 */
struct wm_region_by_time {
    struct wm_region_item *item;
    bool is_rest;
    double seconds, cpu_s;
    double own_s;  /* in which it was innermost, whoever else was, of all its calls */
    double joules; /* of the energy that moves */
    double shared; /* the part of its time in which others were innermost, too */
    double loose;  /* the part in which stretches do not tell whose CPU time it was */

    /* What comes out: CPU time that no clock tells of, what the item has beyond `cpu_s`,
     * and how far that may be off. */
    double left_s, moved_s, off_s;
};

/* Finds how much CPU time each item has beyond its part by time, or below it: what the
 * clocks tell, and of what they do not tell its part. `parts` are all paths in the order of
 * their numbers, so that sums are the same wherever they come from, and the rest. What no
 * clock tells of is returned. After wm_region_cpu_find(). */
double wm_region_cpu_divide(struct wm_region_items *items, struct wm_region_by_time *parts,
                            size_t count);

/* Joules go where the CPU time went: those that have more get it of those that have less.
 */
struct wm_region_move {
    enum wm_region_rate rate;
    double joules_per_s; /* of CPU time */
    bool is_in_turn;     /* all calls are of one thread: what a region has inside, it has */
};

/* Finds what moves at one of the rates. */
void wm_region_cpu_move(struct wm_region_items *items, const struct wm_region_move *move,
                        const struct wm_region_by_time *parts, size_t count);

/* What the packages took in a run, and what is known of them. */
struct wm_region_package {
    double joules, seconds, cores;
    double busy_s, tree_s;  /* CPU time of the machine, and of the tree */
    double tree_j;          /* what of the joules the tree's is said to be */
    struct wm_known most_w; /* known of a model, whose power goes by CPU time alone */
    struct wm_known idle_w; /* as it was measured before the run */
    double idle_off_w;      /* which may be off by that */
    bool is_alone;          /* the tree has no energy but of the packages */
};

/* Stretches of the packages' energy, with the machine's CPU time in them. All zero is the
 * right start. */
struct wm_region_line {
    bool started;
    double joules, busy_s; /* where the last one ended */
    uint64_t count;
    double seconds, sum_j, sum_s, square_s, square_j, product;
};

/* `busy_s`: the machine's CPU time so far. */
void wm_region_line_take(struct wm_region_line *line, double seconds, double joules,
                         struct wm_known busy_s);

/* Joules of a second of CPU time: what they are, and between what they lie. */
struct wm_region_rates {
    double of[WM_REGION_RATES]; /* all 0: nothing is known of them */
    double mix;        /* the part of it by which one program may differ from another */
    double residual_w; /* power that CPU time does not explain may differ by that */
};

struct wm_region_rates wm_region_rates_of(const struct wm_region_package *package,
                                          const struct wm_region_line *line);

#endif
