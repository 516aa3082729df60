/* SPDX-License-Identifier: Apache-2.0 */
/* test_record_metrics.c - what programs write of themselves: lines that can be used,
 * the many that cannot, and the way through the result of a run and back. */
#include "record/run/record_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "test.h"

#define S INT64_C(1000000000)

/* From 1000 s to 1100 s of the monotonic clock, which is 1800000000 of the other. */
static const struct wm_metrics_window window = { 1000 * S, 1100 * S, 1799999000 * S };

static struct wm_result read_text(const char *dir, const char *text)
{
    struct wm_result result = { 0 };
    char path[256];

    test_write_file(dir, "m.jsonl", text);
    snprintf(path, sizeof(path), "%s/m.jsonl", dir);
    assert_int_equal(wm_metrics_read(path, &window, &result.metrics, NULL), WM_OK);
    return result;
}

static void test_lines(void **state)
{
    static const struct {
        const char *what, *text;
        size_t metrics, values;
        const char *note; /* part of it; NULL: nothing is wrong */
    } cases[] = {
        { "seconds", "{\"time\": 1800000001.5, \"a\": 1}\n", 1, 1, NULL },
        { "whole seconds", "{\"time\": 1800000001, \"a\": 1}\n", 1, 1, NULL },
        { "RFC 3339", "{\"time\": \"2027-01-15T08:00:01Z\", \"a\": 1}\n", 1, 1, NULL },
        { "another zone", "{\"time\": \"2027-01-15T09:00:01.5+01:00\", \"a\": 1}\n", 1, 1,
          NULL },
        { "several", "{\"time\": 1800000001, \"a\": 1, \"b\": -2.5e3}\n", 2, 1, NULL },
        { "several lines",
          "{\"time\": 1800000001, \"a\": 1}\n{\"time\": 1800000002, \"a\": 2}\n", 1, 2,
          NULL },
        { "no end of the last line", "{\"time\": 1800000001, \"a\": 1}", 1, 1, NULL },
        { "empty lines", "\n\n{\"time\": 1800000001, \"a\": 1}\r\n \n", 1, 1, NULL },
        { "texts beside numbers",
          "{\"time\": 1800000001, \"a\": 1, \"b\": \"x\", \"c\": [1], \"d\": null}\n", 1, 1,
          NULL },
        { "NaN is left out", "{\"time\": 1800000001, \"a\": 1, \"b\": NaN}\n", 1, 1, NULL },
        { "nothing", "", 0, 0, "the file is empty" },
        { "no JSON", "hello\n{\"time\": 1800000001, \"a\": 1}\n", 1, 1,
          "line 1: not a JSON" },
        { "no object", "[1]\n", 0, 0, "line 1: not a JSON object" },
        { "cut off", "{\"time\": 1800000001, \"a\": 1}\n{\"time\": 18", 1, 1,
          "line 2: not a" },
        { "no time", "{\"a\": 1}\n", 0, 0, "line 1: no \"time\"" },
        { "a time in milliseconds", "{\"time\": 1800000001000, \"a\": 1}\n", 0, 0,
          "in seconds" },
        { "a negative time", "{\"time\": -1, \"a\": 1}\n", 0, 0, "in seconds" },
        { "a time that is none", "{\"time\": \"now\", \"a\": 1}\n", 0, 0, "RFC 3339" },
        { "a time that is a list", "{\"time\": [1800000001], \"a\": 1}\n", 0, 0,
          "RFC 3339" },
        { "no number", "{\"time\": 1800000001, \"a\": \"1\"}\n", 0, 0,
          "line 1: no number" },
        { "a name without letters", "{\"time\": 1800000001, \"\": 1}\n", 0, 0,
          "line 1: a number without a name" },
        { "one without a name costs itself alone",
          "{\"time\": 1800000001, \"\": 1, \"a\": 2}\n", 1, 1,
          "line 1: a number without a name" },
        { "too large for a double", "{\"time\": 1800000001, \"b\": 1e999, \"a\": 1}\n", 0,
          0, "line 1: not a JSON object" },
        { "too large below zero", "{\"time\": 1800000001, \"a\": 1, \"b\": -1e999}\n", 0, 0,
          "line 1: not a JSON object" },
        { "an integer of Python's",
          "{\"time\": 1800000001, \"a\": 123456789012345678901234567890}\n", 1, 1, NULL },
        { "digits in a text are left alone",
          "{\"time\": 1800000001, \"1e999\": 1, \"b\": \"\\\"1e999\"}\n", 1, 1, NULL },
        { "marked as UTF-8", "\xef\xbb\xbf{\"time\": 1800000001, \"a\": 1}\n", 1, 1, NULL },
        { "marked, and no end of the line", "\xef\xbb\xbf{\"time\": 1800000001, \"a\": 1}",
          1, 1, NULL },
        { "of yesterday", "{\"time\": 1799913601, \"a\": 1}\n", 0, 0,
          "1 of 1 lines are of another" },
        { "of tomorrow", "{\"time\": 1800086401, \"a\": 1}\n", 0, 0,
          "1 of 1 lines are of another" },
        { "a second early is that of the start", "{\"time\": 1799999999, \"a\": 1}\n", 1, 1,
          NULL },
        { "a second late is that of the end", "{\"time\": 1800000101, \"a\": 1}\n", 1, 1,
          NULL },
        { "two seconds late", "{\"time\": 1800000102, \"a\": 1}\n", 0, 0, "of another" },
        { "five milliseconds late", "{\"time\": 1800000100.005, \"a\": 1}\n", 1, 1, NULL },
        { "half a second early is of another run", "{\"time\": 1799999999.5, \"a\": 1}\n",
          0, 0, "of another" },
        { "half a second late", "{\"time\": 1800000100.5, \"a\": 1}\n", 0, 0,
          "of another" },
        { "many bad lines", "x\nx\nx\nx\nx\nx\nx\nx\nx\nx\n", 0, 0, "and 2 lines more" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_result result = read_text(*state, cases[i].text);

        print_message("  %s: %s\n", cases[i].what, result.metrics.note);
        assert_int_equal(result.metrics.count, cases[i].metrics);
        if (cases[i].metrics > 0)
            assert_int_equal(result.metrics.all[0].count, cases[i].values);
        if (cases[i].note)
            assert_non_null(strstr(result.metrics.note, cases[i].note));
        else
            assert_string_equal(result.metrics.note, "");
        wm_result_release(&result);
    }
}

/* A line that is too long, first, in the middle or last: what follows it is not read. */
static void test_long_lines(void **state)
{
    enum { LENGTH = (3 << 20) + 7 };
    static const struct {
        const char *what, *before, *after;
        size_t values;
        const char *note;
    } cases[] = {
        { "first", "", "\n{\"time\": 1800000001, \"a\": 1}\n", 0,
          "line 1: longer than 1 MiB; the rest is not read" },
        { "in the middle", "{\"time\": 1800000001, \"a\": 1}\n",
          "\n{\"time\": 1800000002, \"a\": 1}\nx\n", 1,
          "line 2: longer than 1 MiB; the rest is not read" },
        { "last", "{\"time\": 1800000001, \"a\": 1}\n", "\n", 1,
          "line 2: longer than 1 MiB; the rest is not read" },
        { "cut off", "{\"time\": 1800000001, \"a\": 1}\n", "", 1,
          "line 2: longer than 1 MiB; the rest is not read" },
        { "alone", "", "\n", 0, "line 1: longer than 1 MiB; the rest is not read" },
    };
    char *text = malloc(LENGTH + 256);

    assert_non_null(text);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        size_t used = strlen(cases[i].before);
        memcpy(text, cases[i].before, used);
        memset(text + used, 'x', LENGTH);
        strcpy(text + used + LENGTH, cases[i].after);
        struct wm_result result = read_text(*state, text);
        print_message("  %s: %s\n", cases[i].what, result.metrics.note);
        assert_int_equal(result.metrics.count, cases[i].values > 0);
        if (cases[i].values > 0)
            assert_int_equal(result.metrics.all[0].count, cases[i].values);
        assert_string_equal(result.metrics.note, cases[i].note);
        wm_result_release(&result);
    }
    free(text);
}

