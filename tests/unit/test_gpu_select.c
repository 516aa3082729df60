/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_gpu_select.c - which GPUs people's words mean, on machines that are tables:
 * this file has the inventory's functions in the place of source_gpu.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base_text.h"
#include "source/gpu/select/source_gpu_select.h"
#include "source/gpu/source_gpu_pci.h"
#include "source/gpu/source_gpu_sysfs.h"
#include "test.h"

struct mig {
    const char *uuid;
    int gpu_instance, compute_instance;
};

struct gpu {
    const char *source, *driver, *uuid, *label, *pci, *model, *capability, *version;
    double multiprocessors, clock;
    const struct mig *migs;
    size_t mig_count;
};

struct wm_gpus {
    const struct gpu *list;
    size_t count;
    struct wm_gpu_looked looked[2];
    const char *sysfs;
    char *remark;
};

static struct wm_gpu_value of_text(const char *text)
{
    if (!text)
        return (struct wm_gpu_value) { .state = WM_READING_FAILED, .why = "not told" };
    return (struct wm_gpu_value) { .state = WM_READING_OK, .text = text };
}

static struct wm_gpu_value of_number(double number)
{
    return (struct wm_gpu_value) { .state = WM_READING_OK, .number = number };
}

size_t wm_gpus_present(const struct wm_gpus *gpus)
{
    return gpus->count;
}

const struct wm_gpu_looked *wm_gpus_looked(const struct wm_gpus *gpus, size_t index)
{
    return index < ARRAY_LEN(gpus->looked) ? &gpus->looked[index] : NULL;
}

const char *wm_gpus_sysfs(const struct wm_gpus *gpus)
{
    return gpus->sysfs;
}

void wm_gpus_get_any(const struct wm_gpus *gpus, size_t index, enum wm_gpu_field field,
                     struct wm_gpu_value *ret_value)
{
    const struct gpu *gpu = &gpus->list[index];

    assert_true(index < gpus->count);
    switch ((int)field) {
    case WM_GPU_SOURCE:
        *ret_value = of_text(gpu->source);
        break;
    case WM_GPU_KERNEL_DRIVER:
        *ret_value = of_text(gpu->driver);
        break;
    case WM_GPU_UUID:
        *ret_value = of_text(gpu->uuid);
        break;
    case WM_GPU_LABEL:
        *ret_value = of_text(gpu->label);
        break;
    case WM_GPU_PCI_BUS_ID:
        *ret_value = of_text(gpu->pci);
        break;
    case WM_GPU_NAME:
        *ret_value = of_text(gpu->model);
        break;
    case WM_GPU_COMPUTE_CAPABILITY:
        *ret_value = of_text(gpu->capability);
        break;
    case WM_GPU_DRIVER_VERSION:
        *ret_value = of_text(gpu->version);
        break;
    case WM_GPU_MIG_MODE:
        *ret_value = of_text(gpu->migs ? "Enabled" : "Disabled");
        break;
    case WM_GPU_MULTIPROCESSORS:
        *ret_value = of_number(gpu->multiprocessors);
        break;
    case WM_GPU_CLOCK_SM_MAX:
        *ret_value = of_number(gpu->clock);
        break;
    default:
        fail_msg("field %d", (int)field);
    }
}

size_t wm_gpus_mig_count_any(const struct wm_gpus *gpus, size_t index)
{
    return gpus->list[index].mig_count;
}

void wm_gpus_mig_get_any(const struct wm_gpus *gpus, size_t index, size_t mig,
                         enum wm_gpu_mig_field field, struct wm_gpu_value *ret_value)
{
    const struct mig *part = &gpus->list[index].migs[mig];

    assert_true(mig < gpus->list[index].mig_count);
    if (field == WM_GPU_MIG_UUID)
        *ret_value = of_text(part->uuid);
    else if (field == WM_GPU_MIG_GPU_INSTANCE)
        *ret_value = of_number(part->gpu_instance);
    else if (field == WM_GPU_MIG_COMPUTE_INSTANCE)
        *ret_value = of_number(part->compute_instance);
    else
        fail_msg("MIG field %d", (int)field);
}

void wm_gpus_keep_remark(const struct wm_gpus *gpus, char *remark)
{
    struct wm_gpus *own = (struct wm_gpus *)(uintptr_t)gpus;

    free(own->remark);
    own->remark = remark;
}

#define LOOKED                                                                             \
    {                                                                                      \
        { "nvml", 0, WM_ENODEV, "no NVIDIA driver", 0 },                                   \
        {                                                                                  \
            "drm", 0, WM_ENODEV, "no card", 0                                              \
        }                                                                                  \
    }

#define NVIDIA(index, id, address)                                                         \
    {                                                                                      \
        .source = "nvml", .driver = "nvidia", .uuid = id, .label = "gpu" #index,           \
        .pci = address, .model = "A100", .capability = "8.0", .version = "550.54.15"       \
    }
