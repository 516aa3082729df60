/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_blocks.h - which timepoints lie inside the calls of a block, and what they come
 * to, as in gpu_tracker's analysis. A block is open while one of its calls is.
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
#include "base/text/base_number.h"
#include "record/record_timepoint.h"
#include "region/drain/region_calls.h"

/* Of a series: n, and with it the moments of Welford's method. The sum is kept with what
 * was lost in rounding it, so that the mean is right to its last digit: printed figures end
 * in a tie more often than one would think. */
struct wm_block_stats {
    uint64_t count;
    double min, max, mean, m2;
    double sum, lost;
};

void wm_block_stats_add(struct wm_block_stats *stats, double value);

/* 0 without values. */
double wm_block_stats_sum(const struct wm_block_stats *stats);

enum wm_block_figure {
    WM_BLOCK_MIN,
    WM_BLOCK_MAX,
    WM_BLOCK_MEAN,
    WM_BLOCK_STD, /* n - 1 */
    WM_BLOCK_TOTAL,
    WM_BLOCK_FIGURES,
    WM_BLOCK_STATISTICS = WM_BLOCK_TOTAL, /* statistics of each series */
};

/* "min", as in JSON. */
extern const char *const wm_block_figure_names[WM_BLOCK_FIGURES];

/* What a series comes to. An empty one has no figures. */
struct wm_block_figures {
    struct wm_known of[WM_BLOCK_FIGURES];
    uint64_t count; /* 0 as well where it was read from JSON */
};

/* But for the total, which says something of the time of calls alone. */
struct wm_block_figures wm_block_figures_of(const struct wm_block_stats *stats);

/* Call times by powers of two of a microsecond: the first up to 1 us, the last beyond. */
#define WM_BLOCK_BUCKETS 40

/* What the calls of a name, or of a path, come to. All zero is the right start. */
struct wm_block {
    uint64_t calls;          /* calls that ended */
    uint64_t unfinished;     /* calls that did not end; only their timepoints count */
    uint64_t nonempty_calls; /* with a timepoint at least */
    uint64_t timepoints;
    struct wm_block_stats time; /* s, of the calls that ended */
    uint64_t histogram[WM_BLOCK_BUCKETS];
    struct wm_block_stats usage[WM_MEASUREMENT_COUNT];

    size_t open_index, stretch; /* of one that is open: for analyze_blocks.c alone */
};

/* A call ended after that time. */
void wm_block_add_call(struct wm_block *block, double seconds, bool has_timepoint);

/* Several ended, of which a timepoint is in one. */
void wm_block_add_calls(struct wm_block *block, const struct wm_region_fold *fold,
                        bool has_timepoint);

/* The timepoints, and the blocks that are open. All zero is the right start. */
struct wm_blocks {
    struct wm_block **open;
    size_t open_count, open_room;

    /* There is one at least once there was a timepoint or a block. The first one is also
     * that of what is summed up over all. */
    struct wm_stretch *stretches;
    size_t count, room;

    uint64_t timepoints; /* all of them, and what they come to but for the stretches */
    struct wm_block_stats overall[WM_MEASUREMENT_COUNT];
};

void wm_blocks_release(struct wm_blocks *blocks);

/* Makes room for two more blocks that are open, and for timepoints. WM_ENOMEM is the only
 * failure. */
int wm_blocks_reserve(struct wm_blocks *blocks);

/* The first call of a block that was not open, for which there is room; and the last one
 * that is. */
void wm_blocks_open(struct wm_blocks *blocks, struct wm_block *block);
void wm_blocks_close(struct wm_blocks *blocks, struct wm_block *block);

/* After the first wm_blocks_reserve(). */
void wm_blocks_timepoint(struct wm_blocks *blocks, const struct wm_timepoint *timepoint);

/* Gives `overall`, and the blocks that are open, what they have come to so far, which
 * changes nothing later. */
void wm_blocks_settle(struct wm_blocks *blocks);

#endif
