/* SPDX-License-Identifier: Apache-2.0 */
/* source_nvml_library.c - finds, starts and stops NVML. */
#include "source/gpu/nvml/source_nvml_library.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base_error.h"
#include "base/base_file.h"
#include "base/base_text.h"

/* The versioned name: the bare .so comes with development packages only. */
static const char default_library[] = "libnvidia-ml.so.1";

/* A function of NVML that is looked for. A driver too old for an optional one
 * loses what it reports and nothing else. */
/* clang-format off */
static const struct {
    const char *name;
    size_t slot; /* offset of its pointer in struct nvml_api */
    bool required;
} symbols[] = {
#define SYMBOL(symbol, required, member, parameters) \
    { symbol, offsetof(struct nvml_api, member), required },
#define LIST(symbol, list) \
    { symbol "_v3", offsetof(struct nvml_api, lists[list].v3), false }, \
    { symbol "_v2", offsetof(struct nvml_api, lists[list].v2), false }, \
    { symbol, offsetof(struct nvml_api, lists[list].v1), false },
    NVML_CALLS(SYMBOL)
    SYMBOL("nvmlErrorString", true, error_string, )
    LIST("nvmlDeviceGetComputeRunningProcesses", NVML_LIST_COMPUTE)
    LIST("nvmlDeviceGetGraphicsRunningProcesses", NVML_LIST_GRAPHICS)
    LIST("nvmlDeviceGetMPSComputeRunningProcesses", NVML_LIST_MPS)
#undef LIST
#undef SYMBOL
};
/* clang-format on */

enum { SYMBOL_COUNT = sizeof(symbols) / sizeof(symbols[0]) };

const char *nvml_text(const struct nvml_library *library, int nvml_status)
{
    if (nvml_status == NVML_IMPOSSIBLE_VALUE)
        return "the driver gave an impossible value";
    if (nvml_status == NVML_NO_ANSWER)
        return "the driver did not answer";
    if (nvml_status == NVML_ASLEEP)
        return "it is asleep; wattmeter does not wake it";
    if (!library)
        return "NVML could not start";

    const char *text = library->api.error_string(nvml_status);
    return text ? text : "unknown NVML error";
}

void nvml_clean_text(char *text, size_t size)
{
    text[size - 1] = '\0';
    wm_text_clean(text);
}

/* The failures to start that people meet, and what they can do about them. */
static int fail_start(const struct nvml_library *library, int nvml_status,
                      struct wm_error *err)
{
    const char *text = nvml_text(library, nvml_status);

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

/* Adds NVML's number to an error. */
static int with_code(struct wm_error *err, int status, int nvml_status)
{
    if (err)
        err->code = nvml_code(nvml_status);
    return status;
}

static int bind_symbols(void *handle, struct nvml_api *api, struct wm_error *err)
{
    for (size_t i = 0; i < SYMBOL_COUNT; i++) {
        void *address = dlsym(handle, symbols[i].name);
        if (!address && symbols[i].required)
            return wm_fail(err, WM_ENODEV, "this NVML has no %s", symbols[i].name);

        /* ISO C has no cast from an object pointer to a function pointer. */
        memcpy((char *)api + symbols[i].slot, &address, sizeof(address));
    }
    return WM_OK;
}

static void ask_version(int (*call)(char *text, unsigned size), char *version)
{
    if (!call || call(version, NVML_VERSION_SIZE) != NVML_SUCCESS)
        version[0] = '\0';
    nvml_clean_text(version, NVML_VERSION_SIZE);
}

static void describe(struct nvml_library *library, const char *name)
{
    struct link_map *map = NULL;

    ask_version(library->api.driver_version, library->driver);
    ask_version(library->api.nvml_version, library->version);
    if (dlinfo(library->handle, RTLD_DI_LINKMAP, &map) == 0 && map->l_name[0])
        name = map->l_name;
    snprintf(library->detail, sizeof(library->detail), "driver %s, NVML %s, %s",
             library->driver[0] ? library->driver : "unknown",
             library->version[0] ? library->version : "unknown", name);
}

/* Whether a driver of NVIDIA may be here. The loader's search for a library that is not
 * there opens some 50 files. On a PC, NVML works by the first of these files, WSL's by the
 * second; where neither is there, the third or the library itself may make the first.
 * Whoever sets a path of the loader may have the library anywhere. */
static bool may_have_driver(void)
{
#ifdef __x86_64__
    static const char *const files[] = {
        "/dev/nvidiactl",
        "/dev/dxg",
        "/usr/bin/nvidia-modprobe",
        "/proc/driver/nvidia/version",
        "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
        "/usr/lib64/libnvidia-ml.so.1",
        "/usr/lib/libnvidia-ml.so.1",
        "/run/opengl-driver/lib/libnvidia-ml.so.1",
    };

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        if (access(files[i], F_OK) == 0)
            return true;
    }
    return wm_env("LD_LIBRARY_PATH", NULL) || wm_env("LD_PRELOAD", NULL);
#else
    return true;
#endif
}

