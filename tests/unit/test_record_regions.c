/* SPDX-License-Identifier: Apache-2.0 */
/* test_record_regions.c - regions in recordings: written, exported and read back, in
 * whatever format; and what a file may say of them that is not so. */
#include "test_calls.h"
#include "test_record_fixture.h"

#include <jansson.h>
#include <sqlite3.h>
#include <unistd.h>

#include "record/record_ops.h"
#include "record/record_regions.h"
#include "wattmeter/report.h"

static const char *const readable[] = { "run.sqlite", "run.csv" };

static const char odd_name[] = "a \"b\", c\nd\t100%41;'--\xc3\xa9";

enum { SECOND = 1000000000 };

static char long_name[4097];

/* Two batches, by their stops: a whole with two parts, of which one is open; another
 * thread; one by itself. */
static const struct wm_region_path *paths(void)
{
    static struct wm_region_path all[] = {
        { "epoch", WM_REGION_NO_PATH, 0, false },  { odd_name, 0, 1, false },
        { "request", WM_REGION_NO_PATH, 0, true }, { long_name, 1, 2, false },
        { "", WM_REGION_NO_PATH, 0, false },
    };

    memset(long_name, 'n', sizeof(long_name) - 1);
    return all;
}

static const struct wm_region_thread threads[] = { { 4711, 4711, 0 },
                                                   { 4711, 4720, 0 },
                                                   { 4711, 4711, 1 } };

static const struct wm_region_fold folds[] = {
    { 5, 300000, 60000000000, 500, 200000, { 2, 1, 0, 0, 0, 0, 0, 1, 1, 0 } },
};

/* The second is clocked, the third none of the time; the last is five short calls. */
static const struct wm_region_record calls[] = {
    { 1200000000, 1300000000, 1, 0, false, 0, 0 },
    { 1250000000, 1350000000, 2, 1, false, 90000001, 0 },
    { 1400000000, 1400000000, 1, 0, false, 1, 0 },
    { 1450000000, 1500000000, 3, 0, true, 0, 0 },
    { 1450000000, 1500000000, 1, 0, true, 0, 0 },
    { 1100000000, 1500000000, 0, 0, true, 0, 0 },
    { 1300000000, 1600000000, 4, 2, false, 0, 1 },
};

static const struct wm_region_batch *batches(void)
{
    static struct wm_region_batch all[2];

    all[0] = (struct wm_region_batch) {
        .paths = paths(),
        .threads = threads,
        .calls = calls,
        .path_count = 3,
        .thread_count = 2,
        .call_count = 2,
    };
    all[1] = (struct wm_region_batch) {
        .paths = paths() + 3,
        .threads = threads + 2,
        .calls = calls + 2,
        .folds = folds,
        .first_path = 3,
        .path_count = 2,
        .first_thread = 2,
        .thread_count = 1,
        .call_count = ARRAY_LEN(calls) - 2,
    };
    return all;
}

/* As wm_calls has them: by their starts, the outer ones first. */
static const size_t order[] = { 5, 0, 1, 6, 2, 4, 3 };

/* Fifteen ticks, with regions before, between and after them. */
static void record_regions(const char *path, enum wm_record_mode mode)
{
    struct wm_reading readings[FIXTURE_CHANNELS];
    struct wm_recorder *recorder = NULL;
    struct wm_result result = fixture_result();
    struct wm_gap gap = fixture_gap();
    struct wm_error err = { 0 };

    assert_ok(wm_recorder_open(path, mode, fixture_run(), fixture_channels(),
                               FIXTURE_CHANNELS, &recorder, &err));
    for (size_t n = 0; n < 15; n++) {
        struct wm_tick tick = fixture_tick(n, readings);
        if (n == 5)
            wm_recorder_regions(recorder, &batches()[0]);
        wm_recorder_tick(recorder, &tick);
    }
    assert_true(wm_recorder_has_room(recorder, 1000));
    wm_recorder_regions(recorder, &batches()[1]);
    wm_recorder_gap(recorder, &gap);
    result.stray_regions = 7;
    result.dropped_regions = 8;
    wm_recorder_flush(recorder, &result);
    assert_string_equal(result.recording_trouble, "");
    assert_int_equal(result.lost_regions, 0);
    assert_ok(wm_recorder_finish(recorder, &result, &err));
    wm_recorder_close(recorder);
}

