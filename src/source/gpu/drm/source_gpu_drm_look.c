/* SPDX-License-Identifier: Apache-2.0 */
/* source_gpu_drm_look.c - reading a file of sysfs for a field, and the words for what it
 * does not say. */
#include "source/gpu/drm/source_gpu_drm_look.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/text/base_text.h"
#include "source/gpu/drm/source_drm_text.h"

bool wm_drm_look_wants(const struct wm_drm_look *look, enum wm_gpu_field field)
{
    return !look->told[field] && (wm_gpu_field_info(field)->asked_with & look->groups);
}

void wm_drm_look_number(struct wm_drm_look *look, enum wm_gpu_field field, double value)
{
    if (!wm_drm_look_wants(look, field))
        return;
    look->told[field] = true;
    look->is_number[field] = true;
    look->numbers[field] = value;
    wm_gpu_set_number(look->sheet, field, value);
}

void wm_drm_look_text(struct wm_drm_look *look, enum wm_gpu_field field, const char *text)
{
    if (!wm_drm_look_wants(look, field))
        return;
    look->told[field] = true;
    wm_gpu_set_text(look->sheet, field, text);
}

void wm_drm_look_missing(struct wm_drm_look *look, enum wm_gpu_field field,
                         enum wm_reading_state state, const char *format, ...)
{
    char why[sizeof(((struct wm_error *)NULL)->text)];
    va_list args;

    if (!wm_drm_look_wants(look, field))
        return;
    va_start(args, format);
    vsnprintf(why, sizeof(why), format, args);
    va_end(args);
    look->told[field] = true;
    wm_gpu_set_missing(look->sheet, field, state, why);
}

void wm_drm_look_failed(struct wm_drm_look *look, enum wm_gpu_field field,
                        const struct wm_drm_text *file)
{
    wm_drm_look_missing(look, field, file->state, "%s", file->err.text);
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
    const struct wm_drm_card *card = &look->board->card;
    const char *path = look->absent[field], *folder = "";

    if (!path) {
        wm_drm_look_missing(look, field, WM_READING_UNSUPPORTED,
                            "%s does not tell it of this GPU", card->driver);
        return;
    }
    if (strncmp(path, "link/", 5) == 0) {
        folder = look->board->link;
        path += 5;
    } else if (strncmp(path, "hwmon/", 6) == 0) {
        folder = card->hwmon[0] ? card->hwmon : "device/hwmon/hwmon*/";
        path += 6;
    }
    wm_drm_look_missing(look, field, WM_READING_UNSUPPORTED,
                        "%s does not tell it of this GPU: there is no %s/%s%s",
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

static void fail_read(const struct wm_drm_look *look, const char *path, int number,
                      struct wm_drm_text *file)
{
    const struct wm_drm_card *card = &look->board->card;

    file->there = number != ENOENT && number != ENOTDIR;
    file->state = file->there ? wm_drm_state_of(number) : WM_READING_UNSUPPORTED;
    if (file->state == WM_READING_DENIED)
        wm_fail(&file->err, WM_EACCES, "only root may read %s/%s", card->path, path);
    else if (file->state == WM_READING_STALE)
        wm_fail(&file->err, WM_EIO, "%s is asleep or being reset", card->label);
    else
        wm_fail(&file->err, wm_status_of_errno(number), "%s/%s: %s", card->path, path,
                strerror(number));
}

void wm_drm_look_read(const struct wm_drm_look *look, const char *path, bool wakes,
                      struct wm_drm_text *ret_file)
{
    const struct wm_drm_card *card = &look->board->card;

    ret_file->there = true;
    if (wakes && card->asleep && faccessat(look->board->dir, path, F_OK, 0) == 0) {
        ret_file->state = WM_READING_STALE;
        wm_fail(&ret_file->err, WM_EIO, "%s is asleep, and is not woken to be asked",
                card->label);
        return;
    }
    ssize_t length =
        wm_file_read_at(look->board->dir, path, ret_file->text, sizeof(ret_file->text));
    if (length < 0) {
        fail_read(look, path, (int)-length, ret_file);
        return;
    }
    ret_file->state = WM_READING_OK;
    if ((size_t)length == sizeof(ret_file->text) - 1 ||
        strlen(ret_file->text) != (size_t)length) {
        ret_file->state = WM_READING_FAILED;
        wm_fail(&ret_file->err, WM_EFORMAT, "%s/%s: %s", card->path, path,
                strlen(ret_file->text) != (size_t)length ? "this is not text"
                                                         : "too long to be true");
    }
}

void wm_drm_look_refuse(const struct wm_drm_look *look, const char *path,
                        struct wm_drm_text *file)
{
    char line[48];

    wm_text_line(line, sizeof(line), file->text);
    file->state = WM_READING_FAILED;
    wm_fail(&file->err, WM_EFORMAT, "%s/%s: '%s' makes no sense", look->board->card.path,
            path, line);
}

void wm_drm_look_read_number(const struct wm_drm_look *look, const char *path, bool wakes,
                             int64_t min, int64_t max, struct wm_drm_text *ret_file,
                             double *ret_number)
{
    int64_t number;

    wm_drm_look_read(look, path, wakes, ret_file);
    if (ret_file->state != WM_READING_OK)
        return;
    if (wm_parse_sysfs_number(ret_file->text, &number) < 0 || number < min || number > max)
        wm_drm_look_refuse(look, path, ret_file);
    else
        *ret_number = (double)number;
}
