/* SPDX-License-Identifier: Apache-2.0 */
/* track_snippet_window.c - which readings of a device count, and what they come to; sums
 * over packages, memory and GPUs: of several sources that know the same, the best one that
 * can tell. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base_clock.h"
#include "record/record_stats.h"
#include "source/source_energy.h"
#include "source/source_traits.h"
#include "track/snippet/track_snippet.h"

/* After so long a sensor of power has seen enough of a load for a counter to be
 * judged by it, even where it shows the mean of a second. */
#define POWER_LAG_NS (100 * WM_NS_PER_MS)

/* What a figure may leave out; less is the jitter of the readings. */
#define MOST_MISSING 0.01
#define LEAST_MISSING_S 1e-3

static void begin(struct wm_meter_span *span, const struct wm_meter_input *input,
                  int64_t first_ns, bool with_power)
{
    wm_energy_set_beside(&span->energy, wm_stats_value(&span->first_power));
    wm_energy_add(&span->energy, first_ns, input->counter ? &span->first_counter : NULL,
                  with_power ? &span->first_power : NULL);
}

/* Over a window without a reading between, power stands in for a counter that reported
 * nothing. */
static bool is_counter_silent(const struct wm_meter_span *span,
                              const struct wm_reading *counter)
{
    return !counter || !wm_stats_usable(&span->first_counter) ||
           !wm_stats_usable(counter) || counter->value == span->first_counter.value;
}

static void add_span(const struct wm_snippet *snippet, struct wm_meter_span *span,
                     const struct wm_meter_input *input, bool is_last)
{
    const struct wm_reading *counter = input->counter, *power = input->power;
    int64_t first_ns = snippet->first_ns, now_ns = snippet->last_ns;
    bool wants_power = power && (snippet->is_checked || wm_meter_input_needs_power(input));

    if (!span->energy.started) {
        if (is_last)
            wants_power = power && is_counter_silent(span, counter);
        else if (counter && now_ns - first_ns < POWER_LAG_NS)
            return;
        begin(span, input, first_ns, wants_power);
    }
    /* How busy it is says how far a sensor that sees a part of the time may be off. */
    wm_energy_set_busy(&span->energy, wm_stats_value(input->utilization));
    wm_energy_set_beside(&span->energy, wm_stats_value(power));
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

void wm_snippet_begin(struct wm_snippet *snippet)
{
    const struct wm_meter_inputs *inputs = snippet->inputs;

    snippet->first_ns = snippet->last_ns = inputs->when_ns;
    snippet->told = (struct wm_meter_reading) { 0 };
    for (size_t i = 0; i < inputs->count; i++) {
        const struct wm_meter_input *input = &inputs->list[i];
        struct wm_meter_span *span = &snippet->spans[i];
        *span = (struct wm_meter_span) {
            .energy = { .counter_sensor = counter_sensor_of(input),
                        .power_sensor = input->power_sensor,
                        .has_driver = input->told.kind == WM_DEVICE_GPU },
        };
        if (input->counter)
            span->first_counter = *input->counter;
        if (input->power)
            span->first_power = *input->power;
    }
}

void wm_snippet_add(struct wm_snippet *snippet, bool is_last)
{
    snippet->last_ns = snippet->inputs->when_ns;
    for (size_t i = 0; i < snippet->inputs->count; i++)
        add_span(snippet, &snippet->spans[i], &snippet->inputs->list[i], is_last);
}

_Static_assert((int)WM_METER_COUNTER == WM_ENERGY_COUNTER &&
                   (int)WM_METER_FILLED == WM_ENERGY_COUNTER_FILLED &&
                   (int)WM_METER_INTEGRAL == WM_ENERGY_INTEGRAL,
               "the method of a device is the method of its joules");

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
    const struct wm_reading *reading = input->counter ? input->counter : input->power;
    size_t channel = (size_t)(reading - inputs->readings);
    const char *why = wm_source_set_why(inputs->sources, channel);

    if (reading->state != WM_READING_OK && reading->state != WM_READING_NONE)
        miss(energy, reading->state, input, why ? why : otherwise);
    else
        miss(energy, WM_READING_FAILED, input, otherwise);
}

static void tell_device(struct wm_meter_span *span, const struct wm_meter_inputs *inputs,
                        const struct wm_meter_input *input)
{
    const struct wm_energy *energy = &span->energy;
    struct wm_energy_result result;
    char text[96];

    wm_energy_result(energy, &result);
    bool is_unknown = result.method == WM_ENERGY_UNKNOWN;
    if (is_unknown && !energy->counted) {
        miss_channel(&span->told, inputs, input, "its power was not read twice in a row");
    } else if (is_unknown && result.is_short) {
        snprintf(text, sizeof(text),
                 "its counter, new every %.3g ms, did not move meanwhile",
                 wm_energy_period_s(energy) * 1e3);
        miss(&span->told, WM_READING_NONE, input, text);
    } else if (is_unknown) {
        miss_channel(&span->told, inputs, input, "its energy counter did not move");
    } else if (result.missing_s > fmax(LEAST_MISSING_S, MOST_MISSING * result.span_s)) {
        snprintf(text, sizeof(text), "not known for %.3g s of %.3g s", result.missing_s,
                 result.span_s);
        miss_channel(&span->told, inputs, input, text);
    } else {
        bool is_model = input->told.origin == WM_ESTIMATED;
        wm_uncertainty_find(energy, &result, &span->uncertainty);
        const struct wm_between range =
            wm_uncertainty_between(result.joules, span->uncertainty.systematic,
                                   span->uncertainty.below, span->uncertainty.above);
        span->told = (struct wm_meter_energy) {
            .state = WM_READING_OK,
            .joules = result.joules,
            .uncertainty = wm_uncertainty_total(&span->uncertainty),
            .low = range.low,
            .high = range.high,
            .method = is_model ? WM_METER_MODEL : (enum wm_meter_method)result.method,
            .origin = input->told.origin,
            .is_short = result.is_short,
        };
    }
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
    double systematic, random_squares, below_squares, above_squares;
};

