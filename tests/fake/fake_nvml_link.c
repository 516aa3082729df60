/* SPDX-License-Identifier: Apache-2.0 */
/* fake_nvml_link.c - how a GPU is connected: PCIe and NVLink. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fake_nvml_call.h"

NVML_CALL(int, nvmlDeviceGetPciInfo_v3, nvml_device gpu, struct nvml_pci *out)
{
    double time = 0;
    int status = enter(__func__, gpu, &time);
    if (status != NVML_SUCCESS)
        return status;

    *out = (struct nvml_pci) {
        .domain = gpu->pci_domain,
        .bus = gpu->pci_bus,
        .device = gpu->pci_device,
        .device_id = gpu->pci_device_id,
        .sub_system_id = gpu->pci_sub_system_id,
    };
    snprintf(out->bus_id_v2, sizeof(out->bus_id_v2), "%04X:%02X:%02X.0",
             gpu->pci_domain & 0xFFFF, gpu->pci_bus & 0xFF, gpu->pci_device & 0xFF);
    snprintf(out->bus_id, sizeof(out->bus_id), "%08X:%02X:%02X.0", gpu->pci_domain,
             gpu->pci_bus & 0xFF, gpu->pci_device & 0xFF);
    return NVML_SUCCESS;
}

static int get_pci(const char *call, nvml_device gpu, struct nvml_pci_v2 *out, size_t size)
{
    struct nvml_pci_v2 info = { 0 };
    double time = 0;
    int status = enter(call, gpu, &time);
    if (status != NVML_SUCCESS)
        return status;

    info.domain = gpu->pci_domain;
    info.bus = gpu->pci_bus;
    info.device = gpu->pci_device;
    info.device_id = gpu->pci_device_id;
    info.sub_system_id = gpu->pci_sub_system_id;
    snprintf(info.bus_id, sizeof(info.bus_id), "%04X:%02X:%02X.0", gpu->pci_domain & 0xFFFF,
             gpu->pci_bus & 0xFF, gpu->pci_device & 0xFF);
    memcpy(out, &info, size);
    return NVML_SUCCESS;
}

/* The first version ended where the board's ids begin. */
NVML_CALL(int, nvmlDeviceGetPciInfo, nvml_device gpu, struct nvml_pci_v2 *info)
{
    return get_pci(__func__, gpu, info, offsetof(struct nvml_pci_v2, sub_system_id));
}

NVML_CALL(int, nvmlDeviceGetPciInfo_v2, nvml_device gpu, struct nvml_pci_v2 *info)
{
    return get_pci(__func__, gpu, info, sizeof(*info));
}

NUMBER_CALL(nvmlDeviceGetCurrPcieLinkGeneration, gpu->pci_link_gen)
NUMBER_CALL(nvmlDeviceGetMaxPcieLinkGeneration, gpu->pci_link_gen_max)
NUMBER_CALL(nvmlDeviceGetCurrPcieLinkWidth, gpu->pci_link_width)
NUMBER_CALL(nvmlDeviceGetMaxPcieLinkWidth, gpu->pci_link_width_max)
NUMBER_CALL(nvmlDeviceGetPcieReplayCounter, gpu->pci_replays)

/* The real one measures for so long before it answers. */
enum { PCIE_WINDOW_MS = 20 };

NVML_CALL(int, nvmlDeviceGetPcieThroughput, nvml_device gpu, unsigned counter,
          unsigned *kb_per_second)
{
    double time = 0;
    int status = enter(__func__, gpu, &time);
    if (status == NVML_SUCCESS)
        status = enter_part(__func__, counter, gpu);
    if (status == NVML_SUCCESS && counter > NVML_PCIE_RECEIVED)
        status = NVML_ERROR_INVALID_ARGUMENT;
    if (status != NVML_SUCCESS)
        return status;

    const struct curve *curve =
        counter == NVML_PCIE_SENT ? &gpu->pci_sent_kb : &gpu->pci_received_kb;
    status = put_number(curve_value(curve, time), kb_per_second);
    if (status == NVML_SUCCESS)
        fake_sleep_ms(PCIE_WINDOW_MS);
    return status;
}

NVML_CALL(int, nvmlDeviceGetNvLinkState, nvml_device gpu, unsigned link, unsigned *active)
{
    double time = 0;
    int status = enter(__func__, gpu, &time);
    if (status == NVML_SUCCESS && isnan(gpu->nvlink_links))
        status = NVML_ERROR_NOT_SUPPORTED;
    if (status == NVML_SUCCESS && link >= NVML_NVLINKS_MAX)
        status = NVML_ERROR_INVALID_ARGUMENT;
    if (status == NVML_SUCCESS)
        *active = link < gpu->nvlink_links ? NVML_ENABLED : NVML_DISABLED;
    return status;
}
