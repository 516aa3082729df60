/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_hwmon_temperature.c - which sensors are the CPU's temperature: of the hwmon
 * class of sysfs or, where that has none, of its thermal zones.
 *
 * hwmonN and thermal_zoneN are numbered as drivers load, which differs from
 * boot to boot, so a sensor is chosen by the type its driver states. See
 * Documentation/hwmon/sysfs-interface.rst of the kernel.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base_clock.h"
#include "base/base_file.h"
#include "base/text/base_text.h"
#include "source/hwmon/source_hwmon.h"

/* More than any machine has CPU packages. */
#define MAX_SENSORS 64

#define MAX_LABELS 4
#define NO_LABEL ""

/* Drivers of CPU sensors, best first, and how the labels of their sensors
 * start, best first. A new driver is one line here. */
static const struct chip {
    const char *name;
    const char *labels[MAX_LABELS];
    int64_t period_ns;
} chips[] = {
    /* The driver asks the CPU once a second. Old kernels write "Physical". CPUs
     * before Sandy Bridge have no sensor for the package; their first core stands
     * in for it, and the identity says so. */
    { "coretemp", { "Package id ", "Physical id ", "Core " }, WM_NS_PER_S },

    /* Tctl is what drives the fans: some models add up to 27 degrees to the
     * temperature, and those have Tdie too. Before Zen the one sensor had no
     * label. Tccd is one of several dies. */
    { "k10temp", { "Tdie", "Tctl", NO_LABEL, "Tccd" }, 0 },
    { "zenpower", { "Tdie", "Tctl", "Tccd" }, 0 },

    /* Thermal zones that the kernel mirrors in hwmon. */
    { "cpu_thermal", { NO_LABEL }, 0 },
    { "cpu0_thermal", { NO_LABEL }, 0 },
    { "package_thermal", { NO_LABEL }, 0 },
    { "soc_thermal", { NO_LABEL }, 0 },
};

/* Types of thermal zones that are a CPU, best first; '-' and capitals make no
 * difference. Not "acpitz", which may be anywhere on the board. */
static const char *const zones[] = {
    "x86_pkg_temp", "cpu_thermal",     "cpu_therm",
    "cpu0_thermal", "package_thermal", "soc_thermal",
};

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

static size_t find_chip(const char *name)
{
    size_t i;

    for (i = 0; i < ARRAY_LEN(chips); i++) {
        if (strcmp(chips[i].name, name) == 0)
            break;
    }
    return i;
}

static bool same_type(const char *ours, const char *theirs)
{
    for (; *ours && *theirs; ours++, theirs++) {
        int letter = *theirs == '-' ? '_' : tolower((unsigned char)*theirs);
        if (letter != *ours)
            return false;
    }
    return *ours == *theirs;
}

static size_t find_zone(const char *type)
{
    size_t i;

    for (i = 0; i < ARRAY_LEN(zones); i++) {
        if (same_type(zones[i], type))
            break;
    }
    return i;
}

/* The place of a label in the chip's list; MAX_LABELS if it has none there. */
static size_t rank_label(const struct chip *chip, const char *label)
{
    for (size_t i = 0; i < MAX_LABELS && chip->labels[i]; i++) {
        const char *start = chip->labels[i];
        if (start[0] ? strncmp(label, start, strlen(start)) == 0 : label[0] == '\0')
            return i;
    }
    return MAX_LABELS;
}

/* The number in "temp12_input". */
static bool parse_input_name(const char *name, uint64_t *ret_number)
{
    const char *end;

    return strncmp(name, "temp", 4) == 0 && wm_text_u64(name + 4, &end, ret_number) &&
           strcmp(end, "_input") == 0;
}

