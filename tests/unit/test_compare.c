/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_compare.c - comparisons: which blocks belong together, units, which runs are repeats
 * and which are pairs, what counts as grown, gpu_tracker's documents byte by byte, and bad
 * input.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/compare/analyze_compare.h"
#include "record/record.h"
#include "test.h"
#include "wattmeter/comparison.h"

static void near(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance * fmax(fabs(expected), 1)))
        fail_msg("%.12g is not %.12g", value, expected);
}

/* Sessions of blocks without any figures. */
struct made {
    struct wm_region_usage blocks[4][6];
    struct wm_report reports[4];
    struct wm_compare_run runs[4];
    struct wm_compare_session sessions[4];
};

/* Names with blanks between them. */
static void make_sessions(struct made *made, const char *const *names, size_t count)
{
    static char *const called[] = { "A", "B", "C", "D" };

    *made = (struct made) { 0 };
    for (size_t i = 0; i < count; i++) {
        char *copy = strdup(names[i]), *rest = copy, *name;
        struct wm_report *report = &made->reports[i];
        while ((name = strtok_r(rest, " ", &rest)) != NULL)
            made->blocks[i][report->regions.name_count++].name = strdup(name);
        free(copy);
        report->is_foreign = true;
        report->regions.names = made->blocks[i];
        made->runs[i] = (struct wm_compare_run) { .report = report, .batch = 1 };
        made->sessions[i] = (struct wm_compare_session) {
            .name = called[i], .runs = &made->runs[i], .count = 1, .file = i
        };
    }
}

