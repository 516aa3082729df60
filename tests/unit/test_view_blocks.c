/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_view_blocks.c - an analysis of blocks in every form: gpu_tracker's tables as its
 * documents print them (tests/data/gpu_tracker), ours as in tests/data/blocks, which
 * WM_UPDATE_GOLDEN=1 writes anew; and its JSON read back.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze_build.h"
#include "compat/gpu_tracker/compat_gpu_tracker_print.h"
#include "test.h"
#include "view/view.h"
#include "wattmeter/analysis.h"

enum form { TEXT, JSON, GPU_TRACKER_TEXT, GPU_TRACKER_JSON };

static char *print(const struct wm_report *results, enum form form)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    if (form == TEXT)
        wm_view_blocks_text(results, out);
    else if (form == JSON)
        assert_int_equal(
            wm_view_dump(wm_view_blocks_json(results), JSON_INDENT(2), out, NULL), WM_OK);
    else if (form == GPU_TRACKER_TEXT)
        assert_int_equal(wm_gpu_tracker_blocks_text(results, out, NULL), WM_OK);
    else
        assert_int_equal(wm_gpu_tracker_blocks_json(results, out, NULL), WM_OK);
    fclose(out);
    return text;
}

static struct wm_report *parse(const char *text)
{
    struct wm_report *results;
    struct wm_error err;

    if (wm_report_parse(text, strlen(text), "made.json", &results, &err) < 0)
        fail_msg("%s", err.text);
    return results;
}

/* What gpu_tracker's documents print, out of the numbers in it. */
static void test_seed(void **state)
{
    char *json = test_read_source("tests/data/gpu_tracker/analysis.json");
    char *text = test_read_source("tests/data/gpu_tracker/analysis.txt");
    struct wm_report *results = parse(json);
    char *printed;

    (void)state;
    printed = print(results, GPU_TRACKER_TEXT);
    assert_string_equal(printed, text);
    free(printed);
    printed = print(results, GPU_TRACKER_JSON);
    assert_string_equal(printed, json);
    free(printed);

    assert_int_equal(results->regions.name_count, 2);
    assert_string_equal(results->regions.names[1].name, "my-function");
    assert_int_equal(results->regions.names[1].nonempty_calls, 3);
    assert_true(results->regions.names[0].time.of[WM_BLOCK_STD].number == 0.120147);
    assert_true(results->regions.names[0].usage[WM_CPU_MAIN_SUM].of[WM_BLOCK_MEAN].number ==
                96.583333);
    assert_true(results->usage.machine.system_cores.number == 12);
    assert_string_equal(results->usage.machine.ram_unit, "gigabytes");
    wm_report_free(results);
    free(json);
    free(text);
}

#define KNOWN(value)                                                                       \
    {                                                                                      \
        true, value                                                                        \
    }
#define UNKNOWN                                                                            \
    {                                                                                      \
        false, 0                                                                           \
    }

static const struct wm_static_data gigabytes = {
    "gigabytes", "gigabytes", "hours",  KNOWN(67.254166), KNOWN(16.376),
    KNOWN(12),   KNOWN(12),   KNOWN(1), KNOWN(1)
};
static const struct wm_static_data no_gpu = { "bytes",     "bytes",  "seconds",
                                              KNOWN(13e9), KNOWN(0), KNOWN(8),
                                              KNOWN(8),    KNOWN(0), KNOWN(0) };
static const struct wm_static_data unknown = { "bytes",     "bytes", "seconds",
                                               KNOWN(13e9), UNKNOWN, KNOWN(8),
                                               UNKNOWN,     UNKNOWN, UNKNOWN };

static void timepoint(struct wm_regions *regions, int64_t when_ns, double value)
{
    struct wm_timepoint made = { .when_ns = when_ns, .known = WM_ALL_MEASUREMENTS };

    for (size_t i = 0; i < WM_MEASUREMENT_COUNT; i++)
        made.values[i] = value * (double)(i + 1);
    made.known &= ~(UINT32_C(1) << WM_SYSTEM_GPU_RAM);
    wm_regions_tick(regions, NULL, &made);
}

static struct wm_region_path named;

static const struct wm_region_path *find_path(const void *context, uint32_t path)
{
    (void)context, (void)path;
    return &named;
}

static uint32_t path_of(const char *name)
{
    static char names[16][4200];
    uint32_t at = 0;

    while (names[at][0] && strcmp(names[at] + 1, name) != 0)
        at++;
    snprintf(names[at], sizeof(names[at]), "+%s", name);
    named = (struct wm_region_path) { .name = names[at] + 1, .parent = WM_REGION_NO_PATH };
    return at;
}

