/* SPDX-License-Identifier: Apache-2.0 */
/* source_gpu_choice.h - which GPUs a list of words means. */
#ifndef WM_SOURCE_GPU_CHOICE_H
#define WM_SOURCE_GPU_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base_error.h"

/* The identity of a GPU, by its place in the driver's order. Empty: it is
 * there, but would not say who it is. */
struct wm_gpu_id {
    char text[96];
};

/* Whether each of `words` is a place, so that no other GPU needs to be asked who it is;
 * then ret_places[0..count) are those. */
bool wm_gpu_choice_places(const char *words, size_t count, bool *ret_places);

/* What else a GPU may be called: the place of the one that `word`, which is neither
 * a place nor a whole identity, means; or one of the two below. A comma, a blank or
 * a NUL stands behind the word. */
typedef size_t wm_gpu_find(const void *context, const char *word, size_t length);

#define WM_GPU_FITS_NONE SIZE_MAX
#define WM_GPU_FITS_SEVERAL (SIZE_MAX - 1)

/* Sets chosen[0..count) by `words`: NULL or "all", or a comma list of places, identities
 * and what `find` knows, whether the GPUs have an identity or not. Naming a GPU twice is no
 * mistake. WM_EINVAL names the wrong word and lists the GPUs. */
int wm_gpu_choice(const char *words, const struct wm_gpu_id *gpus, size_t count,
                  wm_gpu_find *find, const void *context, bool *chosen,
                  struct wm_error *err);

#endif
