/* SPDX-License-Identifier: Apache-2.0 */
/* cap_package.c - finding, reading and setting the power limits of CPU packages. */
#include "cap/cap_device.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "base/base_file.h"
#include "base/base_text.h"
#include "base/base_utf8.h"
#include "source/gpu/source_gpu_ops.h"

/* A package has one limit for seconds and one for milliseconds; the kernel has no more
 * than a handful of kinds. */
enum { CONSTRAINTS = 8 };

/* No machine has a limit above this; the kernel shows its greatest number for none. */
#define MICROWATTS_MAX UINT64_C(100000000000)

static bool read_number(const char *folder, const char *name, uint64_t *ret_value,
                        struct wm_error *err)
{
    char path[640], text[32];
    const char *end;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    ssize_t length = wm_file_read_at(AT_FDCWD, path, text, sizeof(text));
    if (length < 0) {
        errno = (int)-length;
        wm_fail_errno(err, wm_text_path(path));
        return false;
    }
    if (wm_text_u64(text, &end, ret_value) && (*end == '\n' || *end == '\0'))
        return true;
    wm_fail(err, WM_EFORMAT, "%s does not hold a number", wm_text_path(path));
    return false;
}

/* The limit over seconds is "long_term"; it is the first wherever it has been seen. */
static bool find_constraint(struct wm_cap_package *package)
{
    char name[64], line[32];

    for (package->constraint = 0; package->constraint < CONSTRAINTS;
         package->constraint++) {
        int dir = open(package->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        snprintf(name, sizeof(name), "constraint_%u_name", package->constraint);
        bool is_there = dir >= 0 && wm_file_read_line(dir, name, line, sizeof(line));
        if (dir >= 0)
            close(dir);
        if (is_there && strcmp(line, "long_term") == 0)
            return true;
    }
    return false;
}

/* "package-1", or "package-1-die-0" where a package has several. */
static bool name_package(struct wm_cap_package *package, const char *folder)
{
    static const char start[] = "package-";
    char path[600], line[32];
    uint64_t number;

    snprintf(path, sizeof(path), "%s/name", folder);
    if (!wm_file_read_line(AT_FDCWD, path, line, sizeof(line)) ||
        strncmp(line, start, strlen(start)) != 0 ||
        !wm_text_u64(line + strlen(start), NULL, &number))
        return false;
    snprintf(package->device, sizeof(package->device), "cpu_package%.19s",
             line + strlen(start));
    return true;
}

static int compare(const void *left, const void *right)
{
    const struct wm_cap_package *a = left, *b = right;

    return strverscmp(a->device, b->device);
}

/* Client CPUs show a package a second time (intel-rapl-mmio); the one by its registers is
 * the one that tools set. */
static bool is_package(const char *name)
{
    return strncmp(name, "intel-rapl:", strlen("intel-rapl:")) == 0 &&
           !strchr(name + strlen("intel-rapl:"), ':');
}

void wm_cap_packages_find(struct wm_cap_packages *packages, const char *sysfs)
{
    char class[400];
    struct dirent *entry;

    packages->count = 0;
    snprintf(class, sizeof(class), "%s/class/powercap", sysfs);
    DIR *folder = wm_file_open_folder(AT_FDCWD, class);
    while (folder && packages->count < WM_CAP_PACKAGES &&
           (entry = readdir(folder)) != NULL) {
        struct wm_cap_package *package = &packages->list[packages->count];

        *package = (struct wm_cap_package) { 0 };
        snprintf(package->path, sizeof(package->path), "%s/%.64s", class, entry->d_name);
        if (is_package(entry->d_name) && name_package(package, package->path) &&
            find_constraint(package))
            packages->count++;
    }
    if (folder)
        closedir(folder);
    qsort(packages->list, packages->count, sizeof(packages->list[0]), compare);
}

static void read_limit(struct wm_cap_package *package)
{
    char name[64];
    uint64_t number = 0, enabled = 1;
    struct wm_error err;

    snprintf(name, sizeof(name), "constraint_%u_max_power_uw", package->constraint);
    package->maximum = wm_gpu_missing(WM_READING_UNSUPPORTED, "not reported by powercap");
    if (read_number(package->path, name, &number, NULL) && number > 0 &&
        number < MICROWATTS_MAX)
        package->maximum = wm_gpu_number((double)number / 1e6);

    snprintf(name, sizeof(name), "constraint_%u_power_limit_uw", package->constraint);
    if (read_number(package->path, name, &number, &err)) {
        package->value = wm_gpu_number((double)number / 1e6);
    } else {
        memcpy(package->why, err.text, sizeof(package->why));
        package->value = wm_gpu_missing(
            err.status == WM_EACCES ? WM_READING_DENIED : WM_READING_FAILED, package->why);
    }
    package->enforced = package->value;
    if (read_number(package->path, "enabled", &enabled, NULL) && enabled == 0)
        package->enforced = wm_gpu_missing(WM_READING_UNSUPPORTED,
                                           "the limit is switched off (enabled is 0)");
}

/* The mean since the last reading. */
static void read_drawn(struct wm_cap_package *package)
{
    uint64_t microjoules = 0;
    struct wm_error err;
    int64_t now_ns = wm_clock_monotonic_ns();

    if (!read_number(package->path, "energy_uj", &microjoules, &err)) {
        memcpy(package->drawn_why, err.text, sizeof(package->drawn_why));
        package->drawn =
            wm_gpu_missing(err.status == WM_EACCES ? WM_READING_DENIED : WM_READING_FAILED,
                           package->drawn_why);
        return;
    }
    double joules = (double)microjoules / 1e6;
    double seconds = (double)(now_ns - package->read_ns) / 1e9;
    package->drawn = package->read_ns > 0 && joules >= package->joules
                         ? wm_gpu_number((joules - package->joules) / seconds)
                         : wm_gpu_missing(WM_READING_NONE, "it takes two readings");
    package->joules = joules;
    package->read_ns = now_ns;
}

void wm_cap_package_read(struct wm_cap_package *package)
{
    read_limit(package);
    read_drawn(package);
}

int wm_cap_package_write(const struct wm_cap_package *package, double watts,
                         struct wm_error *err)
{
    char path[640], text[32];

    snprintf(path, sizeof(path), "%s/constraint_%u_power_limit_uw", package->path,
             package->constraint);
    snprintf(text, sizeof(text), "%.0f", watts * 1e6);
    return wm_file_set(AT_FDCWD, path, path, text, err);
}
