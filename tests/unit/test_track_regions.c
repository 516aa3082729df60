/* SPDX-License-Identifier: Apache-2.0 */
/* test_track_regions.c - what the tracker says of regions that it could not take. */
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "analyze/analyze_build.h"
#include "base/base_clock.h"
#include "region/region_ring.h"
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

static void mark(const char *folder)
{
    (void)folder;
    wm_region_begin("open");
    wm_region_begin("ended");
    wm_region_end();
}

/* The result of a tracking of `body` in which the `nth` allocation fails at the end; -1:
 * none. */
static struct wm_result track(void (*body)(const char *folder), long nth)
{
    const struct wm_run run = { .interval_ns = WM_NS_PER_S, .core_count = 1 };
    struct wm_result result = { 0 };
    struct wm_track_regions *regions = NULL;
    struct wm_analysis *analysis = NULL;
    struct wm_error err;

    assert_int_equal(wm_analysis_new(&run, &channel, 1, &analysis, &err), WM_OK);
    assert_int_equal(wm_track_regions_new(&regions, &err), WM_OK);
    assert_int_equal(wm_track_regions_listen(regions, &err), WM_OK);
    assert_int_equal(wm_track_regions_open(regions, &err), WM_OK);
    assert_int_equal(wm_track_regions_set_takers(regions, analysis, NULL, &err), WM_OK);
    body(wm_track_regions_path(regions));
    test_fail_allocation(nth);
    wm_track_regions_finish(regions, wm_clock_monotonic_ns(), &result);
    test_fail_allocation(-1);
    wm_track_regions_free(regions);
    wm_analysis_free(analysis);
    return result;
}

static void test_whole(void **state)
{
    const struct wm_result result = track(mark, -1);

    (void)state;
    assert_string_equal(result.regions_note, "");
    assert_int_equal(result.dropped_regions, 0);
}

static void test_no_memory(void **state)
{
    const struct wm_result result = track(mark, 0);

    (void)state;
    assert_string_equal(result.regions_note, "the last ones are missing: out of memory");
}

static void mark_without_descriptors(const char *folder)
{
    struct rlimit limit, none;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = 3;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    mark(folder);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void overwrite(const char *folder, const char *name, off_t at)
{
    const uint64_t absurd = UINT64_MAX / 3;
    char path[WM_RING_PATH_SIZE];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, &absurd, sizeof(absurd), at), sizeof(absurd));
    close(fd);
}

static void damage_ring(const char *folder)
{
    mark(folder);
    overwrite(folder, "0", offsetof(struct wm_ring, lost));
}

static void damage_control(const char *folder)
{
    mark(folder);
    overwrite(folder, "control", offsetof(struct wm_ring_control, lost));
}

static void remove_control(const char *folder)
{
    char path[WM_RING_PATH_SIZE];

    mark(folder);
    snprintf(path, sizeof(path), "%s/control", folder);
    assert_int_equal(unlink(path), 0);
}

