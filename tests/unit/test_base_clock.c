/* SPDX-License-Identifier: Apache-2.0 */
/* test_base_clock.c - the clocks go forward, and dates are written in UTC. */
#include "test.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base_clock.h"

static void test_forward(void **state)
{
    static int64_t (*const clocks[])(void) = {
        wm_clock_monotonic_ns,
        wm_clock_thread_cpu_ns,
        wm_clock_process_cpu_ns,
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(clocks); i++) {
        int64_t first = clocks[i]();
        int64_t last = first;

        assert_true(first > 0);
        for (int round = 0; round < 1000; round++) {
            int64_t now = clocks[i]();
            assert_true(now >= last);
            last = now;
        }
        assert_true(last > first);
    }
}

static void test_sleep(void **state)
{
    const struct timespec pause = { .tv_nsec = 20 * WM_NS_PER_MS };
    int64_t wall = wm_clock_monotonic_ns();
    int64_t thread = wm_clock_thread_cpu_ns();
    (void)state;

    assert_int_equal(nanosleep(&pause, NULL), 0);
    assert_true(wm_clock_monotonic_ns() - wall >= 20 * WM_NS_PER_MS);

    int64_t thread_now = wm_clock_thread_cpu_ns();
    assert_true(thread_now - thread < 20 * WM_NS_PER_MS);
    assert_true(wm_clock_process_cpu_ns() >= thread_now);
}

static void test_unix(void **state)
{
    int64_t seconds = time(NULL);
    int64_t now_ns = wm_clock_unix_ns();
    (void)state;

    /* time() looks at a coarser clock that may lag behind. */
    assert_in_range(now_ns / WM_NS_PER_S, seconds, seconds + 2);
}

/* A call that took two seconds is dated one second after it began; the next one begins now.
 */
static void test_middle(void **state)
{
    int64_t before_ns = wm_clock_monotonic_ns();
    int64_t from_ns = before_ns - 2 * WM_NS_PER_S, begin_ns = from_ns;
    (void)state;

    int64_t middle_ns = wm_clock_middle_ns(&begin_ns);
    assert_in_range(begin_ns, before_ns, wm_clock_monotonic_ns());
    assert_int_equal(middle_ns, from_ns + (begin_ns - from_ns) / 2);
}

static void test_rfc3339(void **state)
{
    static const struct {
        int64_t unix_ns;
        const char *text;
    } cases[] = {
        { 0, "1970-01-01T00:00:00.000Z" },
        { INT64_C(999999999), "1970-01-01T00:00:00.999Z" },
        { INT64_C(951782400000000000), "2000-02-29T00:00:00.000Z" },
        { INT64_C(1732178901007000000), "2024-11-21T08:48:21.007Z" },
        { INT64_C(1735689599999999999), "2024-12-31T23:59:59.999Z" },
        { INT64_C(4102444800000000000), "2100-01-01T00:00:00.000Z" },
        { INT64_MAX, "2262-04-11T23:47:16.854Z" },
    };
    char text[32];
    (void)state;

    /* A time zone of the environment must not leak in. */
    assert_int_equal(setenv("TZ", "Asia/Kathmandu", 1), 0);
    tzset();
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        wm_clock_rfc3339(cases[i].unix_ns, text, sizeof(text));
        assert_string_equal(text, cases[i].text);
    }
}

static void test_median(void **state)
{
    int64_t times[] = { 7, -1, 3, INT64_MAX };
    (void)state;

    assert_int_equal(wm_clock_median(times, 0), 0);
    assert_int_equal(wm_clock_median(times, 1), 7);
    assert_int_equal(wm_clock_median(times, 2), -1);
    assert_int_equal(wm_clock_median(times, 3), 3);
    assert_int_equal(wm_clock_median(times, 4), 3);
}

UNIT(base_clock)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forward), cmocka_unit_test(test_sleep),
        cmocka_unit_test(test_unix),    cmocka_unit_test(test_rfc3339),
        cmocka_unit_test(test_median),  cmocka_unit_test(test_middle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
