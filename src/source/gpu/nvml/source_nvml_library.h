/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_nvml_library.h - NVML, the library behind nvidia-smi, opened at run time:
 * one binary serves machines with and without the driver.
 *
 *     struct nvml_library library = { 0 };
 *     if (nvml_library_open(&library, NULL, err) == WM_OK)
 *         status = library.api.device_count(&count);
 *     nvml_library_close(&library);
 */
#ifndef WM_SOURCE_NVML_LIBRARY_H
#define WM_SOURCE_NVML_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/base_error.h"
#include "source/gpu/nvml/source_nvml_abi.h"
#include "wattmeter/source.h"

/* NVML has a list of its own for each way of using a GPU. A process may stand in
 * several; clients of MPS do so in the last, where computing ends up that their
 * server does for them. */
enum nvml_list { NVML_LIST_COMPUTE, NVML_LIST_GRAPHICS, NVML_LIST_MPS, NVML_LIST_COUNT };

/* The call for one list in its versions, NULL where the driver lacks one. */
struct nvml_list_calls {
    int (*v3)(nvml_device device, unsigned *count, void *entries);
    int (*v2)(nvml_device device, unsigned *count, void *entries);
    int (*v1)(nvml_device device, unsigned *count, void *entries);
};

/* NVML's functions that return a status: the name there, whether nothing works without it,
 * the name here, the parameters. Of a function that changed its form the older ones are
 * here, too, for drivers that have no other. Only those whose name there has a Set or a
 * Reset change anything. */
