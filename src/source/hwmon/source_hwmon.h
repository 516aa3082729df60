/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_hwmon.h - the parts of the hwmon source: which sensors a machine has, and what
 * they say.
 */
#ifndef WM_SOURCE_HWMON_H
#define WM_SOURCE_HWMON_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base_error.h"
#include "wattmeter/source.h"

enum wm_hwmon_quantity {
    WM_HWMON_TEMPERATURE, /* millidegrees */
    WM_HWMON_POWER,       /* microwatts */
    WM_HWMON_ENERGY,      /* microjoules, a total */
    WM_HWMON_PRODUCT,     /* milliamperes, and millivolts in a second file */
};

struct wm_hwmon_sensor {
    enum wm_hwmon_quantity quantity;
    enum wm_device_kind device_kind;
    enum wm_contains contains; /* of power and energy */
    size_t rank;               /* the best first; for the order, with what follows */
    char identity[160];        /* "coretemp.0/Package id 0" */
    char folder[32];           /* "hwmon3" */
    char path[640];            /* of the value; for people */
    char label[32];            /* "cpu_package0", "socket1" */
    int64_t period_ns;
    bool is_sample;   /* of power: what is drawn at one moment */
    int fd, volts_fd; /* of the values, or the negative errno value of opening them */
    unsigned slow;    /* readings in a row that took long, up to a few */
    int64_t rest_ns;  /* not to be read again before */
    struct wm_reading last;
    bool failed;
    struct wm_error err;
};

struct wm_hwmon_sensors {
    struct wm_hwmon_sensor *list;
    size_t count, room;
};

/* What one folder of a class offers, appended to `sensors` with all but `folder`
 * filled in; `path` is the folder's. WM_OK, or WM_ENOMEM. */
typedef int wm_hwmon_find(DIR *folder, const char *path, struct wm_hwmon_sensors *sensors);

/* Goes through the folders of `class` whose name starts with `prefix`. A class that
 * is not there has none, and that is no failure. */
int wm_hwmon_scan(struct wm_hwmon_sensors *sensors, const char *sysfs, const char *class,
                  const char *prefix, wm_hwmon_find *find, struct wm_error *err);

/* Copies the sensor to the end of the list, with its descriptors, which are closed where
 * memory is out (WM_ENOMEM). */
int wm_hwmon_add(struct wm_hwmon_sensors *sensors, const struct wm_hwmon_sensor *sensor);

/* Closes its files, and takes it off the end of the list. */
void wm_hwmon_drop_last(struct wm_hwmon_sensors *sensors);

/* By rank, identity and folder. strverscmp() counts: coretemp.2 comes before
 * coretemp.10. */
void wm_hwmon_sort(struct wm_hwmon_sensors *sensors);

/* The device behind the folder: "coretemp.0" or "0000:00:18.3", which unlike the
 * number of hwmonN outlasts a reboot; the driver's name where there is no link. */
void wm_hwmon_name_device(int dir, const char *driver, char *name, size_t size);

/* Appends the sensors of CPU temperature, of the best type that there is, and those of
 * power and energy, which rank behind. A label that ends with '@' is yet to get its
 * number there. */
#define WM_HWMON_RANK_POWER 1000
int wm_hwmon_find_temperatures(struct wm_hwmon_sensors *sensors, const char *sysfs,
                               struct wm_error *err);
int wm_hwmon_find_power(struct wm_hwmon_sensors *sensors, const char *sysfs,
                        struct wm_error *err);

/* Reads a sensor; sensor->failed tells how it went, and sensor->err why. */
void wm_hwmon_read(struct wm_hwmon_sensor *sensor, struct wm_reading *ret_reading);

/* Takes note of how long a reading took, and may have the sensor left alone. */
void wm_hwmon_rest(struct wm_hwmon_sensor *sensor, int64_t begin_ns, int64_t end_ns);

#endif
