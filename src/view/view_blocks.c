/* SPDX-License-Identifier: Apache-2.0 */
/* view_blocks.c - printing an analysis of blocks, in every form. */
#include "view/view_blocks.h"

#include "base/base_error.h"
#include "view/json/view_python_json.h"
#include "view/text/view_experiment.h"
#include "wattmeter/analysis.h"

static int print_json(const struct wm_block_results *results, FILE *out,
                      struct wm_error *err)
{
    return wm_view_dump(wm_block_results_json(results, true), out, err);
}

static int print_python_json(const struct wm_block_results *results, FILE *out,
                             struct wm_error *err)
{
    json_t *root = wm_block_results_json(results, false);

    if (!root)
        return wm_fail(err, WM_ENOMEM, "analysis: out of memory");
    wm_view_python_json(root, out);
    json_decref(root);
    return WM_OK;
}

int wm_block_analysis_print(const struct wm_block_analysis *analysis,
                            enum wm_analysis_format format, FILE *out, struct wm_error *err)
{
    const struct wm_block_results *results = wm_block_analysis_results(analysis);
    int status = WM_OK;

    switch (format) {
    case WM_ANALYSIS_TEXT:
        wm_view_blocks_text(results, out);
        break;
    case WM_ANALYSIS_JSON:
        status = print_json(results, out, err);
        break;
    case WM_ANALYSIS_GPU_TRACKER_TEXT:
        if (wm_view_blocks_gpu_tracker(results, out) < 0)
            status = wm_fail(err, WM_ENOMEM, "analysis: out of memory");
        break;
    case WM_ANALYSIS_GPU_TRACKER_JSON:
        status = print_python_json(results, out, err);
        break;
    }
    return status == WM_OK ? wm_view_flush(out, err) : status;
}