static void give_edge(struct wm_regions *regions, const char *name, int64_t start_ns,
                      int64_t when_ns, enum wm_region_edge_kind kind, double seconds)
{
    const struct wm_region_paths paths = { .find = find_path };
    const struct wm_region_edge edge = { .when_ns = when_ns,
                                         .start_ns = start_ns,
                                         .path = path_of(name),
                                         .kind = kind,
                                         .recorded_s = seconds };

    assert_int_equal(wm_regions_edge(regions, &edge, 0, &paths), WM_OK);
}

/* Opens a call, gives it timepoints, and closes it. */
static void call(struct wm_regions *regions, const char *name, int64_t start_ns,
                 double seconds, int timepoints)
{
    bool is_open = isnan(seconds);
    int64_t stop_ns = start_ns + (is_open ? 1000 : (int64_t)(seconds * 1e9));

    give_edge(regions, name, start_ns, start_ns, WM_REGION_OPENS, 0);
    for (int i = 0; i < timepoints; i++)
        timepoint(regions, start_ns + i, 0.125 * (i + 1));
    give_edge(regions, name, start_ns, stop_ns,
              is_open ? WM_REGION_BREAKS_OFF : WM_REGION_CLOSES, is_open ? 0 : seconds);
    wm_regions_complete(regions, stop_ns);
}

static void make_several(struct wm_regions *blocks)
{
    timepoint(blocks, 1, 0.25);
    call(blocks, "train", 100, 2.25, 3);
    call(blocks, "load", INT64_C(3000000000), 0.000004, 0);
    call(blocks, "train", INT64_C(4000000000), 2.75, 2);
    call(blocks, "train", INT64_C(9000000000), NAN, 1);
    call(blocks, "train.py:7", INT64_C(10000000000), 1.5, 1);
}

/* Names that are to do harm, and blocks without anything. */
static void make_hostile(struct wm_regions *blocks)
{
    char long_name[4097];

    memset(long_name, 'x', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    call(blocks, "", 1, 0.5, 0);
    call(blocks, "a,b \"c\"\n'; DROP TABLE data; --", INT64_C(1000000000), 1e-7, 0);
    call(blocks, "\x1b]0;gotcha\a", INT64_C(2000000000), 4e5, 0);
    call(blocks, "Träumerei \U0001f980", INT64_C(500000000000000), NAN, 0);
    call(blocks, "\xff\xfe broken", INT64_C(600000000000000), 1, 1);
    call(blocks, long_name, INT64_C(700000000000000), 3, 0);
}

/* As a session without a GPU is in gpu_tracker's files. */
static void make_without_gpu(struct wm_regions *regions)
{
    for (int n = 0; n < 3; n++) {
        struct wm_timepoint made = { .when_ns = n, .known = WM_ALL_MEASUREMENTS };
        for (int i = 0; i < WM_MEASUREMENT_COUNT; i++)
            made.values[i] =
                wm_measurement_is_gpu((enum wm_measurement)i) ? 0 : (double)(n + 1);
        if (n == 1)
            give_edge(regions, "train", n, n, WM_REGION_OPENS, 0);
        wm_regions_tick(regions, NULL, &made);
        if (n == 1)
            give_edge(regions, "train", n, n, WM_REGION_CLOSES, 1e-9);
        wm_regions_complete(regions, n);
    }
}

static void make_nothing(struct wm_regions *blocks)
{
    (void)blocks;
}

static const struct golden {
    const char *name;
    void (*make)(struct wm_regions *blocks);
    const struct wm_static_data *static_data;
    uint64_t stray;
    enum wm_origin gpu_origin;
} goldens[] = {
    { "several", make_several, &gigabytes, 0, WM_MEASURED },
    { "hostile", make_hostile, &unknown, 2, WM_MEASURED },
    { "nothing", make_nothing, &unknown, 0, WM_MEASURED },
    { "without_gpu", make_without_gpu, &no_gpu, 0, WM_MEASURED },
    { "simulated", make_several, &gigabytes, 0, WM_SIMULATED },
};

static int make_report(struct wm_regions *blocks, const struct wm_static_data *machine,
                       struct wm_report **ret_report)
{
    struct wm_report *report = calloc(1, sizeof(*report));

    if (!report)
        return WM_ENOMEM;
    report->usage.machine = *machine;
    wm_build_overall(blocks, &report->usage);
    int status =
        wm_regions_usages(blocks, &report->regions.names, &report->regions.name_count);
    wm_region_usages_sort(report->regions.names, report->regions.name_count);
    *ret_report = report;
    return status;
}

static struct wm_report *results_of(const struct golden *golden)
{
    struct wm_report *results;
    struct wm_regions *blocks;

    assert_int_equal(wm_regions_new(0, UINT32_MAX, &blocks, NULL), WM_OK);
    golden->make(blocks);
    assert_int_equal(make_report(blocks, golden->static_data, &results), WM_OK);
    wm_regions_free(blocks);
    results->usage.stray = golden->stray;
    results->usage.gpu_origin = golden->gpu_origin;
    return results;
}

static void compare(const struct golden *golden, const struct wm_report *results,
                    enum form form, const char *suffix)
{
    char relative[128];
    char *text = print(results, form);

    snprintf(relative, sizeof(relative), "tests/data/blocks/%s.%s", golden->name, suffix);
    if (getenv("WM_UPDATE_GOLDEN")) {
        FILE *file = fopen(test_source_path(relative), "w");
        assert_non_null(file);
        assert_true(fputs(text, file) >= 0);
        assert_int_equal(fclose(file), 0);
    }
    char *expected = test_read_source(relative);
    if (strcmp(text, expected) != 0)
        fail_msg("%s differs from what is printed:\n%s", relative, text);
    free(expected);
    free(text);
}

static void test_golden(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(goldens); i++) {
        struct wm_report *results = results_of(&goldens[i]);
        compare(&goldens[i], results, TEXT, "txt");
        compare(&goldens[i], results, JSON, "json");
        compare(&goldens[i], results, GPU_TRACKER_TEXT, "gpu_tracker.txt");
        compare(&goldens[i], results, GPU_TRACKER_JSON, "gpu_tracker.json");
        wm_report_free(results);
    }
}

