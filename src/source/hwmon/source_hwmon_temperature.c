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
#include "base/base_text.h"
#include "source/hwmon/source_hwmon.h"

/* More than any machine has CPU packages. */
#define MAX_SENSORS 64

#define MAX_LABELS 4
#define NO_LABEL ""

/* Drivers of CPU sensors, best first, and how the labels of their sensors
 * start, best first. A new driver is one line here. */
static const struct type {
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

/* Types of thermal zones that are a CPU, best first. Not "acpitz", which may be
 * anywhere on the board. */
static const struct type zones[] = {
    { .name = "x86_pkg_temp" }, { .name = "cpu_thermal" },     { .name = "cpu_therm" },
    { .name = "cpu0_thermal" }, { .name = "package_thermal" }, { .name = "soc_thermal" },
};

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

/* In thermal zones '-' and capitals make no difference; drivers have neither. */
static bool same_name(const char *ours, const char *theirs)
{
    for (; *ours && *theirs; ours++, theirs++) {
        int letter = *theirs == '-' ? '_' : tolower((unsigned char)*theirs);
        if (letter != *ours)
            return false;
    }
    return *ours == *theirs;
}

/* The place of a name in the list; its length if it has none there. */
static size_t rank_name(const struct type *types, size_t count, const char *name)
{
    size_t i = 0;

    while (i < count && !same_name(types[i].name, name))
        i++;
    return i;
}

/* The place of a label in the chip's list; MAX_LABELS if it has none there. */
static size_t rank_label(const struct type *chip, const char *label)
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
static bool find_best(DIR *folder, const struct type *chip, uint64_t *ret_number,
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

/* With the file `value` of that folder, where there is such a file. */
static int add_sensor(struct wm_hwmon_sensors *sensors, struct wm_hwmon_sensor *sensor,
                      int dir, const char *path, const char *value)
{
    sensor->quantity = WM_HWMON_TEMPERATURE;
    sensor->device_kind = WM_DEVICE_CPU;
    sensor->volts_fd = -EBADF;
    sensor->fd = wm_file_open_at(dir, value);
    snprintf(sensor->path, sizeof(sensor->path), "%s/%s", path, value);
    snprintf(sensor->label, sizeof(sensor->label), "cpu_package@");
    return sensor->fd == -ENOENT ? WM_OK : wm_hwmon_add(sensors, sensor);
}

static int find_in_hwmon(DIR *folder, const char *path, struct wm_hwmon_sensors *sensors)
{
    char driver[32], device[64], label[64], value[48];
    struct wm_hwmon_sensor sensor = { 0 };
    uint64_t number;

    wm_file_read_line(dirfd(folder), "name", driver, sizeof(driver));
    sensor.rank = rank_name(chips, ARRAY_LEN(chips), driver);
    if (sensors->count == MAX_SENSORS || sensor.rank == ARRAY_LEN(chips) ||
        !find_best(folder, &chips[sensor.rank], &number, label, sizeof(label)))
        return WM_OK;

    wm_hwmon_name_device(dirfd(folder), driver, device, sizeof(device));
    snprintf(sensor.identity, sizeof(sensor.identity), "%s/%s", device, label);
    sensor.period_ns = chips[sensor.rank].period_ns;
    snprintf(value, sizeof(value), "temp%" PRIu64 "_input", number);
    return add_sensor(sensors, &sensor, dirfd(folder), path, value);
}

static int find_in_zone(DIR *folder, const char *path, struct wm_hwmon_sensors *sensors)
{
    struct wm_hwmon_sensor sensor = { 0 };

    wm_file_read_line(dirfd(folder), "type", sensor.identity, sizeof(sensor.identity));
    sensor.rank = rank_name(zones, ARRAY_LEN(zones), sensor.identity);
    if (sensors->count == MAX_SENSORS || sensor.rank == ARRAY_LEN(zones))
        return WM_OK;
    return add_sensor(sensors, &sensor, dirfd(folder), path, "temp");
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

    /* Those of the best type: beside the package's sensor, the one of the whole chip is
     * another quantity. */
    wm_hwmon_sort(sensors);
    while (sensors->count > 0 &&
           sensors->list[sensors->count - 1].rank != sensors->list[0].rank)
        wm_hwmon_drop_last(sensors);
    return WM_OK;
}
