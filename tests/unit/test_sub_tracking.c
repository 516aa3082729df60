/* SPDX-License-Identifier: Apache-2.0 */
/* test_sub_tracking.c - calls out of gpu_tracker's sub-tracking files, and such files
 * joined. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_file.h"
#include "record/calls/record_calls.h"
#include "test.h"
#include "test_database.h"
#include "wattmeter/analysis.h"

#define HEADER "process_id,code_block_name,position,timestamp\n"
#define COLUMNS                                                                            \
    " (process_id INTEGER, code_block_name VARCHAR, position INTEGER, timestamp FLOAT)"
#define TABLE "CREATE TABLE data" COLUMNS ";"

/* "7 name 1-2.5; 7 other 3-; stray 1": all that the files hold. */
static int calls_of(const char *const *paths, size_t count, char *text, size_t size,
                    struct wm_error *err)
{
    struct wm_calls *calls = NULL;
    struct wm_call call;
    size_t length = 0;
    int64_t last_ns = 0;

    text[0] = '\0';
    int status = wm_calls_open_files(paths, count, &calls, err);
    if (status < 0)
        return status;
    while ((status = wm_calls_next(calls, &call, err)) > 0) {
        assert_true(call.start_ns >= last_ns);
        last_ns = call.start_ns;
        assert_string_equal(wm_calls_path(calls, call.path)->name, call.name);
        length += (size_t)snprintf(text + length, size - length, "%s%lld %s %g-",
                                   length > 0 ? "; " : "", (long long)call.pid, call.name,
                                   (double)call.start_ns / 1e9);
        if (call.is_open) {
            assert_true(call.seconds == 0 && call.stop_ns == WM_CALL_NEVER_STOPS);
            continue;
        }
        assert_true(call.stop_ns >= call.start_ns && call.seconds >= 0);
        length += (size_t)snprintf(text + length, size - length, "%g",
                                   (double)call.stop_ns / 1e9);
    }
    if (wm_calls_stray(calls) > 0)
        length += (size_t)snprintf(text + length, size - length, "%sstray %llu",
                                   length > 0 ? "; " : "",
                                   (unsigned long long)wm_calls_stray(calls));
    const char *remark = wm_calls_remark(calls, 0);
    if (remark)
        snprintf(text + length, size - length, "%sline %ld %s", length > 0 ? "; " : "",
                 strtol(strstr(remark, ".csv:") + strlen(".csv:"), NULL, 10),
                 strstr(remark, "is taken") ? "taken" : "left out");
    assert_null(wm_calls_remark(calls, count));
    wm_calls_close(calls);
    return status;
}

