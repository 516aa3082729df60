/* SPDX-License-Identifier: Apache-2.0 */
/* test_record_read.c - files that were cut off, edited, or made to do harm. A
 * new case is a new row. */
#include "test_record_fixture.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/base_file.h"

/* Opens and reads to the end. What went wrong is in `err`. */
static int read_all(const char *path, size_t *ret_ticks, bool *ret_has_result,
                    struct wm_error *err)
{
    struct wm_recording *recording = NULL;
    struct wm_tick tick;
    size_t ticks = 0;

    *err = (struct wm_error) { 0 };
    int status = wm_recording_open(path, WM_LAST_RUN, &recording, err);
    if (status < 0)
        return status;
    *ret_has_result = wm_recording_result(recording) != NULL;
    while ((status = wm_recording_next(recording, &tick, err)) > 0)
        ticks++;
    *ret_ticks = ticks;
    wm_recording_close(recording);
    return status;
}

static char *slurp(const char *path, size_t *ret_length)
{
    struct wm_error err = { 0 };
    char *text = NULL;

    assert_ok(wm_file_slurp(path, 1 << 22, &text, ret_length, &err));
    return text;
}

static void test_not_a_recording(void **state)
{
    static const struct {
        const char *what, *name, *text;
        int status;
        const char *complains_of;
    } cases[] = {
        { "nothing there", "none.csv", NULL, WM_ENOENT, "No such file" },
        { "a folder", "folder", NULL, WM_EFORMAT, "a folder" },
        { "a pipe", "pipe", NULL, WM_EFORMAT, "not a regular file" },
        { "an empty file", "a.csv", "", WM_EFORMAT, "empty" },
        { "text", "a.csv", "hello\n", WM_EFORMAT, "not a recording of wattmeter" },
        { "a report as JSON", "a.json", "{\"command\": [\"true\"]}", WM_EFORMAT,
          "that of a report cannot be read back" },
        { "another CSV", "a.csv", "a,b\n1,2\n", WM_EFORMAT, "not a recording" },
        { "gpu_tracker's own CSV", "a.csv",
          "ram_unit,gpu_ram_unit,time_unit,ram_system_capacity,gpu_ram_system_capacity,"
          "system_core_count,n_expected_cores,system_gpu_count,n_expected_gpus\r\n"
          "bytes,bytes,hours,1,1,1,1,0,0\r\n",
          WM_EFORMAT, "not a recording" },
        { "SQLite's magic and no more", "a.db", "SQLite format 3", WM_EFORMAT, "" },
    };
    struct wm_recording *recording = NULL;

    assert_int_equal(mkdir(fixture_path(state, "folder"), 0755), 0);
    assert_int_equal(mkfifo(fixture_path(state, "pipe"), 0644), 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_error err = { 0 };
        print_message("  %s\n", cases[i].what);
        if (cases[i].text)
            test_write_file(*state, cases[i].name, cases[i].text);
        assert_int_equal(wm_recording_open(fixture_path(state, cases[i].name), WM_LAST_RUN,
                                           &recording, &err),
                         cases[i].status);
        assert_int_equal(err.status, cases[i].status);
        assert_non_null(strstr(err.text, cases[i].complains_of));
        assert_non_null(strstr(err.text, cases[i].name));
        assert_null(recording);
    }
}

static void test_foreign_database(void **state)
{
    const char *path = test_source_path("tests/data/recordings/gpu-tracker.sqlite");
    struct wm_recording *recording = NULL;
    struct wm_error err = { 0 };

    (void)state;
    assert_int_equal(wm_recording_open(path, WM_LAST_RUN, &recording, &err), WM_EFORMAT);
    assert_int_equal(err.status, WM_EFORMAT);
    assert_non_null(strstr(err.text, "a database, but not a recording of wattmeter"));
}

/* Every length of it: either refused for being cut off in the header, or read
 * up to the last whole line. */
