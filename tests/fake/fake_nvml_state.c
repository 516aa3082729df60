/* SPDX-License-Identifier: Apache-2.0 */
/* fake_nvml_state.c - how a GPU is doing: use, memory, heat, clocks, errors. */
#include <math.h>

#include "fake_nvml_call.h"

NVML_CALL(int, nvmlDeviceGetUtilizationRates, nvml_device gpu,
          struct nvml_utilization *percent)
{
    double time = 0;
    int status = enter(__func__, gpu, &time);
    if (status == NVML_SUCCESS)
        status = put_number(curve_value(&gpu->utilization, time) * 100, &percent->gpu);
    if (status == NVML_SUCCESS &&
        put_number(curve_value(&gpu->memory_utilization, time) * 100, &percent->memory) !=
            NVML_SUCCESS)
        percent->memory = percent->gpu / 2;
    return status;
}

/* What the video engines do is an average over so long. */
enum { VIDEO_PERIOD_US = 167000 };

static int get_video(const char *call, nvml_device gpu, const struct curve *use,
                     unsigned *percent, unsigned *period_us)
{
    double time = 0;
    int status = enter(call, gpu, &time);
    if (status == NVML_SUCCESS)
        status = put_number(curve_value(use, time) * 100, percent);
    if (status == NVML_SUCCESS)
        status = put_number(VIDEO_PERIOD_US, period_us);
    return status;
}

NVML_CALL(int, nvmlDeviceGetEncoderUtilization, nvml_device gpu, unsigned *percent,
          unsigned *period_us)
{
    return get_video(__func__, gpu, &gpu->encoder, percent, period_us);
}

NVML_CALL(int, nvmlDeviceGetDecoderUtilization, nvml_device gpu, unsigned *percent,
          unsigned *period_us)
{
    return get_video(__func__, gpu, &gpu->decoder, percent, period_us);
}

/* Memory. What the driver keeps for itself is in the first version's use. */

struct memory {
    unsigned long long total, reserved, used;
};

static int get_memory(const char *call, nvml_device device, struct memory *ret_memory)
{
    const struct fake_mig *mig = NULL;
    nvml_device gpu = NULL;
    double time = 0;
    int status = enter_any(call, device, &gpu, &mig, &time);
    if (status != NVML_SUCCESS)
        return status;

    ret_memory->reserved = 0;
    if (mig) {
        put_whole(mig->memory_total, &ret_memory->total);
        put_whole(mig->memory_used, &ret_memory->used);
        return NVML_SUCCESS;
    }
    status = put_whole(gpu->memory_total, &ret_memory->total);
    if (status == NVML_SUCCESS)
        status = put_whole(gpu->memory_reserved, &ret_memory->reserved);
    if (status == NVML_SUCCESS)
        status = put_whole(curve_value(&gpu->memory_used, time), &ret_memory->used);
    return status;
}

NVML_CALL(int, nvmlDeviceGetMemoryInfo, nvml_device device, struct nvml_memory_v1 *out)
{
    struct memory memory;
    int status = get_memory(__func__, device, &memory);
    if (status == NVML_SUCCESS) {
        out->total = memory.total;
        out->used = memory.used + memory.reserved;
        out->free = out->total - out->used;
    }
    return status;
}

NVML_CALL(int, nvmlDeviceGetMemoryInfo_v2, nvml_device device, struct nvml_memory_v2 *out)
{
    struct memory memory;
    int status = get_memory(__func__, device, &memory);
    if (status == NVML_SUCCESS && out->version != NVML_MEMORY_V2)
        status = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (status == NVML_SUCCESS) {
        out->total = memory.total;
        out->reserved = memory.reserved;
        out->used = memory.used;
        out->free = out->total - out->used - out->reserved;
    }
    return status;
}

