/* SPDX-License-Identifier: Apache-2.0 */
/* test_timepoints.c - timepoints out of gpu_tracker's tracking files and our recordings. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze/analyze_report.h"
#include "base/base_clock.h"
#include "base/base_file.h"
#include "record/record_read.h"
#include "record/record_timepoint.h"
#include "record/sql/record_sql.h"
#include "test_database.h"
#include "test_record_fixture.h"
#include "wattmeter/analysis.h"

#define STATIC                                                                             \
    "ram_unit,gpu_ram_unit,time_unit,ram_system_capacity,gpu_ram_system_capacity,"         \
    "system_core_count,n_expected_cores,system_gpu_count,n_expected_gpus\n"
#define VALUES "gigabytes,megabytes,hours,67.25,16376.0,12,4,2,1\n"
#define NAMES                                                                              \
    "main_ram,descendants_ram,combined_ram,system_ram,main_gpu_ram,descendants_gpu_ram,"   \
    "combined_gpu_ram,system_gpu_ram,gpu_sum_utilization_percent,"                         \
    "gpu_hardware_utilization_percent,main_n_threads,descendants_n_threads,"               \
    "combined_n_threads,cpu_system_sum_utilization_percent,"                               \
    "cpu_system_hardware_utilization_percent,cpu_main_sum_utilization_percent,"            \
    "cpu_main_hardware_utilization_percent,cpu_descendants_sum_utilization_percent,"       \
    "cpu_descendants_hardware_utilization_percent,cpu_combined_sum_utilization_percent,"   \
    "cpu_combined_hardware_utilization_percent,timestamp"
#define FRONT STATIC VALUES NAMES "\n"
#define TWENTY "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0"

/* A row: main_ram and the timestamp tell it from others. */
#define ROW(main_ram, time) #main_ram "," TWENTY "," #time "\n"

/* 1 and a timepoint, 0 past the last, 2 where they come anew, or what failed. */
static int next_timepoint(struct wm_recording *recording,
                          struct wm_timepoint *ret_timepoint, struct wm_error *err)
{
    struct wm_tick tick;

    int status = wm_recording_next(recording, &tick, err);
    if (status == 1) {
        *ret_timepoint = *wm_recording_timepoint(recording);
        assert_true(ret_timepoint->when_ns == tick.when_ns);
    }
    return status;
}

/* "5@1 6@2.5": main_ram and time of all rows. */
static int rows_of(const char *path, size_t run, char *text, size_t size,
                   struct wm_error *err)
{
    struct wm_recording *recording = NULL;
    struct wm_timepoint timepoint;
    size_t length = 0;

    text[0] = '\0';
    int status = wm_recording_open_any(path, run, &recording, err);
    if (status < 0)
        return status;
    while ((status = next_timepoint(recording, &timepoint, err)) > 0) {
        if (status == 2) {
            length = 0;
            text[0] = '\0';
            continue;
        }
        length +=
            (size_t)snprintf(text + length, size - length, "%s%g@%g", length > 0 ? " " : "",
                             timepoint.known & 1 ? timepoint.values[WM_MAIN_RAM] : NAN,
                             (double)timepoint.when_ns / 1e9);
    }
    const char *remark = wm_recording_remark(recording, 0);
    if (remark)
        snprintf(text + length, size - length, "; line %ld %s",
                 strtol(strstr(remark, ".csv:") + strlen(".csv:"), NULL, 10),
                 strstr(remark, "is taken") ? "taken" : "left out");
    assert_null(wm_recording_remark(recording, 1));
    wm_recording_close(recording);
    return status;
}