static void test_times_and_order(void **state)
{
    struct wm_result result = read_text(*state, "{\"time\": 1800000003, \"a\": 3}\n"
                                                "{\"time\": 1800000001.25, \"a\": 1}\n"
                                                "{\"time\": 1799999999, \"a\": 0}\n"
                                                "{\"time\": 1800000003, \"a\": 4}\n");
    static const struct {
        int64_t when_ns;
        double value;
    } expected[] = {
        { 1000 * S, 0 }, { 1001 * S + S / 4, 1 }, { 1003 * S, 3 }, { 1003 * S, 4 }
    };

    assert_int_equal(result.metrics.all[0].count, ARRAY_LEN(expected));
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        assert_true(llabs(result.metrics.all[0].points[i].when_ns - expected[i].when_ns) <
                    1000);
        assert_float_equal(result.metrics.all[0].points[i].value, expected[i].value, 0);
    }
    wm_result_release(&result);
}

static void test_files(void **state)
{
    struct wm_result result = { 0 };
    char path[256];

    snprintf(path, sizeof(path), "%s/nothing", (char *)*state);
    assert_int_equal(wm_metrics_read(path, &window, &result.metrics, NULL), WM_OK);
    assert_non_null(strstr(result.metrics.note, "No such file"));
    assert_int_equal(wm_metrics_read(*state, &window, &result.metrics, NULL), WM_OK);
    assert_string_equal(result.metrics.note, "not a regular file");
    snprintf(path, sizeof(path), "%s/pipe", (char *)*state);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(wm_metrics_read(path, &window, &result.metrics, NULL), WM_OK);
    assert_string_equal(result.metrics.note, "not a regular file");
    wm_result_release(&result);
}

