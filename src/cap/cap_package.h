/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cap_package.h - the power limits of CPU packages, in the kernel's powercap class:
 * intel-rapl:0/constraint_0_power_limit_uw. See Documentation/power/powercap/powercap.rst.
 */
#ifndef WM_CAP_PACKAGE_H
#define WM_CAP_PACKAGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/base_error.h"
#include "wattmeter/gpu.h"

/* More than any machine has. */
enum { WM_CAP_PACKAGES = 64 };

struct wm_cap_package {
    char device[32]; /* "cpu_package0" */
    char path[512];  /* of its folder */
    unsigned constraint;
    struct wm_gpu_value value, enforced, maximum, drawn;
    char why[256]; /* of the value that cannot be read */
    char drawn_why[256];
    double joules; /* at the last reading */
    int64_t read_ns;
};

struct wm_cap_packages {
    struct wm_cap_package list[WM_CAP_PACKAGES];
    size_t count;
};

/* Finds those that have a limit for the long term; there may be none. */
void wm_cap_packages_find(struct wm_cap_packages *packages, const char *sysfs);

void wm_cap_package_read(struct wm_cap_package *package);

int wm_cap_package_write(const struct wm_cap_package *package, double watts,
                         struct wm_error *err);

#endif
