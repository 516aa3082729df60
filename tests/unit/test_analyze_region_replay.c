/* SPDX-License-Identifier: Apache-2.0 */
/* test_analyze_region_replay.c - the report of a recording with regions, and the one that
 * the tracker had when it wrote it: the same, to the last digit. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze.h"
#include "made_report.h"
#include "record/record_read.h"
#include "test_calls.h"

#define MOST_EDGES 64

struct live {
    struct wm_region_edge edges[MOST_EDGES];
    uint32_t processes[MOST_EDGES];
    size_t count;
    struct wm_calls *calls;
};

static void add_edge(struct live *live, const struct wm_call *call, bool opens)
{
    struct wm_region_edge edge = {
        .when_ns = opens ? call->monotonic_start_ns : call->monotonic_stop_ns,
        .start_ns = call->monotonic_start_ns,
        .path = call->path,
        .thread = call->thread,
        .kind = opens           ? WM_REGION_OPENS
                : call->is_open ? WM_REGION_BREAKS_OFF
                                : WM_REGION_CLOSES,
    };
    size_t at = live->count++;

    assert_true(at < MOST_EDGES);
    for (; at > 0 && live->edges[at - 1].when_ns > edge.when_ns; at--) {
        live->edges[at] = live->edges[at - 1];
        live->processes[at] = live->processes[at - 1];
    }
    live->edges[at] = edge;
    live->processes[at] = call->process;
}

static const struct wm_region_path *find_path(const void *context, uint32_t path)
{
    return wm_calls_path(context, path);
}

static char *live_report(const char *path, struct live *live)
{
    const struct wm_region_paths paths = { find_path, live->calls };
    struct wm_recording *recording = NULL;
    struct wm_analysis *analysis = NULL;
    struct wm_regions *regions = NULL;
    struct wm_report *report = NULL;
    const struct wm_gap *gaps;
    struct wm_error err;
    struct wm_tick tick;
    size_t channels, ticks = 0;

    assert_int_equal(wm_recording_open(path, WM_LAST_RUN, &recording, &err), WM_OK);
    const struct wm_channel *list = wm_recording_channels(recording, &channels);
    assert_int_equal(
        wm_analysis_new(wm_recording_run(recording), list, channels, &analysis, &err),
        WM_OK);
    assert_int_equal(wm_analysis_regions_start(analysis, &regions, &err), WM_OK);
    size_t count = wm_recording_gaps(recording, &gaps);
    for (size_t i = 0; i < count; i++)
        wm_analysis_gap(analysis, &gaps[i]);
    while (wm_recording_next(recording, &tick, &err) > 0) {
        wm_analysis_tick(analysis, &tick);
        ticks++;
    }
    assert_true(ticks > 1 && ticks <= WM_REGIONS_WAITING_LEAST);
    wm_regions_end(regions, wm_recording_result(recording)->end_ns);
    for (size_t i = 0; i < live->count; i++)
        assert_int_equal(
            wm_regions_edge(regions, &live->edges[i], live->processes[i], &paths), WM_OK);
    wm_regions_complete(regions, INT64_MAX);
    assert_int_equal(
        wm_analysis_report(analysis, wm_recording_result(recording), &report, &err), WM_OK);
    char *text = made_print(report, WM_FORMAT_JSON, NULL);
    wm_report_free(report);
    wm_analysis_free(analysis);
    wm_recording_close(recording);
    return text;
}

static char *stored_report(const char *path)
{
    struct wm_recording *recording = NULL;
    struct wm_report *report = NULL;
    struct wm_error err;

    assert_int_equal(wm_recording_open(path, WM_LAST_RUN, &recording, &err), WM_OK);
    assert_int_equal(wm_report_from_recording(recording, &report, &err), WM_OK);
    char *text = made_print(report, WM_FORMAT_JSON, NULL);
    wm_report_free(report);
    wm_recording_close(recording);
    return text;
}

static void test_same(void **state)
{
    const char *path = test_source_path("tests/data/recordings/v1-regions.sqlite");
    struct live live = { 0 };
    struct wm_call call;
    struct wm_error err;

    (void)state;
    assert_int_equal(open_calls(path, WM_LAST_RUN, &live.calls, &err), WM_OK);
    while (wm_calls_next(live.calls, &call, &err) > 0) {
        add_edge(&live, &call, true);
        add_edge(&live, &call, false);
    }
    assert_true(live.count > 0);
    char *one = live_report(path, &live), *other = stored_report(path);
    assert_non_null(strstr(one, "\"by_path\""));
    assert_string_equal(one, other);
    free(one);
    free(other);
    wm_calls_close(live.calls);
}

/* By the clock of a time namespace, a call began an hour ago. */
static void test_before_the_run(void **state)
{
    const char *path = test_source_path("tests/data/recordings/v1-regions.sqlite");
    struct live live = { 0 };
    struct wm_call call = { 0 };
    struct wm_error err;

    (void)state;
    assert_int_equal(open_calls(path, WM_LAST_RUN, &live.calls, &err), WM_OK);
    struct wm_call next;
    int64_t longest_ns = 0;
    while (wm_calls_next(live.calls, &next, &err) > 0) {
        if (next.is_open || next.monotonic_stop_ns - next.monotonic_start_ns <= longest_ns)
            continue;
        longest_ns = next.monotonic_stop_ns - next.monotonic_start_ns;
        call = next;
    }
    assert_true(longest_ns > 0);
    call.monotonic_start_ns -= INT64_C(3600000000000);
    add_edge(&live, &call, true);
    add_edge(&live, &call, false);
    char *text = live_report(path, &live);
    json_t *root = json_loads(text, 0, NULL);
    json_t *regions = json_object_get(root, "regions");
    json_t *region = json_array_get(json_object_get(regions, "by_name"), 0);
    double open =
        json_real_value(json_object_get(json_object_get(region, "inclusive"), "time"));
    double total =
        json_real_value(json_object_get(json_object_get(region, "time"), "total"));
    assert_true(open > 0 && open < 60);
    assert_true(total > 0 && total < 60);
    assert_non_null(strstr(text, "time namespace"));
    json_decref(root);
    free(text);
    wm_calls_close(live.calls);
}