static void assert_same_text(const char *text, const char *expected)
{
    assert_string_equal(text ? text : "(none)", expected ? expected : "(none)");
}

static void assert_path(const struct wm_region_path *path, uint32_t number)
{
    const struct wm_region_path *expected = &paths()[number];

    assert_same_text(path->name, expected->name);
    assert_int_equal(path->parent, expected->parent);
    assert_int_equal(path->depth, expected->depth);
    assert_int_equal(path->is_free, expected->is_free);
}

/* `is_bare`: the file has no CPU times and no folded calls. */
static void assert_told(const struct wm_call *call, const struct wm_region_record *expected,
                        bool is_bare)
{
    static const struct wm_region_fold none;

    assert_int_equal(call->clocked, is_bare ? 0 : expected->clocked);
    assert_memory_equal(&call->fold,
                        is_bare || expected->fold == 0 ? &none : &folds[expected->fold - 1],
                        sizeof(none));
}

static void assert_calls(const char *path, size_t run, bool is_bare)
{
    const struct wm_run *it = fixture_run();
    struct wm_calls *read = NULL;
    struct wm_error err = { 0 };
    struct wm_call call;

    assert_ok(open_calls(path, run, &read, &err));
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        const struct wm_region_record *expected = &calls[order[i]];
        if (wm_calls_next(read, &call, &err) != 1)
            fail_msg("call %zu: %s", i, err.text);
        assert_int_equal(call.monotonic_start_ns, expected->start_ns);
        assert_int_equal(call.monotonic_stop_ns, expected->stop_ns);
        assert_int_equal(call.start_ns,
                         expected->start_ns - it->anchor_ns + it->anchor_unix_ns);
        assert_int_equal(call.stop_ns - call.start_ns,
                         expected->stop_ns - expected->start_ns);
        assert_int_equal(call.is_open, expected->is_open);
        assert_told(&call, expected, is_bare);
        assert_int_equal(call.path, expected->path);
        assert_int_equal(call.pid, threads[expected->thread].pid);
        assert_int_equal(call.tid, threads[expected->thread].tid);
        assert_int_equal(call.thread, expected->thread);
        assert_int_equal(call.process, threads[expected->thread].process);
        assert_string_equal(call.name, paths()[expected->path].name);
        assert_near(call.seconds, (double)(expected->stop_ns - expected->start_ns) / 1e9,
                    1e-12);
        assert_path(wm_calls_path(read, call.path), expected->path);
    }
    assert_int_equal(wm_calls_next(read, &call, &err), 0);
    assert_int_equal(wm_calls_next(read, &call, &err), 0);
    assert_int_equal(wm_calls_stray(read), 7);
    wm_calls_close(read);
}

static void assert_regions(const char *path, size_t run)
{
    assert_calls(path, run, false);
}

/* The ticks are those that they would be without. */
static void assert_ticks(const char *path, size_t ticks)
{
    struct wm_recording *recording = NULL;
    struct wm_error err = { 0 };
    struct wm_tick tick;

    assert_ok(wm_recording_open(path, WM_LAST_RUN, &recording, &err));
    for (size_t n = 0; n < ticks; n++) {
        if (wm_recording_next(recording, &tick, &err) != 1)
            fail_msg("tick %zu: %s", n, err.text);
        assert_int_equal(tick.when_ns, SECOND + (int64_t)n * 100000000);
    }
    assert_int_equal(wm_recording_next(recording, &tick, &err), 0);
    assert_int_equal(wm_recording_result(recording)->dropped_regions, 8);
    wm_recording_close(recording);
}

/* Of which two had the same pid, one after the other. */
static void assert_processes(const char *path)
{
    struct wm_recording *recording = NULL;
    struct wm_report *report = NULL;
    struct wm_report_figure processes;
    struct wm_error err = { 0 };

    assert_ok(wm_recording_open(path, WM_LAST_RUN, &recording, &err));
    assert_ok(wm_report_from_recording(recording, &report, &err));
    assert_ok(wm_report_figure(report, NULL, "region_processes", &processes));
    assert_near(processes.value, 2, 0);
    wm_report_free(report);
    wm_recording_close(recording);
}

static void test_round_trip(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(readable); i++) {
        const char *path = fixture_path(state, readable[i]);
        print_message("  %s\n", readable[i]);
        record_regions(path, WM_RECORD_NEW);
        assert_regions(path, WM_LAST_RUN);
        assert_ticks(path, 15);
        assert_processes(path);
    }
}

