/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_recording.c - the report of a recording: its ticks, and its calls of regions as
 * the edges that they were. */
#include "analyze/analyze.h"

#include "analyze/analyze_state.h"
#include "analyze/region/analyze_edges.h"
#include "record/record_read.h"

struct replay {
    struct wm_analysis *analysis;
    struct wm_calls *calls; /* NULL: there are none */
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

static int read_next(struct replay *replay, struct wm_error *err)
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

/* A recording without regions has no calls, and no replay of them. */
static int open_replay(struct replay *replay, struct wm_recording *recording,
                       struct wm_error *err)
{
    const struct wm_result *result = wm_recording_result(recording);

    int status = wm_calls_of_recording(recording, &replay->calls, err);
    if (status < 0)
        return status == WM_ENODEV ? WM_OK : status;
    replay->paths = (struct wm_region_paths) { find_path, replay->calls };
    replay->has_end = result != NULL;
    status = wm_edges_new(replay->calls, &replay->edges, err);
    if (status == WM_OK)
        status = wm_analysis_regions_start(replay->analysis, err);
    if (status == WM_OK && result)
        wm_analysis_regions_end(replay->analysis, result->end_ns);
    return status == WM_OK ? read_next(replay, err) : status;
}

/* The edges up to the tick of that time; INT64_MAX after the last one. */
static int replay_until(struct replay *replay, int64_t when_ns, struct wm_error *err)
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

static int take_recording(struct replay *replay, struct wm_recording *recording,
                          struct wm_error *err)
{
    struct wm_tick tick;
    int status;

    while ((status = wm_recording_next(recording, &tick, err)) > 0) {
        wm_analysis_tick(replay->analysis, &tick);
        if (replay->calls)
            status = replay_until(replay, tick.when_ns, err);
        if (status < 0)
            return status;
    }
    return status == WM_OK && replay->calls ? replay_until(replay, INT64_MAX, err) : status;
}

static int replay_all(struct wm_analysis *analysis, struct wm_recording *recording,
                      struct wm_error *err)
{
    struct replay replay = { .analysis = analysis };

    int status = open_replay(&replay, recording, err);
    if (status == WM_OK)
        status = take_recording(&replay, recording, err);
    wm_edges_free(replay.edges);
    wm_calls_close(replay.calls);
    return status;
}

int wm_report_from_recording(struct wm_recording *recording, struct wm_report **ret_report,
                             struct wm_error *err)
{
    struct wm_analysis *analysis;
    const struct wm_gap *gaps;
    size_t count;

    if (!wm_recording_at_start(recording))
        return wm_fail(err, WM_EINVAL, "the recording does not stand at its start");

    const struct wm_channel *channels = wm_recording_channels(recording, &count);
    int status =
        wm_analysis_new(wm_recording_run(recording), channels, count, &analysis, err);
    if (status < 0)
        return status;

    size_t gap_count = wm_recording_gaps(recording, &gaps);
    for (size_t i = 0; i < gap_count; i++)
        wm_analysis_gap(analysis, &gaps[i]);
    status = replay_all(analysis, recording, err);
    if (status == WM_OK)
        status =
            wm_analysis_report(analysis, wm_recording_result(recording), ret_report, err);
    wm_analysis_free(analysis);
    return status;
}