#define DRM(index, id, address, module)                                                    \
    {                                                                                      \
        .source = "drm", .driver = module, .uuid = id, .label = "card" #index,             \
        .pci = address                                                                     \
    }

/* Two of NVIDIA's, one of which does not answer; two of AMD's, two of Intel's of
 * which the first is integrated, and one of nobody's. */
static const struct gpu zoo[] = {
    NVIDIA(0, "GPU-7c1fa2d4-aaaa", "00000000:3B:00.0"),
    NVIDIA(1, NULL, "00000000:5E:00.0"),
    DRM(1, "00ab12cd34ef5678", "0000:07:00.0", "amdgpu"),
    DRM(2, "1111222233334444", "0000:03:00.0", "amdgpu"),
    DRM(0, "0000:00:02.0", "0000:00:02.0", "i915"),
    DRM(3, "0001:3b:00.0", "0001:3b:00.0", "xe"),
    DRM(4, "platform-v3d", NULL, "v3d"),
};

static const struct mig migs_of_0[] = { { "MIG-aa000000", 1, 0 },
                                        { "MIG-ab000000", 1, 1 } };
static const struct mig migs_of_1[] = { { "MIG-ba000000", 2, 0 }, { NULL, 3, 0 } };
static const struct gpu parted[] = {
    { .source = "nvml",
      .uuid = "GPU-1c20",
      .label = "gpu0",
      .pci = "00000000:01:00.0",
      .model = "H100",
      .capability = "9.0",
      .version = "550.54.15",
      .migs = migs_of_0,
      .mig_count = 2 },
    { .source = "nvml",
      .uuid = "GPU-1d20",
      .label = "gpu1",
      .pci = "00000000:02:00.0",
      .model = "H100",
      .capability = "9.0",
      .version = "550.54.15",
      .migs = migs_of_1,
      .mig_count = 2 },
    NVIDIA(2, "GPU-2e", "00000000:03:00.0"),
};

struct row {
    const char *words;
    int status;
    const char *result; /* indices, or what the error begins with */
};

static void check(struct wm_gpus *gpus, const char *words, const char *const *environment,
                  int status, const char *result, const char *remark)
{
    static const char *const nothing[] = { NULL };
    size_t chosen[16], count = 4711;
    const char *said = "untouched";
    struct wm_error err = { 0 };
    char text[64] = "";

    print_message("  %s\n", words ? words : "(NULL)");
    assert_int_equal(wm_gpu_select(gpus, words, environment ? environment : nothing, chosen,
                                   &count, &said, &err),
                     status);
    if (status < 0) {
        assert_int_equal(count, 4711);
        assert_string_equal(said, "untouched");
        if (strncmp(err.text, result, strlen(result)) != 0)
            fail_msg("%s", err.text);
        return;
    }
    for (size_t i = 0; i < count; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%zu", i ? " " : "",
                 chosen[i]);
    assert_string_equal(text, result);
    if (!remark) {
        if (said)
            fail_msg("%s", said);
    } else if (!said || strcmp(said, remark) != 0) {
        fail_msg("%s", said ? said : "(nothing)");
    }
    wm_gpus_keep_remark(gpus, NULL);
}

