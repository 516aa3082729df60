/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_drm_names.h - what a PCI device is called, by the lists that a machine may have:
 * libdrm's amdgpu.ids and the pci.ids of pciutils.
 */
#ifndef WM_SOURCE_DRM_NAMES_H
#define WM_SOURCE_DRM_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "source/gpu/source_drm_text.h"

struct wm_drm_ids {
    uint16_t vendor, device;
    uint8_t revision;
};

/* "AMD " and the longest name that a list may have. */
enum { WM_DRM_PRODUCT = WM_DRM_LINE + 8 };

/* Of the text of a list, which ends with a NUL. False, with nothing written, where the
 * device is not in it, or has no name of visible characters there. */
bool wm_drm_find_in_amdgpu_ids(const char *list, const struct wm_drm_ids *ids,
                               char ret_name[WM_DRM_PRODUCT]);
bool wm_drm_find_in_pci_ids(const char *list, const struct wm_drm_ids *ids,
                            char ret_name[WM_DRM_PRODUCT]);

/* By the lists of this machine, in /usr/share or $WATTMETER_SHARE. */
bool wm_drm_find_name(const struct wm_drm_ids *ids, char ret_name[WM_DRM_PRODUCT]);

#endif
