/* SPDX-License-Identifier: Apache-2.0 */
/* test_gpu_nvml.c - what the inventory learns of NVIDIA GPUs, against the fake driver. */
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "source/gpu/nvml/source_gpu_nvml.h"
#include "source/gpu/nvml/source_nvml_library.h"
#include "source/gpu/source_gpu_sheet.h"

/* Everything that takes no time. */
enum { QUICK = WM_GPU_EVERYTHING & ~WM_GPU_THROUGHPUT };

enum { GPUS_MAX = 4 };

struct inventory {
    void *state;
    size_t count;
    struct wm_gpu_sheet *sheets[GPUS_MAX];
};

static void use_scenario(const char *dir, const char *json)
{
    char path[512];

    test_write_file(dir, "scenario.json", json);
    snprintf(path, sizeof(path), "%s/scenario.json", dir);
    setenv("FAKE_NVML_SCENARIO", path, 1);
}

/* The scenario with a value of its own for each field, and with these faults. */
static void use_everything(const char *dir, const char *faults)
{
    static char text[16384], whole[20480];
    FILE *file = fopen(test_source_path("tests/fake/scenarios/everything.json"), "r");

    assert_non_null(file);
    size_t length = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[length] = '\0';
    assert_int_equal(text[0], '{');
    snprintf(whole, sizeof(whole), "{\"faults\": [%s], %s", faults, text + 1);
    use_scenario(dir, whole);
}

/* One GPU like this, and these faults. */
static void use_gpu(const char *dir, const char *gpu, const char *faults)
{
    char json[4096];

    snprintf(json, sizeof(json), "{\"gpus\": [{%s}], \"faults\": [%s]}", gpu, faults);
    use_scenario(dir, json);
}

static void inventory_close(struct inventory *inventory)
{
    for (size_t i = 0; i < inventory->count; i++)
        wm_gpu_sheet_free(inventory->sheets[i]);
    wm_gpu_nvml.close(inventory->state);
    free(inventory->state);
}

static int try_open(struct inventory *inventory, struct wm_error *err)
{
    const struct wm_source_config config = {
        .nvml = test_build_path("tests/fake/libnvidia-ml.so.1"),
    };

    *inventory = (struct inventory) { .state = calloc(1, wm_gpu_nvml.state_size) };
    assert_non_null(inventory->state);
    return wm_gpu_nvml.open(inventory->state, &config, err);
}

static struct inventory inventory_open(void)
{
    struct inventory inventory;
    struct wm_error err = { 0 };

    if (try_open(&inventory, &err) < 0)
        fail_msg("%s", err.text);
    inventory.count = wm_gpu_nvml.count(inventory.state);
    assert_in_range(inventory.count, 1, GPUS_MAX);
    for (size_t i = 0; i < inventory.count; i++)
        assert_int_equal(wm_gpu_sheet_new("nvml", &inventory.sheets[i], NULL), WM_OK);
    return inventory;
}

static void refresh(struct inventory *inventory, unsigned groups)
{
    for (size_t i = 0; i < inventory->count; i++) {
        struct wm_gpu_sheet *sheet = inventory->sheets[i];
        bool all = false;

        wm_gpu_sheet_ask(sheet, groups);
        groups = wm_gpu_sheet_begin(sheet, &all);
        wm_gpu_nvml.refresh(inventory->state, i, groups, all, sheet);
        wm_gpu_sheet_end(sheet);
        wm_gpu_sheet_collect(sheet, "late");
    }
}

static void wait_ms(long ms)
{
    nanosleep(&(struct timespec) { 0, ms * 1000000 }, NULL);
}

static struct wm_gpu_value get(const struct inventory *inventory, size_t gpu,
                               enum wm_gpu_field field)
{
    struct wm_gpu_value value;

    wm_gpu_sheet_get(inventory->sheets[gpu], field, &value);
    return value;
}

static const char *key_of(enum wm_gpu_field field)
{
    static char key[64];
    const struct wm_gpu_field_info *info = wm_gpu_field_info(field);

    snprintf(key, sizeof(key), "%s.%s", info->group, info->key);
    return key;
}

static void expect_number(const struct inventory *inventory, size_t gpu,
                          enum wm_gpu_field field, double number)
{
    struct wm_gpu_value value = get(inventory, gpu, field);

    if (value.state != WM_READING_OK ||
        !(fabs(value.number - number) <= 1e-9 * fabs(number)))
        fail_msg("%s is %.17g (%s), not %.17g", key_of(field), value.number,
                 value.why ? value.why : "ok", number);
}

static void expect_text(const struct inventory *inventory, size_t gpu,
                        enum wm_gpu_field field, const char *text)
{
    struct wm_gpu_value value = get(inventory, gpu, field);

    if (value.state != WM_READING_OK || strcmp(value.text, text) != 0)
        fail_msg("%s is '%s' (%s), not '%s'", key_of(field), value.text ? value.text : "",
                 value.why ? value.why : "ok", text);
}

static void expect_missing(const struct inventory *inventory, size_t gpu,
                           enum wm_gpu_field field, enum wm_reading_state state,
                           const char *why)
{
    struct wm_gpu_value value = get(inventory, gpu, field);

    if (value.state != state || strcmp(value.why ? value.why : "", why) != 0)
        fail_msg("%s is in state %d (%s), not %d (%s)", key_of(field), (int)value.state,
                 value.why ? value.why : "ok", (int)state, why);
}

/* What everything.json says of its first GPU; no text: a number. */
static const struct {
    enum wm_gpu_field field;
    double number;
    const char *text;
} everything[] = {
    { WM_GPU_NAME, 0, "SIMULATED everything" },
    { WM_GPU_SERIAL, 0, "1323023000001" },
    { WM_GPU_UUID, 0, "GPU-e0e0e0e0-1111-2222-3333-444444444444" },
    { WM_GPU_BIOS, 0, "96.00.74.00.02" },
    { WM_GPU_LABEL, 0, "gpu0" },
    { WM_GPU_VENDOR, 0, "NVIDIA" },
    { WM_GPU_SOURCE, 0, "nvml" },
    { WM_GPU_ARCHITECTURE, 0, "Hopper" },
    { WM_GPU_COMPUTE_CAPABILITY, 0, "9.0" },
    { WM_GPU_CORES, 16896, NULL },
    { WM_GPU_MULTIPROCESSORS, 132, NULL },
    { WM_GPU_KERNEL_DRIVER, 0, "nvidia" },
    { WM_GPU_DRIVER_VERSION, 0, "550.54.15" },
    { WM_GPU_NVML_VERSION, 0, "12.550.54.15" },
    { WM_GPU_CUDA_VERSION, 0, "12.4" },
    { WM_GPU_COMPUTE_MODE, 0, "Exclusive_Process" },
    { WM_GPU_PERSISTENCE, 0, "Enabled" },
    { WM_GPU_MIG_MODE, 0, "Disabled" },
    { WM_GPU_MIG_MODE_PENDING, 0, "Enabled" },
    { WM_GPU_DISPLAY_ACTIVE, 1, NULL },
    { WM_GPU_SIMULATED, 1, NULL },
    { WM_GPU_MEMORY_TOTAL, 85899345920, NULL },
    { WM_GPU_MEMORY_USED, 21474836480, NULL },
    { WM_GPU_MEMORY_FREE, 63879249920, NULL },
    { WM_GPU_MEMORY_RESERVED, 545259520, NULL },
    { WM_GPU_MEMORY_BAR1_TOTAL, 137438953472, NULL },
    { WM_GPU_MEMORY_BAR1_USED, 17825792, NULL },
    { WM_GPU_UTILIZATION_GPU, 0.87, NULL },
    { WM_GPU_UTILIZATION_MEMORY, 0.43, NULL },
    { WM_GPU_UTILIZATION_ENCODER, 0.11, NULL },
    { WM_GPU_UTILIZATION_DECODER, 0.22, NULL },
    { WM_GPU_FAN, 0.36, NULL },
    { WM_GPU_FAN_SPEED, 2345, NULL },
    { WM_GPU_TEMPERATURE, 61, NULL },
    { WM_GPU_TEMPERATURE_MEMORY, 73, NULL },
    { WM_GPU_TEMPERATURE_SLOWDOWN, 89, NULL },
    { WM_GPU_TEMPERATURE_SHUTDOWN, 94, NULL },
    { WM_GPU_PERFORMANCE, 0, "P2" },
    { WM_GPU_PCI_BUS, 0, "5E" },
    { WM_GPU_PCI_BUS_ID, 0, "0001:5E:0A.0" },
    { WM_GPU_PCI_DEVICE, 0, "0A" },
    { WM_GPU_PCI_DEVICE_ID, 0, "233010DE" },
    { WM_GPU_PCI_SUB_SYSTEM_ID, 0, "16C110DF" },
    { WM_GPU_PCI_LINK_GEN, 4, NULL },
    { WM_GPU_PCI_LINK_GEN_MAX, 5, NULL },
    { WM_GPU_PCI_LINK_WIDTH, 8, NULL },
    { WM_GPU_PCI_LINK_WIDTH_MAX, 16, NULL },
    { WM_GPU_PCI_REPLAYS, 7, NULL },
    { WM_GPU_CLOCK_GRAPHICS, 1755e6, NULL },
    { WM_GPU_CLOCK_SM, 1740e6, NULL },
    { WM_GPU_CLOCK_MEMORY, 2619e6, NULL },
    { WM_GPU_CLOCK_VIDEO, 1395e6, NULL },
    { WM_GPU_CLOCK_GRAPHICS_MAX, 1980e6, NULL },
    { WM_GPU_CLOCK_SM_MAX, 1965e6, NULL },
    { WM_GPU_CLOCK_MEMORY_MAX, 2634e6, NULL },
    { WM_GPU_CLOCK_VIDEO_MAX, 1545e6, NULL },
    { WM_GPU_THROTTLE, WM_GPU_THROTTLE_POWER | WM_GPU_THROTTLE_HEAT,
      "sw_power_cap, hw_thermal_slowdown" },
    { WM_GPU_POWER_MANAGEMENT, 0, "Supported" },
    { WM_GPU_POWER_DRAW, 340, NULL },
    { WM_GPU_POWER_INSTANT, 340, NULL },
    { WM_GPU_POWER_AVERAGE, 330, NULL },
    { WM_GPU_POWER_SCOPE, 0, "gpu" },
    { WM_GPU_POWER_LIMIT, 650, NULL },
    { WM_GPU_POWER_LIMIT_DEFAULT, 700, NULL },
    { WM_GPU_POWER_LIMIT_ENFORCED, 640, NULL },
    { WM_GPU_POWER_LIMIT_MIN, 200, NULL },
    { WM_GPU_POWER_LIMIT_MAX, 710, NULL },
    { WM_GPU_ENERGY, 987654.321, NULL },
    { WM_GPU_ECC_MODE, 0, "Enabled" },
    { WM_GPU_ECC_MODE_PENDING, 0, "Disabled" },
    { WM_GPU_ECC_CORRECTED, 12, NULL },
    { WM_GPU_ECC_UNCORRECTED, 13, NULL },
    { WM_GPU_ECC_CORRECTED_LIFETIME, 14, NULL },
    { WM_GPU_ECC_UNCORRECTED_LIFETIME, 15, NULL },
    { WM_GPU_NVLINK_LINKS, 6, NULL },
    { WM_GPU_NVLINK_SENT, 6291456000, NULL },
    { WM_GPU_NVLINK_RECEIVED, 12582912000, NULL },
    { WM_GPU_PCI_SENT, 123456e3, NULL },
    { WM_GPU_PCI_RECEIVED, 654321e3, NULL },
};

