/* SPDX-License-Identifier: Apache-2.0 */
/* test_base_file.c - small files, read whole, again and again, and in part. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_file.h"

static const char *path_in(const char *dir, const char *name)
{
    static char path[512];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

static void test_open_at(void **state)
{
    const char *dir = *state;

    test_write_file(dir, "here", "text");
    int dir_fd = wm_file_open_at(AT_FDCWD, dir);
    assert_true(dir_fd >= 0);
    int fd = wm_file_open_at(dir_fd, "here");
    assert_true(fd >= 0);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(write(fd, "x", 1), -1);
    assert_int_equal(wm_file_open_at(dir_fd, "not-here"), -ENOENT);
    assert_int_equal(wm_file_open_at(dir_fd, "here/below"), -ENOTDIR);
    close(fd);
    close(dir_fd);
}

static void test_reread(void **state)
{
    static const struct {
        const char *what;
        const char *content;
        const char *text;
    } steps[] = {
        { "the first time", "1234\n", "1234\n" },
        { "a longer text", "12345\n", "12345\n" },
        { "a shorter one", "7\n", "7\n" },
        { "an empty one", "", "" },
        { "all that fits", "1234567", "1234567" },
        { "more than fits", "123456789", "1234567" },
    };
    const char *dir = *state;
    char text[8];

    test_write_file(dir, "value", "");
    int fd = wm_file_open_at(AT_FDCWD, path_in(dir, "value"));
    assert_true(fd >= 0);
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        print_message("  %s\n", steps[i].what);
        test_write_file(dir, "value", steps[i].content);
        memset(text, '#', sizeof(text));
        assert_int_equal(wm_file_reread(fd, text, sizeof(text)), strlen(steps[i].text));
        assert_string_equal(text, steps[i].text);
    }
    close(fd);
    assert_int_equal(wm_file_reread(fd, text, sizeof(text)), -EBADF);

    fd = wm_file_open_at(AT_FDCWD, dir);
    assert_int_equal(wm_file_reread(fd, text, sizeof(text)), -EISDIR);
    close(fd);
}

/* A pipe has no offset and comes in pieces, as a list of the kernel may. */
static void test_read_at(void **state)
{
    const char *dir = *state;
    char text[8];

    test_write_file(dir, "value", "1234\n");
    assert_int_equal(wm_file_read_at(AT_FDCWD, path_in(dir, "value"), text, sizeof(text)),
                     5);
    assert_string_equal(text, "1234\n");
    assert_int_equal(wm_file_read_at(AT_FDCWD, path_in(dir, "value"), text, 3), 2);
    assert_string_equal(text, "12");
    assert_int_equal(wm_file_read_at(AT_FDCWD, path_in(dir, "no"), text, sizeof(text)),
                     -ENOENT);
    assert_int_equal(wm_file_read_at(AT_FDCWD, dir, text, sizeof(text)), -EISDIR);

    assert_int_equal(mkfifo(path_in(dir, "pipe"), 0600), 0);
    int fd = open(path_in(dir, "pipe"), O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "abcdefghij", 10), 10);
    assert_int_equal(wm_file_read_at(AT_FDCWD, path_in(dir, "pipe"), text, sizeof(text)),
                     7);
    assert_string_equal(text, "abcdefg");
    close(fd);
}

static void test_read_line(void **state)
{
    static const struct {
        const char *name;
        const char *content; /* NULL: there is no such file */
        const char *line;    /* NULL: none */
    } rows[] = {
        { "a line", "package-0\n", "package-0" },
        { "without an end", "package-0", "package-0" },
        { "blanks around it", " \t package 0 \t\n", "package 0" },
        { "of two lines the first", "one\ntwo\n", "one" },
        { "as much as fits", "0123456789abcdef\n", "0123456789a" },
        { "no UTF-8", "a\xff\n", "a\xef\xbf\xbd" },
        { "no file", NULL, NULL },
        { "an empty file", "", NULL },
        { "an empty first line", "\ntwo\n", NULL },
        { "blanks alone", "  \n", NULL },
    };
    const char *dir = *state;
    char line[12];

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        print_message("  %s\n", rows[i].name);
        if (rows[i].content)
            test_write_file(dir, "line", rows[i].content);
        memset(line, '#', sizeof(line));
        bool found = wm_file_read_line(
            AT_FDCWD, path_in(dir, rows[i].content ? "line" : "none"), line, sizeof(line));
        assert_int_equal(found, rows[i].line != NULL);
        assert_string_equal(line, rows[i].line ? rows[i].line : "");
    }
    assert_false(wm_file_read_line(AT_FDCWD, dir, line, sizeof(line)));
    assert_string_equal(line, "");
}

