/* SPDX-License-Identifier: Apache-2.0 */
/* test_record_gpu_tracker.c - gpu_tracker's tracking file, byte by byte, and its tables. */
#include "test_record_fixture.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_file.h"
#include "record/record_ops.h"

#define STATIC_NAMES                                                                       \
    "ram_unit,gpu_ram_unit,time_unit,ram_system_capacity,gpu_ram_system_capacity,"         \
    "system_core_count,n_expected_cores,system_gpu_count,n_expected_gpus\r\n"
#define NAMES                                                                              \
    "main_ram,descendants_ram,combined_ram,system_ram,main_gpu_ram,descendants_gpu_ram,"   \
    "combined_gpu_ram,system_gpu_ram,gpu_sum_utilization_percent,"                         \
    "gpu_hardware_utilization_percent,main_n_threads,descendants_n_threads,"               \
    "combined_n_threads,cpu_system_sum_utilization_percent,"                               \
    "cpu_system_hardware_utilization_percent,cpu_main_sum_utilization_percent,"            \
    "cpu_main_hardware_utilization_percent,cpu_descendants_sum_utilization_percent,"       \
    "cpu_descendants_hardware_utilization_percent,cpu_combined_sum_utilization_percent,"   \
    "cpu_combined_hardware_utilization_percent,timestamp\r\n"
#define UNITS "gpu-tracker:gigabytes,megabytes,hours:"

static const char *fixture_target(void **state, const char *name)
{
    static char target[512];

    snprintf(target, sizeof(target), UNITS "%s/%s", (const char *)*state, name);
    return target;
}

static const char *path_of(const char *target)
{
    return target + strlen(UNITS);
}

/* `gone`: the last of the ticks does not find the command any more. */
static int record(const char *target, enum wm_record_mode mode, size_t ticks, bool gone,
                  struct wm_error *err)
{
    struct wm_reading readings[FIXTURE_CHANNELS];
    struct wm_recorder *recorder = NULL;
    struct wm_result result = fixture_result();
    struct wm_gap gap = fixture_gap();

    int status = wm_recorder_open(target, mode, fixture_run(), fixture_channels(),
                                  FIXTURE_CHANNELS, &recorder, err);
    if (status < 0)
        return status;
    for (size_t n = 0; n < ticks; n++) {
        struct wm_tick tick = fixture_tick(n, readings);
        for (size_t i = 6; i < 10 && gone && n + 1 == ticks; i++)
            readings[i].state = WM_READING_FAILED;
        wm_recorder_tick(recorder, &tick);
    }
    wm_recorder_gap(recorder, &gap);
    wm_recorder_flush(recorder, &result);
    status = wm_recorder_finish(recorder, &result, err);
    wm_recorder_close(recorder);
    return status;
}