static void expect_everything(const struct inventory *inventory, unsigned groups,
                              const bool *but)
{
    for (size_t i = 0; i < ARRAY_LEN(everything); i++) {
        enum wm_gpu_field field = everything[i].field;

        if (!(wm_gpu_field_info(field)->asked_with & groups) || (but && but[field]))
            continue;
        if (everything[i].text) {
            expect_text(inventory, 0, field, everything[i].text);
            assert_true(get(inventory, 0, field).number == everything[i].number);
        } else
            expect_number(inventory, 0, field, everything[i].number);
    }
}

static void test_every_field(void **state)
{
    static const enum wm_gpu_field never[] = {
        WM_GPU_INDEX, /* the core's */
        WM_GPU_MEMORY_SHARED_TOTAL,
        WM_GPU_MEMORY_SHARED_USED,
        WM_GPU_TEMPERATURE_HOTSPOT,
    };

    use_everything(*state, "");
    struct inventory inventory = inventory_open();
    refresh(&inventory, WM_GPU_EVERYTHING);
    expect_everything(&inventory, WM_GPU_EVERYTHING, NULL);
    for (size_t i = 0; i < ARRAY_LEN(never); i++)
        expect_missing(&inventory, 0, never[i], WM_READING_UNSUPPORTED,
                       "not reported by nvml");
    assert_int_equal(ARRAY_LEN(everything) + ARRAY_LEN(never), WM_GPU_FIELDS);

    expect_text(&inventory, 1, WM_GPU_LABEL, "gpu1");
    expect_text(&inventory, 1, WM_GPU_MIG_MODE, "Enabled");
    assert_non_null(strstr(wm_gpu_nvml.detail(inventory.state), "driver 550.54.15, NVML"));
    inventory_close(&inventory);
}

static void test_fixed_fields_are_asked_once(void **state)
{
    use_gpu(*state, "", "{\"call\": \"nvmlDeviceGetName\", \"from\": 0.5, \"error\": 10}");
    struct inventory inventory = inventory_open();
    refresh(&inventory, QUICK);
    expect_text(&inventory, 0, WM_GPU_NAME, "SIMULATED H100");
    wait_ms(550);
    refresh(&inventory, QUICK);
    expect_text(&inventory, 0, WM_GPU_NAME, "SIMULATED H100");
    inventory_close(&inventory);
}

/* What one call costs when it fails. What is in no line costs nothing: there it is
 * not the first form that is asked, or the list of processes tells. */
enum { FIELDS_MAX = 6 };

static const struct {
    const char *call;
    enum wm_gpu_field fields[FIELDS_MAX]; /* up to WM_GPU_INDEX, which none of them is */
} costs[] = {
    { "nvmlSystemGetDriverVersion", { WM_GPU_DRIVER_VERSION } },
    { "nvmlSystemGetNVMLVersion", { WM_GPU_NVML_VERSION } },
    { "nvmlSystemGetCudaDriverVersion_v2", { WM_GPU_CUDA_VERSION } },
    { "nvmlDeviceGetName", { WM_GPU_NAME, WM_GPU_SIMULATED } },
    { "nvmlDeviceGetSerial", { WM_GPU_SERIAL } },
    { "nvmlDeviceGetVbiosVersion", { WM_GPU_BIOS } },
    { "nvmlDeviceGetArchitecture", { WM_GPU_ARCHITECTURE } },
    { "nvmlDeviceGetCudaComputeCapability", { WM_GPU_COMPUTE_CAPABILITY } },
    { "nvmlDeviceGetNumGpuCores", { WM_GPU_CORES } },
    { "nvmlDeviceGetAttributes_v2", { WM_GPU_MULTIPROCESSORS } },
    { "nvmlDeviceGetComputeMode", { WM_GPU_COMPUTE_MODE } },
    { "nvmlDeviceGetPersistenceMode", { WM_GPU_PERSISTENCE } },
    { "nvmlDeviceGetDisplayActive", { WM_GPU_DISPLAY_ACTIVE } },
    { "nvmlDeviceGetMemoryInfo_v2",
      { WM_GPU_MEMORY_TOTAL, WM_GPU_MEMORY_USED, WM_GPU_MEMORY_FREE,
        WM_GPU_MEMORY_RESERVED } },
    { "nvmlDeviceGetBAR1MemoryInfo",
      { WM_GPU_MEMORY_BAR1_TOTAL, WM_GPU_MEMORY_BAR1_USED } },
    { "nvmlDeviceGetUtilizationRates",
      { WM_GPU_UTILIZATION_GPU, WM_GPU_UTILIZATION_MEMORY } },
    { "nvmlDeviceGetEncoderUtilization", { WM_GPU_UTILIZATION_ENCODER } },
    { "nvmlDeviceGetDecoderUtilization", { WM_GPU_UTILIZATION_DECODER } },
    { "nvmlDeviceGetFanSpeed_v2", { WM_GPU_FAN } },
    { "nvmlDeviceGetFanSpeedRPM", { WM_GPU_FAN_SPEED } },
    { "nvmlDeviceGetTemperature", { WM_GPU_TEMPERATURE } },
    { "nvmlDeviceGetTemperatureThreshold",
      { WM_GPU_TEMPERATURE_SLOWDOWN, WM_GPU_TEMPERATURE_SHUTDOWN } },
    { "nvmlDeviceGetPerformanceState", { WM_GPU_PERFORMANCE } },
    { "nvmlDeviceGetPciInfo_v3",
      { WM_GPU_PCI_BUS, WM_GPU_PCI_BUS_ID, WM_GPU_PCI_DEVICE, WM_GPU_PCI_DEVICE_ID,
        WM_GPU_PCI_SUB_SYSTEM_ID } },
    { "nvmlDeviceGetCurrPcieLinkGeneration", { WM_GPU_PCI_LINK_GEN } },
    { "nvmlDeviceGetMaxPcieLinkGeneration", { WM_GPU_PCI_LINK_GEN_MAX } },
    { "nvmlDeviceGetCurrPcieLinkWidth", { WM_GPU_PCI_LINK_WIDTH } },
    { "nvmlDeviceGetMaxPcieLinkWidth", { WM_GPU_PCI_LINK_WIDTH_MAX } },
    { "nvmlDeviceGetPcieReplayCounter", { WM_GPU_PCI_REPLAYS } },
    { "nvmlDeviceGetPcieThroughput", { WM_GPU_PCI_SENT, WM_GPU_PCI_RECEIVED } },
    { "nvmlDeviceGetClockInfo",
      { WM_GPU_CLOCK_GRAPHICS, WM_GPU_CLOCK_SM, WM_GPU_CLOCK_MEMORY, WM_GPU_CLOCK_VIDEO } },
    { "nvmlDeviceGetMaxClockInfo",
      { WM_GPU_CLOCK_GRAPHICS_MAX, WM_GPU_CLOCK_SM_MAX, WM_GPU_CLOCK_MEMORY_MAX,
        WM_GPU_CLOCK_VIDEO_MAX } },
    { "nvmlDeviceGetCurrentClocksEventReasons", { WM_GPU_THROTTLE } },
    { "nvmlDeviceGetPowerManagementMode", { WM_GPU_POWER_MANAGEMENT } },
    { "nvmlDeviceGetPowerUsage", { WM_GPU_POWER_DRAW } },
    { "nvmlDeviceGetPowerManagementLimit", { WM_GPU_POWER_LIMIT } },
    { "nvmlDeviceGetPowerManagementDefaultLimit", { WM_GPU_POWER_LIMIT_DEFAULT } },
    { "nvmlDeviceGetEnforcedPowerLimit", { WM_GPU_POWER_LIMIT_ENFORCED } },
    { "nvmlDeviceGetPowerManagementLimitConstraints",
      { WM_GPU_POWER_LIMIT_MIN, WM_GPU_POWER_LIMIT_MAX } },
    { "nvmlDeviceGetTotalEnergyConsumption", { WM_GPU_ENERGY } },
    { "nvmlDeviceGetFieldValues",
      { WM_GPU_TEMPERATURE_MEMORY, WM_GPU_NVLINK_SENT, WM_GPU_NVLINK_RECEIVED,
        WM_GPU_POWER_INSTANT, WM_GPU_POWER_AVERAGE, WM_GPU_POWER_SCOPE } },
    { "nvmlDeviceGetEccMode", { WM_GPU_ECC_MODE, WM_GPU_ECC_MODE_PENDING } },
    { "nvmlDeviceGetTotalEccErrors",
      { WM_GPU_ECC_CORRECTED, WM_GPU_ECC_UNCORRECTED, WM_GPU_ECC_CORRECTED_LIFETIME,
        WM_GPU_ECC_UNCORRECTED_LIFETIME } },
    { "nvmlDeviceGetNvLinkState", { WM_GPU_NVLINK_LINKS } },
    { "nvmlDeviceGetMigMode", { WM_GPU_MIG_MODE, WM_GPU_MIG_MODE_PENDING } },
};

