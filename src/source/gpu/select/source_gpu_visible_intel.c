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

static int tile_count(const struct wm_visible_gpu *gpu)
{
    return gpu->tiles > 1 ? (int)gpu->tiles : 1;
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

static size_t find_flat(const struct wm_visible *visible, struct wm_mask_word word,
                        const char **ret_why)
{
    unsigned long device;

    if (!take_ordinal(word.text, &device))
        return wm_mask_nowhere(ret_why, "is not a number");
    if (after_dot(word))
        return wm_mask_nowhere(ret_why,
                               "names a tile where each tile is a separate device");
    return wm_mask_find_number(visible, device, ret_why);
}

static size_t find_composite(const struct wm_visible *visible, struct wm_mask_word word,
                             const char **ret_why)
{
    const char *tile_text = after_dot(word);
    unsigned long device, tile;

    if (!take_ordinal(word.text, &device))
        return wm_mask_nowhere(ret_why, "is not a number");

    size_t whole = wm_mask_find_number(visible, device, ret_why);
    if (whole == WM_NOWHERE || !tile_text)
        return whole;

    struct wm_mask_word rest = { tile_text, word.length - (size_t)(tile_text - word.text) };
    if (!take_ordinal(tile_text, &tile) || after_dot(rest))
        return wm_mask_nowhere(ret_why, "is not <device>.<tile>");

    if (tile >= (unsigned long)tile_count(&visible->gpus[visible->devices[whole].gpu]))
        return wm_mask_nowhere(ret_why, "is past the last tile");
    return whole;
}

/* Unless told, the driver is flat for the one family of GPUs that has tiles and
 * composite for all others [neo]. COMBINED masks as FLAT does. */
static bool is_flat(const struct wm_visible *visible, const char *hierarchy)
{
    if (hierarchy && strcmp(hierarchy, "COMPOSITE") == 0)
        return false;
    if (hierarchy && (strcmp(hierarchy, "FLAT") == 0 || strcmp(hierarchy, "COMBINED") == 0))
        return true;
    for (size_t i = 0; i < visible->gpu_count; i++) {
        if (tile_count(&visible->gpus[i]) > 1)
            return true;
    }
    return false;
}

/* A GPU of one tile is not divided. */
static void list_level_zero(struct wm_visible *visible, bool flat)
{
    for (size_t g = 0; g < visible->gpu_count; g++) {
        int tiles = flat ? tile_count(&visible->gpus[g]) : 1;
        for (int tile = 0; tile < tiles; tile++)
            wm_mask_add(visible, g, tiles > 1 ? tile : WM_VISIBLE_WHOLE, visible->listed);
    }
}

void wm_visible_intel(struct wm_visible *visible)
{
    const char *mask = wm_mask_variable(visible, "ZE_AFFINITY_MASK");
    bool flat = is_flat(visible, wm_mask_variable(visible, "ZE_FLAT_DEVICE_HIERARCHY"));
    const struct wm_mask_dialect dialect = {
        .variable = "ZE_AFFINITY_MASK",
        .find = flat ? find_flat : find_composite,
        .repeat = WM_REPEAT_IS_NOTHING,
        .passes_over = true,
    };

    /* An empty mask is none, and so is this word [neo]. */
    if (mask && (!mask[0] || strcmp(mask, "default") == 0))
        mask = NULL;
    list_level_zero(visible, flat);
    wm_mask_apply(visible, &dialect, mask);
}
