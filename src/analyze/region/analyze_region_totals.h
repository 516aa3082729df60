/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_region_totals.h - what an analysis knows at a tick to have been used by then,
 * for its regions; for src/analyze alone. */
#ifndef WM_ANALYZE_REGION_TOTALS_H
#define WM_ANALYZE_REGION_TOTALS_H

#include "analyze/analyze_state.h"
#include "analyze/region/analyze_regions.h"

/* After all else has taken in the tick. */
void wm_region_totals_find(struct wm_analysis *analysis, const struct wm_tick *tick,
                           struct wm_region_totals *ret_totals);

/* What was used in all, by the report that has come to it. Energy that is another device's
 * there than at the ticks is not known. */
void wm_region_wholes_find(const struct wm_analysis *analysis,
                           const struct wm_report *report,
                           struct wm_region_whole wholes[WM_REGION_RESOURCES]);

#endif
