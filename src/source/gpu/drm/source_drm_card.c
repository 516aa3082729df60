/* SPDX-License-Identifier: Apache-2.0 */
/* source_drm_card.c - which graphics cards there are, and who each of them is. */
#include "source/gpu/drm/source_drm_card.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/text/base_text.h"
#include "source/gpu/drm/source_drm_text.h"

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

/* Drivers that only show pictures. Their cards are told apart from GPUs without
 * a search through all processes, which would cost each start on a server. */
static const char *const displays[] = {
    "ast",
    "bochs",
    "bochs-drm",
    "cirrus",
    "efidrm",
    "evdi",
    "gud",
    "hibmc-drm",
    "hyperv_drm",
    "mgag200",
    "ofdrm",
    "qxl",
    "simple-framebuffer",
    "simpledrm",
    "udl",
    "vboxvideo",
    "vesadrm",
    "vgem",
    "vkms",
};

/* Drivers whose fdinfo has engine counters. */
static const char *const counting[] = {
    "amdgpu", "etnaviv", "i915", "msm", "panfrost", "panthor", "v3d", "xe",
};

static bool is_among(const char *driver, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(driver, list[i]) == 0)
            return true;
    }
    return false;
}

/* "0000:03:00.0", the domain having four digits or more. */
static bool is_slot(const char *text)
{
    static const char hex[] = "0123456789abcdef";
    size_t domain = strspn(text, hex);

    if (domain < 4 || domain > 8)
        return false;
    text += domain;
    return text[0] == ':' && strspn(text + 1, hex) == 2 && text[3] == ':' &&
           strspn(text + 4, hex) == 2 && text[6] == '.' &&
           strspn(text + 7, "01234567") == 1 && text[8] == '\0';
}

/* The last part of what a link points to; empty where it is none. */
static void read_link_name(int dir, const char *link, char *name, size_t size)
{
    char target[PATH_MAX];
    ssize_t length = readlinkat(dir, link, target, sizeof(target) - 1);

    target[length > 0 ? length : 0] = '\0';
    const char *slash = strrchr(target, '/');
    const char *base = slash ? slash + 1 : target;
    wm_text_utf8(name, size, base, strlen(base));
}

static const char *vendor_name(uint16_t vendor)
{
    switch (vendor) {
    case 0x1002:
        return "AMD ";
    case 0x8086:
        return "Intel ";
    case 0x10de:
        return "NVIDIA ";
    default:
        return "";
    }
}

/* A serial number that the GPU carries from machine to machine, as amdgpu has
 * it: 16 hexadecimal digits. */
static bool read_serial(int dir, char *identity, size_t size)
{
    char line[64];

    wm_file_read_line(dir, "device/unique_id", line, sizeof(line));
    size_t length = strlen(line);
    if (length < 8 || length > 32 || strspn(line, "0123456789abcdefABCDEF") != length ||
        strspn(line, "0") == length)
        return false;
    snprintf(identity, size, "%s", line);
    return true;
}

/* An APU whose gpu_metrics are those of a GPU that stands alone: MI300A. */
static bool is_like_discrete(const struct wm_drm_uevent *uevent)
{
    return uevent->has_ids && uevent->vendor == 0x1002 && uevent->device == 0x74a0;
}

static void identify(struct wm_drm_card *card, int dir)
{
    struct wm_drm_uevent uevent = { 0 };
    char text[2048], device[64];

    if (wm_file_read_at(dir, "device/uevent", text, sizeof(text)) > 0)
        wm_parse_drm_uevent(text, &uevent);
    if (!uevent.driver[0])
        read_link_name(dir, "device/driver", uevent.driver, sizeof(uevent.driver));
    read_link_name(dir, "device", device, sizeof(device));
    if (!is_slot(uevent.slot))
        snprintf(uevent.slot, sizeof(uevent.slot), "%.31s", is_slot(device) ? device : "");

    memcpy(card->driver, uevent.driver, sizeof(card->driver));
    memcpy(card->slot, uevent.slot, sizeof(card->slot));
    card->integrated = is_like_discrete(&uevent);
    if (!read_serial(dir, card->identity, sizeof(card->identity)))
        snprintf(card->identity, sizeof(card->identity), "%s",
                 card->slot[0] ? card->slot
                 : device[0]   ? device
                               : card->label);

    wm_file_read_line(dir, "device/product_name", card->model, sizeof(card->model));
    if (card->model[0])
        return;
    if (uevent.has_ids)
        snprintf(card->model, sizeof(card->model), "%sGPU %04x:%04x",
                 vendor_name(uevent.vendor), uevent.vendor, uevent.device);
    else
        snprintf(card->model, sizeof(card->model), "%s GPU", card->driver);
}

