/* SPDX-License-Identifier: Apache-2.0 */
/* test_record_formats.c - what is written in each format comes back unchanged,
 * and one format after the other. */
#include "test_record_fixture.h"

#include <fcntl.h>
#include <jansson.h>
#include <locale.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base_file.h"
#include "record/record_channel.h"
#include "record/record_ops.h"

/* The formats that can be read back. */
static const char *const readable[] = { "run.sqlite", "run.csv", "run.sqlite3", "run.db" };

static void assert_same_run(const struct wm_run *run)
{
    const struct wm_run *expected = fixture_run();
    char *text = NULL, *expected_text = NULL;

    assert_int_equal(wm_run_to_json(run, &text, NULL), WM_OK);
    assert_int_equal(wm_run_to_json(expected, &expected_text, NULL), WM_OK);
    assert_string_equal(text, expected_text);
    free(text);
    free(expected_text);
}

static void assert_same_sensor(const struct wm_sensor *a, const struct wm_sensor *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->period_ns, b->period_ns);
    assert_int_equal(a->longest_ns, b->longest_ns);
    assert_true(a->window_s == b->window_s);
    assert_int_equal(a->is_sample, b->is_sample);
    assert_true(a->gain == b->gain && a->offset == b->offset);
    assert_true(a->step == b->step && a->range == b->range);
    assert_string_equal(a->text ? a->text : "(none)", b->text ? b->text : "(none)");
}

static void assert_same_channel(const struct wm_channel *a, const struct wm_channel *b)
{
    assert_string_equal(a->source, b->source);
    assert_string_equal(a->device, b->device);
    assert_string_equal(a->label, b->label);
    assert_string_equal(a->model ? a->model : "(none)", b->model ? b->model : "(none)");
    assert_string_equal(a->metric, b->metric);
    assert_string_equal(a->unit, b->unit);
    assert_int_equal(a->device_kind, b->device_kind);
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->origin, b->origin);
    assert_int_equal(a->period_ns, b->period_ns);
    assert_same_sensor(&a->sensor, &b->sensor);
}

/* `is_new`: recorded by this test, and not the stored file, whose sensors are others. */
static void assert_stored_fixture(const char *path, size_t run, size_t ticks, bool is_new)
{
    struct wm_reading readings[FIXTURE_CHANNELS];
    struct wm_recording *recording = NULL;
    const struct wm_gap *gaps = NULL;
    struct wm_gap gap = fixture_gap();
    struct wm_error err = { 0 };
    struct wm_tick tick;

    assert_ok(wm_recording_open(path, run, &recording, &err));
    assert_same_run(wm_recording_run(recording));
    assert_int_equal(wm_recording_channel_count(recording), FIXTURE_CHANNELS);
    for (size_t i = 0; i < FIXTURE_CHANNELS; i++) {
        struct wm_channel channel = fixture_channels()[i];
        if (!is_new)
            channel.sensor = wm_recording_channel(recording, i)->sensor;
        assert_same_channel(wm_recording_channel(recording, i), &channel);
    }

    for (size_t n = 0; n < ticks; n++) {
        struct wm_tick expected = fixture_tick(n, readings);
        int status = wm_recording_next(recording, &tick, &err);
        if (status != 1)
            fail_msg("tick %zu of %zu: %d %s", n, ticks, status, err.text);
        assert_int_equal(tick.when_ns, expected.when_ns);
        assert_int_equal(tick.count, FIXTURE_CHANNELS);
        for (size_t i = 0; i < FIXTURE_CHANNELS; i++)
            assert_stored(&tick.readings[i], &expected.readings[i]);
    }
    assert_int_equal(wm_recording_next(recording, &tick, &err), 0);
    assert_int_equal(wm_recording_next(recording, &tick, &err), 0);

    assert_int_equal(wm_recording_gaps(recording, &gaps), 1);
    assert_int_equal(gaps[0].channel, gap.channel);
    assert_int_equal(gaps[0].from_ns, gap.from_ns);
    assert_int_equal(gaps[0].to_ns, gap.to_ns);
    assert_int_equal(gaps[0].state, gap.state);
    assert_string_equal(gaps[0].why, gap.why);

    const struct wm_result *result = wm_recording_result(recording);
    assert_non_null(result);
    assert_int_equal(result->exit_signal, 9);
    assert_int_equal(result->process_count, 2);
    assert_string_equal(result->processes[0].name, "train \xef\xbf\xbd py");
    assert_true(result->tool_cpu_seconds.number == 0.0123);
    wm_recording_close(recording);
}

