/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_analyze_runs.c - the statistics of repeated runs: by hand, and how often they are
 * wrong, of simulated runs whose truth is known. WM_TRIALS=20000 is the full form.
 */
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "analyze/compare/analyze_runs.h"

static void near(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance * fmax(fabs(expected), 1)))
        fail_msg("%.12g is not %.12g", value, expected);
}

/* From printed tables. */
static void test_student(void **state)
{
    static const struct {
        double outside, df, t;
    } rows[] = {
        { 0.05, 1, 12.7062047362 },   { 0.05, 2, 4.30265272991 },
        { 0.05, 3, 3.18244630528 },   { 0.05, 5, 2.57058183564 },
        { 0.05, 10, 2.22813885196 },  { 0.05, 30, 2.04227245630 },
        { 0.05, 120, 1.97993040505 }, { 0.05, 1000, 1.96233908083 },
        { 0.01, 5, 4.03214298356 },   { 0.001, 5, 6.86882662630 },
        { 0.001, 20, 3.84951627410 }, { 0.0001, 10, 6.21105089 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        near(wm_student(rows[i].outside, rows[i].df), rows[i].t, 1e-8);
    near(wm_student(0.05, 1e15), 1.96, 1e-3);
    for (double df = 1; df < 9e3; df *= 1.1)
        assert_true(wm_student(0.05, df * 1.1) < wm_student(0.05, df));
}

/* By the binomial distribution: 2 * (1 + n + ...) / 2^n. */
static void test_interval(void **state)
{
    static const struct {
        size_t count;
        double outside;
        size_t low; /* which of the values, from 1; 0: none */
    } rows[] = {
        { 0, 0.05, 0 },  { 5, 0.05, 0 },   { 6, 0.05, 1 },       { 8, 0.05, 1 },
        { 9, 0.05, 2 },  { 20, 0.05, 6 },  { 100, 0.05, 40 },    { 8, 0.005, 0 },
        { 9, 0.005, 1 }, { 20, 0.005, 4 }, { 3000, 0.05, 1446 },
    };
    static double values[3000];
    double low = 0, high = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        values[i] = (double)i + 1;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        size_t count = rows[i].count;
        bool has = wm_runs_interval(values, count, rows[i].outside, &low, &high);
        print_message("  %zu values, %g\n", count, rows[i].outside);
        assert_int_equal(has, rows[i].low > 0);
        if (!has)
            continue;
        near(low, (double)rows[i].low, 0);
        near(high, (double)(count + 1 - rows[i].low), 0);
    }
}

/* By hand. */
static void test_ratios(void **state)
{
    static const struct wm_runs_test one = { 1, 0.01 }, four = { 4, 0.01 };
    static const double zeros[6] = { 0 }, some[6] = { 0, 1, 1, 1, 1, 1 };
    double low[6], high[6], same[6];
    (void)state;

    for (size_t i = 0; i < 6; i++) {
        low[i] = exp((double)i);
        high[i] = 2 * exp((double)i + (i % 2 ? 0.1 : -0.1));
        same[i] = 7;
    }
    /* Logarithms 0.693 +- 0.1: std 0.1095, of the mean 0.0447, t 2.5706. */
    struct wm_runs_ratio ratio = wm_runs_paired(low, high, 6, &one);
    near(ratio.ratio, 2, 1e-12);
    near(log(ratio.high / 2), 2.57058183564 * sqrt(0.012 / 6), 1e-8);
    near(log(2 / ratio.low), 2.57058183564 * sqrt(0.012 / 6), 1e-8);
    assert_int_equal(ratio.verdict, WM_RUNS_MORE);
    near(log(wm_runs_paired(low, high, 6, &four).high / 2), 3.8100 * sqrt(0.012 / 6), 1e-4);
    assert_int_equal(wm_runs_paired(high, low, 6, &one).verdict, WM_RUNS_LESS);
    /* What pairs have in common is noise where there are none. */
    ratio = wm_runs_unpaired(low, 6, high, 6, &one);
    near(ratio.ratio, 2, 1e-12);
    assert_int_equal(ratio.verdict, WM_RUNS_NOT_SHOWN);
    /* Variances 3.5 / 6 and 0: 5 degrees of freedom. */
    near(log(wm_runs_unpaired(same, 6, low, 6, &one).high * 7 / exp(2.5)),
         2.57058183564 * sqrt(3.5 / 6), 1e-8);

    ratio = wm_runs_paired(low, high, 5, &one);
    assert_int_equal(ratio.verdict, WM_RUNS_NOT_TESTED);
    assert_non_null(strstr(ratio.why, "6 runs"));
    assert_int_equal(wm_runs_unpaired(low, 6, high, 5, &one).verdict, WM_RUNS_NOT_TESTED);
    assert_int_equal(wm_runs_unpaired(low, 1, high, 1, &one).verdict, WM_RUNS_NOT_TESTED);
    assert_int_equal(wm_runs_unpaired(low, 0, high, 6, &one).verdict, WM_RUNS_NOT_TESTED);
    assert_int_equal(wm_runs_paired(low, high, 0, &one).verdict, WM_RUNS_NOT_TESTED);

    ratio = wm_runs_unpaired(same, 6, same, 6, &one);
    assert_true(ratio.verdict == WM_RUNS_NOT_SHOWN && ratio.low == 1 && ratio.high == 1);
    assert_int_equal(wm_runs_unpaired(zeros, 6, zeros, 6, &one).verdict, WM_RUNS_NOT_SHOWN);
    ratio = wm_runs_unpaired(zeros, 6, same, 6, &one);
    assert_true(ratio.verdict == WM_RUNS_MORE && isinf(ratio.low));
    assert_int_equal(wm_runs_unpaired(same, 6, some, 6, &one).verdict, WM_RUNS_NOT_TESTED);
    assert_int_equal(wm_runs_paired(some, same, 6, &one).verdict, WM_RUNS_NOT_TESTED);
}

static void test_outliers(void **state)
{
    static const struct {
        const char *what;
        double values[7];
        size_t count;
        bool is_first;
    } cases[] = {
        { "none", { 10, 11, 10.5, 10.2, 10.7, 10.1, 10.9 }, 0, false },
        { "first", { 20, 11, 10.5, 10.2, 10.7, 10.1, 10.9 }, 1, true },
        { "first, but quick", { 1, 11, 10.5, 10.2, 10.7, 10.1, 10.9 }, 1, false },
        { "two", { 20, 11, 10.5, 10.2, 10.7, 30, 10.9 }, 2, true },
        { "all alike", { 1, 1, 1, 1, 1, 1, 2 }, 0, false },
    };
    double scratch[7];
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct wm_runs_outliers found = wm_runs_outliers(cases[i].values, 7, scratch);
        print_message("  %s\n", cases[i].what);
        assert_int_equal(found.count, cases[i].count);
        assert_int_equal(found.is_first, cases[i].is_first);
        assert_int_equal(wm_runs_outliers(cases[i].values, 5, scratch).count, 0);
    }
}

