/* SPDX-License-Identifier: Apache-2.0 */
/* test_axis.c - what the axes of every chart show. */
#include <float.h>
#include <math.h>

#include "test.h"
#include "view/chart/view_mark.h"
#include "wattmeter/axis.h"

enum { MARKS = 8 };

static void test_of_time(void **state)
{
    (void)state;
    struct wm_axis axis = wm_axis_of_time(3.5, 23.25);
    assert_true(axis.low == 3.5 && axis.high == 24.25);
    axis = wm_axis_of_time(0, 0);
    assert_true(axis.low == 0 && axis.high == 1);
}

static void test_of_values(void **state)
{
    static const struct {
        double least, greatest, low, high;
    } cases[] = {
        { 50, 250, 29.9, 270.1 },
        { 100, 100, 99.9, 100.1 },
        { 0, 0, -0.1, 0.1 },
        { -5, 5, -6.1, 6.1 },
    };
    (void)state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wm_axis axis = wm_axis_of_values(cases[i].least, cases[i].greatest);
        assert_true(fabs(axis.low - cases[i].low) < 1e-12);
        assert_true(fabs(axis.high - cases[i].high) < 1e-12);
    }
}

/* Whatever it is asked for, an axis can be drawn. */
static void test_odd_values(void **state)
{
    static const double values[] = { 0,   -0.0,    1e-300,   1e17,     -1e17,
                                     NAN, DBL_MAX, -DBL_MAX, INFINITY, -INFINITY };
    const size_t count = sizeof(values) / sizeof(values[0]);
    double marks[MARKS + 1];
    (void)state;

    for (size_t i = 0; i < 2 * count * count; i++) {
        double a = values[i / 2 % count], b = values[i / 2 / count];
        struct wm_axis axis = i % 2 == 0 ? wm_axis_of_time(a, b) : wm_axis_of_values(a, b);
        assert_true(isfinite(axis.low) && isfinite(axis.high) && axis.low < axis.high);
        marks[MARKS] = 12345;
        size_t made = wm_axis_marks(&axis, MARKS, marks);
        assert_true(made <= MARKS && marks[MARKS] == 12345);
        for (size_t m = 0; m < made; m++) {
            assert_true(marks[m] >= axis.low && marks[m] <= axis.high);
            assert_true(m == 0 || marks[m] > marks[m - 1]);
        }
    }
}

static void test_marks(void **state)
{
    static const struct {
        struct wm_axis axis;
        size_t most, count;
        double marks[MARKS];
    } cases[] = {
        { { 0, 10 }, 5, 3, { 0, 5, 10 } },
        { { 0, 10 }, 6, 6, { 0, 2, 4, 6, 8, 10 } },
        { { 0, 20 }, 8, 5, { 0, 5, 10, 15, 20 } },
        { { 29.9, 270.1 }, 6, 5, { 50, 100, 150, 200, 250 } },
        { { 99.9, 100.1 }, 4, 3, { 99.9, 100, 100.1 } },
        { { -0.1, 0.1 }, 3, 3, { -0.1, 0, 0.1 } },
        { { 0.2, 0.9 }, 2, 1, { 0.5 } },
        { { 0.2, 0.9 }, 1, 0, { 0 } },
        { { 1e17, 1e17 + 64 }, 8, 0, { 0 } },
        { { 0, 10 }, 0, 0, { 0 } },
    };
    double marks[MARKS];
    (void)state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t count = wm_axis_marks(&cases[i].axis, cases[i].most, marks);
        print_message("  %g .. %g, %zu\n", cases[i].axis.low, cases[i].axis.high,
                      cases[i].most);
        assert_int_equal(count, cases[i].count);
        for (size_t m = 0; m < count; m++)
            assert_true(fabs(marks[m] - cases[i].marks[m]) < 1e-12);
    }
}

UNIT(axis)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_of_time),
        cmocka_unit_test(test_of_values),
        cmocka_unit_test(test_odd_values),
        cmocka_unit_test(test_marks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
