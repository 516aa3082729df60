/* SPDX-License-Identifier: Apache-2.0 */
/* view_feed.c - what a chart shows of a channel. */
#include "view/chart/view_feed.h"

#include <math.h>
#include <string.h>

#include "source/source_energy.h"

/* The kernel counts the CPU time of the machine in such steps. The last tick of a run may
 * come sooner after the one before. */
#define CPU_STEP_S 0.01

/* The panel that a channel belongs to. */
struct rule {
    const char *metric;
    const char *panel;
    bool is_of_device; /* whatever the label; else the host's and the tree's alone */
};

static const struct rule rules[] = {
    { "power", "power", true },
    { "energy", "power", true },
    { "utilization", "gpu_use", true },
    { "cpu_time", "cpu_use", false },
    { "memory_used", "memory", true },
    { "memory_total", "memory", false },
    { "temperature", "temperature", true },
    { "clock_graphics", "clocks", true },
};

static bool is_same(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

const char *wm_chart_target(const struct wm_run *run)
{
    if (wm_run_is_of_all(run))
        return WM_RUN_OF_ALL;
    return run->mode && !is_same(run->mode, "run") ? "process" : "command";
}

const char *wm_chart_device(const struct wm_channel *channel, const struct wm_run *run)
{
    if (channel->device_kind == WM_DEVICE_HOST)
        return "machine";
    bool is_tree = /* the others are its parts */
        channel->device_kind == WM_DEVICE_TREE && is_same(channel->label, "tree");
    return is_tree ? wm_chart_target(run) : channel->label;
}

const char *wm_chart_heading(const char *panel)
{
    static const char *const headings[][2] = {
        { "power", "Power" },     { "gpu_use", "GPU use" },
        { "cpu_use", "CPU use" }, { "utilization", "Utilisation" },
        { "memory", "Memory" },   { "temperature", "Temperature" },
        { "clocks", "Clocks" },   { "total_power", "Total power" },
    };

    for (size_t i = 0; i < sizeof(headings) / sizeof(headings[0]); i++) {
        if (is_same(headings[i][0], panel))
            return headings[i][1];
    }
    return panel;
}

/* The memory of the host that is there is none that is used; a part of a package is in it
 * already. */
static const char *panel_of(const struct wm_channel *channel)
{
    bool is_tree =
        channel->device_kind == WM_DEVICE_TREE && is_same(channel->label, "tree");
    bool is_host_cpu =
        channel->device_kind == WM_DEVICE_HOST && is_same(channel->metric, "cpu_time");

    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        if (!is_same(rules[i].metric, channel->metric) ||
            channel->device_kind == WM_DEVICE_CPU_PART)
            continue;
        bool is_one = rules[i].is_of_device ? channel->device_kind != WM_DEVICE_TREE
                                            : is_tree || is_host_cpu;
        if (is_one)
            return rules[i].panel;
    }
    bool is_of_gpu = channel->device_kind == WM_DEVICE_GPU; /* one clock of its four */
    return is_same(channel->unit, "Hz") && !is_of_gpu ? "clocks" : NULL;
}

void wm_chart_feed_init(struct wm_chart_feed *feed, const struct wm_channel *channel,
                        double core_count)
{
    *feed = (struct wm_chart_feed) { .panel = panel_of(channel),
                                     .unit = channel->unit,
                                     .is_rate = channel->kind == WM_COUNTER };
    if (!feed->is_rate)
        return;
    /* Two samples closer than three updates of the sensor say little of a rate. */
    feed->least_s = WM_SENSOR_PERIODS * (double)channel->period_ns / 1e9;
    if (is_same(channel->unit, "J")) {
        feed->unit = "W";
        feed->stride.most = wm_energy_modelled_watts(&channel->sensor);
    } else if (is_same(channel->metric, "cpu_time")) {
        feed->unit = "ratio";
        feed->stride.most = channel->device_kind == WM_DEVICE_CPU ? 1 : core_count;
        feed->least_s = fmax(feed->least_s, CPU_STEP_S);
    } else {
        feed->unit = "count";
    }
}

void wm_chart_feed_init_total(struct wm_chart_feed *feed, const struct wm_channel *channel)
{
    *feed = (struct wm_chart_feed) { .unit = channel->unit, .is_total = true };
}

/* A counter that was set back goes on from where it was. */
static double total_of(struct wm_chart_feed *feed, double value)
{
    if (!feed->has_last)
        feed->before = value;
    else if (value < feed->last)
        feed->before -= feed->last - value;
    feed->has_last = true;
    feed->last = value;
    return value - feed->before;
}

bool wm_chart_feed_take(struct wm_chart_feed *feed, const struct wm_reading *reading,
                        int64_t when_ns, enum wm_reading_state *ret_state,
                        double *ret_value)
{
    enum wm_reading_state state = reading->state;
    double value = reading->value;

    if (feed->is_rate && state == WM_READING_OK) {
        struct wm_known rate = wm_stride_rate(&feed->stride, when_ns, value, feed->least_s);
        if (!rate.known)
            return false;
        value = rate.number;
        /* A total that was set back says nothing of the time before. */
        if (value < 0)
            state = WM_READING_FAILED;
    }
    if (feed->is_total && state == WM_READING_OK)
        value = total_of(feed, value);
    *ret_state = state;
    *ret_value = value;
    return true;
}