/* Simulations. */

enum { METRICS = 4, MOST_RUNS = 40 };

enum noise { NORMAL, SKEWED, VERY_SKEWED };

/* Two commands of which the second takes so much more of the one thing. */
struct simulation {
    const char *what;
    double difference, std; /* ratios */
    enum noise noise;
    double drift;      /* per minute, of runs of a second */
    double first_slow; /* the first run of each takes so much more */
    size_t runs;       /* of each */
    bool is_paired;    /* A B B A; else all of one, then of the other */
};

static double uniform(void)
{
    return ((double)rand() + 0.5) / ((double)RAND_MAX + 1);
}

static double normal(void)
{
    return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

/* Of mean 0 and deviation 1; but for the last, of the median 0 and a heavy tail. */
static double draw(enum noise noise)
{
    switch (noise) {
    case NORMAL:
        return normal();
    case SKEWED:
        return -log(uniform()) - 1;
    default:
        return exp(normal()) - 1;
    }
}

/* When a run begins, in seconds. */
static double start_of(const struct simulation *of, size_t command, size_t run)
{
    bool is_second = run % 2 == 0 ? command == 1 : command == 0;

    return of->is_paired ? (double)(2 * run + is_second)
                         : (double)(command * of->runs + run);
}

/* Each metric has noise of its own; the gain of the sensors is whatever it is. */
static void draw_runs(const struct simulation *of, double values[2][MOST_RUNS])
{
    double gain = 0.9 + 0.2 * uniform();

    for (size_t command = 0; command < 2; command++) {
        for (size_t run = 0; run < of->runs; run++) {
            double drift = 1 + of->drift * start_of(of, command, run) / 60;
            double truth = command == 1 ? 1 + of->difference : 1;
            values[command][run] = gain * truth * drift * (1 + of->std * draw(of->noise)) *
                                   (run == 0 ? 1 + of->first_slow : 1);
        }
    }
}

/* How many pairs of groups of METRICS metrics have a claim, and how many ratios hold. */
struct counts {
    double claims, held, found; /* shares; `found` of all metrics */
};

static struct counts simulate(const struct simulation *of, size_t trials)
{
    const struct wm_runs_test test = { METRICS, 0.01 };
    struct counts counts = { 0 };
    double values[2][MOST_RUNS];

    for (size_t i = 0; i < trials; i++) {
        bool is_claimed = false;
        for (size_t m = 0; m < METRICS; m++) {
            draw_runs(of, values);
            struct wm_runs_ratio ratio =
                of->is_paired
                    ? wm_runs_paired(values[0], values[1], of->runs, &test)
                    : wm_runs_unpaired(values[0], of->runs, values[1], of->runs, &test);
            bool is_more = ratio.verdict == WM_RUNS_MORE;
            is_claimed |= is_more || ratio.verdict == WM_RUNS_LESS;
            counts.found += is_more / (double)METRICS;
            counts.held +=
                (ratio.low <= 1 + of->difference && 1 + of->difference <= ratio.high) /
                (double)METRICS;
        }
        counts.claims += is_claimed;
    }
    counts.claims /= (double)trials;
    counts.found /= (double)trials;
    counts.held /= (double)trials;
    return counts;
}

static size_t trials(void)
{
    const char *wish = getenv("WM_TRIALS");

    return wish ? strtoul(wish, NULL, 10) : 500;
}

/* What a share that should be `truth` may be off by chance: once in 30,000 times. */
static double chance(double truth, size_t count)
{
    return 4 * sqrt(truth * (1 - truth) / (double)count);
}

static void seed(void)
{
    const char *wish = getenv("WM_SEED");
    unsigned number = wish ? (unsigned)strtoul(wish, NULL, 10) : (unsigned)time(NULL);

    print_message("  WM_SEED=%u, %zu trials\n", number, trials());
    srand(number);
}

static void test_claims(void **state)
{
    static const struct simulation equal[] = {
        { "pairs", 0, 0.03, NORMAL, 0, 0, 6, true },
        { "pairs", 0, 0.03, NORMAL, 0, 0, 20, true },
        { "pairs, skewed", 0, 0.03, SKEWED, 0, 0, 6, true },
        { "pairs, skewed", 0, 0.03, SKEWED, 0, 0, 20, true },
        { "pairs, very skewed", 0, 0.1, VERY_SKEWED, 0, 0, 10, true },
        { "pairs, drifting 5 % a minute", 0, 0.03, NORMAL, 0.05, 0, 6, true },
        { "pairs, drifting 5 % a minute", 0, 0.03, NORMAL, 0.05, 0, 20, true },
        { "pairs, first run slow", 0, 0.03, NORMAL, 0, 0.5, 6, true },
        { "pairs, first run slow", 0, 0.03, NORMAL, 0, 0.5, 20, true },
        { "pairs, all of it", 0, 0.03, SKEWED, 0.05, 0.5, 20, true },
        { "files", 0, 0.03, NORMAL, 0, 0, 6, false },
        { "files", 0, 0.03, NORMAL, 0, 0, 20, false },
        { "files, skewed", 0, 0.03, SKEWED, 0, 0, 6, false },
        { "files, skewed", 0, 0.03, SKEWED, 0, 0, 20, false },
        { "files, first run slow", 0, 0.03, NORMAL, 0, 0.5, 10, false },
    };
    size_t count = trials();
    (void)state;

    seed();
    print_message("  %-32s %5s %10s\n", "A against A", "runs", "claims");
    for (size_t i = 0; i < ARRAY_LEN(equal); i++) {
        const struct counts found = simulate(&equal[i], count);
        print_message("  %-32s %5zu %8.1f %%\n", equal[i].what, equal[i].runs,
                      100 * found.claims);
        assert_true(found.claims <= 0.05 + chance(0.05, count));
    }
}

static void test_differences(void **state)
{
    static const struct {
        struct simulation of;
        double found, held; /* at least */
    } rows[] = {
        { { "2 % of 1.5 % noise, pairs", 0.02, 0.015, NORMAL, 0, 0, 20, true },
          0.90,
          0.95 },
        { { "the same, drifting", 0.02, 0.015, NORMAL, 0.05, 0, 20, true }, 0.90, 0.95 },
        { { "the same, skewed", 0.02, 0.015, SKEWED, 0.05, 0, 20, true }, 0.88, 0.95 },
        { { "12 % of 3 % noise, pairs", 0.12, 0.03, SKEWED, 0.05, 0, 6, true }, 0.8, 0.95 },
        { { "2 % of 1.5 % noise, files", 0.02, 0.015, NORMAL, 0, 0, 20, false },
          0.90,
          0.95 },
    };
    size_t count = trials();
    (void)state;

    seed();
    print_message("  %-32s %5s %10s %10s\n", "A against B", "runs", "found", "holds");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct counts found = simulate(&rows[i].of, count);
        print_message("  %-32s %5zu %8.1f %% %8.1f %%\n", rows[i].of.what, rows[i].of.runs,
                      100 * found.found, 100 * found.held);
        assert_true(found.found >= rows[i].found - chance(rows[i].found, count));
        assert_true(found.held >= rows[i].held - chance(rows[i].held, count));
    }
}

