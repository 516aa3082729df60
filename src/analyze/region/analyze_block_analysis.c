/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_block_analysis.c - joins the timepoints of a session with the calls of its
 * blocks, both streams in the order of time, in one pass.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "analyze/region/analyze_block_results.h"
#include "analyze/region/analyze_blocks.h"
#include "analyze/region/analyze_edges.h"
#include "base/text/base_utf8.h"
#include "record/calls/record_calls.h"
#include "record/calls/record_timepoints.h"
#include "record/record_read.h"
#include "wattmeter/analysis.h"

/* Of a call that was not opened in the blocks. */
#define NO_CALL UINT64_MAX

struct wm_block_analysis {
    struct wm_block_results *results;
};

struct join {
    struct wm_timepoints *timepoints;
    struct wm_calls *calls; /* NULL: there are none */
    struct wm_edges *edges; /* likewise */
    struct wm_blocks *blocks;

    struct wm_call_edge edge; /* the next one */
    bool has_edge;
    int64_t last_ns; /* of all that was seen */

    int64_t timepoint_count;
    int64_t first_ns, end_ns; /* the first timepoint and the last */
    bool has_calls;
    int64_t calls_start_ns, calls_stop_ns; /* from the first start to the last end */
};

static int no_memory(struct wm_error *err)
{
    return wm_fail(err, WM_ENOMEM, "analysis: out of memory");
}

/* A recording of ours has the calls in it; a tracking file of gpu_tracker's has none. */
static int open_calls(struct join *join, const struct wm_analysis_input *input,
                      struct wm_error *err)
{
    int status = WM_ENODEV;

    if (input->sub_tracking_count > 0)
        status = wm_calls_open_files(input->sub_tracking, input->sub_tracking_count,
                                     &join->calls, err);
    else if (wm_timepoints_is_recording(join->timepoints))
        status = wm_calls_open_recording(input->tracking, input->run, &join->calls, err);

    if (status == WM_OK)
        return wm_edges_new(join->calls, &join->edges, err);
    return input->sub_tracking_count == 0 && status == WM_ENODEV ? WM_OK : status;
}

static int next_edge(struct join *join, struct wm_error *err)
{
    int status = wm_edges_next(join->edges, &join->edge, err);

    join->has_edge = status > 0;
    return status < 0 ? status : WM_OK;
}

/* Of a call in gpu_tracker's files that never ended nobody knows how long it went on, so
 * it has no timepoints, as there; in a recording it went on up to its end. */
static bool is_lost(const struct wm_call *call)
{
    return call->is_open && call->path == WM_REGION_NO_PATH;
}

static int open_call(struct join *join, struct wm_error *err)
{
    const struct wm_call_edge *edge = &join->edge;
    uint64_t call;
    size_t block;

    if (wm_blocks_find(join->blocks, edge->call.name, &block) < 0 ||
        wm_blocks_open(join->blocks, block, edge->when_ns, &call) < 0)
        return no_memory(err);
    if (is_lost(&edge->call)) {
        wm_blocks_close(join->blocks, call, edge->when_ns, NAN);
        call = NO_CALL;
    }
    wm_edges_mark(join->edges, call);
    if (!join->has_calls && call != NO_CALL) {
        join->has_calls = true;
        join->calls_start_ns = edge->when_ns;
    }
    return WM_OK;
}

static int take_edge(struct join *join, struct wm_error *err)
{
    const struct wm_call_edge *edge = &join->edge;
    int status = WM_OK;

    if (edge->when_ns != WM_EDGES_END && edge->when_ns > join->last_ns)
        join->last_ns = edge->when_ns;
    if (edge->kind == WM_REGION_OPENS)
        status = open_call(join, err);
    else if (edge->kind == WM_REGION_CLOSES) {
        wm_blocks_close(join->blocks, edge->mark, edge->when_ns, edge->call.seconds);
        join->calls_stop_ns = edge->when_ns;
    } else if (edge->mark != NO_CALL)
        wm_blocks_close(join->blocks, edge->mark, join->last_ns, NAN);
    return status < 0 ? status : next_edge(join, err);
}

/* Ends are inclusive: at the time of the timepoint calls open before it and close after
 * it. */
static bool is_before(const struct wm_call_edge *edge, int64_t when_ns)
{
    return edge->when_ns < when_ns ||
           (edge->when_ns == when_ns && edge->kind == WM_REGION_OPENS);
}

/* WM_OK, WM_TIMEPOINTS_ANEW, or what failed. */
static int join_all(struct join *join, struct wm_error *err)
{
    struct wm_timepoint timepoint;
    int status = join->edges ? next_edge(join, err) : WM_OK;
    int more = 0;

    join->last_ns = INT64_MIN;
    while (status == WM_OK &&
           (more = wm_timepoints_next(join->timepoints, &timepoint, err)) == 1) {
        while (status == WM_OK && join->has_edge &&
               is_before(&join->edge, timepoint.when_ns))
            status = take_edge(join, err);
        wm_blocks_timepoint(join->blocks, &timepoint);
        if (join->timepoint_count++ == 0)
            join->first_ns = timepoint.when_ns;
        join->end_ns = timepoint.when_ns;
        if (timepoint.when_ns > join->last_ns)
            join->last_ns = timepoint.when_ns;
    }
    if (status < 0 || more != 0)
        return status < 0 ? status : more;
    while (status == WM_OK && join->has_edge)
        status = take_edge(join, err);
    return status;
}