static void assert_file(const char *path, const char *expected)
{
    char *text;
    size_t length;
    struct wm_error err;

    if (wm_file_slurp(path, 1 << 20, &text, &length, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(text, expected);
    free(text);
}

/* Of GPU 1 no memory is known, and so none of all together. */
#define STATIC_ROW "gigabytes,megabytes,hours,13.0,17000.0,8,4,2,2\r\n"
#define FIRST_ROW                                                                          \
    "7.000004096,9.000004096,10.000004096,12.000004096,2000.004096,4000.004096,"           \
    "6000.004096,16000.004096,"

static void test_csv(void **state)
{
    const char *target = fixture_target(state, "t.csv");
    struct wm_error err = { 0 };
    char *text, *row;
    size_t length;

    assert_int_equal(record(target, WM_RECORD_NEW, 3, false, &err), WM_OK);
    assert_int_equal(wm_file_slurp(path_of(target), 1 << 20, &text, &length, &err), WM_OK);
    const char *head = STATIC_NAMES STATIC_ROW NAMES;
    if (strncmp(text, head, strlen(head)) != 0)
        fail_msg("%s", text);

    /* The first tick ends no window, so there are two rows, of 22 cells. */
    row = text + strlen(head);
    if (strncmp(row, FIRST_ROW, strlen(FIRST_ROW)) != 0)
        fail_msg("%s", row);
    size_t commas = 0, lines = 0;
    for (const char *c = row; *c; c++) {
        commas += *c == ',';
        lines += c[0] == '\r' && c[1] == '\n';
    }
    assert_int_equal(commas, 2 * 21);
    assert_int_equal(lines, 2);
    assert_non_null(strstr(row, ",2,,,")); /* threads are whole */
    assert_non_null(strstr(row, ",1795247379.3159242\r\n"));
    free(text);
}

/* A run that ended at once has the static data, and one row at the most. */
static void test_short_runs(void **state)
{
    const char *target = fixture_target(state, "t.csv");
    struct wm_error err = { 0 };
    struct stat info;

    assert_int_equal(record(target, WM_RECORD_NEW, 0, false, &err), WM_OK);
    assert_int_equal(stat(path_of(target), &info), 0);
    assert_int_equal(info.st_size, 0);
    assert_int_equal(record(target, WM_RECORD_OVERWRITE, 1, false, &err), WM_OK);
    assert_file(path_of(target), STATIC_NAMES STATIC_ROW);
}

static size_t count_lines(const char *path)
{
    char *text;
    size_t length, lines = 0;

    assert_int_equal(wm_file_slurp(path, 1 << 20, &text, &length, NULL), WM_OK);
    for (const char *c = text; *c; c++)
        lines += *c == '\n';
    free(text);
    return lines;
}

static void test_command_gone(void **state)
{
    const char *target = fixture_target(state, "t.csv");
    struct wm_error err = { 0 };

    assert_int_equal(record(target, WM_RECORD_NEW, 2, true, &err), WM_OK);
    assert_int_equal(count_lines(path_of(target)), 3 + 1);
    assert_int_equal(record(target, WM_RECORD_OVERWRITE, 5, true, &err), WM_OK);
    assert_int_equal(count_lines(path_of(target)), 3 + 3);
}

/* What a query gives, of one row and column. */
static char *query(const char *path, const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *statement;

    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    const unsigned char *text = sqlite3_column_text(statement, 0);
    char *copy = strdup(text ? (const char *)text : "NULL");
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return copy;
}

static void test_sqlite(void **state)
{
    static const struct {
        const char *sql, *expected;
    } rows[] = {
        { "SELECT group_concat(name, ' ') FROM sqlite_master", "static_data data" },
        { "SELECT count(*) FROM data", "2" },
        { "SELECT count(*) FROM static_data", "1" },
        { "SELECT count(*) FROM pragma_table_info('data')", "22" },
        { "SELECT group_concat(type, ' ') FROM pragma_table_info('static_data')",
          "VARCHAR VARCHAR VARCHAR FLOAT FLOAT INTEGER INTEGER INTEGER INTEGER" },
        { "SELECT group_concat(name, ' ') FROM pragma_table_info('data')"
          " WHERE type = 'INTEGER'",
          "main_n_threads descendants_n_threads combined_n_threads" },
        { "SELECT count(*) FROM pragma_table_info('data') WHERE type = 'FLOAT'", "19" },
        { "SELECT ram_unit || gpu_ram_unit || time_unit FROM static_data",
          "gigabytesmegabyteshours" },
        { "SELECT typeof(main_n_threads) || typeof(main_ram) || typeof(combined_n_threads)"
          " FROM data",
          "integerrealnull" },
        { "SELECT main_ram FROM data", "7.000004096" },
        { "PRAGMA journal_mode", "delete" },
    };
    const char *target = fixture_target(state, "t.sqlite");
    struct wm_error err = { 0 };

    if (record(target, WM_RECORD_NEW, 3, false, &err) < 0)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char *text = query(path_of(target), rows[i].sql);
        if (strcmp(text, rows[i].expected) != 0)
            fail_msg("%s: %s, not %s", rows[i].sql, text, rows[i].expected);
        free(text);
    }
}

/* What is there is left alone. */
static void test_modes(void **state)
{
    static const char *const names[] = { "t.csv", "t.sqlite" };
    struct wm_error err;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *target = fixture_target(state, names[i]);
        test_write_file(*state, names[i], "mine");
        assert_int_equal(wm_recorder_check(target, WM_RECORD_NEW, &err), WM_EEXIST);
        assert_int_equal(record(target, WM_RECORD_NEW, 3, false, &err), WM_EEXIST);
        assert_int_equal(record(target, WM_RECORD_APPEND, 3, false, &err), WM_EEXIST);
        assert_file(path_of(target), "mine");
        assert_int_equal(record(target, WM_RECORD_OVERWRITE, 3, false, &err), WM_OK);
        assert_int_equal(unlink(path_of(target)), 0);
        assert_int_equal(
            record(fixture_target(state, "none/t.csv"), WM_RECORD_NEW, 3, false, &err),
            WM_ENOENT);
    }
}

