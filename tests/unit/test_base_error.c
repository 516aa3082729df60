/* SPDX-License-Identifier: Apache-2.0 */
/* test_base_error.c - a failure becomes a status and a text. */
#include "test.h"

#include <errno.h>
#include <string.h>

#include "base/base_error.h"
#include "base/base_options.h"

static void test_fail(void **state)
{
    struct wm_error err = { 0 };
    (void)state;

    assert_int_equal(wm_fail(&err, WM_EFORMAT, "%s: line %d", "a.csv", 7), WM_EFORMAT);
    assert_int_equal(err.status, WM_EFORMAT);
    assert_string_equal(err.text, "a.csv: line 7");
    assert_int_equal(wm_fail(NULL, WM_EIO, "%s", "nobody listens"), WM_EIO);
}

static void test_long_text(void **state)
{
    struct wm_error err;
    char name[1024];
    (void)state;

    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    assert_int_equal(wm_fail(&err, WM_ENOENT, "%s", name), WM_ENOENT);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
    errno = ENOENT;
    assert_int_equal(wm_fail_errno(&err, name), WM_ENOENT);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
}

/* A message goes to a terminal, and the name of a file may be anything. */
static void test_hostile_text(void **state)
{
    struct wm_error err;
    (void)state;

    wm_fail(&err, WM_EFORMAT, "%s: not a recording", "\x1b]0;\x07\n\xff\u00fc.csv");
    assert_string_equal(err.text, "?]0;???\u00fc.csv: not a recording");
    errno = ENOENT;
    wm_fail_errno(&err, "a\rb");
    assert_string_equal(err.text, "a?b: No such file or directory");
}

static void test_errno(void **state)
{
    static const struct {
        int number;
        int status;
        const char *text;
    } cases[] = {
        { ENOMEM, WM_ENOMEM, "/x: Cannot allocate memory" },
        { EACCES, WM_EACCES, "/x: Permission denied" },
        { EPERM, WM_EACCES, "/x: Operation not permitted" },
        { EROFS, WM_EACCES, "/x: Read-only file system" },
        { ENOENT, WM_ENOENT, "/x: No such file or directory" },
        { ENOTDIR, WM_ENOENT, "/x: Not a directory" },
        { ESRCH, WM_ENOENT, "/x: No such process" },
        { ENODEV, WM_ENODEV, "/x: No such device" },
        { ENXIO, WM_ENODEV, "/x: No such device or address" },
        { EEXIST, WM_EEXIST, "/x: File exists" },
        { EIO, WM_EIO, "/x: Input/output error" },
        { ENOSPC, WM_EIO, "/x: No space left on device" },
        { 12345, WM_EIO, "12345" },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_error err = { 0 };

        assert_int_equal(wm_status_of_errno(cases[i].number), cases[i].status);
        errno = cases[i].number;
        assert_int_equal(wm_fail_errno(&err, "/x"), cases[i].status);
        assert_int_equal(err.status, cases[i].status);
        assert_non_null(strstr(err.text, cases[i].text));
        errno = cases[i].number;
        assert_int_equal(wm_fail_errno(NULL, "/x"), cases[i].status);
    }
}

/* Programs of other versions have shorter and longer structs. */
static void test_options(void **state)
{
    struct options {
        size_t size;
        int first, second;
    } own;
    struct {
        struct options known;
        size_t third;
    } longer = { { sizeof(longer), 1, 2 }, 0 };
    const struct options rows[] = {
        { 0, 1, 2 },
        { sizeof(own), 1, 2 },
        { offsetof(struct options, second), 1, 2 },
        { offsetof(struct options, first), 1, 2 },
    };
    const int expected[][2] = { { 1, 2 }, { 1, 2 }, { 1, 0 }, { 0, 0 } };
    struct wm_error err;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        memset(&own, 0xff, sizeof(own));
        assert_int_equal(wm_options_read(&rows[i], &own, sizeof(own), &err), WM_OK);
        assert_int_equal(own.first, expected[i][0]);
        assert_int_equal(own.second, expected[i][1]);
    }
    assert_int_equal(wm_options_read(NULL, &own, sizeof(own), &err), WM_OK);
    assert_int_equal(own.first, 0);
    assert_int_equal(wm_options_read(&longer, &own, sizeof(own), &err), WM_OK);
    assert_int_equal(own.second, 2);

    own.first = 7;
    longer.third = 1;
    assert_int_equal(wm_options_read(&longer, &own, sizeof(own), &err), WM_EINVAL);
    assert_string_equal(err.text, "an option needs a newer libwattmeter");
    longer.known.size = SIZE_MAX;
    assert_int_equal(wm_options_read(&longer, &own, sizeof(own), &err), WM_EINVAL);
    longer.known.size = sizeof(size_t) - 1;
    assert_int_equal(wm_options_read(&longer, &own, sizeof(own), &err), WM_EINVAL);
    assert_int_equal(own.first, 7);
}

UNIT(base_error)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fail),         cmocka_unit_test(test_long_text),
        cmocka_unit_test(test_hostile_text), cmocka_unit_test(test_errno),
        cmocka_unit_test(test_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
