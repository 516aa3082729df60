/* SPDX-License-Identifier: Apache-2.0 */
/*
 * track_regions.h - the target's regions on their way from the rings into the analysis and
 * the recording.
 *
 * Everything goes to the analysis at once. The recording may be slow: then what is in the
 * rings is left there for a moment, which is the only thing that ever holds up the target,
 * and after that it is the recording that loses calls, and counts them. Should the tracker
 * be killed, the recording has the calls that ended more than a second before.
 */
#ifndef WM_TRACK_REGIONS_H
#define WM_TRACK_REGIONS_H

#include "analyze/analyze.h"
#include "record/record.h"

struct wm_track_regions;

/* Makes the folder for the rings. */
int wm_track_regions_new(struct wm_track_regions **ret_regions, struct wm_error *err);

/* Removes the folder. Accepts NULL. */
void wm_track_regions_free(struct wm_track_regions *regions);

/* The folder: the value of WM_REGIONS_VARIABLE. */
const char *wm_track_regions_path(const struct wm_track_regions *regions);

/* Has the calling process's own regions come here, until these are freed. */
int wm_track_regions_listen(struct wm_track_regions *regions, struct wm_error *err);

/* Opens the rings, from which regions are then taken. */
int wm_track_regions_open(struct wm_track_regions *regions, struct wm_error *err);

/* Where regions go to; both outlive them. `recorder` may be NULL. Regions that were drained
 * before are kept until then, and are handed out with the next draining. */
int wm_track_regions_set_takers(struct wm_track_regions *regions,
                                struct wm_analysis *analysis, struct wm_recorder *recorder,
                                struct wm_error *err);

/* Whether more regions can be kept. */
bool wm_track_regions_has_room(const struct wm_track_regions *regions);

/* Hands out the regions up to `when_ns` that were kept, before the analysis gets a later
 * tick. */
void wm_track_regions_catch_up(struct wm_track_regions *regions, int64_t when_ns);

/* Takes what is in the rings, or of that what can be had up to `deadline_ns`. Without rings
 * it mostly does nothing. */
void wm_track_regions_drain(struct wm_track_regions *regions, int64_t deadline_ns);

/* The same after a tick. */
void wm_track_regions_tick(struct wm_track_regions *regions, int64_t deadline_ns);

/* Becomes readable when draining is due; -1 where that is known already, as after a
 * deadline, or while it has to wait for the recording. In any case it is due after
 * `*ret_wait_ns`; INT64_MAX: with the next tick. */
int wm_track_regions_fd(const struct wm_track_regions *regions, int64_t *ret_wait_ns);

/* Takes all that is left, after the last tick. What is open then broke off at `end_ns`, or
 * later. */
void wm_track_regions_finish(struct wm_track_regions *regions, int64_t end_ns,
                             struct wm_result *result);

#endif