static void test_targets(void **state)
{
    static const struct {
        const char *target, *suffix, *path;
    } rows[] = {
        { "gpu-tracker:bytes,terabytes,days:a.csv", ".csv", "a.csv" },
        { "gpu-tracker:kilobytes,megabytes,minutes:/x/a:b,c.sqlite", ".sqlite",
          "/x/a:b,c.sqlite" },
        { "gpu-tracker:bytes,bytes,seconds:a.csv", ".sqlite", NULL },
        { "gpu-tracker:bytes,bytes,seconds:.csv", ".csv", NULL },
        { "gpu-tracker:bytes,bytes,seconds:", ".csv", NULL },
        { "gpu-tracker:bytes,bytes,seconds", ".csv", NULL },
        { "gpu-tracker:bytes,bytes:a.csv", ".csv", NULL },
        { "gpu-tracker:bytes,seconds,bytes:a.csv", ".csv", NULL },
        { "gpu-tracker:byte,bytes,seconds:a.csv", ".csv", NULL },
        { "gpu-tracker:bytess,bytes,seconds:a.csv", ".csv", NULL },
        { "gpu-tracker:,,:a.csv", ".csv", NULL },
        { "gpu-tracker:", ".csv", NULL },
        { "gpu-tracker", ".csv", NULL },
        { "a.csv", ".csv", NULL },
        { "", ".csv", NULL },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool is_csv = strcmp(rows[i].suffix, ".csv") == 0;
        const struct wm_recorder_ops *ops =
            is_csv ? &wm_recorder_gpu_tracker_csv : &wm_recorder_gpu_tracker_sqlite;
        const char *path = ops->path_in(rows[i].target);
        if (!path != !rows[i].path || (path && strcmp(path, rows[i].path) != 0))
            fail_msg("%s: %s", rows[i].target, path ? path : "NULL");
    }
}

static void test_out_of_memory(void **state)
{
    static const char *const names[] = { "t.csv", "t.sqlite" };
    struct wm_recorder *recorder;
    struct wm_error err;
    struct stat info;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *target = fixture_target(state, names[i]);
        int status = WM_ENOMEM;
        for (long n = 0; status < 0; n++) {
            assert_true(n < 1000);
            test_fail_allocation(n);
            status =
                wm_recorder_open(target, WM_RECORD_NEW, fixture_run(), fixture_channels(),
                                 FIXTURE_CHANNELS, &recorder, &err);
            test_fail_allocation(-1);
            if (status < 0)
                assert_int_equal(stat(path_of(target), &info), -1);
        }
        wm_recorder_close(recorder);
    }
}

UNIT(record_gpu_tracker)
{
#define IN_FOLDER(test)                                                                    \
    cmocka_unit_test_setup_teardown(test, test_make_dir, test_remove_dir)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_csv),           IN_FOLDER(test_short_runs),
        IN_FOLDER(test_command_gone),  IN_FOLDER(test_sqlite),
        IN_FOLDER(test_modes),         cmocka_unit_test(test_targets),
        IN_FOLDER(test_out_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
