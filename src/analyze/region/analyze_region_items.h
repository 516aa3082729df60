/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_region_items.h - the names and paths of regions, each of which is made with its
 * first call and has an account, and the calls that are open in them; for src/analyze
 * alone.
 */
#ifndef WM_ANALYZE_REGION_ITEMS_H
#define WM_ANALYZE_REGION_ITEMS_H

#include <stdbool.h>
#include <stdint.h>

#include "analyze/region/analyze_blocks.h"
#include "base/text/base_names.h"
#include "base/text/base_number.h"
#include "region/drain/region_calls.h"

/*
 * A region's part of what a resource told from tick to tick, and
 * how far that may be off.
 *
 * A resource reports how much has been used now and then: in stretches of a tick, or of
 * some where its sensor is slower. A region has the part of a stretch that it has of its
 * time. How it really was within a stretch nobody sees: what was used in the region may
 * have been used faster or slower than in the rest of the stretch.
 * docs/energy-uncertainty.md explains how that rate difference is bounded.
 */

enum wm_region_resource {
    WM_REGION_CPU_TIME,    /* s, of the tree */
    WM_REGION_CPU_ENERGY,  /* J of the machine's packages */
    WM_REGION_DRAM_ENERGY, /* J of its memory */
    WM_REGION_GPU_ENERGY,  /* J of its GPUs */
    WM_REGION_TREE_ENERGY, /* J: what of these three is the tree's */
    WM_REGION_RESOURCES,
};

#define WM_REGION_BIT(resource) (1U << (resource))

/* A resource. All zero is the right start. */
struct wm_region_meter {
    bool started, is_absent;
    double period_s;
    int64_t from_ns; /* when it last had something new */
    double base;     /* what it reported then */
    uint64_t waited; /* ticks since then */

    /* Of the stretches up to now. */
    uint64_t count;
    double seconds, used, squares; /* the last: of what was used, by seconds */
    double most, least;            /* per second */
    double last_s, last_rate;      /* the last one */
};

/* The time of a region: the sum of its weights at each moment, and of their squares. */
struct wm_region_time {
    double ns, squares;
};

/* What of a resource is a region's. All zero is the right start. */
struct wm_region_share {
    struct wm_region_time mark; /* when the resource last had something new */
    double last_s;              /* its time in the last stretch */
    double used;
    double seconds, squares; /* its time; the same times its part of each stretch */
    double doubt_s,
        doubt_squares; /* of that time, in stretches that are its own in part; and */
                       /* the sum of the squares of these */
    double share_changes,
        share_change_squares; /* its parts of neighbouring stretches differ by so much */
    double most_part;         /* the greatest part that it had of a stretch */
};

/* What was used in the end, and how far that may be off, as ratios at k = 2. */
struct wm_region_whole {
    struct wm_known used;
    bool is_lower_bound;  /* `used` is: more may have been used */
    struct wm_known most; /* more per second cannot be */
    bool has_uncertainty; /* systematic and random are known */
    double systematic, random;
    double quantum; /* it is used in multiples of so much per second; 0: any */
    double step;    /* error of what is reported at a tick; in its unit */

    /* The part of it that the tree used without a record of which thread did: while several
     * threads have a region open, one of them may have used all of it. */
    double unassigned;
};

/* What the threads' clocks say about a region's energy, where power follows CPU time. */
struct wm_region_shift {
    double moved, off; /* J beyond its part by time, and the uncertainty of that */
    double difference; /* W by which power inside may differ from power outside, */
    double residual;   /* and by which it may beyond what the clocks explain */
    double loose;      /* W at unknown times, which average out over many calls */
};

/* What a region used, and how far that may be off, in the same unit at k = 2. */
struct wm_region_use {
    struct wm_known used;
    bool has_uncertainty; /* systematic and random are known */
    double systematic, random;
    bool is_short; /* its calls are, for the pace of the resource */
};

