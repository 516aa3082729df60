/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_region_replay.c - stored calls become edges again. */
#include "analyze/region/analyze_region_replay.h"

#include <stdlib.h>

#include "analyze/analyze_state.h"
#include "analyze/region/analyze_edges.h"
#include "record/record_read.h"

struct wm_region_replay {
    struct wm_analysis *analysis;
    struct wm_calls *calls;
    struct wm_edges *edges;
    struct wm_region_paths paths;
    struct wm_region_edge next;
    uint32_t process;
    bool has_next, has_end;
    int64_t last_ns;
};

static const struct wm_region_path *find_path(const void *context, uint32_t path)
{
    return wm_calls_path(context, path);
}

static int read_next(struct wm_region_replay *replay, struct wm_error *err)
{
    struct wm_call_edge edge;

    int status = wm_edges_next(replay->edges, &edge, err);
    replay->has_next = status > 0;
    if (status <= 0)
        return status;
    const struct wm_call *call = &edge.call;
    int64_t start_ns = call->monotonic_start_ns, stop_ns = call->monotonic_stop_ns;
    replay->process = call->process;
    replay->next = (struct wm_region_edge) {
        .when_ns = edge.kind == WM_REGION_OPENS || stop_ns < start_ns ? start_ns : stop_ns,
        .start_ns = start_ns,
        .path = call->path,
        .thread = call->thread,
        .kind = edge.kind,
    };
    if (replay->next.when_ns < replay->last_ns)
        replay->next.when_ns = replay->last_ns;
    replay->last_ns = replay->next.when_ns;
    return WM_OK;
}

int wm_region_replay_open(struct wm_analysis *analysis, struct wm_recording *recording,
                          struct wm_region_replay **ret_replay, struct wm_error *err)
{
    struct wm_calls *calls;

    int status = wm_calls_of_recording(recording, &calls, err);
    if (status == WM_ENODEV) {
        *ret_replay = NULL;
        return WM_OK;
    }
    if (status < 0)
        return status;

    struct wm_region_replay *replay = calloc(1, sizeof(*replay));
    if (!replay) {
        wm_calls_close(calls);
        return wm_fail(err, WM_ENOMEM, "regions: out of memory");
    }
    replay->analysis = analysis;
    replay->calls = calls;
    replay->paths = (struct wm_region_paths) { find_path, calls };
    status = wm_edges_new(calls, &replay->edges, err);
    if (status == WM_OK)
        status = wm_analysis_regions_start(analysis, err);
    const struct wm_result *result = wm_recording_result(recording);
    replay->has_end = result != NULL;
    if (status == WM_OK && result)
        wm_analysis_regions_end(analysis, result->end_ns);
    if (status == WM_OK)
        status = read_next(replay, err);
    if (status < 0)
        wm_region_replay_close(replay);
    else
        *ret_replay = replay;
    return status;
}

int wm_region_replay_until(struct wm_region_replay *replay, int64_t when_ns,
                           struct wm_error *err)
{
    int status = WM_OK;

    if (when_ns == INT64_MAX && !replay->has_end && replay->analysis->ticks > 0)
        wm_analysis_regions_end(replay->analysis, replay->analysis->last_ns);
    while (status == WM_OK && replay->has_next && replay->next.when_ns <= when_ns) {
        status = wm_analysis_edge(replay->analysis, &replay->next, replay->process,
                                  &replay->paths, err);
        if (status == WM_OK)
            status = read_next(replay, err);
    }
    if (status == WM_OK)
        wm_analysis_regions_complete(replay->analysis, when_ns);
    return status;
}

void wm_region_replay_close(struct wm_region_replay *replay)
{
    if (!replay)
        return;
    wm_edges_free(replay->edges);
    wm_calls_close(replay->calls);
    free(replay);
}
