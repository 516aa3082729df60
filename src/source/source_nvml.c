/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_nvml.c - NVIDIA GPUs through NVML, the library behind nvidia-smi.
 *
 * The library is opened at run time: one binary serves machines with and
 * without the driver.
 */
#include "source/source_ops.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_clock.h"
#include "base/base_error.h"
#include "source/nvml_abi.h"
#include "source/source_gpu_choice.h"
#include "source/source_nvml_processes.h"

/* The versioned name: the bare .so comes with development packages only. */
static const char default_library[] = "libnvidia-ml.so.1";

/* More than any machine has; beyond it a count is taken for a mistake. */
enum { GPUS_MAX = 1024 };

struct nvml_api {
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error_string)(int status);
    int (*driver_version)(char *text, unsigned size);
    int (*nvml_version)(char *text, unsigned size);
    int (*device_count)(unsigned *count);
    int (*device_at)(unsigned index, nvml_device *device);
    int (*uuid)(nvml_device device, char *uuid, unsigned size);
    int (*name)(nvml_device device, char *name, unsigned size);
    int (*energy_mj)(nvml_device device, unsigned long long *millijoules);
    int (*power_mw)(nvml_device device, unsigned *milliwatts);
    int (*utilization)(nvml_device device, struct nvml_utilization *percent);
    int (*memory_v2)(nvml_device device, struct nvml_memory_v2 *memory);
    int (*memory_v1)(nvml_device device, struct nvml_memory_v1 *memory);
    int (*temperature)(nvml_device device, int sensor, unsigned *celsius);
    int (*temperature_v)(nvml_device device, struct nvml_temperature_v1 *temperature);
    struct nvml_process_calls processes;
};

/* A driver too old for an optional symbol loses that metric and nothing else. */
static const struct symbol {
    const char *name;
    size_t slot; /* offset of its pointer in struct nvml_api */
    bool required;
} symbols[] = {
#define SLOT(member) offsetof(struct nvml_api, member)
    { "nvmlInit_v2", SLOT(init), true },
    { "nvmlShutdown", SLOT(shutdown), true },
    { "nvmlErrorString", SLOT(error_string), true },
    { "nvmlSystemGetDriverVersion", SLOT(driver_version), false },
    { "nvmlSystemGetNVMLVersion", SLOT(nvml_version), false },
    { "nvmlDeviceGetCount_v2", SLOT(device_count), true },
    { "nvmlDeviceGetHandleByIndex_v2", SLOT(device_at), true },
    { "nvmlDeviceGetUUID", SLOT(uuid), true },
    { "nvmlDeviceGetName", SLOT(name), false },
    { "nvmlDeviceGetTotalEnergyConsumption", SLOT(energy_mj), false },
    { "nvmlDeviceGetPowerUsage", SLOT(power_mw), false },
    { "nvmlDeviceGetUtilizationRates", SLOT(utilization), false },
    { "nvmlDeviceGetMemoryInfo_v2", SLOT(memory_v2), false },
    { "nvmlDeviceGetMemoryInfo", SLOT(memory_v1), false },
    { "nvmlDeviceGetTemperature", SLOT(temperature), false },
    { "nvmlDeviceGetTemperatureV", SLOT(temperature_v), false },
    { "nvmlDeviceGetComputeRunningProcesses_v3", SLOT(processes.v3), false },
    { "nvmlDeviceGetComputeRunningProcesses_v2", SLOT(processes.v2), false },
    { "nvmlDeviceGetComputeRunningProcesses", SLOT(processes.v1), false },
#undef SLOT
};

struct gpu {
    nvml_device handle;
    const char *id;
    char label[16];
    char name[NVML_NAME_SIZE];

    /* Answer of the tick's one memory call, which serves two metrics. */
    int memory_status;
    unsigned long long memory_used;
    unsigned long long memory_total;
};

static int query_energy(const struct nvml_api *api, struct gpu *gpu, double *ret_joules)
{
    unsigned long long millijoules = 0;
    if (!api->energy_mj)
        return NVML_ERROR_FUNCTION_NOT_FOUND;

    int status = api->energy_mj(gpu->handle, &millijoules);
    if (status == NVML_SUCCESS && millijoules == NVML_NOT_AVAILABLE)
        status = NVML_IMPOSSIBLE_VALUE;
    if (status == NVML_SUCCESS)
        *ret_joules = (double)millijoules / 1e3;
    return status;
}