/* Each null has its reason, or what it is in. The last limit of a histogram is null. */
static void check_nulls(const json_t *node, const json_t *why, const char *path)
{
    char below[256];
    const char *key;
    json_t *part;
    size_t index;

    if (json_is_string(json_object_get(why, path)) || strstr(path, ".histogram"))
        return;
    if (json_is_null(node))
        fail_msg("%s is null without a reason", path);
    json_object_foreach((json_t *)node, key, part)
    {
        snprintf(below, sizeof(below), "%s%s%s", path, path[0] ? "." : "", key);
        check_nulls(part, why, below);
    }
    json_array_foreach(node, index, part)
    {
        snprintf(below, sizeof(below), "%s.%zu", path, index);
        check_nulls(part, why, below);
    }
}

static void test_nulls_have_reasons(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(goldens); i++) {
        struct wm_report *results = results_of(&goldens[i]);
        json_t *root = wm_view_blocks_json(results);
        check_nulls(root, json_object_get(root, "why"), "");
        json_decref(root);
        wm_report_free(results);
    }
}

/* What is read back prints the same. */
static void test_round_trip(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(goldens); i++) {
        struct wm_report *results = results_of(&goldens[i]);
        char *text = print(results, GPU_TRACKER_JSON);
        struct wm_report *again = parse(text);
        char *printed = print(again, GPU_TRACKER_JSON);
        assert_string_equal(printed, text);
        free(printed);
        free(text);
        wm_report_free(again);
        wm_report_free(results);
    }
}

static void test_no_such_format(void **state)
{
    struct wm_report *results = results_of(&goldens[0]);
    static const enum wm_format none[] = { WM_FORMAT_CSV, WM_FORMAT_GIF, (enum wm_format)63,
                                           (enum wm_format)64 };
    const struct wm_report_style style = { .blocks_only = true };
    struct wm_error err;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(none); i++) {
        assert_int_equal(wm_report_print(results, none[i], &style, stdout, &err),
                         WM_EINVAL);
        assert_string_equal(err.text,
                            "this cannot be printed in that format, but in: text json "
                            "gpu-tracker gpu-tracker-api gpu-tracker-json");
    }
    results->is_foreign = true;
    assert_int_equal(wm_report_print(results, WM_FORMAT_TEXT, NULL, stdout, &err),
                     WM_EINVAL);
    assert_non_null(strstr(err.text, "gpu_tracker's files"));
    wm_report_free(results);
}