/* clang-format off */
#define NVML_CALLS(of) \
    of("nvmlInit_v2", true, init, (void)) \
    of("nvmlShutdown", true, shutdown, (void)) \
    of("nvmlSystemGetDriverVersion", false, driver_version, (char *text, unsigned size)) \
    of("nvmlSystemGetNVMLVersion", false, nvml_version, (char *text, unsigned size)) \
    of("nvmlSystemGetCudaDriverVersion_v2", false, cuda_version_v2, (int *version)) \
    of("nvmlSystemGetCudaDriverVersion", false, cuda_version_v1, (int *version)) \
    of("nvmlSystemGetProcessName", false, process_name, (unsigned pid, char *name, unsigned size)) \
    of("nvmlDeviceGetCount_v2", true, device_count, (unsigned *count)) \
    of("nvmlDeviceGetHandleByIndex_v2", true, device_at, (unsigned index, nvml_device *device)) \
    of("nvmlDeviceGetHandleByPciBusId_v2", false, device_by_address, (const char *address, nvml_device *device)) \
    of("nvmlDeviceGetHandleByUUID", false, device_by_uuid, (const char *uuid, nvml_device *device)) \
    of("nvmlDeviceGetUUID", true, uuid, (nvml_device device, char *uuid, unsigned size)) \
    of("nvmlDeviceGetName", false, name, (nvml_device device, char *name, unsigned size)) \
    of("nvmlDeviceGetSerial", false, serial, (nvml_device device, char *serial, unsigned size)) \
    of("nvmlDeviceGetVbiosVersion", false, vbios_version, (nvml_device device, char *version, unsigned size)) \
    of("nvmlDeviceGetArchitecture", false, architecture, (nvml_device device, unsigned *architecture)) \
    of("nvmlDeviceGetCudaComputeCapability", false, compute_capability, (nvml_device device, int *major, int *minor)) \
    of("nvmlDeviceGetNumGpuCores", false, cores, (nvml_device device, unsigned *count)) \
    of("nvmlDeviceGetAttributes_v2", false, attributes, (nvml_device device, struct nvml_attributes *attributes)) \
    of("nvmlDeviceGetComputeMode", false, compute_mode, (nvml_device device, unsigned *mode)) \
    of("nvmlDeviceGetPersistenceMode", false, persistence, (nvml_device device, unsigned *enabled)) \
    of("nvmlDeviceGetDisplayActive", false, display_active, (nvml_device device, unsigned *enabled)) \
    of("nvmlDeviceGetMemoryInfo_v2", false, memory_v2, (nvml_device device, struct nvml_memory_v2 *memory)) \
    of("nvmlDeviceGetMemoryInfo", false, memory_v1, (nvml_device device, struct nvml_memory_v1 *memory)) \
    of("nvmlDeviceGetBAR1MemoryInfo", false, bar1_memory, (nvml_device device, struct nvml_bar1_memory *memory)) \
    of("nvmlDeviceGetUtilizationRates", false, utilization, (nvml_device device, struct nvml_utilization *percent)) \
    of("nvmlDeviceGetEncoderUtilization", false, encoder_utilization, (nvml_device device, unsigned *percent, unsigned *period_us)) \
    of("nvmlDeviceGetDecoderUtilization", false, decoder_utilization, (nvml_device device, unsigned *percent, unsigned *period_us)) \
    of("nvmlDeviceGetFanSpeed_v2", false, fan_speed_v2, (nvml_device device, unsigned fan, unsigned *percent)) \
    of("nvmlDeviceGetFanSpeed", false, fan_speed_v1, (nvml_device device, unsigned *percent)) \
    of("nvmlDeviceGetFanSpeedRPM", false, fan_rpm, (nvml_device device, struct nvml_fan_speed_v1 *speed)) \
    of("nvmlDeviceGetTemperature", false, temperature, (nvml_device device, int sensor, unsigned *celsius)) \
    of("nvmlDeviceGetTemperatureV", false, temperature_v, (nvml_device device, struct nvml_temperature_v1 *temperature)) \
    of("nvmlDeviceGetTemperatureThreshold", false, temperature_threshold, (nvml_device device, int threshold, unsigned *celsius)) \
    of("nvmlDeviceGetPerformanceState", false, performance, (nvml_device device, unsigned *state)) \
    of("nvmlDeviceGetPciInfo_v3", false, pci_v3, (nvml_device device, struct nvml_pci *pci)) \
    of("nvmlDeviceGetPciInfo_v2", false, pci_v2, (nvml_device device, struct nvml_pci_v2 *pci)) \
    of("nvmlDeviceGetCurrPcieLinkGeneration", false, link_generation, (nvml_device device, unsigned *generation)) \
    of("nvmlDeviceGetMaxPcieLinkGeneration", false, link_generation_max, (nvml_device device, unsigned *generation)) \
    of("nvmlDeviceGetCurrPcieLinkWidth", false, link_width, (nvml_device device, unsigned *lanes)) \
    of("nvmlDeviceGetMaxPcieLinkWidth", false, link_width_max, (nvml_device device, unsigned *lanes)) \
    of("nvmlDeviceGetPcieReplayCounter", false, replays, (nvml_device device, unsigned *count)) \
    of("nvmlDeviceGetPcieThroughput", false, throughput, (nvml_device device, int counter, unsigned *kb_per_s)) \
    of("nvmlDeviceGetClockInfo", false, clock, (nvml_device device, int clock, unsigned *mhz)) \
    of("nvmlDeviceGetMaxClockInfo", false, clock_max, (nvml_device device, int clock, unsigned *mhz)) \
    of("nvmlDeviceGetCurrentClocksEventReasons", false, clock_event_reasons, (nvml_device device, unsigned long long *reasons)) \
    of("nvmlDeviceGetCurrentClocksThrottleReasons", false, clock_throttle_reasons, (nvml_device device, unsigned long long *reasons)) \
    of("nvmlDeviceGetPowerManagementMode", false, power_management, (nvml_device device, unsigned *enabled)) \
    of("nvmlDeviceGetPowerUsage", false, power_mw, (nvml_device device, unsigned *milliwatts)) \
    of("nvmlDeviceGetPowerManagementLimit", false, power_limit_mw, (nvml_device device, unsigned *milliwatts)) \
    of("nvmlDeviceGetPowerManagementDefaultLimit", false, power_limit_default_mw, (nvml_device device, unsigned *milliwatts)) \
    of("nvmlDeviceGetEnforcedPowerLimit", false, power_limit_enforced_mw, (nvml_device device, unsigned *milliwatts)) \
    of("nvmlDeviceGetPowerManagementLimitConstraints", false, power_limit_range_mw, (nvml_device device, unsigned *lowest, unsigned *highest)) \
    of("nvmlDeviceSetPowerManagementLimit", false, set_power_limit_mw, (nvml_device device, unsigned milliwatts)) \
    of("nvmlDeviceSetGpuLockedClocks", false, lock_clocks, (nvml_device device, unsigned lowest_mhz, unsigned highest_mhz)) \
    of("nvmlDeviceResetGpuLockedClocks", false, unlock_clocks, (nvml_device device)) \
    of("nvmlDeviceGetTotalEnergyConsumption", false, energy_mj, (nvml_device device, unsigned long long *millijoules)) \
    of("nvmlDeviceGetFieldValues", false, field_values, (nvml_device device, int count, struct nvml_field_value *values)) \
    of("nvmlDeviceGetEccMode", false, ecc_mode, (nvml_device device, unsigned *current, unsigned *pending)) \
    of("nvmlDeviceGetTotalEccErrors", false, ecc_errors, (nvml_device device, int error, int counter, unsigned long long *count)) \
    of("nvmlDeviceGetNvLinkState", false, nvlink_state, (nvml_device device, unsigned link, unsigned *is_up)) \
    of("nvmlDeviceGetMigMode", false, mig_mode, (nvml_device device, unsigned *current, unsigned *pending)) \
    of("nvmlDeviceGetMaxMigDeviceCount", false, mig_count_max, (nvml_device device, unsigned *count)) \
    of("nvmlDeviceGetMigDeviceHandleByIndex", false, mig_at, (nvml_device device, unsigned index, nvml_device *mig)) \
    of("nvmlDeviceGetGpuInstanceId", false, gpu_instance, (nvml_device mig, unsigned *id)) \
    of("nvmlDeviceGetComputeInstanceId", false, compute_instance, (nvml_device mig, unsigned *id)) \
    of("nvmlDeviceGetProcessUtilization", false, process_utilization, \
       (nvml_device device, struct nvml_process_sample *samples, unsigned *count, unsigned long long last_seen))
