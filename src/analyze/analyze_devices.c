/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_devices.c - joules of GPUs, CPU packages, memory and platform, and whose they
 * were; and what they all add up to at a tick. */
#include "analyze/analyze_devices.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* The kernel moves the counter of CPU time in steps of 10 ms. Over so many of them
 * a step is 2 %. */
#define SHARE_WINDOW_S 0.5

/* Over so many of them it says how busy the CPUs are. */
#define BUSY_WINDOW_S 0.1

/* The share of the CPUs' time is known over a while only. */
static struct wm_device_stats new_device(const struct wm_channel *channel,
                                         double shortest_s)
{
    return (struct wm_device_stats) {
        .channel = channel,
        .energy = WM_NO_CHANNEL,
        .power = WM_NO_CHANNEL,
        .share.shortest_s = shortest_s,
    };
}

/* The channel of joules or watts. */
static void note_energy(struct wm_device_stats *device, const struct wm_analysis *analysis,
                        size_t index)
{
    const struct wm_channel *channel = &analysis->channels[index];

    if (strcmp(channel->metric, "energy") == 0) {
        device->energy = index;
        device->joules.counter_sensor = wm_sensor_of(channel);
        device->joules.has_driver = channel->device_kind == WM_DEVICE_GPU;
    } else if (strcmp(channel->metric, "power") == 0) {
        device->power = index;
        device->joules.power_sensor = wm_sensor_of(channel);
    }
}

static struct wm_gpu_stats *find_gpu(struct wm_analysis *analysis,
                                     const struct wm_channel *channel)
{
    for (size_t i = 0; i < analysis->gpu_count; i++) {
        if (strcmp(analysis->gpus[i].device.channel->device, channel->device) == 0)
            return &analysis->gpus[i];
    }

    struct wm_gpu_stats *gpu = &analysis->gpus[analysis->gpu_count++];
    *gpu = (struct wm_gpu_stats) {
        .device = new_device(channel, 0),
        .utilization = WM_NO_CHANNEL,
        .memory_used = WM_NO_CHANNEL,
        .memory_total = WM_NO_CHANNEL,
        .temperature = WM_NO_CHANNEL,
        .tree_memory = WM_NO_CHANNEL,
        .tree_utilization = WM_NO_CHANNEL,
    };
    return gpu;
}

/* Whether a GPU's channel is of its whole module: then it is a device of its own. */
static bool is_of_module(const struct wm_channel *channel)
{
    return channel->device_kind == WM_DEVICE_GPU &&
           channel->sensor.contains >= WM_CONTAINS_MODULE;
}

/* Whether it is the power of a second die, which the first one measures. The energy channel
 * stays, to say why there is none. */
static bool is_power_elsewhere(const struct wm_channel *channel)
{
    return channel->sensor.contains == WM_CONTAINS_PACKAGE &&
           strcmp(channel->metric, "power") == 0;
}

static void note_gpu_channel(struct wm_analysis *analysis, size_t index)
{
    static const struct {
        const char *metric;
        size_t slot;
    } metrics[] = {
        { "energy", offsetof(struct wm_gpu_stats, device.energy) },
        { "power", offsetof(struct wm_gpu_stats, device.power) },
        { "utilization", offsetof(struct wm_gpu_stats, utilization) },
        { "memory_used", offsetof(struct wm_gpu_stats, memory_used) },
        { "memory_total", offsetof(struct wm_gpu_stats, memory_total) },
        { "temperature", offsetof(struct wm_gpu_stats, temperature) },
        { "tree_memory_used", offsetof(struct wm_gpu_stats, tree_memory) },
        { "tree_utilization", offsetof(struct wm_gpu_stats, tree_utilization) },
    };
    const struct wm_channel *channel = &analysis->channels[index];

    for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++) {
        if (strcmp(channel->metric, metrics[i].metric) != 0)
            continue;
        struct wm_gpu_stats *gpu = find_gpu(analysis, channel);
        if (channel->sensor.contains > gpu->device.within)
            gpu->device.within = channel->sensor.contains;
        if (is_of_module(channel) || is_power_elsewhere(channel))
            continue;
        *(size_t *)(void *)((char *)gpu + metrics[i].slot) = index;
        note_energy(&gpu->device, analysis, index);
    }
}

