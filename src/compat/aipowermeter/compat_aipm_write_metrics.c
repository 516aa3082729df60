/* SPDX-License-Identifier: Apache-2.0 */
/* compat_aipm_write_metrics.c - what each tick comes to, in the words of AIPowerMeter. */
#include "compat/aipowermeter/compat_aipm_write_metrics.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/base_json.h"
#include "base/text/base_localtime.h"
#include "base/text/base_text.h"
#include "record/record_channel.h"
#include "source/cpu/source_energy.h"

/* In place of a channel's index: there is no such channel. */
#define NONE ((size_t)-1)

enum part {
    PART_PACKAGE,
    PART_CORE,
    PART_UNCORE,
    PART_DRAM,
    PART_PSYS,
    PART_COUNT,
    PART_GPU = PART_COUNT,
    PART_OTHER, /* AIPowerMeter knows no such thing */
};

/* What each is called, as a sum over all of its kind. */
static const char *const part_keys[PART_COUNT] = {
    [PART_PACKAGE] = "intel_power", [PART_CORE] = "total_cpu_power",
    [PART_UNCORE] = "uncore_power", [PART_DRAM] = "total_dram_power",
    [PART_PSYS] = "psys_power",
};

/* A counter, as it was in the last window. */
struct wm_aipm_before {
    bool there;
    bool has_moved; /* in this segment */
    double value;
    int64_t when_ns;
};

struct wm_aipm_device {
    const struct wm_channel *channel; /* the first of its */
    enum wm_origin origin;            /* the worst of its channels' */
    enum part part;
    int number; /* of a GPU */
    size_t energy, power, utilization, memory;
};

static enum part part_of(const struct wm_channel *channel)
{
    switch (channel->device_kind) {
    case WM_DEVICE_CPU:
        return PART_PACKAGE;
    case WM_DEVICE_CPU_PART:
        if (strstr(channel->device, "uncore"))
            return PART_UNCORE;
        return strstr(channel->device, "core") ? PART_CORE : PART_OTHER;
    case WM_DEVICE_DRAM:
        return PART_DRAM;
    case WM_DEVICE_PLATFORM:
        return strstr(channel->device, "psys") ? PART_PSYS : PART_OTHER;
    case WM_DEVICE_GPU:
        return PART_GPU;
    case WM_DEVICE_HOST:
    case WM_DEVICE_TREE:
    case WM_DEVICE_OTHER:
        break;
    }
    return PART_OTHER;
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

static struct wm_aipm_device *find_device(struct wm_aipm_metrics *metrics,
                                          const struct wm_channel *channel)
{
    int gpus = 0;

    for (size_t i = 0; i < metrics->device_count; i++) {
        struct wm_aipm_device *device = &metrics->devices[i];
        gpus += device->part == PART_GPU;
        if (device->part == part_of(channel) &&
            strcmp(device->channel->device, channel->device) == 0)
            return device;
    }

    struct wm_aipm_device *device = &metrics->devices[metrics->device_count++];
    int number = gpu_number(channel->label);
    *device = (struct wm_aipm_device) {
        .channel = channel,
        .part = part_of(channel),
        .number = number >= 0 ? number : gpus,
        .energy = NONE,
        .power = NONE,
        .utilization = NONE,
        .memory = NONE,
    };
    return device;
}

static struct wm_energy_offer offer_of(const void *list, size_t index)
{
    const struct wm_channel *channel = &((const struct wm_channel *)list)[index];
    bool is_metered =
        strcmp(channel->metric, "energy") == 0 || strcmp(channel->metric, "power") == 0;

