/* SPDX-License-Identifier: Apache-2.0 */
/* test_analyze_repeat.c - the order of repeated commands, and what is claimed of them. */
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "analyze/experiment/analyze_repeat.h"

static struct wm_repeat *new_repeat(uint64_t seed, size_t commands)
{
    const struct wm_repeat_options options = { .seed = seed };
    const struct wm_repeat_command command = { .command = "true" };
    struct wm_repeat *repeat = NULL;

    assert_int_equal(wm_repeat_new(&options, &repeat, NULL), WM_OK);
    for (size_t i = 0; i < commands; i++)
        assert_int_equal(wm_repeat_add_command(repeat, &command, NULL), WM_OK);
    return repeat;
}

/* Gives the command a sample whose time, and nothing else, is known. */
static void add_time(struct wm_repeat *repeat, size_t command, double seconds)
{
    struct wm_repeat_one *one = &repeat->commands[command];

    one->samples = realloc(one->samples, (one->sample_count + 1) * sizeof(*one->samples));
    one->times = realloc(one->times, (one->time_count + 1) * sizeof(*one->times));
    assert_non_null(one->samples);
    assert_non_null(one->times);
    one->times[one->time_count++] = seconds;
    one->samples[one->sample_count++] = (struct wm_repeat_sample) {
        .values[WM_REPEAT_TIME] = { true, seconds },
        .runs = 1,
    };
}

/* Each command once in each round, and the second round of a block backwards. */
static void test_order(void **state)
{
    (void)state;

    for (uint64_t seed = 0; seed < 20; seed++) {
        size_t commands = 1 + seed % 5, forth[5], back[5];
        struct wm_repeat *repeat = new_repeat(seed, commands);
        for (size_t round = 0; round < 20; round += 2) {
            unsigned seen = 0;
            wm_repeat_order(repeat, round, forth);
            wm_repeat_order(repeat, round + 1, back);
            for (size_t i = 0; i < commands; i++) {
                assert_int_equal(forth[i], back[commands - 1 - i]);
                seen |= 1u << forth[i];
            }
            assert_int_equal(seen, (1u << commands) - 1);
        }
        wm_repeat_free(repeat);
    }
}

/* Of many blocks each of two commands is first in about half. */
static void test_order_is_fair(void **state)
{
    struct wm_repeat *repeat = new_repeat(1, 2);
    size_t order[2], first = 0;
    (void)state;

    for (size_t round = 0; round < 2000; round += 2) {
        wm_repeat_order(repeat, round, order);
        first += order[0] == 0;
    }
    assert_in_range(first, 400, 600);
    wm_repeat_free(repeat);
}

static void test_looks(void **state)
{
    static const size_t looks[] = { 6, 9, 14, 21, 32, 48, 72, 108, 162, 243, 0 };
    size_t rounds = 0;
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(looks); i++) {
        assert_int_equal(wm_repeat_next_look(rounds), looks[i]);
        rounds = looks[i];
    }
}

static void test_summary(void **state)
{
    static const double times[] = { 4, 1, 3, 2, 2, 6 };
    struct wm_repeat *repeat = new_repeat(1, 1);
    (void)state;

    assert_int_equal(wm_repeat_summary(&repeat->commands[0], WM_REPEAT_TIME).count, 0);
    for (size_t i = 0; i < ARRAY_LEN(times); i++)
        add_time(repeat, 0, times[i]);
    struct wm_repeat_summary sum = wm_repeat_summary(&repeat->commands[0], WM_REPEAT_TIME);
    assert_int_equal(sum.count, 6);
    assert_true(fabs(sum.mean - (3)) < 1e-12);
    assert_true(fabs(sum.std - (sqrt(16.0 / 5))) < 1e-12);
    assert_true(fabs(sum.median - (2.5)) < 1e-12);
    assert_true(sum.min == 1);
    assert_true(sum.max == 6);
    assert_true(sum.has_interval && sum.low < 3 && sum.high > 3);
    assert_int_equal(wm_repeat_summary(&repeat->commands[0], WM_REPEAT_ENERGY).count, 0);
    wm_repeat_free(repeat);
}

static void test_outliers(void **state)
{
    static const struct {
        const char *what;
        double times[7];
        size_t count;
        bool is_first;
    } cases[] = {
        { "none", { 10, 11, 10.5, 10.2, 10.7, 10.1, 10.9 }, 0, false },
        { "first", { 20, 11, 10.5, 10.2, 10.7, 10.1, 10.9 }, 1, true },
        { "first, but quick", { 1, 11, 10.5, 10.2, 10.7, 10.1, 10.9 }, 1, false },
        { "two", { 20, 11, 10.5, 10.2, 10.7, 30, 10.9 }, 2, true },
        { "all alike", { 1, 1, 1, 1, 1, 1, 2 }, 0, false },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_repeat *repeat = new_repeat(1, 1);
        print_message("  %s\n", cases[i].what);
        for (size_t t = 0; t < 7; t++)
            add_time(repeat, 0, cases[i].times[t]);
        struct wm_repeat_outliers outliers = wm_repeat_outliers(&repeat->commands[0]);
        assert_int_equal(outliers.count, cases[i].count);
        assert_int_equal(outliers.is_first, cases[i].is_first);
        wm_repeat_free(repeat);
    }
}

static double uniform(void)
{
    return ((double)rand() + 0.5) / ((double)RAND_MAX + 1);
}

