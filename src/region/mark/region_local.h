/* SPDX-License-Identifier: Apache-2.0 */
/* region_local.h - this process's own regions, for a tracker that is in it. */
#ifndef WM_REGION_LOCAL_H
#define WM_REGION_LOCAL_H

#include "base/base_error.h"

struct wm_region_target;

/* From now on this process's regions go to the inbox at `path`, or, with NULL, to where
 * WATTMETER_REGIONS says. What a thread has open at that time ends in neither: the new
 * inbox knows nothing of it, and its end is a stray one. WM_ENOENT and others where there
 * is no inbox; then everything is as before. */
int wm_region_listen(const char *path, struct wm_error *err);

/* The inbox that the regions go to now, for the two functions below. NULL: no inbox. */
struct wm_region_target *wm_region_keep(void);

/* Reports to the tracker of `kept` that another tracker has regions of this process. */
void wm_region_report_other(struct wm_region_target *kept);

/* If the regions go to the inbox at `path`, sends them to `kept` again; if `kept` is NULL
 * or its tracker is over, to where WATTMETER_REGIONS says. Frees `kept`. */
void wm_region_restore(const char *path, struct wm_region_target *kept);

#endif
