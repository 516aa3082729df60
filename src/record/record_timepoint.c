/* SPDX-License-Identifier: Apache-2.0 */
/* record_timepoint.c - gpu_tracker's 21 measurements of a tick, and what it keeps of the
 * machine. */
#include "record/record_timepoint.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "record/record_stats.h"
#include "record/run/record_run.h"

#define NO_CHANNEL ((size_t)-1)

const char *const wm_timepoint_columns[WM_TIMEPOINT_COLUMNS] = {
    [WM_MAIN_RAM] = "main_ram",
    [WM_DESCENDANTS_RAM] = "descendants_ram",
    [WM_COMBINED_RAM] = "combined_ram",
    [WM_SYSTEM_RAM] = "system_ram",
    [WM_MAIN_GPU_RAM] = "main_gpu_ram",
    [WM_DESCENDANTS_GPU_RAM] = "descendants_gpu_ram",
    [WM_COMBINED_GPU_RAM] = "combined_gpu_ram",
    [WM_SYSTEM_GPU_RAM] = "system_gpu_ram",
    [WM_GPU_SUM_UTILIZATION] = "gpu_sum_utilization_percent",
    [WM_GPU_HARDWARE_UTILIZATION] = "gpu_hardware_utilization_percent",
    [WM_MAIN_THREADS] = "main_n_threads",
    [WM_DESCENDANTS_THREADS] = "descendants_n_threads",
    [WM_COMBINED_THREADS] = "combined_n_threads",
    [WM_CPU_SYSTEM_SUM] = "cpu_system_sum_utilization_percent",
    [WM_CPU_SYSTEM_HARDWARE] = "cpu_system_hardware_utilization_percent",
    [WM_CPU_MAIN_SUM] = "cpu_main_sum_utilization_percent",
    [WM_CPU_MAIN_HARDWARE] = "cpu_main_hardware_utilization_percent",
    [WM_CPU_DESCENDANTS_SUM] = "cpu_descendants_sum_utilization_percent",
    [WM_CPU_DESCENDANTS_HARDWARE] = "cpu_descendants_hardware_utilization_percent",
    [WM_CPU_COMBINED_SUM] = "cpu_combined_sum_utilization_percent",
    [WM_CPU_COMBINED_HARDWARE] = "cpu_combined_hardware_utilization_percent",
    [WM_TIMESTAMP] = "timestamp",
};

/* Measurements that are the value of one channel. */
static const struct gauge {
    enum wm_measurement measurement;
    enum wm_device_kind device_kind;
    const char *label;
    const char *metric;
} gauges[] = {
    { WM_MAIN_RAM, WM_DEVICE_TREE, "main", "memory_total" },
    { WM_DESCENDANTS_RAM, WM_DEVICE_TREE, "descendants", "memory_total" },
    { WM_COMBINED_RAM, WM_DEVICE_TREE, "tree", "memory_total" },
    { WM_SYSTEM_RAM, WM_DEVICE_HOST, "host", "memory_used" },
    { WM_MAIN_GPU_RAM, WM_DEVICE_TREE, "main", "gpu_memory" },
    { WM_DESCENDANTS_GPU_RAM, WM_DEVICE_TREE, "descendants", "gpu_memory" },
    { WM_COMBINED_GPU_RAM, WM_DEVICE_TREE, "tree", "gpu_memory" },
    { WM_MAIN_THREADS, WM_DEVICE_TREE, "main", "threads" },
    { WM_DESCENDANTS_THREADS, WM_DEVICE_TREE, "descendants", "threads" },
    { WM_COMBINED_THREADS, WM_DEVICE_TREE, "tree", "threads" },
};

/* Measurements that are the speed of a counter of CPU time. */
static const struct cpu {
    enum wm_measurement sum, hardware;
    enum wm_device_kind device_kind;
    const char *label;
} cpus[] = {
    { WM_CPU_SYSTEM_SUM, WM_CPU_SYSTEM_HARDWARE, WM_DEVICE_HOST, "host" },
    { WM_CPU_MAIN_SUM, WM_CPU_MAIN_HARDWARE, WM_DEVICE_TREE, "main" },
    { WM_CPU_DESCENDANTS_SUM, WM_CPU_DESCENDANTS_HARDWARE, WM_DEVICE_TREE, "descendants" },
    { WM_CPU_COMBINED_SUM, WM_CPU_COMBINED_HARDWARE, WM_DEVICE_TREE, "tree" },
};

