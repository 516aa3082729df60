/* SPDX-License-Identifier: Apache-2.0 */
/* track_result.h - what is known when a session is over. */
#ifndef WM_TRACK_RESULT_H
#define WM_TRACK_RESULT_H

#include "record/run/record_run.h"
#include "source/tree/source_tree.h"
#include "track/account/track_account.h"

/* CPU time and its method, the processes' peaks, what is uncertain. The tracker
 * has used `own_seconds` in process `main_pid` itself, which are taken out. */
int wm_result_take_tree(struct wm_result *result, const struct wm_tree *tree,
                        struct wm_account *account, pid_t main_pid, double own_seconds,
                        struct wm_error *err);

/* Our own cost: `cost_ns` of CPU time, or all that this process has used where
 * it does nothing else. Adds to what is there. */
void wm_result_take_cost(struct wm_result *result, int64_t cost_ns, bool own_process);

#endif