static void test_words(void **state)
{
    static const struct row rows[] = {
        { NULL, WM_OK, "0 1 2 3 4 5 6" },
        { "all", WM_OK, "0 1 2 3 4 5 6" },
        { "none", WM_OK, "" },
        { "0", WM_OK, "0" },
        { "1", WM_OK, "1" },
        { "gpu1", WM_OK, "1" },
        { "0,5e:00.0", WM_OK, "0 1" },
        { "GPU-9,GPU-7", WM_OK, "0 1" },
        { "MIG-9", WM_OK, "1" },
        { "6,0, 2 ", WM_OK, "0 2 6" },
        { "GPU-7c1fa2d4-aaaa", WM_OK, "0" },
        { "GPU-7", WM_OK, "0" },
        { "gpu0", WM_OK, "0" },
        { "card0", WM_OK, "4" },
        { "card1,card1,2", WM_OK, "2" },
        { "3b:00.0", WM_EINVAL, "'3b:00.0' fits several GPUs" },
        { "0000:3b:00.0", WM_OK, "0" },
        { "00000000:3B:00.0", WM_OK, "0" },
        { "1:3B:00.0", WM_OK, "5" },
        { "07:00.0,00:02.0", WM_OK, "2 4" },
        { "7:0.0", WM_OK, "2" },
        { "00ab", WM_OK, "2" },
        { "GPU-00ab12cd34ef5678", WM_OK, "2" },
        { "GPU-1111", WM_OK, "3" },
        { "1111222233334444", WM_OK, "3" },
        { "0001:3b", WM_OK, "5" },
        { "platform", WM_OK, "6" },

        { "7", WM_EINVAL,
          "'7' is not the number of a GPU; GPUs here: 0 (GPU-7c1fa2d4-aaaa), "
          "1 (does not answer), 2 (00ab12cd34ef5678), 3 (1111222233334444), "
          "4 (0000:00:02.0), 5 (0001:3b:00.0), 6 (platform-v3d)" },
        { "1111", WM_EINVAL, "'1111' is not the number" },
        { "99999999999999999999999", WM_EINVAL, "'99999999999999999999999' is not the" },
        { "GPU-", WM_EINVAL, "'GPU-' fits several" },
        { "gpu-9", WM_EINVAL, "'gpu-9' is no GPU of this machine" },
        { "GPU", WM_EINVAL, "'GPU' fits several" },
        { "gpu", WM_EINVAL, "'gpu' is no GPU" },
        { "card", WM_EINVAL, "'card' is no GPU" },
        { "card01", WM_EINVAL, "'card01' is no GPU" },
        { "CARD1", WM_EINVAL, "'CARD1' is no GPU" },
        { "3b:00", WM_EINVAL, "'3b:00' is no GPU" },
        { "3b:00.8", WM_EINVAL, "'3b:00.8' is no GPU" },
        { "0000:3c:00.0", WM_EINVAL, "'0000:3c:00.0' is no GPU" },
        { "0:0:3b:00.0", WM_EINVAL, "'0:0:3b:00.0' is no GPU" },
        { "MIG-", WM_EINVAL, "'MIG-' is no GPU" },
        { "-1", WM_EINVAL, "'-1' is no GPU" },
        { "", WM_EINVAL, "'' names no GPU" },
        { ",", WM_EINVAL, "'' names no GPU" },
        { "0,", WM_EINVAL, "'' names no GPU" },
        { "0,,1", WM_EINVAL, "'' names no GPU" },
        { "0,all", WM_EINVAL, "'all' is no GPU" },
        { "visible,0", WM_EINVAL, "'visible' is no GPU" },
        { "0;1", WM_EINVAL, "'0;1' is no GPU" },
        { "\xff\xfe", WM_EINVAL, "'?\?' is no GPU" },
    };
    struct wm_gpus gpus = { zoo, ARRAY_LEN(zoo), LOOKED, "/nonexistent", NULL };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        check(&gpus, rows[i].words, NULL, rows[i].status, rows[i].result, NULL);
}

/* A part stands for its GPU. */
static void test_parts(void **state)
{
    static const struct row rows[] = {
        { "MIG-aa000000", WM_OK, "0" },
        { "MIG-a", WM_OK, "0" },
        { "MIG-ba", WM_OK, "1" },
        { "MIG-GPU-1c20/1/1", WM_OK, "0" },
        { "MIG-GPU-1d/3/0,2", WM_OK, "1 2" },
        { "MIG-", WM_EINVAL, "'MIG-' fits several GPUs" },
        { "MIG-GPU-1/1/0", WM_OK, "0" },
        { "MIG-GPU-1c20/4/0", WM_EINVAL, "'MIG-GPU-1c20/4/0' is no GPU" },
        { "MIG-GPU-2e/1/0", WM_EINVAL, "'MIG-GPU-2e/1/0' is no GPU" },
        { "MIG-GPU-1c20", WM_EINVAL, "'MIG-GPU-1c20' is no GPU" },
        { "MIG-GPU-1c20/1", WM_EINVAL, "'MIG-GPU-1c20/1' is no GPU" },
        { "MIG-GPU-1c20/1/", WM_EINVAL, "'MIG-GPU-1c20/1/' is no GPU" },
        { "MIG-GPU-1c20/1/1x", WM_EINVAL, "'MIG-GPU-1c20/1/1x' is no GPU" },
        { "MIG-GPU-1c20/1/0/0", WM_EINVAL, "'MIG-GPU-1c20/1/0/0' is no GPU" },
        { "MIG-GPU-1c20/,0", WM_EINVAL, "'MIG-GPU-1c20/' is no GPU" },
        { "MI,G-aa000000/1/0", WM_EINVAL, "'MI' is no GPU" },
        { "mig-aa", WM_EINVAL, "'mig-aa' is no GPU" },
        { "GPU-1", WM_EINVAL, "'GPU-1' fits several GPUs" },
        { "GPU-9", WM_EINVAL, "'GPU-9' is no GPU of this machine" },
    };
    struct wm_gpus gpus = { parted, ARRAY_LEN(parted), LOOKED, "/nonexistent", NULL };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        check(&gpus, rows[i].words, NULL, rows[i].status, rows[i].result, NULL);
}