/* What is known of the tree on it is not the GPU's own source's. */
static void choose_channel(const struct wm_analysis *analysis, struct wm_gpu_stats *gpu)
{
    const size_t candidates[] = {
        gpu->device.energy, gpu->device.power, gpu->utilization,
        gpu->memory_used,   gpu->memory_total, gpu->temperature,
    };

    for (size_t i = sizeof(candidates) / sizeof(candidates[0]); i-- > 0;) {
        if (candidates[i] != WM_NO_CHANNEL)
            gpu->device.channel = &analysis->channels[candidates[i]];
    }
}

/* Whether a channel is of a device that is no GPU and has joules. */
static bool is_device_channel(const struct wm_channel *channel)
{
    switch (channel->device_kind) {
    case WM_DEVICE_GPU:
        return is_of_module(channel) && wm_channel_is_energy(channel);
    case WM_DEVICE_CPU:
    case WM_DEVICE_CPU_PART:
    case WM_DEVICE_DRAM:
    case WM_DEVICE_PLATFORM:
    case WM_DEVICE_OTHER:
        return wm_channel_is_energy(channel);
    default:
        return false;
    }
}

static struct wm_device_stats *find_device(struct wm_analysis *analysis,
                                           const struct wm_channel *channel)
{
    for (size_t i = 0; i < analysis->device_count; i++) {
        struct wm_device_stats *device = &analysis->devices[i];
        if (strcmp(device->channel->source, channel->source) == 0 &&
            strcmp(device->channel->device, channel->device) == 0 &&
            device->channel->sensor.contains == channel->sensor.contains)
            return device;
    }

    struct wm_device_stats *device = &analysis->devices[analysis->device_count++];
    *device = new_device(channel, SHARE_WINDOW_S);
    return device;
}

static struct wm_energy_offer offer_of(const struct wm_device_stats *device, bool is_known)
{
    struct wm_energy_offer offer = wm_energy_offer_of(device->channel);

    offer.is_known = is_known;
    return offer;
}

/* The devices at the first tick; before it there is none. */
struct beginning {
    const struct wm_device_stats *devices;
    const struct wm_tick *tick;
};

/* A reading that is denied or unsupported at the first tick stays so. */
static bool is_open(const struct wm_reading *reading)
{
    return reading && reading->state != WM_READING_DENIED &&
           reading->state != WM_READING_UNSUPPORTED;
}

static struct wm_energy_offer offer_before(const void *list, size_t index)
{
    const struct beginning *beginning = list;
    const struct wm_device_stats *device = &beginning->devices[index];
    const struct wm_tick *tick = beginning->tick;

    return offer_of(device, !tick || is_open(wm_tick_reading(tick, device->energy)) ||
                                is_open(wm_tick_reading(tick, device->power)));
}

/* A meter that misses a part of the time could be less than the sum of its parts. */
static struct wm_energy_offer offer_now(const void *list, size_t index)
{
    const struct wm_device_stats *devices = list;
    struct wm_energy_result joules;

    wm_energy_result(&devices[index].joules, &joules);
    bool is_whole = devices[index].channel->sensor.contains < WM_CONTAINS_MODULE ||
                    joules.missing_s <= WM_MOST_MISSING * joules.span_s;
    return offer_of(&devices[index], is_whole && wm_energy_is_known(&joules));
}

struct wm_energy_offers wm_devices_offers(const struct wm_analysis *analysis)
{
    return (struct wm_energy_offers) { analysis->devices, analysis->device_count,
                                       offer_now };
}

