/* SPDX-License-Identifier: Apache-2.0 */
/* fake_nvml_settings.c - what can be set, the limits of power and clocks: of all processes
 * that use the scenario where it names a file for them, else of this one alone. */
#include <fcntl.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include "fake_nvml_call.h"

/* The file has these, in the machine's own form, of each GPU. NAN: nobody has set it. */
struct settings {
    double power_limit;   /* W */
    double clock_highest; /* Hz */
};

static double *slot_of(struct settings *settings, enum fake_setting which)
{
    return which == FAKE_POWER_LIMIT ? &settings->power_limit : &settings->clock_highest;
}

static off_t place_of(unsigned index, enum fake_setting which)
{
    const size_t within = which == FAKE_POWER_LIMIT
                              ? offsetof(struct settings, power_limit)
                              : offsetof(struct settings, clock_highest);

    return (off_t)(index * sizeof(struct settings) + within);
}

double fake_setting(const struct nvmlDevice_st *gpu, enum fake_setting which)
{
    const char *path = fake_scenario()->settings;
    struct settings own = { gpu->set_power_limit, gpu->set_clock_highest };
    double value = *slot_of(&own, which);
    int fd = path[0] ? open(path, O_RDONLY | O_CLOEXEC) : -1;

    if (!path[0])
        return value;
    value = NAN;
    if (fd >= 0 && pread(fd, &value, sizeof(value), place_of(gpu->index, which)) !=
                       (ssize_t)sizeof(value))
        value = NAN;
    if (fd >= 0)
        close(fd);
    return value;
}

/* What lies between in a file that grows is set by nobody. */
static int make_room(int fd, unsigned index)
{
    const struct settings none = { NAN, NAN };
    off_t size = lseek(fd, 0, SEEK_END);

    for (; size >= 0 && size <= (off_t)(index * sizeof(none));
         size += (off_t)sizeof(none)) {
        if (pwrite(fd, &none, sizeof(none), size) != (ssize_t)sizeof(none))
            return NVML_ERROR_UNKNOWN;
    }
    return size < 0 ? NVML_ERROR_UNKNOWN : NVML_SUCCESS;
}

static int set(struct nvmlDevice_st *gpu, enum fake_setting which, double value)
{
    const char *path = fake_scenario()->settings;

    if (!path[0]) {
        *(which == FAKE_POWER_LIMIT ? &gpu->set_power_limit : &gpu->set_clock_highest) =
            value;
        return NVML_SUCCESS;
    }
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    int status = fd >= 0 ? make_room(fd, gpu->index) : NVML_ERROR_UNKNOWN;
    if (status == NVML_SUCCESS &&
        pwrite(fd, &value, sizeof(value), place_of(gpu->index, which)) !=
            (ssize_t)sizeof(value))
        status = NVML_ERROR_UNKNOWN;
    if (fd >= 0)
        close(fd);
    return status;
}

double fake_power_limit(const struct nvmlDevice_st *gpu)
{
    double set_to = fake_setting(gpu, FAKE_POWER_LIMIT);

    return isnan(set_to) || isnan(gpu->power_limit) ? gpu->power_limit : set_to;
}

double fake_enforced_limit(const struct nvmlDevice_st *gpu)
{
    double set_to = fake_setting(gpu, FAKE_POWER_LIMIT),
           enforced = gpu->power_limit_enforced;

    if (isnan(set_to) || isnan(enforced))
        return enforced;
    return enforced < gpu->power_limit ? fmin(enforced, set_to) : set_to;
}

double fake_limited_clock(const struct nvmlDevice_st *gpu, double clock)
{
    return fmin(clock, fake_setting(gpu, FAKE_CLOCK_HIGHEST));
}

NVML_CALL(int, nvmlDeviceSetPowerManagementLimit, nvml_device gpu, unsigned milliwatts)
{
    double time = 0, watts = milliwatts / 1e3;
    int status = enter(__func__, gpu, &time);

    if (status != NVML_SUCCESS)
        return status;
    if (isnan(gpu->power_limit))
        return NVML_ERROR_NOT_SUPPORTED;
    if (watts < gpu->power_limit_min || watts > gpu->power_limit_max)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (gpu->power_limit_step > 0)
        watts = floor(watts / gpu->power_limit_step) * gpu->power_limit_step;
    return set(gpu, FAKE_POWER_LIMIT, watts);
}

NVML_CALL(int, nvmlDeviceSetGpuLockedClocks, nvml_device gpu, unsigned lowest_mhz,
          unsigned highest_mhz)
{
    double time = 0;
    int status = enter(__func__, gpu, &time);

    if (status != NVML_SUCCESS)
        return status;
    if (lowest_mhz > highest_mhz || highest_mhz == 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    return set(gpu, FAKE_CLOCK_HIGHEST, highest_mhz * 1e6);
}

NVML_CALL(int, nvmlDeviceResetGpuLockedClocks, nvml_device gpu)
{
    double time = 0;
    int status = enter(__func__, gpu, &time);

    return status == NVML_SUCCESS ? set(gpu, FAKE_CLOCK_HIGHEST, NAN) : status;
}
