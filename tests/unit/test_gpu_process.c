/* SPDX-License-Identifier: Apache-2.0 */
/* test_gpu_process.c - who a process on a GPU is, from small folders that stand for
 * /proc, and from our own. */
#include "test.h"

#include <errno.h>
#include <math.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "source/gpu/source_gpu_process.h"

#define BOOT "cpu  1 2 3 4\nbtime 1700000000\nprocesses 9\n"
#define TAIL " 1 1 0 -1 0 5 6 0 0 11 12 13 14 20 0 3 0 12345 1097 7620 18\n"

enum { PID = 4711 };

#define ABSENT "not in /proc"
#define UNREADABLE "cannot be read"

/* Files of process 4711, NULL where they are not there, and what comes of them:
 * a text, or a part of the reason after a '!'. */
struct row {
    const char *what;
    const char *stat, *status, *cmdline; /* blanks stand for the NULs */
    const char *parent_stat;             /* of process 10 */
    const char *name, *user, *parent_name;
    const char *parent_pid, *create_time;
};

static const struct row rows[] = {
    { "plain", "4711 (train) S 10" TAIL, "Uid:\t3999999999\t0\t0\t0\n", "./train",
      "10 (bash) S 1" TAIL, "train", "3999999999", "bash", "10", "1700000123.45" },
    { "a name cut, and its command", "4711 (train_a_large_m) S 10" TAIL,
      "Uid:\t3999999999\n", "/opt/bin/train_a_large_model --fast", "10 (bash) S 1" TAIL,
      "train_a_large_model", "3999999999", "bash", "10", "1700000123.45" },
    { "a script with a long name", "4711 (train_a_large_m) S 10" TAIL, "Uid:\t3999999999\n",
      "/usr/bin/python3 ./train_a_large_model.py", "10 (bash) S 1" TAIL,
      "train_a_large_model.py", "3999999999", "bash", "10", "1700000123.45" },
    { "a command that says something else", "4711 (train_a_large_m) S 10" TAIL,
      "Uid:\t3999999999\n", "[secret]", "10 (bash) S 1" TAIL, "train_a_large_m",
      "3999999999", "bash", "10", "1700000123.45" },
    { "a name that was not cut", "4711 (train) S 10" TAIL, "Uid:\t3999999999\n",
      "/usr/bin/trainer", "10 (bash) S 1" TAIL, "train", "3999999999", "bash", "10",
      "1700000123.45" },
    { "a zombie", "4711 (train_a_large_m) Z 10" TAIL, "Uid:\t3999999999\n", "",
      "10 (bash) S 1" TAIL, "train_a_large_m", "3999999999", "bash", "10",
      "1700000123.45" },
    { "a hostile name", "4711 (a\x1b[2Jb\n\xff) S 10" TAIL, "Uid:\t3999999999\n", NULL,
      "10 (\x07) S 1" TAIL, "a?[2Jb??", "3999999999", "?", "10", "1700000123.45" },
    { "no parent", "4711 (init) S 0" TAIL, "Uid:\t3999999999\n", NULL, NULL, "init",
      "3999999999", "!no parent", "!no parent", "1700000123.45" },
    { "a parent that has gone", "4711 (orphan) S 10" TAIL, "Uid:\t3999999999\n", NULL, NULL,
      "orphan", "3999999999", "!" ABSENT, "10", "1700000123.45" },
    { "a parent that makes no sense", "4711 (train) S 10" TAIL, "Uid:\t3999999999\n", NULL,
      "nonsense", "train", "3999999999", "!" UNREADABLE, "10", "1700000123.45" },
    { "it has gone", NULL, NULL, NULL, NULL, "!" ABSENT, "!" ABSENT, "!" ABSENT, "!" ABSENT,
      "!" ABSENT },
    { "it has just gone", "4711 (train) S 10" TAIL, NULL, NULL, "10 (bash) S 1" TAIL,
      "train", "!" ABSENT, "bash", "10", "1700000123.45" },
    { "empty", "", "", "", "", "!" UNREADABLE, "!" UNREADABLE, "!" UNREADABLE,
      "!" UNREADABLE, "!" UNREADABLE },
    { "cut off", "4711 (train) S 10 1 1", "Uid:\t39", "x", "", "!" UNREADABLE,
      "!" UNREADABLE, "!" UNREADABLE, "!" UNREADABLE, "!" UNREADABLE },
    { "a user that is none", "4711 (train) S 0" TAIL, "Uid:\t-1\n", NULL, NULL, "train",
      "!" UNREADABLE, "!no parent", "!no parent", "1700000123.45" },
    { "a user beyond the last", "4711 (train) S 0" TAIL, "Uid:\t4294967296\n", NULL, NULL,
      "train", "!" UNREADABLE, "!no parent", "!no parent", "1700000123.45" },
    { "no user", "4711 (train) S 0" TAIL, "Name:\ttrain\n", NULL, NULL, "train",
      "!" UNREADABLE, "!no parent", "!no parent", "1700000123.45" },
    { "a user with a name", "4711 (train) S 0" TAIL, "Uid:\t0\t5\t5\t5\n", NULL, NULL,
      "train", "root", "!no parent", "!no parent", "1700000123.45" },
};

