/* SPDX-License-Identifier: Apache-2.0 */
/* compat_aipm_window.c - what each tick comes to, in the words of AIPowerMeter. */
#include "compat/aipowermeter/compat_aipm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze_stats.h"
#include "base/text/base_json.h"
#include "base/text/base_localtime.h"
#include "base/text/base_text.h"
#include "record/record_channel.h"
#include "source/cpu/source_energy.h"

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

/* "gpu3" is 3. */
static int gpu_number(const char *label)
{
    const char *end = NULL;
    uint64_t number;

    if (strncmp(label, "gpu", 3) == 0 && wm_text_u64(label + 3, &end, &number) && !*end &&
        number < 10000)
        return (int)number;
    return -1;
}

/* The device of a channel, made where it is new. */
static struct wm_aipm_device *find_device(struct wm_aipm_window *window,
                                          const struct wm_channel *channel)
{
    const struct wm_aipm_metric *part_of = find_sum(channel);
    struct wm_aipm_device *device = window->devices, *end = device + window->device_count;
    int number = gpu_number(channel->label);

    while (device < end &&
           (device->part_of != part_of || strcmp(device->name, channel->device) != 0))
        device++;
    if (device < end)
        return device;
    *device = (struct wm_aipm_device) {
        .name = channel->device,
        .part_of = part_of,
        .number = number >= 0 ? number : window->gpu_count,
        .uses = { NONE, NONE, NONE, NONE },
    };
    window->device_count++;
    window->gpu_count += !part_of;
    return device;
}

static struct wm_energy_offer offer_of(const void *list, size_t index)
{
    const struct wm_channel *channel = &((const struct wm_channel *)list)[index];
    bool is_metered =
        strcmp(channel->metric, "energy") == 0 || strcmp(channel->metric, "power") == 0;

    return (struct wm_energy_offer) {
        .source = channel->source,
        .sensor = channel->sensor.kind,
        .kind = is_metered ? channel->device_kind : WM_DEVICE_OTHER,
        .origin = channel->origin,
        .is_known = true,
    };
}

/* Whether another source counts for the same CPUs or memory, which must not count
 * twice. */
static bool is_second(const struct wm_aipm_window *window, const struct wm_channel *channel)
{
    const struct wm_energy_offers offers = { window->channels, window->count, offer_of };
    struct wm_energy_choice choice;

    if (channel->device_kind != WM_DEVICE_CPU && channel->device_kind != WM_DEVICE_DRAM)
        return false;
    wm_energy_choose(&offers, channel->device_kind, &choice);
    return !choice.source || strcmp(channel->source, choice.source) != 0;
}

static void use_channel(struct wm_aipm_window *window, size_t index)
{
    const struct wm_channel *channel = &window->channels[index];
    bool is_gpu = channel->device_kind == WM_DEVICE_GPU;

    if ((!is_gpu && !find_sum(channel)) || is_second(window, channel))
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
    char pid[16];
};

/* NAN where there is none. */
static double value_of(const struct record *record, size_t channel)
{
    return channel != NONE && wm_stats_usable(&record->tick->readings[channel])
               ? record->tick->readings[channel].value
               : NAN;
}

/* By how much a counter has grown since it was last seen, and in how many seconds.
 * NAN where that is not known. */