static void export(const char *from, const char *to)
{
    struct wm_recording *recording = NULL;
    struct wm_error err = { 0 };

    assert_ok(wm_recording_open(from, WM_LAST_RUN, &recording, &err));
    assert_ok(wm_recording_export(recording, to, WM_RECORD_NEW, &err));
    wm_recording_close(recording);
}

static void test_export(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(readable); i++) {
        char name[32];
        const char *path = fixture_path(state, readable[i]);
        record_regions(path, WM_RECORD_NEW);
        for (size_t k = 0; k < ARRAY_LEN(readable); k++) {
            snprintf(name, sizeof(name), "%zu%s", i, readable[k]);
            const char *copy = fixture_path(state, name);
            print_message("  %s to %s\n", readable[i], readable[k]);
            export(path, copy);
            assert_regions(copy, WM_LAST_RUN);
            assert_ticks(copy, 15);
        }
    }
}

/* Regions are read once: what comes later would be a report or a copy without them. */
static void test_read_already(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(readable); i++) {
        const char *path = fixture_path(state, readable[i]);
        struct wm_recording *recording = NULL;
        struct wm_report *report = NULL;
        struct wm_error err = { 0 };
        char to[32];

        print_message("  %s\n", readable[i]);
        record_regions(path, WM_RECORD_NEW);
        snprintf(to, sizeof(to), "calls%zu.csv", i);
        const char *first = fixture_path(state, to);
        assert_ok(wm_recording_open(path, WM_LAST_RUN, &recording, &err));
        assert_ok(
            wm_recording_export_sub_tracking(recording, first, WM_RECORD_NEW, NULL, &err));
        assert_int_equal(wm_report_from_recording(recording, &report, &err), WM_EINVAL);
        snprintf(to, sizeof(to), "again%zu.csv", i);
        const char *again = fixture_path(state, to);
        assert_int_equal(wm_recording_export(recording, again, WM_RECORD_NEW, &err),
                         WM_EINVAL);
        assert_int_equal(
            wm_recording_export_sub_tracking(recording, again, WM_RECORD_NEW, NULL, &err),
            WM_EINVAL);
        assert_non_null(strstr(err.text, "has been read already"));
        wm_recording_close(recording);
    }
}

/* AIPowerMeter's folders keep none, and say nothing of it. */
static void test_export_without(void **state)
{
    struct wm_calls *read = NULL;
    struct wm_error err = { 0 };
    const char *path = fixture_path(state, "run.sqlite");
    const char *folder = fixture_path(state, "run.aipm");

    record_regions(path, WM_RECORD_NEW);
    export(path, folder);
    assert_int_equal(open_calls(folder, WM_LAST_RUN, &read, &err), WM_ENODEV);
}

static void test_json(void **state)
{
    const char *path = fixture_path(state, "run.sqlite");
    const char *exported = fixture_path(state, "run.json");

    record_regions(path, WM_RECORD_NEW);
    export(path, exported);
    json_t *document = json_load_file(exported, 0, NULL);
    const json_t *regions = json_object_get(document, "regions");
    const json_t *all = json_object_get(regions, "calls");
    const json_t *first = json_array_get(all, 0);
    const json_t *path_3 = json_array_get(json_object_get(regions, "paths"), 3);
    const json_t *thread = json_array_get(json_object_get(regions, "threads"), 1);

    assert_int_equal(json_array_size(all), ARRAY_LEN(calls));
    assert_int_equal(json_integer_value(json_array_get(first, 0)), calls[0].path);
    assert_int_equal(json_integer_value(json_array_get(first, 2)), calls[0].start_ns);
    assert_true(json_is_false(json_array_get(first, 4)));
    assert_true(json_is_true(json_array_get(json_array_get(all, 3), 4)));
    assert_string_equal(json_string_value(json_object_get(path_3, "name")), long_name);
    assert_int_equal(json_integer_value(json_object_get(path_3, "parent")), 1);
    assert_int_equal(json_integer_value(json_object_get(thread, "tid")), 4720);
    assert_int_equal(json_array_size(json_object_get(document, "samples")), 15);
    assert_int_equal(json_array_size(json_object_get(document, "gaps")), 1);
    json_decref(document);

    const char *plain = fixture_path(state, "plain.sqlite");
    const char *plain_exported = fixture_path(state, "plain.json");
    record_fixture(plain, WM_RECORD_NEW, 3);
    export(plain, plain_exported);
    document = json_load_file(plain_exported, 0, NULL);
    all = json_object_get(json_object_get(document, "regions"), "calls");
    assert_true(json_is_array(all));
    assert_int_equal(json_array_size(all), 0);
    json_decref(document);
}

