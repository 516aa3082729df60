/* SPDX-License-Identifier: Apache-2.0 */
/* track_snippet_inputs.c - which sources a meter opens, and what it reads of them. */
#include "track/snippet/track_snippet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_clock.h"
#include "base/base_text.h"
#include "record/record_stats.h"
#include "source/source_energy.h"
#include "source/source_traits.h"

/* Of each reason why there is no device, so that all of them find room. */
enum { LACK_MAX = 110 };

/* How long a round waits for a driver. */
#define PATIENCE_NS (100 * WM_NS_PER_MS)

/* A counter that shows nothing new for so long is not merely slow. */
#define STALL_NS WM_NS_PER_S
#define STALL_PERIODS 5

void wm_meter_why(char *out, size_t size, const char *text)
{
    size_t length = strlen(text), most = size - sizeof(" ...");

    if (length < size) {
        memcpy(out, text, length + 1);
        return;
    }
    while (most > 0 && text[most] != ' ')
        most--;
    snprintf(out, size, "%.*s ...", (int)most, text);
}

/* The first reason decides on the status, unless a later one is that a right is
 * missing, which can be mended. */
static void note_lack(struct wm_error *lack, const char *name, const struct wm_error *why)
{
    struct wm_error named;
    char text[LACK_MAX];

    wm_fail(&named, why->status, "%s: %s", name, why->text);
    wm_meter_why(text, sizeof(text), named.text);
    if (lack->status == WM_OK || why->status == WM_EACCES)
        lack->status = why->status;
    wm_text_list(lack->text, sizeof(lack->text), "; ", "%s", text);
}

/* A GPU's power within a module is not the GPU's. */
static bool is_input(const struct wm_channel *channel)
{
    switch (channel->device_kind) {
    case WM_DEVICE_GPU:
        if (channel->sensor.contains >= WM_CONTAINS_MODULE)
            return false;
        /* fall through */
    case WM_DEVICE_CPU:
    case WM_DEVICE_DRAM:
        return wm_channel_is_energy(channel);
    default:
        return false;
    }
}

/* A source that has nothing for a meter is closed again: the time that reading it takes
 * would be wasted. */
static int check_use(struct wm_source_set *sources, struct wm_error *err)
{
    const struct wm_source *source =
        wm_source_set_member(sources, wm_source_set_count(sources) - 1)->source;

    bool is_of_module = false;

    for (size_t i = 0; i < wm_source_channel_count(source); i++) {
        const struct wm_channel *channel = wm_source_channel(source, i);
        if (is_input(channel))
            return WM_OK;
        is_of_module |= channel->sensor.contains == WM_CONTAINS_MODULE &&
                        channel->device_kind == WM_DEVICE_GPU;
    }
    wm_source_set_drop_last(sources);
    if (is_of_module)
        return wm_fail(err, WM_EIO, "it reports the power of the whole module only");
    return wm_fail(err, WM_ENODEV, "nothing in it reports energy or power");
}

static int open_source(struct wm_meter_inputs *inputs, const char *name,
                       struct wm_error *lack, struct wm_error *err)
{
    struct wm_error why = { 0 };

    int status = wm_source_set_open(inputs->sources, name, &why);
    if (status == WM_OK)
        status = check_use(inputs->sources, &why);
    if (status == WM_ENOMEM || status == WM_EINVAL)
        return wm_fail(err, status, "%s", why.text);
    if (status < 0)
        note_lack(lack, name, &why);
    return WM_OK;
}

static int open_cpus(struct wm_meter_inputs *inputs, const struct wm_meter_options *options,
                     struct wm_error *err)
{
    const char *name;

    for (size_t i = 0; (name = wm_energy_source(i)) != NULL; i++) {
        bool is_model = wm_source_traits(name)->cpu_sensor == WM_SENSOR_MODEL;

        if (is_model && !options->estimate && !options->cpu_watts)
            continue;
        int status = open_source(inputs, name, &inputs->no_cpu, err);
        if (status < 0)
            return status;
    }
    return WM_OK;
}