static int load(const char *name, void **ret_handle, struct wm_error *err)
{
    if (!name) {
        name = default_library;
        if (!may_have_driver())
            return with_code(
                err,
                wm_fail(err, WM_ENODEV, "no NVIDIA driver: there is no /dev/nvidiactl"),
                NVML_ERROR_LIBRARY_NOT_FOUND);
    }
    *ret_handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (*ret_handle)
        return WM_OK;
    return with_code(err, wm_fail_library(err, "no NVIDIA driver", name),
                     NVML_ERROR_LIBRARY_NOT_FOUND);
}

int nvml_library_look(const char *name, struct wm_error *err)
{
    void *handle;
    int status = load(name, &handle, err);

    if (status == WM_OK)
        dlclose(handle);
    return status;
}

int nvml_library_open(struct nvml_library *library, const char *name, struct wm_error *err)
{
    int status = load(name, &library->handle, err);

    if (status < 0)
        return status;
    status = bind_symbols(library->handle, &library->api, err);
    if (status < 0)
        return with_code(err, status, NVML_ERROR_FUNCTION_NOT_FOUND);

    int nvml_status = library->api.init();
    if (nvml_status != NVML_SUCCESS)
        return with_code(err, fail_start(library, nvml_status, err), nvml_status);
    library->initialised = true;
    describe(library, name ? name : default_library);
    return WM_OK;
}

int nvml_library_count(const struct nvml_library *library, unsigned *ret_count,
                       struct wm_error *err)
{
    unsigned count = 0;
    int status = library->api.device_count(&count);

    if (status != NVML_SUCCESS) {
        int failure = status == NVML_ERROR_NO_PERMISSION ? WM_EACCES : WM_EIO;
        wm_fail(err, failure, "NVML could not count the GPUs: %s",
                nvml_text(library, status));
        return with_code(err, failure, status);
    }
    if (count == 0)
        return wm_fail(err, WM_ENODEV, "the NVIDIA driver is loaded but sees no GPU");
    if (count > NVML_GPUS_MAX)
        return wm_fail(err, WM_EFORMAT, "NVML claims to see %u GPUs", count);
    *ret_count = count;
    return WM_OK;
}

/* What lies outside is no temperature of a GPU, but a mistake. */
enum { CELSIUS_LEAST = -273, CELSIUS_MOST = 1000 };

int nvml_temperature(const struct nvml_api *api, nvml_device device, double *ret_celsius)
{
    struct nvml_temperature_v1 newer = { NVML_TEMPERATURE_V1, NVML_TEMPERATURE_GPU, 0 };
    unsigned celsius = 0;

    int status = NVML_ASK(api, temperature, device, NVML_TEMPERATURE_GPU, &celsius);
    if (status == NVML_SUCCESS && celsius == UINT_MAX)
        return NVML_IMPOSSIBLE_VALUE; /* "not known", and not -1 */
    if (nvml_lacks_call(status)) {
        status = NVML_ASK(api, temperature_v, device, &newer);
        celsius = (unsigned)newer.celsius;
    }
    if (status != NVML_SUCCESS)
        return status;

    /* The older call has no way to say "below zero" but this one. */
    int number = (int)celsius;
    if (number < CELSIUS_LEAST || number > CELSIUS_MOST)
        return NVML_IMPOSSIBLE_VALUE;
    *ret_celsius = number;
    return NVML_SUCCESS;
}

int nvml_field_number(const struct nvml_field_value *field, double *ret_value)
{
    switch (field->type) {
    case NVML_VALUE_DOUBLE:
        *ret_value = field->value.real;
        return NVML_SUCCESS;
    case NVML_VALUE_UNSIGNED_INT:
        *ret_value = field->value.unsigned_int;
        return NVML_SUCCESS;
    case NVML_VALUE_UNSIGNED_LONG:
        *ret_value = (double)field->value.unsigned_long;
        return NVML_SUCCESS;
    case NVML_VALUE_UNSIGNED_LONG_LONG:
        *ret_value = (double)field->value.unsigned_long_long;
        return NVML_SUCCESS;
    case NVML_VALUE_SIGNED_LONG_LONG:
        *ret_value = (double)field->value.signed_long_long;
        return NVML_SUCCESS;
    case NVML_VALUE_SIGNED_INT:
        *ret_value = field->value.signed_int;
        return NVML_SUCCESS;
    case NVML_VALUE_UNSIGNED_SHORT:
        *ret_value = field->value.unsigned_short;
        return NVML_SUCCESS;
    default:
        return NVML_IMPOSSIBLE_VALUE;
    }
}

void nvml_library_close(struct nvml_library *library)
{
    if (library->initialised)
        library->api.shutdown();
    if (library->handle)
        dlclose(library->handle);
    *library = (struct nvml_library) { 0 };
}
