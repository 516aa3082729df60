/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_hwmon_power.c - the sensors of power and energy in the hwmon class.
 *
 * See Documentation/hwmon/sysfs-interface.rst of the kernel: powerN_average and
 * powerN_input are microwatts, energyN_input is microjoules since the driver was
 * loaded, currN_input is milliamperes and inN_input millivolts.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "base/base_file.h"
#include "base/text/base_text.h"
#include "source/hwmon/source_hwmon.h"

/* A machine of two sockets with 128 cores each, and then some. */
#define MAX_SENSORS 512

#define MAX_PERIOD_MS (3600 * 1000)

/* amd_energy reads the registers of the CPU, which has new ones each millisecond. */
#define AMD_ENERGY_PERIOD_NS WM_NS_PER_MS

/* A file that is a sensor: "power", 1, "_average". */
struct attribute {
    enum wm_hwmon_quantity quantity;
    const char *stem; /* "power" */
    uint64_t number;
    const char *suffix; /* "_average" */
};

static const struct {
    enum wm_hwmon_quantity quantity;
    const char *stem, *suffix;
} forms[] = {
    { WM_HWMON_POWER, "power", "_average" },
    { WM_HWMON_POWER, "power", "_input" },
    { WM_HWMON_ENERGY, "energy", "_input" },
    { WM_HWMON_PRODUCT, "curr", "_input" },
};

static bool parse_attribute(const char *name, struct attribute *ret_attribute)
{
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        size_t length = strlen(forms[i].stem);
        const char *end;
        uint64_t number;

        if (strncmp(name, forms[i].stem, length) != 0 ||
            !wm_text_u64(name + length, &end, &number) || strcmp(end, forms[i].suffix) != 0)
            continue;
        *ret_attribute = (struct attribute) {
            .quantity = forms[i].quantity,
            .stem = forms[i].stem,
            .number = number,
            .suffix = forms[i].suffix,
        };
        return true;
    }
    return false;
}

static bool is_there(int dir, const char *stem, uint64_t number, const char *suffix)
{
    char name[48];

    snprintf(name, sizeof(name), "%s%" PRIu64 "%s", stem, number, suffix);
    return faccessat(dir, name, F_OK, 0) == 0;
}

/* Whether it is a sensor of its own. Of a sensor that has both, the average: what
 * was drawn meanwhile and not at one moment. */
static bool counts(int dir, const struct attribute *attribute, unsigned rails)
{
    switch (attribute->quantity) {
    case WM_HWMON_POWER:
        return strcmp(attribute->suffix, "_average") == 0 ||
               !is_there(dir, "power", attribute->number, "_average");
    case WM_HWMON_PRODUCT:
        return attribute->number >= 1 && attribute->number <= rails &&
               is_there(dir, "in", attribute->number, "_input") &&
               !is_there(dir, "power", attribute->number, "_input");
    default:
        return true;
    }
}

/* "CPU Power Socket 0", or "power1" where the driver does not name it: by the
 * sensor's own label, the words of ACPI firmware, or the label of the whole chip with
 * the number. */
static void read_label(int dir, const struct attribute *attribute, char *label, size_t size)
{
    const char *stem = attribute->quantity == WM_HWMON_PRODUCT ? "in" : attribute->stem;
    char name[48], chip[32];

    snprintf(name, sizeof(name), "%s%" PRIu64 "_label", stem, attribute->number);
    wm_file_read_line(dir, name, label, size);
    if (label[0] != '\0')
        return;
    snprintf(name, sizeof(name), "%s%" PRIu64 "_oem_info", stem, attribute->number);
    wm_file_read_line(dir, name, label, size);
    if (label[0] != '\0')
        return;
    wm_file_read_line(dir, "label", chip, sizeof(chip));
    snprintf(label, size, "%s%s%s%" PRIu64, chip, chip[0] ? " " : "", attribute->stem,
             attribute->number);
}

/* Milliseconds in a file; 0 where nothing of use is in there. */
static int64_t read_period(int dir, const char *name)
{
    char line[64];
    const char *end;
    uint64_t milliseconds;

    wm_file_read_line(dir, name, line, sizeof(line));
    if (!wm_text_u64(line, &end, &milliseconds) || *end != '\0' ||
        milliseconds > MAX_PERIOD_MS)
        return 0;
    return (int64_t)milliseconds * WM_NS_PER_MS;
}

static int64_t period_of(int dir, const char *driver, const struct attribute *attribute)
{
    char name[64];

    if (strcmp(driver, "amd_energy") == 0)
        return AMD_ENERGY_PERIOD_NS;
    snprintf(name, sizeof(name), "%s%" PRIu64 "_average_interval", attribute->stem,
             attribute->number);
    int64_t period_ns = read_period(dir, name);
    return period_ns > 0 ? period_ns : read_period(dir, "update_interval");
}