static void test_pairs(void **state)
{
    static const struct {
        const char *name, *rows, *calls;
    } cases[] = {
        { "none", "", "" },
        { "one", "7,a,0,1\n7,a,1,2.5\n", "7 a 1-2.5" },
        { "CR LF", "7,a,0,1\r\n7,a,1,2.5\r\n", "7 a 1-2.5" },
        { "empty lines", "\n7,a,0,1\n\r\n7,a,1,2.5\n\n", "7 a 1-2.5" },
        { "one after the other", "7,a,0,1\n7,a,1,2\n7,a,0,3\n7,a,1,4\n",
          "7 a 1-2; 7 a 3-4" },
        { "two names that nest", "7,a,0,1\n7,b,0,2\n7,b,1,3\n7,a,1,4\n",
          "7 a 1-4; 7 b 2-3" },
        { "two names that overlap", "7,a,0,1\n7,b,0,2\n7,a,1,3\n7,b,1,4\n",
          "7 a 1-3; 7 b 2-4" },
        { "recursion", "7,a,0,1\n7,a,0,2\n7,a,0,3\n7,a,1,4\n7,a,1,5\n7,a,1,6\n",
          "7 a 1-6; 7 a 2-5; 7 a 3-4" },
        { "two processes", "7,a,0,1\n8,a,0,2\n7,a,1,3\n8,a,1,4\n", "7 a 1-3; 8 a 2-4" },
        { "not in order", "7,a,1,4\n7,a,1,2\n7,a,0,3\n7,a,0,1\n", "7 a 1-2; 7 a 3-4" },
        { "back to back at one time", "7,a,0,1\n7,a,1,2\n7,a,0,2\n7,a,1,3\n",
          "7 a 1-2; 7 a 2-3" },
        { "back to back within another",
          "7,a,0,1\n7,a,0,1\n7,a,1,2\n7,a,0,2\n7,a,1,3\n7,a,1,4\n",
          "7 a 1-4; 7 a 1-2; 7 a 2-3" },
        { "no time at all", "7,a,0,2\n7,a,1,2\n", "7 a 2-2" },
        { "no time at all, the wrong way round", "7,a,1,2\n7,a,0,2\n", "7 a 2-2" },
        { "no time at all, twice", "7,a,1,2\n7,a,1,2\n7,a,0,2\n7,a,0,2\n",
          "7 a 2-2; 7 a 2-2" },
        { "at the beginning of time", "7,a,0,0\n7,a,1,0\n7,b,0,-0.0\n7,b,1,1\n",
          "7 b 0-1; 7 a 0-0" },
        { "never ended", "7,a,0,1\n7,a,1,2\n7,a,0,3\n", "7 a 1-2; 7 a 3-" },
        { "never ended, around another", "7,a,0,1\n7,a,0,2\n7,a,1,3\n", "7 a 1-; 7 a 2-3" },
        { "never begun", "7,a,1,1\n7,a,0,2\n7,a,1,3\n", "7 a 2-3; stray 1" },
        { "never begun, of another process", "7,a,0,1\n8,a,1,2\n", "7 a 1-; stray 1" },
        { "never begun, of another name", "7,a,0,1\n7,A,1,2\n", "7 a 1-; stray 1" },
        { "nothing but stops", "7,a,1,1\n7,a,1,2\n7,a,1,2\n", "stray 3" },
        { "a clock set back", "7,a,0,100\n7,a,1,90\n7,a,0,91\n7,a,1,92\n",
          "7 a 91-92; 7 a 100-; stray 1" },
        { "quotes", "7,\"a, \"\"b\"\"\",0,1\n7,\"a, \"\"b\"\"\",1,2\n", "7 a, \"b\" 1-2" },
        { "quotes that mean nothing", "7,a\"b\",0,1\n7,\"a\"\"b\"\"\",1,2\n",
          "7 a\"b\" 1-2" },
        { "text after quotes", "7,\"a\"b\"c,0,1\n7,\"ab\"\"c\",1,2\n", "7 ab\"c 1-2" },
        { "everything in quotes", "\"7\",\"a\",\"0\",\"1\"\n\"7\",\"a\",\"1\",\"2\"\n",
          "7 a 1-2" },
        { "lines in quotes", "7,\"a\nb\r\nc\",0,1\n7,\"a\nb\r\nc\",1,2\n",
          "7 a\nb\r\nc 1-2" },
        { "no name", "7,,0,1\n7,\"\",1,2\n", "7  1-2" },
        { "SQL", "7,'); DROP TABLE data; --,0,1\n7,'); DROP TABLE data; --,1,2\n",
          "7 '); DROP TABLE data; -- 1-2" },
        { "numbers that no process has", "4294967303,a,0,1\n9007199254740992,a,1,2\n",
          "0 a 1-; stray 1" },
        { "numbers of any form", "7e0,a,0.0,1e0\n07,a,1.,25e-1\n", "7 a 1-2.5" },
        { "no last end", "7,a,0,1\n7,a,1,2.5", "7 a 1-2.5; line 3 taken" },
        { "no last end, one row", "7,a,0,1", "7 a 1-; line 2 taken" },
        { "no last end, at one time", "7,a,0,2\n7,a,1,2", "7 a 2-2; line 3 taken" },
        { "half a last end", "7,a,0,1\r\n7,a,1,2.5\r", "7 a 1-2.5; line 3 taken" },
        { "a torn row", "7,a,0,1\r\n7,a,1,2.5", "7 a 1-; line 3 left out" },
        { "a torn cell", "7,a,0,1\n7,a,1,2\n7,a,0", "7 a 1-2; line 4 left out" },
        { "a torn number", "7,a,0,1\n7,a,1,2e", "7 a 1-; line 3 left out" },
        { "a torn time", "7,a,0,100\n7,a,1,10", "7 a 100-; line 3 left out" },
        { "no time", "7,a,0,1\n7,a,1,", "7 a 1-; line 3 left out" },
        { "a torn name", "7,a,0,1\n7,a,1,2\n7,\"a,1", "7 a 1-2; line 4 left out" },
        { "a torn name with a line in it", "7,a,0,1\n7,a,1,2\n7,\"a,1\nb",
          "7 a 1-2; line 4 left out" },
        { "a mark of the end", "7,a,0,1\n7,a,1,2\n\x1a", "7 a 1-2; line 4 left out" },
    };
    char text[512], expected[512];

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_error err = { 0 };
        const char *path = in_dir(state, "a.csv");
        print_message("  %s\n", cases[i].name);
        snprintf(expected, sizeof(expected), HEADER "%s", cases[i].rows);
        test_write_file(*state, "a.csv", expected);
        if (calls_of(&path, 1, text, sizeof(text), &err) < 0)
            fail_msg("%s", err.text);
        assert_string_equal(text, cases[i].calls);
    }
}

static void test_headers(void **state)
{
    static const char *const cases[] = {
        "\xef\xbb\xbf" HEADER "7,a,0,1\n7,a,1,2\n",
        "\"process_id\",\"code_block_name\",\"position\",\"timestamp\"\n7,a,0,1\n7,a,1,2\n",
        "timestamp,position,code_block_name,process_id\r\n1,0,a,7\r\n2,1,a,7\r\n",
        ",process_id,code_block_name,\"host\n\",position,timestamp\n"
        "0,7,a,x,0,1\n1,7,a,\"y,\nz\",1,2\n",
        "\n\n" HEADER "7,a,0,1\n7,a,1,2\n",
    };
    char text[512];

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *path = in_dir(state, "a.csv");
        print_message("  %s\n", cases[i]);
        test_write_file(*state, "a.csv", cases[i]);
        assert_int_equal(calls_of(&path, 1, text, sizeof(text), NULL), 0);
        assert_string_equal(text, "7 a 1-2");
    }

    const char *path = in_dir(state, "a.csv");
    test_write_file(*state, "a.csv", "process_id,code_block_name,position,timestamp");
    assert_int_equal(calls_of(&path, 1, text, sizeof(text), NULL), 0);
    assert_string_equal(text, "");
}