static void mark_costs(const char *call, bool *but)
{
    for (size_t i = 0; i < ARRAY_LEN(costs); i++) {
        if (strcmp(costs[i].call, call) != 0)
            continue;
        for (size_t f = 0; f < FIELDS_MAX && costs[i].fields[f] != WM_GPU_INDEX; f++)
            but[costs[i].fields[f]] = true;
    }
}

static const struct symbol {
    const char *name;
    bool required;
} symbols[] = {
#define SYMBOL(name, required, member, parameters) { name, required },
#define LIST(name)                                                                         \
    { name "_v3", false }, { name "_v2", false },                                          \
    {                                                                                      \
        name, false                                                                        \
    }
    NVML_CALLS(SYMBOL) LIST("nvmlDeviceGetComputeRunningProcesses"),
    LIST("nvmlDeviceGetGraphicsRunningProcesses"),
    LIST("nvmlDeviceGetMPSComputeRunningProcesses"),
};

/* Which lines of `costs` name a call that there is not. */
static void test_costs_are_known(void **state)
{
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(costs); i++) {
        size_t s = 0;

        while (s < ARRAY_LEN(symbols) && strcmp(symbols[s].name, costs[i].call) != 0)
            s++;
        if (s == ARRAY_LEN(symbols) || symbols[s].required)
            fail_msg("%s is no optional call", costs[i].call);
    }
}

/* Each optional call alone, in each way to fail, costs its fields and no other. */
static void test_one_call_costs_its_fields(void **state)
{
    static const struct {
        const char *error;
        enum wm_reading_state state;
        const char *why;
        int code;
    } errors[] = {
        { "NOT_SUPPORTED", WM_READING_UNSUPPORTED, "Not Supported", 3 },
        { "NO_PERMISSION", WM_READING_DENIED, "Insufficient Permissions", 4 },
        { "TIMEOUT", WM_READING_FAILED, "Timeout", 10 },
        { "UNKNOWN", WM_READING_FAILED, "Unknown Error", 999 },
    };

    for (size_t s = 0; s < ARRAY_LEN(symbols); s++) {
        const struct symbol *symbol = &symbols[s];
        bool but[WM_GPU_FIELDS] = { false };
        unsigned groups = strstr(symbol->name, "Throughput") ? WM_GPU_EVERYTHING : QUICK;

        if (symbol->required)
            continue;
        mark_costs(symbol->name, but);
        for (size_t e = 0; e < ARRAY_LEN(errors); e++) {
            char fault[256];

            snprintf(fault, sizeof(fault), "{\"call\": \"%s\", \"error\": \"%s\"}",
                     symbol->name, errors[e].error);
            use_everything(*state, fault);
            struct inventory inventory = inventory_open();
            refresh(&inventory, groups);
            expect_everything(&inventory, groups, but);
            for (enum wm_gpu_field f = 0; f < WM_GPU_FIELDS; f++) {
                if (!but[f])
                    continue;
                expect_missing(&inventory, 0, f, errors[e].state, errors[e].why);
                assert_int_equal(get(&inventory, 0, f).code, errors[e].code);
            }
            inventory_close(&inventory);
        }
    }
}

/* An older driver, or a newer one that dropped a call. */
static void test_other_forms(void **state)
{
    static const struct {
        const char *what, *gpu, *call;
        enum wm_gpu_field field;
        double number;
        const char *text;
    } cases[] = {
        { "CUDA", "", "nvmlSystemGetCudaDriverVersion_v2", WM_GPU_CUDA_VERSION, 0, "12.4" },
        { "memory, with what the driver keeps",
          "\"memory_reserved\": 1e9, \"memory_used\": 2e9", "nvmlDeviceGetMemoryInfo_v2",
          WM_GPU_MEMORY_USED, 3e9, NULL },
        { "fan", "\"fan\": 0.4", "nvmlDeviceGetFanSpeed_v2", WM_GPU_FAN, 0.4, NULL },
        { "temperature", "\"temperature\": -7", "nvmlDeviceGetTemperature",
          WM_GPU_TEMPERATURE, -7, NULL },
        { "PCI", "\"pci_bus_id\": \"0000:88:00.0\"", "nvmlDeviceGetPciInfo_v3",
          WM_GPU_PCI_BUS_ID, 0, "0000:88:00.0" },
        { "PCI ids", "\"pci_sub_system_id\": \"1210196E\"", "nvmlDeviceGetPciInfo_v3",
          WM_GPU_PCI_SUB_SYSTEM_ID, 0, "1210196E" },
        { "throttling", "\"throttle\": 1", "nvmlDeviceGetCurrentClocksEventReasons",
          WM_GPU_THROTTLE, 0, "gpu_idle" },
        { "power management", "", "nvmlDeviceGetPowerManagementMode",
          WM_GPU_POWER_MANAGEMENT, 0, "Supported" },
        { "finding it again", "", "nvmlDeviceGetHandleByUUID", WM_GPU_CORES, 16896, NULL },
    };
    static const char *const errors[] = { "FUNCTION_NOT_FOUND", "DEPRECATED",
                                          "ARGUMENT_VERSION_MISMATCH" };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("  %s\n", cases[i].what);
        for (size_t e = 0; e < ARRAY_LEN(errors); e++) {
            char fault[256];

            snprintf(fault, sizeof(fault), "{\"call\": \"%s\", \"error\": \"%s\"}",
                     cases[i].call, errors[e]);
            use_gpu(*state, cases[i].gpu, fault);
            struct inventory inventory = inventory_open();
            refresh(&inventory, QUICK);
            if (cases[i].text)
                expect_text(&inventory, 0, cases[i].field, cases[i].text);
            else
                expect_number(&inventory, 0, cases[i].field, cases[i].number);
            inventory_close(&inventory);
        }
    }
}

