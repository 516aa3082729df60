/* SPDX-License-Identifier: Apache-2.0 */
/* base_file.c - reading small files and the environment, and new files until they are
 * whole. */
#include "base/base_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "base/base_text.h"
#include "base/base_utf8.h"

int wm_file_open_at(int dir, const char *path)
{
    int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    return fd < 0 ? -errno : fd;
}

ssize_t wm_file_reread(int fd, char *text, size_t size)
{
    ssize_t length;

    do
        length = pread(fd, text, size - 1, 0);
    while (length < 0 && errno == EINTR);
    if (length < 0)
        return -errno;
    text[length] = '\0';
    return length;
}

ssize_t wm_file_read_at(int dir, const char *path, char *text, size_t size)
{
    size_t length = 0;
    ssize_t got = 0;

    int fd = wm_file_open_at(dir, path);
    if (fd < 0)
        return fd;

    while (length + 1 < size) {
        got = read(fd, text + length, size - 1 - length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        length += (size_t)got;
    }
    int number = errno;
    close(fd);
    if (got < 0)
        return -number;
    text[length] = '\0';
    return (ssize_t)length;
}

bool wm_file_read_line(int dir, const char *path, char *line, size_t size)
{
    char text[256];

    line[0] = '\0';
    return wm_file_read_at(dir, path, text, sizeof(text)) > 0 &&
           wm_text_line(line, size, text) > 0;
}

void wm_file_link_name(int dir, const char *path, char *name, size_t size)
{
    char target[PATH_MAX];
    ssize_t length = readlinkat(dir, path, target, sizeof(target) - 1);

    target[length > 0 ? length : 0] = '\0';
    const char *slash = strrchr(target, '/');
    const char *base = slash ? slash + 1 : target;
    wm_text_utf8(name, size, base, strlen(base));
}

DIR *wm_file_open_folder(int dir, const char *path)
{
    int fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return NULL;

    DIR *folder = fdopendir(fd);
    if (!folder) {
        int number = errno;
        close(fd);
        errno = number;
    }
    return folder;
}

int wm_file_slurp(const char *path, size_t limit, char **ret_text, size_t *ret_length,
                  struct wm_error *err)
{
    char *text = NULL;
    size_t length = 0, room = 0;
    int status = WM_OK;

    int fd = wm_file_open_at(AT_FDCWD, path);
    if (fd < 0) {
        errno = -fd;
        return wm_fail_errno(err, path);
    }

    for (;;) {
        if (length + 1 >= room) {
            room = room ? room * 2 : 4096;
            char *grown = realloc(text, room);
            if (!grown) {
                status = wm_fail_memory(err, path);
                goto out;
            }
            text = grown;
        }
        ssize_t got = read(fd, text + length, room - 1 - length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            status = wm_fail_errno(err, path);
            goto out;
        }
        if (got == 0)
            break;
        length += (size_t)got;
        if (length > limit) {
            status = wm_fail(err, WM_EFORMAT, "%s: larger than %zu bytes", path, limit);
            goto out;
        }
    }
    text[length] = '\0';
    *ret_text = text;
    *ret_length = length;
    text = NULL;

out:
    free(text);
    close(fd);
    return status;
}

int wm_file_head(const char *path, char *head, size_t size, size_t *ret_length,
                 struct wm_error *err)
{
    struct stat info;

    /* Asked for before it is opened: a pipe would wait for its writer. */
    if (stat(path, &info) < 0)
        return wm_fail_errno(err, path);
    if (!S_ISREG(info.st_mode))
        return wm_fail(err, WM_EFORMAT, "%s: %s", path,
                       S_ISDIR(info.st_mode) ? "is a folder" : "not a regular file");
    int fd = wm_file_open_at(AT_FDCWD, path);
    if (fd < 0) {
        errno = -fd;
        return wm_fail_errno(err, path);
    }
    ssize_t got = pread(fd, head, size, 0);
    int status = got < 0 ? wm_fail_errno(err, path) : WM_OK;
    close(fd);
    if (status == WM_OK)
        *ret_length = (size_t)got;
    return status;
}

uint64_t wm_file_size_limit(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_FSIZE, &limit) == 0 ? limit.rlim_cur : UINT64_MAX;
}

