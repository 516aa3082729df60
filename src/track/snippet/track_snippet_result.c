/* SPDX-License-Identifier: Apache-2.0 */
/* track_snippet_result.c - sums over packages, memory and GPUs; of several sources that
 * know the same, the best one that can tell. */
#include "track/snippet/track_snippet_result.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/analyze_stats.h"
#include "source/cpu/source_energy.h"

const char *wm_meter_method_name(enum wm_meter_method method)
{
    static const char *const names[] = {
        [WM_METER_NO_METHOD] = "",    [WM_METER_COUNTER] = "counter",
        [WM_METER_FILLED] = "filled", [WM_METER_INTEGRAL] = "integral",
        [WM_METER_MIXED] = "mixed",   [WM_METER_MODEL] = "model",
    };

    return (size_t)method < sizeof(names) / sizeof(names[0]) ? names[method] : "";
}

/* A sum while it is made. Sensors of one design err in one direction, so that their own
 * errors add up; what is random cancels out in part. */
struct sum {
    struct wm_meter_energy energy;
    double systematic, random_squares;
};

static void add(struct sum *sum, const struct wm_meter_energy *part,
                const struct wm_uncertainty *uncertainty)
{
    struct wm_meter_energy *energy = &sum->energy;

    if (energy->state != WM_READING_OK)
        return;
    if (part->state != WM_READING_OK) {
        *energy = *part;
        return;
    }
    energy->joules += part->joules;
    sum->systematic += uncertainty->systematic;
    sum->random_squares += uncertainty->random * uncertainty->random;
    energy->uncertainty = sqrt(sum->systematic * sum->systematic + sum->random_squares);
    energy->is_short |= part->is_short;
    if (energy->method == WM_METER_NO_METHOD)
        energy->method = part->method;
    else if (energy->method != part->method)
        energy->method = WM_METER_MIXED;
    if (part->origin > energy->origin)
        energy->origin = part->origin;
}

/* What is added up: the devices of a window. */
struct parts {
    const struct wm_meter_window *window;
    const struct wm_meter_inputs *inputs;
    const struct wm_meter_energy *devices;
};

/* CPUs or memory of one source. */
static void sum_source(const struct parts *parts, enum wm_device_kind kind,
                       const char *source, struct wm_meter_energy *ret_sum)
{
    struct sum sum = { .energy.state = WM_READING_OK };

    for (size_t i = 0; i < wm_meter_inputs_count(parts->inputs); i++) {
        const struct wm_meter_device *told = &wm_meter_input(parts->inputs, i)->told;
        if (told->kind == kind && strcmp(told->source, source) == 0)
            add(&sum, &parts->devices[i], &parts->window->spans[i].uncertainty);
    }
    *ret_sum = sum.energy;
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
    wm_meter_why(ret_sum->why, sizeof(ret_sum->why),
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

static struct wm_energy_offer offer_of(const void *list, size_t index)
{
    const struct parts *parts = list;
    const struct wm_meter_device *told = &wm_meter_input(parts->inputs, index)->told;
    bool is_wanted =
        told->origin != WM_ESTIMATED || !is_measured(parts->inputs, told->kind);

    return (struct wm_energy_offer) {
        .source = told->source,
        .kind = told->kind,
        .origin = told->origin,
        .is_known = is_wanted && parts->devices[index].state == WM_READING_OK,
    };
}

/* Of the source that counts. */
static void sum_kind(const struct parts *parts, enum wm_device_kind kind,
                     struct wm_meter_energy *ret_sum)
{
    const struct wm_energy_offers offers = { parts, wm_meter_inputs_count(parts->inputs),
                                             offer_of };
    struct wm_energy_choice choice;

    wm_energy_choose(&offers, kind, &choice);
    if (choice.source) {
        sum_source(parts, kind, choice.source, ret_sum);
        return;
    }
    miss(parts->inputs, kind, ret_sum);
    if (choice.is_refused)
        snprintf(ret_sum->why, sizeof(ret_sum->why),
                 "an estimate of the memory is not added to the measured energy of the "
                 "CPUs");
}

/* All of them, but for those whose power is a part of the CPU's, unless all are so. */
static void sum_gpus(const struct parts *parts, struct wm_meter_energy *ret_sum)
{
    struct sum sum = { .energy.state = WM_READING_OK }, left_out = sum;
    size_t count = 0, left_out_count = 0;

    for (size_t i = 0; i < wm_meter_inputs_count(parts->inputs); i++) {
        const struct wm_meter_input *input = wm_meter_input(parts->inputs, i);
        if (input->told.kind != WM_DEVICE_GPU)
            continue;
        add(input->is_in_cpu ? &left_out : &sum, &parts->devices[i],
            &parts->window->spans[i].uncertainty);
        count += !input->is_in_cpu;
        left_out_count += input->is_in_cpu;
    }
    if (count > 0)
        *ret_sum = sum.energy;
    else if (left_out_count > 0)
        *ret_sum = left_out.energy;
    else
        miss(parts->inputs, WM_DEVICE_GPU, ret_sum);
}

void wm_meter_result(struct wm_meter_window *window, const struct wm_meter_inputs *inputs,
                     struct wm_meter_reading *ret_reading,
                     struct wm_meter_energy *ret_devices)
{
    const struct parts parts = { window, inputs, ret_devices };
    struct wm_meter_reading *reading = ret_reading;

    for (size_t i = 0; i < wm_meter_inputs_count(inputs); i++)
        wm_meter_window_device(window, inputs, i, &ret_devices[i]);
    *reading = (struct wm_meter_reading) {
        .elapsed_s = wm_stats_seconds(window->first_ns, window->last_ns),
    };
    sum_kind(&parts, WM_DEVICE_CPU, &reading->cpu);
    sum_kind(&parts, WM_DEVICE_DRAM, &reading->dram);
    sum_gpus(&parts, &reading->gpu);
}
