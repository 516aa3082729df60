/* SPDX-License-Identifier: Apache-2.0 */
/* base_clock.h - time in nanoseconds. Differences come from the monotonic
 * clock; the wall clock is read once per recording, as its anchor. */
#ifndef WM_BASE_CLOCK_H
#define WM_BASE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WM_NS_PER_S INT64_C(1000000000)
#define WM_NS_PER_MS INT64_C(1000000)

/* Times lie between 0 and here, those read from a file too, so that neither the
 * difference of two nor a third added to it can overflow. */
#define WM_TIME_MAX_NS ((INT64_C(1) << 62) - 1)

/* CLOCK_MONOTONIC. */
int64_t wm_clock_monotonic_ns(void);

/* The middle between `begin_ns` and now; `begin_ns` becomes now, for the next call. A slow
 * driver may answer with the value of any moment of its call. */
int64_t wm_clock_middle_ns(int64_t *begin_ns);

/* Whose CLOCK_MONOTONIC it is: a number of the time namespace. 0: unknown. */
uint64_t wm_clock_namespace(void);

/* Nanoseconds since 1970, UTC. */
int64_t wm_clock_unix_ns(void);

/* CPU time used by the calling thread, and by the calling process. */
int64_t wm_clock_thread_cpu_ns(void);
int64_t wm_clock_process_cpu_ns(void);

/* Seconds since 1970, as others write them, in nanoseconds. What is later stays later, and
 * from April 1970 on, where the steps of a double are wider than one, what differs goes on
 * differing. False for what is no time between 1970 and 2116. */
bool wm_clock_from_seconds(double unix_seconds, int64_t *ret_unix_ns);

/* The lower median of times, which get sorted; 0 of none. */
int64_t wm_clock_median(int64_t *times_ns, size_t count);

/* "2026-11-21T08:48:21.123Z" (RFC 3339, UTC); `size` is at least 32. */
void wm_clock_rfc3339(int64_t unix_ns, char *text, size_t size);

#endif
