/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_hwmon.c - CPU temperature, power and energy from the sensors that the
 * kernel has drivers for, in the hwmon class of sysfs and in its thermal zones.
 *
 * GPUs have sensors there too; those are the source drm's.
 */
#include "source/hwmon/source_hwmon.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_clock.h"
#include "base/base_file.h"
#include "base/base_text.h"
#include "source/source_energy.h"
#include "source/source_ops.h"

/* Beyond these a sensor is disconnected or its driver is wrong: ACPI meters write
 * all ones for "not known". */
#define MIN_CELSIUS (-50)
#define MAX_CELSIUS 200
#define MAX_WATTS 100e3

/* Some files are answered by firmware or over a slow bus, in milliseconds. Such a
 * sensor is left alone for so many times as long as it took, and its last reading
 * stands meanwhile. Once or twice in a row may be chance: we had to wait for a CPU. */
#define SLOW_NS (WM_NS_PER_MS / 5)
#define SLOW_IN_A_ROW 3
#define REST_TIMES 20

/* What a file of each says, and what it can say. */
static const struct {
    const char *metric, *unit, *noun;
    enum wm_kind kind;
    double scale, least, most; /* `scale` of the file's unit is one of ours */
} quantities[] = {
    [WM_HWMON_TEMPERATURE] = { "temperature", "celsius", "a temperature", WM_GAUGE, 1e3,
                               MIN_CELSIUS, MAX_CELSIUS },
    [WM_HWMON_POWER] = { "power", "W", "a power", WM_GAUGE, 1e6, 0, MAX_WATTS },
    [WM_HWMON_ENERGY] = { "energy", "J", "an energy", WM_COUNTER, 1e6, 0, INFINITY },
    [WM_HWMON_PRODUCT] = { "power", "W", "a current or voltage", WM_GAUGE, 1e6, 0,
                           MAX_WATTS },
};

struct hwmon {
    struct wm_hwmon_sensors sensors;
    struct wm_channel *channels; /* one per sensor */
    char detail[2048];
};

/* At k = 2: our assumption. */
#define GAIN 0.10

/* The longest time for which an average stands, where its driver does not say. */
#define LONGEST_NS (10 * WM_NS_PER_S)

/* The time over which a sensor measures, where its driver does not say. */
#define SAMPLE_S 1e-3

static struct wm_sensor sensor_facts(const struct wm_hwmon_sensor *sensor)
{
    struct wm_sensor facts = {
        .kind = WM_SENSOR_BOARD,
        .contains = sensor->contains,
        .gain = GAIN,
        .step = sensor->quantity == WM_HWMON_PRODUCT ? 0 : 1e-6, /* as the files are */
        .text = "a sensor of the board",
    };

    if (sensor->quantity == WM_HWMON_TEMPERATURE)
        return (struct wm_sensor) { 0 };
    if (sensor->is_sample) {
        facts.is_sample = true;
        facts.window_s = sensor->period_ns > 0 ? (double)sensor->period_ns / 1e9 : SAMPLE_S;
        facts.text = "a sensor of the board that reports instantaneous power";
    } else if (sensor->quantity == WM_HWMON_POWER && sensor->period_ns == 0) {
        facts.longest_ns = LONGEST_NS;
    }
    return facts;
}

static int make_channels(struct hwmon *hwmon, struct wm_error *err)
{
    hwmon->channels = calloc(hwmon->sensors.count, sizeof(*hwmon->channels));
    if (!hwmon->channels)
        return wm_fail_memory(err, "hwmon");
    for (size_t i = 0; i < hwmon->sensors.count; i++) {
        const struct wm_hwmon_sensor *sensor = &hwmon->sensors.list[i];
        hwmon->channels[i] = (struct wm_channel) {
            .source = wm_source_hwmon.name,
            .device = sensor->identity,
            .label = sensor->label,
            .metric = quantities[sensor->quantity].metric,
            .unit = quantities[sensor->quantity].unit,
            .device_kind = sensor->device_kind,
            .kind = quantities[sensor->quantity].kind,
            .period_ns = sensor->period_ns,
            .sensor = sensor_facts(sensor),
        };
    }
    return WM_OK;
}

/* Two sockets may both have a zone called "x86_pkg_temp". The later ones get their
 * number among equals as a suffix; from the end, so that those before are still equal. */
static void tell_apart(struct wm_hwmon_sensors *sensors)
{
    for (size_t i = sensors->count; i-- > 1;) {
        char *identity = sensors->list[i].identity;
        size_t length = strlen(identity);
        size_t equals = 0;

        for (size_t j = i; j-- > 0 && strcmp(sensors->list[j].identity, identity) == 0;)
            equals++;
        if (equals > 0)
            snprintf(identity + length, sizeof(sensors->list[i].identity) - length, ".%zu",
                     equals);
    }
}

