/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h - writing a recording while the ticks go on.
 *
 * A recorder copies each tick into a bounded queue; a thread of its own writes
 * them out in batches, at least twice a second, so that a slow disk delays no
 * tick. When writing fails (full disk) the ticks wait in the queue and it is
 * tried again; when the queue is full the oldest are given up and counted. So a
 * recording can lose ticks, but never silently, and never the report.
 *
 *     wm_recorder_open(path, mode, &run, channels, n, &recorder, &err);
 *     wm_recorder_tick(recorder, &tick);             once per tick
 *     wm_recorder_gap(recorder, &gap);               when a gap closes
 *     wm_recorder_flush(recorder, &result);          fills in what went wrong
 *     wm_recorder_finish(recorder, &result, &err);
 *     wm_recorder_close(recorder);
 */
#ifndef WM_RECORD_H
#define WM_RECORD_H

#include "base/base_error.h"
#include "record/record_channel.h"
#include "record/record_regions.h"
#include "record/run/record_run.h"
#include "wattmeter/recording.h"

struct wm_recorder;

/* Opens `target`, a URL or a file whose suffix names the format, and writes what is known
 * before the first tick. Fails before it has touched anything that was there. */
int wm_recorder_open(const char *target, enum wm_record_mode mode, const struct wm_run *run,
                     const struct wm_channel *channels, size_t count,
                     struct wm_recorder **ret_recorder, struct wm_error *err);

/* Whether `target` could be opened in this mode as far as can be said without
 * touching it: a known format, a folder that is there, no file in the way. */
int wm_recorder_check(const char *target, enum wm_record_mode mode, struct wm_error *err);

/* What a person may be shown of a target: a URL without its password. The caller's to free;
 * NULL when out of memory. */
char *wm_recorder_shown(const char *target);

/* Copies the tick. Never fails and never waits for the disk. One that is not
 * later than the one before is counted as lost. */
void wm_recorder_tick(struct wm_recorder *recorder, const struct wm_tick *tick);

/* Copies the gap; called when it is over, or at the end for one still open. */
void wm_recorder_gap(struct wm_recorder *recorder, const struct wm_gap *gap);

/* Copies the calls. Never fails and never waits for the disk; those that the queue has no
 * room for are counted as lost. */
void wm_recorder_regions(struct wm_recorder *recorder, const struct wm_region_batch *batch);

/* Whether the queue has room for so many calls now, or is empty: whoever can wait
 * does. */
bool wm_recorder_has_room(struct wm_recorder *recorder, size_t calls);

/* The same for a tick, and for a gap of each channel. */
bool wm_recorder_has_tick_room(struct wm_recorder *recorder);

/* Whether the last attempt to write failed: what is slow is waited for longer. */
bool wm_recorder_is_failing(struct wm_recorder *recorder);

/* Writes out the queue, stops the thread, and puts what was lost, and why, into
 * `result->recording_trouble`, `result->lost_ticks` and `result->lost_regions`. */
void wm_recorder_flush(struct wm_recorder *recorder, struct wm_result *result);

/* CPU time that the recorder's threads have used. After wm_recorder_flush(). */
int64_t wm_recorder_cpu_ns(const struct wm_recorder *recorder);

/* Writes the result. After wm_recorder_flush(). Fails as well when the file has
 * been removed or replaced meanwhile. */
int wm_recorder_finish(struct wm_recorder *recorder, const struct wm_result *result,
                       struct wm_error *err);

/* Accepts NULL, and a recorder that was not finished. One that never got a tick
 * leaves no file behind, and puts back the file that it was to replace. */
void wm_recorder_close(struct wm_recorder *recorder);

#endif
