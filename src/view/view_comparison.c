/* SPDX-License-Identifier: Apache-2.0 */
/* view_comparison.c - printing a comparison, in every form. */
#include "view/view_comparison.h"

#include "base/base_error.h"
#include "view/json/view_python_json.h"
#include "view/text/view_experiment.h"

const char *wm_view_comparison_unit(const struct wm_compare *compare, unsigned item)
{
    static const char *const words[] = {
        [WM_UNIT_SECONDS] = "seconds", [WM_UNIT_TIME] = "seconds",
        [WM_UNIT_JOULES] = "joules",   [WM_UNIT_WATTS] = "watts",
        [WM_UNIT_BYTES] = "bytes",     [WM_UNIT_RAM] = "bytes",
        [WM_UNIT_GPU_RAM] = "bytes",   [WM_UNIT_PERCENT] = "percent",
        [WM_UNIT_RATIO] = "ratio",     [WM_UNIT_CELSIUS] = "celsius",
        [WM_UNIT_COUNT] = "count",
    };
    const struct wm_static_data *data = &compare->sessions[0].results->static_data;

    if (item <= WM_SYSTEM_RAM)
        return data->ram_unit;
    if (item <= WM_SYSTEM_GPU_RAM)
        return data->gpu_ram_unit;
    if (item >= WM_MAIN_THREADS && item <= WM_COMBINED_THREADS)
        return "count";
    if (item < WM_COMPARE_TIME)
        return "percent";
    return words[wm_compare_item_row(item)->unit];
}

static int print_python_json(const struct wm_compare *compare, FILE *out)
{
    json_t *root = wm_view_comparison_gpu_tracker_json(compare);

    if (!root)
        return WM_ENOMEM;
    wm_view_python_json(root, out);
    json_decref(root);
    return WM_OK;
}

int wm_comparison_print(const struct wm_comparison *comparison, FILE *out,
                        struct wm_error *err)
{
    const struct wm_compare *compare = wm_comparison_compare(comparison);
    enum wm_comparison_format format = wm_comparison_format(comparison);
    int status = WM_OK;

    if (!compare)
        return wm_fail(err, WM_EINVAL, "comparison: it has not been run");
    switch (format) {
    case WM_COMPARISON_TEXT:
        status = wm_view_comparison_text(comparison, out);
        break;
    case WM_COMPARISON_JSON:
        return wm_view_dump(wm_view_comparison_json(comparison), out, err);
    case WM_COMPARISON_GPU_TRACKER_TEXT:
    case WM_COMPARISON_GPU_TRACKER_CLI:
        status = wm_view_comparison_gpu_tracker(
            compare, format == WM_COMPARISON_GPU_TRACKER_CLI, out);
        break;
    case WM_COMPARISON_GPU_TRACKER_JSON:
        status = print_python_json(compare, out);
        break;
    }
    if (status < 0)
        return wm_fail(err, status, "comparison: out of memory");
    return wm_view_flush(out, err);
}
