/* SPDX-License-Identifier: Apache-2.0 */
/* analyze.c - takes ticks in; analyze_report.c says what they come to. */
#include "analyze/analyze.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze_state.h"
#include "analyze/region/analyze_region_totals.h"

/* A region may be open since a little before the first tick. */
#define EARLY_NS INT64_C(100000000)

static const enum wm_measurement cpu_measurements[WM_CPU_PART_COUNT] = {
    [WM_CPU_PART_SYSTEM] = WM_CPU_SYSTEM_SUM,
    [WM_CPU_PART_MAIN] = WM_CPU_MAIN_SUM,
    [WM_CPU_PART_DESCENDANTS] = WM_CPU_DESCENDANTS_SUM,
    [WM_CPU_PART_COMBINED] = WM_CPU_COMBINED_SUM,
};

size_t wm_analysis_find(const struct wm_analysis *analysis, const char *source,
                        const char *label, const char *metric)
{
    for (size_t i = 0; i < analysis->count; i++) {
        const struct wm_channel *c = &analysis->channels[i];
        if (strcmp(c->source, source) == 0 && strcmp(c->label, label) == 0 &&
            strcmp(c->metric, metric) == 0)
            return i;
    }
    return WM_NO_CHANNEL;
}

static struct wm_gpu_stats *find_gpu(struct wm_analysis *analysis, const char *device)
{
    for (size_t i = 0; i < analysis->gpu_count; i++) {
        if (strcmp(analysis->gpus[i].device, device) == 0)
            return &analysis->gpus[i];
    }

    struct wm_gpu_stats *gpu = &analysis->gpus[analysis->gpu_count++];
    *gpu = (struct wm_gpu_stats) {
        .device = device,
        .energy = WM_NO_CHANNEL,
        .power = WM_NO_CHANNEL,
        .utilization = WM_NO_CHANNEL,
        .memory_used = WM_NO_CHANNEL,
        .memory_total = WM_NO_CHANNEL,
        .temperature = WM_NO_CHANNEL,
        .tree_memory = WM_NO_CHANNEL,
        .tree_utilization = WM_NO_CHANNEL,
        .share = { .idle_watts = NAN },
    };
    return gpu;
}

const char *wm_analysis_detail(const struct wm_analysis *analysis, const char *source)
{
    for (size_t i = 0; i < analysis->run->source_count; i++) {
        const struct wm_source_status *status = &analysis->run->sources[i];
        if (status->name && status->available && strcmp(status->name, source) == 0)
            return status->detail;
    }
    return NULL;
}

static void note_gpu_channel(struct wm_analysis *analysis, size_t index)
{
    static const struct {
        const char *metric;
        size_t slot;
    } metrics[] = {
        { "energy", offsetof(struct wm_gpu_stats, energy) },
        { "power", offsetof(struct wm_gpu_stats, power) },
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
        struct wm_gpu_stats *gpu = find_gpu(analysis, channel->device);
        *(size_t *)(void *)((char *)gpu + metrics[i].slot) = index;
        if (gpu->energy == index)
            wm_sensor_find(channel, wm_analysis_detail(analysis, channel->source),
                           &gpu->joules.counter_sensor);
        if (gpu->power == index)
            wm_sensor_find(channel, wm_analysis_detail(analysis, channel->source),
                           &gpu->joules.power_sensor);
    }
}

