/* SPDX-License-Identifier: Apache-2.0 */
/* view_gpu_words.h - what a GPU says as a person reads it, in igpu's units: MiB,
 * MHz, W, percent. */
#ifndef WM_VIEW_GPU_WORDS_H
#define WM_VIEW_GPU_WORDS_H

#include <stdbool.h>
#include <stdio.h>

#include "wattmeter/gpu.h"

#define WM_COUNT(table) (sizeof(table) / sizeof((table)[0]))
#define WM_MIB 1048576.0

struct wm_words {
    char text[256];
};

/* A GPU, and where it is printed. */
struct wm_gpu_view {
    const struct wm_gpus *gpus;
    size_t gpu;
    FILE *out;
};

/* "12.50 W", of a number and its suffix. */
struct wm_words wm_words_number(double number, int decimals, const char *suffix);

/* "2026-04-17 03:41:27", UTC. */
struct wm_words wm_words_time(double unix_s);

/* A value that is known. */
struct wm_words wm_words_value(const struct wm_gpu_field_info *info,
                               const struct wm_gpu_value *value, bool with_unit);

/* A field of a GPU, "n/a" where it is missing. */
struct wm_words wm_words_field(const struct wm_gpu_view *view, enum wm_gpu_field field,
                               bool with_unit);

struct wm_gpu_value wm_gpu_view_get(const struct wm_gpu_view *view,
                                    enum wm_gpu_field field);

/* Whether its driver says that it is not real: of this GPU or, where this one says
 * nothing, of another one. */
bool wm_gpu_view_simulated(const struct wm_gpu_view *view);

#endif