/* Why regions are missing, and never a number that cannot be. */
static void test_notes(void **state)
{
    char damaged[160];

    snprintf(damaged, sizeof(damaged),
             "some are missing: 1 of the files that they come by is damaged (process %ld)",
             (long)getpid());
    const struct {
        void (*body)(const char *folder);
        const char *note;
        uint64_t dropped;
    } cases[] = {
        { mark_without_descriptors,
          "some are missing: a thread cannot make its ring: Too many open files", 4 },
        { damage_ring, damaged, 0 },
        { damage_control, "some are missing: 1 of the files that they come by is damaged",
          0 },
        { remove_control, "some may be missing: somebody removed ", 0 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct wm_result result = track(cases[i].body, -1);
        if (strncmp(result.regions_note, cases[i].note, strlen(cases[i].note)) != 0)
            fail_msg("%s: %s", cases[i].note, result.regions_note);
        assert_int_equal(result.dropped_regions, cases[i].dropped);
    }
}

static void mark_often(void)
{
    /* More names than calls are taken together of. */
    static const char *const names[] = { "a", "b", "c", "d", "e", "f", "g", "h", "i", "j" };

    for (size_t i = 0; i < 5000; i++) {
        wm_region_begin(names[i % ARRAY_LEN(names)]);
        wm_region_end();
    }
    usleep(2000); /* younger ones wait for the next draining */
}

/* What is left at a deadline is gone on with at once; and there is none where more ticks
 * would have to wait for it than can. */
static void test_deadline(void **state)
{
    const struct wm_run run = { .interval_ns = WM_NS_PER_S, .core_count = 1 };
    struct wm_track_regions *regions = NULL;
    struct wm_analysis *analysis = NULL;
    struct wm_error err;
    int64_t wait_ns = INT64_MAX;

    (void)state;
    assert_int_equal(wm_analysis_new(&run, &channel, 1, &analysis, &err), WM_OK);
    assert_int_equal(wm_track_regions_new(&regions, &err), WM_OK);
    assert_int_equal(wm_track_regions_listen(regions, &err), WM_OK);
    assert_int_equal(wm_track_regions_open(regions, &err), WM_OK);
    assert_int_equal(wm_track_regions_set_takers(regions, analysis, NULL, &err), WM_OK);

    mark_often();
    wm_track_regions_tick(regions, 0);
    assert_int_equal(wm_track_regions_fd(regions, &wait_ns), -1);
    assert_int_equal(wait_ns, 0);
    wm_track_regions_drain(regions, INT64_MAX);
    assert_true(wm_track_regions_fd(regions, &wait_ns) >= 0);

    mark_often();
    for (int i = 0; i <= WM_REGIONS_WAITING_LEAST / 2; i++) {
        const struct wm_reading reading = { wm_clock_monotonic_ns(), 0, WM_READING_OK };
        wm_analysis_tick(analysis, &(struct wm_tick) { reading.when_ns, &reading, 1 });
    }
    wm_track_regions_drain(regions, 0);
    assert_true(wm_track_regions_fd(regions, &wait_ns) >= 0);
    wm_track_regions_free(regions);
    wm_analysis_free(analysis);
}

/* Before there is an analysis, as while a driver starts, many more calls than can be kept
 * one by one are no reason to go on without it. */
static void test_many_before_takers(void **state)
{
    enum { ROUNDS = 40, CALLS = 10000 };
    const struct wm_run run = { .interval_ns = WM_NS_PER_S, .core_count = 1 };
    struct wm_track_regions *regions = NULL;
    struct wm_analysis *analysis = NULL;
    struct wm_result result = { 0 };
    struct wm_error err;

    (void)state;
    assert_int_equal(wm_analysis_new(&run, &channel, 1, &analysis, &err), WM_OK);
    assert_int_equal(wm_track_regions_new(&regions, &err), WM_OK);
    assert_int_equal(wm_track_regions_listen(regions, &err), WM_OK);
    assert_int_equal(wm_track_regions_open(regions, &err), WM_OK);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < CALLS; i++) {
            wm_region_begin("call");
            wm_region_end();
        }
        usleep(2000);
        wm_track_regions_drain(regions, INT64_MAX);
    }
    assert_true(wm_track_regions_has_room(regions));
    assert_int_equal(wm_track_regions_set_takers(regions, analysis, NULL, &err), WM_OK);
    wm_track_regions_finish(regions, wm_clock_monotonic_ns(), &result);
    struct wm_region_usage *usages = NULL;
    size_t count = 0;
    assert_int_equal(wm_regions_usages(analysis->regions, &usages, &count), WM_OK);
    assert_int_equal(count, 1);
    assert_int_equal(usages[0].calls, ROUNDS * CALLS);
    wm_region_usages_free(usages, count);
    wm_track_regions_free(regions);
    wm_analysis_free(analysis);
}

UNIT(track_regions)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_notes),
        cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_many_before_takers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
