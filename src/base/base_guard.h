/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base_guard.h - calls that may hang, made where they can be given up.
 *
 * A guard makes one kind of call for each of its units (the GPUs of a driver),
 * one after the other, in a thread of its own. The owner waits for as long as
 * it likes and goes on. A call that does not come back keeps its thread; the
 * other units go on in a new one, and the unit is back when its call is.
 *
 *     wm_guard_start(guard);                       one round over all units
 *     wm_guard_wait(guard, deadline_ns);
 *     for (size_t u = 0; u < units; u++)
 *         if (wm_guard_take(guard, u))             its results are ours to read
 *             copy_results(u);                     until the next start
 *
 * One thread at a time may own a guard. What a call touches belongs to its unit
 * alone, for it may run beside the call of another unit and beside the owner.
 */
#ifndef WM_BASE_GUARD_H
#define WM_BASE_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base_error.h"

struct wm_guard;

/* A call that takes longer than this hangs: its thread is left to it. */
#define WM_GUARD_HANG_NS (500LL * 1000 * 1000)

/* `call` and `release` get `context`, from threads with all signals blocked.
 * `release` is called once, after the last call of all units has come back; what
 * the guard's calls use must live until then. The thread begins with the first
 * round. */
int wm_guard_new(size_t units, void (*call)(void *context, size_t unit),
                 void (*release)(void *context), void *context, struct wm_guard **ret_guard,
                 struct wm_error *err);

/* Another number of units, all as new; while no call is under way. WM_ENOMEM leaves
 * them as they are. */
int wm_guard_resize(struct wm_guard *guard, size_t units, struct wm_error *err);

/* Begins a round over the units whose call is not under way, and returns 1.
 * Results that nobody took are lost. Does nothing, and returns 0, while a round
 * goes on without hanging, or where all units hang. Fails where no thread could
 * be made.
 *
 * A unit whose last call hung is called last, and given up at the next start: so
 * a GPU that is always slow costs the others nothing. */
int wm_guard_start(struct wm_guard *guard, struct wm_error *err);

/* Waits until the round is over or CLOCK_MONOTONIC reaches `deadline_ns`; true
 * when it is over, with nothing left hanging. Where the deadline comes before the thread
 * had a processor for the first call, it waits for that too, for WM_GUARD_HANG_NS at most.
 */
bool wm_guard_wait(struct wm_guard *guard, int64_t deadline_ns);

/* Whether the unit has finished a call since its result was taken last. */
bool wm_guard_take(struct wm_guard *guard, size_t unit);

/* Since when the unit's call has been under way; 0 when it is not. */
int64_t wm_guard_busy_since(const struct wm_guard *guard, size_t unit);

/* CPU time that the guard's threads have used. */
int64_t wm_guard_cpu_ns(const struct wm_guard *guard);

/* Waits until `deadline_ns` for `release`, then leaves it to the threads that
 * hang; true when it has been called. Accepts NULL. */
bool wm_guard_close(struct wm_guard *guard, int64_t deadline_ns);

#endif