int wm_analysis_new(const struct wm_run *run, const struct wm_channel *channels,
                    size_t count, struct wm_analysis **ret_analysis, struct wm_error *err)
{
    struct wm_analysis *analysis = calloc(1, sizeof(*analysis));
    size_t room = count ? count : 1;
    int status;

    if (!analysis)
        goto no_memory;
    analysis->run = run;
    analysis->channels = channels;
    analysis->count = count;
    analysis->stats = calloc(room, sizeof(*analysis->stats));
    analysis->gpus = calloc(room, sizeof(*analysis->gpus));
    analysis->devices = calloc(room, sizeof(*analysis->devices));
    if (!analysis->stats || !analysis->gpus || !analysis->devices)
        goto no_memory;

    for (size_t i = 0; i < count; i++) {
        if (channels[i].device_kind == WM_DEVICE_GPU)
            note_gpu_channel(analysis, i);
        analysis->stats[i].is_cpu_temperature =
            channels[i].device_kind == WM_DEVICE_CPU &&
            strcmp(channels[i].metric, "temperature") == 0;
    }
    wm_devices_find(analysis);
    wm_baselines_use(analysis);

    status = wm_timepoint_builder_new(run, channels, count, &analysis->timepoints, err);
    if (status < 0) {
        wm_analysis_free(analysis);
        return status;
    }
    *ret_analysis = analysis;
    return WM_OK;

no_memory:
    wm_analysis_free(analysis);
    return wm_fail(err, WM_ENOMEM, "analysis: out of memory");
}

void wm_analysis_free(struct wm_analysis *analysis)
{
    if (!analysis)
        return;
    wm_timepoint_builder_free(analysis->timepoints);
    wm_regions_free(analysis->regions);
    free(analysis->devices);
    free(analysis->gpus);
    free(analysis->stats);
    free(analysis);
}

const struct wm_reading *wm_tick_reading(const struct wm_tick *tick, size_t channel)
{
    return channel == WM_NO_CHANNEL ? NULL : &tick->readings[channel];
}

/* What all GPUs add up to is known when each of them has said its part. */
static void add_to_sum(struct wm_reading *sum, const struct wm_reading *part)
{
    if (part && wm_stats_usable(part))
        sum->value += part->value;
    else
        sum->state = WM_READING_NONE;
}

double wm_tick_value(const struct wm_tick *tick, size_t channel)
{
    const struct wm_reading *reading = wm_tick_reading(tick, channel);

    return reading && wm_stats_usable(reading) ? reading->value : NAN;
}

/* NAN while one of them is not known, or there is nothing to have a part of. */
static double part_of(double part, double whole)
{
    if (isnan(part) || !(whole > 0))
        return NAN;
    return part < whole ? part / whole : 1;
}

/* Where the driver does not tell whose the work is, memory stands for it. */
static void share_gpu(const struct wm_analysis *analysis, struct wm_gpu_stats *gpu,
                      const struct wm_tick *tick)
{
    double seconds =
        analysis->ticks > 0 ? wm_stats_seconds(analysis->last_ns, tick->when_ns) : 0;
    double hold = part_of(wm_tick_value(tick, gpu->tree_memory),
                          wm_tick_value(tick, gpu->memory_used));
    double busy = wm_tick_value(tick, gpu->utilization);
    double tree = wm_tick_value(tick, gpu->tree_utilization);
    struct wm_work work = {
        .seconds = seconds,
        .capacity = seconds,
        .busy = seconds * (busy < tree ? tree : busy),
        .tree = seconds * (isnan(tree) ? busy * hold : tree),
        .tree_hold = hold,
    };
    struct wm_energy_result so_far;

    wm_energy_result(&gpu->joules, &so_far);
    wm_share_add(&gpu->share, so_far.told, &work);
}

/* What all that counts has come to at a tick. */
struct whole {
    double joules;
    double shortest_s; /* in which each sensor had something new a few times */
    bool is_told; /* none has made us wait for its joules, which come in one heap then */
};

static void add_to_whole(struct whole *whole, const struct wm_energy *energy, double joules)
{
    bool has_told = energy->counted || energy->covered_s > 0 || energy->powered;

    whole->joules += joules;
    whole->shortest_s =
        fmax(whole->shortest_s, WM_SENSOR_PERIODS * wm_energy_period_s(energy));
    if (has_told)
        whole->is_told &= energy->counted ? energy->present : energy->powered;
}

static struct whole whole_of(const struct wm_analysis *analysis)
{
    struct whole whole = {
        .shortest_s = (double)analysis->run->interval_ns / 1e9 / 2,
        .is_told = true,
    };

    for (size_t i = 0; i < analysis->gpu_count; i++)
        add_to_whole(&whole, &analysis->gpus[i].joules, analysis->gpus[i].share.joules_now);
    for (size_t i = 0; i < analysis->device_count; i++) {
        const struct wm_device_stats *device = &analysis->devices[i];
        if (device->counts)
            add_to_whole(&whole, &device->joules, device->share.joules_now);
    }
    return whole;
}

