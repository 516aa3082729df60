/* SPDX-License-Identifier: Apache-2.0 */
/* test_sensor.h - what each source has to say of its sensors, in one table. Made-up
 * channels get their sensors from it, too. */
#ifndef WM_TEST_SENSOR_H
#define WM_TEST_SENSOR_H

#include <fnmatch.h>
#include <math.h>
#include <string.h>

#include "record/record_channel.h"
#include "source/gpu/nvml/source_nvml_power.h"
#include "test.h"

#define TEST_BOARD_TEXT "a sensor of the board"

/* By source, kind of device and pattern of the model. */
static const struct {
    const char *source;
    enum wm_device_kind kind;
    const char *model;
    enum wm_sensor_kind is;
    double gain;
    const char *text;
} wm_test_sensors[] = {
    { "rapl", WM_DEVICE_CPU, "*Intel*", WM_SENSOR_BUILT_IN, 0.05,
      "RAPL, Intel: measured since Haswell" },
    { "rapl", WM_DEVICE_CPU, "*", WM_SENSOR_BUILT_IN, 0.10, "RAPL, of a model of the CPU" },
    { "rapl", WM_DEVICE_CPU_PART, "*", WM_SENSOR_BUILT_IN, 0.10, "RAPL, a part of a CPU" },
    { "rapl", WM_DEVICE_DRAM, "*", WM_SENSOR_BUILT_IN, 0.20, "RAPL, memory" },
    { "rapl", WM_DEVICE_PLATFORM, "*", WM_SENSOR_BUILT_IN, 0.10, "RAPL, platform" },
    { "drm", WM_DEVICE_GPU, "*", WM_SENSOR_BUILT_IN, 0.10, "the GPU's own sensor" },
    { "drm", WM_DEVICE_OTHER, "*", WM_SENSOR_BUILT_IN, 0.10,
      "the sensor of CPU and GPU together" },
    { "hwmon", WM_DEVICE_CPU, "*", WM_SENSOR_BOARD, 0.10, TEST_BOARD_TEXT },
    { "hwmon", WM_DEVICE_CPU_PART, "*", WM_SENSOR_BOARD, 0.10, TEST_BOARD_TEXT },
    { "hwmon", WM_DEVICE_DRAM, "*", WM_SENSOR_BOARD, 0.10, TEST_BOARD_TEXT },
    { "hwmon", WM_DEVICE_PLATFORM, "*", WM_SENSOR_BOARD, 0.10, TEST_BOARD_TEXT },
    { "hwmon", WM_DEVICE_OTHER, "*", WM_SENSOR_BOARD, 0.10, TEST_BOARD_TEXT },
    { "battery", WM_DEVICE_PLATFORM, "*", WM_SENSOR_BATTERY, 0.10,
      "the battery's own gauge" },
    { "estimate", WM_DEVICE_CPU, "*", WM_SENSOR_MODEL, 0.50, "a model, not a sensor" },
    { "estimate", WM_DEVICE_DRAM, "*", WM_SENSOR_MODEL, 0.50, "a model, not a sensor" },
};

/* `is_usage`: power by NVML's older call, whose meaning depends on the board. */
static inline struct wm_sensor test_sensor(const struct wm_channel *channel, bool is_usage)
{
    const char *model = channel->model ? channel->model : "";

    if (channel->origin == WM_SIMULATED)
        return (struct wm_sensor) { .kind = WM_SENSOR_BUILT_IN };
    if (strcmp(channel->source, "nvml") == 0)
        return nvml_sensor(model, is_usage && channel->kind == WM_GAUGE);
    for (size_t i = 0; i < ARRAY_LEN(wm_test_sensors); i++) {
        if (strcmp(wm_test_sensors[i].source, channel->source) == 0 &&
            wm_test_sensors[i].kind == channel->device_kind &&
            fnmatch(wm_test_sensors[i].model, model, 0) == 0)
            return (struct wm_sensor) { .kind = wm_test_sensors[i].is,
                                        .gain = wm_test_sensors[i].gain,
                                        .text = wm_test_sensors[i].text };
    }
    return (struct wm_sensor) { 0 };
}

static inline void assert_described(const struct wm_channel *channel)
{
    const struct wm_sensor *sensor = &channel->sensor;
    struct wm_sensor expected = test_sensor(channel, false);

    if (strcmp(channel->metric, "energy") != 0 && strcmp(channel->metric, "power") != 0) {
        assert_int_equal(sensor->is_sample, false);
        return;
    }
    if (sensor->is_sample && strcmp(channel->source, "hwmon") == 0) {
        assert_true(sensor->window_s ==
                    (channel->period_ns > 0 ? (double)channel->period_ns / 1e9 : 0.001));
        expected.text = TEST_BOARD_TEXT " that reports instantaneous power";
    }
    assert_int_equal(sensor->kind, expected.kind);
    assert_true(sensor->gain == expected.gain && sensor->offset == expected.offset);
    if (strcmp(channel->source, "nvml") != 0)
        assert_string_equal(sensor->text ? sensor->text : "", expected.text);
}

#endif
