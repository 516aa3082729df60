/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - what a session cost, computed from a tracker or from a recording
 * by the same code, so that the two cannot disagree.
 *
 *     struct wm_report *report;
 *     if (wm_report_from_recording(rec, &report, &err) == WM_OK) {
 *         double joules;
 *         if (wm_report_number(report, "energy.gpus.0.energy", &joules) == WM_OK)
 *             printf("%.1f J\n", joules);
 *         wm_report_print(report, WM_REPORT_JSON, NULL, stdout, &err);
 *     }
 *     wm_report_free(report);
 *
 * The rules of source.h hold here too.
 */
#ifndef WATTMETER_REPORT_H
#define WATTMETER_REPORT_H

#include <stdio.h>

#include "wattmeter/api.h"
#include "wattmeter/error.h"
#include "wattmeter/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wm_report;

enum wm_report_format {
    WM_REPORT_TEXT, /* for people */
    WM_REPORT_JSON, /* for programs; the structure is described in docs/report.md */
    /* gpu_tracker's own layouts, byte by byte, without the line end that it adds on the
     * screen; described in docs/gpu-tracker.md. */
    WM_REPORT_GPU_TRACKER_TEXT,
    WM_REPORT_GPU_TRACKER_JSON,
};

/* How a report is printed; all zero is right for nearly everybody. A unit is
 * one of gpu_tracker's words: bytes, kilobytes, megabytes, gigabytes,
 * terabytes (powers of 1000); seconds, minutes, hours, days. NULL is bytes and
 * seconds in JSON, whatever reads best in text, and gigabytes and hours in
 * gpu_tracker's layouts.
 *
 * With a price or the grams of CO2e of a kilowatt-hour, the report also has what its
 * energy comes to in money or in CO2e; 0 is not given. */
struct wm_report_style {
    const char *ram_unit;
    const char *gpu_ram_unit;
    const char *time_unit;
    double price_per_kwh;    /* up to 1000000, */
    const char *currency;    /* in these: "EUR"; up to 15 bytes; NULL: not said */
    double carbon_g_per_kwh; /* up to 100000 */
    double pue;              /* power usage effectiveness of the data centre, 1 to 100, by
                              * which cost and CO2e are multiplied; 0: 1 */
};

/* Reads the rest of `recording`, which stands at the start of its run. */
WM_API int wm_report_from_recording(struct wm_recording *recording,
                                    struct wm_report **ret_report, struct wm_error *err);

/* Accepts NULL. */
WM_API void wm_report_free(struct wm_report *report);

/* Whether every unit in `style` is a known one, which the error lists otherwise, and
 * every number within its range. */
WM_API int wm_report_style_check(const struct wm_report_style *style, struct wm_error *err);

/* `style` may be NULL. WM_EIO when `out` did not take all of it. */
WM_API int wm_report_print(const struct wm_report *report, enum wm_report_format format,
                           const struct wm_report_style *style, FILE *out,
                           struct wm_error *err);

/* Adds one row to the file at `path`, which is what CodeCarbon calls emissions.csv:
 * energy in kWh, CO2e in kg, both multiplied by the `pue` of `style`, which may be
 * NULL. What is not known is left empty; docs/report.md has the columns. A file that
 * is there is left alone (WM_EEXIST), replaced, or gets the row at its end, as `mode`
 * says; WM_EINVAL when its columns are not CodeCarbon's. */
WM_API int wm_report_write_codecarbon(const struct wm_report *report, const char *path,
                                      enum wm_record_mode mode,
                                      const struct wm_report_style *style,
                                      struct wm_error *err);

/* One number by its path in the JSON report, in SI base units and without cost and
 * CO2e: "compute_time.time", "energy.gpus.0.energy". WM_ENOENT where there is no such
 * number, WM_ENODEV where it is null. */
WM_API int wm_report_number(const struct wm_report *report, const char *path,
                            double *ret_value);

#ifdef __cplusplus
}
#endif
#endif
