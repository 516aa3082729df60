/* SPDX-License-Identifier: Apache-2.0 */
/* view_gpu.h - the forms in which the GPUs of a machine are shown; for src/view
 * alone. */
#ifndef WM_VIEW_GPU_H
#define WM_VIEW_GPU_H

#include <jansson.h>
#include <stdio.h>

#include "wattmeter/gpu.h"

/* What is said of a GPU (`item` is 0 then), of a process on it, or of a part of
 * it: so that what goes through a table of fields is written once. */
struct wm_gpu_table {
    /* NULL past the last field. */
    const struct wm_gpu_field_info *(*info)(size_t field);

    /* A number that is not finite is missing: drivers say all kinds of things. */
    struct wm_gpu_value (*get)(const struct wm_gpus *gpus, size_t gpu, size_t item,
                               size_t field);
};

/* What follows the key of a field in JSON: its unit, "_watts". */
const char *wm_gpu_key_suffix(const struct wm_gpu_field_info *info);

extern const struct wm_gpu_table wm_gpu_table_gpu;
extern const struct wm_gpu_table wm_gpu_table_process;
extern const struct wm_gpu_table wm_gpu_table_mig;

/* All there is to say as a JSON object, the caller's; NULL when out of memory. */
json_t *wm_view_gpu_json(const struct wm_gpus *gpus);

/* For people. Whether `out` took it all, it knows itself. */
void wm_view_gpu_text(const struct wm_gpus *gpus, FILE *out);
void wm_view_gpu_brief(const struct wm_gpus *gpus, FILE *out);

#endif