static void free_sessions(struct made *made)
{
    for (size_t i = 0; i < ARRAY_LEN(made->reports); i++) {
        for (size_t b = 0; b < made->reports[i].regions.name_count; b++)
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

static struct wm_block_figures figures(double mean)
{
    return (struct wm_block_figures) {
        .of = { [WM_BLOCK_MIN] = { true, mean - 1 },
                [WM_BLOCK_MAX] = { true, mean + 1 },
                [WM_BLOCK_MEAN] = { true, mean },
                [WM_BLOCK_STD] = { true, 1 },
                [WM_BLOCK_TOTAL] = { true, mean * 5 } },
    };
}

enum { REPEATS = 8 };

/* Two sessions of eight runs, each with a block "a" of five calls. */
struct repeats {
    struct wm_region_usage blocks[2][REPEATS];
    struct wm_report reports[2][REPEATS];
    struct wm_compare_run runs[2][REPEATS];
    struct wm_compare_session sessions[2];
};

/* The time of the second is 10 % longer, its CPU time equal, its energy unknown; each run
 * is 8 % longer than the one before, and noisy by 0.1 %. */
static void make_repeats(struct repeats *made)
{
    static const char *const rounds[] = { "1", "2", "3", "4", "5", "6", "7", "8" };

    *made = (struct repeats) { 0 };
    for (size_t s = 0; s < 2; s++) {
        for (size_t r = 0; r < REPEATS; r++) {
            struct wm_report *report = &made->reports[s][r];
            struct wm_region_usage *block = &made->blocks[s][r];
            double time = (1 + 0.08 * (double)r) * (s == 0 ? 1 : 1.1) *
                          (1 + 0.001 * (double)((r * 5 + s * 3) % 4));
            report->compute_time = wm_value_known(time);
            report->cpu_total = wm_value_known(0.5);
            *block = (struct wm_region_usage) { .name = "a", .calls = 5, .timepoints = 10 };
            block->time = figures(time / 5);
            for (size_t m = 0; m < WM_MEASUREMENT_COUNT; m++)
                report->usage.overall[m] = block->usage[m] = figures(100);
            report->regions.names = block;
            report->regions.name_count = 1;
            made->runs[s][r] = (struct wm_compare_run) { report, 1, "7", rounds[r] };
        }
        made->sessions[s] = (struct wm_compare_session) {
            .name = s == 0 ? "A" : "B", .runs = made->runs[s], .count = REPEATS, .file = s
        };
    }
}

static struct wm_compare_cell cell_of(const struct repeats *made,
                                      enum wm_block_figure statistic, size_t group,
                                      const char *item, struct wm_compare_worst *worst)
{
    struct wm_compare_cell cells[2];
    struct wm_compare *compare;

    assert_int_equal(wm_compare_new(made->sessions, 2, statistic, false, &compare, NULL),
                     WM_OK);
    wm_compare_cells(compare, group, wm_compare_item(item), cells);
    assert_int_equal(wm_compare_find_worst(compare, 0, worst), WM_OK);
    wm_compare_free(compare);
    return cells[1];
}

static void test_repeats(void **state)
{
    static struct repeats made;
    struct wm_compare_worst worst;
    (void)state;

    /* Two files: the runs of each differ by more than the two do. */
    make_repeats(&made);
    struct wm_compare_cell cell =
        cell_of(&made, WM_BLOCK_MEAN, WM_COMPARE_OVERALL, "time", &worst);
    assert_int_equal(cell.to.verdict, WM_RUNS_NOT_SHOWN);
    assert_false(cell.is_paired);
    assert_true(cell.to.low < 1 && cell.to.high > 1.2 && worst.change == 0);
    assert_false(worst.has_untested);
    assert_int_equal(cell.runs, REPEATS);

    /* One file: what changes from round to round does so for both. */
    made.sessions[1].file = 0;
    cell = cell_of(&made, WM_BLOCK_MEAN, WM_COMPARE_OVERALL, "time", &worst);
    assert_true(cell.is_paired);
    assert_int_equal(cell.to.verdict, WM_RUNS_MORE);
    assert_true(cell.to.low > 1.09 && cell.to.high < 1.11);
    near(cell.change.number, cell.to.ratio - 1, 1e-12);
    cell = cell_of(&made, WM_BLOCK_MEAN, 0, "time", &worst);
    assert_int_equal(cell.to.verdict, WM_RUNS_MORE);
    near(worst.change, cell.to.low - 1, 1e-9);
    assert_int_equal(cell_of(&made, WM_BLOCK_TOTAL, 0, "time", &worst).to.verdict,
                     WM_RUNS_MORE);
    assert_int_equal(
        cell_of(&made, WM_BLOCK_MEAN, WM_COMPARE_OVERALL, "cpu_time", &worst).to.verdict,
        WM_RUNS_NOT_SHOWN);
    cell = cell_of(&made, WM_BLOCK_MEAN, WM_COMPARE_OVERALL, "energy", &worst);
    assert_int_equal(cell.to.verdict, WM_RUNS_NOT_TESTED);
    assert_non_null(strstr(cell.to.why, "not known"));
    cell = cell_of(&made, WM_BLOCK_MAX, 0, "time", &worst);
    assert_non_null(strstr(cell.to.why, "not tested"));
    assert_true(worst.has_untested && worst.change == 0);

    /* A batch is so many runs. */
    made.runs[1][0].batch = 2;
    made.reports[1][0].compute_time.number *= 2;
    cell = cell_of(&made, WM_BLOCK_MEAN, WM_COMPARE_OVERALL, "time", &worst);
    assert_true(cell.to.low > 1.09 && cell.to.high < 1.11);

    /* Of one of them at least so much is known. */
    made.reports[1][3].compute_time.why = "it does not cover 3 s";
    cell = cell_of(&made, WM_BLOCK_MEAN, WM_COMPARE_OVERALL, "time", &worst);
    assert_string_equal(cell.lacks, "it does not cover 3 s");
    assert_int_equal(cell.to.verdict, WM_RUNS_NOT_TESTED);
    assert_non_null(strstr(cell.to.why, "at least"));

    made.sessions[1].count = 5;
    cell = cell_of(&made, WM_BLOCK_MEAN, WM_COMPARE_OVERALL, "cpu_time", &worst);
    assert_int_equal(cell.to.verdict, WM_RUNS_NOT_TESTED);
    assert_non_null(strstr(cell.to.why, "6 runs"));
    assert_true(worst.has_untested && worst.untested == 1);
    assert_int_equal(worst.untested_item, wm_compare_items());
}

static void test_units(void **state)
{
    const struct wm_static_data gigabytes = { .ram_unit = "gigabytes",
                                              .gpu_ram_unit = "megabytes",
                                              .time_unit = "hours" };
    static struct wm_report report;
    struct wm_usage_report *usage = &report.usage;
    struct wm_error err;

    (void)state;
    usage->machine = (struct wm_static_data) { .ram_unit = "bytes",
                                               .gpu_ram_unit = "terabytes",
                                               .time_unit = "seconds",
                                               .ram_capacity = { true, 67254166528 } };
    usage->overall[WM_MAIN_RAM].of[WM_BLOCK_MEAN].number = 341860352;
    usage->overall[WM_SYSTEM_GPU_RAM].of[WM_BLOCK_MAX].number = 0.000727;
    usage->overall[WM_MAIN_THREADS].of[WM_BLOCK_MAX].number = 15;
    assert_int_equal(wm_compare_convert(&report, &gigabytes, "x", &err), WM_OK);
    assert_true(usage->overall[WM_MAIN_RAM].of[WM_BLOCK_MEAN].number == 0.341860352);
    near(usage->overall[WM_SYSTEM_GPU_RAM].of[WM_BLOCK_MAX].number, 727, 1e-12);
    assert_true(usage->overall[WM_MAIN_THREADS].of[WM_BLOCK_MAX].number == 15);
    assert_true(usage->machine.ram_capacity.number == 67.254166528);
    assert_string_equal(usage->machine.ram_unit, "gigabytes");
    assert_string_equal(usage->machine.gpu_ram_unit, "megabytes");

    snprintf(usage->machine.ram_unit, 16, "gibibytes");
    assert_int_equal(wm_compare_convert(&report, &gigabytes, "x.json", &err), WM_EFORMAT);
    assert_string_equal(err.text, "x.json: \"gibibytes\" is no unit of memory");
}

#define INPUT(path) (&(struct wm_analysis_input) { .tracking = path, .run = WM_ALL_RUNS })
#define OPTIONS(statistic_, format_)                                                       \
    (&(struct wm_comparison_options) { .statistic = statistic_, .format = format_ })
#define JSON_A "tests/data/gpu_tracker/analysis_a.json"
#define JSON_B "tests/data/gpu_tracker/analysis.json"

static char *print(const struct wm_comparison *comparison)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    assert_int_equal(wm_comparison_print(comparison, 1, out, NULL), WM_OK);
    fclose(out);
    return text;
}

/* What the documents print of their sessions A and B, by the command and by the API. */
static void test_seed(void **state)
{
    static const struct {
        const char *statistic, *path;
        enum wm_format format;
    } rows[] = {
        { "mean", "tests/data/gpu_tracker/compare_mean.txt", WM_FORMAT_GPU_TRACKER },
        { "max", "tests/data/gpu_tracker/compare_max.txt", WM_FORMAT_GPU_TRACKER_API },
    };
    struct wm_comparison *comparison;

    (void)state;
    assert_int_equal(wm_comparison_new(&comparison, NULL), WM_OK);
    assert_int_equal(
        wm_comparison_add(comparison, "A", INPUT(test_source_path(JSON_A)), NULL), 0);
    assert_int_equal(
        wm_comparison_add(comparison, "B", INPUT(test_source_path(JSON_B)), NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(wm_comparison_run(comparison,
                                           OPTIONS(rows[i].statistic, rows[i].format), NULL,
                                           NULL),
                         WM_OK);
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
    const struct wm_analysis_input with_calls = { .tracking = test_source_path(JSON_A),
                                                  .run = WM_LAST_RUN,
                                                  .sub_tracking = regions,
                                                  .sub_tracking_count = 1 };
    static const char pickle[] = "\x80\x04\x95rest", old_pickle[] = "ccopy_reg\n";
    const char *dir = *state;
    char path[4096];
    struct wm_comparison *comparison;
    struct wm_error err;

    assert_int_equal(wm_comparison_new(&comparison, NULL), WM_OK);
    assert_int_equal(
        wm_comparison_run(comparison, OPTIONS("mean", WM_FORMAT_TEXT), NULL, &err),
        WM_EINVAL);
    assert_int_equal(wm_comparison_print(comparison, 0, stdout, &err), WM_EINVAL);
    assert_null(wm_comparison_remark(comparison, 0));

    assert_int_equal(
        wm_comparison_add(comparison, "A", INPUT(test_source_path(JSON_A)), &err), 0);
    assert_int_equal(
        wm_comparison_add(comparison, "A", INPUT(test_source_path(JSON_B)), &err),
        WM_EINVAL);
    assert_non_null(strstr(err.text, "\"A\""));
    assert_int_equal(wm_comparison_add(comparison, "B", &with_calls, &err), WM_EINVAL);
    assert_int_equal(wm_comparison_add(comparison, "B", INPUT("/nonexistent"), &err),
                     WM_ENOENT);

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
        assert_int_equal(wm_comparison_add(comparison, "B", INPUT(path), &err), WM_EFORMAT);
        if (!strstr(err.text, files[i].why) || !strstr(err.text, files[i].name))
            fail_msg("%s: \"%s\" does not say \"%s\"", files[i].name, err.text,
                     files[i].why);
    }

    assert_int_equal(
        wm_comparison_run(comparison, OPTIONS("median", WM_FORMAT_TEXT), NULL, &err),
        WM_EINVAL);
    assert_int_equal(wm_comparison_run(comparison,
                                       OPTIONS("total", WM_FORMAT_GPU_TRACKER_API), NULL,
                                       &err),
                     WM_EINVAL);
    assert_string_equal(
        err.text, "Invalid summary statistic 'total'. Valid values are min max mean std.");
    assert_int_equal(
        wm_comparison_run(comparison, OPTIONS("total", WM_FORMAT_JSON), NULL, &err), WM_OK);
    wm_comparison_free(comparison);
    wm_comparison_free(NULL);
}

static int try_all(enum wm_format format)
{
    struct wm_comparison *comparison;
    FILE *out;
    int status = wm_comparison_new(&comparison, NULL);

    if (status < 0)
        return status;
    status = wm_comparison_add(comparison, "A", INPUT(test_source_path(JSON_A)), NULL);
    if (status == WM_OK)
        status = wm_comparison_add(comparison, "B", INPUT(test_source_path(JSON_B)), NULL);
    if (status == WM_OK)
        status = wm_comparison_run(comparison, OPTIONS("mean", format), NULL, NULL);
    out = status == WM_OK ? fopen("/dev/null", "w") : NULL;
    if (status == WM_OK)
        status = out ? wm_comparison_print(comparison, 1, out, NULL) : WM_ENOMEM;
    if (out)
        fclose(out);
    wm_comparison_free(comparison);
    return status;
}

static void test_out_of_memory(void **state)
{
    static const enum wm_format formats[] = { WM_FORMAT_TEXT, WM_FORMAT_JSON,
                                              WM_FORMAT_GPU_TRACKER,
                                              WM_FORMAT_GPU_TRACKER_API,
                                              WM_FORMAT_GPU_TRACKER_JSON };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        test_fail_allocation(-1);
        assert_int_equal(try_all(formats[i]), WM_OK);
        long made = test_fail_allocation(-1);
        int status = WM_ENOMEM;
        for (long nth = 0; nth < made; nth += 1 + nth / 64) {
            test_fail_allocation(nth);
            status = try_all(formats[i]);
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

UNIT(compare)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_match),
        cmocka_unit_test(test_gpu_tracker_words),
        cmocka_unit_test(test_twice),
        cmocka_unit_test(test_repeats),
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_seed),
        cmocka_unit_test_setup_teardown(test_bad_use, test_make_dir, test_remove_dir),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_out_of_memory_matching),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
