/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_meters.c - joules of CPU packages, memory and platform, and whose they were. */
#include "analyze/analyze_meters.h"

#include <math.h>
#include <string.h>

#include "analyze/analyze_state.h"

/* The kernel moves the counter of CPU time in steps of 10 ms. Over so many of them
 * a step is 2 %. */
#define SHARE_WINDOW_S 0.5

bool wm_meter_may_count(const struct wm_analysis *analysis, const char *source,
                        enum wm_device_kind kind)
{
    if (kind != WM_DEVICE_DRAM || strcmp(source, "estimate") != 0)
        return true;
    for (size_t i = 0; i < analysis->meter_count; i++) {
        const struct wm_channel *channel = analysis->meters[i].channel;
        if (channel->device_kind == WM_DEVICE_CPU && channel->origin != WM_ESTIMATED)
            return false;
    }
    return true;
}

bool wm_is_meter_channel(const struct wm_channel *channel)
{
    switch (channel->device_kind) {
    case WM_DEVICE_CPU:
    case WM_DEVICE_CPU_PART:
    case WM_DEVICE_DRAM:
    case WM_DEVICE_PLATFORM:
    case WM_DEVICE_OTHER:
        return strcmp(channel->metric, "energy") == 0 ||
               strcmp(channel->metric, "power") == 0;
    default:
        return false;
    }
}

static struct wm_meter_stats *find_meter(struct wm_analysis *analysis,
                                         const struct wm_channel *channel)
{
    for (size_t i = 0; i < analysis->meter_count; i++) {
        struct wm_meter_stats *meter = &analysis->meters[i];
        if (strcmp(meter->channel->source, channel->source) == 0 &&
            strcmp(meter->channel->device, channel->device) == 0)
            return meter;
    }

    struct wm_meter_stats *meter = &analysis->meters[analysis->meter_count++];
    *meter = (struct wm_meter_stats) {
        .channel = channel,
        .energy = WM_NO_CHANNEL,
        .power = WM_NO_CHANNEL,
        .share = { .shortest_s = SHARE_WINDOW_S, .idle_watts = NAN },
    };
    return meter;
}

/* Which devices of a kind count. */
static void choose(struct wm_analysis *analysis, enum wm_device_kind kind)
{
    const char *source;
    bool found = false;

    for (size_t k = 0; !found && (source = wm_energy_source(k)) != NULL; k++) {
        if (!wm_meter_may_count(analysis, source, kind))
            continue;
        for (size_t i = 0; i < analysis->meter_count; i++) {
            struct wm_meter_stats *meter = &analysis->meters[i];
            meter->counts |= meter->channel->device_kind == kind &&
                             strcmp(meter->channel->source, source) == 0;
            found |= meter->counts && meter->channel->device_kind == kind;
        }
    }
}

void wm_meters_find(struct wm_analysis *analysis)
{
    struct wm_cpu_work *work = &analysis->cpu_work;

    for (size_t i = 0; i < analysis->count; i++) {
        const struct wm_channel *channel = &analysis->channels[i];
        if (!wm_is_meter_channel(channel))
            continue;
        struct wm_meter_stats *meter = find_meter(analysis, channel);
        if (strcmp(channel->metric, "energy") == 0) {
            meter->energy = i;
            wm_sensor_find(channel, NULL, &meter->joules.counter_sensor);
        } else {
            meter->power = i;
            wm_sensor_find(channel, NULL, &meter->joules.power_sensor);
        }
    }
    choose(analysis, WM_DEVICE_CPU);
    choose(analysis, WM_DEVICE_DRAM);
    work->host.channel = wm_analysis_find(analysis, "host", "host", "cpu_time");
    work->tree.channel = wm_analysis_find(analysis, "tracker", "tree", "cpu_time");
    work->memory_used = wm_analysis_find(analysis, "host", "host", "memory_used");
    work->tree_memory = wm_analysis_find(analysis, "tree", "tree", "memory_total");
}

/* How far a counter has come since the last tick; NAN where one of the two did not
 * tell, as joules may be divided at any of them. */
static double advance(struct wm_work_counter *counter, const struct wm_tick *tick)
{
    double step = NAN;

    if (counter->channel == WM_NO_CHANNEL)
        return NAN;
    const struct wm_reading *reading = &tick->readings[counter->channel];
    bool was_known = counter->known;
    counter->known = wm_stats_usable(reading);
    if (!counter->known)
        return NAN;
    if (was_known)
        step = fmax(reading->value - counter->value, 0);
    counter->value = reading->value;
    return step;
}

static struct wm_work cpu_work(struct wm_analysis *analysis, const struct wm_tick *tick,
                               double seconds)
{
    return (struct wm_work) {
        .seconds = seconds,
        .capacity = seconds * analysis->run->core_count,
        .busy = advance(&analysis->cpu_work.host, tick),
        .tree = advance(&analysis->cpu_work.tree, tick),
        .tree_hold = NAN,
    };
}

/* All memory costs the same, whoever has it; what nobody uses counts for none. */
static struct wm_work memory_work(const struct wm_analysis *analysis,
                                  const struct wm_tick *tick, double seconds)
{
    double used = wm_tick_value(tick, analysis->cpu_work.memory_used);

    return (struct wm_work) {
        .seconds = seconds,
        .capacity = seconds * used,
        .busy = seconds * used,
        .tree = seconds * wm_tick_value(tick, analysis->cpu_work.tree_memory),
        .tree_hold = NAN,
    };
}

void wm_meters_tick(struct wm_analysis *analysis, const struct wm_tick *tick)
{
    double seconds =
        analysis->ticks > 0 ? wm_stats_seconds(analysis->last_ns, tick->when_ns) : 0;

    if (analysis->meter_count == 0)
        return;
    struct wm_work cpu = cpu_work(analysis, tick, seconds);
    struct wm_work memory = memory_work(analysis, tick, seconds);
    for (size_t i = 0; i < analysis->meter_count; i++) {
        struct wm_meter_stats *meter = &analysis->meters[i];
        struct wm_energy_result so_far;
        wm_energy_add(&meter->joules, tick->when_ns, wm_tick_reading(tick, meter->energy),
                      wm_tick_reading(tick, meter->power));
        bool is_memory = meter->channel->device_kind == WM_DEVICE_DRAM;
        if (!is_memory && meter->channel->device_kind != WM_DEVICE_CPU)
            continue;
        wm_energy_result(&meter->joules, &so_far);
        wm_share_add(&meter->share, so_far.told, is_memory ? &memory : &cpu);
    }
}