static void test_csv(void **state)
{
    static const struct {
        const char *name, *text, *rows;
    } cases[] = {
        { "no sample was taken", STATIC VALUES, "" },
        { "none was written", FRONT, "" },
        { "one", FRONT ROW(5, 1.5), "5@1.5" },
        { "two at one time", FRONT ROW(5, 1) ROW(6, 1), "5@1 6@1" },
        { "a byte order mark", "\xef\xbb\xbf" FRONT ROW(5, 1), "5@1" },
        { "an unknown value", FRONT "," TWENTY ",1\n", "nan@1" },
        { "no last end", FRONT ROW(5, 1) "6," TWENTY ",2", "5@1 6@2; line 5 taken" },
        { "half a last end", FRONT "5," TWENTY ",1\r\n6," TWENTY ",2\r",
          "5@1 6@2; line 5 taken" },
        { "a torn row", FRONT "5," TWENTY ",1\r\n6," TWENTY ",2", "5@1; line 5 left out" },
        { "a torn cell", FRONT ROW(5, 1) "6,7", "5@1; line 5 left out" },
        { "a torn number", FRONT ROW(5, 1) "6," TWENTY ",2e", "5@1; line 5 left out" },
        { "a torn time", FRONT ROW(5, 100) "6," TWENTY ",10", "5@100; line 5 left out" },
        { "a torn header", STATIC VALUES NAMES, "; line 3 left out" },
        { "a clock set back", FRONT ROW(5, 100) ROW(6, 101) ROW(7, 50) ROW(8, 51),
          "7@50 8@51 5@100 6@101" },
        { "a clock set back and forth",
          FRONT ROW(1, 10) ROW(2, 5) ROW(3, 11) ROW(4, 5) ROW(5, 12),
          "2@5 4@5 1@10 3@11 5@12" },
        { "a clock set back, a torn row", FRONT ROW(5, 2) ROW(6, 1) "7," TWENTY ",0",
          "6@1 5@2; line 6 left out" },
        { "a clock set back, no last end", FRONT ROW(5, 2) ROW(6, 1) "7," TWENTY ",1.5",
          "6@1 7@1.5 5@2; line 6 taken" },
        { "a clock set back, a torn number", FRONT ROW(5, 2) ROW(6, 1) "x," TWENTY ",3",
          "6@1 5@2; line 6 left out" },
        { "other columns", STATIC VALUES "mine," NAMES "\n\"a,\nb\",5," TWENTY ",1\n",
          "5@1" },
        { "quotes", STATIC VALUES NAMES "\n\"5\"," TWENTY ",\"1\"\n", "5@1" },
    };
    static char text[4096];

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_error err = { 0 };
        const char *path = in_dir(state, "a.csv");
        print_message("  %s\n", cases[i].name);
        test_write_file(*state, "a.csv", cases[i].text);
        if (rows_of(path, WM_LAST_RUN, text, sizeof(text), &err) < 0)
            fail_msg("%s", err.text);
        assert_string_equal(text, cases[i].rows);
    }
}

static void test_broken_csv(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        { "ram_unit", "a.csv: cut off in its first line" },
        { STATIC, "a.csv: cut off in its second line" },
        { STATIC "gigabytes,megabytes", "cut off in its second line" },
        { "ram_unit,gpu_ram_unit,time_unit\n" VALUES,
          "a.csv:1: not the header of a tracking file: without 'ram_system_capacity'" },
        { STATIC "gigabytes,megabytes,hours,1,2,3,4,5\n", ":2: not as many cells" },
        { STATIC "Gigabytes,megabytes,hours,1,2,3,4,5,6\n",
          ":2: cell 1: 'Gigabytes' is not ram_unit" },
        { STATIC "gigabytes,,hours,1,2,3,4,5,6\n", "cell 2: '' is not gpu_ram_unit" },
        { STATIC "bytes,bytes,years,1,2,3,4,5,6\n", "'years' is not time_unit" },
        { STATIC "bytes,bytes,hours,x,2,3,4,5,6\n", "'x' is not ram_system_capacity" },
        { STATIC "bytes,bytes,hours,-1,2,3,4,5,6\n", "'-1' is not ram_system" },
        { STATIC "bytes,bytes,hours,1,2,-3,4,5,6\n", "'-3' is not system_core_count" },
        { STATIC "bytes,bytes,hours,1,2,1e10,4,5,6\n", "'1e10' is not system_core" },
        { STATIC VALUES "main_ram,timestamp\n", ":3: not the header of a tracking file" },
        { STATIC VALUES NAMES ",main_ram\n", ":3: not the header" },
        { STATIC VALUES ROW(5, 1), ":3: not the header" },
        { FRONT "5," TWENTY "\n", ":4: not as many cells as there are columns" },
        { FRONT ROW(5, 1) "5," TWENTY ",1,2\n", ":5: not as many cells" },
        { FRONT ROW(5, 1) ROW(six, 2), ":5: cell 1: 'six' is not a number" },
        { FRONT ROW(nan, 2), "'nan' is not a number" },
        { FRONT ROW(inf, 2), "'inf' is not a number" },
        { FRONT ROW(1e999, 2), "'1e999' is not a number" },
        { FRONT "5," TWENTY ",\n", ":4: cell 22: '' is not a time" },
        { FRONT ROW(5, nan), "'nan' is not a time" },
        { FRONT ROW(5, -1), "'-1' is not a time" },
        { FRONT ROW(5, 1e300), "'1e300' is not a time" },
        { FRONT ROW(5, 2) ROW(6, 1) ROW(7, x), ":6: cell 22: 'x' is not a time" },
        { FRONT ROW(5, 2) ROW(six, 1), ":5: cell 1: 'six' is not a number" },
        { FRONT "\"5," TWENTY ",1\n" ROW(6, 2) ROW(7, 3),
          ":4: a quote that is not closed" },
        { "process_id,code_block_name,position,timestamp\n7,a,0,1\n",
          "a sub-tracking file" },
        { "", "empty" },
    };
    static char text[4096];

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_error err = { 0 };
        print_message("  %s\n", cases[i].why);
        test_write_file(*state, "a.csv", cases[i].text);
        assert_int_equal(
            rows_of(in_dir(state, "a.csv"), WM_LAST_RUN, text, sizeof(text), &err),
            WM_EFORMAT);
        if (!strstr(err.text, cases[i].why))
            fail_msg("'%s' does not say '%s'", err.text, cases[i].why);
    }
}

