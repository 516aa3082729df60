/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_gpu.c - the part of a report that speaks of GPUs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze_build.h"

/* Figures from counter and power that differ by more are worth a remark. */
#define MOST_GAP 0.05

/* Time that a figure leaves out; less is the jitter of the ticks. */
#define LEAST_MISSING_S 1e-3

/* Which sources could have found a GPU. Channels tell what a source reads, but one
 * that found nothing has none, and a run keeps no more of it than name and reason. */
static bool is_gpu_source(const char *name)
{
    static const char *const names[] = { "nvml", "drm" };

    for (size_t i = 0; name && i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

static const char *why_no_gpu(struct wm_report_builder *builder)
{
    const struct wm_run *run = builder->analysis->run;
    const char *reasons = NULL;

    for (size_t i = 0; i < run->source_count; i++) {
        const struct wm_source_status *source = &run->sources[i];
        if (!is_gpu_source(source->name))
            continue;
        if (source->available)
            return run->gpu_count > 0 ? "no GPU was chosen" : "there is no GPU";

        const char *why = wm_build_why(builder, WM_NO_CHANNEL, source->name);
        reasons = reasons ? wm_build_text(builder, "%s; %s", reasons, why) : why;
    }
    return reasons ? reasons : "no source of GPU readings was asked";
}

/* Any channel of the GPU that its source offers. */
static const struct wm_channel *any_channel(const struct wm_analysis *analysis,
                                            const struct wm_gpu_stats *gpu)
{
    const size_t candidates[] = { gpu->energy,      gpu->power,        gpu->utilization,
                                  gpu->memory_used, gpu->memory_total, gpu->temperature,
                                  gpu->tree_memory };

    for (size_t i = 0; i < sizeof(candidates) / sizeof(candidates[0]); i++) {
        if (candidates[i] != WM_NO_CHANNEL)
            return &analysis->channels[candidates[i]];
    }
    return NULL;
}

/* The number in "gpu12"; -1 where there is none. */
static int index_of_label(const char *label)
{
    int number = -1;

    if (strncmp(label, "gpu", 3) != 0)
        return -1;
    for (const char *at = label + 3; *at; at++) {
        if (*at < '0' || *at > '9' || number > 9999)
            return -1;
        number = (number < 0 ? 0 : number * 10) + (*at - '0');
    }
    return number;
}

static const char *const method_texts[] = {
    [WM_ENERGY_UNKNOWN] = "",
    [WM_ENERGY_COUNTER] = "counter",
    [WM_ENERGY_COUNTER_FILLED] = "counter, gaps filled with the integral of power",
    [WM_ENERGY_INTEGRAL] = "integral of power",
};

static const char *why_no_energy(struct wm_report_builder *builder,
                                 const struct wm_gpu_stats *gpu, const char *source)
{
    if (gpu->joules.counted)
        return "the energy counter did not move, and there is no power to integrate";
    if (gpu->joules.powered || gpu->joules.max_power > 0)
        return "there is no energy counter, and power was not read twice in a row";
    return wm_build_why(builder, gpu->energy, source);
}

static void remark_counter(struct wm_report_builder *builder, const char *label,
                           const struct wm_energy_result *energy)
{
    const char *instead = energy->method == WM_ENERGY_COUNTER_FILLED
                              ? "the integral of power is used there"
                              : "that is left out, and the figure is a lower bound";

    if (energy->stuck)
        wm_build_remark(builder,
                        "%s: the energy counter stood still %swhile power was drawn; the "
                        "integral of power is used%s",
                        label, energy->method == WM_ENERGY_INTEGRAL ? "" : "until the end ",
                        energy->method == WM_ENERGY_INTEGRAL ? "" : " from there on");
    if (energy->stalls > 0)
        wm_build_remark(builder,
                        "%s: the energy counter stood still while power was drawn and did "
                        "not make up for it (%llu time%s); %s",
                        label, (unsigned long long)energy->stalls,
                        wm_plural(energy->stalls), instead);
    if (energy->resets > 0)
        wm_build_remark(builder, "%s: the energy counter was set back (%llu time%s); %s",
                        label, (unsigned long long)energy->resets,
                        wm_plural(energy->resets), instead);
    if (energy->implausible > 0)
        wm_build_remark(builder,
                        "%s: the energy counter jumped by more than the GPU can draw (%llu "
                        "time%s); %s",
                        label, (unsigned long long)energy->implausible,
                        wm_plural(energy->implausible), instead);
    if (energy->filled_s > 0 && !energy->stuck &&
        energy->resets + energy->implausible + energy->stalls == 0)
        wm_build_remark(
            builder,
            "%s: for %s s without the energy counter the integral of power is used", label,
            wm_build_number(energy->filled_s).text);
}

static void remark_energy(struct wm_report_builder *builder, const char *label,
                          const struct wm_gpu_stats *gpu,
                          const struct wm_energy_result *energy)
{
    if (energy->method == WM_ENERGY_UNKNOWN)
        return;

    /* Of the channel that the figure rests on. */
    size_t channel = energy->method == WM_ENERGY_INTEGRAL ? gpu->power : gpu->energy;
    const char *why = builder->analysis->stats[channel].why;

    remark_counter(builder, label, energy);
    if (energy->missing_s > LEAST_MISSING_S)
        wm_build_remark(builder, "%s: energy does not cover %s s of %s s%s%s", label,
                        wm_build_number(energy->missing_s).text,
                        wm_build_number(energy->span_s).text, why[0] ? ": " : "", why);
    if (energy->is_short)
        wm_build_remark(
            builder,
            "%s: the run is shorter than three updates of the power sensor (one "
            "in %s ms); its energy is a rough figure",
            label, wm_build_number((double)gpu->joules.period_ns / 1e6).text);
    else if (energy->checked && energy->gap > MOST_GAP)
        wm_build_remark(builder,
                        "%s: energy counter (%s J) and integral of power (%s J) differ by "
                        "%.0f %%",
                        label, wm_build_number(energy->counter).text,
                        wm_build_number(energy->integral).text, 100 * energy->gap);
}

/* All of a GPU is stale at a time; power and energy stand for it. */
static void remark_silence(struct wm_report_builder *builder, const char *label,
                           const struct wm_gpu_stats *gpu)
{
    wm_build_silence(builder, gpu->power != WM_NO_CHANNEL ? gpu->power : gpu->energy,
                     label);
}

static void build_energy(struct wm_report_builder *builder, struct wm_gpu_usage *usage,
                         const struct wm_gpu_stats *gpu, const struct wm_channel *channel)
{
    struct wm_energy_result energy;

    wm_energy_result(&gpu->joules, &energy);
    snprintf(usage->energy_method, sizeof(usage->energy_method), "%s",
             method_texts[energy.method]);
    if (energy.method == WM_ENERGY_UNKNOWN)
        usage->energy = wm_value_missing(why_no_energy(builder, gpu, channel->source));
    else
        usage->energy = wm_value_known(energy.joules);

    if (energy.checked)
        usage->energy_check = wm_value_known(energy.gap);
    else
        usage->energy_check = wm_value_missing("counter and power were not both there");
    remark_energy(builder, channel->label, gpu, &energy);
}

static void build_gpu(struct wm_report_builder *builder, struct wm_gpu_usage *usage,
                      const struct wm_gpu_stats *gpu)
{
    const struct wm_channel *channel = any_channel(builder->analysis, gpu);
    const char *source = channel->source;

    usage->index = index_of_label(channel->label);
    usage->uuid = strdup(gpu->device);
    usage->name = strdup(channel->model ? channel->model : "GPU");
    if (!usage->uuid || !usage->name)
        builder->failed = true;
    usage->origin = channel->origin;

    remark_silence(builder, channel->label, gpu);
    build_energy(builder, usage, gpu, channel);
    usage->power = wm_build_spread(builder, gpu->power, source);
    usage->utilization = wm_build_spread(builder, gpu->utilization, source);
    usage->memory = wm_build_spread(builder, gpu->memory_used, source);
    usage->memory_capacity = wm_build_last(builder, gpu->memory_total, source);
    usage->temperature = wm_build_spread(builder, gpu->temperature, source);
    usage->tree_memory_max = wm_build_max(builder, gpu->tree_memory, source);
}

/* The sum of one value over all GPUs; `offset` is its place in wm_gpu_usage. */
static struct wm_value sum_over_gpus(struct wm_report_builder *builder, size_t offset)
{
    const struct wm_report *report = builder->report;
    double sum = 0;

    for (size_t i = 0; i < report->gpu_count; i++) {
        const struct wm_value *value =
            (const void *)((const char *)&report->gpus[i] + offset);
        if (!value->known)
            return wm_value_missing(
                wm_build_text(builder, "gpu%d: %s", report->gpus[i].index, value->why));
        sum += value->number;
    }
    return wm_value_known(sum);
}

/* Why a sum over all GPUs was never known, though each of its parts may be. */
static struct wm_value missing_sum(struct wm_report_builder *builder, size_t offset)
{
    struct wm_value parts = sum_over_gpus(builder, offset);

    return parts.known ? wm_value_missing("never known for all GPUs at once") : parts;
}

static void build_sums(struct wm_report_builder *builder)
{
    const struct wm_analysis *analysis = builder->analysis;
    struct wm_report *report = builder->report;
    struct wm_percentages *percent = &report->gpu_percentages;
    double gpus = analysis->run->expected_gpu_count > 0 ? analysis->run->expected_gpu_count
                                                        : (double)report->gpu_count;

    report->gpu_energy = sum_over_gpus(builder, offsetof(struct wm_gpu_usage, energy));
    report->gpu_ram_capacity =
        sum_over_gpus(builder, offsetof(struct wm_gpu_usage, memory_capacity));

    if (analysis->gpu_memory_sum.count > 0)
        report->gpu_ram_system = wm_value_known(analysis->gpu_memory_sum.max);
    else
        report->gpu_ram_system =
            missing_sum(builder, offsetof(struct wm_gpu_usage, memory.max));

    if (analysis->gpu_utilization_sum.count > 0) {
        double max = 100 * analysis->gpu_utilization_sum.max;
        double mean = 100 * wm_gauge_mean(&analysis->gpu_utilization_sum);
        percent->max_sum = wm_value_known(max);
        percent->mean_sum = wm_value_known(mean);
        percent->max_hardware = wm_value_known(max / gpus);
        percent->mean_hardware = wm_value_known(mean / gpus);
    } else {
        percent->max_sum =
            missing_sum(builder, offsetof(struct wm_gpu_usage, utilization.max));
        percent->mean_sum = percent->max_hardware = percent->mean_hardware =
            percent->max_sum;
    }

    report->gpu_ram_main = wm_build_max(
        builder, wm_analysis_find(analysis, "tracker", "main", "gpu_memory"), "tracker");
    report->gpu_ram_descendants = wm_build_max(
        builder, wm_analysis_find(analysis, "tracker", "descendants", "gpu_memory"),
        "tracker");
    report->gpu_ram_combined = wm_build_max(
        builder, wm_analysis_find(analysis, "tracker", "tree", "gpu_memory"), "tracker");
}

static void build_without_gpus(struct wm_report_builder *builder)
{
    struct wm_report *report = builder->report;
    struct wm_value missing = wm_value_missing(why_no_gpu(builder));

    report->gpu_energy = missing;
    report->gpu_ram_capacity = report->gpu_ram_system = missing;
    report->gpu_ram_main = report->gpu_ram_descendants = report->gpu_ram_combined = missing;
    report->gpu_percentages =
        (struct wm_percentages) { missing, missing, missing, missing };
}

void wm_build_gpus(struct wm_report_builder *builder)
{
    const struct wm_analysis *analysis = builder->analysis;
    struct wm_report *report = builder->report;

    if (analysis->gpu_count == 0) {
        build_without_gpus(builder);
        return;
    }

    report->gpus = calloc(analysis->gpu_count, sizeof(*report->gpus));
    if (!report->gpus) {
        builder->failed = true;
        return;
    }
    for (size_t i = 0; i < analysis->gpu_count; i++) {
        struct wm_gpu_usage *usage = &report->gpus[i];
        report->gpu_count++;
        build_gpu(builder, usage, &analysis->gpus[i]);
        if (usage->origin > report->gpu_energy_origin)
            report->gpu_energy_origin = usage->origin;
    }
    build_sums(builder);
}
