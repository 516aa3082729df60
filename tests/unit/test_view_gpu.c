/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_view_gpu.c - GPUs as text, in brief and as JSON, compared with files in
 * tests/data/gpus. After a change that is meant, WM_UPDATE_GOLDEN=1 writes them
 * anew; git shows what became different.
 *
 * What the GPUs say is made up here: the functions of gpu.h that the views call
 * stand in this file, in place of the library's.
 */
#include <jansson.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_file.h"
#include "source/gpu/select/source_gpu_select.h"
#include "test.h"
#include "view/text/view_text_line.h"
#include "wattmeter/gpu.h"

/* What is not in a list of these has the value `otherwise` of its scene. */
struct told {
    size_t field;
    struct wm_gpu_value value;
};

struct scene {
    const char *name;
    const struct told *told;
    size_t told_count;
    struct wm_gpu_value otherwise;
    struct wm_gpu_value list; /* of the processes */
    bool is_visible;          /* chosen by what a program sees */
    const struct told *process, *mig;
    size_t process_told, mig_told;
    size_t count, present, processes, migs;
    size_t silent; /* the GPU, counted from one, that tells this source and no more */
    const char *silent_source;
    struct wm_gpu_looked looked[3];
};

/* The inventory is the scene; the views only hand it on. */
static const struct scene *scene_of(const struct wm_gpus *gpus)
{
    return (const struct scene *)(const void *)gpus;
}

static const struct wm_gpus *gpus_of(const struct scene *scene)
{
    return (const struct wm_gpus *)(const void *)scene;
}

static void find_told(const struct scene *scene, const struct told *told, size_t count,
                      size_t field, struct wm_gpu_value *ret_value)
{
    *ret_value = scene->otherwise;
    for (size_t i = 0; i < count; i++) {
        if (told[i].field == field)
            *ret_value = told[i].value;
    }
}

size_t wm_gpus_count(const struct wm_gpus *gpus)
{
    return scene_of(gpus)->count;
}

size_t wm_gpus_present(const struct wm_gpus *gpus)
{
    return scene_of(gpus)->present;
}

void wm_gpus_get_any(const struct wm_gpus *gpus, size_t index, enum wm_gpu_field field,
                     struct wm_gpu_value *ret_value)
{
    const struct scene *scene = scene_of(gpus);

    assert_true(index < scene->present);
    find_told(scene, scene->told, scene->told_count, field, ret_value);
    if (field == WM_GPU_INDEX)
        ret_value->number += (double)index;
    else if (index + 1 == scene->silent)
        *ret_value =
            field == WM_GPU_SOURCE
                ? (struct wm_gpu_value) { WM_READING_OK, 0, scene->silent_source, NULL, 0 }
                : (struct wm_gpu_value) { WM_READING_FAILED, 0, NULL, "it hangs", 0 };
}

/* The chosen ones are the first. */
void wm_gpu_get(const struct wm_gpus *gpus, size_t gpu, enum wm_gpu_field field,
                struct wm_gpu_value *ret_value)
{
    assert_true(gpu < scene_of(gpus)->count);
    wm_gpus_get_any(gpus, gpu, field, ret_value);
}

void wm_gpu_seen_as(const struct wm_gpus *gpus, size_t gpu, struct wm_gpu_value *ret_value)
{
    *ret_value = scene_of(gpus)->is_visible
                     ? (struct wm_gpu_value) { WM_READING_OK, (double)gpu, NULL, NULL, 0 }
                     : (struct wm_gpu_value) { WM_READING_NONE, 0, NULL, "not asked", 0 };
}

size_t wm_gpu_process_count(const struct wm_gpus *gpus, size_t gpu,
                            struct wm_gpu_value *ret_list)
{
    assert_true(gpu < scene_of(gpus)->count);
    if (ret_list)
        *ret_list = scene_of(gpus)->list;
    return scene_of(gpus)->processes;
}

void wm_gpu_process_get(const struct wm_gpus *gpus, size_t gpu, size_t process,
                        enum wm_gpu_process_field field, struct wm_gpu_value *ret_value)
{
    const struct scene *scene = scene_of(gpus);

    assert_true(gpu < scene->count && process < scene->processes);
    find_told(scene, scene->process, scene->process_told, field, ret_value);
    if (field == WM_GPU_PROCESS_PID || field == WM_GPU_PROCESS_DRIVER_PID)
        ret_value->number += (double)process;
}

size_t wm_gpu_mig_count(const struct wm_gpus *gpus, size_t gpu)
{
    assert_true(gpu < scene_of(gpus)->count);
    return scene_of(gpus)->migs;
}

void wm_gpu_mig_get(const struct wm_gpus *gpus, size_t gpu, size_t mig,
                    enum wm_gpu_mig_field field, struct wm_gpu_value *ret_value)
{
    const struct scene *scene = scene_of(gpus);

    assert_true(gpu < scene->count && mig < scene->migs);
    find_told(scene, scene->mig, scene->mig_told, field, ret_value);
    if (field == WM_GPU_MIG_INDEX)
        ret_value->number += (double)mig;
}

const struct wm_gpu_looked *wm_gpus_looked(const struct wm_gpus *gpus, size_t index)
{
    const struct wm_gpu_looked *looked = &scene_of(gpus)->looked[index];

    return index < ARRAY_LEN(scene_of(gpus)->looked) && looked->source ? looked : NULL;
}

#define NUMBER(value)                                                                      \
    {                                                                                      \
        WM_READING_OK, value, NULL, NULL, 0                                                \
    }
#define TEXT(value)                                                                        \
    {                                                                                      \
        WM_READING_OK, 0, value, NULL, 0                                                   \
    }
#define UNSUPPORTED(why)                                                                   \
    {                                                                                      \
        WM_READING_UNSUPPORTED, 0, NULL, why, 0                                            \
    }
#define MIB 1048576.0