static void write_process(const char *dir, const char *pid, const char *file,
                          const char *text)
{
    char path[64];

    if (!text)
        return;
    snprintf(path, sizeof(path), "%s/%s", pid, file);
    test_write_file(dir, path, text);
}

/* As the kernel does: a NUL behind each argument. */
static void write_cmdline(const char *dir, const char *text)
{
    char path[256];

    if (!text)
        return;
    snprintf(path, sizeof(path), "%s/4711/cmdline", dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (const char *at = text; *at; at++)
        fputc(*at == ' ' ? '\0' : *at, file);
    if (text[0])
        fputc('\0', file);
    assert_int_equal(fclose(file), 0);
}

static void check_reason(enum wm_reading_state state, const char *why, const char *part)
{
    assert_int_not_equal(state, WM_READING_OK);
    assert_int_not_equal(state, WM_READING_NONE);
    assert_non_null(why);
    if (!strstr(why, part))
        fail_msg("'%s' is not '%s'", why, part);
}

static void check_text(const struct wm_gpu_who *who, enum wm_gpu_process_field field,
                       const char *expected)
{
    const struct wm_gpu_value *value = &who->values[field];

    if (expected[0] == '!') {
        check_reason(value->state, value->why, expected + 1);
        assert_null(value->text);
        return;
    }
    assert_int_equal(value->state, WM_READING_OK);
    assert_null(value->why);
    assert_string_equal(value->text, expected);
}

static void check_number(const struct wm_gpu_who *who, enum wm_gpu_process_field field,
                         const char *expected)
{
    const struct wm_gpu_value *value = &who->values[field];

    if (expected[0] == '!') {
        check_reason(value->state, value->why, expected + 1);
        return;
    }
    assert_int_equal(value->state, WM_READING_OK);
    assert_null(value->why);
    assert_true(fabs(value->number - strtod(expected, NULL)) < 1e-6);
}

static void test_who(void **state)
{
    /* In hundredths of a second, which is what the rows have. */
    assert_int_equal(sysconf(_SC_CLK_TCK), 100);

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct row *row = &rows[i];
        struct wm_gpu_people *people = NULL;
        struct wm_gpu_who who;
        char dir[128];

        print_message("  %s\n", row->what);
        snprintf(dir, sizeof(dir), "%s/%zu", (const char *)*state, i);
        assert_int_equal(mkdir(dir, 0755), 0);
        test_write_file(dir, "stat", BOOT);
        write_process(dir, "4711", "stat", row->stat);
        write_process(dir, "4711", "status", row->status);
        write_cmdline(dir, row->cmdline);
        write_process(dir, "10", "stat", row->parent_stat);

        assert_int_equal(wm_gpu_people_open(dir, "/proc", &people, NULL), WM_OK);
        for (int again = 0; again < 2; again++) {
            memset(&who, 0xa5, sizeof(who));
            wm_gpu_people_find(people, PID, &who);
            assert_int_equal(who.values[WM_GPU_PROCESS_PID].number, PID);
            check_text(&who, WM_GPU_PROCESS_NAME, row->name);
            check_text(&who, WM_GPU_PROCESS_USER, row->user);
            check_text(&who, WM_GPU_PROCESS_PARENT_NAME, row->parent_name);
            check_number(&who, WM_GPU_PROCESS_PARENT_PID, row->parent_pid);
            check_number(&who, WM_GPU_PROCESS_CREATE_TIME, row->create_time);
        }
        wm_gpu_people_close(people);
    }
}

