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

#include "base/base_text.h"
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
static size_t find_rocr_uuid(const struct wm_visible *visible, struct wm_mask_word word,
                             const char **ret_why)
{
    enum { SHORTEST = 5, LONGEST = 20 };

    if (word.length < SHORTEST || word.length > LONGEST)
        return wm_mask_nowhere(ret_why, "is no UUID");

    size_t gpu = wm_mask_find_gpu(visible, word, strncasecmp, ret_why);
    return gpu != WM_NOWHERE ? wm_mask_find_number(visible, gpu, ret_why) : WM_NOWHERE;
}

/* strtol() with base 0, to the word's end: "0x1" and "+1" are numbers. */
static size_t find_rocr(const struct wm_visible *visible, struct wm_mask_word word,
                        const char **ret_why)
{
    char *end;

    word = trimmed(word);
    if (word.length == 0)
        return wm_mask_nowhere(ret_why, "is empty");
    if (word.text[0] == 'G' || word.text[0] == 'g')
        return find_rocr_uuid(visible, word, ret_why);

    long number = strtol(word.text, &end, 0);
    if (end != word.text + word.length)
        return wm_mask_nowhere(ret_why, "is neither a number nor a UUID");
    if (number < 0)
        return wm_mask_nowhere(ret_why, "is negative");
    return wm_mask_find_number(visible, (uint64_t)number, ret_why);
}

/* Of several GPUs that fit, HIP takes the first. */
static size_t find_hip_uuid(const struct wm_visible *visible, struct wm_mask_word word,
                            const char **ret_why)
{
    size_t found = WM_NOWHERE;

    for (size_t i = 0; i < visible->listed; i++) {
        const struct wm_visible_device *device = &visible->devices[i];
        const char *uuid = visible->gpus[device->gpu].uuid;

        if (uuid && strncmp(uuid, word.text, word.length) == 0 &&
            (found == WM_NOWHERE || device->number < visible->devices[found].number))
            found = i;
    }
    return found != WM_NOWHERE ? found : wm_mask_nowhere(ret_why, "fits no device");
}

/* A number must look as HIP would print it: no blank, no sign, no leading 0. */
static size_t find_hip(const struct wm_visible *visible, struct wm_mask_word word,
                       const char **ret_why)
{
    uint64_t number;

    if (wm_mask_begins(word, "GPU-"))
        return find_hip_uuid(visible, word, ret_why);
    if (strspn(word.text, "0123456789") != word.length ||
        (word.text[0] == '0' && word.length > 1))
        return wm_mask_nowhere(ret_why, "is neither a number nor a UUID");
    if (!wm_text_u64(word.text, NULL, &number))
        number = UINT64_MAX;
    return wm_mask_find_number(visible, number, ret_why);
}

static const struct wm_mask_dialect rocr = {
    .variable = "ROCR_VISIBLE_DEVICES",
    .find = find_rocr,
    .repeat = WM_REPEAT_ENDS,
};

/* What is chosen becomes all there is, numbered anew. */
static void narrow(struct wm_visible *visible)
{
    visible->listed = visible->count;
    visible->count = 0;
    for (size_t i = 0; i < visible->listed; i++)
        visible->devices[i].number = i;
}

/* An empty mask is one to ROCr, and none to HIP, which reads CUDA's where its own is
 * empty, alike [clr]. GPU_DEVICE_ORDINAL is for OpenCL programs: the manual has it work
 * for HIP too; in the code it does not. */
void wm_visible_amd(struct wm_visible *visible)
{
    static const char *const variables[] = { "HIP_VISIBLE_DEVICES",
                                             "CUDA_VISIBLE_DEVICES" };
    struct wm_mask_dialect hip = { .find = find_hip, .repeat = WM_REPEAT_IS_NOTHING };
    const char *mask = NULL;

    for (size_t i = 0; i < visible->gpu_count; i++)
        wm_mask_add(visible, i, WM_VISIBLE_WHOLE, i);
    wm_mask_apply(visible, &rocr, wm_mask_variable(visible, rocr.variable));
    narrow(visible);

    for (size_t i = 0; i < 2 && (!mask || !mask[0]); i++) {
        hip.variable = variables[i];
        mask = wm_mask_variable(visible, hip.variable);
    }
    wm_mask_apply(visible, &hip, mask && mask[0] ? mask : NULL);
}