static void test_truncated_csv(void **state)
{
    const char *path = fixture_path(state, "a.csv");
    size_t length, third_line = 0, lines = 0;

    record_fixture(path, WM_RECORD_NEW, 3);
    char *text = slurp(path, &length);
    for (size_t i = 0; i < length; i++) {
        lines += text[i] == '\n';
        if (lines == 2 && third_line == 0)
            third_line = i + 1;
    }

    for (size_t at = length + 1; at-- > 0;) {
        struct wm_error err;
        size_t ticks = 0;
        bool has_result = false;

        assert_int_equal(truncate(path, (off_t)at), 0);
        lines -= at < length && text[at] == '\n';
        int status = read_all(path, &ticks, &has_result, &err);
        if (at < third_line) {
            assert_int_equal(status, WM_EFORMAT);
        } else {
            assert_int_equal(status, WM_OK);
            assert_true(has_result);
            assert_int_equal(ticks, lines > 3 ? lines - 3 : 0);
        }

        /* In the middle of the room kept for the result there are blanks. */
        if (at == third_line - 3000)
            at -= 10000;
    }
    free(text);
}

static void test_truncated_sqlite(void **state)
{
    const char *path = fixture_path(state, "a.sqlite"),
               *cut = fixture_path(state, "cut.db");
    size_t length, whole = 0;

    record_fixture(path, WM_RECORD_NEW, 50);
    char *bytes = slurp(path, &length);
    for (size_t step = 0, at; (at = step < 200 ? step : (step - 199) * 509) < length + 509;
         step++) {
        if (at > length)
            at = length;
        struct wm_error err;
        size_t ticks = 0;
        bool has_result = false;

        test_write_bytes(cut, bytes, at);
        int status = read_all(cut, &ticks, &has_result, &err);
        if (status < 0)
            assert_int_equal(status, WM_EFORMAT);
        whole += status == WM_OK && ticks == 50;
    }
    assert_int_equal(whole, 1);
    free(bytes);
}

/* Bytes turned over, everywhere. Nothing is expected but an answer. */
static void test_damaged(void **state)
{
    static const char *const names[] = { "a.sqlite", "a.csv" };

    for (size_t f = 0; f < ARRAY_LEN(names); f++) {
        const char *path = fixture_path(state, names[f]), *bad = fixture_path(state, "bad");
        size_t length, failed = 0;
        unsigned random = 1;

        record_fixture(path, WM_RECORD_NEW, 10);
        char *bytes = slurp(path, &length);
        for (size_t round = 0; round < 600; round++) {
            struct wm_error err;
            size_t ticks = 0;
            bool has_result = false;

            random = random * 1103515245 + 12345;
            size_t at = random / 7 % length;
            char before = bytes[at];
            bytes[at] = (char)(random >> 16);
            test_write_bytes(bad, bytes, length);
            bytes[at] = before;
            failed += read_all(bad, &ticks, &has_result, &err) < 0;
            assert_true(ticks <= 10);
        }
        print_message("  %s: %zu of 600 refused\n", names[f], failed);
        free(bytes);
    }
}

/* A small CSV file with a hole for what a case is about. */
#define STATIC_HEADER                                                                      \
    "ram_unit,gpu_ram_unit,time_unit,ram_system_capacity,gpu_ram_system_capacity,"         \
    "system_core_count,n_expected_cores,system_gpu_count,n_expected_gpus,"                 \
    "wattmeter_format,wattmeter_run,wattmeter_channels,wattmeter_gaps_and_result\r\n"
#define STATIC "bytes,bytes,seconds,,,1,1,0,0,"
#define CHANNEL_AS(column, clock)                                                          \
    "{\"\"column\"\":\"\"" column "\"\",\"\"clock_column\"\":" clock                       \
    ",\"\"source\"\":\"\"s\"\",\"\"device\"\":\"\"d\"\",\"\"label\"\":\"\"l\"\","          \
    "\"\"metric\"\":\"\"m\"\",\"\"unit\"\":\"\"W\"\",\"\"device_kind\"\":\"\"gpu\"\","     \
    "\"\"kind\"\":\"\"gauge\"\",\"\"origin\"\":\"\"measured\"\",\"\"period_ns\"\":0,"      \
    "\"\"sensor\"\":{}}"
#define CHANNELS "\"[" CHANNEL_AS("v", "\"\"c\"\"") "]\""
#define FRONT STATIC_HEADER STATIC "1,{}," CHANNELS ",\"{}  \"\r\ntime_ns,c,v\r\n"

