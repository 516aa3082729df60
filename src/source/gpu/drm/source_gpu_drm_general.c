/* SPDX-License-Identifier: Apache-2.0 */
/* source_gpu_drm_general.c - who a DRM GPU is: names and numbers, its driver, its place on
 * PCI, what the kernel's compute driver (KFD) knows, and whether it has a display. */
#include "source/gpu/drm/source_gpu_drm_look.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base_file.h"
#include "source/gpu/source_drm_text.h"
#include "source/gpu/source_gpu_sysfs.h"

/* The same in the device's uevent, which has it where the file is missing. */
static bool find_id(const struct wm_drm_card *card, const char *path, uint64_t *ret_id)
{
    struct wm_drm_uevent uevent = { 0 };
    char text[WM_DRM_TEXT];
    struct wm_error err;

    if (wm_drm_card_text(card, "device/uevent", false, text, sizeof(text), &err) !=
            WM_READING_OK ||
        wm_parse_drm_uevent(text, &uevent) != WM_OK)
        return false;
    *ret_id = strcmp(path, "device/vendor") == 0             ? uevent.vendor
              : strcmp(path, "device/device") == 0           ? uevent.device
              : strcmp(path, "device/subsystem_vendor") == 0 ? uevent.sub_vendor
                                                             : uevent.sub_device;
    return *ret_id != 0;
}

/* A 16-bit number that PCI gives to a maker or to what is made. A failure is the
 * reason why there is no `field`. */
static bool read_id(struct wm_drm_look *look, enum wm_gpu_field field, const char *path,
                    uint64_t *ret_id)
{
    const struct wm_drm_card *card = look->board->card;
    char text[WM_DRM_TEXT];
    struct wm_error err;

    enum wm_reading_state state =
        wm_drm_card_text(card, path, false, text, sizeof(text), &err);
    if (state == WM_READING_OK &&
        (wm_parse_drm_hex(text, ret_id) != WM_OK || *ret_id > UINT16_MAX))
        state = wm_drm_card_refuse(card, path, text, &err);
    if (state == WM_READING_NONE && find_id(card, path, ret_id))
        state = WM_READING_OK;
    if (state != WM_READING_OK)
        wm_drm_look_failed(look, field, state, path, &err);
    return state == WM_READING_OK;
}

static void tell_vendor(struct wm_drm_look *look)
{
    uint64_t id;
    char text[16];

    if (!read_id(look, WM_GPU_VENDOR, "device/vendor", &id))
        return;
    const char *name = wm_drm_vendor(id);
    snprintf(text, sizeof(text), "0x%04" PRIx64, id);
    wm_drm_look_text(look, WM_GPU_VENDOR, name ? name : text);
}

static void tell_pair(struct wm_drm_look *look, enum wm_gpu_field field, const char *device,
                      const char *vendor)
{
    uint64_t high, low;
    char text[16];

    if (!wm_drm_look_wants(look, field) || !read_id(look, field, device, &high) ||
        !read_id(look, field, vendor, &low))
        return;
    snprintf(text, sizeof(text), "%04" PRIX64 "%04" PRIX64, high, low);
    wm_drm_look_text(look, field, text);
}

/* Of "0000:03:00.0" the parts; a card that is not on PCI has none. */
static void tell_place(struct wm_drm_look *look)
{
    static const enum wm_gpu_field parts[] = { WM_GPU_PCI_BUS, WM_GPU_PCI_DEVICE };
    const char *slot = look->board->card->slot;

    if (!slot[0]) {
        for (enum wm_gpu_field field = WM_GPU_PCI_BUS; field <= WM_GPU_PCI_REPLAYS; field++)
            wm_drm_look_missing(look, field, WM_READING_UNSUPPORTED,
                                "this GPU is not on PCI");
        return;
    }
    wm_drm_look_text(look, WM_GPU_PCI_BUS_ID, slot);
    for (size_t i = 0; i < 2; i++) {
        char text[24];
        slot = strchr(slot, ':') + 1;
        snprintf(text, sizeof(text), "%02lX", strtoul(slot, NULL, 16));
        wm_drm_look_text(look, parts[i], text);
    }
    tell_pair(look, WM_GPU_PCI_DEVICE_ID, "device/device", "device/vendor");
    tell_pair(look, WM_GPU_PCI_SUB_SYSTEM_ID, "device/subsystem_device",
              "device/subsystem_vendor");
}

static bool read_line(const char *folder, const char *name, char ret_line[WM_DRM_LINE])
{
    char path[512], text[WM_DRM_LINE + 8];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    ssize_t length = wm_file_read_at(AT_FDCWD, path, text, sizeof(text));
    return length > 0 && strlen(text) == (size_t)length &&
           wm_parse_drm_line(text, ret_line) == WM_OK;
}

/* Drivers of the kernel itself have no version but the kernel's; those that a
 * vendor gives out apart have one. */
