/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base_thread.h - threads of ours in somebody else's program, and waiting in them by the
 * monotonic clock.
 *
 *     int status = wm_thread_start(&thread, run, context, "no thread for the meter", err);
 *
 * Such a thread has all signals blocked, as those of the program are for its own threads,
 * and a small stack.
 */
#ifndef WM_BASE_THREAD_H
#define WM_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/base_error.h"

/* `what` begins the message where no thread can be had. */
int wm_thread_start(pthread_t *ret_thread, void *(*run)(void *context), void *context,
                    const char *what, struct wm_error *err);

/* A condition variable whose time is that of CLOCK_MONOTONIC; 0 or an errno. */
int wm_thread_condition(pthread_cond_t *ret_condition);

/* Waits until somebody signals, or CLOCK_MONOTONIC reaches `deadline_ns`: false then. */
bool wm_thread_wait(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t deadline_ns);

#endif
