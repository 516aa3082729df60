/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_round.h - a reading in two steps, for those who read many sources at
 * once: drivers that may hang are asked first, and answer while the others are
 * read.
 *
 *     for each source: wm_source_begin(source);
 *     for each source: wm_source_collect(source, deadline_ns, oldest_ns, ...);
 */
#ifndef WM_SOURCE_ROUND_H
#define WM_SOURCE_ROUND_H

#include <stdbool.h>

#include "base/base_error.h"
#include "wattmeter/source.h"

/* Whether it is asked in a thread of its own. Of others wm_source_begin() asks
 * nothing, and wm_source_collect() all. */
bool wm_source_is_guarded(const struct wm_source *source);

void wm_source_begin(struct wm_source *source);

/* Waits until CLOCK_MONOTONIC reaches `deadline_ns` for a driver that has not
 * answered, then goes by what it answered last, if it was asked for that at
 * `oldest_ns` or later and does not hang since (base_guard.h); such readings keep
 * their time. Else the readings are WM_READING_STALE, and their time is when the
 * driver was asked in vain. */
int wm_source_collect(struct wm_source *source, int64_t deadline_ns, int64_t oldest_ns,
                      struct wm_reading *readings, size_t count, struct wm_error *err);

/* CPU time used for the source's readings in other threads than the caller's. */
int64_t wm_source_cpu_ns(const struct wm_source *source);

#endif
