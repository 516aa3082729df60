/* SPDX-License-Identifier: Apache-2.0 */
/* track_processes.h - the processes of the tree for a view of them: who they are, and what
 * they take of the energy, by the division that the report makes. */
#ifndef WM_TRACK_PROCESSES_H
#define WM_TRACK_PROCESSES_H

#include "analyze/analyze_report.h"
#include "source/tree/source_tree.h"
#include "track/account/track_shares.h"
#include "wattmeter/tracker.h"

/* What was known when they were asked for last. */
struct wm_track_processes;

int wm_track_processes_new(struct wm_track_processes **ret_processes, struct wm_error *err);

/* Accepts NULL. */
void wm_track_processes_free(struct wm_track_processes *processes);

/* Those in the tree, up to `room`, without user and command line of new ones; `ret_count`
 * gets how many there are. The report is of the last tick; NULL: joules and watts are not
 * known. */
void wm_track_processes_list(struct wm_track_processes *processes,
                             const struct wm_tree *tree, struct wm_shares *shares,
                             const struct wm_report *report,
                             struct wm_tracker_process *ret_list, size_t room,
                             size_t *ret_count);

/* Completes the list that had room for all: user and command line of the new ones, which
 * are read without holding up the tree. */
void wm_track_processes_identify(struct wm_track_processes *processes,
                                 const struct wm_tree *tree,
                                 struct wm_tracker_process *list);

#endif
