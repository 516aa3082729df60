/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_gpu_visible_mask.h - what the three vendors' readings of their masks have in
 * common: a list of devices, of which one word after the other chooses some.
 */
#ifndef WM_SOURCE_GPU_VISIBLE_MASK_H
#define WM_SOURCE_GPU_VISIBLE_MASK_H

#include <stdint.h>

#include "source/gpu/select/source_gpu_visible.h"

#define WM_NOWHERE SIZE_MAX
#define WM_BLANKS " \t\n\v\f\r" /* what strtol() skips */

/* A comma or a NUL stands behind it. */
struct wm_mask_word {
    const char *text;
    size_t length;
};

/* What may be chosen. What was chosen stands in front, in that order. */
struct wm_mask_list {
    const struct wm_visible_gpu *gpus;
    size_t gpu_count;
    struct wm_visible_device *devices;
    size_t count;
    size_t chosen;
};

/* What a device does that was chosen before. */
enum wm_mask_repeat { WM_REPEAT_HIDES_ALL, WM_REPEAT_ENDS, WM_REPEAT_IS_NOTHING };

/* How one driver reads one variable. */
struct wm_mask_dialect {
    const char *variable;

    /* The place in the list of what `word` means, or WM_NOWHERE and the reason. */
    size_t (*find)(const struct wm_mask_list *list, struct wm_mask_word word,
                   const char **ret_why);

    enum wm_mask_repeat repeat;
    bool passes_over; /* a bad word, rather than end there */
};

/* Adds a device behind all others. */
void wm_mask_add(struct wm_mask_list *list, size_t gpu, int part, size_t number);

/* Chooses everything a driver shows without a mask, which is all that has a
 * number. It stands in front and in order. */
void wm_mask_choose_all(struct wm_mask_list *list);

/* Chooses what `mask` names, and notes in `visible` the first word refused. A
 * comma at the end is no word in any dialect, an empty mask has none. */
void wm_mask_apply(struct wm_mask_list *list, const struct wm_mask_dialect *dialect,
                   const char *mask, struct wm_visible *visible);

/* For dialects: sets the reason and returns WM_NOWHERE. */
size_t wm_mask_nowhere(const char **ret_why, const char *why);

bool wm_mask_begins(struct wm_mask_word word, const char *beginning);

/* The place of the device with that number. */
size_t wm_mask_find_number(const struct wm_mask_list *list, uint64_t number,
                           const char **ret_why);

/* The GPU, not the place in the list, whose UUID alone begins with `word`, as
 * strncmp() or strncasecmp() has it. */
size_t wm_mask_find_gpu(const struct wm_mask_list *list, struct wm_mask_word word,
                        int (*differ)(const char *, const char *, size_t),
                        const char **ret_why);

#endif
