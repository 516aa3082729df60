/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_baseline.c - what devices take with nothing to do: measured, and used. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze_state.h"

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
