/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_source_nvml.c - the NVML backend against the fake driver. Scenarios that
 * need it start in the past, so that no test has to wait for a curve.
 */
#include "test.h"
#include "test_sensor.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "source/source_ops.h"
#include "wattmeter/gpu.h"
#include "wattmeter/source.h"

/* The channels of a GPU. */
enum {
    ENERGY,
    POWER,
    POWER_AVERAGE,
    UTILIZATION,
    MEMORY_USED,
    MEMORY_TOTAL,
    TEMPERATURE,
    METRICS,
};

static const char *const metric_names[METRICS] = {
    [ENERGY] = "energy",
    [POWER] = "power",
    [POWER_AVERAGE] = "power_average",
    [UTILIZATION] = "utilization",
    [MEMORY_USED] = "memory_used",
    [MEMORY_TOTAL] = "memory_total",
    [TEMPERATURE] = "temperature",
};

static char *fake_library(void)
{
    static char path[512];
    snprintf(path, sizeof(path), "%s", test_build_path("tests/fake/libnvidia-ml.so.1"));
    return path;
}

static void use_scenario(const char *dir, const char *json)
{
    char path[512];
    test_write_file(dir, "scenario.json", json);
    snprintf(path, sizeof(path), "%s/scenario.json", dir);
    setenv("FAKE_NVML_SCENARIO", path, 1);
}

static void use_scenario_file(const char *name)
{
    char path[512];
    snprintf(path, sizeof(path), "tests/fake/scenarios/%s", name);
    setenv("FAKE_NVML_SCENARIO", test_source_path(path), 1);
}

static int try_open(const char *gpus, struct wm_source **ret_source, struct wm_error *err)
{
    const struct wm_source_config config = { .nvml = fake_library(), .gpus = gpus };
    return wm_source_open("nvml", &config, ret_source, err);
}

static struct wm_source *open_source(const char *gpus)
{
    struct wm_source *source = NULL;
    struct wm_error err = { 0 };

    if (try_open(gpus, &source, &err) < 0)
        fail_msg("%s", err.text);
    return source;
}

/* Room for the largest scenario here. */
static struct wm_reading readings[64 * METRICS];

static void read_source(struct wm_source *source)
{
    memset(readings, 0xFF, sizeof(readings));
    assert_int_equal(
        wm_source_read(source, readings, wm_source_channel_count(source), NULL), WM_OK);
}

static void test_channels(void **state)
{
    static const struct {
        const char *metric, *unit;
        enum wm_kind kind;
        int64_t period_ns;
        double value, tolerance;
    } expected[METRICS] = {
        { "energy", "J", WM_COUNTER, 100 * WM_NS_PER_MS, 1000, 9000 },
        { "power", "W", WM_GAUGE, 100 * WM_NS_PER_MS, 300, 0 },
        { "power_average", "W", WM_GAUGE, 100 * WM_NS_PER_MS, 300, 0 },
        { "utilization", "ratio", WM_GAUGE, WM_NS_PER_S / 6, 0.75, 0 },
        { "memory_used", "B", WM_GAUGE, 0, 8589934592, 0 },
        { "memory_total", "B", WM_GAUGE, 0, 85899345920, 0 },
        { "temperature", "celsius", WM_GAUGE, 0, 61, 0 },
    };
    (void)state;

    use_scenario_file("constant.json");
    struct wm_source *source = open_source(NULL);
    assert_int_equal(wm_source_channel_count(source), METRICS);
    assert_int_equal(wm_source_device_count(source), 1);

    int64_t before_ns = wm_clock_monotonic_ns();
    read_source(source);
    int64_t after_ns = wm_clock_monotonic_ns();

    for (size_t i = 0; i < METRICS; i++) {
        const struct wm_channel *channel = wm_source_channel(source, i);

        print_message("  %s\n", expected[i].metric);
        assert_string_equal(channel->source, "nvml");
        assert_string_equal(channel->device, "GPU-00000000-51a1-4ed0-8000-000000000000");
        assert_string_equal(channel->label, "gpu0");
        assert_string_equal(channel->model, "SIMULATED H100");
        assert_string_equal(channel->metric, expected[i].metric);
        assert_string_equal(channel->unit, expected[i].unit);
        assert_int_equal(channel->device_kind, WM_DEVICE_GPU);
        assert_int_equal(channel->kind, expected[i].kind);
        assert_int_equal(channel->origin, WM_SIMULATED);
        assert_int_equal(channel->period_ns, expected[i].period_ns);

        assert_int_equal(readings[i].state, WM_READING_OK);
        assert_true(readings[i].value >= expected[i].value);
        assert_true(readings[i].value <= expected[i].value + expected[i].tolerance);
        assert_true(i == 0 || readings[i].when_ns >= readings[i - 1].when_ns);
        assert_null(wm_source_why(source, i));
    }
    assert_in_range(readings[0].when_ns, before_ns, after_ns);
    assert_non_null(
        strstr(wm_source_detail(source), "driver 550.54.15, NVML 12.550.54.15, "));
    assert_non_null(strstr(wm_source_detail(source),
                           "tests/fake/libnvidia-ml.so.1, power by POWER_INSTANT"));
    wm_source_close(source);
}

static void test_identity(void **state)
{
    static const struct {
        const char *what, *gpu;
        const char *device, *model;
        enum wm_origin origin;
    } cases[] = {
        { "a real name", "{\"name\": \"NVIDIA H100\"}",
          "GPU-00000000-51a1-4ed0-8000-000000000000", "NVIDIA H100", WM_MEASURED },
        { "simulated, anywhere in the name", "{\"name\": \"NVIDIA SIMULATED\"}",
          "GPU-00000000-51a1-4ed0-8000-000000000000", "NVIDIA SIMULATED", WM_SIMULATED },
        { "no name", "{\"name\": \"\"}", "GPU-00000000-51a1-4ed0-8000-000000000000", NULL,
          WM_MEASURED },
        { "a name that would break a report", "{\"name\": \"H\\n100\\u001b[31m\\u00e9\"}",
          "GPU-00000000-51a1-4ed0-8000-000000000000", "H?100?[31m\xc3\xa9", WM_MEASURED },
        { "an identity that would", "{\"name\": \"x\", \"uuid\": \"GPU\\t1\"}", "GPU?1",
          "x", WM_MEASURED },
        { "no identity but the place",
          "{\"name\": \"x\", \"uuid\": \"\", \"pci_bus_id\": \"0000:3b:00.0\"}",
          "0000:3B:00.0", "x", WM_MEASURED },
        { "the longest name",
          "{\"name\": \"0123456789012345678901234567890123456789012345678901234567890123456"
          "7890123456789012345678901234\"}",
          "GPU-00000000-51a1-4ed0-8000-000000000000",
          "01234567890123456789012345678901234567890123456789012345678901234567890123456789"
          "012345678901234",
          WM_MEASURED },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char json[512];

        print_message("  %s\n", cases[i].what);
        snprintf(json, sizeof(json), "{\"gpus\": [%s]}", cases[i].gpu);
        use_scenario(*state, json);
        struct wm_source *source = open_source(NULL);
        const struct wm_channel *channel = wm_source_channel(source, 0);
        assert_string_equal(channel->device, cases[i].device);
        if (cases[i].model)
            assert_string_equal(channel->model, cases[i].model);
        else
            assert_null(channel->model);
        assert_int_equal(channel->origin, cases[i].origin);
        wm_source_close(source);
    }
}

