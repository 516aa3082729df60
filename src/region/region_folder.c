/* SPDX-License-Identifier: Apache-2.0 */
/* region_folder.c - where rings are: one folder for each tracker. */
#include "region/region_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "base/base_file.h"

/* In memory: what is written there never waits for a disk. */
#define MEMORY_FOLDER "/dev/shm"

/* A program may go on to fill the rings of a tracker that is dead. */
enum { STALE_S = 24 * 60 * 60 };

/* "wattmeter-<uid>-" */
static int prefix(char *text, size_t size)
{
    return snprintf(text, size, WM_INBOX_PREFIX "%lu-", (unsigned long)geteuid());
}

static void remove_files(int fd)
{
    const struct dirent *entry;

    int other = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = other < 0 ? NULL : fdopendir(other);
    if (!dir) {
        if (other >= 0)
            close(other);
        return;
    }
    while ((entry = readdir(dir)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(fd, entry->d_name, 0);
    closedir(dir);
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

static void remove_if_stale(int parent, const char *name)
{
    struct stat info;

    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fstat(fd, &info) == 0 && info.st_uid == geteuid() &&
        info.st_mtime < wm_clock_unix_ns() / WM_NS_PER_S - STALE_S && is_dead(fd)) {
        remove_files(fd);
        unlinkat(parent, name, AT_REMOVEDIR);
    }
    close(fd);
}

static void remove_stale(const char *parent)
{
    char start[64];
    const struct dirent *entry;
    size_t length = (size_t)prefix(start, sizeof(start));

    DIR *dir = opendir(parent);
    if (!dir)
        return;
    while ((entry = readdir(dir)))
        if (strncmp(entry->d_name, start, length) == 0)
            remove_if_stale(dirfd(dir), entry->d_name);
    closedir(dir);
}

/* Makes `folder->path` under `parent`. */
static int make_under(struct wm_region_folder *folder, const char *parent)
{
    char start[64];

    prefix(start, sizeof(start));
    int length = snprintf(folder->path, sizeof(folder->path), "%s/%sXXXXXX", parent, start);
    if (length < 0 || (size_t)length >= sizeof(folder->path) || parent[0] != '/') {
        errno = ENAMETOOLONG;
        return -1;
    }
    return mkdtemp(folder->path) ? 0 : -1;
}

static int make_control(struct wm_region_folder *folder, struct wm_error *err)
{
    size_t size = sizeof(*folder->control);

    folder->control_fd =
        openat(folder->fd, WM_CONTROL_FILE, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (folder->control_fd < 0 || flock(folder->control_fd, LOCK_EX | LOCK_NB) < 0)
        return wm_fail_errno(err, folder->path);
    errno = posix_fallocate(folder->control_fd, 0, (off_t)size);
    if (errno != 0)
        return wm_fail_errno(err, folder->path);
    void *control =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, folder->control_fd, 0);
    if (control == MAP_FAILED)
        return wm_fail_errno(err, folder->path);

    /* A mapping holds the lock too; in a child it would outlive us. */
    madvise(control, size, MADV_DONTFORK);
    folder->control = control;
    folder->control->magic = WM_CONTROL_MAGIC;
    folder->control->version = WM_RING_VERSION;
    folder->control->pid = getpid();
    return WM_OK;
}

/* Open for writing too: so it never is at its end, and never without a reader. */
static int make_wake(struct wm_region_folder *folder, struct wm_error *err)
{
    if (mkfifoat(folder->fd, WM_WAKE_FILE, 0600) < 0)
        return wm_fail_errno(err, folder->path);
    folder->wake_fd =
        openat(folder->fd, WM_WAKE_FILE, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    return folder->wake_fd < 0 ? wm_fail_errno(err, folder->path) : WM_OK;
}

int wm_region_folder_make(struct wm_region_folder *folder, struct wm_error *err)
{
    const char *parent = MEMORY_FOLDER;

    *folder = (struct wm_region_folder) { .fd = -1, .control_fd = -1, .wake_fd = -1 };
    if (make_under(folder, parent) < 0) {
        parent = wm_env("TMPDIR", "/tmp");
        if (make_under(folder, parent) < 0)
            return wm_fail_errno(err, parent);
    }
    folder->fd = open(folder->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int status = folder->fd < 0 ? wm_fail_errno(err, folder->path) : WM_OK;
    if (status == WM_OK)
        status = make_control(folder, err);
    if (status == WM_OK)
        status = make_wake(folder, err);
    if (status < 0)
        wm_region_folder_remove(folder);
    return status;
}

void wm_region_folder_remove(struct wm_region_folder *folder)
{
    if (folder->control)
        atomic_store(&folder->control->is_closed, 1);
    if (folder->fd >= 0)
        remove_files(folder->fd);
    rmdir(folder->path);
    remove_stale(MEMORY_FOLDER); /* not at the start, where a command waits */
    wm_region_folder_close(folder);
}

void wm_region_folder_close(struct wm_region_folder *folder)
{
    const int fds[] = { folder->fd, folder->control_fd, folder->wake_fd };

    if (folder->control)
        munmap(folder->control, sizeof(*folder->control));
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    *folder = (struct wm_region_folder) { .fd = -1, .control_fd = -1, .wake_fd = -1 };
}