static void assert_known(struct wm_known number, double expected)
{
    assert_true(number.known && number.number == expected);
}

static void assert_static(const struct wm_recording *recording)
{
    const struct wm_static_data *data = wm_recording_static_data(recording);

    assert_string_equal(data->ram_unit, "gigabytes");
    assert_string_equal(data->gpu_ram_unit, "megabytes");
    assert_string_equal(data->time_unit, "hours");
    assert_known(data->ram_capacity, 67.25);
    assert_known(data->gpu_ram_capacity, 16376);
    assert_known(data->system_cores, 12);
    assert_known(data->expected_cores, 4);
    assert_known(data->gpus, 2);
    assert_known(data->expected_gpus, 1);
}

static void test_static(void **state)
{
    struct wm_recording *recording = NULL;
    struct wm_error err;

    test_write_file(*state, "a.csv", STATIC VALUES);
    assert_int_equal(wm_recording_open_any(in_dir(state, "a.csv"), 0, &recording, &err), 0);
    assert_static(recording);
    wm_recording_close(recording);

    /* What is not known, and half a core. */
    test_write_file(*state, "a.csv", STATIC "bytes,bytes,seconds,,,,0.5,,\n");
    assert_int_equal(wm_recording_open_any(in_dir(state, "a.csv"), 0, &recording, &err), 0);
    const struct wm_static_data *data = wm_recording_static_data(recording);
    assert_false(data->ram_capacity.known || data->gpu_ram_capacity.known);
    assert_false(data->system_cores.known || data->gpus.known);
    assert_known(data->expected_cores, 0);
    wm_recording_close(recording);

    assert_int_equal(wm_recording_open_any(in_dir(state, "a.csv"), 1, &recording, &err),
                     WM_EINVAL);
}

/* Each measurement has its own place, and gpu_tracker's own sums over files of its. */
static void test_real(void **state)
{
    static const struct {
        const char *file;
        double sum_of_means;
        size_t rows;
    } cases[] = {
        { "real.csv", 397.9948698624001, 5 },
        { "real.sqlite", 417.3546148053333, 6 },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_recording *recording = NULL;
        struct wm_timepoint timepoint = { 0 };
        struct wm_error err;
        char path[256];
        double sum = 0;
        size_t rows = 0;

        snprintf(path, sizeof(path), "%s/%s",
                 test_source_path("tests/data/gpu_tracker/tracking"), cases[i].file);
        if (wm_recording_open_any(path, WM_LAST_RUN, &recording, &err) < 0)
            fail_msg("%s", err.text);
        for (; next_timepoint(recording, &timepoint, &err) > 0; rows++) {
            for (int m = 0; m < WM_MEASUREMENT_COUNT; m++)
                sum += timepoint.values[m];
            assert_true(timepoint.values[WM_MAIN_THREADS] == 1);
            assert_true(timepoint.values[WM_CPU_COMBINED_HARDWARE] ==
                        timepoint.values[WM_CPU_COMBINED_SUM] / 2);
            assert_in_range(timepoint.when_ns / 1000000000, 1795288065, 1795288075);
        }
        assert_int_equal(rows, cases[i].rows);
        assert_true(fabs(sum / (double)rows - cases[i].sum_of_means) < 1e-9);
        wm_recording_close(recording);
    }
}