/* Reads the whole of a recording that record_fixture() made. */
static void assert_fixture(const char *path, size_t run, size_t ticks)
{
    assert_stored_fixture(path, run, ticks, true);
}

static void test_round_trip(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(readable); i++) {
        const char *path = fixture_path(state, readable[i]);
        print_message("  %s\n", readable[i]);
        record_fixture(path, WM_RECORD_NEW, 20);
        assert_fixture(path, WM_LAST_RUN, 20);
        assert_fixture(path, 0, 20);
    }
}

static void test_many_ticks(void **state)
{
    for (size_t i = 0; i < 2; i++) {
        const char *path = fixture_path(state, readable[i]);
        record_fixture(path, WM_RECORD_NEW, 1000);
        assert_fixture(path, WM_LAST_RUN, 1000);
    }
}

static void test_no_ticks(void **state)
{
    for (size_t i = 0; i < 2; i++) {
        const char *path = fixture_path(state, readable[i]);
        record_fixture(path, WM_RECORD_NEW, 0);
        assert_fixture(path, WM_LAST_RUN, 0);
    }
}

/* No file beside it: a finished recording is one file. */
static void test_one_file(void **state)
{
    static const char *const others[] = { "run.sqlite-wal", "run.sqlite-shm",
                                          "run.sqlite-journal" };

    record_fixture(fixture_path(state, "run.sqlite"), WM_RECORD_NEW, 20);
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        assert_int_equal(access(fixture_path(state, others[i]), F_OK), -1);
}

static void export_to(const char *from, const char *to, enum wm_record_mode mode)
{
    struct wm_recording *recording = NULL;
    struct wm_error err = { 0 };
    struct wm_tick tick;

    assert_ok(wm_recording_open(from, WM_LAST_RUN, &recording, &err));
    assert_ok(wm_recording_export(recording, to, mode, &err));
    assert_int_equal(wm_recording_next(recording, &tick, &err), 0);
    wm_recording_close(recording);
}

static void test_export(void **state)
{
    const char *sqlite = fixture_path(state, "a.sqlite"),
               *csv = fixture_path(state, "b.csv");
    const char *again = fixture_path(state, "c.sqlite"),
               *csv_again = fixture_path(state, "d.csv");

    record_fixture(sqlite, WM_RECORD_NEW, 700);
    export_to(sqlite, csv, WM_RECORD_NEW);
    assert_fixture(csv, WM_LAST_RUN, 700);
    export_to(csv, again, WM_RECORD_NEW);
    assert_fixture(again, WM_LAST_RUN, 700);
    export_to(csv, csv_again, WM_RECORD_NEW);
    assert_fixture(csv_again, WM_LAST_RUN, 700);
    export_to(again, sqlite, WM_RECORD_APPEND);
    assert_fixture(sqlite, 0, 700);
    assert_fixture(sqlite, 1, 700);
    export_to(csv, sqlite, WM_RECORD_OVERWRITE);
    assert_fixture(sqlite, WM_LAST_RUN, 700);
}

