/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_recording.c - reads a recording once into a report: its ticks, or gpu_tracker's
 * timepoints, and the calls as the edges that they were. gpu_tracker's JSON of an analysis
 * is a report already.
 */
#include "analyze/analyze.h"

#include <assert.h>
#include <stdlib.h>

#include "analyze/analyze_build.h"
#include "analyze/analyze_state.h"
#include "analyze/region/analyze_regions.h"
#include "base/base_clock.h"
#include "base/base_file.h"
#include "base/base_options.h"
#include "base/base_utf8.h"
#include "record/record_read.h"
#include "wattmeter/analysis.h"

/* The times at which something was seen. */
struct span {
    int64_t count, first_ns, last_ns;
};

struct replay {
    struct wm_recording *recording;
    const struct wm_analysis_input *input; /* NULL: the recording alone */
    struct wm_analysis *analysis;

    struct wm_calls *calls; /* NULL: there are none */
    bool is_of_files;       /* they are those of sub-tracking files */
    struct wm_edges *edges;
    struct wm_region_edge next;
    uint32_t process;
    bool has_next;
    struct span seen_calls; /* of the calls that ended */

    struct wm_regions *regions; /* NULL: there are neither calls nor timepoints */
    bool owns_regions;          /* they are of files, and not the analysis's */
    struct span seen_ticks;     /* by the clock of the calls */
};

static const struct wm_region_path *find_path(const void *context, uint32_t path)
{
    return wm_calls_path(context, path);
}

static void note_time(struct span *span, int64_t first_ns, int64_t last_ns)
{
    if (span->count++ == 0 || first_ns < span->first_ns)
        span->first_ns = first_ns;
    span->last_ns = last_ns;
}

/* Its ticks are timepoints without readings, and their times those of the clock. */
static bool is_foreign(const struct replay *replay)
{
    return wm_recording_static_data(replay->recording) != NULL;
}

/* A recording of ours has the calls in it; a tracking file of gpu_tracker's has none. */
static int open_calls(struct replay *replay, struct wm_error *err)
{
    const struct wm_analysis_input *input = replay->input;
    int status = WM_ENODEV;

    replay->is_of_files = input && input->sub_tracking_count > 0;
    if (replay->is_of_files)
        status = wm_calls_open_files(input->sub_tracking, input->sub_tracking_count,
                                     &replay->calls, err);
    else if (!is_foreign(replay))
        status = wm_calls_of_recording(replay->recording, &replay->calls, err);
    if (status == WM_OK)
        return wm_edges_new(replay->calls, replay->is_of_files, &replay->edges, err);
    return !replay->is_of_files && status == WM_ENODEV ? WM_OK : status;
}

/* The ends of the run bound the calls of its recording, and not those of files. */
static int open_regions(struct replay *replay, struct wm_error *err)
{
    const struct wm_result *result = wm_recording_result(replay->recording);
    int status;

    if (!replay->calls && !replay->input)
        return WM_OK;
    replay->owns_regions = replay->is_of_files || is_foreign(replay);
    if (replay->owns_regions)
        status = wm_regions_new(0, WM_BLOCKS_MOST, &replay->regions, err);
    else
        status = wm_analysis_regions_start(replay->analysis, &replay->regions, err);
    if (status == WM_OK && result && !replay->is_of_files)
        wm_regions_end(replay->regions, result->end_ns);
    return status;
}

static int read_next(struct replay *replay, struct wm_error *err)
{
    int status = wm_edges_next(replay->edges, &replay->next, &replay->process, err);

    replay->has_next = status > 0;
    return status < 0 ? status : WM_OK;
}

/* The edges up to the tick of that time; INT64_MAX after the last one. */
static int replay_until(struct replay *replay, int64_t when_ns, struct wm_error *err)
{
    const struct wm_region_paths paths = { find_path, replay->calls };
    int status = WM_OK;

    while (status == WM_OK && replay->has_next && replay->next.when_ns <= when_ns) {
        const struct wm_region_edge *edge = &replay->next;
        if (wm_regions_edge(replay->regions, edge, replay->process, &paths) < 0)
            return wm_fail_memory(err, "regions");
        if (edge->kind == WM_REGION_CLOSES)
            note_time(&replay->seen_calls, edge->start_ns, edge->when_ns);
        status = read_next(replay, err);
    }
    if (status == WM_OK)
        wm_regions_complete(replay->regions, when_ns);
    return status;
}

