/* SPDX-License-Identifier: Apache-2.0 */
/* view.h - the forms in which everything can be printed, and what they share; for src/view
 * and for other people's forms in src/compat. */
#ifndef WM_VIEW_H
#define WM_VIEW_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "analyze/analyze_report.h"
#include "analyze/compare/analyze_compare.h"
#include "analyze/experiment/analyze_experiment.h"
#include "analyze/experiment/analyze_repeat.h"
#include "doctor/doctor.h"
#include "view/view_units.h"
#include "wattmeter/format.h"

/* A form in which things are printed; NULL for what has no such form. Whether `out` took
 * it all is looked at afterwards: these say what else went wrong. */
struct wm_print_format {
    int (*report)(const struct wm_report *report, const struct wm_units *units, FILE *out,
                  struct wm_error *err);
    int (*blocks)(const struct wm_report *report, FILE *out, struct wm_error *err);
    int (*comparison)(const struct wm_comparison *comparison, int verbosity, FILE *out,
                      struct wm_error *err);
};

/* Writes JSON, which is taken over, with a line end; NULL is out of memory. `style` is
 * jansson's, JSON_INDENT(2) but for what is to be one line. */
int wm_view_dump(json_t *root, size_t style, FILE *out, struct wm_error *err);

/* The formats in which something can be printed, a bit for each. */
#define WM_VIEW_FORMAT(format) (UINT64_C(1) << (format))
#define WM_VIEW_PLAIN (WM_VIEW_FORMAT(WM_FORMAT_TEXT) | WM_VIEW_FORMAT(WM_FORMAT_JSON))

/* WM_EINVAL, with a list of `formats`, if `format` is none of them. */
int wm_view_check(enum wm_format format, uint64_t formats, struct wm_error *err);

/* WM_EIO where `out` did not take all of what `what` names: "the report". */
int wm_view_flush(FILE *out, const char *what, struct wm_error *err);

/* The report as a JSON object, the caller's; NULL when out of memory. */
json_t *wm_view_json(const struct wm_report *report, const struct wm_units *units);

/* What gpu_tracker's reports have of it, and the CPU time. NULL when out of memory. */
json_t *wm_view_json_usage(const struct wm_report *report, const struct wm_units *units);

/* The blocks of a report as a JSON object, the caller's; NULL when out of memory. */
json_t *wm_view_blocks_json(const struct wm_report *report);

/* The report for people. */
void wm_view_text(const struct wm_report *report, const struct wm_units *units, FILE *out);

/* The blocks of a report for people. */
void wm_view_blocks_text(const struct wm_report *report, FILE *out);

/* A comparison for people, of which WM_ENOMEM is the only failure, and as JSON, the
 * caller's; NULL when out of memory. */
int wm_view_comparison_text(const struct wm_comparison *comparison, int verbosity,
                            FILE *out);
json_t *wm_view_comparison_json(const struct wm_comparison *comparison);

/* "percent", "gigabytes", "joules". */
const char *wm_view_comparison_unit(const struct wm_compare *compare, unsigned item);

/* What is shown of an experiment together. */
struct wm_experiment_view {
    const struct wm_experiment *experiment;
    const struct wm_experiment_summary *summary;
    const struct wm_units *units;
    const char *per; /* NULL: no steps were asked for */
};

/* The caller's; NULL when out of memory. */
json_t *wm_view_experiment_json(const struct wm_experiment_view *view);

/* Of repeated commands: the caller's, NULL when out of memory; and tables. */
json_t *wm_view_repeat_json(const struct wm_repeat *repeat);
void wm_view_repeat_markdown(const struct wm_repeat *repeat, FILE *out);
void wm_view_repeat_csv(const struct wm_repeat *repeat, FILE *out);

/* Whether such a period could be seen: one that is hardly longer than the time between
 * two readings is that of the readings. */
bool wm_view_doctor_sees(const struct wm_doctor_source *source, double period_s);

/* The caller's; NULL when out of memory. */
json_t *wm_view_doctor_json(const struct wm_doctor *doctor);

#endif