static bool is_taken(const struct wm_hwmon_sensors *sensors, size_t count,
                     const char *label)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(sensors->list[i].label, label) == 0)
            return true;
    }
    return false;
}

/* Gives its own to each whose label ends with '@', and to each that has the same as
 * another. */
static void number_labels(struct wm_hwmon_sensors *sensors)
{
    for (size_t i = 0; i < sensors->count; i++) {
        char *label = sensors->list[i].label, base[32];
        size_t size = sizeof(sensors->list[i].label);
        size_t place = strcspn(label, "@");
        bool always = label[place] == '@';

        /* Room for what is put behind: "_511". */
        snprintf(base, sizeof(base), "%.*s", (int)(place < 26 ? place : 26), label);
        if (!always && !is_taken(sensors, i, label))
            continue;
        for (size_t number = always ? 0 : 2; number <= sensors->count + 2; number++) {
            snprintf(label, size, always ? "%s%zu" : "%s_%zu", base, number);
            if (!is_taken(sensors, i, label))
                break;
        }
    }
}

/* Where they are, and which see one moment of the time only. */
static void describe(struct hwmon *hwmon)
{
    size_t size = sizeof(hwmon->detail);
    const char *before = "; samples (";

    size_t used = (size_t)snprintf(hwmon->detail, size, "%s%s", hwmon->sensors.list[0].path,
                                   hwmon->sensors.count > 1 ? " and others" : "");
    for (size_t i = 0; i < hwmon->sensors.count; i++) {
        const struct wm_hwmon_sensor *sensor = &hwmon->sensors.list[i];
        if (!sensor->is_sample || used + strlen(before) + strlen(sensor->label) + 2 > size)
            continue;
        used += (size_t)snprintf(hwmon->detail + used, size - used, "%s%s", before,
                                 sensor->label);
        before = " ";
    }
    if (before[0] == ' ')
        snprintf(hwmon->detail + used, size - used, ")");
}

static bool cannot_be_read(const struct wm_hwmon_sensor *sensor)
{
    return sensor->fd < 0 || (sensor->quantity == WM_HWMON_PRODUCT && sensor->volts_fd < 0);
}

/* Lets the channels that cannot be read say why from the start. Returns why the energy of a
 * CPU or of memory is denied, or NULL. */
static const char *note_unreadable(struct hwmon *hwmon)
{
    struct wm_reading ignored;
    const char *denied = NULL;

    for (size_t i = 0; i < hwmon->sensors.count; i++) {
        struct wm_hwmon_sensor *sensor = &hwmon->sensors.list[i];
        enum wm_device_kind kind = wm_energy_offer_of(&hwmon->channels[i]).kind;
        if (!cannot_be_read(sensor))
            continue;
        wm_hwmon_read(sensor, &ignored);
        if (sensor->err.status == WM_EACCES && !denied &&
            (kind == WM_DEVICE_CPU || kind == WM_DEVICE_DRAM))
            denied = sensor->err.text;
    }
    return denied;
}

static int hwmon_open(void *state, const struct wm_source_config *config,
                      struct wm_source_found *ret_found, struct wm_error *err)
{
    struct hwmon *hwmon = state;

    int status = wm_hwmon_find_temperatures(&hwmon->sensors, config->sysfs, err);
    if (status == WM_OK)
        status = wm_hwmon_find_power(&hwmon->sensors, config->sysfs, err);
    if (status < 0)
        return status;
    if (hwmon->sensors.count == 0)
        return wm_fail(err, WM_ENODEV,
                       "no CPU temperature sensor, and none of power: looked in "
                       "%s/class/hwmon and thermal (virtual machines have none)",
                       config->sysfs);

    /* An order that lasts. */
    wm_hwmon_sort(&hwmon->sensors);
    tell_apart(&hwmon->sensors);
    number_labels(&hwmon->sensors);
    describe(hwmon);
    status = make_channels(hwmon, err);
    if (status < 0)
        return status;
    *ret_found = (struct wm_source_found) { .channels = hwmon->channels,
                                            .channel_count = hwmon->sensors.count,
                                            .detail = hwmon->detail,
                                            .denied = note_unreadable(hwmon) };
    return WM_OK;
}

