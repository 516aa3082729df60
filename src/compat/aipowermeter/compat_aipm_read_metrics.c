/* SPDX-License-Identifier: Apache-2.0 */
/* compat_aipm_read_metrics.c - what AIPowerMeter's metrics mean. */
#include "compat/aipowermeter/compat_aipm_read_metrics.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_array.h"
#include "base/text/base_text.h"
#include "base/text/base_utf8.h"
#include "record/record_column.h"

/* GPUs are numbered, and nobody has more of them. */
enum { GPUS_MAX = 1024 };

/* Sensors of one chip. */
enum { SENSORS_MAX = 256 };

/* More watts, bytes or seconds than that nothing has measured. */
#define MOST 1e18

/* How a value stands in a record. */
enum form {
    FORM_NUMBER,      /* a number, or a list of one, as one generation wrote it */
    FORM_SUM,         /* one for each process, to be added */
    FORM_PER_GPU,     /* one for each GPU */
    FORM_PER_GPU_SUM, /* one for each process of each GPU */
};

struct rule {
    const char *group, *key;
    enum form form;
    const char *source, *device, *label; /* of no GPU */
    const char *metric, *unit;
    enum wm_device_kind device_kind;
    enum wm_kind kind;
    double scale;
};

#define OURS "aipowermeter"
#define GAUGE(group, key, form, source, device, label, metric, unit, kind)                 \
    {                                                                                      \
        group, key, form, source, device, label, metric, unit, kind, WM_GAUGE, 1           \
    }
#define CPU_POWER(key, device, label, kind)                                                \
    GAUGE("cpu", key, FORM_NUMBER, OURS, device, label, "power", "W", kind)
#define TREE(key, source, metric, unit)                                                    \
    GAUGE("cpu", key, FORM_SUM, source, "tree", "tree", metric, unit, WM_DEVICE_TREE)
#define GPU(key, form, metric, unit, scale)                                                \
    {                                                                                      \
        "gpu", key, form, OURS, NULL, NULL, metric, unit, WM_DEVICE_GPU, WM_GAUGE, scale   \
    }

/* Sources and labels are those under which wattmeter knows the same things. The
 * sum over all GPUs is no device, but all there is of their power in some of the
 * oldest files. */
static const struct rule rules[] = {
    CPU_POWER("intel_power", "package", "package", WM_DEVICE_CPU),
    CPU_POWER("total_cpu_power", "package/core", "core", WM_DEVICE_CPU_PART),
    CPU_POWER("uncore_power", "package/uncore", "uncore", WM_DEVICE_CPU_PART),
    CPU_POWER("total_dram_power", "dram", "dram", WM_DEVICE_DRAM),
    CPU_POWER("psys_power", "psys", "psys", WM_DEVICE_PLATFORM),
    GAUGE("cpu", "total_mem_use", FORM_NUMBER, "host", "host", "host", "memory_used", "B",
          WM_DEVICE_HOST),
    { "cpu", "absolute_cpu_time_per_pid", FORM_SUM, "tracker", "tree", "tree", "cpu_time",
      "s", WM_DEVICE_TREE, WM_COUNTER, 1 },
    TREE("per_process_mem_use_abs", "tree", "memory_total", "B"),
    TREE("mem_use_abs", "tree", "memory_total", "B"),
    TREE("per_process_mem_use_uss", "tree", "memory_private", "B"),
    TREE("mem_use_uss", "tree", "memory_private", "B"),
    TREE("per_process_cpu_uses", OURS, "cpu_share", "ratio"),
    TREE("cpu_uses", OURS, "cpu_share", "ratio"),
    TREE("rel_intel_power", OURS, "package_power", "W"),
    TREE("per_process_cpu_power", OURS, "core_power", "W"),
    TREE("per_process_dram_power", OURS, "dram_power", "W"),
    GAUGE("gpu", "nvidia_estimated_attributable_power_draw", FORM_NUMBER, OURS, "tree",
          "tree", "gpu_power", "W", WM_DEVICE_TREE),
    GAUGE("gpu", "nvidia_draw_absolute", FORM_NUMBER, OURS, "gpus", "gpus", "power_sum",
          "W", WM_DEVICE_OTHER),
    GAUGE("gpu", "nvidia_power", FORM_NUMBER, OURS, "gpus", "gpus", "power_sum", "W",
          WM_DEVICE_OTHER),
    GPU("per_gpu_nvidia_power", FORM_PER_GPU, "power", "W", 1),
    GPU("per_gpu_nvidia_use_rate", FORM_PER_GPU, "utilization", "ratio", 0.01),
    GPU("per_gpu_nvidia_memory", FORM_PER_GPU, "memory_used", "B", 1),
    GPU("per_gpu_power_draw", FORM_PER_GPU, "power", "W", 1),
    GPU("per_gpu_per_pid_utilization_absolute", FORM_PER_GPU_SUM, "utilization", "ratio",
        1),
    GPU("per_gpu_absolute_percent_usage", FORM_PER_GPU, "tree_utilization", "ratio", 1),
    GPU("per_gpu_estimated_attributable_utilization", FORM_PER_GPU, "tree_share", "ratio",
        1),
    GPU("per_gpu_attributable_power", FORM_PER_GPU, "tree_power", "W", 1),
    GPU("per_gpu_attributable_mem_use", FORM_PER_GPU_SUM, "tree_memory_used", "B", 1),
};