/* Who has to be asked before a choice can be made. */
static void test_numbers(void **state)
{
    static const struct {
        const char *words;
        int answer;
        size_t count;
    } rows[] = {
        { "0", 1, 1 },
        { " 1, 0,1 ", 1, 2 },
        { "6,0,2", 1, 3 },
        { "7", 0, 0 },
        { "0,7", 0, 0 },
        { "0,gpu1", 0, 0 },
        { "GPU-7c1fa2d4-aaaa", 0, 0 },
        { "1111222233334444", 0, 0 },
        { "all", 0, 0 },
        { "visible", 0, 0 },
        { "none", 0, 0 },
        { "", 0, 0 },
        { "0,", 0, 0 },
        { "-1", 0, 0 },
        { "0x1", 0, 0 },
    };
    struct wm_gpus gpus = { zoo, ARRAY_LEN(zoo), LOOKED, "/nonexistent", NULL };
    size_t chosen[ARRAY_LEN(zoo)], count;

    (void)state;
    gpus.looked[0] = (struct wm_gpu_looked) { "nvml", 2, WM_OK, "", 0 };
    gpus.looked[1] = (struct wm_gpu_looked) { "drm", 5, WM_OK, "", 0 };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        print_message("  '%s'\n", rows[i].words);
        count = 0;
        assert_int_equal(wm_gpu_select_numbers(&gpus, rows[i].words, chosen, &count, NULL),
                         rows[i].answer);
        assert_int_equal(count, rows[i].count);
    }

    /* What stands behind a driver in trouble may be another one tomorrow. */
    gpus.looked[1].status = WM_EIO;
    assert_int_equal(wm_gpu_select_numbers(&gpus, "1", chosen, &count, NULL), 1);
    assert_int_equal(chosen[0], 1);
    assert_int_equal(wm_gpu_select_numbers(&gpus, "1,2", chosen, &count, NULL), 0);
    test_fail_allocation(0);
    assert_int_equal(wm_gpu_select_numbers(&gpus, "1", chosen, &count, NULL), WM_ENOMEM);
    test_fail_allocation(-1);
}

static void test_no_gpu(void **state)
{
    static const struct row rows[] = {
        { NULL, WM_OK, "" },
        { "all", WM_OK, "" },
        { "none", WM_OK, "" },
        { "visible", WM_OK, "" },
        { "0", WM_EINVAL,
          "'0': there is no GPU here (nvml: no NVIDIA driver; drm: no card)" },
        { "", WM_EINVAL, "'': there is no GPU here" },
        { "card0,card1", WM_EINVAL, "'card0,card1': there is no GPU here" },
    };
    struct wm_gpus gpus = { NULL, 0, LOOKED, "/nonexistent", NULL };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        check(&gpus, rows[i].words, NULL, rows[i].status, rows[i].result, NULL);
}

/* What cannot be found may belong to the driver that does not answer. */
static void test_driver_in_trouble(void **state)
{
    struct wm_gpus gpus = { zoo + 2, 1, LOOKED, "/nonexistent", NULL };

    (void)state;
    gpus.looked[0] = (struct wm_gpu_looked) { "nvml", 0, WM_EIO, "does not answer", 0 };
    check(&gpus, NULL, NULL, WM_OK, "0", NULL);
    check(&gpus, "card1", NULL, WM_OK, "0", NULL);
    check(&gpus, "00ab12cd34ef5678", NULL, WM_OK, "0", NULL);
    check(&gpus, "0", NULL, WM_EIO, "the GPUs cannot be chosen: nvml: does not", NULL);
    check(&gpus, "card1, 0 ", NULL, WM_EIO, "the GPUs cannot be chosen", NULL);
    check(&gpus, "GPU-7c", NULL, WM_EIO, "the GPUs cannot be chosen: nvml: does not answer",
          NULL);

    /* NVIDIA's are counted first. */
    gpus = (struct wm_gpus) { zoo, 1, LOOKED, "/nonexistent", NULL };
    gpus.looked[0] = (struct wm_gpu_looked) { "nvml", 1, WM_OK, "driver 550", 0 };
    gpus.looked[1] = (struct wm_gpu_looked) { "drm", 0, WM_EIO, "does not answer", 0 };
    check(&gpus, "0", NULL, WM_OK, "0", NULL);
    check(&gpus, "0,1", NULL, WM_EIO, "the GPUs cannot be chosen: drm", NULL);

    gpus = (struct wm_gpus) { NULL, 0, LOOKED, "/nonexistent", NULL };
    gpus.looked[0] =
        (struct wm_gpu_looked) { "nvml", 0, WM_EACCES, "may not be opened", 0 };
    check(&gpus, "0", NULL, WM_EACCES, "the GPUs cannot be chosen: nvml: may not", NULL);
    check(&gpus, "visible", NULL, WM_OK, "", NULL);
}

