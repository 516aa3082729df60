/* SPDX-License-Identifier: Apache-2.0 */
/* test_series.c - arithmetic on series in segments: ranges with interpolated edges,
 * pauses, values between two points, rates. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/experiment/analyze_experiment.h"
#include "test.h"

#define S INT64_C(1000000000)

/* Points as seconds and values; a time of -1 ends a segment, -2 all of them. */
struct point {
    double s, value;
};

static struct wm_series *make(enum wm_series_kind kind, const char *unit,
                              const struct point *points)
{
    struct wm_series *series = NULL;

    assert_int_equal(wm_series_new("m", kind, unit, &series, NULL), WM_OK);
    for (; points->s > -2; points++) {
        if (points->s < 0)
            wm_series_break(series);
        else
            assert_int_equal(
                wm_series_add(series, (int64_t)(points->s * 1e9), points->value, NULL),
                WM_OK);
    }
    return series;
}

#define BREAK                                                                              \
    {                                                                                      \
        -1, 0                                                                              \
    }
#define END                                                                                \
    {                                                                                      \
        -2, 0                                                                              \
    }

static const struct point ramp[] = { { 10, 0 }, { 20, 100 }, END };
static const struct point two_parts[] = { { 10, 5 }, { 12, 5 }, BREAK,
                                          { 20, 7 }, { 22, 7 }, END };
static const struct point lone[] = { { 10, 5 }, BREAK, { 20, 9 }, END };
static const struct point empty[] = { END };
static const struct point joules[] = { { 10, 0 },  { 12, 20 },  { 14, 20 }, BREAK,
                                       { 30, 20 }, { 34, 220 }, END };
static const struct point means[] = { { 10, 0 }, { 12, 10 }, { 14, 30 }, END };

