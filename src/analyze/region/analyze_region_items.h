/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_region_items.h - the names and paths of regions, each of which is made with its
 * first call and has an account, and the calls that are open in them; for src/analyze
 * alone.
 */
#ifndef WM_ANALYZE_REGION_ITEMS_H
#define WM_ANALYZE_REGION_ITEMS_H

#include "analyze/region/analyze_blocks.h"
#include "analyze/region/analyze_region_share.h"
#include "base/text/base_names.h"
#include "region/drain/region_calls.h"

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

/* What is known of the CPU time of a path's calls that are over, and, once
 * wm_region_cpu_find() was there, what it comes to. */
struct wm_region_clocked {
    uint64_t calls; /* those that were clocked */
    uint64_t cpu_ns, ns,
        others_ns; /* their CPU time and time, and the time of the others */

    double cpu_s, s, others_s;     /* the same in the end, with what is open still */
    double attributed_s, off_s;    /* CPU time of the others, and how far that may be off */
    double inside_cpu_s, inside_s; /* of the clocked calls right inside */
    double alone;                  /* part of its time that it did not share with others */
    double
        unknown; /* the part of its CPU time that is divided by time, for lack of a clock */
    struct wm_region_use uses[WM_REGION_PARTS];
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

#endif