    return (struct wm_energy_offer) {
        .source = channel->source,
        .kind = is_metered ? channel->device_kind : WM_DEVICE_OTHER,
        .origin = channel->origin,
        .is_known = true,
    };
}

/* Whether another source counts for the same CPUs or memory, which must not count
 * twice. */
static bool is_second(const struct wm_aipm_metrics *metrics,
                      const struct wm_channel *channel)
{
    const struct wm_energy_offers offers = { metrics->channels, metrics->count, offer_of };
    struct wm_energy_choice choice;

    if (channel->device_kind != WM_DEVICE_CPU && channel->device_kind != WM_DEVICE_DRAM)
        return false;
    wm_energy_choose(&offers, channel->device_kind, &choice);
    return !choice.source || strcmp(channel->source, choice.source) != 0;
}

/* Where the index of a channel of its device is kept; NULL for one of no use here. */
static size_t *place_of(struct wm_aipm_metrics *metrics, const struct wm_channel *channel)
{
    const char *metric = channel->metric;

    if (strcmp(metric, "energy") == 0)
        return &find_device(metrics, channel)->energy;
    if (strcmp(metric, "power") == 0)
        return &find_device(metrics, channel)->power;
    if (part_of(channel) != PART_GPU)
        return NULL;
    if (strcmp(metric, "utilization") == 0)
        return &find_device(metrics, channel)->utilization;
    if (strcmp(metric, "memory_used") == 0)
        return &find_device(metrics, channel)->memory;
    return NULL;
}

static void use_device_channel(struct wm_aipm_metrics *metrics, size_t index)
{
    const struct wm_channel *channel = &metrics->channels[index];
    size_t *place = is_second(metrics, channel) ? NULL : place_of(metrics, channel);

    if (!place)
        return;
    *place = index;
    struct wm_aipm_device *device = find_device(metrics, channel);
    if (channel->origin > device->origin)
        device->origin = channel->origin;
}

static void use_other_channel(struct wm_aipm_metrics *metrics, size_t index)
{
    const struct {
        const char *label, *metric;
        size_t *place;
    } uses[] = {
        { "tree", "cpu_time", &metrics->tree_cpu },
        { "tree", "memory_total", &metrics->tree_memory },
        { "tree", "memory_private", &metrics->tree_private },
        { "tree", "cpu_share", &metrics->tree_share },
        { "host", "cpu_time", &metrics->host_cpu },
        { "host", "memory_used", &metrics->host_memory },
    };

    for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++) {
        if (strcmp(metrics->channels[index].label, uses[i].label) == 0 &&
            strcmp(metrics->channels[index].metric, uses[i].metric) == 0)
            *uses[i].place = index;
    }
}

static void use_channels(struct wm_aipm_metrics *metrics)
{
    metrics->tree_cpu = NONE;
    metrics->tree_memory = NONE;
    metrics->tree_private = NONE;
    metrics->tree_share = NONE;
    metrics->host_cpu = NONE;
    metrics->host_memory = NONE;
    for (size_t i = 0; i < metrics->count; i++) {
        enum wm_device_kind kind = metrics->channels[i].device_kind;
        if (part_of(&metrics->channels[i]) != PART_OTHER)
            use_device_channel(metrics, i);
        else if (kind == WM_DEVICE_HOST || kind == WM_DEVICE_TREE)
            use_other_channel(metrics, i);
    }
}

int wm_aipm_metrics_init(struct wm_aipm_metrics *metrics, const struct wm_run *run,
                         const struct wm_channel *channels, size_t count)
{
    *metrics = (struct wm_aipm_metrics) {
        .run = run,
        .channels = channels,
        .count = count,
        .devices = calloc(count + 1, sizeof(*metrics->devices)),
        .before = calloc(count + 1, sizeof(*metrics->before)),
        .before_saved = calloc(count + 1, sizeof(*metrics->before_saved)),
    };
    if (!metrics->devices || !metrics->before || !metrics->before_saved)
        return WM_ENOMEM;
    use_channels(metrics);
    return WM_OK;
}

/* A record that is being put together. Numbers that are not known are left out. */
struct record {
    const struct wm_aipm_metrics *metrics;
    const struct wm_tick *tick;
    char pid[16];
    json_t *cpu;
};

static void put_number(struct record *record, const char *key, double value)
{
    if (!isnan(value))
        wm_json_set(&record->cpu, key, json_real(value));
}

/* For the one process that stands for all of them. */
static void put_process(struct record *record, const char *key, double value)
{
    if (!isnan(value))
        wm_json_set(&record->cpu, key, json_pack("{s:f}", record->pid, value));
}

/* NAN where there is none. */
static double value_of(const struct record *record, size_t channel)
{
    if (channel == NONE || record->tick->readings[channel].state != WM_READING_OK ||
        !isfinite(record->tick->readings[channel].value))
        return NAN;
    return record->tick->readings[channel].value;
}

