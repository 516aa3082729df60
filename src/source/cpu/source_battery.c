/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_battery.c - what the machine draws from its batteries, from the
 * power_supply class of sysfs.
 *
 * While a battery discharges, what flows out of it is what the machine takes; at
 * other times nothing can be told of that. See
 * Documentation/ABI/testing/sysfs-class-power of the kernel.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
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

#define MAX_BATTERIES 8

/* Beyond this a driver is wrong: some write all ones for "not known". */
#define MOST_WATTS 10e3

/* The kernel asks the firmware of ACPI batteries at most once a second. */
#define PERIOD_NS WM_NS_PER_S

/* But some gauges have something new only twice a minute. */
#define LONGEST_NS (30 * WM_NS_PER_S)

/* At k = 2: our assumption. */
#define GAIN 0.10

enum { STATUS, POWER, CURRENT, VOLTAGE, ATTRIBUTES };

static const char *const attributes[ATTRIBUTES] = {
    [STATUS] = "status",
    [POWER] = "power_now",
    [CURRENT] = "current_now",
    [VOLTAGE] = "voltage_now",
};

struct battery {
    char name[256];      /* "BAT0" */
    int fds[ATTRIBUTES]; /* descriptors, or the negative errno values of opening them */
    struct wm_error err; /* text is empty where the last reading was ok */
};

struct batteries {
    struct battery batteries[MAX_BATTERIES];
    struct wm_channel channels[MAX_BATTERIES];
    size_t count;
};

static bool says(int dir, const char *supply, const char *name, const char *word)
{
    char path[300], line[32];

    return (size_t)snprintf(path, sizeof(path), "%s/%s", supply, name) < sizeof(path) &&
           wm_file_read_line(dir, path, line, sizeof(line)) && strcmp(line, word) == 0;
}

/* By what the device says it is, not by its name: a tablet's may be "max170xx". One
 * that feeds a device of its own, such as a mouse, is not the machine's. */
static bool is_battery(int dir, const char *supply)
{
    return says(dir, supply, "type", "Battery") && !says(dir, supply, "scope", "Device");
}

static void open_battery(int dir, const char *supply, struct battery *battery)
{
    wm_text_line(battery->name, sizeof(battery->name), supply);
    for (size_t i = 0; i < ATTRIBUTES; i++) {
        char path[300];
        snprintf(path, sizeof(path), "%s/%s", supply, attributes[i]);
        battery->fds[i] = wm_file_open_at(dir, path);
    }
}

static int compare_batteries(const void *left, const void *right)
{
    const struct battery *a = left, *b = right;

    return strverscmp(a->name, b->name);
}

static int battery_open(void *state, const struct wm_source_config *config,
                        struct wm_source_found *ret_found, struct wm_error *err)
{
    struct batteries *all = state;
    char path[512];
    struct dirent *entry;

    int length = snprintf(path, sizeof(path), "%s/class/power_supply", config->sysfs);
    if ((size_t)length >= sizeof(path))
        return wm_fail(err, WM_EINVAL, "%.200s: too long a path", config->sysfs);
    DIR *folder = opendir(path);
    if (!folder && (errno == ENOENT || errno == ENOTDIR))
        return wm_fail(err, WM_ENODEV, "no battery: there is no %s", path);
    if (!folder)
        return wm_fail_errno(err, path);

    while ((entry = readdir(folder)) != NULL && all->count < MAX_BATTERIES) {
        if (entry->d_name[0] != '.' && is_battery(dirfd(folder), entry->d_name))
            open_battery(dirfd(folder), entry->d_name, &all->batteries[all->count++]);
    }
    closedir(folder);
    if (all->count == 0)
        return wm_fail(err, WM_ENODEV, "no battery in %s", path);

    qsort(all->batteries, all->count, sizeof(all->batteries[0]), compare_batteries);
    for (size_t i = 0; i < all->count; i++) {
        all->channels[i] = (struct wm_channel) {
            .source = wm_source_battery.name,
            .device = all->batteries[i].name,
            .label = all->batteries[i].name,
            .metric = "power",
            .unit = "W",
            .device_kind = WM_DEVICE_PLATFORM,
            .kind = WM_GAUGE,
            .period_ns = PERIOD_NS,
            .sensor = { .kind = WM_SENSOR_BATTERY,
                        .longest_ns = LONGEST_NS,
                        .contains = WM_CONTAINS_PLATFORM,
                        .gain = GAIN,
                        .step = 1e-6, /* the files are in millionths */
                        .text = "the battery's own gauge" },
        };
    }
    *ret_found =
        (struct wm_source_found) { .channels = all->channels, .channel_count = all->count };
    return WM_OK;
}

