/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_state.c - what is looked up in an analysis and in a tick. */
#include "analyze/analyze_state.h"

#include <string.h>

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

const struct wm_reading *wm_tick_reading(const struct wm_tick *tick, size_t channel)
{
    return channel == WM_NO_CHANNEL ? NULL : &tick->readings[channel];
}

struct wm_known wm_tick_value(const struct wm_tick *tick, size_t channel)
{
    return wm_stats_value(wm_tick_reading(tick, channel));
}

size_t wm_device_count(const struct wm_analysis *analysis)
{
    return analysis->device_count + analysis->gpu_count;
}

const struct wm_device_stats *wm_device_at(const struct wm_analysis *analysis, size_t index)
{
    return index < analysis->device_count
               ? &analysis->devices[index]
               : &analysis->gpus[index - analysis->device_count].device;
}
