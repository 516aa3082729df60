/* SPDX-License-Identifier: Apache-2.0 */
/* base_names.h - texts that others chose, each kept once and known by its number: 0, 1, 2
 * and so on, as they came. All zero is none. */
#ifndef WM_BASE_NAMES_H
#define WM_BASE_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/base_map.h"

struct wm_names {
    char **texts; /* by number; they stay where they are */
    size_t count, room;
    struct wm_map numbers; /* by hash, and by which of those with that hash it is */
};

/* WM_MAP_NONE where it is not there. */
uint32_t wm_names_find(const struct wm_names *names, const char *text);

/* Copies it where it is not there. WM_MAP_NONE: out of memory. */
uint32_t wm_names_add(struct wm_names *names, const char *text);

void wm_names_release(struct wm_names *names);

#endif