static void test_choice(void **state)
{
    static const char scenario[] =
        "{\"gpus\": [{\"uuid\": \"GPU-aaaa1111\"}, {\"uuid\": \"GPU-aaaa2222\"},"
        " {\"uuid\": \"GPU-bb33\"}, {\"uuid\": \"GPU-bb\"}, {},"
        " {\"uuid\": \"\", \"pci_bus_id\": \"0000:3b:00.0\"}],"
        " \"faults\": [{\"call\": \"nvmlDeviceGetUUID\", \"gpu\": 4, \"error\": "
        "\"UNKNOWN\"}]}";
    static const struct {
        const char *words;
        int status;
        const char *result; /* labels, or what the error must say */
    } cases[] = {
        { NULL, WM_OK, "gpu0 gpu1 gpu2 gpu3 gpu5 " },
        { "all", WM_OK, "gpu0 gpu1 gpu2 gpu3 gpu5 " },
        { "0000:3B:00.0", WM_OK, "gpu5 " },
        { "0000:3C:00.0", WM_EINVAL, "'0000:3C:00.0' is no GPU" },
        { "0", WM_OK, "gpu0 " },
        { "3", WM_OK, "gpu3 " },
        { "2,0", WM_OK, "gpu0 gpu2 " },
        { "1,1,GPU-aaaa2222", WM_OK, "gpu1 " },
        { "01", WM_OK, "gpu1 " },
        { " 0 , 2 ", WM_OK, "gpu0 gpu2 " },
        { "GPU-aaaa1111", WM_OK, "gpu0 " },
        { "GPU-aaaa1", WM_OK, "gpu0 " },
        { "GPU-bb", WM_OK, "gpu3 " }, /* exact, though gpu2 begins so too */
        { "GPU-bb3,0", WM_OK, "gpu0 gpu2 " },
        { "none", WM_ENODEV, "GPUs were switched off with --gpu none" },
        { "4", WM_EIO, "GPU 4 does not answer: Unknown Error" },
        { "1=GPU-aaaa1111", WM_EINVAL, "'1=GPU-aaaa1111' is no GPU of this machine" },
        { "0=", WM_EINVAL, "'0=' is no GPU of this machine" },
        { "=GPU-bb", WM_EINVAL, "'=GPU-bb' is no GPU of this machine" },
        { "6", WM_EINVAL,
          "'6' is not the number of a GPU; GPUs here: 0 (GPU-aaaa1111), "
          "1 (GPU-aaaa2222), 2 (GPU-bb33), 3 (GPU-bb), 4 (does not answer), 5 "
          "(0000:3B:00.0)" },
        { "0,7", WM_EINVAL, "'7' is not the number" },
        { "4294967296", WM_EINVAL, "'4294967296' is not the number" },
        { "99999999999999999999999", WM_EINVAL,
          "'99999999999999999999999' is not the number" },
        { "-1", WM_EINVAL, "'-1' is no GPU of this machine" },
        { "+1", WM_EINVAL, "'+1' is no GPU" },
        { "0x1", WM_EINVAL, "'0x1' is no GPU" },
        { "1.0", WM_EINVAL, "'1.0' is no GPU" },
        { "0 1", WM_EINVAL, "'0 1' is no GPU" },
        { "0;1", WM_EINVAL, "'0;1' is no GPU" },
        { "", WM_EINVAL, "'' names no GPU" },
        { " ", WM_EINVAL, "'' names no GPU" },
        { ",", WM_EINVAL, "'' names no GPU" },
        { "0,", WM_EINVAL, "'' names no GPU" },
        { "0,,1", WM_EINVAL, "'' names no GPU" },
        { "GPU-", WM_EINVAL, "'GPU-' fits several GPUs; GPUs here: 0 (GPU-aaaa1111)" },
        { "GPU-aaaa", WM_EINVAL, "'GPU-aaaa' fits several GPUs" },
        { "GPU-aaaa11112", WM_EIO, "GPU 4 does not answer" }, /* which may be it */
        { "gpu-aaaa1111", WM_EINVAL, "'gpu-aaaa1111' is no GPU" },
        { "all,0", WM_EINVAL, "'all' is no GPU" },
        { "0,none", WM_EINVAL, "'none' is no GPU" },
        { "ALL", WM_EINVAL, "'ALL' is no GPU" },
        { "MIG-1234", WM_EIO, "GPU 4 does not answer" },
        { "a-word-that-is-far-too-long-to-be-repeated-in-full-in-any-message", WM_EINVAL,
          "'a-word-that-is-far-too-long-to-be-repeated-in-fu' is no GPU" },
    };

    use_scenario(*state, scenario);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_source *source = NULL;
        struct wm_error err = { 0 };
        char labels[64] = "";

        print_message("  '%s'\n", cases[i].words ? cases[i].words : "(NULL)");
        assert_int_equal(try_open(cases[i].words, &source, &err), cases[i].status);
        if (cases[i].status < 0) {
            assert_null(source);
            assert_int_equal(err.status, cases[i].status);
            if (strncmp(err.text, cases[i].result, strlen(cases[i].result)) != 0)
                fail_msg("%s", err.text);
            continue;
        }
        for (size_t c = 0; c < wm_source_channel_count(source); c += METRICS) {
            strncat(labels, wm_source_channel(source, c)->label, 8);
            strncat(labels, " ", 2);
        }
        assert_string_equal(labels, cases[i].result);
        assert_int_equal(wm_source_device_count(source), 6);
        wm_source_close(source);
    }
}

static void test_choice_among_many(void **state)
{
    struct wm_source *source = NULL;
    struct wm_error err = { 0 };
    (void)state;

    use_scenario_file("many.json");
    assert_int_equal(try_open("64", &source, &err), WM_EINVAL);
    assert_non_null(
        strstr(err.text, "'64' is not the number of a GPU; GPUs here: 0 (GPU-"));
    assert_non_null(strstr(err.text, " and 6"));
    assert_non_null(strstr(err.text, " more"));

    source = open_source(NULL);
    assert_int_equal(wm_source_channel_count(source), 64 * METRICS);
    read_source(source);
    for (size_t i = 0; i < 64 * METRICS; i++)
        assert_int_equal(readings[i].state, WM_READING_OK);
    wm_source_close(source);
}

/* What a run samples without `channels` are the fields that the table says it samples. */
static void test_sampled_fields(void **state)
{
    const struct wm_gpu_field_info *info;
    size_t sampled = 0;

    (void)state;
    use_scenario_file("constant.json");
    struct wm_source *source = open_source(NULL);
    size_t count = wm_source_channel_count(source);
    for (unsigned field = 0; (info = wm_gpu_field_info(field)) != NULL; field++) {
        size_t channel = 0;
        if (!info->metric || info->on_demand)
            continue;
        while (channel < count &&
               strcmp(wm_source_channel(source, channel)->metric, info->metric) != 0)
            channel++;
        if (channel == count)
            fail_msg("%s is not sampled", info->metric);
        sampled++;
    }
    assert_int_equal(sampled, METRICS);
    wm_source_close(source);
}

static void test_no_library(void **state)
{
    char text[512], folder[512], named[512];
    const struct {
        const char *what, *library;
        const char *complains_of;
    } cases[] = {
        { "no such file", "/nonexistent/libnvidia-ml.so.1",
          "no NVIDIA driver: /nonexistent/libnvidia-ml.so.1 was not found" },
        { "no such name", "libno-such-nvml.so.1",
          "no NVIDIA driver: libno-such-nvml.so.1 was not found" },
        { "a text", text, "no NVIDIA driver: " },
        { "a folder", folder, "no NVIDIA driver: " },
        { "another library", "libm.so.6", "this NVML has no nvmlInit_v2" },
        { "where the driver is installed", NULL, "no NVIDIA driver: " },
    };

    test_write_file(*state, "text.so", "not a library\n");
    snprintf(text, sizeof(text), "%s/text.so", (char *)*state);
    snprintf(folder, sizeof(folder), "%s", (char *)*state);
    void *real = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct wm_source_config config = { .nvml = cases[i].library };
        struct wm_source *source = NULL;
        struct wm_error err = { 0 };

        if (!cases[i].library && real) {
            print_message("  %s: left out, there is a driver\n", cases[i].what);
            continue;
        }
        print_message("  %s\n", cases[i].what);
        assert_int_equal(wm_source_open("nvml", &config, &source, &err), WM_ENODEV);
        assert_null(source);
        snprintf(named, sizeof(named), "%.*s", (int)strlen(cases[i].complains_of),
                 err.text);
        assert_string_equal(named, cases[i].complains_of);
        assert_int_equal(wm_source_open("nvml", &config, &source, NULL), WM_ENODEV);
    }
    if (real)
        dlclose(real);
}

/* The loader's path may lead to a library where no GPU is to be seen. */
static void test_path_of_loader(void **state)
{
    const char *before = getenv("LD_LIBRARY_PATH");
    char path[4096];
    const struct wm_source_config config = { 0 };
    struct wm_source *source = NULL;
    struct wm_error err = { 0 };
    void *real = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);

    (void)state;
    if (real) {
        dlclose(real);
        skip();
    }
    snprintf(path, sizeof(path), "%s", before ? before : "");
    setenv("LD_LIBRARY_PATH", "/nonexistent", 1);
    int status = wm_source_open("nvml", &config, &source, &err);
    if (before)
        setenv("LD_LIBRARY_PATH", path, 1);
    else
        unsetenv("LD_LIBRARY_PATH");
    assert_int_equal(status, WM_ENODEV);
    assert_string_equal(err.text, "no NVIDIA driver: libnvidia-ml.so.1 was not found");
}