/* A recording without a result stays one. */
static void test_export_unfinished(void **state)
{
    static const char *const targets[] = { "b.sqlite", "b.csv", "b.json" };
    struct wm_reading readings[FIXTURE_CHANNELS];
    const char *path = fixture_path(state, "a.sqlite");
    struct wm_recorder *recorder = NULL;
    struct wm_recording *recording = NULL;
    struct wm_error err = { 0 };

    assert_ok(wm_recorder_open(path, WM_RECORD_NEW, fixture_run(), fixture_channels(),
                               FIXTURE_CHANNELS, &recorder, &err));
    struct wm_tick tick = fixture_tick(0, readings);
    wm_recorder_tick(recorder, &tick);
    wm_recorder_close(recorder);

    for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
        const char *target = fixture_path(state, targets[i]);
        export_to(path, target, WM_RECORD_NEW);
        if (strcmp(targets[i], "b.json") == 0)
            continue;
        assert_ok(wm_recording_open(target, WM_LAST_RUN, &recording, &err));
        assert_null(wm_recording_result(recording));
        assert_int_equal(wm_recording_next(recording, &tick, &err), 1);
        assert_int_equal(wm_recording_next(recording, &tick, &err), 0);
        wm_recording_close(recording);
    }
}

static void test_export_refused(void **state)
{
    static const struct {
        const char *what, *target;
        enum wm_record_mode mode;
        int status;
        const char *complains_of;
    } cases[] = {
        { "onto itself", "a.csv", WM_RECORD_OVERWRITE, WM_EINVAL, "itself" },
        { "onto itself, by another name", "link.csv", WM_RECORD_OVERWRITE, WM_EINVAL,
          "itself" },
        { "onto itself, adding", "a.csv", WM_RECORD_APPEND, WM_EINVAL, "itself" },
        { "a file that is there", "other.csv", WM_RECORD_NEW, WM_EEXIST,
          "mode \"overwrite\" replaces it" },
        { "adding to CSV", "other.csv", WM_RECORD_APPEND, WM_EEXIST, "only .sqlite" },
        { "adding to JSON", "other.json", WM_RECORD_APPEND, WM_EEXIST, "only .sqlite" },
        { "an unknown suffix", "b.txt", WM_RECORD_NEW, WM_EINVAL, ".json" },
        { "no suffix", "b", WM_RECORD_NEW, WM_EINVAL, ".sqlite" },
        { "no folder", "no/b.csv", WM_RECORD_NEW, WM_ENOENT, "no such folder" },
        { "a folder", "folder.csv", WM_RECORD_OVERWRITE, WM_EINVAL, "regular" },
        { "adding to a foreign database", "other.sqlite", WM_RECORD_APPEND, WM_EFORMAT,
          "not a database" },
    };
    const char *source = fixture_path(state, "a.csv");
    struct wm_recording *recording = NULL;
    struct wm_error err = { 0 };
    struct wm_tick tick;

    record_fixture(source, WM_RECORD_NEW, 3);
    assert_int_equal(link(source, fixture_path(state, "link.csv")), 0);
    assert_int_equal(mkdir(fixture_path(state, "folder.csv"), 0755), 0);
    test_write_file(*state, "other.csv", "mine");
    test_write_file(*state, "other.json", "mine");
    test_write_file(*state, "other.sqlite", "mine");

    assert_ok(wm_recording_open(source, WM_LAST_RUN, &recording, &err));
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("  %s\n", cases[i].what);
        assert_int_equal(wm_recording_export(recording,
                                             fixture_path(state, cases[i].target),
                                             cases[i].mode, &err),
                         cases[i].status);
        assert_int_equal(err.status, cases[i].status);
        assert_non_null(strstr(err.text, cases[i].complains_of));
    }
    assert_int_equal(wm_recording_next(recording, &tick, &err), 1);
    assert_int_equal(
        wm_recording_export(recording, fixture_path(state, "c.csv"), WM_RECORD_NEW, &err),
        WM_EINVAL);
    wm_recording_close(recording);
    assert_fixture(source, WM_LAST_RUN, 3);
}

