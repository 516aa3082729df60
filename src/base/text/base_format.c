/* SPDX-License-Identifier: Apache-2.0 */
/* base_format.c - the names of formats. */
#include "wattmeter/format.h"

#include <stddef.h>
#include <string.h>

#include "wattmeter/error.h"

static const char *const names[] = {
    [WM_FORMAT_TEXT] = "text",
    [WM_FORMAT_JSON] = "json",
    [WM_FORMAT_JSON_LINE] = "json-line",
    [WM_FORMAT_BRIEF] = "brief",
    [WM_FORMAT_CSV] = "csv",
    [WM_FORMAT_MARKDOWN] = "markdown",
    [WM_FORMAT_GPU_TRACKER] = "gpu-tracker",
    [WM_FORMAT_GPU_TRACKER_API] = "gpu-tracker-api",
    [WM_FORMAT_GPU_TRACKER_JSON] = "gpu-tracker-json",
    [WM_FORMAT_GPU_TRACKER_WARNINGS] = "gpu-tracker-warnings",
    [WM_FORMAT_CHROME] = "chrome",
    [WM_FORMAT_FIREFOX] = "firefox",
    [WM_FORMAT_SPEEDSCOPE] = "speedscope",
    [WM_FORMAT_FOLDED] = "folded",
    [WM_FORMAT_SVG] = "svg",
    [WM_FORMAT_PNG] = "png",
    [WM_FORMAT_PDF] = "pdf",
    [WM_FORMAT_MP4] = "mp4",
    [WM_FORMAT_GIF] = "gif",
};

#define COUNT (sizeof(names) / sizeof(names[0]))

const char *wm_format_name(enum wm_format format)
{
    return (size_t)format < COUNT ? names[format] : NULL;
}

int wm_format_find(const char *name)
{
    for (size_t i = 0; i < COUNT; i++) {
        if (names[i] && strcmp(names[i], name) == 0)
            return (int)i;
    }
    return WM_ENOENT;
}
