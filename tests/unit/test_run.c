/* SPDX-License-Identifier: Apache-2.0 */
/* test_run.c - a run and its result as JSON, and back. */
#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base_file.h"
#include "record/run/record_run.h"
#include "record/run/record_writer.h"
#include "test_record_fixture.h"

static void test_run_round_trip(void **state)
{
    struct wm_run given = *fixture_run(), again = { 0 };
    const struct wm_run *run = &given;
    struct wm_error err = { 0 };
    char *text = NULL;
    (void)state;

    given.expected_cores = 2.1;
    given.writer_pid = 4700;
    given.writer_start = UINT64_C(1) << 60;
    assert_ok(wm_run_to_json(run, &text, &err));
    assert_ok(wm_run_from_json(text, &again, &err));
    free(text);

    assert_string_equal(again.id, run->id);
    assert_string_equal(again.version, run->version);
    assert_string_equal(again.mode, run->mode);
    assert_string_equal(again.host, run->host);
    assert_string_equal(again.boot_id, run->boot_id);
    assert_string_equal(again.kernel, run->kernel);
    assert_string_equal(again.cpu_model, run->cpu_model);
    assert_int_equal(again.command_count, run->command_count);
    for (size_t i = 0; i < run->command_count; i++)
        assert_string_equal(again.command[i], run->command[i]);
    assert_int_equal(again.note_count, 1);
    assert_string_equal(again.notes[0].key, run->notes[0].key);
    assert_string_equal(again.notes[0].value, run->notes[0].value);
    assert_int_equal(again.environment_count, 2);
    assert_string_equal(again.environment[0].value, "42");
    assert_string_equal(again.environment[1].key, "CUDA_VISIBLE_DEVICES");
    assert_null(again.environment[1].value);
    assert_int_equal(again.source_count, 2);
    assert_true(again.sources[0].available);
    assert_string_equal(again.sources[0].detail, "driver 550.54");
    assert_false(again.sources[1].available);
    assert_int_equal(again.pid, run->pid);
    assert_int_equal(again.writer_pid, run->writer_pid);
    assert_true(again.writer_start == run->writer_start);
    assert_true(again.anchor_ns == run->anchor_ns);
    assert_true(again.anchor_unix_ns == run->anchor_unix_ns);
    assert_true(again.interval_ns == run->interval_ns);
    assert_int_equal(again.core_count, run->core_count);
    assert_true(again.expected_cores == run->expected_cores);
    assert_int_equal(again.gpu_count, run->gpu_count);
    assert_int_equal(again.expected_gpu_count, run->expected_gpu_count);
    wm_run_release(&again);
}

static void test_result_round_trip(void **state)
{
    struct wm_result result = fixture_result(), again = { 0 };
    struct wm_error err = { 0 };
    char *text = NULL;
    (void)state;

    snprintf(result.memory_note, sizeof(result.memory_note), "\"quoted\", \x01");
    snprintf(result.regions_note, sizeof(result.regions_note), "the last ones");
    result.usage = (struct wm_usage) { .user_seconds = { true, 0.25 },
                                       .minor_faults = { true, 12 },
                                       .read_bytes = { true, 1e15 },
                                       .note = "some",
                                       .io_note = "none" };
    result.events[WM_EVENT_INSTRUCTIONS] = (struct wm_known) { true, 123456789012 };
    snprintf(result.events_note, sizeof(result.events_note), "cycles: none");
    snprintf(result.recording_trouble, sizeof(result.recording_trouble), "x: disk full");
    result.missed_ticks = UINT64_MAX;
    result.lost_ticks = INT64_MAX;
    assert_ok(wm_result_to_json(&result, &text, &err));
    assert_ok(wm_result_from_json(text, &again, &err));
    free(text);

    assert_true(again.end_ns == result.end_ns);
    assert_false(again.exit_status.known);
    assert_int_equal(again.exit_signal, 9);
    assert_true(again.cpu_total_seconds.known &&
                again.cpu_total_seconds.number == result.cpu_total_seconds.number);
    assert_true(again.cpu_main_seconds.known &&
                again.cpu_main_seconds.number == result.cpu_main_seconds.number);
    assert_false(again.cpu_descendants_seconds.known);
    assert_string_equal(again.cpu_method, result.cpu_method);
    assert_true(again.usage.user_seconds.known && again.usage.user_seconds.number == 0.25);
    assert_false(again.usage.system_seconds.known);
    assert_true(again.usage.minor_faults.number == 12);
    assert_true(again.usage.read_bytes.number == 1e15);
    assert_string_equal(again.usage.note, "some");
    assert_string_equal(again.usage.io_note, "none");
    assert_false(again.events[WM_EVENT_CYCLES].known);
    assert_true(again.events[WM_EVENT_INSTRUCTIONS].number == 123456789012);
    assert_string_equal(again.events_note, "cycles: none");
    assert_string_equal(again.memory_note, result.memory_note);
    assert_string_equal(again.regions_note, result.regions_note);
    assert_string_equal(again.recording_trouble, result.recording_trouble);
    assert_true(again.peak_rss_bytes.known &&
                again.peak_rss_bytes.number == result.peak_rss_bytes.number);
    assert_true(again.peak_rss_is_main);
    assert_int_equal(again.ticks, 20);
    assert_int_equal(again.late_ticks, 1);
    assert_true(again.missed_ticks == INT64_MAX); /* as many as JSON can say */
    assert_true(again.lost_ticks == INT64_MAX);
    assert_true(again.tool_cpu_seconds.known &&
                again.tool_cpu_seconds.number == result.tool_cpu_seconds.number);
    assert_true(again.tool_max_rss_bytes.known &&
                again.tool_max_rss_bytes.number == result.tool_max_rss_bytes.number);
    assert_int_equal(again.process_count, 2);
    assert_string_equal(again.processes[0].name, "train \xef\xbf\xbd py");
    assert_false(again.processes[0].max_private_bytes.known);
    assert_int_equal(again.processes[1].pid, 4712);
    assert_int_equal(again.processes[1].parent, 4711);
    assert_true(again.processes[1].cpu_seconds.number == 0.125);
    assert_int_equal(again.processes_seen, 3);
    wm_result_release(&again);
}

