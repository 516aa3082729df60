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

static void require_sound(const struct wm_visible *visible)
{
    require(visible->count <= visible->listed);
    require(visible->listed <= wm_visible_room(visible->gpus, visible->gpu_count));
    for (size_t i = 0; i < visible->count; i++) {
        const struct wm_visible_device *device = &visible->devices[i];
        require(device->gpu < visible->gpu_count);
        const struct wm_visible_gpu *gpu = &visible->gpus[device->gpu];
        size_t parts = gpu->mig_count > gpu->tiles ? gpu->mig_count : gpu->tiles;
        require(device->part == WM_VISIBLE_WHOLE || (size_t)device->part < parts);
        for (size_t k = 0; k < i; k++)
            require(!is_same(device, &visible->devices[k]));
    }
    const struct wm_visible_refusal *refused = &visible->refused;
    if (refused->text) {
        require(refused->variable && refused->why);
        require(!memchr(refused->text, ',', refused->length));
        require(!memchr(refused->text, '\0', refused->length));
    }
}

/* With room for exactly as many as promised, so that a byte too many is seen. */
static void ask(void (*rules)(struct wm_visible *), struct wm_visible *visible)
{
    size_t room = wm_visible_room(visible->gpus, visible->gpu_count);

    visible->devices = malloc(room ? room * sizeof(*visible->devices) : 1);
    require(visible->devices != NULL);
    rules(visible);
    require_sound(visible);
}

static const char *uuid_of(const struct wm_visible_gpu *gpus,
                           const struct wm_visible_device *device)
{
    const struct wm_visible_gpu *gpu = &gpus[device->gpu];

    return device->part >= 0 ? gpu->migs[device->part].uuid : gpu->uuid;
}

/* The devices as a list of UUIDs or of numbers; false where one has none. */
static bool write_mask(const struct wm_visible *visible, bool by_uuid, char *mask,
                       size_t size)
{
    size_t length = (size_t)snprintf(mask, size, "CUDA_VISIBLE_DEVICES=");

    for (size_t i = 0; i < visible->count; i++) {
        const struct wm_visible_device *device = &visible->devices[i];
        const char *uuid = uuid_of(visible->gpus, device);
        if (by_uuid ? !uuid || !uuid[0] : device->number == WM_VISIBLE_NO_NUMBER)
            return false;
        if (by_uuid)
            length += (size_t)snprintf(mask + length, size - length, "%s,", uuid);
        else
            length +=
                (size_t)snprintf(mask + length, size - length, "%zu,", device->number);
    }
    return true;
}

static void fuzz_cuda(struct wm_visible visible)
{
    struct wm_visible again = visible;
    char mask[256];

    ask(wm_visible_cuda, &visible);
    for (int by_uuid = 0; by_uuid < 2; by_uuid++) {
        const char *const named[] = { mask, visible.environment[1], NULL };

        if (!write_mask(&visible, by_uuid, mask, sizeof(mask)))
            continue;
        again.environment = named;
        again.listed = again.count = 0;
        ask(wm_visible_cuda, &again);
        require(again.count == visible.count && !again.refused.text);
        for (size_t i = 0; i < again.count; i++)
            require(is_same(&again.devices[i], &visible.devices[i]));
        free(again.devices);
    }
    free(visible.devices);
}

/* The second mask can only take away. */
static void fuzz_amd(struct wm_visible visible)
{
    const char *const outer[] = { visible.environment[0], NULL };
    struct wm_visible rocr = visible;

    ask(wm_visible_amd, &visible);
    rocr.environment = outer;
    ask(wm_visible_amd, &rocr);
    for (size_t i = 0; i < visible.count; i++) {
        bool found = false;
        for (size_t k = 0; k < rocr.count; k++)
            found |= is_same(&visible.devices[i], &rocr.devices[k]);
        require(found);
    }
    free(rocr.devices);
    free(visible.devices);
}

static void fuzz_intel(struct wm_visible visible)
{
    ask(wm_visible_intel, &visible);
    free(visible.devices);
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

/* "NAME=value"; the variable is not set where `value` is NULL. */
static char *entry(const char *name, const char *value)
{
    size_t room = strlen(name) + (value ? strlen(value) : 0) + 2;
    char *text = malloc(room);

    require(text != NULL);
    snprintf(text, room, value ? "%s=%s" : "-%s", name, value ? value : "");
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const hierarchies[] = { NULL, "FLAT", "COMPOSITE", "COMBINED" };
    static const unsigned drivers[] = { 0, 535, 570 };
    enum { HEAD = 4, ENTRIES = 7 };

    if (size < HEAD)
        return 0;
    struct wm_visible visible = {
        .gpus = machines[data[0] % ARRAY_LEN(machines)],
        .gpu_count = data[1] % (ARRAY_LEN(machines[0]) + 1),
        .driver = drivers[data[2] % ARRAY_LEN(drivers)],
    };
    char *mask = malloc(size - HEAD + 1);
    if (!mask)
        return 0;
    memcpy(mask, data + HEAD, size - HEAD);
    mask[size - HEAD] = '\0';

    char *whole = entry("ZE_AFFINITY_MASK", data[3] & 1 ? NULL : mask);
    char *second = next_line(mask), *third = next_line(second);
    char *entries[ENTRIES] = {
        entry("CUDA_VISIBLE_DEVICES", data[3] & 2 ? NULL : mask),
        entry("CUDA_DEVICE_ORDER", second),
        entry("ROCR_VISIBLE_DEVICES", data[3] & 4 ? NULL : mask),
        entry("HIP_VISIBLE_DEVICES", second),
        entry("CUDA_VISIBLE_DEVICES", third),
        whole,
        entry("ZE_FLAT_DEVICE_HIERARCHY", hierarchies[data[2] % ARRAY_LEN(hierarchies)]),
    };
    const char *environment[ENTRIES + 1] = { NULL };
    for (size_t i = 0; i < ENTRIES; i++)
        environment[i] = entries[i];

    visible.environment = environment + 5;
    fuzz_intel(visible);
    visible.environment = environment + 2;
    fuzz_amd(visible);
    environment[2] = NULL;
    visible.environment = environment;
    fuzz_cuda(visible);
    for (size_t i = 0; i < ENTRIES; i++)
        free(entries[i]);
    free(mask);
    return 0;
}