/* From Ampere on (GA100 apart) this is an average over the last second. Work
 * shorter than that shows late and flattened; difference `energy` instead. */
static int query_power(const struct nvml_api *api, struct gpu *gpu, double *ret_watts)
{
    unsigned milliwatts = 0;
    if (!api->power_mw)
        return NVML_ERROR_FUNCTION_NOT_FOUND;

    int status = api->power_mw(gpu->handle, &milliwatts);
    if (status == NVML_SUCCESS && milliwatts == UINT_MAX)
        status = NVML_IMPOSSIBLE_VALUE;
    if (status == NVML_SUCCESS)
        *ret_watts = milliwatts / 1e3;
    return status;
}

static int query_utilization(const struct nvml_api *api, struct gpu *gpu, double *ret_ratio)
{
    struct nvml_utilization percent = { 0 };
    if (!api->utilization)
        return NVML_ERROR_FUNCTION_NOT_FOUND;

    int status = api->utilization(gpu->handle, &percent);
    if (status == NVML_SUCCESS && percent.gpu > 100)
        status = NVML_IMPOSSIBLE_VALUE;
    if (status == NVML_SUCCESS)
        *ret_ratio = percent.gpu / 1e2;
    return status;
}

/* The first form counts what the driver keeps for itself as used, which is why
 * it is the second choice. */
static int ask_memory(const struct nvml_api *api, struct gpu *gpu)
{
    struct nvml_memory_v2 memory = { .version = NVML_MEMORY_V2 };
    struct nvml_memory_v1 older = { 0 };
    int status = NVML_ERROR_FUNCTION_NOT_FOUND;

    if (api->memory_v2)
        status = api->memory_v2(gpu->handle, &memory);
    if (nvml_lacks_call(status) && api->memory_v1) {
        status = api->memory_v1(gpu->handle, &older);
        memory.used = older.used;
        memory.total = older.total;
    }
    if (status == NVML_SUCCESS && memory.used > memory.total)
        status = NVML_IMPOSSIBLE_VALUE;
    gpu->memory_used = memory.used;
    gpu->memory_total = memory.total;
    return status;
}

static int query_memory_used(const struct nvml_api *api, struct gpu *gpu, double *ret_bytes)
{
    gpu->memory_status = ask_memory(api, gpu);
    if (gpu->memory_status == NVML_SUCCESS)
        *ret_bytes = (double)gpu->memory_used;
    return gpu->memory_status;
}

/* Stands after query_memory_used() in the table below and costs no call. */
static int query_memory_total(const struct nvml_api *api, struct gpu *gpu,
                              double *ret_bytes)
{
    (void)api;
    if (gpu->memory_status == NVML_SUCCESS)
        *ret_bytes = (double)gpu->memory_total;
    return gpu->memory_status;
}

static int query_temperature(const struct nvml_api *api, struct gpu *gpu,
                             double *ret_celsius)
{
    struct nvml_temperature_v1 newer = { NVML_TEMPERATURE_V1, NVML_TEMPERATURE_GPU, 0 };
    unsigned celsius = 0;
    int status = NVML_ERROR_FUNCTION_NOT_FOUND;

    if (api->temperature)
        status = api->temperature(gpu->handle, NVML_TEMPERATURE_GPU, &celsius);
    if (nvml_lacks_call(status) && api->temperature_v) {
        status = api->temperature_v(gpu->handle, &newer);
        celsius = (unsigned)newer.celsius;
    }
    /* The older call has no way to say "below zero" but this one. */
    if (status == NVML_SUCCESS)
        *ret_celsius = (int)celsius;
    return status;
}

/* Boards since Turing were seen to change their power every 100 ms, however
 * often they are asked (Yang, Adamek, Armour: "Accurate and Convenient Energy
 * Measurements for GPUs", SC24); we assume no better of the energy. NVML's
 * documentation says "between 1 second and 1/6 second" for the utilization. */
#define SENSOR_PERIOD_NS (100 * WM_NS_PER_MS)
#define UTILIZATION_PERIOD_NS (WM_NS_PER_S / 6)

/* A new metric is one query function above and one line here. Energy first:
 * of all values a counter loses most by being late. */
