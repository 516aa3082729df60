/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_baseline.c - what devices take with nothing to do: measured, and used. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze_build.h"

static int add_baseline(struct wm_run *run, const struct wm_channel *channel,
                        const struct wm_energy *joules, struct wm_error *err)
{
    struct wm_energy_result energy;

    wm_energy_result(joules, &energy);
    double seconds = energy.span_s - energy.missing_s;
    if (energy.method == WM_ENERGY_UNKNOWN || seconds <= 0)
        return WM_OK;
    struct wm_baseline *baseline = &run->baselines[run->baseline_count++];
    baseline->source = strdup(channel->source);
    baseline->device = strdup(channel->device);
    baseline->watts = energy.joules / seconds;
    if (!baseline->source || !baseline->device)
        return wm_fail(err, WM_ENOMEM, "baseline: out of memory");
    return WM_OK;
}

int wm_analysis_baselines(const struct wm_analysis *analysis, struct wm_run *ret_run,
                          struct wm_error *err)
{
    size_t room = analysis->device_count + analysis->gpu_count + 1;
    int status = WM_OK;

    ret_run->baselines = calloc(room, sizeof(*ret_run->baselines));
    if (!ret_run->baselines)
        return wm_fail(err, WM_ENOMEM, "baseline: out of memory");
    for (size_t i = 0; i < analysis->device_count && status == WM_OK; i++)
        status = add_baseline(ret_run, analysis->devices[i].channel,
                              &analysis->devices[i].joules, err);
    for (size_t i = 0; i < analysis->gpu_count && status == WM_OK; i++)
        status = add_baseline(ret_run, wm_gpu_any_channel(analysis, &analysis->gpus[i]),
                              &analysis->gpus[i].joules, err);
    ret_run->baseline_seconds = wm_stats_seconds(analysis->first_ns, analysis->last_ns);
    return status;
}

static double watts_of(const struct wm_run *run, const char *source, const char *device)
{
    for (size_t i = 0; i < run->baseline_count; i++) {
        const struct wm_baseline *baseline = &run->baselines[i];
        if (baseline->source && baseline->device && baseline->watts >= 0 &&
            strcmp(baseline->source, source) == 0 && strcmp(baseline->device, device) == 0)
            return baseline->watts;
    }
    return NAN;
}

void wm_baselines_use(struct wm_analysis *analysis)
{
    for (size_t i = 0; i < analysis->device_count; i++) {
        struct wm_device_stats *device = &analysis->devices[i];
        device->share.idle_watts =
            watts_of(analysis->run, device->channel->source, device->channel->device);
    }
    for (size_t i = 0; i < analysis->gpu_count; i++) {
        struct wm_gpu_stats *gpu = &analysis->gpus[i];
        const struct wm_channel *channel = wm_gpu_any_channel(analysis, gpu);
        gpu->share.idle_watts = watts_of(analysis->run, channel->source, gpu->device);
    }
}

/* Two stretches of the same idling differ by so much. */
#define MOST_EXCESS 0.05

/* The part of the CPUs' time that a command has to take before energy beyond the idling
 * must have been its, and the part of the energy that is none. */
#define LEAST_WORK 0.05
#define NO_ENERGY 0.01

/* A command that was at work took more than the idle machine. */
static bool is_work_unseen(const struct wm_report_builder *builder,
                           const struct wm_share *divided,
                           const struct wm_energy_figure *figure)
{
    const struct wm_report *report = builder->report;
    double room = figure->covered_s * builder->analysis->run->core_count;

    return report->cpu_total.known && room > 0 &&
           report->cpu_total.number > LEAST_WORK * room &&
           divided->tree < NO_ENERGY * figure->energy.number;
}

void wm_build_baseline(struct wm_report_builder *builder, const struct wm_figure_of *device,
                       const struct wm_share *divided,
                       const struct wm_energy_figure *figure, struct wm_value *ret_idle,
                       struct wm_energy_split *split)
{
    double idle = divided->idle_watts;

    *ret_idle = wm_value_missing("no baseline was measured");
    if (isnan(idle))
        return;
    *ret_idle = wm_value_known(idle);
    if (!split->tree.known || figure->covered_s <= 0)
        return;
    double watts = figure->energy.number / figure->covered_s;
    bool is_more = idle > watts * (1 + MOST_EXCESS + figure->random);
    if (!is_more && !(device->channel->device_kind == WM_DEVICE_CPU &&
                      is_work_unseen(builder, divided, figure)))
        return;
    wm_build_remark(
        builder,
        "%s: it took %s W in the baseline and %s W in the run: the machine was "
        "not idle then, and how much of the energy is the command's is not known",
        device->label, wm_build_number(idle).text, wm_build_number(watts).text);
    const struct wm_value missing =
        wm_value_missing("the machine was not idle in the baseline");
    wm_build_split_miss(split, &missing);
}
