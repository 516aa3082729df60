/* SPDX-License-Identifier: Apache-2.0 */
/* fake_nvml_power.c - power, energy and limits; and the call that has its values
 * under numbers, of which power is the most. */
#include <math.h>
#include <time.h>

#include "fake_nvml_call.h"

static const struct curve *power_of(const struct nvmlDevice_st *gpu, unsigned scope)
{
    return scope == NVML_POWER_MODULE && gpu->power_module.count > 0 ? &gpu->power_module
                                                                     : &gpu->power;
}

static double instant_power(const struct nvmlDevice_st *gpu, unsigned scope, double time)
{
    time = fake_refreshed(time, gpu->power_period);
    return fake_has_physics(gpu) ? fake_physical_power(gpu, time)
                                 : curve_value(power_of(gpu, scope), time);
}

/* Over the last second, or since second 0. */
static double average_power(const struct nvmlDevice_st *gpu, unsigned scope, double time)
{
    const struct curve *power = power_of(gpu, scope);

    if (fake_has_physics(gpu))
        return instant_power(gpu, scope, time);
    time = fake_refreshed(time, gpu->power_period);
    if (power == &gpu->power && gpu->power_average.count > 0)
        return curve_value(&gpu->power_average, time);
    double window = fmin(time, 1);
    if (window <= 0)
        return curve_value(power, time);
    return (curve_area(power, time) - curve_area(power, time - window)) / window;
}

/* Of a GPU whose own power is in no scope it is the module's. */
static unsigned usage_scope(const struct nvmlDevice_st *gpu)
{
    return gpu->power_instant_scopes >> NVML_POWER_GPU & 1 ? NVML_POWER_GPU
                                                           : NVML_POWER_MODULE;
}

NUMBER_CALL(nvmlDeviceGetPowerUsage,
            1e3 * (gpu->power_usage_is_average
                       ? average_power(gpu, usage_scope(gpu), time)
                       : instant_power(gpu, usage_scope(gpu), time)))
NUMBER_CALL(nvmlDeviceGetPowerManagementMode, gpu->power_management)
NUMBER_CALL(nvmlDeviceGetPowerManagementLimit, fake_power_limit(gpu) * 1e3)
NUMBER_CALL(nvmlDeviceGetPowerManagementDefaultLimit, gpu->power_limit_default * 1e3)
NUMBER_CALL(nvmlDeviceGetEnforcedPowerLimit, fake_enforced_limit(gpu) * 1e3)

NVML_CALL(int, nvmlDeviceGetPowerManagementLimitConstraints, nvml_device gpu,
          unsigned *lowest, unsigned *highest)
{
    double time = 0;
    int status = enter(__func__, gpu, &time);
    if (status == NVML_SUCCESS)
        status = put_number(gpu->power_limit_min * 1e3, lowest);
    return status == NVML_SUCCESS ? put_number(gpu->power_limit_max * 1e3, highest)
                                  : status;
}

/* NAN where there is no such counter. */
static double energy_at(struct nvmlDevice_st *gpu, double time)
{
    const struct fake_energy *energy = &gpu->energy;
    const struct curve *power = power_of(gpu, NVML_POWER_MODULE);
    double joules = energy->start;

    time = fake_refreshed(time, energy->period);
    if (energy->mode == FAKE_ENERGY_ABSENT)
        return NAN;
    if (energy->mode == FAKE_ENERGY_STUCK)
        return joules;
    if (fake_has_physics(gpu))
        return fake_physical_energy(gpu, time);
    joules += curve_area(power, time);
    if (energy->reset_at >= 0 && time >= energy->reset_at)
        joules = curve_area(power, time) - curve_area(power, energy->reset_at);
    return energy->wrap > 0 ? fmod(joules, energy->wrap) : joules;
}

NVML_CALL(int, nvmlDeviceGetTotalEnergyConsumption, nvml_device gpu,
          unsigned long long *millijoules)
{
    double time = 0;
    int status = enter(__func__, gpu, &time);
    return status == NVML_SUCCESS ? put_whole(energy_at(gpu, time) * 1e3, millijoules)
                                  : status;
}

/* Values by number. */

enum { FIELD_ENERGY = 83 };

static int put_power(unsigned scopes, double watts, struct nvml_field_value *value)
{
    value->type = NVML_VALUE_UNSIGNED_INT;
    if (value->scope > 31 || !(scopes >> value->scope & 1))
        return NVML_ERROR_NOT_SUPPORTED;
    return put_number(watts * 1e3, &value->value.unsigned_int);
}

/* All links have sent and received the same. */
static int put_nvlink(const struct nvmlDevice_st *gpu, double bytes,
                      struct nvml_field_value *value)
{
    value->type = NVML_VALUE_UNSIGNED_LONG_LONG;
    if (isnan(gpu->nvlink_links))
        return NVML_ERROR_NOT_SUPPORTED;
    if (value->scope != NVML_NVLINK_ALL) {
        if (value->scope >= gpu->nvlink_links)
            return NVML_ERROR_INVALID_ARGUMENT;
        bytes /= gpu->nvlink_links;
    }
    return put_whole(bytes / 1024, &value->value.unsigned_long_long);
}

static int put_field(struct nvmlDevice_st *gpu, double time, struct nvml_field_value *value)
{
    switch (value->field) {
    case NVML_FIELD_MEMORY_TEMPERATURE:
        value->type = NVML_VALUE_UNSIGNED_INT;
        return put_number(curve_value(&gpu->temperature_memory, time),
                          &value->value.unsigned_int);
    case FIELD_ENERGY:
        value->type = NVML_VALUE_UNSIGNED_LONG_LONG;
        return put_whole(energy_at(gpu, time) * 1e3, &value->value.unsigned_long_long);
    case NVML_FIELD_NVLINK_SENT:
        return put_nvlink(gpu, curve_value(&gpu->nvlink_sent, time), value);
    case NVML_FIELD_NVLINK_RECEIVED:
        return put_nvlink(gpu, curve_value(&gpu->nvlink_received, time), value);
    case NVML_FIELD_POWER_AVERAGE:
        return put_power(gpu->power_average_scopes, average_power(gpu, value->scope, time),
                         value);
    case NVML_FIELD_POWER_INSTANT:
        return put_power(gpu->power_instant_scopes, instant_power(gpu, value->scope, time),
                         value);
    default:
        return NVML_ERROR_NOT_SUPPORTED;
    }
}

NVML_CALL(int, nvmlDeviceGetFieldValues, nvml_device gpu, int count,
          struct nvml_field_value *values)
{
    struct timespec now;
    double time = 0;
    int status = enter(__func__, gpu, &time);
    if (status != NVML_SUCCESS)
        return status;
    if (count <= 0 || !values)
        return NVML_ERROR_INVALID_ARGUMENT;

    for (int i = 0; i < count; i++) {
        clock_gettime(CLOCK_REALTIME, &now);
        values[i].timestamp_us = (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000;
        values[i].latency_us = 0;
        values[i].status = enter_part(__func__, values[i].field, gpu);
        if (values[i].status == NVML_SUCCESS)
            values[i].status = put_field(gpu, time, &values[i]);
    }
    return NVML_SUCCESS;
}
