/* SPDX-License-Identifier: Apache-2.0 */
/* region_local.h - this process's own regions, for a tracker that is in it. */
#ifndef WM_REGION_LOCAL_H
#define WM_REGION_LOCAL_H

#include "base/base_error.h"

/* From now on this process's regions go to the inbox at `path`, or, with NULL, to where
 * WATTMETER_REGIONS says. What a thread has open at that time ends in neither: the new
 * inbox knows nothing of it, and its end is a stray one. WM_ENOENT and others where there
 * is no inbox; then everything is as before. */
int wm_region_listen(const char *path, struct wm_error *err);

/* How often that was an inbox. */
unsigned wm_region_listens(void);

#endif
