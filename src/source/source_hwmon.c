/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_hwmon.c - CPU temperature, from the hwmon class of sysfs or, where
 * that has none, from its thermal zones.
 *
 * hwmonN and thermal_zoneN are numbered as drivers load, which differs from
 * boot to boot, so a sensor is chosen by the type its driver states. See
 * Documentation/hwmon/sysfs-interface.rst of the kernel.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "base/base_error.h"
#include "base/base_file.h"
#include "base/base_text.h"
#include "source/source_ops.h"

/* More than any machine has CPU packages. */
#define MAX_SENSORS 64

/* Beyond these a sensor is disconnected or its driver is wrong. */
#define MIN_MILLIDEGREES (-50 * 1000)
#define MAX_MILLIDEGREES (200 * 1000)

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

struct sensor {
    size_t rank;        /* of its type in chips[] or zones[] */
    char identity[160]; /* "coretemp.0/Package id 0" */
    char folder[32];    /* "hwmon3"; for an order among equals */
    char path[640];     /* of the value; for people */
    char label[32];
    int64_t period_ns;
    int fd; /* of the value, or the negative errno value of opening it */
    bool failed;
    struct wm_error err;
};

struct hwmon {
    struct sensor *sensors;
    size_t count;
    struct wm_channel *channels;
    char detail[672];
};

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

/* Leaves `line` empty where there is no such file or nothing in it. */
static void read_line(int dir, const char *name, char *line, size_t size)
{
    char text[128];

    line[0] = '\0';
    if (wm_file_read_at(dir, name, text, sizeof(text)) > 0)
        wm_text_line(line, size, text);
}

static DIR *open_folder(int dir, const char *name)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return NULL;

    DIR *folder = fdopendir(fd);
    if (!folder)
        close(fd);
    return folder;
}

/* The device behind hwmonN: "coretemp.0" or "0000:00:18.3", which unlike the
 * number outlast a reboot. Behind a mirrored thermal zone stands another number,
 * "thermal_zoneN", and some devices have no such link: then it is the name of
 * the driver. */
static void name_device(int dir, const char *driver, char *name, size_t size)
{
    char target[PATH_MAX];
    ssize_t length = readlinkat(dir, "device", target, sizeof(target) - 1);

    target[length > 0 ? length : 0] = '\0';
    const char *slash = strrchr(target, '/');
    const char *base = slash ? slash + 1 : target;
    if (base[0] == '\0' || strncmp(base, "thermal_zone", strlen("thermal_zone")) == 0)
        base = driver;
    wm_text_utf8(name, size, base, strlen(base));
}

/* What one folder of a class offers: at most one sensor, in `ret_sensor` and
 * `ret_value`, the name of its file. */
typedef bool find_sensor(DIR *folder, struct sensor *ret_sensor, char *ret_value,
                         size_t value_size);

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
        read_line(dirfd(folder), file, label, sizeof(label));

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

static bool find_in_hwmon(DIR *folder, struct sensor *ret_sensor, char *ret_value,
                          size_t value_size)
{
    char driver[32], device[64], label[64];
    uint64_t number;

    read_line(dirfd(folder), "name", driver, sizeof(driver));
    size_t rank = find_chip(driver);
    if (rank == ARRAY_LEN(chips) ||
        !find_best(folder, &chips[rank], &number, label, sizeof(label)))
        return false;

    name_device(dirfd(folder), driver, device, sizeof(device));
    snprintf(ret_sensor->identity, sizeof(ret_sensor->identity), "%s/%s", device, label);
    snprintf(ret_value, value_size, "temp%" PRIu64 "_input", number);
    ret_sensor->rank = rank;
    ret_sensor->period_ns = chips[rank].period_ns;
    return true;
}

static bool find_in_zone(DIR *folder, struct sensor *ret_sensor, char *ret_value,
                         size_t value_size)
{
    read_line(dirfd(folder), "type", ret_sensor->identity, sizeof(ret_sensor->identity));
    ret_sensor->rank = find_zone(ret_sensor->identity);
    snprintf(ret_value, value_size, "temp");
    return ret_sensor->rank < ARRAY_LEN(zones);
}

