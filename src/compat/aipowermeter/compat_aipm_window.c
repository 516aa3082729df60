/* SPDX-License-Identifier: Apache-2.0 */
/* compat_aipm_window.c - what each tick comes to, in the words of AIPowerMeter. */
#include "compat/aipowermeter/compat_aipm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/base_json.h"
#include "base/text/base_localtime.h"
#include "record/record_channel.h"
#include "record/record_stats.h"
#include "source/source_energy.h"

/* A channel where a window begins, and where the record before it began. */
struct wm_aipm_series {
    struct wm_counter_stats window, record;
    struct wm_known value; /* where the window does */
};

/* A window shorter than this part of the sampling interval is partial. It extends the
 * record before it if both together are no longer than the second figure. */
#define WHOLE_WINDOW 0.9
#define LONGEST_RECORD 1.5

/* A counter with fewer steps in a window is too coarse for it: it may be a step off. */
#define LEAST_STEPS 5

/* In place of a channel's index: there is no such channel. */
#define NONE ((size_t)-1)

/* What is used of a device. */
enum use {
    USE_POWER,
    USE_UTILIZATION,
    USE_MEMORY,
    USE_ENERGY,
    USE_COUNT,
};

static const char *const use_metrics[USE_COUNT] = {
    [USE_POWER] = "power",
    [USE_UTILIZATION] = "utilization",
    [USE_MEMORY] = "memory_used",
    [USE_ENERGY] = "energy",
};

struct wm_aipm_device {
    const char *name;
    const struct wm_aipm_metric *part_of; /* its power is; NULL: it is a GPU */
    int number;                           /* of a GPU */
    size_t uses[USE_COUNT];               /* its channels, or NONE */
};

/* The metric that is the power of such devices together; NULL where there is none. All CPUs
 * and all memory are one sum each; of other devices the name tells, and the last one
 * counts: "core" is in "uncore". */
static const struct wm_aipm_metric *find_sum(const struct wm_channel *channel)
{
    bool is_whole =
        channel->device_kind == WM_DEVICE_CPU || channel->device_kind == WM_DEVICE_DRAM;
    const struct wm_aipm_metric *found = NULL, *metric;

    for (metric = wm_aipm_metrics; metric->key; metric++) {
        const struct wm_channel *sum = &metric->channel;
        if (sum->device_kind == channel->device_kind && sum->label &&
            strcmp(sum->metric, use_metrics[USE_POWER]) == 0 &&
            (is_whole || strstr(channel->device, sum->label)))
            found = metric;
    }
    return found;
}

/* The device of a channel, made where it is new. A GPU without a number has that of GPUs
 * before it. */
static struct wm_aipm_device *find_device(struct wm_aipm_window *window,
                                          const struct wm_channel *channel)
{
    const struct wm_aipm_metric *part_of = find_sum(channel);
    struct wm_aipm_device *device = window->devices, *end = device + window->device_count;

    while (device < end &&
           (device->part_of != part_of || strcmp(device->name, channel->device) != 0))
        device++;
    if (device < end)
        return device;
    *device = (struct wm_aipm_device) {
        .name = channel->device,
        .part_of = part_of,
        .number = window->gpu_count,
        .uses = { NONE, NONE, NONE, NONE },
    };
    wm_channel_gpu_number(channel, &device->number);
    window->device_count++;
    window->gpu_count += !part_of;
    return device;
}

/* Whether another source counts for the same CPUs or memory, which must not count
 * twice. */
static bool is_second(const struct wm_aipm_window *window, size_t index)
{
    enum wm_device_kind kind = wm_energy_offer_of(&window->channels[index]).kind;

    return (kind == WM_DEVICE_CPU || kind == WM_DEVICE_DRAM) &&
           !wm_energy_is_summed(window->channels, window->count, index);
}

static void use_channel(struct wm_aipm_window *window, size_t index)
{
    const struct wm_channel *channel = &window->channels[index];
    bool is_gpu = channel->device_kind == WM_DEVICE_GPU;

    if ((!is_gpu && !find_sum(channel)) || is_second(window, index))
        return;
    for (int use = 0; use < USE_COUNT; use++) {
        bool is_of_gpus = use == USE_UTILIZATION || use == USE_MEMORY;
        if (strcmp(channel->metric, use_metrics[use]) != 0 || (is_of_gpus && !is_gpu))
            continue;
        enum wm_origin *worst = &window->origins[channel->device_kind];
        find_device(window, channel)->uses[use] = index;
        if (channel->origin > *worst)
            *worst = channel->origin;
    }
}

