/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_gpu_nvml.c - what NVIDIA GPUs say of themselves through NVML, the library behind
 * nvidia-smi. Here: which GPUs there are, and how one is reached that was not, or
 * was lost. What they are asked is in source_nvml_values.c, source_gpu_nvml_texts.c,
 * source_gpu_nvml_mig.c and source_gpu_nvml_processes.c.
 */
#include "source/gpu/nvml/source_gpu_nvml.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "source/gpu/nvml/source_nvml_bus.h"

struct inventory {
    struct nvml_bus bus;  /* as the kernel has the GPUs */
    pthread_mutex_t lock; /* of starting NVML, which waits until a GPU is awake */
    struct nvml_library library;
    char *name, *procfs; /* the library's name; NULL: the loader's */
    struct gpu_nvml_gpu *gpus;
    size_t count;
};

bool gpu_nvml_wants(struct gpu_nvml_gpu *gpu, enum wm_gpu_field field)
{
    const struct wm_gpu_field_info *info = wm_gpu_field_info(field);

    return info->asked_with & (info->fixed ? gpu->fixed : gpu->groups);
}

void gpu_nvml_note(struct gpu_nvml_gpu *gpu, int status)
{
    if (status == NVML_ERROR_GPU_IS_LOST)
        gpu->is_reached = false;
}

static void tell_missing(struct gpu_nvml_gpu *gpu, enum wm_gpu_field field, int status)
{
    gpu_nvml_note(gpu, status);
    wm_gpu_set_missing(gpu->sheet, field, nvml_state(status),
                       nvml_text(gpu->library, status));
    wm_gpu_set_code(gpu->sheet, field, nvml_code(status));
}

void gpu_nvml_tell(struct gpu_nvml_gpu *gpu, enum wm_gpu_field field,
                   const struct nvml_answer *value)
{
    if (value->status == NVML_SUCCESS)
        wm_gpu_set_number(gpu->sheet, field, value->number);
    else
        tell_missing(gpu, field, value->status);
}

void gpu_nvml_tell_text(struct gpu_nvml_gpu *gpu, enum wm_gpu_field field, int status,
                        const char *text)
{
    if (status == NVML_SUCCESS)
        wm_gpu_set_text(gpu->sheet, field, text);
    else
        tell_missing(gpu, field, status);
}

struct wm_gpu_value gpu_nvml_number(struct gpu_nvml_gpu *gpu,
                                    const struct nvml_answer *value)
{
    gpu_nvml_note(gpu, value->status);
    return value->status == NVML_SUCCESS
               ? wm_gpu_number(value->number)
               : wm_gpu_missing(nvml_state(value->status),
                                nvml_text(gpu->library, value->status));
}

struct wm_gpu_value gpu_nvml_instance(int instance)
{
    return instance >= 0 ? wm_gpu_number(instance) : wm_gpu_words(NULL);
}

/* Once a GPU that was asleep is awake. */
static int start(struct inventory *inventory, struct wm_error *err)
{
    int status = WM_OK;

    pthread_mutex_lock(&inventory->lock);
    if (!inventory->library.initialised) {
        nvml_library_close(&inventory->library);
        status = nvml_library_open(&inventory->library, inventory->name, err);
    }
    pthread_mutex_unlock(&inventory->lock);
    return status;
}

static bool is_asleep(const struct inventory *inventory, const struct gpu_nvml_gpu *gpu)
{
    return nvml_bus_is_asleep(&inventory->bus, gpu->index, inventory->count);
}

static int reach(struct inventory *inventory, struct gpu_nvml_gpu *gpu)
{
    if (start(inventory, NULL) < 0)
        return NVML_ERROR_UNINITIALIZED;
    if (gpu->is_reached)
        return NVML_SUCCESS;

    const struct nvml_api *api = gpu->values.api;
    int status = gpu->id[0] ? nvml_find(api, gpu->id, &gpu->values.device)
                            : api->device_at(gpu->index, &gpu->values.device);
    if (status != NVML_SUCCESS)
        return status;
    gpu->is_reached = true;
    nvml_processes_restart(&gpu->processes);
    gpu->values.power = (struct nvml_power) { 0 };
    return NVML_SUCCESS;
}

/* NVML is not started while each of them is asleep. */
static int find_gpus(struct inventory *inventory, const struct wm_source_config *config,
                     unsigned *ret_count, struct wm_error *err)
{
    int status = nvml_library_look(config->nvml, err);

    if (status < 0)
        return status;
    if (nvml_bus_open(config->sysfs, &inventory->bus) < 0 ||
        (config->nvml && !(inventory->name = strdup(config->nvml))))
        return wm_fail_memory(err, "NVML");
    *ret_count = (unsigned)inventory->bus.count;
    if (nvml_bus_are_all_asleep(&inventory->bus))
        return WM_OK;
    status = start(inventory, err);
    return status < 0 ? status : nvml_library_count(&inventory->library, ret_count, err);
}

