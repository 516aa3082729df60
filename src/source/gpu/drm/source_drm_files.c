/* SPDX-License-Identifier: Apache-2.0 */
/* source_drm_files.c - reading the files of a graphics card, and why one says nothing. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base_error.h"
#include "base/base_file.h"
#include "base/base_text.h"
#include "source/gpu/drm/source_drm_card.h"
#include "source/gpu/source_drm_text.h"
#include "source/gpu/source_gpu_pci.h"

/* No GPU that is awake draws nothing. */
const char wm_drm_not_measured[] = " draws 0 W by its own account: it is not measured";

static enum wm_reading_state fail_asleep(const struct wm_drm_card *card,
                                         struct wm_error *err)
{
    wm_fail(err, WM_EIO, "%s is asleep; wattmeter does not wake it", card->label);
    return WM_READING_STALE;
}

static enum wm_reading_state fail_read(const struct wm_drm_card *card,
                                       const struct wm_drm_file *file, int number,
                                       struct wm_error *err)
{
    const char *name = file->name;

    wm_fail(err, wm_status_of_errno(number), "%s/%s: %s", card->path, name,
            wm_errno_text(number));
    switch (number) {
    case ENOENT:
    case ENOTDIR:
        return file->fd == WM_DRM_BY_PATH ? WM_READING_NONE : WM_READING_FAILED;
    case EACCES:
        wm_fail(err, WM_EACCES, "%s%s/%s: Permission denied",
                geteuid() == 0 ? "" : "only root may read ", card->path, name);
        return WM_READING_DENIED;
    /* Who may open a file may read it: this is amdgpu's word for a GPU that is
     * asleep or being reset, from Linux 6.15 on. */
    case EPERM:
        wm_fail(err, WM_EIO, "%s is asleep or being reset", card->label);
        return WM_READING_STALE;
    case EOPNOTSUPP:
    case ENODATA:
    case EINVAL:
    case ENOSYS:
        return WM_READING_UNSUPPORTED;
    default:
        return WM_READING_FAILED;
    }
}

static enum wm_reading_state read_file(const struct wm_drm_card *card,
                                       const struct wm_drm_file *file, bool wakes,
                                       char *text, size_t size, size_t *ret_length,
                                       struct wm_error *err)
{
    ssize_t length = file->fd;

    if (wakes && card->asleep &&
        (file->fd != WM_DRM_BY_PATH || faccessat(card->dir, file->name, F_OK, 0) == 0))
        return fail_asleep(card, err);
    if (file->fd >= 0)
        length = wm_file_reread(file->fd, text, size);
    else if (file->fd == WM_DRM_BY_PATH)
        length = wm_file_read_at(card->dir, file->name, text, size);
    if (length < 0)
        return fail_read(card, file, (int)-length, err);
    *ret_length = (size_t)length;
    return WM_READING_OK;
}

struct wm_drm_file wm_drm_by_path(const char *name)
{
    struct wm_drm_file file = { .fd = WM_DRM_BY_PATH };

    snprintf(file.name, sizeof(file.name), "%s", name);
    return file;
}

enum wm_reading_state wm_drm_card_text(const struct wm_drm_card *card, const char *name,
                                       bool wakes, char *text, size_t size,
                                       struct wm_error *ret_err)
{
    const struct wm_drm_file file = wm_drm_by_path(name);
    size_t length;

    enum wm_reading_state state =
        read_file(card, &file, wakes, text, size, &length, ret_err);
    if (state == WM_READING_OK && (length == size - 1 || strlen(text) != length)) {
        wm_fail(ret_err, WM_EFORMAT, "%s/%s: %s", card->path, name,
                strlen(text) != length ? "this is not text" : "too long to be true");
        return WM_READING_FAILED;
    }
    return state;
}

enum wm_reading_state wm_drm_card_refuse(const struct wm_drm_card *card, const char *name,
                                         const char *text, struct wm_error *ret_err)
{
    char line[48];

    wm_text_line(line, sizeof(line), text);
    wm_fail(ret_err, WM_EFORMAT, "%s/%s: '%s' makes no sense", card->path, name, line);
    return WM_READING_FAILED;
}

static enum wm_reading_state read_number(const struct wm_drm_card *card,
                                         const struct wm_drm_file *file, bool wakes,
                                         int64_t *ret_number, struct wm_error *err)
{
    char text[32], line[48];
    size_t length;

    enum wm_reading_state state =
        read_file(card, file, wakes, text, sizeof(text), &length, err);
    if (state != WM_READING_OK)
        return state;
    if (strlen(text) == length && wm_parse_sysfs_number(text, ret_number) == WM_OK)
        return WM_READING_OK;
    wm_text_line(line, sizeof(line), text);
    wm_fail(err, WM_EFORMAT, "%s/%s: '%s' is not a number", card->path, file->name, line);
    return WM_READING_FAILED;
}

static enum wm_reading_state fail_range(const struct wm_drm_card *card,
                                        const struct wm_drm_file *file, int64_t number,
                                        const char *why, struct wm_error *err)
{
    wm_fail(err, WM_EFORMAT, "%s/%s: %" PRId64 " is %s", card->path, file->name, number,
            why);
    return WM_READING_FAILED;
}

static enum wm_reading_state fail_zero(const struct wm_drm_card *card, const char *what,
                                       struct wm_error *err)
{
    if (card->elsewhere[0] && what == wm_drm_not_measured)
        wm_fail(err, WM_ENODEV, "%s", card->elsewhere);
    else
        wm_fail(err, WM_ENODEV, "%s%s", what[0] == ' ' ? card->label : "", what);
    return WM_READING_UNSUPPORTED;
}