/* By how much a counter has grown since it was last seen, and in how many seconds.
 * NAN where that is not known. */
static double increase_of(const struct record *record, size_t channel, double *ret_seconds)
{
    double value = value_of(record, channel);

    if (isnan(value))
        return NAN;
    const struct wm_aipm_before *before = &record->metrics->before[channel];
    int64_t when_ns = record->tick->readings[channel].when_ns;
    if (!before->there || value < before->value || when_ns <= before->when_ns)
        return NAN;
    *ret_seconds = (double)(when_ns - before->when_ns) / 1e9;
    return value - before->value;
}

/* Where the counter tells nothing (it is not there after all, was set back, or has not
 * moved yet and may be dead), what the device says of its power stands in. */
static double watts_of(const struct record *record, const struct wm_aipm_device *device)
{
    double seconds = 0, joules = NAN;

    if (device->energy != NONE)
        joules = increase_of(record, device->energy, &seconds);
    if (isnan(joules) ||
        (joules <= 0 && !record->metrics->before[device->energy].has_moved))
        return value_of(record, device->power);
    return joules / seconds;
}

/* All of them or none: a part would pass for the whole. */
static double sum_of_part(const struct record *record, enum part part)
{
    double sum = NAN;

    for (size_t i = 0; i < record->metrics->device_count; i++) {
        const struct wm_aipm_device *device = &record->metrics->devices[i];
        if (device->part != part)
            continue;
        double watts = watts_of(record, device);
        if (isnan(watts))
            return NAN;
        sum = isnan(sum) ? watts : sum + watts;
    }
    return sum;
}

static double share_of_tree(const struct record *record)
{
    double seconds;
    double share = value_of(record, record->metrics->tree_share);

    if (!isnan(share))
        return share;
    double tree = increase_of(record, record->metrics->tree_cpu, &seconds);
    double host = increase_of(record, record->metrics->host_cpu, &seconds);
    if (isnan(tree) || isnan(host) || host <= 0)
        return NAN;
    return fmin(tree / host, 1);
}

static void put_cpu(struct record *record)
{
    const struct wm_aipm_metrics *metrics = record->metrics;
    double seconds;
    double share = share_of_tree(record);
    double memory = value_of(record, metrics->tree_memory);
    double all_memory = value_of(record, metrics->host_memory);

    put_number(record, "total_mem_use", all_memory);
    for (enum part part = 0; part < PART_COUNT; part++)
        put_number(record, part_keys[part], sum_of_part(record, part));
    put_process(record, "per_process_cpu_uses", share);
    put_process(record, "absolute_cpu_time_per_pid",
                increase_of(record, metrics->tree_cpu, &seconds));
    put_process(record, "per_process_mem_use_abs", memory);
    if (all_memory > 0)
        put_process(record, "per_process_mem_use_percent", memory / all_memory);
    put_process(record, "per_process_mem_use_uss", value_of(record, metrics->tree_private));
    put_process(record, "rel_intel_power", share * sum_of_part(record, PART_PACKAGE));
    put_process(record, "per_process_cpu_power", share * sum_of_part(record, PART_CORE));
}

/* One of the three metrics, of each GPU and of all: their sum, or their mean. The
 * keys have to be there, whatever is known. */
static void put_gpu_metric(const struct record *record, json_t **object, const char *key,
                           double (*value)(const struct record *,
                                           const struct wm_aipm_device *),
                           bool is_mean)
{
    json_t *each = json_object();
    char name[32];
    double sum = 0;
    int count = 0;

    for (size_t i = 0; i < record->metrics->device_count; i++) {
        const struct wm_aipm_device *device = &record->metrics->devices[i];
        if (device->part != PART_GPU)
            continue;
        double number = value(record, device);
        snprintf(name, sizeof(name), "%d", device->number);
        wm_json_set(&each, name, wm_json_known(true, number));
        sum += number;
        count++;
    }
    wm_json_set(object, key, wm_json_known(true, is_mean ? sum / count : sum));
    snprintf(name, sizeof(name), "per_gpu_%s", key);
    wm_json_set(object, name, each);
}

static double gpu_memory(const struct record *record, const struct wm_aipm_device *device)
{
    return value_of(record, device->memory);
}

