/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format.h - the formats in which the library prints, draws and exports.
 *
 *     int format = wm_format_find("json");
 *     if (format >= 0)
 *         wm_report_print_list("run.sqlite", (enum wm_format)format, stdout, &err);
 *
 * Each function that takes a format lists those it has, and returns WM_EINVAL for others.
 */
#ifndef WATTMETER_FORMAT_H
#define WATTMETER_FORMAT_H

#include "wattmeter/api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The numbers are fixed. */
enum wm_format {
    WM_FORMAT_TEXT = 0, /* for people */
    WM_FORMAT_JSON = 1, /* for programs */
    WM_FORMAT_JSON_LINE = 2,
    WM_FORMAT_BRIEF = 3, /* text, a line for each item */
    WM_FORMAT_CSV = 4,
    WM_FORMAT_MARKDOWN = 5,

    /* gpu_tracker's layouts, byte by byte, without the line end that it adds on the screen;
     * docs/gpu-tracker.md describes them. Its command and its API print a comparison
     * differently: the command does not indent the names of blocks. */
    WM_FORMAT_GPU_TRACKER = 10,
    WM_FORMAT_GPU_TRACKER_API = 11,
    WM_FORMAT_GPU_TRACKER_JSON = 12,

    /* Of a report: the warnings of gpu_tracker, a line each. One says that GPUs are
     * simulated; a verbosity of 1 adds the reasons for missing figures, and the notes that
     * are not on energy. */
    WM_FORMAT_GPU_TRACKER_WARNINGS = 13,

    /* Traces; docs/traces.md describes them. */
    WM_FORMAT_CHROME = 20,     /* JSON: a counter for each channel, a slice for each call */
    WM_FORMAT_FIREFOX = 21,    /* JSON: a power track for each device, a marker for each
                                * call */
    WM_FORMAT_SPEEDSCOPE = 22, /* JSON: joules or seconds of each stack of regions */
    WM_FORMAT_FOLDED = 23,     /* a line for each stack: names, and whole microjoules or
                                * microseconds */

    /* Figures, and films. */
    WM_FORMAT_SVG = 30,
    WM_FORMAT_PNG = 31,
    WM_FORMAT_PDF = 32,
    WM_FORMAT_MP4 = 40,
    WM_FORMAT_GIF = 41,
};

/* "text", "json-line", "gpu-tracker-api"; NULL: no format has that number. */
WM_API const char *wm_format_name(enum wm_format format);

/* The format of that name, or WM_ENOENT. */
WM_API int wm_format_find(const char *name);

#ifdef __cplusplus
}
#endif
#endif