/* Runs `sql` on the database; the first number that comes of it. */
static int64_t sql_number(const char *path, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    sqlite3 *db = NULL;
    int64_t number = -1;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
        fail_msg("%s", sqlite3_errmsg(db));
    if (sqlite3_step(statement) == SQLITE_ROW)
        number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return number;
}

static void test_append(void **state)
{
    const char *path = fixture_path(state, "run.sqlite");

    record_regions(path, WM_RECORD_NEW);
    record_fixture(path, WM_RECORD_APPEND, 3);
    record_regions(path, WM_RECORD_APPEND);
    assert_regions(path, 0);
    assert_regions(path, 2);
    struct wm_calls *read = NULL;
    struct wm_error err;
    assert_int_equal(open_calls(path, 1, &read, &err), WM_ENODEV);
    assert_int_equal(sql_number(path, "SELECT count(*) FROM region WHERE run = 3"),
                     ARRAY_LEN(calls));
    assert_int_equal(
        sql_number(path, "SELECT stop_ns - start_ns FROM region WHERE run = 3 AND"
                         " name = 'request' AND pid = 4711 AND tid = 4720 AND depth = 0"
                         " AND NOT open"),
        100000000);
    assert_int_equal(
        sql_number(path, "SELECT depth FROM region WHERE run = 1 AND length(name) = 4096"),
        2);
}

static void test_samples(void **state)
{
    static const char *const files[] = { "tests/data/recordings/v1.sqlite",
                                         "tests/data/recordings/v1.csv" };
    struct wm_calls *read = NULL;
    struct wm_error err;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        assert_int_equal(open_calls(test_source_path(files[i]), WM_LAST_RUN, &read, &err),
                         WM_ENODEV);
    assert_calls(test_source_path("tests/data/recordings/v1-regions.sqlite"), WM_LAST_RUN,
                 true);
    assert_calls(test_source_path("tests/data/recordings/v2.csv"), WM_LAST_RUN, true);
}

/* More than is kept in memory, by their stops; each thread has one that is open from the
 * first to the last. */
static void test_many(void **state)
{
    enum { CALLS = 300000, BATCH = 1000, THREADS = 3 };
    static struct wm_region_record records[BATCH];
    const struct wm_region_path path = { "x", WM_REGION_NO_PATH, 0, false };

    for (size_t i = 0; i < ARRAY_LEN(readable); i++) {
        struct wm_recorder *recorder = NULL;
        struct wm_result result = fixture_result();
        struct wm_error err = { 0 };
        struct wm_reading readings[FIXTURE_CHANNELS];
        struct wm_tick tick = fixture_tick(0, readings);
        const char *file = fixture_path(state, readable[i]);
        struct wm_region_batch batch = { .paths = &path,
                                         .threads = threads,
                                         .calls = records,
                                         .path_count = 1,
                                         .thread_count = THREADS,
                                         .call_count = BATCH };

        assert_ok(wm_recorder_open(file, WM_RECORD_NEW, fixture_run(), fixture_channels(),
                                   FIXTURE_CHANNELS, &recorder, &err));
        wm_recorder_tick(recorder, &tick);
        for (int64_t n = 0; n < CALLS; n++) {
            int64_t stop_ns = (n + 1) * 100;
            bool is_outer = n >= CALLS - THREADS;
            records[n % BATCH] = (struct wm_region_record) {
                .start_ns = is_outer ? CALLS - n : stop_ns - 99,
                .stop_ns = stop_ns,
                .thread = (uint32_t)(n % THREADS),
            };
            if (n % BATCH < BATCH - 1)
                continue;
            while (!wm_recorder_has_room(recorder, BATCH))
                usleep(1000);
            wm_recorder_regions(recorder, &batch);
            batch.path_count = batch.thread_count = 0;
            batch.first_path = 1;
            batch.first_thread = THREADS;
        }
        wm_recorder_flush(recorder, &result);
        assert_int_equal(result.lost_regions, 0);
        assert_ok(wm_recorder_finish(recorder, &result, &err));
        wm_recorder_close(recorder);

        struct wm_calls *read = NULL;
        struct wm_call call;
        int64_t last_ns = 0, total = 0, count = 0;
        assert_ok(open_calls(file, WM_LAST_RUN, &read, &err));
        while (wm_calls_next(read, &call, &err) == 1) {
            assert_true(call.monotonic_start_ns >= last_ns);
            last_ns = call.monotonic_start_ns;
            total += call.monotonic_stop_ns;
            count++;
        }
        wm_calls_close(read);
        assert_int_equal(count, CALLS);
        assert_int_equal(total, INT64_C(50) * CALLS * (CALLS + 1));
    }
}