/* The best sensor of a chip, by its label; among equals the lowest number. */
static bool find_best(DIR *folder, const struct chip *chip, uint64_t *ret_number,
                      char *ret_label, size_t label_size)
{
    size_t best = MAX_LABELS;
    uint64_t best_number = UINT64_MAX;
    struct dirent *entry;

    while ((entry = readdir(folder)) != NULL) {
        char file[48], label[64];
        uint64_t number;

        if (!parse_input_name(entry->d_name, &number))
            continue;
        snprintf(file, sizeof(file), "temp%" PRIu64 "_label", number);
        wm_file_read_line(dirfd(folder), file, label, sizeof(label));

        size_t rank = rank_label(chip, label);
        if (rank == MAX_LABELS || rank > best || (rank == best && number > best_number))
            continue;
        best = rank;
        best_number = number;
        if (label[0] == '\0')
            snprintf(label, sizeof(label), "temp%" PRIu64, number);
        wm_text_line(ret_label, label_size, label);
    }
    *ret_number = best_number;
    return best < MAX_LABELS;
}

/* Opens the file `value` for the last sensor of the list, which is dropped where
 * there is no such file. */
static void open_value(struct wm_hwmon_sensors *sensors, int dir, const char *path,
                       const char *value)
{
    struct wm_hwmon_sensor *sensor = &sensors->list[sensors->count - 1];

    sensor->quantity = WM_HWMON_TEMPERATURE;
    sensor->device_kind = WM_DEVICE_CPU;
    sensor->fd = wm_file_open_at(dir, value);
    snprintf(sensor->path, sizeof(sensor->path), "%s/%s", path, value);
    if (sensor->fd == -ENOENT)
        wm_hwmon_drop_last(sensors);
}

static int find_in_hwmon(DIR *folder, const char *path, struct wm_hwmon_sensors *sensors)
{
    char driver[32], device[64], label[64], value[48];
    uint64_t number;

    wm_file_read_line(dirfd(folder), "name", driver, sizeof(driver));
    size_t rank = find_chip(driver);
    if (sensors->count == MAX_SENSORS || rank == ARRAY_LEN(chips) ||
        !find_best(folder, &chips[rank], &number, label, sizeof(label)))
        return WM_OK;

    struct wm_hwmon_sensor *sensor = wm_hwmon_append(sensors);
    if (!sensor)
        return WM_ENOMEM;
    wm_hwmon_name_device(dirfd(folder), driver, device, sizeof(device));
    snprintf(sensor->identity, sizeof(sensor->identity), "%s/%s", device, label);
    sensor->rank = rank;
    sensor->period_ns = chips[rank].period_ns;
    snprintf(value, sizeof(value), "temp%" PRIu64 "_input", number);
    open_value(sensors, dirfd(folder), path, value);
    return WM_OK;
}

static int find_in_zone(DIR *folder, const char *path, struct wm_hwmon_sensors *sensors)
{
    char type[160];

    wm_file_read_line(dirfd(folder), "type", type, sizeof(type));
    size_t rank = find_zone(type);
    if (sensors->count == MAX_SENSORS || rank == ARRAY_LEN(zones))
        return WM_OK;

    struct wm_hwmon_sensor *sensor = wm_hwmon_append(sensors);
    if (!sensor)
        return WM_ENOMEM;
    snprintf(sensor->identity, sizeof(sensor->identity), "%s", type);
    sensor->rank = rank;
    open_value(sensors, dirfd(folder), path, "temp");
    return WM_OK;
}

int wm_hwmon_find_temperatures(struct wm_hwmon_sensors *sensors, const char *sysfs,
                               struct wm_error *err)
{
    int status = wm_hwmon_scan(sensors, sysfs, "hwmon", "hwmon", find_in_hwmon, err);
    if (status == WM_OK && sensors->count == 0)
        status =
            wm_hwmon_scan(sensors, sysfs, "thermal", "thermal_zone", find_in_zone, err);
    if (status < 0)
        return status;

    /* An order that lasts, and those of the best type: beside the package's sensor,
     * the one of the whole chip is another quantity. */
    wm_hwmon_sort(sensors);
    while (sensors->count > 0 &&
           sensors->list[sensors->count - 1].rank != sensors->list[0].rank)
        wm_hwmon_drop_last(sensors);
    wm_hwmon_tell_apart(sensors);
    for (size_t i = 0; i < sensors->count; i++)
        snprintf(sensors->list[i].label, sizeof(sensors->list[i].label), "cpu_package%zu",
                 i);
    return WM_OK;
}
