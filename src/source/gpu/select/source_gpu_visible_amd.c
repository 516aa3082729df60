/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_gpu_visible_amd.c - "0,2", "GPU-7c1f": the masks of ROCm, read as it reads them.
 * The source of both its parts is open:
 *   [rocr]    https://github.com/ROCm/ROCR-Runtime, amd_filter_device.cpp
 *   [clr]     https://github.com/ROCm/clr, rocclr/device/rocm/rocdevice.cpp
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text/base_text.h"
#include "source/gpu/select/source_gpu_visible_mask.h"

static struct wm_mask_word trimmed(struct wm_mask_word word)
{
    while (word.length > 0 && strchr(WM_BLANKS, word.text[0]))
        word.text++, word.length--;
    while (word.length > 0 && strchr(WM_BLANKS, word.text[word.length - 1]))
        word.length--;
    return word;
}

/* Case does not matter to ROCr, which makes all letters capital. */
static size_t find_rocr_uuid(const struct wm_mask_list *list, struct wm_mask_word word,
                             const char **ret_why)
{
    enum { SHORTEST = 5, LONGEST = 20 };

    if (word.length < SHORTEST || word.length > LONGEST)
        return wm_mask_nowhere(ret_why, "is no UUID");

    size_t gpu = wm_mask_find_gpu(list, word, strncasecmp, ret_why);
    return gpu != WM_NOWHERE ? wm_mask_find_number(list, gpu, ret_why) : WM_NOWHERE;
}

/* strtol() with base 0, to the word's end: "0x1" and "+1" are numbers. */
static size_t find_rocr(const struct wm_mask_list *list, struct wm_mask_word word,
                        const char **ret_why)
{
    char *end;

    word = trimmed(word);
    if (word.length == 0)
        return wm_mask_nowhere(ret_why, "is empty");
    if (word.text[0] == 'G' || word.text[0] == 'g')
        return find_rocr_uuid(list, word, ret_why);

    long number = strtol(word.text, &end, 0);
    if (end != word.text + word.length)
        return wm_mask_nowhere(ret_why, "is neither a number nor a UUID");
    if (number < 0)
        return wm_mask_nowhere(ret_why, "is negative");
    return wm_mask_find_number(list, (uint64_t)number, ret_why);
}

/* Of several GPUs that fit, HIP takes the first. */
static size_t find_hip_uuid(const struct wm_mask_list *list, struct wm_mask_word word,
                            const char **ret_why)
{
    size_t found = WM_NOWHERE;

    for (size_t i = 0; i < list->count; i++) {
        const struct wm_visible_device *device = &list->devices[i];
        const char *uuid = list->gpus[device->gpu].uuid;

        if (uuid && strncmp(uuid, word.text, word.length) == 0 &&
            (found == WM_NOWHERE || device->number < list->devices[found].number))
            found = i;
    }
    return found != WM_NOWHERE ? found : wm_mask_nowhere(ret_why, "fits no device");
}

/* A number must look as HIP would print it: no blank, no sign, no leading 0. */
static size_t find_hip(const struct wm_mask_list *list, struct wm_mask_word word,
                       const char **ret_why)
{
    uint64_t number;

    if (wm_mask_begins(word, "GPU-"))
        return find_hip_uuid(list, word, ret_why);
    if (strspn(word.text, "0123456789") != word.length ||
        (word.text[0] == '0' && word.length > 1))
        return wm_mask_nowhere(ret_why, "is neither a number nor a UUID");
    if (!wm_text_u64(word.text, NULL, &number))
        number = UINT64_MAX;
    return wm_mask_find_number(list, number, ret_why);
}

static const struct wm_mask_dialect rocr = {
    .variable = "ROCR_VISIBLE_DEVICES",
    .find = find_rocr,
    .repeat = WM_REPEAT_ENDS,
};

/* [clr] reads all three alike. */
static void apply_hip(struct wm_mask_list *list, const char *variable, const char *mask,
                      struct wm_visible *visible)
{
    const struct wm_mask_dialect hip = {
        .variable = variable,
        .find = find_hip,
        .repeat = WM_REPEAT_IS_NOTHING,
    };

    wm_mask_apply(list, &hip, mask, visible);
}

static bool is_set(const char *mask)
{
    return mask && mask[0];
}

/* What is chosen becomes all there is, numbered anew. */
static void narrow(struct wm_mask_list *list)
{
    list->count = list->chosen;
    list->chosen = 0;
    for (size_t i = 0; i < list->count; i++)
        list->devices[i].number = i;
}

/* An empty mask is one to ROCr, and none to HIP and OpenCL. The manual has
 * GPU_DEVICE_ORDINAL work for HIP too; in the code it does not [clr]. */
void wm_visible_amd(const struct wm_visible_gpu *gpus, size_t count,
                    const struct wm_visible_amd_masks *masks,
                    struct wm_visible_device *devices, struct wm_visible *ret_visible)
{
    struct wm_mask_list list = { .gpus = gpus, .gpu_count = count, .devices = devices };

    *ret_visible = (struct wm_visible) { 0 };
    for (size_t i = 0; i < count; i++)
        wm_mask_add(&list, i, WM_VISIBLE_WHOLE, i);

    if (masks->rocr)
        wm_mask_apply(&list, &rocr, masks->rocr, ret_visible);
    else
        wm_mask_choose_all(&list);
    narrow(&list);

    if (masks->opencl && is_set(masks->ordinal))
        apply_hip(&list, "GPU_DEVICE_ORDINAL", masks->ordinal, ret_visible);
    else if (!masks->opencl && is_set(masks->hip))
        apply_hip(&list, "HIP_VISIBLE_DEVICES", masks->hip, ret_visible);
    else if (!masks->opencl && is_set(masks->cuda))
        apply_hip(&list, "CUDA_VISIBLE_DEVICES", masks->cuda, ret_visible);
    else
        wm_mask_choose_all(&list);

    for (size_t i = 0; i < list.chosen; i++)
        devices[i].number = devices[i].gpu;
    ret_visible->count = list.chosen;
}
