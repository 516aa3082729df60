/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_analyze_blocks.c - timepoints inside calls: cases computed by hand, and many random
 * ones beside an oracle that looks at each pair of a timepoint and a call.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/region/analyze_blocks.h"
#include "test.h"

enum { MOST_CALLS = 40, MOST_TIMEPOINTS = 60 };

#define BROKEN_OFF NAN

struct made_call {
    const char *name;
    int64_t start_ns, stop_ns;
    double seconds; /* 0: what lies between the two */
};

struct made_timepoint {
    int64_t when_ns;
    double value; /* of main_ram; the others follow from it */
};

struct made {
    struct made_call calls[MOST_CALLS];
    size_t call_count;
    struct made_timepoint timepoints[MOST_TIMEPOINTS];
    size_t timepoint_count;
};

/* An event of the stream; at equal times in the order of the kinds. */
struct event {
    int64_t when_ns;
    enum { OPENS, TIMEPOINT, CLOSES } kind;
    size_t index;
};

static int in_order(const void *one, const void *other)
{
    const struct event *a = one, *b = other;

    if (a->when_ns != b->when_ns)
        return a->when_ns < b->when_ns ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static double seconds_of(const struct made_call *call)
{
    return call->seconds != 0 ? call->seconds
                              : (double)(call->stop_ns - call->start_ns) / 1e9;
}

static struct wm_timepoint timepoint_of(const struct made_timepoint *made)
{
    struct wm_timepoint timepoint = { .when_ns = made->when_ns };

    for (size_t i = 0; i < WM_MEASUREMENT_COUNT && !isnan(made->value); i++)
        timepoint.values[i] = made->value * (double)(i + 1);
    timepoint.known = isnan(made->value) ? 0 : WM_ALL_MEASUREMENTS;
    return timepoint;
}

/* Blocks with names, as an analysis has them. */
enum { MOST_BLOCKS = 20 };
struct named {
    struct wm_blocks all;
    struct wm_block blocks[MOST_BLOCKS];
    const char *names[MOST_BLOCKS];
    size_t open[MOST_BLOCKS]; /* calls of each */
    size_t count;
};

static size_t find(struct named *named, const char *name)
{
    size_t at = 0;

    while (at < named->count && strcmp(named->names[at], name) != 0)
        at++;
    assert_true(at < MOST_BLOCKS);
    if (at == named->count)
        named->names[named->count++] = name;
    return at;
}

static const struct wm_block *block_of(struct named *named, const char *name)
{
    wm_blocks_settle(&named->all);
    return &named->blocks[find(named, name)];
}

static void open_call(struct named *named, size_t at)
{
    assert_int_equal(wm_blocks_reserve(&named->all), WM_OK);
    if (named->open[at]++ == 0)
        wm_blocks_open(&named->all, &named->blocks[at]);
}

static void close_call(struct named *named, size_t at, double seconds, bool has_timepoint)
{
    if (isnan(seconds))
        named->blocks[at].unfinished++;
    else
        wm_block_add_call(&named->blocks[at], seconds, has_timepoint);
    if (--named->open[at] == 0)
        wm_blocks_close(&named->all, &named->blocks[at]);
}

/* The caller's. */
static struct named *feed(const struct made *made)
{
    struct event events[2 * MOST_CALLS + MOST_TIMEPOINTS];
    uint64_t before[MOST_CALLS];
    struct named *named = calloc(1, sizeof(*named));
    size_t count = 0;

    for (size_t i = 0; i < made->call_count; i++) {
        events[count++] = (struct event) { made->calls[i].start_ns, OPENS, i };
        events[count++] = (struct event) { made->calls[i].stop_ns, CLOSES, i };
    }
    for (size_t i = 0; i < made->timepoint_count; i++)
        events[count++] = (struct event) { made->timepoints[i].when_ns, TIMEPOINT, i };
    qsort(events, count, sizeof(events[0]), in_order);

    assert_non_null(named);
    assert_int_equal(wm_blocks_reserve(&named->all), WM_OK);
    for (size_t i = 0; i < count; i++) {
        size_t index = events[i].index;
        const struct made_call *call =
            events[i].kind == TIMEPOINT ? NULL : &made->calls[index];
        if (events[i].kind == OPENS) {
            before[index] = named->all.timepoints;
            open_call(named, find(named, call->name));
        } else if (events[i].kind == CLOSES) {
            close_call(named, find(named, call->name), seconds_of(call),
                       named->all.timepoints != before[index]);
        } else {
            struct wm_timepoint timepoint = timepoint_of(&made->timepoints[index]);
            wm_blocks_timepoint(&named->all, &timepoint);
        }
    }
    return named;
}

static void forget(struct named *named)
{
    wm_blocks_release(&named->all);
    free(named);
}

/* The block "a" of each case; `mean` and `std` of main_ram. */
static const struct hand_case {
    const char *name;
    struct made made;
    uint64_t calls, unfinished, nonempty, timepoints;
    double time_total, min, max, mean, std;
} hand_cases[] = {
    { "one call, both ends are inclusive",
      { { { "a", 10, 20, 0 } },
        1,
        { { 9, 1 }, { 10, 2 }, { 15, 4 }, { 20, 6 }, { 21, 7 } },
        5 },
      1,
      0,
      1,
      3,
      10e-9,
      2,
      6,
      4,
      2 },
    { "a call of no length at the time of a timepoint",
      { { { "a", 10, 10, 0 } }, 1, { { 9, 1 }, { 10, 2 }, { 11, 3 } }, 3 },
      1,
      0,
      1,
      1,
      0,
      2,
      2,
      2,
      NAN },
    { "one call ends where the next begins: the timepoint there counts once, for both",
      { { { "a", 10, 20, 0 }, { "a", 20, 30, 0 } }, 2, { { 20, 5 } }, 1 },
      2,
      0,
      2,
      1,
      20e-9,
      5,
      5,
      5,
      NAN },
    { "calls that overlap: the union",
      { { { "a", 10, 30, 0 }, { "a", 20, 40, 0 } },
        2,
        { { 15, 1 }, { 25, 2 }, { 35, 3 }, { 45, 9 } },
        4 },
      2,
      0,
      2,
      3,
      40e-9,
      1,
      3,
      2,
      1 },
    { "recursion: the inner call adds time, no timepoint",
      { { { "a", 10, 40, 0 }, { "a", 20, 30, 0 } }, 2, { { 25, 1 }, { 35, 3 } }, 2 },
      2,
      0,
      2,
      2,
      40e-9,
      1,
      3,
      2,
      M_SQRT2 },
    { "another block meanwhile changes nothing",
      { { { "a", 10, 40, 0 }, { "b", 5, 20, 0 }, { "b", 30, 35, 0 } },
        3,
        { { 7, 100 }, { 12, 2 }, { 33, 4 }, { 38, 6 } },
        4 },
      1,
      0,
      1,
      3,
      30e-9,
      2,
      6,
      4,
      2 },
    { "a call without a timepoint beside one with",
      { { { "a", 10, 12, 0 }, { "a", 20, 30, 0 } }, 2, { { 25, 3 } }, 1 },
      2,
      0,
      1,
      1,
      12e-9,
      3,
      3,
      3,
      NAN },
    { "no timepoint at all",
      { { { "a", 10, 12, 0 } }, 1, { { 0, 0 } }, 0 },
      1,
      0,
      0,
      0,
      2e-9,
      NAN,
      NAN,
      NAN,
      NAN },
    { "a call that broke off: its timepoints count, its time does not",
      { { { "a", 10, 20, 0 }, { "a", 30, 50, BROKEN_OFF } },
        2,
        { { 15, 1 }, { 40, 3 } },
        2 },
      1,
      1,
      1,
      2,
      10e-9,
      1,
      3,
      2,
      M_SQRT2 },
    { "nothing but a call that broke off",
      { { { "a", 30, 50, BROKEN_OFF } }, 1, { { 40, 3 } }, 1 },
      0,
      1,
      0,
      1,
      0,
      3,
      3,
      3,
      NAN },
    { "values that are not known are left out, their timepoints count",
      { { { "a", 10, 50, 0 } }, 1, { { 20, NAN }, { 30, 4 }, { 40, NAN }, { 50, 6 } }, 4 },
      1,
      0,
      1,
      4,
      40e-9,
      4,
      6,
      5,
      M_SQRT2 },
    { "two timepoints at one time count twice",
      { { { "a", 10, 20, 0 } }, 1, { { 10, 1 }, { 10, 3 } }, 2 },
      1,
      0,
      1,
      2,
      10e-9,
      1,
      3,
      2,
      M_SQRT2 },
    { "the time is what the file says, not what lies between",
      { { { "a", 10, 20, 2.5 } }, 1, { { 10, 1 } }, 1 },
      1,
      0,
      1,
      1,
      2.5,
      1,
      1,
      1,
      NAN },
    { "negative values and times before 1970",
      { { { "a", -20, -10, 0 } }, 1, { { -20, -1 }, { -10, -3 }, { 0, 8 } }, 3 },
      1,
      0,
      1,
      2,
      10e-9,
      -3,
      -1,
      -2,
      M_SQRT2 },
};

static void assert_near(double value, double expected)
{
    if (isnan(expected))
        assert_true(isnan(value));
    else if (!(fabs(value - expected) <= 1e-9 * fmax(fabs(expected), 1e-3)))
        fail_msg("%.17g is not %.17g", value, expected);
}

static double number_of(const struct wm_block_figures *figures, enum wm_block_figure which)
{
    return figures->of[which].known ? figures->of[which].number : NAN;
}

static void assert_stats(const struct wm_block_stats *stats, double min, double max,
                         double mean, double std)
{
    const struct wm_block_figures figures = wm_block_figures_of(stats);

    assert_near(number_of(&figures, WM_BLOCK_MIN), isnan(mean) ? NAN : min);
    assert_near(number_of(&figures, WM_BLOCK_MAX), isnan(mean) ? NAN : max);
    assert_near(number_of(&figures, WM_BLOCK_MEAN), mean);
    assert_near(number_of(&figures, WM_BLOCK_STD), std);
}

static void test_by_hand(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(hand_cases); i++) {
        const struct hand_case *c = &hand_cases[i];
        struct named *blocks = feed(&c->made);
        const struct wm_block *block = block_of(blocks, "a");

        print_message("  %s\n", c->name);
        assert_int_equal(block->calls, c->calls);
        assert_int_equal(block->unfinished, c->unfinished);
        assert_int_equal(block->nonempty_calls, c->nonempty);
        assert_int_equal(block->timepoints, c->timepoints);
        assert_near(block->time.sum, c->time_total);
        assert_stats(&block->usage[WM_MAIN_RAM], c->min, c->max, c->mean, c->std);
        assert_stats(&block->usage[WM_DESCENDANTS_RAM], 2 * c->min, 2 * c->max, 2 * c->mean,
                     2 * c->std);
        forget(blocks);
    }
}