#undef GPU
#undef TREE
#undef CPU_POWER
#undef GAUGE

enum { RULE_COUNT = sizeof(rules) / sizeof(rules[0]) };

/* A value that was found, and the channel that it is one of; without strings
 * that live any longer than the call. */
struct finding {
    struct wm_channel channel;
    double value;
};

/* Gets each value of a record. */
struct taker {
    void (*take)(struct taker *taker, const struct finding *finding);
    struct wm_aipm_channels *set;
    struct wm_reading *readings;
    bool failed;
};

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

static void note_odd_gpu(struct wm_aipm_channels *set, const char *key)
{
    if (set->odd_gpu[0])
        return;
    wm_text_utf8(set->odd_gpu, sizeof(set->odd_gpu), key[0] ? key : "?",
                 strlen(key) + !key[0]);
    wm_text_clean(set->odd_gpu);
}

/* AIPowerMeter numbers them. */
static bool read_gpu_number(const char *key, unsigned int *ret_number)
{
    const char *end;
    uint64_t number;

    if (!wm_text_u64(key, &end, &number) || *end || number >= GPUS_MAX)
        return false;
    *ret_number = (unsigned int)number;
    return true;
}

static void take_gpu(struct taker *taker, const struct rule *rule, const char *key,
                     const json_t *value)
{
    unsigned int gpu;
    char name[16];
    double number;

    if (!read_gpu_number(key, &gpu)) {
        note_odd_gpu(taker->set, key);
        return;
    }
    if (rule->form == FORM_PER_GPU ? !read_number(value, &number)
                                   : !read_sum(value, &number))
        return;

    number *= rule->scale;
    if (strcmp(rule->unit, "ratio") == 0)
        number = fmin(number, 1);
    snprintf(name, sizeof(name), "gpu%u", gpu);
    struct finding finding = {
        .channel = {
            .source = rule->source,
            .device = name,
            .label = name,
            .metric = rule->metric,
            .unit = rule->unit,
            .device_kind = rule->device_kind,
            .kind = rule->kind,
        },
        .value = number,
    };
    taker->take(taker, &finding);
}

static void take_rule(struct taker *taker, const struct rule *rule, const json_t *value)
{
    const char *key;
    json_t *part;
    double number;

    if (rule->form == FORM_PER_GPU || rule->form == FORM_PER_GPU_SUM) {
        json_object_foreach((json_t *)value, key, part)
        {
            take_gpu(taker, rule, key, part);
        }
        return;
    }
    /* Without any process there was nothing to look at. */
    if (json_is_object(value) && json_object_size(value) == 0)
        return;
    if (rule->form == FORM_SUM && json_is_object(value) ? !read_sum(value, &number)
                                                        : !read_number(value, &number))
        return;
    struct finding finding = {
        .channel = {
            .source = rule->source,
            .device = rule->device,
            .label = rule->label,
            .metric = rule->metric,
            .unit = rule->unit,
            .device_kind = rule->device_kind,
            .kind = rule->kind,
        },
        .value = number * rule->scale,
    };
    taker->take(taker, &finding);
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

static void take_sensor(struct taker *taker, const char *chip, const json_t *sensors,
                        size_t place)
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

    struct finding finding = {
        .channel = {
            .source = OURS,
            .device = device,
            .label = label,
            .metric = "temperature",
            .unit = "celsius",
            .device_kind = is_cpu_chip(chip) ? WM_DEVICE_CPU : WM_DEVICE_OTHER,
            .kind = WM_GAUGE,
        },
        .value = celsius,
    };
    taker->take(taker, &finding);
}