static void test_cannot_start(void **state)
{
    static const struct {
        const char *gpus, *call, *error;
        int status;
        const char *text;
    } cases[] = {
        { "{}", "nvmlInit_v2", "DRIVER_NOT_LOADED", WM_ENODEV,
          "kernel module is not loaded (NVML: Driver Not Loaded)" },
        { "{}", "nvmlInit_v2", "GPU_NOT_FOUND", WM_ENODEV, "sees no GPU" },
        { "{}", "nvmlInit_v2", "NO_PERMISSION", WM_EACCES, "/dev/nvidiactl" },
        { "{}", "nvmlInit_v2", "LIB_RM_VERSION_MISMATCH", WM_EIO, "different versions" },
        { "{}", "nvmlInit_v2", "UNKNOWN", WM_EIO, "NVML could not start: Unknown Error" },
        { "{}", "nvmlDeviceGetCount_v2", "GPU_IS_LOST", WM_EIO,
          "NVML could not count the GPUs: GPU is lost" },
        { "", "-", "UNKNOWN", WM_ENODEV, "sees no GPU" },
        { "{\"count\": 3}", "nvmlDeviceGetHandleByIndex_v2", "UNKNOWN", WM_EIO,
          "none of 3 GPUs" },
        { "{\"count\": 3}", "nvmlDeviceGetUUID", "UNKNOWN", WM_EIO, "none of 3 GPUs" },
        { "{\"count\": 3}", "nvmlDeviceGetUUID", "NO_PERMISSION", WM_EACCES,
          "see who may open /dev/nvidia* (NVML: Insufficient Permissions)" },
        { "{\"count\": 3}", "nvmlDeviceGetHandleByIndex_v2", "NO_PERMISSION", WM_EACCES,
          "no permission" },
        { "{\"count\": 3}, {\"uuid\": \"\"}", "nvmlDeviceGetUUID", "UNKNOWN", WM_EIO,
          "none of 4 GPUs" },
        { "{\"uuid\": \"\"}", "nvmlDeviceGetPciInfo_v3", "UNKNOWN", WM_EIO,
          "none of 1 GPUs" },
        { "{\"lost_at\": 0}", "-", "UNKNOWN", WM_EIO, "none of 1 GPUs" },
        { "{\"count\": 1025}", "-", "UNKNOWN", WM_EFORMAT, "claims to see 1025 GPUs" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_source *source = NULL;
        struct wm_error err = { 0 };
        char json[256];

        print_message("  %s from %s\n", cases[i].error, cases[i].call);
        snprintf(json, sizeof(json),
                 "{\"gpus\": [%s], \"faults\": [{\"call\": \"%s\", \"error\": \"%s\"}]}",
                 cases[i].gpus, cases[i].call, cases[i].error);
        use_scenario(*state, json);
        assert_int_equal(try_open(NULL, &source, &err), cases[i].status);
        assert_null(source);
        assert_non_null(strstr(err.text, cases[i].text));
    }
}

static bool has_word(const char *words, const char *word)
{
    char padded[128], wanted[64];

    snprintf(padded, sizeof(padded), " %s ", words);
    snprintf(wanted, sizeof(wanted), " %s ", word);
    return strstr(padded, wanted) != NULL;
}

/* What goes wrong on GPU 0 touches neither its other metrics nor GPU 1. */
static void test_one_call_fails(void **state)
{
    static const struct {
        const char *call, *error;
        const char *hit; /* metrics that suffer */
        enum wm_reading_state state;
        const char *why;
    } cases[] = {
        { "nvmlDeviceGetTotalEnergyConsumption", "\"NOT_SUPPORTED\"", "energy",
          WM_READING_UNSUPPORTED, "Not Supported" },
        { "nvmlDeviceGetTotalEnergyConsumption", "\"FUNCTION_NOT_FOUND\"", "energy",
          WM_READING_UNSUPPORTED, "Function Not Found" },
        { "nvmlDeviceGetTotalEnergyConsumption", "\"UNKNOWN\"", "energy", WM_READING_FAILED,
          "Unknown Error" },
        { "nvmlDeviceGetPowerUsage", "\"NO_PERMISSION\"", "", WM_READING_OK, NULL },
        { "nvmlDeviceGetFieldValues", "\"NO_PERMISSION\"", "power power_average",
          WM_READING_DENIED, "Insufficient Permissions" },
        { "nvmlDeviceGetFieldValues", "\"TIMEOUT\"", "power power_average",
          WM_READING_FAILED, "Timeout" },
        { "nvmlDeviceGetFieldValues", "77", "power power_average", WM_READING_FAILED,
          "Unknown Error" },
        { "nvmlDeviceGetFieldValues", "\"INVALID_ARGUMENT\"", "power power_average",
          WM_READING_FAILED, "Invalid Argument" },
        { "nvmlDeviceGetFieldValues:186", "\"TIMEOUT\"", "power", WM_READING_FAILED,
          "Timeout" },
        { "nvmlDeviceGetFieldValues:185", "\"NO_PERMISSION\"", "power_average",
          WM_READING_DENIED, "Insufficient Permissions" },
        { "nvmlDeviceGetFieldValues:185", "\"NOT_SUPPORTED\"", "power_average",
          WM_READING_UNSUPPORTED, "Not Supported" },
        { "nvmlDeviceGetUtilizationRates", "\"NOT_SUPPORTED\"", "utilization",
          WM_READING_UNSUPPORTED, "Not Supported" },
        { "nvmlDeviceGetMemoryInfo", "\"UNKNOWN\"", "", WM_READING_OK, NULL },
        { "nvmlDeviceGetMemoryInfo_v2", "\"FUNCTION_NOT_FOUND\"", "", WM_READING_OK, NULL },
        { "nvmlDeviceGetMemoryInfo_v2", "\"ARGUMENT_VERSION_MISMATCH\"", "", WM_READING_OK,
          NULL },
        { "nvmlDeviceGetMemoryInfo_v2", "\"TIMEOUT\"", "memory_used memory_total",
          WM_READING_FAILED, "Timeout" },
        { "nvmlDeviceGetMemoryInfo*", "\"FUNCTION_NOT_FOUND\"", "memory_used memory_total",
          WM_READING_UNSUPPORTED, "Function Not Found" },
        { "nvmlDeviceGetMemoryInfo*", "\"NOT_SUPPORTED\"", "memory_used memory_total",
          WM_READING_UNSUPPORTED, "Not Supported" },
        { "nvmlDeviceGetTemperature", "\"DEPRECATED\"", "", WM_READING_OK, NULL },
        { "nvmlDeviceGetTemperature", "\"FUNCTION_NOT_FOUND\"", "", WM_READING_OK, NULL },
        { "nvmlDeviceGetTemperature", "\"RESET_REQUIRED\"", "temperature",
          WM_READING_FAILED, "GPU requires restart" },
        { "nvmlDeviceGetTemperature*", "\"DEPRECATED\"", "temperature",
          WM_READING_UNSUPPORTED, "Deprecated" },
        { "nvmlDeviceGetName", "\"UNKNOWN\"", "", WM_READING_OK, NULL },
        { "nvmlSystemGet*", "\"UNKNOWN\"", "", WM_READING_OK, NULL },
        { "nvmlDeviceGet*RunningProcesses*", "\"UNKNOWN\"", "", WM_READING_OK, NULL },
        { "nvmlDeviceGetProcessUtilization", "\"UNKNOWN\"", "", WM_READING_OK, NULL },
        { "nvmlDeviceGetHandleByUUID", "\"UNKNOWN\"", "", WM_READING_OK, NULL },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char json[256];

        print_message("  %s: %s\n", cases[i].call, cases[i].error);
        snprintf(json, sizeof(json),
                 "{\"gpus\": [{\"count\": 2}],"
                 " \"faults\": [{\"call\": \"%s\", \"gpu\": 0, \"error\": %s}]}",
                 cases[i].call, cases[i].error);
        use_scenario(*state, json);
        struct wm_source *source = open_source(NULL);
        read_source(source);

        for (size_t m = 0; m < 2 * METRICS; m++) {
            bool hit = m < METRICS && has_word(cases[i].hit, metric_names[m]);
            assert_int_equal(readings[m].state, hit ? cases[i].state : WM_READING_OK);
            if (hit)
                assert_string_equal(wm_source_why(source, m), cases[i].why);
            else
                assert_null(wm_source_why(source, m));
        }
        wm_source_close(source);
    }
}

static void test_older_calls(void **state)
{
    use_scenario(*state,
                 "{\"gpus\": [{\"memory_total\": 1000, \"memory_reserved\": 10,"
                 " \"memory_used\": 100, \"temperature\": -7}],"
                 " \"faults\": [{\"call\": \"nvmlDeviceGetMemoryInfo_v2\","
                 " \"error\": \"FUNCTION_NOT_FOUND\"},"
                 " {\"call\": \"nvmlDeviceGetTemperature\", \"error\": \"DEPRECATED\"},"
                 " {\"call\": \"nvmlSystemGet*\", \"error\": \"UNKNOWN\"}]}");
    struct wm_source *source = open_source(NULL);
    read_source(source);
    assert_true(readings[MEMORY_USED].value ==
                110); /* the reserved part counts as used there */
    assert_true(readings[MEMORY_TOTAL].value == 1000);
    assert_true(readings[TEMPERATURE].value == -7);
    assert_non_null(strstr(wm_source_detail(source), "driver unknown, NVML unknown, "));
    wm_source_close(source);
}

static void test_values(void **state)
{
    static const char impossible[] = "the driver gave an impossible value";
    static const struct {
        const char *gpu;
        size_t metric;
        enum wm_reading_state state;
        double value;
    } cases[] = {
        { "\"power\": 71.5", POWER, WM_READING_OK, 71.5 },
        { "\"power\": 0", POWER, WM_READING_OK, 0 },
        { "\"power\": 4294967.294", POWER, WM_READING_OK, 4294967.294 },
        { "\"power\": 4294967.295", POWER, WM_READING_FAILED, 0 },
        { "\"utilization\": 0", UTILIZATION, WM_READING_OK, 0 },
        { "\"utilization\": 1", UTILIZATION, WM_READING_OK, 1 },
        { "\"utilization\": 1.01", UTILIZATION, WM_READING_FAILED, 0 },
        { "\"memory_used\": 85899345920, \"memory_reserved\": 0", MEMORY_USED,
          WM_READING_OK, 85899345920 },
        { "\"memory_used\": 85899345921", MEMORY_USED, WM_READING_FAILED, 0 },
        { "\"memory_used\": 85899345921", MEMORY_TOTAL, WM_READING_FAILED, 0 },
        { "\"memory_used\": 0, \"memory_total\": 0, \"memory_reserved\": 0", MEMORY_TOTAL,
          WM_READING_OK, 0 },
        { "\"temperature\": -40", TEMPERATURE, WM_READING_OK, -40 },
        { "\"temperature\": 1000", TEMPERATURE, WM_READING_OK, 1000 },
        { "\"temperature\": 1001", TEMPERATURE, WM_READING_FAILED, 0 },
        { "\"temperature\": -2", TEMPERATURE, WM_READING_OK, -2 },
        { "\"temperature\": -1", TEMPERATURE, WM_READING_FAILED, 0 }, /* 4294967295 */
        { "\"energy\": {\"mode\": \"stuck\", \"start\": 0}", ENERGY, WM_READING_OK, 0 },
        { "\"energy\": {\"mode\": \"stuck\", \"start\": 0.001}", ENERGY, WM_READING_OK,
          0.001 },
        { "\"energy\": {\"mode\": \"stuck\", \"start\": 9e12}", ENERGY, WM_READING_OK,
          9e12 },
        { "\"energy\": {\"mode\": \"stuck\", \"start\": 2e16}", ENERGY, WM_READING_FAILED,
          0 },
        { "\"energy\": {\"mode\": \"absent\"}", ENERGY, WM_READING_UNSUPPORTED, 0 },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char json[128];

        print_message("  %s\n", cases[i].gpu);
        snprintf(json, sizeof(json), "{\"gpus\": [{%s}]}", cases[i].gpu);
        use_scenario(*state, json);
        struct wm_source *source = open_source(NULL);
        read_source(source);
        assert_int_equal(readings[cases[i].metric].state, cases[i].state);
        assert_true(readings[cases[i].metric].value == cases[i].value);
        if (cases[i].state == WM_READING_FAILED)
            assert_string_equal(wm_source_why(source, cases[i].metric), impossible);
        wm_source_close(source);
    }
}

/* Each scenario is 100 s old when it is read, and draws 400 W by then. */
static void test_energy(void **state)
{
    static const struct {
        const char *what, *power, *energy;
        double joules, watts;
    } cases[] = {
        { "a counter", "400", "\"start\": 0", 40000, 400 },
        { "with a past", "400", "\"start\": 1000000", 1040000, 400 },
        { "that stands still", "400", "\"mode\": \"stuck\", \"start\": 4321.5", 4321.5, 0 },
        { "that began anew", "400", "\"start\": 1000000, \"reset_at\": 90", 4000, 400 },
        { "that wrapped, 41 times", "400", "\"start\": 1500, \"wrap\": 1000", 500, 400 },
        { "seldom refreshed", "400", "\"period_ms\": 60000", 24000, 0 },
        { "steps", "{\"shape\": \"step\", \"points\": [[0, 100], [50, 300], [75, 400]]}",
          "\"start\": 0", 100 * 50 + 300 * 25 + 400 * 25, 400 },
        { "lines", "[[20, 100], [60, 400]]", "\"start\": 0", 100 * 20 + 250 * 40 + 400 * 40,
          400 },
        { "a jump", "[[50, 100], [50, 400]]", "\"start\": 0", 100 * 50 + 400 * 50, 400 },
        { "a square",
          "{\"shape\": \"square\", \"low\": 50, \"high\": 400, \"period\": 16,"
          " \"duty\": 0.75}",
          "\"start\": 0", 6 * (400 * 12 + 50 * 4) + 400 * 4, 400 },
        { "lines again and again", "{\"points\": [[0, 0], [30, 600]], \"repeat\": 40}",
          "\"start\": 0", 2 * (300 * 30 + 600 * 10) + 200 * 20, 400 },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char json[512];
        int64_t start_ns = wm_clock_monotonic_ns() - 100 * WM_NS_PER_S;

        print_message("  %s\n", cases[i].what);
        snprintf(json, sizeof(json),
                 "{\"start_monotonic_ns\": %" PRId64
                 ", \"gpus\": [{\"power\": %s, \"energy\": {%s}}]}",
                 start_ns, cases[i].power, cases[i].energy);
        use_scenario(*state, json);
        struct wm_source *source = open_source(NULL);
        read_source(source);
        int64_t after_ns = wm_clock_monotonic_ns();

        /* A line that rises does so by less than 21 W in the first second. */
        double late_s = (double)(after_ns - start_ns) / 1e9 - 100;
        double most = cases[i].joules + (cases[i].watts + 21) * late_s;
        assert_true(readings[ENERGY].value >= cases[i].joules - 0.002);
        assert_true(readings[ENERGY].value <= most + 0.002);
        wm_source_close(source);
    }
}

static void test_lost(void **state)
{
    use_scenario(*state, "{\"gpus\": [{}, {\"lost_at\": 0.5}, {}]}");
    struct wm_source *source = open_source(NULL);
    const struct wm_gpu_process *processes;
    size_t lost = 0;

    assert_int_equal(wm_source_channel_count(source), 3 * METRICS);
    for (int tries = 0; lost < METRICS && tries < 1000; tries++) {
        read_source(source);
        lost = 0;
        for (size_t i = 0; i < 3 * METRICS; i++) {
            if (readings[i].state == WM_READING_OK)
                continue;
            assert_in_range(i, METRICS, 2 * METRICS - 1);
            assert_int_equal(readings[i].state, WM_READING_FAILED);
            assert_string_equal(wm_source_why(source, i), "GPU is lost");
            lost++;
        }
        usleep(10000);
    }
    assert_int_equal(lost, METRICS);
    assert_int_equal(wm_source_gpu_processes(source, &processes), 1);
    assert_string_equal(processes[0].device, wm_source_channel(source, METRICS)->device);
    assert_int_equal(processes[0].pid, 0);
    assert_int_equal(processes[0].state, WM_READING_FAILED);
    wm_source_close(source);
}

/* Of a GPU that takes 1 W more each second: `late` is how long after the moment that is
 * expected the reading came at most. */
static void assert_watts(double watts, double expected, double late)
{
    assert_true(watts >= expected - 0.2);
    assert_true(watts <= expected + late + 0.2);
}

static void test_power(void **state)
{
#define NO_FIELDS                                                                          \
    "{\"call\": \"nvmlDeviceGetFieldValues\", \"error\": \"FUNCTION_NOT_FOUND\"}"
#define FIELD(field, error)                                                                \
    "{\"call\": \"nvmlDeviceGetFieldValues:" field "\", \"error\": \"" error "\"}"
#define USAGE(error) "{\"call\": \"nvmlDeviceGetPowerUsage\", \"error\": \"" error "\"}"
#define MODULE "\"power_module\": 500"
    static const double missing = -1;
    static const struct {
        const char *what, *gpu, *faults;
        double instant, average; /* `missing`: see the state */
        enum wm_reading_state state;
        const char *detail;
    } cases[] = {
        { "both", "", "", 100, 99.5, WM_READING_OK, "power by POWER_INSTANT" },
        { "the call is of no concern", "", USAGE("UNKNOWN"), 100, 99.5, WM_READING_OK,
          "power by POWER_INSTANT" },
        { "both scopes", MODULE ", \"power_instant_scopes\": [0, 1]", "", 100, 99.5,
          WM_READING_OK, "power by POWER_INSTANT" },
        { "the module's alone",
          MODULE ", \"power_instant_scopes\": [1], \"power_average_scopes\": [1]", "", 500,
          500, WM_READING_OK, "power by POWER_INSTANT and averages of the whole module" },
        { "the module's and no average",
          MODULE ", \"power_instant_scopes\": [1], \"power_average_scopes\": []", "", 500,
          missing, WM_READING_UNSUPPORTED, "power by POWER_INSTANT of the whole module" },
        { "the module's average", MODULE ", \"power_average_scopes\": [1]", "", 100, 500,
          WM_READING_OK, "power by POWER_INSTANT, averages of the whole module" },
        { "a scope of the memory's", "\"power_instant_scopes\": [2]", "", 100, 99.5,
          WM_READING_OK, "power by nvmlDeviceGetPowerUsage" },
        { "no instant power", "\"power_instant_scopes\": []", "", 100, 99.5, WM_READING_OK,
          "power by nvmlDeviceGetPowerUsage" },
        { "no average", "\"power_average_scopes\": []", "", 100, missing,
          WM_READING_UNSUPPORTED, "power by POWER_INSTANT" },
        { "no such call", "", NO_FIELDS, 100, missing, WM_READING_UNSUPPORTED,
          "power by nvmlDeviceGetPowerUsage" },
        { "the other call means an average", "\"power_usage\": \"average\"", NO_FIELDS,
          99.5, missing, WM_READING_UNSUPPORTED, "power by nvmlDeviceGetPowerUsage" },
        { "an older driver than the field", "", FIELD("186", "INVALID_ARGUMENT"), 100, 99.5,
          WM_READING_OK, "power by nvmlDeviceGetPowerUsage" },
        { "a failure says nothing of what is supported", "", FIELD("186", "TIMEOUT"),
          missing, 99.5, WM_READING_FAILED, "power by POWER_INSTANT" },
        { "nor does a permission", "", FIELD("186", "NO_PERMISSION"), missing, 99.5,
          WM_READING_DENIED, "power by POWER_INSTANT" },
        { "no way at all", "", NO_FIELDS ", " USAGE("NOT_SUPPORTED"), missing, missing,
          WM_READING_UNSUPPORTED, "power by nothing" },
        { "the last way fails", "\"power_average_scopes\": []",
          FIELD("186", "NOT_SUPPORTED") ", " USAGE("TIMEOUT"), missing, missing,
          WM_READING_FAILED, "power by nvmlDeviceGetPowerUsage" },
    };
    char json[1024];

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("  %s\n", cases[i].what);
        /* 1 W more each second, for 100 seconds now. */
        int64_t now_ns = wm_clock_monotonic_ns();
        snprintf(json, sizeof(json),
                 "{\"start_monotonic_ns\": %" PRId64
                 ", \"gpus\": [{\"power\": [[0, 0], [500, 500]]%s%s}], \"faults\": [%s]}",
                 now_ns - 100 * WM_NS_PER_S, cases[i].gpu[0] ? ", " : "", cases[i].gpu,
                 cases[i].faults);
        use_scenario(*state, json);
        struct wm_source *source = open_source(NULL);
        read_source(source);
        double late = (double)(wm_clock_monotonic_ns() - now_ns) / 1e9;
        if (cases[i].instant == missing)
            assert_int_equal(readings[POWER].state, cases[i].state);
        else
            assert_watts(readings[POWER].value, cases[i].instant, late);
        if (cases[i].average != missing)
            assert_watts(readings[POWER_AVERAGE].value, cases[i].average, late);
        else
            assert_int_equal(readings[POWER_AVERAGE].state, cases[i].instant == missing
                                                                ? WM_READING_UNSUPPORTED
                                                                : cases[i].state);
        const char *detail = strstr(wm_source_detail(source), "power by ");
        assert_non_null(detail);
        assert_string_equal(detail, cases[i].detail);
        wm_source_close(source);
    }
}

