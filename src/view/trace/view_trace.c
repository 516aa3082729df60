/* SPDX-License-Identifier: Apache-2.0 */
/* view_trace.c - the table of formats of traces, and how each is called. */
#include "view/trace/view_trace.h"

#include <inttypes.h>

#include "base/base_options.h"
#include "base/text/base_json.h"
#include "base/text/base_number.h"
#include "record/record_read.h"
#include "view/view.h"

static const struct wm_trace_ops *const formats[] = {
    [WM_FORMAT_CHROME] = &wm_trace_chrome,
    [WM_FORMAT_FIREFOX] = &wm_trace_firefox,
    [WM_FORMAT_SPEEDSCOPE] = &wm_trace_speedscope,
    [WM_FORMAT_FOLDED] = &wm_trace_folded,
};

int wm_trace_put_text(FILE *out, const char *text, struct wm_error *err)
{
    char *quoted = wm_json_dump(wm_text_json(text), JSON_ENCODE_ANY);

    if (!quoted)
        return wm_fail_memory(err, "trace");
    fputs(quoted, out);
    free(quoted);
    return WM_OK;
}

void wm_trace_put_number(FILE *out, double value)
{
    char text[WM_NUMBER_SIZE];

    fputs(wm_number_format(value, text) > 0 ? text : "null", out);
}

void wm_trace_put_time(FILE *out, int64_t ns, enum wm_trace_unit unit)
{
    uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;

    fprintf(out, "%s%" PRIu64 ".%0*" PRIu64, ns < 0 ? "-" : "", size / unit,
            unit == WM_TRACE_US ? 3 : 6, size % unit);
}

static int write_tree(struct wm_recording *recording, const struct wm_trace_ops *ops,
                      const struct wm_trace_request *request, FILE *out,
                      struct wm_error *err)
{
    const char *path = wm_recording_path(recording);
    struct wm_report *report = NULL;
    struct wm_flame flame = { 0 };

    int status = wm_report_from_recording(recording, &report, err);
    if (status == WM_OK)
        status = wm_flame_init(&flame, report, request->by_time, path, err);
    if (status == WM_OK && !request->by_time)
        status = wm_flame_note_time(flame.measure, request->by_energy, report, path,
                                    request->notes, err);
    if (status == WM_OK)
        status = ops->write_tree(&flame, path, out, err);
    wm_flame_release(&flame);
    wm_report_free(report);
    return status;
}

int wm_recording_trace(struct wm_recording *recording,
                       const struct wm_trace_request *request, FILE *out,
                       struct wm_error *err)
{
    int status = wm_view_check(
        request->format,
        WM_VIEW_FORMAT(WM_FORMAT_CHROME) | WM_VIEW_FORMAT(WM_FORMAT_FIREFOX) |
            WM_VIEW_FORMAT(WM_FORMAT_SPEEDSCOPE) | WM_VIEW_FORMAT(WM_FORMAT_FOLDED),
        err);

    if (status < 0)
        return status;
    if (!wm_recording_at_start(recording))
        return wm_fail(err, WM_EINVAL, "the recording to export has been read already");
    const struct wm_trace_ops *ops = formats[request->format];
    status = ops->write ? ops->write(recording, request, out, err)
                        : write_tree(recording, ops, request, out, err);
    return status < 0 ? status : wm_view_flush(out, "the trace", err);
}
