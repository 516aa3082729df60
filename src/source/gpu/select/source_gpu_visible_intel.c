/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_gpu_visible_intel.c - "0,1", "0.1": the mask of Level Zero, read as it reads it.
 * The source is open:
 *   [neo]     https://github.com/intel/compute-runtime, parseAffinityMask() in
 *             execution_environment.cpp
 */
#include <stdlib.h>
#include <string.h>

#include "source/gpu/select/source_gpu_visible_mask.h"

/* A GPU of one tile is not divided. */
static int part_count(const struct wm_visible_gpu *gpu)
{
    return gpu->tiles > 1 ? (int)gpu->tiles : 0;
}

/* The number that a word or its part begins with, as strtoul() with base 0. Where
 * there is none, std::stoul() throws in [neo] and the program ends; we go on. */
static bool take_ordinal(const char *text, unsigned long *ret_ordinal)
{
    char *end;

    *ret_ordinal = strtoul(text, &end, 0);
    return end != text;
}

/* What follows the word's first dot; NULL where nothing does. */
static const char *after_dot(struct wm_mask_word word)
{
    const char *dot = memchr(word.text, '.', word.length);

    return dot && dot + 1 < word.text + word.length ? dot + 1 : NULL;
}

static size_t find_part(const struct wm_mask_list *list, size_t gpu, unsigned long part)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct wm_visible_device *device = &list->devices[i];
        if (device->gpu == gpu && device->part >= 0 && (unsigned long)device->part == part)
            return i;
    }
    return WM_NOWHERE;
}

static size_t find_flat(const struct wm_mask_list *list, struct wm_mask_word word,
                        const char **ret_why)
{
    unsigned long device;

    if (!take_ordinal(word.text, &device))
        return wm_mask_nowhere(ret_why, "is not a number");
    if (after_dot(word))
        return wm_mask_nowhere(ret_why,
                               "names a tile where each tile is a device of its own");
    return wm_mask_find_number(list, device, ret_why);
}

static size_t find_composite(const struct wm_mask_list *list, struct wm_mask_word word,
                             const char **ret_why)
{
    const char *tile_text = after_dot(word);
    unsigned long device, tile;

    if (!take_ordinal(word.text, &device))
        return wm_mask_nowhere(ret_why, "is not a number");

    size_t whole = wm_mask_find_number(list, device, ret_why);
    if (whole == WM_NOWHERE || !tile_text)
        return whole;

    struct wm_mask_word rest = { tile_text, word.length - (size_t)(tile_text - word.text) };
    if (!take_ordinal(tile_text, &tile) || after_dot(rest))
        return wm_mask_nowhere(ret_why, "is not <device>.<tile>");

    size_t gpu = list->devices[whole].gpu;
    if (part_count(&list->gpus[gpu]) == 0 && tile == 0)
        return whole;
    size_t place = find_part(list, gpu, tile);
    return place != WM_NOWHERE ? place : wm_mask_nowhere(ret_why, "is past the last tile");
}

static const struct wm_mask_dialect level_zero_flat = {
    .variable = "ZE_AFFINITY_MASK",
    .find = find_flat,
    .repeat = WM_REPEAT_IS_NOTHING,
    .passes_over = true,
};

static const struct wm_mask_dialect level_zero_composite = {
    .variable = "ZE_AFFINITY_MASK",
    .find = find_composite,
    .repeat = WM_REPEAT_IS_NOTHING,
    .passes_over = true,
};

/* Unless told, the driver is flat for the one family of GPUs that has tiles and
 * composite for all others [neo]. COMBINED masks as FLAT does. */
static bool is_flat(const struct wm_mask_list *list, const char *hierarchy)
{
    if (hierarchy && strcmp(hierarchy, "COMPOSITE") == 0)
        return false;
    if (hierarchy && (strcmp(hierarchy, "FLAT") == 0 || strcmp(hierarchy, "COMBINED") == 0))
        return true;
    for (size_t i = 0; i < list->gpu_count; i++) {
        if (part_count(&list->gpus[i]) > 0)
            return true;
    }
    return false;
}

static void list_level_zero(struct wm_mask_list *list, bool flat)
{
    size_t numbered = 0;

    for (size_t g = 0; g < list->gpu_count; g++) {
        int parts = part_count(&list->gpus[g]);
        if (!flat || parts == 0)
            wm_mask_add(list, g, WM_VISIBLE_WHOLE, numbered++);
        for (int part = 0; flat && part < parts; part++)
            wm_mask_add(list, g, part, numbered++);
    }
    for (size_t g = 0; !flat && g < list->gpu_count; g++) {
        for (int part = 0; part < part_count(&list->gpus[g]); part++)
            wm_mask_add(list, g, part, WM_VISIBLE_NO_NUMBER);
    }
}

static int compare_devices(const void *a, const void *b)
{
    const struct wm_visible_device *left = a, *right = b;
    if (left->gpu != right->gpu)
        return left->gpu < right->gpu ? -1 : 1;
    return left->part - right->part;
}

/* The mask chooses but does not order, and a whole GPU has its tiles in it. */
static void order_level_zero(struct wm_mask_list *list)
{
    size_t kept = 0;

    if (list->chosen > 1)
        qsort(list->devices, list->chosen, sizeof(*list->devices), compare_devices);
    for (size_t i = 0; i < list->chosen; i++) {
        const struct wm_visible_device device = list->devices[i];
        const struct wm_visible_device *last = kept ? &list->devices[kept - 1] : NULL;

        if (!last || last->gpu != device.gpu || last->part != WM_VISIBLE_WHOLE)
            list->devices[kept++] = device;
    }
    list->chosen = kept;
}

void wm_visible_intel(const struct wm_visible_gpu *gpus, size_t count,
                      const struct wm_visible_intel_masks *masks,
                      struct wm_visible_device *devices, struct wm_visible *ret_visible)
{
    struct wm_mask_list list = { .gpus = gpus, .gpu_count = count, .devices = devices };
    const char *mask = masks->affinity ? masks->affinity : "";
    bool flat = is_flat(&list, masks->hierarchy);

    *ret_visible = (struct wm_visible) { 0 };
    list_level_zero(&list, flat);

    /* An empty mask is none, and so is this word [neo]. */
    if (!mask[0] || strcmp(mask, "default") == 0)
        wm_mask_choose_all(&list);
    else
        wm_mask_apply(&list, flat ? &level_zero_flat : &level_zero_composite, mask,
                      ret_visible);
    order_level_zero(&list);
    ret_visible->count = list.chosen;
}