static void test_figures(void **state)
{
    static const struct {
        const char *what;
        enum wm_series_kind series_kind;
        const struct point *points;
        enum wm_figure_kind kind;
        double from_s, to_s; /* 0: open */
        double value;        /* NAN: there is none */
        double seconds;
    } cases[] = {
        { "area of a ramp", WM_SERIES_GAUGE, ramp, WM_FIGURE_TOTAL, 0, 0, 500, 10 },
        { "its mean", WM_SERIES_GAUGE, ramp, WM_FIGURE_AVERAGE, 0, 0, 50, 10 },
        { "its end is its highest", WM_SERIES_GAUGE, ramp, WM_FIGURE_MAX, 0, 0, 100, 10 },
        { "edges between two points", WM_SERIES_GAUGE, ramp, WM_FIGURE_TOTAL, 12, 16, 160,
          4 },
        { "the highest at an edge", WM_SERIES_GAUGE, ramp, WM_FIGURE_MAX, 12, 16, 60, 4 },
        { "a range wider than all", WM_SERIES_GAUGE, ramp, WM_FIGURE_TOTAL, 1, 99, 500,
          10 },
        { "begins before, ends within", WM_SERIES_GAUGE, ramp, WM_FIGURE_TOTAL, 1, 15, 125,
          5 },
        { "behind the end", WM_SERIES_GAUGE, ramp, WM_FIGURE_TOTAL, 30, 40, NAN, 0 },
        { "before the start", WM_SERIES_GAUGE, ramp, WM_FIGURE_AVERAGE, 1, 2, NAN, 0 },
        { "a range of no length", WM_SERIES_GAUGE, ramp, WM_FIGURE_TOTAL, 15, 15, NAN, 0 },
        { "pauses are no time", WM_SERIES_GAUGE, two_parts, WM_FIGURE_TOTAL, 0, 0, 24, 4 },
        { "nor part of a mean", WM_SERIES_GAUGE, two_parts, WM_FIGURE_AVERAGE, 0, 0, 6, 4 },
        { "a range within a pause", WM_SERIES_GAUGE, two_parts, WM_FIGURE_TOTAL, 13, 19,
          NAN, 0 },
        { "from one into another", WM_SERIES_GAUGE, two_parts, WM_FIGURE_TOTAL, 11, 21, 12,
          2 },
        { "lone points have no area", WM_SERIES_GAUGE, lone, WM_FIGURE_TOTAL, 0, 0, NAN,
          0 },
        { "but a mean", WM_SERIES_GAUGE, lone, WM_FIGURE_AVERAGE, 0, 0, 7, 0 },
        { "and a highest", WM_SERIES_GAUGE, lone, WM_FIGURE_MAX, 0, 0, 9, 0 },
        { "one of them", WM_SERIES_GAUGE, lone, WM_FIGURE_MAX, 0, 15, 5, 0 },
        { "nothing", WM_SERIES_GAUGE, empty, WM_FIGURE_MAX, 0, 0, NAN, 0 },
        { "no mean of nothing", WM_SERIES_GAUGE, empty, WM_FIGURE_AVERAGE, 0, 0, NAN, 0 },
        { "a counter grows", WM_SERIES_TOTAL, joules, WM_FIGURE_TOTAL, 0, 0, 220, 8 },
        { "by its mean power", WM_SERIES_TOTAL, joules, WM_FIGURE_AVERAGE, 0, 0, 27.5, 8 },
        { "and its highest", WM_SERIES_TOTAL, joules, WM_FIGURE_MAX, 0, 0, 50, 8 },
        { "in a part", WM_SERIES_TOTAL, joules, WM_FIGURE_TOTAL, 11, 31, 60, 4 },
        { "of which it stood still", WM_SERIES_TOTAL, joules, WM_FIGURE_TOTAL, 12, 14, 0,
          2 },
        { "not over the pause", WM_SERIES_TOTAL, joules, WM_FIGURE_TOTAL, 14, 30, NAN, 0 },
        { "means as steps", WM_SERIES_MEANS, means, WM_FIGURE_TOTAL, 0, 0, 80, 4 },
        { "and a part of them", WM_SERIES_MEANS, means, WM_FIGURE_TOTAL, 11, 13, 40, 2 },
        { "on average", WM_SERIES_MEANS, means, WM_FIGURE_AVERAGE, 11, 14, 70.0 / 3, 3 },
        { "at most, early", WM_SERIES_MEANS, means, WM_FIGURE_MAX, 10.5, 11.5, 10, 1 },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_series *series = make(cases[i].series_kind, "J", cases[i].points);
        const struct wm_range range = {
            .from_ns = (int64_t)(cases[i].from_s * 1e9),
            .to_ns = (int64_t)(cases[i].to_s * 1e9),
        };
        struct wm_figure figure = { .value = -1 };
        struct wm_error err = { 0 };

        print_message("  %s\n", cases[i].what);
        int status = wm_series_figure(series, cases[i].kind, &range, &figure, &err);
        if (isnan(cases[i].value)) {
            assert_int_equal(status, WM_ENODEV);
            assert_non_null(strstr(err.text, "no value"));
            assert_float_equal(figure.value, -1, 0);
        } else {
            assert_int_equal(status, WM_OK);
            assert_float_equal(figure.value, cases[i].value, 1e-9);
            assert_float_equal(figure.seconds, cases[i].seconds, 1e-9);
        }
        wm_series_free(series);
    }
}

