/* SPDX-License-Identifier: Apache-2.0 */
/* compat_aipm_metrics.c - what AIPowerMeter's metrics mean, and which channels they are. */
#include "compat/aipowermeter/compat_aipm.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_array.h"
#include "base/base_text.h"
#include "base/base_utf8.h"

/* GPUs are numbered, and nobody has more of them. */
enum { GPUS_MAX = 1024 };

/* Sensors of one chip. */
enum { SENSORS_MAX = 256 };

/* More watts, bytes or seconds than that nothing has measured. */
#define MOST 1e18

/* The place of the packages' power in the table. */
enum { PACKAGES };

#define OURS "aipowermeter"
#define CHANNEL(source_, device_, label_, metric_, unit_, device_kind_, kind_, scale_)     \
    .channel = { .source = source_,                                                        \
                 .device = device_,                                                        \
                 .label = label_,                                                          \
                 .metric = metric_,                                                        \
                 .unit = unit_,                                                            \
                 .device_kind = device_kind_,                                              \
                 .kind = kind_ },                                                          \
    .scale = scale_
#define POWER(device, label, kind)                                                         \
    CHANNEL(OURS, device, label, "power", "W", kind, WM_GAUGE, 1)
#define TREE(source, metric, unit, kind)                                                   \
    CHANNEL(source, "tree", "tree", metric, unit, WM_DEVICE_TREE, kind, 1)
#define GPUS CHANNEL(OURS, "gpus", "gpus", "power_sum", "W", WM_DEVICE_OTHER, WM_GAUGE, 1)
#define GPU(metric, unit, scale_)                                                          \
    CHANNEL(OURS, NULL, NULL, metric, unit, WM_DEVICE_GPU, WM_GAUGE, scale_)

/* Sources and labels are those under which wattmeter knows the same things. The sum over
 * all GPUs is no device, but all there is of their power in some of the oldest files. */