/* The tables as gpu_tracker makes them, but for the type of the columns. */
static char *tables(const char *type, const char *rest)
{
    static char sql[8192];
    char columns[2048] = "";
    const char *names = NAMES;
    size_t length = 0;

    for (const char *name = names; *name;) {
        size_t size = strcspn(name, ",");
        length += (size_t)snprintf(columns + length, sizeof(columns) - length, "%s%.*s %s",
                                   length > 0 ? ", " : "", (int)size, name, type);
        name += size + (name[size] == ',');
    }
    snprintf(
        sql, sizeof(sql),
        "CREATE TABLE static_data (ram_unit VARCHAR, gpu_ram_unit VARCHAR, time_unit"
        " VARCHAR, ram_system_capacity FLOAT, gpu_ram_system_capacity FLOAT,"
        " system_core_count INTEGER, n_expected_cores INTEGER, system_gpu_count INTEGER,"
        " n_expected_gpus INTEGER);"
        "INSERT INTO static_data VALUES ('gigabytes', 'megabytes', 'hours', 67.25,"
        " 16376.0, 12, 4, 2, 1);"
        "CREATE TABLE data (%s);%s",
        columns, rest);
    return sql;
}

#define INSERT(main_ram, time)                                                             \
    "INSERT INTO data VALUES (" #main_ram ", " TWENTY ", " #time ");"

static void test_sqlite(void **state)
{
    static const struct {
        const char *name, *type, *rest, *rows;
    } cases[] = {
        { "no rows", "FLOAT", "", "" },
        { "no table, for no sample was taken", "FLOAT", "DROP TABLE data", "" },
        { "two", "FLOAT", INSERT(5.5, 1.5) INSERT(6, 2), "5.5@1.5 6@2" },
        { "whole numbers", "INTEGER", INSERT(5.5, 1.5) INSERT(6, 2), "5.5@1.5 6@2" },
        { "no type", "", INSERT(5.5, 1.5) INSERT(6, 2), "5.5@1.5 6@2" },
        { "unknown", "FLOAT", INSERT(NULL, 1), "nan@1" },
        { "a clock set back", "FLOAT", INSERT(5, 100) INSERT(6, 50) INSERT(7, 101),
          "6@50 5@100 7@101" },
        { "an index", "FLOAT",
          INSERT(5, 1) INSERT(4, 1) "CREATE INDEX x ON data (main_ram, timestamp)",
          "5@1 4@1" },
        { "a view beside it", "FLOAT", INSERT(5, 1) "CREATE VIEW v AS SELECT 1", "5@1" },
        { "numbers of rows with holes", "FLOAT",
          INSERT(5, 1) INSERT(6, 2) "UPDATE data SET rowid = 9223372036854775807"
                                    " WHERE main_ram = 6",
          "5@1 6@2" },
        { "numbers of rows below zero", "FLOAT",
          INSERT(5, 1) INSERT(6, 2) "UPDATE data SET rowid = -9223372036854775807"
                                    " WHERE main_ram = 5",
          "5@1 6@2" },
        { "a column called like the numbers of rows", "FLOAT",
          INSERT(5, 1) "ALTER TABLE data ADD COLUMN _rowid_ INTEGER DEFAULT 77", "5@1" },
        { "static data as text", "FLOAT",
          INSERT(5, 1) "DELETE FROM static_data; INSERT INTO static_data VALUES ('bytes',"
                       " 'bytes', 'days', '1', '2', '3', 0.5, NULL, 4.0)",
          "5@1" },
    };
    static char text[4096];

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_error err = { 0 };
        const char *path = in_dir(state, "a.sqlite");
        print_message("  %s\n", cases[i].name);
        write_database(path, tables(cases[i].type, cases[i].rest));
        if (rows_of(path, WM_LAST_RUN, text, sizeof(text), &err) < 0)
            fail_msg("%s", err.text);
        assert_string_equal(text, cases[i].rows);
    }
}