static void test_words(void **state)
{
    static const struct {
        const char *gpu;
        enum wm_gpu_field field;
        const char *text;
    } cases[] = {
        { "\"architecture\": 2", WM_GPU_ARCHITECTURE, "Kepler" },
        { "\"architecture\": 3", WM_GPU_ARCHITECTURE, "Maxwell" },
        { "\"architecture\": 4", WM_GPU_ARCHITECTURE, "Pascal" },
        { "\"architecture\": 5", WM_GPU_ARCHITECTURE, "Volta" },
        { "\"architecture\": 6", WM_GPU_ARCHITECTURE, "Turing" },
        { "\"architecture\": 7", WM_GPU_ARCHITECTURE, "Ampere" },
        { "\"architecture\": 8", WM_GPU_ARCHITECTURE, "Ada" },
        { "\"architecture\": 10", WM_GPU_ARCHITECTURE, "Blackwell" },
        { "\"architecture\": 1", WM_GPU_ARCHITECTURE, "architecture 1" },
        { "\"architecture\": 12", WM_GPU_ARCHITECTURE, "architecture 12" },
        { "\"compute_mode\": 0", WM_GPU_COMPUTE_MODE, "Default" },
        { "\"compute_mode\": 1", WM_GPU_COMPUTE_MODE, "Exclusive_Thread" },
        { "\"compute_mode\": 2", WM_GPU_COMPUTE_MODE, "Prohibited" },
        { "\"compute_mode\": 4", WM_GPU_COMPUTE_MODE, "mode 4" },
        { "\"compute_capability\": 12.1", WM_GPU_COMPUTE_CAPABILITY, "12.1" },
        { "\"persistence\": false", WM_GPU_PERSISTENCE, "Disabled" },
        { "\"performance\": 15", WM_GPU_PERFORMANCE, "P15" },
        { "\"pci_bus_id\": \"0000:88:00.0\"", WM_GPU_PCI_BUS_ID, "0000:88:00.0" },
        { "\"pci_bus_id\": \"0000:88:00.0\"", WM_GPU_PCI_BUS, "88" },
        { "\"pci_bus_id\": \"10000:01:00.0\"", WM_GPU_PCI_BUS_ID, "00010000:01:00.0" },
        { "\"pci_device_id\": \"1b0610de\"", WM_GPU_PCI_DEVICE_ID, "1B0610DE" },
        { "\"pci_device_id\": \"de\"", WM_GPU_PCI_DEVICE_ID, "000000DE" },
        { "\"throttle\": 0", WM_GPU_THROTTLE, "none" },
        { "\"throttle\": 2048", WM_GPU_THROTTLE, "0x800" },
        { "\"throttle\": 2049", WM_GPU_THROTTLE, "gpu_idle, 0x800" },
        { "\"throttle\": 2047", WM_GPU_THROTTLE,
          "gpu_idle, applications_clocks_setting, sw_power_cap, hw_slowdown, sync_boost, "
          "sw_thermal_slowdown, hw_thermal_slowdown, hw_power_brake_slowdown, "
          "display_clock_setting, board_limit, reliability" },
        { "\"power_instant_scopes\": [1], \"power_average_scopes\": [1]",
          WM_GPU_POWER_SCOPE, "module" },
        { "\"power_instant_scopes\": [1], \"power_average_scopes\": [0]",
          WM_GPU_POWER_SCOPE, "gpu" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("  %s\n", cases[i].gpu);
        use_gpu(*state, cases[i].gpu, "");
        struct inventory inventory = inventory_open();
        refresh(&inventory, QUICK);
        expect_text(&inventory, 0, cases[i].field, cases[i].text);
        inventory_close(&inventory);
    }
}

static void test_missing(void **state)
{
#define IMPOSSIBLE WM_READING_FAILED, "the driver gave an impossible value"
#define UNSUPPORTED WM_READING_UNSUPPORTED, "Not Supported"
    static const struct {
        const char *gpu;
        enum wm_gpu_field field;
        enum wm_reading_state state;
        const char *why;
    } cases[] = {
        { "\"utilization\": 2.5", WM_GPU_UTILIZATION_GPU, IMPOSSIBLE },
        { "\"memory_utilization\": 1.01", WM_GPU_UTILIZATION_MEMORY, IMPOSSIBLE },
        { "\"encoder\": 1.01", WM_GPU_UTILIZATION_ENCODER, IMPOSSIBLE },
        { "\"decoder\": 40e6", WM_GPU_UTILIZATION_DECODER, IMPOSSIBLE },
        { "\"fan\": 2.5", WM_GPU_FAN, IMPOSSIBLE },
        { "\"fan_rpm\": 1e10", WM_GPU_FAN_SPEED, IMPOSSIBLE },
        { "\"power\": 1e9", WM_GPU_POWER_DRAW, IMPOSSIBLE },
        { "\"power\": 1e9", WM_GPU_POWER_INSTANT, IMPOSSIBLE },
        { "\"power_average\": 1e9", WM_GPU_POWER_AVERAGE, IMPOSSIBLE },
        { "\"power_limit\": 1e9", WM_GPU_POWER_LIMIT, IMPOSSIBLE },
        { "\"power_limit_default\": 1e9", WM_GPU_POWER_LIMIT_DEFAULT, IMPOSSIBLE },
        { "\"power_limit_enforced\": 1e9", WM_GPU_POWER_LIMIT_ENFORCED, IMPOSSIBLE },
        { "\"power_limit_min\": 1e9", WM_GPU_POWER_LIMIT_MIN, IMPOSSIBLE },
        { "\"power_limit_max\": 1e9", WM_GPU_POWER_LIMIT_MAX, IMPOSSIBLE },
        { "\"energy\": {\"mode\": \"stuck\", \"start\": 1e20}", WM_GPU_ENERGY, IMPOSSIBLE },
        { "\"memory_used\": 9e10", WM_GPU_MEMORY_USED, IMPOSSIBLE },
        { "\"memory_used\": 9e10", WM_GPU_MEMORY_TOTAL, IMPOSSIBLE },
        { "\"memory_total\": 2e19", WM_GPU_MEMORY_TOTAL, IMPOSSIBLE },
        { "\"memory_reserved\": 9e10", WM_GPU_MEMORY_RESERVED, IMPOSSIBLE },
        { "\"bar1_used\": 1e15", WM_GPU_MEMORY_BAR1_USED, IMPOSSIBLE },
        { "\"bar1_total\": 2e19", WM_GPU_MEMORY_BAR1_TOTAL, IMPOSSIBLE },
        { "\"temperature\": 1001", WM_GPU_TEMPERATURE, IMPOSSIBLE },
        { "\"temperature\": -1", WM_GPU_TEMPERATURE, IMPOSSIBLE }, /* 4294967295 */
        { "\"temperature_memory\": 5e9", WM_GPU_TEMPERATURE_MEMORY, IMPOSSIBLE },
        { "\"temperature_shutdown\": 5e9", WM_GPU_TEMPERATURE_SHUTDOWN, IMPOSSIBLE },
        { "\"clock_sm\": 5e15", WM_GPU_CLOCK_SM, IMPOSSIBLE },
        { "\"clock_video_max\": 5e15", WM_GPU_CLOCK_VIDEO_MAX, IMPOSSIBLE },
        { "\"cores\": 5e9", WM_GPU_CORES, IMPOSSIBLE },
        { "\"multiprocessors\": 5e9", WM_GPU_MULTIPROCESSORS, IMPOSSIBLE },
        { "\"persistence\": 2", WM_GPU_PERSISTENCE, IMPOSSIBLE },
        { "\"display_active\": 2", WM_GPU_DISPLAY_ACTIVE, IMPOSSIBLE },
        { "\"ecc_mode\": 7", WM_GPU_ECC_MODE, IMPOSSIBLE },
        { "\"ecc_corrected\": 2e19", WM_GPU_ECC_CORRECTED, IMPOSSIBLE },
        { "\"mig_mode\": 2", WM_GPU_MIG_MODE, IMPOSSIBLE },
        { "\"compute_capability\": 0", WM_GPU_COMPUTE_CAPABILITY, IMPOSSIBLE },
        { "\"architecture\": 5e9", WM_GPU_ARCHITECTURE, IMPOSSIBLE },
        { "\"performance\": 16", WM_GPU_PERFORMANCE, IMPOSSIBLE },
        { "\"power_management\": 2", WM_GPU_POWER_MANAGEMENT, IMPOSSIBLE },
        { "\"pci_bus_id\": \"0000:100:00.0\"", WM_GPU_PCI_BUS, IMPOSSIBLE },
        { "\"pci_bus_id\": \"0000:01:20.0\"", WM_GPU_PCI_BUS_ID, IMPOSSIBLE },
        { "\"pci_link_width\": 5e9", WM_GPU_PCI_LINK_WIDTH, IMPOSSIBLE },
        { "\"pci_replays\": 5e9", WM_GPU_PCI_REPLAYS, IMPOSSIBLE },
        { "\"nvlink_sent\": 2e23", WM_GPU_NVLINK_SENT, IMPOSSIBLE },
        { "\"performance\": 32", WM_GPU_PERFORMANCE, UNSUPPORTED },
        { "\"serial\": null", WM_GPU_SERIAL, UNSUPPORTED },
        { "\"fans\": 0", WM_GPU_FAN, UNSUPPORTED },
        { "\"fans\": 0", WM_GPU_FAN_SPEED, UNSUPPORTED },
        { "\"ecc_mode\": null", WM_GPU_ECC_MODE, UNSUPPORTED },
        { "\"nvlink_links\": null", WM_GPU_NVLINK_LINKS, UNSUPPORTED },
        { "\"nvlink_links\": null", WM_GPU_NVLINK_SENT, UNSUPPORTED },
        { "\"power_instant_scopes\": [], \"power_average_scopes\": []", WM_GPU_POWER_SCOPE,
          UNSUPPORTED },
        { "\"power_instant_scopes\": [1], \"power_average_scopes\": [0]",
          WM_GPU_POWER_INSTANT, UNSUPPORTED },
        { "\"power_management\": false", WM_GPU_POWER_MANAGEMENT, WM_READING_UNSUPPORTED,
          "power management is switched off" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("  %s\n", cases[i].gpu);
        use_gpu(*state, cases[i].gpu, "");
        struct inventory inventory = inventory_open();
        refresh(&inventory, QUICK);
        expect_missing(&inventory, 0, cases[i].field, cases[i].state, cases[i].why);
        inventory_close(&inventory);
    }
#undef UNSUPPORTED
#undef IMPOSSIBLE
}

static void test_one_field_by_number(void **state)
{
    static const struct {
        const char *call;
        enum wm_gpu_field lost, kept;
    } cases[] = {
        { "nvmlDeviceGetFieldValues:82", WM_GPU_TEMPERATURE_MEMORY, WM_GPU_POWER_INSTANT },
        { "nvmlDeviceGetFieldValues:138", WM_GPU_NVLINK_SENT, WM_GPU_NVLINK_RECEIVED },
        { "nvmlDeviceGetFieldValues:139", WM_GPU_NVLINK_RECEIVED, WM_GPU_NVLINK_SENT },
        { "nvmlDeviceGetFieldValues:185", WM_GPU_POWER_AVERAGE, WM_GPU_POWER_INSTANT },
        { "nvmlDeviceGetFieldValues:186", WM_GPU_POWER_INSTANT, WM_GPU_POWER_AVERAGE },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char fault[128];

        /* As a driver from before that field answers. */
        snprintf(fault, sizeof(fault),
                 "{\"call\": \"%s\", \"error\": \"INVALID_ARGUMENT\"}", cases[i].call);
        use_everything(*state, fault);
        struct inventory inventory = inventory_open();
        refresh(&inventory, QUICK);
        expect_missing(&inventory, 0, cases[i].lost, WM_READING_UNSUPPORTED,
                       "Not Supported");
        assert_int_equal(get(&inventory, 0, cases[i].kept).state, WM_READING_OK);
        expect_text(&inventory, 0, WM_GPU_POWER_SCOPE, "gpu");
        inventory_close(&inventory);
    }
}

static void test_text_is_cleaned(void **state)
{
    char endless[8];

    memset(endless, 'x', sizeof(endless));
    nvml_clean_text(endless, sizeof(endless));
    assert_string_equal(endless, "xxxxxxx");

    use_gpu(*state, "\"name\": \"a\\u001b[31m\\u00e4\\n\", \"uuid\": \"GPU-\\u0007\"", "");
    struct inventory inventory = inventory_open();
    refresh(&inventory, QUICK);
    expect_text(&inventory, 0, WM_GPU_NAME, "a?[31m\xc3\xa4?");
    expect_text(&inventory, 0, WM_GPU_UUID, "GPU-?");
    expect_number(&inventory, 0, WM_GPU_SIMULATED, 0);
    inventory_close(&inventory);
}

/* What a recording calls it, too. */
static void test_without_uuid(void **state)
{
    use_gpu(*state, "\"uuid\": \"\", \"pci_bus_id\": \"0000:3b:00.0\"", "");
    struct inventory inventory = inventory_open();
    refresh(&inventory, QUICK);
    expect_text(&inventory, 0, WM_GPU_UUID, "0000:3B:00.0");
    inventory_close(&inventory);
}

/* Processes. */

/* A share or a memory below zero: none is known. */
struct process {
    pid_t pid;
    const char *type;
    double memory, sm, memory_utilization, encoder, decoder;
    int gpu_instance, compute_instance; /* -1: none */
};

static void expect_process_number(const struct inventory *inventory, size_t gpu, size_t i,
                                  enum wm_gpu_process_field field, double number)
{
    struct wm_gpu_value value;
    bool is_known = number >= 0;

    value = wm_gpu_sheet_cell(inventory->sheets[gpu], WM_GPU_PROCESS_LIST, i, field);
    if ((value.state == WM_READING_OK) != is_known ||
        (is_known && !(fabs(value.number - number) <= 1e-9)))
        fail_msg("%s of process %zu is %g (%s), not %g",
                 wm_gpu_process_field_info(field)->key, i, value.number,
                 value.why ? value.why : "ok", number);
}

static void expect_processes(const struct inventory *inventory, size_t gpu,
                             const struct process *expected, size_t count)
{
    const struct wm_gpu_sheet *sheet = inventory->sheets[gpu];
    struct wm_gpu_value list, type;

    assert_int_equal(wm_gpu_sheet_rows(sheet, WM_GPU_PROCESS_LIST, &list), count);
    assert_int_equal(list.state, WM_READING_OK);
    for (size_t i = 0; i < count; i++) {
        const struct process *process = &expected[i];

        assert_int_equal((pid_t)wm_gpu_sheet_cell(sheet, WM_GPU_PROCESS_LIST, i,
                                                  WM_GPU_PROCESS_DRIVER_PID)
                             .number,
                         process->pid);
        type = wm_gpu_sheet_cell(sheet, WM_GPU_PROCESS_LIST, i, WM_GPU_PROCESS_TYPE);
        assert_string_equal(type.text, process->type);
        expect_process_number(inventory, gpu, i, WM_GPU_PROCESS_MEMORY, process->memory);
        expect_process_number(inventory, gpu, i, WM_GPU_PROCESS_SM, process->sm);
        expect_process_number(inventory, gpu, i, WM_GPU_PROCESS_MEMORY_UTILIZATION,
                              process->memory_utilization);
        expect_process_number(inventory, gpu, i, WM_GPU_PROCESS_ENCODER, process->encoder);
        expect_process_number(inventory, gpu, i, WM_GPU_PROCESS_DECODER, process->decoder);
        expect_process_number(inventory, gpu, i, WM_GPU_PROCESS_GPU_INSTANCE,
                              process->gpu_instance);
        expect_process_number(inventory, gpu, i, WM_GPU_PROCESS_COMPUTE_INSTANCE,
                              process->compute_instance);
    }
}

static void test_processes(void **state)
{
    static const struct process whole[] = {
        { 4190001, "C", 12884901888, 0.55, 0.31, 0.05, 0.06, -1, -1 },
        { 4190002, "C+G", 1073741824, 0.21, 0.12, 0.03, 0.04, -1, -1 },
        { 4190003, "G", 536870912, 0, 0, 0, 0, -1, -1 },
        { 4190004, "M", 268435456, 0.02, 0, 0, 0, -1, -1 },
        { 4190005, "C", -1, 0, 0, 0, 0, -1, -1 },
    };
    static const struct process partitioned[] = {
        { 4190011, "C", 2147483648, -1, -1, -1, -1, 2, 1 },
        { 4190012, "C", 73400320, -1, -1, -1, -1, 9, 0 },
    };

    use_everything(*state, "");
    struct inventory inventory = inventory_open();
    refresh(&inventory, QUICK);
    expect_processes(&inventory, 0, whole, ARRAY_LEN(whole));
    expect_processes(&inventory, 1, partitioned, ARRAY_LEN(partitioned));

    /* Nothing new from the driver: what it said last holds. */
    refresh(&inventory, WM_GPU_PROCESSES);
    expect_processes(&inventory, 0, whole, ARRAY_LEN(whole));
    inventory_close(&inventory);
}

/* Drivers differ in the size of an entry, and say so nowhere. */
static void test_process_entries(void **state)
{
    static const struct process expected[] = {
        { 1001, "C", 1000, 0, 0, 0, 0, -1, -1 },
        { 1002, "C", 1000, 0, 0, 0, 0, -1, -1 },
        { 1003, "C", 1000, 0, 0, 0, 0, -1, -1 },
    };
    static const char *const faults[] = {
        "",
        "{\"call\": \"*RunningProcesses_v3\", \"error\": \"FUNCTION_NOT_FOUND\"}",
        "{\"call\": \"*RunningProcesses_v[23]\", \"error\": \"FUNCTION_NOT_FOUND\"}",
    };

    for (int size = 16; size <= 32; size += 8) {
        for (size_t f = 0; f < ARRAY_LEN(faults); f++) {
            char gpu[256];

            snprintf(gpu, sizeof(gpu),
                     "\"process_entry\": %d, \"processes\": "
                     "{\"pid\": 1001, \"count\": 3, \"memory\": 1000, \"sm\": null}",
                     size);
            use_gpu(*state, gpu, faults[f]);
            struct inventory inventory = inventory_open();
            refresh(&inventory, QUICK);
            expect_processes(&inventory, 0, expected, ARRAY_LEN(expected));
            inventory_close(&inventory);
        }
    }
}

static void test_process_lists(void **state)
{
    static const struct {
        const char *what, *call, *error;
        enum wm_reading_state state;
        size_t count;
        const char *types;
    } cases[] = {
        { "no graphics", "nvmlDeviceGetGraphics*", "NOT_SUPPORTED", WM_READING_OK, 4,
          "CCMC" },
        { "no MPS", "nvmlDeviceGetMPS*", "FUNCTION_NOT_FOUND", WM_READING_OK, 4, "CCGC" },
        { "graphics denied", "nvmlDeviceGetGraphics*", "NO_PERMISSION", WM_READING_DENIED,
          4, "CCMC" },
        { "MPS fails", "nvmlDeviceGetMPS*", "UNKNOWN", WM_READING_FAILED, 4, "CCGC" },
        { "no list", "*RunningProcesses*", "NOT_SUPPORTED", WM_READING_UNSUPPORTED, 0, "" },
        { "nobody may know", "*RunningProcesses*", "NO_PERMISSION", WM_READING_DENIED, 0,
          "" },
        { "compute fails", "nvmlDeviceGetComputeRunning*", "TIMEOUT", WM_READING_FAILED, 3,
          "GGM" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char fault[128];
        struct wm_gpu_value list, type;

        print_message("  %s\n", cases[i].what);
        snprintf(fault, sizeof(fault), "{\"call\": \"%s\", \"error\": \"%s\"}",
                 cases[i].call, cases[i].error);
        use_everything(*state, fault);
        struct inventory inventory = inventory_open();
        refresh(&inventory, QUICK);

        const struct wm_gpu_sheet *sheet = inventory.sheets[0];
        size_t count = wm_gpu_sheet_rows(sheet, WM_GPU_PROCESS_LIST, &list);
        assert_int_equal(list.state, cases[i].state);
        assert_true((list.why != NULL) == (list.state != WM_READING_OK));
        assert_true((list.code > 0) == (list.state != WM_READING_OK));
        assert_int_equal(count, cases[i].count);
        for (size_t p = 0; p < count; p++) {
            type = wm_gpu_sheet_cell(sheet, WM_GPU_PROCESS_LIST, p, WM_GPU_PROCESS_TYPE);
            assert_int_equal(type.text[0], cases[i].types[p]);
        }
        expect_everything(&inventory, QUICK, NULL);
        inventory_close(&inventory);
    }
}

/* What a process uses, where the driver does not say it or says nonsense. */
static void test_process_shares(void **state)
{
    static const struct {
        const char *what, *process, *faults;
        double sm; /* below zero: not known */
        enum wm_reading_state state;
    } cases[] = {
        { "known", "\"sm\": 0.25", "", 0.25, WM_READING_OK },
        { "no sample", "\"sm\": null", "", 0, WM_READING_OK },
        { "none found", "\"sm\": 0.25",
          "{\"call\": \"nvmlDeviceGetProcessUtilization\", \"error\": \"NOT_FOUND\"}", 0,
          WM_READING_OK },
        { "impossible", "\"sm\": 2.5", "", -1, WM_READING_FAILED },
        { "not supported", "\"sm\": 0.25",
          "{\"call\": \"nvmlDeviceGetProcessUtilization\", \"error\": \"NOT_SUPPORTED\"}",
          -1, WM_READING_UNSUPPORTED },
        { "no such call", "\"sm\": 0.25",
          "{\"call\": \"nvmlDeviceGetProcessUtilization\", \"error\": "
          "\"FUNCTION_NOT_FOUND\"}",
          -1, WM_READING_UNSUPPORTED },
        { "denied", "\"sm\": 0.25",
          "{\"call\": \"nvmlDeviceGetProcessUtilization\", \"error\": \"NO_PERMISSION\"}",
          -1, WM_READING_DENIED },
        { "never enough room", "\"sm\": 0.25",
          "{\"call\": \"nvmlDeviceGetProcessUtilization\", \"error\": "
          "\"INSUFFICIENT_SIZE\"}",
          -1, WM_READING_FAILED },
        { "many", "\"sm\": 0.001, \"count\": 500", "", 0, WM_READING_OK },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char gpu[256];
        struct wm_gpu_value value;

        print_message("  %s\n", cases[i].what);
        snprintf(gpu, sizeof(gpu), "\"processes\": {\"pid\": 1001, %s}", cases[i].process);
        use_gpu(*state, gpu, cases[i].faults);
        struct inventory inventory = inventory_open();
        refresh(&inventory, QUICK);
        assert_true(wm_gpu_sheet_rows(inventory.sheets[0], WM_GPU_PROCESS_LIST, &value) >=
                    1);
        value = wm_gpu_sheet_cell(inventory.sheets[0], WM_GPU_PROCESS_LIST, 0,
                                  WM_GPU_PROCESS_SM);
        assert_int_equal(value.state, cases[i].state);
        if (cases[i].state == WM_READING_OK)
            assert_float_equal(value.number, cases[i].sm, 1e-9);
        else
            assert_non_null(value.why);
        inventory_close(&inventory);
    }
}

/* What the driver calls those that /proc does not show. */
static void test_process_names(void **state)
{
    /* Beyond the last pid that the kernel gives. */
    static const struct {
        const char *what, *process;
        const char *name; /* NULL: not told */
    } cases[] = {
        { "a path", "\"pid\": 2000000001, \"name\": \"/usr/bin/train\"", "train" },
        { "with arguments",
          "\"pid\": 2000000001, \"name\": \"/usr/bin/python3 /home/a/x.py\"", "python3" },
        { "no path", "\"pid\": 2000000001, \"name\": \"python3 -m x/y\"",
          "python3 -m x/y" },
        { "a folder", "\"pid\": 2000000001, \"name\": \"/usr/bin/\"", NULL },
        { "hostile", "\"pid\": 2000000001, \"name\": \"/a\\u001b[2J\\u00e4\"",
          "a?[2J\xc3\xa4" },
        { "unknown", "\"pid\": 2000000001", NULL },
        { "in /proc", "\"pid\": 1, \"name\": \"/sbin/other\"", NULL },
    };
    static const char *const faults[] = {
        "{\"call\": \"nvmlSystemGetProcessName\", \"error\": \"NO_PERMISSION\"}",
        "{\"call\": \"nvmlSystemGetProcessName\", \"error\": \"FUNCTION_NOT_FOUND\"}",
    };

    for (size_t i = 0; i < ARRAY_LEN(cases) + ARRAY_LEN(faults); i++) {
        bool is_faulty = i >= ARRAY_LEN(cases);
        size_t row = is_faulty ? 0 : i;
        struct wm_gpu_value value;
        char gpu[256];

        print_message("  %s\n", is_faulty ? faults[i - ARRAY_LEN(cases)] : cases[i].what);
        snprintf(gpu, sizeof(gpu), "\"processes\": {%s}", cases[row].process);
        use_gpu(*state, gpu, is_faulty ? faults[i - ARRAY_LEN(cases)] : "");
        struct inventory inventory = inventory_open();
        refresh(&inventory, QUICK);
        assert_int_equal(
            wm_gpu_sheet_rows(inventory.sheets[0], WM_GPU_PROCESS_LIST, &value), 1);
        value = wm_gpu_sheet_cell(inventory.sheets[0], WM_GPU_PROCESS_LIST, 0,
                                  WM_GPU_PROCESS_NAME);
        if (cases[row].name && !is_faulty)
            assert_string_equal(value.text, cases[row].name);
        else
            assert_string_equal(value.why, "not reported by nvml");
        inventory_close(&inventory);
    }
}

/* What the fake driver does not do, in a few calls of our own. */

static struct nvmlDevice_st {
    unsigned pid; /* of the one process of a part; 0: the whole GPU */
} devices[] = { { 0 }, { 71 }, { 72 } };

static const char *no_text(int status)
{
    (void)status;
    return NULL;
}

struct own {
    struct nvml_library library;
    struct gpu_nvml_gpu gpu;
    struct inventory inventory;
};

static void own_open(struct own *own)
{
    *own = (struct own) {
        .library.api.error_string = no_text,
        .gpu = { .is_reached = true, .mig_status = NVML_ERROR_NOT_SUPPORTED },
        .inventory.count = 1,
    };
    assert_int_equal(nvml_processes_init(&own->gpu.processes), NVML_SUCCESS);
    assert_int_equal(wm_gpu_sheet_new("nvml", &own->inventory.sheets[0], NULL), WM_OK);
}

static void own_close(struct own *own)
{
    nvml_processes_release(&own->gpu.processes);
    wm_gpu_sheet_free(own->inventory.sheets[0]);
}

static void own_ask(struct own *own, void (*tell)(struct gpu_nvml_gpu *gpu))
{
    struct gpu_nvml_gpu *gpu = &own->gpu;
    bool all;

    gpu->library = &own->library;
    gpu->values.api = &own->library.api;
    gpu->procfs = "/proc";
    gpu->values.device = &devices[0];
    gpu->sheet = own->inventory.sheets[0];
    gpu->groups = gpu->fixed = QUICK;
    wm_gpu_sheet_ask(gpu->sheet, QUICK);
    wm_gpu_sheet_begin(gpu->sheet, &all);
    tell(gpu);
    wm_gpu_sheet_end(gpu->sheet);
    wm_gpu_sheet_collect(gpu->sheet, "late");
}

static int endless_text(nvml_device device, char *text, unsigned size)
{
    (void)device;
    memset(text, 'x', size);
    return NVML_SUCCESS;
}

static void test_endless_text(void **state)
{
    struct own own;
    (void)state;

    own_open(&own);
    own.library.api.serial = endless_text;
    own_ask(&own, gpu_nvml_tell_identity);
    assert_int_equal(strspn(get(&own.inventory, 0, WM_GPU_SERIAL).text, "x"), 255);
    expect_missing(&own.inventory, 0, WM_GPU_NAME, WM_READING_UNSUPPORTED,
                   "unknown NVML error");
    own_close(&own);
}

static struct nvml_memory_v2 memory_answer;

static int answer_memory(nvml_device device, struct nvml_memory_v2 *memory)
{
    (void)device;
    *memory = memory_answer;
    return NVML_SUCCESS;
}

static void test_impossible_memory(void **state)
{
    static const struct {
        const char *what;
        unsigned long long total, reserved, free, used;
        bool is_possible;
    } cases[] = {
        { "all of it", 100, 10, 0, 90, true },
        { "none at all", 0, 0, 0, 0, true },
        { "more in use than there is", 100, 0, 0, 101, false },
        { "more free than there is", 100, 0, 101, 0, false },
        { "more kept than there is", 100, 101, 0, 0, false },
        { "not available", NVML_NOT_AVAILABLE, 0, 0, 0, false },
    };
    static const enum wm_gpu_field fields[] = {
        WM_GPU_MEMORY_TOTAL,
        WM_GPU_MEMORY_USED,
        WM_GPU_MEMORY_FREE,
        WM_GPU_MEMORY_RESERVED,
    };
    struct own own;
    (void)state;

    own_open(&own);
    own.library.api.memory_v2 = answer_memory;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("  %s\n", cases[i].what);
        memory_answer = (struct nvml_memory_v2) {
            .total = cases[i].total,
            .reserved = cases[i].reserved,
            .free = cases[i].free,
            .used = cases[i].used,
        };
        own_ask(&own, gpu_nvml_tell_numbers);
        for (size_t f = 0; f < ARRAY_LEN(fields); f++)
            assert_int_equal(get(&own.inventory, 0, fields[f]).state,
                             cases[i].is_possible ? WM_READING_OK : WM_READING_FAILED);
    }
    own_close(&own);
}

static struct nvml_field_value field_answer;

static int answer_field(nvml_device device, int count, struct nvml_field_value *values)
{
    (void)device;
    for (int i = 0; i < count; i++) {
        values[i].type = field_answer.type;
        values[i].status = field_answer.status;
        values[i].value = field_answer.value;
    }
    return NVML_SUCCESS;
}

static void test_field_types(void **state)
{
    static const struct {
        const char *what;
        struct nvml_field_value answer;
        enum wm_reading_state state;
        double celsius;
    } cases[] = {
        { "double",
          { .type = NVML_VALUE_DOUBLE, .value.real = 61.5 },
          WM_READING_OK,
          61.5 },
        { "unsigned int",
          { .type = NVML_VALUE_UNSIGNED_INT, .value.unsigned_int = 62 },
          WM_READING_OK,
          62 },
        { "unsigned long",
          { .type = NVML_VALUE_UNSIGNED_LONG, .value.unsigned_long = 63 },
          WM_READING_OK,
          63 },
        { "unsigned long long",
          { .type = NVML_VALUE_UNSIGNED_LONG_LONG, .value.unsigned_long_long = 64 },
          WM_READING_OK,
          64 },
        { "signed long long",
          { .type = NVML_VALUE_SIGNED_LONG_LONG, .value.signed_long_long = -65 },
          WM_READING_OK,
          -65 },
        { "signed int",
          { .type = NVML_VALUE_SIGNED_INT, .value.signed_int = -66 },
          WM_READING_OK,
          -66 },
        { "unsigned short",
          { .type = NVML_VALUE_UNSIGNED_SHORT, .value.unsigned_short = 67 },
          WM_READING_OK,
          67 },
        { "a type to come", { .type = 7, .value.unsigned_int = 68 }, WM_READING_FAILED, 0 },
        { "no number",
          { .type = NVML_VALUE_DOUBLE, .value.real = NAN },
          WM_READING_FAILED,
          0 },
        { "too cold",
          { .type = NVML_VALUE_SIGNED_INT, .value.signed_int = -274 },
          WM_READING_FAILED,
          0 },
        { "too hot",
          { .type = NVML_VALUE_UNSIGNED_INT, .value.unsigned_int = 1001 },
          WM_READING_FAILED,
          0 },
        { "failed", { .status = NVML_ERROR_TIMEOUT }, WM_READING_FAILED, 0 },
    };
    struct own own;
    (void)state;

    own_open(&own);
    own.library.api.field_values = answer_field;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("  %s\n", cases[i].what);
        field_answer = cases[i].answer;
        own_ask(&own, gpu_nvml_tell_numbers);

        struct wm_gpu_value value = get(&own.inventory, 0, WM_GPU_TEMPERATURE_MEMORY);
        assert_int_equal(value.state, cases[i].state);
        if (value.state == WM_READING_OK)
            assert_float_equal(value.number, cases[i].celsius, 1e-9);

        /* Bytes and milliwatts are not below zero. */
        if (value.state == WM_READING_OK && cases[i].celsius < 0) {
            value = get(&own.inventory, 0, WM_GPU_NVLINK_SENT);
            assert_int_equal(value.state, WM_READING_FAILED);
            value = get(&own.inventory, 0, WM_GPU_POWER_INSTANT);
            assert_int_equal(value.state, WM_READING_FAILED);
        }
    }
    own_close(&own);
}

static int list_part(nvml_device device, unsigned *count, void *entries)
{
    const struct nvml_process_v2 entry = {
        .pid = device->pid,
        .memory = 1000,
        .gpu_instance = NVML_NO_INSTANCE,
        .compute_instance = NVML_NO_INSTANCE,
    };

    if (device->pid == 0)
        return NVML_ERROR_NO_PERMISSION;
    memcpy(entries, &entry, sizeof(entry));
    *count = 1;
    return NVML_SUCCESS;
}

static void test_processes_of_parts_alone(void **state)
{
    static const struct process expected[] = {
        { 71, "C", 1000, -1, -1, -1, -1, 5, 0 },
        { 72, "C", 1000, -1, -1, -1, -1, 6, 1 },
    };
    struct own own;
    (void)state;

    own_open(&own);
    own.library.api.lists[NVML_LIST_COMPUTE].v3 = list_part;
    own.gpu.mig_status = NVML_SUCCESS;
    own.gpu.mig_mode = NVML_ENABLED;
    own.gpu.parts.items[0] = (struct nvml_part) { &devices[1], 5, 0 };
    own.gpu.parts.items[1] = (struct nvml_part) { &devices[2], 6, 1 };
    own.gpu.parts.count = 2;
    own_ask(&own, gpu_nvml_tell_processes);
    expect_processes(&own.inventory, 0, expected, ARRAY_LEN(expected));
    own_close(&own);
}

/* Why an instance of a process is not known. */
static void test_instances(void **state)
{
    static const char whole[] = "the GPU is not partitioned",
                      not_told[] = "not reported by nvml";
    static const struct {
        const char *what;
        int mig_status;
        unsigned mig_mode;
        struct nvml_part part; /* the GPU's own list is denied where it has a handle */
        const char *why;       /* NULL: it is known */
    } cases[] = {
        { "no such mode", NVML_ERROR_NOT_SUPPORTED, NVML_ENABLED, { NULL, 0, 0 }, whole },
        { "no such call", NVML_ERROR_FUNCTION_NOT_FOUND, 0, { NULL, 0, 0 }, whole },
        { "switched off", NVML_SUCCESS, NVML_DISABLED, { NULL, 0, 0 }, whole },
        { "switched on, no part", NVML_SUCCESS, NVML_ENABLED, { NULL, 0, 0 }, not_told },
        { "nobody knows", NVML_ERROR_UNKNOWN, NVML_DISABLED, { NULL, 0, 0 }, not_told },
        { "a part", NVML_SUCCESS, NVML_ENABLED, { &devices[1], 5, 0 }, NULL },
        { "a part that does not say which",
          NVML_SUCCESS,
          NVML_ENABLED,
          { &devices[1], NVML_INSTANCE_NOT_TOLD, NVML_INSTANCE_NOT_TOLD },
          not_told },
    };
    struct own own;
    (void)state;

    own_open(&own);
    own.library.api.lists[NVML_LIST_COMPUTE].v3 = list_part;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_gpu_value value;

        print_message("  %s\n", cases[i].what);
        own.gpu.mig_status = cases[i].mig_status;
        own.gpu.mig_mode = cases[i].mig_mode;
        own.gpu.parts.items[0] = cases[i].part;
        own.gpu.parts.count = cases[i].part.handle ? 1 : 0;
        devices[0].pid = cases[i].part.handle ? 0 : 70;
        own_ask(&own, gpu_nvml_tell_processes);
        assert_int_equal(
            wm_gpu_sheet_rows(own.inventory.sheets[0], WM_GPU_PROCESS_LIST, &value), 1);
        for (int field = WM_GPU_PROCESS_GPU_INSTANCE;
             field <= WM_GPU_PROCESS_COMPUTE_INSTANCE; field++) {
            value = wm_gpu_sheet_cell(own.inventory.sheets[0], WM_GPU_PROCESS_LIST, 0,
                                      (size_t)field);
            if (cases[i].why)
                assert_string_equal(value.why, cases[i].why);
            else
                assert_int_equal(value.state, WM_READING_OK);
        }
    }
    devices[0].pid = 0;
    own_close(&own);
}

