/* SPDX-License-Identifier: Apache-2.0 */
/* made_sensor.h - sensors as they are built, looking at a made-up load: a counter that is
 * latched, power that is the mean of a window, the utilization as a driver has it. */
#ifndef WM_TEST_MADE_SENSOR_H
#define WM_TEST_MADE_SENSOR_H

#include <math.h>

#include "made_load.h"
#include "wattmeter/source.h"

static inline double normal(double deviation)
{
    return deviation * sqrt(-2 * log(1 - uniform(0, 1))) * cos(6.283185307 * uniform(0, 1));
}

static inline struct wm_reading reading(double value, double when)
{
    return (struct wm_reading) {
        .when_ns = (int64_t)((when + 100) * 1e9),
        .value = value,
        .state = WM_READING_OK,
    };
}

static inline double mean_watts(const struct load *load, double until, double seconds)
{
    return (joules_until(load, until) - joules_until(load, until - seconds)) / seconds;
}

static inline double latched(double when, double period, double phase)
{
    return floor((when - phase) / period) * period + phase;
}

struct device {
    const struct load *load;
    double busy_watts;            /* from so many on it is busy */
    double period, window, latch; /* s; the last: how often power is renewed */
    double busy_period;           /* s, of the utilization */
    double phase, busy_phase, gain, offset;
    double noise;                 /* of each power, in proportion */
    double flat_busy;             /* its utilization, if the load does not show it */
    double counted_until, joules; /* of a counter that sees a part of the time */
    struct wm_reading read;       /* of it, the last one, and when that was */
    double read_at;
};

static inline double counter_at(struct device *device, double when)
{
    double until = latched(when, device->period, device->phase);
    double joules;

    if (device->window >= device->period) {
        joules = joules_until(device->load, until) + device->offset * (until + 10);
        return floor(device->gain * joules * 1e4) / 1e4;
    }
    while (device->counted_until < until - device->period / 2) {
        device->counted_until += device->period;
        device->joules += device->period *
                          (mean_watts(device->load, device->counted_until, device->window) +
                           device->offset);
    }
    return floor(device->gain * device->joules * 1e3) / 1e3;
}

static inline double power_at(const struct device *device, double when)
{
    double until = latched(when, device->latch, device->phase);
    double watts = mean_watts(device->load, until, device->window) + device->offset;
    double noise = 1 + device->noise * sqrt(2) * sin(1e5 * until);

    return floor(fmax(device->gain * noise * watts, 0) * 1e3) / 1e3;
}

/* The part of its last period in which there was work, in percent as a driver has it. */
static inline double busy_at(const struct device *device, double when)
{
    const struct load *load = device->load;
    double until = latched(when, device->busy_period, device->busy_phase), busy = 0;
    double from = until - device->busy_period;

    if (device->flat_busy > 0)
        return floor(100 * device->flat_busy + uniform(-0.01, 0.01)) / 100;
    for (size_t i = stretch_at(load, from); i < load->count && load->from[i] < until; i++) {
        double end = i + 1 < load->count ? fmin(load->from[i + 1], until) : until;
        if (load->watts[i] >= device->busy_watts)
            busy += end - fmax(load->from[i], from);
    }
    return floor(100 * busy / device->busy_period) / 100;
}

#endif