struct mask {
    const char *name;
    const char *variables[4];
    const char *result;
    const char *remark;
};

static void check_masks(struct wm_gpus *gpus, const struct mask *masks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *environment[ARRAY_LEN(masks->variables) + 1] = { NULL };

        for (size_t v = 0; v < ARRAY_LEN(masks->variables); v++)
            environment[v] = masks[i].variables[v];
        print_message("%s:", masks[i].name);
        check(gpus, "visible", environment, WM_OK, masks[i].result, masks[i].remark);
    }
}

#define CUDA(value) "CUDA_VISIBLE_DEVICES=" value
#define BY_PCI "CUDA_DEVICE_ORDER=PCI_BUS_ID"

static void test_cuda(void **state)
{
    static const struct gpu alike[] = {
        NVIDIA(0, "GPU-9942190a-aa31", "00000000:01:00.0"),
        NVIDIA(1, "GPU-9e8d35e3-a134", "00000000:02:00.0"),
        NVIDIA(2, "GPU-e429a63e-c61c", "00000000:03:00.0"),
        NVIDIA(3, "GPU-eee1dfbc-0a0f", "00000000:04:00.0"),
    };
    static const struct mask masks[] = {
        { "unset", { NULL }, "0 1 2 3", NULL },
        { "another variable",
          { "CUDA_VISIBLE_DEVICE=1", "XCUDA_VISIBLE_DEVICES=2" },
          "0 1 2 3",
          NULL },
        { "empty", { CUDA("") }, "", NULL },
        { "two", { CUDA("1,3") }, "1 3", NULL },
        { "two, the other way round", { CUDA("3,1") }, "3 1", NULL },
        { "the first of that name", { CUDA("2"), CUDA("3") }, "2", NULL },
        { "blanks", { CUDA(" 1, 3") }, "1 3", NULL },
        { "twice",
          { CUDA("3,1,1") },
          "",
          "CUDA_VISIBLE_DEVICES: '1' names a device a second time; GPUs left: 0 of 4" },
        { "negative",
          { CUDA("0,2,-1,1") },
          "0 2",
          "CUDA_VISIBLE_DEVICES: '-1' is negative; GPUs left: 2 of 4" },
        { "too large",
          { CUDA("7") },
          "",
          "CUDA_VISIBLE_DEVICES: '7' is past the last device; GPUs left: 0 of 4" },
        { "UUID", { CUDA("GPU-9e8d35e3-a134") }, "1", NULL },
        { "short UUIDs", { CUDA("GPU-e4,GPU-99") }, "2 0", NULL },
        { "ambiguous",
          { CUDA("GPU-9e,GPU-e") },
          "1",
          "CUDA_VISIBLE_DEVICES: 'GPU-e' fits several devices; GPUs left: 1 of 4" },
        { "no such UUID",
          { CUDA("GPU-77") },
          "",
          "CUDA_VISIBLE_DEVICES: 'GPU-77' fits no device; GPUs left: 0 of 4" },
        { "old Slurm",
          { CUDA("NoDevFiles") },
          "",
          "CUDA_VISIBLE_DEVICES: 'NoDevFiles' is neither a number nor a UUID; GPUs left: "
          "0 of 4" },
        { "comma at the end", { CUDA("2,") }, "2", NULL },
        { "a long word",
          { CUDA("01234567890123456789012345678901234567890123456789012345678901234") },
          "",
          "CUDA_VISIBLE_DEVICES: '012345678901234567890123456789012345678901234567' is "
          "past "
          "the last device; GPUs left: 0 of 4" },
        { "no text",
          { CUDA("\xff\xff") },
          "",
          "CUDA_VISIBLE_DEVICES: '\xef\xbf\xbd\xef\xbf\xbd' is neither a number nor a "
          "UUID; "
          "GPUs left: 0 of 4" },
        { "not NVIDIA's",
          { "HIP_VISIBLE_DEVICES=1", "ZE_AFFINITY_MASK=1" },
          "0 1 2 3",
          NULL },
    };
    struct wm_gpus gpus = { alike, ARRAY_LEN(alike), LOOKED, "/nonexistent", NULL };

    (void)state;
    check_masks(&gpus, masks, ARRAY_LEN(masks));
}