/* Nobody waits: what is too much is counted, and what comes later is whole. */
static void test_too_many(void **state)
{
    enum { CALLS = 200000 };
    static struct wm_region_record records[CALLS];
    struct wm_recorder *recorder = NULL;
    struct wm_result result = fixture_result();
    struct wm_error err = { 0 };
    struct wm_reading readings[FIXTURE_CHANNELS];
    struct wm_tick tick = fixture_tick(0, readings);
    const char *file = fixture_path(state, "run.sqlite");
    struct wm_region_batch batch = batches()[0];

    assert_ok(wm_recorder_open(file, WM_RECORD_NEW, fixture_run(), fixture_channels(),
                               FIXTURE_CHANNELS, &recorder, &err));
    wm_recorder_tick(recorder, &tick);
    for (size_t i = 0; i < CALLS; i++)
        records[i] = (struct wm_region_record) { .start_ns = 1, .stop_ns = 2 };
    batch.calls = records;
    batch.call_count = CALLS;
    wm_recorder_regions(recorder, &batch);

    /* And one of a path that has not been told of. */
    struct wm_region_record unknown = { .start_ns = 1, .stop_ns = 2, .path = 77 };
    wm_recorder_regions(recorder,
                        &(struct wm_region_batch) { .calls = &unknown, .call_count = 1 });
    wm_recorder_flush(recorder, &result);
    assert_true(result.lost_regions > 1);
    assert_true(result.recording_trouble[0] != '\0');
    assert_ok(wm_recorder_finish(recorder, &result, &err));
    wm_recorder_close(recorder);
    assert_int_equal((uint64_t)sql_number(file, "SELECT count(*) FROM region"),
                     CALLS + 1 - result.lost_regions);
    assert_int_equal(sql_number(file, "SELECT count(*) FROM region WHERE name IS NULL"), 0);
}

static int read_regions(const char *path, size_t *ret_calls, struct wm_error *err)
{
    struct wm_calls *read = NULL;
    struct wm_call call;

    *ret_calls = 0;
    int status = open_calls(path, WM_LAST_RUN, &read, err);
    while (status >= 0 && (status = wm_calls_next(read, &call, err)) > 0)
        (*ret_calls)++;
    wm_calls_close(read);
    return status;
}