int wm_aipm_window_init(struct wm_aipm_window *window, const struct wm_run *run,
                        const struct wm_channel *channels, size_t count)
{
    *window = (struct wm_aipm_window) {
        .run = run,
        .channels = channels,
        .count = count,
        .devices = calloc(count + 1, sizeof(*window->devices)),
        .before = calloc(count + 1, sizeof(*window->before)),
        .before_saved = calloc(count + 1, sizeof(*window->before_saved)),
    };
    if (!window->devices || !window->before || !window->before_saved)
        return WM_ENOMEM;
    for (size_t i = 0; i < count; i++)
        use_channel(window, i);
    return WM_OK;
}

/* A record that is being put together. */
struct record {
    const struct wm_aipm_window *window;
    const struct wm_tick *tick;
    bool replaces; /* the record before it, and begins where that does */
    double part_s; /* of a window that is a part of one; else 0 */
    char pid[16];
};

/* A value that is unknown at the end, as of processes that have ended, is that of the
 * record that is extended. */
static struct wm_known value_of(const struct record *record, size_t channel)
{
    if (channel == NONE)
        return (struct wm_known) { 0 };
    struct wm_known value = wm_stats_value(&record->tick->readings[channel]);
    return value.known || !record->replaces ? value : record->window->before[channel].value;
}

static const struct wm_counter_stats *start_of(const struct record *record, size_t channel)
{
    const struct wm_aipm_series *before = &record->window->before[channel];

    return record->replaces ? &before->record : &before->window;
}

/* By how much a counter has grown since it was last seen before the record, and in how many
 * seconds: nobody knows of one that was set back. */
static struct wm_known increase_of(const struct record *record, size_t channel,
                                   double *ret_seconds)
{
    const struct wm_counter_stats *before = start_of(record, channel);
    struct wm_stride last = { before->count > 0, before->last_ns, before->last, 0 };
    struct wm_known now = value_of(record, channel);
    double total = now.number;

    now.known = now.known &&
                wm_stride_next(&last, record->tick->readings[channel].when_ns, total,
                               &now.number, ret_seconds) &&
                now.number >= 0 && *ret_seconds > 0;
    return now;
}

/* The channel of the host or the tree that a metric is; NONE where there is none. */
static size_t find_channel(const struct wm_aipm_window *window, const char *label,
                           const char *metric)
{
    size_t found = NONE;

    for (size_t i = 0; i < window->count; i++) {
        const struct wm_channel *channel = &window->channels[i];
        bool is_meant = channel->device_kind == WM_DEVICE_HOST ||
                        channel->device_kind == WM_DEVICE_TREE;
        if (is_meant && strcmp(channel->label, label) == 0 &&
            strcmp(channel->metric, metric) == 0)
            found = i;
    }
    return found;
}

/* What a metric of the host or the tree comes to: a counter's increase, or the value. */
static struct wm_known tick_value(const struct record *record, const char *label,
                                  const char *metric)
{
    size_t channel = find_channel(record->window, label, metric);
    double seconds;

    return channel != NONE && record->window->channels[channel].kind == WM_COUNTER
               ? increase_of(record, channel, &seconds)
               : value_of(record, channel);
}

/* The joules of the record before its partial last window. */
static double joules_before_part(const struct record *record, size_t energy)
{
    return record->window->before[energy].window.total - start_of(record, energy)->total;
}

/* Whether the partial window is too short for the counter. */
static bool is_coarse(const struct record *record, size_t energy)
{
    double period_s = (double)record->window->channels[energy].period_ns / 1e9;

    return record->part_s > 0 && record->part_s < LEAST_STEPS * period_s;
}

/* Where the counter reports nothing (it is not there after all, was set back, or has not
 * moved yet and may be dead), what the device says of its power stands in. */
static struct wm_known watts_of(const struct record *record,
                                const struct wm_aipm_device *device)
{
    const struct wm_known watts = value_of(record, device->uses[USE_POWER]);
    size_t energy = device->uses[USE_ENERGY];

    if (energy == NONE)
        return watts;
    const struct wm_counter_stats *before = start_of(record, energy);
    double seconds = 0;
    struct wm_known joules = increase_of(record, energy, &seconds);
    if (!joules.known ||
        (joules.number <= 0 && before->total <= 0 && before->first == before->last))
        return watts;
    if (watts.known && is_coarse(record, energy))
        joules.number = joules_before_part(record, energy) + watts.number * record->part_s;
    return (struct wm_known) { true, joules.number / seconds };
}

/* All of them or none: a part would pass for the whole. */
static struct wm_known sum_of(const struct record *record, const char *key)
{
    struct wm_known sum = { 0 };