NVML_CALL(int, nvmlDeviceGetBAR1MemoryInfo, nvml_device gpu, struct nvml_bar1_memory *out)
{
    double time = 0;
    int status = enter(__func__, gpu, &time);
    if (status == NVML_SUCCESS)
        status = put_whole(gpu->bar1_total, &out->total);
    if (status == NVML_SUCCESS)
        status = put_whole(gpu->bar1_used, &out->used);
    if (status == NVML_SUCCESS)
        out->free = out->total - out->used;
    return status;
}

/* Heat. Below zero it is a signed number in an unsigned one. */

static int get_celsius(const char *call, nvml_device gpu, unsigned sensor, int *celsius)
{
    double time = 0;
    int status = enter(call, gpu, &time);
    if (status == NVML_SUCCESS && sensor != NVML_TEMPERATURE_GPU)
        status = NVML_ERROR_INVALID_ARGUMENT;
    if (status != NVML_SUCCESS)
        return status;

    double value = curve_value(&gpu->temperature, time);
    if (isnan(value))
        return NVML_ERROR_NOT_SUPPORTED;
    *celsius = (int)lround(value);
    return NVML_SUCCESS;
}

NVML_CALL(int, nvmlDeviceGetTemperature, nvml_device gpu, unsigned sensor,
          unsigned *celsius)
{
    return get_celsius(__func__, gpu, sensor, (int *)celsius);
}