bool wm_device_is(const struct wm_device_stats *device, enum wm_device_kind kind,
                  const char *source)
{
    return source && device->channel->device_kind == kind &&
           strcmp(device->channel->source, source) == 0;
}

/* Whether a GPU tells only of the module that it is on. */
static bool lacks_gpu(const struct wm_analysis *analysis)
{
    for (size_t i = 0; i < analysis->gpu_count; i++) {
        const struct wm_device_stats *gpu = &analysis->gpus[i].device;
        if (gpu->within >= WM_CONTAINS_MODULE && gpu->energy == WM_NO_CHANNEL &&
            gpu->power == WM_NO_CHANNEL)
            return true;
    }
    return false;
}

void wm_devices_find_meter(const struct wm_analysis *analysis,
                           const struct wm_energy_offers *offers,
                           const struct wm_energy_choice *cpus,
                           struct wm_energy_meter *ret_meter)
{
    bool lacks_cpus = !cpus->is_known || cpus->is_estimated;

    *ret_meter = (struct wm_energy_meter) { 0 };
    if (lacks_cpus || lacks_gpu(analysis))
        wm_energy_find_meter(offers, lacks_cpus ? WM_CONTAINS_PLATFORM : WM_CONTAINS_MODULE,
                             ret_meter);
}

bool wm_devices_follow_cpus(const struct wm_analysis *analysis,
                            const struct wm_channel *channel)
{
    return channel->device_kind == WM_DEVICE_CPU ||
           (channel->sensor.contains >= WM_CONTAINS_MODULE && analysis->gpu_count == 0);
}

/* Chooses the devices that count and those that head the total, by the channels and by the
 * first tick, if there is one. */
static void choose(struct wm_analysis *analysis, const struct wm_tick *tick)
{
    const struct beginning beginning = { analysis->devices, tick };
    const struct wm_energy_offers offers = { &beginning, analysis->device_count,
                                             offer_before };
    struct wm_energy_choice cpus, memory;
    struct wm_energy_meter meter;

    wm_energy_choose(&offers, WM_DEVICE_CPU, &cpus);
    wm_energy_choose(&offers, WM_DEVICE_DRAM, &memory);
    wm_devices_find_meter(analysis, &offers, &cpus, &meter);
    for (size_t i = 0; i < analysis->device_count; i++) {
        struct wm_device_stats *device = &analysis->devices[i];
        device->counts = wm_device_is(device, WM_DEVICE_CPU, cpus.source) ||
                         wm_device_is(device, WM_DEVICE_DRAM, memory.source);
        device->heads =
            meter.source ? wm_energy_is_of_meter(&offers, &meter, i) : device->counts;
    }
    for (size_t i = 0; i < analysis->gpu_count; i++) {
        struct wm_device_stats *gpu = &analysis->gpus[i].device;
        gpu->counts = gpu->within != WM_CONTAINS_PACKAGE;
        gpu->heads = gpu->counts && !meter.source;
    }
}

static void take_baseline(const struct wm_run *run, struct wm_device_stats *device)
{
    for (size_t i = 0; i < run->baseline_count; i++) {
        const struct wm_baseline *baseline = &run->baselines[i];
        if (!baseline->source || !baseline->device || baseline->watts < 0 ||
            strcmp(baseline->source, device->channel->source) != 0 ||
            strcmp(baseline->device, device->channel->device) != 0)
            continue;
        device->is_busy_before = baseline->is_refused;
        device->share.idle_watts =
            (struct wm_known) { !baseline->is_refused, baseline->watts };
        device->share.idle_off = fmax(baseline->uncertainty, 0);
        return;
    }
}

static void finish_gpus(struct wm_analysis *analysis)
{
    for (size_t i = 0; i < analysis->gpu_count; i++) {
        struct wm_gpu_stats *gpu = &analysis->gpus[i];
        choose_channel(analysis, gpu);
        take_baseline(analysis->run, &gpu->device);
    }
}