static void test_detail(void **state)
{
    static const struct {
        const char *gpus, *expected;
    } cases[] = {
        { "{}, {}", "power by POWER_INSTANT" },
        { "{}, {\"lost_at\": 0}, {}",
          "power by POWER_INSTANT, gpu1 does not answer (GPU is lost)" },
        { "{}, {\"power_instant_scopes\": []}, {}",
          "power by POWER_INSTANT (gpu0 gpu2), power by nvmlDeviceGetPowerUsage (gpu1)" },
    };
    char json[256];

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("  %s\n", cases[i].gpus);
        snprintf(json, sizeof(json), "{\"gpus\": [%s]}", cases[i].gpus);
        use_scenario(*state, json);
        struct wm_source *source = open_source(NULL);
        const char *detail = strstr(wm_source_detail(source), "power by ");
        assert_non_null(detail);
        assert_string_equal(detail, cases[i].expected);
        wm_source_close(source);
    }

    /* However much there is to tell. */
    use_scenario(*state, "{\"gpus\": [{}, {\"count\": 500, \"lost_at\": 0}]}");
    struct wm_source *source = open_source(NULL);
    assert_int_equal(wm_source_device_count(source), 501);
    assert_int_equal(wm_source_channel_count(source), METRICS);
    assert_in_range(strlen(wm_source_detail(source)), 900, 1100);
    wm_source_close(source);
}