bool wm_file_is_same(const char *path, const char *other)
{
    struct stat one, two;

    if (strcmp(path, other) == 0)
        return true;
    return stat(path, &one) == 0 && stat(other, &two) == 0 && one.st_dev == two.st_dev &&
           one.st_ino == two.st_ino;
}

size_t wm_file_folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? (size_t)(slash - path) + 1 : 0;
}

char *wm_file_draft_name(const char *path)
{
    char *name;

    if (asprintf(&name, "%.*s.wattmeter-new-%ld-%" PRId64, (int)wm_file_folder_length(path),
                 path, (long)getpid(), wm_clock_monotonic_ns()) < 0)
        return NULL;
    return name;
}

int wm_file_make_draft(const char *path, char **ret_draft, struct wm_error *err)
{
    char *draft = wm_file_draft_name(path);

    if (!draft)
        return wm_fail_memory(err, wm_text_path(path));
    int fd = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0) {
        int status = wm_fail_errno(err, wm_text_path(path));
        free(draft);
        return status;
    }
    close(fd);
    *ret_draft = draft;
    return WM_OK;
}

int wm_file_give_name(const char *draft, const char *path, struct wm_error *err)
{
    struct stat info;

    /* Not every file system can do both in one step. */
    int result = renameat2(AT_FDCWD, draft, AT_FDCWD, path, RENAME_NOREPLACE);
    if (result < 0 && (errno == EINVAL || errno == ENOSYS)) {
        errno = EEXIST;
        result = lstat(path, &info) == 0 ? -1 : rename(draft, path);
    }
    if (result == 0)
        return WM_OK;
    if (errno == EEXIST)
        return wm_fail(err, WM_EEXIST, "%s: there is a file already", wm_text_path(path));
    return wm_fail_errno(err, wm_text_path(path));
}

static bool write_all(int fd, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t put = write(fd, text, length);
        if (put < 0 && errno != EINTR)
            return false;
        if (put > 0) {
            text += put;
            length -= (size_t)put;
        }
    }
    return true;
}

/* So that the disk has the name, too. */
static bool sync_folder(const char *path)
{
    char folder[4096];

    snprintf(folder, sizeof(folder), "%.*s.", (int)wm_file_folder_length(path), path);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool done = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    return done;
}

int wm_file_replace(const char *path, const char *text, size_t length, struct wm_error *err)
{
    char *draft;
    int status = wm_file_make_draft(path, &draft, err);

    if (status < 0)
        return status;
    int fd = open(draft, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    bool done = fd >= 0 && write_all(fd, text, length) && fsync(fd) == 0 &&
                rename(draft, path) == 0 && sync_folder(path);
    if (!done) {
        status = wm_fail_errno(err, wm_text_path(path));
        unlink(draft);
    }
    if (fd >= 0)
        close(fd);
    free(draft);
    return status;
}

int wm_file_set(int dir, const char *path, const char *shown, const char *text,
                struct wm_error *err)
{
    size_t length = strlen(text);
    int fd = openat(dir, path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY);
    bool done = fd >= 0 && write(fd, text, length) == (ssize_t)length;
    int number = errno;

    if (fd >= 0)
        close(fd);
    if (done)
        return WM_OK;
    errno = number;
    if (number == EACCES || number == EPERM)
        return wm_fail(err, WM_EACCES,
                       "setting this takes the right to write %s: run it with sudo",
                       wm_text_path(shown));
    return wm_fail_errno(err, wm_text_path(shown));
}

char *wm_file_state_folder(void)
{
    const char *base = wm_env_trusted("XDG_STATE_HOME", NULL);
    const char *home = wm_env_trusted("HOME", NULL);
    char *folder = NULL;

    if (base && base[0] == '/')
        return asprintf(&folder, "%s/wattmeter", base) < 0 ? NULL : folder;
    if (home && home[0] == '/')
        return asprintf(&folder, "%s/.local/state/wattmeter", home) < 0 ? NULL : folder;
    return NULL;
}

void wm_file_make_folders(char *folder, unsigned mode)
{
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(folder, mode);
        *slash = '/';
    }
    mkdir(folder, mode);
}

const char *wm_env(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value && value[0] ? value : otherwise;
}

const char *wm_env_trusted(const char *name, const char *otherwise)
{
    return getauxval(AT_SECURE) ? otherwise : wm_env(name, otherwise);
}

char *const *wm_env_all(void)
{
    return environ;
}
