/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_gpu_visible_mask.h - what the three vendors' readings of their masks have in
 * common: a list of devices, of which one word after the other chooses some.
 */
#ifndef WM_SOURCE_GPU_VISIBLE_MASK_H
#define WM_SOURCE_GPU_VISIBLE_MASK_H

#include "source/gpu/select/source_gpu_visible.h"

#define WM_NOWHERE SIZE_MAX
#define WM_BLANKS " \t\n\v\f\r" /* what strtol() skips */

/* A comma or a NUL stands behind it. */
struct wm_mask_word {
    const char *text;
    size_t length;
};

/* How one driver reads one variable. */
struct wm_mask_dialect {
    const char *variable;

    /* The place among the devices of what `word` means, or WM_NOWHERE and the reason. */
    size_t (*find)(const struct wm_visible *visible, struct wm_mask_word word,
                   const char **ret_why);

    /* What a device does that was chosen before. */
    enum { WM_REPEAT_HIDES_ALL, WM_REPEAT_ENDS, WM_REPEAT_IS_NOTHING } repeat;

    bool passes_over; /* a bad word, rather than end there */
};

/* The value of an environment variable, the first of that name as getenv() has it; NULL
 * where it is not set. */
const char *wm_mask_variable(const struct wm_visible *visible, const char *name);

/* Adds a device behind all others. */
void wm_mask_add(struct wm_visible *visible, size_t gpu, int part, size_t number);

/* Chooses what `mask` names, and notes the first word refused. A comma at the end is no
 * word in any dialect, an empty mask has none. NULL chooses everything a driver shows
 * without a mask, which is all that has a number and stands in front. */
void wm_mask_apply(struct wm_visible *visible, const struct wm_mask_dialect *dialect,
                   const char *mask);

/* For dialects: sets the reason and returns WM_NOWHERE. */
size_t wm_mask_nowhere(const char **ret_why, const char *why);

bool wm_mask_begins(struct wm_mask_word word, const char *beginning);

/* The place of the device with that number. */
size_t wm_mask_find_number(const struct wm_visible *visible, uint64_t number,
                           const char **ret_why);

/* The GPU, not the place in the list, whose UUID alone begins with `word`, as
 * strncmp() or strncasecmp() has it. */
size_t wm_mask_find_gpu(const struct wm_visible *visible, struct wm_mask_word word,
                        int (*differ)(const char *, const char *, size_t),
                        const char **ret_why);

#endif
