/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_hwmon_power.c - the sensors of power and energy in the hwmon class,
 * and what their drivers mean by them.
 *
 * See Documentation/hwmon/sysfs-interface.rst of the kernel: powerN_average and
 * powerN_input are microwatts, energyN_input is microjoules since the driver was
 * loaded, currN_input is milliamperes and inN_input millivolts.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "base/base_file.h"
#include "base/base_text.h"
#include "source/hwmon/source_hwmon.h"

/* A machine of two sockets with 128 cores each, and then some. */
#define MAX_SENSORS 512

#define MAX_PERIOD_MS (3600 * 1000)

/* amd_energy reads the registers of the CPU, which has new ones each millisecond. */
#define AMD_ENERGY_PERIOD_NS WM_NS_PER_MS

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

/* What drivers mean by their sensors. Whatever is not in the table is still read, as a
 * sensor of which nothing more is known. A new driver is one line here.
 *
 * A '#' at the end of a label stands for a number, and in a name for the same one; "*" is
 * any label. '@' at the end of a name is replaced by the sensor's
 * place among those of that name. Without a name, driver and label make one. */
static const struct meaning {
    const char *driver, *label;
    enum wm_device_kind kind;
    const char *name;
    enum wm_contains contains;
} meanings[] = {
    /* Documentation/hwmon/amd_energy.rst of Linux 5.8 to 5.12, and AMD's own module
     * since. */
    { "amd_energy", "Esocket#", WM_DEVICE_CPU, "socket#", WM_CONTAINS_PACKAGE },
    { "amd_energy", "Ecore#", WM_DEVICE_CPU_PART, "core#", WM_CONTAINS_DEVICE },

    /* "Power" of one socket, with all that is in it: Documentation/arch/x86/amd_hsmp.rst.
     */
    { "amd_hsmp_hwmon", "*", WM_DEVICE_CPU, "socket@", WM_CONTAINS_PACKAGE },

    /* Grace's firmware, by NVIDIA's "Grace Performance Tuning Guide": the rail of the
     * CPU's cores and that of the rest of the chip, which is beside it; the socket with
     * both of them, its memory and the loss of its regulators; and the module with its
     * GPU. */
    { "power_meter", "CPU Power Socket #", WM_DEVICE_CPU_PART, "socket#_core",
      WM_CONTAINS_DEVICE },
    { "power_meter", "SysIO Power Socket #", WM_DEVICE_CPU_PART, "socket#_sysio",
      WM_CONTAINS_DEVICE },
    { "power_meter", "Grace Power Socket #", WM_DEVICE_CPU, "socket#", WM_CONTAINS_DEVICE },
    { "power_meter", "Module Power Socket #", WM_DEVICE_PLATFORM, "module#",
      WM_CONTAINS_MODULE },

    /* Elsewhere an ACPI meter is the server's. */
    { "power_meter", "*", WM_DEVICE_PLATFORM, "power_meter", WM_CONTAINS_PLATFORM },

    /* Apple's system controller: what the machine takes, whatever it comes from. */
    { "macsmc_hwmon", "Total System Power", WM_DEVICE_PLATFORM, "system",
      WM_CONTAINS_PLATFORM },

    { "apm_xgene", "CPU power", WM_DEVICE_CPU, "socket@", WM_CONTAINS_DEVICE },
    { "apm_xgene", "IO power", WM_DEVICE_OTHER, "io@", WM_CONTAINS_DEVICE },

    { "fam15h_power", "*", WM_DEVICE_CPU, "socket@", WM_CONTAINS_PACKAGE },

    /* What a power supply gives in all, beside its rails. */
    { "corsairpsu", "power total", WM_DEVICE_PLATFORM, NULL, WM_CONTAINS_PLATFORM },

    /* NVIDIA's Jetson boards, whose device trees name the rails: what comes in, and
     * what goes to the CPU or the memory alone. VDD_CPU_CV and VDD_CPU_GPU_CV feed
     * other things as well. */
    { "ina3221", "VDD_IN", WM_DEVICE_PLATFORM, NULL, WM_CONTAINS_PLATFORM },
    { "ina3221", "POM_5V_IN", WM_DEVICE_PLATFORM, NULL, WM_CONTAINS_PLATFORM },
    { "ina3221", "CPU", WM_DEVICE_CPU, NULL, WM_CONTAINS_DEVICE },
    { "ina3221", "POM_5V_CPU", WM_DEVICE_CPU, NULL, WM_CONTAINS_DEVICE },
    { "ina3221", "VDD_SYS_CPU", WM_DEVICE_CPU, NULL, WM_CONTAINS_DEVICE },
    { "ina3221", "VDD_SYS_DDR", WM_DEVICE_DRAM, NULL, WM_CONTAINS_DEVICE },
};

