/* SPDX-License-Identifier: Apache-2.0 */
/* test_rapl_total.c - registers that run over, are set back, jump and die, at times
 * that the test chooses. */
#include "test.h"

#include <math.h>
#include <string.h>

#include "analyze/energy/analyze_energy.h"
#include "source/cpu/source_rapl_total.h"

#define MAX_STEPS 12
#define RANGE UINT64_C(262143328850) /* of Intel's packages, in microjoules */

#define FIRST_J 1e-6 /* what a total begins with */

/* Where the step is lost, `joules` is of before; it begins again with the next good
 * one. */
struct step {
    double when_s;
    uint64_t value;
    double joules;   /* since the total began */
    const char *why; /* NULL: the reading is good */
};

struct row {
    const char *what;
    uint64_t range;
    bool may_rest;
    struct step steps[MAX_STEPS]; /* up to one with no time but the first */
};

static void check_row(const struct row *row)
{
    struct wm_rapl_total total = {
        .unit_j = 1e-6,
        .range = row->range,
        .most_watts = 1000,
        .most_s = row->range ? (double)row->range / 1e9 : 65,
        .may_rest = row->may_rest,
    };
    double before = 0;
    bool is_lost = false;

    for (size_t i = 0; i < MAX_STEPS && (i == 0 || row->steps[i].when_s > 0); i++) {
        const struct step *step = &row->steps[i];
        struct wm_error err = { 0 };

        int status = wm_rapl_total_add(&total, step->value,
                                       1000 + (int64_t)llround(step->when_s * 1e9), &err);
        double joules = wm_rapl_total_joules(&total);
        if (fabs(joules - FIRST_J - step->joules) > 1e-9 * fmax(1, step->joules))
            fail_msg("step %zu: %.9f J, not %.9f", i, joules, step->joules);
        if (is_lost && status == WM_OK)
            assert_true(joules < before);
        else
            assert_true(joules >= before);
        before = joules;
        is_lost = step->why ? is_lost || !strstr(step->why, "not move") : false;
        assert_int_equal(status, step->why ? WM_EIO : WM_OK);
        if (step->why && !strstr(err.text, step->why))
            fail_msg("step %zu: '%s'", i, err.text);
    }
}

