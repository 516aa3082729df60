/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_sensor.c - a table of sensors. A new one is a line in it.
 *
 * NVIDIA's periods and windows are from the measurements published with Yang, Adamek,
 * Armour, "Accurate and Convenient Energy Measurements for GPUs" (SC24), and so are
 * gain and offset: against a meter on the power lines of 19 boards, the gains
 * differed with a standard deviation of 3.6 % and the offsets with one of 5.7 W. Whether
 * the energy counter sees more of the time than power does nobody has shown: it is
 * taken to see as much. docs/energy.md tells what is published of the others, and
 * what is our assumption.
 */
#include "analyze/energy/analyze_sensor.h"

#include <fnmatch.h>
#include <math.h>
#include <string.h>

#include "analyze/analyze_stats.h"
#include "base/base_clock.h"
#include "base/text/base_number.h"

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))
#define MS WM_NS_PER_MS

#define NVIDIA_GAIN 0.07
#define NVIDIA_OFFSET_W 11.0

/* How NVIDIA's design of a board looks at its power. */
static const struct {
    const char *models[12]; /* patterns of names */
    int64_t period_ns;
    double window_s;
    bool averages; /* the older call tells the mean over a second */
    const char *text;
} nvidia[] = {
    /* Before A100, whose name some of these contain. */
    { { "*RTX 30[0-9]*", "*RTX A[0-9]*", "*A2", "*A10", "*A10-*", "*A10G*", "*A10M*",
        "*A16*", "*A40*" },
      100 * MS,
      0.100,
      true,
      "Ampere GA10x: all of each 100 ms" },
    { { "*A100*", "*A800*", "*A30", "*A30-*", "*A30X*" },
      100 * MS,
      0.025,
      false,
      "A100: 25 of each 100 ms" },
    { { "*H100*", "*H800*", "*H20", "*H20-*", "*H20 *" },
      100 * MS,
      0.025,
      true,
      "H100: 25 of each 100 ms" },
    { { "*H200*", "*GH200*", "*B[123]00*", "*GB[123]0*" },
      100 * MS,
      0.025,
      true,
      "taken to be like an H100: 25 of each 100 ms" },
    { { "*V100*", "*TITAN V*", "*GV100*", "*P100*", "*P40", "*P4", "*GTX 10[0-9]*",
        "*TITAN X*", "*Quadro P*", "*GP100*" },
      20 * MS,
      0.010,
      false,
      "Volta, Pascal: 10 of each 20 ms" },
    /* Before Turing, of which some have the same numbers. */
    { { "*GeForce RTX 40*", "*Ada*", "*L4", "*L40*", "*L20*", "*L2" },
      100 * MS,
      0.100,
      true,
      "Ada: all of each 100 ms" },
    { { "*Quadro RTX 8000*" },
      100 * MS,
      0.020,
      false,
      "Quadro RTX 8000: 20 of each 100 ms" },
    { { "*T4", "*T4-*", "*T4G*", "*RTX 20[0-9]*", "*GTX 16[0-9]*", "*Quadro RTX*",
        "*TITAN RTX*", "*T[1-9]00*", "*T1000*" },
      100 * MS,
      0.100,
      false,
      "Turing: all of each 100 ms" },
    /* Anything else: as little as any is known to see. */
    { { "*" }, 100 * MS, 0.025, true, "not in the table: taken to see 25 of each 100 ms" },
};

static void find_nvidia(const char *model, struct wm_sensor *sensor, bool *ret_averages)
{
    for (size_t i = 0; i < ARRAY_LEN(nvidia); i++) {
        for (size_t k = 0; k < ARRAY_LEN(nvidia[i].models) && nvidia[i].models[k]; k++) {
            if (fnmatch(nvidia[i].models[k], model, 0) != 0)
                continue;
            *sensor = (struct wm_sensor) {
                .period_ns = nvidia[i].period_ns,
                .window_s = nvidia[i].window_s,
                .gain = NVIDIA_GAIN,
                .offset_w = NVIDIA_OFFSET_W,
                .text = nvidia[i].text,
            };
            *ret_averages = nvidia[i].averages;
            return;
        }
    }
}

/* The rest, by source, kind of device and pattern of the model. The period is the
 * channel's. */