static void test_broken(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        { "", "a.csv: is empty: a sub-tracking file begins with the line process_id," },
        { "\xef\xbb\xbf\r\n", "a.csv: is empty" },
        { "process_id,code_block_name,position,timestam", "cut off in its first line" },
        { "\"process_id,code", "cut off in its first line" },
        { "a\n", "a.csv:1: not the header of a sub-tracking file: without 'process_id'" },
        { "\n\nprocess_id,code_block_name,position\n", ":3: not the header of" },
        { "process_id,code_block_name,position,Timestamp\n", "without 'timestamp'" },
        { "process_id,code_block_name,position,timestamp,position\n", "'position' twice" },
        { "process_id;code_block_name;position;timestamp\n", "without 'process_id'" },
        { "ram_unit,gpu_ram_unit\nbytes,bytes\n", ":1: not the header" },
        { HEADER "7,a,0\n", ":2: not as many cells as there are columns" },
        { HEADER "7,a,0,1,\n", ":2: not as many cells" },
        { HEADER "7,a,0,1\n7,a\n", ":3: not as many cells" },
        { HEADER "7,a,0,1\n\n\n8,a,0,x\n", ":5: cell 4: 'x' is not a time" },
        { HEADER "7,\"a\nb\nc\",0,1\n8,a,0,x\n", ":5: cell 4: 'x' is not a time" },
        { HEADER "7,a,0,\n", "cell 4: '' is not a time" },
        { HEADER "7,a,0,nan\n", "cell 4: 'nan' is not a time" },
        { HEADER "7,a,0,inf\n", "cell 4: 'inf' is not a time" },
        { HEADER "7,a,0,1e999\n", "cell 4: '1e999' is not a time" },
        { HEADER "7,a,0,-1\n", "cell 4: '-1' is not a time" },
        { HEADER "7,a,0,1795247379215924301\n", "is not a time" },
        { HEADER "7,a,0,0x10\n", "is not a time" },
        { HEADER "7,a,0,1 \n", "is not a time" },
        { HEADER "7,a,0,1,5\n", "not as many cells" },
        { HEADER "7,a,2,1\n", "cell 3: '2' is not 0 (start) or 1 (stop)" },
        { HEADER "7,a,-1,1\n", "cell 3: '-1' is not 0" },
        { HEADER "7,a,0.5,1\n", "cell 3: '0.5' is not 0" },
        { HEADER "7,a,,1\n", "cell 3: '' is not 0" },
        { HEADER "7,a,start,1\n", "cell 3: 'start' is not 0" },
        { HEADER ",a,0,1\n", "cell 1: '' is not the number of a process" },
        { HEADER "-7,a,0,1\n", "cell 1: '-7' is not the number" },
        { HEADER "7.5,a,0,1\n", "cell 1: '7.5' is not the number" },
        { HEADER "-1,a,0,1\n", "cell 1: '-1' is not the number" },
        { HEADER "9007199254740994,a,0,1\n",
          "cell 1: '9007199254740994' is not the number" },
        { HEADER "nan,a,0,1\n", "cell 1: 'nan' is not the number" },
        { HEADER "7\"\",a,0,1\n", "is not the number" },
        { HEADER "7,\"a,0,1\n7,a,1,2\n7,b,0,3\n", ":2: a quote that is not closed" },
        { HEADER "7,a,0,1\r7\n", ":2: cell 4: '1?7' is not a time" },
        { HEADER "7,a,0,1\r7,a,1,2\r\n", ":2: not as many cells" },
    };
    char text[512];

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_error err = { 0 };
        const char *path = in_dir(state, "a.csv");
        print_message("  %s\n", cases[i].text);
        test_write_file(*state, "a.csv", cases[i].text);
        assert_int_equal(calls_of(&path, 1, text, sizeof(text), &err), WM_EFORMAT);
        if (!strstr(err.text, cases[i].why))
            fail_msg("'%s' does not say '%s'", err.text, cases[i].why);
    }
}

static void test_nul(void **state)
{
    static const char text[] = HEADER "7,a,0,1\n7,a\0b,1,2\n";
    struct wm_error err;
    char calls[512];
    const char *path = in_dir(state, "a.csv");

    test_write_bytes(path, text, sizeof(text) - 1);
    assert_int_equal(calls_of(&path, 1, calls, sizeof(calls), &err), WM_EFORMAT);
    assert_non_null(strstr(err.text, ":3: a NUL byte"));

    /* What a file system may leave after a power cut. */
    test_write_bytes(path, text, sizeof(text) - sizeof("b,1,2\n"));
    assert_int_equal(calls_of(&path, 1, calls, sizeof(calls), &err), 0);
    assert_string_equal(calls, "7 a 1-; line 3 left out");
}

