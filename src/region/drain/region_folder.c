/* SPDX-License-Identifier: Apache-2.0 */
/* region_folder.c - where rings are: one folder for each tracker. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "base/base_file.h"
#include "region/drain/region_shared.h"
#include "region/drain/region_source.h"

/* What has just been made is not locked yet; its tracker needs far less than this. */
enum { FRESH_S = 60 };

/* "wattmeter-<uid>-" */
static int prefix(char *text, size_t size)
{
    return snprintf(text, size, WM_INBOX_PREFIX "%lu-", (unsigned long)geteuid());
}

/* Not by way of a link: what is behind that is not ours to remove. */
static DIR *open_folder(int parent, const char *name)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (fd >= 0 && !dir)
        close(fd);
    return dir;
}

static int remove_one(const char *path, const struct stat *info, int type,
                      struct FTW *where)
{
    (void)info, (void)type, (void)where;
    remove(path);
    return 0;
}

/* With the folders that others made in it. */
static void remove_all(const char *path)
{
    enum { DESCRIPTORS = 4 };

    nftw(path, remove_one, DESCRIPTORS, FTW_DEPTH | FTW_PHYS);
}

/* A tracker that lives has its control locked. */
static bool is_dead(int fd)
{
    int control =
        openat(fd, WM_CONTROL_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (control < 0)
        return errno == ENOENT;
    bool is_free = flock(control, LOCK_SH | LOCK_NB) == 0;
    close(control);
    return is_free;
}

/* Whether it is a folder of a dead tracker of this user's. */
static bool is_stale(int parent, const char *name, int64_t now_s)
{
    struct stat info;

    DIR *dir = open_folder(parent, name);
    if (!dir)
        return false;
    /* In this order: a tracker that has just removed its control has made the folder fresh,
     * and its next one may bear the same name. */
    bool is_stale = is_dead(dirfd(dir)) && fstat(dirfd(dir), &info) == 0 &&
                    info.st_uid == geteuid() && now_s - info.st_mtime >= FRESH_S;
    closedir(dir);
    return is_stale;
}

/* Whether it is a process's link (region_link.h) to a folder that is gone. */
static bool is_stale_link(int parent, const char *name, int64_t now_s)
{
    struct stat info, target;

    return fstatat(parent, name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISLNK(info.st_mode) && info.st_uid == geteuid() &&
           now_s - info.st_mtime >= FRESH_S && fstatat(parent, name, &target, 0) < 0;
}

/* A program that still writes there, into rings that it has mapped, is not to wait for room
 * in them. */
static void close_stale(const char *folder)
{
    const uint32_t closed = 1;
    char path[WM_RING_PATH_SIZE];

    snprintf(path, sizeof(path), "%s/" WM_CONTROL_FILE, folder);
    int fd = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t written = pwrite(fd, &closed, sizeof(closed),
                             (off_t)offsetof(struct wm_ring_control, is_closed));
    (void)written; /* it waits in vain then */
    close(fd);
}

void wm_region_folder_remove_stale(void)
{
    char start[64], path[sizeof(WM_MEMORY_FOLDER) + NAME_MAX + 1];
    size_t length = (size_t)prefix(start, sizeof(start));
    int64_t now_s = wm_clock_unix_ns() / WM_NS_PER_S;
    const struct dirent *entry;

    DIR *dir = opendir(WM_MEMORY_FOLDER);
    if (!dir)
        return;
    while ((entry = readdir(dir))) {
        if (strncmp(entry->d_name, start, length) != 0)
            continue;
        if (is_stale(dirfd(dir), entry->d_name, now_s)) {
            snprintf(path, sizeof(path), WM_MEMORY_FOLDER "/%s", entry->d_name);
            close_stale(path);
            remove_all(path);
        } else if (is_stale_link(dirfd(dir), entry->d_name, now_s)) {
            unlinkat(dirfd(dir), entry->d_name, 0);
        }
    }
    closedir(dir);
}

/* Makes `folder->path` under `parent`: the one that this thread's last tracker had, if that
 * is over. The path is in the environment, and what a variable has once been is kept by the
 * C library for ever. */
static int make_under(struct wm_region_folder *folder, const char *parent)
{
    static _Thread_local char last[WM_FOLDER_SIZE];
    const size_t under = strlen(parent);
    char start[64];

    if (strncmp(last, parent, under) == 0 && last[under] == '/' && mkdir(last, 0700) == 0) {
        snprintf(folder->path, sizeof(folder->path), "%s", last);
        return 0;
    }
    prefix(start, sizeof(start));
    int length = snprintf(folder->path, sizeof(folder->path), "%s/%sXXXXXX", parent, start);
    if (length < 0 || (size_t)length >= sizeof(folder->path) || parent[0] != '/') {
        errno = ENAMETOOLONG;
        return -1;
    }
    if (!mkdtemp(folder->path))
        return -1;
    snprintf(last, sizeof(last), "%s", folder->path);
    return 0;
}

static int map_control(struct wm_region_folder *folder, int fd, struct wm_error *err)
{
    const struct wm_ring_control new = {
        .magic = WM_CONTROL_MAGIC,
        .version = WM_RING_VERSION,
        .pid = getpid(),
        .clock = wm_clock_namespace(),
    };
    size_t size = sizeof(new);

    errno = EFBIG;
    if (wm_file_size_limit() < size || flock(fd, LOCK_EX | LOCK_NB) < 0)
        return wm_fail_errno(err, folder->path);
    errno = ENOSPC;
    if (pwrite(fd, &new, size, 0) != (ssize_t)size)
        return wm_fail_errno(err, folder->path);
    void *control = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (control == MAP_FAILED)
        return wm_fail_errno(err, folder->path);

    folder->control = control;
    if (madvise(control, size, MADV_DONTFORK) < 0)
        return wm_fail_errno(err, folder->path);
    return WM_OK;
}

/* The mapping holds the lock, as with rings: a child would have the descriptor, and so the
 * lock when we are dead. */
static int make_control(struct wm_region_folder *folder, struct wm_error *err)
{
    char path[WM_RING_PATH_SIZE];

    snprintf(path, sizeof(path), "%s/" WM_CONTROL_FILE, folder->path);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return wm_fail_errno(err, folder->path);
    int status = map_control(folder, fd, err);
    close(fd);
    return status;
}

/* Open for writing too: so it never is at its end, and never without a reader. */
int wm_region_folder_open(struct wm_region_folder *folder, struct wm_error *err)
{
    folder->dir = open_folder(AT_FDCWD, folder->path);
    if (folder->dir && mkfifoat(dirfd(folder->dir), WM_WAKE_FILE, 0600) == 0)
        folder->wake_fd = openat(dirfd(folder->dir), WM_WAKE_FILE,
                                 O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (folder->wake_fd >= 0)
        return WM_OK;
    return errno == ENOENT ? wm_fail(err, WM_EIO, "somebody removed %s", folder->path)
                           : wm_fail_errno(err, folder->path);
}

int wm_region_folder_make(struct wm_region_folder *folder, struct wm_error *err)
{
    const char *parent = WM_MEMORY_FOLDER;

    *folder = (struct wm_region_folder) { .wake_fd = -1 };
    if (make_under(folder, parent) < 0) {
        parent = wm_env_trusted("TMPDIR", "/tmp");
        if (make_under(folder, parent) < 0)
            return wm_fail_errno(err, parent);
    }
    int status = make_control(folder, err);
    if (status < 0)
        wm_region_folder_remove(folder);
    return status;
}

void wm_region_folder_end_waits(struct wm_region_folder *folder)
{
    const uint32_t closed = 1;

    if (folder->control)
        wm_shared_write(&folder->control->is_closed, &closed, sizeof(closed));
}

void wm_region_folder_remove(struct wm_region_folder *folder)
{
    wm_region_folder_end_waits(folder);
    if (folder->dir) { /* mostly that is all */
        unlinkat(dirfd(folder->dir), WM_CONTROL_FILE, 0);
        unlinkat(dirfd(folder->dir), WM_WAKE_FILE, 0);
    }
    if (rmdir(folder->path) < 0)
        remove_all(folder->path);
    if (folder->control)
        munmap(folder->control, sizeof(*folder->control));
    if (folder->dir)
        closedir(folder->dir);
    if (folder->wake_fd >= 0)
        close(folder->wake_fd);
    *folder = (struct wm_region_folder) { .wake_fd = -1 };
}