/* Takes a sensor from each folder of `class` whose name starts with `prefix`.
 * A class that is not there has none, and that is no failure. */
static int scan_class(struct hwmon *hwmon, const char *sysfs, const char *class,
                      const char *prefix, find_sensor *find, struct wm_error *err)
{
    char path[512], value[48];
    struct dirent *entry;

    if ((size_t)snprintf(path, sizeof(path), "%s/class/%s", sysfs, class) >= sizeof(path))
        return wm_fail(err, WM_EINVAL, "%s: too long a path", sysfs);
    DIR *all = open_folder(AT_FDCWD, path);
    if (!all)
        return errno == ENOENT || errno == ENOTDIR ? WM_OK : wm_fail_errno(err, path);

    while ((entry = readdir(all)) != NULL && hwmon->count < MAX_SENSORS) {
        struct sensor *sensor = &hwmon->sensors[hwmon->count];

        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0)
            continue;
        DIR *folder = open_folder(dirfd(all), entry->d_name);
        if (!folder)
            continue;
        *sensor = (struct sensor) { 0 };
        if (find(folder, sensor, value, sizeof(value))) {
            sensor->fd = wm_file_open_at(dirfd(folder), value);
            snprintf(sensor->folder, sizeof(sensor->folder), "%.31s", entry->d_name);
            snprintf(sensor->path, sizeof(sensor->path), "%s/%s/%s", path, sensor->folder,
                     value);
            if (sensor->fd != -ENOENT)
                hwmon->count++;
        }
        closedir(folder);
    }
    closedir(all);
    return WM_OK;
}

/* strverscmp() counts: coretemp.2 comes before coretemp.10. */
static int compare_sensors(const void *left, const void *right)
{
    const struct sensor *a = left, *b = right;

    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    int order = strverscmp(a->identity, b->identity);
    return order ? order : strverscmp(a->folder, b->folder);
}

static void close_sensor(struct sensor *sensor)
{
    if (sensor->fd >= 0)
        close(sensor->fd);
}

/* Puts the sensors into an order that lasts, and keeps those of the best type:
 * beside the package's sensor, the one of the whole chip is another quantity. */
static void choose_sensors(struct hwmon *hwmon)
{
    qsort(hwmon->sensors, hwmon->count, sizeof(*hwmon->sensors), compare_sensors);
    while (hwmon->count > 0 &&
           hwmon->sensors[hwmon->count - 1].rank != hwmon->sensors[0].rank)
        close_sensor(&hwmon->sensors[--hwmon->count]);
}

/* Two sockets may both have a zone called "x86_pkg_temp". The later ones get
 * their number among equals as a suffix. From the end, so that those before are
 * still equal. */
static void tell_apart(struct hwmon *hwmon)
{
    for (size_t i = hwmon->count; i-- > 1;) {
        char *identity = hwmon->sensors[i].identity;
        size_t length = strlen(identity);
        size_t equals = 0;

        for (size_t j = i; j-- > 0 && strcmp(hwmon->sensors[j].identity, identity) == 0;)
            equals++;
        if (equals > 0)
            snprintf(identity + length, sizeof(hwmon->sensors[i].identity) - length, ".%zu",
                     equals);
    }
}

static int hwmon_open(void *state, const struct wm_source_config *config,
                      struct wm_error *err)
{
    struct hwmon *hwmon = state;

    hwmon->sensors = calloc(MAX_SENSORS, sizeof(*hwmon->sensors));
    hwmon->channels = calloc(MAX_SENSORS, sizeof(*hwmon->channels));
    if (!hwmon->sensors || !hwmon->channels)
        return wm_fail(err, WM_ENOMEM, "hwmon: out of memory");

    int status = scan_class(hwmon, config->sysfs, "hwmon", "hwmon", find_in_hwmon, err);
    if (status == WM_OK && hwmon->count == 0)
        status =
            scan_class(hwmon, config->sysfs, "thermal", "thermal_zone", find_in_zone, err);
    if (status < 0)
        return status;
    if (hwmon->count == 0)
        return wm_fail(err, WM_ENODEV,
                       "no CPU temperature sensor: looked in %s/class/hwmon and thermal "
                       "(virtual machines have none)",
                       config->sysfs);
    choose_sensors(hwmon);
    tell_apart(hwmon);