static void test_boot_time(void **state)
{
    static const struct {
        const char *what, *stat;
    } cases[] = {
        { "no file", NULL },
        { "empty", "" },
        { "no such line", "cpu  1 2 3 4\nprocesses 9\n" },
        { "no number", "btime \n" },
        { "negative", "btime -1700000000\n" },
        { "cut off", "cpu 1 2 3 4\nbtime 17000" },
        { "huge", "btime 99999999999999999999\n" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_gpu_people *people = NULL;
        struct wm_gpu_who who;
        char dir[128];

        print_message("  %s\n", cases[i].what);
        snprintf(dir, sizeof(dir), "%s/%zu", (const char *)*state, i);
        assert_int_equal(mkdir(dir, 0755), 0);
        if (cases[i].stat)
            test_write_file(dir, "stat", cases[i].stat);
        test_write_file(dir, "4711/stat", "4711 (train) S 0" TAIL);
        assert_int_equal(wm_gpu_people_open(dir, "/proc", &people, NULL), WM_OK);
        wm_gpu_people_find(people, PID, &who);
        check_text(&who, WM_GPU_PROCESS_NAME, "train");
        check_number(&who, WM_GPU_PROCESS_CREATE_TIME, "!when the machine was started");
        wm_gpu_people_close(people);
    }
}

/* More users than are remembered. */
static void test_many_users(void **state)
{
    struct wm_gpu_people *people = NULL;

    test_write_file(*state, "stat", BOOT);
    assert_int_equal(wm_gpu_people_open(*state, "/proc", &people, NULL), WM_OK);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 100; i++) {
            struct wm_gpu_who who;
            char path[64], text[128], uid[16];
            snprintf(path, sizeof(path), "%d/stat", 1000 + i);
            snprintf(text, sizeof(text), "%d (x) S 0" TAIL, 1000 + i);
            test_write_file(*state, path, text);
            snprintf(path, sizeof(path), "%d/status", 1000 + i);
            snprintf(uid, sizeof(uid), "%u", 3999999000u + (unsigned)i);
            snprintf(text, sizeof(text), "Uid:\t%s\t1\t1\t1\n", uid);
            test_write_file(*state, path, text);
            wm_gpu_people_find(people, 1000 + i, &who);
            check_text(&who, WM_GPU_PROCESS_USER, uid);
        }
    }
    wm_gpu_people_close(people);
}

static void test_here(void **state)
{
    (void)state;
    struct wm_gpu_people *people = NULL;
    struct wm_gpu_who who;
    const struct passwd *us = getpwuid(getuid());
    char parent[16];

    assert_int_equal(wm_gpu_people_open("/proc", "/proc", &people, NULL), WM_OK);
    wm_gpu_people_find(people, getpid(), &who);
    assert_int_equal(who.values[WM_GPU_PROCESS_PID].number, getpid());
    check_text(&who, WM_GPU_PROCESS_NAME, program_invocation_short_name);
    if (us)
        check_text(&who, WM_GPU_PROCESS_USER, us->pw_name);
    snprintf(parent, sizeof(parent), "%d", (int)getppid());
    check_number(&who, WM_GPU_PROCESS_PARENT_PID, parent);

    pid_t child = fork();
    if (child == 0)
        _exit(0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    wm_gpu_people_find(people, child, &who);
    assert_int_not_equal(who.values[WM_GPU_PROCESS_NAME].state, WM_READING_OK);
    assert_non_null(who.values[WM_GPU_PROCESS_CREATE_TIME].why);

    wm_gpu_people_find(people, 0, &who);
    assert_int_equal(who.values[WM_GPU_PROCESS_PID].state, WM_READING_UNSUPPORTED);
    check_text(&who, WM_GPU_PROCESS_NAME, "!no number");
    wm_gpu_people_close(people);
    wm_gpu_people_close(NULL);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    int status = WM_ENOMEM;

    for (long nth = 0; status == WM_ENOMEM; nth++) {
        struct wm_gpu_people *people = NULL;
        struct wm_error err = { 0 };

        test_fail_allocation(nth);
        status = wm_gpu_people_open("/proc", "/proc", &people, &err);
        test_fail_allocation(-1);
        assert_int_equal(status == WM_OK, people != NULL);
        assert_true(status == WM_OK || strstr(err.text, "out of memory"));
        wm_gpu_people_close(people);
        assert_true(nth < 100);
    }
    assert_int_equal(status, WM_OK);
}

UNIT(gpu_process)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_who, test_make_dir, test_remove_dir),
        cmocka_unit_test_setup_teardown(test_boot_time, test_make_dir, test_remove_dir),
        cmocka_unit_test_setup_teardown(test_many_users, test_make_dir, test_remove_dir),
        cmocka_unit_test(test_here),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