/* What JSON does not know becomes null, and never breaks the document. */
static void test_unknown(void **state)
{
    static const struct {
        const char *key;
        bool null;
    } cases[] = {
        { "exit_status", true },        { "cpu_total_seconds", true },
        { "cpu_main_seconds", true },   { "cpu_descendants_seconds", true },
        { "peak_rss_bytes", true },     { "tool_cpu_seconds", true },
        { "tool_max_rss_bytes", true }, { "ticks", false },
        { "exit_signal", false },       { "recording_trouble", false },
    };
    struct wm_result result = {
        .exit_status = { 0 },
        .cpu_total_seconds = { true, NAN },
        .cpu_main_seconds = { 0 },
        .cpu_descendants_seconds = { true, -INFINITY },
        .peak_rss_bytes = { true, NAN },
        .tool_cpu_seconds = { true, NAN },
        .tool_max_rss_bytes = { true, INFINITY },
    };
    struct wm_error err = { 0 };
    char *text = NULL;
    (void)state;

    assert_ok(wm_result_to_json(&result, &text, &err));
    json_t *object = json_loads(text, 0, NULL);
    assert_non_null(object);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        json_t *value = json_object_get(object, cases[i].key);
        print_message("  %s\n", cases[i].key);
        assert_non_null(value);
        assert_int_equal(json_is_null(value), cases[i].null);
    }
    json_decref(object);
    assert_ok(wm_result_from_json(text, &result, &err));
    assert_false(result.exit_status.known);
    assert_false(result.cpu_total_seconds.known);
    assert_false(result.cpu_descendants_seconds.known);
    assert_false(result.peak_rss_bytes.known);
    assert_false(result.tool_cpu_seconds.known);
    assert_false(result.tool_max_rss_bytes.known);
    free(text);
}

