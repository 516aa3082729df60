/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_gpu_visible.c - hostile masks for every vendor's rules. The first four
 * bytes choose a machine, the rest is the text of all variables; lines part
 * CUDA's and ROCm's from each other. Beyond not crashing: the devices are real,
 * each is there once, and naming them by UUID or number gives them again.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "source/gpu/select/source_gpu_visible.h"

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

static const struct wm_visible_mig migs[][3] = {
    { { "MIG-a0", 1, 0 }, { "MIG-a1", 1, 1 }, { "MIG-b0", 2, 0 } },
    { { "MIG-c0", 1, 0 }, { "MIG-c1", 5, 0 }, { "MIG-c2", 5, 1 } },
};

static const struct wm_visible_gpu machines[][4] = {
    {
        { .uuid = "GPU-1a", .model = "A", .pci = "0000:01:00.0" },
        { .uuid = "GPU-1b", .model = "A", .pci = "0000:02:00.0" },
        { .uuid = "GPU-20", .model = "A", .pci = "0000:03:00.0", .tiles = 2 },
        { .uuid = "GPU-30", .model = "A", .pci = "0000:00:00.0", .tiles = 1 },
    },
    {
        { .uuid = "GPU-1a", .model = "A", .capability_major = 8, .tiles = 4 },
        { .uuid = "GPU-1b", .mig_mode = true, .migs = migs[0], .mig_count = 3 },
        { .uuid = "GPU-20", .mig_mode = true, .migs = migs[1], .mig_count = 3 },
        { .uuid = "GPU-30", .mig_mode = true, .tiles = 3 },
    },
    { { 0 }, { .uuid = "" }, { .uuid = "GPU-1a", .pci = "?" }, { .model = "B" } },
};

static bool is_same(const struct wm_visible_device *a, const struct wm_visible_device *b)
{
    return a->gpu == b->gpu && a->part == b->part;
}

static void require_sound(const struct wm_visible_gpu *gpus, size_t count,
                          const struct wm_visible_device *devices,
                          const struct wm_visible *visible)
{
    require(visible->count <= wm_visible_room(gpus, count));
    require(visible->order_uncertain == (visible->order_reason != NULL));
    for (size_t i = 0; i < visible->count; i++) {
        require(devices[i].gpu < count);
        const struct wm_visible_gpu *gpu = &gpus[devices[i].gpu];
        size_t parts = gpu->mig_count > gpu->tiles ? gpu->mig_count : gpu->tiles;
        require(devices[i].part == WM_VISIBLE_WHOLE || (size_t)devices[i].part < parts);
        for (size_t k = 0; k < i; k++)
            require(!is_same(&devices[i], &devices[k]));
    }
}

static void require_inside(const struct wm_visible_refusal *refused, const char *mask)
{
    if (!refused->text)
        return;
    require(refused->variable && refused->why);
    require(mask && refused->text >= mask);
    require(refused->text + refused->length <= mask + strlen(mask));
    require(!memchr(refused->text, ',', refused->length));
    require(refused->position <= (size_t)(refused->text - mask));
}

/* Exactly as large as promised, so that a byte too many is seen. */
static struct wm_visible_device *new_devices(const struct wm_visible_gpu *gpus,
                                             size_t count)
{
    size_t room = wm_visible_room(gpus, count);
    struct wm_visible_device *devices = malloc(room ? room * sizeof(*devices) : 1);

    require(devices != NULL);
    return devices;
}

static const char *uuid_of(const struct wm_visible_gpu *gpus,
                           const struct wm_visible_device *device)
{
    const struct wm_visible_gpu *gpu = &gpus[device->gpu];

    return device->part >= 0 ? gpu->migs[device->part].uuid : gpu->uuid;
}

/* The devices as a list of UUIDs or of numbers; false where one has none. */
static bool write_mask(const struct wm_visible_gpu *gpus,
                       const struct wm_visible_device *devices, size_t count, bool by_uuid,
                       char *mask, size_t size)
{
    size_t length = 0;

    mask[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        const char *uuid = uuid_of(gpus, &devices[i]);
        if (by_uuid ? !uuid || !uuid[0] : devices[i].number == WM_VISIBLE_NO_NUMBER)
            return false;
        if (by_uuid)
            length += (size_t)snprintf(mask + length, size - length, "%s,", uuid);
        else
            length +=
                (size_t)snprintf(mask + length, size - length, "%zu,", devices[i].number);
    }
    return true;
}