/* GPUs, which the source "drm" reads. */
static bool is_elsewhere(const char *driver)
{
    static const char *const drivers[] = { "amdgpu", "i915", "nouveau", "radeon", "xe" };

    for (size_t i = 0; i < ARRAY_LEN(drivers); i++) {
        if (strcmp(driver, drivers[i]) == 0)
            return true;
    }
    return false;
}

/* A driver that leaves it to others to multiply current and voltage. It has three rails;
 * its further numbers are sums, and voltages of another unit. */
static unsigned rails_of(const char *driver)
{
    return strcmp(driver, "ina3221") == 0 ? 3 : 0;
}

/* `ret_number` gets what the '#' stands for, "" where there is none. */
static bool fits(const char *pattern, const char *label, const char **ret_number)
{
    size_t length = strlen(pattern);
    const char *end;
    uint64_t number;

    *ret_number = "";
    if (strcmp(pattern, "*") == 0)
        return true;
    if (pattern[length - 1] != '#')
        return strcmp(pattern, label) == 0;
    if (strncmp(pattern, label, length - 1) != 0)
        return false;
    *ret_number = label + length - 1;
    return strlen(*ret_number) <= 4 && wm_text_u64(*ret_number, &end, &number) &&
           *end == '\0';
}

/* Names columns: letters, digits and '_' only, nothing of it twice. */
static void make_name(const char *driver, const char *label, char *name, size_t size)
{
    char text[128];
    size_t used = 0;

    snprintf(text, sizeof(text), "%s_%s", driver, label);
    for (const char *at = text; *at && used + 1 < size; at++) {
        unsigned char letter = (unsigned char)*at;
        if (letter < 0x80 && isalnum(letter))
            name[used++] = (char)tolower(letter);
        else if (used > 0 && name[used - 1] != '_')
            name[used++] = '_';
    }
    while (used > 0 && name[used - 1] == '_')
        used--;
    name[used] = '\0';
    if (used == 0)
        snprintf(name, size, "sensor");
}

/* With the number in place of the '#', if it has one. */
static void give_name(const char *name, const char *number, struct wm_hwmon_sensor *sensor)
{
    size_t place = strcspn(name, "#");

    snprintf(sensor->label, sizeof(sensor->label), "%.*s%s%s", (int)place, name, number,
             name[place] == '#' ? name + place + 1 : "");
}

/* What a driver means by a sensor that it labels so ("" where it does not): its
 * kind, and a label for us. */
static void know(const char *driver, const char *label, struct wm_hwmon_sensor *sensor)
{
    const char *number;

    sensor->device_kind = WM_DEVICE_OTHER;
    make_name(driver, label, sensor->label, sizeof(sensor->label));
    for (size_t i = 0; i < ARRAY_LEN(meanings); i++) {
        const struct meaning *meaning = &meanings[i];
        if (strcmp(meaning->driver, driver) != 0 || !fits(meaning->label, label, &number))
            continue;
        sensor->device_kind = meaning->kind;
        sensor->contains = meaning->contains;
        if (meaning->name)
            give_name(meaning->name, number, sensor);
        return;
    }
}

/* A file that is a sensor: "power", 1, "_average". */
struct attribute {
    enum wm_hwmon_quantity quantity;
    const char *stem, *suffix; /* "power", "_average" */
    uint64_t number;
};