static void test_bytes_become_utf8(void **state)
{
    static const struct {
        const char *what, *bytes, *text;
    } cases[] = {
        { "ASCII", "abc", "abc" },
        { "UTF-8", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x94\x8b",
          "\xc3\xa9\xe2\x82\xac\xf0\x9f\x94\x8b" },
        { "Latin-1", "caf\xe9", "caf\xef\xbf\xbd" },
        { "cut off", "a\xe2\x82", "a\xef\xbf\xbd" },
        { "overlong", "\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd" },
        { "a surrogate", "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
        { "control characters", "\x01\x1b[0m\n", "\x01\x1b[0m\n" },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *bytes = (char *)(uintptr_t)cases[i].bytes;
        struct wm_pair note = { bytes, bytes };
        struct wm_run run = { .host = bytes,
                              .command = &bytes,
                              .command_count = 1,
                              .notes = &note,
                              .note_count = 1 };
        struct wm_run again = { 0 };
        struct wm_error err = { 0 };
        char *text = NULL;

        print_message("  %s\n", cases[i].what);
        assert_ok(wm_run_to_json(&run, &text, &err));
        assert_ok(wm_run_from_json(text, &again, &err));
        assert_string_equal(again.host, cases[i].text);
        assert_string_equal(again.command[0], cases[i].text);
        assert_string_equal(again.notes[0].key, cases[i].text);
        assert_string_equal(again.notes[0].value, cases[i].text);
        wm_run_release(&again);
        free(text);
    }
}

/* Older and newer recordings lack and have keys; that is no fault. */
static void test_other_versions(void **state)
{
    struct wm_run run = { 0 };
    struct wm_result result = { 0 };
    struct wm_error err = { 0 };
    (void)state;

    assert_ok(
        wm_run_from_json("{\"host\":\"a\",\"what\":{\"is\":[\"this\"]}}", &run, &err));
    assert_string_equal(run.host, "a");
    assert_null(run.id);
    assert_int_equal(run.command_count, 0);
    wm_run_release(&run);
    assert_ok(wm_result_from_json("{}", &result, &err));
    assert_false(result.exit_status.known);
    assert_false(result.cpu_main_seconds.known);
    assert_int_equal(result.ticks, 0);
    wm_result_release(&result);
    wm_result_release(&result);
}

static void test_broken_run(void **state)
{
    static const struct {
        const char *text, *complains_of;
    } cases[] = {
        { "", "not JSON" },
        { "x", "not JSON" },
        { "{", "not JSON" },
        { "{}x", "not JSON" },
        { "{\"pid\":1e999}", "not JSON" },
        { "{\"host\":\"\xff\"}", "not JSON" },
        { "[]", "'run' is not an object" },
        { "1", "not JSON" },
        { "{\"host\":1}", "'host' is not a string" },
        { "{\"host\":[]}", "'host'" },
        { "{\"pid\":\"1\"}", "'pid'" },
        { "{\"pid\":1.5}", "'pid'" },
        { "{\"pid\":2147483648}", "'pid'" },
        { "{\"core_count\":-2147483649}", "'core_count'" },
        { "{\"interval_ns\":-1}", "'interval_ns'" },
        { "{\"anchor_ns\":4611686018427387904}", "'anchor_ns'" },
        { "{\"anchor_unix_ns\":9223372036854775807}", "'anchor_unix_ns'" },
        { "{\"expected_cores\":\"8\"}", "'expected_cores'" },
        { "{\"command\":\"ls\"}", "'command' is not an array" },
        { "{\"command\":[1]}", "'command' is not an array of strings" },
        { "{\"command\":[\"a\",null]}", "'command'" },
        { "{\"notes\":[]}", "'notes' is not an object" },
        { "{\"notes\":{\"a\":1}}", "'notes'" },
        { "{\"environment\":{\"a\":\"b\",\"c\":{}}}", "'environment'" },
        { "{\"sources\":{}}", "'sources' is not an array" },
        { "{\"sources\":[1]}", "'sources' is not an object" },
        { "{\"sources\":[{\"name\":\"a\"},{\"available\":1}]}", "'available'" },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_run run = { .pid = 7 };
        struct wm_error err = { 0 };
        print_message("  %s\n", cases[i].text);
        assert_int_equal(wm_run_from_json(cases[i].text, &run, &err), WM_EFORMAT);
        if (!strstr(err.text, cases[i].complains_of))
            fail_msg("%s", err.text);
        assert_int_equal(run.pid, 7);
    }
}

static void test_broken_result(void **state)
{
    static const struct {
        const char *text, *complains_of;
    } cases[] = {
        { "null", "not JSON" },
        { "[]", "'result' is not an object" },
        { "{\"ticks\":-1}", "'ticks'" },
        { "{\"ticks\":1.5}", "'ticks'" },
        { "{\"ticks\":18446744073709551615}", "not JSON" },
        { "{\"end_ns\":-1}", "'end_ns'" },
        { "{\"exit_status\":\"0\"}", "'exit_status'" },
        { "{\"peak_rss_is_main\":0}", "'peak_rss_is_main'" },
        { "{\"cpu_method\":1}", "'cpu_method' is not a string" },
        { "{\"processes\":1}", "'processes' is not an array" },
        { "{\"processes\":[null]}", "'processes' is not an object" },
        { "{\"processes\":[{\"pid\":1},{\"pid\":99999999999}]}", "'pid'" },
        { "{\"processes\":[{\"name\":{}}]}", "'name'" },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_result result = { .ticks = 7 };
        struct wm_error err = { 0 };
        print_message("  %s\n", cases[i].text);
        assert_int_equal(wm_result_from_json(cases[i].text, &result, &err), WM_EFORMAT);
        if (!strstr(err.text, cases[i].complains_of))
            fail_msg("%s", err.text);
        assert_int_equal(result.ticks, 7);
    }
}

/* Texts longer than their place end with a whole character. */
static void test_long_text(void **state)
{
    struct wm_result result = { 0 };
    struct wm_error err = { 0 };
    char text[1024];
    int length = snprintf(text, sizeof(text), "{\"cpu_method\":\"");
    (void)state;

    for (int i = 0; i < 100; i++)
        length += snprintf(text + length, sizeof(text) - (size_t)length, "\xe2\x82\xac");
    snprintf(text + length, sizeof(text) - (size_t)length, "\"}");
    assert_ok(wm_result_from_json(text, &result, &err));
    assert_int_equal(strlen(result.cpu_method), (sizeof(result.cpu_method) - 1) / 3 * 3);
    wm_result_release(&result);
}

static void test_no_memory(void **state)
{
    int status = WM_ENOMEM;
    char *text = NULL;
    long nth;
    (void)state;

    for (nth = 0; status != WM_OK; nth++) {
        test_fail_allocation(nth);
        status = wm_run_to_json(fixture_run(), &text, NULL);
        test_fail_allocation(-1);
        assert_true(status == WM_OK || status == WM_ENOMEM);
    }
    assert_true(nth > 5);
    for (status = WM_ENOMEM, nth = 0; status != WM_OK; nth++) {
        struct wm_run run = { 0 };
        test_fail_allocation(nth);
        status = wm_run_from_json(text, &run, NULL);
        test_fail_allocation(-1);
        assert_true(status == WM_OK || status == WM_ENOMEM);
        wm_run_release(&run);
    }
    assert_true(nth > 5);
    free(text);
}

static bool is_writing(const struct wm_run *run)
{
    return !strstr(wm_writer_why_unfinished(run), "was killed");
}

static void test_writer(void **state)
{
    char boot[64], other_boot[] = "11111111-2222-3333-4444-555555555555";
    struct wm_run run = { .boot_id = boot }, changed;

    (void)state;
    assert_true(
        wm_file_read_line(AT_FDCWD, "/proc/sys/kernel/random/boot_id", boot, sizeof(boot)));
    assert_false(is_writing(&run));
    wm_writer_note(&run);
    assert_int_equal(run.writer_pid, getpid());
    assert_string_equal(wm_writer_why_unfinished(&run), "it is still being written");

    changed = run;
    changed.boot_id = other_boot;
    assert_false(is_writing(&changed));
    changed.boot_id = NULL;
    assert_false(is_writing(&changed));
    changed = run;
    changed.writer_start++; /* another one with its pid */
    assert_false(is_writing(&changed));
    static const pid_t nobody[] = { 0, -1, INT32_MIN, INT32_MAX };
    for (size_t i = 0; i < ARRAY_LEN(nobody); i++) {
        changed = run;
        changed.writer_pid = nobody[i];
        assert_false(is_writing(&changed));
    }
}

/* It is killed, and whoever started it has not asked for it yet. */
static void test_writer_that_was_killed(void **state)
{
    char boot[64];
    struct wm_run run = { .boot_id = boot };
    int ends[2];

    (void)state;
    assert_true(
        wm_file_read_line(AT_FDCWD, "/proc/sys/kernel/random/boot_id", boot, sizeof(boot)));
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        wm_writer_note(&run);
        _exit(write(ends[1], &run.writer_start, sizeof(run.writer_start)) < 0);
    }
    run.writer_pid = child;
    assert_int_equal(read(ends[0], &run.writer_start, sizeof(run.writer_start)),
                     sizeof(run.writer_start));
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    assert_false(is_writing(&run));
    waitpid(child, NULL, 0);
    assert_false(is_writing(&run));
    close(ends[0]);
    close(ends[1]);
}

UNIT(run)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_round_trip),
        cmocka_unit_test(test_result_round_trip),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_bytes_become_utf8),
        cmocka_unit_test(test_other_versions),
        cmocka_unit_test(test_broken_run),
        cmocka_unit_test(test_broken_result),
        cmocka_unit_test(test_long_text),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_writer),
        cmocka_unit_test(test_writer_that_was_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