/* What is known of a board by its name, and of what the driver makes of its power. */
static void test_sensors(void **state)
{
    static const char gpus[] =
        "{\"gpus\": [{\"name\": \"NVIDIA H100\", \"power_instant_scopes\": []},"
        " {\"name\": \"NVIDIA H100\", \"power_limit_max\": 350}, {\"name\":"
        " \"NVIDIA A100\", \"power_limit_max\": 1e9, \"power_instant_scopes\": []},"
        " {\"name\": \"Tesla V100\"}, {\"name\": \"X\"},"
        " {}]}";
    static const struct {
        double counter_s, power_s, period_s; /* windows of both, and their period */
        double most_watts;
    } expected[] = {
        { 0.025, 1, 0.1, 700 },      { 0.025, 0.025, 0.1, 350 }, { 0.025, 0.025, 0.1, 0 },
        { 0.010, 0.010, 0.02, 700 }, { 0.025, 0.025, 0.1, 700 }, { 0, 0, 0.1, 0 },
    };

    use_scenario(*state, gpus);
    struct wm_source *source = open_source(NULL);
    assert_int_equal(wm_source_channel_count(source), ARRAY_LEN(expected) * METRICS);
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        const struct wm_channel *counter = wm_source_channel(source, i * METRICS);
        const struct wm_channel *power = wm_source_channel(source, i * METRICS + POWER);
        print_message("  %s\n", counter->model);
        assert_described(counter);
        assert_described(power);
        assert_true(counter->sensor.window_s == expected[i].counter_s);
        assert_true(power->sensor.window_s == expected[i].power_s);
        assert_true(counter->sensor.range == expected[i].most_watts);
        assert_true(power->sensor.range == expected[i].most_watts);
        assert_int_equal(power->period_ns, (int64_t)(expected[i].period_s * 1e9));
    }
    wm_source_close(source);
}

/* Of a GPU, what the last reading says: "ok", "lost", or what is between. */
static const char *condition(struct wm_source *source, size_t gpu, const char *why)
{
    const struct wm_gpu_process *found;
    size_t count = wm_source_gpu_processes(source, &found), ok = 0;
    const char *id = wm_source_channel(source, gpu * METRICS)->device;
    bool is_listed = true;

    for (size_t i = 0; i < count; i++) {
        if (strcmp(found[i].device, id) == 0)
            is_listed = found[i].state == WM_READING_OK;
    }
    for (size_t m = gpu * METRICS; m < (gpu + 1) * METRICS; m++) {
        ok += readings[m].state == WM_READING_OK;
        if (readings[m].state == WM_READING_OK)
            continue;
        if (readings[m].state != WM_READING_FAILED)
            return "neither failed nor ok";
        if (!strstr(why, wm_source_why(source, m)))
            return wm_source_why(source, m);
    }
    if (ok != 0 && ok != METRICS)
        return "lost in the middle";
    if (is_listed != (ok == METRICS))
        return "processes are not as the rest";
    return ok ? "ok" : "lost";
}

/* GPUs 0 to 4 are there, lost in several ways, and there again, the last of them without a
 * UUID; GPU 5 is there all the time. */
static void test_lost_and_found(void **state)
{
#define AWAY "\"from\": 100.5, \"to\": 101.1"
    static const char *const whys[] = { "GPU is lost",      "GPU requires restart",
                                        "Invalid Argument", "Uninitialized",
                                        "Invalid Argument", "" };
    enum { GPUS = ARRAY_LEN(whys) };
    char json[2048];
    size_t lost = 0, found = 0, ticks = 0;

    snprintf(
        json, sizeof(json),
        "{\"start_monotonic_ns\": %" PRId64
        ", \"gpus\": [{\"count\": 4}, {\"uuid\": \"\"}, {}],"
        " \"faults\": ["
        " {\"call\": \"nvmlDevice*\", \"gpu\": 0, \"error\": \"GPU_IS_LOST\", " AWAY "},"
        " {\"call\": \"nvmlDeviceGet[!H]*\", \"gpu\": 1,"
        "  \"error\": \"RESET_REQUIRED\", " AWAY "},"
        " {\"call\": \"nvmlDeviceGetHandleByUUID\", \"gpu\": 2,"
        "  \"error\": \"FUNCTION_NOT_FOUND\"},"
        " {\"call\": \"nvmlDevice*\", \"gpu\": 2, \"error\": \"INVALID_ARGUMENT\", " AWAY
        "},"
        " {\"call\": \"nvmlDevice*\", \"gpu\": 3, \"error\": \"UNINITIALIZED\", " AWAY "},"
        " {\"call\": \"nvmlDevice*\", \"gpu\": 4, \"error\": \"INVALID_ARGUMENT\", " AWAY
        "}]}",
        wm_clock_monotonic_ns() - 100 * WM_NS_PER_S);
    use_scenario(*state, json);
    struct wm_source *source = open_source(NULL);

    for (int64_t end_ns = wm_clock_monotonic_ns() + 10 * WM_NS_PER_S;
         found < GPUS && wm_clock_monotonic_ns() < end_ns; ticks++) {
        read_source(source);
        size_t lost_now = 0, found_now = 0;
        for (size_t g = 0; g < GPUS; g++) {
            const char *now = condition(source, g, whys[g]);
            lost_now += strcmp(now, "lost") == 0;
            found_now += strcmp(now, "ok") == 0;
        }
        lost = lost_now > lost ? lost_now : lost;
        if (lost == GPUS - 1)
            found = found_now;
        usleep(10000);
    }
    assert_int_equal(lost, GPUS - 1);
    assert_int_equal(found, GPUS);
    wm_source_close(source);
}

static void set_asleep(const char *dir, unsigned bus, bool is_asleep)
{
    static const char *const files[][2] = { { "vendor", "0x10de\n" },
                                            { "class", "0x030000\n" } };
    char path[128];

    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        snprintf(path, sizeof(path), "bus/pci/devices/0000:%02x:00.0/%s", bus, files[i][0]);
        test_write_file(dir, path, files[i][1]);
    }
    snprintf(path, sizeof(path), "bus/pci/devices/0000:%02x:00.0/power/runtime_status",
             bus);
    test_write_file(dir, path, is_asleep ? "suspended\n" : "active\n");
}

static struct wm_source *open_on_bus(const char *dir, const char *gpus)
{
    const struct wm_source_config config = { .nvml = fake_library(),
                                             .sysfs = dir,
                                             .gpus = gpus };
    struct wm_source *source = NULL;
    struct wm_error err = { 0 };

    if (wm_source_open("nvml", &config, &source, &err) < 0)
        fail_msg("%s", err.text);
    return source;
}

static bool is_asleep(struct wm_source *source, size_t gpu)
{
    for (size_t m = gpu * METRICS; m < (gpu + 1) * METRICS; m++) {
        if (readings[m].state != WM_READING_STALE ||
            strcmp(wm_source_why(source, m), "it is asleep; wattmeter does not wake it"))
            return false;
    }
    return true;
}

/* While all are, NVML is not even started: with this scenario it could not. */
static void test_all_asleep(void **state)
{
    const char *dir = *state;

    use_scenario(dir, "nonsense");
    set_asleep(dir, 2, true);
    set_asleep(dir, 1, true);
    struct wm_source *source = open_on_bus(dir, NULL);
    for (int i = 0; i < 2; i++) {
        read_source(source);
        for (size_t g = 0; g < 2; g++)
            assert_true(is_asleep(source, g));
    }
    assert_string_equal(wm_source_channel(source, 0)->device, "0000:01:00.0");
    assert_string_equal(wm_source_channel(source, METRICS)->label, "gpu1");
    assert_int_equal(wm_source_device_count(source), 2);

    use_scenario(dir, "{\"gpus\": [{\"count\": 2}]}");
    set_asleep(dir, 1, false);
    read_source(source);
    assert_string_equal(condition(source, 0, ""), "ok");
    assert_true(is_asleep(source, 1));
    set_asleep(dir, 1, true);
    set_asleep(dir, 2, false);
    read_source(source);
    assert_true(is_asleep(source, 0));
    assert_string_equal(condition(source, 1, ""), "ok");
    wm_source_close(source);
}

/* Each call about the one that is asleep would hang. */
static void test_one_asleep(void **state)
{
    const char *dir = *state;

    use_scenario(dir,
                 "{\"gpus\": [{\"count\": 2}], \"faults\": [{\"call\": \"nvmlDevice*\","
                 " \"gpu\": 0, \"delay_ms\": 100000}]}");
    set_asleep(dir, 1, true);
    set_asleep(dir, 2, false);
    struct wm_source *source = open_on_bus(dir, "1,0");
    assert_non_null(strstr(wm_source_detail(source), "gpu0 is asleep"));
    for (int i = 0; i < 3; i++) {
        read_source(source);
        assert_true(is_asleep(source, 0));
        assert_string_equal(condition(source, 1, ""), "ok");
    }
    wm_source_close(source);
}

