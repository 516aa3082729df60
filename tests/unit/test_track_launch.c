/* SPDX-License-Identifier: Apache-2.0 */
/* test_track_launch.c - the launcher: finding programs, the gate, the end. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "track/launch/track_launch.h"

static const struct wm_launch_place here = { .folder_fd = AT_FDCWD };

static void test_find(void **state)
{
    static const struct {
        const char *what, *path, *name;
        int status;
        const char *found; /* below the scratch folder */
    } cases[] = {
        { "in the first folder", "%s/a:%s/b", "tool", WM_OK, "a/tool" },
        { "past one that cannot be executed", "%s/b:%s/a", "half", WM_OK, "a/half" },
        { "past a folder of that name", "%s/b:%s/a", "dir", WM_OK, "a/dir" },
        { "past a folder that is not there", "/nonexistent:%s/a", "tool", WM_OK, "a/tool" },
        { "past a file in the place of a folder", "%s/a/tool:%s/a", "tool", WM_OK,
          "a/tool" },
        { "nowhere", "%s/a:%s/b", "none", WM_ENOENT, NULL },
        { "only one that cannot be executed", "%s/b", "half", WM_EACCES, NULL },
        { "only a folder", "%s/b", "dir", WM_EACCES, NULL },
        { "an empty name", "%s/a", "", WM_ENOENT, NULL },
        { "a path to nothing", "%s/a", "/nonexistent/tool", WM_ENOENT, NULL },
        { "a path to a folder", "%s/a", "/tmp/", WM_EACCES, NULL },
        { "a path through a file", "%s/a", "/etc/passwd/tool", WM_ENOENT, NULL },
    };
    const char *dir = *state;
    char *old = strdup(getenv("PATH"));

    test_write_file(dir, "a/tool", "#!/bin/sh\n");
    test_write_file(dir, "a/half", "#!/bin/sh\n");
    test_write_file(dir, "a/dir", "#!/bin/sh\n");
    test_write_file(dir, "b/half", "");
    test_write_file(dir, "b/dir/file", "");
    for (size_t i = 0; i < 3; i++) {
        static const char *const tools[] = { "a/tool", "a/half", "a/dir" };
        char path[256];
        snprintf(path, sizeof(path), "%s/%s", dir, tools[i]);
        assert_int_equal(chmod(path, 0755), 0);
    }

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char path[512], expected[512];
        char *found = NULL;
        struct wm_error err = { 0 };

        print_message("  %s\n", cases[i].what);
        const char *second = strchr(cases[i].path, ':');
        char first[256];
        int first_length = second ? (int)(second - cases[i].path) : 255;
        snprintf(first, sizeof(first), "%.*s", first_length, cases[i].path);
        size_t used = 0;
        for (const char *part = first; part;
             part = part == first && second ? second + 1 : NULL) {
            const char *rest = strncmp(part, "%s", 2) == 0 ? part + 2 : part;
            used += (size_t)snprintf(path + used, sizeof(path) - used, "%s%s%s",
                                     used ? ":" : "", rest == part ? "" : dir, rest);
        }
        setenv("PATH", path, 1);
        assert_int_equal(wm_launch_find(cases[i].name, &here, &found, &err),
                         cases[i].status);
        if (cases[i].found) {
            snprintf(expected, sizeof(expected), "%s/%s", dir, cases[i].found);
            assert_string_equal(found, expected);
        } else {
            assert_null(found);
            assert_non_null(strstr(err.text, cases[i].name));
        }
        free(found);
    }
    setenv("PATH", old, 1);
    free(old);
}

static struct wm_launch *launch(char *const argv[])
{
    struct wm_launch *launch = NULL;
    struct wm_error err = { 0 };
    char *path = NULL;

    assert_int_equal(wm_launch_find(argv[0], &here, &path, &err), WM_OK);
    const struct wm_launch_plan plan = { .path = path, .argv = argv };
    if (wm_launch_new(&plan, &launch, &err) < 0 || wm_launch_wait_fork(launch, &err) < 0)
        fail_msg("%s", err.text);
    free(path);
    return launch;
}

