/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_region_report.c - what regions cost, for the report. */
#include "analyze/analyze_build.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What the parts of a report are made with. */
struct maker {
    const struct wm_report *report; /* what is known of the run */
    const struct wm_regions *regions;
    struct wm_region_whole wholes[WM_REGION_RESOURCES];
    struct wm_value whys[WM_REGION_RESOURCES]; /* a missing value for what is not known */
};

static struct wm_region_value value_of(const struct maker *maker,
                                       enum wm_region_resource resource,
                                       const struct wm_region_cost *cost)
{
    const struct wm_region_use *use = &cost->uses[resource];

    if (!use->used.known)
        return (struct wm_region_value) { maker->whys[resource], maker->whys[resource] };

    double used = use->used.number;
    struct wm_region_value value = {
        .value = wm_value_part(used, maker->wholes[resource].used.number),
    };
    if (value.value.number <= 0)
        value.uncertainty = wm_value_missing("no use of it was seen");
    else if (!use->has_uncertainty)
        value.uncertainty =
            wm_value_missing("the uncertainty of the run's energy is unknown");
    else
        value.uncertainty = wm_value_known(hypot(use->systematic, use->random) / used);
    return value;
}

/* What regions and loads have in common may be off in the same direction on all devices,
 * as may sensors. */
static void add_use(struct wm_region_use *sum, const struct wm_region_use *part)
{
    sum->used.known &= part->used.known;
    sum->used.number += part->used.number;
    sum->has_uncertainty &= part->has_uncertainty;
    sum->systematic += part->systematic;
    sum->random += part->random;
}

/* Of all that the energy of the report is of. */
static struct wm_region_value energy_of(const struct maker *maker,
                                        const struct wm_region_cost *cost)
{
    const struct wm_report *report = maker->report;
    struct wm_region_cost sum = { 0 };
    struct wm_region_use *total = &sum.uses[WM_REGION_TREE_ENERGY];

    *total = (struct wm_region_use) { .used.known = true, .has_uncertainty = true };
    if (!report->energy.energy.known)
        return (struct wm_region_value) { report->energy.energy, report->energy.energy };
    if (report->cover.meter != WM_CONTAINS_DEVICE) {
        const struct wm_value missing = wm_value_missing(
            "the energy comes from a meter, which is not divided by regions");
        return (struct wm_region_value) { missing, missing };
    }
    if (report->cover.has[WM_COST_CPU])
        add_use(total, &cost->uses[WM_REGION_CPU_ENERGY]);
    if (report->cover.has[WM_COST_DRAM])
        add_use(total, &cost->uses[WM_REGION_DRAM_ENERGY]);
    /* Where a GPU was lost it is the rest that is known of the region, too. */
    bool lacks_gpus = report->gpu_energy.energy.known && report->gpu_energy.energy.why &&
                      !cost->uses[WM_REGION_GPU_ENERGY].used.known &&
                      (report->cover.has[WM_COST_CPU] || report->cover.has[WM_COST_DRAM]);
    if (report->cover.has[WM_COST_GPUS] && !lacks_gpus)
        add_use(total, &cost->uses[WM_REGION_GPU_ENERGY]);
    struct wm_region_value value = value_of(maker, WM_REGION_TREE_ENERGY, &sum);
    if (value.value.known && lacks_gpus) {
        value.value.why = report->gpu_energy.energy.why;
        value.uncertainty = report->energy.uncertainty;
    }
    return value;
}

static struct wm_region_spending spending_of(const struct maker *maker,
                                             const struct wm_region_cost *cost)
{
    return (struct wm_region_spending) {
        .time = wm_value_known(cost->seconds),
        .cpu_time = value_of(maker, WM_REGION_CPU_TIME, cost),
        .energy = energy_of(maker, cost),
        .cpu_energy = value_of(maker, WM_REGION_CPU_ENERGY, cost),
        .dram_energy = value_of(maker, WM_REGION_DRAM_ENERGY, cost),
        .gpu_energy = value_of(maker, WM_REGION_GPU_ENERGY, cost),
        .tree_energy = value_of(maker, WM_REGION_TREE_ENERGY, cost),
    };
}