/* What a program calls them, with a '?' where that is in doubt. */
static void test_places(void **state)
{
    static const struct {
        const char *variables[3];
        const char *result;
    } rows[] = {
        { { CUDA("0,1"), "HIP_VISIBLE_DEVICES=1,0", "ZE_AFFINITY_MASK=0,1" },
          "0=0 1=1 3=0? 2=1? 5=0 4=1 6=0?" },
        { { CUDA("GPU-7c1fa2d4-aaaa"), "HIP_VISIBLE_DEVICES=", "ZE_AFFINITY_MASK=1" },
          "0=0 4=0 6=0?" },
        { { CUDA(""), "ROCR_VISIBLE_DEVICES=", "ZE_AFFINITY_MASK=9" }, "6=0?" },
    };
    struct wm_gpus gpus = { zoo, ARRAY_LEN(zoo), LOOKED, "/nonexistent", NULL };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *const environment[] = { rows[i].variables[0], rows[i].variables[1],
                                            rows[i].variables[2], NULL };
        struct wm_gpu_place places[ARRAY_LEN(zoo)] = { 0 };
        size_t chosen[ARRAY_LEN(zoo)], count;
        char text[128] = "";

        assert_int_equal(wm_gpu_select_places(&gpus, "visible", environment, places, chosen,
                                              &count, NULL, NULL),
                         WM_OK);
        for (size_t k = 0; k < count; k++) {
            const struct wm_gpu_place *place = &places[chosen[k]];
            assert_int_equal(place->place, k + 1);
            wm_text_list(text, sizeof(text), " ", "%zu=%zu%s", chosen[k], place->number,
                         place->why ? "?" : "");
        }
        assert_string_equal(text, rows[i].result);
    }
}

/* The fastest is the last in PCI order, the others' speed is their clock's. */
static void test_cuda_order(void **state)
{
    static const struct gpu mixed[] = {
        { .source = "nvml",
          .uuid = "GPU-a",
          .pci = "00000000:03:00.0",
          .model = "GT 1030",
          .capability = "6.1",
          .multiprocessors = 3,
          .clock = 1468e6 },
        { .source = "nvml",
          .uuid = "GPU-b",
          .pci = "00000000:3B:00.0",
          .model = "P1000",
          .capability = "6.1",
          .multiprocessors = 3,
          .clock = 1519e6 },
        { .source = "nvml",
          .uuid = "GPU-c",
          .pci = "00000000:AF:00.0",
          .model = "H100",
          .capability = "9.0",
          .multiprocessors = 132,
          .clock = 1980e6 },
    };
    static const char doubt[] =
        "a number in the mask may mean another GPU: the GPUs are not known to be of one "
        "model, CUDA_DEVICE_ORDER is not PCI_BUS_ID, and how CUDA finds the fastest is not "
        "documented";
    static const struct mask masks[] = {
        { "unset", { NULL }, "2 1 0", NULL },
        { "the fastest", { CUDA("0") }, "2", doubt },
        { "the slowest", { CUDA("2"), "CUDA_DEVICE_ORDER=FASTEST_FIRST" }, "0", doubt },
        { "in between", { CUDA("1") }, "1", doubt },
        { "all", { CUDA("2,1,0") }, "0 1 2", NULL },
        { "by address", { CUDA("0"), BY_PCI }, "0", NULL },
        { "by address, the last", { CUDA("2"), BY_PCI }, "2", NULL },
        { "by UUID", { CUDA("GPU-c") }, "2", NULL },
    };
    struct wm_gpus gpus = { mixed, ARRAY_LEN(mixed), LOOKED, "/nonexistent", NULL };

    (void)state;
    check_masks(&gpus, masks, ARRAY_LEN(masks));
}

static void test_cuda_parts(void **state)
{
    static const struct mask masks[] = {
        { "one", { CUDA("MIG-ab") }, "0", NULL },
        { "two", { CUDA("MIG-ba,MIG-aa") }, "1", NULL }, /* one with drivers before 570 */
        { "old name", { CUDA("MIG-GPU-1d20/3/0") }, "1", NULL },
        { "no such part",
          { CUDA("MIG-GPU-1d20/9/0") },
          "",
          "CUDA_VISIBLE_DEVICES: 'MIG-GPU-1d20/9/0' fits no device; GPUs left: 0 of 3" },
        { "ambiguous",
          { CUDA("MIG-a") },
          "",
          "CUDA_VISIBLE_DEVICES: 'MIG-a' fits several devices; GPUs left: 0 of 3" },
        { "the whole one", { CUDA("GPU-2e") }, "2", NULL },
    };
    struct gpu newer[ARRAY_LEN(parted)];
    struct wm_gpus gpus = { parted, ARRAY_LEN(parted), LOOKED, "/nonexistent", NULL };

    (void)state;
    check_masks(&gpus, masks, ARRAY_LEN(masks));

    static const struct mask two[] = { { "both", { CUDA("MIG-ba,MIG-aa") }, "1 0", NULL } };
    memcpy(newer, parted, sizeof(newer));
    for (size_t i = 0; i < ARRAY_LEN(newer); i++)
        newer[i].version = "570.86.10";
    gpus.list = newer;
    check_masks(&gpus, two, 1);
}