/* All but the timepoints. */
static void forget(struct join *join)
{
    wm_blocks_free(join->blocks);
    wm_edges_free(join->edges);
    wm_calls_close(join->calls);
    *join = (struct join) { .timepoints = join->timepoints };
}

static int join_once(struct join *join, const struct wm_analysis_input *input,
                     struct wm_error *err)
{
    int status = open_calls(join, input, err);

    if (status == WM_OK)
        status = wm_blocks_new(&join->blocks, err);
    if (status == WM_OK)
        status = join_all(join, err);
    return status;
}

/* Calls may all have been before the first timepoint, with which an interval ends, or after
 * the last; but hardly by more than an interval. */
static bool are_of_another(const struct join *join)
{
    if (join->timepoint_count < 2 || !join->has_calls)
        return false;
    int64_t interval_ns = (join->end_ns - join->first_ns) / (join->timepoint_count - 1);
    return join->calls_stop_ns < join->first_ns - interval_ns ||
           join->calls_start_ns > join->end_ns + interval_ns;
}

static int remark(const struct join *join, const struct wm_analysis_input *input,
                  struct wm_remarks *remarks)
{
    const char *text;
    int status = WM_OK;

    for (size_t i = 0;
         status == WM_OK && (text = wm_timepoints_remark(join->timepoints, i)) != NULL; i++)
        status = wm_remarks_add(remarks, "%s", text);
    for (size_t i = 0;
         status == WM_OK && join->calls && (text = wm_calls_remark(join->calls, i)) != NULL;
         i++)
        status = wm_remarks_add(remarks, "%s", text);
    if (status == WM_OK && input->sub_tracking_count > 0 && are_of_another(join))
        status = wm_remarks_add(
            remarks,
            "%s: no call of a block was open between its first timepoint and its last: the "
            "calls seem to be those of another session",
            wm_text_path(input->tracking));
    return status;
}

/* What is told of GPUs is as real as the least real of them. */
static int find_gpu_origin(const struct wm_analysis_input *input,
                           struct wm_block_results *results, struct wm_error *err)
{
    struct wm_recording *recording;
    size_t count;

    int status = wm_recording_open(input->tracking, input->run, &recording, err);
    if (status < 0)
        return status;
    const struct wm_channel *channels = wm_recording_channels(recording, &count);
    for (size_t i = 0; i < count; i++) {
        if (channels[i].device_kind == WM_DEVICE_GPU &&
            channels[i].origin > results->gpu_origin)
            results->gpu_origin = channels[i].origin;
    }
    wm_recording_close(recording);
    return WM_OK;
}

static int analyze(struct join *join, const struct wm_analysis_input *input,
                   struct wm_block_results **ret_results, struct wm_error *err)
{
    int status = wm_timepoints_open(input->tracking, input->run, &join->timepoints, err);

    if (status == WM_OK)
        status = join_once(join, input, err);
    if (status == WM_TIMEPOINTS_ANEW) {
        forget(join);
        status = join_once(join, input, err);
        assert(status != WM_TIMEPOINTS_ANEW);
    }
    if (status < 0)
        return status;

    uint64_t stray = join->calls ? wm_calls_stray(join->calls) : 0;
    status = wm_block_results_new(join->blocks, wm_timepoints_static(join->timepoints),
                                  stray, ret_results, err);
    if (status == WM_OK && remark(join, input, &(*ret_results)->remarks) < 0)
        status = no_memory(err);
    if (status == WM_OK && wm_timepoints_is_recording(join->timepoints) &&
        (*ret_results)->static_data.expected_gpus != 0)
        status = find_gpu_origin(input, *ret_results, err);
    return status;
}

int wm_block_analysis_new(const struct wm_analysis_input *input,
                          struct wm_block_analysis **ret_analysis, struct wm_error *err)
{
    struct wm_block_analysis *analysis = calloc(1, sizeof(*analysis));
    struct join join = { 0 };

    if (!analysis)
        return no_memory(err);
    int status = analyze(&join, input, &analysis->results, err);
    forget(&join);
    wm_timepoints_close(join.timepoints);
    if (status < 0) {
        wm_block_analysis_free(analysis);
        return status;
    }
    *ret_analysis = analysis;
    return WM_OK;
}

void wm_block_analysis_free(struct wm_block_analysis *analysis)
{
    if (!analysis)
        return;
    wm_block_results_free(analysis->results);
    free(analysis);
}

const char *wm_block_analysis_remark(const struct wm_block_analysis *analysis, size_t index)
{
    return wm_remarks_get(&analysis->results->remarks, index);
}

const struct wm_block_results *
wm_block_analysis_results(const struct wm_block_analysis *analysis)
{
    return analysis->results;
}

struct wm_block_results *wm_block_analysis_take(struct wm_block_analysis *analysis)
{
    struct wm_block_results *results = analysis->results;

    analysis->results = NULL;
    wm_block_analysis_free(analysis);
    return results;
}

int wm_sub_tracking_combine(const char *const *paths, size_t count, const char *target,
                            void (*tell)(void *opaque, const char *remark), void *opaque,
                            const volatile sig_atomic_t *stop, struct wm_error *err)
{
    return wm_calls_combine(paths, count, target, tell, opaque, stop, err);
}