static int read_attribute(struct battery *battery, size_t attribute, char *line,
                          size_t size)
{
    char text[32];
    int fd = battery->fds[attribute];
    ssize_t length = fd < 0 ? fd : wm_file_reread(fd, text, sizeof(text));

    if (length < 0) {
        errno = (int)-length;
        return wm_fail_errno(&battery->err, attributes[attribute]);
    }
    wm_text_line(line, size, text);
    return WM_OK;
}

/* Of a number in millionths. Some drivers count what flows out as negative. */
static int read_size(struct battery *battery, size_t attribute, double *ret_size)
{
    char line[48];
    const char *end;
    int64_t millionths;

    int status = read_attribute(battery, attribute, line, sizeof(line));
    if (status < 0)
        return status;
    if (!wm_text_i64(line, &end, &millionths) || *end != '\0')
        return wm_fail(&battery->err, WM_EFORMAT, "%s: '%s' is no number",
                       attributes[attribute], line);
    *ret_size = (millionths < 0 ? -(double)millionths : (double)millionths) / 1e6;
    return WM_OK;
}

/* Batteries report their power or, most of the newer ones, current and voltage. */
static int read_outflow(struct battery *battery, double *ret_watts)
{
    double amperes, volts;

    if (battery->fds[POWER] != -ENOENT || battery->fds[CURRENT] == -ENOENT)
        return read_size(battery, POWER, ret_watts);

    int status = read_size(battery, CURRENT, &amperes);
    if (status == WM_OK)
        status = read_size(battery, VOLTAGE, &volts);
    if (status == WM_OK)
        *ret_watts = amperes * volts;
    return status;
}

/* While it charges, the number is what goes in, which says nothing of the machine. */
static int read_watts(struct battery *battery, double *ret_watts)
{
    char line[48];
    double watts;

    int status = read_attribute(battery, STATUS, line, sizeof(line));
    if (status < 0)
        return status;
    if (strcmp(line, "Discharging") != 0)
        return wm_fail(&battery->err, WM_EIO, "the battery is not in use: %s", line);

    status = read_outflow(battery, &watts);
    if (status < 0)
        return status;
    if (watts == 0)
        return wm_fail(&battery->err, WM_EIO, "in use, but it reports 0 W");
    if (watts > MOST_WATTS)
        return wm_fail(&battery->err, WM_EFORMAT, "%g W is no battery", watts);
    *ret_watts = watts;
    return WM_OK;
}

static int battery_read(void *state, struct wm_reading *readings, struct wm_error *err)
{
    struct batteries *all = state;
    (void)err; /* whatever fails here fails for one channel */

    for (size_t i = 0; i < all->count; i++) {
        struct battery *battery = &all->batteries[i];

        battery->err.text[0] = '\0';
        int64_t asked_ns = wm_clock_monotonic_ns();
        readings[i] = (struct wm_reading) { 0 };
        readings[i].state = wm_reading_state_of(read_watts(battery, &readings[i].value));
        readings[i].when_ns = wm_clock_middle_ns(&asked_ns);
    }
    return WM_OK;
}

static const char *battery_why(const void *state, size_t channel)
{
    const struct batteries *all = state;
    const char *text = all->batteries[channel].err.text;

    return text[0] ? text : NULL;
}

static void battery_close(void *state)
{
    struct batteries *all = state;

    for (size_t i = 0; i < all->count; i++) {
        for (size_t j = 0; j < ATTRIBUTES; j++) {
            if (all->batteries[i].fds[j] >= 0)
                close(all->batteries[i].fds[j]);
        }
    }
}

const struct wm_source_ops wm_source_battery = {
    .name = "battery",
    .summary = "power drawn from the batteries of a laptop",
    .state_size = sizeof(struct batteries),
    .open = battery_open,
    .read = battery_read,
    .why = battery_why,
    .close = battery_close,
};