/* The board of igpu's README, and what it would say of the rest. */
static const struct told igpu[] = {
    { WM_GPU_INDEX, NUMBER(0) },
    { WM_GPU_NAME, TEXT("GeForce GTX 1080 Ti") },
    { WM_GPU_SERIAL, UNSUPPORTED("not supported by this GPU") },
    { WM_GPU_UUID, TEXT("GPU-115dafb8-26db-32ba-d729-f21b29fc001f") },
    { WM_GPU_BIOS, TEXT("86.02.39.00.01") },
    { WM_GPU_LABEL, TEXT("gpu0") },
    { WM_GPU_VENDOR, TEXT("NVIDIA") },
    { WM_GPU_SOURCE, TEXT("nvml") },
    { WM_GPU_SIMULATED, NUMBER(0) },
    { WM_GPU_DRIVER_VERSION, TEXT("430.34") },
    { WM_GPU_MEMORY_TOTAL, NUMBER(11178.5 * MIB) },
    { WM_GPU_MEMORY_USED, NUMBER(10799 * MIB) },
    { WM_GPU_MEMORY_FREE, NUMBER(379.5 * MIB) },
    { WM_GPU_UTILIZATION_GPU, NUMBER(0.44) },
    { WM_GPU_UTILIZATION_MEMORY, NUMBER(0.35) },
    { WM_GPU_FAN, NUMBER(0.36) },
    { WM_GPU_TEMPERATURE, NUMBER(61) },
    { WM_GPU_PERFORMANCE, TEXT("P2") },
    { WM_GPU_PCI_BUS, TEXT("88") },
    { WM_GPU_PCI_BUS_ID, TEXT("0000:88:00.0") },
    { WM_GPU_PCI_DEVICE, TEXT("00") },
    { WM_GPU_PCI_DEVICE_ID, TEXT("1B0610DE") },
    { WM_GPU_PCI_SUB_SYSTEM_ID, TEXT("1210196E") },
    { WM_GPU_PCI_LINK_GEN, NUMBER(3) },
    { WM_GPU_PCI_LINK_GEN_MAX, NUMBER(3) },
    { WM_GPU_PCI_LINK_WIDTH, NUMBER(16) },
    { WM_GPU_PCI_LINK_WIDTH_MAX, NUMBER(16) },
    { WM_GPU_CLOCK_GRAPHICS, NUMBER(1911e6) },
    { WM_GPU_CLOCK_SM, NUMBER(1911e6) },
    { WM_GPU_CLOCK_MEMORY, NUMBER(5005e6) },
    { WM_GPU_CLOCK_GRAPHICS_MAX, NUMBER(1911e6) },
    { WM_GPU_CLOCK_SM_MAX, NUMBER(1911e6) },
    { WM_GPU_CLOCK_MEMORY_MAX, NUMBER(5505e6) },
    { WM_GPU_POWER_MANAGEMENT, TEXT("Supported") },
    { WM_GPU_POWER_DRAW, NUMBER(122.23) },
    { WM_GPU_POWER_LIMIT, NUMBER(250) },
    { WM_GPU_POWER_LIMIT_MIN, NUMBER(125) },
    { WM_GPU_POWER_LIMIT_MAX, NUMBER(300) },
};

static const struct told igpu_process[] = {
    { WM_GPU_PROCESS_PID, NUMBER(4276) },
    { WM_GPU_PROCESS_NAME, TEXT("python") },
    { WM_GPU_PROCESS_USER, TEXT("antonio") },
    { WM_GPU_PROCESS_PARENT_PID, NUMBER(45436) },
    { WM_GPU_PROCESS_PARENT_NAME, TEXT("bash") },
    { WM_GPU_PROCESS_CREATE_TIME, NUMBER(1587094887.25) },
    { WM_GPU_PROCESS_MEMORY, NUMBER(4284 * MIB) },
    { WM_GPU_PROCESS_TYPE, TEXT("C") },
    { WM_GPU_PROCESS_DRIVER_PID, NUMBER(4276) },
    { WM_GPU_PROCESS_SM, NUMBER(0.41) },
};

