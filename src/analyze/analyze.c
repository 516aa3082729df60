/* SPDX-License-Identifier: Apache-2.0 */
/* analyze.c - takes ticks in, and says what they come to. */
#include "analyze/analyze.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze_build.h"
#include "analyze/analyze_devices.h"
#include "analyze/energy/analyze_uncertainty.h"

static const enum wm_measurement cpu_measurements[WM_CPU_PART_COUNT] = {
    [WM_CPU_PART_SYSTEM] = WM_CPU_SYSTEM_SUM,
    [WM_CPU_PART_MAIN] = WM_CPU_MAIN_SUM,
    [WM_CPU_PART_DESCENDANTS] = WM_CPU_DESCENDANTS_SUM,
    [WM_CPU_PART_COMBINED] = WM_CPU_COMBINED_SUM,
};

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
        analysis->stats[i].is_cpu_temperature =
            channels[i].device_kind == WM_DEVICE_CPU &&
            strcmp(channels[i].metric, "temperature") == 0;
    }
    wm_devices_find(analysis);

    status = wm_timepoint_builder_new(run, channels, count, &analysis->timepoints, err);
    if (status < 0) {
        wm_analysis_free(analysis);
        return status;
    }
    *ret_analysis = analysis;
    return WM_OK;

no_memory:
    wm_analysis_free(analysis);
    return wm_fail_memory(err, "analysis");
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

/* When a counter of CPU time was read for this tick, and how long after its last reading. A
 * machine that holds up the tracker may have these far off the tick. */
static double seconds_counted(const struct wm_tick *tick, size_t channel, int64_t *last_ns)
{
    const struct wm_reading *reading = wm_tick_reading(tick, channel);
    int64_t before_ns = *last_ns;

    if (!reading || !wm_stats_usable(reading))
        return 0;
    *last_ns = reading->when_ns;
    return wm_stats_seconds(before_ns, reading->when_ns);
}

static void add_cpu(struct wm_analysis *analysis, const struct wm_tick *tick,
                    const struct wm_timepoint *point)
{
    const struct wm_cpu_work *cpu = &analysis->cpu_work;
    double shortest_s = (double)analysis->run->interval_ns / 1e9 / 2;
    double host_s = seconds_counted(tick, cpu->host.channel, &analysis->host_read_ns);
    double tree_s = seconds_counted(tick, cpu->tree.channel, &analysis->tree_read_ns);

    for (size_t i = 0; point && i < WM_CPU_PART_COUNT; i++)
        if (wm_timepoint_value(point, cpu_measurements[i]).known)
            wm_window_max_add(&analysis->cpu_max[i], point->values[cpu_measurements[i]],
                              i == WM_CPU_PART_SYSTEM ? host_s : tree_s, shortest_s);
}

/* A tick in which nothing is known is a pause between two segments. */
static void add_segment(struct wm_analysis *analysis, const struct wm_tick *tick)
{
    bool is_active = !wm_tick_is_pause(tick);

    if (is_active && analysis->in_segment)
        analysis->active_s += wm_stats_seconds(analysis->last_ns, tick->when_ns);
    analysis->segments += is_active && !analysis->in_segment;
    analysis->in_segment = is_active;
}

/* Power beyond all limits of its device is no reading. */
static void add_gauge(const struct wm_channel *channel, const struct wm_reading *reading,
                      struct wm_channel_stats *stats)
{
    if (channel->sensor.range > 0 && reading->state == WM_READING_OK &&
        reading->value > wm_energy_impossible_watts(&channel->sensor))
        snprintf(stats->why, sizeof(stats->why),
                 "it reported more than the device can draw");
    else
        wm_gauge_add(&stats->gauge, reading);
}

void wm_analysis_tick(struct wm_analysis *analysis, const struct wm_tick *tick)
{
    struct wm_timepoint *point = NULL;
    struct wm_region_totals totals;

    assert(tick->count == analysis->count);

    for (size_t i = 0; i < analysis->count; i++) {
        struct wm_channel_stats *stats = &analysis->stats[i];
        const struct wm_reading *reading = &tick->readings[i];
        if (analysis->channels[i].kind == WM_COUNTER)
            wm_counter_add(&stats->counter, reading);
        else
            add_gauge(&analysis->channels[i], reading, stats);
        stats->state = reading->state;
    }
    wm_devices_tick(analysis, tick, &totals);
    add_cpu_temperature(analysis, tick);
    analysis->has_point = wm_timepoint_next(analysis->timepoints, tick, &analysis->point);
    if (analysis->has_point)
        point = &analysis->point;
    add_cpu(analysis, tick, point);
    if (analysis->ticks == 0)
        wm_timepoint_capacities(analysis->timepoints, tick, &analysis->ram_capacity,
                                &analysis->gpu_ram_capacity);
    if (analysis->regions && analysis->ticks == 0)
        wm_regions_begin(analysis->regions, tick->when_ns);
    if (analysis->regions)
        wm_regions_tick(analysis->regions, &totals, point);

    add_segment(analysis, tick);
    if (analysis->ticks++ == 0)
        analysis->first_ns = tick->when_ns;
    analysis->last_ns = tick->when_ns;
}