/* Names that break a careless writer of CSV, SQL or JSON. */
static void test_names(void **state)
{
    static char long_name[4097];
    static const struct {
        const char *what;
        const char *name, *stored;
    } cases[] = {
        { "ordinary", "gpu0", "gpu0" },
        { "quotes", "a\"b'c`d", "a\"b'c`d" },
        { "commas", "a,b,,c", "a,b,,c" },
        { "lines", "a\nb\r\nc\n", "a\nb\r\nc\n" },
        { "other control characters", "a\tb\x01\x1b[31m", "a\tb\x01\x1b[31m" },
        { "SQL", "x); DROP TABLE run; --", "x); DROP TABLE run; --" },
        { "nothing", "", "" },
        { "UTF-8", "Ger\xc3\xa4t \xe2\x82\xac \xf0\x9f\x94\x8b",
          "Ger\xc3\xa4t \xe2\x82\xac \xf0\x9f\x94\x8b" },
        { "no UTF-8", "a\xff\xc3", "a\xef\xbf\xbd\xef\xbf\xbd" },
        { "4 KB", long_name, long_name },
    };
    struct wm_channel channels[2 * ARRAY_LEN(cases)];
    struct wm_reading readings[ARRAY_LEN(channels)];
    struct wm_error err = { 0 };
    struct wm_tick tick;

    memset(long_name, 'x', sizeof(long_name) - 1);
    for (size_t i = 0; i < ARRAY_LEN(channels); i++) {
        channels[i] = fixture_channels()[0];
        channels[i].source = channels[i].device = cases[i / 2].name;
        channels[i].label = channels[i].model = cases[i / 2].name;
        channels[i].metric = i % 2 ? "power" : "energy";
        readings[i] = (struct wm_reading) { 5, (double)i, WM_READING_OK };
    }
    for (size_t f = 0; f < 2; f++) {
        const char *path = fixture_path(state, readable[f]);
        struct wm_recorder *recorder = NULL;
        struct wm_recording *recording = NULL;

        assert_ok(wm_recorder_open(path, WM_RECORD_NEW, fixture_run(), channels,
                                   ARRAY_LEN(channels), &recorder, &err));
        tick = (struct wm_tick) { 5, readings, ARRAY_LEN(channels) };
        wm_recorder_tick(recorder, &tick);
        wm_recorder_close(recorder);

        assert_ok(wm_recording_open(path, WM_LAST_RUN, &recording, &err));
        assert_int_equal(wm_recording_channel_count(recording), ARRAY_LEN(channels));
        for (size_t i = 0; i < ARRAY_LEN(channels); i++) {
            const struct wm_channel *channel = wm_recording_channel(recording, i);
            assert_string_equal(channel->device, cases[i / 2].stored);
            assert_string_equal(channel->label, cases[i / 2].stored);
            assert_string_equal(channel->model, cases[i / 2].stored);
        }
        assert_int_equal(wm_recording_next(recording, &tick, &err), 1);
        for (size_t i = 0; i < ARRAY_LEN(channels); i++)
            assert_stored(&tick.readings[i], &readings[i]);
        wm_recording_close(recording);
    }
}