static void test_open_folder(void **state)
{
    const char *dir = *state;
    struct dirent *entry;
    bool found = false;

    test_write_file(dir, "here", "text");
    DIR *folder = wm_file_open_folder(AT_FDCWD, dir);
    assert_non_null(folder);
    assert_true(fcntl(dirfd(folder), F_GETFD) & FD_CLOEXEC);
    while ((entry = readdir(folder)) != NULL)
        found |= strcmp(entry->d_name, "here") == 0;
    assert_true(found);

    /* The same folder once more, from its start. */
    DIR *again = wm_file_open_folder(dirfd(folder), ".");
    assert_non_null(again);
    assert_non_null(readdir(again));
    closedir(again);

    errno = 0;
    assert_null(wm_file_open_folder(dirfd(folder), "none"));
    assert_int_equal(errno, ENOENT);
    assert_null(wm_file_open_folder(dirfd(folder), "here"));
    assert_int_equal(errno, ENOTDIR);
    closedir(folder);
}

static void write_size(const char *dir, size_t size)
{
    char *text = malloc(size + 1);
    assert_non_null(text);
    memset(text, 'x', size);
    text[size] = '\0';
    test_write_file(dir, "file", text);
    free(text);
}

static void test_slurp(void **state)
{
    static const struct {
        size_t size, limit;
        int status;
    } cases[] = {
        { 0, 0, WM_OK },
        { 1, 0, WM_EFORMAT },
        { 10, 10, WM_OK },
        { 11, 10, WM_EFORMAT },
        { 4095, 100000, WM_OK },
        { 4096, 100000, WM_OK },
        { 4097, 4096, WM_EFORMAT },
        { 99999, 100000, WM_OK },
        { 500000, 1000, WM_EFORMAT },
    };
    const char *dir = *state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *text = NULL;
        size_t length = 777;
        struct wm_error err = { 0 };

        print_message("  %zu bytes of %zu\n", cases[i].size, cases[i].limit);
        write_size(dir, cases[i].size);
        int status =
            wm_file_slurp(path_in(dir, "file"), cases[i].limit, &text, &length, &err);
        assert_int_equal(status, cases[i].status);
        if (status < 0) {
            assert_null(text);
            assert_int_equal(length, 777);
            assert_non_null(strstr(err.text, "larger than"));
            continue;
        }
        assert_int_equal(length, cases[i].size);
        assert_int_equal(strlen(text), cases[i].size);
        free(text);
    }
}

static void test_slurp_failures(void **state)
{
    const char *dir = *state;
    char *text = NULL;
    size_t length = 0;
    struct wm_error err = { 0 };

    assert_int_equal(wm_file_slurp(path_in(dir, "no"), 10, &text, &length, &err),
                     WM_ENOENT);
    assert_non_null(strstr(err.text, "no: No such file"));
    assert_int_equal(wm_file_slurp(dir, 10, &text, &length, &err), WM_EIO);

    write_size(dir, 20000);
    long step;
    for (step = 0; step < 50; step++) {
        test_fail_allocation(step);
        int status = wm_file_slurp(path_in(dir, "file"), 30000, &text, &length, &err);
        test_fail_allocation(-1);
        if (status == WM_OK)
            break;
        assert_int_equal(status, WM_ENOMEM);
        assert_null(text);
    }
    assert_in_range(step, 1, 49);
    assert_int_equal(length, 20000);
    free(text);
}

