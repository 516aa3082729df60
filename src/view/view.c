/* SPDX-License-Identifier: Apache-2.0 */
/* view.c - the public face of the views: every form there is, and printing in it. */
#include "view/view.h"

#include "base/base_error.h"

/* More digits than this are noise of binary fractions: 0.1 for
 * 0.10000000000000001. */
#define JSON_DIGITS 15

int wm_view_dump(json_t *root, size_t style, FILE *out, struct wm_error *err)
{
    if (!root)
        return wm_fail_memory(err, NULL);
    int failed = json_dumpf(root, out, style | JSON_REAL_PRECISION(JSON_DIGITS));
    json_decref(root);
    if (failed && !ferror(out))
        return wm_fail_memory(err, NULL);
    fputc('\n', out);
    return WM_OK;
}

int wm_view_check(enum wm_format format, uint64_t formats, struct wm_error *err)
{
    char names[200] = "";
    size_t length = 0;

    if ((size_t)format < 64 && formats & WM_VIEW_FORMAT(format))
        return WM_OK;
    for (unsigned i = 0; i < 64 && length < sizeof(names); i++) {
        if (formats & WM_VIEW_FORMAT(i))
            length += (size_t)snprintf(names + length, sizeof(names) - length, " %s",
                                       wm_format_name((enum wm_format)i));
    }
    return wm_fail(err, WM_EINVAL, "this cannot be printed in that format, but in:%s",
                   names);
}

int wm_view_flush(FILE *out, const char *what, struct wm_error *err)
{
    if (fflush(out) == 0 && !ferror(out))
        return WM_OK;
    return wm_fail(err, WM_EIO, "%s could not be written", what);
}

static int report_text(const struct wm_report *report, const struct wm_units *units,
                       FILE *out, struct wm_error *err)
{
    (void)err;
    wm_view_text(report, units, out);
    return WM_OK;
}

static int blocks_text(const struct wm_report *report, FILE *out, struct wm_error *err)
{
    (void)err;
    wm_view_blocks_text(report, out);
    return WM_OK;
}

static int comparison_text(const struct wm_comparison *comparison, int verbosity, FILE *out,
                           struct wm_error *err)
{
    return wm_view_comparison_text(comparison, verbosity, out) < 0
               ? wm_fail_memory(err, NULL)
               : WM_OK;
}

static const struct wm_print_format print_text = {
    .report = report_text,
    .blocks = blocks_text,
    .comparison = comparison_text,
};

static int report_json(const struct wm_report *report, const struct wm_units *units,
                       FILE *out, struct wm_error *err)
{
    return wm_view_dump(wm_view_json(report, units), JSON_INDENT(2), out, err);
}

static int blocks_json(const struct wm_report *report, FILE *out, struct wm_error *err)
{
    return wm_view_dump(wm_view_blocks_json(report), JSON_INDENT(2), out, err);
}

static int comparison_json(const struct wm_comparison *comparison, int verbosity, FILE *out,
                           struct wm_error *err)
{
    (void)verbosity;
    return wm_view_dump(wm_view_comparison_json(comparison), JSON_INDENT(2), out, err);
}

static const struct wm_print_format print_json = {
    .report = report_json,
    .blocks = blocks_json,
    .comparison = comparison_json,
};

/* Other people's forms, in src/compat. */
extern const struct wm_print_format wm_gpu_tracker_print;
extern const struct wm_print_format wm_gpu_tracker_print_api;
extern const struct wm_print_format wm_gpu_tracker_print_json;
extern const struct wm_print_format wm_gpu_tracker_print_warnings;

/* The formats of reports, blocks and comparisons. */
static const struct wm_print_format *const formats[] = {
    [WM_FORMAT_TEXT] = &print_text,
    [WM_FORMAT_JSON] = &print_json,
    [WM_FORMAT_GPU_TRACKER] = &wm_gpu_tracker_print,
    [WM_FORMAT_GPU_TRACKER_API] = &wm_gpu_tracker_print_api,
    [WM_FORMAT_GPU_TRACKER_JSON] = &wm_gpu_tracker_print_json,
    [WM_FORMAT_GPU_TRACKER_WARNINGS] = &wm_gpu_tracker_print_warnings,
};

#define ALL                                                                                \
    (WM_VIEW_PLAIN | WM_VIEW_FORMAT(WM_FORMAT_GPU_TRACKER) |                               \
     WM_VIEW_FORMAT(WM_FORMAT_GPU_TRACKER_API) |                                           \
     WM_VIEW_FORMAT(WM_FORMAT_GPU_TRACKER_JSON))
#define ALL_OF_REPORTS (ALL | WM_VIEW_FORMAT(WM_FORMAT_GPU_TRACKER_WARNINGS))

int wm_report_style_check(const struct wm_report_style *style, struct wm_error *err)
{
    struct wm_units units;

    return wm_units_of_style(style, &units, err);
}

int wm_report_print(const struct wm_report *report, enum wm_format format,
                    const struct wm_report_style *style, FILE *out, struct wm_error *err)
{
    struct wm_units units;

    int status = wm_units_of_style(style, &units, err);
    if (status == WM_OK)
        status = wm_view_check(format, units.blocks_only ? ALL : ALL_OF_REPORTS, err);
    if (status < 0)
        return status;
    if (units.blocks_only)
        status = formats[format]->blocks(report, out, err);
    else if (report->is_foreign)
        return wm_fail(err, WM_EINVAL,
                       "gpu_tracker's files have no report to print, but blocks: analyze "
                       "prints them");
    else
        status = formats[format]->report(report, &units, out, err);
    return status == WM_OK ? wm_view_flush(out, "the report", err) : status;
}

int wm_comparison_print(const struct wm_comparison *comparison, int verbosity, FILE *out,
                        struct wm_error *err)
{
    if (!wm_comparison_compare(comparison))
        return wm_fail(err, WM_EINVAL, "comparison: it has not been run");
    enum wm_format format = wm_comparison_format(comparison);
    int status = wm_view_check(format, ALL, err);
    if (status == WM_OK)
        status = formats[format]->comparison(comparison, verbosity, out, err);
    return status == WM_OK ? wm_view_flush(out, "the output", err) : status;
}
