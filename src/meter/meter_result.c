/* SPDX-License-Identifier: Apache-2.0 */
/* meter_result.c - sums over packages, memory and GPUs; of several sources that know
 * the same, the best one that can tell. */
#include "meter/meter_result.h"

#include <stdio.h>
#include <string.h>

#include "analyze/analyze_meters.h"
#include "analyze/analyze_stats.h"

const char *wm_meter_method_name(enum wm_meter_method method)
{
    static const char *const names[] = {
        [WM_METER_NO_METHOD] = "",    [WM_METER_COUNTER] = "counter",
        [WM_METER_FILLED] = "filled", [WM_METER_INTEGRAL] = "integral",
        [WM_METER_MIXED] = "mixed",
    };

    return (size_t)method < sizeof(names) / sizeof(names[0]) ? names[method] : "";
}

/* Errors of gain do not cancel out, so uncertainties are added as they are. */
static void add(struct wm_meter_energy *sum, const struct wm_meter_energy *part)
{
    if (sum->state != WM_READING_OK)
        return;
    if (part->state != WM_READING_OK) {
        *sum = *part;
        return;
    }
    sum->joules += part->joules;
    sum->uncertainty += part->uncertainty;
    sum->is_short |= part->is_short;
    if (sum->method == WM_METER_NO_METHOD)
        sum->method = part->method;
    else if (sum->method != part->method)
        sum->method = WM_METER_MIXED;
    if (part->origin > sum->origin)
        sum->origin = part->origin;
}

/* The devices of a kind, of one source or (NULL) of all; how many. */
static size_t sum_devices(const struct wm_meter_inputs *inputs,
                          const struct wm_meter_energy *devices, enum wm_device_kind kind,
                          const char *source, struct wm_meter_energy *ret_sum)
{
    struct wm_meter_energy sum = { .state = WM_READING_OK };
    size_t count = 0;

    for (size_t i = 0; i < wm_meter_inputs_count(inputs); i++) {
        const struct wm_meter_device *told = &wm_meter_input(inputs, i)->told;
        if (told->kind != kind || (source && strcmp(told->source, source) != 0))
            continue;
        add(&sum, &devices[i]);
        count++;
    }
    if (count == 0)
        return 0;

    *ret_sum = sum;
    return count;
}

static enum wm_reading_state state_of(int status)
{
    switch (status) {
    case WM_OK:
    case WM_ENODEV:
    case WM_ENOENT:
        return WM_READING_UNSUPPORTED;
    case WM_EACCES:
        return WM_READING_DENIED;
    default:
        return WM_READING_FAILED;
    }
}

static void miss(const struct wm_meter_inputs *inputs, enum wm_device_kind kind,
                 struct wm_meter_energy *ret_sum)
{
    const struct wm_error *lack = wm_meter_inputs_lack(inputs, kind);

    *ret_sum = (struct wm_meter_energy) { .state = state_of(lack->status) };
    snprintf(ret_sum->why, sizeof(ret_sum->why), "%s",
             lack->text[0] ? lack->text : "nothing here tells it");
}

/* Once a counter has been seen to work, an estimate is none of our business: a short
 * snippet in which the counter did not move has no figure rather than another kind
 * of one. */
static bool is_measured(const struct wm_meter_inputs *inputs, enum wm_device_kind kind)
{
    for (size_t i = 0; i < wm_meter_inputs_count(inputs); i++) {
        const struct wm_meter_input *input = wm_meter_input(inputs, i);
        if (input->told.kind == kind && input->told.origin != WM_ESTIMATED &&
            input->has_worked)
            return true;
    }
    return false;
}

/* The first source that knows all of them, else the reason of the first that should. */
static void sum_kind(const struct wm_meter_inputs *inputs,
                     const struct wm_meter_energy *devices, enum wm_device_kind kind,
                     struct wm_meter_energy *ret_sum)
{
    bool found = false;
    const char *source;

    miss(inputs, kind, ret_sum);
    for (size_t i = 0; (source = wm_energy_source(i)) != NULL; i++) {
        struct wm_meter_energy sum;
        if (sum_devices(inputs, devices, kind, source, &sum) == 0)
            continue;
        if (found && sum.origin == WM_ESTIMATED && is_measured(inputs, kind))
            continue;
        if (!found || sum.state == WM_READING_OK)
            *ret_sum = sum;
        found = true;
        if (sum.state == WM_READING_OK)
            return;
    }
}

void wm_meter_result(const struct wm_meter_window *window,
                     const struct wm_meter_inputs *inputs,
                     struct wm_meter_reading *ret_reading,
                     struct wm_meter_energy *ret_devices)
{
    struct wm_meter_reading *reading = ret_reading;

    for (size_t i = 0; i < wm_meter_inputs_count(inputs); i++)
        wm_meter_window_device(window, inputs, i, &ret_devices[i]);
    *reading = (struct wm_meter_reading) {
        .elapsed_s = wm_stats_seconds(window->first_ns, window->last_ns),
    };
    sum_kind(inputs, ret_devices, WM_DEVICE_CPU, &reading->cpu);
    sum_kind(inputs, ret_devices, WM_DEVICE_DRAM, &reading->dram);
    if (sum_devices(inputs, ret_devices, WM_DEVICE_GPU, NULL, &reading->gpu) == 0)
        miss(inputs, WM_DEVICE_GPU, &reading->gpu);
}
