/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_parts.h - the parts of a report, in the order in which they are made: each is a
 * file of its own, and a later one may read what an earlier one has filled in.
 */
#ifndef WM_ANALYZE_PARTS_H
#define WM_ANALYZE_PARTS_H

#include "analyze/analyze_build.h"

/* Time, memory, CPU time and use, and remarks on the session. */
void wm_build_session(struct wm_report_builder *builder);

/* All that speaks of GPUs. */
void wm_build_gpus(struct wm_report_builder *builder);

/* The energy of all that is no GPU, and of everything together. */
void wm_build_energy(struct wm_report_builder *builder);

/* What regions cost. */
void wm_build_regions(struct wm_report_builder *builder);

/* The names of the regions, but for what they cost; the caller's. WM_ENOMEM is the only
 * failure. */
int wm_regions_usages(struct wm_regions *regions, struct wm_region_usage **ret_usages,
                      size_t *ret_count);

#endif
