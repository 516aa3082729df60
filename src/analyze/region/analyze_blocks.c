/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_blocks.c - blocks of code: their calls and the timepoints inside them.
 *
 * Timepoints are summed up once, in stretches: a new one begins where a block opens, and
 * what that block comes to are the stretches from there on, which are merged into it when
 * it closes. Calls mostly end in the reverse order of their starts, so that those are few.
 * Where they would be many, all blocks that are open take theirs at once and begin anew
 * with the same stretch: with n blocks open a close costs some sqrt(n) at worst.
 */
#include "analyze/region/analyze_blocks.h"

#include <math.h>
#include <stdlib.h>

#include "base/base_array.h"

/* The timepoints from where a block opened to where the next one did. */
struct wm_stretch {
    size_t blocks; /* open blocks that begin with it */
    uint64_t timepoints;
    struct wm_block_stats usage[WM_MEASUREMENT_COUNT];
};

/* Knuth's: the sum of two numbers, and exactly what its rounding lost. */
static void add_exactly(struct wm_block_stats *stats, double value)
{
    double sum = stats->sum + value;
    double part = sum - stats->sum;

    stats->lost += (stats->sum - (sum - part)) + (value - part);
    stats->sum = sum;
}

void wm_block_stats_add(struct wm_block_stats *stats, double value)
{
    if (stats->count == 0) {
        stats->min = value;
        stats->max = value;
    }
    if (value < stats->min)
        stats->min = value;
    if (value > stats->max)
        stats->max = value;
    stats->count++;
    add_exactly(stats, value);

    double delta = value - stats->mean;
    stats->mean += delta / (double)stats->count;
    stats->m2 += delta * (value - stats->mean);
}

double wm_block_stats_sum(const struct wm_block_stats *stats)
{
    return stats->sum + stats->lost;
}

const char *const wm_block_figure_names[WM_BLOCK_FIGURES] = {
    [WM_BLOCK_MIN] = "min", [WM_BLOCK_MAX] = "max",     [WM_BLOCK_MEAN] = "mean",
    [WM_BLOCK_STD] = "std", [WM_BLOCK_TOTAL] = "total",
};

struct wm_block_figures wm_block_figures_of(const struct wm_block_stats *stats)
{
    bool has_values = stats->count > 0, is_series = stats->count > 1;
    double count = (double)stats->count;

    return (struct wm_block_figures) {
        .of = {
            [WM_BLOCK_MIN] = { has_values, stats->min },
            [WM_BLOCK_MAX] = { has_values, stats->max },
            [WM_BLOCK_MEAN] = { has_values, has_values ? wm_block_stats_sum(stats) / count : 0 },
            [WM_BLOCK_STD] = { is_series, is_series ? sqrt(fmax(stats->m2, 0) / (count - 1)) : 0 },
        },
        .count = stats->count,
    };
}

/* Chan's formula for the moments of two series together. */
static void merge_stats(struct wm_block_stats *into, const struct wm_block_stats *more)
{
    if (more->count == 0)
        return;
    if (into->count == 0) {
        *into = *more;
        return;
    }

    double share = (double)more->count / (double)(into->count + more->count);
    double delta = more->mean - into->mean;
    into->m2 += more->m2 + delta * delta * share * (double)into->count;
    into->mean += delta * share;
    add_exactly(into, more->sum);
    into->lost += more->lost;
    into->count += more->count;
    if (more->min < into->min)
        into->min = more->min;
    if (more->max > into->max)
        into->max = more->max;
}

static void merge_usage(struct wm_block_stats *into, const struct wm_block_stats *more)
{
    for (size_t i = 0; i < WM_MEASUREMENT_COUNT; i++)
        merge_stats(&into[i], &more[i]);
}

static void merge_into_block(struct wm_block *block, const struct wm_stretch *stretch)
{
    block->timepoints += stretch->timepoints;
    if (stretch->timepoints > 0)
        merge_usage(block->usage, stretch->usage);
}

static void merge_into_stretch(struct wm_stretch *into, const struct wm_stretch *later)
{
    into->timepoints += later->timepoints;
    if (later->timepoints > 0)
        merge_usage(into->usage, later->usage);
}

void wm_blocks_settle(struct wm_blocks *blocks)
{
    if (blocks->count == 0 || (blocks->count == 1 && blocks->stretches[0].timepoints == 0))
        return;
    for (size_t i = blocks->count - 1; i > 0; i--)
        merge_into_stretch(&blocks->stretches[i - 1], &blocks->stretches[i]);
    for (size_t i = 0; i < blocks->open_count; i++) {
        merge_into_block(blocks->open[i], &blocks->stretches[blocks->open[i]->stretch]);
        blocks->open[i]->stretch = 0;
    }
    merge_usage(blocks->overall, blocks->stretches[0].usage);
    blocks->stretches[0] = (struct wm_stretch) { .blocks = blocks->open_count };
    blocks->count = 1;
}

