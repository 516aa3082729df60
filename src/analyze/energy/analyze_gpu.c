/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_gpu.c - the part of a report that speaks of GPUs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze_build.h"

static const char *why_no_gpu(struct wm_report_builder *builder)
{
    const struct wm_run *run = builder->analysis->run;
    const char *reasons = NULL;

    for (size_t i = 0; i < run->source_count; i++) {
        const struct wm_source_status *source = &run->sources[i];
        if (!wm_run_is_gpu_source(source->name))
            continue;
        if (source->available)
            return run->gpu_count > 0 ? "no GPU was chosen" : "there is no GPU";

        const char *why = wm_build_why(builder, WM_NO_CHANNEL, source->name);
        reasons = reasons ? wm_build_text(builder, "%s; %s", reasons, why) : why;
    }
    return reasons ? reasons : "no source of GPU readings was asked";
}

const struct wm_channel *wm_gpu_any_channel(const struct wm_analysis *analysis,
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

/* All of a GPU is stale at a time; power and energy stand for it. */
static void remark_silence(struct wm_report_builder *builder, const char *label,
                           const struct wm_gpu_stats *gpu)
{
    wm_build_silence(builder, gpu->power != WM_NO_CHANNEL ? gpu->power : gpu->energy,
                     label);
}

static struct wm_value tree_memory_on(struct wm_report_builder *builder,
                                      const struct wm_gpu_stats *gpu, const char *source)
{
    size_t channel = gpu->tree_memory;

    if (wm_build_is_doubtful(builder, channel))
        return wm_build_none_found(builder, channel,
                                   wm_build_how_many_lack(builder, channel));
    return wm_build_max(builder, channel, source);
}

static void build_gpu(struct wm_report_builder *builder, struct wm_gpu_usage *usage,
                      const struct wm_gpu_stats *gpu)
{
    const struct wm_channel *channel = wm_gpu_any_channel(builder->analysis, gpu);
    const char *source = channel->source;

    usage->index = index_of_label(channel->label);
    usage->uuid = strdup(gpu->device);
    usage->name = strdup(channel->model ? channel->model : "GPU");
    usage->label = strdup(channel->label);
    if (!usage->uuid || !usage->name || !usage->label)
        builder->failed = true;
    usage->origin = channel->origin;

    remark_silence(builder, channel->label, gpu);
    const struct wm_figure_of of = {
        .label = channel->label,
        .channel = channel,
        .energy = gpu->energy,
        .power = gpu->power,
        .joules = &gpu->joules,
    };
    wm_build_figure(builder, &of, &usage->figure);
    wm_build_split(&gpu->share, &usage->figure,
                   "what the tracked processes did on the GPU is not known", &usage->split);
    wm_build_baseline(builder, &of, &gpu->share, &usage->figure, &usage->idle_power,
                      &usage->split);
    usage->power = wm_build_spread(builder, gpu->power, source);
    usage->utilization = wm_build_spread(builder, gpu->utilization, source);
    usage->memory = wm_build_spread(builder, gpu->memory_used, source);
    usage->memory_capacity = wm_build_last(builder, gpu->memory_total, source);
    usage->temperature = wm_build_spread(builder, gpu->temperature, source);
    usage->tree_memory_max = tree_memory_on(builder, gpu, source);
}

static void build_without_gpus(struct wm_report_builder *builder)
{
    struct wm_report *report = builder->report;
    struct wm_value missing = wm_value_missing(why_no_gpu(builder));

    wm_build_sum_miss(&report->gpu_energy, missing.why);
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
    for (size_t i = 0; i < analysis->gpu_count; i++)
        build_gpu(builder, &report->gpus[report->gpu_count++], &analysis->gpus[i]);
    wm_build_gpu_sums(builder);
}