static void test_edited_sqlite(void **state)
{
    static const struct {
        const char *what, *sql;
        int status;
        const char *complains_of;
    } cases[] = {
        { "nothing", "SELECT 1", WM_OK, "" },
        { "an index", "CREATE INDEX i ON region_call (run)", WM_OK, "" },
        { "no calls", "DELETE FROM region_call", WM_OK, "" },
        { "nothing at all",
          "DELETE FROM region_call; DELETE FROM region_path; DELETE FROM region_thread",
          WM_ENODEV, "no regions" },
        { "no table of calls", "DROP TABLE region_call", WM_EFORMAT,
          "recorded before version 0.1.0" },
        { "a view for a table",
          "ALTER TABLE region_call RENAME TO r; CREATE VIEW region_call AS SELECT * FROM r",
          WM_EFORMAT, "there is no table region_call" },
        { "no column of a call",
          "DROP VIEW region; ALTER TABLE region_call DROP COLUMN"
          " stop_ns",
          WM_EFORMAT, "stop_ns" },
        { "a path that is missing", "DELETE FROM region_path WHERE id = 1", WM_EFORMAT,
          "table region_path: path 2 is not the next one, 1" },
        { "the last path is missing", "DELETE FROM region_path WHERE id = 4", WM_EFORMAT,
          "table region_call: a call of path 4" },
        { "a thread that is missing", "DELETE FROM region_thread WHERE id = 0", WM_EFORMAT,
          "table region_thread" },
        { "a path in itself", "UPDATE region_path SET parent = id WHERE id = 3", WM_EFORMAT,
          "path 3 lies in none before it" },
        { "a path in a later one", "UPDATE region_path SET parent = 4 WHERE id = 3",
          WM_EFORMAT, "path 3" },
        { "a path before the first", "UPDATE region_path SET parent = -2 WHERE id = 3",
          WM_EFORMAT, "path 3" },
        { "no name", "UPDATE region_path SET name = NULL", WM_OK, "" },
        { "a name of bytes", "UPDATE region_path SET name = x'ff00fe'", WM_OK, "" },
        { "a long name", "UPDATE region_path SET name = hex(zeroblob(100000))", WM_EFORMAT,
          "a name of more" },
        { "a depth of no sense", "UPDATE region_path SET depth = 1 << 60", WM_OK, "" },
        { "text for a number", "UPDATE region_path SET id = 'x' WHERE id = 4", WM_EFORMAT,
          "path -1" },
        { "a pid too large", "UPDATE region_thread SET pid = 1 << 40", WM_EFORMAT,
          "of no process" },
        { "no pid", "UPDATE region_thread SET pid = NULL", WM_EFORMAT, "of no process" },
        { "a call of no thread", "UPDATE region_call SET thread = 9", WM_EFORMAT,
          "thread 9" },
        { "a call of a negative path", "UPDATE region_call SET path = -1", WM_EFORMAT,
          "path -1" },
        { "a stop before the start", "UPDATE region_call SET stop_ns = start_ns - 1",
          WM_EFORMAT, "a call from" },
        { "a time before all times", "UPDATE region_call SET start_ns = -5", WM_EFORMAT,
          "a call from -5" },
        { "a time after all times", "UPDATE region_call SET stop_ns = 9223372036854775807",
          WM_EFORMAT, "a call from" },
        { "text for a time", "UPDATE region_call SET start_ns = 'abc'", WM_EFORMAT,
          "a call from -1" },
        { "odd flags", "UPDATE region_call SET is_open = 17", WM_OK, "" },
    };
    const char *path = fixture_path(state, "a.sqlite");
    struct wm_error err = { 0 };
    size_t count;

    record_regions(path, WM_RECORD_NEW);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char name[32];
        snprintf(name, sizeof(name), "b%zu.sqlite", i);
        const char *edited = fixture_path(state, name);
        print_message("  %s\n", cases[i].what);
        export(path, edited);
        sql_run(edited, cases[i].sql);
        int status = read_regions(edited, &count, &err);
        if (status != cases[i].status ||
            (status < 0 && !strstr(err.text, cases[i].complains_of)))
            fail_msg("%d: %s", status, err.text);
        if (status < 0)
            assert_non_null(strstr(err.text, name));
    }
}

#define FRONT                                                                              \
    "ram_unit,gpu_ram_unit,time_unit,ram_system_capacity,gpu_ram_system_capacity,"         \
    "system_core_count,n_expected_cores,system_gpu_count,n_expected_gpus,"                 \
    "wattmeter_format,wattmeter_run,wattmeter_channels,wattmeter_gaps_and_result\r\n"      \
    "bytes,bytes,seconds,,,8,8,0,0,2,{},[],\"{}\"\r\n"
#define HEADER                                                                             \
    FRONT "wattmeter_region,wattmeter_region_1,wattmeter_region_2,wattmeter_region_3,"     \
          "wattmeter_region_4,time_ns\r\n"
#define PATH "1,0,,0,1\r\n2,106652627894272,0,0,0\r\n" /* "a" */
#define THREAD "3,0,1,1,0\r\n"