/* Each vendor's GPUs by its own variables; the two of NVIDIA's are 0 and 1. */
static void test_vendors(void **state)
{
    static const struct mask masks[] = {
        { "unset", { NULL }, "0 1 2 3 5 4 6", NULL },
        { "NVIDIA's alone", { CUDA("0"), "HIP_VISIBLE_DEVICES=0,1" }, "0 2 3 5 4 6", NULL },
        { "none of NVIDIA's, and of AMD's by UUID",
          { CUDA("NoDevFiles"), "HIP_VISIBLE_DEVICES=GPU-1111" },
          "3 5 4 6",
          "CUDA_VISIBLE_DEVICES: 'NoDevFiles' is neither a number nor a UUID; GPUs left: "
          "0 of 2; a number in the mask may mean another GPU: the order of amdkfd's nodes "
          "is not known" },
        { "HIP reads CUDA's",
          { CUDA("0") },
          "0 2 5 4 6",
          "a number in the mask may mean another GPU: the order of amdkfd's nodes is not "
          "known" },
        { "discrete before integrated",
          { CUDA(""), "ZE_AFFINITY_MASK=0" },
          "2 3 5 6",
          NULL },
        { "the integrated one", { CUDA(""), "ZE_AFFINITY_MASK=1" }, "2 3 4 6", NULL },
        { "passed over",
          { CUDA(""), "ZE_AFFINITY_MASK=7,1" },
          "2 3 4 6",
          "ZE_AFFINITY_MASK: '7' is past the last device; GPUs left: 1 of 2" },
        { "nothing but nobody's",
          { CUDA(""), "ROCR_VISIBLE_DEVICES=", "ZE_AFFINITY_MASK=9" },
          "6",
          "ZE_AFFINITY_MASK: '9' is past the last device; GPUs left: 0 of 2" },
    };
    struct wm_gpus gpus = { zoo, ARRAY_LEN(zoo), LOOKED, "/nonexistent", NULL };

    (void)state;
    check_masks(&gpus, masks, ARRAY_LEN(masks));
}

static void write_node(const char *dir, int node, const char *properties)
{
    char path[128];

    snprintf(path, sizeof(path), "class/kfd/kfd/topology/nodes/%d/properties", node);
    test_write_file(dir, path, properties);
}

/* GPU 3 of the zoo stands before GPU 2 among the nodes. */
static void test_nodes(void **state)
{
    static const struct mask masks[] = {
        { "first node",
          { "HIP_VISIBLE_DEVICES=0", CUDA(""), "ZE_AFFINITY_MASK=9" },
          "3 6",
          "ZE_AFFINITY_MASK: '9' is past the last device; GPUs left: 0 of 2" },
        { "second node", { "ROCR_VISIBLE_DEVICES=1", CUDA("") }, "2 5 4 6", NULL },
    };
    struct wm_gpus gpus = { zoo, ARRAY_LEN(zoo), LOOKED, *state, NULL };

    write_node(*state, 0, "cpu_cores_count 64\nsimd_count 0\nlocation_id 0\ndomain 0\n");
    write_node(*state, 1, "simd_count 208\nlocation_id 768\ndomain 0\n");
    write_node(*state, 2, "simd_count 208\nlocation_id 1792\ndomain 0");
    check_masks(&gpus, masks, ARRAY_LEN(masks));
}

#define NO_NODE SIZE_MAX

static size_t place_of(uint64_t rank, const uint64_t *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (nodes[i] == rank)
            return i;
    }
    return NO_NODE;
}

static void test_odd_nodes(void **state)
{
    static const struct {
        const char *name, *first, *second;
        bool certain;
        size_t nodes[2];
    } rows[] = {
        { "both",
          "simd_count 1\nlocation_id 768\n",
          "simd_count 1\nlocation_id 1792\n",
          true,
          { 1, 0 } },
        { "another domain",
          "simd_count 1\nlocation_id 768\ndomain 1\n",
          "simd_count 1\nlocation_id 1792\n",
          false,
          { 1, NO_NODE } },
        { "one is missing",
          "simd_count 1\nlocation_id 768\n",
          NULL,
          false,
          { NO_NODE, 0 } },
        { "one may not be read",
          "simd_count 1\nlocation_id 768\n",
          "",
          false,
          { NO_NODE, 0 } },
        { "two of one GPU",
          "simd_count 1\nlocation_id 768\n",
          "simd_count 1\nlocation_id 768\n",
          false,
          { NO_NODE, 0 } },
        { "part of a GPU",
          "simd_count 1\nlocation_id 768\n",
          "simd_count 1\nlocation_id 769\n",
          false,
          { NO_NODE, 0 } },
        { "no text",
          "\xff\xfe\n\n\n",
          "simd_count\nlocation_id x\n",
          false,
          { NO_NODE, NO_NODE } },
        { "numbers that do not fit",
          "simd_count 99999999999999999999\n",
          "simd_count 1\nlocation_id 18446744073709551615\ndomain 18446744073709551615\n",
          false,
          { NO_NODE, NO_NODE } },
    };
    const uint64_t ranks[] = { wm_pci_rank("0000:07:00.0"), wm_pci_rank("0000:03:00.0") };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t nodes[WM_KFD_NODES];
        char dir[256];

        print_message("  %s\n", rows[i].name);
        snprintf(dir, sizeof(dir), "%s/%zu", (const char *)*state, i);
        assert_int_equal(mkdir(dir, 0755), 0);
        write_node(dir, 0, rows[i].first);
        if (rows[i].second)
            write_node(dir, 1, rows[i].second);
        size_t count = wm_kfd_nodes(dir, nodes);
        size_t places[2] = { place_of(ranks[0], nodes, count),
                             place_of(ranks[1], nodes, count) };
        assert_int_equal(count == 2 && places[0] != NO_NODE && places[1] != NO_NODE,
                         rows[i].certain);
        assert_int_equal(places[0], rows[i].nodes[0]);
        assert_int_equal(places[1], rows[i].nodes[1]);
    }
}

