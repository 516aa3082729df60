/* SPDX-License-Identifier: Apache-2.0 */
/* compat_codecarbon_file.c - a report as one more row of an emissions.csv. */
#include <stdlib.h>

#include "base/text/base_utf8.h"
#include "compat/codecarbon/compat_codecarbon.h"
#include "compat/codecarbon/compat_codecarbon_rows.h"

/* The row, after a header where there is none yet; the caller's to free. */
static int build_text(const struct wm_report *report, const struct wm_tariff *tariff,
                      const struct wm_rows *rows, char **ret_text, size_t *ret_length,
                      struct wm_error *err)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, ret_length);

    if (out) {
        if (!rows->header)
            wm_codecarbon_header(out);
        wm_codecarbon_row(report, tariff, rows->header, rows->header_length, out);
    }
    bool failed = !out || ferror(out);
    if (out && fclose(out) != 0)
        failed = true;
    if (failed) {
        free(text);
        return wm_fail(err, WM_ENOMEM, "report: out of memory");
    }
    *ret_text = text;
    return WM_OK;
}

static int add_row(const struct wm_report *report, const struct wm_tariff *tariff,
                   const char *path, struct wm_rows *rows, struct wm_error *err)
{
    size_t length = 0;
    char *text = NULL;

    if (rows->header && !wm_codecarbon_is_header(rows->header, rows->header_length))
        return wm_fail(err, WM_EINVAL, "%s: its columns are not those of CodeCarbon",
                       wm_text_path(path));
    int status = build_text(report, tariff, rows, &text, &length, err);
    if (status < 0)
        return status;
    status = wm_rows_add(rows, text, length, err);
    free(text);
    return status;
}

int wm_report_write_codecarbon(const struct wm_report *report, const char *path,
                               enum wm_record_mode mode,
                               const struct wm_report_style *style, struct wm_error *err)
{
    struct wm_tariff tariff = { 0 };
    struct wm_rows rows;

    int status = style ? wm_tariff_of_style(style, &tariff, err) : WM_OK;
    if (status == WM_OK)
        status = wm_rows_open(&rows, path, mode, err);
    if (status < 0)
        return status;
    status = add_row(report, &tariff, path, &rows, err);
    wm_rows_close(&rows);
    return status;
}