static void test_values(void **state)
{
    static const double values[] = {
        0.0,
        1.0,
        -1.0,
        0.1,
        1.0 / 3,
        1e15,
        1e16,
        9007199254740993.0,
        -9.223372036854775e18,
        1.8446744073709552e19,
        1e100,
        1.7976931348623157e308,
        2.2250738585072014e-308,
        5e-324,
        NAN,
        INFINITY,
        -INFINITY,
    };
    static const enum wm_reading_state states[] = {
        WM_READING_NONE,   WM_READING_OK,     WM_READING_UNSUPPORTED,
        WM_READING_DENIED, WM_READING_FAILED, WM_READING_STALE,
    };
    struct wm_channel channel = fixture_channels()[13];
    struct wm_error err = { 0 };
    struct wm_tick tick;

    for (size_t f = 0; f < 2; f++) {
        const char *path = fixture_path(state, readable[f]);
        struct wm_recorder *recorder = NULL;
        struct wm_recording *recording = NULL;
        size_t count = ARRAY_LEN(values) * ARRAY_LEN(states);

        assert_ok(wm_recorder_open(path, WM_RECORD_NEW, fixture_run(), &channel, 1,
                                   &recorder, &err));
        for (size_t n = 0; n < count; n++) {
            struct wm_reading reading = { (int64_t)n + 7, values[n / ARRAY_LEN(states)],
                                          states[n % ARRAY_LEN(states)] };
            tick = (struct wm_tick) { (int64_t)n, &reading, 1 };
            wm_recorder_tick(recorder, &tick);
        }
        wm_recorder_close(recorder);

        assert_ok(wm_recording_open(path, WM_LAST_RUN, &recording, &err));
        for (size_t n = 0; n < count; n++) {
            struct wm_reading reading = { (int64_t)n + 7, values[n / ARRAY_LEN(states)],
                                          states[n % ARRAY_LEN(states)] };
            assert_int_equal(wm_recording_next(recording, &tick, &err), 1);
            assert_stored(&tick.readings[0], &reading);
        }
        wm_recording_close(recording);
    }
}

/* Sums what a reader gives, and what SQL and JSON say themselves. */
static double total_of(const char *path, size_t channel)
{
    struct wm_recording *recording = NULL;
    struct wm_error err = { 0 };
    struct wm_tick tick;
    double total = 0;

    assert_ok(wm_recording_open(path, WM_LAST_RUN, &recording, &err));
    while (wm_recording_next(recording, &tick, &err) > 0) {
        if (tick.readings[channel].state == WM_READING_OK)
            total += tick.readings[channel].value;
    }
    wm_recording_close(recording);
    return total;
}

static double sql_total(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;

    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
        fail_msg("%s", sqlite3_errmsg(db));
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    double total = sqlite3_column_double(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return total;
}

static double json_total(const char *path, const char *column)
{
    json_error_t error;
    json_t *document = json_load_file(path, 0, &error);
    if (!document)
        fail_msg("%s line %d", error.text, error.line);

    json_t *columns = json_object_get(document, "columns");
    json_t *samples = json_object_get(document, "samples");
    size_t index = 0;
    double total = 0;
    while (strcmp(json_string_value(json_array_get(columns, index)), column) != 0)
        index++;
    for (size_t n = 0; n < json_array_size(samples); n++) {
        json_t *row = json_array_get(samples, n);
        assert_int_equal(json_array_size(row), json_array_size(columns));
        json_t *value = json_array_get(row, index);
        assert_true(json_is_number(value) || json_is_null(value));
        total += json_number_value(value);
    }
    assert_int_equal(json_array_size(json_object_get(document, "gaps")), 1);
    assert_true(json_is_object(json_object_get(document, "result")));
    assert_true(json_is_object(json_object_get(document, "run")));
    assert_int_equal(json_array_size(json_object_get(document, "channels")),
                     FIXTURE_CHANNELS);
    json_decref(document);
    return total;
}

static void test_same_totals(void **state)
{
    static const struct {
        size_t channel;
        const char *column;
    } cases[] = {
        { 0, "main_cpu_time_s" },         { 7, "main_threads" },
        { 13, "gpu0_power_W" },           { 14, "gpu0_utilization_ratio" },
        { 18, "gpu1_utilization_ratio" },
    };
    const char *sqlite = fixture_path(state, "a.sqlite"),
               *csv = fixture_path(state, "a.csv");
    const char *json = fixture_path(state, "a.json");

    record_fixture(sqlite, WM_RECORD_NEW, 100);
    record_fixture(csv, WM_RECORD_NEW, 100);
    export_to(csv, json, WM_RECORD_NEW);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char sql[128];
        snprintf(sql, sizeof(sql), "SELECT sum(\"%s\") FROM sample", cases[i].column);
        double total = total_of(sqlite, cases[i].channel);
        print_message("  %s: %g\n", cases[i].column, total);
        assert_true(total > 0);
        assert_true(total_of(csv, cases[i].channel) == total);
        assert_true(json_total(json, cases[i].column) == total);
        assert_near(sql_total(sqlite, sql), total, total * 1e-12);
    }
}

