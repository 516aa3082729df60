/* SPDX-License-Identifier: Apache-2.0 */
/* test_chart.c - series as columns, and the marks of their axes. */
#include <math.h>
#include <string.h>

#include "test.h"
#include "view/chart/view_column.h"
#include "view/chart/view_feed.h"
#include "view/chart/view_fold.h"
#include "view/chart/view_mark.h"

#define S INT64_C(1000000000)

static struct wm_chart_line new_line(size_t room, int64_t step_ns)
{
    struct wm_chart_line line;

    assert_int_equal(wm_chart_line_init(&line, room, step_ns, NULL), WM_OK);
    return line;
}

static void add(struct wm_chart_line *line, int64_t when_ns, double value)
{
    wm_chart_line_add(line, when_ns, WM_READING_OK, value);
}

/* Ten samples a second of 50, but for one. */
static void add_with_spike(struct wm_chart_line *line, int count, int spike)
{
    for (int i = 0; i < count; i++)
        add(line, 100 * S + i * (S / 10), i == spike ? 400 : 50);
}

static size_t count_high(const struct wm_chart_column *columns, size_t count, double value)
{
    size_t found = 0;

    for (size_t i = 0; i < count; i++)
        found += columns[i].is_sampled && columns[i].high == value;
    return found;
}

/* One sample of 36,000 is seen in each width, once and at its place. */
static void test_spike(void **state)
{
    static const int places[] = { 0, 1, 17777, 35998, 35999 };
    struct wm_chart_column columns[997];
    (void)state;

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        struct wm_chart_line line = new_line(4096, 1000000);
        add_with_spike(&line, 36000, places[i]);
        for (size_t width = 1; width <= 997; width += 83) {
            wm_chart_line_show(&line, 100 * S, 3700 * S, columns, width);
            assert_int_equal(count_high(columns, width, 400), 1);
            size_t at = (size_t)places[i] * width / 36000;
            bool is_near =
                columns[at].high == 400 || (at > 0 && columns[at - 1].high == 400);
            assert_true(is_near);
            assert_true(columns[at].low == 50 || columns[at].low == 400);
        }
        wm_chart_line_release(&line);
    }
}

/* However long the series becomes, and wherever it jumps to. */
static void test_grows(void **state)
{
    struct wm_chart_line line = new_line(8, 10);
    double least, greatest;
    (void)state;

    for (int64_t when = 0; when < 1000; when += 7) {
        add(&line, when, (double)when);
        assert_true(line.end - line.begin <= 8);
        assert_true(wm_chart_line_range(&line, 0, when, &least, &greatest));
        assert_true(least == 0 && greatest == (double)when);
    }
    assert_int_equal(line.step_ns, 160);
    add(&line, INT64_MAX, 5000);
    assert_true(wm_chart_line_range(&line, 0, INT64_MAX, &least, &greatest));
    assert_true(least == 0 && greatest == 5000);
    wm_chart_line_release(&line);

    line = new_line(2, 1);
    add(&line, INT64_MIN, 1);
    add(&line, INT64_MAX, 2);
    add(&line, 0, 3); /* earlier than the last */
    assert_true(wm_chart_line_range(&line, INT64_MIN, INT64_MAX, &least, &greatest));
    assert_true(least == 1 && greatest == 3);
    wm_chart_line_release(&line);
}

/* A line is drawn from column to column unless a sample between them had no value. */
static void test_gaps(void **state)
{
    struct wm_chart_line line = new_line(64, S);
    struct wm_chart_column columns[10];
    (void)state;

    add(&line, 0, 1);
    wm_chart_line_add(&line, 1 * S, WM_READING_DENIED, 0);
    wm_chart_line_add(&line, 2 * S, WM_READING_STALE, 77);
    add(&line, 3 * S, 2);
    add(&line, 5 * S, 3); /* none at 4 s, and nothing is known to be missing */
    add(&line, 6 * S, NAN);
    add(&line, 7 * S, 4);
    add(&line, 8 * S, 5);
    wm_chart_line_show(&line, 0, 10 * S, columns, 10);
    assert_true(columns[0].is_sampled && !columns[0].is_joined);
    assert_int_equal(columns[1].state, WM_READING_DENIED);
    assert_int_equal(columns[2].state, WM_READING_STALE);
    assert_true(columns[3].first == 2 && !columns[3].is_joined);
    assert_false(columns[4].is_sampled);
    assert_true(columns[5].is_joined);
    assert_int_equal(columns[6].state, WM_READING_FAILED);
    assert_false(columns[7].is_joined);
    assert_true(columns[8].is_joined);
    assert_false(columns[9].is_sampled);

    wm_chart_line_show(&line, 0, 10 * S, columns, 5);
    assert_true(columns[0].state == WM_READING_OK && columns[0].low == 1);
    assert_true(columns[1].state == WM_READING_OK && !columns[1].is_joined);
    assert_true(columns[2].is_joined && columns[2].low == 3);
    assert_true(!columns[3].is_joined && columns[3].first == 4);
    assert_true(columns[4].is_joined && columns[4].last == 5);

    /* Nothing leads to the first column of a part. */
    wm_chart_line_show(&line, 5 * S, 10 * S, columns, 5);
    assert_true(columns[0].low == 3 && !columns[0].is_joined);
    wm_chart_line_release(&line);
}

