/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_channel_old.c - the sensors of recordings that do not describe them.
 *
 * Before channels had their sensors' facts beside them the analysis took these from the
 * names of source and model, and from the sentence that a source says of itself for
 * people. This does the same, so that such recordings keep their figures. Nothing here
 * is to change: a new sensor describes itself in its source.
 */
#include <fnmatch.h>
#include <math.h>
#include <string.h>

#include "base/text/base_number.h"
#include "record/record_channel.h"
#include "source/gpu/nvml/source_nvml_power.h"
#include "source/source_energy.h"

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

static const struct {
    const char *source;
    enum wm_sensor_kind kind;
} kinds[] = {
    { "rapl", WM_SENSOR_BUILT_IN },     { "nvml", WM_SENSOR_BUILT_IN },
    { "drm", WM_SENSOR_BUILT_IN },      { "hwmon", WM_SENSOR_BOARD },
    { "aipowermeter", WM_SENSOR_TOOL }, { "meter", WM_SENSOR_METER },
    { "estimate", WM_SENSOR_MODEL },    { "battery", WM_SENSOR_BATTERY },
};

static enum wm_sensor_kind kind_of(const char *source)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (strcmp(kinds[i].source, source) == 0)
            return kinds[i].kind;
    }
    return WM_SENSOR_UNKNOWN;
}

#define BOARD_TEXT "a sensor of the board"

/* By source, kind of device and pattern of the model; of the rest nothing was known. */
static const struct {
    const char *source;
    enum wm_device_kind kind;
    const char *model;
    double gain, offset;
    const char *text;
} known[] = {
    { "rapl", WM_DEVICE_CPU, "*Intel*", 0.05, 0, "RAPL, Intel: measured since Haswell" },
    { "rapl", WM_DEVICE_CPU, "*", 0.10, 0, "RAPL, of a model of the CPU" },
    { "rapl", WM_DEVICE_CPU_PART, "*", 0.10, 0, "RAPL, a part of a CPU" },
    { "rapl", WM_DEVICE_DRAM, "*", 0.20, 0, "RAPL, memory" },
    { "rapl", WM_DEVICE_PLATFORM, "*", 0.10, 0, "RAPL, platform" },
    { "drm", WM_DEVICE_GPU, "*", 0.10, 0, "the GPU's own sensor" },
    { "drm", WM_DEVICE_OTHER, "*", 0.10, 0, "the sensor of CPU and GPU together" },
    { "hwmon", WM_DEVICE_CPU, "*", 0.10, 0, BOARD_TEXT },
    { "hwmon", WM_DEVICE_CPU_PART, "*", 0.10, 0, BOARD_TEXT },
    { "hwmon", WM_DEVICE_DRAM, "*", 0.10, 0, BOARD_TEXT },
    { "hwmon", WM_DEVICE_PLATFORM, "*", 0.10, 0, BOARD_TEXT },
    { "hwmon", WM_DEVICE_OTHER, "*", 0.10, 0, BOARD_TEXT },
    { "aipowermeter", WM_DEVICE_GPU, "*", 0.07, 11, "a GPU that AIPowerMeter read" },
    { "battery", WM_DEVICE_PLATFORM, "*", 0.10, 0, "the battery's own gauge" },
    { "meter", WM_DEVICE_PLATFORM, "*", 0.02, 0, "an external meter" },
};

static void find_known(const struct wm_channel *channel, struct wm_sensor *sensor)
{
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (strcmp(known[i].source, channel->source) != 0 ||
            known[i].kind != channel->device_kind ||
            fnmatch(known[i].model, channel->model ? channel->model : "", 0) != 0)
            continue;
        sensor->gain = known[i].gain;
        sensor->offset = known[i].offset;
        sensor->text = known[i].text;
        return;
    }
}

/* As source_nvml_power.c names the call whose meaning depends on the board. */
#define OLDER_CALL "power by nvmlDeviceGetPowerUsage"
#define OTHER_FIELDS ", averages of the whole module"

/* Whether a list such as "gpu1 gpu3)" has the label. */
static bool has_label(const char *list, const char *label)
{
    size_t length = strlen(label);

    for (;;) {
        size_t word = strcspn(list, " )");
        if (word == length && strncmp(list, label, length) == 0)
            return true;
        if (list[word] != ' ')
            return false;
        list += word + 1;
    }
}

/* Where the boards differ their labels stand behind the call: "power by POWER_INSTANT
 * (gpu0), power by nvmlDeviceGetPowerUsage (gpu1)". */
