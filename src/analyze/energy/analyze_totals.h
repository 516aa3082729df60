/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_totals.h - what all devices together have come to at a tick: for the highest
 * power, for how much the tree's scatters, and for regions; for src/analyze alone.
 */
#ifndef WM_ANALYZE_TOTALS_H
#define WM_ANALYZE_TOTALS_H

#include "analyze/analyze_state.h"

/* After wm_devices_tick(). `ret_totals` is for the regions. */
void wm_totals_tick(struct wm_analysis *analysis, const struct wm_tick *tick,
                    struct wm_region_totals *ret_totals);

/* The least time over which the highest power of all is a mean. */
double wm_totals_power_window_s(const struct wm_analysis *analysis);

#endif
