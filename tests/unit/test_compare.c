/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_compare.c - comparisons: Student and Welch by hand, which blocks belong together,
 * units, what counts as grown, gpu_tracker's documents byte by byte, and bad input.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze_welch.h"
#include "analyze/compare/analyze_compare.h"
#include "record/record.h"
#include "test.h"
#include "wattmeter/comparison.h"

static void near(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance * fmax(fabs(expected), 1)))
        fail_msg("%.12g is not %.12g", value, expected);
}

/* From printed tables, but the last two: 1.96 and what the series in 1 / df gives. */
static void test_student(void **state)
{
    static const struct {
        double df, t;
    } rows[] = {
        { 1, 12.7062047362 },    { 2, 4.30265272991 },   { 3, 3.18244630528 },
        { 4, 2.77644510520 },    { 5, 2.57058183564 },   { 10, 2.22813885196 },
        { 30, 2.04227245630 },   { 120, 1.97993040505 }, { 1000, 1.96233908083 },
        { 1e15, 1.95996398454 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        near(wm_student_95(rows[i].df), rows[i].t, 1e-10);
    near(wm_student_95(1e4 - 1e-6), wm_student_95(1e4), 1e-7); /* where the series begins */
    for (double df = 1; df < 2e4; df *= 1.1)
        assert_true(wm_student_95(df * 1.1) < wm_student_95(df));
}

#define OF(count_, std_, scale_)                                                           \
    {                                                                                      \
        count_, { true, std_ }, scale_                                                     \
    }

static void test_welch(void **state)
{
    static const struct {
        const char *name;
        struct wm_welch_sample one, other;
        double noise;
        const char *why;
    } rows[] = {
        /* Variances of the means 0.2 and 0.2, 8 degrees of freedom, t 2.306004135. */
        { "alike", OF(5, 1, 1), OF(5, 1, 1), 1.4584450722, NULL },
        /* 1 and 0: 1 degree of freedom. */
        { "one without scatter", OF(2, M_SQRT2, 1), OF(10, 0, 1), 12.7062047362, NULL },
        /* 0.16 and 0.04: 0.2^2 / (0.16^2 / 24 + 0.04^2 / 8) = 31.578947, t 2.0379... */
        { "unlike", OF(25, 2, 1), OF(9, 0.6, 1), 0.911420873, NULL },
        /* The same with the sums of 10: ten times as much. */
        { "scaled", OF(25, 2, 10), OF(9, 0.6, 10), 9.11420873, NULL },
        { "no scatter at all", OF(2, 0, 1), OF(3, 0, 1), 0, NULL },
        { "tiny", OF(5, 1e-200, 1), OF(5, 1e-200, 1), 0, NULL },
        { "one value", OF(1, 0, 1), OF(5, 1, 1), 0, "too few" },
        { "none", OF(5, 1, 1), OF(0, 0, 1), 0, "too few" },
        { "hardly any left", OF(1.9, 1, 1), OF(5, 1, 1), 0, "too few" },
        { "below none", OF(5, 1, 1), OF(-3, 1, 1), 0, "too few" },
        { "no count", OF(NAN, 1, 1), OF(5, 1, 1), 0, "too few" },
        { "no deviation", { 5, { false, 0 }, 1 }, OF(5, 1, 1), 0, "not known" },
        { "too large", OF(5, 1e200, 1), OF(5, 1, 1), 0, "too large" },
        { "infinite", OF(5, 1, 1), OF(5, INFINITY, 1), 0, "too large" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        double noise = 0;
        const char *why = wm_welch(&rows[i].one, &rows[i].other, &noise);
        print_message("  %s\n", rows[i].name);
        if (rows[i].why) {
            assert_non_null(why);
            assert_non_null(strstr(why, rows[i].why));
            continue;
        }
        assert_null(why);
        near(noise, rows[i].noise, 1e-8);
    }
}

/* How many of the values count, of series that can be told by hand. */
static void test_effective(void **state)
{
    static const struct {
        const char *name;
        double values[10];
        size_t count;
        double effective;
    } rows[] = {
        { "one", { 1 }, 1, NAN },
        { "two", { 1, 2 }, 2, 2 },
        { "constant", { 3, 3, 3, 3 }, 4, 4 },
        { "to and fro", { 1, 2, 1, 2, 1, 2 }, 6, 6 },
        { "a line of three, which may be chance", { 1, 2, 3 }, 3, 3 },
        /* m2 82.5, steps 9: correlation 1 - 9 / 165 = 0.9454545 */
        { "a line", { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 }, 10, 10 * 0.0545455 / 1.9454545 },
        /* m2 2.5, steps 1: 0.8 */
        { "a step", { 0, 0, 0, 0, 0, 1, 1, 1, 1, 1 }, 10, 10 * 0.2 / 1.8 },
        { "missing values", { 1, NAN, 2, NAN, 1, NAN, 2 }, 7, 4 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct wm_block_stats stats = { 0 };
        for (size_t v = 0; v < rows[i].count; v++)
            if (!isnan(rows[i].values[v]))
                wm_block_stats_add(&stats, rows[i].values[v]);
        struct wm_known effective = wm_block_figures_of(&stats).of[WM_BLOCK_EFFECTIVE];
        print_message("  %s\n", rows[i].name);
        assert_int_equal(!effective.known, isnan(rows[i].effective));
        if (effective.known)
            near(effective.number, rows[i].effective, 1e-5);
    }
}

/* Stretches between the edges of calls are merged: the steps across them count too. */
static void test_effective_of_merged(void **state)
{
    struct wm_blocks blocks = { 0 };
    struct wm_block block = { 0 };

    (void)state;
    assert_int_equal(wm_blocks_reserve(&blocks), WM_OK);
    for (int i = 0; i < 10; i++) {
        struct wm_timepoint timepoint = { .when_ns = i, .known = WM_ALL_MEASUREMENTS };
        if (i % 3 == 0)
            wm_blocks_open(&blocks, &block);
        for (size_t m = 0; m < WM_MEASUREMENT_COUNT; m++)
            timepoint.values[m] = i + 1;
        wm_blocks_timepoint(&blocks, &timepoint);
        if (i % 3 == 0)
            wm_blocks_close(&blocks, &block);
        assert_int_equal(wm_blocks_reserve(&blocks), WM_OK);
    }
    wm_blocks_settle(&blocks);
    near(blocks.overall[WM_MAIN_RAM].steps, 9, 1e-12);
    near(block.usage[WM_MAIN_RAM].steps, 27, 1e-12); /* 1, 4, 7, 10 */
    wm_blocks_release(&blocks);
}

/* Sessions of blocks without any figures. */
struct made {
    struct wm_region_usage blocks[4][6];
    struct wm_block_analysis results[4];
    struct wm_compare_session sessions[4];
    struct wm_report reports[2];
};

/* Names with blanks between them. */
static void make_sessions(struct made *made, const char *const *names, size_t count)
{
    static char *const called[] = { "A", "B", "C", "D" };

    *made = (struct made) { 0 };
    for (size_t i = 0; i < count; i++) {
        char *copy = strdup(names[i]), *rest = copy, *name;
        struct wm_block_analysis *results = &made->results[i];
        while ((name = strtok_r(rest, " ", &rest)) != NULL)
            made->blocks[i][results->count++].name = strdup(name);
        free(copy);
        results->blocks = made->blocks[i];
        made->sessions[i] =
            (struct wm_compare_session) { .name = called[i], .analysis = results };
    }
}

static void free_sessions(struct made *made)
{
    for (size_t i = 0; i < ARRAY_LEN(made->results); i++) {
        for (size_t b = 0; b < made->results[i].count; b++)
            free(made->blocks[i][b].name);
    }
}

/* "label|name,-,name;..." */
static void describe(const struct wm_compare *compare, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < compare->group_count; i++) {
        const struct wm_compare_group *group = &compare->groups[i];
        used += (size_t)snprintf(text + used, size - used, "%s|", group->label);
        for (size_t s = 0; s < compare->session_count; s++)
            used += (size_t)snprintf(text + used, size - used, "%s%s",
                                     group->blocks[s] ? group->blocks[s]->name : "-",
                                     s + 1 < compare->session_count ? "," : ";");
    }
}

static const struct match_case {
    const char *name;
    const char *sessions[4];
    size_t count;
    const char *ours;
    size_t remarks;
    const char *theirs; /* or what gpu_tracker says */
} match_cases[] = {
    { "the same", { "a b", "a b" }, 2, "a|a,a;b|b,b;", 0, "a|a,a;b|b,b;" },
    { "one session", { "a b" }, 1, "a|a;b|b;", 0, "a|a;b|b;" },
    { "no blocks", { "", "" }, 2, "", 0, "" },
    { "another order", { "b a", "a b" }, 2, "a|a,a;b|b,b;", 0, "a|a,a;b|b,b;" },
    { "in one only",
      { "a b", "b c" },
      2,
      "a|a,-;b|b,b;c|-,c;",
      0,
      "Code block name \"a\" of tracking session \"A\" does not match code block name "
      "\"b\" "
      "of tracking session \"B\"" },
    { "different counts",
      { "a", "a b" },
      2,
      "a|a,a;b|-,b;",
      0,
      "All sub-tracking results must have the same number of code blocks. The first has 1 "
      "code blocks but tracking session \"B\" has 2 code blocks." },
    { "a line moved",
      { "t.py:7", "t.py:9" },
      2,
      "t.py:7 -> t.py:9|t.py:7,t.py:9;",
      1,
      "t.py:7 -> t.py:9|t.py:7,t.py:9;" },
    { "labels are in the order of texts",
      { "t.py:9", "t.py:10" },
      2,
      "t.py:10 -> t.py:9|t.py:9,t.py:10;",
      1,
      "t.py:10 -> t.py:9|t.py:9,t.py:10;" },
    { "lines are in the order of numbers",
      { "t.py:9 t.py:10", "t.py:11 t.py:101" },
      2,
      "t.py:10 -> t.py:101|t.py:10,t.py:101;t.py:11 -> t.py:9|t.py:9,t.py:11;",
      2,
      "t.py:11 -> t.py:9|t.py:9,t.py:11;t.py:10 -> t.py:101|t.py:10,t.py:101;" },
    { "a line that stayed is not moved",
      { "t:7 t:9", "t:9 t:12" },
      2,
      "t:12 -> t:7|t:7,t:12;t:9|t:9,t:9;",
      1,
      "t:7 -> t:9|t:7,t:9;t:12 -> t:9|t:9,t:12;" },
    { "more lines than there were",
      { "t:7", "t:8 t:9" },
      2,
      "t:7 -> t:8|t:7,t:8;t:9|-,t:9;",
      1,
      "All sub-tracking results must have" },
    { "another file",
      { "t:7", "u:7" },
      2,
      "t:7|t:7,-;u:7|-,u:7;",
      0,
      "does not match code block name \"u:7\"" },
    { "only the last colon counts",
      { "t:f:7", "t:g:7" },
      2,
      "t:f:7|t:f:7,-;t:g:7|-,t:g:7;",
      0,
      "does not match" },
    { "functions are no lines",
      { "t:f", "t:g" },
      2,
      "t:f|t:f,-;t:g|-,t:g;",
      0,
      "does not match" },
    { "nothing after the colon", { "t:", "t:7" }, 2, "t:|t:,-;t:7|-,t:7;", 0, "not match" },
    { "three sessions",
      { "t:7", "t:9", "t:7" },
      3,
      "t:7 -> t:9|t:7,t:9,t:7;",
      1,
      "t:7 -> t:9|t:7,t:9,t:7;" },
    { "three sessions, three lines",
      { "t:7", "t:8", "t:9" },
      3,
      "t:7 -> t:8 -> t:9|t:7,t:8,t:9;",
      2,
      "t:7 -> t:8 -> t:9|t:7,t:8,t:9;" },
    { "not in the first",
      { "a", "t:8", "t:9" },
      3,
      "a|a,-,-;t:8 -> t:9|-,t:8,t:9;",
      1,
      "does not match" },
    { "zeros before the number",
      { "t:007", "t:7" },
      2,
      "t:007 -> t:7|t:007,t:7;",
      1,
      "t:007 -> t:7|t:007,t:7;" },
    { "a sign, underscores and blanks, as Python's int() has them",
      { "t:+9 t:1_0 u:\t-7\n", "t:8 t:1_2_3 u:9" },
      2,
      "t:+9 -> t:8|t:+9,t:8;t:1_0 -> t:1_2_3|t:1_0,t:1_2_3;u:\t-7\n -> u:9|u:\t-7\n,u:9;",
      3,
      "t:+9 -> t:8|t:+9,t:8;t:1_0 -> t:1_2_3|t:1_0,t:1_2_3;u:\t-7\n -> u:9|u:\t-7\n,u:9;" },
    { "what int() does not take",
      { "t:1__0", "t:9" },
      2,
      "t:1__0|t:1__0,-;t:9|-,t:9;",
      0,
      "does not match" },
    { "an underscore at the end",
      { "t:1_", "t:9" },
      2,
      "t:1_|t:1_,-;t:9|-,t:9;",
      0,
      "not match" },
    { "an underscore first",
      { "t:_1", "t:9" },
      2,
      "t:9|-,t:9;t:_1|t:_1,-;",
      0,
      "not match" },
    { "two signs", { "t:+-1", "t:9" }, 2, "t:+-1|t:+-1,-;t:9|-,t:9;", 0, "not match" },
    { "a sign alone", { "t:+", "t:9" }, 2, "t:+|t:+,-;t:9|-,t:9;", 0, "not match" },
    { "hexadecimal", { "t:0x1", "t:9" }, 2, "t:0x1|t:0x1,-;t:9|-,t:9;", 0, "not match" },
    { "numbers of any length",
      { "t:99999999999999999999999", "t:100000000000000000000000" },
      2,
      "t:100000000000000000000000 -> t:99999999999999999999999|t:99999999999999999999999,"
      "t:100000000000000000000000;",
      1,
      "t:100000000000000000000000 -> t:99999999999999999999999|t:99999999999999999999999,"
      "t:100000000000000000000000;" },
};

static void test_match(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(match_cases); i++) {
        const struct match_case *row = &match_cases[i];
        struct wm_compare *compare;
        struct wm_error err = { 0 };
        struct made made;
        char text[512];

        print_message("  %s\n", row->name);
        make_sessions(&made, row->sessions, row->count);
        assert_int_equal(
            wm_compare_new(made.sessions, row->count, WM_BLOCK_MEAN, false, &compare, &err),
            WM_OK);
        describe(compare, text, sizeof(text));
        assert_string_equal(text, row->ours);
        assert_int_equal(compare->remarks.count, row->remarks);
        wm_compare_free(compare);

        int status =
            wm_compare_new(made.sessions, row->count, WM_BLOCK_MEAN, true, &compare, &err);
        if (status == WM_OK) {
            describe(compare, text, sizeof(text));
            assert_string_equal(text, row->theirs);
            wm_compare_free(compare);
        } else {
            assert_int_equal(status, WM_EINVAL);
            if (!strstr(err.text, row->theirs))
                fail_msg("\"%s\" does not say \"%s\"", err.text, row->theirs);
        }
        free_sessions(&made);
    }
}

/* gpu_tracker's reference is the first of the alphabet, not of those given. */
static void test_gpu_tracker_words(void **state)
{
    const char *names[] = { "t.py:7", "t.py:9" };
    struct wm_compare *compare;
    struct made made;

    (void)state;
    make_sessions(&made, names, 2);
    made.sessions[0].name = "B";
    made.sessions[1].name = "A";
    assert_int_equal(wm_compare_new(made.sessions, 2, WM_BLOCK_MEAN, true, &compare, NULL),
                     WM_OK);
    assert_int_equal(compare->remarks.count, 1);
    assert_string_equal(
        compare->remarks.all[0],
        "Code block name \"t.py:9\" of tracking session \"A\" matched with code block name "
        "\"t.py:7\" of tracking session \"B\" but they differ by line number. If these "
        "code "
        "blocks were not meant to match, their comparison will not be valid and their "
        "names "
        "must be disambiguated.");
    wm_compare_free(compare);
    free_sessions(&made);
}

static void test_twice(void **state)
{
    const char *names[] = { "a", "b b" };
    struct wm_compare *compare;
    struct wm_error err;
    struct made made;

    (void)state;
    make_sessions(&made, names, 2);
    assert_int_equal(wm_compare_new(made.sessions, 2, WM_BLOCK_MEAN, false, &compare, &err),
                     WM_EFORMAT);
    assert_string_equal(err.text, "session \"B\" has block \"b\" twice");
    assert_int_equal(wm_compare_new(made.sessions, 0, WM_BLOCK_MEAN, false, &compare, &err),
                     WM_EINVAL);
    free_sessions(&made);
}

static struct wm_block_figures figures(double mean, double std)
{
    return (struct wm_block_figures) {
        .of = { [WM_BLOCK_MIN] = { true, mean - std },
                [WM_BLOCK_MAX] = { true, mean + std },
                [WM_BLOCK_MEAN] = { true, mean },
                [WM_BLOCK_STD] = { true, std },
                [WM_BLOCK_TOTAL] = { true, mean * 5 } },
    };
}

/* Two sessions with block "a": five calls of 1 s and of 2 s, std 1, which is noise up to
 * 1.458 s; memory without scatter; what their calls cost in the recordings. */
static void make_figures(struct made *made)
{
    const char *names[] = { "a", "a" };

    make_sessions(made, names, 2);
    for (size_t i = 0; i < 2; i++) {
        struct wm_region_usage *block = &made->blocks[i][0];
        for (size_t m = 0; m < WM_MEASUREMENT_COUNT; m++) {
            block->usage[m] = figures(0, 0);
            made->results[i].overall[m] = figures(100, 0);
        }
        block->calls = 5;
        block->timepoints = 10;
        block->time = figures((double)i + 1, 1);
        block->usage[WM_MAIN_RAM] = figures(100 + 10 * (double)i, 0);
        block->usage[WM_CPU_MAIN_SUM] = figures(50 + 50 * (double)i, 0);
        double joules = 100 + 10 * (double)i;
        const struct wm_region_value energy = { wm_value_known(joules),
                                                wm_value_known(6 / joules) };
        block->unfinished = 5;
        block->inclusive.energy = energy;
        made->results[i].report = &made->reports[i];
    }
}

static void test_figures(void **state)
{
    struct wm_compare_worst worst;
    struct wm_compare_cell cells[2];
    struct wm_compare *compare;
    struct made made;

    (void)state;
    make_figures(&made);
    assert_int_equal(wm_compare_new(made.sessions, 2, WM_BLOCK_MEAN, false, &compare, NULL),
                     WM_OK);

    wm_compare_cells(compare, 0, WM_COMPARE_TIME, cells);
    assert_false(cells[0].change.known || cells[0].noise.known || cells[0].why);
    near(cells[1].change.number, 1, 1e-15);
    near(cells[1].noise.number, 1.4584450722, 1e-8);
    assert_int_equal(cells[1].verdict, WM_COMPARE_WITHIN);

    wm_compare_cells(compare, 0, WM_MAIN_RAM, cells);
    near(cells[1].change.number, 0.1, 1e-15);
    assert_int_equal(cells[1].verdict, WM_COMPARE_BEYOND);

    /* Per call: 10 and 11 J, each 0.6 off: noise 0.8485. */
    wm_compare_cells(compare, 0, wm_compare_item("energy"), cells);
    near(cells[0].value.number, 10, 1e-15);
    near(cells[1].noise.number, 0.848528137, 1e-8);
    assert_int_equal(cells[1].verdict, WM_COMPARE_BEYOND);

    /* How many timepoints there were in all is not told, and no energy of a session is
     * known. */
    wm_compare_cells(compare, WM_COMPARE_OVERALL, WM_MAIN_RAM, cells);
    assert_non_null(strstr(cells[1].why, "not known"));
    wm_compare_cells(compare, WM_COMPARE_OVERALL, wm_compare_item("energy"), cells);
    assert_false(cells[1].value.known || cells[1].change.known);
    assert_int_equal(cells[1].verdict, WM_COMPARE_NOT_TESTED);

    /* More use of the CPU is no worse, and the time is noise: memory and energy are left,
     * of which memory comes first. */
    assert_int_equal(wm_compare_find_worst(compare, 0, &worst), WM_OK);
    near(worst.change, 0.1, 1e-15);
    assert_int_equal(worst.item, WM_MAIN_RAM);
    assert_int_equal(worst.session, 1);
    wm_compare_free(compare);

    assert_int_equal(
        wm_compare_new(made.sessions, 2, WM_BLOCK_TOTAL, false, &compare, NULL), WM_OK);
    wm_compare_cells(compare, 0, WM_COMPARE_TIME, cells);
    near(cells[1].value.number, 10, 1e-15);
    near(cells[1].noise.number, 5 * 1.4584450722, 1e-8);
    wm_compare_cells(compare, 0, wm_compare_item("energy"), cells);
    near(cells[1].value.number, 110, 1e-15);
    wm_compare_free(compare);

    assert_int_equal(wm_compare_new(made.sessions, 2, WM_BLOCK_MAX, false, &compare, NULL),
                     WM_OK);
    wm_compare_cells(compare, 0, WM_MAIN_RAM, cells);
    near(cells[1].value.number, 110, 1e-15);
    assert_int_equal(cells[1].verdict, WM_COMPARE_NOT_TESTED);
    assert_non_null(strstr(cells[1].why, "not tested"));
    assert_int_equal(wm_compare_find_worst(compare, 0, &worst), WM_OK);
    assert_true(worst.change == 0);
    wm_compare_free(compare);

    /* Values that depend on each other say less: of ten two are left, with sqrt(2) * 0.9487
     * the scatter. */
    for (size_t i = 0; i < 2; i++) {
        struct wm_known *of = made.blocks[i][0].usage[WM_MAIN_RAM].of;
        of[WM_BLOCK_STD] = (struct wm_known) { true, 1 };
        of[WM_BLOCK_EFFECTIVE] = (struct wm_known) { true, 2 };
    }
    assert_int_equal(wm_compare_new(made.sessions, 2, WM_BLOCK_MEAN, false, &compare, NULL),
                     WM_OK);
    wm_compare_cells(compare, 0, WM_MAIN_RAM, cells);
    near(cells[1].noise.number, 4.30265273 * sqrt(0.9 / 0.5), 1e-8);
    wm_compare_free(compare);

    /* Of one of them at least so much is known. */
    made.blocks[1][0].inclusive.energy.value.why = "it does not cover 3 s";
    assert_int_equal(wm_compare_new(made.sessions, 2, WM_BLOCK_MEAN, false, &compare, NULL),
                     WM_OK);
    wm_compare_cells(compare, 0, wm_compare_item("energy"), cells);
    assert_null(cells[0].lacks);
    assert_string_equal(cells[1].lacks, "it does not cover 3 s");
    assert_int_equal(cells[1].verdict, WM_COMPARE_NOT_TESTED);
    assert_non_null(strstr(cells[1].why, "at least"));
    wm_compare_free(compare);

    /* From nothing to something. */
    made.blocks[0][0].usage[WM_DESCENDANTS_RAM] = figures(0, 0);
    made.blocks[1][0].usage[WM_DESCENDANTS_RAM] = figures(5, 0);
    assert_int_equal(wm_compare_new(made.sessions, 2, WM_BLOCK_MEAN, false, &compare, NULL),
                     WM_OK);
    assert_int_equal(wm_compare_find_worst(compare, 0, &worst), WM_OK);
    assert_true(isinf(worst.change));
    wm_compare_free(compare);
    free_sessions(&made);
}

static void test_units(void **state)
{
    const struct wm_static_data gigabytes = { .ram_unit = "gigabytes",
                                              .gpu_ram_unit = "megabytes",
                                              .time_unit = "hours" };
    struct wm_block_analysis results = { .static_data = {
                                             .ram_unit = "bytes",
                                             .gpu_ram_unit = "terabytes",
                                             .time_unit = "seconds",
                                             .ram_capacity = { true, 67254166528 } } };
    struct wm_error err;

    (void)state;
    results.overall[WM_MAIN_RAM].of[WM_BLOCK_MEAN].number = 341860352;
    results.overall[WM_SYSTEM_GPU_RAM].of[WM_BLOCK_MAX].number = 0.000727;
    results.overall[WM_MAIN_THREADS].of[WM_BLOCK_MAX].number = 15;
    assert_int_equal(wm_compare_convert(&results, &gigabytes, "x", &err), WM_OK);
    assert_true(results.overall[WM_MAIN_RAM].of[WM_BLOCK_MEAN].number == 0.341860352);
    near(results.overall[WM_SYSTEM_GPU_RAM].of[WM_BLOCK_MAX].number, 727, 1e-12);
    assert_true(results.overall[WM_MAIN_THREADS].of[WM_BLOCK_MAX].number == 15);
    assert_true(results.static_data.ram_capacity.number == 67.254166528);
    assert_string_equal(results.static_data.ram_unit, "gigabytes");
    assert_string_equal(results.static_data.gpu_ram_unit, "megabytes");

    snprintf(results.static_data.ram_unit, 16, "gibibytes");
    assert_int_equal(wm_compare_convert(&results, &gigabytes, "x.json", &err), WM_EFORMAT);
    assert_string_equal(err.text, "x.json: \"gibibytes\" is no unit of memory");
}

#define JSON_A "tests/data/gpu_tracker/analysis_a.json"
#define JSON_B "tests/data/gpu_tracker/analysis.json"

static char *print(const struct wm_comparison *comparison)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    assert_int_equal(wm_comparison_print(comparison, out, NULL), WM_OK);
    fclose(out);
    return text;
}

/* What the documents print of their sessions A and B, by the command and by the API. */
static void test_seed(void **state)
{
    static const struct {
        const char *statistic, *path;
        enum wm_comparison_format format;
    } rows[] = {
        { "mean", "tests/data/gpu_tracker/compare_mean.txt",
          WM_COMPARISON_GPU_TRACKER_CLI },
        { "max", "tests/data/gpu_tracker/compare_max.txt", WM_COMPARISON_GPU_TRACKER_TEXT },
    };
    struct wm_comparison *comparison;

    (void)state;
    assert_int_equal(wm_comparison_new(&comparison, NULL), WM_OK);
    assert_int_equal(wm_comparison_add(comparison, "A", test_source_path(JSON_A), NULL), 0);
    assert_int_equal(wm_comparison_add(comparison, "B", test_source_path(JSON_B), NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(
            wm_comparison_run(comparison, rows[i].statistic, rows[i].format, NULL), WM_OK);
        char *printed = print(comparison), *expected = test_read_source(rows[i].path);
        assert_string_equal(printed, expected);
        assert_null(wm_comparison_remark(comparison, 0));
        free(expected);
        free(printed);
    }
    wm_comparison_free(comparison);
}

static void test_bad_use(void **state)
{
    const char *const regions[] = { "x.csv" };
    const struct wm_analysis_input with_calls = { test_source_path(JSON_A), WM_LAST_RUN,
                                                  regions, 1 };
    static const char pickle[] = "\x80\x04\x95rest", old_pickle[] = "ccopy_reg\n";
    const char *dir = *state;
    char path[4096];
    struct wm_comparison *comparison;
    struct wm_error err;

    assert_int_equal(wm_comparison_new(&comparison, NULL), WM_OK);
    assert_int_equal(wm_comparison_run(comparison, "mean", WM_COMPARISON_TEXT, &err),
                     WM_EINVAL);
    assert_int_equal(wm_comparison_print(comparison, stdout, &err), WM_EINVAL);
    assert_null(wm_comparison_remark(comparison, 0));

    assert_int_equal(wm_comparison_add(comparison, "A", test_source_path(JSON_A), &err), 0);
    assert_int_equal(wm_comparison_add(comparison, "A", test_source_path(JSON_B), &err),
                     WM_EINVAL);
    assert_non_null(strstr(err.text, "\"A\""));
    assert_int_equal(wm_comparison_add_session(comparison, "B", &with_calls, &err),
                     WM_EINVAL);
    assert_int_equal(wm_comparison_add(comparison, "B", "/nonexistent", &err), WM_ENOENT);

    const struct {
        const char *name, *text, *why;
    } files[] = {
        { "a.bin", pickle, "--format=json" },
        { "b.pkl", old_pickle, "--format=json" },
        { "c.json", "{\"overall\": {}}", "static_data" },
        { "d.json", " \n{", "not JSON" },
        { "e.csv", "a,b\n", "" },
        { "f.txt", "", "" },
        { "g.json",
          "{\"overall\": {}, \"static_data\": {\"ram_unit\": \"pounds\", "
          "\"gpu_ram_unit\": \"bytes\", \"time_unit\": \"days\"}, "
          "\"code_block_results\": []}",
          "\"pounds\" is no unit" },
    };
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        test_write_file(dir, files[i].name, files[i].text);
        snprintf(path, sizeof(path), "%s/%s", dir, files[i].name);
        assert_int_equal(wm_comparison_add(comparison, "B", path, &err), WM_EFORMAT);
        if (!strstr(err.text, files[i].why) || !strstr(err.text, files[i].name))
            fail_msg("%s: \"%s\" does not say \"%s\"", files[i].name, err.text,
                     files[i].why);
    }

    assert_int_equal(wm_comparison_run(comparison, "median", WM_COMPARISON_TEXT, &err),
                     WM_EINVAL);
    assert_int_equal(
        wm_comparison_run(comparison, "total", WM_COMPARISON_GPU_TRACKER_TEXT, &err),
        WM_EINVAL);
    assert_string_equal(
        err.text, "Invalid summary statistic 'total'. Valid values are min max mean std.");
    assert_int_equal(wm_comparison_run(comparison, "total", WM_COMPARISON_JSON, &err),
                     WM_OK);
    wm_comparison_free(comparison);
    wm_comparison_free(NULL);
}

static int try_all(enum wm_comparison_format format)
{
    struct wm_comparison *comparison;
    FILE *out;
    int status = wm_comparison_new(&comparison, NULL);

    if (status < 0)
        return status;
    status = wm_comparison_add(comparison, "A", test_source_path(JSON_A), NULL);
    if (status == WM_OK)
        status = wm_comparison_add(comparison, "B", test_source_path(JSON_B), NULL);
    if (status == WM_OK)
        status = wm_comparison_run(comparison, "mean", format, NULL);
    out = status == WM_OK ? fopen("/dev/null", "w") : NULL;
    if (status == WM_OK)
        status = out ? wm_comparison_print(comparison, out, NULL) : WM_ENOMEM;
    if (out)
        fclose(out);
    wm_comparison_free(comparison);
    return status;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    for (enum wm_comparison_format format = WM_COMPARISON_TEXT;
         format <= WM_COMPARISON_GPU_TRACKER_CLI; format++) {
        test_fail_allocation(-1);
        assert_int_equal(try_all(format), WM_OK);
        long made = test_fail_allocation(-1);
        int status = WM_ENOMEM;
        for (long nth = 0; nth < made; nth += 1 + nth / 64) {
            test_fail_allocation(nth);
            status = try_all(format);
            test_fail_allocation(-1);
            if (status != WM_ENOMEM && status != WM_OK && status != WM_EIO)
                fail_msg("allocation %ld: %d", nth, status);
        }
    }
}

/* Each allocation of the comparison alone. */
static void test_out_of_memory_matching(void **state)
{
    const char *names[] = { "a t:7 t:9", "a t:8 t:9", "t:11 b" };
    struct made made;

    (void)state;
    make_sessions(&made, names, 3);
    for (int as_gpu_tracker = 0; as_gpu_tracker < 2; as_gpu_tracker++) {
        int status = WM_ENOMEM;
        for (long nth = 0; status == WM_ENOMEM; nth++) {
            struct wm_compare *compare = NULL;
            assert_true(nth < 500);
            test_fail_allocation(nth);
            status = wm_compare_new(made.sessions, as_gpu_tracker ? 2 : 3, WM_BLOCK_MEAN,
                                    as_gpu_tracker, &compare, NULL);
            test_fail_allocation(-1);
            wm_compare_free(compare);
        }
        assert_int_equal(status, WM_OK);
    }
    free_sessions(&made);
}

static double uniform(double from, double to)
{
    return from + (to - from) * ((double)rand() / RAND_MAX);
}

/* Runs of one program, of one length: 20 calls of a region, of 100 to 400 ms, and a pause
 * after each. Two cores draw 20 W, and 30 W more for each that is busy, which the program
 * is at random: one core at most in a call, and little outside. */
enum { CALLS = 20, TICK_MS = 25, RUN_MS = CALLS * 450 };

struct random_run {
    struct wm_region_record calls[CALLS];
    double used[RUN_MS + 1]; /* CPU time of the program up to each millisecond */
};

static void draw_run(struct random_run *run)
{
    int at = 0;

    for (size_t i = 0; i < CALLS; i++) {
        int stop = at + (int)uniform(100, 400), end = i + 1 < CALLS ? stop + 50 : RUN_MS;
        run->calls[i] = (struct wm_region_record) { .start_ns = at * INT64_C(1000000),
                                                    .stop_ns = stop * INT64_C(1000000) };
        double use = 0;
        for (; at < end; at++) {
            if (at % TICK_MS == 0 || at == stop || use == 0)
                use = at < stop ? uniform(0, 1) : uniform(0, 0.1);
            run->used[at + 1] = run->used[at] + use / 1000;
        }
    }
}

static void record_run(const char *path, const struct random_run *made)
{
    static struct wm_source_status sources[] = { { .name = "rapl", .available = true } };
    static const struct wm_run run = { .id = "made",
                                       .version = "0.1.0",
                                       .mode = "run",
                                       .sources = sources,
                                       .source_count = ARRAY_LEN(sources),
                                       .interval_ns = TICK_MS * INT64_C(1000000),
                                       .core_count = 2,
                                       .expected_cores = 2 };
    static const struct wm_channel channels[] = {
        { "host",
          "host",
          "host",
          NULL,
          "cpu_time",
          "s",
          WM_DEVICE_HOST,
          WM_COUNTER,
          WM_MEASURED,
          10000000,
          { 0 } },
        { "tracker",
          "tree",
          "tree",
          NULL,
          "cpu_time",
          "s",
          WM_DEVICE_TREE,
          WM_COUNTER,
          WM_MEASURED,
          0,
          { 0 } },
        { .source = "rapl",
          .device = "package-0",
          .label = "package0",
          .model = "Intel(R) Xeon(R)",
          .metric = "energy",
          .unit = "J",
          .device_kind = WM_DEVICE_CPU,
          .kind = WM_COUNTER,
          .period_ns = 1000000,
          .sensor = { .kind = WM_SENSOR_BUILT_IN, .gain = 0.05 } },
    };
    const struct wm_region_path region = { "work", WM_REGION_NO_PATH, 0, false };
    const struct wm_region_thread thread = { 1, 1, 0 };
    const struct wm_region_batch batch = { .paths = &region,
                                           .threads = &thread,
                                           .calls = made->calls,
                                           .path_count = 1,
                                           .thread_count = 1,
                                           .call_count = CALLS };
    struct wm_result result = { .end_ns = RUN_MS * INT64_C(1000000),
                                .cpu_total_seconds = { true, made->used[RUN_MS] },
                                .cpu_main_seconds = { 0 },
                                .cpu_descendants_seconds = { 0 },
                                .peak_rss_bytes = { 0 },
                                .peak_rss_bound_bytes = { 0 } };
    struct wm_recorder *recorder;
    struct wm_error err;

    if (wm_recorder_open(path, WM_RECORD_OVERWRITE, &run, channels, ARRAY_LEN(channels),
                         &recorder, &err) < 0)
        fail_msg("%s", err.text);
    for (int now = 0; now <= RUN_MS; now += TICK_MS) {
        int64_t when_ns = now * INT64_C(1000000);
        const struct wm_reading readings[] = {
            { when_ns, floor(100 * made->used[now]) / 100, WM_READING_OK },
            { when_ns, made->used[now], WM_READING_OK },
            { when_ns, 0.02 * now + 30 * made->used[now], WM_READING_OK },
        };
        const struct wm_tick tick = { when_ns, readings, ARRAY_LEN(channels) };
        wm_recorder_tick(recorder, &tick);
        result.ticks++;
    }
    wm_recorder_regions(recorder, &batch);
    wm_recorder_flush(recorder, &result);
    assert_int_equal(wm_recorder_finish(recorder, &result, &err), WM_OK);
    wm_recorder_close(recorder);
}

/* Of runs that differ by chance alone few are told to differ. */
static void test_runs_alike(void **state)
{
    enum { PAIRS = 100 };
    const struct {
        const char *name;
        size_t group;
        const char *item;
    } figures[] = {
        { "CPU time", WM_COMPARE_OVERALL, "cpu_time" },
        { "energy of the tree", WM_COMPARE_OVERALL, "tree_energy" },
        { "time of calls", 0, "time" },
        { "CPU time of calls", 0, "cpu_time" },
        { "energy of calls", 0, "energy" },
        { "energy of the tree in calls", 0, "tree_energy" },
    };
    size_t beyond[ARRAY_LEN(figures)] = { 0 };
    static struct random_run run;
    struct wm_compare_cell cells[2];
    char paths[2][4096];

    srand(1);
    for (size_t pair = 0; pair < PAIRS; pair++) {
        struct wm_comparison *comparison;
        assert_int_equal(wm_comparison_new(&comparison, NULL), WM_OK);
        for (size_t i = 0; i < 2; i++) {
            snprintf(paths[i], sizeof(paths[i]), "%s/%zu.sqlite", (char *)*state, i);
            draw_run(&run);
            record_run(paths[i], &run);
            assert_int_equal(wm_comparison_add(comparison, paths[i], paths[i], NULL), 0);
        }
        assert_int_equal(wm_comparison_run(comparison, "mean", WM_COMPARISON_TEXT, NULL),
                         WM_OK);
        for (size_t i = 0; i < ARRAY_LEN(figures); i++) {
            wm_compare_cells(wm_comparison_compare(comparison), figures[i].group,
                             wm_compare_item(figures[i].item), cells);
            if (cells[1].verdict == WM_COMPARE_NOT_TESTED)
                fail_msg("%s: %s", figures[i].name, cells[1].why);
            beyond[i] += cells[1].verdict == WM_COMPARE_BEYOND;
        }
        wm_comparison_free(comparison);
    }
    for (size_t i = 0; i < ARRAY_LEN(figures); i++)
        print_message("%s: %.1f %%\n", figures[i].name, 100.0 * (double)beyond[i] / PAIRS);
    for (size_t i = 0; i < ARRAY_LEN(figures); i++)
        assert_true((double)beyond[i] <= 0.1 * PAIRS);
}

UNIT(compare)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_student),
        cmocka_unit_test(test_welch),
        cmocka_unit_test(test_effective),
        cmocka_unit_test(test_effective_of_merged),
        cmocka_unit_test(test_match),
        cmocka_unit_test(test_gpu_tracker_words),
        cmocka_unit_test(test_twice),
        cmocka_unit_test(test_figures),
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_seed),
        cmocka_unit_test_setup_teardown(test_bad_use, test_make_dir, test_remove_dir),
        cmocka_unit_test_setup_teardown(test_runs_alike, test_make_dir, test_remove_dir),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_out_of_memory_matching),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
