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
#include "base/text/base_names.h"

#define NO_SLOT SIZE_MAX
/* What a normal distribution exceeds 5 times of 100. */
#define ONE_SIDED_95 1.645

/* A call that is open, or a place for one. */
struct call {
    size_t block;
    uint64_t timepoints_before; /* of all, when it opened */
    size_t next_free;
};

/* A block while it is being filled. */
struct live_block {
    struct wm_block seen;
    size_t open_calls;
    size_t open_index;    /* in `open`, while there are any, */
    size_t stretch;       /* with the first one that `seen` does not have */
    int64_t open_from_ns; /* since then */
};

/* The timepoints from where a block opened to where the next one did. */
struct stretch {
    size_t blocks; /* that are open and begin with it */
    uint64_t timepoints;
    struct wm_block_stats usage[WM_MEASUREMENT_COUNT];
};

/* There is always one. The first one is also that of what is summed up over all. */
struct stretches {
    struct stretch *list;
    size_t count, room;
    struct wm_block_stats overall[WM_MEASUREMENT_COUNT]; /* of all before them */
};

struct wm_blocks {
    struct live_block **list;
    size_t count, room;
    struct wm_names names; /* their numbers are those of the blocks */

    size_t *open; /* blocks with a call that is open; has room for all */
    size_t open_count, open_room;

    struct call *calls;
    size_t call_count, call_room;
    size_t free_call; /* NO_SLOT: none */

    uint64_t timepoints; /* of all */
    struct stretches *stretches;
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
    if (isnan(value))
        return;

    if (stats->count == 0) {
        stats->min = value;
        stats->max = value;
        stats->first = value;
        stats->last = value;
    }
    if (value < stats->min)
        stats->min = value;
    if (value > stats->max)
        stats->max = value;
    stats->count++;
    add_exactly(stats, value);

    double step = value - stats->last;
    stats->steps += step * step;
    stats->last = value;

    double delta = value - stats->mean;
    stats->mean += delta / (double)stats->count;
    stats->m2 += delta * (value - stats->mean);
}

double wm_block_stats_sum(const struct wm_block_stats *stats)
{
    return stats->sum + stats->lost;
}

double wm_block_stats_mean(const struct wm_block_stats *stats)
{
    return stats->count > 0 ? wm_block_stats_sum(stats) / (double)stats->count : NAN;
}

double wm_block_stats_std(const struct wm_block_stats *stats)
{
    if (stats->count < 2)
        return NAN;
    return sqrt(fmax(stats->m2, 0) / (double)(stats->count - 1));
}