static bool parse_attribute(const char *name, struct attribute *ret_attribute)
{
    static const struct attribute forms[] = {
        { WM_HWMON_POWER, "power", "_average", 0 },
        { WM_HWMON_POWER, "power", "_input", 0 },
        { WM_HWMON_ENERGY, "energy", "_input", 0 },
        { WM_HWMON_PRODUCT, "curr", "_input", 0 },
    };

    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        size_t length = strlen(forms[i].stem);
        const char *end;

        *ret_attribute = forms[i];
        if (strncmp(name, forms[i].stem, length) == 0 &&
            wm_text_u64(name + length, &end, &ret_attribute->number) &&
            strcmp(end, forms[i].suffix) == 0)
            return true;
    }
    return false;
}

/* "power1_average"; a file's name beside an attribute's. */
struct name {
    char text[64];
};

static struct name name_of(const char *stem, const struct attribute *attribute,
                           const char *suffix)
{
    struct name name;

    snprintf(name.text, sizeof(name.text), "%s%" PRIu64 "%s", stem, attribute->number,
             suffix);
    return name;
}

static bool is_there(int dir, struct name name)
{
    return faccessat(dir, name.text, F_OK, 0) == 0;
}

/* Whether it is a sensor of its own. Of a sensor that has both, the average: what
 * was drawn meanwhile and not at one moment. */
static bool counts(int dir, const struct attribute *attribute, unsigned rails)
{
    switch (attribute->quantity) {
    case WM_HWMON_POWER:
        return strcmp(attribute->suffix, "_average") == 0 ||
               !is_there(dir, name_of("power", attribute, "_average"));
    case WM_HWMON_PRODUCT:
        return attribute->number >= 1 && attribute->number <= rails &&
               is_there(dir, name_of("in", attribute, "_input")) &&
               !is_there(dir, name_of("power", attribute, "_input"));
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
    char chip[32];

    if (wm_file_read_line(dir, name_of(stem, attribute, "_label").text, label, size) ||
        wm_file_read_line(dir, name_of(stem, attribute, "_oem_info").text, label, size))
        return;
    wm_file_read_line(dir, "label", chip, sizeof(chip));
    snprintf(label, size, "%s%s%.31s", chip, chip[0] ? " " : "",
             name_of(attribute->stem, attribute, "").text);
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
    if (strcmp(driver, "amd_energy") == 0)
        return AMD_ENERGY_PERIOD_NS;
    int64_t period_ns =
        read_period(dir, name_of(attribute->stem, attribute, "_average_interval").text);
    return period_ns > 0 ? period_ns : read_period(dir, "update_interval");
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
    struct name value = name_of(attribute->stem, attribute, attribute->suffix);
    struct wm_hwmon_sensor sensor = { .quantity = attribute->quantity,
                                      .rank = WM_HWMON_RANK_POWER,
                                      .volts_fd = -EBADF };
    char label[64];

    read_label(chip->dir, attribute, label, sizeof(label));
    know(chip->driver, label, &sensor);
    snprintf(sensor.identity, sizeof(sensor.identity), "%s/%s", chip->device, label);
    sensor.is_sample = attribute->quantity != WM_HWMON_ENERGY &&
                       strcmp(attribute->suffix, "_average") != 0;
    sensor.period_ns = period_of(chip->dir, chip->driver, attribute);
    snprintf(sensor.path, sizeof(sensor.path), "%s/%s", chip->path, value.text);
    sensor.fd = wm_file_open_at(chip->dir, value.text);
    if (attribute->quantity == WM_HWMON_PRODUCT)
        sensor.volts_fd =
            wm_file_open_at(chip->dir, name_of("in", attribute, "_input").text);
    return wm_hwmon_add(sensors, &sensor);
}

static int add_sensors(const struct chip *chip, struct wm_hwmon_sensors *sensors)
{
    unsigned rails = rails_of(chip->driver);
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

/* By the class of the device behind the folder: batteries tell what they have here a
 * second time. */
static bool is_battery(int dir)
{
    char class[32];

    wm_file_link_name(dir, "device/subsystem", class, sizeof(class));
    return strcmp(class, "power_supply") == 0;
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
    if (chip.driver[0] == '\0' || is_elsewhere(chip.driver) || is_battery(chip.dir))
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
    return wm_hwmon_scan(sensors, sysfs, "hwmon", "hwmon", find_in_hwmon, err);
}
