/* SPDX-License-Identifier: Apache-2.0 */
/* fake_nvml_call.c - the scenario of this process, its clock and its faults. */
#include "fake_nvml_call.h"

#include <fnmatch.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned users;
static struct fake_scenario *scenario;
static _Atomic double started; /* the scenario's second of the last nvmlInit */
static const char *trace_path; /* or NULL */

const struct fake_scenario *fake_scenario(void)
{
    return scenario;
}

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - scenario->start_ns;
    return ns > 0 ? (double)ns / 1e9 : 0;
}

void fake_sleep_ms(double ms)
{
    struct timespec rest = { (time_t)(ms / 1e3), (long)(fmod(ms, 1e3) * 1e6) };

    while (nanosleep(&rest, &rest) != 0)
        ;
}

static double cpu_ms(void)
{
    struct timespec used;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (double)used.tv_sec * 1e3 + (double)used.tv_nsec / 1e6;
}

/* In the thread that calls, as drivers do that wait for their hardware in a loop. */
static void burn_ms(double ms)
{
    double until = cpu_ms() + ms;

    while (cpu_ms() < until)
        ;
}

/* A line for each call, and for each part of one. */
static void trace(const char *call, int gpu)
{
    FILE *out = trace_path ? fopen(trace_path, "ae") : NULL;

    if (!out)
        return;
    fprintf(out, "%s %d\n", call, gpu);
    fclose(out);
}

static int apply_faults(const char *call, int gpu)
{
    double time = now_s();

    trace(call, gpu);
    for (size_t i = 0; i < scenario->fault_count; i++) {
        const struct fake_fault *fault = &scenario->faults[i];

        if (fnmatch(fault->call, call, 0) != 0 || (fault->gpu >= 0 && fault->gpu != gpu) ||
            time < fault->from || time >= fault->to)
            continue;
        if (fault->delay_ms > 0)
            fake_sleep_ms(fault->delay_ms);
        if (fault->cpu_ms > 0)
            burn_ms(fault->cpu_ms);
        if (fault->error)
            return fault->error;
    }
    return NVML_SUCCESS;
}

/* Who was there before the driver was unloaded has to start NVML anew. */
static bool is_unloaded(double time)
{
    return time >= scenario->unloaded_from && started < scenario->unloaded_to;
}

/* A driver that comes and goes does so while programs start NVML and end it: its
 * second 0 is when this process started it first. */
static void keep_clock(const char *path)
{
    static char kept_path[4096];
    static int64_t kept_ns;
    bool lasting = scenario->unloaded_to > 0;

    for (size_t i = 0; i < scenario->gpu_count; i++)
        lasting |= scenario->gpus[i].appears_at > 0;
    if (!lasting || scenario->start_given || !path)
        return;
    if (strcmp(path, kept_path) == 0) {
        scenario->start_ns = kept_ns;
    } else {
        snprintf(kept_path, sizeof(kept_path), "%s", path);
        kept_ns = scenario->start_ns;
    }
}

static int load(void)
{
    const char *path = getenv("FAKE_NVML_SCENARIO");

    trace_path = getenv("FAKE_NVML_TRACE");
    scenario = fake_scenario_load(path);
    if (!scenario)
        return NVML_ERROR_UNKNOWN;
    keep_clock(path);
    return NVML_SUCCESS;
}