const struct wm_aipm_metric wm_aipm_metrics[] = {
    [PACKAGES] = { "cpu", "intel_power", WM_AIPM_NUMBER,
                   POWER("package", "package", WM_DEVICE_CPU), .place = 2 },
    { "cpu", "total_cpu_power", WM_AIPM_NUMBER,
      POWER("package/core", "core", WM_DEVICE_CPU_PART), .place = 3 },
    { "cpu", "uncore_power", WM_AIPM_NUMBER,
      POWER("package/uncore", "uncore", WM_DEVICE_CPU_PART), .place = 4 },
    { "cpu", "total_dram_power", WM_AIPM_NUMBER, POWER("dram", "dram", WM_DEVICE_DRAM),
      .place = 5 },
    { "cpu", "psys_power", WM_AIPM_NUMBER, POWER("psys", "psys", WM_DEVICE_PLATFORM),
      .place = 6 },
    { "cpu", "total_mem_use", WM_AIPM_NUMBER,
      CHANNEL("host", "host", "host", "memory_used", "B", WM_DEVICE_HOST, WM_GAUGE, 1),
      .place = 1 },
    { "cpu", "absolute_cpu_time_per_pid", WM_AIPM_SUM,
      TREE("tracker", "cpu_time", "s", WM_COUNTER), .place = 8 },
    { "cpu", "per_process_mem_use_abs", WM_AIPM_SUM,
      TREE("tree", "memory_total", "B", WM_GAUGE), .place = 9 },
    { "cpu", "mem_use_abs", WM_AIPM_SUM, TREE("tree", "memory_total", "B", WM_GAUGE),
      .generation = "2021" },
    { "cpu", "per_process_mem_use_percent", WM_AIPM_SUM,
      TREE(OURS, "memory_share", "ratio", WM_GAUGE), .place = 10 },
    { "cpu", "mem_use_percent", WM_AIPM_SUM,
      TREE(OURS, "memory_share", "ratio", WM_GAUGE) },
    { "cpu", "per_process_mem_use_uss", WM_AIPM_SUM,
      TREE("tree", "memory_private", "B", WM_GAUGE), .place = 11 },
    { "cpu", "mem_use_uss", WM_AIPM_SUM, TREE("tree", "memory_private", "B", WM_GAUGE) },
    { "cpu", "per_process_cpu_uses", WM_AIPM_SUM,
      TREE(OURS, "cpu_share", "ratio", WM_GAUGE), .place = 7 },
    { "cpu", "cpu_uses", WM_AIPM_SUM, TREE(OURS, "cpu_share", "ratio", WM_GAUGE) },
    { "cpu", "rel_intel_power", WM_AIPM_SUM, TREE(OURS, "package_power", "W", WM_GAUGE),
      .generation = "2026 (NVML)", .place = 12 },
    { "cpu", "per_process_cpu_power", WM_AIPM_SUM, TREE(OURS, "core_power", "W", WM_GAUGE),
      .place = 13 },
    { "cpu", "per_process_dram_power", WM_AIPM_SUM, TREE(OURS, "dram_power", "W", WM_GAUGE),
      .place = 14 },
    { "gpu", "nvidia_estimated_attributable_power_draw", WM_AIPM_NUMBER,
      TREE(OURS, "gpu_power", "W", WM_GAUGE), .generation = "2021" },
    { "gpu", "nvidia_draw_absolute", WM_AIPM_NUMBER, GPUS },
    { "gpu", "nvidia_power", WM_AIPM_NUMBER, GPUS, .generation = "2026 (NVML)" },
    { "gpu", "per_gpu_nvidia_power", WM_AIPM_PER_GPU, GPU("power", "W", 1), .place = 15 },
    { "gpu", "per_gpu_nvidia_use_rate", WM_AIPM_PER_GPU, GPU("utilization", "ratio", 0.01),
      .place = 17 },
    { "gpu", "per_gpu_nvidia_memory", WM_AIPM_PER_GPU, GPU("memory_used", "B", 1),
      .place = 16 },
    { "gpu", "per_gpu_power_draw", WM_AIPM_PER_GPU, GPU("power", "W", 1) },
    { "gpu", "per_gpu_per_pid_utilization_absolute", WM_AIPM_PER_GPU_SUM,
      GPU("utilization", "ratio", 1) },
    { "gpu", "per_gpu_absolute_percent_usage", WM_AIPM_PER_GPU,
      GPU("tree_utilization", "ratio", 1) },
    { "gpu", "per_gpu_estimated_attributable_utilization", WM_AIPM_PER_GPU,
      GPU("tree_share", "ratio", 1) },
    { "gpu", "per_gpu_attributable_power", WM_AIPM_PER_GPU, GPU("tree_power", "W", 1) },
    { "gpu", "per_gpu_attributable_mem_use", WM_AIPM_PER_GPU_SUM,
      GPU("tree_memory_used", "B", 1) },
    { .group = NULL },
};

#undef GPU
#undef GPUS
#undef TREE
#undef POWER
#undef CHANNEL

/* By what a channel is found again. */
static const json_t *find_place(const struct wm_aipm_channels *set,
                                const struct wm_channel *channel, char key[192])
{
    snprintf(key, 192, "%s %s", channel->device, channel->metric);
    return json_object_get(set->index, key);
}

/* False: out of memory. */
static bool add_channel(struct wm_aipm_channels *set, const struct wm_channel *found,
                        const char *key)
{
    struct wm_channel channel = *found;

    channel.device = wm_text_copy(channel.device);
    channel.label = wm_text_copy(channel.label);
    if (!channel.device || !channel.label ||
        wm_array_reserve(&set->channels, set->count, &set->room, sizeof(*set->channels)) <
            0 ||
        json_object_set_new_nocheck(set->index, key, json_integer((json_int_t)set->count)) <
            0) {
        free((char *)channel.device);
        free((char *)channel.label);
        return false;
    }
    set->channels[set->count++] = channel;
    return true;
}

