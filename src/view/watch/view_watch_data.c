/* SPDX-License-Identifier: Apache-2.0 */
/* view_watch_data.c - samples as series of the last seconds. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/record_read.h"
#include "record/run/record_run.h"
#include "source/source_energy.h"
#include "view/text/view_text_line.h"
#include "view/view_units.h"
#include "view/watch/view_watch_data.h"

static const char power[] = "power", total_power[] = "total_power";

/* Where nothing measures power, its estimate follows the use of the CPUs. */
static const char *const with_power[] = { power,       "gpu_use", "memory", "temperature",
                                          total_power, "cpu_use", "clocks", NULL };
static const char *const without_power[] = { "cpu_use",     "memory", power,
                                             "temperature", "clocks", NULL };

/* With more devices the sum would squeeze their lines. */
enum { SUMMANDS_BESIDE_SUM = 3 };

/* Those that people look at first get the colours that are told apart best. */
static const enum wm_device_kind colour_order[] = {
    WM_DEVICE_GPU,  WM_DEVICE_CPU,      WM_DEVICE_DRAM,     WM_DEVICE_HOST,
    WM_DEVICE_TREE, WM_DEVICE_PLATFORM, WM_DEVICE_CPU_PART, WM_DEVICE_OTHER,
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

const char *wm_watch_panel(const struct wm_watch_data *data, size_t index)
{
    for (size_t i = 0; data->panels && data->panels[i]; i++) {
        size_t at = 0;
        if (wm_watch_next(data, data->panels[i], &at) && index-- == 0)
            return data->panels[i];
    }
    return NULL;
}

struct wm_watch_series *wm_watch_next(const struct wm_watch_data *data, const char *panel,
                                      size_t *at)
{
    while (*at < data->count) {
        struct wm_watch_series *series = &data->series[(*at)++];
        if (wm_watch_is_in(data, series, panel))
            return series;
    }
    return NULL;
}

const char *wm_watch_origin(const struct wm_watch_series *series)
{
    enum wm_origin origin = series->channel ? series->channel->origin : WM_MEASURED;

    return origin == WM_ESTIMATED ? " est" : origin == WM_SIMULATED ? " sim" : "";
}

static bool is_of_device(const struct wm_watch_series *series,
                         const struct wm_watch_series *other)
{
    return series->channel && other->channel && strcmp(series->label, other->label) == 0;
}

/* The same device has the same colour in all panels. Of many GPUs one has a line, so that
 * they take turns in a few colours, which no other device has. */
static void set_colours(struct wm_watch_data *data)
{
    size_t next =
        data->gpu_count < WM_WATCH_GPU_LINES ? data->gpu_count : WM_WATCH_GPU_LINES;

    for (size_t k = 0; k < COUNT(colour_order); k++) {
        for (size_t i = 1; i < data->count; i++) {
            struct wm_watch_series *own = &data->series[i];
            size_t first = 1;
            if (own->channel->device_kind != colour_order[k])
                continue;
            while (!is_of_device(&data->series[first], own))
                first++;
            own->colour = own->channel->device_kind == WM_DEVICE_GPU
                              ? own->gpu % WM_WATCH_GPU_LINES
                          : first < i ? data->series[first].colour
                                      : next++;
        }
    }
}

static void number_gpus(struct wm_watch_data *data)
{
    for (size_t i = 1; i < data->count; i++) {
        struct wm_watch_series *own = &data->series[i];
        size_t first = 1;
        if (own->channel->device_kind != WM_DEVICE_GPU)
            continue;
        while (!is_of_device(&data->series[first], own))
            first++;
        own->gpu = first < i ? data->series[first].gpu : data->gpu_count++;
    }
}

/* A column of what is kept for each of a wide chart's, and no finer than the samples. */
static int init_line(struct wm_watch_data *data, struct wm_watch_series *series,
                     int64_t interval_ns, struct wm_error *err)
{
    enum { DOTS = 400 };
    int64_t step_ns = data->window_ns / DOTS;

    step_ns = step_ns > interval_ns ? step_ns : interval_ns;
    size_t room = (size_t)(WM_WATCH_KEPT * data->window_ns / step_ns) + 2;
    return wm_chart_line_init(&series->line, room, step_ns, err);
}

/* Its power and its energy are one, if they are of the same. */
static void pair(struct wm_watch_data *data, size_t index)
{
    struct wm_watch_series *own = &data->series[index];

    for (size_t i = 1; i < index; i++) {
        struct wm_watch_series *other = &data->series[i];
        if (is_of_device(own, other) && strcmp(own->panel, other->panel) == 0 &&
            own->channel->sensor.contains == other->channel->sensor.contains) {
            own->partner = i;
            other->partner = index;
        }
    }
    data->summands += own->partner == 0 && own->is_summed;
}

/* In the order of what is known of the machine. */
static void choose_panels(struct wm_watch_data *data)
{
    data->panels = without_power;
    for (size_t i = 1; i < data->count; i++) {
        const struct wm_channel *channel = data->series[i].channel;
        if (channel->device_kind == WM_DEVICE_GPU ||
            (data->series[i].is_summed && channel->origin != WM_ESTIMATED))
            data->panels = with_power;
    }
    data->series[0].panel =
        data->summands > SUMMANDS_BESIDE_SUM ? total_power : data->series[0].panel;
}

static void add_core(struct wm_watch_data *data, size_t place)
{
    const struct wm_channel *channel = &data->channels[place];
    struct wm_watch_core core = {
        .place = place,
        .number = channel->label + strcspn(channel->label, "0123456789"),
        .use = NAN,
    };

    if (channel->device_kind != WM_DEVICE_CPU || strcmp(channel->metric, "cpu_time") != 0)
        return;
    wm_chart_feed_init(&core.feed, channel, 1);
    core.feed.least_s = 1; /* numbers that change five times a second cannot be read */
    data->cores[data->core_count++] = core;
}

int wm_watch_data_init(struct wm_watch_data *data, const struct wm_recording *live,
                       int64_t window_ns, struct wm_error *err)
{
    const struct wm_run *run = wm_recording_run(live);
    size_t count;
    const struct wm_channel *channels = wm_recording_channels(live, &count);

    *data = (struct wm_watch_data) {
        .window_ns = window_ns,
        .count = 1,
        .channels = channels,
        .channel_count = count,
        .target = wm_chart_target(run),
        .is_of_all = wm_run_is_of_all(run),
    };
    data->series = calloc(count + 1, sizeof(*data->series));
    data->latest = calloc(count + 1, sizeof(*data->latest));
    data->cores = calloc(count + 1, sizeof(*data->cores));
    if (!data->series || !data->latest || !data->cores) {
        wm_watch_data_release(data);
        return wm_fail_memory(err, "view");
    }
    for (size_t i = 0; i < count; i++)
        data->latest[i] = NAN;
    data->series[0] = (struct wm_watch_series) {
        .label = "total",
        .panel = power,
        .feed = { .panel = power, .unit = "W" },
    };
    int status = init_line(data, &data->series[0], run->interval_ns, err);
    for (size_t i = 0; i < count && status == WM_OK; i++) {
        struct wm_watch_series *series = &data->series[data->count];
        wm_chart_feed_init(&series->feed, &channels[i], run->core_count);
        if (!series->feed.panel) {
            add_core(data, i);
            continue;
        }
        series->label = wm_chart_device(&channels[i], run);
        series->channel = &channels[i];
        series->place = i;
        series->panel = series->feed.panel;
        series->is_summed =
            strcmp(series->panel, power) == 0 && wm_energy_is_summed(channels, count, i);
        status = init_line(data, series, run->interval_ns, err);
        pair(data, data->count++);
    }
    number_gpus(data);
    set_colours(data);
    choose_panels(data);
    if (status < 0)
        wm_watch_data_release(data);
    return status;
}

void wm_watch_data_release(struct wm_watch_data *data)
{
    for (size_t i = 0; i < data->count && data->series; i++)
        wm_chart_line_release(&data->series[i].line);
    free(data->series);
    free(data->latest);
    free(data->cores);
    *data = (struct wm_watch_data) { 0 };
}

bool wm_watch_is_in(const struct wm_watch_data *data, const struct wm_watch_series *series,
                    const char *panel)
{
    const struct wm_watch_series *partner = &data->series[series->partner];

    if (strcmp(series->panel, panel) != 0)
        return false;
    if (!series->channel)
        return data->summands > 1;
    if (series->partner == 0)
        return true;
    /* Of both its power, unless there is no value of it. */
    return series->feed.is_rate ? series->has_value && !partner->has_value
                                : series->has_value || !partner->has_value;
}

static void add_sample(struct wm_watch_data *data, struct wm_watch_series *series,
                       int64_t when_ns, enum wm_reading_state state, double value)
{
    wm_chart_line_add(&series->line, when_ns, state, value);
    wm_chart_line_forget(&series->line, when_ns - (WM_WATCH_KEPT * data->window_ns));
    series->state = state == WM_READING_OK && !isfinite(value) ? WM_READING_FAILED : state;
    series->now = value;
    series->has_value = series->has_value || series->state == WM_READING_OK;
}

static void add_sum(struct wm_watch_data *data, int64_t when_ns)
{
    double sum = 0;

    for (size_t i = 1; i < data->count; i++) {
        const struct wm_watch_series *series = &data->series[i];
        if (!series->is_summed || !wm_watch_is_in(data, series, power))
            continue;
        if (series->state != WM_READING_OK) {
            add_sample(data, &data->series[0], when_ns, WM_READING_FAILED, 0);
            return;
        }
        sum += series->now;
    }
    add_sample(data, &data->series[0], when_ns, WM_READING_OK, sum);
}

static void add_core_sample(struct wm_watch_core *core, const struct wm_reading *reading)
{
    enum wm_reading_state state;
    double value;

    if (wm_chart_feed_take(&core->feed, reading, reading->when_ns, &state, &value))
        core->use = state == WM_READING_OK ? value : NAN;
}

void wm_watch_data_add(struct wm_watch_data *data, const struct wm_tick *tick)
{
    if (!data->has_sample)
        data->first_ns = tick->when_ns;
    data->has_sample = true;
    data->newest_ns = tick->when_ns - data->first_ns;
    for (size_t i = 0; i < tick->count && i < data->channel_count; i++) {
        if (tick->readings[i].state == WM_READING_OK)
            data->latest[i] = tick->readings[i].value;
    }
    for (size_t i = 1; i < data->count; i++) {
        struct wm_watch_series *series = &data->series[i];
        const struct wm_reading *reading = &tick->readings[series->place];
        bool has_own = reading->state == WM_READING_OK && reading->when_ns > data->first_ns;
        int64_t when_ns = has_own ? reading->when_ns - data->first_ns : data->newest_ns;
        enum wm_reading_state state;
        double value;
        if (wm_chart_feed_take(&series->feed, reading, when_ns, &state, &value))
            add_sample(data, series, when_ns, state, value);
    }
    for (size_t i = 0; i < data->core_count; i++)
        add_core_sample(&data->cores[i], &tick->readings[data->cores[i].place]);
    add_sum(data, data->newest_ns);
}

static void print_figure(struct wm_watch_meter *meter,
                         const struct wm_report_figure *figure)
{
    double off = fmax(figure->high - figure->value, figure->value - figure->low);
    double ratio = figure->has_range && figure->value > 0 ? off / figure->value : 0;

    if (figure->state == WM_REPORT_MISSING)
        snprintf(meter->text, sizeof(meter->text), "n/a (%s)",
                 figure->why ? figure->why : "not measured");
    else
        snprintf(meter->text, sizeof(meter->text), "%s",
                 wm_view_approximate(figure->value, ratio, figure->unit).text);
    snprintf(meter->uncertainty, sizeof(meter->uncertainty), ratio > 0 ? "± %.10s" : "%.0s",
             wm_view_percent(ratio).text);
}

void wm_watch_meter_take(struct wm_watch_meter *meter,
                         const struct wm_report_figure *figure, double seconds)
{
    double total = figure->state == WM_REPORT_MISSING ? NAN : figure->value;
    double used = total - meter->total;

    meter->state = figure->state;
    meter->seconds = seconds;
    meter->rate = !(seconds > 0) || isnan(used) ? NAN : fmax(used, 0) / seconds;
    meter->total = total;
    meter->origin = wm_line_origin(figure->origin);
    print_figure(meter, figure);
}

double wm_watch_latest(const struct wm_watch_data *data, const char *label,
                       const char *metric)
{
    for (size_t i = 0; i < data->channel_count; i++) {
        if (strcmp(data->channels[i].label, label) == 0 &&
            strcmp(data->channels[i].metric, metric) == 0)
            return data->latest[i];
    }
    return NAN;
}

struct wm_axis wm_watch_time(int64_t newest_ns, int64_t window_ns, size_t columns)
{
    double newest = (double)newest_ns / 1e9, window = (double)window_ns / 1e9;
    struct wm_axis axis = wm_axis_of_time(newest > window ? newest - window : 0, newest);
    double cell = (axis.high - axis.low) / (double)columns;

    if (axis.low > 0) { /* while it grows, every column changes anyway */
        axis.high = ceil(axis.high / cell) * cell;
        axis.low = axis.high - cell * (double)columns;
    }
    return axis;
}

bool wm_watch_values(const struct wm_watch_data *data, const char *panel,
                     const struct wm_axis *time, bool fits, struct wm_axis *ret_values)
{
    double least = INFINITY, greatest = -INFINITY, low, high;
    const char *unit = NULL;

    for (size_t i = 0; i < data->count; i++) {
        const struct wm_watch_series *series = &data->series[i];
        if (series->is_hidden || !wm_watch_is_in(data, series, panel) ||
            !wm_chart_line_range(&series->line, (int64_t)(time->low * 1e9),
                                 (int64_t)(time->high * 1e9), &low, &high))
            continue;
        least = fmin(least, low);
        greatest = fmax(greatest, high);
        unit = series->feed.unit;
    }
    if (!unit)
        return false;
    *ret_values = wm_chart_panel_axis(least, greatest, unit, fits);
    return true;
}