static const struct metric {
    const char *name;
    const char *unit;
    enum wm_kind kind;
    int64_t period_ns;
    int (*query)(const struct nvml_api *api, struct gpu *gpu, double *ret_value);
} metrics[] = {
    { "energy", "J", WM_COUNTER, SENSOR_PERIOD_NS, query_energy },
    { "power", "W", WM_GAUGE, SENSOR_PERIOD_NS, query_power },
    { "utilization", "ratio", WM_GAUGE, UTILIZATION_PERIOD_NS, query_utilization },
    { "memory_used", "B", WM_GAUGE, 0, query_memory_used },
    { "memory_total", "B", WM_GAUGE, 0, query_memory_total },
    { "temperature", "celsius", WM_GAUGE, 0, query_temperature },
};

enum { METRIC_COUNT = sizeof(metrics) / sizeof(metrics[0]) };

struct nvml {
    void *library;
    bool initialised;
    struct nvml_api api;
    struct wm_gpu_id *ids; /* of all GPUs, chosen or not */
    size_t id_count;
    struct gpu *gpus; /* the chosen ones that answer */
    size_t gpu_count;
    struct wm_channel *channels; /* METRIC_COUNT per GPU, GPU by GPU */
    int *statuses;               /* NVML's answer to each channel's last query */
    struct nvml_processes processes;
    char detail[512];
};

static const char *text_of(const struct nvml *nvml, int nvml_status)
{
    if (nvml_status == NVML_IMPOSSIBLE_VALUE)
        return "the driver gave an impossible value";

    const char *text = nvml->api.error_string(nvml_status);
    return text ? text : "unknown NVML error";
}

static enum wm_reading_state state_of(int nvml_status)
{
    if (nvml_status == NVML_SUCCESS)
        return WM_READING_OK;
    if (nvml_status == NVML_ERROR_NOT_SUPPORTED || nvml_lacks_call(nvml_status))
        return WM_READING_UNSUPPORTED;
    if (nvml_status == NVML_ERROR_NO_PERMISSION)
        return WM_READING_DENIED;
    return WM_READING_FAILED;
}

/* The failures to start that people meet, and what they can do about them. */
static int fail_start(const struct nvml *nvml, int nvml_status, struct wm_error *err)
{
    const char *text = text_of(nvml, nvml_status);

    switch (nvml_status) {
    case NVML_ERROR_DRIVER_NOT_LOADED:
        return wm_fail(err, WM_ENODEV,
                       "the NVIDIA driver is installed but its kernel module is not "
                       "loaded (NVML: %s)",
                       text);
    case NVML_ERROR_GPU_NOT_FOUND:
        return wm_fail(err, WM_ENODEV, "the NVIDIA driver sees no GPU (NVML: %s)", text);
    case NVML_ERROR_NO_PERMISSION:
        return wm_fail(err, WM_EACCES,
                       "no permission to ask the NVIDIA driver; see who may open "
                       "/dev/nvidiactl (NVML: %s)",
                       text);
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
        return wm_fail(err, WM_EIO,
                       "the NVIDIA library and the loaded kernel module are of different "
                       "versions; a restart helps after an update (NVML: %s)",
                       text);
    default:
        return wm_fail(err, WM_EIO, "NVML could not start: %s", text);
    }
}

static int fail_library(const char *name, struct wm_error *err)
{
    const char *reason = dlerror();

    if (!reason)
        reason = "unknown reason";
    /* A library that lacks another one fails in the same words, but begins
     * with the other's name. */
    if (strncmp(reason, name, strlen(name)) == 0 && strstr(reason, "No such file"))
        return wm_fail(err, WM_ENODEV, "no NVIDIA driver: %s was not found", name);
    return wm_fail(err, WM_ENODEV, "no NVIDIA driver: %s", reason);
}

static int bind_symbols(void *library, struct nvml_api *api, struct wm_error *err)
{
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *address = dlsym(library, symbols[i].name);
        if (!address && symbols[i].required)
            return wm_fail(err, WM_ENODEV, "this NVML has no %s", symbols[i].name);

        /* ISO C has no cast from an object pointer to a function pointer. */
        memcpy((char *)api + symbols[i].slot, &address, sizeof(address));
    }
    return WM_OK;
}

/* NVML's texts end up in reports and recordings. */
static void clean_text(char *text, size_t size)
{
    text[size - 1] = '\0';
    for (; *text; text++) {
        if (*text < ' ' || *text > '~')
            *text = '?';
    }
}

