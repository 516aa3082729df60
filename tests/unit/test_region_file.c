/* SPDX-License-Identifier: Apache-2.0 */
/* test_region_file.c - sub-tracking files as they are written: what is in them to the byte,
 * several writers, and files that are not ours to write to. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/base_sqlite.h"
#include "region/drain/region_inbox.h"
#include "region/mark/region_local.h"
#include "region/region_ring.h"
#include "wattmeter/region.h"

#define HEADER "process_id,code_block_name,position,timestamp\r\n"

/* A time in seconds since 1970, as an argument. */
#define AT(seconds) (&(const double) { seconds })

static const char *path_in(const char *folder, const char *name)
{
    static char path[512];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static char *slurp(const char *path)
{
    char *text = NULL;
    size_t length = 0;
    struct wm_error err;

    if (wm_file_slurp(path, (size_t)64 << 20, &text, &length, &err) < 0)
        fail_msg("%s", err.text);
    return text;
}

/* The rows of a database as gpu_tracker would have them in CSV. */
static char *dump(const char *path)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *rows = NULL;
    char *text = NULL;
    size_t length = 0;

    assert_int_equal(wm_sqlite_load(NULL), WM_OK);
    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    sqlite3_busy_timeout(db, 10000);
    assert_int_equal(sqlite3_prepare_v2(db,
                                        "SELECT process_id, code_block_name, position,"
                                        " timestamp FROM data ORDER BY rowid",
                                        -1, &rows, NULL),
                     SQLITE_OK);
    while (sqlite3_step(rows) == SQLITE_ROW)
        fprintf(out, "%d|%s|%d|%.17g\n", sqlite3_column_int(rows, 0),
                (const char *)sqlite3_column_text(rows, 1), sqlite3_column_int(rows, 2),
                sqlite3_column_double(rows, 3));
    sqlite3_finalize(rows);
    sqlite3_close(db);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void test_rows(void **state)
{
    static const struct {
        const char *name;
        const char *block;
        double when_s;
        const char *expected; /* behind the process */
    } cases[] = {
        { "plain", "my-code-block", 1795247379.2159243,
          "my-code-block,0,1795247379.2159243" },
        { "whole seconds", "a", 1795247379, "a,0,1795247379.0" },
        { "before 1970", "a", -0.5, "a,0,-0.5" },
        { "empty", "", 1, ",0,1.0" },
        { "none", NULL, 1, ",0,1.0" },
        { "comma", "a,b", 1, "\"a,b\",0,1.0" },
        { "quotes", "say \"a\"", 1, "\"say \"\"a\"\"\",0,1.0" },
        { "newline", "a\nb", 1, "\"a\nb\",0,1.0" },
        { "carriage return", "a\rb", 1, "\"a\rb\",0,1.0" },
        { "blanks", " a ", 1, " a ,0,1.0" },
        { "an apostrophe", "it's; DROP TABLE data", 1, "it's; DROP TABLE data,0,1.0" },
        { "UTF-8", "d\xc3\xa9j\xc3\xa0", 1, "d\xc3\xa9j\xc3\xa0,0,1.0" },
        { "not UTF-8", "\xff", 1, "\xef\xbf\xbd,0,1.0" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_region_file *file = NULL;
        const char *path = path_in(*state, "a.csv");
        char expected[256];
        assert_int_equal(wm_region_file_open(path, WM_RECORD_OVERWRITE, &file, NULL),
                         WM_OK);
        assert_int_equal(
            wm_region_file_write(file, cases[i].block, false, AT(cases[i].when_s), NULL),
            WM_OK);
        wm_region_file_close(file);
        snprintf(expected, sizeof(expected), HEADER "%ld,%s\r\n", (long)getpid(),
                 cases[i].expected);
        char *text = slurp(path);
        if (strcmp(text, expected) != 0)
            fail_msg("%s: %s", cases[i].name, text);
        free(text);
    }
}

static void test_long_names(void **state)
{
    static const char fills[] = { 'x', '"', (char)0xff };
    char name[WM_REGION_NAME_MAX + 2];

    for (size_t i = 0; i < ARRAY_LEN(fills); i++) {
        struct wm_region_file *file = NULL;
        const char *path = path_in(*state, "a.csv");
        memset(name, fills[i], sizeof(name));
        name[sizeof(name) - 1] = '\0';
        assert_int_equal(wm_region_file_open(path, WM_RECORD_OVERWRITE, &file, NULL),
                         WM_OK);
        assert_int_equal(wm_region_file_write(file, name, true, AT(1), NULL), WM_OK);
        wm_region_file_close(file);
        char *text = slurp(path);
        size_t bytes = fills[i] == 'x' ? 1 : fills[i] == '"' ? 2 : 3;
        const char *row = strchr(strchr(text, '\n') + 1, ',') + 1;
        size_t quotes = fills[i] == '"' ? 2 : 0;
        assert_int_equal(strlen(row),
                         bytes * WM_REGION_NAME_MAX + quotes + strlen(",1,1.0\r\n"));
        free(text);
    }
}

static void test_sqlite(void **state)
{
    struct wm_region_file *file = NULL;
    const char *path = path_in(*state, "a.sqlite");
    char expected[256];

    assert_int_equal(wm_region_file_open(path, WM_RECORD_NEW, &file, NULL), WM_OK);
    assert_int_equal(wm_region_file_write(file, "it's \"a\"\n", false, AT(1.5), NULL),
                     WM_OK);
    assert_int_equal(wm_region_file_write(file, "\xff", true, AT(2), NULL), WM_OK);

    /* It is there when the call returns. */
    snprintf(expected, sizeof(expected), "%ld|it's \"a\"\n|0|1.5\n%ld|\xef\xbf\xbd|1|2\n",
             (long)getpid(), (long)getpid());
    char *text = dump(path);
    assert_string_equal(text, expected);
    free(text);
    wm_region_file_close(file);
    text = dump(path);
    assert_string_equal(text, expected);
    free(text);
}

static void test_now(void **state)
{
    struct wm_region_file *file = NULL;
    struct wm_error err;
    const char *path = path_in(*state, "a.csv");
    double before = (double)time(NULL);

    assert_int_equal(wm_region_file_open(path, WM_RECORD_NEW, &file, NULL), WM_OK);
    assert_int_equal(wm_region_file_write(file, "a", false, NULL, NULL), WM_OK);
    assert_int_equal(wm_region_file_write(file, "a", false, AT(NAN), &err), WM_EINVAL);
    assert_int_equal(wm_region_file_write(file, "a", false, AT(INFINITY), &err), WM_EINVAL);
    assert_int_equal(wm_region_file_write(file, "a", false, AT(-INFINITY), &err),
                     WM_EINVAL);
    wm_region_file_close(file);
    char *text = slurp(path);
    double when = strtod(strrchr(text, ',') + 1, NULL);
    assert_true(when >= before && when < before + 60);
    free(text);
}

static void test_open(void **state)
{
    static const struct {
        const char *name, *file;
        const char *content; /* NULL: there is no such file */
        enum wm_record_mode mode;
        int status;
        const char *after; /* NULL: not looked at */
    } cases[] = {
        { "new", "n.csv", NULL, WM_RECORD_NEW, WM_OK, HEADER },
        { "append to nothing", "a.csv", NULL, WM_RECORD_APPEND, WM_OK, HEADER },
        { "overwrite nothing", "o.csv", NULL, WM_RECORD_OVERWRITE, WM_OK, HEADER },
        { "append to an empty one", "e.csv", "", WM_RECORD_APPEND, WM_OK, HEADER },
        { "it exists", "x.csv", "mine", WM_RECORD_NEW, WM_EEXIST, "mine" },
        { "overwrite", "w.csv", "mine", WM_RECORD_OVERWRITE, WM_OK, HEADER },
        { "append", "b.csv", HEADER "1,a,0,1.0\r\n", WM_RECORD_APPEND, WM_OK,
          HEADER "1,a,0,1.0\r\n" },
        { "append, other line ends", "l.csv",
          "process_id,code_block_name,position,timestamp\n1,a,0,1.0\n", WM_RECORD_APPEND,
          WM_OK, "process_id,code_block_name,position,timestamp\n1,a,0,1.0\n" },
        { "append to a torn line", "t.csv", HEADER "1,a,0,1.0\r\n4711,a,1,17952473",
          WM_RECORD_APPEND, WM_OK, HEADER "1,a,0,1.0\r\n" },
        { "torn in a name", "t2.csv", HEADER "4711,a", WM_RECORD_APPEND, WM_OK, HEADER },
        { "torn in quotes", "t3.csv", HEADER "1,\"a\r\nb\",0,1.0\r\n2,\"c\nd",
          WM_RECORD_APPEND, WM_OK, HEADER "1,\"a\r\nb\",0,1.0\r\n" },
        { "torn between quotes", "t4.csv", HEADER "2,\"c\n", WM_RECORD_APPEND, WM_OK,
          HEADER },
        { "torn in the line end", "t5.csv", HEADER "1,a,0,1.0\r\n1,a,1,2.0\r",
          WM_RECORD_APPEND, WM_OK, HEADER "1,a,0,1.0\r\n" },
        { "torn behind the header", "t6.csv",
          "process_id,code_block_name,position,timestamp", WM_RECORD_APPEND, WM_OK,
          HEADER },
        { "append to something else", "s.csv", "a,b\n1,2\n", WM_RECORD_APPEND, WM_EFORMAT,
          "a,b\n1,2\n" },
        { "append to a longer header", "h.csv",
          "process_id,code_block_name,position,timestamp,more\n", WM_RECORD_APPEND,
          WM_EFORMAT, NULL },
        { "other suffix", "a.txt", NULL, WM_RECORD_NEW, WM_EINVAL, NULL },
        { "no suffix", "csv", NULL, WM_RECORD_NEW, WM_EINVAL, NULL },
        { "no such folder", "none/a.csv", NULL, WM_RECORD_NEW, WM_ENOENT, NULL },
        { "SQLite: no such folder", "none/a.sqlite", NULL, WM_RECORD_NEW, WM_ENOENT, NULL },
        { "SQLite: it exists", "x.sqlite", "mine", WM_RECORD_NEW, WM_EEXIST, "mine" },
        { "SQLite: no database", "n.sqlite", "this is not a database, it is a long text.",
          WM_RECORD_APPEND, WM_EFORMAT, "this is not a database, it is a long text." },
        { "SQLite: overwrite", "o.sqlite", "mine", WM_RECORD_OVERWRITE, WM_OK, NULL },
        { "SQLite: append to an empty one", "e.sqlite", "", WM_RECORD_APPEND, WM_OK, NULL },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *path = path_in(*state, cases[i].file);
        struct wm_region_file *file = NULL;
        struct wm_error err = { 0 };
        if (cases[i].content)
            test_write_file(*state, cases[i].file, cases[i].content);
        int status = wm_region_file_open(path, cases[i].mode, &file, &err);
        if (status != cases[i].status || (status < 0 && (file || err.status != status)))
            fail_msg("%s: %d %s", cases[i].name, status, err.text);
        wm_region_file_close(file);
        if (cases[i].after) {
            char *text = slurp(path);
            if (strcmp(text, cases[i].after) != 0)
                fail_msg("%s: %s", cases[i].name, text);
            free(text);
        }
    }
}

static void test_strange_files(void **state)
{
    struct wm_region_file *file = NULL;
    struct wm_error err;
    char link[512];

    snprintf(link, sizeof(link), "%s", path_in(*state, "link.csv"));
    test_write_file(*state, "target", "mine");
    assert_int_equal(symlink(path_in(*state, "target"), link), 0);
    assert_int_equal(wm_region_file_open(link, WM_RECORD_NEW, &file, &err), WM_EEXIST);
    assert_int_equal(wm_region_file_open(link, WM_RECORD_OVERWRITE, &file, &err),
                     WM_EINVAL);
    assert_int_equal(wm_region_file_open(link, WM_RECORD_APPEND, &file, &err), WM_EFORMAT);
    assert_int_equal(mkdir(path_in(*state, "folder.csv"), 0700), 0);
    assert_true(wm_region_file_open(path_in(*state, "folder.csv"), WM_RECORD_APPEND, &file,
                                    &err) < 0);
    assert_int_equal(mkfifo(path_in(*state, "fifo.csv"), 0700), 0);
    assert_int_equal(
        wm_region_file_open(path_in(*state, "fifo.csv"), WM_RECORD_APPEND, &file, &err),
        WM_EINVAL);
    assert_null(file);

    /* A database of somebody else's. */
    sqlite3 *db = NULL;
    assert_int_equal(wm_sqlite_load(NULL), WM_OK);
    test_write_file(*state, "other.sqlite", "");
    assert_int_equal(
        sqlite3_open_v2(path_in(*state, "other.sqlite"), &db, SQLITE_OPEN_READWRITE, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "CREATE TABLE data (a)", NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
    assert_int_equal(
        wm_region_file_open(path_in(*state, "other.sqlite"), WM_RECORD_APPEND, &file, &err),
        WM_EFORMAT);
}

enum { WRITERS = 4, ROWS = 200 };

static void write_many(const char *path)
{
    struct wm_region_file *file = NULL;

    if (wm_region_file_open(path, WM_RECORD_APPEND, &file, NULL) < 0)
        _exit(1);
    for (int i = 0; i < ROWS; i++)
        if (wm_region_file_write(file, "a,b", i % 2, AT(i), NULL) < 0)
            _exit(2);
    wm_region_file_close(file);
    _exit(0);
}

static void run_writers(const char *path)
{
    int status = 0;

    for (int i = 0; i < WRITERS; i++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
            write_many(path);
    }
    while (wait(&status) > 0)
        assert_int_equal(status, 0);
}

static void test_writers(void **state)
{
    long headers = 0, rows = 0;

    run_writers(path_in(*state, "a.csv"));
    char *text = slurp(path_in(*state, "a.csv"));
    for (char *line = strtok(text, "\r\n"); line; line = strtok(NULL, "\r\n")) {
        if (strncmp(line, HEADER, strlen(HEADER) - 2) == 0)
            headers++;
        else if (strstr(line, ",\"a,b\",0,") || strstr(line, ",\"a,b\",1,"))
            rows++;
        else
            fail_msg("torn: %s", line);
    }
    free(text);
    assert_int_equal(headers, 1);
    assert_int_equal(rows, WRITERS * ROWS);

    run_writers(path_in(*state, "a.sqlite"));
    text = dump(path_in(*state, "a.sqlite"));
    rows = 0;
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        rows++;
    free(text);
    assert_int_equal(rows, WRITERS * ROWS);
}

/* One handle that a child of fork() goes on with. */
static void test_fork(void **state)
{
    static const char *const names[] = { "f.csv", "f.sqlite" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *path = path_in(*state, names[i]);
        struct wm_region_file *file = NULL;
        int status = 0;
        assert_int_equal(wm_region_file_open(path, WM_RECORD_NEW, &file, NULL), WM_OK);
        assert_int_equal(wm_region_file_write(file, "parent", false, AT(1), NULL), WM_OK);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
            _exit(wm_region_file_write(file, "child", false, AT(2), NULL) < 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        assert_int_equal(wm_region_file_write(file, "parent", true, AT(3), NULL), WM_OK);
        wm_region_file_close(file);
        char *text = i == 0 ? slurp(path) : dump(path);
        const char *child = strstr(text, "child");
        assert_non_null(child);
        assert_non_null(strstr(child, "parent"));
        free(text);
    }
}

/* Rows of a handle, or of the environment's file. */
static void write_name(struct wm_region_file *file, const char *name)
{
    if (file && wm_region_file_write(file, name, false, AT(1), NULL) < 0)
        _exit(5);
    if (!file)
        wm_region_begin(name);
}

static char read_byte(int fd)
{
    char byte = 0;

    return read(fd, &byte, 1) == 1 ? byte : 0;
}

/* A program that opens `path`, has a child, and ends first. The child writes a row, says
 * so, waits to be told, and writes another one. */
static void outlive(const char *path, bool has_handle, int tell, int told)
{
    struct wm_region_file *file = NULL;
    int ready[2];

    setenv(WM_REGIONS_VARIABLE, path, 1);
    if (has_handle && wm_region_file_open(path, WM_RECORD_NEW, &file, NULL) < 0)
        _exit(1);
    if (!has_handle && wm_region_listen(NULL, NULL) < 0)
        _exit(2);
    write_name(file, "parent");
    if (pipe(ready) < 0 || chdir("/") < 0)
        _exit(3);
    pid_t pid = fork();
    if (pid == 0) {
        close(ready[0]);
        write_name(file, "child 1");
        if (write(ready[1], "x", 1) != 1 || read_byte(told) != 'x')
            _exit(4);
        write_name(file, "child 2");
        if (write(tell, "x", 1) != 1)
            _exit(4);
        _exit(0);
    }
    close(ready[1]);
    if (read_byte(ready[0]) != 'x')
        _exit(6);
    write_name(file, "parent again");
    wm_region_file_close(file);
    exit(0);
}

static void assert_rows(const char *path, const char *const *names, size_t count)
{
    char *text = dump(path);

    for (size_t i = 0; i < count; i++) {
        if (!strstr(text, names[i]))
            fail_msg("%s is not there: %s", names[i], text);
    }
    free(text);
}

/* Whoever reads meanwhile leaves the child what it writes to. */
static void test_child_outlives_parent(void **state)
{
    static const char *const names[] = { "|parent|", "|child 1|", "|parent again|",
                                         "|child 2|" };

    for (int has_handle = 0; has_handle < 2; has_handle++) {
        const char *path = path_in(*state, has_handle ? "o1.sqlite" : "o0.sqlite");
        int tell[2], told[2], status = 0;
        assert_int_equal(pipe(tell) | pipe(told), 0);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            close(tell[0]);
            close(told[1]);
            outlive(path, has_handle, tell[1], told[0]);
        }
        close(tell[1]);
        close(told[0]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        assert_rows(path, names, ARRAY_LEN(names) - 1);
        assert_int_equal(write(told[1], "x", 1), 1);
        assert_int_equal(read_byte(tell[0]), 'x');
        assert_int_equal(read_byte(tell[0]), 0);
        close(tell[0]);
        close(told[1]);
        assert_rows(path, names, ARRAY_LEN(names));
    }
}

enum { FORKS = 40 };

static void *write_on(void *context)
{
    for (int i = 0; i < FORKS; i++)
        write_name(context, "busy");
    return NULL;
}

/* While other threads write. */
static void test_forks_between_rows(void **state)
{
    const char *path = path_in(*state, "b.sqlite");
    struct wm_region_file *file = NULL;
    pthread_t threads[2];
    long rows = 0;

    assert_int_equal(wm_region_file_open(path, WM_RECORD_NEW, &file, NULL), WM_OK);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_on, file), 0);
    for (int i = 0; i < FORKS; i++) {
        int status = 0;
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            /* At a proper end ThreadSanitizer would look for the parent's threads. */
            write_name(file, "child");
            kill(getpid(), SIGKILL);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, SIGKILL);
    }
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    wm_region_file_close(file);
    char *text = dump(path);
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        rows++;
    free(text);
    assert_int_equal(rows, FORKS * (1 + (long)ARRAY_LEN(threads)));
}

static void *in_thread(void *context)
{
    wm_region_begin("thread");
    wm_region_stop(*(uint64_t *)context);
    return NULL;
}

static void mark(void)
{
    pthread_t thread;
    int status = 0;

    wm_region_begin("outer");
    wm_region_begin("inner");
    wm_region_end();
    uint64_t request = wm_region_start("request");
    uint64_t other = wm_region_start("other");
    if (pthread_create(&thread, NULL, in_thread, &request) != 0 ||
        pthread_join(thread, NULL) != 0)
        _exit(3);
    pid_t pid = fork();
    if (pid == 0) {
        wm_region_end();
        wm_region_begin("child");
        wm_region_end();
        _exit(0);
    }
    if (waitpid(pid, &status, 0) != pid || status != 0)
        _exit(4);
    wm_region_stop(other);
    wm_region_stop(other);
    wm_region_end();
    wm_region_end();
}

/* Each row without its numbers: "outer0 inner0 inner1". */
static void check_marks(const char *text, char mark)
{
    static const char *const expected[] = {
        "outer?0",   "inner?0", "inner?1", "request?0", "other?0", "thread?0",
        "request?1", "child?0", "child?1", "other?1",   "outer?1",
    };
    const char *at = text;

    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        char row[32];
        snprintf(row, sizeof(row), "%s", expected[i]);
        *strchr(row, '?') = mark;
        at = strstr(at, row);
        if (!at)
            fail_msg("%s is not there, or too early: %s", row, text);
        at++;
    }
    long lines = 0;
    for (at = text; (at = strchr(at, '\n')); at++)
        lines++;
    assert_int_equal(lines, (long)ARRAY_LEN(expected) + (mark == ','));
}

/* begin and end as rows, without any tracker. */
static void test_environment(void **state)
{
    static const char *const names[] = { "e.csv", "e.sqlite" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *path = path_in(*state, names[i]);
        int status = 0;
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            setenv(WM_REGIONS_VARIABLE, path, 1);
            if (wm_region_listen(NULL, NULL) < 0 || !wm_region_is_on())
                _exit(1);
            mark();
            _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        char *text = i == 0 ? slurp(path) : dump(path);
        check_marks(text, i == 0 ? ',' : '|');
        free(text);
    }
}

static void exit_well(int number)
{
    (void)number;
    _exit(0);
}

static void write_beyond(const char *path, rlim_t most)
{
    const struct rlimit limit = { most, most };
    struct wm_region_file *file = NULL;
    struct wm_error err;
    int status = WM_OK;

    if (setrlimit(RLIMIT_FSIZE, &limit) < 0)
        _exit(1);
    status = wm_region_file_open(path, WM_RECORD_NEW, &file, &err);
    for (int i = 0; i < 5000 && status == WM_OK; i++)
        status = wm_region_file_write(file, "name", false, AT(i), &err);
    if (status == WM_OK)
        _exit(2);
    wm_region_file_close(file);

    /* The program itself is told as ever. */
    signal(SIGXFSZ, exit_well);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    ssize_t written = pwrite(fd, "", 1, (off_t)most);
    _exit(written == 1 ? 3 : 4);
}

/* A program that may not make files as long as that goes on without its rows. */
static void test_size_limit(void **state)
{
    static const struct {
        const char *name;
        rlim_t most;
    } cases[] = {
        { "0.csv", 0 },        { "1.csv", 1000 },    { "2.csv", 50000 },
        { "0.sqlite", 0 },     { "1.sqlite", 1000 }, { "2.sqlite", 20000 },
        { "3.sqlite", 50000 },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *path = path_in(*state, cases[i].name);
        int status = 0;
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
            write_beyond(path, cases[i].most);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (status != 0)
            fail_msg("%s: %#x", cases[i].name, (unsigned)status);
    }
}

static void test_out_of_memory(void **state)
{
    static const char *const names[] = { "m.csv", "m.sqlite" };
    char name[300];

    memset(name, 'x', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *path = path_in(*state, names[i]);
        struct wm_region_file *file = NULL;
        struct wm_error err = { 0 };
        test_fail_allocation(0);
        assert_int_equal(wm_region_file_open(path, WM_RECORD_NEW, &file, &err), WM_ENOMEM);
        test_fail_allocation(-1);
        assert_null(file);
        assert_int_equal(wm_region_file_open(path, WM_RECORD_APPEND, &file, &err), WM_OK);
        test_fail_allocation(0);
        assert_int_equal(wm_region_file_write(file, name, false, AT(1), &err), WM_ENOMEM);
        test_fail_allocation(-1);
        assert_int_equal(wm_region_file_write(file, name, false, AT(1), &err), WM_OK);
        wm_region_file_close(file);
    }
    wm_region_file_close(NULL);
}

UNIT(region_file)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_make_dir, test_remove_dir)
    const struct CMUnitTest tests[] = {
        TEST(test_rows),
        TEST(test_long_names),
        TEST(test_sqlite),
        TEST(test_now),
        TEST(test_open),
        TEST(test_strange_files),
        TEST(test_writers),
        TEST(test_fork),
        TEST(test_environment),
        TEST(test_size_limit),
        TEST(test_child_outlives_parent),
        TEST(test_forks_between_rows),
        TEST(test_out_of_memory),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