/* What ours lacks without a GPU is 0 in gpu_tracker's layout, of a file as of ours. */
static void test_without_gpu(void **state)
{
    const struct golden golden = { "", make_without_gpu, &no_gpu, 0, WM_MEASURED };
    struct wm_report *results = results_of(&golden);
    char *theirs = print(results, GPU_TRACKER_JSON);
    struct wm_report *read = parse(theirs);
    struct wm_report *const reports[] = { results, read };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(reports); i++) {
        char *ours = print(reports[i], JSON), *text = print(reports[i], TEXT);
        assert_non_null(strstr(ours, "\"system_gpu_ram\": null"));
        assert_null(strstr(ours, "\"system_gpu_ram\": {"));
        assert_non_null(strstr(ours, "\"system_ram\""));
        assert_non_null(strstr(text, "no GPU was measured"));
        free(ours);
        free(text);
    }
    assert_non_null(strstr(theirs, "\"system_gpu_ram\": {\n   \"min\": 0.0"));
    wm_report_free(read);
    wm_report_free(results);
    free(theirs);
}

/* gpu_tracker writes NaN where we write null; in a name it stays. */
static void test_python_nan(void **state)
{
    static const char text[] =
        "{\"overall\": {\"main_ram\": {\"min\": NaN, \"max\": NaN, \"mean\": NaN,\n"
        "\"std\":NaN}}, \"static_data\": {\"ram_unit\": \"bytes\", \"gpu_ram_unit\": "
        "\"bytes\", \"time_unit\": \"days\", \"ram_system_capacity\": NaN},"
        "\"code_block_results\": [{\"name\": \"NaN \\\" NaN\", \"num_timepoints\": 0,"
        "\"num_calls\": 1, \"num_non_empty_calls\": 0, \"compute_time\": {\"min\": 1, "
        "\"total\": 1.5}, \"resource_usage\": {}}]}";
    struct wm_report *results = parse(text);

    (void)state;
    assert_true(!results->usage.overall[WM_MAIN_RAM].of[WM_BLOCK_MIN].known);
    assert_true(!results->usage.overall[WM_MAIN_RAM].of[WM_BLOCK_MAX].known);
    assert_true(!results->usage.overall[WM_SYSTEM_RAM].of[WM_BLOCK_MEAN].known);
    assert_false(results->usage.machine.ram_capacity.known);
    assert_false(results->usage.machine.gpus.known);
    assert_string_equal(results->regions.names[0].name, "NaN \" NaN");
    assert_true(results->regions.names[0].time.of[WM_BLOCK_MIN].number == 1);
    assert_true(!results->regions.names[0].time.of[WM_BLOCK_STD].known);
    assert_true(results->regions.names[0].time.of[WM_BLOCK_TOTAL].number == 1.5);
    wm_report_free(results);
}

#define STATIC                                                                             \
    "\"static_data\": {\"ram_unit\": \"bytes\", \"gpu_ram_unit\": \"bytes\", "             \
    "\"time_unit\": \"days\"}"
#define BLOCK(rest)                                                                        \
    "{\"overall\": {}, " STATIC ", \"code_block_results\": [{\"name\": \"a\"" rest "}]}"
#define COUNTS ", \"num_timepoints\": 0, \"num_calls\": 1, \"num_non_empty_calls\": 0"

