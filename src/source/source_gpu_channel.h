/* SPDX-License-Identifier: Apache-2.0 */
/* source_gpu_channel.h - the fields of a GPU that are sampled: in every run, or where
 * somebody asks for them. */
#ifndef WM_SOURCE_GPU_CHANNEL_H
#define WM_SOURCE_GPU_CHANNEL_H

#include <stdbool.h>

#include "base/base_error.h"
#include "wattmeter/gpu.h"

/* `words` as in struct wm_source_config: "all", or names of metrics with commas between
 * them; NULL: none. WM_EINVAL for a wrong word. */
int wm_gpu_channels_check(const char *words, struct wm_error *err);

/* Whether `words`, which are valid, name the field, and it is sampled on demand. */
bool wm_gpu_channels_name(const char *words, enum wm_gpu_field field);

/* The channel of a field that is sampled: metric, unit and kind are set. */
struct wm_channel wm_gpu_channel_of(enum wm_gpu_field field);

#endif