static void test_broken_sqlite(void **state)
{
    static const struct {
        const char *rest, *why;
    } cases[] = {
        { "DROP TABLE static_data", "there is no table static_data" },
        { "DELETE FROM static_data", "table static_data is empty" },
        { "UPDATE static_data SET ram_unit = 'GB'", "static_data: 'GB' is not ram_unit" },
        { "UPDATE static_data SET time_unit = NULL", "'' is not time_unit" },
        { "UPDATE static_data SET ram_unit = zeroblob(9)", "is not ram_unit" },
        { "UPDATE static_data SET time_unit = hex(zeroblob(99))", "is not time_unit" },
        { "UPDATE static_data SET system_core_count = 'x'",
          "'x' is not system_core_count" },
        { "UPDATE static_data SET ram_system_capacity = 9e999", "ram_system_capacity" },
        { "ALTER TABLE static_data RENAME COLUMN ram_unit TO unit",
          "no such column: static_data.ram_unit" },
        { "ALTER TABLE data RENAME COLUMN main_ram TO ram",
          "no such column: data.main_ram" },
        { "ALTER TABLE data RENAME COLUMN timestamp TO t",
          "no such column: data.timestamp" },
        { "DROP TABLE data; CREATE VIEW data AS SELECT 1 AS timestamp",
          "there is no table data" },
        { "DROP TABLE static_data; CREATE VIEW static_data AS WITH RECURSIVE n(i) AS"
          " (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) AS ram_unit FROM n",
          "there is no table static_data" },
        { INSERT(5, NULL), "timestamp is not a time" },
        { INSERT(5, 9e999), "timestamp is not a time" },
        { INSERT(5, -1), "timestamp is not a time" },
        { INSERT(5, '12abc'), "timestamp is not a time" },
        { INSERT(5, zeroblob(1)), "timestamp is not a time" },
        { INSERT('12abc', 1), "main_ram is not a number" },
        { INSERT(zeroblob(1), 1), "main_ram is not a number" },
        { INSERT(9e999, 1), "main_ram is not a number" },
        { INSERT(5, 2) INSERT('x', 1), "main_ram is not a number" },
    };
    static char text[4096];

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_error err = { 0 };
        const char *path = in_dir(state, "a.sqlite");
        print_message("  %s\n", cases[i].rest);
        write_database(path, tables("FLOAT", cases[i].rest));
        assert_int_equal(rows_of(path, WM_LAST_RUN, text, sizeof(text), &err), WM_EFORMAT);
        if (!strstr(err.text, cases[i].why))
            fail_msg("'%s' does not say '%s'", err.text, cases[i].why);
    }
    write_database(in_dir(state, "a.sqlite"), "CREATE TABLE other (a)");
    assert_int_equal(
        rows_of(in_dir(state, "a.sqlite"), WM_LAST_RUN, text, sizeof(text), NULL),
        WM_EFORMAT);
}

/* So many rows that threads read them. */
#define MANY                                                                               \
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)"     \
    " INSERT INTO data SELECT i, 0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0, 1000 + i * 0.5"  \
    " FROM n;"

static int read_many(const char *path, size_t *ret_rows, double *ret_sum,
                     struct wm_error *err)
{
    struct wm_recording *recording = NULL;
    struct wm_timepoint timepoint;
    int64_t last_ns = 0;

    *ret_rows = 0;
    *ret_sum = 0;
    int status = wm_recording_open_any(path, WM_LAST_RUN, &recording, err);
    if (status < 0)
        return status;
    assert_static(recording);
    while ((status = next_timepoint(recording, &timepoint, err)) > 0) {
        if (status == 2) {
            last_ns = 0;
            *ret_sum = 0;
            *ret_rows = 0;
            continue;
        }
        assert_true(timepoint.when_ns >= last_ns);
        last_ns = timepoint.when_ns;
        *ret_sum += timepoint.values[WM_MAIN_RAM];
        (*ret_rows)++;
    }
    wm_recording_close(recording);
    return status;
}