double wm_analysis_power_window_s(const struct wm_analysis *analysis)
{
    return whole_of(analysis).shortest_s;
}

static void add_power(struct wm_analysis *analysis, const struct wm_tick *tick)
{
    struct whole whole = whole_of(analysis);

    if (!whole.is_told)
        return;
    double seconds = wm_stats_seconds(analysis->told_ns, tick->when_ns);
    if (analysis->has_told && seconds > 0)
        wm_window_max_add(&analysis->power_max, (whole.joules - analysis->joules) / seconds,
                          seconds, whole.shortest_s);
    analysis->has_told = true;
    analysis->told_ns = tick->when_ns;
    analysis->joules = whole.joules;
}

static void add_gpus(struct wm_analysis *analysis, const struct wm_tick *tick)
{
    struct wm_reading used = { .when_ns = tick->when_ns, .state = WM_READING_OK };
    struct wm_reading utilization = used;

    for (size_t i = 0; i < analysis->gpu_count; i++) {
        struct wm_gpu_stats *gpu = &analysis->gpus[i];
        wm_energy_set_busy(&gpu->joules, wm_tick_value(tick, gpu->utilization));
        wm_energy_add(&gpu->joules, tick->when_ns, wm_tick_reading(tick, gpu->energy),
                      wm_tick_reading(tick, gpu->power));
        share_gpu(analysis, gpu, tick);
        add_to_sum(&used, wm_tick_reading(tick, gpu->memory_used));
        add_to_sum(&utilization, wm_tick_reading(tick, gpu->utilization));
    }
    if (analysis->gpu_count > 0) {
        wm_gauge_add(&analysis->gpu_memory_sum, &used);
        wm_gauge_add(&analysis->gpu_utilization_sum, &utilization);
    }
}

static void add_cpu_temperature(struct wm_analysis *analysis, const struct wm_tick *tick)
{
    struct wm_reading hottest = { .state = WM_READING_NONE };

    for (size_t i = 0; i < analysis->count; i++) {
        const struct wm_reading *reading = &tick->readings[i];
        if (!analysis->stats[i].is_cpu_temperature || !wm_stats_usable(reading))
            continue;
        if (hottest.state != WM_READING_OK || reading->value > hottest.value)
            hottest = *reading;
    }
    wm_gauge_add(&analysis->cpu_temperature, &hottest);
}

static void add_cpu(struct wm_analysis *analysis, const struct wm_tick *tick,
                    const struct wm_timepoint *point)
{
    double shortest_s = (double)analysis->run->interval_ns / 1e9 / 2;
    double seconds = wm_stats_seconds(analysis->last_ns, tick->when_ns);
    for (size_t i = 0; i < WM_CPU_PART_COUNT; i++)
        wm_window_max_add(&analysis->cpu_max[i], point->values[cpu_measurements[i]],
                          seconds, shortest_s);
}

/* Without a GPU gpu_tracker has 0 for what was not measured, and we have nothing. */
static void forget_gpus(struct wm_timepoint *point)
{
    for (int i = 0; i < WM_MEASUREMENT_COUNT; i++) {
        if (wm_measurement_is_gpu((enum wm_measurement)i))
            point->values[i] = NAN;
    }
}

/* A tick that comes a little early still ends a period. */
#define ALMOST 0.75

static void add_tree_power(struct wm_analysis *analysis,
                           const struct wm_region_totals *totals)
{
    double joules = totals->used[WM_REGION_TREE_ENERGY];
    double seconds = wm_stats_seconds(analysis->tree_ns, totals->when_ns);

    if (isnan(joules) ||
        (analysis->tree_ns != 0 &&
         (seconds <= 0 || seconds < ALMOST * totals->period_s[WM_REGION_TREE_ENERGY])))
        return;
    if (analysis->tree_ns != 0)
        wm_block_stats_add(&analysis->tree_power,
                           (joules - analysis->tree_joules) / seconds);
    analysis->tree_joules = joules;
    analysis->tree_ns = totals->when_ns;
}