static bool uses_older_call(const char *detail, const char *label)
{
    const char *at = detail;

    while (at && (at = strstr(at, OLDER_CALL)) != NULL) {
        at += strlen(OLDER_CALL);
        if (strncmp(at, OTHER_FIELDS, strlen(OTHER_FIELDS)) == 0)
            at += strlen(OTHER_FIELDS);
        if (strncmp(at, " (", 2) != 0 || has_label(at + 2, label))
            return true;
    }
    return false;
}

/* As source_hwmon.c names the sensors that report the power of a moment. */
#define SAMPLES "samples ("

static bool is_sample(const struct wm_channel *channel, const char *detail)
{
    const char *list =
        detail && strcmp(channel->source, "hwmon") == 0 && channel->kind == WM_GAUGE
            ? strstr(detail, SAMPLES)
            : NULL;

    return list && has_label(list + strlen(SAMPLES), channel->label);
}

static bool number_before(const char *text, const char *end, double *ret_number)
{
    const char *begin = end;

    while (begin > text && strchr("0123456789.+e", begin[-1]))
        begin--;
    return wm_number_parse(begin, (size_t)(end - begin), ret_number);
}

/* As source_estimate.c and its model name them: "10 to 65 W by load", "4 vCPU x 0.74-3.50 W
 * by load", "memory 15.6 GiB x 0.3725 W". */
static double most_of_model(enum wm_device_kind kind, const char *detail)
{
    const char *units = kind == WM_DEVICE_CPU ? " vCPU x " : " GiB x ";
    const char *watts = kind == WM_DEVICE_CPU ? " W by load" : " W, Green Algorithms";
    const char *at = detail ? strstr(detail, units) : NULL;
    const char *end = detail ? strstr(detail, watts) : NULL;
    double each, count = 1;

    if (!end || !number_before(detail, end, &each))
        return 0;
    if (at && at < end && !number_before(detail, at, &count))
        return 0;
    return fmax(each * count, 0);
}

/* The time over which a sensor of a board measures, where it does not say. */
#define SAMPLE_S 0.001

struct wm_sensor wm_channel_old_sensor(const struct wm_channel *channel, const char *detail)
{
    struct wm_sensor sensor = { .kind = kind_of(channel->source) };
    bool is_gauge = channel->kind == WM_GAUGE;

    if (channel->origin == WM_SIMULATED)
        return sensor;
    if (channel->origin == WM_ESTIMATED) {
        sensor.range = most_of_model(channel->device_kind, detail);
        return sensor;
    }
    if (strcmp(channel->source, "nvml") == 0)
        return nvml_sensor(channel->model ? channel->model : "",
                           is_gauge && uses_older_call(detail, channel->label));
    find_known(channel, &sensor);
    if (is_sample(channel, detail)) {
        sensor.is_sample = true;
        sensor.window_s =
            channel->period_ns > 0 ? (double)channel->period_ns / 1e9 : SAMPLE_S;
        sensor.text = BOARD_TEXT " that reports instantaneous power";
    }
    return sensor;
}

static enum wm_contains contains_of(const struct wm_channel *channel)
{
    bool is_module =
        strcmp(channel->source, "hwmon") == 0 && strncmp(channel->label, "module", 6) == 0;

    if (channel->device_kind == WM_DEVICE_PLATFORM)
        return is_module ? WM_CONTAINS_MODULE : WM_CONTAINS_PLATFORM;
    return channel->device_kind == WM_DEVICE_CPU && strcmp(channel->source, "rapl") == 0
               ? WM_CONTAINS_PACKAGE
               : WM_CONTAINS_DEVICE;
}

/* Older versions recorded the power of an integrated GPU as that of an unknown sensor. */
static bool is_of_processor(const struct wm_channel *channel)
{
    return channel->device_kind == WM_DEVICE_OTHER && strcmp(channel->source, "drm") == 0 &&
           strcmp(channel->metric, "power") == 0;
}

static void move_into_processor(struct wm_channel *channels, size_t count,
                                struct wm_channel *power)
{
    power->device_kind = WM_DEVICE_CPU;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(channels[i].source, power->source) == 0 &&
            strcmp(channels[i].device, power->device) == 0)
            channels[i].sensor.contains = WM_CONTAINS_PACKAGE;
    }
}

void wm_channel_old_contains(struct wm_channel *channels, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct wm_channel *channel = &channels[i];
        if (wm_channel_is_energy(channel) && channel->sensor.contains == WM_CONTAINS_DEVICE)
            channel->sensor.contains = contains_of(channel);
    }
    for (size_t i = 0; i < count; i++) {
        if (is_of_processor(&channels[i]))
            move_into_processor(channels, count, &channels[i]);
    }
}