static void test_edited_csv(void **state)
{
    static const struct {
        const char *what, *text;
        int status;
        size_t ticks;
        const char *complains_of;
    } cases[] = {
        { "the plain case", FRONT "5,4,1.5\r\n6,,\r\n", WM_OK, 2, "" },
        { "other line ends", FRONT "5,4,1.5\n6,5,2\n", WM_OK, 2, "" },
        { "a value without its time", FRONT "5,,1.5\r\n", WM_OK, 1, "" },
        { "a torn last line", FRONT "5,4,1.5\r\n6,5,2.", WM_OK, 1, "" },
        { "only a torn line", FRONT "5", WM_OK, 0, "" },
        { "an empty line", FRONT "5,4,1\r\n\r\n6,5,1\r\n", WM_OK, 2, "" },
        { "too few cells", FRONT "5,4\r\n", WM_EFORMAT, 0, ":4: fewer cells" },
        { "too many cells", FRONT "5,4,1,\r\n", WM_EFORMAT, 0, ":4: more cells" },
        { "text for a value", FRONT "5,4,abc\r\n", WM_EFORMAT, 0,
          "cell 3: 'abc' is not a number" },
        { "NaN for a value", FRONT "5,4,nan\r\n", WM_EFORMAT, 0, "'nan'" },
        { "infinity for a value", FRONT "5,4,1e999\r\n", WM_EFORMAT, 0, "'1e999'" },
        { "a decimal comma", FRONT "5,4,1,5\r\n", WM_EFORMAT, 0, "more cells" },
        { "a quoted value", FRONT "5,4,\"1\"\r\n", WM_OK, 1, "" },
        { "a quote that swallows lines", FRONT "5,4,1\r\n6,\"5,1\r\n7,6,1\r\n8,7,1\r\n",
          WM_EFORMAT, 0, ":5: a quote that is not closed" },
        { "a torn last line with a quote", FRONT "5,4,1\r\n6,\"5,1", WM_OK, 1, "" },
        { "a blank in a value", FRONT "5,4, 1\r\n", WM_EFORMAT, 0, "not a number" },
        { "hexadecimal", FRONT "5,4,0x1p3\r\n", WM_EFORMAT, 0, "not a number" },
        { "no time", FRONT ",4,1\r\n", WM_EFORMAT, 0, "cell 1: '' is not a time" },
        { "a broken time", FRONT "5.5,4,1\r\n", WM_EFORMAT, 0, "not a time" },
        { "a time before all times", FRONT "-5,4,1\r\n", WM_EFORMAT, 0, "not a time" },
        { "a time after all times", FRONT "9223372036854775807,4,1\r\n", WM_EFORMAT, 0,
          "not a time" },
        { "a clock after all times", FRONT "5,9223372036854775807,1\r\n", WM_EFORMAT, 0,
          "not a time" },
        { "the same time again", FRONT "5,4,1\r\n5,4,1\r\n", WM_EFORMAT, 0,
          ":5: not later" },
        { "back in time", FRONT "5,4,1\r\n4,4,1\r\n", WM_EFORMAT, 0, ":5: not later" },
        { "columns of others",
          STATIC_HEADER STATIC "1,{}," CHANNELS
                               ",\"{}\"\r\nx,v,\"a,b\",c,time_ns,y\r\nabc,1,,4,5,\r\n",
          WM_OK, 1, "" },
        { "no column for the channel",
          STATIC_HEADER STATIC "1,{}," CHANNELS ",\"{}\"\r\ntime_ns,c\r\n5,4\r\n",
          WM_EFORMAT, 0, ":3: column 'v' is missing" },
        { "no column for the clock",
          STATIC_HEADER STATIC "1,{}," CHANNELS ",\"{}\"\r\ntime_ns,v\r\n", WM_EFORMAT, 0,
          "column 'c' is missing" },
        { "no column for the time",
          STATIC_HEADER STATIC "1,{}," CHANNELS ",\"{}\"\r\nc,v\r\n", WM_EFORMAT, 0,
          "column 'time_ns' is missing" },
        { "a column twice",
          STATIC_HEADER STATIC "1,{}," CHANNELS ",\"{}\"\r\ntime_ns,c,v,v\r\n", WM_EFORMAT,
          0, "column 'v' stands there twice" },
        { "the time twice",
          STATIC_HEADER STATIC "1,{}," CHANNELS ",\"{}\"\r\ntime_ns,c,v,time_ns\r\n",
          WM_EFORMAT, 0, "'time_ns' stands there twice" },
        { "quotes in the header",
          STATIC_HEADER STATIC "1,{}," CHANNELS ",\"{}\"\r\ntime_ns,c,v\"\"\r\n",
          WM_EFORMAT, 0, "column 'v' is missing" },
        { "two channels in one column",
          STATIC_HEADER STATIC "1,{},\"[" CHANNEL_AS("v", "null") "," CHANNEL_AS(
              "v", "null") "]\",\"{}\"\r\ntime_ns,v\r\n",
          WM_EFORMAT, 0, "column 'v' is used twice" },
        { "a channel in the column of its clock",
          STATIC_HEADER STATIC
          "1,{},\"[" CHANNEL_AS("v", "\"\"v\"\"") "]\",\"{}\"\r\ntime_ns,v\r\n",
          WM_EFORMAT, 0, "column 'v' is used twice" },
        { "a channel in the column of the time",
          STATIC_HEADER STATIC
          "1,{},\"[" CHANNEL_AS("time_ns", "null") "]\",\"{}\"\r\ntime_ns\r\n",
          WM_EFORMAT, 0, "column 'time_ns' is used twice" },
        { "a channel without a clock",
          STATIC_HEADER STATIC
          "1,{},\"[" CHANNEL_AS("v", "null") "]\",\"{}\"\r\ntime_ns,v\r\n5,1\r\n",
          WM_OK, 1, "" },
        { "no channels", STATIC_HEADER STATIC "1,{},[],\"{}\"\r\ntime_ns\r\n5\r\n", WM_OK,
          1, "" },
        { "a newer version", STATIC_HEADER STATIC "3,{},[],\"{}\"\r\n", WM_EFORMAT, 0,
          "newer wattmeter (format 3" },
        { "no version", STATIC_HEADER STATIC ",{},[],\"{}\"\r\n", WM_EFORMAT, 0,
          ":2: wattmeter_format" },
        { "an odd version", STATIC_HEADER STATIC "1x,{},[],\"{}\"\r\n", WM_EFORMAT, 0,
          "wattmeter_format" },
        { "version 0", STATIC_HEADER STATIC "0,{},[],\"{}\"\r\n", WM_EFORMAT, 0,
          "wattmeter_format" },
        { "a run that is no JSON", STATIC_HEADER STATIC "1,{,[],\"{}\"\r\n", WM_EFORMAT, 0,
          ":2: not JSON" },
        { "a run that is no object", STATIC_HEADER STATIC "1,[],[],\"{}\"\r\n", WM_EFORMAT,
          0, ":2: 'run' is not an object" },
        { "channels that are no array", STATIC_HEADER STATIC "1,{},{},\"{}\"\r\n",
          WM_EFORMAT, 0, "not a JSON array" },
        { "a channel that is none", STATIC_HEADER STATIC "1,{},[1],\"{}\"\r\n", WM_EFORMAT,
          0, "channel 0" },
        { "a state that was torn", STATIC_HEADER STATIC "1,{},[],\"{\"\"gaps\"\":[  \"\r\n",
          WM_OK, 0, "" },
        { "a result of no sense",
          STATIC_HEADER STATIC "1,{},[],\"{\"\"result\"\":{\"\"ticks\"\":-1}}\"\r\n",
          WM_EFORMAT, 0, ":2: 'ticks' is not" },
        { "gaps of no sense",
          STATIC_HEADER STATIC
          "1,{},[],\"{\"\"gaps\"\":[1,{},{\"\"column\"\":\"\"x\"\"}]}\"\r\n",
          WM_OK, 0, "" },
        { "quotes that do not end", STATIC_HEADER STATIC "1,\"{},[],\r\n", WM_EFORMAT, 0,
          "cut off in its second line" },
        { "too few static cells", STATIC_HEADER "bytes,bytes\r\n", WM_EFORMAT, 0,
          ":2: lacks" },
        { "cut off", STATIC_HEADER "bytes,bytes", WM_EFORMAT, 0, "cut off" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_error err;
        size_t ticks = 0;
        bool has_result = false;

        print_message("  %s\n", cases[i].what);
        test_write_file(*state, "a.csv", cases[i].text);
        int status = read_all(fixture_path(state, "a.csv"), &ticks, &has_result, &err);
        if (status != cases[i].status || !strstr(err.text, cases[i].complains_of))
            fail_msg("%d: %s", status, err.text);
        if (status == WM_OK)
            assert_int_equal(ticks, cases[i].ticks);
        else
            assert_non_null(strstr(err.text, "/a.csv:"));
    }
}

/* Bytes that end strings, and lines without end. */
static void test_huge_csv(void **state)
{
    static const char nul[] = FRONT "5,4,1\0"
                                    "2\r\n";
    const char *path = fixture_path(state, "a.csv");
    size_t front = sizeof(FRONT) - 1, size = 3 << 20;
    struct wm_error err;
    size_t ticks = 0;
    bool has_result = false;

    test_write_bytes(path, nul, sizeof(nul) - 1);
    assert_int_equal(read_all(path, &ticks, &has_result, &err), WM_EFORMAT);
    assert_non_null(strstr(err.text, ":4"));

    char *text = malloc(size);
    memset(text, '1', size);
    memcpy(text, FRONT, front);
    test_write_bytes(path, text, size);
    assert_int_equal(read_all(path, &ticks, &has_result, &err), WM_EFORMAT);
    assert_non_null(strstr(err.text, ":4: a line longer than 1 MiB"));

    memset(text, ',', size);
    memcpy(text, FRONT, front);
    text[front + 1000000] = '\n';
    test_write_bytes(path, text, size);
    assert_int_equal(read_all(path, &ticks, &has_result, &err), WM_EFORMAT);

    /* The header may have a great many columns of others. */
    front -= strlen("time_ns,c,v\r\n");
    memset(text, ',', size);
    memcpy(text, FRONT, front);
    memcpy(text + front + 900000, "time_ns,c,v\n", 12);
    memset(text + front + 900012, ',', 900000);
    memcpy(text + front + 1800012, "5,4,1\n", 6);
    test_write_bytes(path, text, front + 1800018);
    assert_int_equal(read_all(path, &ticks, &has_result, &err), WM_OK);
    assert_int_equal(ticks, 1);
    free(text);
}

/* What somebody might do to a database of ours. */
static void test_edited_sqlite(void **state)
{
    static const struct {
        const char *what, *sql;
        int status;
        const char *complains_of;
    } cases[] = {
        { "nothing", "SELECT 1", WM_OK, "" },
        { "an index", "CREATE INDEX i ON sample (gpu0_power_W)", WM_OK, "" },
        { "a column of others", "ALTER TABLE sample ADD COLUMN x TEXT", WM_OK, "" },
        { "another application", "PRAGMA application_id = 1", WM_EFORMAT,
          "not a recording" },
        { "a newer version", "PRAGMA user_version = 2", WM_EFORMAT,
          "newer wattmeter (format 2" },
        { "no runs", "DELETE FROM run", WM_EFORMAT, "holds no run" },
        { "no table of runs", "DROP TABLE run", WM_EFORMAT, "no table run" },
        { "no table of channels", "DROP TABLE channel", WM_EFORMAT,
          "recorded before version 0.1.0" },
        { "no table of samples", "DROP TABLE sample", WM_EFORMAT, "no table sample" },
        { "no table of gaps", "DROP TABLE gap", WM_EFORMAT, "no table gap" },
        { "a view for a table",
          "ALTER TABLE sample RENAME TO s; CREATE VIEW sample AS SELECT * FROM s",
          WM_EFORMAT, "no table sample" },
        { "no column of a channel", "ALTER TABLE sample DROP COLUMN gpu0_power_W",
          WM_EFORMAT, "gpu0_power_W" },
        { "a channel without a column", "UPDATE channel SET column_name = 'run(); --'",
          WM_EFORMAT, "used twice" },
        { "a channel in a column that is none",
          "UPDATE channel SET column_name = 'a\"b' WHERE ordinal = 0", WM_EFORMAT,
          "no such column" },
        { "a channel in the column of the time",
          "UPDATE channel SET column_name = 'time_ns' WHERE ordinal = 0", WM_EFORMAT,
          "time_ns" },
        { "a channel of no kind", "UPDATE channel SET kind = 'x'", WM_EFORMAT,
          "table channel: channel 0" },
        { "a channel without a name", "UPDATE channel SET device = NULL", WM_EFORMAT,
          "has no device" },
        { "a channel with a long period",
          "UPDATE channel SET period_ns = 9223372036854775807", WM_EFORMAT, "period" },
        { "a channel with a negative period", "UPDATE channel SET period_ns = -1",
          WM_EFORMAT, "period" },
        { "a sensor that is no JSON", "UPDATE channel SET sensor = 'x'", WM_EFORMAT,
          "table channel: not JSON" },
        { "a sensor that is a list", "UPDATE channel SET sensor = '[]'", WM_EFORMAT,
          "'sensor'" },
        { "a gain that is a word", "UPDATE channel SET sensor = '{\"gain\":\"x\"}'",
          WM_EFORMAT, "'gain'" },
        { "a negative window", "UPDATE channel SET sensor = '{\"window_s\":-1}'",
          WM_EFORMAT, "impossible" },
        { "a step beyond all numbers", "UPDATE channel SET sensor = '{\"step\":1e300}'",
          WM_EFORMAT, "impossible" },
        { "a sensor's impossible period",
          "UPDATE channel SET sensor = '{\"period_ns\":9223372036854775807}'", WM_EFORMAT,
          "period" },
        { "a sensor's negative period", "UPDATE channel SET sensor = '{\"period_ns\":-1}'",
          WM_EFORMAT, "period" },
        { "a sensor with a period of a century",
          "UPDATE channel SET sensor = '{\"period_ns\":3155760000000000000}'", WM_EFORMAT,
          "a sensor has no possible period" },
        { "a sensor whose longest period is a century",
          "UPDATE channel SET sensor = '{\"longest_ns\":3155760000000000000}'", WM_EFORMAT,
          "a sensor has no possible period" },
        { "a kind of sensor that a later version knows",
          "UPDATE channel SET sensor = '{\"kind\":\"quantum\",\"more\":1}'", WM_OK, "" },
        { "no sensors", "UPDATE channel SET sensor = NULL", WM_EFORMAT,
          "has no sensor: recorded before version 0.1.0" },
        { "a table of a draft", "ALTER TABLE channel DROP COLUMN sensor", WM_EFORMAT,
          "recorded before version 0.1.0" },
        { "a channel of bytes", "UPDATE channel SET model = x'ff00fe'", WM_OK, "" },
        { "very many channels",
          "WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 2200)"
          " INSERT INTO channel SELECT 1, i, 'x' || i, 's', 'd', 'l', NULL, 'm', 'W', "
          "'gpu',"
          " 'gauge', 'measured', 0, NULL, '{}' FROM n",
          WM_EFORMAT, "more channels" },
        { "a run that is no JSON", "UPDATE run SET info = 'x'", WM_EFORMAT,
          "table run: not JSON" },
        { "a run of the wrong type", "UPDATE run SET info = '{\"pid\":\"1\"}'", WM_EFORMAT,
          "table run: 'pid'" },
        { "a run with odd times", "UPDATE run SET info = '{\"anchor_ns\":-1}'", WM_EFORMAT,
          "'anchor_ns'" },
        { "a result that is no JSON", "UPDATE run SET result = 'x'", WM_EFORMAT,
          "table run" },
        { "a result that is a list", "UPDATE run SET result = '[]'", WM_EFORMAT,
          "table run" },
        { "text for a value", "UPDATE sample SET gpu0_power_W = 'abc'", WM_EFORMAT,
          "table sample, column gpu0_power_W: not a number" },
        { "a blob for a value", "UPDATE sample SET gpu0_power_W = x'00'", WM_EFORMAT,
          "not a number" },
        { "infinity for a value", "UPDATE sample SET gpu0_power_W = 9e999", WM_EFORMAT,
          "not a number" },
        { "text for a clock", "UPDATE sample SET gpu0_time_ns = 'abc'", WM_EFORMAT,
          "column gpu0_time_ns: not a time" },
        { "no clock", "UPDATE sample SET gpu0_time_ns = NULL", WM_OK, "" },
        { "a broken clock", "UPDATE sample SET gpu0_time_ns = 1.5", WM_EFORMAT,
          "not a time" },
        { "a clock after all times", "UPDATE sample SET gpu0_time_ns = 9223372036854775807",
          WM_EFORMAT, "not a time" },
        { "a time before all times", "UPDATE sample SET time_ns = time_ns - 2000000000",
          WM_EFORMAT, "not a time" },
        { "gaps of no sense",
          "INSERT INTO gap VALUES (1, 'x', 1, 2, 'failed', ''), (1, 'gpu0_power_W', 3, 2, "
          "'failed',"
          " ''), (1, 'gpu0_power_W', 1, 2, 'x', ''), (1, 'gpu0_power_W', NULL, NULL, NULL, "
          "NULL)",
          WM_OK, "" },
    };
    const char *path = fixture_path(state, "a.sqlite"),
               *edited = fixture_path(state, "b.sqlite");
    size_t length;

    record_fixture(path, WM_RECORD_NEW, 5);
    char *bytes = slurp(path, &length);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_error err;
        size_t ticks = 0;
        bool has_result = false;
        sqlite3 *db = NULL;
        char *message = NULL;

        print_message("  %s\n", cases[i].what);
        test_write_bytes(edited, bytes, length);
        assert_int_equal(sqlite3_open(edited, &db), SQLITE_OK);
        if (sqlite3_exec(db, cases[i].sql, NULL, NULL, &message) != SQLITE_OK)
            fail_msg("%s", message);
        sqlite3_close(db);

        int status = read_all(edited, &ticks, &has_result, &err);
        if (status != cases[i].status || !strstr(err.text, cases[i].complains_of))
            fail_msg("%d: %s", status, err.text);
        if (status == WM_OK)
            assert_int_equal(ticks, 5);
        else
            assert_non_null(strstr(err.text, "/b.sqlite: "));
    }
    free(bytes);
}