static void test_draft(void **state)
{
    const char *dir = *state;
    char path[512], other[512], *draft = NULL;
    struct wm_error err;

    snprintf(path, sizeof(path), "%s/whole", dir);
    snprintf(other, sizeof(other), "%s/none/whole", dir);
    assert_int_equal(wm_file_make_draft(path, &draft, &err), WM_OK);
    assert_int_equal(wm_file_folder_length(draft), strlen(dir) + 1);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(wm_file_give_name(draft, path, &err), WM_OK);
    assert_int_equal(access(draft, F_OK), -1);
    assert_int_equal(access(path, F_OK), 0);
    free(draft);

    /* The name is taken, which takes nothing away. */
    assert_int_equal(wm_file_make_draft(path, &draft, &err), WM_OK);
    assert_int_equal(wm_file_give_name(draft, path, &err), WM_EEXIST);
    assert_int_equal(access(draft, F_OK), 0);
    assert_int_equal(unlink(draft), 0);
    free(draft);

    draft = NULL;
    assert_int_equal(wm_file_make_draft(other, &draft, &err), WM_ENOENT);
    assert_non_null(strstr(err.text, "none/whole: No such file"));
    test_fail_allocation(0);
    int status = wm_file_make_draft(path, &draft, &err);
    test_fail_allocation(-1);
    assert_true(status == WM_ENOMEM || status == WM_OK); /* asprintf() has its own */
    if (draft)
        unlink(draft);
    free(draft);
    assert_int_equal(wm_file_folder_length("name"), 0);
}

static void test_env(void **state)
{
    (void)state;

    unsetenv("WATTMETER_TEST");
    assert_string_equal(wm_env("WATTMETER_TEST", "otherwise"), "otherwise");
    assert_null(wm_env("WATTMETER_TEST", NULL));
    setenv("WATTMETER_TEST", "", 1);
    assert_string_equal(wm_env("WATTMETER_TEST", "otherwise"), "otherwise");
    setenv("WATTMETER_TEST", "value", 1);
    assert_string_equal(wm_env("WATTMETER_TEST", "otherwise"), "value");
    unsetenv("WATTMETER_TEST");
}

/* "" for none. */
static void set_or_not(const char *name, const char *value)
{
    if (value[0])
        setenv(name, value, 1);
    else
        unsetenv(name);
}

static void test_state_folder(void **state)
{
    static const struct {
        const char *base, *home, *folder;
    } cases[] = {
        { "/state", "/home/me", "/state/wattmeter" },
        { "state", "/home/me", "/home/me/.local/state/wattmeter" },
        { "", "/home/me", "/home/me/.local/state/wattmeter" },
        { "", "me", NULL },
        { "", "", NULL },
    };
    static const char *const names[] = { "XDG_STATE_HOME", "HOME" };
    char before[2][256];

    (void)state;
    for (size_t i = 0; i < 2; i++)
        snprintf(before[i], sizeof(before[i]), "%s", wm_env(names[i], ""));
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        set_or_not(names[0], cases[i].base);
        set_or_not(names[1], cases[i].home);
        char *folder = wm_file_state_folder();
        if (cases[i].folder)
            assert_string_equal(folder, cases[i].folder);
        else
            assert_null(folder);
        free(folder);
    }
    for (size_t i = 0; i < 2; i++)
        set_or_not(names[i], before[i]);
}

UNIT(base_file)
{
#define IN_SCRATCH(test)                                                                   \
    cmocka_unit_test_setup_teardown(test, test_make_dir, test_remove_dir)
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(test_open_at),        IN_SCRATCH(test_reread),
        IN_SCRATCH(test_read_at),        IN_SCRATCH(test_read_line),
        IN_SCRATCH(test_open_folder),    IN_SCRATCH(test_slurp),
        IN_SCRATCH(test_slurp_failures), IN_SCRATCH(test_draft),
        cmocka_unit_test(test_env),      cmocka_unit_test(test_state_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