/* Every field, each with a value that no other has. */
static const struct told everything[] = {
    { WM_GPU_INDEX, NUMBER(100) },
    { WM_GPU_NAME, TEXT("SIMULATED H100") },
    { WM_GPU_SERIAL, TEXT("1650522001") },
    { WM_GPU_UUID, TEXT("GPU-7c1fa2d4-0000-0000-0000-000000000001") },
    { WM_GPU_BIOS, TEXT("96.00.74.00.0D") },
    { WM_GPU_LABEL, TEXT("gpu100") },
    { WM_GPU_VENDOR, TEXT("NVIDIA") },
    { WM_GPU_SOURCE, TEXT("nvml") },
    { WM_GPU_ARCHITECTURE, TEXT("Hopper") },
    { WM_GPU_COMPUTE_CAPABILITY, TEXT("9.0") },
    { WM_GPU_CORES, NUMBER(16896) },
    { WM_GPU_MULTIPROCESSORS, NUMBER(132) },
    { WM_GPU_KERNEL_DRIVER, TEXT("nvidia") },
    { WM_GPU_DRIVER_VERSION, TEXT("550.54.15") },
    { WM_GPU_NVML_VERSION, TEXT("12.550.54.15") },
    { WM_GPU_CUDA_VERSION, TEXT("12.4") },
    { WM_GPU_COMPUTE_MODE, TEXT("Exclusive_Process") },
    { WM_GPU_PERSISTENCE, TEXT("Enabled") },
    { WM_GPU_MIG_MODE, TEXT("Enabled for now") },
    { WM_GPU_MIG_MODE_PENDING, TEXT("Disabled") },
    { WM_GPU_DISPLAY_ACTIVE, NUMBER(0) },
    { WM_GPU_SIMULATED, NUMBER(1) },
    { WM_GPU_MEMORY_TOTAL, NUMBER(81920 * MIB) },
    { WM_GPU_MEMORY_USED, NUMBER(20480 * MIB) },
    { WM_GPU_MEMORY_FREE, NUMBER(60928 * MIB) },
    { WM_GPU_MEMORY_RESERVED, NUMBER(511 * MIB) },
    { WM_GPU_MEMORY_BAR1_TOTAL, NUMBER(131072 * MIB) },
    { WM_GPU_MEMORY_BAR1_USED, NUMBER(7 * MIB) },
    { WM_GPU_MEMORY_SHARED_TOTAL, NUMBER(15872 * MIB) },
    { WM_GPU_MEMORY_SHARED_USED, NUMBER(23 * MIB) },
    { WM_GPU_UTILIZATION_GPU, NUMBER(0.97) },
    { WM_GPU_UTILIZATION_MEMORY, NUMBER(0.28) },
    { WM_GPU_UTILIZATION_ENCODER, NUMBER(0.13) },
    { WM_GPU_UTILIZATION_DECODER, NUMBER(0.1725) },
    { WM_GPU_FAN, NUMBER(0.42) },
    { WM_GPU_FAN_SPEED, NUMBER(1490) },
    { WM_GPU_TEMPERATURE, NUMBER(57) },
    { WM_GPU_TEMPERATURE_MEMORY, NUMBER(71) },
    { WM_GPU_TEMPERATURE_HOTSPOT, NUMBER(68.25) },
    { WM_GPU_TEMPERATURE_SLOWDOWN, NUMBER(89) },
    { WM_GPU_TEMPERATURE_SHUTDOWN, NUMBER(94) },
    { WM_GPU_PERFORMANCE, TEXT("P0") },
    { WM_GPU_PCI_BUS, TEXT("3B") },
    { WM_GPU_PCI_BUS_ID, TEXT("0000:3b:00.0") },
    { WM_GPU_PCI_DEVICE, TEXT("1E") },
    { WM_GPU_PCI_DEVICE_ID, TEXT("233010DE") },
    { WM_GPU_PCI_SUB_SYSTEM_ID, TEXT("16C110DE") },
    { WM_GPU_PCI_LINK_GEN, NUMBER(4) },
    { WM_GPU_PCI_LINK_GEN_MAX, NUMBER(5) },
    { WM_GPU_PCI_LINK_WIDTH, NUMBER(8) },
    { WM_GPU_PCI_LINK_WIDTH_MAX, NUMBER(16) },
    { WM_GPU_PCI_REPLAYS, NUMBER(317) },
    { WM_GPU_CLOCK_GRAPHICS, NUMBER(1755e6) },
    { WM_GPU_CLOCK_SM, NUMBER(1756e6) },
    { WM_GPU_CLOCK_MEMORY, NUMBER(2619e6) },
    { WM_GPU_CLOCK_VIDEO, NUMBER(1545e6) },
    { WM_GPU_CLOCK_GRAPHICS_MAX, NUMBER(1980e6) },
    { WM_GPU_CLOCK_SM_MAX, NUMBER(1981e6) },
    { WM_GPU_CLOCK_MEMORY_MAX, NUMBER(2620e6) },
    { WM_GPU_CLOCK_VIDEO_MAX, NUMBER(1546e6) },
    { WM_GPU_THROTTLE, TEXT("sw_power_cap, hw_thermal_slowdown") },
    { WM_GPU_POWER_MANAGEMENT, TEXT("Supported") },
    { WM_GPU_POWER_DRAW, NUMBER(601.11) },
    { WM_GPU_POWER_INSTANT, NUMBER(655.22) },
    { WM_GPU_POWER_AVERAGE, NUMBER(602.33) },
    { WM_GPU_POWER_SCOPE, TEXT("module") },
    { WM_GPU_POWER_LIMIT, NUMBER(651) },
    { WM_GPU_POWER_LIMIT_DEFAULT, NUMBER(700) },
    { WM_GPU_POWER_LIMIT_ENFORCED, NUMBER(650) },
    { WM_GPU_POWER_LIMIT_MIN, NUMBER(200) },
    { WM_GPU_POWER_LIMIT_MAX, NUMBER(701) },
    { WM_GPU_ENERGY, NUMBER(123456789.5) },
    { WM_GPU_ECC_MODE, TEXT("ecc-now") },
    { WM_GPU_ECC_MODE_PENDING, TEXT("ecc-next") },
    { WM_GPU_ECC_CORRECTED, NUMBER(3001) },
    { WM_GPU_ECC_UNCORRECTED, NUMBER(3002) },
    { WM_GPU_ECC_CORRECTED_LIFETIME, NUMBER(3003) },
    { WM_GPU_ECC_UNCORRECTED_LIFETIME, NUMBER(3004) },
    { WM_GPU_NVLINK_LINKS, NUMBER(18) },
    { WM_GPU_NVLINK_SENT, NUMBER(4242 * MIB) },
    { WM_GPU_NVLINK_RECEIVED, NUMBER(4343 * MIB) },
    { WM_GPU_PCI_SENT, NUMBER(44.25e6) },
    { WM_GPU_PCI_RECEIVED, NUMBER(45.5e6) },
};

static const struct told every_process[] = {
    { WM_GPU_PROCESS_PID, NUMBER(2217) },
    { WM_GPU_PROCESS_NAME, TEXT("a-program-with-a-name-of-40-characters-x") },
    { WM_GPU_PROCESS_USER, TEXT("jürgen") },
    { WM_GPU_PROCESS_PARENT_PID, NUMBER(1) },
    { WM_GPU_PROCESS_PARENT_NAME, TEXT("init") },
    { WM_GPU_PROCESS_CREATE_TIME, NUMBER(1790000000) },
    { WM_GPU_PROCESS_MEMORY, NUMBER(10240 * MIB) },
    { WM_GPU_PROCESS_TYPE, TEXT("C+G") },
    { WM_GPU_PROCESS_DRIVER_PID, NUMBER(92217) },
    { WM_GPU_PROCESS_SM, NUMBER(0.515) },
    { WM_GPU_PROCESS_MEMORY_UTILIZATION, NUMBER(0.21) },
    { WM_GPU_PROCESS_ENCODER, NUMBER(0) },
    { WM_GPU_PROCESS_DECODER, NUMBER(0.01) },
    { WM_GPU_PROCESS_GPU_TIME, NUMBER(78.5) },
    { WM_GPU_PROCESS_GPU_INSTANCE, NUMBER(2) },
    { WM_GPU_PROCESS_COMPUTE_INSTANCE, NUMBER(0) },
};