/* A call that fails as if the GPU were gone, when it is not. */
static void test_first_call_fails(void **state)
{
    use_scenario(*state, "{\"gpus\": [{}], \"faults\": [{\"call\":"
                         " \"nvmlDeviceGetTotalEnergyConsumption\","
                         " \"error\": \"INVALID_ARGUMENT\"}]}");
    struct wm_source *source = open_source(NULL);

    read_source(source);
    assert_string_equal(condition(source, 0, "Invalid Argument"), "lost");
    for (int i = 0; i < 3; i++) {
        read_source(source);
        for (size_t m = 0; m < METRICS; m++)
            assert_int_equal(readings[m].state,
                             m == ENERGY ? WM_READING_FAILED : WM_READING_OK);
        assert_string_equal(wm_source_why(source, ENERGY), "Invalid Argument");
    }
    wm_source_close(source);
}

/* What was not supported is not asked for, until there may be another driver. */
static void test_supported_by_the_next_driver(void **state)
{
    char json[1024];
    int64_t start_ns = wm_clock_monotonic_ns() - 100 * WM_NS_PER_S;
    bool was_lost = false, is_back = false;

    snprintf(
        json, sizeof(json),
        "{\"start_monotonic_ns\": %" PRId64
        ", \"gpus\": [{\"processes\": [{\"pid\": 7}, {\"pid\": 8, \"type\": \"G\"}]}],"
        " \"faults\": [{\"call\": \"nvmlDeviceGetFieldValues:185\", \"error\":"
        " \"NOT_SUPPORTED\", \"to\": 100.4},"
        " {\"call\": \"nvmlDeviceGetGraphics*\", \"error\": \"NOT_SUPPORTED\", \"to\": "
        "100.4},"
        " {\"call\": \"nvmlDeviceGetProcessUtilization\", \"error\": \"NOT_SUPPORTED\","
        " \"to\": 100.4},"
        " {\"call\": \"nvmlDevice*\", \"error\": \"GPU_IS_LOST\", \"from\": 100.5,"
        " \"to\": 101.1}]}",
        start_ns);
    use_scenario(*state, json);
    struct wm_source *source = open_source(NULL);

    while (!is_back && wm_clock_monotonic_ns() - start_ns < 110 * WM_NS_PER_S) {
        const struct wm_gpu_process *found;

        read_source(source);
        size_t count = wm_source_gpu_processes(source, &found);
        if (readings[ENERGY].state != WM_READING_OK) {
            was_lost = true;
        } else if (readings[TEMPERATURE].state == WM_READING_OK) {
            is_back = was_lost;
            assert_int_equal(readings[POWER_AVERAGE].state,
                             was_lost ? WM_READING_OK : WM_READING_UNSUPPORTED);
            assert_int_equal(count, was_lost ? 2 : 1);
            assert_int_equal(found[0].sm_state,
                             was_lost ? WM_READING_OK : WM_READING_UNSUPPORTED);
        }
        usleep(10000);
    }
    assert_true(is_back);
    wm_source_close(source);
}

/* NVML is started again once, whichever GPU finds out first, and ended as often
 * as it was started. */
static void test_unloaded(void **state)
{
    char json[512];
    int64_t start_ns = wm_clock_monotonic_ns() - 100 * WM_NS_PER_S;
    size_t lost = 0, ok = 0;

    snprintf(json, sizeof(json),
             "{\"start_monotonic_ns\": %" PRId64
             ", \"unloaded\": [100.5, 101.1], \"gpus\": [{\"count\": 3}]}",
             start_ns);
    use_scenario(*state, json);
    void *library = dlopen(fake_library(), RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    int (*shutdown)(void) = (int (*)(void))(intptr_t)dlsym(library, "nvmlShutdown");
    assert_non_null(shutdown);

    struct wm_source *source = open_source(NULL);
    while (!(lost == 3 && ok == 3) &&
           wm_clock_monotonic_ns() - start_ns < 110 * WM_NS_PER_S) {
        read_source(source);
        ok = 0;
        size_t lost_now = 0;
        for (size_t g = 0; g < 3; g++) {
            const char *now = condition(source, g, "Uninitialized, Driver Not Loaded");
            lost_now += strcmp(now, "lost") == 0;
            ok += strcmp(now, "ok") == 0;
        }
        lost = lost_now > lost ? lost_now : lost;
        usleep(10000);
    }
    wm_source_close(source);
    assert_int_equal(lost, 3);
    assert_int_equal(ok, 3);
    assert_int_equal(shutdown(), 1); /* nobody has it started */
    dlclose(library);
}

static void test_another_gpu_appears(void **state)
{
    char json[256];
    int64_t start_ns = wm_clock_monotonic_ns() - 100 * WM_NS_PER_S;

    snprintf(json, sizeof(json),
             "{\"start_monotonic_ns\": %" PRId64
             ", \"gpus\": [{}, {\"appears_at\": 100.9}]}",
             start_ns);
    use_scenario(*state, json);
    struct wm_source *source = open_source(NULL);
    assert_int_equal(wm_source_device_count(source), 1);
    while (wm_source_device_count(source) == 1 &&
           wm_clock_monotonic_ns() - start_ns < 110 * WM_NS_PER_S) {
        read_source(source);
        usleep(10000);
    }
    assert_int_equal(wm_source_device_count(source), 2);
    assert_int_equal(wm_source_channel_count(source), METRICS);
    wm_source_close(source);
}

/* `count` processes with pids from 1001 and i MiB each. The caller frees it. */
static char *processes_json(size_t count, int entry, const char *faults)
{
    char *json = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&json, &length);

    fprintf(out, "{\"gpus\": [{\"process_entry\": %d, \"processes\": [", entry);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%s{\"pid\": %zu, \"memory\": %zu}", i ? "," : "", 1001 + i, i << 20);
    fprintf(out, "]}], \"faults\": [%s]}", faults);
    assert_int_equal(fclose(out), 0);
    return json;
}

static void test_processes(void **state)
{
#define NO_V3                                                                              \
    "{\"call\": \"nvmlDeviceGetComputeRunningProcesses_v3\", "                             \
    "\"error\": \"FUNCTION_NOT_FOUND\"}"
#define NO_V2                                                                              \
    NO_V3 ", {\"call\": \"nvmlDeviceGetComputeRunningProcesses_v2\", "                     \
          "\"error\": \"FUNCTION_NOT_FOUND\"}"
    static const struct {
        const char *what;
        int entry;
        const char *faults;
    } layouts[] = {
        { "24 bytes", 24, "" },
        { "32 bytes, as in the first 535 drivers", 32, "" },
        { "16 bytes", 16, "" },
        { "no version 3", 24, NO_V3 },
        { "the oldest call", 24, NO_V2 },
    };
    static const size_t counts[] = { 0, 1, 2, 3, 31, 32, 33, 500 };

    for (size_t i = 0; i < ARRAY_LEN(layouts) * ARRAY_LEN(counts); i++) {
        size_t l = i / ARRAY_LEN(counts), count = counts[i % ARRAY_LEN(counts)];
        const struct wm_gpu_process *found;

        print_message("  %s, %zu processes\n", layouts[l].what, count);
        char *json = processes_json(count, layouts[l].entry, layouts[l].faults);
        use_scenario(*state, json);
        free(json);
        struct wm_source *source = open_source(NULL);
        assert_int_equal(wm_source_gpu_processes(source, &found), 0);

        /* Twice: the first time may have to grow, the second may not. */
        read_source(source);
        test_fail_allocation(-1);
        read_source(source);
        assert_int_equal(test_fail_allocation(-1), 0);

        assert_int_equal(wm_source_gpu_processes(source, &found), count);
        for (size_t p = 0; p < count; p++) {
            assert_string_equal(found[p].device, wm_source_channel(source, 0)->device);
            assert_int_equal(found[p].pid, 1001 + p);
            assert_int_equal(found[p].state, WM_READING_OK);
            assert_true(found[p].memory_bytes == (double)(p << 20));
        }
        wm_source_close(source);
    }
}