/* The strings of `channel` live no longer than the call. */
static void take(struct wm_aipm_channels *set, const struct wm_channel *channel,
                 double value)
{
    char key[192];
    const json_t *place = find_place(set, channel, key);

    if (place && set->readings)
        set->readings[json_integer_value(place)] =
            (struct wm_reading) { .state = WM_READING_OK, .value = value };
    if (place || set->readings || set->failed)
        return;
    if (set->count == WM_CHANNELS_MAX)
        set->left_out++;
    else
        set->failed = !add_channel(set, channel, key);
}

/* A measurement: -1 stands for "not there" in these files, and nothing that they
 * hold can be negative. Temperatures have a rule of their own. */
static bool read_number(const json_t *value, double *ret_number)
{
    if (json_is_array(value) && json_array_size(value) == 1)
        value = json_array_get(value, 0);
    if (!json_is_number(value))
        return false;

    double number = json_number_value(value);
    if (!(number >= 0 && number <= MOST))
        return false;
    *ret_number = number;
    return true;
}

/* Of everything in it or of nothing: a part would pass for the whole. */
static bool read_sum(const json_t *object, double *ret_sum)
{
    const char *key;
    json_t *value;
    double sum = 0, number;

    if (!json_is_object(object))
        return false;
    json_object_foreach((json_t *)object, key, value)
    {
        if (!read_number(value, &number))
            return false;
        sum += number;
    }
    if (sum > MOST)
        return false;
    *ret_sum = sum;
    return true;
}

/* AIPowerMeter numbers them; what else stands there ("all") is no GPU. */
static bool read_gpu_number(const char *key, unsigned int *ret_number)
{
    const char *end;
    uint64_t number;

    if (!wm_text_u64(key, &end, &number) || *end || number >= GPUS_MAX)
        return false;
    *ret_number = (unsigned int)number;
    return true;
}

static void take_gpu(struct wm_aipm_channels *set, const struct wm_aipm_metric *metric,
                     const char *key, const json_t *value)
{
    struct wm_channel channel = metric->channel;
    unsigned int gpu;
    char name[16];
    double number;

    if (!read_gpu_number(key, &gpu))
        return;
    if (metric->form == WM_AIPM_PER_GPU ? !read_number(value, &number)
                                        : !read_sum(value, &number))
        return;

    number *= metric->scale;
    if (strcmp(channel.unit, "ratio") == 0)
        number = fmin(number, 1);
    snprintf(name, sizeof(name), "gpu%u", gpu);
    channel.device = name;
    channel.label = name;
    take(set, &channel, number);
}

static void take_metric(struct wm_aipm_channels *set, const struct wm_aipm_metric *metric,
                        const json_t *value)
{
    const char *key;
    json_t *part;
    double number;

    if (metric->form == WM_AIPM_PER_GPU || metric->form == WM_AIPM_PER_GPU_SUM) {
        json_object_foreach((json_t *)value, key, part)
        {
            take_gpu(set, metric, key, part);
        }
        return;
    }
    /* Without any process there was nothing to look at. */
    if (json_is_object(value) && json_object_size(value) == 0)
        return;
    if (metric->form == WM_AIPM_SUM && json_is_object(value) ? read_sum(value, &number)
                                                             : read_number(value, &number))
        take(set, &metric->channel, number * metric->scale);
}

static bool is_cpu_chip(const char *chip)
{
    static const char *const chips[] = { "coretemp", "k10temp",     "k8temp",
                                         "zenpower", "cpu_thermal", "cpu" };

    for (size_t i = 0; i < sizeof(chips) / sizeof(chips[0]); i++) {
        if (strcmp(chip, chips[i]) == 0)
            return true;
    }
    return false;
}

static const char *sensor_name(const json_t *sensor)
{
    const char *name = json_string_value(json_array_get(sensor, 0));

    return name ? name : "";
}

/* psutil puts the sensors of all chips of one kind into one list. */
static size_t count_namesakes(const json_t *sensors, size_t before, const char *name)
{
    size_t count = 0;

    for (size_t i = 0; i < before; i++)
        count += strcmp(sensor_name(json_array_get(sensors, i)), name) == 0;
    return count;
}