static const struct told every_mig[] = {
    { WM_GPU_MIG_INDEX, NUMBER(0) },
    { WM_GPU_MIG_UUID, TEXT("MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f") },
    { WM_GPU_MIG_NAME, TEXT("MIG 3g.40gb") },
    { WM_GPU_MIG_GPU_INSTANCE, NUMBER(2) },
    { WM_GPU_MIG_COMPUTE_INSTANCE, NUMBER(0) },
    { WM_GPU_MIG_MULTIPROCESSORS, NUMBER(60) },
    { WM_GPU_MIG_MEMORY_TOTAL, NUMBER(40448 * MIB) },
    { WM_GPU_MIG_MEMORY_USED, NUMBER(44 * MIB) },
};

/* What a GPU must not be able to say, said all the same. */
static const struct told hostile[] = {
    { WM_GPU_INDEX, NUMBER(0) },
    { WM_GPU_NAME,
      TEXT("\"quoted\", comma; <b>ΔΩ 中文</b> with a name that goes on and on") },
    { WM_GPU_SERIAL, TEXT("") },
    { WM_GPU_UUID, TEXT("\xff\xfe not UTF-8 \xc3") },
    { WM_GPU_BIOS, TEXT("a\\b/c'd%s%n") },
    { WM_GPU_MEMORY_TOTAL, NUMBER(0) },
    { WM_GPU_MEMORY_USED, NUMBER(1e300) },
    { WM_GPU_MEMORY_FREE, NUMBER(-1048576) },
    { WM_GPU_UTILIZATION_GPU, NUMBER(17.5) },
    { WM_GPU_UTILIZATION_MEMORY, NUMBER(-0.5) },
    { WM_GPU_FAN, NUMBER(1e18) },
    { WM_GPU_TEMPERATURE, NUMBER(NAN) },
    { WM_GPU_PCI_LINK_GEN, NUMBER(INFINITY) },
    { WM_GPU_PCI_LINK_GEN_MAX, NUMBER(4) },
    { WM_GPU_PCI_LINK_WIDTH, NUMBER(8) },
    { WM_GPU_CLOCK_SM, NUMBER(-INFINITY) },
    { WM_GPU_CLOCK_SM_MAX, NUMBER(1911e6) },
    { WM_GPU_POWER_DRAW, NUMBER(-3.14159) },
    { WM_GPU_POWER_LIMIT, { WM_READING_DENIED, 0, NULL, "only root may ask", 0 } },
    { WM_GPU_POWER_LIMIT_MIN, { WM_READING_STALE, 0, NULL, "GPU is lost", 0 } },
    { WM_GPU_POWER_LIMIT_MAX, { WM_READING_NONE, 0, NULL, "nobody asked yet", 0 } },
    { WM_GPU_ENERGY, { WM_READING_FAILED, 0, NULL, NULL, 0 } },
    { WM_GPU_ECC_CORRECTED, NUMBER(0.5) },
    { WM_GPU_ECC_UNCORRECTED, NUMBER(1.8446744073709552e19) },
};

static const struct told hostile_process[] = {
    { WM_GPU_PROCESS_PID, UNSUPPORTED("the process is in another pid namespace") },
    { WM_GPU_PROCESS_NAME, TEXT("中文 | pipe \"quote\" name that is long") },
    { WM_GPU_PROCESS_CREATE_TIME, NUMBER(-1e300) },
    { WM_GPU_PROCESS_MEMORY, NUMBER(NAN) },
    { WM_GPU_PROCESS_DRIVER_PID, NUMBER(1048577) },
    { WM_GPU_PROCESS_GPU_TIME, NUMBER(1e200) },
};

static const struct scene scenes[] = {
    {
        .name = "igpu",
        .told = igpu,
        .told_count = ARRAY_LEN(igpu),
        .otherwise = UNSUPPORTED("not supported by this GPU"),
        .list = NUMBER(0),
        .process = igpu_process,
        .process_told = ARRAY_LEN(igpu_process),
        .processes = 1,
        .count = 1,
        .present = 1,
        .looked = { { "nvml", 1, WM_OK, "driver 430.34", 0 },
                    { "drm", 0, WM_ENODEV, "no GPU under /sys/class/drm", 0 } },
    },
    {
        .name = "everything",
        .told = everything,
        .told_count = ARRAY_LEN(everything),
        .is_visible = true,
        .list = NUMBER(0),
        .process = every_process,
        .process_told = ARRAY_LEN(every_process),
        .processes = 2,
        .mig = every_mig,
        .mig_told = ARRAY_LEN(every_mig),
        .migs = 2,
        .count = 2,
        .present = 3,
        .looked = { { "nvml", 3, WM_OK, "driver 550.54.15", 0 },
                    { "drm", 0, WM_EACCES, "/sys/class/drm: Permission denied", 0 } },
    },
    {
        .name = "nothing",
        .otherwise = { WM_READING_FAILED, 0, NULL, "the driver hangs since 5 s", 0 },
        .list = { WM_READING_FAILED, 0, NULL, "the driver hangs since 5 s", 0 },
        .count = 1,
        .present = 1,
        .looked = { { "nvml", 1, WM_OK, NULL, 0 } },
    },
    {
        .name = "hostile",
        .told = hostile,
        .told_count = ARRAY_LEN(hostile),
        .otherwise = UNSUPPORTED("not reported by \"drm\""),
        .list = { WM_READING_DENIED, 0, NULL, "other users' processes are hidden", 0 },
        .process = hostile_process,
        .process_told = ARRAY_LEN(hostile_process),
        .processes = 1,
        .migs = 1,
        .count = 1,
        .present = 1,
        .looked = { { "drm", 1, WM_OK, "", 0 } },
    },
    {
        .name = "idle",
        .told = igpu,
        .told_count = 12, /* up to the memory that is used */
        .otherwise = UNSUPPORTED("not supported by this GPU"),
        .list = NUMBER(0),
        .count = 1,
        .present = 1,
        .looked = { { "nvml", 1, WM_OK, "driver 430.34", 0 } },
    },
    {
        .name = "none",
        .looked = { { "nvml", 0, WM_ENODEV, "no NVIDIA driver", 0 },
                    { "drm", 0, WM_EIO, NULL, 0 } },
    },
    {
        .name = "none-chosen",
        .present = 4,
        .looked = { { "nvml", 4, WM_OK, "driver 550.54.15", 0 } },
    },
};