static int inventory_open(void *state, const struct wm_source_config *config,
                          struct wm_error *err)
{
    struct inventory *inventory = state;
    unsigned count = 0;

    pthread_mutex_init(&inventory->lock, NULL);
    int status = find_gpus(inventory, config, &count, err);
    if (status < 0)
        return status;
    inventory->procfs = strdup(config->procfs ? config->procfs : "/proc");
    inventory->gpus = calloc(count, sizeof(*inventory->gpus));
    if (!inventory->procfs || !inventory->gpus)
        return wm_fail(err, WM_ENOMEM, "out of memory for %u GPUs", count);

    for (unsigned i = 0; i < count; i++) {
        struct gpu_nvml_gpu *gpu = &inventory->gpus[inventory->count++];

        gpu->library = &inventory->library;
        gpu->values.api = &inventory->library.api;
        gpu->procfs = inventory->procfs;
        gpu->index = i;
        if (nvml_processes_init(&gpu->processes) != NVML_SUCCESS)
            return wm_fail(err, WM_ENOMEM, "out of memory for %u GPUs", count);
        /* Each refresh asks who it is until it has said so: here, one that hangs
         * would hide the others. */
    }
    return WM_OK;
}

static size_t inventory_count(const void *state)
{
    const struct inventory *inventory = state;

    return inventory->count;
}

static const char *inventory_detail(const void *state)
{
    const struct inventory *inventory = state;

    return inventory->library.initialised
               ? inventory->library.detail
               : "NVML is not started, as that would wake the GPUs";
}

/* Whether NVML reports it, and only the GPU itself knows it. The rest is told by
 * gpu_nvml_tell_machine(), by the core, or not at all. */
static bool is_asked_of_gpu(enum wm_gpu_field field)
{
    switch (field) {
    case WM_GPU_INDEX:
    case WM_GPU_LABEL:
    case WM_GPU_VENDOR:
    case WM_GPU_SOURCE:
    case WM_GPU_KERNEL_DRIVER:
    case WM_GPU_DRIVER_VERSION:
    case WM_GPU_NVML_VERSION:
    case WM_GPU_CUDA_VERSION:
    case WM_GPU_MEMORY_SHARED_TOTAL:
    case WM_GPU_MEMORY_SHARED_USED:
    case WM_GPU_TEMPERATURE_HOTSPOT:
        return false;
    default:
        return true;
    }
}

static void tell_unreached(struct gpu_nvml_gpu *gpu, int status)
{
    for (enum wm_gpu_field field = 0; field < WM_GPU_FIELDS; field++) {
        if (is_asked_of_gpu(field) && gpu_nvml_wants(gpu, field))
            tell_missing(gpu, field, status);
    }
    if (gpu->groups & WM_GPU_PROCESSES) {
        wm_gpu_begin_list(gpu->sheet, WM_GPU_PROCESS_LIST);
        wm_gpu_set_list_code(gpu->sheet, WM_GPU_PROCESS_LIST, nvml_code(status));
        wm_gpu_end_list(gpu->sheet, WM_GPU_PROCESS_LIST, nvml_state(status),
                        nvml_text(gpu->library, status));
    }
}

/* Its identity is its address until it is awake. */
static void tell_asleep(struct gpu_nvml_gpu *gpu, const char *address)
{
    gpu->is_reached = false;
    gpu_nvml_tell_vendor(gpu);
    tell_unreached(gpu, NVML_ASLEEP);
    if (gpu_nvml_wants(gpu, WM_GPU_UUID))
        wm_gpu_set_text(gpu->sheet, WM_GPU_UUID, address);
    if (gpu_nvml_wants(gpu, WM_GPU_PCI_BUS_ID))
        wm_gpu_set_text(gpu->sheet, WM_GPU_PCI_BUS_ID, address);
}

void gpu_nvml_tell_numbers(struct gpu_nvml_gpu *gpu)
{
    nvml_values_begin(&gpu->values);
    for (enum wm_gpu_field field = 0; field < WM_GPU_FIELDS; field++) {
        if (nvml_has_query(field) && gpu_nvml_wants(gpu, field) &&
            wm_gpu_field_info(field)->type != WM_GPU_TEXT)
            gpu_nvml_tell(gpu, field, nvml_ask(&gpu->values, field));
    }
}

