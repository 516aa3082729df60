/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_totals.c - sums over devices at a tick. */
#include "analyze/energy/analyze_totals.h"

#include <math.h>

/* What all that counts has come to at a tick. */
struct whole {
    double joules;
    double shortest_s; /* in which each sensor had something new a few times */
    bool is_told; /* none has made us wait for its joules, which come in one heap then */
};

static struct whole whole_of(const struct wm_analysis *analysis)
{
    struct whole whole = {
        .shortest_s = (double)analysis->run->interval_ns / 1e9 / 2,
        .is_told = true,
    };

    /* GPUs first: what doubles add up to depends on their order, and recordings give the
     * same figures for ever. */
    size_t count = wm_device_count(analysis);
    for (size_t i = 0; i < count; i++) {
        const struct wm_device_stats *device =
            wm_device_at(analysis, (analysis->device_count + i) % count);
        const struct wm_energy *energy = &device->joules;
        bool has_told = energy->counted || energy->covered_s > 0 || energy->powered;
        if (!device->counts)
            continue;
        whole.joules += device->share.joules_now;
        whole.shortest_s =
            fmax(whole.shortest_s, WM_SENSOR_PERIODS * wm_energy_period_s(energy));
        if (has_told)
            whole.is_told &= energy->counted ? energy->present : energy->powered;
    }
    return whole;
}

double wm_totals_power_window_s(const struct wm_analysis *analysis)
{
    return whole_of(analysis).shortest_s;
}

static void add_power(struct wm_analysis *analysis, const struct wm_tick *tick)
{
    struct whole whole = whole_of(analysis);
    double joules, seconds;

    if (whole.is_told &&
        wm_stride_next(&analysis->whole, tick->when_ns, whole.joules, &joules, &seconds) &&
        seconds > 0)
        wm_window_max_add(&analysis->power_max, joules / seconds, seconds,
                          whole.shortest_s);
}

/* A tick that comes a little early still ends a period. */
#define ALMOST 0.75

static void add_tree_power(struct wm_analysis *analysis,
                           const struct wm_region_totals *totals)
{
    struct wm_stride *tree = &analysis->tree;
    double told = totals->used[WM_REGION_TREE_ENERGY];
    double least_s = ALMOST * totals->period_s[WM_REGION_TREE_ENERGY];
    double seconds = wm_stats_seconds(tree->when_ns, totals->when_ns);
    double joules;

    if (isnan(told) || (tree->is_told && (seconds <= 0 || seconds < least_s)))
        return;
    if (wm_stride_next(tree, totals->when_ns, told, &joules, &seconds))
        wm_block_stats_add(&analysis->tree_power, joules / seconds);
}

/* A sum over devices, each of which has to know its part. */
struct sum {
    size_t devices;
    bool is_told;
    double joules, tree, period_s, tree_period_s;
};

/* A counter that has not moved yet tells nothing: its first step is of the time before,
 * too. What is divided late is divided for now like what came before it; but not where that
 * takes the machine's CPU time, as the tree might have less at the next tick. */
static void add_device(struct sum *sum, const struct wm_energy *energy,
                       const struct wm_share *divided)
{
    struct wm_share share = *divided;
    double period_s = wm_energy_period_s(energy);
    bool is_told = energy->counted ? energy->present : energy->powered;

    if (!energy->counted)
        period_s = fmax(period_s, energy->power_sensor.window_s);
    double tree_period_s = fmax(period_s, share.shortest_s);
    if (isnan(share.idle_watts)) {
        wm_share_end(&share, share.joules_now);
        tree_period_s = period_s;
    }
    sum->devices++;
    sum->is_told &= is_told && share.joules_now > 0;
    sum->joules += share.joules_now;
    sum->tree += share.tree;
    sum->period_s = fmax(sum->period_s, period_s);
    sum->tree_period_s = fmax(sum->tree_period_s, tree_period_s);
}

static struct sum sum_devices(const struct wm_analysis *analysis, enum wm_device_kind kind)
{
    struct sum sum = { .is_told = true };

    for (size_t i = 0; i < wm_device_count(analysis); i++) {
        const struct wm_device_stats *device = wm_device_at(analysis, i);
        if (device->counts && device->channel->device_kind == kind)
            add_device(&sum, &device->joules, &device->share);
    }
    return sum;
}

/* What the tree used of them all is known while all is known that has ever been. */
static void add_energy(struct wm_analysis *analysis, enum wm_region_resource resource,
                       enum wm_device_kind kind, struct wm_region_totals *totals)
{
    struct sum sum = sum_devices(analysis, kind);
    bool is_told = sum.devices > 0 && sum.is_told;
    double *tree = &totals->used[WM_REGION_TREE_ENERGY];
    double *tree_period_s = &totals->period_s[WM_REGION_TREE_ENERGY];

    totals->used[resource] = is_told ? sum.joules : NAN;
    totals->period_s[resource] = sum.devices > 0 ? sum.period_s : NAN;
    if (sum.devices > 0)
        *tree_period_s = fmax(*tree_period_s, sum.tree_period_s);
    analysis->region_told[resource] |= is_told;
    if (is_told)
        *tree += sum.tree;
    else if (analysis->region_told[resource])
        *tree = NAN;
}

static void find_totals(struct wm_analysis *analysis, const struct wm_tick *tick,
                        struct wm_region_totals *ret_totals)
{
    struct wm_region_totals totals = { .when_ns = tick->when_ns };

    totals.used[WM_REGION_CPU_TIME] = wm_tick_value(tick, analysis->cpu_work.tree.channel);
    totals.period_s[WM_REGION_TREE_ENERGY] = NAN;
    add_energy(analysis, WM_REGION_CPU_ENERGY, WM_DEVICE_CPU, &totals);
    add_energy(analysis, WM_REGION_DRAM_ENERGY, WM_DEVICE_DRAM, &totals);
    add_energy(analysis, WM_REGION_GPU_ENERGY, WM_DEVICE_GPU, &totals);
    if (totals.used[WM_REGION_TREE_ENERGY] <= 0)
        totals.used[WM_REGION_TREE_ENERGY] = NAN;
    *ret_totals = totals;
}

void wm_totals_tick(struct wm_analysis *analysis, const struct wm_tick *tick,
                    struct wm_region_totals *ret_totals)
{
    add_power(analysis, tick);
    find_totals(analysis, tick, ret_totals);
    add_tree_power(analysis, ret_totals);
}
