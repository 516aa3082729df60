/* SPDX-License-Identifier: Apache-2.0 */
/* source_drm_names.c - the two formats, and where the lists are. */
#include "source/gpu/drm/source_drm_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_file.h"
#include "base/base_text.h"

enum {
    LINE = 256,          /* longer ones are passed over: no device has so long a name */
    LIST_MAX = 16 << 20, /* bytes: pci.ids had 1.5 million in 2024 */
};

/* Copies the next line without its end, or an empty one where it is too long, and returns
 * what is behind it; NULL behind the last. */
static const char *next_line(const char *list, char line[LINE])
{
    size_t length = strcspn(list, "\n");
    size_t copied = length < LINE ? length : 0;

    memcpy(line, list, copied);
    line[copied] = '\0';
    return *list ? list + length + (list[length] == '\n') : NULL;
}

/* What is behind the number `id` of so many hexadecimal digits; NULL where `text` begins
 * otherwise. */
static const char *after_id(const char *text, size_t digits, unsigned id)
{
    bool is_one =
        strspn(text, "0123456789abcdefABCDEF") == digits && strtoul(text, NULL, 16) == id;

    return is_one ? text + digits : NULL;
}

static bool take_name(const char *maker, const char *text, char ret_name[WM_DRM_PRODUCT])
{
    char name[WM_DRM_LINE];

    if (wm_parse_drm_line(wm_text_skip_blanks(text), name) != WM_OK)
        return false;
    snprintf(ret_name, WM_DRM_PRODUCT, "%.6s%s%s", maker, maker[0] ? " " : "", name);
    return true;
}

/* "744C,\tC8,\tAMD Radeon RX 7900 XTX": device, revision and the whole name. */
bool wm_drm_find_in_amdgpu_ids(const char *list, const struct wm_drm_ids *ids,
                               char ret_name[WM_DRM_PRODUCT])
{
    char line[LINE];

    while (ids->vendor == 0x1002 && (list = next_line(list, line)) != NULL) {
        const char *at = after_id(line, 4, ids->device);

        if (at && *at == ',')
            at = after_id(wm_text_skip_blanks(at + 1), 2, ids->revision);
        if (at && *at == ',')
            return take_name("", at + 1, ret_name);
    }
    return false;
}

/* A vendor's line, "8086  Intel Corporation", is followed by those of its devices,
 * "\t56a0  DG2 [Arc A770]", each with those of boards, which begin with two tabs. */
bool wm_drm_find_in_pci_ids(const char *list, const struct wm_drm_ids *ids,
                            char ret_name[WM_DRM_PRODUCT])
{
    const char *maker = wm_drm_vendor(ids->vendor);
    bool is_vendor = false;
    char line[LINE];

    while ((list = next_line(list, line)) != NULL) {
        const char *at =
            is_vendor && line[0] == '\t' ? after_id(line + 1, 4, ids->device) : NULL;

        if (at && *at == ' ')
            return take_name(maker ? maker : "", at, ret_name);
        if (line[0] != '\t' && line[0] != '#' && line[0] != '\0')
            is_vendor = after_id(line, 4, ids->vendor) != NULL;
    }
    return false;
}

static const struct list {
    const char *file;
    bool (*find)(const char *list, const struct wm_drm_ids *ids, char *ret_name);
} lists[] = {
    { "libdrm/amdgpu.ids", wm_drm_find_in_amdgpu_ids },
    { "misc/pci.ids", wm_drm_find_in_pci_ids },   /* Debian, and pciutils itself */
    { "hwdata/pci.ids", wm_drm_find_in_pci_ids }, /* Fedora, Arch */
};

static bool find_in(const struct list *list, const struct wm_drm_ids *ids,
                    char ret_name[WM_DRM_PRODUCT])
{
    char path[512], *text;
    size_t length;

    snprintf(path, sizeof(path), "%s/%s", wm_env_trusted("WATTMETER_SHARE", "/usr/share"),
             list->file);
    if (wm_file_slurp(path, LIST_MAX, &text, &length, NULL) < 0)
        return false;
    bool found = list->find(text, ids, ret_name);
    free(text);
    return found;
}

bool wm_drm_find_name(const struct wm_drm_ids *ids, char ret_name[WM_DRM_PRODUCT])
{
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        if (find_in(&lists[i], ids, ret_name))
            return true;
    }
    return false;
}