static int put_entries(const struct nvml_process_v2 *list, unsigned listed, unsigned *count,
                       void *entries)
{
    assert_true(*count >= listed);
    memcpy(entries, list, listed * sizeof(*list));
    *count = listed;
    return NVML_SUCCESS;
}

/* With instances, as drivers write them that do not know whether they matter. */
static int list_compute(nvml_device device, unsigned *count, void *entries)
{
    static const struct nvml_process_v2 list[] = {
        { 72, 1000, 0, 0 }, { 71, 1000, 0, 0 },          { 0, 9, 0, 0 },
        { 71, 500, 0, 0 },  { 0xFFFFFFFFU, 1000, 0, 0 },
    };
    (void)device;
    return put_entries(list, ARRAY_LEN(list), count, entries);
}

static int list_graphics(nvml_device device, unsigned *count, void *entries)
{
    static const struct nvml_process_v2 list[] = {
        { 71, 2000, 0, 0 },
        { 72, NVML_NOT_AVAILABLE, 0, 0 },
    };
    (void)device;
    return put_entries(list, ARRAY_LEN(list), count, entries);
}

static struct {
    struct nvml_process_sample samples[4];
    unsigned count;
    unsigned long long last_seen_us; /* what the driver must be asked from */
} use_answer;

static int answer_use(nvml_device device, struct nvml_process_sample *samples,
                      unsigned *count, unsigned long long last_seen_us)
{
    (void)device;
    assert_int_equal(last_seen_us, use_answer.last_seen_us);
    assert_true(*count >= use_answer.count);
    if (use_answer.count == 0)
        return NVML_ERROR_NOT_FOUND;
    memcpy(samples, use_answer.samples, use_answer.count * sizeof(*samples));
    *count = use_answer.count;
    return NVML_SUCCESS;
}

