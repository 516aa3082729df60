/* SPDX-License-Identifier: Apache-2.0 */
/* source_hwmon_scan.c - the folders of a class of sysfs, and a list of what is in them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base_array.h"
#include "base/base_file.h"
#include "source/hwmon/source_hwmon.h"

int wm_hwmon_scan(struct wm_hwmon_sensors *sensors, const char *sysfs, const char *class,
                  const char *prefix, wm_hwmon_find *find, struct wm_error *err)
{
    char path[512], folder_path[560];
    struct dirent *entry;
    int status = WM_OK;

    if ((size_t)snprintf(path, sizeof(path), "%s/class/%s", sysfs, class) >= sizeof(path))
        return wm_fail(err, WM_EINVAL, "%s: too long a path", sysfs);
    DIR *all = wm_file_open_folder(AT_FDCWD, path);
    if (!all)
        return errno == ENOENT || errno == ENOTDIR ? WM_OK : wm_fail_errno(err, path);

    while (status == WM_OK && (entry = readdir(all)) != NULL) {
        size_t before = sensors->count;

        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0)
            continue;
        DIR *folder = wm_file_open_folder(dirfd(all), entry->d_name);
        if (!folder)
            continue;
        snprintf(folder_path, sizeof(folder_path), "%s/%.31s", path, entry->d_name);
        status = find(folder, folder_path, sensors);
        for (size_t i = before; i < sensors->count; i++)
            snprintf(sensors->list[i].folder, sizeof(sensors->list[i].folder), "%.31s",
                     entry->d_name);
        closedir(folder);
    }
    closedir(all);
    return status < 0 ? wm_fail(err, status, "hwmon: out of memory") : WM_OK;
}

static void close_files(const struct wm_hwmon_sensor *sensor)
{
    if (sensor->fd >= 0)
        close(sensor->fd);
    if (sensor->volts_fd >= 0)
        close(sensor->volts_fd);
}

int wm_hwmon_add(struct wm_hwmon_sensors *sensors, const struct wm_hwmon_sensor *sensor)
{
    if (wm_array_reserve(&sensors->list, sensors->count, &sensors->room,
                         sizeof(*sensors->list)) < 0) {
        close_files(sensor);
        return WM_ENOMEM;
    }
    sensors->list[sensors->count++] = *sensor;
    return WM_OK;
}

void wm_hwmon_drop_last(struct wm_hwmon_sensors *sensors)
{
    close_files(&sensors->list[--sensors->count]);
}

static int compare_sensors(const void *left, const void *right)
{
    const struct wm_hwmon_sensor *a = left, *b = right;

    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    int order = strverscmp(a->identity, b->identity);
    return order ? order : strverscmp(a->folder, b->folder);
}

void wm_hwmon_sort(struct wm_hwmon_sensors *sensors)
{
    if (sensors->count > 0)
        qsort(sensors->list, sensors->count, sizeof(*sensors->list), compare_sensors);
}

/* Behind a mirrored thermal zone stands another number that changes,
 * "thermal_zoneN". */
void wm_hwmon_name_device(int dir, const char *driver, char *name, size_t size)
{
    wm_file_link_name(dir, "device", name, size);
    if (name[0] == '\0' || strncmp(name, "thermal_zone", strlen("thermal_zone")) == 0)
        snprintf(name, size, "%s", driver);
}
