/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_region_totals.c - sums over devices at a tick. */
#include "analyze/region/analyze_region_totals.h"

#include <math.h>

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

/* Those in a processor have their energy in its. */
static struct sum sum_gpus(const struct wm_analysis *analysis)
{
    struct sum sum = { .is_told = true };

    for (size_t i = 0; i < analysis->gpu_count; i++) {
        if (!analysis->gpus[i].is_in_cpu)
            add_device(&sum, &analysis->gpus[i].joules, &analysis->gpus[i].share);
    }
    return sum;
}

static struct sum sum_devices(const struct wm_analysis *analysis, enum wm_device_kind kind)
{
    struct sum sum = { .is_told = true };

    for (size_t i = 0; i < analysis->device_count; i++) {
        const struct wm_device_stats *device = &analysis->devices[i];
        if (device->counts && device->channel->device_kind == kind)
            add_device(&sum, &device->joules, &device->share);
    }
    return sum;
}

static struct sum sum_resource(const struct wm_analysis *analysis,
                               enum wm_region_resource resource)
{
    switch (resource) {
    case WM_REGION_CPU_ENERGY:
        return sum_devices(analysis, WM_DEVICE_CPU);
    case WM_REGION_DRAM_ENERGY:
        return sum_devices(analysis, WM_DEVICE_DRAM);
    default:
        return sum_gpus(analysis);
    }
}

/* What the tree used of them all is known while all is known that has ever been. */
static void add_energy(struct wm_analysis *analysis, enum wm_region_resource resource,
                       struct wm_region_totals *totals)
{
    struct sum sum = sum_resource(analysis, resource);
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

void wm_region_totals_find(struct wm_analysis *analysis, const struct wm_tick *tick,
                           struct wm_region_totals *ret_totals)
{
    struct wm_region_totals totals = { .when_ns = tick->when_ns };

    totals.used[WM_REGION_CPU_TIME] = wm_tick_value(tick, analysis->cpu_work.tree.channel);
    totals.period_s[WM_REGION_TREE_ENERGY] = NAN;
    add_energy(analysis, WM_REGION_CPU_ENERGY, &totals);
    add_energy(analysis, WM_REGION_DRAM_ENERGY, &totals);
    add_energy(analysis, WM_REGION_GPU_ENERGY, &totals);
    if (totals.used[WM_REGION_TREE_ENERGY] <= 0)
        totals.used[WM_REGION_TREE_ENERGY] = NAN;
    *ret_totals = totals;
}

/* What devices of a kind draw at most together; NAN: of one of them that is not known. */
static double most_watts(const struct wm_analysis *analysis, enum wm_device_kind kind)
{
    double watts = 0;

    for (size_t i = 0; i < analysis->device_count; i++) {
        const struct wm_device_stats *device = &analysis->devices[i];
        double most = device->joules.counter_sensor.most_w;
        if (device->counts && device->channel->device_kind == kind)
            watts += most > 0 ? most : NAN;
    }
    return watts;
}

/* By how much the CPU times that they are divided by put the tree's joules off at a tick.
 */
static double division_step(const struct wm_analysis *analysis)
{
    double joules = 0;

    for (size_t i = 0; i < analysis->device_count; i++) {
        if (analysis->devices[i].counts)
            joules += analysis->devices[i].share.most_slope;
    }
    return joules;
}

static struct wm_region_whole whole_of(const struct wm_energy_sum *sum, bool is_told)
{
    return (struct wm_region_whole) {
        .used = is_told && sum->energy.known ? sum->energy.number : NAN,
        .systematic = sum->uncertainty.known ? sum->systematic : NAN,
        .random = sum->uncertainty.known ? sum->random : 0,
        .most = NAN,
    };
}

void wm_region_wholes_find(const struct wm_analysis *analysis,
                           const struct wm_report *report,
                           struct wm_region_whole wholes[WM_REGION_RESOURCES])
{
    const bool *told = analysis->region_told;
    bool is_the_same = told[WM_REGION_CPU_ENERGY] == report->energy_has_cpu &&
                       told[WM_REGION_DRAM_ENERGY] == report->energy_has_dram &&
                       told[WM_REGION_GPU_ENERGY] == report->energy_has_gpus;
    const struct wm_energy_split *split = &report->energy.split;
    struct wm_energy_sum tree = report->energy;

    tree.energy = split->tree;
    tree.uncertainty = split->tree_uncertainty;
    if (tree.uncertainty.known)
        tree.random = hypot(tree.random, split->tree_off / split->tree.number);
    wholes[WM_REGION_CPU_TIME] = (struct wm_region_whole) {
        .used = report->cpu_total.known ? report->cpu_total.number : NAN,
        .most = report->run.core_count > 0 ? (double)report->run.core_count : NAN,
        .grain = 1, /* a thread has all of a core, or nothing */
    };
    wholes[WM_REGION_CPU_ENERGY] =
        whole_of(&report->cpu_energy, told[WM_REGION_CPU_ENERGY]);
    wholes[WM_REGION_DRAM_ENERGY] =
        whole_of(&report->dram_energy, told[WM_REGION_DRAM_ENERGY]);
    wholes[WM_REGION_GPU_ENERGY] =
        whole_of(&report->gpu_energy, told[WM_REGION_GPU_ENERGY]);
    wholes[WM_REGION_TREE_ENERGY] = whole_of(&tree, is_the_same);
    wholes[WM_REGION_TREE_ENERGY].step = division_step(analysis);

    double cpus = most_watts(analysis, WM_DEVICE_CPU);
    double memory = most_watts(analysis, WM_DEVICE_DRAM);
    wholes[WM_REGION_CPU_ENERGY].most = cpus;
    wholes[WM_REGION_DRAM_ENERGY].most = memory;
    if (!report->energy_has_gpus)
        wholes[WM_REGION_TREE_ENERGY].most =
            (report->energy_has_cpu ? cpus : 0) + (report->energy_has_dram ? memory : 0);
}
