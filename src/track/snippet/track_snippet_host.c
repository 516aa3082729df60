/* SPDX-License-Identifier: Apache-2.0 */
/* track_snippet_host.c - CPU time of the machine as a share, and its hottest CPU sensor. */
#include "track/snippet/track_snippet_host.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze_stats.h"
#include "analyze/energy/analyze_sensor.h"
#include "wattmeter/source.h"

/* A source and its readings. */
struct part {
    struct wm_source *source;
    struct wm_reading *readings;
    size_t count;
};

struct wm_meter_host {
    struct part cpu, heat;
    size_t cores;
    struct wm_reading busy;   /* from which on the CPUs' use is looked at, */
    struct wm_meter_cell use; /* and what it was before */
};

static int open_part(struct part *part, const char *name, struct wm_error *err)
{
    int status = wm_source_open(name, NULL, &part->source, err);

    if (status < 0)
        return status == WM_ENOMEM ? status : WM_OK;
    part->count = wm_source_channel_count(part->source);
    part->readings = calloc(part->count + 1, sizeof(*part->readings));
    return part->readings ? WM_OK : wm_fail(err, WM_ENOMEM, "meter: out of memory");
}

static bool read_part(struct part *part)
{
    return part->source &&
           wm_source_read(part->source, part->readings, part->count, NULL) >= 0;
}

static void close_part(struct part *part)
{
    wm_source_close(part->source);
    free(part->readings);
}

static bool is_channel(const struct part *part, size_t index, enum wm_device_kind kind,
                       const char *metric)
{
    const struct wm_channel *channel = wm_source_channel(part->source, index);

    return channel->device_kind == kind && strcmp(channel->metric, metric) == 0;
}

int wm_meter_host_open(struct wm_meter_host **ret_host, struct wm_error *err)
{
    struct wm_meter_host *host = calloc(1, sizeof(*host));
    struct wm_meter_gauges ignored;

    if (!host)
        return wm_fail(err, WM_ENOMEM, "meter: out of memory");
    int status = open_part(&host->cpu, "host", err);
    if (status == WM_OK)
        status = open_part(&host->heat, "hwmon", err);
    if (status < 0) {
        wm_meter_host_close(host);
        return status;
    }
    for (size_t i = 0; i < host->cpu.count; i++)
        host->cores += is_channel(&host->cpu, i, WM_DEVICE_CPU, "cpu_time");
    wm_meter_host_read(host, &ignored);
    *ret_host = host;
    return WM_OK;
}

void wm_meter_host_close(struct wm_meter_host *host)
{
    if (!host)
        return;
    close_part(&host->cpu);
    close_part(&host->heat);
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

static struct wm_meter_cell utilization(struct wm_meter_host *host)
{
    bool is_told = false;

    if (read_part(&host->cpu)) {
        for (size_t i = 0; i < host->cpu.count; i++) {
            const struct wm_reading *busy = &host->cpu.readings[i];
            if (!is_channel(&host->cpu, i, WM_DEVICE_HOST, "cpu_time") ||
                !wm_stats_usable(busy))
                continue;
            add_busy(host, busy, wm_source_channel(host->cpu.source, i)->period_ns);
            is_told = true;
        }
    }
    if (!is_told) {
        host->use = (struct wm_meter_cell) { 0 };
        host->busy = (struct wm_reading) { 0 };
    }
    return host->use;
}

static struct wm_meter_cell temperature(struct wm_meter_host *host)
{
    struct wm_meter_cell hottest = { 0 };

    if (!read_part(&host->heat))
        return hottest;
    for (size_t i = 0; i < host->heat.count; i++) {
        const struct wm_reading *reading = &host->heat.readings[i];
        if (!is_channel(&host->heat, i, WM_DEVICE_CPU, "temperature") ||
            !wm_stats_usable(reading))
            continue;
        if (!hottest.is_known || reading->value > hottest.value)
            hottest = (struct wm_meter_cell) { true, reading->value };
    }
    return hottest;
}

void wm_meter_host_read(struct wm_meter_host *host, struct wm_meter_gauges *ret_gauges)
{
    *ret_gauges = (struct wm_meter_gauges) {
        .utilization = utilization(host),
        .temperature = temperature(host),
    };
}