/* What was open when the tracker was killed is known by its place alone: that is not 0 J.
 */
static void test_open_at_the_kill(void **state)
{
    const char *path = test_source_path("tests/data/recordings/v1-killed-tracker.sqlite");
    char *text = stored_report(path);
    json_t *root = json_loads(text, 0, NULL);
    json_t *region =
        json_array_get(json_object_get(json_object_get(root, "regions"), "by_path"), 0);
    json_t *inclusive = json_object_get(region, "inclusive");

    (void)state;
    assert_string_equal(json_string_value(json_object_get(region, "name")), "around");
    assert_int_equal(json_integer_value(json_object_get(region, "calls")), 0);
    assert_true(json_is_null(json_object_get(inclusive, "time")));
    assert_true(
        json_is_null(json_object_get(json_object_get(inclusive, "energy"), "total")));
    assert_non_null(strstr(text, "no call of it is recorded"));
    json_decref(root);
    free(text);
}

static void test_none(void **state)
{
    char *text = stored_report(test_source_path("tests/data/recordings/v1.sqlite"));

    (void)state;
    assert_null(strstr(text, "\"by_path\""));
    free(text);
}

static void test_no_memory(void **state)
{
    const char *path = test_source_path("tests/data/recordings/v1-regions.sqlite");
    int status = WM_ENOMEM;

    (void)state;
    for (long nth = 0; status != WM_OK; nth++) {
        struct wm_recording *recording = NULL;
        struct wm_report *report = NULL;
        struct wm_error err;
        assert_int_equal(wm_recording_open(path, WM_LAST_RUN, &recording, &err), WM_OK);
        test_fail_allocation(nth);
        status = wm_report_from_recording(recording, &report, &err);
        test_fail_allocation(-1);
        assert_true(status <= WM_OK);
        if (status == WM_OK)
            wm_report_free(report);
        wm_recording_close(recording);
        assert_true(nth < 100000);
    }
}

UNIT(analyze_region_replay)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same),
        cmocka_unit_test(test_before_the_run),
        cmocka_unit_test(test_open_at_the_kill),
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