/* Since 1970, as gpu_tracker's column has it, a double, which is off by a tenth of a
 * microsecond: that of a recording's own table `data`, so that whoever analyzes this comes
 * to the same. */
static int64_t unix_ns(const struct replay *replay, int64_t when_ns)
{
    const struct wm_run *run = wm_recording_run(replay->recording);
    int64_t unix_ns = when_ns - run->anchor_ns + run->anchor_unix_ns;

    if (is_foreign(replay))
        return when_ns;
    wm_clock_from_seconds(wm_timepoint_unix_seconds(run, when_ns), &unix_ns);
    return unix_ns;
}

static int take_tick(struct replay *replay, const struct wm_tick *tick,
                     struct wm_error *err)
{
    const struct wm_timepoint *point = NULL;
    int64_t when_ns = tick->when_ns;

    if (is_foreign(replay)) {
        point = wm_recording_timepoint(replay->recording);
    } else {
        wm_analysis_tick(replay->analysis, tick);
        if (replay->analysis->has_point)
            point = &replay->analysis->point;
    }
    if (!replay->regions)
        return WM_OK;
    if (replay->is_of_files)
        when_ns = unix_ns(replay, when_ns);
    else if (replay->seen_ticks.count == 0)
        wm_regions_begin(replay->regions, when_ns);
    if (point || !replay->is_of_files)
        note_time(&replay->seen_ticks, when_ns, when_ns);
    if (point && replay->owns_regions) {
        struct wm_timepoint told = *point;
        told.when_ns = when_ns;
        wm_regions_tick(replay->regions, NULL, &told);
    }
    return replay_until(replay, when_ns, err);
}

/* Of a recording that has no end the last tick is. */
static int end_regions(struct replay *replay, struct wm_error *err)
{
    if (!replay->regions)
        return WM_OK;
    if (!wm_recording_result(replay->recording) && !replay->is_of_files &&
        replay->seen_ticks.count > 0)
        wm_regions_end(replay->regions, replay->seen_ticks.last_ns);
    return replay_until(replay, INT64_MAX, err);
}

static int new_analysis(struct wm_recording *recording, struct wm_analysis **ret_analysis,
                        struct wm_error *err)
{
    const struct wm_gap *gaps;
    size_t count, gap_count = wm_recording_gaps(recording, &gaps);

    const struct wm_channel *channels = wm_recording_channels(recording, &count);
    int status =
        wm_analysis_new(wm_recording_run(recording), channels, count, ret_analysis, err);
    for (size_t i = 0; i < gap_count && status == WM_OK; i++)
        wm_analysis_gap(*ret_analysis, &gaps[i]);
    return status;
}

/* WM_OK, WM_TIMEPOINTS_ANEW, or what failed. */
static int replay_once(struct replay *replay, struct wm_error *err)
{
    struct wm_tick tick;

    int status = new_analysis(replay->recording, &replay->analysis, err);
    if (status == WM_OK)
        status = open_calls(replay, err);
    if (status == WM_OK)
        status = open_regions(replay, err);
    if (status == WM_OK && replay->edges)
        status = read_next(replay, err);
    while (status == WM_OK &&
           (status = wm_recording_next(replay->recording, &tick, err)) == 1)
        status = take_tick(replay, &tick, err);
    return status == WM_OK ? end_regions(replay, err) : status;
}

/* All but what was opened before. */
static void forget(struct replay *replay)
{
    if (replay->owns_regions)
        wm_regions_free(replay->regions);
    wm_analysis_free(replay->analysis);
    wm_edges_free(replay->edges);
    wm_calls_close(replay->calls);
    *replay = (struct replay) { .recording = replay->recording, .input = replay->input };
}

static int replay_all(struct replay *replay, struct wm_error *err)
{
    int status = replay_once(replay, err);

    if (status == WM_TIMEPOINTS_ANEW) {
        forget(replay);
        status = replay_once(replay, err);
        assert(status != WM_TIMEPOINTS_ANEW);
    }
    return status;
}

/* Calls may all have been before the first timepoint, with which an interval ends, or after
 * the last; but hardly by more than an interval. */
static bool are_of_another(const struct replay *replay)
{
    const struct span *ticks = &replay->seen_ticks, *calls = &replay->seen_calls;

    if (ticks->count < 2 || calls->count == 0)
        return false;
    int64_t interval_ns = (ticks->last_ns - ticks->first_ns) / (ticks->count - 1);
    return calls->last_ns < ticks->first_ns - interval_ns ||
           calls->first_ns > ticks->last_ns + interval_ns;
}