static void test_many_rows(void **state)
{
    static const struct {
        const char *name, *rest;
        size_t rows; /* 0: refused */
    } cases[] = {
        { "in order", "", 200000 },
        { "with holes", "DELETE FROM data WHERE rowid % 5 = 0 OR rowid > 150000", 120000 },
        { "a clock set back",
          "UPDATE data SET timestamp = timestamp - 50000"
          " WHERE rowid > 150000",
          200000 },
        { "a broken row", "UPDATE data SET main_ram = 'x' WHERE rowid = 150000", 0 },
        { "a broken time", "UPDATE data SET timestamp = 'x' WHERE rowid = 150000", 0 },
    };
    struct wm_error err;
    double sum;
    size_t rows;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char sql[1024];
        const char *path = in_dir(state, "a.sqlite");
        print_message("  %s\n", cases[i].name);
        snprintf(sql, sizeof(sql), MANY "%s", cases[i].rest);
        write_database(path, tables("FLOAT", sql));
        int status = read_many(path, &rows, &sum, &err);
        if (cases[i].rows == 0) {
            assert_int_equal(status, WM_EFORMAT);
            continue;
        }
        if (status < 0)
            fail_msg("%s", err.text);
        assert_int_equal(rows, cases[i].rows);
        if (rows == 200000)
            assert_true(sum == 200000.0 * 200001 / 2);
    }

    /* Closed in the middle, and where no thread can be had. */
    struct wm_recording *recording = NULL;
    struct wm_timepoint timepoint;
    const char *path = in_dir(state, "a.sqlite");
    write_database(path, tables("FLOAT", MANY));
    assert_int_equal(wm_recording_open_any(path, WM_LAST_RUN, &recording, &err), 0);
    assert_int_equal(next_timepoint(recording, &timepoint, &err), 1);
    wm_recording_close(recording);
    test_fail_threads(true);
    int status = read_many(path, &rows, &sum, &err);
    test_fail_threads(false);
    assert_int_equal(status, 0);
    assert_int_equal(rows, 200000);
}

/* Read as they stand, and sorted. */
static void test_tangled(void **state)
{
    static const char *const times[] = { "1", "1000000 - i" };
    const char *path = in_dir(state, "a.sqlite");
    char sql[1024];
    size_t rows;
    double sum;

    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        struct wm_error err = { 0 };
        snprintf(
            sql, sizeof(sql),
            "PRAGMA page_size = 512; VACUUM;"
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i <"
            " 9000) INSERT INTO data SELECT i, 0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,"
            " %s FROM n; UPDATE data SET rowid = -rowid",
            times[i]);
        write_database(path, tables("FLOAT", sql));
        tangle(path);
        assert_int_equal(read_many(path, &rows, &sum, &err), WM_EFORMAT);
        if (!strstr(err.text, "more rows than it has room for"))
            fail_msg("%s", err.text);
    }
}

/* A tree of pages of which the last row has a smaller number than the first. */
static void test_last_before_first(void **state)
{
    static char text[65536];
    struct wm_error err = { 0 };
    (void)state;

    int status = rows_of(
        test_source_path("tests/data/gpu_tracker/tracking/last-before-first.sqlite"),
        WM_LAST_RUN, text, sizeof(text), &err);
    assert_true(status == 0 || (status == WM_EFORMAT && err.text[0] != '\0'));
}