static double increase_of(const struct record *record, size_t channel, double *ret_seconds)
{
    const struct wm_counter_stats *before = &record->window->before[channel];
    double value = value_of(record, channel);
    int64_t when_ns = record->tick->readings[channel].when_ns;

    if (before->count == 0 || !(value >= before->last) || when_ns <= before->last_ns)
        return NAN;
    *ret_seconds = (double)(when_ns - before->last_ns) / 1e9;
    return value - before->last;
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
static double tick_value(const struct record *record, const char *label, const char *metric)
{
    size_t channel = find_channel(record->window, label, metric);
    double seconds;

    if (channel == NONE)
        return NAN;
    return record->window->channels[channel].kind == WM_COUNTER
               ? increase_of(record, channel, &seconds)
               : value_of(record, channel);
}

/* Where the counter tells nothing (it is not there after all, was set back, or has not
 * moved yet and may be dead), what the device says of its power stands in. */
static double watts_of(const struct record *record, const struct wm_aipm_device *device)
{
    size_t energy = device->uses[USE_ENERGY];
    double seconds = 0, joules = NAN;
    bool has_moved = false;

    if (energy != NONE) {
        const struct wm_counter_stats *before = &record->window->before[energy];
        joules = increase_of(record, energy, &seconds);
        has_moved = joules > 0 || before->total > 0 || before->first != before->last;
    }
    return has_moved && !isnan(joules) ? joules / seconds
                                       : value_of(record, device->uses[USE_POWER]);
}

/* All of them or none: a part would pass for the whole. */
static double sum_of(const struct record *record, const char *key)
{
    double sum = NAN;

    for (size_t i = 0; i < record->window->device_count; i++) {
        const struct wm_aipm_device *device = &record->window->devices[i];
        if (!device->part_of || strcmp(device->part_of->key, key) != 0)
            continue;
        double watts = watts_of(record, device);
        if (isnan(watts))
            return NAN;
        sum = isnan(sum) ? watts : sum + watts;
    }
    return sum;
}

static double cpu_share(const struct record *record)
{
    double share = tick_value(record, "tree", "cpu_share");

    if (!isnan(share))
        return share;
    double tree = tick_value(record, "tree", "cpu_time");
    double host = tick_value(record, "host", "cpu_time");
    if (isnan(tree) || isnan(host) || host <= 0)
        return NAN;
    return fmin(tree / host, 1);
}

static double memory_share(const struct record *record)
{
    double all = tick_value(record, "host", "memory_used");

    return all > 0 ? tick_value(record, "tree", "memory_total") / all : NAN;
}

/* The processes' share of devices, by the time that they had of the CPUs. */
static double package_power(const struct record *record)
{
    return cpu_share(record) * sum_of(record, "intel_power");
}

static double core_power(const struct record *record)
{
    return cpu_share(record) * sum_of(record, "total_cpu_power");
}

/* What no channel has, by the name that it has as one. */
static double value_of_metric(const struct record *record,
                              const struct wm_aipm_metric *metric)
{
    static const struct {
        const char *name;
        double (*value)(const struct record *);
    } derived[] = {
        { "cpu_share", cpu_share },
        { "memory_share", memory_share },
        { "package_power", package_power },
        { "core_power", core_power },
        { NULL, NULL },
    };
    const struct wm_channel *channel = &metric->channel;

    for (size_t i = 0; derived[i].name; i++) {
        if (strcmp(channel->metric, derived[i].name) == 0)
            return derived[i].value(record);
    }
    return strcmp(channel->metric, use_metrics[USE_POWER]) == 0
               ? sum_of(record, metric->key)
               : tick_value(record, channel->label, channel->metric);
}

/* Numbers that are not known are left out. The one process stands for all of them. */
static void put_metric(const struct record *record, json_t **cpu,
                       const struct wm_aipm_metric *metric)
{
    double value = value_of_metric(record, metric) / metric->scale;

    if (!isnan(value))
        wm_json_set(cpu, metric->key,
                    metric->form == WM_AIPM_NUMBER
                        ? json_real(value)
                        : json_pack("{s:f}", record->pid, value));
}

static double gpu_value(const struct record *record, const struct wm_aipm_device *device,
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
    bool is_mean = strcmp(metric->channel.unit, "ratio") == 0;
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
        double number = gpu_value(record, device, metric) * (1 / metric->scale);
        snprintf(name, sizeof(name), "%d", device->number);
        wm_json_set(&each, name, wm_json_known(true, number));
        sum += number;
        count++;
    }
    wm_json_set(gpu, key_of_all, wm_json_known(true, is_mean ? sum / count : sum));
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

char *wm_aipm_window_record(const struct wm_aipm_window *window, const struct wm_tick *tick)
{
    struct record record = { .window = window, .tick = tick };
    const struct wm_run *run = window->run;
    json_t *line = json_object();
    char date[WM_LOCALTIME_SIZE];

    snprintf(record.pid, sizeof(record.pid), "%d", run->pid > 0 ? run->pid : 1);
    wm_localtime_format(run->anchor_unix_ns - run->anchor_ns + tick->when_ns, date);
    wm_json_set(&line, "date", json_string(date));
    wm_json_set(&line, "metrics", metrics_json(&record));
    put_origins(window, &line);
    return wm_json_dump(line, 0);
}

void wm_aipm_window_pass(struct wm_aipm_window *window, const struct wm_tick *tick)
{
    for (size_t i = 0; i < tick->count; i++)
        wm_counter_add(&window->before[i], &tick->readings[i]);
}

void wm_aipm_window_restart(struct wm_aipm_window *window)
{
    memset(window->before, 0, window->count * sizeof(*window->before));
}

void wm_aipm_window_save(struct wm_aipm_window *window)
{
    memcpy(window->before_saved, window->before, window->count * sizeof(*window->before));
}

void wm_aipm_window_restore(struct wm_aipm_window *window)
{
    memcpy(window->before, window->before_saved, window->count * sizeof(*window->before));
}

void wm_aipm_window_release(struct wm_aipm_window *window)
{
    free(window->devices);
    free(window->before);
    free(window->before_saved);
}