static long find_render(int dir)
{
    struct dirent *entry;
    long found = -1;

    DIR *folder = wm_file_open_folder(dir, "device/drm");
    if (!folder)
        return -1;
    while ((entry = readdir(folder)) != NULL) {
        const char *end;
        uint64_t number;
        if (strncmp(entry->d_name, "renderD", 7) == 0 &&
            wm_text_u64(entry->d_name + 7, &end, &number) && *end == '\0' && number < 65536)
            found = (long)number;
    }
    closedir(folder);
    return found;
}

bool wm_drm_card_counts_clients(const struct wm_drm_card *card)
{
    return is_among(card->driver, counting, ARRAY_LEN(counting));
}

static enum wm_drm_verdict judge(const struct wm_drm_card *card, char *why, size_t why_size)
{
    if (!card->driver[0]) {
        snprintf(why, why_size, "%s: no driver", card->label);
        return WM_DRM_NO_GPU;
    }
    if (strncmp(card->driver, "nvidia", 6) == 0) {
        snprintf(why, why_size, "%s: %s, left to NVML", card->label, card->driver);
        return WM_DRM_NO_GPU;
    }
    if (is_among(card->driver, displays, ARRAY_LEN(displays))) {
        snprintf(why, why_size, "%s: %s, only a display", card->label, card->driver);
        return WM_DRM_NO_GPU;
    }
    snprintf(why, why_size, "%s: %s, without counters", card->label, card->driver);
    return WM_DRM_MAYBE_GPU;
}

enum wm_drm_verdict wm_drm_card_open(struct wm_drm_card *card, const char *class_path,
                                     long number, char *why, size_t why_size)
{
    *card = (struct wm_drm_card) {
        .number = number,
        .metrics_file.fd = -ENOENT,
        .sleep_file.fd = -ENOENT,
    };
    snprintf(card->label, sizeof(card->label), "card%ld", number);
    snprintf(card->path, sizeof(card->path), "%s/%s", class_path, card->label);
    int dir = open(card->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0) {
        snprintf(why, why_size, "%s: no folder", card->label);
        return WM_DRM_NO_GPU;
    }

    identify(card, dir);
    enum wm_drm_verdict verdict = judge(card, why, why_size);
    if (verdict == WM_DRM_NO_GPU) {
        close(dir);
        return verdict;
    }
    card->render = find_render(dir);
    wm_drm_card_open_sensors(card, dir);
    close(dir);

    for (size_t i = 0; i < WM_DRM_METRICS; i++) {
        if (card->sensors[i].way == WM_DRM_BY_FILES ||
            card->sensors[i].way == WM_DRM_BY_GPU_METRICS)
            verdict = WM_DRM_IS_GPU;
    }
    return wm_drm_card_counts_clients(card) ? WM_DRM_IS_GPU : verdict;
}

static int compare_numbers(const void *left, const void *right)
{
    long a = *(const long *)left, b = *(const long *)right;

    return a < b ? -1 : a > b;
}

int wm_drm_list_cards(const char *class_path, long numbers[WM_DRM_CARDS], size_t *ret_count,
                      struct wm_error *err)
{
    struct dirent *entry;
    size_t count = 0;

    DIR *folder = opendir(class_path);
    if (!folder && (errno == ENOENT || errno == ENOTDIR))
        return wm_fail(err, WM_ENODEV, "no DRM GPU with readable counters: there is no %s",
                       class_path);
    if (!folder)
        return wm_fail_errno(err, class_path);
    while ((entry = readdir(folder)) != NULL && count < WM_DRM_CARDS) {
        const char *end;
        uint64_t number;
        if (strncmp(entry->d_name, "card", 4) == 0 &&
            wm_text_u64(entry->d_name + 4, &end, &number) && *end == '\0' && number < 65536)
            numbers[count++] = (long)number;
    }
    closedir(folder);
    qsort(numbers, count, sizeof(*numbers), compare_numbers);
    *ret_count = count;
    return WM_OK;
}

void wm_drm_tell_apart(struct wm_drm_card *const *cards, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct wm_drm_card *card = cards[i];
        bool equal = false;

        for (size_t k = 0; k < i; k++)
            equal |= strcmp(cards[k]->identity, card->identity) == 0;
        if (!equal)
            continue;
        const char *other = card->slot[0] ? card->slot : card->label;
        if (strcmp(card->identity, other) == 0)
            other = card->label;
        snprintf(card->identity, sizeof(card->identity), "%s", other);
    }
}