/* A writer was killed, or is still at it; and nothing can be written beside the file. */
static void test_log(void **state)
{
    const char *path = in_dir(state, "ro/a.sqlite");
    struct wm_error err;
    char text[256];
    sqlite3 *db = NULL;

    assert_int_equal(mkdir(in_dir(state, "ro"), 0755), 0);
    write_database(path, tables("FLOAT", "PRAGMA journal_mode = WAL"));
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, INSERT(5, 1), NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(chmod(in_dir(state, "ro"), 0555), 0);
    if (rows_of(path, WM_LAST_RUN, text, sizeof(text), &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(text, "5@1");
    assert_int_equal(chmod(in_dir(state, "ro"), 0755), 0);
    sqlite3_close(db);
}

static void write_run(const char *path, enum wm_record_mode mode, size_t ticks)
{
    struct wm_reading readings[FIXTURE_CHANNELS];
    struct wm_result result = fixture_result();
    struct wm_recorder *recorder = NULL;
    struct wm_error err;

    if (wm_recorder_open(path, mode, fixture_run(), fixture_channels(), FIXTURE_CHANNELS,
                         &recorder, &err) < 0)
        fail_msg("%s", err.text);
    for (size_t n = 0; n < ticks; n++) {
        struct wm_tick tick = fixture_tick(n, readings);
        wm_recorder_tick(recorder, &tick);
    }
    wm_recorder_flush(recorder, &result);
    assert_int_equal(wm_recorder_finish(recorder, &result, &err), WM_OK);
    wm_recorder_close(recorder);
}

static int read_report(const char *path, size_t run, struct wm_report **ret_report,
                       struct wm_error *err)
{
    const struct wm_analysis_input input = { .tracking = path, .run = run };

    return wm_report_from_files(&input, ret_report, err);
}

/* What the builder gives, in any format. */
static void check_overall(const struct wm_report *report, size_t ticks)
{
    struct wm_block_stats expected[WM_MEASUREMENT_COUNT] = { 0 };
    struct wm_reading readings[FIXTURE_CHANNELS];
    struct wm_timepoint_builder *builder = NULL;
    struct wm_timepoint timepoint;

    assert_int_equal(wm_timepoint_builder_new(fixture_run(), fixture_channels(),
                                              FIXTURE_CHANNELS, &builder, NULL),
                     WM_OK);
    for (size_t n = 0; n < ticks; n++) {
        struct wm_tick tick = fixture_tick(n, readings);
        if (!wm_timepoint_next(builder, &tick, &timepoint))
            continue;
        for (size_t m = 0; m < WM_MEASUREMENT_COUNT; m++)
            if (wm_timepoint_value(&timepoint, m).known)
                wm_block_stats_add(&expected[m], timepoint.values[m]);
    }
    wm_timepoint_builder_free(builder);
    assert_int_equal(report->usage.timepoints, ticks - 1);
    for (size_t m = 0; m < WM_MEASUREMENT_COUNT; m++) {
        const struct wm_block_figures figures = wm_block_figures_of(&expected[m]);
        assert_int_equal(report->usage.overall[m].count, figures.count);
        for (size_t f = 0; f < WM_BLOCK_STATISTICS; f++)
            assert_true(report->usage.overall[m].of[f].number == figures.of[f].number);
    }
}

static void check_recording(const char *path, size_t run, size_t ticks)
{
    struct wm_report *report = NULL;
    struct wm_error err;

    if (read_report(path, run, &report, &err) < 0)
        fail_msg("%s", err.text);
    const struct wm_static_data *data = &report->usage.machine;
    assert_false(report->is_foreign);
    assert_string_equal(data->ram_unit, "bytes");
    assert_string_equal(data->gpu_ram_unit, "bytes");
    assert_string_equal(data->time_unit, "seconds");
    assert_known(data->system_cores, 8);
    assert_known(data->expected_cores, 4);
    assert_known(data->gpus, 2);
    assert_known(data->expected_gpus, 2);
    assert_known(data->ram_capacity, 13e9);
    assert_known(data->gpu_ram_capacity, 17e9);
    check_overall(report, ticks);
    wm_report_free(report);
}

static void test_recordings(void **state)
{
    const char *csv = in_dir(state, "a.csv"), *sqlite = in_dir(state, "a.sqlite");
    struct wm_report *report = NULL;
    struct wm_error err;

    write_run(csv, WM_RECORD_NEW, 20);
    check_recording(csv, WM_LAST_RUN, 20);
    check_recording(csv, 0, 20);
    write_run(sqlite, WM_RECORD_NEW, 20);
    check_recording(sqlite, WM_LAST_RUN, 20);
    assert_int_equal(read_report(sqlite, 1, &report, &err), WM_EINVAL);

    /* Each of several runs by itself, though all of them stand in one table. */
    write_run(sqlite, WM_RECORD_APPEND, 7);
    check_recording(sqlite, 0, 20);
    check_recording(sqlite, 1, 7);
    check_recording(sqlite, WM_LAST_RUN, 7);
    assert_int_equal(read_report(sqlite, 2, &report, &err), WM_EINVAL);
}

/* Files of the first version of the format. */
static void test_old_recordings(void **state)
{
    static const char *const files[] = { "tests/data/recordings/v1.csv",
                                         "tests/data/recordings/v1.sqlite" };
    struct wm_report *reports[2];
    struct wm_error err;
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        if (read_report(test_source_path(files[i]), 0, &reports[i], &err) < 0)
            fail_msg("%s", err.text);
    }
    const struct wm_usage_report *csv = &reports[0]->usage, *sqlite = &reports[1]->usage;
    assert_true(csv->timepoints > 0 && csv->timepoints == sqlite->timepoints);
    for (size_t m = 0; m < WM_MEASUREMENT_COUNT; m++)
        for (size_t f = 0; f < WM_BLOCK_STATISTICS; f++)
            assert_true(csv->overall[m].of[f].number == sqlite->overall[m].of[f].number);
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        wm_report_free(reports[i]);
}

static void test_broken_recording(void **state)
{
    struct wm_report *report = NULL;
    struct wm_error err = { 0 };
    char *text = NULL;
    size_t length = 0;

    write_run(in_dir(state, "a.csv"), WM_RECORD_NEW, 3);
    assert_int_equal(wm_file_slurp(in_dir(state, "a.csv"), 1 << 20, &text, &length, NULL),
                     WM_OK);
    test_write_bytes(in_dir(state, "b.csv"), text, length - 5);
    free(text);
    assert_int_equal(read_report(in_dir(state, "b.csv"), 0, &report, &err), WM_OK);
    assert_non_null(
        strstr(wm_report_text(report, WM_REPORT_FILE_NOTES, 0, NULL), "left out"));
    assert_null(wm_report_text(report, WM_REPORT_FILE_NOTES, 1, NULL));
    wm_report_free(report);

    assert_int_equal(read_report(in_dir(state, "none.csv"), 0, &report, &err), WM_ENOENT);
    assert_int_equal(read_report(*state, 0, &report, &err), WM_EFORMAT);
}

static void test_memory(void **state)
{
    const char *paths[] = { in_dir(state, "a.csv"), in_dir(state, "a.sqlite"),
                            in_dir(state, "b.sqlite") };
    static const char *const rows[] = { "6@1 5@2", "6@1 5@2", NULL };

    test_write_file(*state, "a.csv", FRONT ROW(5, 2) ROW(6, 1));
    write_database(paths[1], tables("FLOAT", INSERT(5, 2) INSERT(6, 1)));
    write_run(paths[2], WM_RECORD_NEW, 3);
    write_run(paths[2], WM_RECORD_APPEND, 3);
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct wm_report *report = NULL;
        char text[256];
        int status = WM_ENOMEM;
        long nth = 0;
        for (; status == WM_ENOMEM; nth++) {
            struct wm_error err = { 0 };
            test_fail_allocation(nth);
            if (rows[i])
                status = rows_of(paths[i], WM_LAST_RUN, text, sizeof(text), &err);
            else
                status = read_report(paths[i], WM_LAST_RUN, &report, &err);
            test_fail_allocation(-1);
            assert_true(status == 0 || (status == WM_ENOMEM && err.text[0] != '\0'));
        }
        assert_true(nth > 3);
        if (rows[i])
            assert_string_equal(text, rows[i]);
        wm_report_free(report);
    }
}

