/* SPDX-License-Identifier: Apache-2.0 */
/* base_clock.c - the clocks, as plain nanoseconds. */
#include "base/base_clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ns(clockid_t clock)
{
    struct timespec now = { 0 };

    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * WM_NS_PER_S + now.tv_nsec;
}

int64_t wm_clock_monotonic_ns(void)
{
    return now_ns(CLOCK_MONOTONIC);
}

int64_t wm_clock_middle_ns(int64_t *begin_ns)
{
    int64_t from_ns = *begin_ns;

    *begin_ns = wm_clock_monotonic_ns();
    return from_ns + (*begin_ns - from_ns) / 2;
}

/* Before Linux 5.6 there is one clock for all. */
uint64_t wm_clock_namespace(void)
{
    static const char path[] = "/proc/self/ns/time", start[] = "time:[";
    char name[64] = "";

    /* For stat() the kernel would make an inode. */
    if (readlink(path, name, sizeof(name) - 1) > 0 &&
        strncmp(name, start, strlen(start)) == 0)
        return strtoull(name + strlen(start), NULL, 10);
    return access("/proc/self/ns/pid", F_OK) == 0;
}

int64_t wm_clock_unix_ns(void)
{
    return now_ns(CLOCK_REALTIME);
}

int64_t wm_clock_thread_cpu_ns(void)
{
    return now_ns(CLOCK_THREAD_CPUTIME_ID);
}

int64_t wm_clock_process_cpu_ns(void)
{
    return now_ns(CLOCK_PROCESS_CPUTIME_ID);
}

bool wm_clock_from_seconds(double unix_seconds, int64_t *ret_unix_ns)
{
    static const double latest = 4611686018; /* 2^62 ns */

    if (!(unix_seconds >= 0 && unix_seconds <= latest))
        return false;

    /* As one product it would be rounded to steps wider than those of the seconds. */
    double whole = floor(unix_seconds);
    *ret_unix_ns = (int64_t)whole * WM_NS_PER_S + llround((unix_seconds - whole) * 1e9);
    return true;
}

static int compare_times(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

    return (left > right) - (left < right);
}

int64_t wm_clock_median(int64_t *times_ns, size_t count)
{
    if (count == 0)
        return 0;
    qsort(times_ns, count, sizeof(*times_ns), compare_times);
    return times_ns[(count - 1) / 2];
}

void wm_clock_rfc3339(int64_t unix_ns, char *text, size_t size)
{
    time_t seconds = (time_t)(unix_ns / WM_NS_PER_S);
    int milliseconds = (int)(unix_ns % WM_NS_PER_S / WM_NS_PER_MS);
    struct tm utc = { 0 };
    char date[24];

    gmtime_r(&seconds, &utc);
    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(text, size, "%s.%03dZ", date, milliseconds);
}