static double gpu_percent(const struct record *record, const struct wm_aipm_device *device)
{
    return 100 * value_of(record, device->utilization);
}

static json_t *gpu_metrics(const struct record *record)
{
    json_t *gpu = json_object();

    put_gpu_metric(record, &gpu, "nvidia_power", watts_of, false);
    put_gpu_metric(record, &gpu, "nvidia_memory", gpu_memory, false);
    put_gpu_metric(record, &gpu, "nvidia_use_rate", gpu_percent, true);
    return gpu;
}

static bool has_gpu(const struct wm_aipm_metrics *metrics)
{
    for (size_t i = 0; i < metrics->device_count; i++) {
        if (metrics->devices[i].part == PART_GPU)
            return true;
    }
    return false;
}

/* {"cpu": "estimated"}, beside the metrics, where AIPowerMeter does not look: what of
 * them was not measured, by kind of device, and the worst of each kind. Nothing where all
 * was. */
static void put_origins(const struct wm_aipm_metrics *metrics, json_t **line)
{
    enum wm_origin worst[WM_DEVICE_OTHER + 1] = { WM_MEASURED };
    json_t *origins = NULL;
    bool is_any = false;

    for (size_t i = 0; i < metrics->device_count; i++) {
        const struct wm_aipm_device *device = &metrics->devices[i];
        enum wm_origin *known = &worst[device->channel->device_kind];
        if (device->origin > *known)
            *known = device->origin;
    }
    for (int kind = 0; kind <= WM_DEVICE_OTHER; kind++) {
        if (worst[kind] == WM_MEASURED)
            continue;
        if (!is_any)
            origins = json_object();
        is_any = true;
        wm_json_set(&origins, wm_word(WM_WORDS_DEVICE_KIND, kind),
                    json_string(wm_word(WM_WORDS_ORIGIN, (int)worst[kind])));
    }
    if (is_any)
        wm_json_set(line, "origin", origins);
}

char *wm_aipm_metrics_record(const struct wm_aipm_metrics *metrics,
                             const struct wm_tick *tick)
{
    struct record record = { .metrics = metrics, .tick = tick, .cpu = json_object() };
    json_t *told = json_object(), *line = json_object();
    char date[WM_LOCALTIME_SIZE];

    snprintf(record.pid, sizeof(record.pid), "%d",
             metrics->run->pid > 0 ? metrics->run->pid : 1);
    wm_localtime_format(
        metrics->run->anchor_unix_ns - metrics->run->anchor_ns + tick->when_ns, date);
    put_cpu(&record);
    wm_json_set(&told, "cpu", record.cpu);
    if (has_gpu(metrics))
        wm_json_set(&told, "gpu", gpu_metrics(&record));
    wm_json_set(&line, "date", json_string(date));
    wm_json_set(&line, "metrics", told);
    put_origins(metrics, &line);
    return wm_json_dump(line, 0);
}

void wm_aipm_metrics_pass(struct wm_aipm_metrics *metrics, const struct wm_tick *tick)
{
    for (size_t i = 0; i < tick->count; i++) {
        const struct wm_reading *reading = &tick->readings[i];
        struct wm_aipm_before *before = &metrics->before[i];
        if (reading->state != WM_READING_OK || !isfinite(reading->value))
            continue;
        before->has_moved |= before->there && reading->value != before->value;
        before->there = true;
        before->value = reading->value;
        before->when_ns = reading->when_ns;
    }
}

void wm_aipm_metrics_restart(struct wm_aipm_metrics *metrics)
{
    memset(metrics->before, 0, metrics->count * sizeof(*metrics->before));
}

void wm_aipm_metrics_save(struct wm_aipm_metrics *metrics)
{
    memcpy(metrics->before_saved, metrics->before,
           metrics->count * sizeof(*metrics->before));
}

void wm_aipm_metrics_restore(struct wm_aipm_metrics *metrics)
{
    memcpy(metrics->before, metrics->before_saved,
           metrics->count * sizeof(*metrics->before));
}

void wm_aipm_metrics_release(struct wm_aipm_metrics *metrics)
{
    free(metrics->devices);
    free(metrics->before);
    free(metrics->before_saved);
}