    for (size_t i = 0; i < record->window->device_count; i++) {
        const struct wm_aipm_device *device = &record->window->devices[i];
        if (!device->part_of || strcmp(device->part_of->key, key) != 0)
            continue;
        const struct wm_known watts = watts_of(record, device);
        if (!watts.known)
            return watts;
        sum = (struct wm_known) { true, sum.number + watts.number };
    }
    return sum;
}

/* The tree's part of what the host has of a metric; it is not known where that is 0. */
static struct wm_known share_of(const struct record *record, const char *tree_metric,
                                const char *host_metric)
{
    struct wm_known share = tick_value(record, "tree", tree_metric);
    const struct wm_known all = tick_value(record, "host", host_metric);

    share.known = share.known && all.known && all.number > 0;
    if (share.known)
        share.number /= all.number;
    return share;
}

static struct wm_known cpu_share(const struct record *record)
{
    struct wm_known share = tick_value(record, "tree", "cpu_share");

    if (share.known)
        return share;
    share = share_of(record, "cpu_time", "cpu_time");
    share.number = fmin(share.number, 1);
    return share;
}

static struct wm_known memory_share(const struct record *record)
{
    return share_of(record, "memory_total", "memory_used");
}

/* The processes' part of the power of devices, by their share of the devices' work. */
static struct wm_known power_share(const struct record *record, struct wm_known share,
                                   const char *key)
{
    const struct wm_known sum = sum_of(record, key);

    return (struct wm_known) { share.known && sum.known, share.number * sum.number };
}

/* What no channel has, by the name that it has as one; else what its channel has. */
static struct wm_known value_of_metric(const struct record *record,
                                       const struct wm_aipm_metric *metric)
{
    const char *name = metric->channel.metric;

    if (strcmp(name, "cpu_share") == 0)
        return cpu_share(record);
    if (strcmp(name, "memory_share") == 0)
        return memory_share(record);
    if (strcmp(name, "package_power") == 0)
        return power_share(record, cpu_share(record), "intel_power");
    if (strcmp(name, "core_power") == 0)
        return power_share(record, cpu_share(record), "total_cpu_power");
    if (strcmp(name, "dram_power") == 0)
        return power_share(record, memory_share(record), "total_dram_power");
    return strcmp(name, use_metrics[USE_POWER]) == 0
               ? sum_of(record, metric->key)
               : tick_value(record, metric->channel.label, name);
}

/* Numbers that are not known are left out. The one process stands for all of them. */
static void put_metric(const struct record *record, json_t **cpu,
                       const struct wm_aipm_metric *metric)
{
    const struct wm_known known = value_of_metric(record, metric);
    double value = known.number / metric->scale;

    if (known.known)
        wm_json_set(cpu, metric->key,
                    metric->form == WM_AIPM_NUMBER
                        ? json_real(value)
                        : json_pack("{s:f}", record->pid, value));
}

static struct wm_known gpu_value(const struct record *record,
                                 const struct wm_aipm_device *device,
                                 const struct wm_aipm_metric *metric)
{
    int use = USE_POWER;

    while (strcmp(use_metrics[use], metric->channel.metric) != 0)
        use++;
    return use == USE_POWER ? watts_of(record, device)
                            : value_of(record, device->uses[use]);
}

/* A metric of each GPU, and of all: their sum, or their mean. The keys have to be there,
 * whatever is known. */
static void put_gpu_metric(const struct record *record, json_t **gpu,
                           const struct wm_aipm_metric *metric)
{
    bool is_mean = strcmp(metric->channel.unit, "ratio") == 0, is_known = true;
    const char *key_of_all = metric->key + strlen("per_gpu_");
    json_t *each = json_object();
    char name[16];
    double sum = 0;
    int count = 0;

    for (size_t i = 0; i < record->window->device_count; i++) {
        const struct wm_aipm_device *device = &record->window->devices[i];
        if (device->part_of)
            continue;
        /* 1 / 0.01 is 100 to the last digit. */
        struct wm_known value = gpu_value(record, device, metric);
        value.number *= 1 / metric->scale;
        snprintf(name, sizeof(name), "%d", device->number);
        wm_json_set(&each, name, wm_json_known(value.known, value.number));
        is_known &= value.known;
        sum += value.number;
        count++;
    }
    wm_json_set(gpu, key_of_all, wm_json_known(is_known, is_mean ? sum / count : sum));
    wm_json_set(gpu, metric->key, each);
}

