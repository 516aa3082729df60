/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_nvml.c - stands for libnvidia-ml.so.1 in tests and demonstrations. Built
 * under that name and found as that library is, so that no code has a hook for
 * it; what it pretends is in the file that FAKE_NVML_SCENARIO names.
 *
 * A call is: enter(), which looks after faults, lost GPUs and the clock, and if
 * that succeeds the value. To add one, copy a short one.
 */
#include <fnmatch.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake_nvml_process.h"
#include "fake_nvml_scenario.h"
#include "source/nvml_abi.h"

/* Declares what it then defines: this library has no header of ours. */
#define NVML_CALL(type, name, ...)                                                         \
    __attribute__((visibility("default"))) type name(__VA_ARGS__);                         \
    type name(__VA_ARGS__)

/* Like NVML itself there is one per process, which counts who started it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned users;
static struct fake_scenario *scenario;

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - scenario->start_ns;
    return ns > 0 ? (double)ns / 1e9 : 0;
}

static void sleep_ms(double ms)
{
    struct timespec rest = { (time_t)(ms / 1e3), (long)(fmod(ms, 1e3) * 1e6) };

    while (nanosleep(&rest, &rest) != 0)
        ;
}

static int apply_faults(const char *call, int gpu)
{
    double time = now_s();

    for (size_t i = 0; i < scenario->fault_count; i++) {
        const struct fake_fault *fault = &scenario->faults[i];

        if (fnmatch(fault->call, call, 0) != 0 || (fault->gpu >= 0 && fault->gpu != gpu) ||
            time < fault->from || time >= fault->to)
            continue;
        if (fault->delay_ms > 0)
            sleep_ms(fault->delay_ms);
        if (fault->error)
            return fault->error;
    }
    return NVML_SUCCESS;
}

/* Begins a call that speaks of no GPU. */
static int enter_system(const char *call)
{
    return scenario ? apply_faults(call, -1) : NVML_ERROR_UNINITIALIZED;
}

/* Begins a call that speaks of one; `ret_time` is the scenario's second. */
static int enter(const char *call, nvml_device gpu, double *ret_time)
{
    if (!scenario)
        return NVML_ERROR_UNINITIALIZED;
    if (gpu < scenario->gpus || gpu >= scenario->gpus + scenario->gpu_count)
        return NVML_ERROR_INVALID_ARGUMENT;

    int status = apply_faults(call, (int)gpu->index);
    *ret_time = now_s();
    if (gpu->lost_at >= 0 && *ret_time >= gpu->lost_at)
        return NVML_ERROR_GPU_IS_LOST;
    return status;
}

static int put_text(const char *text, char *out, unsigned size)
{
    if (!out)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (strlen(text) >= size)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(out, text, strlen(text) + 1);
    return NVML_SUCCESS;
}

static unsigned rounded(double value)
{
    return value < UINT_MAX ? (unsigned)lround(value) : UINT_MAX;
}

/* Down, as a counter counts what is complete. */
static unsigned long long whole(double value)
{
    return value < 0x1p64 ? (unsigned long long)value : ~0ULL;
}

/* The last moment at which a sensor with this period had a new value. */
static double refreshed(double time, double period)
{
    return period > 0 ? floor(time / period) * period : time;
}

/* Start and end. */

