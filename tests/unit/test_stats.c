/* SPDX-License-Identifier: Apache-2.0 */
/* test_stats.c - means, totals and maxima of made-up series. */
#include <math.h>

#include "record/record_stats.h"
#include "test.h"

#define MAX_READINGS 6

/* A reading at `ms`; NAN in `value` is one that failed. */
struct point {
    int64_t ms;
    double value;
};

static struct wm_reading reading_at(const struct point *point)
{
    return (struct wm_reading) {
        .when_ns = point->ms * 1000000,
        .value = point->value,
        .state = isnan(point->value) ? WM_READING_FAILED : WM_READING_OK,
    };
}

static void assert_near(const char *name, const char *what, double value, double expected)
{
    if (fabs(value - expected) > 1e-9 || isnan(value) != isnan(expected))
        fail_msg("%s: %s is %g, not %g", name, what, value, expected);
}

static void test_gauge(void **state)
{
    static const struct {
        const char *name;
        struct point points[MAX_READINGS];
        size_t count;
        struct {
            double mean, min, max, last, covered_s;
        } expected;
    } rows[] = {
        { "one reading", { { 0, 5 } }, 1, { 5, 5, 5, 5, 0 } },
        { "a line", { { 0, 0 }, { 1000, 10 } }, 2, { 5, 0, 10, 10, 1 } },
        { "weighted by time, not by ticks",
          { { 0, 10 }, { 900, 10 }, { 1000, 0 } },
          3,
          { 9.5, 0, 10, 0, 1 } },
        { "a hole is not covered",
          { { 0, 1 }, { 1000, 1 }, { 2000, NAN }, { 3000, 7 }, { 4000, 7 } },
          5,
          { 4, 1, 7, 7, 2 } },
        { "a hole at both ends",
          { { 0, NAN }, { 1000, 3 }, { 2000, 3 }, { 3000, NAN } },
          4,
          { 3, 3, 3, 3, 1 } },
        { "only lone readings: the last one",
          { { 0, 1 }, { 1000, NAN }, { 2000, 3 } },
          3,
          { 3, 1, 3, 3, 0 } },
        { "negative values", { { 0, -20 }, { 1000, -10 } }, 2, { -15, -20, -10, -10, 1 } },
        { "the same moment twice",
          { { 0, 1 }, { 0, 9 }, { 1000, 9 } },
          3,
          { 9, 1, 9, 9, 1 } },
        { "a clock set back", { { 5000, 1 }, { 1000, 9 } }, 2, { 9, 1, 9, 9, 0 } },
        { "infinity is no value",
          { { 0, 2 }, { 1000, INFINITY }, { 2000, 2 } },
          3,
          { 2, 2, 2, 2, 0 } },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct wm_gauge_stats stats = { 0 };
        for (size_t k = 0; k < rows[i].count; k++) {
            struct wm_reading reading = reading_at(&rows[i].points[k]);
            wm_gauge_add(&stats, &reading);
        }
        assert_near(rows[i].name, "mean", wm_gauge_mean(&stats), rows[i].expected.mean);
        assert_near(rows[i].name, "min", stats.min, rows[i].expected.min);
        assert_near(rows[i].name, "max", stats.max, rows[i].expected.max);
        assert_near(rows[i].name, "last", stats.last, rows[i].expected.last);
        assert_near(rows[i].name, "covered time", stats.covered_s,
                    rows[i].expected.covered_s);
    }
}