enum {
    GAUGE_COUNT = sizeof(gauges) / sizeof(gauges[0]),
    CPU_COUNT = sizeof(cpus) / sizeof(cpus[0]),
};

struct rate {
    size_t channel;
    double window_s;            /* the shortest that is looked at */
    struct wm_stride window;    /* from where it begins */
    double last_value;          /* of the latest reading */
    struct wm_known per_second; /* over the last whole window, if there was one */
};

struct wm_timepoint_builder {
    size_t size; /* of all of it, for wm_timepoint_builder_copy() */
    size_t gauge_channels[GAUGE_COUNT];
    struct rate rates[CPU_COUNT];
    double cores[CPU_COUNT]; /* what "hardware" divides by, where there are any */
    size_t ram_capacity;
    bool has_gpus;
    double gpus; /* the chosen ones */
    size_t memory_used_count, memory_total_count, utilization_count;
    bool started;
    size_t gpu_channels[]; /* of memory_used, then of the other two */
};

const char *wm_measurement_name(enum wm_measurement measurement)
{
    return wm_timepoint_columns[measurement];
}

bool wm_measurement_is_gpu(enum wm_measurement measurement)
{
    return measurement >= WM_MAIN_GPU_RAM && measurement <= WM_GPU_HARDWARE_UTILIZATION;
}

static size_t find_channel(const struct wm_channel *channels, size_t count,
                           enum wm_device_kind device_kind, const char *label,
                           const char *metric)
{
    for (size_t i = 0; i < count; i++) {
        if (channels[i].device_kind == device_kind &&
            strcmp(channels[i].label, label) == 0 &&
            strcmp(channels[i].metric, metric) == 0)
            return i;
    }
    return NO_CHANNEL;
}

/* Puts the channels that every GPU has of `metric` at `ret_channels`. */
static size_t find_gpus(const struct wm_channel *channels, size_t count, const char *metric,
                        size_t *ret_channels)
{
    size_t found = 0;

    for (size_t i = 0; i < count; i++) {
        if (channels[i].device_kind == WM_DEVICE_GPU &&
            strcmp(channels[i].metric, metric) == 0)
            ret_channels[found++] = i;
    }
    return found;
}

static bool any_gpu(const struct wm_channel *channels, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (channels[i].device_kind == WM_DEVICE_GPU)
            return true;
    }
    return false;
}

int wm_timepoint_builder_new(const struct wm_run *run, const struct wm_channel *channels,
                             size_t count, struct wm_timepoint_builder **ret_builder,
                             struct wm_error *err)
{
    struct wm_timepoint_builder *builder;
    size_t size = sizeof(*builder) + 3 * count * sizeof(builder->gpu_channels[0]);

    builder = calloc(1, size);
    if (!builder)
        return wm_fail_memory(err, NULL);
    builder->size = size;

    for (size_t i = 0; i < GAUGE_COUNT; i++)
        builder->gauge_channels[i] = find_channel(channels, count, gauges[i].device_kind,
                                                  gauges[i].label, gauges[i].metric);
    for (size_t i = 0; i < CPU_COUNT; i++) {
        struct rate *rate = &builder->rates[i];
        rate->channel =
            find_channel(channels, count, cpus[i].device_kind, cpus[i].label, "cpu_time");
        if (rate->channel != NO_CHANNEL)
            rate->window_s =
                WM_SENSOR_PERIODS * (double)channels[rate->channel].period_ns / 1e9;
        rate->window.most = run->core_count;
        builder->cores[i] = cpus[i].device_kind == WM_DEVICE_HOST ? (double)run->core_count
                                                                  : run->expected_cores;
    }
    builder->ram_capacity =
        find_channel(channels, count, WM_DEVICE_HOST, "host", "memory_total");

