/* SPDX-License-Identifier: Apache-2.0 */
/* fake_nvml_running.c - who computes and who draws on a GPU, and how much. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake_nvml_call.h"
#include "fake_nvml_process.h"

static bool has_type(const struct nvmlDevice_st *gpu, unsigned type)
{
    for (size_t i = 0; i < gpu->process_count; i++) {
        if (gpu->processes[i].type & type)
            return true;
    }
    return false;
}

/* `size`: bytes per entry, which all begin alike. Only whole entries fit, and
 * `ret_count` says how many there are. A part of a GPU has its own. */
static int list_type(const char *call, nvml_device device, unsigned type,
                     unsigned *ret_count, void *entries, size_t size)
{
    const struct fake_mig *mig = NULL;
    struct fake_running *list = NULL;
    nvml_device gpu = NULL;
    unsigned count = 0;
    double time = 0;
    int status = enter_any(call, device, &gpu, &mig, &time);
    if (status != NVML_SUCCESS)
        return status;

    size_t running = has_type(gpu, type) ? fake_running(gpu, time, &list) : 0;
    if (size == 0)
        size = gpu->process_entry;
    for (size_t i = 0; i < running; i++) {
        const struct fake_process *like = list[i].like;
        if (!(like->type & type) || (mig && like->gpu_instance != mig->gpu_instance))
            continue;
        if (count < *ret_count && entries) {
            struct nvml_process_535 entry = {
                .pid = list[i].pid,
                .memory = list[i].memory,
                .gpu_instance = like->gpu_instance,
                .compute_instance = like->compute_instance,
            };
            memcpy((char *)entries + count * size, &entry, size);
        }
        count++;
    }
    if (count > *ret_count)
        status = NVML_ERROR_INSUFFICIENT_SIZE;
    *ret_count = count;
    free(list);
    return status;
}

/* The third version is the one whose entries were not of the same size in all
 * drivers: they are as the scenario says. */
