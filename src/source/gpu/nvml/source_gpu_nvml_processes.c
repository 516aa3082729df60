/* SPDX-License-Identifier: Apache-2.0 */
/* source_gpu_nvml_processes.c - the processes that NVML reports of, as rows of the
 * inventory.
 */
#include "source/gpu/nvml/source_gpu_nvml.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base_clock.h"

/* Of what the driver calls a process; the command line may follow the program. */
enum { NAME_SIZE = 1024 };

static const char *type_of(unsigned lists)
{
    const unsigned graphics = 1U << NVML_LIST_GRAPHICS;

    if (lists & 1U << NVML_LIST_MPS)
        return "M";
    if (lists & 1U << NVML_LIST_COMPUTE)
        return lists & graphics ? "C+G" : "C";
    return "G";
}

static struct wm_gpu_value share_of(struct gpu_nvml_gpu *gpu, unsigned percent)
{
    struct nvml_answer ratio;

    ratio.status = nvml_process_share(&gpu->processes, percent, &ratio.number);
    return gpu_nvml_number(gpu, &ratio);
}

static struct wm_gpu_value memory_of(const struct nvml_process *process)
{
    if (process->knows_memory)
        return wm_gpu_number((double)process->memory);
    return wm_gpu_missing(WM_READING_UNSUPPORTED,
                          "the driver does not report the memory of this process");
}

/* Not told as well where nobody knows whether the GPU is partitioned. */
static struct wm_gpu_value instance_of(struct gpu_nvml_gpu *gpu, int instance)
{
    enum wm_reading_state state = nvml_state(gpu->mig_status);
    bool is_whole = state == WM_READING_UNSUPPORTED ||
                    (state == WM_READING_OK && !gpu_nvml_is_partitioned(gpu));

    return is_whole ? wm_gpu_not_partitioned() : gpu_nvml_instance(instance);
}

/* Where /proc does not show the process: hidden from this user, or in another pid
 * namespace. NULL where the driver does not know it either. */
static const char *ask_name(struct gpu_nvml_gpu *gpu, unsigned pid, char *text)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/%u/stat", gpu->procfs, pid);
    if (!gpu->values.api->process_name || access(path, R_OK) == 0 ||
        gpu->values.api->process_name(pid, text, NAME_SIZE) != NVML_SUCCESS)
        return NULL;

    /* The path of a program, and its arguments in some drivers. */
    text[NAME_SIZE - 1] = '\0';
    if (text[0] != '/')
        return text;
    text[strcspn(text, " ")] = '\0';
    return strrchr(text, '/') + 1;
}

static int tell_process(struct gpu_nvml_gpu *gpu, const struct nvml_process *process)
{
    const struct nvml_process_sample *sample = process->sample;
    char name[NAME_SIZE];

    const struct wm_gpu_value row[WM_GPU_PROCESS_FIELDS] = {
        [WM_GPU_PROCESS_DRIVER_PID] = wm_gpu_number(process->user.pid),
        [WM_GPU_PROCESS_TYPE] = wm_gpu_words(type_of(process->lists)),
        [WM_GPU_PROCESS_NAME] = wm_gpu_words(ask_name(gpu, process->user.pid, name)),
        [WM_GPU_PROCESS_MEMORY] = memory_of(process),
        [WM_GPU_PROCESS_SM] = share_of(gpu, sample->sm),
        [WM_GPU_PROCESS_MEMORY_UTILIZATION] = share_of(gpu, sample->memory),
        [WM_GPU_PROCESS_ENCODER] = share_of(gpu, sample->encoder),
        [WM_GPU_PROCESS_DECODER] = share_of(gpu, sample->decoder),
        [WM_GPU_PROCESS_GPU_INSTANCE] = instance_of(gpu, process->user.gpu_instance),
        [WM_GPU_PROCESS_COMPUTE_INSTANCE] =
            instance_of(gpu, process->user.compute_instance),
    };
    return wm_gpu_add_row(gpu->sheet, WM_GPU_PROCESS_LIST, row);
}

void gpu_nvml_tell_processes(struct gpu_nvml_gpu *gpu)
{
    struct nvml_processes *processes = &gpu->processes;
    int added = WM_OK;

    int status = nvml_processes_read(processes, gpu->values.api, gpu->values.device,
                                     gpu_nvml_is_partitioned(gpu) ? &gpu->parts : NULL,
                                     wm_clock_monotonic_ns(), false);
    gpu_nvml_note(gpu, status);

    wm_gpu_begin_list(gpu->sheet, WM_GPU_PROCESS_LIST);
    for (size_t i = 0; i < processes->count && added == WM_OK; i++)
        added = tell_process(gpu, &processes->found[i]);
    wm_gpu_set_list_code(gpu->sheet, WM_GPU_PROCESS_LIST, nvml_code(status));
    wm_gpu_end_list(gpu->sheet, WM_GPU_PROCESS_LIST, nvml_state(status),
                    status == NVML_SUCCESS ? NULL : nvml_text(gpu->library, status));
}