static void add_silence(struct wm_silence *silence, const struct wm_gap *gap)
{
    if (!silence->why[0])
        snprintf(silence->why, sizeof(silence->why), "%s", gap->why);
    silence->seconds += wm_stats_seconds(gap->from_ns, gap->to_ns);
}

void wm_analysis_gap(struct wm_analysis *analysis, const struct wm_gap *gap)
{
    if (gap->channel >= analysis->count)
        return;
    struct wm_channel_stats *stats = &analysis->stats[gap->channel];
    stats->unknown_s += wm_stats_seconds(gap->from_ns, gap->to_ns);
    stats->jumps += gap->state == WM_READING_JUMPED;
    if (gap->why[0] == '\0')
        return;
    snprintf(stats->why, sizeof(stats->why), "%s", gap->why);
    if (gap->state == WM_READING_STALE)
        add_silence(&stats->silence, gap);
}

int wm_analysis_regions_start(struct wm_analysis *analysis, struct wm_regions **ret_regions,
                              struct wm_error *err)
{
    assert(analysis->ticks == 0 && !analysis->regions);

    int status = wm_regions_new(analysis->run->interval_ns, WM_REGIONS_MOST,
                                &analysis->regions, err);
    *ret_regions = analysis->regions;
    return status;
}

int wm_analysis_report(const struct wm_analysis *analysis, const struct wm_result *result,
                       struct wm_report **ret_report, struct wm_error *err)
{
    struct wm_report *report = calloc(1, sizeof(*report));
    struct wm_report_builder builder = { .analysis = analysis, .report = report };
    int status;

    if (!report)
        return wm_fail_memory(err, "report");

    status = wm_run_copy(analysis->run, &report->run, err);
    if (status < 0)
        goto out;
    report->complete = result != NULL;
    if (!result) {
        /* The recorder was killed. */
        report->result = (struct wm_result) { 0 };
        report->result.end_ns = analysis->last_ns;
        report->result.ticks = analysis->ticks;
    } else {
        status = wm_result_copy(result, &report->result, err);
        if (status < 0)
            goto out;
    }

    wm_build_session(&builder);
    wm_build_gpus(&builder);
    wm_build_energy(&builder);
    wm_build_regions(&builder);
    if (builder.failed) {
        status = wm_fail_memory(err, "report");
        goto out;
    }
    *ret_report = report;
    return WM_OK;

out:
    wm_report_free(report);
    return status;
}

/* How busy the CPUs were, or the GPU. The kernel counts CPU time in steps, one of which may
 * be of the time before; CPU time that nobody knows of is none. */
static double busy_of(const struct wm_analysis *analysis, size_t index)
{
    size_t host = analysis->cpu_work.host.channel;

    if (index >= analysis->device_count) {
        size_t channel = analysis->gpus[index - analysis->device_count].utilization;
        return channel == WM_NO_CHANNEL ? 0
                                        : wm_gauge_mean(&analysis->stats[channel].gauge);
    }
    if (host == WM_NO_CHANNEL)
        return 0;
    const struct wm_counter_stats *counter = &analysis->stats[host].counter;
    double room =
        wm_stats_seconds(counter->first_ns, counter->last_ns) * analysis->run->core_count;
    double step = (double)analysis->channels[host].period_ns / 1e9;
    return room > 0 ? fmax(counter->total - step, 0) / room : 0;
}

static int add_baseline(struct wm_run *run, const struct wm_device_stats *device,
                        double busy, bool anyway, struct wm_error *err)
{
    struct wm_energy_result energy;
    struct wm_uncertainty off;

    wm_energy_result(&device->joules, &energy);
    double seconds = energy.span_s - energy.missing_s;
    if (energy.method == WM_ENERGY_UNKNOWN || seconds <= 0)
        return WM_OK;
    struct wm_baseline *baseline = &run->baselines[run->baseline_count++];
    baseline->source = strdup(device->channel->source);
    baseline->device = strdup(device->channel->device);
    baseline->watts = energy.joules / seconds;
    wm_uncertainty_find(&device->joules, &energy, &off);
    baseline->uncertainty = off.random / seconds;
    baseline->busy = busy;
    baseline->is_refused = busy > WM_BASELINE_MOST_BUSY && !anyway;
    if (!baseline->source || !baseline->device)
        return wm_fail_memory(err, "baseline");
    return WM_OK;
}

int wm_analysis_baselines(const struct wm_analysis *analysis, bool anyway,
                          struct wm_run *ret_run, struct wm_error *err)
{
    size_t count = wm_device_count(analysis);
    int status = WM_OK;

    ret_run->baselines = calloc(count + 1, sizeof(*ret_run->baselines));
    if (!ret_run->baselines)
        return wm_fail_memory(err, "baseline");
    for (size_t i = 0; i < count && status == WM_OK; i++)
        status = add_baseline(ret_run, wm_device_at(analysis, i), busy_of(analysis, i),
                              anyway, err);
    ret_run->baseline_seconds = wm_stats_seconds(analysis->first_ns, analysis->last_ns);
    return status;
}