int fake_start(const char *call)
{
    int status = NVML_SUCCESS;

    pthread_mutex_lock(&lock);
    if (users == 0)
        status = load();
    if (status == NVML_SUCCESS)
        status = apply_faults(call, -1);
    if (status == NVML_SUCCESS) {
        double time = now_s();
        if (time >= scenario->unloaded_from && time < scenario->unloaded_to)
            status = NVML_ERROR_DRIVER_NOT_LOADED;
        else
            started = time;
    }
    if (status == NVML_SUCCESS) {
        users++;
    } else if (users == 0) {
        fake_scenario_free(scenario);
        scenario = NULL;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

int fake_stop(void)
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

int enter_system(const char *call)
{
    if (!scenario || is_unloaded(now_s()))
        return NVML_ERROR_UNINITIALIZED;
    return apply_faults(call, -1);
}

/* Its parts are within it, so being between two GPUs is not enough. */
static bool is_gpu(nvml_device device)
{
    return device >= scenario->gpus && device < scenario->gpus + scenario->gpu_count &&
           ((char *)device - (char *)scenario->gpus) % (ptrdiff_t)sizeof(*device) == 0;
}

/* The GPU that this device is a part of, or NULL. */
static nvml_device gpu_of_mig(nvml_device device)
{
    const struct fake_mig *mig = (const void *)device;

    for (size_t i = 0; i < scenario->gpu_count; i++) {
        struct nvmlDevice_st *gpu = &scenario->gpus[i];
        if (mig >= gpu->migs && mig < gpu->migs + FAKE_MIGS_MAX)
            return gpu;
    }
    return NULL;
}

static int enter_gpu(const char *call, nvml_device gpu, double *ret_time)
{
    int status = apply_faults(call, (int)gpu->index);

    *ret_time = now_s();
    if (is_unloaded(*ret_time))
        return NVML_ERROR_UNINITIALIZED;
    if (gpu->lost_at >= 0 && *ret_time >= gpu->lost_at)
        return NVML_ERROR_GPU_IS_LOST;
    return status;
}

int enter(const char *call, nvml_device gpu, double *ret_time)
{
    if (!scenario || is_unloaded(now_s()))
        return NVML_ERROR_UNINITIALIZED;
    if (is_gpu(gpu))
        return enter_gpu(call, gpu, ret_time);
    return gpu_of_mig(gpu) ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_INVALID_ARGUMENT;
}

int enter_any(const char *call, nvml_device device, nvml_device *ret_gpu,
              const struct fake_mig **ret_mig, double *ret_time)
{
    if (!scenario || is_unloaded(now_s()))
        return NVML_ERROR_UNINITIALIZED;
    *ret_gpu = is_gpu(device) ? device : gpu_of_mig(device);
    if (!*ret_gpu)
        return NVML_ERROR_INVALID_ARGUMENT;
    *ret_mig = is_gpu(device) ? NULL : (const void *)device;
    return enter_gpu(call, *ret_gpu, ret_time);
}

int enter_part(const char *call, unsigned part, nvml_device gpu)
{
    char name[80];

    snprintf(name, sizeof(name), "%s:%u", call, part);
    return apply_faults(name, (int)gpu->index);
}

unsigned fake_gpus_there(void)
{
    unsigned there = 0;
    double time = now_s();

    while (there < scenario->gpu_count && scenario->gpus[there].appears_at <= time)
        there++;
    return there;
}

double fake_refreshed(double time, double period)
{
    return period > 0 ? floor(time / period) * period : time;
}

int put_text(const char *text, char *out, unsigned size)
{
    if (!text[0])
        return NVML_ERROR_NOT_SUPPORTED;
    if (!out)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (strlen(text) >= size)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(out, text, strlen(text) + 1);
    return NVML_SUCCESS;
}

int put_number(double value, unsigned *out)
{
    if (isnan(value))
        return NVML_ERROR_NOT_SUPPORTED;
    if (!out)
        return NVML_ERROR_INVALID_ARGUMENT;
    *out = value < UINT_MAX ? (unsigned)llround(value) : UINT_MAX;
    return NVML_SUCCESS;
}

/* Down, as a counter counts what is complete. */
int put_whole(double value, unsigned long long *out)
{
    if (isnan(value))
        return NVML_ERROR_NOT_SUPPORTED;
    if (!out)
        return NVML_ERROR_INVALID_ARGUMENT;
    *out = value < 0x1p64 ? (unsigned long long)value : ~0ULL;
    return NVML_SUCCESS;
}