static void test_unknown_processes(void **state)
{
    static const struct {
        const char *what, *gpus, *fault;
        pid_t pid;
        enum wm_reading_state state;
        const char *why;
    } cases[] = {
        { "memory not available", "{\"processes\": {\"pid\": 7, \"memory\": null}}", "-", 7,
          WM_READING_UNSUPPORTED, NULL },
        { "no list", "{}", "\"NOT_SUPPORTED\"", 0, WM_READING_UNSUPPORTED, NULL },
        { "no call", "{}", "\"FUNCTION_NOT_FOUND\"", 0, WM_READING_UNSUPPORTED, NULL },
        { "no permission", "{}", "\"NO_PERMISSION\"", 0, WM_READING_DENIED, NULL },
        { "no answer", "{}", "\"TIMEOUT\"", 0, WM_READING_FAILED, "Timeout" },
        { "never enough room", "{}", "\"INSUFFICIENT_SIZE\"", 0, WM_READING_FAILED,
          "the driver gave an impossible value" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct wm_gpu_process *found;
        char json[256];

        print_message("  %s\n", cases[i].what);
        snprintf(json, sizeof(json),
                 "{\"gpus\": [%s], \"faults\": [{\"call\":"
                 " \"%sComputeRunningProcesses*\", \"error\": %s}]}",
                 cases[i].gpus, cases[i].fault[0] == '-' ? "no" : "nvmlDeviceGet",
                 cases[i].fault[0] == '-' ? "1" : cases[i].fault);
        use_scenario(*state, json);
        struct wm_source *source = open_source(NULL);
        read_source(source);
        assert_int_equal(wm_source_gpu_processes(source, &found), 1);
        assert_string_equal(found[0].device, wm_source_channel(source, 0)->device);
        assert_int_equal(found[0].pid, cases[i].pid);
        assert_int_equal(found[0].state, cases[i].state);
        if (cases[i].why)
            assert_string_equal(found[0].why, cases[i].why);
        else
            assert_null(found[0].why);
        wm_source_close(source);
    }
}

/* What the processes of the first GPU are, as text. */
static const char *found_text(struct wm_source *source)
{
    static const char *const states[] = {
        [WM_READING_NONE] = "none",     [WM_READING_UNSUPPORTED] = "unsupported",
        [WM_READING_DENIED] = "denied", [WM_READING_FAILED] = "failed",
        [WM_READING_STALE] = "stale",
    };
    static char text[256];
    const struct wm_gpu_process *found;
    size_t count = wm_source_gpu_processes(source, &found);
    int length = 0;

    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        char memory[32], sm[32];

        snprintf(memory, sizeof(memory), "%g", found[i].memory_bytes);
        snprintf(sm, sizeof(sm), "%g", found[i].sm_ratio);
        length += snprintf(
            text + length, sizeof(text) - (size_t)length, "%s%d: %s %s", i ? ", " : "",
            found[i].pid, found[i].state == WM_READING_OK ? memory : states[found[i].state],
            found[i].sm_state == WM_READING_OK ? sm : states[found[i].sm_state]);
    }
    return text;
}

static void test_lists_of_processes(void **state)
{
#define P(pid, type, rest) "{\"pid\": " #pid ", \"type\": \"" type "\"" rest "}"
#define M(bytes) ", \"memory\": " #bytes
#define SM(ratio) ", \"sm\": " #ratio
#define LISTS(name, error)                                                                 \
    "{\"call\": \"nvmlDeviceGet" name "RunningProcesses*\", \"error\": \"" error "\"}"
#define SAMPLES(error)                                                                     \
    "{\"call\": \"nvmlDeviceGetProcessUtilization\", \"error\": \"" error "\"}"
    static const struct {
        const char *what, *processes, *faults, *expected;
    } cases[] = {
        { "nobody", "", "", "" },
        { "one in each list",
          P(5, "C", M(1) SM(0.1)) "," P(6, "G", M(2) SM(0.2)) "," P(7, "M", M(3) SM(0.3)),
          "", "5: 1 0.1, 6: 2 0.2, 7: 3 0.3" },
        { "one in two lists", P(5, "C+G", M(100) SM(0.5)), "", "5: 100 0.5" },
        { "differently", P(5, "C", M(100) SM(0.5)) "," P(5, "G", M(300) SM(null)), "",
          "5: 300 0.5" },
        { "the other way round", P(5, "C", M(300) SM(0.5)) "," P(5, "G", M(100) SM(null)),
          "", "5: 300 0.5" },
        { "three times", P(5, "C", M(1) SM(0)) "," P(5, "G", M(3)) "," P(5, "M", M(2)), "",
          "5: 3 0" },
        { "twice in one list", P(5, "C", M(2) SM(0)) "," P(5, "C", M(4)), "", "5: 4 0" },
        { "once without memory",
          P(5, "C", M(null) SM(0)) "," P(5, "G", M(7) SM(0)) "," P(6, "C", M(null) SM(0)),
          "", "5: 7 0, 6: unsupported 0" },
        { "no list of drawers", P(5, "C", M(1) SM(0)) "," P(6, "G", M(2)),
          LISTS("Graphics", "NOT_SUPPORTED"), "5: 1 0" },
        { "nor of clients", P(5, "C", M(1) SM(0)) "," P(6, "M", M(2)),
          LISTS("[GM]*", "FUNCTION_NOT_FOUND"), "5: 1 0" },
        { "the list of drawers fails", P(5, "C", M(1) SM(0)) "," P(6, "G", M(2)),
          LISTS("Graphics", "TIMEOUT"), "5: 1 0, 0: failed failed" },
        { "that of clients fails", P(5, "C", M(1) SM(0)) "," P(6, "M", M(2)),
          LISTS("MPSCompute", "UNKNOWN"), "5: 1 0, 0: failed failed" },
        { "it never fits", P(5, "C", M(1) SM(0)) "," P(6, "M", M(2)),
          LISTS("MPSCompute", "INSUFFICIENT_SIZE"), "5: 1 0, 0: failed failed" },
        { "nobody computes, and the others may not be seen", P(6, "G", M(2)),
          LISTS("Graphics", "NO_PERMISSION"), "0: denied denied" },
        { "the list of those who compute fails",
          P(5, "C", M(1)) "," P(6, "G", M(2) SM(0.25)), LISTS("Compute", "TIMEOUT"),
          "6: 2 0.25, 0: failed failed" },
        { "is not to be had", P(5, "C", M(1)) "," P(6, "G", M(2) SM(0)),
          LISTS("Compute", "NO_PERMISSION"), "6: 2 0, 0: denied denied" },
        { "is not supported", P(5, "C", M(1)) "," P(6, "G", M(2) SM(0)),
          LISTS("Compute", "NOT_SUPPORTED"), "6: 2 0, 0: unsupported unsupported" },
        { "two fail, and the first says why", P(5, "C", M(1) SM(0)),
          LISTS("Graphics", "NO_PERMISSION") "," LISTS("MPSCompute", "TIMEOUT"),
          "5: 1 0, 0: denied denied" },
        { "without a sample", P(5, "C", M(1) SM(null)) "," P(6, "C", M(2) SM(1)), "",
          "5: 1 0, 6: 2 1" },
        { "no samples at all", P(5, "C", M(1) SM(null)), "", "5: 1 0" },
        { "nobody has used it", P(5, "C", M(1) SM(0.5)), SAMPLES("NOT_FOUND"), "5: 1 0" },
        { "more than all of it", P(5, "C", M(1) SM(1.01)) "," P(6, "C", M(2) SM(0.25)), "",
          "5: 1 failed, 6: 2 0.25" },
        { "samples are not supported", P(5, "C", M(1)), SAMPLES("NOT_SUPPORTED"),
          "5: 1 unsupported" },
        { "no such call", P(5, "C", M(1)), SAMPLES("FUNCTION_NOT_FOUND"),
          "5: 1 unsupported" },
        { "samples are for others", P(5, "C", M(1)), SAMPLES("NO_PERMISSION"),
          "5: 1 denied" },
        { "samples do not come", P(5, "C", M(1)), SAMPLES("TIMEOUT"), "5: 1 failed" },
        { "samples never fit", P(5, "C", M(1)), SAMPLES("INSUFFICIENT_SIZE"),
          "5: 1 failed" },
    };
    char json[1024];

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("  %s\n", cases[i].what);
        snprintf(json, sizeof(json),
                 "{\"gpus\": [{\"processes\": [%s]}], \"faults\": [%s]}",
                 cases[i].processes, cases[i].faults);
        use_scenario(*state, json);
        struct wm_source *source = open_source(NULL);
        read_source(source);
        assert_string_equal(found_text(source), cases[i].expected);
        wm_source_close(source);
    }

    use_scenario(*state, "{\"gpus\": [{\"mig_mode\": 1, \"processes\": {\"pid\": 5,"
                         " \"memory\": 1}}]}");
    struct wm_source *source = open_source(NULL);
    read_source(source);
    assert_string_equal(found_text(source), "5: 1 unsupported");
    wm_source_close(source);
}

static void test_too_many_processes(void **state)
{
    const struct wm_gpu_process *found;
    char *json = processes_json(70000, 24, "");

    use_scenario(*state, json);
    free(json);
    struct wm_source *source = open_source(NULL);
    read_source(source);
    assert_int_equal(wm_source_gpu_processes(source, &found), 1);
    assert_int_equal(found[0].pid, 0);
    assert_int_equal(found[0].state, WM_READING_FAILED);
    assert_int_equal(readings[0].state, WM_READING_OK);
    wm_source_close(source);
}

/* Pids that cannot be are left out: 0 would be taken for "not known". */
static void test_processes_of_several_gpus(void **state)
{
    use_scenario(*state, "{\"gpus\": ["
                         "{\"uuid\": \"A\", \"processes\": [{\"pid\": 0}, {\"pid\": 5},"
                         " {\"pid\": 4294967295}, {\"pid\": 6}],"
                         " \"memory_used\": 600},"
                         "{\"uuid\": \"B\"},"
                         "{\"uuid\": \"C\", \"processes\": {\"pid\": 5, \"memory\": 9}}],"
                         "\"faults\": [{\"call\": \"nvmlDeviceGetCompute*\", \"gpu\": 1,"
                         " \"error\": \"NOT_SUPPORTED\"}]}");
    static const struct {
        const char *device;
        pid_t pid;
        double memory;
        enum wm_reading_state state;
    } expected[] = {
        { "A", 5, 150, WM_READING_OK },
        { "A", 6, 150, WM_READING_OK },
        { "B", 0, 0, WM_READING_UNSUPPORTED },
        { "C", 5, 9, WM_READING_OK },
    };
    struct wm_source *source = open_source(NULL);
    const struct wm_gpu_process *found;

    read_source(source);
    assert_int_equal(wm_source_gpu_processes(source, &found), ARRAY_LEN(expected));
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        assert_string_equal(found[i].device, expected[i].device);
        assert_int_equal(found[i].pid, expected[i].pid);
        assert_true(found[i].memory_bytes == expected[i].memory);
        assert_int_equal(found[i].state, expected[i].state);
    }
    wm_source_close(source);
}

