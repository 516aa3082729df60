/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_gpu_select.h - what wm_gpu_select() consists of, and what it needs of the
 * inventory beyond gpu.h, which shows the chosen GPUs only.
 */
#ifndef WM_SOURCE_GPU_SELECT_H
#define WM_SOURCE_GPU_SELECT_H

#include <stdbool.h>
#include <stddef.h>

#include "wattmeter/gpu.h"

/* What a choice by `words` has to have asked of all GPUs, if these are not all
 * numbers. A GPU whose WM_GPU_UUID is not ok then does not answer. */
unsigned wm_gpu_select_groups(const char *words);

/* Returns 1 where `words` are numbers of GPUs and it is certain of which, so that none
 * has to be asked, and the choice is as that of wm_gpu_select(); else 0. */
int wm_gpu_select_numbers(const struct wm_gpus *gpus, const char *words, size_t *ret_chosen,
                          size_t *ret_count, struct wm_error *err);

/* In source_gpu.c. */

/* As wm_gpu_get(), wm_gpu_mig_count() and wm_gpu_mig_get(), but of all GPUs:
 * `index` is that of WM_GPU_INDEX, below wm_gpus_present(). */
void wm_gpus_get_any(const struct wm_gpus *gpus, size_t index, enum wm_gpu_field field,
                     struct wm_gpu_value *ret_value);
size_t wm_gpus_mig_count_any(const struct wm_gpus *gpus, size_t index);
void wm_gpus_mig_get_any(const struct wm_gpus *gpus, size_t index, size_t mig,
                         enum wm_gpu_mig_field field, struct wm_gpu_value *ret_value);

/* The /sys in which the GPUs were found. */
const char *wm_gpus_sysfs(const struct wm_gpus *gpus);

/* Takes over `remark`, from malloc() or NULL, and frees the one kept before; it
 * lives until the next one or wm_gpus_close(). */
void wm_gpus_keep_remark(const struct wm_gpus *gpus, char *remark);

/* How a program counts a GPU. */
struct wm_gpu_place {
    size_t place;    /* among all that are visible, from 1; 0: it is not */
    size_t number;   /* among the devices of its vendor, from 0 */
    const char *why; /* the number is not known; a constant. NULL: it is */
};

/* As wm_gpu_select(); places[0..present), all zero, are set for "visible". */
int wm_gpu_select_places(const struct wm_gpus *gpus, const char *words,
                         const char *const *environment, struct wm_gpu_place *places,
                         size_t *ret_chosen, size_t *ret_count, const char **ret_remark,
                         struct wm_error *err);

/* In source_gpu_select_visible.c. Sets places[0..present), all zero, of the GPUs that the
 * vendors' variables in `environment`, which ends with NULL, leave to a program. The caller
 * frees `ret_remark`, which is NULL where nothing is to be said. */
int wm_gpu_select_visible(const struct wm_gpus *gpus, const char *const *environment,
                          struct wm_gpu_place *places, char **ret_remark,
                          struct wm_error *err);

/* How ROCm calls the GPU: "GPU-" and sysfs' unique_id. Empty where it is not one of
 * AMD's, or has no such number. */
enum { WM_ROCM_UUID_SIZE = sizeof("GPU-0123456789abcdef") };

void wm_gpu_rocm_uuid(const struct wm_gpus *gpus, size_t index,
                      char ret_uuid[WM_ROCM_UUID_SIZE]);

/* The text of a field, or NULL where its state is not ok. */
const char *wm_gpu_text(const struct wm_gpus *gpus, size_t index, enum wm_gpu_field field);

#endif