static const struct {
    const char *text, *why;
} bad_rows[] = {
    { "", "not JSON" },
    { "{", "not JSON" },
    { "[]", "no object" },
    { "null", "not JSON" },
    { "{\"overall\": 1}", "overall" },
    { "{\"overall\": []}", "overall" },
    { "{}", "give the recording itself" },
    { "{\"overall\": {\"main_ram\": 3}}", "main_ram" },
    { "{\"overall\": {\"main_ram\": {\"min\": \"3\"}}}", "min" },
    { "{\"overall\": {\"main_ram\": {\"min\": Infinity}}}", "not JSON" },
    { "{\"overall\": {\"main_ram\": {\"std\": -0.1}}}", "main_ram: a negative number" },
    { "{\"overall\": {\"main_ram\": {\"min\": -1}}}", "main_ram: a negative number" },
    { "{\"overall\": {\"main_ram\": {\"min\": 2, \"max\": 1}}}", "main_ram: a negative" },
    { "{\"overall\": {\"main_ram\": {\"min\": 2, \"mean\": 1}}}", "main_ram: a negative" },
    { "{\"overall\": {\"main_ram\": {\"mean\": 2, \"max\": 1}}}", "main_ram: a negative" },
    { "{\"overall\": {}}", "static_data" },
    { "{\"overall\": {}, \"static_data\": {}}", "ram_unit" },
    { "{\"overall\": {}, \"static_data\": {\"ram_unit\": 5}}", "ram_unit" },
    { "{\"overall\": {}, \"static_data\": {\"ram_unit\": \"sixteen bytes ok\"}}",
      "ram_unit" },
    { "{\"overall\": {}, " STATIC "}", "code_block_results" },
    { "{\"overall\": {}, " STATIC ", \"code_block_results\": {}}", "code_block_results" },
    { "{\"overall\": {}, " STATIC ", \"code_block_results\": [1]}", "name" },
    { "{\"overall\": {}, " STATIC ", \"code_block_results\": [{\"name\": null}]}", "name" },
    { BLOCK(""), "num_timepoints" },
    { BLOCK(", \"num_timepoints\": -5"), "num_timepoints" },
    { BLOCK(", \"num_timepoints\": 5, \"num_calls\": 1e3"), "num_calls" },
    { BLOCK(", \"num_timepoints\": 5, \"num_calls\": 1, \"num_non_empty_calls\": 2"),
      "num_non_empty_calls" },
    { BLOCK(COUNTS ", \"compute_time\": {\"total\": -1}"), "compute_time: a negative" },
    { BLOCK(COUNTS), "compute_time" },
    { BLOCK(COUNTS ", \"compute_time\": []"), "compute_time" },
    { BLOCK(COUNTS ", \"compute_time\": {\"total\": {}}"), "total" },
    { BLOCK(COUNTS ", \"compute_time\": {}"), "resource_usage" },
};

static void test_bad(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad_rows); i++) {
        const char *text = bad_rows[i].text;
        struct wm_report *results;
        struct wm_error err = { 0 };
        assert_int_equal(wm_report_parse(text, strlen(text), "bad.json", &results, &err),
                         WM_EFORMAT);
        if (!strstr(err.text, bad_rows[i].why) || !strstr(err.text, "bad.json"))
            fail_msg("%s: \"%s\" does not say \"%s\"", text, err.text, bad_rows[i].why);
    }
}

static const struct table_case {
    const char *name;
    struct wm_gpu_tracker_table table;
    const char *expected;
} table_cases[] = {
    { "zeros that all of a column end in are cut, and one decimal stays",
      { 2, (const char *const[]) { "a", "long" }, 2,
        (const char *const[]) { "x", "y", "z" }, 3,
        (const struct wm_known[]) { { true, 1 },
                                    { true, 0.5 },
                                    { true, 1.25 },
                                    { true, 20 },
                                    { true, 0.25 },
                                    { true, 100.125 } } },
      "           x     y        z\n"
      "  a      1.0  0.50    1.250\n"
      "  long  20.0  0.25  100.125\n" },
    { "a header that is longer than the numbers has a blank before it",
      { 0, NULL, 1, (const char *const[]) { "session one", "B" }, 2,
        (const struct wm_known[]) { { true, 0 }, { true, 0.42992 } } },
      "  session one        B\n"
      "          0.0  0.42992\n" },
    { "a sign takes the place of the blank",
      { 0, NULL, 1, (const char *const[]) { "x" }, 1,
        (const struct wm_known[]) { { true, -12.5 } } },
      "     x\n"
      " -12.5\n" },
    { "nothing known",
      { 0, NULL, 1, (const char *const[]) { "min", "mean" }, 2,
        (const struct wm_known[]) { { 0 }, { 0 } } },
      "  min  mean\n"
      "  NaN   NaN\n" },
    { "known and not known in one column",
      { 0, (const char *const[]) { "a", "b" }, 2, (const char *const[]) { "x" }, 1,
        (const struct wm_known[]) { { 0 }, { true, 1.5 } } },
      "     x\n"
      "a  NaN\n"
      "b  1.5\n" },
    { "six decimals, rounded",
      { 0, NULL, 1, (const char *const[]) { "x", "y", "z" }, 3,
        (const struct wm_known[]) {
            { true, 1.0 / 3 }, { true, 2.0 / 3 }, { true, 4e-7 } } },
      "         x         y    z\n"
      "  0.333333  0.666667  0.0\n" },
    { "bytes",
      { 0, NULL, 1, (const char *const[]) { "x" }, 1,
        (const struct wm_known[]) { { true, 67254166528 } } },
      "              x\n"
      "  67254166528.0\n" },
    { "a column holds characters, not bytes",
      { 0, (const char *const[]) { "µ", "ab" }, 2, (const char *const[]) { "größe" }, 1,
        (const struct wm_known[]) { { true, 1 }, { true, 2 } } },
      "    größe\n"
      "µ     1.0\n"
      "ab    2.0\n" },
    { "no rows", { 4, NULL, 0, (const char *const[]) { "x" }, 1, NULL }, "      x\n" },
};