static void finish_devices(struct wm_analysis *analysis)
{
    size_t host = analysis->cpu_work.host.channel;

    for (size_t i = 0; i < analysis->device_count; i++) {
        struct wm_device_stats *device = &analysis->devices[i];
        take_baseline(analysis->run, device);
        if (host != WM_NO_CHANNEL && wm_devices_follow_cpus(analysis, device->channel))
            device->share.busy_step = (double)analysis->channels[host].period_ns / 1e9;
    }
}

void wm_devices_find(struct wm_analysis *analysis)
{
    struct wm_cpu_work *work = &analysis->cpu_work;

    for (size_t i = 0; i < analysis->count; i++) {
        const struct wm_channel *channel = &analysis->channels[i];
        if (channel->device_kind == WM_DEVICE_GPU)
            note_gpu_channel(analysis, i);
        if (!is_device_channel(channel))
            continue;
        note_energy(find_device(analysis, channel), analysis, i);
    }
    work->host.channel = wm_analysis_find(analysis, "host", "host", "cpu_time");
    work->tree.channel = wm_analysis_find(analysis, "tracker", "tree", "cpu_time");
    work->memory_used = wm_analysis_find(analysis, "host", "host", "memory_used");
    work->tree_memory = wm_analysis_find(analysis, "tree", "tree", "memory_total");
    finish_devices(analysis);
    finish_gpus(analysis);
    choose(analysis, NULL);
}

/* How far a counter has come since the last tick. That is not known where one of the two
 * did not report, as joules may be divided at any of them. */
static struct wm_known advance(struct wm_work_counter *counter, const struct wm_tick *tick)
{
    const struct wm_known now = wm_tick_value(tick, counter->channel);
    struct wm_stride *stride = &counter->stride;
    double step, seconds;

    if (now.known && wm_stride_next(stride, tick->when_ns, now.number, &step, &seconds))
        return (struct wm_known) { true, fmax(step, 0) };
    stride->is_told = now.known;
    return (struct wm_known) { 0 };
}

/* How busy the CPUs were of late; not known before that, nor while they do not report. */
static void note_busy(struct wm_cpu_work *cpu, const struct wm_work *work, bool is_told)
{
    if (is_told) {
        cpu->busy += work->busy;
        cpu->capacity += work->capacity;
        cpu->seconds += work->seconds;
    } else {
        cpu->ratio.known = false;
        cpu->busy = cpu->capacity = cpu->seconds = 0;
    }
    if (cpu->seconds >= BUSY_WINDOW_S && cpu->capacity > 0) {
        cpu->ratio = (struct wm_known) { true, cpu->busy / cpu->capacity };
        cpu->busy = cpu->capacity = cpu->seconds = 0;
    }
}

static struct wm_work cpu_work(struct wm_analysis *analysis, const struct wm_tick *tick,
                               double seconds)
{
    struct wm_cpu_work *cpu = &analysis->cpu_work;
    const struct wm_known host = advance(&cpu->host, tick);
    const struct wm_known tree = advance(&cpu->tree, tick);
    const struct wm_work work = {
        .seconds = seconds,
        .is_known = host.known && tree.known,
        .capacity = seconds * analysis->run->core_count,
        .busy = host.number,
        .tree = tree.number,
    };

    note_busy(cpu, &work, host.known);
    return work;
}

/* All memory costs the same, whoever has it; what nobody uses counts for none. */
static struct wm_work memory_work(const struct wm_analysis *analysis,
                                  const struct wm_tick *tick, double seconds)
{
    const struct wm_known used = wm_tick_value(tick, analysis->cpu_work.memory_used);
    const struct wm_known tree = wm_tick_value(tick, analysis->cpu_work.tree_memory);

    return (struct wm_work) {
        .seconds = seconds,
        .is_known = used.known && tree.known,
        .capacity = seconds * used.number,
        .busy = seconds * used.number,
        .tree = seconds * tree.number,
    };
}