/* The fake's "tree": what demonstrations have computing on their GPUs. */
static void test_process_tree(void **state)
{
    const struct wm_gpu_process *found;
    pid_t grandchild = 0;
    int ready[2];

    assert_int_equal(pipe(ready), 0);
    pid_t launcher = fork();
    assert_true(launcher >= 0);
    if (launcher == 0) {
        grandchild = fork();
        if (grandchild != 0 && write(ready[1], &grandchild, sizeof(grandchild)) < 0)
            _exit(1);
        pause();
        _exit(0);
    }
    assert_int_equal(read(ready[0], &grandchild, sizeof(grandchild)), sizeof(grandchild));

    use_scenario(*state, "{\"gpus\": [{\"memory_used\": 4096, \"processes\": \"tree\"}]}");
    struct wm_source *source = open_source(NULL);
    read_source(source);
    size_t count = wm_source_gpu_processes(source, &found);
    pid_t pid = count ? found[0].pid : 0;
    double memory = count ? found[0].memory_bytes : 0;
    wm_source_close(source);

    kill(grandchild, SIGKILL);
    kill(launcher, SIGKILL);
    waitpid(launcher, NULL, 0);
    close(ready[0]);
    close(ready[1]);
    assert_int_equal(count, 1);
    assert_int_equal(pid, grandchild);
    assert_true(memory == 4096);
}

static void test_out_of_memory(void **state)
{
    struct wm_source *source = NULL;
    int status = WM_ENOMEM;
    long failing = -1;
    (void)state;

    use_scenario_file("lost.json");
    while (status != WM_OK) {
        struct wm_error err = { 0 };

        test_fail_allocation(++failing);
        status = try_open("0,1", &source, &err);
        test_fail_allocation(-1);
        if (status == WM_OK)
            break;
        assert_int_equal(status, WM_ENOMEM);
        assert_non_null(strstr(err.text, "out of memory"));
        assert_null(source);
    }
    assert_true(failing >= 4);
    wm_source_close(source);
}

/* More processes than there is memory for: nothing is lost but their list, and
 * that only until there is memory again. */
static void test_out_of_memory_while_reading(void **state)
{
    const struct wm_gpu_process *found;
    char *json = processes_json(500, 24, "");

    use_scenario(*state, json);
    free(json);
    struct wm_source *source = open_source(NULL);
    size_t count = 0;
    long failing = 0;
    for (; count != 500; failing++) {
        test_fail_allocation(failing);
        read_source(source);
        test_fail_allocation(-1);
        for (size_t i = 0; i < METRICS; i++)
            assert_int_equal(readings[i].state, WM_READING_OK);
        count = wm_source_gpu_processes(source, &found);
        if (count == 500)
            break;
        assert_int_equal(count, 1);
        assert_int_equal(found[0].pid, 0);
        assert_int_equal(found[0].state, WM_READING_FAILED);
    }
    assert_true(failing >= 3);
    wm_source_close(source);
}

/* However early memory runs out, there is room to say so for every GPU. */
static void test_out_of_memory_with_many_gpus(void **state)
{
    const struct wm_gpu_process *found;
    size_t unknown = 0;

    use_scenario(*state,
                 "{\"gpus\": [{\"count\": 60, \"processes\": [{\"pid\": 1}, {\"pid\": 2},"
                 " {\"pid\": 3}, {\"pid\": 4}, {\"pid\": 5}, {\"pid\": 6}]}]}");
    struct wm_source *source = open_source(NULL);
    test_fail_allocation(0);
    read_source(source);
    test_fail_allocation(-1);
    size_t count = wm_source_gpu_processes(source, &found);
    for (size_t i = 0; i < count; i++)
        unknown += found[i].pid == 0;
    assert_in_range(unknown, 1, 60);
    assert_int_equal(count, 6 * (60 - unknown) + unknown);

    read_source(source);
    assert_int_equal(wm_source_gpu_processes(source, &found), 360);
    wm_source_close(source);
}

/* A scenario with a mistake must not pass for a driver. */
static void test_scenario_refused(void **state)
{
    static const struct {
        const char *json, *message;
    } cases[] = {
        { "", "line 1, column 0: " },
        { "{\"gpus\": [{}}", "line 1, column 13: " },
        { "{\n\"gpus\": [],\n\"gpus\": []}", "line 3, column 6: duplicate" },
        { "[]", "top level: " },
        { "{}", "top level: Object item not found: gpus" },
        { "{\"gpus\": {}}", "gpus: is a list" },
        { "{\"gpus\": [7]}", "gpus[0]: " },
        { "{\"gpus\": [{}, {\"powr\": 3}]}",
          "gpus[1]: 1 object item(s) left unpacked: powr" },
        { "{\"gpus\": [], \"gpu\": 1}", "left unpacked: gpu" },
        { "{\"gpus\": [{\"count\": -1}]}", "gpus: count is below 0" },
        { "{\"gpus\": [{\"count\": 5000}]}", "gpus: count" },
        { "{\"gpus\": [{\"count\": 2, \"uuid\": \"x\"}]}",
          "gpus[0]: several GPUs cannot share" },
        { "{\"gpus\": [{\"power\": \"300\"}]}", "gpus[0].power: is a number" },
        { "{\"gpus\": [{\"power\": -1}]}", "gpus[0].power: -1 is below 0" },
        { "{\"gpus\": [{\"power\": []}]}", "gpus[0].power: points are" },
        { "{\"gpus\": [{\"power\": [[0]]}]}", "gpus[0].power[0]: " },
        { "{\"gpus\": [{\"power\": [[0, 1, 2]]}]}", "gpus[0].power[0]: " },
        { "{\"gpus\": [{\"power\": [[1, 1], [0, 1]]}]}",
          "gpus[0].power[1]: time goes back" },
        { "{\"gpus\": [{\"power\": {\"shape\": \"sine\"}}]}", "shape 'sine' is none of" },
        { "{\"gpus\": [{\"power\": {\"points\": [[9, 1]], \"repeat\": 3}}]}",
          "repeats after" },
        { "{\"gpus\": [{\"power\": {\"shape\": \"square\", \"low\": 1}}]}",
          "Object item not found: high" },
        { "{\"gpus\": [{\"power\": {\"shape\": \"square\", \"low\": 1, \"high\": 2,"
          " \"period\": 0}}]}",
          "period above 0" },
        { "{\"gpus\": [{\"energy\": {\"mode\": \"dead\"}}]}",
          "gpus[0].energy: mode 'dead'" },
        { "{\"gpus\": [{\"processes\": 5}]}", "gpus[0].processes[0]: " },
        { "{\"gpus\": [{\"processes\": {}}]}", "processes[0]: Object item not found: pid" },
        { "{\"gpus\": [{\"processes\": {\"pid\": 1, \"tree_of\": 1}}]}",
          "left unpacked: pid" },
        { "{\"gpus\": [{\"processes\": {\"pid\": -1}}]}", "pids are 0 to 4294967295" },
        { "{\"gpus\": [{\"process_entry\": 20}]}", "process_entry is none of" },
        { "{\"gpus\": [], \"faults\": [{\"call\": \"x\"}]}", "faults[0]: has neither" },
        { "{\"gpus\": [], \"faults\": [{\"call\": \"x\", \"error\": \"OOPS\"}]}",
          "faults[0]: there is no error called OOPS" },
    };
    char path[512], message[512];
    int real_stderr = dup(STDERR_FILENO);

    snprintf(path, sizeof(path), "%s/stderr", (char *)*state);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_source *source = NULL;
        struct wm_error err = { 0 };

        print_message("  %s\n", cases[i].json);
        use_scenario(*state, cases[i].json);
        int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        assert_true(file >= 0 && dup2(file, STDERR_FILENO) >= 0);
        int status = try_open(NULL, &source, &err);
        fflush(stderr);
        assert_true(dup2(real_stderr, STDERR_FILENO) >= 0);

        ssize_t length = pread(file, message, sizeof(message) - 1, 0);
        close(file);
        assert_true(length > 0);
        message[length] = '\0';
        assert_int_equal(status, WM_EIO);
        assert_non_null(strstr(message, "scenario.json: "));
        if (!strstr(message, cases[i].message))
            fail_msg("%s", message);
    }
    close(real_stderr);
}

UNIT(source_nvml)
{
#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, test_make_dir, test_remove_dir)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_channels),
        IN_DIR(test_identity),
        IN_DIR(test_choice),
        cmocka_unit_test(test_choice_among_many),
        IN_DIR(test_no_library),
        cmocka_unit_test(test_path_of_loader),
        cmocka_unit_test(test_sampled_fields),
        IN_DIR(test_cannot_start),
        IN_DIR(test_one_call_fails),
        IN_DIR(test_older_calls),
        IN_DIR(test_values),
        IN_DIR(test_energy),
        IN_DIR(test_power),
        IN_DIR(test_detail),
        IN_DIR(test_sensors),
        IN_DIR(test_lost),
        IN_DIR(test_lost_and_found),
        IN_DIR(test_all_asleep),
        IN_DIR(test_one_asleep),
        IN_DIR(test_first_call_fails),
        IN_DIR(test_supported_by_the_next_driver),
        IN_DIR(test_unloaded),
        IN_DIR(test_another_gpu_appears),
        IN_DIR(test_processes),
        IN_DIR(test_unknown_processes),
        IN_DIR(test_lists_of_processes),
        IN_DIR(test_too_many_processes),
        IN_DIR(test_processes_of_several_gpus),
        IN_DIR(test_process_tree),
        cmocka_unit_test(test_out_of_memory),
        IN_DIR(test_out_of_memory_while_reading),
        IN_DIR(test_out_of_memory_with_many_gpus),
        IN_DIR(test_scenario_refused),
    };

    unsetenv("WATTMETER_NVML");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