static void test_edited_csv(void **state)
{
    static const struct {
        const char *what, *text;
        int status;
        size_t calls;
        const char *complains_of;
    } cases[] = {
        { "none", HEADER ",,,,,5\r\n", WM_ENODEV, 0, "no regions" },
        { "no header", FRONT, WM_ENODEV, 0, "" },
        { "no such column", FRONT "time_ns\r\n5\r\n", WM_ENODEV, 0, "" },
        { "one", HEADER PATH THREAD "4,0,0,1,2\r\n", WM_OK, 1, "" },
        { "between the ticks",
          HEADER ",,,,,5\r\n" PATH ",,,,,6\r\n" THREAD "5,0,0,1,2\r\n,,,,,7\r\n", WM_OK, 1,
          "" },
        { "a tick in a name",
          HEADER "1,0,,0,1\r\n,,,,,6\r\n2,106652627894272,0,0,0\r\n" THREAD "5,0,0,1,2\r\n",
          WM_OK, 1, "" },
        { "columns in another order, as another program has written them",
          FRONT
          "wattmeter_region_3,time_ns,wattmeter_region_2,wattmeter_region_1,x,"
          "wattmeter_region,wattmeter_region_4\r\n"
          ",5,,,,,\r\n0.0,,,0.0,,1.0,0.0\r\n1,,1,0,,3,0\r\n1,,0,0,,4,2\r\n,6,,,,,\r\n",
          WM_OK, 1, "" },
        { "commas behind", HEADER "1,0,,0,0,\r\n3,0,1,1,0,\r\n4,0,0,1,2,\r\n", WM_OK, 1,
          "" },
        { "a torn last line", HEADER PATH THREAD "4,0,0,1,2\r\n4,0,0,3,4", WM_OK, 1, "" },
        { "a torn name", HEADER PATH THREAD "4,0,0,1,2\r\n1,1,,0,25\r\n2,1,2,3,4\r\n",
          WM_OK, 1, "" },
        { "a row of a later version", HEADER PATH THREAD "77,1,2\r\n4,0,0,1,2\r\n", WM_OK,
          1, "" },
        { "a kind that is no number", HEADER PATH THREAD "call,0,0,1,2\r\n", WM_EFORMAT, 0,
          ":7: cell 1: 'call' is not a number" },
        { "no numbers", HEADER PATH THREAD "4\r\n", WM_EFORMAT, 0, "path -1" },
        { "a number too few", HEADER PATH THREAD "4,0,0,1\r\n", WM_EFORMAT, 0,
          "a call from" },
        { "a blank", HEADER PATH THREAD "4,0, 0,1,2\r\n", WM_EFORMAT, 0, "cell 3" },
        { "a fraction", HEADER PATH THREAD "4,0,0,1,2.5\r\n", WM_EFORMAT, 0, "cell 5" },
        { "a number that is too large",
          HEADER PATH THREAD "4,0,0,1,99999999999999999999\r\n", WM_EFORMAT, 0, "cell 5" },
        { "a time after all times", HEADER PATH THREAD "4,0,0,1,9223372036854775807\r\n",
          WM_EFORMAT, 0, "a call from" },
        { "a call of no path", HEADER THREAD "4,0,0,1,2\r\n", WM_EFORMAT, 0, "path 0" },
        { "a path out of turn", HEADER "1,1,,0,0\r\n", WM_EFORMAT, 0, ":4: path 1" },
        { "a path in itself", HEADER "1,0,0,0,0\r\n", WM_EFORMAT, 0, "path 0 lies" },
        { "a name of no length", HEADER "1,0,,0\r\n", WM_EFORMAT, 0, "a name of -1" },
        { "a long name", HEADER "1,0,,0,65537\r\n", WM_EFORMAT, 0, "a name of 65537" },
        { "a name that ends early", HEADER "1,0,,0,7\r\n" THREAD, WM_EFORMAT, 0,
          "the rest of a name is missing" },
        { "a name of nothing", HEADER "2,1,2,3,4\r\n", WM_EFORMAT, 0,
          "a name without a path" },
        { "a name of odd numbers",
          HEADER "1,0,,0,24\r\n2,-1,,9223372036854775807,0\r\n" THREAD "4,0,0,1,2\r\n",
          WM_OK, 1, "" },
        { "a thread of no process", HEADER "3,0,-1,1,0\r\n", WM_EFORMAT, 0, ":4" },
    };
    struct wm_error err = { 0 };
    size_t count;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("  %s\n", cases[i].what);
        test_write_file(*state, "a.csv", cases[i].text);
        int status = read_regions(fixture_path(state, "a.csv"), &count, &err);
        if (status != cases[i].status ||
            (status < 0 && !strstr(err.text, cases[i].complains_of)))
            fail_msg("%d: %s", status, err.text);
        if (status == WM_OK)
            assert_int_equal(count, cases[i].calls);
    }
}