static void test_lists_and_samples(void **state)
{
    static const struct {
        const char *what;
        struct nvml_process_sample samples[4];
        unsigned count;
        unsigned long long last_seen_us;
        double sm[2]; /* of 71 and 72; below zero: not known */
    } steps[] = {
        { "the newest of each",
          { { 72, 150, 30, 0, 0, 0 },
            { 71, 200, 20, 0, 0, 0 },
            { 71, 100, 10, 0, 0, 0 },
            { 0, 900, 50, 0, 0, 0 } },
          4,
          0,
          { 0.2, 0.3 } },
        { "an old one again", { { 71, 150, 90, 0, 0, 0 } }, 1, 200, { 0.2, 0.3 } },
        { "nothing new", { { 0 } }, 0, 200, { 0.2, 0.3 } },
        { "one with an impossible share and time",
          { { 71, ~0ULL, 4000000, 0, 0, 0 }, { 72, 300, 40, 0, 0, 0 } },
          2,
          200,
          { -1, 0.4 } },
        { "one of the two", { { 71, 400, 5, 0, 0, 0 } }, 1, 300, { 0.05, 0 } },
    };
    struct own own;
    (void)state;

    own_open(&own);
    own.library.api.lists[NVML_LIST_COMPUTE].v3 = list_compute;
    own.library.api.lists[NVML_LIST_GRAPHICS].v3 = list_graphics;
    own.library.api.process_utilization = answer_use;
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        const struct process expected[] = {
            { 71, "C+G", 2000, steps[i].sm[0], 0, 0, 0, -1, -1 },
            { 72, "C+G", 1000, steps[i].sm[1], 0, 0, 0, -1, -1 },
        };

        print_message("  %s\n", steps[i].what);
        memcpy(use_answer.samples, steps[i].samples, sizeof(use_answer.samples));
        use_answer.count = steps[i].count;
        use_answer.last_seen_us = steps[i].last_seen_us;
        own.gpu.processes.asked_ns = 0; /* as if it were later */
        own_ask(&own, gpu_nvml_tell_processes);
        expect_processes(&own.inventory, 0, expected, ARRAY_LEN(expected));
    }
    own_close(&own);
}