static void test_json(void **state)
{
    struct wm_result result =
        read_text(*state, "{\"time\": 1800000001, \"a\": 1, \"b\": 0.1}\n"
                          "nonsense\n{\"time\": 1800000002, \"a\": 2}\n");
    struct wm_result again = { 0 };
    char *text = NULL;

    assert_int_equal(wm_result_to_json(&result, &text, NULL), WM_OK);
    assert_int_equal(wm_result_from_json(text, &again, NULL), WM_OK);
    assert_int_equal(again.metrics.count, 2);
    assert_string_equal(again.metrics.all[0].name, "a");
    assert_int_equal(again.metrics.all[0].count, 2);
    assert_int_equal(again.metrics.all[0].points[1].when_ns, 1002 * S);
    assert_float_equal(again.metrics.all[1].points[0].value, 0.1, 0);
    assert_string_equal(again.metrics.note, result.metrics.note);
    free(text);
    wm_result_release(&result);
    wm_result_release(&again);
}

static void test_damaged_json(void **state)
{
    static const char *const damaged[] = {
        "1",
        "[]",
        "{}",
        "{\"series\": []}",
        "{\"series\": {\"a\": 1}}",
        "{\"series\": {\"a\": [1]}}",
        "{\"series\": {\"a\": [[]]}}",
        "{\"series\": {\"a\": [[1]]}}",
        "{\"series\": {\"a\": [[1.5, 1]]}}",
        "{\"series\": {\"a\": [[-1, 1]]}}",
        "{\"series\": {\"a\": [[9223372036854775807, 1]]}}",
        "{\"series\": {\"a\": [[1, \"1\"]]}}",
        "{\"series\": {\"\": [[1, 1]]}}",
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(damaged); i++) {
        struct wm_result result = { 0 };
        struct wm_error err = { 0 };
        char text[256];

        print_message("  %s\n", damaged[i]);
        snprintf(text, sizeof(text), "{\"metrics\": %s}", damaged[i]);
        assert_int_equal(wm_result_from_json(text, &result, &err), WM_EFORMAT);
        assert_non_null(strstr(err.text, "metrics"));
    }
}

static void test_limits(void **state)
{
    struct wm_result result = { 0 };
    struct wm_error err;
    char name[200];
    (void)state;

    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    assert_int_equal(wm_metrics_add(&result.metrics, name, 1, 1, &err), WM_EINVAL);
    name[WM_METRIC_NAME_MAX] = '\0';
    assert_int_equal(wm_metrics_add(&result.metrics, name, 1, 1, &err), WM_OK);
    for (int i = 1; i < WM_METRIC_POINTS_MAX; i++)
        assert_int_equal(wm_metrics_add(&result.metrics, "a", i, 1, &err), WM_OK);
    assert_int_equal(wm_metrics_add(&result.metrics, "a", 1, 1, &err), WM_EINVAL);
    wm_result_release(&result);
    for (int i = 0; i < WM_METRICS_MAX; i++) {
        snprintf(name, sizeof(name), "m%d", i);
        assert_int_equal(wm_metrics_add(&result.metrics, name, 1, 1, &err), WM_OK);
    }
    assert_int_equal(wm_metrics_add(&result.metrics, "one more", 1, 1, &err), WM_EINVAL);
    assert_int_equal(wm_metrics_add(&result.metrics, "m7", 2, 1, &err), WM_OK);
    wm_result_release(&result);
}

static void test_out_of_memory(void **state)
{
    struct wm_result first =
        read_text(*state, "{\"time\": 1800000001, \"a\": 1, \"b\": 2}\n");
    char path[256];

    wm_result_release(&first);
    snprintf(path, sizeof(path), "%s/m.jsonl", (char *)*state);
    for (long nth = 0; nth < 100; nth++) {
        struct wm_result result = { 0 };
        test_fail_allocation(nth);
        int status = wm_metrics_read(path, &window, &result.metrics, NULL);
        test_fail_allocation(-1);
        size_t count = result.metrics.count;
        wm_result_release(&result);
        if (status == WM_OK && count == 2)
            return;
        assert_int_equal(status, WM_ENOMEM);
    }
    fail_msg("it never succeeded");
}

UNIT(record_metrics)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_lines, test_make_dir, test_remove_dir),
        cmocka_unit_test_setup_teardown(test_long_lines, test_make_dir, test_remove_dir),
        cmocka_unit_test_setup_teardown(test_times_and_order, test_make_dir,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(test_files, test_make_dir, test_remove_dir),
        cmocka_unit_test_setup_teardown(test_json, test_make_dir, test_remove_dir),
        cmocka_unit_test(test_damaged_json),
        cmocka_unit_test(test_limits),
        cmocka_unit_test_setup_teardown(test_out_of_memory, test_make_dir, test_remove_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