static void test_tables(void **state)
{
    static const struct {
        const char *sql;
        double value;
    } cases[] = {
        { "SELECT count(*) FROM sample", 20 },
        { "SELECT count(*) FROM sqlite_master WHERE name IN ('data', 'static_data')", 0 },
        { "PRAGMA application_id", 0x574d7472 },
        { "PRAGMA user_version", 1 },
        { "SELECT count(*) FROM region", 0 },
        { "SELECT started = '2026-11-21T07:49:39.215Z' FROM run", 1 },
        { "SELECT command = 'train.py --name a \"b\", c' || char(10) || 'd caf\xc3\xa9' "
          "FROM run",
          1 },
    };
    const char *path = fixture_path(state, "a.sqlite");

    record_fixture(path, WM_RECORD_NEW, 20);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("  %s\n", cases[i].sql);
        assert_near(sql_total(path, cases[i].sql), cases[i].value, 0);
    }
}

/* gpu_tracker's tracking file: one row fewer than there are ticks, in its own units. */
static void test_gpu_tracker_tables(void **state)
{
    static const struct {
        const char *sql;
        double value;
    } cases[] = {
        { "SELECT count(*) FROM data", 19 },
        { "SELECT count(*) FROM pragma_table_info('data')", 22 },
        { "SELECT min(main_ram) FROM data", 7e9 + 4096 },
        { "SELECT max(system_gpu_ram) FROM data", 16e9 + 19 * 4096 },
        { "SELECT gpu_hardware_utilization_percent - gpu_sum_utilization_percent / 2 FROM "
          "data"
          " WHERE gpu_sum_utilization_percent IS NOT NULL",
          0 },
        { "SELECT min(timestamp) FROM data", 1795247379.3159243 },
        { "SELECT round(avg(cpu_main_sum_utilization_percent), 6) FROM data", 142.857143 },
        { "SELECT round(max(cpu_main_hardware_utilization_percent), 6) FROM data",
          35.714286 },
        { "SELECT count(*) FROM static_data", 1 },
        { "SELECT ram_unit = 'bytes' AND gpu_ram_unit = 'bytes' AND time_unit = 'seconds'"
          " FROM static_data",
          1 },
        { "SELECT ram_system_capacity FROM static_data", 13e9 },
        { "SELECT gpu_ram_system_capacity FROM static_data", 17e9 },
        { "SELECT n_expected_cores FROM static_data", 4 },
        { "SELECT system_core_count * 100 + system_gpu_count * 10 + n_expected_gpus"
          " FROM static_data",
          822 },
    };
    const char *path = fixture_path(state, "b.sqlite");
    char target[512];

    snprintf(target, sizeof(target), "gpu-tracker:bytes,bytes,seconds:%s", path);
    record_fixture(fixture_path(state, "a.sqlite"), WM_RECORD_NEW, 20);
    export_to(fixture_path(state, "a.sqlite"), target, WM_RECORD_NEW);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("  %s\n", cases[i].sql);
        double value = sql_total(path, cases[i].sql);
        assert_near(value, cases[i].value, fabs(cases[i].value) * 1e-15);
    }
}