static void tell_driver_version(struct wm_drm_look *look)
{
    char name[64], line[WM_DRM_LINE], labelled[WM_DRM_LINE + 16];

    snprintf(name, sizeof(name), "module/%s/version", look->board->card->driver);
    if (read_line(look->sysfs, name, line)) {
        wm_drm_look_text(look, WM_GPU_DRIVER_VERSION, line);
    } else if (read_line(look->procfs, "sys/kernel/osrelease", line)) {
        snprintf(labelled, sizeof(labelled), "of Linux %s", line);
        wm_drm_look_text(look, WM_GPU_DRIVER_VERSION, labelled);
    }
}

/* "gfx90a" of 90010: the last two digits of the name are hexadecimal. */
static void tell_architecture(struct wm_drm_look *look, uint64_t version)
{
    char text[32];

    if (version == 0 || version > 999999 || version / 100 % 100 > 15 || version % 100 > 15)
        return;
    snprintf(text, sizeof(text), "gfx%" PRIu64 "%" PRIx64 "%" PRIx64, version / 10000,
             version / 100 % 100, version % 100);
    wm_drm_look_text(look, WM_GPU_ARCHITECTURE, text);
}

static void tell_node(struct wm_drm_look *look, const char *properties)
{
    uint64_t simds, per_unit, version;

    if (wm_parse_named_number(properties, "simd_count", &simds) == WM_OK &&
        wm_parse_named_number(properties, "simd_per_cu", &per_unit) == WM_OK &&
        per_unit > 0 && simds >= per_unit && simds < 1000000)
        wm_drm_look_number(look, WM_GPU_MULTIPROCESSORS, (double)(simds / per_unit));
    if (wm_parse_named_number(properties, "gfx_target_version", &version) == WM_OK)
        tell_architecture(look, version);
}

/* KFD says which render node is which GPU. */
static void tell_compute_units(struct wm_drm_look *look)
{
    const char *render = look->board->card->render;
    char text[WM_DRM_TEXT], name[32];
    uint64_t number;
    int status;

    for (unsigned node = 0;
         (status = wm_kfd_read_node(look->sysfs, node, text)) != WM_ENOENT; node++) {
        if (status < 0 || wm_parse_named_number(text, "drm_render_minor", &number) < 0)
            continue;
        snprintf(name, sizeof(name), "renderD%" PRIu64, number);
        if (strcmp(name, render) == 0) {
            tell_node(look, text);
            return;
        }
    }
}

/* What one connector says in `text`: "enabled" where a display uses it. */
static enum wm_reading_state ask_connector(const struct wm_drm_card *card,
                                           const char *connector, char text[WM_DRM_TEXT],
                                           struct wm_error *err)
{
    char path[300];

    snprintf(path, sizeof(path), "%.80s/enabled", connector);
    enum wm_reading_state state =
        wm_drm_card_text(card, path, false, text, WM_DRM_TEXT, err);
    if (state == WM_READING_NONE)
        return WM_READING_UNSUPPORTED;
    if (state != WM_READING_OK || strcmp(text, "enabled\n") == 0 ||
        strcmp(text, "disabled\n") == 0)
        return state;
    return wm_drm_card_refuse(card, path, text, err);
}

/* A connector is a folder such as card1-DP-1 beside the card's files. */
static void tell_display(struct wm_drm_look *look)
{
    const struct wm_drm_card *card = look->board->card;
    enum wm_reading_state state, worst = WM_READING_OK;
    char prefix[24], text[WM_DRM_TEXT];
    struct dirent *entry;
    struct wm_error err;
    bool active = false;

    snprintf(prefix, sizeof(prefix), "%s-", card->label);
    DIR *folder = wm_file_open_folder(card->dir, ".");
    if (!folder)
        return;
    while ((entry = readdir(folder)) != NULL) {
        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0)
            continue;
        state = ask_connector(card, entry->d_name, text, &err);
        active |= state == WM_READING_OK && text[0] == 'e';
        worst = state != WM_READING_OK ? state : worst;
    }
    closedir(folder);
    if (active || worst == WM_READING_OK)
        wm_drm_look_number(look, WM_GPU_DISPLAY_ACTIVE, active);
    else
        wm_drm_look_failed(look, WM_GPU_DISPLAY_ACTIVE, worst, NULL, &err);
}

void wm_drm_look_at_general(struct wm_drm_look *look)
{
    const struct wm_drm_card *card = look->board->card;

    tell_place(look);
    if (!(look->groups & WM_GPU_GENERAL))
        return;
    wm_drm_look_text(look, WM_GPU_NAME, card->model);
    wm_drm_look_text(look, WM_GPU_UUID, card->identity);
    wm_drm_look_text(look, WM_GPU_LABEL, card->label);
    wm_drm_look_text(look, WM_GPU_SOURCE, "drm");
    wm_drm_look_text(look, WM_GPU_KERNEL_DRIVER, card->driver);
    wm_drm_look_number(look, WM_GPU_SIMULATED, 0); /* the kernel has no such GPU */
    tell_vendor(look);
    tell_driver_version(look);
    tell_display(look);
    if (wm_drm_card_has_driver(card, "amdgpu"))
        tell_compute_units(look);
}
