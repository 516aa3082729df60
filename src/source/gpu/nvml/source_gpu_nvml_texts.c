/* SPDX-License-Identifier: Apache-2.0 */
/* source_gpu_nvml_texts.c - what NVML reports of a GPU in words, and the words for what it
 * tells in numbers that mean none; in nvidia-smi's words where it has some. */
#include "source/gpu/nvml/source_gpu_nvml.h"

#include <stdio.h>
#include <string.h>

#include "base/base_text.h"
#include "source/gpu/source_gpu_pci.h"

/* Room for each text that NVML gives, and for those made here. */
enum { TEXT_SIZE = 256 };

int gpu_nvml_ask_text(int (*call)(nvml_device device, char *text, unsigned size),
                      nvml_device device, char *text, size_t size)
{
    text[0] = '\0';
    int status = call ? call(device, text, (unsigned)size) : NVML_ERROR_FUNCTION_NOT_FOUND;
    if (status != NVML_SUCCESS)
        text[0] = '\0';
    text[size - 1] = '\0';
    return status;
}

static void tell_text(struct gpu_nvml_gpu *gpu, enum wm_gpu_field field,
                      int (*call)(nvml_device device, char *text, unsigned size))
{
    char text[TEXT_SIZE];

    if (!gpu_nvml_wants(gpu, field))
        return;
    int status = gpu_nvml_ask_text(call, gpu->values.device, text, sizeof(text));
    gpu_nvml_tell_text(gpu, field, status, text);
}

/* A number that stands for a word, and has a call of its own. */
struct words {
    const char *const *words;
    size_t count;
    const char *noun; /* "architecture 12" is what has no word; NULL: that cannot be */
};

#define WORDS(array) array, sizeof(array) / sizeof((array)[0])

static const char *const enabled_words[] = {
    [NVML_DISABLED] = "Disabled",
    [NVML_ENABLED] = "Enabled",
};

static const char *const compute_mode_words[] = {
    [NVML_COMPUTE_DEFAULT] = "Default",
    [NVML_COMPUTE_EXCLUSIVE_THREAD] = "Exclusive_Thread",
    [NVML_COMPUTE_PROHIBITED] = "Prohibited",
    [NVML_COMPUTE_EXCLUSIVE_PROCESS] = "Exclusive_Process",
};

static const char *const architecture_words[] = {
    [NVML_ARCHITECTURE_KEPLER] = "Kepler",
    [NVML_ARCHITECTURE_MAXWELL] = "Maxwell",
    [NVML_ARCHITECTURE_PASCAL] = "Pascal",
    [NVML_ARCHITECTURE_VOLTA] = "Volta",
    [NVML_ARCHITECTURE_TURING] = "Turing",
    [NVML_ARCHITECTURE_AMPERE] = "Ampere",
    [NVML_ARCHITECTURE_ADA] = "Ada",
    [NVML_ARCHITECTURE_HOPPER] = "Hopper",
    [NVML_ARCHITECTURE_BLACKWELL] = "Blackwell",
};

static const struct words enabled = { WORDS(enabled_words), NULL };
static const struct words compute_modes = { WORDS(compute_mode_words), "mode" };
static const struct words architectures = { WORDS(architecture_words), "architecture" };

static void tell_word(struct gpu_nvml_gpu *gpu, enum wm_gpu_field field, int status,
                      unsigned value, const struct words *words)
{
    char text[TEXT_SIZE] = "";

    if (value < words->count && words->words[value])
        snprintf(text, sizeof(text), "%s", words->words[value]);
    else if (words->noun)
        snprintf(text, sizeof(text), "%s %u", words->noun, value);
    else if (status == NVML_SUCCESS)
        status = NVML_IMPOSSIBLE_VALUE;
    gpu_nvml_tell_text(gpu, field, status, text);
}

static const struct word {
    enum wm_gpu_field field;
    const struct words *words;
} words[] = {
    { WM_GPU_ARCHITECTURE, &architectures },
    { WM_GPU_COMPUTE_MODE, &compute_modes },
    { WM_GPU_PERSISTENCE, &enabled },
};