static int read_number(struct wm_hwmon_sensor *sensor, int fd, int64_t *ret_number)
{
    char text[32], line[48];
    const char *end;

    ssize_t length = fd < 0 ? fd : wm_file_reread(fd, text, sizeof(text));
    if (length < 0) {
        errno = (int)-length;
        return wm_fail_errno(&sensor->err, sensor->path);
    }
    wm_text_line(line, sizeof(line), text);
    if (!wm_text_i64(line, &end, ret_number) || *end != '\0')
        return wm_fail(&sensor->err, WM_EFORMAT, "%s: '%s' is not %s", sensor->path, line,
                       quantities[sensor->quantity].noun);
    return WM_OK;
}

static int read_value(struct wm_hwmon_sensor *sensor, double *ret_value)
{
    enum wm_hwmon_quantity quantity = sensor->quantity;
    int64_t number, millivolts = 1;

    int status = read_number(sensor, sensor->fd, &number);
    if (status == WM_OK && quantity == WM_HWMON_PRODUCT)
        status = read_number(sensor, sensor->volts_fd, &millivolts);
    if (status < 0)
        return status;
    double value = (double)number / quantities[quantity].scale * (double)millivolts;
    *ret_value = value;
    if (value >= quantities[quantity].least && value <= quantities[quantity].most)
        return WM_OK;
    if (quantity == WM_HWMON_TEMPERATURE)
        return wm_fail(&sensor->err, WM_EFORMAT, "%s: %" PRId64 " millidegrees is no CPU",
                       sensor->path, number);
    if (quantity == WM_HWMON_ENERGY)
        return wm_fail(&sensor->err, WM_EFORMAT, "%s: %" PRId64 " microjoules is no total",
                       sensor->path, number);
    return wm_fail(&sensor->err, WM_EFORMAT, "%s: %g W is not what anything draws",
                   sensor->path, value);
}

void wm_hwmon_rest(struct wm_hwmon_sensor *sensor, int64_t begin_ns, int64_t end_ns)
{
    int64_t took_ns = end_ns - begin_ns;

    sensor->slow = took_ns > SLOW_NS ? sensor->slow + 1 : 0;
    if (sensor->slow < SLOW_IN_A_ROW)
        return;
    sensor->slow = SLOW_IN_A_ROW;
    sensor->rest_ns = end_ns + REST_TIMES * took_ns;
}

void wm_hwmon_read(struct wm_hwmon_sensor *sensor, struct wm_reading *ret_reading)
{
    const int64_t begin_ns = wm_clock_monotonic_ns();
    struct wm_reading reading = { 0 };
    int64_t end_ns = begin_ns;

    if (begin_ns < sensor->rest_ns) {
        *ret_reading = sensor->last;
        return;
    }
    int status = read_value(sensor, &reading.value);
    sensor->failed = status < 0;
    reading.state = wm_reading_state_of(status);
    reading.when_ns = wm_clock_middle_ns(&end_ns);
    wm_hwmon_rest(sensor, begin_ns, end_ns);
    sensor->last = reading;
    *ret_reading = reading;
}

static int hwmon_read(void *state, struct wm_reading *readings, struct wm_error *err)
{
    struct hwmon *hwmon = state;
    (void)err; /* whatever fails here fails for one channel */

    for (size_t i = 0; i < hwmon->sensors.count; i++)
        wm_hwmon_read(&hwmon->sensors.list[i], &readings[i]);
    return WM_OK;
}

static const char *hwmon_why(const void *state, size_t channel)
{
    const struct hwmon *hwmon = state;
    const struct wm_hwmon_sensor *sensor = &hwmon->sensors.list[channel];

    return sensor->failed ? sensor->err.text : NULL;
}

static void hwmon_close(void *state)
{
    struct hwmon *hwmon = state;

    while (hwmon->sensors.count > 0)
        wm_hwmon_drop_last(&hwmon->sensors);
    free(hwmon->sensors.list);
    free(hwmon->channels);
}

static const struct wm_source_file files[] = {
    { WM_SOURCE_FILE, "class/hwmon/hwmon*/temp*_input" },
    { WM_SOURCE_COUNTER, "class/hwmon/hwmon*/energy*_input" },
    { WM_SOURCE_COUNTER, "class/hwmon/hwmon*/power*_input" },
    { WM_SOURCE_COUNTER, "class/hwmon/hwmon*/power*_average" },
    { WM_SOURCE_COUNTER, "class/hwmon/hwmon*/device/power*_average" },
    { 0 },
};

const struct wm_source_ops wm_source_hwmon = {
    .name = "hwmon",
    .summary = "CPU temperature, and power and energy sensors, from hwmon",
    .traits = { .cpu_sensor = WM_SENSOR_BOARD },
    .files = files,
    .state_size = sizeof(struct hwmon),
    .open = hwmon_open,
    .read = hwmon_read,
    .why = hwmon_why,
    .close = hwmon_close,
};