static const struct {
    const char *source;
    enum wm_device_kind kind;
    const char *model;
    double gain;
    const char *text;
    double offset_w;
} others[] = {
    { "rapl", WM_DEVICE_CPU, "*Intel*", 0.05, "RAPL, Intel: measured since Haswell", 0 },
    { "rapl", WM_DEVICE_CPU, "*", 0.10, "RAPL, of a model of the CPU", 0 },
    { "rapl", WM_DEVICE_CPU_PART, "*", 0.10, "RAPL, a part of a CPU", 0 },
    { "rapl", WM_DEVICE_DRAM, "*", 0.20, "RAPL, memory", 0 },
    { "rapl", WM_DEVICE_PLATFORM, "*", 0.10, "RAPL, platform", 0 },
    { "drm", WM_DEVICE_GPU, "*", 0.10, "the GPU's own sensor", 0 },
    { "drm", WM_DEVICE_OTHER, "*", 0.10, "the sensor of CPU and GPU together", 0 },
    { "hwmon", WM_DEVICE_CPU, "*", 0.10, "a sensor of the board", 0 },
    { "hwmon", WM_DEVICE_CPU_PART, "*", 0.10, "a sensor of the board", 0 },
    { "hwmon", WM_DEVICE_DRAM, "*", 0.10, "a sensor of the board", 0 },
    { "hwmon", WM_DEVICE_PLATFORM, "*", 0.10, "a sensor of the board", 0 },
    { "hwmon", WM_DEVICE_OTHER, "*", 0.10, "a sensor of the board", 0 },
    { "aipowermeter", WM_DEVICE_GPU, "*", NVIDIA_GAIN, "a GPU that AIPowerMeter read",
      NVIDIA_OFFSET_W },
    { "battery", WM_DEVICE_PLATFORM, "*", 0.10, "the battery's own gauge", 0 },
    { "meter", WM_DEVICE_PLATFORM, "*", 0.02, "an external meter", 0 },
};

/* The moment that a sensor of a board takes to look, where it does not say. */
#define SAMPLE_S 0.001

#define OTHER_GAIN 0.10
#define ESTIMATE_GAIN 0.50

static void find_other(const struct wm_channel *channel, struct wm_sensor *sensor)
{
    const char *model = channel->model ? channel->model : "";

    *sensor = (struct wm_sensor) { .gain = OTHER_GAIN, .text = "not in the table" };
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        if (strcmp(others[i].source, channel->source) != 0 ||
            others[i].kind != channel->device_kind ||
            fnmatch(others[i].model, model, 0) != 0)
            continue;
        sensor->gain = others[i].gain;
        sensor->offset_w = others[i].offset_w;
        sensor->text = others[i].text;
        break;
    }
}

/* As source_nvml_power.c names the call whose meaning depends on the board. */
#define OLDER_CALL "power by nvmlDeviceGetPowerUsage"
#define OTHER_FIELDS ", averages of the whole module"

/* Whether a list such as "gpu1 gpu3)" has the label. */
static bool has_label(const char *list, const char *label)
{
    size_t length = strlen(label);

    for (;;) {
        size_t word = strcspn(list, " )");
        if (word == length && strncmp(list, label, length) == 0)
            return true;
        if (list[word] != ' ')
            return false;
        list += word + 1;
    }
}

/* Where the boards differ their labels stand behind the call: "power by POWER_INSTANT
 * (gpu0), power by nvmlDeviceGetPowerUsage (gpu1)". */
static bool uses_older_call(const char *detail, const char *label)
{
    const char *at = detail;

    while (at && (at = strstr(at, OLDER_CALL)) != NULL) {
        at += strlen(OLDER_CALL);
        if (strncmp(at, OTHER_FIELDS, strlen(OTHER_FIELDS)) == 0)
            at += strlen(OTHER_FIELDS);
        if (strncmp(at, " (", 2) != 0 || has_label(at + 2, label))
            return true;
    }
    return false;
}

/* As source_hwmon.c names the sensors that tell the power of a moment. */
#define SAMPLES "samples ("

static bool is_sample(const struct wm_channel *channel, const char *detail)
{
    const char *list =
        detail && strcmp(channel->source, "hwmon") == 0 && channel->kind == WM_GAUGE
            ? strstr(detail, SAMPLES)
            : NULL;

    return list && has_label(list + strlen(SAMPLES), channel->label);
}

static bool number_before(const char *text, const char *end, double *ret_number)
{
    const char *begin = end;

    while (begin > text && strchr("0123456789.+e", begin[-1]))
        begin--;
    return wm_number_parse(begin, (size_t)(end - begin), ret_number);
}

/* As source_estimate.c and its model name them: "10 to 65 W by load", "4 vCPU x 0.74-3.50 W
 * by load", "memory 15.6 GiB x 0.3725 W". */