static const struct scene *scene_called(const char *name)
{
    size_t i = 0;

    while (strcmp(scenes[i].name, name) != 0)
        i++;
    return &scenes[i];
}

/* The text, the caller's. The time is that of 1970. */
static char *print(const struct scene *scene, enum wm_format format)
{
    struct wm_error err;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    assert_int_equal(wm_gpus_print(gpus_of(scene), format, out, &err), WM_OK);
    fclose(out);
    char *time = strstr(text, "\"time\":");
    if (time)
        memcpy(strchr(time, '2'), "1970-01-01T00:00:00.000Z", 24);
    return text;
}

static char *read_golden(const char *name, const char *suffix)
{
    char relative[128], *text;
    struct wm_error err;
    size_t length;

    snprintf(relative, sizeof(relative), "tests/data/gpus/%s.%s", name, suffix);
    if (wm_file_slurp(test_source_path(relative), 1 << 20, &text, &length, &err) < 0)
        fail_msg("%s", err.text);
    return text;
}

static void compare(const struct scene *scene, enum wm_format format, const char *suffix)
{
    char relative[128], *text = print(scene, format);

    snprintf(relative, sizeof(relative), "tests/data/gpus/%s.%s", scene->name, suffix);
    if (getenv("WM_UPDATE_GOLDEN")) {
        FILE *file = fopen(test_source_path(relative), "w");
        assert_non_null(file);
        assert_true(fputs(text, file) >= 0);
        assert_int_equal(fclose(file), 0);
    }
    char *expected = read_golden(scene->name, suffix);
    if (strcmp(text, expected) != 0)
        fail_msg("%s differs from what is printed:\n%s", relative, text);
    free(expected);
    free(text);
}

static void test_golden(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(scenes); i++) {
        compare(&scenes[i], WM_FORMAT_TEXT, "txt");
        compare(&scenes[i], WM_FORMAT_BRIEF, "brief");
        compare(&scenes[i], WM_FORMAT_JSON, "json");
    }
}

/* What igpu 0.1.2 itself prints for this board, up to its processes, but for the
 * serial number: where it says N/A we say n/a. */
static void test_igpu(void **state)
{
    char *text = print(scene_called("igpu"), WM_FORMAT_TEXT);
    char *theirs = read_golden("igpu-0.1.2", "txt");
    char *serial = strstr(theirs, "N/A"), *processes = strstr(theirs, "PROCESSES");
    char *row = strstr(processes, "4276"), *header = strstr(processes, "    PID");

    (void)state;
    memcpy(serial, "n/a", 3);
    assert_memory_equal(text, theirs, (size_t)(processes - theirs));
    header[strcspn(header, "\n")] = '\0';
    assert_non_null(strstr(text, header));
    row[strcspn(row, "\n")] = '\0';
    row[strlen(row) - 2] = '\0'; /* it pads the last column */
    assert_non_null(strstr(text, row));
    free(theirs);
    free(text);
}

/* Every value of every field, as `known` shows it, stands somewhere in it. */
static void test_text_has_every_field(void **state)
{
    static const char *const shown[] = {
        "100\n",
        "SIMULATED H100",
        "1650522001",
        "GPU-7c1fa2d4",
        "96.00.74.00.0D",
        "gpu100",
        "NVIDIA",
        "nvml",
        "Hopper",
        "9.0",
        "16896",
        "132",
        "nvidia",
        "550.54.15",
        "12.550.54.15",
        "12.4\n",
        "Exclusive_Process",
        "Persistence   : Enabled",
        "Enabled for now",
        "MIG Pending   : Disabled",
        "Display       : No",
        "Simulated     : Yes",
        "81920.00 MiB (100.00%)",
        "20480.00 MiB ( 25.00%)",
        "60928.00 MiB ( 74.38%)",
        "511.00 MiB",
        "7.00 MiB of 131072.00 MiB",
        "23.00 MiB of 15872.00 MiB",
        "[||||||||||||||||||||||||",
        "[|||||||                  ] 28.00%",
        "[|||                      ] 13.00%",
        "[||||                     ] 17.25%",
        "[||||||||||               ] 42.00%",
        "1490 rpm",
        ": 57.00C",
        ": 71.00C",
        ": 68.25C",
        ": 89.00C",
        ": 94.00C",
        ": P0",
        ": 3B",
        "0000:3b:00.0",
        ": 1E",
        "233010DE",
        "16C110DE",
        "4 (Max: 5)",
        "8x (Max: 16x)",
        ": 317",
        "1755.0 MHz (Max: 1980.0)",
        "1756.0 MHz (Max: 1981.0)",
        "2619.0 MHz (Max: 2620.0)",
        "1545.0 MHz (Max: 1546.0)",
        "sw_power_cap, hw_thermal_slowdown",
        "Supported",
        "601.11 W",
        "655.22 W",
        "602.33 W",
        "module",
        "651.00 W",
        "700.00 W",
        "650.00 W",
        "200.00 W",
        "701.00 W",
        "123456789.50 J",
        "ecc-now",
        "ecc-next",
        "3001",
        "3002",
        "3003",
        "3004",
        ": 18",
        "4242.00",
        "4343.00",
        "44.25 MB/s",
        "45.50 MB/s",
    };
    char *text = print(scene_called("everything"), WM_FORMAT_TEXT);

    (void)state;
    assert_int_equal(ARRAY_LEN(everything), WM_GPU_FIELDS);
    for (size_t i = 0; i < ARRAY_LEN(shown); i++) {
        if (!strstr(text, shown[i]))
            fail_msg("'%s' is not in:\n%s", shown[i], text);
    }
    assert_null(strstr(text, "n/a"));
    free(text);
}