static int open_gpus(struct wm_meter_inputs *inputs, const char *words,
                     struct wm_error *err)
{
    const char *name;
    int status = WM_OK;

    if (words && strcmp(words, "none") == 0) {
        wm_fail(&inputs->no_gpu, WM_ENODEV, "no GPU was chosen");
        return WM_OK;
    }
    for (size_t i = 0; (name = wm_source_name(i)) != NULL && status == WM_OK; i++) {
        if (wm_source_traits(name)->has_gpus)
            status = open_source(inputs, name, &inputs->no_gpu, err);
    }
    return status;
}

static int open_sources(struct wm_meter_inputs *inputs,
                        const struct wm_meter_options *options, struct wm_error *err)
{
    const struct wm_source_config config = { .gpus = options->gpus,
                                             .cpu_watts = options->cpu_watts };

    int status = wm_source_set_new(&config, 0, &inputs->sources, err);
    if (status == WM_OK)
        status = wm_source_set_choose(inputs->sources, err);
    if (status == WM_OK)
        status = open_cpus(inputs, options, err);
    if (status == WM_OK)
        status = open_gpus(inputs, options->gpus, err);
    return status;
}

static struct wm_meter_input *find_input(struct wm_meter_inputs *inputs,
                                         const struct wm_channel *channel)
{
    for (size_t i = 0; i < inputs->count; i++) {
        struct wm_meter_input *input = &inputs->list[i];
        if (input->told.kind == channel->device_kind &&
            strcmp(input->told.source, channel->source) == 0 &&
            strcmp(input->told.device, channel->device) == 0)
            return input;
    }
    return NULL;
}

static struct wm_meter_input *new_input(struct wm_meter_inputs *inputs,
                                        const struct wm_channel *channel)
{
    struct wm_meter_input *input = &inputs->list[inputs->count++];

    *input = (struct wm_meter_input) {
        .told = { .label = channel->label,
                  .device = channel->device,
                  .model = channel->model,
                  .source = channel->source,
                  .kind = channel->device_kind,
                  .origin = channel->origin },
    };
    return input;
}

static void take_channel(struct wm_meter_inputs *inputs, size_t index)
{
    const struct wm_channel *channel = wm_source_set_channel(inputs->sources, index);
    const struct wm_reading *reading = &inputs->readings[index];
    struct wm_meter_input *input = find_input(inputs, channel);

    if (!input && is_input(channel))
        input = new_input(inputs, channel);
    if (!input)
        return;
    if (wm_channel_is_energy(channel) && !is_input(channel))
        return;
    input->is_elsewhere |= input->told.kind == WM_DEVICE_GPU &&
                           channel->sensor.contains == WM_CONTAINS_PACKAGE;
    if (strcmp(channel->metric, "energy") == 0) {
        input->counter = reading;
        input->counter_sensor = wm_sensor_of(channel);
    } else if (strcmp(channel->metric, "power") == 0) {
        input->power = reading;
        input->power_sensor = wm_sensor_of(channel);
    } else if (strcmp(channel->metric, "utilization") == 0) {
        input->utilization = reading;
    } else if (strcmp(channel->metric, "temperature") == 0) {
        input->temperature = reading;
    }
}

/* A device's other channels may stand before those that make it one: two passes. */
static int find_inputs(struct wm_meter_inputs *inputs, struct wm_error *err)
{
    size_t count = wm_source_set_channel_count(inputs->sources);

    inputs->readings = calloc(count + 1, sizeof(*inputs->readings));
    inputs->list = calloc(count + 1, sizeof(*inputs->list));
    if (!inputs->readings || !inputs->list)
        return wm_fail_memory(err, "meter");
    for (size_t i = 0; i < 2 * count; i++)
        take_channel(inputs, i % count);
    return WM_OK;
}