    for (size_t i = 0; i < hwmon->count; i++) {
        struct sensor *sensor = &hwmon->sensors[i];
        snprintf(sensor->label, sizeof(sensor->label), "cpu_package%zu", i);
        hwmon->channels[i] = (struct wm_channel) {
            .source = wm_source_hwmon.name,
            .device = sensor->identity,
            .label = sensor->label,
            .metric = "temperature",
            .unit = "celsius",
            .device_kind = WM_DEVICE_CPU,
            .kind = WM_GAUGE,
            .period_ns = sensor->period_ns,
        };
    }
    snprintf(hwmon->detail, sizeof(hwmon->detail), "%s%s", hwmon->sensors[0].path,
             hwmon->count > 1 ? " and others" : "");
    return WM_OK;
}

static size_t hwmon_get_channels(const void *state, const struct wm_channel **ret_channels)
{
    const struct hwmon *hwmon = state;

    *ret_channels = hwmon->channels;
    return hwmon->count;
}

static int read_celsius(struct sensor *sensor, double *ret_celsius)
{
    char text[32], line[48];
    const char *end;
    int64_t millidegrees;

    ssize_t length =
        sensor->fd < 0 ? sensor->fd : wm_file_reread(sensor->fd, text, sizeof(text));
    if (length < 0) {
        errno = (int)-length;
        return wm_fail_errno(&sensor->err, sensor->path);
    }

    wm_text_line(line, sizeof(line), text);
    if (!wm_text_i64(line, &end, &millidegrees) || *end != '\0')
        return wm_fail(&sensor->err, WM_EFORMAT, "%s: '%s' is not a temperature",
                       sensor->path, line);
    if (millidegrees < MIN_MILLIDEGREES || millidegrees > MAX_MILLIDEGREES)
        return wm_fail(&sensor->err, WM_EFORMAT, "%s: %" PRId64 " millidegrees is no CPU",
                       sensor->path, millidegrees);
    *ret_celsius = (double)millidegrees / 1e3;
    return WM_OK;
}

static int hwmon_read(void *state, struct wm_reading *readings, struct wm_error *err)
{
    struct hwmon *hwmon = state;
    (void)err; /* whatever fails here fails for one channel */

    for (size_t i = 0; i < hwmon->count; i++) {
        struct sensor *sensor = &hwmon->sensors[i];

        readings[i] = (struct wm_reading) { .when_ns = wm_clock_monotonic_ns() };
        int status = read_celsius(sensor, &readings[i].value);
        sensor->failed = status < 0;
        if (!sensor->failed)
            readings[i].state = WM_READING_OK;
        else
            readings[i].state = status == WM_EACCES ? WM_READING_DENIED : WM_READING_FAILED;
    }
    return WM_OK;
}

static const char *hwmon_why(const void *state, size_t channel)
{
    const struct hwmon *hwmon = state;
    const struct sensor *sensor = &hwmon->sensors[channel];

    return sensor->failed ? sensor->err.text : NULL;
}

static const char *hwmon_detail(const void *state)
{
    const struct hwmon *hwmon = state;
    return hwmon->detail;
}

static void hwmon_close(void *state)
{
    struct hwmon *hwmon = state;

    for (size_t i = 0; i < hwmon->count; i++)
        close_sensor(&hwmon->sensors[i]);
    free(hwmon->sensors);
    free(hwmon->channels);
}

const struct wm_source_ops wm_source_hwmon = {
    .name = "hwmon",
    .summary = "CPU temperature, from hwmon and thermal zones",
    .state_size = sizeof(struct hwmon),
    .open = hwmon_open,
    .channels = hwmon_get_channels,
    .read = hwmon_read,
    .why = hwmon_why,
    .detail = hwmon_detail,
    .close = hwmon_close,
};