/* How many lines of `text` are not in `other`. */
static size_t lines_lost(const char *text, const char *other)
{
    size_t lost = 0;

    for (; *text; text += strcspn(text, "\n") + 1) {
        char *line = strndup(text, strcspn(text, "\n") + 1);

        assert_non_null(line);
        lost += strstr(other, line) == NULL;
        free(line);
    }
    return lost;
}

static json_t *parse(const struct scene *scene, enum wm_format format)
{
    char *text = print(scene, format);
    json_error_t error;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);

    if (!root)
        fail_msg("%s: %s", scene->name, error.text);
    if (format == WM_FORMAT_JSON_LINE)
        assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
    free(text);
    return root;
}

/* One field after the other is missing: it says so and why, by the name that JSON
 * has, and costs no line but its own, of each of two GPUs. */
static void test_one_missing(void **state)
{
    static const struct {
        enum wm_gpu_field field;
        size_t lines;
    } others[] = {
        { WM_GPU_MEMORY_TOTAL, 6 }, /* all shares are of it */
        { WM_GPU_SIMULATED, 4 },    /* stands on top as well */
    };
    struct told told[WM_GPU_FIELDS];
    struct scene scene = *scene_called("everything");
    char *whole = print(&scene, WM_FORMAT_TEXT);

    (void)state;
    scene.told = told;
    for (size_t i = 0; i < WM_GPU_FIELDS; i++) {
        char expected[128];
        size_t lines = 2;

        memcpy(told, everything, sizeof(told));
        assert_int_equal(told[i].field, i);
        told[i].value = (struct wm_gpu_value)UNSUPPORTED("the reason is this");
        char *text = print(&scene, WM_FORMAT_TEXT);
        json_t *root = parse(&scene, WM_FORMAT_JSON);
        json_t *gpu = json_array_get(json_object_get(root, "gpus"), 0);
        json_t *why = json_object_get(gpu, "why");
        assert_int_equal(json_object_size(why), 1);
        snprintf(expected, sizeof(expected), "    the reason is this: %s\n",
                 json_object_iter_key(json_object_iter(why)));
        json_decref(root);
        if (!strstr(text, expected) || !strstr(text, "n/a"))
            fail_msg("%s", expected);
        for (size_t k = 0; k < ARRAY_LEN(others); k++)
            lines = others[k].field == i ? others[k].lines : lines;
        assert_int_equal(lines_lost(whole, text), lines);
        free(text);
    }
    free(whole);
}

static void check_nulls(json_t *node, const char *path, json_t *why, json_t *states,
                        size_t *nulls)
{
    char below[128];
    const char *key;
    json_t *value;
    size_t i;

    if (json_is_null(node)) {
        ++*nulls;
        if (!json_is_string(json_object_get(why, path)) ||
            !json_is_string(json_object_get(states, path)))
            fail_msg("%s is null without a reason", path);
    }
    json_object_foreach(node, key, value)
    {
        snprintf(below, sizeof(below), "%s%s%s", path, path[0] ? "." : "", key);
        check_nulls(value, below, why, states, nulls);
    }
    json_array_foreach(node, i, value)
    {
        snprintf(below, sizeof(below), "%s.%zu", path, i);
        check_nulls(value, below, why, states, nulls);
    }
}

/* Each null has a reason, and but for a list that is not whole no reason is there
 * without its null. */
static void test_nulls_have_reasons(void **state)
{
    (void)state;
    for (size_t s = 0; s < ARRAY_LEN(scenes); s++) {
        json_t *root = parse(&scenes[s], WM_FORMAT_JSON), *gpu;
        size_t i;

        assert_int_equal(json_integer_value(json_object_get(root, "present")),
                         scenes[s].present);
        assert_int_equal(json_array_size(json_object_get(root, "gpus")), scenes[s].count);
        json_array_foreach(json_object_get(root, "gpus"), i, gpu)
        {
            json_t *why = json_object_get(gpu, "why");
            size_t nulls = 0;
            check_nulls(gpu, "", why, json_object_get(gpu, "states"), &nulls);
            bool not_whole =
                scenes[s].list.state != WM_READING_OK && scenes[s].processes > 0;
            assert_int_equal(nulls + not_whole, json_object_size(why));
        }
        json_decref(root);
    }
}

static json_t *at(json_t *node, const char *path)
{
    char copy[128], *rest = copy, *key;

    snprintf(copy, sizeof(copy), "%s", path);
    while ((key = strsep(&rest, "/")) != NULL)
        node = json_is_array(node) ? json_array_get(node, strtoul(key, NULL, 10))
                                   : json_object_get(node, key);
    return node;
}

