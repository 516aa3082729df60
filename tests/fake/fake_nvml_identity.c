/* SPDX-License-Identifier: Apache-2.0 */
/* fake_nvml_identity.c - what a GPU is, and how it is set up. */
#include <math.h>

#include "fake_nvml_call.h"

NVML_CALL(int, nvmlDeviceGetSerial, nvml_device gpu, char *text, unsigned size)
{
    double time = 0;
    int status = enter(__func__, gpu, &time);
    return status == NVML_SUCCESS ? put_text(gpu->serial, text, size) : status;
}

NVML_CALL(int, nvmlDeviceGetVbiosVersion, nvml_device gpu, char *text, unsigned size)
{
    double time = 0;
    int status = enter(__func__, gpu, &time);
    return status == NVML_SUCCESS ? put_text(gpu->bios, text, size) : status;
}

/* These two a MIG device has as well. */
NVML_CALL(int, nvmlDeviceGetName, nvml_device device, char *text, unsigned size)
{
    const struct fake_mig *mig = NULL;
    nvml_device gpu = NULL;
    double time = 0;
    int status = enter_any(__func__, device, &gpu, &mig, &time);
    return status == NVML_SUCCESS ? put_text(mig ? mig->name : gpu->name, text, size)
                                  : status;
}

NVML_CALL(int, nvmlDeviceGetUUID, nvml_device device, char *text, unsigned size)
{
    const struct fake_mig *mig = NULL;
    nvml_device gpu = NULL;
    double time = 0;
    int status = enter_any(__func__, device, &gpu, &mig, &time);
    return status == NVML_SUCCESS ? put_text(mig ? mig->uuid : gpu->uuid, text, size)
                                  : status;
}

NUMBER_CALL(nvmlDeviceGetIndex, gpu->index)
NUMBER_CALL(nvmlDeviceGetMinorNumber, gpu->index)
NUMBER_CALL(nvmlDeviceGetArchitecture, gpu->architecture)
NUMBER_CALL(nvmlDeviceGetNumGpuCores, gpu->cores)
NUMBER_CALL(nvmlDeviceGetComputeMode, gpu->compute_mode)
NUMBER_CALL(nvmlDeviceGetPersistenceMode, gpu->persistence)
NUMBER_CALL(nvmlDeviceGetDisplayActive, gpu->display_active)

NVML_CALL(int, nvmlDeviceGetCudaComputeCapability, nvml_device gpu, int *major, int *minor)
{
    double time = 0;
    int status = enter(__func__, gpu, &time);
    if (status == NVML_SUCCESS && isnan(gpu->compute_capability))
        status = NVML_ERROR_NOT_SUPPORTED;
    if (status == NVML_SUCCESS) {
        long tenths = lround(gpu->compute_capability * 10);
        *major = (int)(tenths / 10);
        *minor = (int)(tenths % 10);
    }
    return status;
}