static void test_no_values(void **state)
{
    struct wm_chart_line line = new_line(64, S);
    struct wm_chart_column columns[4];
    double least, greatest;
    (void)state;

    wm_chart_line_show(&line, 0, S, columns, 4);
    assert_false(columns[0].is_sampled || columns[3].is_sampled);
    assert_false(wm_chart_line_range(&line, 0, S, &least, &greatest));
    wm_chart_line_add(&line, 0, WM_READING_UNSUPPORTED, 0);
    assert_false(wm_chart_line_range(&line, 0, S, &least, &greatest));
    wm_chart_line_release(&line);
    wm_chart_line_release(&line);
}

/* A window of 20 s over a series without end keeps its columns' length. */
static void test_window(void **state)
{
    struct wm_chart_line line = new_line(256, S / 10);
    double least, greatest;
    (void)state;

    for (int i = 0; i < 5000; i++) {
        int64_t now = i * (S / 10);
        add(&line, now, i);
        wm_chart_line_forget(&line, now - 20 * S);
        assert_true(wm_chart_line_range(&line, now - 20 * S, now, &least, &greatest));
        assert_true(greatest == i && least == (i < 200 ? 0 : i - 200));
    }
    assert_int_equal(line.step_ns, S / 10);
    wm_chart_line_forget(&line, INT64_MAX);
    assert_false(wm_chart_line_range(&line, 0, INT64_MAX, &least, &greatest));
    add(&line, 600 * S, 3);
    assert_true(wm_chart_line_range(&line, 0, INT64_MAX, &least, &greatest));
    assert_true(least == 3 && greatest == 3);
    wm_chart_line_release(&line);
}

static void test_marks(void **state)
{
    static const struct {
        struct wm_axis axis;
        const char *unit;
        size_t most;
        const char *symbol, *labels; /* with a blank after each */
        double last;
    } cases[] = {
        { { 0, 21 }, "s", 6, "s", "0 5 10 15 20 ", 20 },
        { { 0, 3601 }, "s", 5, "min", "0 20 40 60 ", 3600 },
        { { 0, 86401 }, "s", 6, "h", "0 5 10 15 20 ", 72000 },
        { { 0, 1e6 }, "s", 4, "d", "0 5 10 ", 864000 },
        { { 29.9, 270.1 }, "W", 6, "W", "50 100 150 200 250 ", 250 },
        { { 900, 2100 }, "W", 6, "kW", "1.0 1.2 1.4 1.6 1.8 2.0 ", 2000 },
        { { -0.1, 1.1 }, "ratio", 4, "%", "0 50 100 ", 1 },
        { { 0, 80e9 }, "B", 5, "GB", "0 20 40 60 80 ", 80e9 },
        { { 0, 1.98e9 }, "Hz", 4, "GHz", "0.0 0.5 1.0 1.5 ", 1.5e9 },
        { { 30.5, 71 }, "celsius", 5, "°C", "40 50 60 70 ", 70 },
        { { -0.1, 2.1 }, "count", 3, "", "0 1 2 ", 2 },
        { { 0.9, 1.1 }, "count", 9, "", "1 ", 1 },
        { { -0.2, 1.2 }, "count", 9, "", "0 1 ", 1 },
        { { 43.9, 45.1 }, "celsius", 9, "°C", "44 45 ", 45 },
        { { 45.3, 45.5 }, "celsius", 3, "°C", "45.3 45.4 45.5 ", 45.5 },
        { { 0.15, 0.35 }, "count", 3, "", "0.2 0.3 ", 0.3 },
        { { -0.2, 1.2 }, "", 3, "", "0.0 0.5 1.0 ", 1 },
        { { 110, 690 }, "W", 2, "W", "500 ", 500 },
        { { 0.21, 0.29 }, "W", 2, "W", "0.25 ", 0.25 },
        { { 0, 10 }, "parrots", 3, "parrots", "0 5 10 ", 10 },
    };
    (void)state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wm_chart_marks marks;
        char labels[400] = "";
        wm_chart_marks_of(&cases[i].axis, cases[i].unit, cases[i].most, &marks);
        for (size_t m = 0; m < marks.count; m++) {
            strncat(labels, marks.marks[m].label, 40);
            strncat(labels, " ", 2);
        }
        assert_string_equal(labels, cases[i].labels);
        assert_string_equal(marks.symbol, cases[i].symbol);
        double last = marks.marks[marks.count - 1].at;
        assert_true(fabs(last - cases[i].last) <= 1e-12 * cases[i].last);
    }
}