static void tell_all(struct gpu_nvml_gpu *gpu)
{
    gpu_nvml_tell_identity(gpu);
    if (gpu->groups & (WM_GPU_GENERAL | WM_GPU_MEMORY | WM_GPU_PROCESSES))
        gpu_nvml_find_migs(gpu);
    gpu_nvml_tell_numbers(gpu);
    gpu_nvml_tell_texts(gpu);
    if (gpu->groups & (WM_GPU_GENERAL | WM_GPU_MEMORY))
        gpu_nvml_tell_migs(gpu);
    if (gpu->groups & WM_GPU_PROCESSES)
        gpu_nvml_tell_processes(gpu);
}

static void inventory_refresh(void *state, size_t index, unsigned groups, bool all,
                              struct wm_gpu_sheet *sheet)
{
    struct inventory *inventory = state;
    struct gpu_nvml_gpu *gpu = &inventory->gpus[index];

    gpu->sheet = sheet;
    gpu->groups = groups;
    gpu->fixed = all ? groups : groups & ~gpu->known;
    if (is_asleep(inventory, gpu)) {
        tell_asleep(gpu, inventory->bus.slots[index].address);
        return;
    }
    int status = reach(inventory, gpu);
    gpu_nvml_tell_machine(gpu);
    if (status != NVML_SUCCESS) {
        tell_unreached(gpu, status);
        return;
    }
    tell_all(gpu);
    if (gpu->is_reached)
        gpu->known |= groups;
}

/* The kernel's part of the driver asks for this capability, whoever the user is. */
static const char needs_rights[] = "setting this takes the capability CAP_SYS_ADMIN: run "
                                   "it with sudo, in a container with "
                                   "--cap-add SYS_ADMIN";

static int fail_setting(const struct gpu_nvml_gpu *gpu, int status, struct wm_error *err)
{
    switch (status) {
    case NVML_ERROR_NO_PERMISSION:
        return wm_fail(err, WM_EACCES, "%s", needs_rights);
    case NVML_ERROR_NOT_SUPPORTED:
    case NVML_ERROR_FUNCTION_NOT_FOUND:
        return wm_fail(err, WM_ENODEV, "this GPU or its driver cannot have it set");
    case NVML_ERROR_INVALID_ARGUMENT:
        return wm_fail(err, WM_EINVAL, "the driver refuses this value");
    default:
        return wm_fail(err, WM_EIO, "the driver refuses: %s",
                       nvml_text(gpu->library, status));
    }
}

/* The clocks still fall below the limit where the GPU has nothing to do. */
static int set_clock(const struct gpu_nvml_gpu *gpu, double hertz)
{
    if (isnan(hertz))
        return NVML_ASK(gpu->values.api, unlock_clocks, gpu->values.device);
    return NVML_ASK(gpu->values.api, lock_clocks, gpu->values.device, 0,
                    (unsigned)lround(hertz / 1e6));
}

static int inventory_set(void *state, size_t index, enum wm_gpu_field field, double value,
                         struct wm_error *err)
{
    struct inventory *inventory = state;
    struct gpu_nvml_gpu *gpu = &inventory->gpus[index];
    int status = reach(inventory, gpu); /* which wakes it */

    if (status == NVML_SUCCESS && field == WM_GPU_POWER_LIMIT)
        status = NVML_ASK(gpu->values.api, set_power_limit_mw, gpu->values.device,
                          (unsigned)lround(value * 1e3));
    else if (status == NVML_SUCCESS)
        status = set_clock(gpu, value);
    gpu_nvml_note(gpu, status);
    return status == NVML_SUCCESS ? WM_OK : fail_setting(gpu, status, err);
}

/* An NVML that was started before the driver was unloaded does not see the new one;
 * it says so. */
static bool inventory_changed(void *state)
{
    const struct inventory *inventory = state;
    unsigned count = 0;

    if (!inventory->library.initialised || nvml_bus_are_all_asleep(&inventory->bus))
        return false;
    int status = inventory->library.api.device_count(&count);
    if (status == NVML_SUCCESS)
        return count != inventory->count;
    return status == NVML_ERROR_UNINITIALIZED || status == NVML_ERROR_DRIVER_NOT_LOADED;
}

static void inventory_close(void *state)
{
    struct inventory *inventory = state;

    for (size_t i = 0; i < inventory->count; i++)
        nvml_processes_release(&inventory->gpus[i].processes);
    free(inventory->gpus);
    free(inventory->procfs);
    free(inventory->name);
    nvml_bus_close(&inventory->bus);
    nvml_library_close(&inventory->library);
}

const struct wm_gpu_ops wm_gpu_nvml = {
    .name = "nvml",
    .state_size = sizeof(struct inventory),
    .open = inventory_open,
    .count = inventory_count,
    .detail = inventory_detail,
    .refresh = inventory_refresh,
    .set = inventory_set,
    .changed = inventory_changed,
    .close = inventory_close,
};