static void test_seconds(void **state)
{
    static const double bad[] = { -1, -1e-9, NAN, INFINITY, -INFINITY, 4611686019, 1e300 };
    int64_t when_ns = 7, last_ns = -1;
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_false(wm_clock_from_seconds(bad[i], &when_ns));
    assert_int_equal(when_ns, 7);
    assert_true(wm_clock_from_seconds(1.5, &when_ns));
    assert_int_equal(when_ns, 1500000000);
    assert_true(wm_clock_from_seconds(-0.0, &when_ns));
    assert_int_equal(when_ns, 0);
    assert_true(wm_clock_from_seconds(4611686018, &when_ns));

    /* From one double to the next there is a step. */
    double seconds = 1795247379;
    for (int i = 0; i < 100000; i++) {
        assert_true(wm_clock_from_seconds(seconds, &when_ns));
        assert_true(when_ns > last_ns);
        last_ns = when_ns;
        seconds = nextafter(seconds, INFINITY);
    }
}

UNIT(timepoints)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_make_dir, test_remove_dir)
    const struct CMUnitTest tests[] = {
        TEST(test_csv),
        TEST(test_broken_csv),
        TEST(test_static),
        cmocka_unit_test(test_real),
        TEST(test_sqlite),
        TEST(test_broken_sqlite),
        TEST(test_many_rows),
        TEST(test_tangled),
        cmocka_unit_test(test_last_before_first),
        TEST(test_log),
        TEST(test_recordings),
        cmocka_unit_test(test_old_recordings),
        TEST(test_broken_recording),
        TEST(test_memory),
        cmocka_unit_test(test_seconds),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
