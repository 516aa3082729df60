/* SPDX-License-Identifier: Apache-2.0 */
/* fake_nvml_mig.c - the parts of a partitioned GPU. */
#include <math.h>

#include "fake_nvml_call.h"

NVML_CALL(int, nvmlDeviceGetMigMode, nvml_device gpu, unsigned *mode, unsigned *pending)
{
    double time = 0;
    int status = enter(__func__, gpu, &time);
    if (status == NVML_SUCCESS)
        status = put_number(gpu->mig_mode, mode);
    return status == NVML_SUCCESS ? put_number(gpu->mig_mode_pending, pending) : status;
}

/* 0 where the GPU cannot be partitioned. */
NUMBER_CALL(nvmlDeviceGetMaxMigDeviceCount, isnan(gpu->mig_mode) ? 0 : FAKE_MIGS_MAX)

NVML_CALL(int, nvmlDeviceGetMigDeviceHandleByIndex, nvml_device gpu, unsigned index,
          nvml_device *device)
{
    double time = 0;
    int status = enter(__func__, gpu, &time);
    if (status == NVML_SUCCESS && isnan(gpu->mig_mode))
        status = NVML_ERROR_NOT_SUPPORTED;
    if (status == NVML_SUCCESS && index >= FAKE_MIGS_MAX)
        status = NVML_ERROR_INVALID_ARGUMENT;
    if (status == NVML_SUCCESS && !gpu->migs[index].there)
        status = NVML_ERROR_NOT_FOUND;
    if (status == NVML_SUCCESS)
        *device = (void *)&gpu->migs[index];
    return status;
}

NVML_CALL(int, nvmlDeviceIsMigDeviceHandle, nvml_device device, unsigned *is_mig)
{
    const struct fake_mig *mig = NULL;
    nvml_device gpu = NULL;
    double time = 0;
    int status = enter_any(__func__, device, &gpu, &mig, &time);
    if (status == NVML_SUCCESS)
        *is_mig = mig != NULL;
    return status;
}

NVML_CALL(int, nvmlDeviceGetDeviceHandleFromMigDeviceHandle, nvml_device device,
          nvml_device *ret_gpu)
{
    const struct fake_mig *mig = NULL;
    nvml_device gpu = NULL;
    double time = 0;
    int status = enter_any(__func__, device, &gpu, &mig, &time);
    if (status == NVML_SUCCESS && !mig)
        status = NVML_ERROR_INVALID_ARGUMENT;
    if (status == NVML_SUCCESS)
        *ret_gpu = gpu;
    return status;
}

/* Begins a call that is of parts alone. */
static int enter_mig(const char *call, nvml_device device, const struct fake_mig **ret_mig)
{
    nvml_device gpu = NULL;
    double time = 0;
    int status = enter_any(call, device, &gpu, ret_mig, &time);
    return status == NVML_SUCCESS && !*ret_mig ? NVML_ERROR_NOT_SUPPORTED : status;
}

NVML_CALL(int, nvmlDeviceGetGpuInstanceId, nvml_device device, unsigned *id)
{
    const struct fake_mig *mig = NULL;
    int status = enter_mig(__func__, device, &mig);
    if (status == NVML_SUCCESS)
        *id = mig->gpu_instance;
    return status;
}

NVML_CALL(int, nvmlDeviceGetComputeInstanceId, nvml_device device, unsigned *id)
{
    const struct fake_mig *mig = NULL;
    int status = enter_mig(__func__, device, &mig);
    if (status == NVML_SUCCESS)
        *id = mig->compute_instance;
    return status;
}

/* Of a part, and of a whole GPU as well. */
NVML_CALL(int, nvmlDeviceGetAttributes_v2, nvml_device device, struct nvml_attributes *out)
{
    const struct fake_mig *mig = NULL;
    nvml_device gpu = NULL;
    double time = 0;
    int status = enter_any(__func__, device, &gpu, &mig, &time);
    if (status != NVML_SUCCESS)
        return status;

    *out = (struct nvml_attributes) { 0 };
    put_whole((mig ? mig->memory_total : gpu->memory_total) / (1 << 20), &out->memory_mib);
    return put_number(mig ? mig->multiprocessors : gpu->multiprocessors,
                      &out->multiprocessors);
}