static void describe(struct nvml *nvml, const char *name)
{
    char driver[NVML_VERSION_SIZE] = "", version[NVML_VERSION_SIZE] = "";
    struct link_map *map = NULL;

    if (nvml->api.driver_version)
        nvml->api.driver_version(driver, sizeof(driver));
    if (nvml->api.nvml_version)
        nvml->api.nvml_version(version, sizeof(version));
    clean_text(driver, sizeof(driver));
    clean_text(version, sizeof(version));

    if (dlinfo(nvml->library, RTLD_DI_LINKMAP, &map) == 0 && map->l_name[0])
        name = map->l_name;
    snprintf(nvml->detail, sizeof(nvml->detail), "driver %s, NVML %s, %s",
             driver[0] ? driver : "unknown", version[0] ? version : "unknown", name);
}

static int start_nvml(struct nvml *nvml, const char *name, struct wm_error *err)
{
    nvml->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!nvml->library)
        return fail_library(name, err);

    int status = bind_symbols(nvml->library, &nvml->api, err);
    if (status < 0)
        return status;

    int nvml_status = nvml->api.init();
    if (nvml_status != NVML_SUCCESS)
        return fail_start(nvml, nvml_status, err);
    nvml->initialised = true;
    describe(nvml, name);
    return WM_OK;
}

/* Asks every GPU who it is. One broken board must not hide its neighbours. */
static int identify_gpus(struct nvml *nvml, struct wm_error *err)
{
    unsigned count = 0;
    int status = nvml->api.device_count(&count);
    if (status != NVML_SUCCESS)
        return wm_fail(err, WM_EIO, "NVML could not count the GPUs: %s",
                       text_of(nvml, status));
    if (count == 0)
        return wm_fail(err, WM_ENODEV, "the NVIDIA driver is loaded but sees no GPU");
    if (count > GPUS_MAX)
        return wm_fail(err, WM_EFORMAT, "NVML claims to see %u GPUs", count);

    nvml->ids = calloc(count, sizeof(*nvml->ids));
    if (!nvml->ids)
        return wm_fail(err, WM_ENOMEM, "out of memory for %u GPUs", count);
    nvml->id_count = count;

    for (unsigned i = 0; i < count; i++) {
        char *id = nvml->ids[i].text;
        nvml_device handle = NULL;

        /* Not the index: NVML counts in PCI order, CUDA by default does not,
         * and both change when a board is moved. */
        if (nvml->api.device_at(i, &handle) != NVML_SUCCESS ||
            nvml->api.uuid(handle, id, sizeof(nvml->ids[i].text)) != NVML_SUCCESS)
            id[0] = '\0';
        clean_text(id, sizeof(nvml->ids[i].text));
    }
    return WM_OK;
}

static void add_gpu(struct nvml *nvml, unsigned index, nvml_device handle)
{
    struct gpu *gpu = &nvml->gpus[nvml->gpu_count];

    gpu->handle = handle;
    gpu->id = nvml->ids[index].text;
    snprintf(gpu->label, sizeof(gpu->label), "gpu%u", index);
    if (nvml->api.name)
        nvml->api.name(handle, gpu->name, sizeof(gpu->name));
    clean_text(gpu->name, sizeof(gpu->name));

    for (size_t m = 0; m < METRIC_COUNT; m++) {
        nvml->channels[nvml->gpu_count * METRIC_COUNT + m] = (struct wm_channel) {
            .source = wm_source_nvml.name,
            .device = gpu->id,
            .label = gpu->label,
            .model = gpu->name[0] ? gpu->name : NULL,
            .metric = metrics[m].name,
            .unit = metrics[m].unit,
            .device_kind = WM_DEVICE_GPU,
            .kind = metrics[m].kind,
            .origin = strstr(gpu->name, "SIMULATED") ? WM_SIMULATED : WM_MEASURED,
            .period_ns = metrics[m].period_ns,
        };
    }
    nvml->gpu_count++;
}