static void test_tiles(void **state)
{
    static const struct gpu max[] = { DRM(0, "0000:1a:00.0", "0000:1a:00.0", "xe"),
                                      DRM(1, "0000:1b:00.0", "0000:1b:00.0", "xe") };
    static const struct mask masks[] = {
        { "flat", { "ZE_AFFINITY_MASK=1" }, "0", NULL },
        { "the second GPU", { "ZE_AFFINITY_MASK=2" }, "1", NULL },
        { "composite",
          { "ZE_AFFINITY_MASK=1.1", "ZE_FLAT_DEVICE_HIERARCHY=COMPOSITE" },
          "1",
          NULL },
    };
    struct wm_gpus gpus = { max, ARRAY_LEN(max), LOOKED, *state, NULL };

    test_write_file(*state, "class/drm/card0/device/tile0/id", "");
    test_write_file(*state, "class/drm/card0/device/tile1/id", "");
    test_write_file(*state, "class/drm/card1/device/tile0/id", "");
    test_write_file(*state, "class/drm/card1/device/tile1/id", "");
    check_masks(&gpus, masks, ARRAY_LEN(masks));
}

static void test_own_environment(void **state)
{
    struct wm_gpus gpus = { zoo, 1, LOOKED, "/nonexistent", NULL };
    size_t chosen[1], count;

    (void)state;
    assert_int_equal(setenv("CUDA_VISIBLE_DEVICES", "", 1), 0);
    assert_int_equal(wm_gpu_select(&gpus, "visible", NULL, chosen, &count, NULL, NULL), 0);
    assert_int_equal(count, 0);
    assert_int_equal(unsetenv("CUDA_VISIBLE_DEVICES"), 0);
    assert_int_equal(wm_gpu_select(&gpus, "visible", NULL, chosen, &count, NULL, NULL), 0);
    assert_int_equal(count, 1);
}

static void test_out_of_memory(void **state)
{
    static const char *const environment[] = { CUDA("MIG-aa,x"), NULL };
    static const char *const words[] = { "0,GPU-1d20", "visible" };
    struct wm_gpus gpus = { parted, ARRAY_LEN(parted), LOOKED, "/nonexistent", NULL };

    (void)state;
    for (size_t w = 0; w < ARRAY_LEN(words); w++) {
        size_t chosen[ARRAY_LEN(parted)], count;
        const char *remark;
        int status = WM_ENOMEM;

        for (long nth = 0; status == WM_ENOMEM; nth++) {
            struct wm_error err = { 0 };

            test_fail_allocation(nth);
            status =
                wm_gpu_select(&gpus, words[w], environment, chosen, &count, &remark, &err);
            test_fail_allocation(-1);
            assert_int_equal(err.status, status);
            assert_in_range(nth, 0, 100);
        }
        assert_int_equal(status, WM_OK);
        wm_gpus_keep_remark(&gpus, NULL);
    }
}

UNIT(gpu_select)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_no_gpu),
        cmocka_unit_test(test_driver_in_trouble),
        cmocka_unit_test(test_cuda),
        cmocka_unit_test(test_cuda_order),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_cuda_parts),
        cmocka_unit_test(test_vendors),
        cmocka_unit_test_setup_teardown(test_nodes, test_make_dir, test_remove_dir),
        cmocka_unit_test_setup_teardown(test_odd_nodes, test_make_dir, test_remove_dir),
        cmocka_unit_test_setup_teardown(test_tiles, test_make_dir, test_remove_dir),
        cmocka_unit_test(test_own_environment),
        cmocka_unit_test(test_out_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