/* On the choice of GPUs, and on those that do not say who they are. */
static void remark_gpus(struct wm_meter_inputs *inputs)
{
    if (wm_source_set_remark(inputs->sources))
        wm_text_list(inputs->remark, sizeof(inputs->remark), "; ", "%s",
                     wm_source_set_remark(inputs->sources));
    for (size_t i = 0; i < wm_source_set_count(inputs->sources); i++) {
        const char *left_out = wm_source_set_left_out(
            inputs->sources, wm_source_set_member(inputs->sources, i));
        if (left_out)
            wm_text_list(inputs->remark, sizeof(inputs->remark), "; ", "%s", left_out);
    }
}

/* GPUs that the sum over GPUs is without, as their power is another device's; unless
 * all are like them. */
static void leave_out_gpus(struct wm_meter_inputs *inputs)
{
    size_t counted = 0;

    for (size_t i = 0; i < inputs->count; i++)
        counted +=
            inputs->list[i].told.kind == WM_DEVICE_GPU && !inputs->list[i].is_elsewhere;
    for (size_t i = 0; i < inputs->count; i++) {
        struct wm_meter_input *input = &inputs->list[i];
        input->is_left_out = input->is_elsewhere && counted > 0;
        if (!input->is_left_out)
            continue;
        wm_text_list(inputs->remark, sizeof(inputs->remark), "; ",
                     "GPU energy leaves out %s: another device measures its power",
                     input->told.label);
    }
}

int wm_meter_inputs_open(const struct wm_meter_options *options,
                         struct wm_meter_inputs *inputs, struct wm_error *err)
{
    int status = open_sources(inputs, options, err);
    if (status == WM_OK)
        status = find_inputs(inputs, err);
    if (status < 0)
        return status;
    remark_gpus(inputs);
    leave_out_gpus(inputs);
    wm_meter_inputs_read(inputs, true);
    return WM_OK;
}

void wm_meter_inputs_close(struct wm_meter_inputs *inputs)
{
    wm_source_set_close(inputs->sources);
    free(inputs->readings);
    free(inputs->list);
}

static void watch_counter(struct wm_meter_input *input)
{
    const struct wm_reading *reading = input->counter;

    if (!reading)
        return;
    wm_sensor_pace_count(&input->pace, reading);
    if (!wm_stats_usable(reading)) {
        /* After a pause in which it may have run over a counter fails once. */
        input->has_worked = input->has_worked && input->is_counted;
        input->is_alive = input->is_counted = false;
        return;
    }
    if (input->is_counted && reading->value == input->count) {
        int64_t still_ns = reading->when_ns - input->moved_ns;
        if (still_ns > STALL_NS &&
            still_ns / STALL_PERIODS > input->counter_sensor.period_ns)
            input->is_alive = input->has_worked = false;
        return;
    }
    input->is_alive = input->is_counted;
    input->has_worked |= input->is_alive;
    input->is_counted = true;
    input->count = reading->value;
    input->moved_ns = reading->when_ns;
}

void wm_meter_inputs_read(struct wm_meter_inputs *inputs, bool is_end)
{
    inputs->when_ns = wm_source_set_begin(inputs->sources, is_end);
    wm_source_set_collect(inputs->sources, inputs->when_ns + PATIENCE_NS, inputs->when_ns,
                          inputs->readings);
    for (size_t i = 0; i < inputs->count; i++)
        watch_counter(&inputs->list[i]);
}

bool wm_meter_input_needs_power(const struct wm_meter_input *input)
{
    return input->power && !input->is_alive;
}

static bool sees_a_part(const struct wm_meter_input *input)
{
    const struct wm_sensor *sensor = &input->counter_sensor;

    return input->counter && wm_sensor_seen(sensor, (double)sensor->period_ns / 1e9) < 1;
}

bool wm_meter_inputs_need_steps(const struct wm_meter_inputs *inputs)
{
    for (size_t i = 0; i < inputs->count; i++) {
        const struct wm_meter_input *input = &inputs->list[i];
        if (wm_meter_input_needs_power(input) || sees_a_part(input))
            return true;
    }
    return false;
}