static void test_migs(void **state)
{
    static const struct {
        const char *uuid, *name;
        double gpu_instance, compute_instance, multiprocessors, total, used;
    } expected[] = {
        { "MIG-a0a0a0a0-1111-2222-3333-444444444444", "SIMULATED MIG 3g.40gb", 2, 1, 60,
          42949672960, 3221225472 },
        { "MIG-a2a2a2a2-1111-2222-3333-444444444444", "SIMULATED MIG 1g.10gb", 9, 0, 16,
          10737418240, 104857600 },
    };

    use_everything(*state, "");
    struct inventory inventory = inventory_open();
    struct wm_gpu_value value;
    refresh(&inventory, QUICK);
    assert_int_equal(wm_gpu_sheet_rows(inventory.sheets[0], WM_GPU_MIG_LIST, &value), 0);
    assert_int_equal(wm_gpu_sheet_rows(inventory.sheets[1], WM_GPU_MIG_LIST, &value),
                     ARRAY_LEN(expected));
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        value = wm_gpu_sheet_cell(inventory.sheets[1], WM_GPU_MIG_LIST, i, WM_GPU_MIG_UUID);
        assert_string_equal(value.text, expected[i].uuid);
        value = wm_gpu_sheet_cell(inventory.sheets[1], WM_GPU_MIG_LIST, i, WM_GPU_MIG_NAME);
        assert_string_equal(value.text, expected[i].name);
        value = wm_gpu_sheet_cell(inventory.sheets[1], WM_GPU_MIG_LIST, i,
                                  WM_GPU_MIG_GPU_INSTANCE);
        assert_float_equal(value.number, expected[i].gpu_instance, 0);
        value = wm_gpu_sheet_cell(inventory.sheets[1], WM_GPU_MIG_LIST, i,
                                  WM_GPU_MIG_COMPUTE_INSTANCE);
        assert_float_equal(value.number, expected[i].compute_instance, 0);
        value = wm_gpu_sheet_cell(inventory.sheets[1], WM_GPU_MIG_LIST, i,
                                  WM_GPU_MIG_MULTIPROCESSORS);
        assert_float_equal(value.number, expected[i].multiprocessors, 0);
        value = wm_gpu_sheet_cell(inventory.sheets[1], WM_GPU_MIG_LIST, i,
                                  WM_GPU_MIG_MEMORY_TOTAL);
        assert_float_equal(value.number, expected[i].total, 0);
        value = wm_gpu_sheet_cell(inventory.sheets[1], WM_GPU_MIG_LIST, i,
                                  WM_GPU_MIG_MEMORY_USED);
        assert_float_equal(value.number, expected[i].used, 0);
    }
    inventory_close(&inventory);
}

/* GPUs that do not answer. */

static void expect_unreached(const struct inventory *inventory, size_t gpu,
                             enum wm_reading_state state, const char *why, bool but_fixed)
{
    for (size_t i = 0; i < ARRAY_LEN(everything); i++) {
        enum wm_gpu_field field = everything[i].field;
        const struct wm_gpu_field_info *info = wm_gpu_field_info(field);
        bool is_known = field == WM_GPU_LABEL || field == WM_GPU_VENDOR ||
                        field == WM_GPU_SOURCE || field == WM_GPU_KERNEL_DRIVER ||
                        field == WM_GPU_DRIVER_VERSION || field == WM_GPU_NVML_VERSION ||
                        field == WM_GPU_CUDA_VERSION || (but_fixed && info->fixed);

        if (info->asked_with == WM_GPU_THROUGHPUT)
            continue;
        if (is_known)
            assert_int_equal(get(inventory, gpu, field).state, WM_READING_OK);
        else
            expect_missing(inventory, gpu, field, state, why);
    }