static void fuzz_cuda(const struct wm_visible_gpu *gpus, size_t count,
                      const struct wm_visible_cuda_masks *masks)
{
    struct wm_visible_device *devices = new_devices(gpus, count);
    struct wm_visible visible, again;

    wm_visible_cuda(gpus, count, masks, devices, &visible);
    require_sound(gpus, count, devices, &visible);
    require_inside(&visible.refused, masks->visible_devices);

    for (int by_uuid = 0; by_uuid < 2; by_uuid++) {
        struct wm_visible_cuda_masks named = *masks;
        struct wm_visible_device *found = new_devices(gpus, count);
        char mask[256];

        named.visible_devices = mask;
        if (write_mask(gpus, devices, visible.count, by_uuid, mask, sizeof(mask))) {
            wm_visible_cuda(gpus, count, &named, found, &again);
            require(again.count == visible.count && !again.refused.text);
            for (size_t i = 0; i < again.count; i++)
                require(is_same(&found[i], &devices[i]));
        }
        free(found);
    }
    free(devices);
}

static void fuzz_amd(const struct wm_visible_gpu *gpus, size_t count,
                     const struct wm_visible_amd_masks *masks)
{
    const struct wm_visible_amd_masks outer = { .rocr = masks->rocr };
    struct wm_visible_device *devices = new_devices(gpus, count);
    struct wm_visible_device *left = new_devices(gpus, count);
    struct wm_visible visible, rocr;

    wm_visible_amd(gpus, count, masks, devices, &visible);
    require_sound(gpus, count, devices, &visible);
    wm_visible_amd(gpus, count, &outer, left, &rocr);
    require_sound(gpus, count, left, &rocr);
    require_inside(&rocr.refused, masks->rocr);

    /* The second mask can only take away. */
    for (size_t i = 0; i < visible.count; i++) {
        bool found = false;
        for (size_t k = 0; k < rocr.count; k++)
            found |= is_same(&devices[i], &left[k]);
        require(found);
    }
    free(left);
    free(devices);
}

static void fuzz_intel(const struct wm_visible_gpu *gpus, size_t count,
                       const struct wm_visible_intel_masks *masks)
{
    struct wm_visible_device *devices = new_devices(gpus, count);
    struct wm_visible visible;

    wm_visible_intel(gpus, count, masks, devices, &visible);
    require_sound(gpus, count, devices, &visible);
    require_inside(&visible.refused, masks->affinity);
    for (size_t i = 1; i < visible.count; i++) {
        require(devices[i - 1].gpu <= devices[i].gpu);
        if (devices[i - 1].gpu == devices[i].gpu)
            require(devices[i - 1].part >= 0 && devices[i - 1].part < devices[i].part);
    }
    free(devices);
}

/* Ends the line that begins at `text` and returns the next; NULL past the last. */
static char *next_line(char *text)
{
    char *end = text ? strchr(text, '\n') : NULL;

    if (!end)
        return NULL;
    *end = '\0';
    return end + 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const hierarchies[] = { NULL, "FLAT", "COMPOSITE", "COMBINED" };
    static const unsigned drivers[] = { 0, 535, 570 };
    enum { HEAD = 4 };

    if (size < HEAD)
        return 0;
    const struct wm_visible_gpu *gpus = machines[data[0] % ARRAY_LEN(machines)];
    size_t count = data[1] % (ARRAY_LEN(machines[0]) + 1);
    char *mask = malloc(size - HEAD + 1);
    if (!mask)
        return 0;
    memcpy(mask, data + HEAD, size - HEAD);
    mask[size - HEAD] = '\0';

    const struct wm_visible_intel_masks intel = {
        data[3] & 1 ? NULL : mask, hierarchies[data[2] % ARRAY_LEN(hierarchies)]
    };
    fuzz_intel(gpus, count, &intel);

    char *second = next_line(mask);
    const struct wm_visible_cuda_masks cuda = { data[3] & 2 ? NULL : mask, second,
                                                drivers[data[2] % ARRAY_LEN(drivers)] };
    fuzz_cuda(gpus, count, &cuda);

    char *third = next_line(second);
    const struct wm_visible_amd_masks amd = { data[3] & 4 ? NULL : mask, second, third,
                                              third, data[3] & 8 };
    fuzz_amd(gpus, count, &amd);
    free(mask);
    return 0;
}