#define LIST_CALLS(name, type)                                                             \
    NVML_CALL(int, name, nvml_device gpu, unsigned *count, void *entries)                  \
    {                                                                                      \
        return list_type(__func__, gpu, type, count, entries,                              \
                         sizeof(struct nvml_process_v1));                                  \
    }                                                                                      \
    NVML_CALL(int, name##_v2, nvml_device gpu, unsigned *count, void *entries)             \
    {                                                                                      \
        return list_type(__func__, gpu, type, count, entries,                              \
                         sizeof(struct nvml_process_v2));                                  \
    }                                                                                      \
    NVML_CALL(int, name##_v3, nvml_device gpu, unsigned *count, void *entries)             \
    {                                                                                      \
        return list_type(__func__, gpu, type, count, entries, 0);                          \
    }

LIST_CALLS(nvmlDeviceGetComputeRunningProcesses, FAKE_COMPUTES)
LIST_CALLS(nvmlDeviceGetGraphicsRunningProcesses, FAKE_DRAWS)
LIST_CALLS(nvmlDeviceGetMPSComputeRunningProcesses, FAKE_SERVED)

/* How much of the GPU each has used. There is one sample per process, made at
 * the end of each period. */

struct samples {
    struct fake_running *running;
    size_t count;
    unsigned long long timestamp_us;
    double share; /* of the GPU's time, for each that has one */
};

/* From one second to another. */
static double mean_use(nvml_device gpu, double from, double until)
{
    from = fmax(from, 0);
    until = fmax(until, 0);
    if (until <= from)
        return curve_value(&gpu->utilization, until);
    return (curve_area(&gpu->utilization, until) - curve_area(&gpu->utilization, from)) /
           (until - from);
}

/* Leaves only the processes that have a sample: what they used since the last one that was
 * seen, or in a period. */
static int take_samples(nvml_device gpu, double time, unsigned long long last_seen_us,
                        struct samples *samples)
{
    double period_us = gpu->sample_period * 1e6;
    struct timespec now;
    size_t sharing = 0, kept = 0;

    clock_gettime(CLOCK_REALTIME, &now);
    double now_us = (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
    samples->timestamp_us = (unsigned long long)(floor(now_us / period_us) * period_us);

    samples->count = fake_running(gpu, time, &samples->running);
    for (size_t i = 0; i < samples->count; i++) {
        if (isnan(samples->running[i].like->sm))
            continue;
        sharing += samples->running[i].like->sm < 0;
        samples->running[kept++] = samples->running[i];
    }
    samples->count = kept;
    double end = time - (now_us - (double)samples->timestamp_us) / 1e6;
    double length =
        last_seen_us > 0 ? (double)samples->timestamp_us - (double)last_seen_us : period_us;
    samples->share = sharing ? mean_use(gpu, end - length / 1e6, end) / (double)sharing : 0;
    return kept > 0 && samples->timestamp_us > last_seen_us ? NVML_SUCCESS
                                                            : NVML_ERROR_NOT_FOUND;
}

/* `sample` is that of the process before, or zeroed: many are of one kind. */
static void next_sample(const struct samples *samples, size_t index,
                        struct nvml_process_sample *sample)
{
    const struct fake_running *running = &samples->running[index];
    const struct fake_process *like = running->like;

    sample->pid = running->pid;
    if (index > 0 && like == running[-1].like)
        return;
    sample->timestamp_us = samples->timestamp_us;
    put_number((like->sm < 0 ? samples->share : like->sm) * 100, &sample->sm);
    put_number(like->memory_utilization * 100, &sample->memory);
    put_number(like->encoder * 100, &sample->encoder);
    put_number(like->decoder * 100, &sample->decoder);
}

/* Partitioned GPUs do not report. */
static int begin_samples(const char *call, nvml_device gpu, unsigned long long last_seen_us,
                         struct samples *samples)
{
    double time = 0;
    int status = enter(call, gpu, &time);

    *samples = (struct samples) { 0 };
    if (status == NVML_SUCCESS && gpu->mig_mode > 0)
        status = NVML_ERROR_NOT_SUPPORTED;
    return status == NVML_SUCCESS ? take_samples(gpu, time, last_seen_us, samples) : status;
}

NVML_CALL(int, nvmlDeviceGetProcessUtilization, nvml_device gpu,
          struct nvml_process_sample *out, unsigned *count, unsigned long long last_seen_us)
{
    struct nvml_process_sample sample = { 0 };
    struct samples samples;
    int status = begin_samples(__func__, gpu, last_seen_us, &samples);

    if (status == NVML_SUCCESS && (!out || *count < samples.count))
        status = NVML_ERROR_INSUFFICIENT_SIZE;
    for (size_t i = 0; status == NVML_SUCCESS && i < samples.count; i++) {
        next_sample(&samples, i, &sample);
        out[i] = sample;
    }
    *count = (unsigned)samples.count;
    free(samples.running);
    return status;
}

static bool gives_names(const struct nvmlDevice_st *gpu)
{
    for (size_t i = 0; i < gpu->process_count; i++) {
        if (gpu->processes[i].name[0])
            return true;
    }
    return false;
}

/* The name that the scenario gives to one of its processes, or NULL. */
static const char *given_name(unsigned pid)
{
    const struct fake_scenario *scenario = fake_scenario();
    const char *name = NULL;

    for (size_t g = 0; g < scenario->gpu_count && !name; g++) {
        struct fake_running *list = NULL;
        const struct nvmlDevice_st *gpu = &scenario->gpus[g];
        size_t count = gives_names(gpu) ? fake_running(gpu, 0, &list) : 0;
        for (size_t i = 0; i < count && !name; i++) {
            if (list[i].pid == pid && list[i].like->name[0])
                name = list[i].like->name;
        }
        free(list);
    }
    return name;
}

NVML_CALL(int, nvmlSystemGetProcessName, unsigned pid, char *text, unsigned size)
{
    char path[64], name[1024] = "";
    int status = enter_system(__func__);
    if (status != NVML_SUCCESS)
        return status;

    const char *given = given_name(pid);
    if (given)
        return put_text(given, text, size);

    /* Up to the first zero byte, which is the program. */
    snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return NVML_ERROR_NOT_FOUND;
    size_t length = fread(name, 1, sizeof(name) - 1, file);
    fclose(file);
    return length > 0 ? put_text(name, text, size) : NVML_ERROR_NOT_FOUND;
}
