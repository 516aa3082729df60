/* SPDX-License-Identifier: Apache-2.0 */
/* source_gpu_open.h - the inventory over a table of backends that the caller gives. */
#ifndef WM_SOURCE_GPU_OPEN_H
#define WM_SOURCE_GPU_OPEN_H

#include "source/gpu/source_gpu_ops.h"

/* As wm_gpus_open(), which has the table of this build. GPUs are counted in its
 * order. */
int wm_gpus_open_backends(const struct wm_gpu_ops *const *table, size_t count,
                          const struct wm_source_config *config, struct wm_gpus **ret_gpus,
                          struct wm_error *err);

/* An inventory to choose from by `words`, and good for nothing else: asks what
 * wm_gpu_select() needs, and where the words are numbers only of those GPUs, so that
 * another one that hangs is not waited for. Nothing is chosen yet, all are listed.
 * `table` NULL: that of this build. */
int wm_gpus_open_to_select(const struct wm_gpu_ops *const *table, size_t count,
                           const char *words, struct wm_gpus **ret_gpus,
                           struct wm_error *err);

#endif