static void tell_asked_word(struct gpu_nvml_gpu *gpu, const struct word *word)
{
    const struct nvml_answer *value = nvml_ask(&gpu->values, word->field);

    tell_word(gpu, word->field, value->status, (unsigned)value->number, word->words);
}

static void tell_name(struct gpu_nvml_gpu *gpu)
{
    char name[TEXT_SIZE];
    int status =
        gpu_nvml_ask_text(gpu->values.api->name, gpu->values.device, name, sizeof(name));

    gpu_nvml_tell_text(gpu, WM_GPU_NAME, status, name);
    const struct nvml_answer simulated = { status, strstr(name, "SIMULATED") != NULL };
    gpu_nvml_tell(gpu, WM_GPU_SIMULATED, &simulated);
}

static void tell_compute_capability(struct gpu_nvml_gpu *gpu)
{
    char text[TEXT_SIZE];
    int major = 0, minor = 0;

    int status =
        NVML_ASK(gpu->values.api, compute_capability, gpu->values.device, &major, &minor);
    if (status == NVML_SUCCESS && (major < 1 || major > 99 || minor < 0 || minor > 99))
        status = NVML_IMPOSSIBLE_VALUE;
    snprintf(text, sizeof(text), "%d.%d", major, minor);
    gpu_nvml_tell_text(gpu, WM_GPU_COMPUTE_CAPABILITY, status, text);
}

/* gpu_nvml_find_migs() has asked. */
static void tell_mig_mode(struct gpu_nvml_gpu *gpu)
{

    tell_word(gpu, WM_GPU_MIG_MODE, gpu->mig_status, gpu->mig_mode, &enabled);
    tell_word(gpu, WM_GPU_MIG_MODE_PENDING, gpu->mig_status, gpu->mig_mode_pending,
              &enabled);
}

static void tell_ecc_mode(struct gpu_nvml_gpu *gpu)
{
    unsigned current = 0, pending = 0;

    int status =
        NVML_ASK(gpu->values.api, ecc_mode, gpu->values.device, &current, &pending);
    tell_word(gpu, WM_GPU_ECC_MODE, status, current, &enabled);
    tell_word(gpu, WM_GPU_ECC_MODE_PENDING, status, pending, &enabled);
}

static void tell_performance(struct gpu_nvml_gpu *gpu)
{
    const struct nvml_answer *state = nvml_ask(&gpu->values, WM_GPU_PERFORMANCE);
    int status = state->status;
    char text[TEXT_SIZE];

    if (status == NVML_SUCCESS && state->number == NVML_PSTATE_UNKNOWN)
        status = NVML_ERROR_NOT_SUPPORTED;
    if (status == NVML_SUCCESS && state->number > NVML_PSTATE_LAST)
        status = NVML_IMPOSSIBLE_VALUE;
    snprintf(text, sizeof(text), "P%.0f", state->number);
    gpu_nvml_tell_text(gpu, WM_GPU_PERFORMANCE, status, text);
}

static int ask_pci(const struct nvml_api *api, nvml_device device, struct nvml_pci *ret_pci)
{
    struct nvml_pci pci = { 0 };
    struct nvml_pci_v2 older = { 0 };

    int status = NVML_ASK(api, pci_v3, device, &pci);
    if (nvml_lacks_call(status)) {
        status = NVML_ASK(api, pci_v2, device, &older);
        memcpy(pci.bus_id, older.bus_id, sizeof(older.bus_id));
        pci.domain = older.domain;
        pci.bus = older.bus;
        pci.device = older.device;
        pci.device_id = older.device_id;
        pci.sub_system_id = older.sub_system_id;
    }
    nvml_clean_text(pci.bus_id, sizeof(pci.bus_id));
    if (status == NVML_SUCCESS && (pci.bus > 0xFF || pci.device > 0x1F))
        status = NVML_IMPOSSIBLE_VALUE;
    *ret_pci = pci;
    return status;
}

