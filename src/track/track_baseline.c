/* SPDX-License-Identifier: Apache-2.0 */
/* track_baseline.c - ticks before the run, analysed like those of the run. */
#include "track/track_baseline.h"

#include <poll.h>
#include <signal.h>
#include <time.h>

#include "analyze/analyze.h"
#include "base/base_clock.h"
#include "base/base_guard.h"

/* With the signals let in that were held back while the sources were read, so that none
 * goes unnoticed; false after one. */
static bool sleep_until(int64_t when_ns, const sigset_t *signals)
{
    int64_t left_ns = when_ns - wm_clock_monotonic_ns();
    const struct timespec left = {
        .tv_sec = left_ns > 0 ? left_ns / WM_NS_PER_S : 0,
        .tv_nsec = left_ns > 0 ? left_ns % WM_NS_PER_S : 0,
    };

    return ppoll(NULL, 0, &left, signals) == 0;
}

static int take_ticks(struct wm_ticker *ticker, struct wm_analysis *analysis,
                      int64_t interval_ns, int64_t duration_ns, const sigset_t *signals,
                      struct wm_error *err)
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
        if (!sleep_until(due_ns, signals))
            return wm_fail(err, WM_EIO, "the baseline was interrupted by a signal");
    }
}

int wm_track_baseline(struct wm_ticker *ticker, struct wm_run *run, int64_t duration_ns,
                      struct wm_error *err)
{
    struct wm_analysis *analysis = NULL;
    sigset_t all, before;
    size_t count;
    const struct wm_channel *channels = wm_ticker_channels(ticker, &count);

    int status = wm_analysis_new(run, channels, count, &analysis, err);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    if (status == WM_OK)
        status = take_ticks(ticker, analysis, run->interval_ns, duration_ns, &before, err);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (status == WM_OK)
        status = wm_analysis_baselines(analysis, run, err);
    wm_analysis_free(analysis);
    return status;
}
