/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_blocks.h - which timepoints lie inside the calls of a block, and what they come
 * to: gpu_tracker's analysis, one timepoint and one edge of a call at a time.
 *
 * A timepoint belongs to a call when start <= timepoint <= stop, and to a block once,
 * however many of its calls it lies in. The caller hands in all in the order of time; of
 * equal times first what opens, then the timepoint, then what closes.
 */
#ifndef WM_ANALYZE_BLOCKS_H
#define WM_ANALYZE_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/base_error.h"
#include "record/calls/record_timepoint.h"

/* Of a series: n, and with it the moments of Welford's method. The sum is kept with what
 * was lost in rounding it, so that the mean is right to its last digit: printed figures end
 * in a tie more often than one would think. */
struct wm_block_stats {
    uint64_t count;
    double min, max, mean, m2;
    double sum, lost;
    double first, last;
    double steps; /* sum of the squares from each value to the next */
};

void wm_block_stats_add(struct wm_block_stats *stats, double value); /* NAN is left out */

/* 0 without values. */
double wm_block_stats_sum(const struct wm_block_stats *stats);

/* NAN without values. */
double wm_block_stats_mean(const struct wm_block_stats *stats);

/* The sample standard deviation (n - 1); NAN below two values. */
double wm_block_stats_std(const struct wm_block_stats *stats);

/* As many values as would scatter the mean as much if they did not depend on each other;
 * NAN below two values. Neighbours in time are alike, so it may be far less than there
 * are: what a first-order autoregression of the same lag-one correlation has. */
double wm_block_stats_effective(const struct wm_block_stats *stats);

/* Call times by powers of two of a microsecond: the first up to 1 us, the last beyond. */
#define WM_BLOCK_BUCKETS 40

struct wm_block {
    const char *name;
    uint64_t calls;          /* that ended */
    uint64_t unfinished;     /* that did not; their time counts nowhere, */
                             /* their timepoints do */
    uint64_t nonempty_calls; /* with a timepoint at least */
    uint64_t timepoints;
    struct wm_block_stats time; /* s, of the calls that ended */
    uint64_t histogram[WM_BLOCK_BUCKETS];
    double inclusive_s; /* time in which one call was open at least */
    struct wm_block_stats usage[WM_MEASUREMENT_COUNT];
};

struct wm_blocks;

int wm_blocks_new(struct wm_blocks **ret_blocks, struct wm_error *err);

/* Accepts NULL. */
void wm_blocks_free(struct wm_blocks *blocks);

/* The number of the block of that name, which is made where there is none. */
int wm_blocks_find(struct wm_blocks *blocks, const char *name, size_t *ret_block);

/* Makes room for one more call that is open: wm_blocks_open() does not fail then. */
int wm_blocks_reserve(struct wm_blocks *blocks);

/* A call of that block, known by its key among those open, opens and closes. `seconds` is
 * its time; NAN: it broke off. WM_ENOMEM is the only failure. */
int wm_blocks_open(struct wm_blocks *blocks, size_t block, int64_t when_ns,
                   uint64_t *ret_call);
void wm_blocks_close(struct wm_blocks *blocks, uint64_t call, int64_t when_ns,
                     double seconds);

void wm_blocks_timepoint(struct wm_blocks *blocks, const struct wm_timepoint *timepoint);

/* Over all timepoints. */
const struct wm_block_stats *wm_blocks_overall(const struct wm_blocks *blocks,
                                               uint64_t *ret_timepoints);

size_t wm_blocks_count(const struct wm_blocks *blocks);
const struct wm_block *wm_blocks_get(const struct wm_blocks *blocks, size_t block);

#endif
