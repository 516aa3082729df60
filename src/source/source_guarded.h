/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_guarded.h - a backend whose driver may hang, called in threads that can
 * be left behind (base_guard.h). For source.c alone.
 *
 * What a reading has found is copied out of the backend when its part has
 * answered; all that is asked later is asked of the copies.
 */
#ifndef WM_SOURCE_GUARDED_H
#define WM_SOURCE_GUARDED_H

#include <stdbool.h>

#include "base/base_error.h"
#include "source/source_ops.h"

struct wm_guarded;

/* Begins to open the backend, without waiting for its driver. */
int wm_guarded_open(const struct wm_source_ops *ops, const struct wm_source_config *config,
                    const struct wm_gpu_picks *picks, struct wm_guarded **ret_guarded,
                    struct wm_error *err);

/* Waits until CLOCK_MONOTONIC reaches `deadline_ns` for the backend to be open, or to have
 * failed. 1: the driver has not answered by then. The functions below but the next are for
 * one that is open. */
int wm_guarded_opened(struct wm_guarded *guarded, int64_t deadline_ns,
                      struct wm_error *err);

/* Waits a second at most for the driver, and hardly at all for one that hangs
 * already; then the backend is left to the threads that are in it. Accepts NULL. */
void wm_guarded_close(struct wm_guarded *guarded);

/* What the backend has found, and its own state, for what may be asked beside a reading. */
const struct wm_source_found *wm_guarded_found(const struct wm_guarded *guarded);
const void *wm_guarded_state(const struct wm_guarded *guarded);

/* The two halves of a reading; see wm_source_set_collect(), and read_part() for `is_end`.
 */
void wm_guarded_begin(struct wm_guarded *guarded, bool is_end);
void wm_guarded_collect(struct wm_guarded *guarded, int64_t deadline_ns, int64_t oldest_ns,
                        struct wm_reading *readings);

/* Of the last reading. */
const char *wm_guarded_why(const struct wm_guarded *guarded, size_t channel);
size_t wm_guarded_gpu_processes(const struct wm_guarded *guarded,
                                const struct wm_gpu_process **ret_processes);

/* CPU time that its threads have used for readings. */
int64_t wm_guarded_cpu_ns(const struct wm_guarded *guarded);

#endif