static void test_units(void **state)
{
    static const struct {
        enum wm_series_kind series_kind;
        const char *unit;
        enum wm_figure_kind kind;
        const char *expected;
    } cases[] = {
        { WM_SERIES_TOTAL, "J", WM_FIGURE_TOTAL, "J" },
        { WM_SERIES_TOTAL, "J", WM_FIGURE_AVERAGE, "W" },
        { WM_SERIES_TOTAL, "J", WM_FIGURE_MAX, "W" },
        { WM_SERIES_TOTAL, "s", WM_FIGURE_AVERAGE, "s/s" },
        { WM_SERIES_TOTAL, "B", WM_FIGURE_AVERAGE, "B/s" },
        { WM_SERIES_GAUGE, "W", WM_FIGURE_TOTAL, "J" },
        { WM_SERIES_GAUGE, "W", WM_FIGURE_AVERAGE, "W" },
        { WM_SERIES_GAUGE, "B", WM_FIGURE_TOTAL, "B s" },
        { WM_SERIES_GAUGE, "", WM_FIGURE_TOTAL, "s" },
        { WM_SERIES_GAUGE, "", WM_FIGURE_MAX, "" },
        { WM_SERIES_MEANS, "W", WM_FIGURE_TOTAL, "J" },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_series *series = make(cases[i].series_kind, cases[i].unit, ramp);
        struct wm_figure figure;
        assert_int_equal(wm_series_figure(series, cases[i].kind, NULL, &figure, NULL),
                         WM_OK);
        assert_string_equal(figure.unit, cases[i].expected);
        wm_series_free(series);
    }
}

static void test_short(void **state)
{
    struct wm_series *series = make(WM_SERIES_TOTAL, "J", joules);
    const struct wm_range range = { .to_ns = 12 * S };
    struct wm_figure figure;
    (void)state;

    series->period_s = 1;
    assert_int_equal(wm_series_figure(series, WM_FIGURE_TOTAL, NULL, &figure, NULL), WM_OK);
    assert_false(figure.is_short || figure.has_uncertainty);
    assert_int_equal(wm_series_segment(series, 0).first_known, 0);
    assert_int_equal(wm_series_figure(series, WM_FIGURE_TOTAL, &range, &figure, NULL),
                     WM_OK);
    assert_true(figure.is_short);
    wm_series_free(series);
}

static void test_at(void **state)
{
    static const struct {
        enum wm_series_kind kind;
        const struct point *points;
        double s;
        double value; /* NAN: unknown */
    } cases[] = {
        { WM_SERIES_GAUGE, ramp, 10, 0 },       { WM_SERIES_GAUGE, ramp, 15, 50 },
        { WM_SERIES_GAUGE, ramp, 20, 100 },     { WM_SERIES_GAUGE, ramp, 9.999, NAN },
        { WM_SERIES_GAUGE, ramp, 20.001, NAN }, { WM_SERIES_GAUGE, two_parts, 15, NAN },
        { WM_SERIES_GAUGE, two_parts, 21, 7 },  { WM_SERIES_GAUGE, lone, 10, 5 },
        { WM_SERIES_GAUGE, lone, 11, NAN },     { WM_SERIES_GAUGE, empty, 11, NAN },
        { WM_SERIES_MEANS, means, 10, NAN },    { WM_SERIES_MEANS, means, 10.5, 10 },
        { WM_SERIES_MEANS, means, 12, 10 },     { WM_SERIES_MEANS, means, 12.5, 30 },
        { WM_SERIES_TOTAL, joules, 11, 10 },    { WM_SERIES_TOTAL, joules, 29, NAN },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_series *series = make(cases[i].kind, "", cases[i].points);
        double value = 0;
        bool known = wm_series_at(series, (int64_t)(cases[i].s * 1e9), &value);
        print_message("  %zu\n", i);
        assert_int_equal(known, !isnan(cases[i].value));
        if (known)
            assert_float_equal(value, cases[i].value, 1e-9);
        wm_series_free(series);
    }
}

