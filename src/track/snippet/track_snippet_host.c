/* SPDX-License-Identifier: Apache-2.0 */
/* track_snippet_host.c - CPU time of the machine as a share, and its hottest CPU sensor. */
#include "track/snippet/track_snippet_host.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze_stats.h"
#include "analyze/energy/analyze_sensor.h"
#include "source/source_set.h"

struct wm_meter_host {
    struct wm_source_set *sources;
    struct wm_reading *readings;
    size_t cores;
    struct wm_reading busy;   /* from which on the CPUs' use is looked at, */
    struct wm_meter_cell use; /* and what it was before */
};

static bool is_channel(const struct wm_channel *channel, enum wm_device_kind kind,
                       const char *metric)
{
    return channel->device_kind == kind && strcmp(channel->metric, metric) == 0;
}

static int open_sources(struct wm_meter_host *host, struct wm_error *err)
{
    static const char *const names[] = { "host", "hwmon" };
    const struct wm_source_config config = { 0 };

    int status = wm_source_set_new(&config, 0, &host->sources, err);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && status == WM_OK; i++) {
        status = wm_source_set_open(host->sources, names[i], err);
        if (status != WM_ENOMEM)
            status = WM_OK;
    }
    if (status < 0)
        return status;
    host->readings =
        calloc(wm_source_set_channel_count(host->sources) + 1, sizeof(*host->readings));
    return host->readings ? WM_OK : wm_fail(err, WM_ENOMEM, "meter: out of memory");
}

int wm_meter_host_open(struct wm_meter_host **ret_host, struct wm_error *err)
{
    struct wm_meter_host *host = calloc(1, sizeof(*host));
    struct wm_meter_gauges ignored;

    if (!host)
        return wm_fail(err, WM_ENOMEM, "meter: out of memory");
    int status = open_sources(host, err);
    if (status < 0) {
        wm_meter_host_close(host);
        return status;
    }
    for (size_t i = 0; i < wm_source_set_channel_count(host->sources); i++)
        host->cores +=
            is_channel(wm_source_set_channel(host->sources, i), WM_DEVICE_CPU, "cpu_time");
    wm_meter_host_read(host, &ignored);
    *ret_host = host;
    return WM_OK;
}

void wm_meter_host_close(struct wm_meter_host *host)
{
    if (!host)
        return;
    wm_source_set_close(host->sources);
    free(host->readings);
    free(host);
}

/* The kernel counts in steps of 10 ms, and a few of them make no rate: what was found over
 * the last three holds until there are three more. */
static void add_busy(struct wm_meter_host *host, const struct wm_reading *busy,
                     int64_t period_ns)
{
    double seconds = wm_stats_seconds(host->busy.when_ns, busy->when_ns);
    bool was_known = wm_stats_usable(&host->busy);

    if (was_known && seconds < WM_SENSOR_PERIODS * (double)period_ns / 1e9)
        return;
    if (was_known && seconds > 0 && host->cores > 0) {
        double ratio = (busy->value - host->busy.value) / seconds / (double)host->cores;
        host->use = (struct wm_meter_cell) { true, fmin(fmax(ratio, 0), 1) };
    }
    host->busy = *busy;
}

static void heat_up(struct wm_meter_cell *hottest, const struct wm_reading *reading)
{
    if (!hottest->is_known || reading->value > hottest->value)
        *hottest = (struct wm_meter_cell) { true, reading->value };
}

void wm_meter_host_read(struct wm_meter_host *host, struct wm_meter_gauges *ret_gauges)
{
    struct wm_meter_cell hottest = { 0 };
    bool is_busy_told = false;

    wm_source_set_begin(host->sources);
    wm_source_set_collect(host->sources, 0, 0, host->readings);
    for (size_t i = 0; i < wm_source_set_channel_count(host->sources); i++) {
        const struct wm_channel *channel = wm_source_set_channel(host->sources, i);
        const struct wm_reading *reading = &host->readings[i];
        if (!wm_stats_usable(reading))
            continue;
        if (is_channel(channel, WM_DEVICE_CPU, "temperature"))
            heat_up(&hottest, reading);
        if (!is_channel(channel, WM_DEVICE_HOST, "cpu_time"))
            continue;
        add_busy(host, reading, channel->period_ns);
        is_busy_told = true;
    }
    if (!is_busy_told) {
        host->use = (struct wm_meter_cell) { 0 };
        host->busy = (struct wm_reading) { 0 };
    }
    *ret_gauges = (struct wm_meter_gauges) {
        .utilization = host->use,
        .temperature = hottest,
    };
}
