/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.h - recordings for the viewers of profiles: Perfetto and chrome://tracing, the
 * Firefox Profiler, speedscope, flame graphs.
 *
 *     const struct wm_trace_request request = { .format = WM_FORMAT_CHROME };
 *     struct wm_recording *run;
 *     if (wm_recording_open("run.sqlite", WM_LAST_RUN, &run, &err) < 0)
 *         return report(&err);
 *     int status = wm_recording_trace(run, &request, stdout, &err);
 *     wm_recording_close(run);
 *
 * The rules of source.h hold here too. docs/traces.md describes the formats.
 */
#ifndef WATTMETER_TRACE_H
#define WATTMETER_TRACE_H

#include <stdbool.h>
#include <stdio.h>

#include "wattmeter/api.h"
#include "wattmeter/error.h"
#include "wattmeter/format.h"
#include "wattmeter/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wm_trace_request {
    size_t size;           /* sizeof this struct */
    enum wm_format format; /* a trace's */
    bool by_time;          /* of stacks: seconds, also where joules are known */

    /* The JSON trace of PyTorch's profiler whose events WM_FORMAT_CHROME adds, on the clock
     * of that trace; NULL: none. */
    const char *with;

    /* What WM_FORMAT_FIREFOX shows energy as; 0: the viewer's own. */
    double carbon_g_per_kwh;

    bool by_energy; /* of stacks: fail if joules are unknown */
    FILE *notes;    /* gets a line if stacks have seconds since joules are unknown; may be
                     * NULL */
};

/* Writes the run of `recording`, which stands at its start, in bounded memory. WM_ENODEV:
 * the stacks of a run without regions, or of unknown energy with `by_energy`. WM_EFORMAT:
 * `with` is no such trace, or has no time in common with the run. */
WM_API int wm_recording_trace(struct wm_recording *recording,
                              const struct wm_trace_request *request, FILE *out,
                              struct wm_error *err);

#ifdef __cplusplus
}
#endif
#endif
