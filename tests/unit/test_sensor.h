/* SPDX-License-Identifier: Apache-2.0 */
/* test_sensor.h - what sources say of their sensors, beside what a recording without it is
 * taken to have been made with: the figures must be the same. */
#ifndef WM_TEST_SENSOR_H
#define WM_TEST_SENSOR_H

#include <math.h>
#include <string.h>

#include "record/record_channel.h"
#include "test.h"

static inline void assert_described(const struct wm_channel *channel, const char *detail)
{
    const struct wm_sensor *sensor = &channel->sensor;
    struct wm_sensor old = wm_channel_old_sensor(channel, detail);
    int64_t period_ns = sensor->period_ns ? sensor->period_ns : channel->period_ns;

    if (strcmp(channel->metric, "energy") != 0 && strcmp(channel->metric, "power") != 0) {
        assert_int_equal(sensor->is_sample, false);
        return;
    }
    assert_int_equal(sensor->kind, old.kind);
    assert_int_equal(period_ns, old.period_ns ? old.period_ns : channel->period_ns);
    /* What a power of hwmon beside a GPU is of was not known. */
    if (strcmp(channel->source, "drm") != 0) {
        assert_true(sensor->window_s == old.window_s);
        assert_int_equal(sensor->is_sample, old.is_sample);
    }
    if (channel->origin == WM_ESTIMATED) {
        assert_true(sensor->gain == 0.5);
        assert_true(fabs(sensor->range - old.range) <= 0.01 * old.range);
        return;
    }
    assert_true(sensor->gain == old.gain && sensor->offset == old.offset);
    assert_string_equal(sensor->text ? sensor->text : "", old.text ? old.text : "");
}

#endif
