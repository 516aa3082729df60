/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_whole.c - the energy of everything that is no GPU, and of all together. */
#include "analyze/analyze_build.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze_welch.h"
#include "analyze/energy/analyze_devices.h"
#include "base/text/base_text.h"
#include "source/source_traits.h"

/* The order in which devices are shown. */
static const enum wm_device_kind kinds[] = {
    WM_DEVICE_CPU, WM_DEVICE_CPU_PART, WM_DEVICE_DRAM, WM_DEVICE_PLATFORM, WM_DEVICE_OTHER,
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A few steps of the kernel's CPU times do not say whose they were. */
static bool is_too_short_for_cpus(const struct wm_analysis *analysis)
{
    size_t channel = analysis->cpu_work.host.channel;

    if (channel == WM_NO_CHANNEL)
        return false;
    const struct wm_counter_stats *counter = &analysis->stats[channel].counter;
    return wm_stats_seconds(counter->first_ns, counter->last_ns) <=
           WM_SENSOR_PERIODS * (double)analysis->channels[channel].period_ns / 1e9;
}

static void build_device(struct wm_report_builder *builder,
                         const struct wm_device_stats *stats,
                         struct wm_device_energy *device)
{
    const struct wm_channel *channel = stats->channel;
    bool is_cpu = channel->device_kind == WM_DEVICE_CPU;
    const char *unfit = is_cpu && is_too_short_for_cpus(builder->analysis)
                            ? "the run is shorter than three updates of the CPU counters"
                            : NULL;
    const char *why = channel->device_kind == WM_DEVICE_DRAM
                          ? "how much of the memory the tracked processes had is not known"
                          : "what the tracked processes did on the CPUs is not known";

    device->name = strdup(channel->label);
    device->source = strdup(channel->source);
    device->model = channel->model ? strdup(channel->model) : NULL;
    if (!device->name || !device->source || (channel->model && !device->model))
        builder->failed = true;
    else
        wm_text_clean(device->name);
    device->kind = channel->device_kind;
    device->sensor = channel->sensor.kind;
    device->origin = channel->origin;
    wm_build_device(builder, stats, why, unfit, &device->figure, &device->split,
                    &device->idle_power);
    bool has_most = device->sensor == WM_SENSOR_MODEL && channel->sensor.range > 0;
    double most = has_most ? channel->sensor.range : HUGE_VAL;
    device->power = device->figure.energy;
    if (device->power.known) {
        double seconds = device->figure.covered_s;
        if (seconds > 0)
            device->power = wm_value_known(fmin(device->power.number / seconds, most));
        else
            device->power =
                wm_value_missing("no time passed between the first sample and the last");
    }
}

/* A GPU in a processor whose power nothing reports stands with the GPUs, and why it has no
 * energy is said there. */
static bool is_said_with_gpus(const struct wm_analysis *analysis,
                              const struct wm_device_stats *device)
{
    struct wm_energy_result energy;

    wm_energy_result(&device->joules, &energy);
    for (size_t i = 0; i < analysis->gpu_count; i++) {
        if (!analysis->gpus[i].device.counts && energy.method == WM_ENERGY_UNKNOWN &&
            device->channel->device_kind == WM_DEVICE_OTHER &&
            strcmp(analysis->gpus[i].device.channel->device, device->channel->device) == 0)
            return true;
    }
    return false;
}

static void build_devices(struct wm_report_builder *builder)
{
    const struct wm_analysis *analysis = builder->analysis;
    struct wm_report *report = builder->report;

    report->devices = calloc(analysis->device_count + 1, sizeof(*report->devices));
    if (!report->devices) {
        builder->failed = true;
        return;
    }
    for (size_t k = 0; k < COUNT(kinds); k++) {
        for (size_t i = 0; i < analysis->device_count; i++) {
            if (analysis->devices[i].channel->device_kind == kinds[k] &&
                !is_said_with_gpus(analysis, &analysis->devices[i]))
                build_device(builder, &analysis->devices[i],
                             &report->devices[report->device_count++]);
        }
    }
}

static bool is_of_source(const struct wm_device_energy *device, enum wm_device_kind kind,
                         const char *source)
{
    return device->kind == kind && strcmp(device->source, source) == 0;
}

/* The devices of one kind that one source knows. Which of several is to blame for it that
 * their sum is not known is said by name. */
static void sum_source(struct wm_report_builder *builder, enum wm_device_kind kind,
                       const char *source, struct wm_energy_sum *sum)
{
    const struct wm_report *report = builder->report;
    size_t count = 0;

    wm_build_sum_start(sum);
    for (size_t i = 0; i < report->device_count; i++)
        count += is_of_source(&report->devices[i], kind, source);
    for (size_t i = 0; i < report->device_count; i++) {
        const struct wm_device_energy *device = &report->devices[i];
        if (!is_of_source(device, kind, source))
            continue;
        struct wm_energy_sum part =
            wm_build_sum_of(&device->figure, &device->split, device->origin);
        if (!part.energy.known && count > 1)
            part.energy.why =
                wm_build_text(builder, "%s: %s", device->name, part.energy.why);
        wm_build_sum_add(sum, &part);
    }
    wm_build_sum_end(sum);
}

/* Of the source that counts; where none does, `why`. */
static void sum_kind(struct wm_report_builder *builder, enum wm_device_kind kind,
                     const char *why, struct wm_energy_choice *ret_choice,
                     struct wm_energy_sum *ret_sum)
{
    const struct wm_energy_offers offers = wm_devices_offers(builder->analysis);

    wm_energy_choose(&offers, kind, ret_choice);
    if (ret_choice->source)
        sum_source(builder, kind, ret_choice->source, ret_sum);
    else if (ret_choice->is_refused)
        wm_build_sum_miss(ret_sum, "an estimate of the memory is not added to the measured "
                                   "energy of the CPUs");
    else
        wm_build_sum_miss(ret_sum, why);
}

/* Counters of the CPUs themselves are what should know it; the other sources are there
 * for other things, too. */
static const char *why_no_cpu(struct wm_report_builder *builder)
{
    const struct wm_run *run = builder->analysis->run;

    for (size_t i = 0; i < run->source_count; i++) {
        const struct wm_source_status *source = &run->sources[i];
        if (source->name &&
            wm_source_traits(source->name)->cpu_sensor == WM_SENSOR_BUILT_IN)
            return wm_build_why(builder, WM_NO_CHANNEL, source->name);
    }
    return "no source of CPU energy is read";
}

/* The energy of all that is known, and what that is. */
static void add_known(struct wm_report *report, const struct wm_energy_sum *part, bool *has)
{
    *has = part->energy.known;
    if (*has)
        wm_build_sum_add(&report->energy, part);
}

/* Whether what was watched for its highest power is what the energy is of. Which source
 * is right shows at the end only. */
static bool is_of_the_same(const struct wm_report_builder *builder)
{
    const struct wm_analysis *analysis = builder->analysis;
    const struct wm_report *report = builder->report;
    bool has_cpu = false, has_dram = false, has_gpus = false;

    for (size_t i = 0; i < analysis->device_count; i++) {
        const struct wm_device_stats *device = &analysis->devices[i];
        struct wm_energy_result energy;
        if (!device->counts)
            continue;
        wm_energy_result(&device->joules, &energy);
        if (!wm_energy_is_known(&energy)) {
            /* One that reported nothing at all is in neither. */
            if (device->share.joules_now > 0)
                return false;
            continue;
        }
        has_cpu |= device->channel->device_kind == WM_DEVICE_CPU;
        has_dram |= device->channel->device_kind == WM_DEVICE_DRAM;
    }
    for (size_t i = 0; i < analysis->gpu_count; i++)
        has_gpus |= analysis->gpus[i].device.counts;
    return has_cpu == report->cover.has[WM_COST_CPU] &&
           has_dram == report->cover.has[WM_COST_DRAM] &&
           has_gpus == report->cover.has[WM_COST_GPUS];
}

/* What a model says at most, which also holds where the ends of the run lie a moment
 * beside its readings; infinite where anything else is measured. */
static double modelled_most(const struct wm_analysis *analysis)
{
    double watts = 0;

    for (size_t i = 0; i < wm_device_count(analysis); i++) {
        const struct wm_device_stats *device = wm_device_at(analysis, i);
        const struct wm_sensor *sensor = &device->channel->sensor;
        if (!device->counts)
            continue;
        if (sensor->kind != WM_SENSOR_MODEL || sensor->range <= 0)
            return HUGE_VAL;
        watts += sensor->range;
    }
    return watts > 0 ? watts : HUGE_VAL;
}

static void build_power(struct wm_report_builder *builder)
{
    double most = modelled_most(builder->analysis);
    struct wm_report *report = builder->report;
    const struct wm_known max = wm_window_max_value(&builder->analysis->power_max);

    report->power.mean = report->energy.energy;
    if (report->power.mean.known)
        report->power.mean = wm_value_known(fmin(report->energy.watts, most));
    report->power.max = report->power.mean;
    if (report->power.mean.known && max.known && max.number > report->power.mean.number)
        report->power.max = wm_value_known(fmin(max.number, most));
    if (report->power.max.known && report->power.max.number > report->power.mean.number)
        report->power_max_s = wm_devices_power_window_s(builder->analysis);
    if (report->power.mean.known && !is_of_the_same(builder))
        report->power.max = wm_value_missing(
            "the sensors that were watched for it are not those of its energy");
}

/* What the tree used of the CPUs, by the CPU time of each process. */
static void build_processes(struct wm_report_builder *builder)
{
    struct wm_report *report = builder->report;
    const struct wm_result *result = &report->result;
    const struct wm_value *tree = &report->cpu_energy.split.tree;

    report->process_energies =
        calloc(result->process_count + 1, sizeof(*report->process_energies));
    if (!report->process_energies) {
        builder->failed = true;
        return;
    }
    for (size_t i = 0; i < result->process_count; i++) {
        struct wm_value *energy = &report->process_energies[i];
        const struct wm_known *cpu = &result->processes[i].cpu_seconds;
        *energy = tree->known ? report->cpu_total : *tree;
        if (energy->known && !cpu->known)
            *energy = wm_value_missing("its CPU time is not known");
        if (!energy->known)
            continue;
        double share = energy->number > 0 ? cpu->number / energy->number : 0;
        *energy = wm_value_known(tree->number * (share < 1 ? share : 1));
    }
}

/* The label of the GPU whose idling it is; else NULL. */
static const char *gpu_of(const struct wm_analysis *analysis,
                          const struct wm_baseline *baseline)
{
    for (size_t i = 0; i < analysis->gpu_count; i++) {
        const struct wm_channel *channel = analysis->gpus[i].device.channel;
        if (baseline->device && strcmp(channel->device, baseline->device) == 0)
            return channel->label;
    }
    return NULL;
}

/* A baseline of a machine that had something to do. The CPUs' is that of many devices. */
static void remark_baseline(struct wm_report_builder *builder)
{
    const struct wm_run *run = builder->analysis->run;
    bool is_said = false;

    for (size_t i = 0; i < run->baseline_count; i++) {
        const struct wm_baseline *baseline = &run->baselines[i];
        const char *gpu = gpu_of(builder->analysis, baseline);
        if (baseline->busy <= WM_BASELINE_MOST_BUSY || (!gpu && is_said))
            continue;
        is_said |= !gpu;
        wm_build_remark(builder,
                        "baseline: the machine was not idle, %s busy for %.0f %% of the "
                        "time: it is %s",
                        gpu ? wm_build_text(builder, "%s was", gpu) : "the CPUs were",
                        100 * baseline->busy,
                        baseline->is_refused ? "not used (--baseline-anyway uses it)"
                                             : "used all the same");
    }
}

/* By which model, and from what. */
static void remark_estimate(struct wm_report_builder *builder,
                            const struct wm_energy_choice *cpus)
{
    if (!builder->report->cpu_energy.energy.known || cpus->sensor != WM_SENSOR_MODEL)
        return;
    const struct wm_source_status *source =
        wm_run_source(builder->analysis->run, cpus->source);
    if (source && source->detail)
        wm_build_fact(builder, "CPU energy is not measured; it is %s", source->detail);
}

/* One that did not answer, or was asleep, may have figures at another time. */
static bool was_silent(const struct wm_analysis *analysis, size_t channel)
{
    return channel != WM_NO_CHANNEL && analysis->stats[channel].silence.seconds > 0;
}

static bool has_lost(const struct wm_analysis *analysis,
                     const struct wm_device_stats *device)
{
    return device->joules.counted || device->joules.max_power > 0 ||
           was_silent(analysis, device->energy) || was_silent(analysis, device->power);
}

/* GPUs that had figures and lost all of them, or that do not answer, are in no sum; NULL
 * where there are none. */
static const char *why_lost(const struct wm_report_builder *builder)
{
    const struct wm_analysis *analysis = builder->analysis;

    for (size_t i = 0; i < analysis->gpu_count; i++) {
        const struct wm_device_stats *device = &analysis->gpus[i].device;
        if (device->counts && has_lost(analysis, device))
            return builder->report->gpu_energy.energy.why;
    }
    return analysis->run->gpus_unknown ? analysis->run->gpu_remark : NULL;
}

void wm_build_energy(struct wm_report_builder *builder)
{
    struct wm_report *report = builder->report;
    struct wm_energy_choice cpus, memory;

    build_devices(builder);
    if (builder->failed)
        return;
    sum_kind(builder, WM_DEVICE_CPU, why_no_cpu(builder), &cpus, &report->cpu_energy);
    sum_kind(builder, WM_DEVICE_DRAM, "no source of memory energy is read", &memory,
             &report->dram_energy);

    wm_build_sum_start(&report->energy);
    add_known(report, &report->cpu_energy, &report->cover.has[WM_COST_CPU]);
    if (!cpus.has_memory)
        add_known(report, &report->dram_energy, &report->cover.has[WM_COST_DRAM]);
    add_known(report, &report->gpu_energy, &report->cover.has[WM_COST_GPUS]);
    wm_build_sum_end(&report->energy);
    if (!report->cover.has[WM_COST_CPU] && !report->cover.has[WM_COST_DRAM] &&
        !report->cover.has[WM_COST_GPUS])
        wm_build_sum_miss(&report->energy,
                          wm_build_text(builder, "%s; %s", report->cpu_energy.energy.why,
                                        report->gpu_energy.energy.why));
    const char *lost = report->cover.has[WM_COST_GPUS] ? NULL : why_lost(builder);
    if (report->energy.energy.known && lost)
        wm_build_sum_lack(&report->energy, wm_build_text(builder, "%s", lost));
    const struct wm_block_figures power =
        wm_block_figures_of(&builder->analysis->tree_power);
    report->tree_scatter =
        wm_student_scatter(power.of[WM_BLOCK_EFFECTIVE].number,
                           power.of[WM_BLOCK_STD].number, power.of[WM_BLOCK_MEAN].number);
    build_power(builder);
    build_processes(builder);
    remark_estimate(builder, &cpus);
    remark_baseline(builder);
}