static double normal(void)
{
    return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

/* `noise` is relative; the machine becomes slower by `drift` from the first to the last
 * run, and the sensor's gain is whatever it is. */
struct simulation {
    const char *what;
    double difference, noise, drift;
    bool is_skewed;
    size_t pairs;
};

static struct wm_repeat_ratio simulate(const struct simulation *simulation)
{
    struct wm_repeat *repeat = new_repeat((uint64_t)rand(), 2);
    double gain = 0.9 + 0.2 * uniform();
    size_t order[2];

    for (size_t round = 0; round < simulation->pairs; round++) {
        wm_repeat_order(repeat, round, order);
        for (size_t i = 0; i < 2; i++) {
            double done = (double)(2 * round + i) / (double)(2 * simulation->pairs);
            double noise = simulation->is_skewed ? -log(uniform()) - 1 : normal();
            double value =
                gain * (1 + simulation->drift * done) * (1 + simulation->noise * noise);
            add_time(repeat, order[i],
                     value * (order[i] == 1 ? 1 + simulation->difference : 1));
        }
    }
    struct wm_repeat_ratio ratio = wm_repeat_ratio(repeat, 1, WM_REPEAT_TIME);
    wm_repeat_free(repeat);
    return ratio;
}

/* How often a difference is claimed, and how often its interval holds the truth. */
static void count_claims(const struct simulation *simulation, size_t trials, size_t *claims,
                         size_t *held)
{
    *claims = *held = 0;
    for (size_t i = 0; i < trials; i++) {
        struct wm_repeat_ratio ratio = simulate(simulation);
        double truth = 1 + simulation->difference;
        *claims += ratio.verdict == WM_REPEAT_LESS || ratio.verdict == WM_REPEAT_MORE;
        *held += ratio.low <= truth && truth <= ratio.high;
    }
}

static void test_claims(void **state)
{
    static const struct simulation equal[] = {
        { "equal", 0, 0.03, 0, false, 6 },
        { "equal, skewed", 0, 0.03, 0, true, 6 },
        { "equal, drifting", 0, 0.03, 0.2, false, 20 },
        { "equal, skewed, drifting", 0, 0.03, 0.2, true, 20 },
    };
    static const struct simulation differs = {
        "2 % in 20 pairs", 0.02, 0.015, 0.05, false, 20
    };
    enum { TRIALS = 2000, OFF = 30 };
    unsigned seed = (unsigned)time(NULL);
    size_t claims, held;
    (void)state;

    print_message("  seed %u\n", seed);
    srand(seed);
    for (size_t i = 0; i < ARRAY_LEN(equal); i++) {
        count_claims(&equal[i], TRIALS, &claims, &held);
        print_message("  %s: %zu claims of %d, %zu hold\n", equal[i].what, claims, TRIALS,
                      held);
        assert_true(claims <= TRIALS / 20 + OFF);
        assert_true(held >= TRIALS * 19 / 20 - OFF);
    }
    count_claims(&differs, TRIALS, &claims, &held);
    print_message("  %s: %zu claims, %zu hold\n", differs.what, claims, held);
    assert_true(claims >= TRIALS * 85 / 100); /* 90 % as a rule */
    assert_true(held >= TRIALS * 19 / 20 - OFF);
}

static void test_too_few_pairs(void **state)
{
    struct wm_repeat *repeat = new_repeat(1, 2);
    (void)state;

    assert_int_equal(wm_repeat_ratio(repeat, 1, WM_REPEAT_TIME).verdict,
                     WM_REPEAT_NOT_TESTED);
    for (size_t i = 0; i < 5; i++) {
        add_time(repeat, 0, 1);
        add_time(repeat, 1, 2 + (double)i * 0.01);
    }
    struct wm_repeat_ratio ratio = wm_repeat_ratio(repeat, 1, WM_REPEAT_TIME);
    assert_int_equal(ratio.verdict, WM_REPEAT_NOT_TESTED);
    assert_true(ratio.ratio > 2 && ratio.ratio < 2.05);
    add_time(repeat, 0, 1);
    add_time(repeat, 1, 2);
    assert_int_equal(wm_repeat_ratio(repeat, 1, WM_REPEAT_TIME).verdict, WM_REPEAT_MORE);
    assert_int_equal(wm_repeat_ratio(repeat, 1, WM_REPEAT_ENERGY).verdict,
                     WM_REPEAT_NOT_TESTED);
    wm_repeat_free(repeat);
}

static void test_allocation_failure(void **state)
{
    static const char *const parameters[] = { "n", "1", NULL };
    const struct wm_repeat_options options = { 0 };
    const struct wm_repeat_command command = { "true", "name", parameters };
    (void)state;

    for (long nth = 0; nth < 100; nth++) {
        struct wm_repeat *repeat = NULL;
        test_fail_allocation(nth);
        int status = wm_repeat_new(&options, &repeat, NULL);
        if (status == WM_OK)
            status = wm_repeat_add_command(repeat, &command, NULL);
        test_fail_allocation(-1);
        wm_repeat_free(repeat);
        if (status == WM_OK) {
            assert_true(nth >= 6);
            return;
        }
        assert_int_equal(status, WM_ENOMEM);
    }
    fail_msg("it never worked");
}

UNIT(analyze_repeat)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),         cmocka_unit_test(test_order_is_fair),
        cmocka_unit_test(test_looks),         cmocka_unit_test(test_summary),
        cmocka_unit_test(test_outliers),      cmocka_unit_test(test_claims),
        cmocka_unit_test(test_too_few_pairs), cmocka_unit_test(test_allocation_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