static void add_totals(struct wm_analysis *analysis, const struct wm_tick *tick,
                       struct wm_timepoint *point)
{
    struct wm_region_totals totals;

    wm_region_totals_find(analysis, tick, &totals);
    add_tree_power(analysis, &totals);
    if (!analysis->regions)
        return;
    if (point && !wm_timepoint_has_gpus(analysis->timepoints))
        forget_gpus(point);
    wm_regions_tick(analysis->regions, &totals, point);
}

void wm_analysis_tick(struct wm_analysis *analysis, const struct wm_tick *tick)
{
    struct wm_timepoint point;

    assert(tick->count == analysis->count);

    for (size_t i = 0; i < analysis->count; i++) {
        struct wm_channel_stats *stats = &analysis->stats[i];
        const struct wm_reading *reading = &tick->readings[i];
        if (analysis->channels[i].kind == WM_COUNTER)
            wm_counter_add(&stats->counter, reading);
        else
            wm_gauge_add(&stats->gauge, reading);
        stats->state = reading->state;
    }
    add_gpus(analysis, tick);
    wm_devices_tick(analysis, tick);
    add_power(analysis, tick);
    add_cpu_temperature(analysis, tick);
    bool has_point = wm_timepoint_next(analysis->timepoints, tick, &point);
    if (has_point)
        add_cpu(analysis, tick, &point);
    add_totals(analysis, tick, has_point ? &point : NULL);

    if (analysis->ticks++ == 0)
        analysis->first_ns = tick->when_ns;
    analysis->last_ns = tick->when_ns;
}

static void add_silence(struct wm_silence *silence, const struct wm_gap *gap)
{
    if (silence->count++ == 0) {
        silence->from_ns = gap->from_ns;
        silence->to_ns = gap->to_ns;
        snprintf(silence->why, sizeof(silence->why), "%s", gap->why);
    }
    silence->seconds += wm_stats_seconds(gap->from_ns, gap->to_ns);
}

void wm_analysis_gap(struct wm_analysis *analysis, const struct wm_gap *gap)
{
    if (gap->channel >= analysis->count)
        return;
    struct wm_channel_stats *stats = &analysis->stats[gap->channel];
    stats->unknown_s += wm_stats_seconds(gap->from_ns, gap->to_ns);
    if (gap->why[0] == '\0')
        return;
    snprintf(stats->why, sizeof(stats->why), "%s", gap->why);
    if (gap->state == WM_READING_STALE)
        add_silence(&stats->silence, gap);
}

int wm_analysis_regions_start(struct wm_analysis *analysis, struct wm_error *err)
{
    assert(analysis->ticks == 0 && !analysis->regions);

    return wm_regions_new(analysis->run->interval_ns, &analysis->regions, err);
}

int wm_analysis_edge(struct wm_analysis *analysis, const struct wm_region_edge *edge,
                     uint32_t process, const struct wm_region_paths *paths,
                     struct wm_error *err)
{
    struct wm_region_edge held = *edge;

    if (analysis->ticks > 0 && held.start_ns < analysis->first_ns)
        held.start_ns = analysis->first_ns;
    if (held.when_ns < held.start_ns)
        held.when_ns = held.start_ns;
    if (wm_regions_edge(analysis->regions, &held, process, paths) < 0)
        return wm_fail(err, WM_ENOMEM, "regions: out of memory");
    if (held.kind == WM_REGION_OPENS)
        analysis->early_regions += held.start_ns - edge->start_ns > EARLY_NS;
    return WM_OK;
}

void wm_analysis_regions_end(struct wm_analysis *analysis, int64_t end_ns)
{
    wm_regions_end(analysis->regions, end_ns);
}

bool wm_analysis_regions_are_behind(const struct wm_analysis *analysis)
{
    return wm_regions_is_behind(analysis->regions);
}

void wm_analysis_regions_complete(struct wm_analysis *analysis, int64_t when_ns)
{
    wm_regions_complete(analysis->regions, when_ns);
}
