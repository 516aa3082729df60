/* SPDX-License-Identifier: Apache-2.0 */
/* test.c - scratch folders and paths for the unit tests. */
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SCRATCH "/tmp/wattmeter-test-"

enum { HOUR_S = 3600 };

/* What a test has made unreadable goes too. */
static int open_up(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info, (void)walk;
    if ((type != FTW_D && type != FTW_DNR) || chmod(path, 0700) < 0 || type == FTW_D)
        return 0;
    return nftw(path, open_up, 16, FTW_PHYS);
}

static int remove_entry(const char *path, const struct stat *info, int type,
                        struct FTW *walk)
{
    (void)info, (void)type, (void)walk;
    return remove(path);
}

static int remove_dir(const char *path)
{
    nftw(path, open_up, 16, FTW_PHYS);
    return nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* Those of tests that were killed, of which none takes an hour. */
static void remove_stale_dirs(void)
{
    static bool done;
    struct stat info;
    glob_t found;

    if (done)
        return;
    done = true;
    if (glob(SCRATCH "*", GLOB_NOSORT, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *path = found.gl_pathv[i];
        if (lstat(path, &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid() &&
            info.st_mtime < time(NULL) - HOUR_S)
            remove_dir(path);
    }
    globfree(&found);
}

int test_make_dir(void **state)
{
    remove_stale_dirs();
    char *path = strdup(SCRATCH "XXXXXX");
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

int test_remove_dir(void **state)
{
    int status = remove_dir(*state);
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