/* A recording has a call when it is over, but the place around it before. */
static struct wm_region_spending unknown_spending(void)
{
    const struct wm_value missing =
        wm_value_missing("no call of it is recorded: it was lost, or open until wattmeter "
                         "was killed");
    const struct wm_region_value both = { missing, missing };

    return (struct wm_region_spending) { missing, both, both, both, both, both, both };
}

static bool is_short(const struct wm_region_cost *cost)
{
    bool found = false;

    for (int i = WM_REGION_CPU_ENERGY; i <= WM_REGION_GPU_ENERGY; i++)
        found |= cost->uses[i].is_short;
    return found;
}

static void copy_block(const struct wm_block *block, struct wm_region_usage *usage)
{
    usage->calls = block->calls;
    usage->nonempty_calls = block->nonempty_calls;
    usage->unfinished = block->unfinished;
    usage->timepoints = block->timepoints;
    usage->time = wm_block_figures_of(&block->time);
    usage->time.of[WM_BLOCK_TOTAL] =
        (struct wm_known) { true, wm_block_stats_sum(&block->time) };
    memcpy(usage->histogram, block->histogram, sizeof(usage->histogram));
    for (size_t i = 0; i < WM_MEASUREMENT_COUNT; i++)
        usage->usage[i] = wm_block_figures_of(&block->usage[i]);
}

static int build_usage(const struct maker *maker, const struct wm_region_figures *figures,
                       struct wm_region_usage *usage)
{
    bool is_known = figures->openings > 0;

    *usage = (struct wm_region_usage) {
        .name = strdup(figures->name),
        .parent = WM_NO_REGION,
        .depth = figures->depth,
        .is_free = figures->is_free,
        .is_short = is_short(&figures->inclusive),
        .clocked_calls = figures->clocked,
        .inclusive =
            is_known ? spending_of(maker, &figures->inclusive) : unknown_spending(),
        .exclusive =
            is_known ? spending_of(maker, &figures->exclusive) : unknown_spending(),
    };
    copy_block(figures->block, usage);
    return usage->name ? WM_OK : WM_ENOMEM;
}

/* Names come in the order of the paths, as these are numbered alike wherever they come
 * from. `indices` has room for each path number, `has_name` for each name. */
static int build_all(const struct maker *maker, size_t *indices, bool *has_name,
                     struct wm_region_report *report)
{
    struct wm_region_figures figures, name;
    int status = WM_OK;

    for (uint32_t path = 0; path <= WM_REGIONS_MOST && status == WM_OK; path++) {
        if (!wm_regions_path(maker->regions, path, maker->wholes, &figures))
            continue;
        struct wm_region_usage *usage = &report->paths[report->path_count];
        indices[path] = report->path_count++;
        status = build_usage(maker, &figures, usage);
        if (figures.parent != WM_REGION_NO_PATH) {
            usage->parent = indices[figures.parent];
            report->paths[usage->parent].children++;
        }
        if (has_name[figures.of_name] || status < 0)
            continue;
        has_name[figures.of_name] = true;
        wm_regions_name(maker->regions, figures.of_name, maker->wholes, &name);
        status = build_usage(maker, &name, &report->names[report->name_count++]);
    }
    return status;
}

/* The rest is as it was made when memory runs out. */
static int build_lists(const struct maker *maker, struct wm_region_report *report)
{
    const struct wm_regions_facts facts = wm_regions_facts(maker->regions);
    size_t *indices = calloc(WM_REGIONS_MOST + 1, sizeof(*indices));
    bool *has_name = calloc(facts.names, sizeof(*has_name));
    int status = WM_ENOMEM;

    report->paths = calloc(facts.paths, sizeof(*report->paths));
    report->names = calloc(facts.names, sizeof(*report->names));
    if (indices && has_name && report->paths && report->names)
        status = build_all(maker, indices, has_name, report);
    free(indices);
    free(has_name);
    return status;
}

