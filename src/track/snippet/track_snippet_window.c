/* SPDX-License-Identifier: Apache-2.0 */
/* track_snippet_window.c - which readings of a device count, and what they come to; sums
 * over packages, memory and GPUs: of several sources that know the same, the best one that
 * can tell. */
#include "track/snippet/track_snippet_window.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze_stats.h"
#include "base/base_clock.h"
#include "source/cpu/source_energy.h"

/* After so long a sensor of power has seen enough of a load for a counter to be
 * judged by it, even where it shows the mean of a second. */
#define POWER_LAG_NS (100 * WM_NS_PER_MS)

/* What a figure may leave out; less is the jitter of the readings. */
#define MOST_MISSING 0.01
#define LEAST_MISSING_S 1e-3

struct wm_meter_window *wm_meter_window_new(size_t devices)
{
    struct wm_meter_window *window = NULL;

    return calloc(1, sizeof(*window) + devices * sizeof(window->spans[0]));
}

static bool has_begun(const struct wm_meter_span *span)
{
    return span->energy.started;
}

static double value_of(const struct wm_reading *reading)
{
    return reading && wm_stats_usable(reading) ? reading->value : NAN;
}

static void begin(struct wm_meter_span *span, const struct wm_meter_input *input,
                  int64_t first_ns, bool with_power)
{
    bool has_counter = input->energy != WM_METER_NO_CHANNEL;

    wm_energy_set_beside(&span->energy, value_of(&span->first_power));
    wm_energy_add(&span->energy, first_ns, has_counter ? &span->first_counter : NULL,
                  with_power ? &span->first_power : NULL);
}

/* Over a window without a reading between, power stands in for a counter that told
 * nothing. */
static bool is_counter_silent(const struct wm_meter_span *span,
                              const struct wm_reading *counter)
{
    return !counter || !wm_stats_usable(&span->first_counter) ||
           !wm_stats_usable(counter) || counter->value == span->first_counter.value;
}

/* Says how far a sensor that looks at a part of the time may be off. */
static double busy_of(const struct wm_meter_inputs *inputs,
                      const struct wm_meter_input *input)
{
    return value_of(wm_meter_inputs_reading(inputs, input->utilization));
}

static void add_span(struct wm_meter_window *window, struct wm_meter_span *span,
                     const struct wm_meter_inputs *inputs,
                     const struct wm_meter_input *input, enum wm_meter_moment moment)
{
    const struct wm_reading *counter = wm_meter_inputs_reading(inputs, input->energy);
    const struct wm_reading *power = wm_meter_inputs_reading(inputs, input->power);
    int64_t now_ns = inputs->when_ns;
    bool wants_power = power && (window->is_checked || wm_meter_input_needs_power(input));

    if (!has_begun(span) && moment == WM_METER_BETWEEN && counter &&
        now_ns - window->first_ns < POWER_LAG_NS)
        return;
    if (!has_begun(span) && moment == WM_METER_LAST)
        wants_power = power && is_counter_silent(span, counter);
    if (!has_begun(span))
        begin(span, input, window->first_ns, wants_power);
    wm_energy_set_busy(&span->energy, busy_of(inputs, input));
    wm_energy_set_beside(&span->energy, value_of(power));
    wm_energy_add(&span->energy, now_ns, counter,
                  wants_power || span->energy.powered ? power : NULL);
}

/* What was seen of its counter since the meter was opened goes before what is published:
 * a window may be too short to tell. */
static struct wm_sensor counter_sensor_of(const struct wm_meter_input *input)
{
    struct wm_sensor sensor = input->counter_sensor;
    double period_s = wm_sensor_period_s(&sensor, &input->pace);

    sensor.period_ns = (int64_t)(period_s * 1e9);
    return sensor;
}

static void start_span(struct wm_meter_span *span, const struct wm_meter_inputs *inputs,
                       const struct wm_meter_input *input)
{
    const struct wm_reading *counter = wm_meter_inputs_reading(inputs, input->energy);
    const struct wm_reading *power = wm_meter_inputs_reading(inputs, input->power);

    *span = (struct wm_meter_span) {
        .energy = { .counter_sensor = counter_sensor_of(input),
                    .power_sensor = input->power_sensor },
    };
    if (counter)
        span->first_counter = *counter;
    if (power)
        span->first_power = *power;
}

void wm_meter_window_add(struct wm_meter_window *window,
                         const struct wm_meter_inputs *inputs, enum wm_meter_moment moment)
{
    window->last_ns = inputs->when_ns;
    if (moment == WM_METER_FIRST)
        window->first_ns = window->last_ns;
    for (size_t i = 0; i < inputs->count; i++) {
        const struct wm_meter_input *input = &inputs->list[i];
        if (moment == WM_METER_FIRST)
            start_span(&window->spans[i], inputs, input);
        else
            add_span(window, &window->spans[i], inputs, input, moment);
    }
}

static enum wm_meter_method method_of(enum wm_energy_method method)
{
    switch (method) {
    case WM_ENERGY_COUNTER:
        return WM_METER_COUNTER;
    case WM_ENERGY_COUNTER_FILLED:
        return WM_METER_FILLED;
    case WM_ENERGY_INTEGRAL:
        return WM_METER_INTEGRAL;
    default:
        return WM_METER_NO_METHOD;
    }
}

static void miss(struct wm_meter_energy *energy, enum wm_reading_state state,
                 const struct wm_meter_input *input, const char *why)
{
    char text[512];

    *energy = (struct wm_meter_energy) { .state = state };
    snprintf(text, sizeof(text), "%s: %s", input->told.label, why);
    wm_meter_why(energy->why, sizeof(energy->why), text);
}