    size_t *gpus = builder->gpu_channels;
    builder->memory_used_count = find_gpus(channels, count, "memory_used", gpus);
    gpus += builder->memory_used_count;
    builder->memory_total_count = find_gpus(channels, count, "memory_total", gpus);
    gpus += builder->memory_total_count;
    builder->utilization_count = find_gpus(channels, count, "utilization", gpus);
    builder->has_gpus =
        run->expected_gpu_count > 0 || run->gpus_unknown || any_gpu(channels, count);
    builder->gpus = run->expected_gpu_count > 0 ? run->expected_gpu_count
                                                : (double)builder->utilization_count;
    *ret_builder = builder;
    return WM_OK;
}

void wm_timepoint_builder_free(struct wm_timepoint_builder *builder)
{
    free(builder);
}

double wm_timepoint_unix_seconds(const struct wm_run *run, int64_t when_ns)
{
    return (double)(when_ns - run->anchor_ns + run->anchor_unix_ns) / 1e9;
}

void wm_timepoint_builder_copy(struct wm_timepoint_builder *to,
                               const struct wm_timepoint_builder *from)
{
    memcpy(to, from, from->size);
}

static struct wm_known value_of(const struct wm_tick *tick, size_t channel)
{
    return wm_stats_value(channel == NO_CHANNEL ? NULL : &tick->readings[channel]);
}

/* Unknown as soon as one part is: a sum that lacks a GPU would look like a
 * fall. */
static struct wm_known sum_of(const struct wm_tick *tick, const size_t *channels,
                              size_t count)
{
    struct wm_known sum = { .known = count > 0 };

    for (size_t i = 0; i < count; i++) {
        struct wm_known value = value_of(tick, channels[i]);
        if (!value.known)
            return value;
        sum.number += value.number;
    }
    return sum;
}

/* Seconds of CPU time per second, over the last window that is long enough and
 * ends with this reading or before it. */
static struct wm_known rate_at(struct rate *rate, const struct wm_tick *tick)
{
    const struct wm_known told = value_of(tick, rate->channel);

    if (!told.known)
        return told;
    if (told.number < rate->last_value) {
        /* It was set back: what it counted in this window nobody knows. */
        rate->window.is_told = false;
        rate->per_second.known = false;
    }
    rate->last_value = told.number;
    const struct wm_known found = wm_stride_rate(
        &rate->window, tick->readings[rate->channel].when_ns, told.number, rate->window_s);
    if (found.known)
        rate->per_second = found;
    return rate->per_second;
}

static void put(struct wm_timepoint *timepoint, enum wm_measurement measurement,
                struct wm_known value)
{
    if (!value.known)
        return;
    timepoint->known |= UINT32_C(1) << measurement;
    timepoint->values[measurement] = value.number;
}

/* A share of one, and that share of as many as there are. */
static void put_shares(struct wm_timepoint *timepoint, enum wm_measurement sum,
                       struct wm_known share, enum wm_measurement hardware, double count)
{
    double percent = 100 * share.number;

    put(timepoint, sum, (struct wm_known) { share.known, percent });
    if (count > 0)
        put(timepoint, hardware, (struct wm_known) { share.known, percent / count });
}

static void fill_gpus(const struct wm_timepoint_builder *builder,
                      const struct wm_tick *tick, struct wm_timepoint *timepoint)
{
    const size_t *memory = builder->gpu_channels;
    const size_t *utilization =
        memory + builder->memory_used_count + builder->memory_total_count;

    if (!builder->has_gpus) {
        for (int i = WM_MAIN_GPU_RAM; i <= WM_GPU_HARDWARE_UTILIZATION; i++)
            put(timepoint, (enum wm_measurement)i, (struct wm_known) { .known = true });
        return;
    }
    put(timepoint, WM_SYSTEM_GPU_RAM, sum_of(tick, memory, builder->memory_used_count));
    put_shares(timepoint, WM_GPU_SUM_UTILIZATION,
               sum_of(tick, utilization, builder->utilization_count),
               WM_GPU_HARDWARE_UTILIZATION, builder->gpus);
}