static void add(struct sum *sum, const struct wm_meter_span *span)
{
    const struct wm_uncertainty *uncertainty = &span->uncertainty;
    const struct wm_meter_energy *part = &span->told;
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
    sum->below_squares += uncertainty->below * uncertainty->below;
    sum->above_squares += uncertainty->above * uncertainty->above;
    const struct wm_between range =
        wm_uncertainty_between(energy->joules, sum->systematic, sqrt(sum->below_squares),
                               sqrt(sum->above_squares));
    energy->uncertainty = sqrt(sum->systematic * sum->systematic + sum->random_squares);
    energy->low = range.low;
    energy->high = range.high;
    energy->is_short |= part->is_short;
    if (energy->method == WM_METER_NO_METHOD)
        energy->method = part->method;
    else if (energy->method != part->method)
        energy->method = WM_METER_MIXED;
    if (part->origin > energy->origin)
        energy->origin = part->origin;
}

static void miss_sum(const struct wm_meter_inputs *inputs, enum wm_device_kind kind,
                     struct wm_meter_energy *ret_sum)
{
    const struct wm_error *lack = kind == WM_DEVICE_GPU ? &inputs->no_gpu : &inputs->no_cpu;
    bool is_absent = lack->status == WM_OK || lack->status == WM_ENODEV;

    *ret_sum = (struct wm_meter_energy) {
        .state = is_absent ? WM_READING_UNSUPPORTED : wm_reading_state_of(lack->status),
    };
    wm_meter_why(ret_sum->why, sizeof(ret_sum->why),
                 lack->text[0] ? lack->text : "nothing here reports it");
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
    const struct wm_snippet *snippet = list;
    const struct wm_meter_input *input = &snippet->inputs->list[index];
    const struct wm_meter_device *device = &input->told;
    bool is_wanted =
        device->origin != WM_ESTIMATED || !is_measured(snippet->inputs, device->kind);

    return (struct wm_energy_offer) {
        .source = device->source,
        .sensor = input->counter ? input->counter_sensor.kind : input->power_sensor.kind,
        .kind = device->kind,
        .origin = device->origin,
        .is_known = is_wanted && snippet->spans[index].told.state == WM_READING_OK,
    };
}

/* All devices of that kind and source; NULL: of all sources. */
static void sum_devices(const struct wm_snippet *snippet, enum wm_device_kind kind,
                        const char *source, struct wm_meter_energy *ret_sum)
{
    struct sum sum = { .energy.state = WM_READING_OK };
    size_t count = 0;

    for (size_t i = 0; i < snippet->inputs->count; i++) {
        const struct wm_meter_input *input = &snippet->inputs->list[i];
        if (input->told.kind != kind || input->is_left_out ||
            (source && strcmp(input->told.source, source) != 0))
            continue;
        add(&sum, &snippet->spans[i]);
        count++;
    }
    *ret_sum = sum.energy;
    if (count == 0)
        miss_sum(snippet->inputs, kind, ret_sum);
}

/* CPUs or memory, of the source that counts. */
static void sum_chosen(const struct wm_snippet *snippet, enum wm_device_kind kind,
                       struct wm_meter_energy *ret_sum)
{
    const struct wm_energy_offers offers = { snippet, snippet->inputs->count, offer_of };
    struct wm_energy_choice choice;

    wm_energy_choose(&offers, kind, &choice);
    if (choice.source)
        sum_devices(snippet, kind, choice.source, ret_sum);
    else
        miss_sum(snippet->inputs, kind, ret_sum);
    if (choice.is_refused)
        snprintf(ret_sum->why, sizeof(ret_sum->why),
                 "an estimate of the memory is not added to the measured energy of the "
                 "CPUs");
}

void wm_snippet_tell(struct wm_snippet *snippet)
{
    const struct wm_meter_inputs *inputs = snippet->inputs;
    struct wm_meter_reading *told = &snippet->told;

    for (size_t i = 0; i < inputs->count; i++)
        tell_device(&snippet->spans[i], inputs, &inputs->list[i]);
    told->elapsed_s = wm_stats_seconds(snippet->first_ns, snippet->last_ns);
    sum_chosen(snippet, WM_DEVICE_CPU, &told->cpu);
    sum_chosen(snippet, WM_DEVICE_DRAM, &told->dram);
    sum_devices(snippet, WM_DEVICE_GPU, NULL, &told->gpu);
}