static void add_devices(struct wm_analysis *analysis, const struct wm_tick *tick)
{
    double seconds =
        analysis->ticks > 0 ? wm_stats_seconds(analysis->last_ns, tick->when_ns) : 0;

    if (analysis->device_count == 0)
        return;
    struct wm_work cpu = cpu_work(analysis, tick, seconds);
    struct wm_work memory = memory_work(analysis, tick, seconds);
    for (size_t i = 0; i < analysis->device_count; i++) {
        struct wm_device_stats *device = &analysis->devices[i];
        if (device->joules.power_sensor.is_sample &&
            device->channel->device_kind == WM_DEVICE_CPU)
            wm_energy_set_busy(&device->joules, analysis->cpu_work.ratio);
        wm_energy_add(&device->joules, tick->when_ns, wm_tick_reading(tick, device->energy),
                      wm_tick_reading(tick, device->power));
        bool is_memory = device->channel->device_kind == WM_DEVICE_DRAM;
        if (!is_memory && !wm_devices_follow_cpus(analysis, device->channel)) {
            device->share.joules_now = device->joules.told;
            continue;
        }
        wm_share_add(&device->share, device->joules.told, is_memory ? &memory : &cpu);
    }
}

/* What all GPUs add up to is known when each of them has said its part. */
static void add_to_sum(struct wm_reading *sum, const struct wm_reading *part)
{
    if (part && wm_stats_usable(part))
        sum->value += part->value;
    else
        sum->state = WM_READING_NONE;
}

/* Not known where one of them is not, or there is nothing to have a part of. */
static struct wm_known part_of(struct wm_known part, struct wm_known whole)
{
    return (struct wm_known) {
        .known = part.known && whole.known && whole.number > 0,
        .number = part.number < whole.number ? part.number / whole.number : 1,
    };
}

/* Where the driver does not report whose the work is, memory stands for it. */
static void share_gpu(const struct wm_analysis *analysis, struct wm_gpu_stats *gpu,
                      const struct wm_tick *tick)
{
    double seconds =
        analysis->ticks > 0 ? wm_stats_seconds(analysis->last_ns, tick->when_ns) : 0;
    const struct wm_known hold = part_of(wm_tick_value(tick, gpu->tree_memory),
                                         wm_tick_value(tick, gpu->memory_used));
    const struct wm_known busy = wm_tick_value(tick, gpu->utilization);
    const struct wm_known tree = wm_tick_value(tick, gpu->tree_utilization);
    bool is_more = tree.known && busy.number < tree.number;
    const struct wm_work work = {
        .seconds = seconds,
        .is_known = busy.known && (tree.known || hold.known),
        .capacity = seconds,
        .busy = seconds * (is_more ? tree.number : busy.number),
        .tree = seconds * (tree.known ? tree.number : busy.number * hold.number),
        .tree_hold = hold,
    };

    wm_share_add(&gpu->device.share, gpu->device.joules.told, &work);
}

static void add_gpus(struct wm_analysis *analysis, const struct wm_tick *tick)
{
    struct wm_reading used = { .when_ns = tick->when_ns, .state = WM_READING_OK };
    struct wm_reading utilization = used;

    for (size_t i = 0; i < analysis->gpu_count; i++) {
        struct wm_gpu_stats *gpu = &analysis->gpus[i];
        struct wm_device_stats *device = &gpu->device;
        wm_energy_set_busy(&device->joules, wm_tick_value(tick, gpu->utilization));
        wm_energy_add(&device->joules, tick->when_ns, wm_tick_reading(tick, device->energy),
                      wm_tick_reading(tick, device->power));
        share_gpu(analysis, gpu, tick);
        add_to_sum(&used, wm_tick_reading(tick, gpu->memory_used));
        add_to_sum(&utilization, wm_tick_reading(tick, gpu->utilization));
    }
    if (analysis->gpu_count > 0) {
        wm_gauge_add(&analysis->gpu_memory_sum, &used);
        wm_gauge_add(&analysis->gpu_utilization_sum, &utilization);
    }
}

