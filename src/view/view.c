/* SPDX-License-Identifier: Apache-2.0 */
/* view.c - the public face of the views: printing a report, asking for a number. */
#include "view/view.h"

#include "base/base_error.h"

/* More digits than this are noise of binary fractions: 0.1 for
 * 0.10000000000000001. */
#define JSON_DIGITS 15

int wm_report_style_check(const struct wm_report_style *style, struct wm_error *err)
{
    struct wm_units units;

    return wm_units_of_style(style, &units, err);
}

static int print_json(const struct wm_report *report, const struct wm_units *units,
                      FILE *out, struct wm_error *err)
{
    json_t *root = wm_view_json(report, units);

    if (!root)
        return wm_fail(err, WM_ENOMEM, "report: out of memory");
    int failed = json_dumpf(root, out, JSON_INDENT(2) | JSON_REAL_PRECISION(JSON_DIGITS));
    json_decref(root);
    if (failed && !ferror(out))
        return wm_fail(err, WM_ENOMEM, "report: out of memory");
    fputc('\n', out);
    return WM_OK;
}

int wm_report_print(const struct wm_report *report, enum wm_report_format format,
                    const struct wm_report_style *style, FILE *out, struct wm_error *err)
{
    struct wm_units units;

    int status = wm_units_of_style(style, &units, err);
    if (status < 0)
        return status;

    switch (format) {
    case WM_REPORT_TEXT:
        wm_view_text(report, &units, out);
        break;
    case WM_REPORT_JSON:
        status = print_json(report, &units, out, err);
        break;
    case WM_REPORT_GPU_TRACKER_TEXT:
    case WM_REPORT_GPU_TRACKER_JSON:
        if (wm_view_gpu_tracker(report, &units, format, out) < 0)
            status = wm_fail(err, WM_ENOMEM, "report: out of memory");
        break;
    }
    if (status == WM_OK && (fflush(out) != 0 || ferror(out)))
        status = wm_fail(err, WM_EIO, "the report could not be written");
    return status;
}
