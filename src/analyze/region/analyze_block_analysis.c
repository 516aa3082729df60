/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_block_analysis.c - joins the timepoints of a session with the calls of its
 * blocks, both streams in the order of time, in one pass.
 */
#include "analyze/region/analyze_block_analysis.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/region/analyze_edges.h"
#include "base/text/base_utf8.h"
#include "record/calls/record_calls.h"
#include "record/record_read.h"

/* Of a call that was not opened in the blocks. */
#define NO_CALL UINT64_MAX

struct join {
    struct wm_recording *recording;
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

static struct wm_block_figures figures_of(const struct wm_block_stats *stats)
{
    if (stats->count == 0)
        return (struct wm_block_figures) { NAN, NAN, NAN, NAN, NAN, NAN };
    return (struct wm_block_figures) { .min = stats->min,
                                       .max = stats->max,
                                       .mean = wm_block_stats_mean(stats),
                                       .std = wm_block_stats_std(stats),
                                       .total = NAN,
                                       .effective = wm_block_stats_effective(stats) };
}

static void put_usage(const struct wm_block_stats *stats,
                      struct wm_block_figures ret_usage[WM_MEASUREMENT_COUNT])
{
    for (size_t i = 0; i < WM_MEASUREMENT_COUNT; i++)
        ret_usage[i] = figures_of(&stats[i]);
}

static int copy_block(const struct wm_block *block, struct wm_block_result *result)
{
    result->name = strdup(block->name);
    result->timepoints = block->timepoints;
    result->calls = block->calls;
    result->nonempty_calls = block->nonempty_calls;
    result->unfinished = block->unfinished;
    result->inclusive_s = block->inclusive_s;
    result->time = figures_of(&block->time);
    result->time.total = wm_block_stats_sum(&block->time);
    memcpy(result->histogram, block->histogram, sizeof(result->histogram));
    put_usage(block->usage, result->usage);
    return result->name ? WM_OK : WM_ENOMEM;
}

static int by_name(const void *one, const void *other)
{
    const struct wm_block_result *a = one, *b = other;

    return strcmp(a->name, b->name);
}

void wm_block_analysis_sort(struct wm_block_analysis *results)
{
    if (results->count > 1)
        qsort(results->blocks, results->count, sizeof(*results->blocks), by_name);
}

int wm_block_analysis_of(const struct wm_blocks *blocks,
                         const struct wm_static_data *static_data, uint64_t stray,
                         struct wm_block_analysis **ret_results, struct wm_error *err)
{
    struct wm_block_analysis *results = calloc(1, sizeof(*results));
    size_t count = wm_blocks_count(blocks);

    if (!results)
        return no_memory(err);
    results->static_data = *static_data;
    results->stray = stray;
    put_usage(wm_blocks_overall(blocks, &results->timepoints), results->overall);

    if (count > 0)
        results->blocks = calloc(count, sizeof(*results->blocks));
    bool failed = count > 0 && !results->blocks;
    while (!failed && results->count < count) {
        const struct wm_block *block = wm_blocks_get(blocks, results->count);
        failed = copy_block(block, &results->blocks[results->count]) < 0;
        results->count++;
    }
    if (failed) {
        wm_block_analysis_free(results);
        return no_memory(err);
    }
    wm_block_analysis_sort(results);
    *ret_results = results;
    return WM_OK;
}

void wm_block_analysis_free(struct wm_block_analysis *results)
{
    if (!results)
        return;
    for (size_t i = 0; i < results->count; i++)
        free(results->blocks[i].name);
    wm_report_free(results->report);
    wm_remarks_release(&results->remarks);
    free(results->blocks);
    free(results);
}

const char wm_block_analysis_no_gpu[] = "no GPU was measured";

bool wm_block_analysis_lack(const struct wm_block_analysis *results, size_t measurement)
{
    return results->static_data.expected_gpus == 0 &&
           wm_measurement_is_gpu((enum wm_measurement)measurement) &&
           !(results->overall[measurement].max > 0);
}

enum wm_origin wm_block_analysis_origin(const struct wm_block_analysis *results,
                                        size_t measurement)
{
    return wm_measurement_is_gpu((enum wm_measurement)measurement) ? results->gpu_origin
                                                                   : WM_MEASURED;
}

/* A recording of ours has the calls in it; a tracking file of gpu_tracker's has none. */
static int open_calls(struct join *join, const struct wm_analysis_input *input,
                      struct wm_error *err)
{
    int status = WM_ENODEV;

