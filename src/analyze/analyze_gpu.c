/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_gpu.c - the part of a report that speaks of GPUs: each of them, what they come
 * to together, and which of them a sum lacks. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze_build.h"
#include "base/base_array.h"
#include "base/base_text.h"
#include "source/source_traits.h"
#include "wattmeter/gpu.h"

static const char *why_no_gpu(struct wm_report_builder *builder)
{
    const struct wm_run *run = builder->analysis->run;
    const char *reasons = NULL;

    for (size_t i = 0; i < run->source_count; i++) {
        const struct wm_source_status *source = &run->sources[i];
        if (!source->name || !wm_source_traits(source->name)->has_gpus)
            continue;
        if (source->available)
            return run->gpu_count > 0 ? "no GPU was chosen" : "there is no GPU";

        const char *why = wm_build_why(builder, WM_NO_CHANNEL, source->name);
        reasons = reasons ? wm_build_text(builder, "%s; %s", reasons, why) : why;
    }
    return reasons ? reasons : "no source of GPU values is read";
}

/* All of a GPU is stale at a time; power and energy stand for it. What its energy leaves
 * out has been said. */
static void remark_silence(struct wm_report_builder *builder,
                           const struct wm_gpu_usage *usage, const struct wm_gpu_stats *gpu)
{
    const struct wm_device_stats *device = &gpu->device;

    if (!usage->figure.energy.known || !usage->figure.energy.why)
        wm_build_silence(builder,
                         device->power != WM_NO_CHANNEL ? device->power : device->energy,
                         device->channel->label);
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

/* Between two readings of its power a GPU took more than in either where its counter of
 * energy says so. */
static void raise_to_mean(struct wm_value *max, const struct wm_energy_figure *figure)
{
    if (!figure->energy.known || figure->covered_s <= 0)
        return;
    const struct wm_value mean = wm_value_known(figure->energy.number / figure->covered_s);
    wm_value_raise(max, &mean);
}

/* Where a GPU does not tell what all processes have of it, as one of them may not be read,
 * it is no less than what the tracked ones have. */
static struct wm_spread spread_of(struct wm_report_builder *builder, size_t all,
                                  size_t tree, const char *source)
{
    const struct wm_spread spread = wm_build_spread(builder, all, source);
    struct wm_spread least = wm_build_spread(builder, tree, source);

    if (spread.max.known || !least.max.known || least.max.number <= 0)
        return spread;
    least.mean.why = least.max.why = spread.max.why;
    return least;
}

static void add_more(struct wm_report_builder *builder, struct wm_gpu_usage *usage,
                     const struct wm_channel *channel, const char *part,
                     struct wm_value value)
{
    if (wm_array_reserve(&usage->more, usage->more_count, &usage->more_room,
                         sizeof(*usage->more)) < 0) {
        builder->failed = true;
        return;
    }
    const char *metric = wm_build_text(builder, "%s", channel->metric);
    usage->more[usage->more_count++] = (struct wm_gpu_figure) {
        .key = strcmp(part, "max") == 0 ? wm_build_text(builder, "max_%s", metric) : metric,
        .path = wm_build_text(builder, "channels.%s.%s", metric, part),
        .metric = metric,
        .part = part,
        .unit = wm_build_text(builder, "%s", channel->unit),
        .value = value,
    };
}

static bool is_on_demand(const struct wm_channel *channel)
{
    const struct wm_gpu_field_info *info;

    for (size_t i = 0; (info = wm_gpu_field_info((enum wm_gpu_field)i)) != NULL; i++) {
        if (info->on_demand && strcmp(info->metric, channel->metric) == 0)
            return strcmp(channel->unit, "bits") != 0; /* which have no mean */
    }
    return false;
}

static void build_more(struct wm_report_builder *builder, struct wm_gpu_usage *usage,
                       const struct wm_channel *gpu)
{
    const struct wm_analysis *analysis = builder->analysis;

    for (size_t i = 0; i < analysis->count; i++) {
        const struct wm_channel *channel = &analysis->channels[i];
        const struct wm_counter_stats *counter = &analysis->stats[i].counter;
        if (channel->device_kind != WM_DEVICE_GPU || !is_on_demand(channel) ||
            strcmp(channel->device, gpu->device) != 0)
            continue;
        if (channel->kind == WM_COUNTER) {
            add_more(builder, usage, channel, "total",
                     counter->count > 0
                         ? wm_value_known(counter->total)
                         : wm_value_missing(wm_build_why(builder, i, gpu->source)));
            continue;
        }
        struct wm_spread spread = wm_build_spread(builder, i, gpu->source);
        add_more(builder, usage, channel, "mean", spread.mean);
        add_more(builder, usage, channel, "max", spread.max);
    }
}

static void build_gpu(struct wm_report_builder *builder, struct wm_gpu_usage *usage,
                      const struct wm_gpu_stats *gpu)
{
    const struct wm_channel *channel = gpu->device.channel;
    const char *source = channel->source;

    usage->has_index = wm_channel_gpu_number(channel, &usage->index);
    usage->uuid = strdup(channel->device);
    usage->name = strdup(channel->model ? channel->model : "GPU");
    usage->label = strdup(channel->label);
    if (!usage->uuid || !usage->name || !usage->label)
        builder->failed = true;
    else
        wm_text_clean(usage->label);
    usage->origin = channel->origin;

    wm_build_device(builder, &gpu->device,
                    "what the tracked processes did on the GPU is not known", NULL,
                    &usage->figure, &usage->split, &usage->idle_power);
    remark_silence(builder, usage, gpu);
    usage->power = wm_build_spread(builder, gpu->device.power, source);
    raise_to_mean(&usage->power.max, &usage->figure);
    usage->utilization =
        spread_of(builder, gpu->utilization, gpu->tree_utilization, source);
    usage->memory = spread_of(builder, gpu->memory_used, gpu->tree_memory, source);
    usage->memory_capacity = wm_build_last(builder, gpu->memory_total, source);
    usage->temperature = wm_build_spread(builder, gpu->temperature, source);
    usage->tree_memory_max = tree_memory_on(builder, gpu, source);
    build_more(builder, usage, channel);
}

/* How many GPUs a text names, before it says how many more there are. */
enum { NAMES_MAX = 8 };

/* The names of GPUs, and what else is to be told of them. */
struct list {
    char text[320];
    const char *before; /* what stands before the first of them */
    size_t named, more;
};

static void add_name(struct list *list, const struct wm_report_builder *builder, size_t gpu)
{
    const struct wm_analysis *analysis = builder->analysis;

    if (list->named == NAMES_MAX) {
        list->more++;
        return;
    }
    wm_text_list(list->text, sizeof(list->text), list->named++ > 0 ? ", " : list->before,
                 "%s", analysis->gpus[gpu].device.channel->label);
}

static void end_names(struct list *list)
{
    if (list->more > 0)
        wm_text_list(list->text, sizeof(list->text), " and ", "%zu more", list->more);
    list->named = list->more = 0;
}

/* A value that each GPU has in the report, and the channel it is made of: their
 * places in struct wm_gpu_usage and in struct wm_gpu_stats. */
struct part {
    size_t value, channel;
};

#define PART(value_, channel_)                                                             \
    {                                                                                      \
        offsetof(struct wm_gpu_usage, value_), offsetof(struct wm_gpu_stats, channel_)     \
    }

static const struct part energy_part = PART(figure.energy, device.energy);
static const struct part capacity_part = PART(memory_capacity, memory_total);
static const struct part memory_part = PART(memory.max, memory_used);
static const struct part utilization_part = PART(utilization.max, utilization);
static const struct part tree_memory_part = PART(tree_memory_max, tree_memory);

static const struct wm_value *value_of(const struct wm_report_builder *builder, size_t gpu,
                                       const struct part *part)
{
    return (const void *)((const char *)&builder->report->gpus[gpu] + part->value);
}

static size_t channel_of(const struct wm_report_builder *builder, size_t gpu,
                         const struct part *part)
{
    return *(const size_t *)(const void *)((const char *)&builder->analysis->gpus[gpu] +
                                           part->channel);
}

/* Whether one GPU lacks the value for the reason for which another one does. */
static bool lack_alike(const struct wm_report_builder *builder, const struct part *part,
                       size_t one, size_t other)
{
    const struct wm_value *a = value_of(builder, one, part);
    const struct wm_value *b = value_of(builder, other, part);

    return !a->known && !b->known && strcmp(a->why, b->why) == 0;
}

/* "gpu0, gpu2: not supported; gpu3: no permission": who lacks a value, and why. */
static const char *why_lacking(struct wm_report_builder *builder, const struct part *part)
{
    size_t count = builder->report->gpu_count;
    struct list list = { .before = "; " };

    for (size_t i = 0; i < count; i++) {
        size_t first = 0;
        while (first < i && !lack_alike(builder, part, first, i))
            first++;
        if (value_of(builder, i, part)->known || first < i)
            continue;

        for (size_t k = i; k < count; k++) {
            if (lack_alike(builder, part, i, k))
                add_name(&list, builder, k);
        }
        end_names(&list);
        wm_text_list(list.text, sizeof(list.text), ": ", "%s",
                     value_of(builder, i, part)->why);
    }
    return wm_build_text(builder, "%s", list.text);
}

/* "of 9 samples gpu0 lacks 2, gpu3 lacks 7" */
static const char *who_lacked(struct wm_report_builder *builder, const struct part *part)
{
    struct list list = { .before = " " };

    snprintf(list.text, sizeof(list.text), "of %llu samples",
             (unsigned long long)builder->analysis->ticks);
    for (size_t i = 0; i < builder->report->gpu_count; i++) {
        uint64_t missing = wm_build_missing_ticks(builder, channel_of(builder, i, part));
        if (missing == 0)
            continue;
        add_name(&list, builder, i);
        if (list.more == 0)
            wm_text_list(list.text, sizeof(list.text), " ", "lacks %llu",
                         (unsigned long long)missing);
    }
    end_names(&list);
    return wm_build_text(builder, "%s", list.text);
}

static struct wm_value sum_over_gpus(struct wm_report_builder *builder,
                                     const struct part *part)
{
    double sum = 0;

    for (size_t i = 0; i < builder->report->gpu_count; i++) {
        const struct wm_value *value = value_of(builder, i, part);
        if (!value->known)
            return wm_value_missing(why_lacking(builder, part));
        sum += value->number;
    }
    return wm_value_known(sum);
}

/* Why a sum over all GPUs was never known, though each of its parts may be. */
static struct wm_value missing_sum(struct wm_report_builder *builder,
                                   const struct part *part)
{
    struct wm_value parts = sum_over_gpus(builder, part);

    if (!parts.known)
        return parts;
    return wm_value_missing(wm_build_text(builder, "never known for all GPUs at once: %s",
                                          who_lacked(builder, part)));
}

/* Whether every GPU has a channel of its own for the memory of the tree, as older
 * recordings do not. */
static bool have_tree_memory(const struct wm_report_builder *builder)
{
    for (size_t i = 0; i < builder->report->gpu_count; i++) {
        if (channel_of(builder, i, &tree_memory_part) == WM_NO_CHANNEL)
            return false;
    }
    return true;
}

/* How much is missing of the memory of the tree, and on which GPUs. */
static const char *tree_lacks(struct wm_report_builder *builder, size_t channel)
{
    return have_tree_memory(builder) ? who_lacked(builder, &tree_memory_part)
                                     : wm_build_how_many_lack(builder, channel);
}

/* The GPU memory of the tree or of a part of it, on all GPUs together. */
static struct wm_value tree_memory(struct wm_report_builder *builder, const char *label)
{
    const struct wm_analysis *analysis = builder->analysis;
    size_t channel = wm_analysis_find(analysis, "tracker", label, "gpu_memory");

    if (wm_build_is_doubtful(builder, channel))
        return wm_build_none_found(builder, channel, tree_lacks(builder, channel));
    if (channel != WM_NO_CHANNEL && analysis->stats[channel].gauge.count == 0 &&
        have_tree_memory(builder))
        return missing_sum(builder, &tree_memory_part);
    return wm_build_max(builder, channel, "tracker");
}

/* In the readings that lack it may have been more than in the others. */
static void remark_tree_memory(struct wm_report_builder *builder)
{
    const struct wm_analysis *analysis = builder->analysis;
    size_t channel = wm_analysis_find(analysis, "tracker", "tree", "gpu_memory");

    if (!builder->report->gpu_ram_combined.known ||
        wm_build_missing_ticks(builder, channel) == 0)
        return;
    const char *why = analysis->stats[channel].why;
    wm_build_remark(builder, "GPU memory: may have been more than is shown, as %s%s%s",
                    tree_lacks(builder, channel), why[0] ? ": " : "", why);
}

/* One that is a part of a processor has its power in that of the CPU, and a second die in
 * that of the first, which are added up elsewhere. */
static void remark_left_out(struct wm_report_builder *builder)
{
    const struct wm_analysis *analysis = builder->analysis;

    for (size_t i = 0; i < analysis->gpu_count; i++) {
        size_t channel = channel_of(builder, i, &energy_part);
        const char *why = channel != WM_NO_CHANNEL ? analysis->stats[channel].why : "";
        struct list list = { .before = "" };
        size_t first = 0;

        while (first < i && (analysis->gpus[first].device.counts ||
                             !lack_alike(builder, &energy_part, first, i)))
            first++;
        if (analysis->gpus[i].device.counts || first < i)
            continue;
        for (size_t k = i; k < analysis->gpu_count; k++) {
            if (k == i || (!analysis->gpus[k].device.counts &&
                           lack_alike(builder, &energy_part, i, k)))
                add_name(&list, builder, k);
        }
        end_names(&list);
        builder->is_energy = true;
        wm_build_remark(builder, "GPU energy leaves out %s: %s", list.text,
                        why[0] ? why : "another device measures its power");
        builder->is_energy = false;
    }
}

/* What the sum over GPUs lacks, or NULL: figures of some, or GPUs that do not answer. */
static const char *lacking(struct wm_report_builder *builder, size_t without)
{
    const struct wm_run *run = builder->analysis->run;

    if (without > 0)
        return why_lacking(builder, &energy_part);
    return run->gpus_unknown ? run->gpu_remark : NULL;
}

static void sum_energies(struct wm_report_builder *builder)
{
    const struct wm_analysis *analysis = builder->analysis;
    struct wm_report *report = builder->report;
    size_t left_out = 0, summed = 0, without = 0;

    for (size_t i = 0; i < analysis->gpu_count; i++)
        left_out += !analysis->gpus[i].device.counts;
    bool is_all = left_out == analysis->gpu_count;

    wm_build_sum_start(&report->gpu_energy);
    for (size_t i = 0; i < report->gpu_count; i++) {
        const struct wm_gpu_usage *gpu = &report->gpus[i];
        if (!is_all && !analysis->gpus[i].device.counts)
            continue;
        without += !gpu->figure.energy.known;
        if (!gpu->figure.energy.known)
            continue;
        struct wm_energy_sum part = wm_build_sum_of(&gpu->figure, &gpu->split, gpu->origin);
        wm_build_sum_add(&report->gpu_energy, &part);
        summed++;
    }
    wm_build_sum_end(&report->gpu_energy);
    const char *lacks = lacking(builder, without);
    if (summed == 0)
        wm_build_sum_miss(&report->gpu_energy, why_lacking(builder, &energy_part));
    else if (lacks)
        wm_build_sum_lack(&report->gpu_energy, wm_build_text(builder, "%s", lacks));
    if (summed > 0 && left_out > 0 && !is_all)
        remark_left_out(builder);
}

static void build_sums(struct wm_report_builder *builder)
{
    const struct wm_analysis *analysis = builder->analysis;
    struct wm_report *report = builder->report;
    struct wm_percentages *percent = &report->gpu_percentages;
    double gpus = analysis->run->expected_gpu_count > 0 ? analysis->run->expected_gpu_count
                                                        : (double)report->gpu_count;

    sum_energies(builder);
    report->gpu_ram_capacity = sum_over_gpus(builder, &capacity_part);

    if (analysis->gpu_memory_sum.count > 0)
        report->gpu_ram_system = wm_value_known(analysis->gpu_memory_sum.max);
    else
        report->gpu_ram_system = missing_sum(builder, &memory_part);

    if (analysis->gpu_utilization_sum.count > 0) {
        double max = 100 * analysis->gpu_utilization_sum.max;
        double mean = 100 * wm_gauge_mean(&analysis->gpu_utilization_sum);
        percent->max_sum = wm_value_known(max);
        percent->mean_sum = wm_value_known(mean);
        percent->max_hardware = wm_value_known(max / gpus);
        percent->mean_hardware = wm_value_known(mean / gpus);
    } else {
        percent->max_sum = missing_sum(builder, &utilization_part);
        percent->mean_sum = percent->max_hardware = percent->mean_hardware =
            percent->max_sum;
    }

    report->gpu_ram_main = tree_memory(builder, "main");
    report->gpu_ram_descendants = tree_memory(builder, "descendants");
    report->gpu_ram_combined = tree_memory(builder, "tree");
    wm_value_raise(&report->gpu_ram_combined, &report->gpu_ram_main);
    wm_value_raise(&report->gpu_ram_combined, &report->gpu_ram_descendants);
    remark_tree_memory(builder);
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
    build_sums(builder);
}