static void test_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(table_cases); i++) {
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);
        assert_non_null(out);
        print_message("  %s\n", table_cases[i].name);
        assert_int_equal(wm_gpu_tracker_table(&table_cases[i].table, out, NULL), WM_OK);
        fclose(out);
        assert_string_equal(text, table_cases[i].expected);
        free(text);
    }
}

static void test_python_numbers(void **state)
{
    static const struct {
        double value;
        const char *text;
    } rows[] = {
        { 0, "0.0" },
        { 1, "1.0" },
        { -1.5, "-1.5" },
        { 16.376, "16.376" },
        { 0.1 + 0.2, "0.30000000000000004" },
        { 0.0001, "0.0001" },
        { 0.00012345, "0.00012345" },
        { 0.00001, "1e-05" },
        { 2.867e-05, "2.867e-05" },
        { 1e-300, "1e-300" },
        { 1e15, "1000000000000000.0" },
        { 9999999999999998, "9999999999999998.0" },
        { 1e16, "1e+16" },
        { 1.25e22, "1.25e+22" },
        { 67000000000, "67000000000.0" },
        { 1795247379.2159243, "1795247379.2159243" },
        { 123456789012345, "123456789012345.0" },
        { 9.5367431640625e-07, "9.5367431640625e-07" },
        { 1.7976931348623157e308, "1.7976931348623157e+308" },
        { 2.2250738585072014e-308, "2.2250738585072014e-308" },
        { 2.5e-310, "2.5e-310" },
        { 5e-324, "5e-324" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[WM_PYTHON_NUMBER_SIZE];
        wm_python_number(text, rows[i].value);
        assert_string_equal(text, rows[i].text);
    }
}

static void test_python_json(void **state)
{
    static const char text[] = "{\"a\": [], \"b\": {}, \"c\": [1, true, false, null], "
                               "\"d\\n\\\"\\\\\\u0001\\u007f\\u00e4\\ud83e\\udd80\": -2.5}";
    static const char expected[] =
        "{\n \"a\": [],\n \"b\": {},\n \"c\": [\n  1,\n  true,\n  false,\n  null\n ],\n"
        " \"d\\n\\\"\\\\\\u0001\\u007f\\u00e4\\ud83e\\udd80\": -2.5\n}";
    json_t *root = json_loads(text, 0, NULL);
    char *printed = NULL;
    size_t size;
    FILE *out = open_memstream(&printed, &size);

    (void)state;
    assert_non_null(out);
    assert_int_equal(wm_gpu_tracker_json(root, out, NULL), WM_OK);
    fclose(out);
    assert_string_equal(printed, expected);
    free(printed);
}

static void test_out_of_memory(void **state)
{
    char *json = test_read_source("tests/data/gpu_tracker/analysis.json");
    int status = WM_ENOMEM;

    (void)state;
    for (long nth = 0; status == WM_ENOMEM; nth++) {
        struct wm_report *results = NULL;
        assert_true(nth < 5000);
        test_fail_allocation(nth);
        status = wm_report_parse(json, strlen(json), "made.json", &results, NULL);
        test_fail_allocation(-1);
        wm_report_free(results);
    }
    assert_int_equal(status, WM_OK);
    free(json);

    struct wm_regions *blocks;
    assert_int_equal(wm_regions_new(0, UINT32_MAX, &blocks, NULL), WM_OK);
    make_several(blocks);
    status = WM_ENOMEM;
    for (long nth = 0; status == WM_ENOMEM; nth++) {
        struct wm_report *results = NULL;
        json_t *root = NULL;
        assert_true(nth < 20000);
        test_fail_allocation(nth);
        status = make_report(blocks, &unknown, &results);
        if (status == WM_OK) {
            root = wm_view_blocks_json(results);
            status = root ? WM_OK : WM_ENOMEM;
        }
        test_fail_allocation(-1);
        json_decref(root);
        wm_report_free(results);
    }
    assert_int_equal(status, WM_OK);
    wm_regions_free(blocks);
}

UNIT(view_blocks)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_seed),
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_nulls_have_reasons),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_no_such_format),
        cmocka_unit_test(test_without_gpu),
        cmocka_unit_test(test_python_nan),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_python_numbers),
        cmocka_unit_test(test_python_json),
        cmocka_unit_test(test_out_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
