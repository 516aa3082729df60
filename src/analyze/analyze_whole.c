/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_whole.c - the energy of everything that is no GPU, and of all together. */
#include "analyze/analyze_build.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze_devices.h"
#include "base/base_text.h"
#include "record/record_channel.h"
#include "source/source_energy.h"
#include "source/source_traits.h"

/* The order in which devices are shown. */
static const enum wm_device_kind kinds[] = {
    WM_DEVICE_CPU,      WM_DEVICE_CPU_PART, WM_DEVICE_DRAM,
    WM_DEVICE_PLATFORM, WM_DEVICE_GPU,      WM_DEVICE_OTHER,
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
    bool follows_cpus = wm_devices_follow_cpus(builder->analysis, channel);
    const char *unfit = follows_cpus && is_too_short_for_cpus(builder->analysis)
                            ? "the run is shorter than three updates of the CPU counters"
                            : NULL;
    const char *why = channel->device_kind == WM_DEVICE_DRAM
                          ? "how much of the memory the tracked processes had is not known"
                      : follows_cpus
                          ? "what the tracked processes did on the CPUs is not known"
                          : "the energy of a meter that contains GPUs is not divided";

    device->name = strdup(channel->label);
    device->source = strdup(channel->source);
    device->model = channel->model ? strdup(channel->model) : NULL;
    if (!device->name || !device->source || (channel->model && !device->model))
        builder->failed = true;
    else
        wm_text_clean(device->name);
    device->kind = channel->device_kind;
    device->sensor = channel->sensor.kind;
    device->contains = channel->sensor.contains;
    device->origin = channel->origin;
    wm_build_device(builder, stats, why, unfit, &device->figure, &device->split,
                    &device->idle_power);
    device->power = device->figure.energy;
    if (device->power.known) {
        double seconds = device->figure.covered_s;
        if (seconds > 0)
            device->power =
                wm_value_known(fmin(device->power.number / seconds,
                                    wm_energy_modelled_watts(&channel->sensor)));
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
            device->channel->device_kind == WM_DEVICE_CPU &&
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

/* "; an estimate for all CPUs is 12 J", or "" without an estimate. */
static const char *estimate_of_all(struct wm_report_builder *builder)
{
    const struct wm_report *report = builder->report;

    for (size_t i = 0; i < report->device_count; i++) {
        const struct wm_device_energy *device = &report->devices[i];
        if (device->kind == WM_DEVICE_CPU && device->origin == WM_ESTIMATED &&
            device->figure.energy.known)
            return wm_build_text(builder, "; an estimate for all CPUs is %s J",
                                 wm_build_number(device->figure.energy.number).text);
    }
    return "";
}

/* Adds up the devices of one kind and one source. A device without a figure makes the sum a
 * lower bound, and a note names it. `why` is the reason if there is no device. */
static void sum_source(struct wm_report_builder *builder, enum wm_device_kind kind,
                       const char *source, const char *why, struct wm_energy_sum *sum)
{
    const struct wm_report *report = builder->report;
    const char *lacks = NULL;
    size_t count = 0, known = 0;

    wm_build_sum_start(sum);
    for (size_t i = 0; i < report->device_count; i++)
        count += is_of_source(&report->devices[i], kind, source);
    for (size_t i = 0; i < report->device_count; i++) {
        const struct wm_device_energy *device = &report->devices[i];
        const struct wm_value *energy = &device->figure.energy;
        if (!is_of_source(device, kind, source))
            continue;
        struct wm_energy_sum part =
            wm_build_sum_of(&device->figure, &device->split, device->origin);
        known += energy->known;
        if (energy->known)
            wm_build_sum_add(sum, &part);
        else
            lacks = wm_build_text(builder, "%s%s%s%s%s", lacks ? lacks : "",
                                  lacks ? "; " : "", count > 1 ? device->name : "",
                                  count > 1 ? ": " : "", energy->why);
    }
    wm_build_sum_end(sum);
    if (known == 0)
        wm_build_sum_miss(sum, lacks ? lacks : why);
    if (known == 0 || !lacks)
        return;
    wm_build_sum_lack(sum, lacks);
    bool is_cpu = kind == WM_DEVICE_CPU;
    wm_build_remark(builder, "%s energy lacks %s%s", is_cpu ? "CPU" : "memory", lacks,
                    is_cpu ? estimate_of_all(builder) : "");
}

/* Of the source that counts; where none does, `why`. */
static void sum_kind(struct wm_report_builder *builder, enum wm_device_kind kind,
                     const char *why, struct wm_energy_choice *ret_choice,
                     struct wm_energy_sum *ret_sum)
{
    const struct wm_energy_offers offers = wm_devices_offers(builder->analysis);

    wm_energy_choose(&offers, kind, ret_choice);
    if (ret_choice->source)
        sum_source(builder, kind, ret_choice->source, why, ret_sum);
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

/* Whether the meter that was watched during the run is the one chosen at the end. */
static bool is_the_meter(const struct wm_analysis *analysis,
                         const struct wm_energy_choice *cpus)
{
    const struct wm_energy_offers offers = wm_devices_offers(analysis);
    struct wm_energy_meter meter;

    wm_devices_find_meter(analysis, &offers, cpus, &meter);
    for (size_t i = 0; i < analysis->device_count; i++) {
        if (analysis->devices[i].heads != wm_energy_is_of_meter(&offers, &meter, i))
            return false;
    }
    return true;
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
        if (device->heads != device->counts)
            return false;
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
        if (device->heads)
            watts += wm_energy_modelled_watts(&device->channel->sensor);
    }
    return watts > 0 ? watts : HUGE_VAL;
}

/* The sum of the devices' mean powers, each over the time that it was measured. If the
 * energy is a lower bound, so is its mean over the whole run. */
static double mean_watts(const struct wm_report *report)
{
    const struct wm_value *time = &report->compute_time;

    if (!report->energy.is_part || !time->known || time->number <= 0)
        return report->energy.watts;
    return fmin(report->energy.watts, report->energy.energy.number / time->number);
}

static void build_power(struct wm_report_builder *builder, bool is_same)
{
    double most = modelled_most(builder->analysis);
    struct wm_report *report = builder->report;
    const struct wm_known max = wm_window_max_value(&builder->analysis->power_max);

    report->power.mean = report->energy.energy;
    if (report->power.mean.known) {
        report->power.mean.number = fmin(mean_watts(report), most);
        report->power.mean.why = report->energy.is_part ? report->energy.energy.why : NULL;
    }
    report->power.max = report->power.mean;
    if (report->power.mean.known && max.known && max.number > report->power.mean.number)
        report->power.max.number = fmin(max.number, most);
    if (report->power.max.known && report->power.max.number > report->power.mean.number)
        report->power_max_s = wm_devices_power_window_s(builder->analysis);
    if (report->power.mean.known && !is_same)
        report->power.max = wm_value_missing("the energy comes from other sensors");
}

static void build_processes(struct wm_report_builder *builder)
{
    struct wm_report *report = builder->report;
    const struct wm_result *result = &report->result;

    report->process_energies =
        calloc(result->process_count + 1, sizeof(*report->process_energies));
    if (!report->process_energies) {
        builder->failed = true;
        return;
    }
    for (size_t i = 0; i < result->process_count; i++)
        report->process_energies[i] =
            wm_report_energy_of(report, &result->processes[i].cpu_seconds);
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

/* Whether a device did not answer for a while, or was asleep. */
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

/* The lower end of a sum's range; the sum itself if it has no range. */
static double least_of(const struct wm_energy_sum *sum)
{
    return sum->low.known ? sum->low.number : sum->energy.number;
}

static double most_of(const struct wm_energy_sum *sum)
{
    return sum->high.known ? sum->high.number : sum->energy.number;
}

/* The parts that are no estimates. */
static struct wm_energy_sum measured_parts(const struct wm_report *report)
{
    const struct wm_energy_sum *const parts[] = { &report->cpu_energy, &report->dram_energy,
                                                  &report->gpu_energy };
    struct wm_energy_sum sum;

    wm_build_sum_start(&sum);
    for (size_t i = 0; i < COUNT(parts); i++) {
        if (report->cover.has[i] && parts[i]->origin != WM_ESTIMATED)
            wm_build_sum_add(&sum, parts[i]);
    }
    wm_build_sum_end(&sum);
    return sum;
}

static struct wm_energy_offer offer_at(const void *list, size_t index)
{
    const struct wm_device_energy *device = &((const struct wm_device_energy *)list)[index];

    return (struct wm_energy_offer) {
        .source = device->source,
        .sensor = device->sensor,
        .kind = device->kind,
        .origin = device->origin,
        .is_known = device->figure.energy.known && !device->figure.energy.why,
        .contains = device->contains,
    };
}

/* The devices of the report. */
static struct wm_energy_offers offers_of(const struct wm_report *report)
{
    return (struct wm_energy_offers) { report->devices, report->device_count, offer_at };
}

/* Adds up the devices of a meter, and joins their names: "BAT0 and BAT1". */
static void sum_meter(const struct wm_report *report, const struct wm_energy_meter *meter,
                      struct wm_energy_sum *sum, char *name, size_t size)
{
    const struct wm_energy_offers offers = offers_of(report);

    wm_build_sum_start(sum);
    name[0] = '\0';
    for (size_t i = 0; i < report->device_count; i++) {
        const struct wm_device_energy *device = &report->devices[i];
        if (!wm_energy_is_of_meter(&offers, meter, i))
            continue;
        struct wm_energy_sum part =
            wm_build_sum_of(&device->figure, &device->split, device->origin);
        wm_build_sum_add(sum, &part);
        wm_text_list(name, size, " and ", "%s", device->name);
    }
    wm_build_sum_end(sum);
}

/* Adds a note if the meter measured less than the sum of what it should contain. */
static void compare_meter(struct wm_report_builder *builder,
                          const struct wm_energy_meter *meter)
{
    struct wm_energy_sum whole;
    char name[64];

    if (!meter->source || !builder->report->energy.energy.known)
        return;
    sum_meter(builder->report, meter, &whole, name, sizeof(name));
    const struct wm_energy_sum *sum = &builder->report->energy;
    if (least_of(sum) <= most_of(&whole))
        return;
    wm_build_remark(
        builder,
        "the parts add up to %s J, more than the %s J that %s measured of the %s: "
        "one of them is wrong, or it does not contain all of them",
        wm_build_number(sum->energy.number).text, wm_build_number(whole.energy.number).text,
        name, wm_word(WM_WORDS_CONTAINS, (int)meter->contains));
}

/* Makes the meter's energy the total, unless the measured parts already add up to more. */
static void take_meter(struct wm_report_builder *builder,
                       const struct wm_energy_meter *meter)
{
    struct wm_report *report = builder->report;
    const struct wm_energy_sum parts = measured_parts(report);
    struct wm_energy_sum whole;
    char name[sizeof(report->cover.name)];

    if (!meter->source)
        return;
    sum_meter(builder->report, meter, &whole, name, sizeof(name));
    if (least_of(&parts) > most_of(&whole))
        return;
    const struct wm_energy_offers offers = offers_of(report);
    for (size_t i = 0; i < report->device_count; i++)
        report->devices[i].heads = wm_energy_is_of_meter(&offers, meter, i);
    report->energy = whole;
    report->cover.meter = meter->contains;
    snprintf(report->cover.name, sizeof(report->cover.name), "%s", name);
}

/* Adds a note if an estimate is the total although meters have measured more. */
static void remark_unused_meters(struct wm_report_builder *builder)
{
    const struct wm_report *report = builder->report;
    char names[128] = "";

    if (report->cover.meter != WM_CONTAINS_DEVICE || !report->energy.energy.known ||
        report->cpu_energy.origin != WM_ESTIMATED)
        return;
    for (size_t i = 0; i < report->device_count; i++) {
        const struct wm_device_energy *device = &report->devices[i];
        if (device->contains == WM_CONTAINS_PLATFORM && device->figure.low.known &&
            device->figure.low.number > most_of(&report->energy))
            wm_text_list(names, sizeof(names), " and ", "%s", device->name);
    }
    if (names[0])
        wm_build_remark(builder,
                        "the total is an estimate, and %s measured more; of several meters "
                        "none is used, as one may contain the other",
                        names);
}

static void sum_parts(struct wm_report_builder *builder, bool has_memory)
{
    struct wm_report *report = builder->report;

    wm_build_sum_start(&report->energy);
    add_known(report, &report->cpu_energy, &report->cover.has[WM_COST_CPU]);
    if (!has_memory)
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
}

/* Builds the total: the sum over CPUs, memory and GPUs, or a meter of all of them. Returns
 * whether the peak of power is of the same devices. */
static bool build_whole(struct wm_report_builder *builder,
                        const struct wm_energy_choice *cpus)
{
    const struct wm_analysis *analysis = builder->analysis;
    const struct wm_energy_offers offers = offers_of(builder->report);
    struct wm_energy_meter least, meter;

    sum_parts(builder, cpus->has_memory);
    wm_energy_find_meter(&offers, WM_CONTAINS_PLATFORM, &least);
    compare_meter(builder, &least);
    wm_devices_find_meter(analysis, &offers, cpus, &meter);
    take_meter(builder, &meter);
    remark_unused_meters(builder);
    return builder->report->cover.meter != WM_CONTAINS_DEVICE ? is_the_meter(analysis, cpus)
                                                              : is_of_the_same(builder);
}

void wm_build_energy(struct wm_report_builder *builder)
{
    struct wm_report *report = builder->report;
    struct wm_energy_choice cpus, memory;

    build_devices(builder);
    if (builder->failed)
        return;
    builder->is_energy = true;
    sum_kind(builder, WM_DEVICE_CPU, why_no_cpu(builder), &cpus, &report->cpu_energy);
    sum_kind(builder, WM_DEVICE_DRAM, "no source of memory energy is read", &memory,
             &report->dram_energy);
    bool is_same = build_whole(builder, &cpus);
    build_power(builder, is_same);
    build_processes(builder);
    remark_estimate(builder, &cpus);
    remark_baseline(builder);
    builder->is_energy = false;
}
