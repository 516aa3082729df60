/* SPDX-License-Identifier: Apache-2.0 */
/* source_hwmon_read.c - what a sensor says, and whether that can be. */
#include <errno.h>
#include <inttypes.h>

#include "base/base_clock.h"
#include "base/base_file.h"
#include "base/text/base_text.h"
#include "source/hwmon/source_hwmon.h"

/* Beyond these a sensor is disconnected or its driver is wrong: ACPI meters write
 * all ones for "not known". */
#define MIN_MILLIDEGREES (-50 * 1000)
#define MAX_MILLIDEGREES (200 * 1000)
#define MAX_WATTS 100e3

/* Some files are answered by firmware or over a slow bus, in milliseconds. Such a
 * sensor is left alone for so many times as long as it took, and its last reading
 * stands meanwhile. Once or twice in a row may be chance: we had to wait for a CPU. */
#define SLOW_NS (WM_NS_PER_MS / 5)
#define SLOW_IN_A_ROW 3
#define REST_TIMES 20

static const char *const nouns[] = {
    [WM_HWMON_TEMPERATURE] = "temperature",
    [WM_HWMON_POWER] = "power",
    [WM_HWMON_ENERGY] = "energy",
    [WM_HWMON_PRODUCT] = "current or voltage",
};

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
        return wm_fail(&sensor->err, WM_EFORMAT, "%s: '%s' is not a%s %s", sensor->path,
                       line, sensor->quantity == WM_HWMON_ENERGY ? "n" : "",
                       nouns[sensor->quantity]);
    return WM_OK;
}

static int read_celsius(struct wm_hwmon_sensor *sensor, double *ret_celsius)
{
    int64_t millidegrees;

    int status = read_number(sensor, sensor->fd, &millidegrees);
    if (status < 0)
        return status;
    if (millidegrees < MIN_MILLIDEGREES || millidegrees > MAX_MILLIDEGREES)
        return wm_fail(&sensor->err, WM_EFORMAT, "%s: %" PRId64 " millidegrees is no CPU",
                       sensor->path, millidegrees);
    *ret_celsius = (double)millidegrees / 1e3;
    return WM_OK;
}

static int read_joules(struct wm_hwmon_sensor *sensor, double *ret_joules)
{
    int64_t microjoules;

    int status = read_number(sensor, sensor->fd, &microjoules);
    if (status < 0)
        return status;
    if (microjoules < 0)
        return wm_fail(&sensor->err, WM_EFORMAT, "%s: %" PRId64 " microjoules is no total",
                       sensor->path, microjoules);
    *ret_joules = (double)microjoules / 1e6;
    return WM_OK;
}

static int read_watts(struct wm_hwmon_sensor *sensor, double *ret_watts)
{
    int64_t number, millivolts;

    int status = read_number(sensor, sensor->fd, &number);
    if (status == WM_OK && sensor->quantity == WM_HWMON_PRODUCT)
        status = read_number(sensor, sensor->volts_fd, &millivolts);
    if (status < 0)
        return status;
    double watts = (double)number / 1e6;
    if (sensor->quantity == WM_HWMON_PRODUCT)
        watts *= (double)millivolts;
    if (watts < 0 || watts > MAX_WATTS)
        return wm_fail(&sensor->err, WM_EFORMAT, "%s: %g W is not what anything draws",
                       sensor->path, watts);
    *ret_watts = watts;
    return WM_OK;
}

static int read_value(struct wm_hwmon_sensor *sensor, double *ret_value)
{
    switch (sensor->quantity) {
    case WM_HWMON_TEMPERATURE:
        return read_celsius(sensor, ret_value);
    case WM_HWMON_ENERGY:
        return read_joules(sensor, ret_value);
    default:
        return read_watts(sensor, ret_value);
    }
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
    struct wm_reading reading = { .when_ns = wm_clock_monotonic_ns() };

    if (reading.when_ns < sensor->rest_ns) {
        *ret_reading = sensor->last;
        return;
    }
    int status = read_value(sensor, &reading.value);
    sensor->failed = status < 0;
    if (!sensor->failed)
        reading.state = WM_READING_OK;
    else
        reading.state = status == WM_EACCES ? WM_READING_DENIED : WM_READING_FAILED;

    wm_hwmon_rest(sensor, reading.when_ns, wm_clock_monotonic_ns());
    sensor->last = reading;
    *ret_reading = reading;
}