/* By powers of two of a microsecond. */
static void test_histogram(void **state)
{
    static const struct {
        double seconds;
        size_t bucket;
    } rows[] = {
        { -1, 0 },       { 0, 0 },       { 1e-9, 0 },      { 1e-6, 0 },  { 1.01e-6, 1 },
        { 2e-6, 1 },     { 2.01e-6, 2 }, { 4e-6, 2 },      { 1e-3, 10 }, { 1.024e-3, 10 },
        { 1.03e-3, 11 }, { 1, 20 },      { 1.048576, 20 }, { 1.05, 21 }, { 3600, 32 },
        { 1e6, 39 },     { 1e300, 39 },  { INFINITY, 39 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct made made = { { { "a", 1, 2, 0 } }, 1, { { 0, 0 } }, 0 };
        struct named *blocks = feed(&made);
        open_call(blocks, 0);
        close_call(blocks, 0, rows[i].seconds, false);
        const struct wm_block *block = &blocks->blocks[0];
        uint64_t expected = rows[i].bucket == 0 ? 2 : 1; /* the call of `made` is there */
        if (block->histogram[rows[i].bucket] != expected)
            fail_msg("%g s is not in bucket %zu", rows[i].seconds, rows[i].bucket);
        forget(blocks);
    }
}

static void test_stats(void **state)
{
    struct wm_block_stats stats = { 0 };

    (void)state;
    assert_stats(&stats, NAN, NAN, NAN, NAN);
    assert_true(wm_block_stats_sum(&stats) == 0);
    wm_block_stats_add(&stats, 0.1);
    assert_stats(&stats, 0.1, 0.1, 0.1, NAN);
    for (int i = 0; i < 1000; i++)
        wm_block_stats_add(&stats, 0.1);
    assert_true(stats.mean == 0.1);
    assert_true(wm_block_figures_of(&stats).of[WM_BLOCK_STD].number == 0);

    /* What each addition loses adds up to the right sum. */
    stats = (struct wm_block_stats) { 0 };
    wm_block_stats_add(&stats, 1e16);
    for (int i = 0; i < 1000; i++)
        wm_block_stats_add(&stats, 1);
    assert_true(wm_block_stats_sum(&stats) == 1e16 + 1000);

    /* Far from zero, where sums of squares would lose everything. */
    stats = (struct wm_block_stats) { 0 };
    for (int i = 0; i < 1000; i++)
        wm_block_stats_add(&stats, 1e9 + (i % 2));
    assert_near(stats.mean, 1e9 + 0.5);
    double std = wm_block_figures_of(&stats).of[WM_BLOCK_STD].number;
    assert_true(fabs(std - 0.5 * sqrt(1000.0 / 999)) < 1e-6);
}

/* As the definition has it: each timepoint against each call. */
static void assert_as_defined(const struct made *made, struct named *blocks,
                              const char *name)
{
    const struct wm_block *block = block_of(blocks, name);
    double values[MOST_TIMEPOINTS], sum = 0, squares = 0, min = NAN, max = NAN;
    uint64_t calls = 0, unfinished = 0, nonempty = 0, timepoints = 0;
    double time = 0;
    size_t count = 0;

    for (size_t t = 0; t < made->timepoint_count; t++) {
        bool inside = false;
        for (size_t i = 0; i < made->call_count; i++)
            inside = inside || (strcmp(made->calls[i].name, name) == 0 &&
                                made->calls[i].start_ns <= made->timepoints[t].when_ns &&
                                made->timepoints[t].when_ns <= made->calls[i].stop_ns);
        timepoints += inside;
        if (inside && !isnan(made->timepoints[t].value))
            values[count++] = made->timepoints[t].value;
    }
    for (size_t i = 0; i < made->call_count; i++) {
        const struct made_call *call = &made->calls[i];
        bool has = false;
        if (strcmp(call->name, name) != 0)
            continue;
        for (size_t t = 0; t < made->timepoint_count; t++)
            has = has || (call->start_ns <= made->timepoints[t].when_ns &&
                          made->timepoints[t].when_ns <= call->stop_ns);
        if (isnan(call->seconds)) {
            unfinished++;
            continue;
        }
        calls++;
        nonempty += has;
        time += seconds_of(call);
    }
    for (size_t i = 0; i < count; i++) {
        sum += values[i];
        min = fmin(min, values[i]);
        max = fmax(max, values[i]);
    }
    for (size_t i = 0; i < count; i++)
        squares += pow(values[i] - sum / (double)count, 2);

    assert_int_equal(block->calls, calls);
    assert_int_equal(block->unfinished, unfinished);
    assert_int_equal(block->nonempty_calls, nonempty);
    assert_int_equal(block->timepoints, timepoints);
    assert_near(block->time.sum, time);
    assert_int_equal(block->usage[WM_MAIN_RAM].count, count);
    assert_stats(&block->usage[WM_MAIN_RAM], min, max,
                 count > 0 ? sum / (double)count : NAN,
                 count > 1 ? sqrt(squares / (double)(count - 1)) : NAN);
}

static void test_random(void **state)
{
    static const char *const names[] = { "a", "b", "c", "a:b", "",  "d", "e", "f",
                                         "g", "h", "i", "j",   "k", "l", "m", "n" };

    (void)state;
    srandom(20260);
    for (int round = 0; round < 3000; round++) {
        struct made made = { .call_count = (size_t)random() % MOST_CALLS,
                             .timepoint_count = (size_t)random() % MOST_TIMEPOINTS };
        /* Short spans, so that times are often equal. */
        long span = 5 + random() % 100;
        for (size_t i = 0; i < made.call_count; i++) {
            struct made_call *call = &made.calls[i];
            call->name = names[(size_t)random() % ARRAY_LEN(names)];
            call->start_ns = random() % span;
            call->stop_ns = call->start_ns + random() % (random() % 4 ? 10 : span);
            call->seconds = random() % 10 ? 0 : BROKEN_OFF;
        }
        for (size_t i = 0; i < made.timepoint_count; i++) {
            made.timepoints[i].when_ns = random() % span;
            made.timepoints[i].value =
                random() % 8 ? (double)(random() % 2000) / 8 - 100 : NAN;
        }

        struct named *blocks = feed(&made);
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
            assert_as_defined(&made, blocks, names[i]);
        assert_int_equal(blocks->all.timepoints, made.timepoint_count);
        forget(blocks);
    }
}

/* Each block stays open until two later ones have opened, and then some more. */
static void test_in_a_row(void **state)
{
    static const char *const names[] = { "a", "b", "c", "d", "e", "f" };
    struct made made = { .call_count = MOST_CALLS, .timepoint_count = MOST_TIMEPOINTS };

    (void)state;
    for (size_t i = 0; i < MOST_CALLS; i++) {
        int64_t start_ns = 3 * (int64_t)i;
        made.calls[i] = (struct made_call) { .name = names[i % ARRAY_LEN(names)],
                                             .start_ns = start_ns,
                                             .stop_ns = start_ns + 7 };
    }
    for (size_t i = 0; i < MOST_TIMEPOINTS; i++) {
        made.timepoints[i].when_ns = 2 * (int64_t)i + 1;
        made.timepoints[i].value = (double)(i * i % 17);
    }
    struct named *blocks = feed(&made);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_as_defined(&made, blocks, names[i]);
    forget(blocks);
}

/* What is asked for in between is true then, and changes nothing later. */
static void test_asked_in_between(void **state)
{
    struct named *blocks = calloc(1, sizeof(*blocks));
    struct wm_timepoint timepoint = { .when_ns = 1, .known = 1 };

    (void)state;
    assert_non_null(blocks);
    open_call(blocks, find(blocks, "a"));
    for (uint64_t i = 1; i <= 5; i++) {
        timepoint.values[0] = (double)i;
        wm_blocks_timepoint(&blocks->all, &timepoint);
        assert_int_equal(block_of(blocks, "a")->timepoints, i);
        assert_int_equal(blocks->all.overall->count, i);
        assert_int_equal(blocks->all.timepoints, i);
    }
    close_call(blocks, 0, 9e-9, true);
    assert_stats(&block_of(blocks, "a")->usage[0], 1, 5, 3, sqrt(2.5));
    forget(blocks);
}

static int fill(struct wm_blocks *blocks, struct wm_block *list, size_t count)
{
    const struct wm_timepoint timepoint = { .known = WM_ALL_MEASUREMENTS };

    for (size_t i = 0; i < count; i++) {
        if (wm_blocks_reserve(blocks) < 0)
            return WM_ENOMEM;
        wm_blocks_open(blocks, &list[i]);
        wm_blocks_timepoint(blocks, &timepoint);
    }
    return WM_OK;
}

static void test_out_of_memory(void **state)
{
    static struct wm_block list[200];
    int status = WM_ENOMEM;

    (void)state;
    for (long nth = 0; status != WM_OK; nth++) {
        struct wm_blocks blocks = { 0 };
        memset(list, 0, sizeof(list));
        assert_true(nth < 1000);
        test_fail_allocation(nth);
        status = fill(&blocks, list, ARRAY_LEN(list));
        test_fail_allocation(-1);
        assert_true(status == WM_OK || status == WM_ENOMEM);
        wm_blocks_release(&blocks);
    }
}

/* Calls that were taken together come to what each by itself would. */
static void test_folded(void **state)
{
    static const uint32_t times_ns[] = { 0,    30,   999,   1000,   1001,
                                         1999, 2001, 64000, 511999, 512000 };
    struct wm_region_fold fold = { 0 };
    struct wm_block folded = { 0 }, single = { 0 };

    (void)state;
    wm_block_add_call(&folded, 0.25, true);
    wm_block_add_call(&single, 0.25, true);
    for (size_t i = 0; i < ARRAY_LEN(times_ns); i++) {
        struct wm_block one = { 0 };
        wm_block_add_call(&one, times_ns[i] / 1e9, false);
        wm_block_add_call(&single, times_ns[i] / 1e9, i == 0);
        fold.calls++;
        fold.sum_ns += times_ns[i];
        fold.squares += (uint64_t)times_ns[i] * times_ns[i];
        fold.max_ns = times_ns[i];
        for (int k = 0; k < WM_REGION_FOLD_BUCKETS; k++)
            fold.buckets[k] += (uint32_t)one.histogram[k];
    }
    wm_block_add_calls(&folded, &fold, true);
    assert_int_equal(folded.calls, single.calls);
    assert_int_equal(folded.nonempty_calls, single.nonempty_calls);
    assert_memory_equal(folded.histogram, single.histogram, sizeof(single.histogram));
    const struct wm_block_figures figures = wm_block_figures_of(&folded.time),
                                  expected = wm_block_figures_of(&single.time);
    for (int i = WM_BLOCK_MIN; i <= WM_BLOCK_STD; i++)
        assert_true(fabs(figures.of[i].number - expected.of[i].number) <=
                    1e-12 * fabs(expected.of[i].number));
}

UNIT(analyze_blocks)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),       cmocka_unit_test(test_histogram),
        cmocka_unit_test(test_stats),         cmocka_unit_test(test_random),
        cmocka_unit_test(test_in_a_row),      cmocka_unit_test(test_asked_in_between),
        cmocka_unit_test(test_out_of_memory), cmocka_unit_test(test_folded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