/* What all that counts has come to at a tick. */
struct whole {
    double joules;     /* with what the sensors have not shown yet */
    double shortest_s; /* of a window for the highest power */
    bool is_told; /* none has made us wait for its joules, which come in one heap then */
    bool is_late; /* one does */
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
        if (!device->heads)
            continue;
        whole.joules += energy->told + energy->ahead;
        whole.shortest_s =
            fmax(whole.shortest_s, WM_PEAK_PERIODS * wm_energy_period_s(energy));
        whole.is_late |= wm_energy_is_late(energy);
        if (has_told)
            whole.is_told &= energy->counted ? energy->present : energy->powered;
    }
    return whole;
}

double wm_devices_power_window_s(const struct wm_analysis *analysis)
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
                          whole.is_late ? INFINITY : whole.shortest_s);
}

/* A sum over devices, each of which has to know its part. */
struct sum {
    size_t devices;
    bool is_told;
    double joules, tree, period_s, tree_period_s;
};

/* A counter that has not moved yet reports nothing: its first step is of the time before,
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
    if (!share.idle_watts.known) {
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

static void add_energy(const struct wm_analysis *analysis, enum wm_region_resource resource,
                       enum wm_device_kind kind, struct wm_region_totals *totals)
{
    struct sum sum = sum_devices(analysis, kind);
    double *tree_period_s = &totals->period_s[WM_REGION_TREE_ENERGY];

    if (sum.devices == 0)
        return;
    totals->measured |= WM_REGION_BIT(resource) | WM_REGION_BIT(WM_REGION_TREE_ENERGY);
    totals->period_s[resource] = sum.period_s;
    *tree_period_s = fmax(*tree_period_s, sum.tree_period_s);
    if (!sum.is_told)
        return;
    totals->known |= WM_REGION_BIT(resource);
    totals->used[resource] = sum.joules;
    totals->used[WM_REGION_TREE_ENERGY] += sum.tree;
}

/* What the tree used of them all is known while all is known that has ever been. */
static void find_totals(struct wm_analysis *analysis, const struct wm_tick *tick,
                        struct wm_region_totals *ret_totals)
{
    const struct wm_known cpu_time = wm_tick_value(tick, analysis->cpu_work.tree.channel);
    const unsigned cpu_bit = WM_REGION_BIT(WM_REGION_CPU_TIME);
    struct wm_region_totals totals = { .when_ns = tick->when_ns, .measured = cpu_bit };

    add_energy(analysis, WM_REGION_CPU_ENERGY, WM_DEVICE_CPU, &totals);
    add_energy(analysis, WM_REGION_DRAM_ENERGY, WM_DEVICE_DRAM, &totals);
    add_energy(analysis, WM_REGION_GPU_ENERGY, WM_DEVICE_GPU, &totals);
    analysis->energies_told |= totals.known;
    if (totals.used[WM_REGION_TREE_ENERGY] > 0 && totals.known == analysis->energies_told)
        totals.known |= WM_REGION_BIT(WM_REGION_TREE_ENERGY);
    totals.busy_s = wm_tick_value(tick, analysis->cpu_work.host.channel);
    totals.used[WM_REGION_CPU_TIME] = cpu_time.number;
    totals.known |= cpu_time.known ? cpu_bit : 0;
    *ret_totals = totals;
}

void wm_devices_tick(struct wm_analysis *analysis, const struct wm_tick *tick,
                     struct wm_region_totals *ret_totals)
{
    if (analysis->ticks == 0)
        choose(analysis, tick);
    add_gpus(analysis, tick);
    add_devices(analysis, tick);
    add_power(analysis, tick);
    find_totals(analysis, tick, ret_totals);
}