/* What there is to say of the files, behind all that the report says. */
static int remark_files(const struct replay *replay, struct wm_report *report,
                        struct wm_error *err)
{
    struct wm_report_builder builder = { .report = report };
    const char *text;

    report->file_remarks = report->remark_count;
    for (size_t i = 0; (text = wm_recording_remark(replay->recording, i)) != NULL; i++)
        wm_build_remark(&builder, "%s", text);
    for (size_t i = 0; replay->input && replay->calls &&
                       (text = wm_calls_remark(replay->calls, i)) != NULL;
         i++)
        wm_build_remark(&builder, "%s", text);
    if (replay->is_of_files && are_of_another(replay))
        wm_build_remark(
            &builder,
            "%s: no call of a block was open between its first timepoint and its last: the "
            "calls seem to be those of another session",
            wm_text_path(replay->input->tracking));
    return builder.failed ? wm_fail_memory(err, "report") : WM_OK;
}

/* Those of which no call is known are no blocks. */
static void keep_called(struct wm_region_report *regions)
{
    size_t kept = 0;

    for (size_t i = 0; i < regions->name_count; i++) {
        struct wm_region_usage *usage = &regions->names[i];
        if (usage->calls + usage->unfinished > 0)
            regions->names[kept++] = *usage;
        else
            free(usage->name);
    }
    regions->name_count = kept;
}

/* What the report has beside that of the recording alone. */
static int add_files(const struct replay *replay, struct wm_report *report,
                     struct wm_error *err)
{
    struct wm_region_report *regions = &report->regions;

    report->is_foreign = is_foreign(replay);
    if (report->is_foreign)
        report->usage.machine = *wm_recording_static_data(replay->recording);
    report->usage.stray = replay->calls ? wm_calls_stray(replay->calls) : 0;
    wm_build_overall(replay->regions, &report->usage);
    if (replay->owns_regions &&
        wm_regions_usages(replay->regions, &regions->names, &regions->name_count) < 0)
        return wm_fail_memory(err, "report");
    keep_called(regions);
    wm_region_usages_sort(regions->names, regions->name_count);
    return WM_OK;
}

/* Releases all of it. */
static int read_report(struct replay *replay, struct wm_report **ret_report,
                       struct wm_error *err)
{
    struct wm_report *report = NULL;

    int status = replay_all(replay, err);
    if (status == WM_OK)
        status = wm_analysis_report(replay->analysis,
                                    wm_recording_result(replay->recording), &report, err);
    if (status == WM_OK && replay->input)
        status = add_files(replay, report, err);
    if (status == WM_OK)
        status = remark_files(replay, report, err);
    if (status == WM_OK)
        *ret_report = report;
    else
        wm_report_free(report);
    forget(replay);
    return status;
}

int wm_report_from_recording(struct wm_recording *recording, struct wm_report **ret_report,
                             struct wm_error *err)
{
    struct replay replay = { .recording = recording };

    if (!wm_recording_at_start(recording))
        return wm_fail(err, WM_EINVAL, "the recording does not stand at its start");
    return read_report(&replay, ret_report, err);
}

/* A result of a thousand blocks takes 2 MB. */
#define MOST_JSON ((size_t)1 << 30)

static int read_json(const struct wm_analysis_input *input, struct wm_report **ret_report,
                     struct wm_error *err)
{
    size_t length;
    char *text;

    if (input->sub_tracking_count > 0)
        return wm_fail(err, WM_EINVAL,
                       "%s: is the JSON of an analysis, which has its calls already",
                       wm_text_path(input->tracking));
    int status = wm_file_slurp(input->tracking, MOST_JSON, &text, &length, err);
    if (status < 0)
        return status;
    status = wm_report_parse(text, length, input->tracking, ret_report, err);
    free(text);
    return status;
}

int wm_report_from_files(const struct wm_analysis_input *given,
                         struct wm_report **ret_report, struct wm_error *err)
{
    struct wm_analysis_input own;
    const struct wm_analysis_input *input = &own;
    struct replay replay = { .input = input };

    int status = wm_options_read(given, &own, sizeof(own), err);
    if (status == WM_OK)
        status = wm_recording_open_any(input->tracking, input->run, &replay.recording, err);
    if (status == WM_EFORMAT && wm_report_is_json(input->tracking))
        return read_json(input, ret_report, err);
    if (status == WM_OK)
        status = read_report(&replay, ret_report, err);
    wm_recording_close(replay.recording);
    return status;
}