/* Before the first wm_region_meter_take(). */
void wm_region_meter_start(struct wm_region_meter *meter, int64_t when_ns, double used);

/* Whether what is reported at a tick ends a stretch. */
bool wm_region_meter_is_due(const struct wm_region_meter *meter, int64_t when_ns,
                            double used);

/* Gives a region its part of the stretch that ends; for each region, then the meter. */
void wm_region_share_take(struct wm_region_share *share,
                          const struct wm_region_meter *meter,
                          const struct wm_region_time *time, int64_t when_ns, double used);
void wm_region_meter_take(struct wm_region_meter *meter, int64_t when_ns, double used);

/* Whether nothing changes in a share until the region has more time. */
bool wm_region_share_is_still(const struct wm_region_share *share,
                              const struct wm_region_time *time);

/* What it comes to by `now_ns`; `openings` is how often the region was opened. `shift` is
 * NULL if no clock says anything about it. */
void wm_region_share_result(const struct wm_region_share *share,
                            const struct wm_region_meter *meter,
                            const struct wm_region_time *time, int64_t now_ns,
                            uint64_t openings, const struct wm_region_whole *whole,
                            const struct wm_region_shift *shift,
                            struct wm_region_use *ret_use);

/* Paths from this number on are taken together in a report, as one without a parent. */
#define WM_REGIONS_MOST 4096

/* The limit for code blocks, whose paths are their names. Each takes about 10 kB. */
#define WM_BLOCKS_MOST 16384

/* What numbers of paths stand for. */
struct wm_region_paths {
    const struct wm_region_path *(*find)(const void *context, uint32_t path);
    const void *context;
};

#define WM_REGION_NO_ITEM SIZE_MAX

enum wm_region_part {
    WM_REGION_INCLUSIVE, /* while a call is open, whatever happened inside */
    WM_REGION_EXCLUSIVE,
    WM_REGION_PARTS,
};

struct wm_region_bounds {
    double least, most;
};

/* What is known of the CPU time of a path's calls that are over, and, once
 * wm_region_cpu_find() was there, what it comes to. */
struct wm_region_clocked {
    uint64_t calls; /* those that were clocked */
    uint64_t cpu_ns, ns,
        others_ns; /* their CPU time and time, and the time of the others */

    double cpu_s, s, others_s;     /* the same in the end, with what is open still */
    double attributed_s, off_s;    /* CPU time of the others, and how far that may be off */
    double inside_cpu_s, inside_s; /* of the clocked calls right inside */
    double inside_off_s;           /* by which their CPU time may be off */
    bool has_started;              /* calls right inside were started by themselves */
    double alone;                  /* part of its time that it did not share with others */
    double
        unknown; /* the part of its CPU time that is divided by time, for lack of a clock */
    struct wm_region_use uses[WM_REGION_PARTS];
    struct wm_region_bounds bounds[WM_REGION_PARTS]; /* of its CPU time */
};

/* Joules per second of CPU time. */
enum wm_region_rate {
    WM_REGION_RATE_TREE, /* of the tree's energy */
    WM_REGION_RATE_LOW,  /* of the packages' energy: the range of it, and its middle */
    WM_REGION_RATE_MIDDLE,
    WM_REGION_RATE_HIGH,
    WM_REGION_RATES,
};

struct wm_region_moved {
    double j[WM_REGION_RATES]
            [WM_REGION_PARTS]; /* added to its energy by time, at each rate */
    double off_s;              /* the uncertainty of its CPU time */
    double shared_s;           /* its CPU time while other threads worked, too */
    double own_s; /* time of all its calls in which it was innermost in its thread */
};