/* The margin is a tenth of what people read. */
static void test_axis(void **state)
{
    static const struct {
        double least, greatest;
        const char *unit;
        double low, high;
    } cases[] = {
        { 50, 250, "W", 29.9, 270.1 },     { 1000, 2000, "W", 899.9, 2100.1 },
        { 61, 61, "celsius", 60.9, 61.1 }, { 16e9, 16e9, "B", 15.9e9, 16.1e9 },
        { 0, 1, "ratio", -0.101, 1.101 },  { 1e9, 2e9, "Hz", 0.8e9, 2.2e9 },
        { 0.5, 1, "", 0.4, 1.1 },          { 5, 5, "", 4.5, 5.5 },
        { 0, 0, "", -0.1, 0.1 },
    };
    (void)state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wm_axis axis =
            wm_chart_axis(cases[i].least, cases[i].greatest, cases[i].unit);
        assert_true(fabs(axis.low - cases[i].low) <= 1e-9 * fabs(cases[i].high));
        assert_true(fabs(axis.high - cases[i].high) <= 1e-9 * fabs(cases[i].high));
    }
}

/* A counter that was set back goes on from where it was. */
static void test_total(void **state)
{
    const struct wm_channel channel = { .unit = "J", .kind = WM_COUNTER };
    const double readings[] = { 100, 103, 110, 2, 5 }, totals[] = { 0, 3, 10, 10, 13 };
    struct wm_chart_feed feed;
    (void)state;

    wm_chart_feed_init_total(&feed, &channel);
    assert_string_equal(feed.unit, "J");
    for (size_t i = 0; i < sizeof(readings) / sizeof(readings[0]); i++) {
        const struct wm_reading reading = { .state = WM_READING_OK, .value = readings[i] };
        enum wm_reading_state reading_state;
        double value;
        assert_true(wm_chart_feed_take(&feed, &reading, 0, &reading_state, &value));
        assert_true(reading_state == WM_READING_OK && value == totals[i]);
    }
}

/* Sixteen devices can be told apart. */
static void test_colours(void **state)
{
    (void)state;

    for (size_t i = 0; i < 16; i++) {
        assert_true(wm_chart_colour(i) <= 0xffffff);
        for (size_t k = 0; k < i; k++)
            assert_true(wm_chart_colour(i) != wm_chart_colour(k));
    }
    assert_true(wm_chart_colour(0) == wm_chart_colour(16));
}

/* Lines as one: between its samples a line counts with what lies there, and past them with
 * its last value, until it fails. No column is of values alone that were not sampled. */
static void test_fold(void **state)
{
    enum { COUNT = 8 };
    struct wm_chart_line late = new_line(64, S), rising = new_line(64, S);
    struct wm_chart_fold folds[COUNT] = { 0 };
    struct wm_chart_column columns[COUNT];

    (void)state;
    for (int i = 2; i < COUNT - 1; i++)
        add(&late, i * S, 10);
    add(&rising, S, 20);
    add(&rising, 3 * S, 40);
    wm_chart_line_add(&rising, 5 * S, WM_READING_FAILED, 0);
    wm_chart_line_show(&late, 0, COUNT * S, columns, COUNT);
    wm_chart_fold_add(folds, columns, COUNT);
    wm_chart_line_show(&rising, 0, COUNT * S, columns, COUNT);
    wm_chart_fold_add(folds, columns, COUNT);
    wm_chart_fold_trim(folds, COUNT);
    static const struct {
        size_t count;
        double low, high;
    } expected[COUNT] = { { 0, 0, 0 },   { 2, 10, 20 }, { 2, 10, 30 }, { 2, 10, 40 },
                          { 2, 10, 40 }, { 1, 10, 10 }, { 1, 10, 10 }, { 0, 0, 0 } };
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(folds[i].count == expected[i].count);
        assert_true(folds[i].low == expected[i].low && folds[i].high == expected[i].high);
    }
    wm_chart_fold_columns(folds, wm_chart_fold_mean, columns, COUNT);
    assert_true(columns[1].low == 15 && columns[2].high == 20 && columns[5].last == 10);
    assert_true(!columns[1].is_joined && columns[2].is_joined && !columns[7].is_sampled);
    wm_chart_line_release(&late);
    wm_chart_line_release(&rising);
}

UNIT(chart)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spike),  cmocka_unit_test(test_grows),
        cmocka_unit_test(test_gaps),   cmocka_unit_test(test_no_values),
        cmocka_unit_test(test_window), cmocka_unit_test(test_marks),
        cmocka_unit_test(test_axis),   cmocka_unit_test(test_colours),
        cmocka_unit_test(test_total),  cmocka_unit_test(test_fold),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