static void test_counter(void **state)
{
    static const struct {
        const char *name;
        struct point points[MAX_READINGS];
        size_t count;
        uint64_t usable;
        double total, first, last;
    } rows[] = {
        { "one reading", { { 0, 5 } }, 1, 1, 0, 5, 5 },
        { "increases", { { 0, 5 }, { 1, 6 }, { 2, 6 }, { 3, 9.5 } }, 4, 4, 4.5, 5, 9.5 },
        { "a hole costs nothing", { { 0, 5 }, { 1, NAN }, { 2, 9 } }, 3, 2, 4, 5, 9 },
        { "it begins late", { { 0, NAN }, { 1, 4 }, { 2, 9 } }, 3, 2, 5, 4, 9 },
        { "a small step back", { { 0, 5 }, { 1, 4.99 }, { 2, 6 } }, 3, 3, 1.01, 5, 6 },
        { "set back to zero", { { 0, 1e6 }, { 1, 0 }, { 2, 3 } }, 3, 3, 3, 1e6, 3 },
        { "nothing", { { 0, NAN } }, 1, 0, 0, 0, 0 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct wm_counter_stats stats = { 0 };
        for (size_t k = 0; k < rows[i].count; k++) {
            struct wm_reading reading = reading_at(&rows[i].points[k]);
            wm_counter_add(&stats, &reading);
        }
        assert_int_equal(stats.count, rows[i].usable);
        assert_near(rows[i].name, "total", stats.total, rows[i].total);
        assert_near(rows[i].name, "first", stats.first, rows[i].first);
        assert_near(rows[i].name, "last", stats.last, rows[i].last);
    }
}

static void test_window_max(void **state)
{
    static const struct {
        const char *name;
        struct {
            double value, seconds;
        } windows[MAX_READINGS];
        size_t count;
        double max;
    } rows[] = {
        { "no window", { { 0, 0 } }, 0, NAN },
        { "the highest", { { 10, 1 }, { 30, 1 }, { 20, 1 } }, 3, 30 },
        { "negative ones", { { -10, 1 }, { -30, 1 } }, 2, -10 },
        { "a short one is joined with the next", { { 1000, 0.1 }, { 10, 0.9 } }, 2, 109 },
        { "short ones are joined until they suffice",
          { { 100, 0.2 }, { 200, 0.2 }, { 300, 0.2 }, { 0, 1 } },
          4,
          200 },
        { "a short last one is joined with the one before",
          { { 10, 0.9 }, { 1000, 0.1 } },
          2,
          109 },
        { "which may be the highest all the same",
          { { 150, 1 }, { 100, 1 }, { 1000, 0.1 } },
          3,
          (100 + 100) / 1.1 },
        { "nothing but a short one", { { 70, 0.001 } }, 1, 70 },
        { "what is no number is left out", { { 10, 1 }, { NAN, 1 }, { 20, 1 } }, 3, 20 },
        { "no time", { { 1e9, 0 }, { 20, 1 } }, 2, 20 },
        { "all unknown", { { NAN, 1 }, { INFINITY, 1 } }, 2, NAN },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct wm_window_max windows = { 0 };
        for (size_t k = 0; k < rows[i].count; k++)
            wm_window_max_add(&windows, rows[i].windows[k].value,
                              rows[i].windows[k].seconds, 0.5);
        const struct wm_known max = wm_window_max_value(&windows);
        assert_int_equal(max.known, !isnan(rows[i].max));
        if (max.known)
            assert_near(rows[i].name, "maximum", max.number, rows[i].max);
    }
}

/* How long a window has to be shows in the course of time. */
static void test_window_that_grows(void **state)
{
    static const struct {
        double value, shortest, max;
    } rows[] = {
        { 700, 0.1, 700 },  { 0, 0.1, 700 },       { 0, INFINITY, 700 },
        { 100, 0.14, 700 }, { 120, 2, 920 / 5.0 }, { 90, 2.1, 920 / 5.0 },
    };
    struct wm_window_max windows = { 0 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        wm_window_max_add(&windows, rows[i].value, 1, rows[i].shortest);
        const struct wm_known max = wm_window_max_value(&windows);
        assert_true(max.known);
        assert_near("maximum", "after one more", max.number, rows[i].max);
    }
}

static void test_seconds(void **state)
{
    (void)state;
    assert_near("forward", "time", wm_stats_seconds(1, 1500000001), 1.5);
    assert_near("none", "time", wm_stats_seconds(7, 7), 0);
    assert_near("back", "time", wm_stats_seconds(8, 7), 0);
    assert_near("extremes", "time", wm_stats_seconds(INT64_MIN, INT64_MAX) / 1e10,
                1.8446744073709552);
    assert_near("extremes back", "time", wm_stats_seconds(INT64_MAX, INT64_MIN), 0);
}

UNIT(stats)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gauge),      cmocka_unit_test(test_counter),
        cmocka_unit_test(test_window_max), cmocka_unit_test(test_window_that_grows),
        cmocka_unit_test(test_seconds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