/* Drivers came to write domains of eight digits; everybody else, the kernel among
 * them, writes four as long as they do. */
static const char *short_bus_id(const char *bus_id)
{
    const char *colon = strchr(bus_id, ':');
    bool is_long = colon == bus_id + 8 && strncmp(bus_id, "0000", 4) == 0;

    return is_long ? bus_id + 4 : bus_id;
}

static void tell_hexadecimal(struct gpu_nvml_gpu *gpu, enum wm_gpu_field field, int status,
                             int digits, unsigned value)
{
    char text[TEXT_SIZE];

    snprintf(text, sizeof(text), "%0*X", digits, value);
    gpu_nvml_tell_text(gpu, field, status, text);
}

static void tell_pci(struct gpu_nvml_gpu *gpu)
{
    struct nvml_pci pci;
    int status = ask_pci(gpu->values.api, gpu->values.device, &pci);

    gpu_nvml_tell_text(gpu, WM_GPU_PCI_BUS_ID, status, short_bus_id(pci.bus_id));
    tell_hexadecimal(gpu, WM_GPU_PCI_BUS, status, 2, pci.bus);
    tell_hexadecimal(gpu, WM_GPU_PCI_DEVICE, status, 2, pci.device);
    tell_hexadecimal(gpu, WM_GPU_PCI_DEVICE_ID, status, 8, pci.device_id);
    tell_hexadecimal(gpu, WM_GPU_PCI_SUB_SYSTEM_ID, status, 8, pci.sub_system_id);
}

static const struct {
    unsigned long long bit;
    const char *word;
} clock_reasons[] = {
    { NVML_CLOCK_GPU_IDLE, "gpu_idle" },
    { NVML_CLOCK_APPLICATIONS_SETTING, "applications_clocks_setting" },
    { NVML_CLOCK_SW_POWER_CAP, "sw_power_cap" },
    { NVML_CLOCK_HW_SLOWDOWN, "hw_slowdown" },
    { NVML_CLOCK_SYNC_BOOST, "sync_boost" },
    { NVML_CLOCK_SW_THERMAL_SLOWDOWN, "sw_thermal_slowdown" },
    { NVML_CLOCK_HW_THERMAL_SLOWDOWN, "hw_thermal_slowdown" },
    { NVML_CLOCK_HW_POWER_BRAKE, "hw_power_brake_slowdown" },
    { NVML_CLOCK_DISPLAY_SETTING, "display_clock_setting" },
    { NVML_CLOCK_BOARD_LIMIT, "board_limit" },
    { NVML_CLOCK_RELIABILITY, "reliability" },
};

/* All of them fit into TEXT_SIZE. */
static void write_reasons(unsigned long long reasons, char *text)
{
    text[0] = '\0';
    for (size_t i = 0; i < sizeof(clock_reasons) / sizeof(clock_reasons[0]); i++) {
        if (!(reasons & clock_reasons[i].bit))
            continue;
        wm_text_list(text, TEXT_SIZE, ", ", "%s", clock_reasons[i].word);
        reasons &= ~clock_reasons[i].bit;
    }
    if (reasons)
        wm_text_list(text, TEXT_SIZE, ", ", "0x%llx", reasons);
    else if (!text[0])
        snprintf(text, TEXT_SIZE, "none");
}

static void tell_throttle(struct gpu_nvml_gpu *gpu)
{
    const struct nvml_answer *reasons = nvml_ask(&gpu->values, WM_GPU_THROTTLE);
    char text[TEXT_SIZE];

    write_reasons(gpu->values.reasons, text);
    if (reasons->status == NVML_SUCCESS)
        wm_gpu_set_throttle(gpu->sheet, text, (unsigned)reasons->number);
    else
        gpu_nvml_tell(gpu, WM_GPU_THROTTLE, reasons);
}