static int start(const char *call)
{
    int status = NVML_SUCCESS;

    pthread_mutex_lock(&lock);
    if (users == 0) {
        scenario = fake_scenario_load(getenv("FAKE_NVML_SCENARIO"));
        status = scenario ? apply_faults(call, -1) : NVML_ERROR_UNKNOWN;
    }
    if (status == NVML_SUCCESS) {
        users++;
    } else {
        fake_scenario_free(scenario);
        scenario = NULL;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

NVML_CALL(int, nvmlInit, void)
{
    return start(__func__);
}

NVML_CALL(int, nvmlInit_v2, void)
{
    return start(__func__);
}

NVML_CALL(int, nvmlInitWithFlags, unsigned flags)
{
    (void)flags;
    return start(__func__);
}

NVML_CALL(int, nvmlShutdown, void)
{
    int status = NVML_SUCCESS;

    pthread_mutex_lock(&lock);
    if (users == 0) {
        status = NVML_ERROR_UNINITIALIZED;
    } else if (--users == 0) {
        fake_scenario_free(scenario);
        scenario = NULL;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

NVML_CALL(const char *, nvmlErrorString, int code)
{
    return fake_error_text(code);
}

/* The driver. */

NVML_CALL(int, nvmlSystemGetDriverVersion, char *text, unsigned size)
{
    int status = enter_system(__func__);
    return status == NVML_SUCCESS ? put_text(scenario->driver_version, text, size) : status;
}

NVML_CALL(int, nvmlSystemGetNVMLVersion, char *text, unsigned size)
{
    int status = enter_system(__func__);
    return status == NVML_SUCCESS ? put_text(scenario->nvml_version, text, size) : status;
}

static int get_cuda_version(const char *call, int *version)
{
    int status = enter_system(call);
    if (status == NVML_SUCCESS)
        *version = scenario->cuda_version;
    return status;
}

NVML_CALL(int, nvmlSystemGetCudaDriverVersion, int *version)
{
    return get_cuda_version(__func__, version);
}

NVML_CALL(int, nvmlSystemGetCudaDriverVersion_v2, int *version)
{
    return get_cuda_version(__func__, version);
}

/* Finding a GPU. */

static int count_gpus(const char *call, unsigned *count)
{
    int status = enter_system(call);
    if (status == NVML_SUCCESS)
        *count = (unsigned)scenario->gpu_count;
    return status;
}

NVML_CALL(int, nvmlDeviceGetCount, unsigned *count)
{
    return count_gpus(__func__, count);
}

NVML_CALL(int, nvmlDeviceGetCount_v2, unsigned *count)
{
    return count_gpus(__func__, count);
}

static int gpu_at(const char *call, unsigned index, nvml_device *device)
{
    double time = 0;

    if (!scenario)
        return NVML_ERROR_UNINITIALIZED;
    if (index >= scenario->gpu_count)
        return NVML_ERROR_INVALID_ARGUMENT;
    int status = enter(call, &scenario->gpus[index], &time);
    if (status == NVML_SUCCESS)
        *device = &scenario->gpus[index];
    return status;
}

NVML_CALL(int, nvmlDeviceGetHandleByIndex, unsigned index, nvml_device *device)
{
    return gpu_at(__func__, index, device);
}

NVML_CALL(int, nvmlDeviceGetHandleByIndex_v2, unsigned index, nvml_device *device)
{
    return gpu_at(__func__, index, device);
}

NVML_CALL(int, nvmlDeviceGetHandleByUUID, const char *uuid, nvml_device *device)
{
    for (unsigned i = 0; scenario && i < scenario->gpu_count; i++) {
        if (strcmp(scenario->gpus[i].uuid, uuid) == 0)
            return gpu_at(__func__, i, device);
    }
    return scenario ? NVML_ERROR_NOT_FOUND : NVML_ERROR_UNINITIALIZED;
}

/* One GPU per bus, from bus 1 on. */
static unsigned pci_domain(const struct nvmlDevice_st *gpu)
{
    return gpu->index / 255;
}

static unsigned pci_bus(const struct nvmlDevice_st *gpu)
{
    return gpu->index % 255 + 1;
}

static int gpu_on_bus(const char *call, const char *bus_id, nvml_device *device)
{
    unsigned domain = 0, bus = 0, slot = 0;

    if (sscanf(bus_id, "%x:%x:%x", &domain, &bus, &slot) != 3 || slot != 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned i = 0; scenario && i < scenario->gpu_count; i++) {
        if (pci_domain(&scenario->gpus[i]) == domain && pci_bus(&scenario->gpus[i]) == bus)
            return gpu_at(call, i, device);
    }
    return scenario ? NVML_ERROR_NOT_FOUND : NVML_ERROR_UNINITIALIZED;
}

NVML_CALL(int, nvmlDeviceGetHandleByPciBusId, const char *bus_id, nvml_device *device)
{
    return gpu_on_bus(__func__, bus_id, device);
}

NVML_CALL(int, nvmlDeviceGetHandleByPciBusId_v2, const char *bus_id, nvml_device *device)
{
    return gpu_on_bus(__func__, bus_id, device);
}

/* What a GPU is. */

NVML_CALL(int, nvmlDeviceGetName, nvml_device gpu, char *text, unsigned size)
{
    double time = 0;
    int status = enter(__func__, gpu, &time);
    return status == NVML_SUCCESS ? put_text(gpu->name, text, size) : status;
}

NVML_CALL(int, nvmlDeviceGetUUID, nvml_device gpu, char *text, unsigned size)
{
    double time = 0;
    int status = enter(__func__, gpu, &time);
    return status == NVML_SUCCESS ? put_text(gpu->uuid, text, size) : status;
}

static int get_index(const char *call, nvml_device gpu, unsigned *index)
{
    double time = 0;
    int status = enter(call, gpu, &time);
    if (status == NVML_SUCCESS)
        *index = gpu->index;
    return status;
}

NVML_CALL(int, nvmlDeviceGetIndex, nvml_device gpu, unsigned *index)
{
    return get_index(__func__, gpu, index);
}

NVML_CALL(int, nvmlDeviceGetMinorNumber, nvml_device gpu, unsigned *minor)
{
    return get_index(__func__, gpu, minor);
}

struct pci_info {
    char legacy_id[16];
    unsigned domain;
    unsigned bus;
    unsigned slot;
    unsigned device_id;
    unsigned subsystem_id; /* from here on in version 3 only */
    char id[32];
};

_Static_assert(sizeof(struct pci_info) == 68, "layout of nvmlPciInfo_t");

/* `size`: how much of the structure this version has. */
static int get_pci(const char *call, nvml_device gpu, struct pci_info *out, size_t size)
{
    struct pci_info info = { .device_id = 0x233010DE };
    double time = 0;
    int status = enter(call, gpu, &time);
    if (status != NVML_SUCCESS)
        return status;

    info.domain = pci_domain(gpu);
    info.bus = pci_bus(gpu);
    snprintf(info.legacy_id, sizeof(info.legacy_id), "%04X:%02X:00.0", info.domain & 0xFFFF,
             info.bus & 0xFF);
    snprintf(info.id, sizeof(info.id), "%08X:%02X:00.0", info.domain, info.bus);
    memcpy(out, &info, size);
    return NVML_SUCCESS;
}

NVML_CALL(int, nvmlDeviceGetPciInfo, nvml_device gpu, struct pci_info *info)
{
    return get_pci(__func__, gpu, info, offsetof(struct pci_info, subsystem_id));
}

NVML_CALL(int, nvmlDeviceGetPciInfo_v2, nvml_device gpu, struct pci_info *info)
{
    return get_pci(__func__, gpu, info, offsetof(struct pci_info, subsystem_id));
}

NVML_CALL(int, nvmlDeviceGetPciInfo_v3, nvml_device gpu, struct pci_info *info)
{
    return get_pci(__func__, gpu, info, sizeof(*info));
}

/* What a GPU does. */

static double energy_at(const struct nvmlDevice_st *gpu, double time)
{
    const struct fake_energy *energy = &gpu->energy;
    double joules = energy->start;

    time = refreshed(time, energy->period);
    if (energy->mode == FAKE_ENERGY_STUCK)
        return joules;
    joules += curve_area(&gpu->power, time);
    if (energy->reset_at >= 0 && time >= energy->reset_at)
        joules = curve_area(&gpu->power, time) - curve_area(&gpu->power, energy->reset_at);
    return energy->wrap > 0 ? fmod(joules, energy->wrap) : joules;
}

NVML_CALL(int, nvmlDeviceGetTotalEnergyConsumption, nvml_device gpu,
          unsigned long long *millijoules)
{
    double time = 0;
    int status = enter(__func__, gpu, &time);
    if (status == NVML_SUCCESS && gpu->energy.mode == FAKE_ENERGY_ABSENT)
        status = NVML_ERROR_NOT_SUPPORTED;
    if (status == NVML_SUCCESS)
        *millijoules = whole(energy_at(gpu, time) * 1e3);
    return status;
}

NVML_CALL(int, nvmlDeviceGetPowerUsage, nvml_device gpu, unsigned *milliwatts)
{
    double time = 0;
    int status = enter(__func__, gpu, &time);
    if (status == NVML_SUCCESS) {
        time = refreshed(time, gpu->power_period);
        *milliwatts = rounded(curve_value(&gpu->power, time) * 1e3);
    }
    return status;
}

static int get_power_limit(const char *call, nvml_device gpu, unsigned *milliwatts)
{
    double time = 0;
    int status = enter(call, gpu, &time);
    if (status == NVML_SUCCESS)
        *milliwatts = rounded(gpu->power_limit * 1e3);
    return status;
}

NVML_CALL(int, nvmlDeviceGetEnforcedPowerLimit, nvml_device gpu, unsigned *milliwatts)
{
    return get_power_limit(__func__, gpu, milliwatts);
}

NVML_CALL(int, nvmlDeviceGetPowerManagementLimit, nvml_device gpu, unsigned *milliwatts)
{
    return get_power_limit(__func__, gpu, milliwatts);
}

NVML_CALL(int, nvmlDeviceGetUtilizationRates, nvml_device gpu,
          struct nvml_utilization *percent)
{
    double time = 0;
    int status = enter(__func__, gpu, &time);
    if (status == NVML_SUCCESS) {
        percent->gpu = rounded(curve_value(&gpu->utilization, time) * 100);
        percent->memory = percent->gpu / 2;
    }
    return status;
}

NVML_CALL(int, nvmlDeviceGetMemoryInfo, nvml_device gpu, struct nvml_memory_v1 *memory)
{
    double time = 0;
    int status = enter(__func__, gpu, &time);
    if (status == NVML_SUCCESS) {
        double used = curve_value(&gpu->memory_used, time) + gpu->memory_reserved;
        memory->total = (unsigned long long)gpu->memory_total;
        memory->used = (unsigned long long)used;
        memory->free = memory->total - memory->used;
    }
    return status;
}

NVML_CALL(int, nvmlDeviceGetMemoryInfo_v2, nvml_device gpu, struct nvml_memory_v2 *memory)
{
    double time = 0;
    int status = enter(__func__, gpu, &time);
    if (status == NVML_SUCCESS && memory->version != NVML_MEMORY_V2)
        status = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (status == NVML_SUCCESS) {
        memory->total = (unsigned long long)gpu->memory_total;
        memory->reserved = (unsigned long long)gpu->memory_reserved;
        memory->used = (unsigned long long)curve_value(&gpu->memory_used, time);
        memory->free = memory->total - memory->used - memory->reserved;
    }
    return status;
}

/* Below zero it is a signed number in an unsigned one. */
NVML_CALL(int, nvmlDeviceGetTemperature, nvml_device gpu, int sensor, unsigned *celsius)
{
    double time = 0;
    int status = enter(__func__, gpu, &time);
    if (status == NVML_SUCCESS && sensor != NVML_TEMPERATURE_GPU)
        status = NVML_ERROR_INVALID_ARGUMENT;
    if (status == NVML_SUCCESS)
        *celsius = (unsigned)lround(curve_value(&gpu->temperature, time));
    return status;
}

NVML_CALL(int, nvmlDeviceGetTemperatureV, nvml_device gpu,
          struct nvml_temperature_v1 *temperature)
{
    double time = 0;
    int status = enter(__func__, gpu, &time);
    if (status == NVML_SUCCESS && temperature->version != NVML_TEMPERATURE_V1)
        status = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (status == NVML_SUCCESS && temperature->sensor != NVML_TEMPERATURE_GPU)
        status = NVML_ERROR_INVALID_ARGUMENT;
    if (status == NVML_SUCCESS)
        temperature->celsius = (int)lround(curve_value(&gpu->temperature, time));
    return status;
}

/* Who computes on it. */

/* `size`: bytes per entry, which all begin alike; 0: as the scenario says. */
static int list_compute(const char *call, nvml_device gpu, unsigned *count, void *entries,
                        size_t size)
{
    struct fake_running *list = NULL;
    double time = 0;
    int status = enter(call, gpu, &time);
    if (status != NVML_SUCCESS)
        return status;

    size_t running = fake_running(gpu, curve_value(&gpu->memory_used, time), &list);
    if (running > *count)
        status = NVML_ERROR_INSUFFICIENT_SIZE;
    if (size == 0)
        size = gpu->process_entry;
    for (size_t i = 0; status == NVML_SUCCESS && i < running; i++) {
        struct nvml_process_535 entry = {
            .pid = list[i].pid,
            .memory = list[i].memory,
            .gpu_instance = UINT_MAX,
            .compute_instance = UINT_MAX,
        };
        memcpy((char *)entries + i * size, &entry, size);
    }
    *count = (unsigned)running;
    free(list);
    return status;
}

NVML_CALL(int, nvmlDeviceGetComputeRunningProcesses, nvml_device gpu, unsigned *count,
          void *entries)
{
    return list_compute(__func__, gpu, count, entries, sizeof(struct nvml_process_v1));
}

NVML_CALL(int, nvmlDeviceGetComputeRunningProcesses_v2, nvml_device gpu, unsigned *count,
          void *entries)
{
    return list_compute(__func__, gpu, count, entries, sizeof(struct nvml_process_v2));
}

/* The one whose entries were not of the same size in all drivers. */
NVML_CALL(int, nvmlDeviceGetComputeRunningProcesses_v3, nvml_device gpu, unsigned *count,
          void *entries)
{
    return list_compute(__func__, gpu, count, entries, 0);
}

/* Nobody draws on a simulated GPU. */
static int list_nobody(const char *call, nvml_device gpu, unsigned *count)
{
    double time = 0;
    int status = enter(call, gpu, &time);
    if (status == NVML_SUCCESS)
        *count = 0;
    return status;
}

NVML_CALL(int, nvmlDeviceGetGraphicsRunningProcesses, nvml_device gpu, unsigned *count)
{
    return list_nobody(__func__, gpu, count);
}

NVML_CALL(int, nvmlDeviceGetGraphicsRunningProcesses_v2, nvml_device gpu, unsigned *count)
{
    return list_nobody(__func__, gpu, count);
}

NVML_CALL(int, nvmlDeviceGetGraphicsRunningProcesses_v3, nvml_device gpu, unsigned *count)
{
    return list_nobody(__func__, gpu, count);
}

/* What other programs look for, and these GPUs do not have. The calls take
 * further arguments, which are left alone. */
#define NOT_SUPPORTED_CALL(name)                                                           \
    NVML_CALL(int, name, nvml_device gpu)                                                  \
    {                                                                                      \
        double time = 0;                                                                   \
        int status = enter(__func__, gpu, &time);                                          \
        return status == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : status;                 \
    }

NOT_SUPPORTED_CALL(nvmlDeviceGetFanSpeed)
NOT_SUPPORTED_CALL(nvmlDeviceGetTemperatureThreshold)
NOT_SUPPORTED_CALL(nvmlDeviceGetClockInfo)
NOT_SUPPORTED_CALL(nvmlDeviceGetMaxClockInfo)
NOT_SUPPORTED_CALL(nvmlDeviceGetCurrPcieLinkGeneration)
NOT_SUPPORTED_CALL(nvmlDeviceGetCurrPcieLinkWidth)
NOT_SUPPORTED_CALL(nvmlDeviceGetMaxPcieLinkGeneration)
NOT_SUPPORTED_CALL(nvmlDeviceGetMaxPcieLinkWidth)
NOT_SUPPORTED_CALL(nvmlDeviceGetPcieThroughput)
NOT_SUPPORTED_CALL(nvmlDeviceGetEncoderUtilization)
NOT_SUPPORTED_CALL(nvmlDeviceGetDecoderUtilization)
NOT_SUPPORTED_CALL(nvmlDeviceGetProcessUtilization)
NOT_SUPPORTED_CALL(nvmlDeviceGetMigMode)
NOT_SUPPORTED_CALL(nvmlDeviceGetPerformanceState)