static const struct wm_aipm_metric *metric_at(int place)
{
    const struct wm_aipm_metric *metric = wm_aipm_metrics;

    while (metric->key && metric->place != place)
        metric++;
    return metric->key ? metric : NULL;
}

static json_t *metrics_json(const struct record *record)
{
    json_t *metrics = json_object(), *cpu = json_object(), *gpu = json_object();
    const struct wm_aipm_metric *metric;

    for (int place = 1; (metric = metric_at(place)); place++) {
        if (metric->form == WM_AIPM_PER_GPU)
            put_gpu_metric(record, &gpu, metric);
        else
            put_metric(record, &cpu, metric);
    }
    wm_json_set(&metrics, "cpu", cpu);
    if (record->window->gpu_count > 0)
        wm_json_set(&metrics, "gpu", gpu);
    else
        json_decref(gpu);
    return metrics;
}

/* {"cpu": "estimated"}, beside the metrics, where AIPowerMeter does not look: what of
 * them was not measured, by kind of device, and the worst of each kind. Nothing where all
 * was. */
static void put_origins(const struct wm_aipm_window *window, json_t **line)
{
    json_t *origins = json_object();

    for (int kind = 0; kind <= WM_DEVICE_OTHER; kind++) {
        if (window->origins[kind] != WM_MEASURED)
            wm_json_set(&origins, wm_word(WM_WORDS_DEVICE_KIND, kind),
                        json_string(wm_word(WM_WORDS_ORIGIN, (int)window->origins[kind])));
    }
    if (!origins || json_object_size(origins) > 0)
        wm_json_set(line, "origin", origins);
    else
        json_decref(origins);
}

static double seconds_between(int64_t from_ns, int64_t to_ns)
{
    return to_ns > from_ns ? (double)(to_ns - from_ns) / 1e9 : 0;
}

/* Begins the record that ends with a tick, and decides whether it extends the one before.
 */
static struct record begin_record(const struct wm_aipm_window *window,
                                  const struct wm_tick *tick)
{
    double interval_s = (double)window->run->interval_ns / 1e9;
    double window_s = seconds_between(window->times.window_ns, tick->when_ns);
    double both_s = seconds_between(window->times.record_ns, tick->when_ns);
    bool is_part = window_s < WHOLE_WINDOW * interval_s;
    const struct wm_run *run = window->run;
    struct record record = {
        .window = window,
        .tick = tick,
        .replaces =
            window->times.has_record && is_part && both_s <= LONGEST_RECORD * interval_s,
        .part_s = is_part ? window_s : 0,
    };

    snprintf(record.pid, sizeof(record.pid), "%d", run->pid > 0 ? run->pid : 1);
    return record;
}

char *wm_aipm_window_record(struct wm_aipm_window *window, const struct wm_tick *tick,
                            bool *ret_replaces)
{
    const struct record record = begin_record(window, tick);
    const struct wm_run *run = window->run;
    json_t *line = json_object();
    char date[WM_LOCALTIME_SIZE];

    wm_localtime_format(run->anchor_unix_ns - run->anchor_ns + tick->when_ns, date);
    wm_json_set(&line, "date", json_string(date));
    wm_json_set(&line, "metrics", metrics_json(&record));
    put_origins(window, &line);
    for (size_t i = 0; i < window->count && !record.replaces; i++)
        window->before[i].record = window->before[i].window;
    if (!record.replaces)
        window->times.record_ns = window->times.window_ns;
    window->times.has_record = true;
    *ret_replaces = record.replaces;
    return wm_json_dump(line, 0);
}

void wm_aipm_window_pass(struct wm_aipm_window *window, const struct wm_tick *tick)
{
    for (size_t i = 0; i < tick->count; i++) {
        wm_counter_add(&window->before[i].window, &tick->readings[i]);
        window->before[i].value = wm_stats_value(&tick->readings[i]);
    }
    window->times.window_ns = tick->when_ns;
}

void wm_aipm_window_restart(struct wm_aipm_window *window)
{
    memset(window->before, 0, window->count * sizeof(*window->before));
    window->times = (struct wm_aipm_times) { 0 };
}

void wm_aipm_window_save(struct wm_aipm_window *window)
{
    memcpy(window->before_saved, window->before, window->count * sizeof(*window->before));
    window->times_saved = window->times;
}

void wm_aipm_window_restore(struct wm_aipm_window *window)
{
    memcpy(window->before, window->before_saved, window->count * sizeof(*window->before));
    window->times = window->times_saved;
}

void wm_aipm_window_release(struct wm_aipm_window *window)
{
    free(window->devices);
    free(window->before);
    free(window->before_saved);
}