static void test_union(void **state)
{
    struct wm_series *a = make(WM_SERIES_GAUGE, "", ramp);
    struct wm_series *b = make(WM_SERIES_GAUGE, "", two_parts);
    const struct wm_series *const both[] = { a, b };
    const struct wm_range range = { .from_ns = 11 * S, .to_ns = 20 * S };
    int64_t *times = NULL;
    size_t count = 0;
    (void)state;

    assert_int_equal(wm_series_union(both, 2, NULL, &times, &count, NULL), WM_OK);
    assert_int_equal(count, 4); /* 10, 12, 20, 22 */
    assert_int_equal(times[0], 10 * S);
    assert_int_equal(times[3], 22 * S);
    free(times);
    assert_int_equal(wm_series_union(both, 2, &range, &times, &count, NULL), WM_OK);
    assert_int_equal(count, 2);
    assert_int_equal(times[0], 12 * S);
    assert_int_equal(times[1], 20 * S);
    free(times);
    wm_series_free(a);
    wm_series_free(b);
}

/* The windows add up to the total, whatever their length. */
static void test_rate(void **state)
{
    static const struct point steps[] = {
        { 0, 0 }, { 1, 10 }, { 2, 10 },   { 3, 40 }, { 4, 40 },  { 4.5, 50 },
        BREAK,    { 9, 50 }, { 9.5, 60 }, BREAK,     { 20, 60 }, END,
    };
    static const double shortest[] = { 0, 0.7, 1, 2, 3, 100 };
    struct wm_series *total = make(WM_SERIES_TOTAL, "J", steps), *rate = NULL;
    struct wm_figure figure;
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(shortest); i++) {
        assert_int_equal(wm_series_rate(total, shortest[i], "r", "W", &rate, NULL), WM_OK);
        assert_int_equal(wm_series_segment_count(rate), 3);
        assert_int_equal(wm_series_figure(rate, WM_FIGURE_TOTAL, NULL, &figure, NULL),
                         WM_OK);
        assert_float_equal(figure.value, 60, 1e-9);
        assert_float_equal(figure.seconds, 5, 1e-9);
        struct wm_series_segment first = wm_series_segment(rate, 0);
        assert_int_equal(first.first_known, 1);
        assert_float_equal(first.values[0], 0, 0);
        for (size_t k = 1; k < first.count && shortest[i] < 4; k++)
            assert_true((double)(first.unix_ns[k] - first.unix_ns[k - 1]) / 1e9 >=
                        shortest[i]);
        wm_series_free(rate);
    }
    wm_series_free(total);
}

static void test_times_only_grow(void **state)
{
    static const struct point back[] = { { 10, 1 }, { 9, 2 }, { 11, 3 },
                                         BREAK,     { 5, 4 }, END };
    struct wm_series *series = make(WM_SERIES_GAUGE, "", back);
    (void)state;

    assert_int_equal(wm_series_segment_count(series), 2);
    assert_int_equal(wm_series_segment(series, 0).count, 2);
    assert_int_equal(wm_series_segment(series, 1).count, 1);
    wm_series_free(series);
}

static void test_out_of_memory(void **state)
{
    (void)state;

    for (long nth = 0; nth < 60; nth++) {
        struct wm_series *series = NULL, *rate = NULL;
        const struct wm_series *one[1];
        int64_t *times = NULL;
        size_t count = 0;
        int status;

        test_fail_allocation(nth);
        status = wm_series_new("m", WM_SERIES_TOTAL, "J", &series, NULL);
        for (int i = 0; i < 300 && status == WM_OK; i++)
            status = wm_series_add(series, i * S, i, NULL);
        if (status == WM_OK)
            status = wm_series_rate(series, 1, "r", "W", &rate, NULL);
        one[0] = series;
        if (status == WM_OK)
            status = wm_series_union(one, 1, NULL, &times, &count, NULL);
        test_fail_allocation(-1);
        free(times);
        wm_series_free(series);
        wm_series_free(rate);
        if (status == WM_OK)
            return;
        assert_int_equal(status, WM_ENOMEM);
    }
    fail_msg("it never succeeded");
}

UNIT(series)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figures),         cmocka_unit_test(test_units),
        cmocka_unit_test(test_short),           cmocka_unit_test(test_at),
        cmocka_unit_test(test_union),           cmocka_unit_test(test_rate),
        cmocka_unit_test(test_times_only_grow), cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