/* The scope of the power that NVML's fields report. */
static void tell_power_scope(struct gpu_nvml_gpu *gpu)
{
    const struct nvml_power_value *values = gpu->values.power.values;
    const struct nvml_answer *average = nvml_ask(&gpu->values, WM_GPU_POWER_AVERAGE);
    bool is_of_gpu = values[NVML_POWER_INSTANT].way == NVML_POWER_BY_GPU_FIELD ||
                     values[NVML_POWER_AVERAGE].way == NVML_POWER_BY_GPU_FIELD;

    gpu_nvml_tell_text(gpu, WM_GPU_POWER_SCOPE,
                       average->status == NVML_SUCCESS
                           ? NVML_SUCCESS
                           : values[NVML_POWER_INSTANT].field_status,
                       is_of_gpu ? "gpu" : "module");
}

/* The call goes away in drivers to come; a GPU with a limit manages its power. */
static void tell_power_management(struct gpu_nvml_gpu *gpu)
{
    const struct nvml_api *api = gpu->values.api;
    unsigned value = NVML_DISABLED;

    int status = NVML_ASK(api, power_management, gpu->values.device, &value);
    if (nvml_lacks_call(status)) {
        status = NVML_ASK(api, power_limit_mw, gpu->values.device, &value);
        value = NVML_ENABLED;
    }
    if (status == NVML_SUCCESS && value > NVML_ENABLED)
        status = NVML_IMPOSSIBLE_VALUE;
    if (status == NVML_SUCCESS && value == NVML_DISABLED)
        wm_gpu_set_missing(gpu->sheet, WM_GPU_POWER_MANAGEMENT, WM_READING_UNSUPPORTED,
                           "power management is switched off");
    else
        gpu_nvml_tell_text(gpu, WM_GPU_POWER_MANAGEMENT, status, "Supported");
}

/* Calls that tell several texts, or one that is made of what they tell; each is made
 * where the first is wanted. */
static const struct {
    enum wm_gpu_field first;
    void (*tell)(struct gpu_nvml_gpu *gpu);
} groups[] = {
    { WM_GPU_COMPUTE_CAPABILITY, tell_compute_capability },
    { WM_GPU_MIG_MODE, tell_mig_mode },
    { WM_GPU_PERFORMANCE, tell_performance },
    { WM_GPU_PCI_BUS_ID, tell_pci },
    { WM_GPU_THROTTLE, tell_throttle },
    { WM_GPU_POWER_SCOPE, tell_power_scope },
    { WM_GPU_POWER_MANAGEMENT, tell_power_management },
    { WM_GPU_ECC_MODE, tell_ecc_mode },
};

int nvml_identity(const struct nvml_api *api, nvml_device device, char *text, size_t size)
{
    struct nvml_pci pci;
    int status = gpu_nvml_ask_text(api->uuid, device, text, size);

    if (status == NVML_SUCCESS && !text[0])
        status = NVML_IMPOSSIBLE_VALUE;
    if ((status == NVML_IMPOSSIBLE_VALUE || nvml_state(status) == WM_READING_UNSUPPORTED) &&
        ask_pci(api, device, &pci) == NVML_SUCCESS && pci.bus_id[0]) {
        status = NVML_SUCCESS;
        snprintf(text, size, "%s", short_bus_id(pci.bus_id));
    }
    nvml_clean_text(text, size);
    return status;
}

static bool has_id(const struct nvml_api *api, nvml_device handle, const char *id)
{
    char text[NVML_UUID_SIZE] = "";

    return nvml_identity(api, handle, text, sizeof(text)) == NVML_SUCCESS &&
           strcmp(text, id) == 0;
}