static void test_location(void **state)
{
    static const struct {
        const char *what;
        enum noise noise;
        double median;
        size_t runs;
    } rows[] = {
        { "normal", NORMAL, 0, 6 },           { "normal", NORMAL, 0, 20 },
        { "skewed", SKEWED, M_LN2 - 1, 6 },   { "skewed", SKEWED, M_LN2 - 1, 20 },
        { "very skewed", VERY_SKEWED, 0, 6 }, { "very skewed", VERY_SKEWED, 0, 20 },
    };
    double values[MOST_RUNS], low, high;
    size_t count = 4 * trials();
    (void)state;

    seed();
    print_message("  %-32s %5s %10s\n", "median", "runs", "holds");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        double held = 0;
        for (size_t trial = 0; trial < count; trial++) {
            for (size_t run = 0; run < rows[i].runs; run++)
                values[run] = draw(rows[i].noise);
            wm_runs_sum_up(values, rows[i].runs);
            assert_true(
                wm_runs_interval(values, rows[i].runs, WM_RUNS_OUTSIDE, &low, &high));
            held += low <= rows[i].median && rows[i].median <= high;
        }
        held /= (double)count;
        print_message("  %-32s %5zu %8.1f %%\n", rows[i].what, rows[i].runs, 100 * held);
        assert_true(held >= 0.95 - chance(0.95, count));
    }
}

UNIT(analyze_runs)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_student),     cmocka_unit_test(test_interval),
        cmocka_unit_test(test_ratios),      cmocka_unit_test(test_outliers),
        cmocka_unit_test(test_location),    cmocka_unit_test(test_claims),
        cmocka_unit_test(test_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
