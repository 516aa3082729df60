/* SPDX-License-Identifier: Apache-2.0 */
/* test_track_regions.c - what the tracker says of regions that it could not take. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/base_clock.h"
#include "track/track_regions.h"
#include "wattmeter/region.h"

static const struct wm_channel channel = {
    .source = "host",
    .device = "host",
    .label = "host",
    .metric = "cpu_time",
    .unit = "s",
    .device_kind = WM_DEVICE_HOST,
    .kind = WM_COUNTER,
};

/* The result of a tracking in which the `nth` allocation fails at the end; -1: none. */
static struct wm_result track(long nth)
{
    const struct wm_run run = { .interval_ns = WM_NS_PER_S, .core_count = 1 };
    struct wm_result result = { 0 };
    struct wm_track_regions *regions = NULL;
    struct wm_analysis *analysis = NULL;
    struct wm_error err;

    assert_int_equal(wm_analysis_new(&run, &channel, 1, &analysis, &err), WM_OK);
    assert_int_equal(wm_track_regions_new(&regions, &err), WM_OK);
    assert_int_equal(wm_track_regions_listen(regions, &err), WM_OK);
    assert_int_equal(wm_track_regions_set_takers(regions, analysis, NULL, &err), WM_OK);
    wm_region_begin("open");
    wm_region_begin("ended");
    wm_region_end();
    test_fail_allocation(nth);
    wm_track_regions_finish(regions, wm_clock_monotonic_ns(), &result);
    test_fail_allocation(-1);
    wm_track_regions_free(regions);
    wm_analysis_free(analysis);
    return result;
}

static void test_whole(void **state)
{
    const struct wm_result result = track(-1);

    (void)state;
    assert_string_equal(result.regions_note, "");
    assert_int_equal(result.dropped_regions, 0);
}

static void test_no_memory(void **state)
{
    const struct wm_result result = track(0);

    (void)state;
    assert_string_equal(result.regions_note, "the last ones are missing: out of memory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
