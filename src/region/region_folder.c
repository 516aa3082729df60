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

/* What is left behind may be asked for, and a program may go on to fill it; but it is
 * memory that nobody else has. What has just been made, or left, is let alone. */
enum { STALE_S = 24 * 60 * 60, FRESH_S = 60 };
#define STALE_BYTES_MAX ((uint64_t)64 << 20)

/* Of what a program may have put there beside. */
enum { DEPTH_MAX = 16 };

/* "wattmeter-<uid>-" */
static int prefix(char *text, size_t size)
{
    return snprintf(text, size, WM_INBOX_PREFIX "%lu-", (unsigned long)geteuid());
}

static void remove_files(int fd, int depth);

static void remove_folder(int parent, const char *name, int depth)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return;
    remove_files(fd, depth);
    close(fd);
    unlinkat(parent, name, AT_REMOVEDIR);
}

/* Folders that others made in it go too, up to a depth that nobody needs. */
static void remove_files(int fd, int depth)
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
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            unlinkat(fd, entry->d_name, 0) < 0 && errno == EISDIR && depth < DEPTH_MAX)
            remove_folder(fd, entry->d_name, depth + 1);
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

static uint64_t bytes_in(int fd)
{
    const struct dirent *entry;
    struct stat info;
    uint64_t bytes = 0;

    int other = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = other < 0 ? NULL : fdopendir(other);
    if (!dir) {
        if (other >= 0)
            close(other);
        return 0;
    }
    while ((entry = readdir(dir)))
        if (fstatat(fd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0)
            bytes += (uint64_t)info.st_blocks * 512;
    closedir(dir);
    return bytes;
}

/* A folder of a dead tracker. */
struct stale {
    char name[64];
    int64_t age_s;
    uint64_t bytes;
};

static bool is_stale(int parent, const char *name, int64_t now_s, struct stale *ret_stale)
{
    struct stat info;

    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool is_ours = fstat(fd, &info) == 0 && info.st_uid == geteuid() &&
                   strlen(name) < sizeof(ret_stale->name) &&
                   now_s - info.st_mtime >= FRESH_S && is_dead(fd);
    if (is_ours) {
        snprintf(ret_stale->name, sizeof(ret_stale->name), "%s", name);
        ret_stale->age_s = now_s - info.st_mtime;
        ret_stale->bytes = bytes_in(fd);
    }
    close(fd);
    return is_ours;
}

/* With what can be had; more may be found the next time. The caller frees it. */
static struct stale *find_stale(DIR *dir, size_t *ret_count)
{
    char start[64];
    size_t length = (size_t)prefix(start, sizeof(start)), count = 0, room = 0;
    int64_t now_s = wm_clock_unix_ns() / WM_NS_PER_S;
    const struct dirent *entry;
    struct stale *all = NULL;

    while ((entry = readdir(dir))) {
        if (strncmp(entry->d_name, start, length) != 0)
            continue;
        if (count == room) {
            struct stale *grown = realloc(all, (2 * room + 16) * sizeof(*all));
            if (!grown)
                break;
            all = grown;
            room = 2 * room + 16;
        }
        count += is_stale(dirfd(dir), entry->d_name, now_s, &all[count]);
    }
    *ret_count = count;
    return all;
}

static int by_age(const void *a, const void *b)
{
    const struct stale *x = a, *y = b;

    return (x->age_s > y->age_s) - (x->age_s < y->age_s);
}

/* The newest is kept for its day, however much it has. */
static void remove_stale(const char *parent)
{
    uint64_t bytes = 0;
    size_t count;

    DIR *dir = opendir(parent);
    if (!dir)
        return;
    struct stale *all = find_stale(dir, &count);
    if (count > 0)
        qsort(all, count, sizeof(*all), by_age);
    for (size_t i = 0; i < count; i++) {
        bytes += all[i].bytes;
        if (all[i].age_s > STALE_S || (i > 0 && bytes > STALE_BYTES_MAX))
            remove_folder(dirfd(dir), all[i].name, 0);
    }
    free(all);
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

static int map_control(struct wm_region_folder *folder, int fd, struct wm_error *err)
{
    size_t size = sizeof(*folder->control);

    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return wm_fail_errno(err, folder->path);
    errno = posix_fallocate(fd, 0, (off_t)size);
    if (errno != 0)
        return wm_fail_errno(err, folder->path);
    void *control = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (control == MAP_FAILED)
        return wm_fail_errno(err, folder->path);

    folder->control = control;
    if (madvise(control, size, MADV_DONTFORK) < 0)
        return wm_fail_errno(err, folder->path);
    folder->control->magic = WM_CONTROL_MAGIC;
    folder->control->version = WM_RING_VERSION;
    folder->control->pid = getpid();
    return WM_OK;
}

/* The mapping holds the lock, as with rings: a child would have the descriptor, and so the
 * lock when we are dead. */
static int make_control(struct wm_region_folder *folder, struct wm_error *err)
{
    int fd =
        openat(folder->fd, WM_CONTROL_FILE, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0)
        return wm_fail_errno(err, folder->path);
    int status = map_control(folder, fd, err);
    close(fd);
    return status;
}

/* Open for writing too: so it never is at its end, and never without a reader. */
int wm_region_folder_make_wake(struct wm_region_folder *folder, struct wm_error *err)
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

    *folder = (struct wm_region_folder) { .fd = -1, .wake_fd = -1 };
    if (make_under(folder, parent) < 0) {
        parent = wm_env("TMPDIR", "/tmp");
        if (make_under(folder, parent) < 0)
            return wm_fail_errno(err, parent);
    }
    folder->fd = open(folder->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int status = folder->fd < 0 ? wm_fail_errno(err, folder->path) : WM_OK;
    if (status == WM_OK)
        status = make_control(folder, err);
    if (status < 0)
        wm_region_folder_remove(folder);
    return status;
}

void wm_region_folder_remove(struct wm_region_folder *folder)
{
    if (folder->control)
        atomic_store(&folder->control->is_closed, 1);
    if (folder->fd >= 0) { /* mostly that is all */
        unlinkat(folder->fd, WM_CONTROL_FILE, 0);
        unlinkat(folder->fd, WM_WAKE_FILE, 0);
    }
    if (rmdir(folder->path) < 0 && folder->fd >= 0) {
        remove_files(folder->fd, 0);
        rmdir(folder->path);
    }
    remove_stale(MEMORY_FOLDER); /* not at the start, where a command waits */
    wm_region_folder_close(folder);
}

void wm_region_folder_close(struct wm_region_folder *folder)
{
    const int fds[] = { folder->fd, folder->wake_fd };

    if (folder->control)
        munmap(folder->control, sizeof(*folder->control));
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    *folder = (struct wm_region_folder) { .fd = -1, .wake_fd = -1 };
}
