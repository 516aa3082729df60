/* SPDX-License-Identifier: Apache-2.0 */
/* record_read.h - what the analysis asks of a recording besides its ticks; the rest is
 * in wattmeter/recording.h. Everything is borrowed from the recording. */
#ifndef WM_RECORD_READ_H
#define WM_RECORD_READ_H

#include <stdbool.h>

#include "record/record.h"

struct wm_reader_ops;
struct wm_static_data;
struct wm_timepoint;

/* As wm_recording_open(), and gpu_tracker's tracking files as well. */
int wm_recording_open_any(const char *path, size_t run, struct wm_recording **ret_recording,
                          struct wm_error *err);

/* The same run once more, at its start, ended by the same stop. WM_ENODEV: it is put
 * together of several files. */
int wm_recording_open_again(const struct wm_recording *recording,
                            struct wm_recording **ret_recording, struct wm_error *err);

/* How many runs the recording at `path` holds. */
int wm_recording_count_runs(const char *path, size_t *ret_count, struct wm_error *err);

/* Files of that format, whatever they look like, as if they were one; there is at least
 * one. */
int wm_recording_open_files(const struct wm_reader_ops *ops, const char *const *paths,
                            size_t count, struct wm_recording **ret_recording,
                            struct wm_error *err);

/* One of that format in the place of `recording`, with its path. */
int wm_recording_stand_in(const struct wm_recording *recording,
                          const struct wm_reader_ops *ops,
                          struct wm_recording **ret_recording, struct wm_error *err);

/* Whether it is the URL of a recording. */
bool wm_recording_is_url(const char *path);

/* The state of its reader if that is `ops`, else NULL. */
void *wm_recording_state(struct wm_recording *recording, const struct wm_reader_ops *ops);

/* Of gpu_tracker's tracking file, whose ticks are its timepoints; NULL: it is a recording
 * of ours. */
const struct wm_static_data *wm_recording_static_data(const struct wm_recording *recording);
const struct wm_timepoint *wm_recording_timepoint(const struct wm_recording *recording);

/* What a person should know of what was read so far: the index-th of it, or NULL. */
const char *wm_recording_remark(const struct wm_recording *recording, size_t index);

const struct wm_run *wm_recording_run(const struct wm_recording *recording);

/* NULL when the writer was killed before it could say. */
const struct wm_result *wm_recording_result(const struct wm_recording *recording);

const struct wm_channel *wm_recording_channels(const struct wm_recording *recording,
                                               size_t *ret_count);

size_t wm_recording_gaps(const struct wm_recording *recording,
                         const struct wm_gap **ret_gaps);

/* The next regions, whatever tick the recording stands at: 1 and what is borrowed until
 * the next call; 0 past the last. Where the tracker was killed, the last are those that it
 * had not recorded yet, and the run's remark on regions says after them if any are missing.
 */
int wm_recording_regions(struct wm_recording *recording, struct wm_region_batch *ret_batch,
                         struct wm_error *err);

/* The same in the order of the calls' starts; of a recording either this or the above is
 * asked. */
int wm_recording_calls(struct wm_recording *recording, struct wm_region_batch *ret_batch,
                       struct wm_error *err);

/* WM_ECANCELED once the caller has asked for an end; for what goes on without reading. */
int wm_recording_check_stop(const struct wm_recording *recording, struct wm_error *err);

/* What messages call it: its file, or the database without a password. */
const char *wm_recording_path(const struct wm_recording *recording);

/* Whether no tick has been read yet. */
bool wm_recording_at_start(const struct wm_recording *recording);

/* Whether it is read from the file at `path`. */
bool wm_recording_is_at(const struct wm_recording *recording, const char *path);

#endif