/* With each allocation failing once: the recording says what it lacks, or fails. */
static void test_no_memory(void **state)
{
    const char *path = fixture_path(state, "run.sqlite");
    struct wm_error err;
    size_t count;

    record_regions(path, WM_RECORD_NEW);
    for (size_t i = 0; i < ARRAY_LEN(readable); i++) {
        char name[32];
        snprintf(name, sizeof(name), "copy-%s", readable[i]);
        const char *copy = fixture_path(state, name);
        export(path, copy);
        int status = WM_ENOMEM;
        for (long nth = 0; nth < 2000 && status < 0; nth++) {
            test_fail_allocation(nth);
            status = read_regions(copy, &count, &err);
            test_fail_allocation(-1);
            assert_true(status == WM_OK || status == WM_ENOMEM || err.text[0]);
        }
        assert_int_equal(status, WM_OK);
        assert_int_equal(count, ARRAY_LEN(calls));
    }
}

/* A path that could not be copied takes its calls with it, and no others. */
static void test_no_memory_for_a_path(void **state)
{
    for (long nth = 0; nth < 6; nth++) {
        struct wm_recorder *recorder = NULL;
        struct wm_result result = fixture_result();
        struct wm_error err = { 0 };
        struct wm_reading readings[FIXTURE_CHANNELS];
        struct wm_tick tick = fixture_tick(0, readings);
        char name[32];

        snprintf(name, sizeof(name), "run%ld.sqlite", nth);
        const char *path = fixture_path(state, name);
        assert_ok(wm_recorder_open(path, WM_RECORD_NEW, fixture_run(), fixture_channels(),
                                   FIXTURE_CHANNELS, &recorder, &err));
        wm_recorder_tick(recorder, &tick);
        test_fail_allocation(nth);
        wm_recorder_regions(recorder, &batches()[0]);
        test_fail_allocation(-1);
        wm_recorder_regions(recorder, &batches()[1]);
        wm_recorder_flush(recorder, &result);
        assert_ok(wm_recorder_finish(recorder, &result, &err));
        wm_recorder_close(recorder);
        assert_int_equal((uint64_t)sql_number(path, "SELECT count(*) FROM region"
                                                    " WHERE name IS NOT NULL"),
                         ARRAY_LEN(calls) - result.lost_regions);
        assert_int_equal(sql_number(path, "SELECT count(*) FROM region WHERE name IS NULL"
                                          " OR pid IS NULL"),
                         0);
    }
}

#define WITH_DIR(test) cmocka_unit_test_setup_teardown(test, test_make_dir, test_remove_dir)

/* A batch has what earlier ones did not, under the numbers that follow theirs. */
static void test_batches_of_a_part(void **state)
{
    const struct wm_region_path paths[] = { { .name = "one", .parent = WM_REGION_NO_PATH },
                                            { .name = "two", .parent = WM_REGION_NO_PATH },
                                            { .name = "three" } };
    struct wm_regions_part part = { .first_path = 7, .first_thread = 3 };
    const struct wm_region_thread thread = { .pid = 1, .tid = 1 };

    (void)state;
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(wm_regions_part_add_path(&part, &paths[i]), WM_OK);
    assert_int_equal(wm_regions_part_add_thread(&part, thread), WM_OK);
    struct wm_region_batch batch = wm_regions_part_batch(&part);
    assert_true(batch.first_path == 7 && batch.path_count == 2);
    assert_true(batch.first_thread == 3 && batch.thread_count == 1);
    wm_regions_part_next(&part);
    assert_true(wm_regions_part_is_empty(&part));
    assert_int_equal(wm_regions_part_add_path(&part, &paths[2]), WM_OK);
    batch = wm_regions_part_batch(&part);
    assert_true(batch.first_path == 9 && batch.path_count == 1);
    assert_true(batch.first_thread == 4 && batch.thread_count == 0);
    assert_string_equal(batch.paths[0].name, "three");
    wm_regions_part_clear(&part);
    assert_int_equal(wm_regions_part_next_path(&part), 10);
    wm_regions_part_release(&part);
}

UNIT(record_regions)
{
    const struct CMUnitTest tests[] = {
        WITH_DIR(test_round_trip),
        WITH_DIR(test_export),
        WITH_DIR(test_read_already),
        WITH_DIR(test_export_without),
        WITH_DIR(test_json),
        WITH_DIR(test_append),
        cmocka_unit_test(test_batches_of_a_part),
        cmocka_unit_test(test_samples),
        WITH_DIR(test_many),
        WITH_DIR(test_too_many),
        WITH_DIR(test_edited_sqlite),
        WITH_DIR(test_edited_csv),
        WITH_DIR(test_no_memory),
        WITH_DIR(test_no_memory_for_a_path),
    };

    wm_calls_close(NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