static void take_sensor(struct wm_aipm_channels *set, const char *chip,
                        const json_t *sensors, size_t place)
{
    const json_t *sensor = json_array_get(sensors, place);
    const json_t *value = json_array_get(sensor, 1);
    char device[128], label[128];

    if (!json_is_number(value))
        return;
    double celsius = json_number_value(value);
    if (!(celsius >= -273 && celsius <= 1000))
        return;

    const char *name = sensor_name(sensor);
    size_t namesakes = count_namesakes(sensors, place, name);
    snprintf(device, sizeof(device), "%.40s/%.40s/%zu", chip, name, namesakes + 1);
    snprintf(label, sizeof(label), "%.40s%s%.40s", chip, name[0] ? "_" : "", name);
    if (namesakes > 0)
        snprintf(label + strlen(label), 24, "_%zu", namesakes + 1);
    for (char *c = label; *c; c++)
        *c = isalnum((unsigned char)*c) ? (char)tolower((unsigned char)*c) : '_';

    const struct wm_channel channel = {
        .source = OURS,
        .device = device,
        .label = label,
        .metric = "temperature",
        .unit = "celsius",
        .device_kind = is_cpu_chip(chip) ? WM_DEVICE_CPU : WM_DEVICE_OTHER,
        .kind = WM_GAUGE,
    };
    take(set, &channel, celsius);
}

static void take_temperatures(struct wm_aipm_channels *set, const json_t *chips)
{
    const char *chip;
    json_t *sensors;

    json_object_foreach((json_t *)chips, chip, sensors)
    {
        size_t count = json_array_size(sensors);
        for (size_t i = 0; i < count && i < SENSORS_MAX; i++)
            take_sensor(set, chip, sensors, i);
    }
}

static const json_t *find_metric(const json_t *metrics, const struct wm_aipm_metric *metric)
{
    return json_object_get(json_object_get(metrics, metric->group), metric->key);
}

static void take_all(struct wm_aipm_channels *set, const json_t *metrics)
{
    const struct wm_aipm_metric *metric;

    for (metric = wm_aipm_metrics; metric->key; metric++) {
        const json_t *value = find_metric(metrics, metric);
        if (value)
            take_metric(set, metric, value);
    }
    take_temperatures(set, json_object_get(metrics, "temperature"));
}

int wm_aipm_channels_init(struct wm_aipm_channels *set, struct wm_error *err)
{
    *set = (struct wm_aipm_channels) { .index = json_object() };
    return set->index ? WM_OK : wm_fail_memory(err, "AIPowerMeter");
}

void wm_aipm_channels_release(struct wm_aipm_channels *set)
{
    for (size_t i = 0; i < set->count; i++) {
        free((char *)set->channels[i].device);
        free((char *)set->channels[i].label);
    }
    free(set->channels);
    json_decref(set->index);
    *set = (struct wm_aipm_channels) { 0 };
}

int wm_aipm_discover(struct wm_aipm_channels *set, const json_t *metrics)
{
    set->readings = NULL;
    take_all(set, metrics);
    return set->failed ? WM_ENOMEM : WM_OK;
}

void wm_aipm_values(struct wm_aipm_channels *set, const json_t *metrics,
                    struct wm_reading *readings)
{
    set->readings = readings;
    take_all(set, metrics);
}

struct wm_known wm_aipm_package_watts(const json_t *metrics, bool *ret_is_there)
{
    const json_t *value = find_metric(metrics, &wm_aipm_metrics[PACKAGES]);
    struct wm_known watts = { 0 };

    *ret_is_there = value != NULL;
    watts.known = read_number(value, &watts.number);
    return watts;
}

/* The latest that any of its metrics shows. */
const char *wm_aipm_generation(const json_t *metrics)
{
    const struct wm_aipm_metric *metric;
    const char *latest = NULL;

    for (metric = wm_aipm_metrics; metric->key; metric++) {
        const char *shown = metric->generation;
        if (shown && find_metric(metrics, metric) && (!latest || strcmp(shown, latest) > 0))
            latest = shown;
    }
    if (!latest && (json_object_get(metrics, "cpu") || json_object_get(metrics, "gpu")))
        return "2021 to 2025 (nvidia-smi)";
    return latest;
}
