/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cap_device.h - what can be capped, as the parts of the room use it: cap.h, and the
 * writing of values, which remembers nothing of what was there.
 */
#ifndef WM_CAP_DEVICE_H
#define WM_CAP_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include "base/base_error.h"
#include "wattmeter/cap.h"
#include "wattmeter/gpu.h"

/* For messages: "250 W", "1200 MHz", "no limit" for NAN. */
enum { WM_CAP_TEXT_SIZE = 48 };
void wm_cap_text(enum wm_cap_kind kind, double value, char text[WM_CAP_TEXT_SIZE]);

/* The GPUs of them, whose number is that of gpu.h. */
const struct wm_gpus *wm_caps_gpus(const struct wm_caps *caps);
size_t wm_caps_gpu_count(const struct wm_caps *caps);

/* Which setting is of that kind and of that GPU, or of that package. */
size_t wm_caps_index(const struct wm_caps *caps, enum wm_cap_kind kind, size_t number);

/* Which setting has that identity and kind; wm_caps_count() where none has. */
size_t wm_caps_find(const struct wm_caps *caps, enum wm_cap_kind kind,
                    const char *identity);

/* Where /sys and NVML were looked for: what the guardian is told. */
const struct wm_source_config *wm_caps_config(const struct wm_caps *caps);

/* As wm_caps_refresh(), but waits for drivers up to `deadline_ns` alone. */
int wm_caps_refresh_until(struct wm_caps *caps, int64_t deadline_ns, struct wm_error *err);

/* How long a driver is waited for that is asked now. */
int64_t wm_caps_patience(void);

/* Has the value written, NAN where there is to be no limit any more; waits up to
 * `deadline_ns`. */
int wm_caps_write(struct wm_caps *caps, size_t index, double value, int64_t deadline_ns,
                  struct wm_error *err);

/* Whether it can be set to that value; else why not. */
int wm_caps_check(const struct wm_caps *caps, size_t index, double value,
                  struct wm_error *err);

/*
 * The power limits of CPU packages, in the kernel's powercap class:
 * intel-rapl:0/constraint_0_power_limit_uw. See Documentation/power/powercap/powercap.rst.
 */

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
