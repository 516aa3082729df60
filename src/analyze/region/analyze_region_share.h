/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_region_share.h - a region's part of what a resource told from tick to tick, and
 * how far that may be off; for src/analyze alone.
 *
 * A resource reports how much has been used now and then: in stretches of a tick, or of
 * some where its sensor is slower. A region has the part of a stretch that it has of its
 * time. How it really was within a stretch nobody sees: what was used in the region may
 * have been used faster or slower than in the rest of the stretch.
 * docs/energy-uncertainty.md explains how that rate difference is bounded.
 */
#ifndef WM_ANALYZE_REGION_SHARE_H
#define WM_ANALYZE_REGION_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text/base_number.h"

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

#endif