/* The channel that is to blame: the counter, where there is one. */
static void miss_channel(struct wm_meter_energy *energy,
                         const struct wm_meter_inputs *inputs,
                         const struct wm_meter_input *input, const char *otherwise)
{
    size_t channel = input->energy != WM_METER_NO_CHANNEL ? input->energy : input->power;
    const struct wm_reading *reading = wm_meter_inputs_reading(inputs, channel);
    const char *why = wm_meter_inputs_why(inputs, channel);

    if (reading->state != WM_READING_OK && reading->state != WM_READING_NONE)
        miss(energy, reading->state, input, why ? why : otherwise);
    else
        miss(energy, WM_READING_FAILED, input, otherwise);
}

static void miss_all(struct wm_meter_energy *energy, const struct wm_meter_inputs *inputs,
                     const struct wm_meter_input *input, const struct wm_energy *sum,
                     bool is_short)
{
    char text[96];

    if (!sum->counted) {
        miss_channel(energy, inputs, input, "its power was not read twice in a row");
    } else if (is_short) {
        snprintf(text, sizeof(text),
                 "its counter, new every %.3g ms, did not move meanwhile",
                 wm_energy_period_s(sum) * 1e3);
        miss(energy, WM_READING_NONE, input, text);
    } else {
        miss_channel(energy, inputs, input, "its energy counter did not move");
    }
}

static void device_energy(struct wm_meter_window *window,
                          const struct wm_meter_inputs *inputs, size_t index,
                          struct wm_meter_energy *ret_energy)
{
    const struct wm_meter_input *input = &inputs->list[index];
    const struct wm_energy *sum = &window->spans[index].energy;
    struct wm_uncertainty *uncertainty = &window->spans[index].uncertainty;
    struct wm_energy_result result;
    char text[96];

    wm_energy_result(sum, &result);
    if (result.method == WM_ENERGY_UNKNOWN) {
        miss_all(ret_energy, inputs, input, sum, result.is_short);
        return;
    }
    if (result.missing_s > fmax(LEAST_MISSING_S, MOST_MISSING * result.span_s)) {
        snprintf(text, sizeof(text), "not known for %.3g s of %.3g s", result.missing_s,
                 result.span_s);
        miss_channel(ret_energy, inputs, input, text);
        return;
    }
    wm_uncertainty_find(sum, &result, uncertainty);
    *ret_energy = (struct wm_meter_energy) {
        .state = WM_READING_OK,
        .joules = result.joules,
        .uncertainty = wm_uncertainty_total(uncertainty),
        .method =
            input->told.origin == WM_ESTIMATED ? WM_METER_MODEL : method_of(result.method),
        .origin = input->told.origin,
        .is_short = result.is_short,
    };
}

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

    for (size_t i = 0; i < parts->inputs->count; i++) {
        const struct wm_meter_device *told = &parts->inputs->list[i].told;
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

static void miss_sum(const struct wm_meter_inputs *inputs, enum wm_device_kind kind,
                     struct wm_meter_energy *ret_sum)
{
    const struct wm_error *lack = kind == WM_DEVICE_GPU ? &inputs->no_gpu : &inputs->no_cpu;

    *ret_sum = (struct wm_meter_energy) { .state = state_of(lack->status) };
    wm_meter_why(ret_sum->why, sizeof(ret_sum->why),
                 lack->text[0] ? lack->text : "nothing here tells it");
}

/* Once a counter has been seen to work, an estimate is none of our business: a short
 * snippet in which the counter did not move has no figure rather than another kind
 * of one. */
static bool is_measured(const struct wm_meter_inputs *inputs, enum wm_device_kind kind)
{
    for (size_t i = 0; i < inputs->count; i++) {
        const struct wm_meter_input *input = &inputs->list[i];
        if (input->told.kind == kind && input->told.origin != WM_ESTIMATED &&
            input->has_worked)
            return true;
    }
    return false;
}

static struct wm_energy_offer offer_of(const void *list, size_t index)
{
    const struct parts *parts = list;
    const struct wm_meter_device *told = &parts->inputs->list[index].told;
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
    const struct wm_energy_offers offers = { parts, parts->inputs->count, offer_of };
    struct wm_energy_choice choice;

    wm_energy_choose(&offers, kind, &choice);
    if (choice.source) {
        sum_source(parts, kind, choice.source, ret_sum);
        return;
    }
    miss_sum(parts->inputs, kind, ret_sum);
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

    for (size_t i = 0; i < parts->inputs->count; i++) {
        const struct wm_meter_input *input = &parts->inputs->list[i];
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
        miss_sum(parts->inputs, WM_DEVICE_GPU, ret_sum);
}

void wm_meter_result(struct wm_meter_window *window, const struct wm_meter_inputs *inputs,
                     struct wm_meter_reading *ret_reading,
                     struct wm_meter_energy *ret_devices)
{
    const struct parts parts = { window, inputs, ret_devices };
    struct wm_meter_reading *reading = ret_reading;

    for (size_t i = 0; i < inputs->count; i++)
        device_energy(window, inputs, i, &ret_devices[i]);
    *reading = (struct wm_meter_reading) {
        .elapsed_s = wm_stats_seconds(window->first_ns, window->last_ns),
    };
    sum_kind(&parts, WM_DEVICE_CPU, &reading->cpu);
    sum_kind(&parts, WM_DEVICE_DRAM, &reading->dram);
    sum_gpus(&parts, &reading->gpu);
}