static int open_number(int dir, const char *stem, uint64_t number, const char *suffix)
{
    char name[48];

    snprintf(name, sizeof(name), "%s%" PRIu64 "%s", stem, number, suffix);
    return wm_file_open_at(dir, name);
}

struct chip {
    int dir; /* where its sensors are */
    char driver[32];
    char device[64];
    char path[576]; /* of that folder */
};

static int add_sensor(const struct chip *chip, const struct attribute *attribute,
                      struct wm_hwmon_sensors *sensors)
{
    char label[64];
    struct wm_hwmon_sensor *sensor = wm_hwmon_append(sensors);
    if (!sensor)
        return WM_ENOMEM;

    read_label(chip->dir, attribute, label, sizeof(label));
    sensor->quantity = attribute->quantity;
    wm_hwmon_know(chip->driver, label, sensor);
    snprintf(sensor->identity, sizeof(sensor->identity), "%s/%s", chip->device, label);
    sensor->is_sample = attribute->quantity != WM_HWMON_ENERGY &&
                        strcmp(attribute->suffix, "_average") != 0;
    sensor->period_ns = period_of(chip->dir, chip->driver, attribute);
    snprintf(sensor->path, sizeof(sensor->path), "%s/%s%" PRIu64 "%s", chip->path,
             attribute->stem, attribute->number, attribute->suffix);
    sensor->fd =
        open_number(chip->dir, attribute->stem, attribute->number, attribute->suffix);
    if (attribute->quantity == WM_HWMON_PRODUCT)
        sensor->volts_fd = open_number(chip->dir, "in", attribute->number, "_input");
    return WM_OK;
}

static int add_sensors(const struct chip *chip, struct wm_hwmon_sensors *sensors)
{
    unsigned rails = wm_hwmon_rails(chip->driver);
    struct attribute attribute;
    struct dirent *entry;
    int status = WM_OK;

    DIR *folder = wm_file_open_folder(chip->dir, ".");
    if (!folder)
        return WM_OK;
    while (status == WM_OK && sensors->count < MAX_SENSORS &&
           (entry = readdir(folder)) != NULL) {
        if (parse_attribute(entry->d_name, &attribute) &&
            counts(chip->dir, &attribute, rails))
            status = add_sensor(chip, &attribute, sensors);
    }
    closedir(folder);
    return status;
}

/* The class of the device behind the folder: batteries tell what they have here a
 * second time. */
static bool is_battery(int dir)
{
    char target[PATH_MAX];
    ssize_t length = readlinkat(dir, "device/subsystem", target, sizeof(target) - 1);

    target[length > 0 ? length : 0] = '\0';
    const char *slash = strrchr(target, '/');
    return strcmp(slash ? slash + 1 : target, "power_supply") == 0;
}

/* Some drivers, the ACPI meter among them, have their files in the folder of the
 * device, and with old kernels their name too. */
static int find_in_hwmon(DIR *folder, const char *path, struct wm_hwmon_sensors *sensors)
{
    size_t before = sensors->count;
    struct chip chip = { .dir = dirfd(folder) };

    wm_file_read_line(chip.dir, "name", chip.driver, sizeof(chip.driver));
    if (chip.driver[0] == '\0')
        wm_file_read_line(chip.dir, "device/name", chip.driver, sizeof(chip.driver));
    if (chip.driver[0] == '\0' || wm_hwmon_is_elsewhere(chip.driver) ||
        is_battery(chip.dir))
        return WM_OK;
    wm_hwmon_name_device(chip.dir, chip.driver, chip.device, sizeof(chip.device));

    snprintf(chip.path, sizeof(chip.path), "%s", path);
    int status = add_sensors(&chip, sensors);
    if (status < 0 || sensors->count > before)
        return status;
    chip.dir = wm_file_open_at(dirfd(folder), "device");
    if (chip.dir < 0)
        return WM_OK;
    snprintf(chip.path, sizeof(chip.path), "%.560s/device", path);
    status = add_sensors(&chip, sensors);
    close(chip.dir);
    return status;
}

int wm_hwmon_find_power(struct wm_hwmon_sensors *sensors, const char *sysfs,
                        struct wm_error *err)
{
    int status = wm_hwmon_scan(sensors, sysfs, "hwmon", "hwmon", find_in_hwmon, err);
    if (status < 0)
        return status;
    wm_hwmon_sort(sensors);
    wm_hwmon_tell_apart(sensors);
    wm_hwmon_number_labels(sensors);
    return WM_OK;
}