void wm_blocks_release(struct wm_blocks *blocks)
{
    free(blocks->open);
    free(blocks->stretches);
    *blocks = (struct wm_blocks) { 0 };
}

static void begin_stretch(struct wm_blocks *blocks)
{
    blocks->stretches[blocks->count++] = (struct wm_stretch) { 0 };
}

int wm_blocks_reserve(struct wm_blocks *blocks)
{
    if (wm_array_reserve(&blocks->open, blocks->open_count + 1, &blocks->open_room,
                         sizeof(*blocks->open)) < 0 ||
        wm_array_reserve(&blocks->stretches, blocks->count, &blocks->room,
                         sizeof(*blocks->stretches)) < 0)
        return WM_ENOMEM;
    if (blocks->count == 0)
        begin_stretch(blocks);
    return WM_OK;
}

/* The stretches that no block begins with any more may be in between, but not too many. */
void wm_blocks_open(struct wm_blocks *blocks, struct wm_block *block)
{
    if (blocks->count > 2 * blocks->open_count + 8)
        wm_blocks_settle(blocks);
    if (blocks->stretches[blocks->count - 1].timepoints > 0)
        begin_stretch(blocks);
    block->stretch = blocks->count - 1;
    blocks->stretches[block->stretch].blocks++;
    block->open_index = blocks->open_count;
    blocks->open[blocks->open_count++] = block;
}

void wm_blocks_close(struct wm_blocks *blocks, struct wm_block *block)
{
    size_t count = blocks->count - block->stretch;

    if (count > 4 && count * count > 4 * blocks->open_count)
        wm_blocks_settle(blocks);
    for (size_t i = block->stretch; i < blocks->count; i++)
        merge_into_block(block, &blocks->stretches[i]);

    blocks->stretches[block->stretch].blocks--;
    for (; blocks->count > 1 && blocks->stretches[blocks->count - 1].blocks == 0;
         blocks->count--)
        merge_into_stretch(&blocks->stretches[blocks->count - 2],
                           &blocks->stretches[blocks->count - 1]);

    struct wm_block *last = blocks->open[--blocks->open_count];
    blocks->open[block->open_index] = last;
    last->open_index = block->open_index;
}

/* The first power of two of a microsecond that is not below the time. */
static size_t time_bucket(double seconds)
{
    double us = seconds * 1e6;
    int exponent;

    if (us <= 1)
        return 0;
    if (isinf(us))
        return WM_BLOCK_BUCKETS - 1;
    if (frexp(us, &exponent) == 0.5)
        exponent--;
    return exponent < WM_BLOCK_BUCKETS ? (size_t)exponent : WM_BLOCK_BUCKETS - 1;
}

void wm_block_add_call(struct wm_block *block, double seconds, bool has_timepoint)
{
    block->calls++;
    block->nonempty_calls += has_timepoint;
    block->histogram[time_bucket(seconds)]++;
    wm_block_stats_add(&block->time, seconds);
}

_Static_assert(WM_REGION_FOLD_BUCKETS <= WM_BLOCK_BUCKETS, "they are the first of them");

void wm_block_add_calls(struct wm_block *block, const struct wm_region_fold *fold,
                        bool has_timepoint)
{
    double count = (double)fold->calls, sum = (double)fold->sum_ns / 1e9;
    double mean = sum / count;
    const struct wm_block_stats calls = {
        .count = fold->calls,
        .min = fold->min_ns / 1e9,
        .max = fold->max_ns / 1e9,
        .mean = mean,
        .m2 = fmax((double)fold->squares / 1e18 - sum * mean, 0),
        .sum = sum,
    };

    block->calls += fold->calls;
    block->nonempty_calls += has_timepoint;
    for (int i = 0; i < WM_REGION_FOLD_BUCKETS; i++)
        block->histogram[i] += fold->buckets[i];
    merge_stats(&block->time, &calls);
}

void wm_blocks_timepoint(struct wm_blocks *blocks, const struct wm_timepoint *timepoint)
{
    struct wm_stretch *stretch = &blocks->stretches[blocks->count - 1];

    blocks->timepoints++;
    stretch->timepoints++;
    for (size_t i = 0; i < WM_MEASUREMENT_COUNT; i++)
        if (wm_timepoint_value(timepoint, i).known)
            wm_block_stats_add(&stretch->usage[i], timepoint->values[i]);
}
