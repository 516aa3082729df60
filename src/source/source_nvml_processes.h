/* SPDX-License-Identifier: Apache-2.0 */
/* source_nvml_processes.h - the compute processes of all GPUs, in one list. */
#ifndef WM_SOURCE_NVML_PROCESSES_H
#define WM_SOURCE_NVML_PROCESSES_H

#include <stddef.h>

#include "source/nvml_abi.h"
#include "wattmeter/source.h"

/* nvmlDeviceGetComputeRunningProcesses in its versions, NULL where the driver
 * lacks one. */
struct nvml_process_calls {
    int (*v3)(nvml_device device, unsigned *count, void *entries);
    int (*v2)(nvml_device device, unsigned *count, void *entries);
    int (*v1)(nvml_device device, unsigned *count, void *entries);
};

struct nvml_processes {
    struct wm_gpu_process *found;
    size_t count;
    size_t room;

    unsigned char *raw; /* what the driver wrote for one GPU */
    size_t raw_room;    /* in entries of the largest kind */
};

/* For up to `gpu_count` GPUs. NVML_SUCCESS or NVML_ERROR_MEMORY. */
int nvml_processes_init(struct nvml_processes *list, size_t gpu_count);
void nvml_processes_release(struct nvml_processes *list);

void nvml_processes_clear(struct nvml_processes *list);

/* Adds the processes of one GPU, or nothing and returns NVML's status. `id` is
 * kept; `others` is how many GPUs are still to come. Allocates only when there
 * are more processes than ever before. */
int nvml_processes_read(struct nvml_processes *list, const struct nvml_process_calls *calls,
                        nvml_device device, const char *id, size_t others);

/* Adds the entry that says that a GPU's processes are not known. Once per GPU,
 * there is always room for it. */
void nvml_processes_add_unknown(struct nvml_processes *list, const char *id,
                                enum wm_reading_state state);

#endif
