/* SPDX-License-Identifier: Apache-2.0 */
/* test_analyze_repeat.c - the order of repeated commands, and what they come to. */
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/compare/analyze_compare.h"
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

    assert_int_equal(wm_repeat_summary(&repeat->commands[0], WM_REPEAT_TIME).of.count, 0);
    for (size_t i = 0; i < ARRAY_LEN(times); i++)
        add_time(repeat, 0, times[i]);
    const struct wm_repeat_summary found =
        wm_repeat_summary(&repeat->commands[0], WM_REPEAT_TIME);
    const struct wm_runs sum = found.of;
    assert_int_equal(sum.count, 6);
    assert_true(fabs(sum.mean - (3)) < 1e-12);
    assert_true(fabs(sum.std - (sqrt(16.0 / 5))) < 1e-12);
    assert_true(fabs(sum.median - (2.5)) < 1e-12);
    assert_true(sum.min == 1);
    assert_true(sum.max == 6);
    assert_true(found.has_interval && found.low == 1 && found.high == 6);
    assert_int_equal(wm_repeat_summary(&repeat->commands[0], WM_REPEAT_ENERGY).of.count, 0);
    wm_repeat_free(repeat);
}

/* A headline that is unknown has its reason; any other figure is left out. */
static void test_unknown(void **state)
{
    static struct wm_report report;
    const struct wm_repeat_run run = { .report = &report };
    struct wm_repeat *repeat = new_repeat(1, 1);
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    (void)state;

    assert_non_null(out);
    report.compute_time = wm_value_known(1);
    report.ram_combined.total = wm_value_missing("it was not seen");
    report.gpu_energy.energy = wm_value_missing("no GPU");
    assert_int_equal(wm_repeat_add_run(repeat, 0, &run, NULL), WM_OK);
    assert_int_equal(wm_repeat_print(repeat, WM_FORMAT_TEXT, 0, out, NULL), WM_OK);
    fclose(out);
    assert_non_null(strstr(text, "\n   Memory        n/a (it was not seen)\n"));
    assert_null(strstr(text, "no GPU"));
    assert_null(strstr(text, "cycles")); /* not given to --events */
    free(text);
    wm_repeat_free(repeat);
}

static void test_too_few_pairs(void **state)
{
    struct wm_repeat *repeat = new_repeat(1, 2);
    (void)state;

    assert_int_equal(wm_repeat_ratio(repeat, 1, WM_REPEAT_TIME).verdict,
                     WM_RUNS_NOT_TESTED);
    for (size_t i = 0; i < 5; i++) {
        add_time(repeat, 0, 1);
        add_time(repeat, 1, 2 + (double)i * 0.01);
    }
    struct wm_runs_ratio ratio = wm_repeat_ratio(repeat, 1, WM_REPEAT_TIME);
    assert_int_equal(ratio.verdict, WM_RUNS_NOT_TESTED);
    assert_true(ratio.ratio > 2 && ratio.ratio < 2.05);
    add_time(repeat, 0, 1);
    add_time(repeat, 1, 2);
    assert_int_equal(wm_repeat_ratio(repeat, 1, WM_REPEAT_TIME).verdict, WM_RUNS_MORE);
    assert_int_equal(wm_repeat_ratio(repeat, 1, WM_REPEAT_ENERGY).verdict,
                     WM_RUNS_NOT_TESTED);
    wm_repeat_free(repeat);
}

enum { MOST_COMMANDS = 3, MOST_ROUNDS = 30 };

/* The reports of runs by `run --repeat`, as a recording has them. */
struct recorded {
    struct wm_report reports[MOST_COMMANDS][MOST_ROUNDS];
    struct wm_compare_run runs[MOST_COMMANDS][MOST_ROUNDS];
    struct wm_compare_session sessions[MOST_COMMANDS];
    char rounds[MOST_ROUNDS][8];
};

static double noisy(double value)
{
    return value * (0.97 + 0.06 * rand() / RAND_MAX);
}

