/* SPDX-License-Identifier: Apache-2.0 */
/* record_spool.h - where a run is kept that has yet to be delivered. */
#ifndef WM_RECORD_SPOOL_H
#define WM_RECORD_SPOOL_H

#include "base/base_error.h"

/* The path for the spool of that run, the caller's to free: in the user's folder
 * for state, or in the one for temporary files where that cannot be had. The
 * folder is there when this returns, and its owner's alone if we made it. */
int wm_spool_path(const char *run_id, char **ret_path, struct wm_error *err);

#endif