    if (input->sub_tracking_count > 0)
        status = wm_calls_open_files(input->sub_tracking, input->sub_tracking_count,
                                     &join->calls, err);
    else if (!wm_recording_static_data(join->recording))
        status = wm_calls_of_recording(join->recording, &join->calls, err);

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
    return call->is_open && call->stop_ns == WM_CALL_NEVER_STOPS;
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

/* All but the recording and its timepoints. */
static void forget(struct join *join)
{
    wm_blocks_free(join->blocks);
    wm_edges_free(join->edges);
    wm_calls_close(join->calls);
    *join = (struct join) { .recording = join->recording, .timepoints = join->timepoints };
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
         status == WM_OK && (text = wm_recording_remark(join->recording, i)) != NULL; i++)
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
static enum wm_origin gpu_origin_of(const struct wm_recording *recording)
{
    enum wm_origin origin = WM_MEASURED;
    size_t count;

    const struct wm_channel *channels = wm_recording_channels(recording, &count);
    for (size_t i = 0; i < count; i++) {
        if (channels[i].device_kind == WM_DEVICE_GPU && channels[i].origin > origin)
            origin = channels[i].origin;
    }
    return origin;
}

static int by_block(const void *name, const void *block)
{
    return strcmp(name, ((const struct wm_block_result *)block)->name);
}

/* The regions of the report are the blocks, which are in the order of their names; but
 * there may be regions that it takes together. */
static void link_regions(struct wm_block_analysis *analysis)
{
    const struct wm_region_report *regions = &analysis->report->regions;

    for (size_t i = 0; i < regions->name_count && analysis->count > 0; i++) {
        struct wm_block_result *block =
            bsearch(regions->names[i].name, analysis->blocks, analysis->count,
                    sizeof(*analysis->blocks), by_block);
        if (block)
            block->region = &regions->names[i];
    }
}

/* The report takes the ticks once more. */
static int take_report(const struct wm_analysis_input *input,
                       struct wm_block_analysis *analysis, struct wm_error *err)
{
    struct wm_recording *recording;

    int status = wm_recording_open(input->tracking, input->run, &recording, err);
    if (status < 0)
        return status;
    status = wm_report_from_recording(recording, &analysis->report, err);
    wm_recording_close(recording);
    if (analysis->report && input->sub_tracking_count == 0)
        link_regions(analysis);
    return status;
}

static int join_streams(struct join *join, const struct wm_analysis_input *input,
                        struct wm_error *err)
{
    int status = wm_recording_open_any(input->tracking, input->run, &join->recording, err);

    if (status == WM_OK)
        status = wm_timepoints_of_recording(join->recording, &join->timepoints, err);
    if (status == WM_OK)
        status = join_once(join, input, err);
    if (status == WM_TIMEPOINTS_ANEW) {
        forget(join);
        status = join_once(join, input, err);
        assert(status != WM_TIMEPOINTS_ANEW);
    }
    return status;
}

static int analyze(struct join *join, const struct wm_analysis_input *input,
                   bool with_report, struct wm_block_analysis **ret_analysis,
                   struct wm_error *err)
{
    int status = join_streams(join, input, err);

    if (status < 0)
        return status;
    uint64_t stray = join->calls ? wm_calls_stray(join->calls) : 0;
    status = wm_block_analysis_of(join->blocks, wm_timepoints_static(join->timepoints),
                                  stray, ret_analysis, err);
    if (status == WM_OK && remark(join, input, &(*ret_analysis)->remarks) < 0)
        status = no_memory(err);
    if (status < 0 || wm_recording_static_data(join->recording))
        return status;
    if ((*ret_analysis)->static_data.expected_gpus != 0)
        (*ret_analysis)->gpu_origin = gpu_origin_of(join->recording);
    return with_report ? take_report(input, *ret_analysis, err) : WM_OK;
}

int wm_block_analysis_read(const struct wm_analysis_input *input, bool with_report,
                           struct wm_block_analysis **ret_analysis, struct wm_error *err)
{
    struct wm_block_analysis *analysis = NULL;
    struct join join = { 0 };

    int status = analyze(&join, input, with_report, &analysis, err);
    forget(&join);
    wm_timepoints_close(join.timepoints);
    wm_recording_close(join.recording);
    if (status < 0)
        wm_block_analysis_free(analysis);
    else
        *ret_analysis = analysis;
    return status;
}

int wm_block_analysis_new(const struct wm_analysis_input *input,
                          struct wm_block_analysis **ret_analysis, struct wm_error *err)
{
    return wm_block_analysis_read(input, false, ret_analysis, err);
}

const char *wm_block_analysis_remark(const struct wm_block_analysis *analysis, size_t index)
{
    return wm_remarks_get(&analysis->remarks, index);
}