int nvml_find(const struct nvml_api *api, const char *id, nvml_device *ret_handle)
{
    unsigned count = 0;

    bool is_address = wm_pci_rank(id) != UINT64_MAX;
    int status = NVML_ERROR_FUNCTION_NOT_FOUND;

    if (is_address)
        status = NVML_ASK(api, device_by_address, id, ret_handle);
    else
        status = NVML_ASK(api, device_by_uuid, id, ret_handle);
    if (!nvml_lacks_call(status))
        return status;

    /* Its number may be another by now. */
    status = api->device_count(&count);
    if (status != NVML_SUCCESS)
        return status;
    for (unsigned i = 0; i < count && i < NVML_GPUS_MAX; i++) {
        nvml_device handle = NULL;
        if (api->device_at(i, &handle) == NVML_SUCCESS && has_id(api, handle, id)) {
            *ret_handle = handle;
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

static void tell_uuid(struct gpu_nvml_gpu *gpu)
{
    int status = NVML_SUCCESS;

    if (!gpu->id[0])
        status =
            nvml_identity(gpu->values.api, gpu->values.device, gpu->id, sizeof(gpu->id));
    gpu_nvml_tell_text(gpu, WM_GPU_UUID, status, gpu->id);
    if (status != NVML_SUCCESS)
        gpu->id[0] = '\0';
}

void gpu_nvml_tell_identity(struct gpu_nvml_gpu *gpu)
{
    if (gpu_nvml_wants(gpu, WM_GPU_NAME))
        tell_name(gpu);
    tell_text(gpu, WM_GPU_SERIAL, gpu->values.api->serial);
    if (gpu_nvml_wants(gpu, WM_GPU_UUID))
        tell_uuid(gpu);
    tell_text(gpu, WM_GPU_BIOS, gpu->values.api->vbios_version);
}

void gpu_nvml_tell_texts(struct gpu_nvml_gpu *gpu)
{
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (gpu_nvml_wants(gpu, words[i].field))
            tell_asked_word(gpu, &words[i]);
    }
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        if (gpu_nvml_wants(gpu, groups[i].first))
            groups[i].tell(gpu);
    }
}

static void tell_version(struct gpu_nvml_gpu *gpu, enum wm_gpu_field field,
                         int (*call)(char *text, unsigned size))
{
    char text[TEXT_SIZE] = "";
    int status = call ? call(text, sizeof(text)) : NVML_ERROR_FUNCTION_NOT_FOUND;

    nvml_clean_text(text, sizeof(text));
    gpu_nvml_tell_text(gpu, field, status, text);
}

/* 12040 is 12.4. The older call reports a version that it knows where there is no CUDA. */
static void tell_cuda_version(struct gpu_nvml_gpu *gpu)
{
    const struct nvml_api *api = gpu->values.api;
    char text[TEXT_SIZE];
    int version = 0;

    int status = NVML_ASK(api, cuda_version_v2, &version);
    if (nvml_lacks_call(status))
        status = NVML_ASK(api, cuda_version_v1, &version);
    if (status == NVML_SUCCESS && (version < 1000 || version > 1000000))
        status = NVML_IMPOSSIBLE_VALUE;
    snprintf(text, sizeof(text), "%d.%d", version / 1000, version % 1000 / 10);
    gpu_nvml_tell_text(gpu, WM_GPU_CUDA_VERSION, status, text);
}

void gpu_nvml_tell_vendor(struct gpu_nvml_gpu *gpu)
{
    char label[TEXT_SIZE];

    if (!(gpu->fixed & WM_GPU_GENERAL))
        return;
    snprintf(label, sizeof(label), "gpu%u", gpu->index);
    wm_gpu_set_text(gpu->sheet, WM_GPU_LABEL, label);
    wm_gpu_set_text(gpu->sheet, WM_GPU_VENDOR, "NVIDIA");
    wm_gpu_set_text(gpu->sheet, WM_GPU_SOURCE, wm_gpu_nvml.name);
    wm_gpu_set_text(gpu->sheet, WM_GPU_KERNEL_DRIVER, "nvidia");
}

void gpu_nvml_tell_machine(struct gpu_nvml_gpu *gpu)
{
    gpu_nvml_tell_vendor(gpu);
    if (!(gpu->fixed & WM_GPU_GENERAL))
        return;
    tell_version(gpu, WM_GPU_DRIVER_VERSION, gpu->values.api->driver_version);
    tell_version(gpu, WM_GPU_NVML_VERSION, gpu->values.api->nvml_version);
    tell_cuda_version(gpu);
}