static double most_of_model(enum wm_device_kind kind, const char *detail)
{
    const char *units = kind == WM_DEVICE_CPU ? " vCPU x " : " GiB x ";
    const char *watts = kind == WM_DEVICE_CPU ? " W by load" : " W, Green Algorithms";
    const char *at = detail ? strstr(detail, units) : NULL;
    const char *end = detail ? strstr(detail, watts) : NULL;
    double each, count = 1;

    if (!end || !number_before(detail, end, &each))
        return 0;
    if (at && at < end && !number_before(detail, at, &count))
        return 0;
    return fmax(each * count, 0);
}

void wm_sensor_find(const struct wm_channel *channel, const char *detail,
                    struct wm_sensor *ret_sensor)
{
    struct wm_sensor sensor = { 0 };
    bool averages = false;

    if (channel->origin == WM_SIMULATED) {
        sensor.text = "simulated";
    } else if (channel->origin == WM_ESTIMATED) {
        sensor.gain = ESTIMATE_GAIN;
        sensor.most_w = most_of_model(channel->device_kind, detail);
        sensor.is_smooth = true;
        sensor.text = "a model, not a sensor";
    } else if (strcmp(channel->source, "nvml") == 0) {
        find_nvidia(channel->model ? channel->model : "", &sensor, &averages);
    } else {
        find_other(channel, &sensor);
    }
    if (is_sample(channel, detail)) {
        sensor.is_sample = true;
        sensor.window_s =
            channel->period_ns > 0 ? (double)channel->period_ns / 1e9 : SAMPLE_S;
        sensor.text = "a sensor of the board that tells the power of a moment";
    }
    if (averages && channel->kind == WM_GAUGE && uses_older_call(detail, channel->label)) {
        sensor.window_s = 1;
        sensor.text = "the mean over a second";
    }
    if (sensor.period_ns == 0)
        sensor.period_ns = channel->period_ns;
    *ret_sensor = sensor;
}

double wm_sensor_seen(const struct wm_sensor *sensor, double period_s)
{
    if (sensor->window_s <= 0 || sensor->window_s >= period_s)
        return 1;
    return sensor->window_s / period_s;
}

void wm_sensor_pace_add(struct wm_sensor_pace *pace, const struct wm_reading *reading)
{
    if (!wm_stats_usable(reading) || (pace->started && reading->when_ns <= pace->last_ns))
        return;
    if (pace->started) {
        pace->polls++;
        if (reading->value != pace->value) {
            double seconds = wm_stats_seconds(pace->change_ns, reading->when_ns);
            if (pace->changes++ > 0) {
                pace->sum_s += seconds;
                pace->square_s += seconds * seconds;
            }
            pace->change_ns = reading->when_ns;
        }
    }
    if (!pace->started)
        pace->first_ns = reading->when_ns;
    pace->started = true;
    pace->value = reading->value;
    pace->last_ns = reading->when_ns;
}

/* Fewer readings for each change, fewer changes, or changes farther from a beat than
 * readings at a third of the period make them, tell nothing. */
#define LEAST_POLLS 3
#define LEAST_CHANGES 9
#define MOST_SPREAD 0.35

/* But a few changes that come much sooner than they should are enough to know that
 * the sensor is faster; it may be faster yet, where each reading is another. */
#define LEAST_FAST_CHANGES 4
#define FASTER 0.75

static double mean_s(const struct wm_sensor_pace *pace)
{
    return pace->sum_s / (double)(pace->changes - 1);
}

static bool has_beat(const struct wm_sensor_pace *pace)
{
    if (pace->changes < LEAST_CHANGES || pace->polls < LEAST_POLLS * pace->changes)
        return false;

    double mean = mean_s(pace);
    double variance = fmax(pace->square_s / (double)(pace->changes - 1) - mean * mean, 0);
    return sqrt(variance) <= MOST_SPREAD * mean;
}

static bool is_faster(const struct wm_sensor_pace *pace, double period_s)
{
    return pace->changes >= LEAST_FAST_CHANGES && mean_s(pace) < FASTER * period_s;
}

double wm_sensor_pace_poll_s(const struct wm_sensor_pace *pace)
{
    if (pace->polls == 0)
        return 0;
    return wm_stats_seconds(pace->first_ns, pace->last_ns) / (double)pace->polls;
}

bool wm_sensor_is_measured(const struct wm_sensor *sensor,
                           const struct wm_sensor_pace *pace)
{
    return !sensor->is_smooth &&
           (has_beat(pace) || is_faster(pace, (double)sensor->period_ns / 1e9));
}

double wm_sensor_period_s(const struct wm_sensor *sensor, const struct wm_sensor_pace *pace)
{
    return wm_sensor_is_measured(sensor, pace) ? mean_s(pace)
                                               : (double)sensor->period_ns / 1e9;
}
