/* SPDX-License-Identifier: Apache-2.0 */
/* test_record_calls_sort.c - more calls than are kept in memory, in the order of their
 * starts, on file systems with and without files that have no name. */
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/calls/record_calls_sort.h"

enum { COUNT = 300 * 1000 };

static int tmpfile_error; /* of open(); 0: the kernel's own answer */

/* Stands before libc's. */
int open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, int) : 0;
    va_end(arguments);

    if (tmpfile_error != 0 && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = tmpfile_error;
        return -1;
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static size_t count_files(const char *path)
{
    DIR *folder = opendir(path);
    size_t count = 0;

    assert_non_null(folder);
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

static int sort_calls(struct wm_error *err)
{
    struct wm_call_sort sort = { 0 };
    struct wm_region_record call = { 0 };
    int status = WM_OK;
    int64_t last_ns = -1, count = 0;

    for (int64_t i = 0; i < COUNT && status == WM_OK; i++) {
        call.start_ns = i * 7919 % COUNT;
        status = wm_call_sort_add(&sort, &call, err);
    }
    if (status == WM_OK)
        status = wm_call_sort_end(&sort, err);
    while (status == WM_OK && (status = wm_call_sort_next(&sort, &call, err)) > 0) {
        assert_int_equal(call.start_ns, last_ns + 1);
        last_ns = call.start_ns;
        count++;
        status = WM_OK;
    }
    if (status == WM_OK)
        assert_int_equal(count, COUNT);
    wm_call_sort_release(&sort);
    return status;
}

static void test_many(void **state)
{
    static const struct {
        const char *name;
        int error, status;
    } rows[] = {
        { "a file without a name", 0, WM_OK },
        { "a file system that has none", EOPNOTSUPP, WM_OK },
        { "a kernel that takes it for a folder", EISDIR, WM_OK },
        { "a kernel that takes it for nothing", EINVAL, WM_OK },
        { "no room", ENOSPC, WM_EIO },
        { "no permission", EACCES, WM_EACCES },
    };

    setenv("TMPDIR", *state, 1);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct wm_error err = { 0 };
        print_message("%s\n", rows[i].name);
        tmpfile_error = rows[i].error;
        int status = sort_calls(&err);
        tmpfile_error = 0;
        if (status != rows[i].status)
            fail_msg("%d: %s", status, err.text);
        if (status < 0)
            assert_non_null(strstr(err.text, "TMPDIR"));
        assert_int_equal(count_files(*state), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_many, test_make_dir, test_remove_dir),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