/* Types and units, one of each kind. */
static void test_json(void **state)
{
    static const struct {
        const char *scene, *path, *value;
    } rows[] = {
        { "everything", "present", "3" },
        { "everything", "gpus/0/index", "100" },
        { "everything", "gpus/1/index", "101" },
        { "everything", "gpus/0/name", "\"SIMULATED H100\"" },
        { "everything", "gpus/0/simulated", "true" },
        { "everything", "gpus/0/display_active", "false" },
        { "everything", "gpus/0/memory/total_bytes", "85899345920" },
        { "everything", "gpus/0/utilization/gpu_ratio", "0.97" },
        { "everything", "gpus/0/utilization/fan_speed_rpm", "1490" },
        { "everything", "gpus/0/utilization/temperature_celsius", "57.0" },
        { "everything", "gpus/0/pci/current_link_width", "8" },
        { "everything", "gpus/0/pci/sent_bytes_per_second", "44250000.0" },
        { "everything", "gpus/0/clocks/sm_hertz", "1756000000.0" },
        { "everything", "gpus/0/power/draw_watts", "601.11" },
        { "everything", "gpus/0/power/energy_joules", "123456789.5" },
        { "everything", "gpus/0/processes/1/pid", "2218" },
        { "everything", "gpus/0/processes/0/gpu_memory_bytes", "10737418240" },
        { "everything", "gpus/0/processes/0/create_time_seconds", "1790000000.0" },
        { "everything", "gpus/0/migs/1/index", "1" },
        { "everything", "gpus/0/migs/0/memory_used_bytes", "46137344" },
        { "everything", "gpus/0/why", "{}" },
        { "everything", "looked/0/available", "true" },
        { "everything", "looked/0/detail", "\"driver 550.54.15\"" },
        { "everything", "looked/1/available", "false" },
        { "everything", "looked/1/why", "\"/sys/class/drm: Permission denied\"" },
        { "igpu", "gpus/0/serial", "null" },
        { "igpu", "gpus/0/why/serial", "\"not supported by this GPU\"" },
        { "igpu", "gpus/0/states/serial", "\"unsupported\"" },
        { "idle", "gpus/0/processes", "[]" },
        { "nothing", "gpus/0/processes", "null" },
        { "nothing", "gpus/0/states/processes", "\"failed\"" },
        { "hostile", "gpus/0/utilization/temperature_celsius", "null" },
        { "hostile", "gpus/0/why/power.energy_joules", "\"unknown\"" },
        { "hostile", "gpus/0/states/power.limit_watts", "\"denied\"" },
        { "hostile", "gpus/0/states/power.min_limit_watts", "\"stale\"" },
        { "hostile", "gpus/0/states/power.max_limit_watts", "\"not asked\"" },
        { "hostile", "gpus/0/states/processes.0.pid", "\"unsupported\"" },
        { "hostile", "gpus/0/why/processes", "\"other users' processes are hidden\"" },
        { "hostile", "gpus/0/uuid", "\"�� not UTF-8 �\"" },
        { "none", "gpus", "[]" },
        { "none", "looked/1/why", "null" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        for (int line = 0; line < 2; line++) {
            json_t *root = parse(scene_called(rows[i].scene),
                                 line ? WM_FORMAT_JSON_LINE : WM_FORMAT_JSON);
            char *text = json_dumps(at(root, rows[i].path),
                                    JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
            if (!text || strcmp(text, rows[i].value) != 0)
                fail_msg("%s: %s is %s", rows[i].scene, rows[i].path, text);
            free(text);
            json_decref(root);
        }
    }
}

static size_t count_of(const char *text, const char *word)
{
    size_t count = 0;

    while ((text = strstr(text, word)) != NULL) {
        count++;
        text++;
    }
    return count;
}

static void test_many_processes(void **state)
{
    struct scene scene = *scene_called("igpu");

    (void)state;
    scene.processes = 1000;
    char *text = print(&scene, WM_FORMAT_TEXT);
    assert_int_equal(count_of(text, " | antonio "), 1000);
    assert_int_equal(count_of(text, "processes."), 0);
    free(text);

    text = print(&scene, WM_FORMAT_BRIEF);
    assert_non_null(strstr(text, "1000\n"));
    free(text);

    json_t *root = parse(&scene, WM_FORMAT_JSON);
    assert_int_equal(json_array_size(at(root, "gpus/0/processes")), 1000);
    json_decref(root);
}

/* A part of a number would be another one. */
static void test_long_numbers(void **state)
{
    static const struct told process[] = {
        { WM_GPU_PROCESS_PID, NUMBER(4194302) },
        { WM_GPU_PROCESS_NAME, TEXT("a-name-that-is-longer-than-its-column") },
        { WM_GPU_PROCESS_PARENT_PID, NUMBER(123456789) },
        { WM_GPU_PROCESS_DRIVER_PID, NUMBER(4294967294) },
        { WM_GPU_PROCESS_MEMORY, NUMBER(12345678 * MIB) },
    };
    struct scene scene = *scene_called("igpu");

    (void)state;
    scene.process = process;
    scene.process_told = ARRAY_LEN(process);
    scene.processes = 2;
    char *text = print(&scene, WM_FORMAT_TEXT);
    assert_non_null(strstr(text, "\n    PID     | NAME                 | USER"));
    assert_non_null(strstr(text, "\n    4194302 | a-name-that-is-long… | n/a"));
    assert_non_null(strstr(text, "\n    4194303 | "));
    assert_non_null(strstr(text, " | PARENT    | "));
    assert_non_null(strstr(text, " | 123456789 | "));
    assert_non_null(strstr(text, " | 12345678 | "));
    assert_non_null(strstr(text, " | 4294967295\n"));
    free(text);
}

/* A GPU that does not say it is as real as the others of its driver. */
static void test_simulated(void **state)
{
    static const struct {
        const char *scene;
        size_t silent;
        const char *source;
        size_t brief, text; /* how often it is said */
    } cases[] = {
        { "everything", 0, NULL, 2, 2 },   { "everything", 1, "nvml", 2, 2 },
        { "everything", 2, "nvml", 2, 2 }, { "everything", 2, "drm", 1, 1 },
        { "igpu", 1, "nvml", 0, 0 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct scene scene = *scene_called(cases[i].scene);
        scene.silent = cases[i].silent;
        scene.silent_source = cases[i].source;
        char *brief = print(&scene, WM_FORMAT_BRIEF), *text = print(&scene, WM_FORMAT_TEXT);
        assert_int_equal(count_of(brief, "  SIMULATED\n"), cases[i].brief);
        assert_int_equal(count_of(text, "SIMULATED: "), cases[i].text);
        free(brief);
        free(text);
    }
}

/* Each reason stands once, however many processes have it. */
static void test_reasons_are_not_repeated(void **state)
{
    struct scene scene = *scene_called("hostile");

    (void)state;
    scene.processes = 500;
    char *text = print(&scene, WM_FORMAT_TEXT);
    const char *why = strstr(text, "n/a because:");
    assert_non_null(why);
    assert_int_equal(count_of(why, "another pid namespace"), 1);
    assert_int_equal(count_of(why, "processes.pid"), 1);
    free(text);
}

/* Of a driver with a reason of its own for each value, those that nothing cures are
 * one line, and the others keep theirs. */
static void test_many_reasons(void **state)
{
    struct told told[WM_GPU_FIELDS];
    char why[WM_GPU_FIELDS][32];
    struct scene scene = *scene_called("everything");

    (void)state;
    scene.count = 1;
    scene.told = told;
    memcpy(told, everything, sizeof(told));
    for (size_t i = 0; i < 6; i++) {
        snprintf(why[i], sizeof(why[i]), "reason %zu", i);
        told[WM_GPU_SERIAL + i].value = (struct wm_gpu_value)UNSUPPORTED(why[i]);
        if (i == 3) { /* four are listed */
            char *text = print(&scene, WM_FORMAT_TEXT);
            assert_int_equal(count_of(text, "    reason "), 4);
            free(text);
        }
    }
    told[WM_GPU_ENERGY].value =
        (struct wm_gpu_value) { WM_READING_DENIED, 0, NULL, "only root may", 0 };
    char *text = print(&scene, WM_FORMAT_TEXT);
    assert_int_equal(count_of(text, "reason "), 0);
    assert_non_null(
        strstr(text, "    not reported by this GPU or its driver (--json says why each): "
                     "serial,"));
    assert_non_null(strstr(text, "    only root may: power.energy_joules\n"));
    free(text);

    json_t *root = parse(&scene, WM_FORMAT_JSON);
    assert_string_equal(json_string_value(at(root, "gpus/0/why/serial")), "reason 0");
    json_decref(root);
}

static void test_columns(void **state)
{
    static const struct {
        const char *text;
        int width;
        const char *cut;
        int columns;
    } rows[] = {
        { "", 3, "", 0 },
        { "abc", 3, "abc", 3 },
        { "abcd", 3, "ab…", 3 },
        { "äöü", 3, "äöü", 3 },
        { "äöüß", 3, "äö…", 3 },
        { "ab", 1, "…", 1 },
        { "計算", 4, "計算", 4 },
        { "計算機", 4, "計…", 3 },
        { "e\u0301te", 3, "e\u0301te", 3 },
        { "\xff計", 3, "\xff計", 3 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[32] = "";
        FILE *out = fmemopen(text, sizeof(text), "w");
        assert_non_null(out);
        assert_int_equal(wm_view_cut(out, rows[i].text, rows[i].width), rows[i].columns);
        fclose(out);
        assert_string_equal(text, rows[i].cut);
    }
}

static void test_brief_is_narrow(void **state)
{
    static const char *const names[] = { "igpu", "everything", "nothing", "idle" };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const struct scene *scene = scene_called(names[i]);
        size_t most = 100 + (scene->is_visible ? strlen("SEEN AS  ") : 0);
        char *text = print(scene, WM_FORMAT_BRIEF);
        const char *line = text;
        for (; *line && *line != '\n'; line += strcspn(line, "\n") + 1) {
            size_t width = 0;
            for (size_t at_byte = 0; line[at_byte] && line[at_byte] != '\n'; at_byte++)
                width += ((unsigned char)line[at_byte] & 0xc0) != 0x80;
            assert_true(width <= most);
        }
        free(text);
    }
}

/* A program that writes numbers with a comma gets the same. */
static void test_locale(void **state)
{
    static const char *const names[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR" };
    bool found = false;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names) && !found; i++)
        found = setlocale(LC_ALL, names[i]) != NULL;
    if (!found)
        skip();
    test_golden(state);
    setlocale(LC_ALL, "C");
}

static void test_full_disk(void **state)
{
    static const enum wm_format formats[] = { WM_FORMAT_TEXT, WM_FORMAT_BRIEF,
                                              WM_FORMAT_JSON, WM_FORMAT_JSON_LINE };
    FILE *full = fopen("/dev/full", "w");
    struct wm_error err;

    (void)state;
    assert_non_null(full);
    for (size_t i = 0; i < ARRAY_LEN(formats); i++)
        assert_int_equal(wm_gpus_print(gpus_of(&scenes[1]), formats[i], full, &err),
                         WM_EIO);
    fclose(full);
}

/* jansson is a library of its own, whose calls the linker does not redirect. */
static void *jansson_malloc(size_t size)
{
    return malloc(size);
}

static void test_out_of_memory(void **state)
{
    static char buffer[1 << 18];
    struct wm_error err;
    int status = WM_ENOMEM;

    (void)state;
    json_set_alloc_funcs(jansson_malloc, free);
    for (long nth = 0; status != WM_OK; nth += 1 + nth / 50) {
        FILE *out = fmemopen(buffer, sizeof(buffer), "w");
        assert_non_null(out);
        setvbuf(out, NULL, _IONBF, 0);
        test_fail_allocation(nth);
        status = wm_gpus_print(gpus_of(&scenes[0]), WM_FORMAT_JSON, out, &err);
        test_fail_allocation(-1);
        fclose(out);
        if (status != WM_OK)
            assert_int_equal(status, WM_ENOMEM);
    }
}

UNIT(view_gpu)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_igpu),
        cmocka_unit_test(test_text_has_every_field),
        cmocka_unit_test(test_one_missing),
        cmocka_unit_test(test_nulls_have_reasons),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_many_processes),
        cmocka_unit_test(test_long_numbers),
        cmocka_unit_test(test_simulated),
        cmocka_unit_test(test_reasons_are_not_repeated),
        cmocka_unit_test(test_many_reasons),
        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_brief_is_narrow),
        cmocka_unit_test(test_locale),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_out_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
