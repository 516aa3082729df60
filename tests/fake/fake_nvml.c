/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_nvml.c - stands for libnvidia-ml.so.1 in tests and demonstrations. Built
 * under that name and found as that library is, so that no code has a hook for
 * it; what it pretends is in the file that FAKE_NVML_SCENARIO names.
 *
 * Here are start and end, the driver, and finding a GPU.
 */
#include <stdio.h>
#include <string.h>

#include "fake_nvml_call.h"

NVML_CALL(int, nvmlInit, void)
{
    return fake_start(__func__);
}

NVML_CALL(int, nvmlInit_v2, void)
{
    return fake_start(__func__);
}

NVML_CALL(int, nvmlInitWithFlags, unsigned flags)
{
    (void)flags;
    return fake_start(__func__);
}

NVML_CALL(int, nvmlShutdown, void)
{
    return fake_stop();
}

NVML_CALL(const char *, nvmlErrorString, int code)
{
    return fake_error_text(code);
}

NVML_CALL(int, nvmlSystemGetDriverVersion, char *text, unsigned size)
{
    int status = enter_system(__func__);
    return status == NVML_SUCCESS ? put_text(fake_scenario()->driver_version, text, size)
                                  : status;
}

NVML_CALL(int, nvmlSystemGetNVMLVersion, char *text, unsigned size)
{
    int status = enter_system(__func__);
    return status == NVML_SUCCESS ? put_text(fake_scenario()->nvml_version, text, size)
                                  : status;
}

static int get_cuda_version(const char *call, int *version)
{
    int status = enter_system(call);
    if (status == NVML_SUCCESS)
        *version = fake_scenario()->cuda_version;
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

static int count_gpus(const char *call, unsigned *count)
{
    int status = enter_system(call);
    if (status == NVML_SUCCESS)
        *count = fake_gpus_there();
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

    if (!fake_scenario())
        return NVML_ERROR_UNINITIALIZED;
    if (index >= fake_gpus_there())
        return NVML_ERROR_INVALID_ARGUMENT;
    int status = enter(call, &fake_scenario()->gpus[index], &time);
    if (status == NVML_SUCCESS)
        *device = &fake_scenario()->gpus[index];
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

static int mig_with_uuid(struct nvmlDevice_st *gpu, const char *uuid, nvml_device *device)
{
    for (size_t i = 0; i < FAKE_MIGS_MAX; i++) {
        if (gpu->migs[i].there && strcmp(gpu->migs[i].uuid, uuid) == 0) {
            *device = (void *)&gpu->migs[i];
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

NVML_CALL(int, nvmlDeviceGetHandleByUUID, const char *uuid, nvml_device *device)
{
    if (!fake_scenario())
        return NVML_ERROR_UNINITIALIZED;

    for (unsigned i = 0; i < fake_gpus_there(); i++) {
        if (strcmp(fake_scenario()->gpus[i].uuid, uuid) == 0)
            return gpu_at(__func__, i, device);
        if (mig_with_uuid(&fake_scenario()->gpus[i], uuid, device) == NVML_SUCCESS)
            return NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_FOUND;
}

static int gpu_on_bus(const char *call, const char *bus_id, nvml_device *device)
{
    unsigned domain = 0, bus = 0, slot = 0;

    if (!fake_scenario())
        return NVML_ERROR_UNINITIALIZED;
    if (sscanf(bus_id, "%x:%x:%x", &domain, &bus, &slot) != 3)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned i = 0; i < fake_gpus_there(); i++) {
        const struct nvmlDevice_st *gpu = &fake_scenario()->gpus[i];
        if (gpu->pci_domain == domain && gpu->pci_bus == bus && gpu->pci_device == slot)
            return gpu_at(call, i, device);
    }
    return NVML_ERROR_NOT_FOUND;
}

NVML_CALL(int, nvmlDeviceGetHandleByPciBusId, const char *bus_id, nvml_device *device)
{
    return gpu_on_bus(__func__, bus_id, device);
}

NVML_CALL(int, nvmlDeviceGetHandleByPciBusId_v2, const char *bus_id, nvml_device *device)
{
    return gpu_on_bus(__func__, bus_id, device);
}