static void test_ends(void **state)
{
    static const struct {
        const char *what, *script;
        int status, signal;
    } cases[] = {
        { "success", "exit 0", 0, 0 },
        { "a status", "exit 77", 77, 0 },
        { "a signal of its own", "kill -SEGV $$", -1, SIGSEGV },
        { "killed", "kill -KILL $$", -1, SIGKILL },
        { "an orphan that stays", "sleep 5 & exit 3", 3, 0 },
        { "an orphan that ends before", "(true &) ; sleep 0.05; exit 4", 4, 0 },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *argv[] = { (char *)"sh", (char *)"-c", (char *)cases[i].script, NULL };
        struct wm_launch_end end = { 0 };

        print_message("  %s\n", cases[i].what);
        struct wm_launch *one = launch(argv);
        assert_int_equal(wm_launch_go(one, NULL), WM_OK);
        assert_int_equal(wm_launch_wait_exec(one, NULL), WM_OK);
        assert_int_equal(wm_launch_reap(one, &end, NULL), WM_OK);
        if (cases[i].signal)
            assert_int_equal(WTERMSIG(end.wait_status), cases[i].signal);
        else
            assert_int_equal(WEXITSTATUS(end.wait_status), cases[i].status);
        assert_true(end.children_seconds > 0 && end.children_seconds < 1);
        wm_launch_free(one);
    }
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static void test_gate_never_opened(void **state)
{
    const char *dir = *state;
    char mark[256];

    snprintf(mark, sizeof(mark), "%s/mark", dir);
    char *argv[] = { (char *)"touch", mark, NULL };
    struct wm_launch *one = launch(argv);
    pid_t command = wm_launch_command_pid(one);
    wm_launch_free(one);
    assert_int_equal(access(mark, F_OK), -1);
    assert_int_equal(kill(command, 0), -1);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void test_exec_fails(void **state)
{
    static const struct {
        const char *what, *text;
        int status;
    } cases[] = {
        { "a missing interpreter", "#!/no/such/thing\n", WM_ENOENT },
        { "an interpreter that is a folder", "#!/tmp\n", WM_EACCES },
    };
    const char *dir = *state;
    char path[256];

    snprintf(path, sizeof(path), "%s/script", dir);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *argv[] = { path, NULL };
        struct wm_error err = { 0 };

        print_message("  %s\n", cases[i].what);
        test_write_file(dir, "script", cases[i].text);
        assert_int_equal(chmod(path, 0755), 0);
        struct wm_launch *one = launch(argv);
        assert_int_equal(wm_launch_go(one, NULL), WM_OK);
        assert_int_equal(wm_launch_wait_exec(one, &err), cases[i].status);
        assert_non_null(strstr(err.text, "script"));
        wm_launch_free(one);
    }

    /* Without a first line it is a shell script, as execvp() has it. */
    test_write_file(dir, "script", "exit 9\n");
    char *argv[] = { path, NULL };
    struct wm_launch_end end;
    struct wm_launch *one = launch(argv);
    assert_int_equal(wm_launch_go(one, NULL), WM_OK);
    assert_int_equal(wm_launch_wait_exec(one, NULL), WM_OK);
    assert_int_equal(wm_launch_reap(one, &end, NULL), WM_OK);
    assert_int_equal(WEXITSTATUS(end.wait_status), 9);
    wm_launch_free(one);
}

static void test_launcher_killed(void **state)
{
    char *argv[] = { (char *)"sleep", (char *)"20", NULL };
    struct wm_launch_end end;
    struct wm_error err = { 0 };
    (void)state;

    struct wm_launch *one = launch(argv);
    pid_t command = wm_launch_command_pid(one);
    assert_int_equal(wm_launch_go(one, NULL), WM_OK);
    assert_int_equal(wm_launch_wait_exec(one, NULL), WM_OK);
    assert_int_equal(kill(wm_launch_launcher_pid(one), SIGKILL), 0);
    assert_int_equal(wm_launch_reap(one, &end, &err), WM_EIO);
    assert_non_null(strstr(err.text, "launcher"));
    assert_int_equal(kill(command, SIGKILL), 0);
    wm_launch_free(one);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void test_allocation_failure(void **state)
{
    char *argv[] = { (char *)"true", NULL };
    (void)state;

    for (long nth = 0;; nth++) {
        struct wm_launch *one = NULL;
        char *path = NULL;

        test_fail_allocation(nth);
        int status = wm_launch_find("true", &here, &path, NULL);
        const struct wm_launch_plan plan = {
            .path = path, .argv = argv, .variable = "WM_TEST", .value = "value"
        };
        if (status == WM_OK)
            status = wm_launch_new(&plan, &one, NULL);
        test_fail_allocation(-1);
        free(path);
        if (status == WM_OK) {
            wm_launch_free(one);
            assert_true(nth >= 3);
            break;
        }
        assert_int_equal(status, WM_ENOMEM);
        assert_null(one);
    }
}

UNIT(track_launch)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_find, test_make_dir, test_remove_dir),
        cmocka_unit_test(test_ends),
        cmocka_unit_test_setup_teardown(test_gate_never_opened, test_make_dir,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(test_exec_fails, test_make_dir, test_remove_dir),
        cmocka_unit_test(test_launcher_killed),
        cmocka_unit_test(test_allocation_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
