/* SPDX-License-Identifier: Apache-2.0 */
/* track_baseline.c - ticks before the run, analysed like those of the run. */
#include "track/track_baseline.h"

#include <time.h>

#include "analyze/analyze.h"
#include "base/base_clock.h"
#include "base/base_guard.h"

static bool sleep_until(int64_t when_ns)
{
    const struct timespec when = {
        .tv_sec = when_ns / WM_NS_PER_S,
        .tv_nsec = when_ns % WM_NS_PER_S,
    };

    return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) == 0;
}

static int take_ticks(struct wm_ticker *ticker, struct wm_analysis *analysis,
                      int64_t interval_ns, int64_t duration_ns, struct wm_error *err)
{
    int64_t due_ns = wm_clock_monotonic_ns();
    int64_t end_ns = due_ns + duration_ns;

    for (;;) {
        wm_ticker_begin(ticker);
        wm_ticker_read_tree(ticker);
        wm_ticker_read_sources(ticker, WM_TICKER_NEW, WM_GUARD_HANG_NS);
        int64_t now_ns = wm_clock_monotonic_ns();
        struct wm_tick tick = wm_ticker_tick(ticker, now_ns);
        wm_analysis_tick(analysis, &tick);
        if (now_ns >= end_ns)
            return WM_OK;
        while (due_ns <= now_ns)
            due_ns += interval_ns;
        if (due_ns > end_ns)
            due_ns = end_ns;
        if (!sleep_until(due_ns))
            return wm_fail(err, WM_EIO, "the baseline was interrupted by a signal");
    }
}

int wm_track_baseline(struct wm_ticker *ticker, struct wm_run *run, int64_t duration_ns,
                      struct wm_error *err)
{
    struct wm_analysis *analysis = NULL;
    size_t count;
    const struct wm_channel *channels = wm_ticker_channels(ticker, &count);

    int status = wm_analysis_new(run, channels, count, &analysis, err);
    if (status == WM_OK)
        status = take_ticks(ticker, analysis, run->interval_ns, duration_ns, err);
    if (status == WM_OK)
        status = wm_analysis_baselines(analysis, run, err);
    wm_analysis_free(analysis);
    return status;
}