static void test_rows(void **state)
{
    static const struct row rows[] = {
        { "it starts at 0 wherever it stands",
          RANGE,
          false,
          { { 0, 123456789, 0, NULL }, { 0.1, 124456789, 1, NULL } } },
        { "the first step counts, and each microjoule",
          RANGE,
          false,
          { { 0, 5, 0, NULL }, { 0.001, 6, 1e-6, NULL }, { 0.002, 9, 4e-6, NULL } } },
        { "nothing new is no failure",
          RANGE,
          false,
          { { 0, 7, 0, NULL },
            { 0.0002, 7, 0, NULL },
            { 0.0004, 7, 0, NULL },
            { 0.001, 100007, 0.1, NULL } } },
        { "it runs over: the highest value is followed by 0",
          RANGE,
          false,
          { { 0, RANGE - 9, 0, NULL }, { 0.1, 990, 1000e-6, NULL } } },
        { "from the highest value to 0 is one unit",
          RANGE,
          false,
          { { 0, RANGE, 0, NULL }, { 0.1, 0, 1e-6, NULL } } },
        { "it runs over again and again, looked at often enough",
          10000000,
          false,
          { { 0, 9000000, 0, NULL },
            { 0.009, 4000000, 5.000001, NULL },
            { 0.010, 9000000, 10.000001, NULL },
            { 0.011, 4000000, 15.000002, NULL } } },
        { "a step that may hide a second time",
          RANGE,
          false,
          { { 0, 1000000, 0, NULL },
            { 300, 90000000000, 0, "not read for 300 s" },
            { 301, 90100000000, 0, NULL },
            { 302, 90200000000, 100, NULL } } },
        { "the same, though it seems to have run over once",
          RANGE,
          false,
          { { 0, 90000000000, 0, NULL },
            { 263, 1000000, 0, "more than once" },
            { 264, 2000000, 0, NULL },
            { 265, 3000000, 1, NULL } } },
        { "long, but not too long",
          RANGE,
          false,
          { { 0, 1000000, 0, NULL }, { 260, 100001000000, 100000, NULL } } },
        { "set back: no negative joules, and not nearly a whole range of them",
          RANGE,
          false,
          { { 0, 5000000000, 0, NULL },
            { 0.1, 5010000000, 10, NULL },
            { 0.2, 3000000, 10, "set back from 5010 J to 3 J" },
            { 0.3, 13000000, 0, NULL },
            { 0.4, 23000000, 10, NULL } } },
        { "set back to 0",
          RANGE,
          false,
          { { 0, 5000000000, 0, NULL },
            { 0.1, 0, 0, "set back" },
            { 0.2, 10000000, 0, NULL },
            { 0.3, 20000000, 10, NULL } } },
        { "a jump that no package makes",
          RANGE,
          false,
          { { 0, 0, 0, NULL },
            { 0.1, 200000000000, 0, "jumped by 200000 J in 0.1 s" },
            { 0.2, 200010000000, 0, NULL },
            { 0.3, 200020000000, 10, NULL } } },
        { "a late renewal is no jump",
          RANGE,
          false,
          { { 0, 0, 0, NULL }, { 0.001, 50000000, 50, NULL } } },
        { "range unknown: as long as it rises all is well",
          0,
          false,
          { { 0, 5, 0, NULL },
            { 0.1, 1000005, 1, NULL },
            { 0.2, 3, 1, "it is not known whether it ran over" },
            { 0.3, 1000003, 0, NULL },
            { 0.4, 2000003, 1, NULL } } },
        { "range unknown: not left alone for long",
          0,
          false,
          { { 0, 5, 0, NULL },
            { 66, 1000005, 0, "not read for 66 s" },
            { 67, 2000005, 0, NULL },
            { 68, 3000005, 1, NULL } } },
        { "a range that is a lie",
          10000000,
          false,
          { { 0, 50000000, 0, NULL },
            { 0.009, 51000000, 1, NULL },
            { 0.010, 100, 1, "not known" },
            { 0.011, 200, 0, NULL },
            { 0.012, 300, 0.0001, NULL } } },
        { "the end of all numbers",
          UINT64_MAX,
          false,
          { { 0, UINT64_MAX - 1, 0, NULL },
            { 0.1, 4, 6e-6, NULL },
            { 0.2, 3, 6e-6, "set back" },
            { 0.3, UINT64_MAX, 6e-6, "jumped" } } },
        { "dead from the start: said after a second, alive when it moves",
          RANGE,
          false,
          { { 0, 0, 0, NULL },
            { 0.5, 0, 0, NULL },
            { 0.9, 0, 0, NULL },
            { 1.0, 0, 0, NULL },
            { 1.1, 0, 0, NULL },
            { 1.2, 0, 0, "does not move: dead (virtual machine?)" },
            { 1.3, 0, 0, "does not move" },
            { 1.4, 1000000, 1, NULL },
            { 1.5, 1000000, 1, NULL } } },
        { "few looks prove nothing",
          RANGE,
          false,
          { { 0, 7, 0, NULL },
            { 10, 7, 0, NULL },
            { 20, 7, 0, NULL },
            { 30, 7, 0, NULL },
            { 40, 7, 0, NULL },
            { 50, 7, 0, "dead" } } },
        { "an idle graphics unit may rest",
          RANGE,
          true,
          { { 0, 7, 0, NULL },
            { 1, 7, 0, NULL },
            { 2, 7, 0, NULL },
            { 3, 7, 0, NULL },
            { 4, 7, 0, NULL },
            { 5, 7, 0, NULL },
            { 6, 1000007, 1, NULL } } },
        { "lost again and again, with nothing counted between",
          RANGE,
          false,
          { { 0, 5000000000, 0, NULL },
            { 0.1, 4000000000, 0, "set back" },
            { 0.2, 4000000000, 0, NULL },
            { 0.3, 3000000000, 0, "set back" },
            { 0.4, 2000000000, 0, "set back" },
            { 0.5, 2001000000, 0, NULL },
            { 0.6, 1000000000, 0, "set back" },
            { 0.7, 1001000000, 0, NULL } } },
        { "always too late: nothing can be told",
          RANGE,
          false,
          { { 0, 1000000, 0, NULL },
            { 300, 2000000, 0, "not read for 300 s" },
            { 600, 3000000, 0, "not read for 300 s" },
            { 900, 4000000, 0, "not read for 300 s" } } },
        { "lost, and then dead",
          RANGE,
          false,
          { { 0, 5000000000, 0, NULL },
            { 1, 5010000000, 10, NULL },
            { 2, 7, 10, "set back" },
            { 2.1, 7, 0, NULL },
            { 2.2, 7, 0, NULL },
            { 2.3, 7, 0, NULL },
            { 2.4, 7, 0, NULL },
            { 9, 7, 0, "does not move" },
            { 9.1, 1000007, 1, NULL } } },
        { "a clock that stood still",
          RANGE,
          false,
          { { 0, 0, 0, NULL }, { 1e-9, 1000000, 1, NULL } } },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        print_message("  %s\n", rows[i].what);
        check_row(&rows[i]);
    }
}