/* clang-format on */

#define NVML_MEMBER(symbol, required, member, parameters) int(*member) parameters;

/* Those that this driver lacks are NULL; the required ones never are. */
struct nvml_api {
    NVML_CALLS(NVML_MEMBER)
    const char *(*error_string)(int status);
    struct nvml_list_calls lists[NVML_LIST_COUNT];
};

/* What a call returns that this driver may lack. */
#define NVML_ASK(api, call, ...)                                                           \
    ((api)->call ? (api)->call(__VA_ARGS__) : NVML_ERROR_FUNCTION_NOT_FOUND)

struct nvml_library {
    void *handle;
    bool initialised;
    struct nvml_api api;
    char driver[NVML_VERSION_SIZE];  /* "" where it is not known */
    char version[NVML_VERSION_SIZE]; /* of NVML, likewise */
    char detail[512];                /* "driver 550.54, NVML 12.550.54, /usr/lib/..." */
};

/* Whether there is a library of that name; nothing of it is called. */
int nvml_library_look(const char *name, struct wm_error *err);

/* Loads NVML into the zeroed `library` and starts it. `name` may be NULL: the
 * driver's own, where the loader finds it. WM_ENODEV: no driver here. Close what
 * open leaves in any case. */
int nvml_library_open(struct nvml_library *library, const char *name, struct wm_error *err);

/* The GPU's temperature by the call that this driver has; NVML's status, or
 * NVML_IMPOSSIBLE_VALUE. */
int nvml_temperature(const struct nvml_api *api, nvml_device device, double *ret_celsius);

/* The value of a field that succeeded, whatever type it says that it is of. */
int nvml_field_number(const struct nvml_field_value *field, double *ret_value);

/* More than any machine has; beyond it a count is taken for a mistake. */
enum { NVML_GPUS_MAX = 1024 };

/* How many GPUs there are, at least one. WM_ENODEV: none. */
int nvml_library_count(const struct nvml_library *library, unsigned *ret_count,
                       struct wm_error *err);

/* Copes with all zero. */
void nvml_library_close(struct nvml_library *library);

/* NVML's text for what a call returned, or ours for our own; lives as long as the library
 * is open. `library` is NULL if NVML was not started, so as not to wake the GPUs. */
const char *nvml_text(const struct nvml_library *library, int nvml_status);

/* As in struct wm_error. */
static inline int nvml_code(int nvml_status)
{
    if (nvml_status == NVML_NO_ANSWER)
        return WM_NO_ANSWER;
    return nvml_status > 0 ? nvml_status : 0;
}

static inline enum wm_reading_state nvml_state(int nvml_status)
{
    if (nvml_status == NVML_SUCCESS)
        return WM_READING_OK;
    if (nvml_status == NVML_ERROR_NOT_SUPPORTED || nvml_lacks_call(nvml_status))
        return WM_READING_UNSUPPORTED;
    if (nvml_status == NVML_ERROR_NO_PERMISSION)
        return WM_READING_DENIED;
    if (nvml_status == NVML_ASLEEP)
        return WM_READING_STALE;
    return WM_READING_FAILED;
}

/* Ends `text` within `size`, and cleans it as wm_text_clean() does: NVML's texts end
 * up in reports and recordings. */
void nvml_clean_text(char *text, size_t size);

/* What keeps NVIDIA's GPUs from being read, such as a library that is not here; for the
 * doctor. */
struct wm_source_case;
void wm_nvml_advise(const struct wm_source_case *asked);

#endif