/* Wherever a file is cut off, its whole rows are read. */
static void test_cut_anywhere(void **state)
{
    char *text = NULL, calls[4096];
    size_t length = 0, most = 0;
    const char *path = in_dir(state, "a.csv");

    assert_int_equal(
        wm_file_slurp(test_source_path("tests/data/gpu_tracker/sub-tracking/combined.csv"),
                      1 << 20, &text, &length, NULL),
        WM_OK);
    size_t header = (size_t)(strchr(text, '\n') - text) + 1;
    for (size_t cut = header; cut <= length; cut++) {
        struct wm_error err = { 0 };
        test_write_bytes(path, text, cut);
        if (calls_of(&path, 1, calls, sizeof(calls), &err) < 0)
            fail_msg("after %zu bytes: %s", cut, err.text);
        assert_null(strstr(calls, "stray"));
        /* An open call may have got its end, and the last line a remark. */
        assert_true(strlen(calls) + 40 >= most);
        most = strlen(calls);
    }
    assert_null(strstr(calls, "-;"));
    free(text);
}

/* What gpu_tracker's own SubTrackingAnalyzer.load_timestamp_pairs() finds in files that
 * it has written. */
static void test_real(void **state)
{
    static const struct {
        const char *files[2];
        size_t count;
        double seconds;
    } cases[] = {
        { { "combined.csv" }, 16, 0 },
        { { "main.csv", "child.csv" }, 15, 0 },
        { { "combined.sqlite" }, 16, 0 },
    };
    static const double epochs[] = { 0.29941749572753906, 0.29941749572753906,
                                     0.4130547046661377 };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char paths[2][256];
        const char *const list[] = { paths[0], paths[1] };
        struct wm_calls *calls = NULL;
        struct wm_call call;
        struct wm_error err;
        double epoch = 0;
        size_t count = 0;

        for (size_t f = 0; f < 2 && cases[i].files[f]; f++)
            snprintf(paths[f], sizeof(paths[f]), "%s/%s",
                     test_source_path("tests/data/gpu_tracker/sub-tracking"),
                     cases[i].files[f]);
        if (wm_calls_open_files(list, cases[i].files[1] ? 2 : 1, &calls, &err) < 0)
            fail_msg("%s", err.text);
        for (; wm_calls_next(calls, &call, &err) > 0; count++) {
            assert_false(call.is_open);
            if (strcmp(call.name, "epoch") == 0)
                epoch += call.seconds;
        }
        assert_int_equal(count, cases[i].count);
        assert_int_equal(wm_calls_stray(calls), 0);
        assert_true(fabs(epoch - epochs[i]) < 1e-12);
        wm_calls_close(calls);
    }
}

/* Two times that a double can tell apart are two. */
static void test_close_times(void **state)
{
    char text[256];
    double start = 1795247379.2159243;
    const char *path = in_dir(state, "a.csv");
    struct wm_calls *calls = NULL;
    struct wm_call call;

    double stop = nextafter(start, INFINITY);
    snprintf(text, sizeof(text), HEADER "7,a,0,%.17g\n7,a,1,%.17g\n", start, stop);
    test_write_file(*state, "a.csv", text);
    assert_int_equal(wm_calls_open_files(&path, 1, &calls, NULL), WM_OK);
    assert_int_equal(wm_calls_next(calls, &call, NULL), 1);
    assert_true(call.stop_ns > call.start_ns);
    assert_true(call.seconds == stop - start);
    wm_calls_close(calls);
}

