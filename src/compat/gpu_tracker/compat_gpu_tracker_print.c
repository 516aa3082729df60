/* SPDX-License-Identifier: Apache-2.0 */
/* compat_gpu_tracker_print.c - gpu_tracker's layouts as forms in which things are printed:
 * its text, the text as the documents of its API have it, and its JSON. */
#include "compat/gpu_tracker/compat_gpu_tracker_print.h"
#include "base/base_error.h"

static int no_memory(struct wm_error *err)
{
    return wm_fail(err, WM_ENOMEM, "out of memory");
}

static int report_text(const struct wm_report *report, const struct wm_units *units,
                       FILE *out, struct wm_error *err)
{
    json_t *root = wm_gpu_tracker_report(report, units);

    if (!root)
        return no_memory(err);
    wm_gpu_tracker_report_text(root, out);
    json_decref(root);
    return WM_OK;
}

static int analysis_text(const struct wm_block_analysis *results, FILE *out,
                         struct wm_error *err)
{
    return wm_gpu_tracker_blocks(results, out) < 0 ? no_memory(err) : WM_OK;
}

static int comparison_text(const struct wm_comparison *comparison, FILE *out,
                           struct wm_error *err)
{
    const struct wm_compare *compare = wm_comparison_compare(comparison);

    return wm_gpu_tracker_comparison(compare, true, out) < 0 ? no_memory(err) : WM_OK;
}

static int comparison_api(const struct wm_comparison *comparison, FILE *out,
                          struct wm_error *err)
{
    const struct wm_compare *compare = wm_comparison_compare(comparison);

    return wm_gpu_tracker_comparison(compare, false, out) < 0 ? no_memory(err) : WM_OK;
}

/* Takes `root` over; NULL is out of memory. */
static int print_json(json_t *root, FILE *out, struct wm_error *err)
{
    if (!root)
        return no_memory(err);
    wm_gpu_tracker_json(root, out);
    json_decref(root);
    return WM_OK;
}

static int report_json(const struct wm_report *report, const struct wm_units *units,
                       FILE *out, struct wm_error *err)
{
    return print_json(wm_gpu_tracker_report(report, units), out, err);
}

static int analysis_json(const struct wm_block_analysis *results, FILE *out,
                         struct wm_error *err)
{
    return print_json(wm_block_analysis_json(results, false), out, err);
}

static int comparison_json(const struct wm_comparison *comparison, FILE *out,
                           struct wm_error *err)
{
    const struct wm_compare *compare = wm_comparison_compare(comparison);

    return print_json(wm_gpu_tracker_comparison_json(compare), out, err);
}

const struct wm_print_format wm_gpu_tracker_print = {
    .name = "gpu-tracker",
    .report = report_text,
    .analysis = analysis_text,
    .comparison = comparison_text,
};

const struct wm_print_format wm_gpu_tracker_print_api = {
    .name = "gpu-tracker-api",
    .comparison = comparison_api,
};

const struct wm_print_format wm_gpu_tracker_print_json = {
    .name = "gpu-tracker-json",
    .report = report_json,
    .analysis = analysis_json,
    .comparison = comparison_json,
};