static int add_chosen_gpus(struct nvml *nvml, const bool *chosen, struct wm_error *err)
{
    nvml->gpus = calloc(nvml->id_count, sizeof(*nvml->gpus));
    nvml->channels = calloc(nvml->id_count * METRIC_COUNT, sizeof(*nvml->channels));
    nvml->statuses = calloc(nvml->id_count * METRIC_COUNT, sizeof(*nvml->statuses));
    if (!nvml->gpus || !nvml->channels || !nvml->statuses ||
        nvml_processes_init(&nvml->processes, nvml->id_count) != NVML_SUCCESS)
        return wm_fail(err, WM_ENOMEM, "out of memory for %zu GPUs", nvml->id_count);

    for (unsigned i = 0; i < nvml->id_count; i++) {
        nvml_device handle = NULL;
        if (chosen[i] && nvml->api.device_at(i, &handle) == NVML_SUCCESS)
            add_gpu(nvml, i, handle);
    }
    if (nvml->gpu_count == 0)
        return wm_fail(err, WM_EIO, "none of %zu GPUs would say who it is", nvml->id_count);
    return WM_OK;
}

static int nvml_open(void *state, const struct wm_source_config *config,
                     struct wm_error *err)
{
    struct nvml *nvml = state;

    if (wm_gpu_choice_is_none(config->gpus))
        return wm_fail(err, WM_ENODEV, "GPUs were switched off with --gpu none");

    int status = start_nvml(nvml, config->nvml ? config->nvml : default_library, err);
    if (status < 0)
        return status;
    status = identify_gpus(nvml, err);
    if (status < 0)
        return status;

    bool *chosen = calloc(nvml->id_count, sizeof(*chosen));
    if (!chosen)
        return wm_fail(err, WM_ENOMEM, "out of memory for %zu GPUs", nvml->id_count);
    status = wm_gpu_choice(config->gpus, nvml->ids, nvml->id_count, chosen, err);
    if (status == WM_OK)
        status = add_chosen_gpus(nvml, chosen, err);
    free(chosen);
    return status;
}

static size_t nvml_channels(const void *state, const struct wm_channel **ret_channels)
{
    const struct nvml *nvml = state;

    *ret_channels = nvml->channels;
    return nvml->gpu_count * METRIC_COUNT;
}

static int nvml_read(void *state, struct wm_reading *readings, struct wm_error *err)
{
    struct nvml *nvml = state;
    (void)err; /* whatever fails here fails for one channel */

    nvml_processes_clear(&nvml->processes);
    for (size_t g = 0; g < nvml->gpu_count; g++) {
        struct gpu *gpu = &nvml->gpus[g];
        int64_t when_ns = wm_clock_monotonic_ns();

        for (size_t m = 0; m < METRIC_COUNT; m++) {
            size_t c = g * METRIC_COUNT + m;
            double value = 0;

            nvml->statuses[c] = metrics[m].query(&nvml->api, gpu, &value);
            readings[c] =
                (struct wm_reading) { when_ns, value, state_of(nvml->statuses[c]) };
        }

        int status = nvml_processes_read(&nvml->processes, &nvml->api.processes,
                                         gpu->handle, gpu->id, nvml->gpu_count - g - 1);
        if (status != NVML_SUCCESS)
            nvml_processes_add_unknown(&nvml->processes, gpu->id, state_of(status));
    }
    return WM_OK;
}

static const char *nvml_why(const void *state, size_t channel)
{
    const struct nvml *nvml = state;
    int status = nvml->statuses[channel];

    return status == NVML_SUCCESS ? NULL : text_of(nvml, status);
}

static const char *nvml_detail(const void *state)
{
    const struct nvml *nvml = state;

    return nvml->detail;
}

static size_t nvml_gpu_processes(const void *state,
                                 const struct wm_gpu_process **ret_processes)
{
    const struct nvml *nvml = state;

    *ret_processes = nvml->processes.found;
    return nvml->processes.count;
}

static size_t nvml_device_count(const void *state)
{
    const struct nvml *nvml = state;

    return nvml->id_count;
}

static void nvml_close(void *state)
{
    struct nvml *nvml = state;

    if (nvml->initialised)
        nvml->api.shutdown();
    if (nvml->library)
        dlclose(nvml->library);
    nvml_processes_release(&nvml->processes);
    free(nvml->statuses);
    free(nvml->channels);
    free(nvml->gpus);
    free(nvml->ids);
}

const struct wm_source_ops wm_source_nvml = {
    .name = "nvml",
    .summary = "NVIDIA GPUs: energy, power, utilization, memory, temperature, processes",
    .state_size = sizeof(struct nvml),
    .open = nvml_open,
    .channels = nvml_channels,
    .read = nvml_read,
    .why = nvml_why,
    .detail = nvml_detail,
    .gpu_processes = nvml_gpu_processes,
    .device_count = nvml_device_count,
    .close = nvml_close,
};