/* perf counts in 2^-32 J, so that 64 bits last for 4.3 GJ: 50 days of a kilowatt. */
static void test_very_long_run(void **state)
{
    const double step_j = 60000;
    struct wm_rapl_total total = {
        .unit_j = 0x1p-32, .range = UINT64_MAX, .most_watts = 1000, .most_s = 65
    };
    uint64_t value = 0;
    (void)state;

    for (int64_t i = 0; i <= 200000; i++, value += (uint64_t)60000 << 32) {
        assert_int_equal(wm_rapl_total_add(&total, value, i * 60 * 1000000000, NULL),
                         WM_OK);
    }
    assert_true(fabs(wm_rapl_total_joules(&total) - 200000 * step_j) < 1);
}

/* What the totals are made for: the lost step is missing in the sum of a run, and
 * not taken for nothing. */
static void test_sum(void **state)
{
    static const struct {
        const char *what;
        struct step steps[6]; /* a second apart; `joules` is not looked at */
        double joules, missing_s;
        unsigned resets;
    } rows[] = {
        { "nothing lost", { { 0, 0, 0, NULL }, { 1, 5000000, 0, NULL } }, 5, 0, 0 },
        { "before anything was counted",
          { { 0, 5000000000, 0, NULL },
            { 1, 1000000000, 0, "set back" },
            { 2, 1010000000, 0, NULL },
            { 3, 1020000000, 0, NULL } },
          10,
          2,
          1 },
        { "after little, and then much",
          { { 0, 5000000000, 0, NULL },
            { 1, 5001000000, 0, NULL },
            { 2, 1000000000, 0, "set back" },
            { 3, 1100000000, 0, NULL },
            { 4, 1200000000, 0, NULL } },
          101,
          2,
          1 },
        { "a jump",
          { { 0, 0, 0, NULL },
            { 1, 1000000, 0, NULL },
            { 2, 100000000000, 0, "jumped" },
            { 3, 100500000000, 0, NULL },
            { 4, 100900000000, 0, NULL } },
          401,
          2,
          1 },
    };
    (void)state;

    for (size_t r = 0; r < ARRAY_LEN(rows); r++) {
        struct wm_rapl_total total = {
            .unit_j = 1e-6, .range = RANGE, .most_watts = 1000, .most_s = 262
        };
        struct wm_energy energy = { 0 };
        struct wm_energy_result result;

        print_message("  %s\n", rows[r].what);
        for (size_t i = 0; i == 0 || rows[r].steps[i].when_s > 0; i++) {
            struct wm_reading reading = { .when_ns = (int64_t)i * 1000000000 + 1 };
            int status =
                wm_rapl_total_add(&total, rows[r].steps[i].value, reading.when_ns, NULL);
            assert_int_equal(status, rows[r].steps[i].why ? WM_EIO : WM_OK);
            reading.state = status == WM_OK ? WM_READING_OK : WM_READING_FAILED;
            reading.value = wm_rapl_total_joules(&total);
            wm_energy_add(&energy, reading.when_ns, &reading, NULL);
        }
        wm_energy_result(&energy, &result);
        if (fabs(result.joules - rows[r].joules) > 1e-4 ||
            fabs(result.missing_s - rows[r].missing_s) > 0.01)
            fail_msg("%.6f J without %.3f s", result.joules, result.missing_s);
        assert_int_equal(result.resets, rows[r].resets);
    }
}

UNIT(rapl_total)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_very_long_run),
        cmocka_unit_test(test_sum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