static void take_temperatures(struct taker *taker, const json_t *chips)
{
    const char *chip;
    json_t *sensors;

    json_object_foreach((json_t *)chips, chip, sensors)
    {
        size_t count = json_array_size(sensors);
        for (size_t i = 0; i < count && i < SENSORS_MAX; i++)
            take_sensor(taker, chip, sensors, i);
    }
}

static void take_all(struct taker *taker, const json_t *metrics)
{
    for (size_t i = 0; i < RULE_COUNT; i++) {
        const json_t *group = json_object_get(metrics, rules[i].group);
        const json_t *value = json_object_get(group, rules[i].key);
        if (value)
            take_rule(taker, &rules[i], value);
    }
    take_temperatures(taker, json_object_get(metrics, "temperature"));
}

/* By what a channel is found again. */
static void make_key(const struct wm_channel *channel, char *key, size_t size)
{
    snprintf(key, size, "%s %s", channel->device, channel->metric);
}

static const json_t *find_place(const struct wm_aipm_channels *set,
                                const struct wm_channel *channel)
{
    char key[192];

    make_key(channel, key, sizeof(key));
    return json_object_get(set->index, key);
}

static void add_channel(struct taker *taker, const struct finding *finding)
{
    struct wm_aipm_channels *set = taker->set;
    char key[192];

    if (taker->failed || find_place(set, &finding->channel))
        return;
    if (set->count == WM_CHANNELS_MAX) {
        set->left_out++;
        return;
    }

    struct wm_channel channel = finding->channel;
    channel.device = wm_text_copy(channel.device);
    channel.label = wm_text_copy(channel.label);
    make_key(&finding->channel, key, sizeof(key));
    if (!channel.device || !channel.label ||
        wm_array_reserve(&set->channels, set->count, &set->room, sizeof(*set->channels)) <
            0 ||
        json_object_set_new_nocheck(set->index, key, json_integer((json_int_t)set->count)) <
            0) {
        free((char *)channel.device);
        free((char *)channel.label);
        taker->failed = true;
        return;
    }
    set->channels[set->count++] = channel;
}

static void set_reading(struct taker *taker, const struct finding *finding)
{
    const json_t *place = find_place(taker->set, &finding->channel);

    if (!place)
        return;
    struct wm_reading *reading = &taker->readings[json_integer_value(place)];
    reading->state = WM_READING_OK;
    reading->value = finding->value;
}

int wm_aipm_channels_init(struct wm_aipm_channels *set, struct wm_error *err)
{
    *set = (struct wm_aipm_channels) { .index = json_object() };
    return set->index ? WM_OK : wm_fail(err, WM_ENOMEM, "AIPowerMeter: out of memory");
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
    struct taker taker = { .take = add_channel, .set = set };

    take_all(&taker, metrics);
    return taker.failed ? -1 : 0;
}

void wm_aipm_values(const struct wm_aipm_channels *set, const json_t *metrics,
                    struct wm_reading *readings)
{
    struct taker taker = {
        .take = set_reading,
        .set = (struct wm_aipm_channels *)set,
        .readings = readings,
    };

    take_all(&taker, metrics);
}

double wm_aipm_package_watts(const json_t *metrics)
{
    const json_t *cpu = json_object_get(metrics, "cpu");
    double watts;

    return read_number(json_object_get(cpu, "intel_power"), &watts) ? watts : NAN;
}

bool wm_aipm_has_package(const json_t *metrics)
{
    return json_object_get(json_object_get(metrics, "cpu"), "intel_power") != NULL;
}

const char *wm_aipm_generation(const json_t *metrics)
{
    const json_t *cpu = json_object_get(metrics, "cpu");
    const json_t *gpu = json_object_get(metrics, "gpu");

    if (json_object_get(gpu, "nvidia_power") || json_object_get(cpu, "rel_intel_power"))
        return "2026 (NVML)";
    if (json_object_get(gpu, "nvidia_estimated_attributable_power_draw") ||
        json_object_get(cpu, "mem_use_abs"))
        return "2021";
    if (gpu || cpu)
        return "2021 to 2025 (nvidia-smi)";
    return NULL;
}