    expect_missing(inventory, gpu, WM_GPU_TEMPERATURE_HOTSPOT, WM_READING_UNSUPPORTED,
                   "not reported by nvml");

    struct wm_gpu_value list;
    assert_int_equal(wm_gpu_sheet_rows(inventory->sheets[gpu], WM_GPU_PROCESS_LIST, &list),
                     0);
    assert_int_equal(list.state, state);
    assert_string_equal(list.why, why);
}

static void test_a_gpu_comes_late(void **state)
{
    use_everything(*state, "{\"call\": \"nvmlDeviceGetHandleByIndex_v2\", \"gpu\": 0, "
                           "\"to\": 0.5, \"error\": \"NO_PERMISSION\"}");
    struct inventory inventory = inventory_open();
    assert_int_equal(inventory.count, 2);
    refresh(&inventory, QUICK);
    expect_unreached(&inventory, 0, WM_READING_DENIED, "Insufficient Permissions", false);
    expect_text(&inventory, 1, WM_GPU_NAME, "SIMULATED partitioned");

    wait_ms(550);
    refresh(&inventory, QUICK);
    expect_everything(&inventory, QUICK, NULL);
    inventory_close(&inventory);
}

static void test_a_gpu_is_lost_and_found(void **state)
{
    /* All calls about it, and the first time also that for its handle. */
    use_everything(*state, "{\"call\": \"nvmlDevice*\", \"gpu\": 0, \"from\": 0.5, "
                           "\"to\": 1, \"error\": \"GPU_IS_LOST\"}");
    struct inventory inventory = inventory_open();
    refresh(&inventory, QUICK);
    expect_everything(&inventory, QUICK, NULL);

    wait_ms(550);
    for (int i = 0; i < 2; i++) {
        refresh(&inventory, QUICK);
        expect_unreached(&inventory, 0, WM_READING_FAILED, "GPU is lost", true);
        expect_number(&inventory, 1, WM_GPU_TEMPERATURE, 45);
    }

    wait_ms(550);
    refresh(&inventory, QUICK);
    expect_everything(&inventory, QUICK, NULL);
    inventory_close(&inventory);
}

/* Whoever notices, the handle is asked for anew, by the identity. */
static void test_a_lost_gpu_is_looked_for(void **state)
{
    static const char *const calls[] = { "nvmlDeviceGetTemperature", "nvmlDeviceGetSerial",
                                         "nvmlDeviceGetComputeRunning*" };

    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        char faults[256];

        snprintf(faults, sizeof(faults),
                 "{\"call\": \"%s\", \"gpu\": 0, \"error\": \"GPU_IS_LOST\"}, "
                 "{\"call\": \"nvmlDeviceGetHandleByUUID\", \"error\": \"TIMEOUT\"}",
                 calls[i]);
        use_everything(*state, faults);
        struct inventory inventory = inventory_open();
        refresh(&inventory, QUICK);
        expect_number(&inventory, 0, WM_GPU_PCI_REPLAYS, 7);
        refresh(&inventory, QUICK);
        expect_missing(&inventory, 0, WM_GPU_PCI_REPLAYS, WM_READING_FAILED, "Timeout");
        expect_number(&inventory, 1, WM_GPU_PCI_REPLAYS, 0);
        inventory_close(&inventory);
    }
}

/* Lost from the start, so that not even what never changes is known. */
static void test_a_lost_gpu_comes_back(void **state)
{
    use_everything(*state, "{\"call\": \"nvmlDeviceGet[!H]*\", \"gpu\": 0, "
                           "\"to\": 0.5, \"error\": \"GPU_IS_LOST\"}");
    struct inventory inventory = inventory_open();
    refresh(&inventory, QUICK);
    expect_unreached(&inventory, 0, WM_READING_FAILED, "GPU is lost", false);
    wait_ms(550);
    refresh(&inventory, QUICK);
    expect_everything(&inventory, QUICK, NULL);
    inventory_close(&inventory);
}

/* Opening. */

static void test_open_failures(void **state)
{
    static const struct {
        const char *what, *json;
        int status;
        const char *complains_of;
    } cases[] = {
        { "no GPU", "{\"gpus\": []}", WM_ENODEV, "sees no GPU" },
        { "too many", "{\"gpus\": [{\"count\": 1025}]}", WM_EFORMAT, "1025 GPUs" },
        { "no module",
          "{\"gpus\": [{}], \"faults\": [{\"call\": \"nvmlInit_v2\", \"error\": "
          "\"DRIVER_NOT_LOADED\"}]}",
          WM_ENODEV, "kernel module is not loaded" },
        { "no permission",
          "{\"gpus\": [{}], \"faults\": [{\"call\": \"nvmlInit_v2\", \"error\": "
          "\"NO_PERMISSION\"}]}",
          WM_EACCES, "/dev/nvidiactl" },
        { "half an update",
          "{\"gpus\": [{}], \"faults\": [{\"call\": \"nvmlInit_v2\", \"error\": "
          "\"LIB_RM_VERSION_MISMATCH\"}]}",
          WM_EIO, "different versions" },
        { "no count",
          "{\"gpus\": [{}], \"faults\": [{\"call\": \"nvmlDeviceGetCount_v2\", \"error\": "
          "\"UNKNOWN\"}]}",
          WM_EIO, "count the GPUs" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct inventory inventory;
        struct wm_error err = { 0 };

        print_message("  %s\n", cases[i].what);
        use_scenario(*state, cases[i].json);
        assert_int_equal(try_open(&inventory, &err), cases[i].status);
        if (!strstr(err.text, cases[i].complains_of))
            fail_msg("%s", err.text);
        inventory_close(&inventory);
    }
}

static void test_no_library(void **state)
{
    const struct wm_source_config config = { .nvml = "/nowhere/libnvidia-ml.so.1" };
    struct inventory inventory = { .state = calloc(1, wm_gpu_nvml.state_size) };
    struct wm_error err = { 0 };
    (void)state;

    assert_non_null(inventory.state);
    assert_int_equal(wm_gpu_nvml.open(inventory.state, &config, &err), WM_ENODEV);
    assert_string_equal(err.text,
                        "no NVIDIA driver: /nowhere/libnvidia-ml.so.1 was not found");
    inventory_close(&inventory);
}

static void test_changed(void **state)
{
    static const struct {
        const char *what, *json;
    } cases[] = {
        { "another GPU", "{\"gpus\": [{}, {\"appears_at\": 0.5}]}" },
        { "another driver", "{\"gpus\": [{}], \"unloaded\": [0.5, 0.55]}" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("  %s\n", cases[i].what);
        use_scenario(*state, cases[i].json);
        struct inventory inventory = inventory_open();
        assert_int_equal(inventory.count, 1);
        assert_false(wm_gpu_nvml.changed(inventory.state));
        wait_ms(600);
        assert_true(wm_gpu_nvml.changed(inventory.state));
        refresh(&inventory, QUICK);
        inventory_close(&inventory);
    }
}

static void test_out_of_memory(void **state)
{
    struct wm_error err = { 0 };

    use_gpu(*state, "\"processes\": {\"pid\": 1, \"count\": 100}", "");
    for (long nth = 0;; nth++) {
        const struct wm_source_config config = {
            .nvml = test_build_path("tests/fake/libnvidia-ml.so.1"),
        };
        struct inventory inventory = { .state = calloc(1, wm_gpu_nvml.state_size) };

        test_fail_allocation(nth);
        int status = wm_gpu_nvml.open(inventory.state, &config, &err);
        long made = test_fail_allocation(-1);
        inventory_close(&inventory);
        if (made <= nth) {
            assert_int_equal(status, WM_OK);
            break;
        }
        assert_int_equal(status, WM_ENOMEM);
    }

    /* While asking: the processes are not all there, and it says so. */
    for (long nth = 0;; nth++) {
        struct inventory inventory = inventory_open();
        struct wm_gpu_value list, sm;
        bool all = false;

        wm_gpu_sheet_ask(inventory.sheets[0], QUICK);
        wm_gpu_sheet_begin(inventory.sheets[0], &all);
        test_fail_allocation(nth);
        wm_gpu_nvml.refresh(inventory.state, 0, QUICK, all, inventory.sheets[0]);
        long made = test_fail_allocation(-1);
        wm_gpu_sheet_end(inventory.sheets[0]);
        wm_gpu_sheet_collect(inventory.sheets[0], "late");
        expect_number(&inventory, 0, WM_GPU_TEMPERATURE, 45);

        size_t count = wm_gpu_sheet_rows(inventory.sheets[0], WM_GPU_PROCESS_LIST, &list);
        sm.state = WM_READING_FAILED;
        if (count > 0)
            sm = wm_gpu_sheet_cell(inventory.sheets[0], WM_GPU_PROCESS_LIST, 0,
                                   WM_GPU_PROCESS_SM);
        bool is_whole = list.state == WM_READING_OK && sm.state == WM_READING_OK;
        assert_int_equal(is_whole, made <= nth);
        assert_true(count == 100 || list.state != WM_READING_OK);
        inventory_close(&inventory);
        if (made <= nth)
            break;
    }
}

UNIT(gpu_nvml)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_make_dir, test_remove_dir)
    const struct CMUnitTest tests[] = {
        TEST(test_every_field),
        TEST(test_fixed_fields_are_asked_once),
        TEST(test_costs_are_known),
        TEST(test_one_call_costs_its_fields),
        TEST(test_other_forms),
        TEST(test_words),
        TEST(test_missing),
        TEST(test_one_field_by_number),
        TEST(test_without_uuid),
        TEST(test_text_is_cleaned),
        TEST(test_processes),
        TEST(test_process_entries),
        TEST(test_process_lists),
        TEST(test_process_shares),
        TEST(test_process_names),
        TEST(test_endless_text),
        TEST(test_impossible_memory),
        TEST(test_field_types),
        TEST(test_processes_of_parts_alone),
        TEST(test_instances),
        TEST(test_lists_and_samples),
        TEST(test_migs),
        TEST(test_a_gpu_comes_late),
        TEST(test_a_gpu_is_lost_and_found),
        TEST(test_a_lost_gpu_is_looked_for),
        TEST(test_a_lost_gpu_comes_back),
        TEST(test_open_failures),
        TEST(test_no_library),
        TEST(test_changed),
        TEST(test_out_of_memory),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