static void test_long_names(void **state)
{
    static char name[4 * 4096], text[8 * 4096 + 256];
    const char *path = in_dir(state, "a.csv");
    struct wm_calls *calls = NULL;
    struct wm_call call;
    struct wm_error err;

    for (size_t i = 0; i < 4096; i++)
        memcpy(name + 2 * i, i % 7 ? "\xc3\xa9" : ",\n", 2);
    snprintf(text, sizeof(text), HEADER "7,\"%s\",0,1\n7,\"%s\",1,2\n", name, name);
    test_write_file(*state, "a.csv", text);
    if (wm_calls_open_files(&path, 1, &calls, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(wm_calls_next(calls, &call, &err), 1);
    assert_string_equal(call.name, name);
    assert_int_equal(wm_calls_next(calls, &call, &err), 0);
    wm_calls_close(calls);
}

/* A row that never ends does not take up the memory of the machine. */
static void test_endless_row(void **state)
{
    const char *path = in_dir(state, "a.csv");
    struct wm_error err;
    char calls[64];

    FILE *file = fopen(path, "w");
    fputs(HEADER "7,a,0,1\n7,\"", file);
    for (int i = 0; i < 3 << 20; i++)
        putc(i % 64 ? 'x' : '\n', file);
    fclose(file);
    assert_int_equal(calls_of(&path, 1, calls, sizeof(calls), &err), WM_EFORMAT);
    assert_non_null(strstr(err.text, ":3: a line longer than 1 MiB"));
}

/* Many names and processes, each with its own stack, in several files. */
static void test_many(void **state)
{
    enum { PROCESSES = 50, NAMES = 100, DEPTH = 3 };
    const char *const paths[] = { in_dir(state, "a.csv"), in_dir(state, "b.csv") };
    struct wm_calls *calls = NULL;
    struct wm_call call;
    struct wm_error err;
    size_t count = 0;

    for (int f = 0; f < 2; f++) {
        FILE *file = fopen(paths[f], "w");
        fputs(HEADER, file);
        for (int step = 0; step < 2 * DEPTH; step++) {
            for (int i = 0; i < PROCESSES * NAMES; i++)
                fprintf(file, "%d,name %d,%d,%d.%d\n", 1000 * f + i % PROCESSES,
                        i / PROCESSES, step >= DEPTH, 10 + step, i % 10);
        }
        fclose(file);
    }
    if (wm_calls_open_files(paths, 2, &calls, &err) < 0)
        fail_msg("%s", err.text);
    for (; wm_calls_next(calls, &call, &err) > 0; count++) {
        int depth = (int)(call.start_ns / 1000000000) - 10;
        assert_false(call.is_open);
        assert_int_equal(call.stop_ns - call.start_ns,
                         INT64_C(1000000000) * (2 * (DEPTH - depth) - 1));
    }
    assert_int_equal(count, 2 * PROCESSES * NAMES * DEPTH);
    assert_int_equal(wm_calls_stray(calls), 0);
    wm_calls_close(calls);
}

static void test_sqlite(void **state)
{
#define ROWS "INSERT INTO data VALUES (7, 'a', 0, 1), (7, 'a', 1, 2.5);"
    static const struct {
        const char *name, *sql, *calls; /* NULL: refused, */
        const char *why;                /* with these words */
    } cases[] = {
        { "no rows", TABLE, "", NULL },
        { "as gpu_tracker writes it", TABLE ROWS, "7 a 1-2.5", NULL },
        { "whole numbers for all",
          "CREATE TABLE data (process_id INTEGER, code_block_name"
          " INTEGER, position INTEGER, timestamp INTEGER);" ROWS,
          "7 a 1-2.5", NULL },
        { "texts for all",
          "CREATE TABLE data (process_id TEXT, code_block_name TEXT, position TEXT,"
          " timestamp TEXT);" ROWS,
          "7 a 1-2.5", NULL },
        { "no types",
          "CREATE TABLE data (process_id, code_block_name, position, timestamp);" ROWS,
          "7 a 1-2.5", NULL },
        { "fractions for all",
          "CREATE TABLE data (process_id REAL, code_block_name, position REAL,"
          " timestamp REAL);" ROWS,
          "7 a 1-2.5", NULL },
        { "a name that is a number", TABLE "INSERT INTO data VALUES (7, 12, 0, 1)",
          "7 12 1-", NULL },
        { "other columns, another order",
          "CREATE TABLE data (host, timestamp, position, code_block_name, process_id);"
          "INSERT INTO data VALUES ('h', 1, 0, 'a', 7), (NULL, 2.5, 1, 'a', 7)",
          "7 a 1-2.5", NULL },
        { "an index that has it all",
          TABLE "INSERT INTO data VALUES (7, 'a', 0, 1), (7, 'a', 1, 2), (7, 'a', 0, 2),"
                " (7, 'a', 1, 3);"
                "CREATE INDEX x ON data (timestamp, position, process_id, code_block_name)",
          "7 a 1-2; 7 a 2-3", NULL },
        { "a view beside it", TABLE ROWS "CREATE VIEW v AS SELECT * FROM data", "7 a 1-2.5",
          NULL },
        { "SQL", TABLE "INSERT INTO data VALUES (7, ''';DROP TABLE data;--', 0, 1)",
          "7 ';DROP TABLE data;-- 1-", NULL },
        { "no table", "CREATE TABLE other (a)", NULL, "a.sqlite: there is no table data" },
        { "a view",
          "CREATE VIEW data AS SELECT 7 AS process_id, 'a' AS code_block_name,"
          " 0 AS position, 1 AS timestamp",
          NULL, "there is no table data" },
        { "an endless view",
          "CREATE VIEW data AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1"
          " FROM n) SELECT i AS process_id, 'a' AS code_block_name, 0 AS position,"
          " 1 AS timestamp FROM n",
          NULL, "there is no table data" },
        { "a column missing", "CREATE TABLE data (process_id, position, timestamp)", NULL,
          "no such column: data.code_block_name" },
        { "no process", TABLE ROWS "INSERT INTO data VALUES (NULL, 'a', 0, 1)", NULL,
          "table data, row 3: process_id is not the number of a process" },
        { "half a process", TABLE "INSERT INTO data VALUES (7.5, 'a', 0, 1)", NULL,
          "process_id is not" },
        { "no name", TABLE "INSERT INTO data VALUES (7, NULL, 0, 1)", NULL,
          "code_block_name is not a name" },
        { "a name of bytes", TABLE "INSERT INTO data VALUES (7, x'6100', 0, 1)", NULL,
          "code_block_name is not a name" },
        { "a name with a NUL",
          TABLE "INSERT INTO data VALUES (7, CAST(x'610062' AS TEXT), 0, 1)", NULL,
          "code_block_name is not a name" },
        { "no position", TABLE "INSERT INTO data VALUES (7, 'a', NULL, 1)", NULL,
          "position is not 0" },
        { "another position", TABLE "INSERT INTO data VALUES (7, 'a', 2, 1)", NULL,
          "position is not 0" },
        { "no time", TABLE "INSERT INTO data VALUES (7, 'a', 0, NULL)", NULL,
          "timestamp is not a time" },
        { "a text for a time", TABLE "INSERT INTO data VALUES (7, 'a', 0, '12abc')", NULL,
          "timestamp is not a time" },
        { "an endless time", TABLE "INSERT INTO data VALUES (7, 'a', 0, 9e999)", NULL,
          "timestamp is not a time" },
        { "a time before 1970", TABLE "INSERT INTO data VALUES (7, 'a', 0, -5)", NULL,
          "timestamp is not a time" },
    };
    char text[512];

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_error err = { 0 };
        const char *path = in_dir(state, "a.sqlite");
        print_message("  %s\n", cases[i].name);
        write_database(path, cases[i].sql);
        int status = calls_of(&path, 1, text, sizeof(text), &err);
        if (cases[i].calls) {
            if (status < 0)
                fail_msg("%s", err.text);
            assert_string_equal(text, cases[i].calls);
        } else {
            assert_int_equal(status, WM_EFORMAT);
            if (!strstr(err.text, cases[i].why))
                fail_msg("'%s' does not say '%s'", err.text, cases[i].why);
        }
    }
#undef ROWS
}

static void test_tangled(void **state)
{
    const char *path = in_dir(state, "a.sqlite");
    struct wm_error err = { 0 };
    char text[64];

    write_database(path, "PRAGMA page_size = 512;" TABLE
                         "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
                         " WHERE i < 20000) INSERT INTO data SELECT 7, 'a', 1, i FROM n");
    tangle(path);
    assert_int_equal(calls_of(&path, 1, text, sizeof(text), &err), WM_EFORMAT);
    assert_non_null(strstr(err.text, "more rows than it has room for"));
}

static void test_mixed(void **state)
{
    const char *const paths[] = { in_dir(state, "a.csv"), in_dir(state, "b.sqlite") };
    char text[512];

    test_write_file(*state, "a.csv", HEADER "7,a,0,1\n8,a,0,2\n");
    write_database(paths[1], TABLE "INSERT INTO data VALUES (7, 'a', 1, 3)");
    assert_int_equal(calls_of(paths, 2, text, sizeof(text), NULL), 0);
    assert_string_equal(text, "7 a 1-3; 8 a 2-");
}

static void test_no_file(void **state)
{
    struct wm_error err;
    const char *missing = in_dir(state, "missing.csv"), *folder = *state;
    const char *pipe = in_dir(state, "pipe");
    char text[64];

    assert_int_equal(calls_of(&missing, 1, text, sizeof(text), &err), WM_ENOENT);
    assert_int_equal(calls_of(&folder, 1, text, sizeof(text), &err), WM_EFORMAT);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_int_equal(calls_of(&pipe, 1, text, sizeof(text), &err), WM_EFORMAT);
}

static void test_memory(void **state)
{
    const char *const paths[] = { in_dir(state, "a.csv"), in_dir(state, "b.sqlite") };
    char text[512];
    int status = WM_ENOMEM;
    long nth = 0;

    test_write_file(*state, "a.csv",
                    HEADER "7,a,0,2\n7,a,1,1\n7,b,0,1\n7,\"b\",1,2\n8,c,0,3");
    write_database(paths[1], TABLE "INSERT INTO data VALUES (7, 'd', 1, 3)");
    for (; status == WM_ENOMEM; nth++) {
        struct wm_error err = { 0 };
        test_fail_allocation(nth);
        status = calls_of(paths, 2, text, sizeof(text), &err);
        test_fail_allocation(-1);
        assert_true(status == 0 || (status == WM_ENOMEM && err.text[0] != '\0'));
        assert_true(nth < 200);
    }
    assert_string_equal(text, "7 b 1-2; 7 a 2-; 8 c 3-; stray 2; line 6 taken");
    assert_true(nth > 10);
}

static void assert_file(const char *path, const char *expected)
{
    char *text = NULL;
    size_t length = 0;

    assert_int_equal(wm_file_slurp(path, 1 << 20, &text, &length, NULL), WM_OK);
    assert_string_equal(text, expected);
    free(text);
}

static size_t count_files(const char *folder)
{
    size_t count = 0;
    DIR *dir = opendir(folder);

    assert_non_null(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count - 2; /* . and .. */
}

static void test_combine_csv(void **state)
{
    const char *const paths[] = { in_dir(state, "z.csv"), in_dir(state, "a.csv") };
    const char *target = in_dir(state, "new.csv");
    struct wm_error err;

    test_write_file(*state, "z.csv",
                    "\xef\xbb\xbf" HEADER
                    "7,\"b, \"\"c\"\"\nd\",1,1795247379.60548151\r\n");
    test_write_file(*state, "a.csv",
                    "timestamp,position,host,code_block_name,process_id\r\n"
                    "1,0,h,a,007\r\n1e0,1,h,\"\",7\r\n2,0,h,tor");
    if (wm_sub_tracking_combine(paths, 2, target, NULL, NULL, NULL, &err) < 0)
        fail_msg("%s", err.text);
    assert_file(target, HEADER "7,\"b, \"\"c\"\"\nd\",1,1795247379.60548151\n"
                               "007,a,0,1\n7,,1,1e0\n");

    /* A second time it is there already, and stays as it is. */
    assert_int_equal(wm_sub_tracking_combine(paths, 1, target, NULL, NULL, NULL, &err),
                     WM_EEXIST);
    assert_int_equal(count_files(*state), 3);
}

/* The names of what was left out, without the folder. */
static void note(void *opaque, const char *remark)
{
    char *told = opaque;
    const char *name = strstr(remark, "parts/");
    size_t length = strlen(told);

    assert_non_null(name);
    snprintf(told + length, 1024 - length, "%.120s\n", name + strlen("parts/"));
}

static void test_combine_folder(void **state)
{
    const char *folder = in_dir(state, "parts"), *target = in_dir(state, "new.csv");
    char told[1024] = "";
    struct wm_error err;

    test_write_file(*state, "parts/10.csv", HEADER "10,a,0,1\n");
    test_write_file(*state, "parts/9.csv", HEADER "9,a,0,1\n");
    test_write_file(*state, "parts/B.csv", HEADER "11,a,0,1\n");
    if (wm_sub_tracking_combine(&folder, 1, target, NULL, NULL, NULL, &err) < 0)
        fail_msg("%s", err.text);
    assert_file(target, HEADER "10,a,0,1\n9,a,0,1\n11,a,0,1\n");

    /* Into the folder itself. */
    target = in_dir(state, "parts/all.csv");
    assert_int_equal(wm_sub_tracking_combine(&folder, 1, target, NULL, NULL, NULL, &err),
                     WM_OK);
    assert_file(target, HEADER "10,a,0,1\n9,a,0,1\n11,a,0,1\n");
    assert_int_equal(unlink(target), 0);

    /* Among other things. */
    test_write_file(*state, "parts/.hidden.csv", HEADER "1,a,0,1\n");
    test_write_file(*state, "parts/inner.csv/a.csv", HEADER "1,a,0,1\n");
    test_write_file(*state, "parts/notes.txt", "to do\n");
    test_write_file(*state, "parts/other.csv", "a,b\n");
    test_write_file(*state, "parts/empty.csv", "");
    test_write_file(*state, "parts/torn.csv", HEADER "12,a,0,1\n12,a,1");
    assert_int_equal(mkfifo(in_dir(state, "parts/pipe.csv"), 0600), 0);
    assert_int_equal(symlink("nowhere", in_dir(state, "parts/link.csv")), 0);
    folder = in_dir(state, "parts");
    target = in_dir(state, "parts/all.csv");
    if (wm_sub_tracking_combine(&folder, 1, target, note, told, NULL, &err) < 0)
        fail_msg("%s", err.text);
    assert_file(target, HEADER "10,a,0,1\n9,a,0,1\n11,a,0,1\n12,a,0,1\n");
    assert_string_equal(told,
                        ".hidden.csv: is hidden\n"
                        "empty.csv: is empty: a sub-tracking file begins with the line "
                        "process_id,code_block_name,position,timestamp\n"
                        "inner.csv: is a folder\n"
                        "link.csv: leads nowhere\n"
                        "notes.txt: does not end as the new file does\n"
                        "other.csv:1: not the header of a sub-tracking file: without "
                        "'process_id'\n"
                        "pipe.csv: is no file\n"
                        "torn.csv:3: the last line was cut off, and is left out\n");
}

static void test_combine_sqlite(void **state)
{
    const char *const paths[] = { in_dir(state, "a.sqlite"), in_dir(state, "it's.sqlite") };
    const char *target = in_dir(state, "new.sqlite");
    struct wm_error err;
    char text[512];

    write_database(paths[0], TABLE "INSERT INTO data VALUES (7, 'a''b', 0, 1),"
                                   " (7, 'a''b', 1, 1795247379.6054815)");
    write_database(
        paths[1], "CREATE TABLE data (process_id TEXT, code_block_name, position, timestamp"
                  " TEXT); INSERT INTO data VALUES ('8', 5, 0, '2')");
    if (wm_sub_tracking_combine(paths, 2, target, NULL, NULL, NULL, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(calls_of(&target, 1, text, sizeof(text), &err), 0);
    assert_string_equal(text, "7 a'b 1-1.79525e+09; 8 5 2-");
    assert_int_equal(count_files(*state), 3);
}

/* Nothing is left, and nothing else is touched. */
static void test_combine_refused(void **state)
{
    static const struct {
        const char *name, *paths[2], *target;
        int status;
        const char *why;
    } cases[] = {
        { "no files", { NULL }, "new.csv", WM_EINVAL, "no files" },
        { "an empty folder", { "empty" }, "new.csv", WM_EINVAL, "no files" },
        { "a folder in the folder", { "outer" }, "new.csv", WM_EINVAL, "no files" },
        { "one twice", { "good.csv", "good.csv" }, "new.csv", WM_EINVAL, "given twice" },
        { "one by two names", { "good.csv", "same.csv" }, "new.csv", WM_EINVAL, "twice" },
        { "one in its folder", { "good.csv", "linked" }, "new.csv", WM_EINVAL, "twice" },
        { "a broken one in a folder",
          { "mixed" },
          "new.csv",
          WM_EFORMAT,
          "broken.csv:2: cell 3" },
        { "another suffix",
          { "good.csv", "good.sqlite" },
          "new.csv",
          WM_EINVAL,
          "good.sqlite: does not end in .csv" },
        { "another suffix of the target",
          { "good.csv" },
          "new.sqlite",
          WM_EINVAL,
          "good.csv: does not end in .sqlite" },
        { "no known suffix", { "good.csv" }, "new.txt", WM_EINVAL, ".csv or .sqlite" },
        { "a suffix that lies",
          { "lie.csv" },
          "new.csv",
          WM_EFORMAT,
          "not what its suffix says" },
        { "text for a database",
          { "lie.sqlite" },
          "new.sqlite",
          WM_EFORMAT,
          "not what its suffix says" },
        { "a missing file",
          { "good.csv", "missing.csv" },
          "new.csv",
          WM_ENOENT,
          "missing" },
        { "a broken file",
          { "good.csv", "broken.csv" },
          "new.csv",
          WM_EFORMAT,
          "broken.csv:2: cell 3" },
        { "a broken database",
          { "good.sqlite", "broken.sqlite" },
          "new.sqlite",
          WM_EFORMAT,
          "row 1: position" },
        { "no such folder", { "good.csv" }, "none/new.csv", WM_ENOENT, "none" },
        { "a target that is there", { "good.csv" }, "link.csv", WM_EEXIST, "link.csv" },
        { "a target that is a source", { "good.csv" }, "good.csv", WM_EEXIST, "good.csv" },
    };
    struct wm_error err;

    test_write_file(*state, "good.csv", HEADER "7,a,0,1\n");
    test_write_file(*state, "lie.sqlite", HEADER "7,a,0,1\n");
    test_write_file(*state, "broken.csv", HEADER "7,a,3,1\n");
    write_database(in_dir(state, "good.sqlite"), TABLE);
    write_database(in_dir(state, "lie.csv"), TABLE);
    write_database(in_dir(state, "broken.sqlite"),
                   TABLE "INSERT INTO data VALUES (7, 'a', 3, 1)");
    assert_int_equal(mkdir(in_dir(state, "empty"), 0755), 0);
    test_write_file(*state, "outer/inner/a.csv", HEADER);
    assert_int_equal(symlink("nowhere", in_dir(state, "link.csv")), 0);
    assert_int_equal(symlink("good.csv", in_dir(state, "same.csv")), 0);
    assert_int_equal(mkdir(in_dir(state, "linked"), 0755), 0);
    assert_int_equal(symlink("../good.csv", in_dir(state, "linked/a.csv")), 0);
    test_write_file(*state, "mixed/broken.csv", HEADER "7,a,3,1\n");
    size_t files = count_files(*state);

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char paths[2][256], target[256];
        const char *const list[] = { paths[0], paths[1] };
        size_t count = 0;
        print_message("  %s\n", cases[i].name);
        for (; count < 2 && cases[i].paths[count]; count++)
            snprintf(paths[count], sizeof(paths[0]), "%s/%s", (const char *)*state,
                     cases[i].paths[count]);
        snprintf(target, sizeof(target), "%s/%s", (const char *)*state, cases[i].target);
        assert_int_equal(
            wm_sub_tracking_combine(list, count, target, NULL, NULL, NULL, &err),
            cases[i].status);
        if (!strstr(err.text, cases[i].why))
            fail_msg("'%s' does not say '%s'", err.text, cases[i].why);
        assert_int_equal(count_files(*state), files);
    }
    assert_file(in_dir(state, "good.csv"), HEADER "7,a,0,1\n");
}

static void test_combine_memory(void **state)
{
    const char *suffixes[] = { "csv", "sqlite" };

    test_write_file(*state, "parts.csv/a.csv", HEADER "7,a,0,1\n");
    assert_int_equal(mkdir(in_dir(state, "parts.sqlite"), 0755), 0);
    write_database(in_dir(state, "parts.sqlite/a.sqlite"), TABLE);
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        char folder[256], target[256];
        const char *const path = folder;
        struct wm_error err;
        int status = WM_ENOMEM;
        snprintf(folder, sizeof(folder), "%s/parts.%s", (const char *)*state, suffixes[i]);
        snprintf(target, sizeof(target), "%s/new.%s", (const char *)*state, suffixes[i]);
        for (long nth = 0; status == WM_ENOMEM; nth++) {
            test_fail_allocation(nth);
            status = wm_sub_tracking_combine(&path, 1, target, NULL, NULL, NULL, &err);
            test_fail_allocation(-1);
            assert_true(nth < 200);
            assert_int_equal(access(target, F_OK), status == WM_OK ? 0 : -1);
        }
        assert_int_equal(status, WM_OK);
    }
    assert_int_equal(count_files(*state), 4);
}

UNIT(sub_tracking)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_make_dir, test_remove_dir)
    const struct CMUnitTest tests[] = {
        TEST(test_pairs),           TEST(test_headers),
        TEST(test_broken),          TEST(test_nul),
        TEST(test_cut_anywhere),    TEST(test_real),
        TEST(test_close_times),     TEST(test_long_names),
        TEST(test_endless_row),     TEST(test_many),
        TEST(test_sqlite),          TEST(test_tangled),
        TEST(test_mixed),           TEST(test_no_file),
        TEST(test_memory),          TEST(test_combine_csv),
        TEST(test_combine_folder),  TEST(test_combine_sqlite),
        TEST(test_combine_refused), TEST(test_combine_memory),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