static void record_run(struct recorded *made, size_t command, size_t round, size_t batch)
{
    struct wm_report *report = &made->reports[command][round];
    double more = 1 + 0.02 * (double)command;

    report->compute_time = wm_value_known((double)batch * noisy(more));
    report->cpu_total = wm_value_known((double)batch * noisy(0.5));
    report->energy.energy = wm_value_known((double)batch * noisy(30 / more));
    report->ram_combined.total = wm_value_known(1e6 * (double)(command + 1));
    report->result.run_seconds = (struct wm_known) { batch > 1, noisy(0.9 * more) };
    report->result.run_memory_bytes = (struct wm_known) { batch > 1, 2e6 };
    snprintf(made->rounds[round], sizeof(made->rounds[round]), "%zu", round);
    made->runs[command][round] =
        (struct wm_compare_run) { report, (double)batch, "7", made->rounds[round] };
}

/* Gives both the same runs of each command. */
static void make_recorded(struct recorded *made, struct wm_repeat *repeat, size_t rounds)
{
    for (size_t command = 0; command < repeat->count; command++) {
        size_t batch = command == 1 ? 3 : 1;
        for (size_t round = 0; round < rounds; round++) {
            struct wm_tracker_run each[3] = { 0 };
            const struct wm_repeat_run run = { .report = &made->reports[command][round],
                                               .batch = each,
                                               .batch_count = batch };
            record_run(made, command, round, batch);
            assert_int_equal(wm_repeat_add_run(repeat, command, &run, NULL), WM_OK);
        }
        made->sessions[command] = (struct wm_compare_session) { .name = "",
                                                                .runs = made->runs[command],
                                                                .count = rounds };
    }
}

static void same_ratio(const struct wm_runs_ratio *one, const struct wm_runs_ratio *other)
{
    assert_int_equal(one->verdict, other->verdict);
    assert_true(fabs(one->ratio - other->ratio) <= 1e-12 * other->ratio);
    assert_true(fabs(one->low - other->low) <= 1e-12 * other->low);
    assert_true(fabs(one->high - other->high) <= 1e-12 * other->high);
}

/* What `run --repeat` prints and what `compare` prints of its recording are the same. */
static void test_recorded(void **state)
{
    static struct recorded made;
    struct wm_compare_cell cells[MOST_COMMANDS];
    (void)state;

    for (size_t rounds = 1; rounds <= MOST_ROUNDS; rounds++) {
        struct wm_repeat *repeat = new_repeat(1, 2 + rounds % 2);
        struct wm_compare *compare = NULL;
        size_t compared = 0;
        memset(&made, 0, sizeof(made));
        make_recorded(&made, repeat, rounds);
        assert_int_equal(wm_compare_new(made.sessions, repeat->count, WM_BLOCK_MEAN, false,
                                        &compare, NULL),
                         WM_OK);
        for (enum wm_repeat_metric m = 0; m < WM_REPEAT_METRICS; m++) {
            if (!wm_repeat_is_compared(m))
                continue;
            wm_compare_cells(compare, WM_COMPARE_OVERALL,
                             wm_compare_item(wm_repeat_kind(m)->key), cells);
            for (size_t i = 1; i < repeat->count; i++, compared++) {
                const struct wm_runs_ratio ratio = wm_repeat_ratio(repeat, i, m);
                same_ratio(&cells[i].to, &ratio);
                assert_int_equal(ratio.verdict == WM_RUNS_NOT_TESTED, rounds < 6);
            }
        }
        assert_int_equal(compared, 4 * (repeat->count - 1));
        wm_compare_free(compare);
        wm_repeat_free(repeat);
    }
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
        cmocka_unit_test(test_order),    cmocka_unit_test(test_order_is_fair),
        cmocka_unit_test(test_looks),    cmocka_unit_test(test_summary),
        cmocka_unit_test(test_unknown),  cmocka_unit_test(test_too_few_pairs),
        cmocka_unit_test(test_recorded), cmocka_unit_test(test_allocation_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
