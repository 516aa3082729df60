/* SPDX-License-Identifier: Apache-2.0 */
/* source_gpu_nvml_mig.c - the parts of a partitioned GPU (MIG). */
#include "source/gpu/nvml/source_gpu_nvml.h"

#include <limits.h>

bool gpu_nvml_is_partitioned(const struct gpu_nvml_gpu *gpu)
{
    return gpu->mig_status == NVML_SUCCESS && gpu->mig_mode == NVML_ENABLED;
}

static int ask_instance(int (*call)(nvml_device mig, unsigned *id), nvml_device mig)
{
    unsigned id = 0;

    return call && call(mig, &id) == NVML_SUCCESS && id <= INT_MAX ? (int)id
                                                                   : NVML_INSTANCE_NOT_TOLD;
}

/* Between the numbers of parts there may be numbers of none. */
static void find_parts(struct gpu_nvml_gpu *gpu)
{
    const struct nvml_api *api = gpu->values.api;
    unsigned most = 0;

    if (!api->mig_count_max || !api->mig_at ||
        api->mig_count_max(gpu->values.device, &most) != NVML_SUCCESS)
        return;
    if (most > NVML_PARTS_MAX)
        most = NVML_PARTS_MAX;

    for (unsigned i = 0; i < most; i++) {
        nvml_device handle = NULL;

        if (api->mig_at(gpu->values.device, i, &handle) != NVML_SUCCESS)
            continue;
        gpu->parts.items[gpu->parts.count++] = (struct nvml_part) {
            .handle = handle,
            .gpu_instance = ask_instance(api->gpu_instance, handle),
            .compute_instance = ask_instance(api->compute_instance, handle),
        };
    }
}

void gpu_nvml_find_migs(struct gpu_nvml_gpu *gpu)
{
    gpu->parts.count = 0;
    gpu->mig_status = NVML_ASK(gpu->values.api, mig_mode, gpu->values.device,
                               &gpu->mig_mode, &gpu->mig_mode_pending);
    if (gpu_nvml_is_partitioned(gpu))
        find_parts(gpu);
}

static int tell_mig(struct gpu_nvml_gpu *gpu, size_t index)
{
    const struct nvml_part *mig = &gpu->parts.items[index];
    char uuid[NVML_UUID_SIZE] = "", name[NVML_NAME_SIZE] = "";
    struct nvml_values values = { .api = gpu->values.api, .device = mig->handle };

    gpu_nvml_ask_text(gpu->values.api->uuid, mig->handle, uuid, sizeof(uuid));
    gpu_nvml_ask_text(gpu->values.api->name, mig->handle, name, sizeof(name));
    const struct wm_gpu_value row[WM_GPU_MIG_FIELDS] = {
        [WM_GPU_MIG_INDEX] = wm_gpu_number((double)index),
        [WM_GPU_MIG_UUID] = wm_gpu_words(uuid),
        [WM_GPU_MIG_NAME] = wm_gpu_words(name),
        [WM_GPU_MIG_GPU_INSTANCE] = gpu_nvml_instance(mig->gpu_instance),
        [WM_GPU_MIG_COMPUTE_INSTANCE] = gpu_nvml_instance(mig->compute_instance),
        [WM_GPU_MIG_MULTIPROCESSORS] =
            gpu_nvml_number(gpu, nvml_ask(&values, WM_GPU_MULTIPROCESSORS)),
        [WM_GPU_MIG_MEMORY_TOTAL] =
            gpu_nvml_number(gpu, nvml_ask(&values, WM_GPU_MEMORY_TOTAL)),
        [WM_GPU_MIG_MEMORY_USED] =
            gpu_nvml_number(gpu, nvml_ask(&values, WM_GPU_MEMORY_USED)),
    };
    return wm_gpu_add_row(gpu->sheet, WM_GPU_MIG_LIST, row);
}

void gpu_nvml_tell_migs(struct gpu_nvml_gpu *gpu)
{
    int status = WM_OK;

    wm_gpu_begin_list(gpu->sheet, WM_GPU_MIG_LIST);
    for (size_t i = 0; i < gpu->parts.count && status == WM_OK; i++)
        status = tell_mig(gpu, i);
    wm_gpu_end_list(gpu->sheet, WM_GPU_MIG_LIST, WM_READING_OK, NULL);
}
