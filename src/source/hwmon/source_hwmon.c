/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_hwmon.c - CPU temperature, power and energy from the sensors that the
 * kernel has drivers for, in the hwmon class of sysfs and in its thermal zones.
 *
 * GPUs have sensors there too; those are the source drm's.
 */
#include "source/hwmon/source_hwmon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "source/source_ops.h"

static const struct {
    const char *metric, *unit;
    enum wm_kind kind;
} metrics[] = {
    [WM_HWMON_TEMPERATURE] = { "temperature", "celsius", WM_GAUGE },
    [WM_HWMON_POWER] = { "power", "W", WM_GAUGE },
    [WM_HWMON_ENERGY] = { "energy", "J", WM_COUNTER },
    [WM_HWMON_PRODUCT] = { "power", "W", WM_GAUGE },
};

struct hwmon {
    struct wm_hwmon_sensors temperatures, powers;
    struct wm_channel *channels; /* of the temperatures, and then of the others */
    char detail[2048];
};

static size_t count_sensors(const struct hwmon *hwmon)
{
    return hwmon->temperatures.count + hwmon->powers.count;
}

static struct wm_hwmon_sensor *sensor_at(const struct hwmon *hwmon, size_t index)
{
    size_t temperatures = hwmon->temperatures.count;

    return index < temperatures ? &hwmon->temperatures.list[index]
                                : &hwmon->powers.list[index - temperatures];
}

/* At k = 2: our assumption. */
#define GAIN 0.10

/* The moment that a sensor takes to look, where its driver does not say. */
#define SAMPLE_S 1e-3

static struct wm_sensor sensor_facts(const struct wm_hwmon_sensor *sensor)
{
    struct wm_sensor facts = {
        .kind = WM_SENSOR_BOARD,
        .gain = GAIN,
        .step = sensor->quantity == WM_HWMON_PRODUCT ? 0 : 1e-6, /* as the files are */
        .text = "a sensor of the board",
    };

    if (sensor->quantity == WM_HWMON_TEMPERATURE)
        return (struct wm_sensor) { 0 };
    if (sensor->is_sample) {
        facts.is_sample = true;
        facts.window_s = sensor->period_ns > 0 ? (double)sensor->period_ns / 1e9 : SAMPLE_S;
        facts.text = "a sensor of the board that tells the power of a moment";
    }
    return facts;
}

static int make_channels(struct hwmon *hwmon, struct wm_error *err)
{
    size_t count = count_sensors(hwmon);

    hwmon->channels = calloc(count, sizeof(*hwmon->channels));
    if (!hwmon->channels)
        return wm_fail(err, WM_ENOMEM, "hwmon: out of memory");
    for (size_t i = 0; i < count; i++) {
        const struct wm_hwmon_sensor *sensor = sensor_at(hwmon, i);
        hwmon->channels[i] = (struct wm_channel) {
            .source = wm_source_hwmon.name,
            .device = sensor->identity,
            .label = sensor->label,
            .metric = metrics[sensor->quantity].metric,
            .unit = metrics[sensor->quantity].unit,
            .device_kind = sensor->device_kind,
            .kind = metrics[sensor->quantity].kind,
            .period_ns = sensor->period_ns,
            .sensor = sensor_facts(sensor),
        };
    }
    return WM_OK;
}

/* Which sensors see one moment of the time only. */
static void add_samples(struct hwmon *hwmon)
{
    size_t used = strlen(hwmon->detail);
    const char *before = "; samples (";

    for (size_t i = 0; i < hwmon->powers.count; i++) {
        const struct wm_hwmon_sensor *sensor = &hwmon->powers.list[i];
        if (!sensor->is_sample ||
            used + strlen(before) + strlen(sensor->label) + 2 > sizeof(hwmon->detail))
            continue;
        used += (size_t)snprintf(hwmon->detail + used, sizeof(hwmon->detail) - used, "%s%s",
                                 before, sensor->label);
        before = " ";
    }
    if (before[0] == ' ')
        snprintf(hwmon->detail + used, sizeof(hwmon->detail) - used, ")");
}

static int hwmon_open(void *state, const struct wm_source_config *config,
                      struct wm_error *err)
{
    struct hwmon *hwmon = state;

    int status = wm_hwmon_find_temperatures(&hwmon->temperatures, config->sysfs, err);
    if (status == WM_OK)
        status = wm_hwmon_find_power(&hwmon->powers, config->sysfs, err);
    if (status < 0)
        return status;
    if (count_sensors(hwmon) == 0)
        return wm_fail(err, WM_ENODEV,
                       "no CPU temperature sensor, and none of power: looked in "
                       "%s/class/hwmon and thermal (virtual machines have none)",
                       config->sysfs);

    status = make_channels(hwmon, err);
    if (status < 0)
        return status;
    snprintf(hwmon->detail, sizeof(hwmon->detail), "%s%s", sensor_at(hwmon, 0)->path,
             count_sensors(hwmon) > 1 ? " and others" : "");
    add_samples(hwmon);
    return WM_OK;
}

static size_t hwmon_get_channels(const void *state, const struct wm_channel **ret_channels)
{
    const struct hwmon *hwmon = state;

    *ret_channels = hwmon->channels;
    return count_sensors(hwmon);
}

static int hwmon_read(void *state, struct wm_reading *readings, struct wm_error *err)
{
    struct hwmon *hwmon = state;
    (void)err; /* whatever fails here fails for one channel */

    for (size_t i = 0; i < count_sensors(hwmon); i++)
        wm_hwmon_read(sensor_at(hwmon, i), &readings[i]);
    return WM_OK;
}

static const char *hwmon_why(const void *state, size_t channel)
{
    const struct hwmon *hwmon = state;
    const struct wm_hwmon_sensor *sensor = sensor_at(hwmon, channel);

    return sensor->failed ? sensor->err.text : NULL;
}

static const char *hwmon_detail(const void *state)
{
    const struct hwmon *hwmon = state;
    return hwmon->detail;
}

static void release_sensors(struct wm_hwmon_sensors *sensors)
{
    while (sensors->count > 0)
        wm_hwmon_drop_last(sensors);
    free(sensors->list);
}

static void hwmon_close(void *state)
{
    struct hwmon *hwmon = state;

    release_sensors(&hwmon->temperatures);
    release_sensors(&hwmon->powers);
    free(hwmon->channels);
}

static const struct wm_source_file files[] = {
    { WM_SOURCE_FILE, "class/hwmon/hwmon*/temp*_input" },
    { WM_SOURCE_COUNTER, "class/hwmon/hwmon*/energy*_input" },
    { WM_SOURCE_COUNTER, "class/hwmon/hwmon*/power*_input" },
    { WM_SOURCE_COUNTER, "class/hwmon/hwmon*/power*_average" },
    { WM_SOURCE_COUNTER, "class/hwmon/hwmon*/device/power*_average" },
    { 0 },
};

const struct wm_source_ops wm_source_hwmon = {
    .name = "hwmon",
    .summary = "CPU temperature, and power and energy sensors, from hwmon",
    .traits = { .energy_rank = WM_ENERGY_SENSORS },
    .files = files,
    .state_size = sizeof(struct hwmon),
    .open = hwmon_open,
    .channels = hwmon_get_channels,
    .read = hwmon_read,
    .why = hwmon_why,
    .detail = hwmon_detail,
    .close = hwmon_close,
};
