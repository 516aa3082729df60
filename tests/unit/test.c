/* SPDX-License-Identifier: Apache-2.0 */
/* test.c - scratch folders and paths for the unit tests. */
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int test_make_dir(void **state)
{
    char *path = strdup("/tmp/wattmeter-test-XXXXXX");
    if (!path || !mkdtemp(path)) {
        free(path);
        return -1;
    }
    *state = path;
    return 0;
}

int test_make_dir_utc(void **state)
{
    setenv("TZ", "UTC", 1);
    tzset();
    return test_make_dir(state);
}

static int remove_entry(const char *path, const struct stat *info, int type,
                        struct FTW *walk)
{
    (void)info, (void)type, (void)walk;
    return remove(path);
}

int test_remove_dir(void **state)
{
    int status = nftw(*state, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    free(*state);
    return status;
}

void test_write_bytes(const char *path, const char *bytes, size_t length)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

void test_write_file(const char *dir, const char *path, const char *text)
{
    char full[512];
    snprintf(full, sizeof(full), "%s/%s", dir, path);
    for (char *slash = full + strlen(dir) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        assert_true(mkdir(full, 0755) == 0 || errno == EEXIST);
        *slash = '/';
    }

    test_write_bytes(full, text, strlen(text));
}

static const char *path_under(const char *variable, const char *relative)
{
    static char paths[4][512];
    static size_t next;
    const char *root = getenv(variable);
    char *path = paths[next++ % ARRAY_LEN(paths)];

    snprintf(path, sizeof(paths[0]), "%s/%s", root ? root : ".", relative);
    return path;
}

const char *test_source_path(const char *relative)
{
    return path_under("WM_SOURCE_ROOT", relative);
}

const char *test_build_path(const char *relative)
{
    return path_under("WM_BUILD_ROOT", relative);
}

char *test_read_source(const char *relative)
{
    FILE *file = fopen(test_source_path(relative), "r");
    size_t size = 0;
    char *text = NULL;

    assert_non_null(file);
    assert_true(getdelim(&text, &size, '\0', file) > 0);
    assert_int_equal(fclose(file), 0);
    return text;
}

size_t test_count_open_files(void)
{
    DIR *dir = opendir("/proc/self/fd");
    size_t count = 0;

    assert_non_null(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}