static void test_append_other_channels(void **state)
{
    const char *path = fixture_path(state, "a.sqlite");
    struct wm_channel channels[3] = { fixture_channels()[13], fixture_channels()[13],
                                      fixture_channels()[13] };
    struct wm_reading readings[3] = { { 1, 10, WM_READING_OK },
                                      { 2, 20, WM_READING_OK },
                                      { 3, 30, WM_READING_OK } };
    struct wm_recorder *recorder = NULL;
    struct wm_recording *recording = NULL;
    struct wm_error err = { 0 };
    struct wm_tick tick = { 5, readings, 3 };

    /* The same GPU, another in its place, and a device that was not there. */
    channels[1].device = "GPU-other";
    channels[2].device = channels[2].label = "GPU7";
    record_fixture(path, WM_RECORD_NEW, 10);
    assert_ok(wm_recorder_open(path, WM_RECORD_APPEND, fixture_run(), channels, 3,
                               &recorder, &err));
    wm_recorder_tick(recorder, &tick);
    wm_recorder_close(recorder);

    assert_fixture(path, 0, 10);
    assert_ok(wm_recording_open(path, 1, &recording, &err));
    assert_int_equal(wm_recording_run_count(recording), 2);
    assert_int_equal(wm_recording_channel_count(recording), 3);
    assert_int_equal(wm_recording_next(recording, &tick, &err), 1);
    for (size_t i = 0; i < 3; i++) {
        assert_same_channel(wm_recording_channel(recording, i), &channels[i]);
        assert_stored(&tick.readings[i], &readings[i]);
    }
    assert_int_equal(wm_recording_next(recording, &tick, &err), 0);
    wm_recording_close(recording);

    assert_int_equal(wm_recording_open(path, 2, &recording, &err), WM_EINVAL);
    assert_non_null(strstr(err.text, "no run 2"));
    assert_near(sql_total(path, "SELECT gpu0_power_W + gpu0_power_W_2 + GPU7_power_W"
                                " FROM sample WHERE run = 2"),
                60, 0);
}

/* A sample of each version of a format stays readable for ever. */
static void test_samples(void **state)
{
    (void)state;
    assert_stored_fixture(test_source_path("tests/data/recordings/v1.sqlite"), WM_LAST_RUN,
                          20, false);
    assert_stored_fixture(test_source_path("tests/data/recordings/v1.csv"), WM_LAST_RUN, 20,
                          false);
    assert_near(json_total(test_source_path("tests/data/recordings/v1.json"),
                           "gpu0_utilization_ratio"),
                10.0, 0);
}

/* A run that is added to a sample has its sensors, and those before keep theirs. */
static void test_append_to_sample(void **state)
{
    const char *path = fixture_path(state, "sample.sqlite");
    struct wm_error err;
    char *bytes = NULL;
    size_t length;

    assert_ok(wm_file_slurp(test_source_path("tests/data/recordings/v1.sqlite"), 1 << 24,
                            &bytes, &length, &err));
    test_write_bytes(path, bytes, length);
    free(bytes);
    for (size_t run = 1; run <= 2; run++) {
        record_fixture(path, WM_RECORD_APPEND, 10);
        assert_fixture(path, run, 10);
        assert_stored_fixture(path, 0, 20, false);
    }
}

/* Files of before format 1 was settled are refused in one sentence, and nothing is added.
 */