/* A name or a path. */
struct wm_region_item {
    const char *name;
    size_t of_name; /* a path's */
    size_t parent;  /* a path's, or WM_REGION_NO_ITEM */
    uint32_t parent_path, depth;
    bool is_free, is_active;
    uint64_t open, inside; /* calls; and calls right inside those, of a path */
    uint64_t leaves;       /* calls that are innermost */
    uint64_t openings;
    int64_t open_from_ns;
    uint64_t start_sum; /* of the calls of a path that are open, in ns and without carry */
    struct wm_region_clocked clocked;
    struct wm_region_moved moved;
    struct wm_region_time exclusive_from; /* by the clock of exclusive time */
    struct wm_region_time time[WM_REGION_PARTS];
    struct wm_region_share shares[WM_REGION_PARTS][WM_REGION_RESOURCES];
    struct wm_block block;
};

struct wm_region_items {
    struct wm_region_item_list {
        struct wm_region_item **list;
        size_t count, room;
    } paths, names;
    struct wm_names texts; /* in the order of the names */
    uint32_t most;         /* paths from this number on are one */
    size_t *numbers;       /* the item of each path; WM_REGION_NO_ITEM: none yet */
    size_t number_count, number_room;
    size_t further; /* the item of further regions; WM_REGION_NO_ITEM: none */
};

void wm_region_items_init(struct wm_region_items *items, uint32_t most_paths);
void wm_region_items_release(struct wm_region_items *items);

/* The item of a path, which is made where there is none, as are those of the paths around
 * it. WM_ENOMEM is the only failure. */
int wm_region_items_find(struct wm_region_items *items, uint32_t path,
                         const struct wm_region_paths *paths, size_t *ret_index);

/* WM_REGION_NO_ITEM: no call had that path. */
size_t wm_region_items_index(const struct wm_region_items *items, uint32_t path);

/* The item of the path right around one that has been found, or WM_REGION_NO_ITEM. */
size_t wm_region_items_parent(const struct wm_region_items *items, uint32_t path,
                              size_t index, const struct wm_region_paths *paths);

/* A call that is open, by what distinguishes it (two that nothing distinguishes are
 * interchangeable), with what is known of it elsewhere. */
struct wm_open_call {
    int64_t start_ns;
    uint32_t path, thread;
    uint64_t timepoints; /* of all, when it opened */
    size_t item, parent; /* its path, and the one around it */
    uint32_t next;       /* the next call equal to it, or the next free place */
};

/* All zero is the right start. */
struct wm_open_calls {
    struct wm_map places; /* where in the list one is, by its start, path and thread */
    struct wm_open_call *list;
    size_t count, used, room; /* open calls, and places that have been used */
    uint32_t free;            /* the first place that is free again, when used > count */
};

void wm_open_calls_release(struct wm_open_calls *calls);

/* WM_ENOMEM is the only failure. */
int wm_open_calls_add(struct wm_open_calls *calls, const struct wm_open_call *call);

/* Takes out a call of that path, thread and start; false where there is none. */
bool wm_open_calls_take(struct wm_open_calls *calls, struct wm_open_call *call);

/*
 * The CPU time of regions by what their threads' own clocks told.
 *
 * A call that was clocked has its thread's CPU time from its begin to its end, with that of
 * the calls inside. One that was not, inside of one that was, has its part by time of what
 * the clocked calls right inside that one left: it ran in the same thread. One that lies in
 * none has its part by time of what all processes used, as all regions had before there
 * were clocks. Nothing of other threads and of child processes is in what is clocked: that
 * is their own regions', or the rest.
 */

/* For each path: what it has of all by the time that it was open, the time of its calls
 * that are open still, and its times. */
void wm_region_cpu_begin(struct wm_region_item *path, struct wm_region_use by_time,
                         double open_s, const struct wm_region_time times[WM_REGION_PARTS]);

/* Then finds `clocked.uses` of all paths and names. What paths have exclusively, of which
 * the sum is returned, is no more than `whole`, but for what the two clocks may differ by,
 * unless that is a lower bound. */
double wm_region_cpu_find(struct wm_region_items *items,
                          const struct wm_region_whole *whole);

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
