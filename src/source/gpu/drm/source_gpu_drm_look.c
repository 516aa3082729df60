/* SPDX-License-Identifier: Apache-2.0 */
/* source_gpu_drm_look.c - what a look has told, and the words for what it has not. */
#include "source/gpu/drm/source_gpu_drm_look.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool wm_drm_look_wants(const struct wm_drm_look *look, enum wm_gpu_field field)
{
    return !look->told[field] && (wm_gpu_field_info(field)->asked_with & look->groups) &&
           (!look->only || look->only[field]);
}

static void note(struct wm_drm_look *look, enum wm_gpu_field field,
                 enum wm_reading_state state)
{
    look->told[field] = true;
    look->states[field] = state;
}

void wm_drm_look_number(struct wm_drm_look *look, enum wm_gpu_field field, double value)
{
    if (!wm_drm_look_wants(look, field))
        return;
    note(look, field, WM_READING_OK);
    look->is_number[field] = true;
    look->numbers[field] = value;
    if (look->sheet)
        wm_gpu_set_number(look->sheet, field, value);
}

void wm_drm_look_text(struct wm_drm_look *look, enum wm_gpu_field field, const char *text)
{
    if (!wm_drm_look_wants(look, field))
        return;
    note(look, field, WM_READING_OK);
    if (look->sheet)
        wm_gpu_set_text(look->sheet, field, text);
}

void wm_drm_look_throttle(struct wm_drm_look *look, const char *text, unsigned reasons)
{
    if (!wm_drm_look_wants(look, WM_GPU_THROTTLE))
        return;
    note(look, WM_GPU_THROTTLE, WM_READING_OK);
    look->numbers[WM_GPU_THROTTLE] = reasons;
    if (look->sheet)
        wm_gpu_set_throttle(look->sheet, text, reasons);
}

void wm_drm_look_missing(struct wm_drm_look *look, enum wm_gpu_field field,
                         enum wm_reading_state state, const char *format, ...)
{
    struct wm_error why = { .status = WM_EIO };
    va_list args;

    if (!wm_drm_look_wants(look, field))
        return;
    va_start(args, format);
    vsnprintf(why.text, sizeof(why.text), format, args);
    va_end(args);
    note(look, field, state);
    if (look->sheet)
        wm_gpu_set_missing(look->sheet, field, state, why.text);
    else
        look->whys[field] = why;
}

void wm_drm_look_failed(struct wm_drm_look *look, enum wm_gpu_field field,
                        enum wm_reading_state state, const char *name,
                        const struct wm_error *err)
{
    if (state != WM_READING_NONE)
        wm_drm_look_missing(look, field, state, "%s", err->text);
    else if (!look->absent[field])
        look->absent[field] = name;
}

/* Of fields that no DRM driver has, why not. */
static const struct {
    enum wm_gpu_field field;
    const char *why;
} never[] = {
    { WM_GPU_COMPUTE_CAPABILITY, "only GPUs of NVIDIA have a compute capability" },
    { WM_GPU_NVML_VERSION, "NVML is the library of NVIDIA's driver alone" },
    { WM_GPU_CUDA_VERSION, "CUDA needs a GPU of NVIDIA" },
    { WM_GPU_COMPUTE_MODE, "only NVIDIA's driver has compute modes" },
    { WM_GPU_PERSISTENCE, "only NVIDIA's driver has a persistence mode" },
    { WM_GPU_MIG_MODE, "only GPUs of NVIDIA have MIG" },
    { WM_GPU_MIG_MODE_PENDING, "only GPUs of NVIDIA have MIG" },
    { WM_GPU_CLOCK_SM, "the multiprocessors run with the graphics clock" },
    { WM_GPU_CLOCK_SM_MAX, "the multiprocessors run with the graphics clock" },
    { WM_GPU_NVLINK_LINKS, "only GPUs of NVIDIA have NVLink" },
    { WM_GPU_NVLINK_SENT, "only GPUs of NVIDIA have NVLink" },
    { WM_GPU_NVLINK_RECEIVED, "only GPUs of NVIDIA have NVLink" },
};

/* Says which file there is not, where one would have told the field. */
static void tell_absent(struct wm_drm_look *look, enum wm_gpu_field field)
{
    const struct wm_drm_card *card = look->board->card;
    const char *path = look->absent[field], *folder = "";

    if (!path) {
        wm_drm_look_missing(look, field, WM_READING_UNSUPPORTED,
                            "%s does not report it for this GPU", card->driver);
        return;
    }
    if (strncmp(path, "link/", 5) == 0) {
        folder = card->link;
        path += 5;
    } else if (strncmp(path, "hwmon/", 6) == 0) {
        folder = card->hwmon[0] ? card->hwmon : "device/hwmon/hwmon*/";
        path += 6;
    }
    wm_drm_look_missing(look, field, WM_READING_UNSUPPORTED,
                        "%s does not report it for this GPU: there is no %s/%s%s",
                        card->driver, card->label, folder, path);
}

void wm_drm_look_finish(struct wm_drm_look *look)
{
    for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
        wm_drm_look_missing(look, never[i].field, WM_READING_UNSUPPORTED, "%s",
                            never[i].why);
    for (enum wm_gpu_field field = 0; field < WM_GPU_FIELDS; field++) {
        if (field != WM_GPU_INDEX) /* is the core's */
            tell_absent(look, field);
    }
}
