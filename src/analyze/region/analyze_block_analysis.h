/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_block_analysis.h - what an analysis of blocks came to, as plain data: what its
 * views print, what its JSON holds, what a comparison compares.
 */
#ifndef WM_ANALYZE_BLOCK_ANALYSIS_H
#define WM_ANALYZE_BLOCK_ANALYSIS_H

#include <jansson.h>
#include <stdbool.h>

#include "analyze/analyze_report.h"
#include "analyze/region/analyze_regions.h"
#include "base/text/base_remarks.h"
#include "record/calls/record_timepoints.h"
#include "wattmeter/analysis.h"

struct wm_block_analysis {
    struct wm_static_data static_data;
    enum wm_origin gpu_origin; /* measured: all GPUs were; so it is in gpu_tracker's */
    bool is_told_less;         /* gpu_tracker's JSON does not have the next two: 0 */
    uint64_t timepoints;
    uint64_t stray; /* stops without a start */
    struct wm_block_figures overall[WM_MEASUREMENT_COUNT];
    struct wm_region_usage *blocks; /* in the order of their names */
    size_t count;
    struct wm_remarks remarks; /* none in gpu_tracker's JSON */
    struct wm_report *report;  /* of a recording, where it was asked for; else NULL */
};

/* wm_block_analysis_new(), which may have the report of a recording, too. The JSON of an
 * analysis has none. */
int wm_block_analysis_read(const struct wm_analysis_input *input, bool with_report,
                           struct wm_block_analysis **ret_analysis, struct wm_error *err);

/* Copies what `regions` have by now, but for what they cost; where `costs` has that, its
 * names are taken over. */
int wm_block_analysis_of(struct wm_regions *regions,
                         const struct wm_static_data *static_data, uint64_t stray,
                         struct wm_region_report *costs,
                         struct wm_block_analysis **ret_results, struct wm_error *err);

/* Puts the blocks in the order of their names. */
void wm_block_analysis_sort(struct wm_block_analysis *results);

/* Whether it is of GPUs, and none was measured: gpu_tracker's layouts have 0 then, which
 * stands in the figures, and ours nothing. */
bool wm_block_analysis_lack(const struct wm_block_analysis *results, size_t measurement);
extern const char wm_block_analysis_no_gpu[];

/* Where the values of a measurement come from. */
enum wm_origin wm_block_analysis_origin(const struct wm_block_analysis *results,
                                        size_t measurement);

/* Beside a figure that was not measured, as in a report: "origin": "simulated",
 * "simulated": true. */
void wm_block_analysis_put_origin(json_t **object, enum wm_origin origin);

/* gpu_tracker's structure, with null for what is not known; with `details` ours, which has
 * more beside it (docs/analysis.md). The caller's; NULL when out of memory. */
json_t *wm_block_analysis_json(const struct wm_block_analysis *results, bool details);

/* Whether the file begins with a brace, a byte order mark and blanks aside. */
bool wm_block_analysis_is_json(const char *path);

/* Reads both, and gpu_tracker's own files, in which NaN may stand. Blocks are put in the
 * order of their names. WM_EFORMAT says what is missing; `name` is what it calls the
 * file. */
int wm_block_analysis_parse(const char *text, size_t length, const char *name,
                            struct wm_block_analysis **ret_results, struct wm_error *err);

#endif