bool wm_timepoint_next(struct wm_timepoint_builder *builder, const struct wm_tick *tick,
                       struct wm_timepoint *ret_timepoint)
{
    struct wm_timepoint timepoint = { .when_ns = tick->when_ns };
    bool first = !builder->started;

    for (size_t i = 0; i < GAUGE_COUNT; i++)
        put(&timepoint, gauges[i].measurement, value_of(tick, builder->gauge_channels[i]));
    for (size_t i = 0; i < CPU_COUNT; i++)
        put_shares(&timepoint, cpus[i].sum, rate_at(&builder->rates[i], tick),
                   cpus[i].hardware, builder->cores[i]);
    fill_gpus(builder, tick, &timepoint);

    builder->started = true;
    if (first)
        return false;
    *ret_timepoint = timepoint;
    return true;
}

void wm_timepoint_capacities(const struct wm_timepoint_builder *builder,
                             const struct wm_tick *tick, struct wm_known *ret_ram,
                             struct wm_known *ret_gpu_ram)
{
    const size_t *totals = builder->gpu_channels + builder->memory_used_count;

    *ret_ram = value_of(tick, builder->ram_capacity);
    *ret_gpu_ram = builder->has_gpus ? sum_of(tick, totals, builder->memory_total_count)
                                     : (struct wm_known) { .known = true };
}

#define IN(member) offsetof(struct wm_static_data, member)

const struct wm_static_column wm_static_columns[WM_STATIC_COLUMNS] = {
    { "ram_unit", WM_STATIC_MEMORY_UNIT, IN(ram_unit) },
    { "gpu_ram_unit", WM_STATIC_MEMORY_UNIT, IN(gpu_ram_unit) },
    { "time_unit", WM_STATIC_TIME_UNIT, IN(time_unit) },
    { "ram_system_capacity", WM_STATIC_CAPACITY, IN(ram_capacity) },
    { "gpu_ram_system_capacity", WM_STATIC_CAPACITY, IN(gpu_ram_capacity) },
    { "system_core_count", WM_STATIC_COUNT, IN(system_cores) },
    { "n_expected_cores", WM_STATIC_COUNT, IN(expected_cores) },
    { "system_gpu_count", WM_STATIC_COUNT, IN(gpus) },
    { "n_expected_gpus", WM_STATIC_COUNT, IN(expected_gpus) },
};

const char *wm_measurement_unit(const struct wm_static_data *data, size_t measurement)
{
    if (measurement <= WM_SYSTEM_RAM)
        return data->ram_unit;
    if (measurement <= WM_SYSTEM_GPU_RAM)
        return data->gpu_ram_unit;
    return measurement >= WM_MAIN_THREADS && measurement <= WM_COMBINED_THREADS ? "count"
                                                                                : "percent";
}

struct wm_static_entry wm_static_data_entry(const struct wm_static_data *data, size_t index)
{
    const struct wm_static_column *column = &wm_static_columns[index];
    const void *place = (const char *)data + column->offset;
    struct wm_static_entry entry = { .key = column->name,
                                     .is_whole = column->kind == WM_STATIC_COUNT };

    if (entry.is_whole || column->kind == WM_STATIC_CAPACITY)
        entry.number = *(const struct wm_known *)place;
    else
        entry.text = place;
    return entry;
}

static struct wm_known count_of(double count)
{
    return count >= 0 && count <= INT_MAX ? (struct wm_known) { true, trunc(count) }
                                          : (struct wm_known) { 0 };
}

struct wm_static_data wm_static_data_of(const struct wm_run *run)
{
    return (struct wm_static_data) {
        .ram_unit = "bytes",
        .gpu_ram_unit = "bytes",
        .time_unit = "seconds",
        .system_cores = count_of(run->core_count),
        .expected_cores = run->expected_cores > 0 ? count_of(run->expected_cores)
                                                  : (struct wm_known) { 0 },
        .gpus = count_of(run->gpu_count),
        .expected_gpus = count_of(run->expected_gpu_count),
    };
}