enum wm_reading_state wm_drm_read_way(const struct wm_drm_card *card,
                                      const struct wm_drm_way *way, double *ret_value,
                                      struct wm_error *err)
{
    const struct wm_drm_range *range = way->range;
    int64_t sum = 0, number;

    for (size_t i = 0; i < way->file_count; i++) {
        const struct wm_drm_file *file = &way->files[i];
        enum wm_reading_state state = read_number(card, file, way->wakes, &number, err);
        if (state != WM_READING_OK)
            return state;
        if (number < 0 && range->min >= 0)
            return fail_range(card, file, number, "below zero", err);
        if (i > 0 && way->is_difference)
            number = -number;
        if (__builtin_add_overflow(sum, number, &sum))
            sum = INT64_MAX;
    }
    if (sum < range->min || sum > range->max)
        return fail_range(card, &way->files[0], sum, "out of range", err);
    if (sum == 0 && range->zero)
        return fail_zero(card, range->zero, err);
    *ret_value = (double)sum * range->unit;
    return WM_READING_OK;
}

enum wm_reading_state wm_drm_card_number(const struct wm_drm_card *card, const char *name,
                                         int64_t min, int64_t max, double *ret_number,
                                         struct wm_error *ret_err)
{
    const struct wm_drm_range range = { 1, min, max, NULL };
    const struct wm_drm_way way = {
        .range = &range, .files = { wm_drm_by_path(name) }, .file_count = 1, .wakes = true
    };

    return wm_drm_read_way(card, &way, ret_number, ret_err);
}

/* The power that cuts the card off (crit), the highest limit that can be set, and the limit
 * that is set: of the card (1) or of the GPU alone (2). */
static const char *const limits[] = {
    "power1_crit",      "power2_crit", "power1_cap_max", "power1_rated_max",
    "power2_rated_max", "power1_max",  "power2_max",     "power1_cap",
};

double wm_drm_card_most_watts(const struct wm_drm_card *card)
{
    double most = 0, microwatts;
    struct wm_error err;
    char name[96];

    for (size_t i = 0; card->hwmon[0] && i < sizeof(limits) / sizeof(limits[0]); i++) {
        snprintf(name, sizeof(name), "%s%s", card->hwmon, limits[i]);
        if (wm_drm_card_number(card, name, 0, INT64_C(100000000000), &microwatts, &err) ==
                WM_READING_OK &&
            microwatts / 1e6 > most)
            most = microwatts / 1e6;
    }
    return most;
}

static void read_gpu_metrics(struct wm_drm_card *card)
{
    _Alignas(8) char bytes[WM_GPU_METRICS_SIZE + 2];
    size_t length = 0;

    card->metrics_read = true;
    card->metrics_status = WM_EIO;
    card->metrics_state = read_file(card, &card->metrics_file, true, bytes, sizeof(bytes),
                                    &length, &card->metrics_err);
    if (card->metrics_state != WM_READING_OK)
        return;
    card->metrics_status = wm_parse_gpu_metrics(bytes, length, &card->metrics);
    if (card->metrics_status == WM_OK)
        return;
    card->metrics_state = WM_READING_FAILED;
    if (length < 4)
        wm_fail(&card->metrics_err, WM_EFORMAT, "%s/%s: only %zu bytes", card->path,
                card->metrics_file.name, length);
    else
        wm_fail(&card->metrics_err, WM_EFORMAT,
                "%s/%s: revision %u.%u of %zu bytes is not known", card->path,
                card->metrics_file.name, (unsigned char)bytes[2], (unsigned char)bytes[3],
                length);
}

void wm_drm_card_turn(struct wm_drm_card *card)
{
    card->metrics_read = false;
    card->asleep = wm_pci_is_asleep(card->sleep_file.fd);
}

enum wm_reading_state wm_drm_card_metrics(struct wm_drm_card *card,
                                          struct wm_error *ret_err)
{
    if (!card->metrics_read)
        read_gpu_metrics(card);
    if (card->metrics_status != WM_OK)
        *ret_err = card->metrics_err;
    return card->metrics_state;
}

static enum wm_reading_state read_metric(struct wm_drm_card *card,
                                         enum wm_drm_metric metric, double *ret_value,
                                         struct wm_error *err)
{

    enum wm_reading_state state = wm_drm_card_metrics(card, err);
    if (state != WM_READING_OK)
        return state;
    if (metric == WM_DRM_POWER && card->metrics.has[metric] &&
        card->metrics.values[metric] <= 0)
        return fail_zero(card, wm_drm_not_measured, err);
    if (card->metrics.has[metric]) {
        *ret_value = card->metrics.values[metric];
        return WM_READING_OK;
    }
    wm_fail(err, WM_ENODEV, "%s/%s does not have it", card->path, card->metrics_file.name);
    return WM_READING_UNSUPPORTED;
}

enum wm_reading_state wm_drm_card_read(struct wm_drm_card *card, enum wm_drm_metric metric,
                                       double *ret_value, struct wm_error *ret_err)
{
    const struct wm_drm_way *way = &card->ways[metric];

    return way->by == WM_DRM_BY_FILES ? wm_drm_read_way(card, way, ret_value, ret_err)
                                      : read_metric(card, metric, ret_value, ret_err);
}