int wm_regions_usages(struct wm_regions *regions, struct wm_region_usage **ret_usages,
                      size_t *ret_count)
{
    static const char why[] = "files of calls have no more than their times";
    static const struct wm_report nothing = { .energy.energy.why = why };
    struct maker maker = { .report = &nothing, .regions = regions };
    size_t count = wm_regions_facts(regions).names;
    struct wm_region_usage *usages = calloc(count + 1, sizeof(*usages));
    struct wm_region_figures figures;
    int status = usages ? WM_OK : WM_ENOMEM;

    for (size_t i = 0; i < WM_REGION_RESOURCES; i++)
        maker.whys[i] = wm_value_missing(why);
    for (size_t i = 0; i < count && status == WM_OK; i++) {
        wm_regions_name(regions, i, maker.wholes, &figures);
        status = build_usage(&maker, &figures, &usages[i]);
    }
    if (status < 0) {
        wm_region_usages_free(usages, usages ? count : 0);
        return status;
    }
    *ret_usages = usages;
    *ret_count = count;
    return WM_OK;
}

/* What devices of a kind draw at most together. */
static struct wm_known most_watts(const struct wm_analysis *analysis,
                                  enum wm_device_kind kind)
{
    struct wm_known watts = { .known = true };

    for (size_t i = 0; i < analysis->device_count; i++) {
        const struct wm_device_stats *device = &analysis->devices[i];
        double most = device->joules.counter_sensor.range;
        if (!device->counts || device->channel->device_kind != kind)
            continue;
        watts.known &= most > 0;
        watts.number += most;
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

static struct wm_known add_known(struct wm_known one, struct wm_known other)
{
    return (struct wm_known) { one.known && other.known, one.number + other.number };
}

static struct wm_region_whole whole_of(const struct wm_energy_sum *sum, bool is_told)
{
    return (struct wm_region_whole) {
        .used = { is_told && sum->energy.known, sum->energy.number },
        .has_uncertainty = sum->uncertainty.known,
        .systematic = sum->uncertainty.known ? sum->systematic : 0,
        .random = sum->uncertainty.known ? sum->random : 0,
    };
}

/* The part of an energy that the tree used: all of it if that is not known. */
static double part_of_tree(const struct wm_energy_sum *sum)
{
    const struct wm_value *tree = &sum->split.tree;

    if (!sum->energy.known || sum->energy.number <= 0)
        return 0;
    return tree->known ? fmin(fmax(tree->number, 0) / sum->energy.number, 1) : 1;
}

/* What was used in all, by the report that has come to it. Energy that is another device's
 * there than at the ticks is not known. */
static void find_wholes(const struct wm_analysis *analysis, const struct wm_report *report,
                        struct wm_region_whole wholes[WM_REGION_RESOURCES])
{
    const unsigned told = analysis->energies_told;
    const bool *covered = report->cover.has;
    const struct wm_energy_split *split = &report->energy.split;
    bool cpu_told = told & WM_REGION_BIT(WM_REGION_CPU_ENERGY);
    bool dram_told = told & WM_REGION_BIT(WM_REGION_DRAM_ENERGY);
    bool gpu_told = told & WM_REGION_BIT(WM_REGION_GPU_ENERGY);
    bool is_the_same =
        cpu_told == covered[WM_COST_CPU] && dram_told == covered[WM_COST_DRAM] &&
        gpu_told == covered[WM_COST_GPUS] && report->cover.meter == WM_CONTAINS_DEVICE;
    struct wm_energy_sum tree = report->energy;

    tree.energy = split->tree;
    tree.uncertainty = split->tree_uncertainty;
    if (tree.uncertainty.known)
        tree.random = hypot(tree.random, split->tree_off / split->tree.number);
    wholes[WM_REGION_CPU_TIME] = (struct wm_region_whole) {
        .used = { report->cpu_total.known, report->cpu_total.number },
        .is_lower_bound = report->cpu_total.why != NULL,
        .most = { report->run.core_count > 0, (double)report->run.core_count },
        .has_uncertainty = true,
        .quantum = 1, /* a thread has all of a core, or nothing */
    };
    wholes[WM_REGION_CPU_ENERGY] = whole_of(&report->cpu_energy, cpu_told);
    wholes[WM_REGION_DRAM_ENERGY] = whole_of(&report->dram_energy, dram_told);
    wholes[WM_REGION_GPU_ENERGY] = whole_of(&report->gpu_energy, gpu_told);
    wholes[WM_REGION_TREE_ENERGY] = whole_of(&tree, is_the_same);
    wholes[WM_REGION_TREE_ENERGY].step = division_step(analysis);

    wholes[WM_REGION_GPU_ENERGY].unassigned = part_of_tree(&report->gpu_energy);
    if (split->tree.known && split->tree.number > 0 && covered[WM_COST_GPUS])
        wholes[WM_REGION_TREE_ENERGY].unassigned =
            fmin(wholes[WM_REGION_GPU_ENERGY].unassigned *
                     report->gpu_energy.energy.number / split->tree.number,
                 1);

    struct wm_known cpus = most_watts(analysis, WM_DEVICE_CPU);
    struct wm_known memory = most_watts(analysis, WM_DEVICE_DRAM);
    wholes[WM_REGION_CPU_ENERGY].most = cpus;
    wholes[WM_REGION_DRAM_ENERGY].most = memory;
    if (covered[WM_COST_GPUS])
        return;
    const struct wm_known none = { true, 0 };
    wholes[WM_REGION_TREE_ENERGY].most = add_known(covered[WM_COST_CPU] ? cpus : none,
                                                   covered[WM_COST_DRAM] ? memory : none);
}

static void find_whys(const struct wm_analysis *analysis, struct maker *maker)
{
    const struct wm_report *report = maker->report;
    const struct wm_value unlike = wm_value_missing(
        "what was watched for it turned out not to be what its energy is of");
    const struct wm_value no_tick = wm_value_missing("no sample was taken");
    const struct wm_value *values[WM_REGION_RESOURCES] = {
        [WM_REGION_CPU_TIME] = &report->cpu_total,
        [WM_REGION_CPU_ENERGY] = &report->cpu_energy.energy,
        [WM_REGION_DRAM_ENERGY] = &report->dram_energy.energy,
        [WM_REGION_GPU_ENERGY] = &report->gpu_energy.energy,
        [WM_REGION_TREE_ENERGY] = &report->energy.split.tree,
    };

    for (int i = 0; i < WM_REGION_RESOURCES; i++) {
        maker->whys[i] = !values[i]->known      ? *values[i]
                         : analysis->ticks == 0 ? no_tick
                                                : unlike;
    }
}

static void remark_folds(struct wm_report_builder *builder)
{
    uint64_t folded = wm_regions_facts(builder->analysis->regions).folded;

    if (folded > 0)
        wm_build_remark(
            builder,
            "regions: %llu short calls are taken together, by place and 10 ms, "
            "as they came faster than half a million a second or while a driver "
            "was still starting: a recording has a row for all of these",
            (unsigned long long)folded);
}

static void remark_losses(struct wm_report_builder *builder)
{
    const struct wm_result *result = &builder->report->result;
    const struct wm_regions *regions = builder->analysis->regions;
    uint64_t early = regions ? wm_regions_facts(regions).early : 0;

    if (result->dropped_regions > 0)
        wm_build_remark(builder, "regions: %llu event%s (begins, ends) %s missing",
                        (unsigned long long)result->dropped_regions,
                        wm_plural(result->dropped_regions),
                        result->regions_note[0] ? "are" : "found no room and are");
    if (result->lost_regions > 0)
        wm_build_remark(builder, "the recording lacks %llu call%s of regions",
                        (unsigned long long)result->lost_regions,
                        wm_plural(result->lost_regions));
    if (early > 0)
        wm_build_remark(builder,
                        "regions: %llu call%s, of a program whose clock is not this "
                        "machine's (a time namespace?), began before the run by their "
                        "times and count%s from its start",
                        (unsigned long long)early, wm_plural(early), early == 1 ? "s" : "");
    if (result->stray_regions > 0)
        wm_build_remark(builder, "regions: %llu end%s that nothing had begun",
                        (unsigned long long)result->stray_regions,
                        wm_plural(result->stray_regions));
}

/* The last tick may come a little before the end of the run. */
static void add_last(const struct wm_report_builder *builder, struct wm_region_cost *rest)
{
    int64_t now_ns = wm_regions_facts(builder->analysis->regions).now_ns;
    int64_t end_ns = builder->report->result.end_ns;

    if (builder->report->complete && end_ns > now_ns)
        rest->seconds += (double)(end_ns - now_ns) / 1e9;
}

static void remark_kill(struct wm_report_builder *builder)
{
    if (builder->report->complete)
        return;
    wm_build_remark(builder, "regions: if wattmeter was killed, the calls of its last "
                             "second, and those that were open then, are missing");
    wm_build_remark(builder, "regions: calls are counted, and timed, up to the last that "
                             "is known; inclusive and exclusive time, CPU time and joules "
                             "are those up to the last sample");
}

/* The power of the packages before the run, if all of them were measured then. */
static struct wm_known idle_of(const struct wm_analysis *analysis, double *ret_off)
{
    struct wm_known idle = { .known = analysis->device_count > 0 };

    *ret_off = 0;
    for (size_t i = 0; i < analysis->device_count; i++) {
        const struct wm_device_stats *device = &analysis->devices[i];
        if (!device->counts || device->channel->device_kind != WM_DEVICE_CPU)
            continue;
        idle = add_known(idle, device->share.idle_watts);
        *ret_off += device->share.idle_off;
    }
    return idle;
}

/* If the machine's CPU time is not known, the tree's stands in. */
static bool find_package(const struct wm_analysis *analysis, const struct wm_report *report,
                         const struct wm_region_whole *whole,
                         struct wm_region_package *ret_package)
{
    const struct wm_energy_sum *sum = &report->cpu_energy;
    size_t host = analysis->cpu_work.host.channel;

    if (!report->cover.has[WM_COST_CPU] || !(sum->watts > 0))
        return false;
    *ret_package = (struct wm_region_package) {
        .joules = sum->energy.number,
        .seconds = sum->energy.number / sum->watts,
        .cores = report->run.core_count,
        .busy_s = host == WM_NO_CHANNEL ? 0 : analysis->stats[host].counter.total,
        .tree_s = report->cpu_total.number,
        .tree_j = sum->split.tree.known ? sum->split.tree.number : 0,
        .most_w = whole->most,
        .is_alone = !report->cover.has[WM_COST_DRAM] && !report->cover.has[WM_COST_GPUS],
    };
    ret_package->idle_w = idle_of(analysis, &ret_package->idle_off_w);
    return report->cpu_total.known;
}

void wm_build_overall(struct wm_regions *regions, struct wm_usage_report *usage)
{
    const struct wm_blocks *blocks = wm_regions_blocks(regions);

    usage->timepoints = blocks->timepoints;
    for (size_t i = 0; i < WM_MEASUREMENT_COUNT; i++)
        usage->overall[i] = wm_block_figures_of(&blocks->overall[i]);
}

/* What is known of GPUs is as real as the least real of them. */
static void find_machine(const struct wm_analysis *analysis, struct wm_usage_report *usage)
{
    usage->machine = wm_static_data_of(analysis->run);
    usage->machine.ram_capacity = analysis->ram_capacity;
    usage->machine.gpu_ram_capacity = analysis->gpu_ram_capacity;
    struct wm_known gpus = usage->machine.expected_gpus;
    for (size_t i = 0; (!gpus.known || gpus.number > 0) && i < analysis->count; i++) {
        const struct wm_channel *channel = &analysis->channels[i];
        if (channel->device_kind == WM_DEVICE_GPU && channel->origin > usage->gpu_origin)
            usage->gpu_origin = channel->origin;
    }
}

void wm_build_regions(struct wm_report_builder *builder)
{
    const struct wm_analysis *analysis = builder->analysis;
    struct wm_region_report *report = &builder->report->regions;
    struct maker maker = {
        .report = builder->report,
        .regions = analysis->regions,
    };
    struct wm_region_package package;
    struct wm_region_cost rest;

    remark_losses(builder);
    find_machine(analysis, &builder->report->usage);
    if (builder->failed || !analysis->regions || wm_regions_facts(maker.regions).paths == 0)
        return;
    wm_build_overall(analysis->regions, &builder->report->usage);
    remark_kill(builder);
    remark_folds(builder);
    find_wholes(analysis, builder->report, maker.wholes);
    find_whys(analysis, &maker);
    bool has_package = find_package(analysis, builder->report,
                                    &maker.wholes[WM_REGION_CPU_ENERGY], &package);
    builder->failed |= wm_regions_clock(analysis->regions, maker.wholes,
                                        has_package ? &package : NULL) < 0;
    builder->failed |= build_lists(&maker, report) < 0;
    wm_regions_rest(maker.regions, maker.wholes, &rest);
    add_last(builder, &rest);
    report->rest = spending_of(&maker, &rest);
    report->threads = wm_regions_facts(maker.regions).threads;
    report->processes = wm_regions_facts(maker.regions).processes;
}