double wm_block_stats_effective(const struct wm_block_stats *stats)
{
    double count = (double)stats->count;

    if (stats->count < 2)
        return NAN;
    /* Of so few values most correlations are chance: von Neumann's ratio has this standard
     * deviation where there is none. */
    double chance = ONE_SIDED_95 * sqrt((count - 2) / (count * count - 1));
    double correlation = stats->m2 > 0 ? 1 - stats->steps / (2 * stats->m2) : 0;
    if (correlation <= chance)
        return count;
    return count * (1 - correlation) / (1 + correlation);
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

    double step = more->first - into->last;
    into->steps += more->steps + step * step;
    into->last = more->last;
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

static void merge_into_block(struct wm_block *block, const struct stretch *stretch)
{
    block->timepoints += stretch->timepoints;
    merge_usage(block->usage, stretch->usage);
}

static void merge_into_stretch(struct stretch *into, const struct stretch *later)
{
    into->timepoints += later->timepoints;
    merge_usage(into->usage, later->usage);
}

/* All blocks that are open take what they have come to so far. That changes nothing that
 * could be seen, which is why readers may do it. */
static void settle(const struct wm_blocks *blocks)
{
    struct stretches *stretches = blocks->stretches;

    if (stretches->count == 1 && stretches->list[0].timepoints == 0)
        return;
    for (size_t i = stretches->count - 1; i > 0; i--)
        merge_into_stretch(&stretches->list[i - 1], &stretches->list[i]);
    for (size_t i = 0; i < blocks->open_count; i++) {
        struct live_block *live = blocks->list[blocks->open[i]];
        merge_into_block(&live->seen, &stretches->list[live->stretch]);
        live->stretch = 0;
    }
    merge_usage(stretches->overall, stretches->list[0].usage);
    stretches->list[0] = (struct stretch) { .blocks = blocks->open_count };
    stretches->count = 1;
}

static int reserve_stretch(struct stretches *stretches)
{
    return wm_array_reserve(&stretches->list, stretches->count, &stretches->room,
                            sizeof(*stretches->list));
}

static void begin_stretch(struct stretches *stretches)
{
    stretches->list[stretches->count++] = (struct stretch) { 0 };
}

int wm_blocks_new(struct wm_blocks **ret_blocks, struct wm_error *err)
{
    struct wm_blocks *blocks = calloc(1, sizeof(*blocks));

    if (blocks) {
        blocks->free_call = NO_SLOT;
        blocks->stretches = calloc(1, sizeof(*blocks->stretches));
    }
    if (!blocks || !blocks->stretches || reserve_stretch(blocks->stretches) < 0) {
        wm_blocks_free(blocks);
        return wm_fail(err, WM_ENOMEM, "blocks: out of memory");
    }
    begin_stretch(blocks->stretches);
    *ret_blocks = blocks;
    return WM_OK;
}

void wm_blocks_free(struct wm_blocks *blocks)
{
    if (!blocks)
        return;
    for (size_t i = 0; i < blocks->count; i++) {
        free(blocks->list[i]);
    }
    free(blocks->list);
    wm_names_release(&blocks->names);
    free(blocks->open);
    free(blocks->calls);
    if (blocks->stretches)
        free(blocks->stretches->list);
    free(blocks->stretches);
    free(blocks);
}

static int grow_list(struct wm_blocks *blocks)
{
    if (wm_array_reserve(&blocks->list, blocks->count, &blocks->room,
                         sizeof(*blocks->list)) < 0)
        return WM_ENOMEM;
    return wm_array_reserve(&blocks->open, blocks->count, &blocks->open_room,
                            sizeof(*blocks->open));
}

int wm_blocks_find(struct wm_blocks *blocks, const char *name, size_t *ret_block)
{
    /* Its block first, so that no name stands there without one. */
    uint32_t found = wm_names_find(&blocks->names, name);
    if (found != WM_MAP_NONE) {
        *ret_block = found;
        return WM_OK;
    }
    struct live_block *block = grow_list(blocks) < 0 ? NULL : calloc(1, sizeof(*block));
    if (!block)
        return WM_ENOMEM;
    found = wm_names_add(&blocks->names, name);
    if (found == WM_MAP_NONE) {
        free(block);
        return WM_ENOMEM;
    }
    block->seen.name = blocks->names.texts[found];
    blocks->list[blocks->count++] = block;
    *ret_block = found;
    return WM_OK;
}

int wm_blocks_reserve(struct wm_blocks *blocks)
{
    if (reserve_stretch(blocks->stretches) < 0)
        return WM_ENOMEM;
    if (blocks->free_call != NO_SLOT)
        return WM_OK;
    return wm_array_reserve(&blocks->calls, blocks->call_count, &blocks->call_room,
                            sizeof(*blocks->calls));
}

static int take_call(struct wm_blocks *blocks, size_t *ret_slot)
{
    if (wm_blocks_reserve(blocks) < 0)
        return WM_ENOMEM;
    if (blocks->free_call == NO_SLOT) {
        *ret_slot = blocks->call_count++;
        return WM_OK;
    }
    *ret_slot = blocks->free_call;
    blocks->free_call = blocks->calls[*ret_slot].next_free;
    return WM_OK;
}

/* The stretches that no block begins with any more may be in between, but not too many. */
static void open_block(struct wm_blocks *blocks, struct live_block *live)
{
    struct stretches *stretches = blocks->stretches;

    if (stretches->count > 2 * blocks->open_count + 8)
        settle(blocks);
    if (stretches->list[stretches->count - 1].timepoints > 0)
        begin_stretch(stretches);
    live->stretch = stretches->count - 1;
    stretches->list[live->stretch].blocks++;
}

int wm_blocks_open(struct wm_blocks *blocks, size_t block, int64_t when_ns,
                   uint64_t *ret_call)
{
    struct live_block *live = blocks->list[block];
    size_t slot;

    if (take_call(blocks, &slot) < 0)
        return WM_ENOMEM;
    blocks->calls[slot] =
        (struct call) { .block = block, .timepoints_before = blocks->timepoints };
    if (live->open_calls++ == 0) {
        open_block(blocks, live);
        live->open_from_ns = when_ns;
        live->open_index = blocks->open_count;
        blocks->open[blocks->open_count++] = block;
    }
    *ret_call = slot;
    return WM_OK;
}

/* Gives the block its stretches. */
static void end_stretches(struct wm_blocks *blocks, struct live_block *live)
{
    struct stretches *stretches = blocks->stretches;
    size_t count = stretches->count - live->stretch;

    if (count > 4 && count * count > 4 * blocks->open_count)
        settle(blocks);
    for (size_t i = live->stretch; i < stretches->count; i++)
        merge_into_block(&live->seen, &stretches->list[i]);

    stretches->list[live->stretch].blocks--;
    for (; stretches->count > 1 && stretches->list[stretches->count - 1].blocks == 0;
         stretches->count--)
        merge_into_stretch(&stretches->list[stretches->count - 2],
                           &stretches->list[stretches->count - 1]);
}

/* The last call of it that was open is over. */
static void close_block(struct wm_blocks *blocks, struct live_block *live, int64_t when_ns)
{
    end_stretches(blocks, live);
    if (when_ns > live->open_from_ns)
        live->seen.inclusive_s +=
            (double)((uint64_t)when_ns - (uint64_t)live->open_from_ns) / 1e9;

    size_t last = blocks->open[--blocks->open_count];
    blocks->open[live->open_index] = last;
    blocks->list[last]->open_index = live->open_index;
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

void wm_blocks_close(struct wm_blocks *blocks, uint64_t call, int64_t when_ns,
                     double seconds)
{
    struct call *closed = &blocks->calls[call];
    struct live_block *live = blocks->list[closed->block];

    if (isnan(seconds)) {
        live->seen.unfinished++;
    } else {
        live->seen.calls++;
        live->seen.nonempty_calls += blocks->timepoints != closed->timepoints_before;
        live->seen.histogram[time_bucket(seconds)]++;
        wm_block_stats_add(&live->seen.time, seconds);
    }
    if (--live->open_calls == 0)
        close_block(blocks, live, when_ns);

    closed->next_free = blocks->free_call;
    blocks->free_call = (size_t)call;
}

void wm_blocks_timepoint(struct wm_blocks *blocks, const struct wm_timepoint *timepoint)
{
    struct stretches *stretches = blocks->stretches;
    struct stretch *stretch = &stretches->list[stretches->count - 1];

    blocks->timepoints++;
    stretch->timepoints++;
    for (size_t i = 0; i < WM_MEASUREMENT_COUNT; i++)
        wm_block_stats_add(&stretch->usage[i], timepoint->values[i]);
}

const struct wm_block_stats *wm_blocks_overall(const struct wm_blocks *blocks,
                                               uint64_t *ret_timepoints)
{
    settle(blocks);
    *ret_timepoints = blocks->timepoints;
    return blocks->stretches->overall;
}

size_t wm_blocks_count(const struct wm_blocks *blocks)
{
    return blocks->count;
}

const struct wm_block *wm_blocks_get(const struct wm_blocks *blocks, size_t block)
{
    if (blocks->list[block]->open_calls > 0)
        settle(blocks);
    return &blocks->list[block]->seen;
}
