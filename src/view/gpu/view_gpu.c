/* SPDX-License-Identifier: Apache-2.0 */
/* view_gpu.c - the public face of the views of GPUs, and the one way in which
 * these views look at a field. */
#include "view/gpu/view_gpu.h"

#include <math.h>
#include <string.h>

#include "base/base_error.h"

static struct wm_gpu_value sound(struct wm_gpu_value value)
{
    if (value.state == WM_READING_OK && !value.text && !isfinite(value.number))
        value = (struct wm_gpu_value) { .state = WM_READING_FAILED,
                                        .why = "what the driver said is no number" };
    if (value.state != WM_READING_OK && !value.why)
        value.why = "unknown";
    return value;
}

const struct wm_gpu_field_info *wm_gpu_table_info(enum wm_gpu_table table, size_t field)
{
    switch (table) {
    case WM_GPU_TABLE_PROCESS:
        return wm_gpu_process_field_info((enum wm_gpu_process_field)field);
    case WM_GPU_TABLE_MIG:
        return wm_gpu_mig_field_info((enum wm_gpu_mig_field)field);
    case WM_GPU_TABLE_GPU:
        break;
    }
    return wm_gpu_field_info((enum wm_gpu_field)field);
}

struct wm_gpu_value wm_gpu_table_get(enum wm_gpu_table table, const struct wm_gpus *gpus,
                                     size_t gpu, size_t item, size_t field)
{
    struct wm_gpu_value value;

    switch (table) {
    case WM_GPU_TABLE_GPU:
        wm_gpu_get(gpus, gpu, (enum wm_gpu_field)field, &value);
        break;
    case WM_GPU_TABLE_PROCESS:
        wm_gpu_process_get(gpus, gpu, item, (enum wm_gpu_process_field)field, &value);
        break;
    case WM_GPU_TABLE_MIG:
        wm_gpu_mig_get(gpus, gpu, item, (enum wm_gpu_mig_field)field, &value);
        break;
    }
    return sound(value);
}

const char *wm_gpu_key_suffix(const struct wm_gpu_field_info *info)
{
    static const struct {
        const char *unit, *suffix;
    } suffixes[] = {
        { "B", "_bytes" },         { "B/s", "_bytes_per_second" },
        { "W", "_watts" },         { "J", "_joules" },
        { "Hz", "_hertz" },        { "s", "_seconds" },
        { "celsius", "_celsius" }, { "ratio", "_ratio" },
        { "rpm", "_rpm" },
    };

    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        if (strcmp(suffixes[i].unit, info->unit) == 0)
            return suffixes[i].suffix;
    }
    return "";
}

int wm_gpus_print(const struct wm_gpus *gpus, enum wm_format format, FILE *out,
                  struct wm_error *err)
{
    int status = wm_view_check(format,
                               WM_VIEW_PLAIN | WM_VIEW_FORMAT(WM_FORMAT_BRIEF) |
                                   WM_VIEW_FORMAT(WM_FORMAT_JSON_LINE),
                               err);

    if (status < 0)
        return status;
    switch (format) {
    case WM_FORMAT_BRIEF:
        wm_view_gpu_brief(gpus, out);
        break;
    case WM_FORMAT_JSON:
        status = wm_view_dump(wm_view_gpu_json(gpus), JSON_INDENT(2), out, err);
        break;
    case WM_FORMAT_JSON_LINE:
        status = wm_view_dump(wm_view_gpu_json(gpus), JSON_COMPACT, out, err);
        break;
    default:
        wm_view_gpu_text(gpus, out);
    }
    return status == WM_OK ? wm_view_flush(out, "what the GPUs say", err) : status;
}
