/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze.h - from ticks to a report, one tick at a time and in bounded memory.
 *
 * The tracker feeds it while it runs and a recording when it is read; both give
 * the same run, channels, ticks, gaps and result, and so the same report.
 */
#ifndef WM_ANALYZE_H
#define WM_ANALYZE_H

#include "analyze/analyze_report.h"
#include "analyze/region/analyze_regions.h"
#include "record/record.h"

struct wm_analysis;

/* `run` and `channels` are borrowed until the analysis is freed. */
int wm_analysis_new(const struct wm_run *run, const struct wm_channel *channels,
                    size_t count, struct wm_analysis **ret_analysis, struct wm_error *err);

/* Accepts NULL. */
void wm_analysis_free(struct wm_analysis *analysis);

/* Allocates nothing. */
void wm_analysis_tick(struct wm_analysis *analysis, const struct wm_tick *tick);

/* Reasons for missing values; those of one channel in order of time. */
void wm_analysis_gap(struct wm_analysis *analysis, const struct wm_gap *gap);

/* Regions are taken in from here on, of a run that has not had a tick; without it there
 * are none. They are the analysis's, which gives them its ticks: the caller gives them the
 * edges. */
int wm_analysis_regions_start(struct wm_analysis *analysis, struct wm_regions **ret_regions,
                              struct wm_error *err);

/* `result` is NULL when the writer of a recording was killed. The report owns
 * copies of all it needs. */
int wm_analysis_report(const struct wm_analysis *analysis, const struct wm_result *result,
                       struct wm_report **ret_report, struct wm_error *err);

/* What each device took on average over the ticks up to now, as the baselines of the
 * run `ret_run`, which gets copies. A device whose energy is not known has none; that of
 * one that was busy is refused, but `anyway`. */
int wm_analysis_baselines(const struct wm_analysis *analysis, bool anyway,
                          struct wm_run *ret_run, struct wm_error *err);

#endif