/* Reading changes nothing, and leaves nothing behind. */
static void test_read_only(void **state)
{
    const char *path = fixture_path(state, "a.sqlite");
    size_t before_length, after_length, ticks = 0;
    struct wm_error err;
    bool has_result = false;

    record_fixture(path, WM_RECORD_NEW, 5);
    char *before = slurp(path, &before_length);
    assert_ok(read_all(path, &ticks, &has_result, &err));
    char *after = slurp(path, &after_length);
    assert_int_equal(after_length, before_length);
    assert_memory_equal(after, before, before_length);
    assert_int_equal(access(fixture_path(state, "a.sqlite-wal"), F_OK), -1);
    assert_int_equal(access(fixture_path(state, "a.sqlite-shm"), F_OK), -1);
    free(before);
    free(after);
}

/* A recording may be looked at while it goes on. */
static void test_read_while_written(void **state)
{
    static const char *const names[] = { "a.sqlite", "a.csv" };
    struct wm_reading readings[FIXTURE_CHANNELS];
    struct wm_result result = fixture_result();
    struct wm_error err = { 0 };

    for (size_t f = 0; f < ARRAY_LEN(names); f++) {
        const char *path = fixture_path(state, names[f]);
        struct wm_recorder *recorder = NULL;
        size_t seen = 0;

        assert_ok(wm_recorder_open(path, WM_RECORD_NEW, fixture_run(), fixture_channels(),
                                   FIXTURE_CHANNELS, &recorder, &err));
        for (size_t n = 0; n < 5000 && (seen == 0 || n < 1000); n++) {
            struct timespec pause = { .tv_nsec = 1000000 };
            struct wm_tick tick = fixture_tick(n, readings);
            wm_recorder_tick(recorder, &tick);
            nanosleep(&pause, NULL);
            if (n % 50 == 0) {
                size_t ticks = 0;
                bool has_result = true;
                assert_ok(read_all(path, &ticks, &has_result, &err));
                assert_true(ticks >= seen);
                assert_false(has_result);
                seen = ticks;
            }
        }
        wm_recorder_flush(recorder, &result);
        assert_ok(wm_recorder_finish(recorder, &result, &err));
        wm_recorder_close(recorder);
        print_message("  %s: %zu ticks seen\n", names[f], seen);
        assert_true(seen > 0);
    }
}

UNIT(record_read)
{
#define WITH_DIR(test) cmocka_unit_test_setup_teardown(test, test_make_dir, test_remove_dir)
    const struct CMUnitTest tests[] = {
        WITH_DIR(test_not_a_recording),
        WITH_DIR(test_truncated_csv),
        cmocka_unit_test(test_foreign_database),
        WITH_DIR(test_truncated_sqlite),
        WITH_DIR(test_damaged),
        WITH_DIR(test_edited_csv),
        WITH_DIR(test_huge_csv),
        WITH_DIR(test_edited_sqlite),
        WITH_DIR(test_read_only),
        WITH_DIR(test_read_while_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
