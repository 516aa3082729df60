/* SPDX-License-Identifier: Apache-2.0 */
/*
 * track_counter.h - perf counters of CPU time.
 *
 * On a machine where no program counts anything just then, the kernel switches its
 * counting on with the first counter of all, and waits for every CPU before it returns:
 * some 10 to 25 ms, which a command should not have to wait for. So the first one is
 * opened aside, and closed again; for a second from then on others come at once.
 *
 *     wm_counter_probe_new(&probe, err);           begins
 *     status = wm_counter_probe_wait(probe, deadline_ns, wake_fd);
 */
#ifndef WM_TRACK_COUNTER_H
#define WM_TRACK_COUNTER_H

#include <stdint.h>
#include <sys/types.h>

#include "base/base_error.h"

/* The task clock of process or thread `id` (0: the calling one), with all that it will
 * ever fork. A descriptor, or a negative errno value. */
int wm_counter_open(pid_t id);

struct wm_counter_probe;

/* What a probe answers while nothing is known; else 0, or the negative errno value with
 * which perf refused. */
#define WM_COUNTER_UNKNOWN 1

/* Begins, in a thread that ends by itself. */
int wm_counter_probe_new(struct wm_counter_probe **ret_probe, struct wm_error *err);

/* Waits for the answer, until CLOCK_MONOTONIC reaches `deadline_ns`. Where that passes,
 * `wake_fd`, an eventfd, will be written to as soon as the answer is there. Once. */
int wm_counter_probe_wait(struct wm_counter_probe *probe, int64_t deadline_ns, int wake_fd);

/* The answer as of now. */
int wm_counter_probe_answer(const struct wm_counter_probe *probe);

/* Waits for nothing. Accepts NULL. */
void wm_counter_probe_free(struct wm_counter_probe *probe);

#endif