NVML_CALL(int, nvmlDeviceGetTemperatureV, nvml_device gpu,
          struct nvml_temperature_v1 *temperature)
{
    if (temperature->version != NVML_TEMPERATURE_V1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return get_celsius(__func__, gpu, temperature->sensor, &temperature->celsius);
}

NVML_CALL(int, nvmlDeviceGetTemperatureThreshold, nvml_device gpu, unsigned threshold,
          unsigned *celsius)
{
    double time = 0;
    int status = enter(__func__, gpu, &time);
    if (status != NVML_SUCCESS)
        return status;
    switch (threshold) {
    case NVML_TEMPERATURE_SHUTDOWN:
        return put_number(gpu->temperature_shutdown, celsius);
    case NVML_TEMPERATURE_SLOWDOWN:
        return put_number(gpu->temperature_slowdown, celsius);
    case NVML_TEMPERATURE_MEMORY_MAX:
        return put_number(gpu->temperature_memory_max, celsius);
    default:
        return NVML_ERROR_NOT_SUPPORTED;
    }
}

/* Fans, which all turn alike. */

NUMBER_CALL(nvmlDeviceGetNumFans, gpu->fans)
NUMBER_CALL(nvmlDeviceGetFanSpeed, curve_value(&gpu->fan, time) * 100)

NVML_CALL(int, nvmlDeviceGetFanSpeed_v2, nvml_device gpu, unsigned fan, unsigned *percent)
{
    double time = 0;
    int status = enter(__func__, gpu, &time);
    if (status == NVML_SUCCESS && fan >= gpu->fans)
        status = NVML_ERROR_INVALID_ARGUMENT;
    return status == NVML_SUCCESS ? put_number(curve_value(&gpu->fan, time) * 100, percent)
                                  : status;
}

NVML_CALL(int, nvmlDeviceGetFanSpeedRPM, nvml_device gpu, struct nvml_fan_speed_v1 *speed)
{
    double time = 0;
    int status = enter(__func__, gpu, &time);
    if (status == NVML_SUCCESS && speed->version != NVML_FAN_SPEED_V1)
        status = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (status == NVML_SUCCESS && speed->fan >= gpu->fans)
        status = NVML_ERROR_INVALID_ARGUMENT;
    return status == NVML_SUCCESS
               ? put_number(curve_value(&gpu->fan_rpm, time), &speed->rpm)
               : status;
}

/* Clocks. */

NUMBER_CALL(nvmlDeviceGetPerformanceState, gpu->performance)

NVML_CALL(int, nvmlDeviceGetClockInfo, nvml_device gpu, unsigned clock, unsigned *mhz)
{
    double time = 0;
    int status = enter(__func__, gpu, &time);
    if (status == NVML_SUCCESS)
        status = enter_part(__func__, clock, gpu);
    if (status != NVML_SUCCESS)
        return status;
    switch (clock) {
    case NVML_CLOCK_GRAPHICS:
        return put_number(
            fake_limited_clock(gpu, curve_value(&gpu->clock_graphics, time)) / 1e6, mhz);
    case NVML_CLOCK_SM:
        return put_number(fake_limited_clock(gpu, curve_value(&gpu->clock_sm, time)) / 1e6,
                          mhz);
    case NVML_CLOCK_MEMORY:
        return put_number(curve_value(&gpu->clock_memory, time) / 1e6, mhz);
    case NVML_CLOCK_VIDEO:
        return put_number(curve_value(&gpu->clock_video, time) / 1e6, mhz);
    default:
        return NVML_ERROR_INVALID_ARGUMENT;
    }
}

NVML_CALL(int, nvmlDeviceGetMaxClockInfo, nvml_device gpu, unsigned clock, unsigned *mhz)
{
    double time = 0;
    int status = enter(__func__, gpu, &time);
    if (status != NVML_SUCCESS)
        return status;
    switch (clock) {
    case NVML_CLOCK_GRAPHICS:
        return put_number(gpu->clock_graphics_max / 1e6, mhz);
    case NVML_CLOCK_SM:
        return put_number(gpu->clock_sm_max / 1e6, mhz);
    case NVML_CLOCK_MEMORY:
        return put_number(gpu->clock_memory_max / 1e6, mhz);
    case NVML_CLOCK_VIDEO:
        return put_number(gpu->clock_video_max / 1e6, mhz);
    default:
        return NVML_ERROR_INVALID_ARGUMENT;
    }
}

static int get_reasons(const char *call, nvml_device gpu, unsigned long long *reasons)
{
    double time = 0;
    int status = enter(call, gpu, &time);
    return status == NVML_SUCCESS ? put_whole(curve_value(&gpu->throttle, time), reasons)
                                  : status;
}

/* The same under its older and its newer name. */
NVML_CALL(int, nvmlDeviceGetCurrentClocksThrottleReasons, nvml_device gpu,
          unsigned long long *reasons)
{
    return get_reasons(__func__, gpu, reasons);
}

NVML_CALL(int, nvmlDeviceGetCurrentClocksEventReasons, nvml_device gpu,
          unsigned long long *reasons)
{
    return get_reasons(__func__, gpu, reasons);
}

/* Memory errors. */

NVML_CALL(int, nvmlDeviceGetEccMode, nvml_device gpu, unsigned *mode, unsigned *pending)
{
    double time = 0;
    int status = enter(__func__, gpu, &time);
    if (status == NVML_SUCCESS)
        status = put_number(gpu->ecc_mode, mode);
    return status == NVML_SUCCESS ? put_number(gpu->ecc_mode_pending, pending) : status;
}

NVML_CALL(int, nvmlDeviceGetTotalEccErrors, nvml_device gpu, unsigned error,
          unsigned counter, unsigned long long *count)
{
    double time = 0;
    int status = enter(__func__, gpu, &time);
    if (status == NVML_SUCCESS)
        status = enter_part(__func__, 2 * error + counter, gpu);
    if (status == NVML_SUCCESS &&
        (error > NVML_ERRORS_UNCORRECTED || counter > NVML_ECC_AGGREGATE))
        status = NVML_ERROR_INVALID_ARGUMENT;
    if (status == NVML_SUCCESS && !(gpu->ecc_mode > 0))
        status = NVML_ERROR_NOT_SUPPORTED;
    if (status != NVML_SUCCESS)
        return status;
    if (counter == NVML_ECC_VOLATILE)
        return put_whole(error == NVML_ERRORS_CORRECTED ? gpu->ecc_corrected
                                                        : gpu->ecc_uncorrected,
                         count);
    return put_whole(error == NVML_ERRORS_CORRECTED ? gpu->ecc_corrected_lifetime
                                                    : gpu->ecc_uncorrected_lifetime,
                     count);
}