static void test_drafts(void **state)
{
    static const char *const drafts[] = {
        "ALTER TABLE channel DROP COLUMN sensor",
        "DROP VIEW region; ALTER TABLE region_call DROP COLUMN cpu_ns",
        "DROP VIEW region; DROP TABLE region_call",
        "UPDATE channel SET sensor = NULL",
    };
    const char *path = fixture_path(state, "a.sqlite");
    struct wm_recording *recording;
    struct wm_recorder *recorder;
    struct wm_error err;
    char *bytes = NULL;
    size_t length;

    for (size_t i = 0; i < ARRAY_LEN(drafts); i++) {
        print_message("  %s\n", drafts[i]);
        record_fixture(path, WM_RECORD_OVERWRITE, 3);
        sql_run(path, drafts[i]);
        assert_int_equal(wm_recording_open(path, 0, &recording, &err), WM_EFORMAT);
        assert_non_null(strstr(err.text, "recorded before version 0.1.0"));
        if (i + 1 < ARRAY_LEN(drafts))
            assert_int_equal(wm_recorder_open(path, WM_RECORD_APPEND, fixture_run(),
                                              fixture_channels(), FIXTURE_CHANNELS,
                                              &recorder, &err),
                             WM_EFORMAT);
    }
    path = fixture_path(state, "a.csv");
    record_fixture(path, WM_RECORD_NEW, 3);
    assert_ok(wm_file_slurp(path, 1 << 24, &bytes, &length, &err));
    memcpy(strstr(bytes, "\"\"sensor\"\""), "\"\"sens0r\"\"", 10);
    test_write_bytes(path, bytes, length);
    free(bytes);
    assert_int_equal(wm_recording_open(path, 0, &recording, &err), WM_EFORMAT);
    assert_non_null(strstr(err.text, "recorded before version 0.1.0"));
}

/* A locale with a decimal comma, made for the purpose if there is none. */
static bool use_comma(void *const *state)
{
    const char *path = fixture_path(state, "de_DE.UTF-8");
    int status = 0;

    if (setlocale(LC_ALL, "de_DE.UTF-8"))
        return true;
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY);
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        execlp("localedef", "localedef", "-i", "de_DE", "-f", "UTF-8", path, (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (status != 0)
        return false;
    setenv("LOCPATH", *state, 1);
    return setlocale(LC_ALL, "de_DE.UTF-8") != NULL;
}

/* The locale is the host program's. */
static void test_locale(void **state)
{
    char text[8];

    if (!use_comma(state)) {
        print_message("no locale with a decimal comma here, and no localedef\n");
        skip();
    }
    snprintf(text, sizeof(text), "%.1f", 0.5);
    assert_string_equal(text, "0,5");
    test_round_trip(state);
    const char *json = fixture_path(state, "run.json");
    export_to(fixture_path(state, "run.csv"), json, WM_RECORD_NEW);
    setlocale(LC_ALL, "C");
    assert_near(json_total(json, "gpu0_utilization_ratio"), 10, 0);
}

/* Of labels of GPUs, only NVIDIA's say which of the driver's it is. */
static void test_gpu_numbers(void **state)
{
    static const struct {
        const char *label;
        int number; /* -1: none */
    } rows[] = {
        { "gpu0", 0 },       { "gpu12", 12 }, { "gpu99999", 99999 },
        { "gpu100000", -1 }, { "gpu", -1 },   { "gpu-1", -1 },
        { "gpu1x", -1 },     { "card1", -1 }, { "gpu 1", -1 },
        { "module1", -1 },   { "", -1 },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct wm_channel channel = { .label = rows[i].label };
        int number = -1;

        assert_int_equal(wm_channel_gpu_number(&channel, &number), rows[i].number >= 0);
        assert_int_equal(number, rows[i].number);
    }
}

UNIT(record_formats)
{
#define WITH_DIR(test) cmocka_unit_test_setup_teardown(test, test_make_dir, test_remove_dir)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpu_numbers),
        WITH_DIR(test_round_trip),
        WITH_DIR(test_many_ticks),
        WITH_DIR(test_no_ticks),
        WITH_DIR(test_one_file),
        WITH_DIR(test_export),
        WITH_DIR(test_export_unfinished),
        WITH_DIR(test_export_refused),
        WITH_DIR(test_names),
        WITH_DIR(test_values),
        WITH_DIR(test_same_totals),
        WITH_DIR(test_tables),
        WITH_DIR(test_gpu_tracker_tables),
        WITH_DIR(test_append_other_channels),
        cmocka_unit_test(test_samples),
        WITH_DIR(test_append_to_sample),
        WITH_DIR(test_drafts),
        WITH_DIR(test_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
