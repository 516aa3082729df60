/* SPDX-License-Identifier: Apache-2.0 */
/* region_target.c - the files of the inbox, as the measured process opens them. */
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
#include "region/mark/region_writer.h"

/* MADV_POPULATE_WRITE, which older headers lack. */
enum { WM_POPULATE_WRITE = 23 };

static int map_control(int fd, const char *path, struct wm_ring_control **ret_control,
                       struct wm_error *err)
{
    struct stat info;

    if (fstat(fd, &info) < 0)
        return wm_fail_errno(err, path);
    if (!S_ISREG(info.st_mode) || info.st_uid != geteuid())
        return wm_fail(err, WM_EACCES, "%s: not an inbox of this user's", path);
    if (info.st_size < (off_t)sizeof(struct wm_ring_control))
        return wm_fail(err, WM_EFORMAT, "%s: not an inbox", path);

    struct wm_ring_control *control =
        mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (control == MAP_FAILED)
        return wm_fail_errno(err, path);
    if (control->magic != WM_CONTROL_MAGIC || control->version != WM_RING_VERSION) {
        munmap(control, sizeof(*control));
        return wm_fail(err, WM_EFORMAT, "%s: not an inbox of version %d", path,
                       WM_RING_VERSION);
    }
    *ret_control = control;
    return WM_OK;
}

int wm_region_target_open(const char *path, struct wm_region_target **ret_target,
                          struct wm_error *err)
{
    char control[WM_RING_PATH_SIZE];

    if (path[0] != '/' || strlen(path) >= WM_FOLDER_SIZE)
        return wm_fail(err, WM_EINVAL, "not the path of an inbox");
    struct wm_region_target *target = calloc(1, sizeof(*target));
    if (!target)
        return wm_fail(err, WM_ENOMEM, "out of memory");
    memcpy(target->path, path, strlen(path));
    target->users = 1;

    snprintf(control, sizeof(control), "%s/" WM_CONTROL_FILE, path);
    int fd = open(control, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int status = fd < 0 ? wm_fail_errno(err, control)
                        : map_control(fd, control, &target->control, err);
    if (fd >= 0)
        close(fd);
    if (status < 0) {
        free(target);
        return status;
    }
    *ret_target = target;
    return WM_OK;
}

void wm_region_target_drop(struct wm_region_target *target)
{
    if (--target->users > 0)
        return;
    if (target->is_left)
        munmap(target->first, target->first_bytes);
    munmap(target->control, sizeof(*target->control));
    free(target);
}

void wm_region_target_forget(struct wm_region_target *target)
{
    target->users = 1;
    target->first = NULL;
    target->is_left = false;
}

/* The more there are, the less each has: 64 large ones take 64 MiB, which is all that
 * /dev/shm has in many a container. Less than WM_RING_CAPACITY_MIN where files may not be
 * that large. */
static uint64_t size_of_ring(const struct wm_ring_control *control, uint64_t number)
{
    uint64_t others = number - atomic_load(&control->rings_gone);
    uint64_t limit = wm_file_size_limit(), size = WM_RING_SIZE_MAX;

    if (others >= 64)
        size = others < 256 ? WM_RING_SIZE_MAX / 4 : WM_RING_SIZE_MAX / 16;
    while (size >= WM_RING_CAPACITY_MIN && wm_ring_bytes(size) > limit)
        size /= 2;
    return size;
}

static bool reserve(int fd, size_t bytes)
{
    do
        errno = posix_fallocate(fd, 0, (off_t)bytes);
    while (errno == EINTR);
    return errno == 0;
}

static struct wm_ring *map_ring(int fd, uint64_t size)
{
    size_t bytes = wm_ring_bytes(size);

    if (flock(fd, LOCK_EX | LOCK_NB) < 0 || ftruncate(fd, (off_t)bytes) < 0 ||
        !reserve(fd, wm_ring_bytes(WM_RING_CAPACITY_MIN)))
        return NULL;
    struct wm_ring *ring = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (ring == MAP_FAILED)
        return NULL;
    if (madvise(ring, bytes, MADV_DONTFORK) < 0) {
        munmap(ring, bytes);
        return NULL;
    }
    return ring;
}

static struct wm_ring *fill_ring(struct wm_region_target *target, int fd, uint64_t size)
{
    struct wm_ring *ring = map_ring(fd, size);
    if (!ring)
        return NULL;
    if (!target->first)
        target->process = (uint32_t)atomic_fetch_add(&target->control->processes, 1);
    ring->magic = WM_RING_MAGIC;
    ring->version = WM_RING_VERSION;
    ring->pid = getpid();
    ring->tid = gettid();
    ring->process = target->process;
    ring->size = size;
    atomic_store(&ring->capacity, WM_RING_CAPACITY_MIN);
    return ring;
}

/* Under its own name when it is ready; NULL, with errno set, where it cannot be made. */
static struct wm_ring *make_file(struct wm_region_target *target, uint64_t number,
                                 uint64_t size)
{
    char path[WM_RING_PATH_SIZE], made[WM_RING_PATH_SIZE];

    snprintf(path, sizeof(path), "%s/%llu", target->path, (unsigned long long)number);
    snprintf(made, sizeof(made), "%s/.%llu", target->path, (unsigned long long)number);
    int fd = open(made, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return NULL;
    struct wm_ring *ring = fill_ring(target, fd, size);
    close(fd);
    if (ring && rename(made, path) < 0) {
        munmap(ring, wm_ring_bytes(size));
        ring = NULL;
    }
    if (!ring) {
        int why = errno;
        unlink(made);
        errno = why;
    }
    return ring;
}

struct wm_ring *wm_region_target_make_ring(struct wm_region_target *target,
                                           uint64_t *ret_number, uint64_t *ret_size)
{
    uint64_t number = atomic_fetch_add(&target->control->rings_made, 1);
    uint64_t size = size_of_ring(target->control, number);
    struct wm_ring *ring = NULL;

    errno = EFBIG;
    if (number < WM_RINGS_MAX && size >= WM_RING_CAPACITY_MIN)
        ring = make_file(target, number, size);
    if (!ring) {
        atomic_store(&target->control->no_ring_errno, (uint32_t)errno);
        return NULL;
    }
    atomic_fetch_add(&target->control->rings_ready, 1);
    if (!target->first) {
        target->first = ring;
        target->first_bytes = wm_ring_bytes(size);
    }
    *ret_number = number;
    *ret_size = size;
    return ring;
}

void wm_region_target_leave_ring(struct wm_region_target *target, struct wm_ring *ring,
                                 size_t bytes, bool is_kept)
{
    atomic_store(&ring->closed_ns, wm_clock_monotonic_ns());
    if (is_kept && ring == target->first)
        target->is_left = true;
    else
        munmap(ring, bytes);
}

/* Since Linux 5.14 by touching it in a way that is no signal where there is no memory: a
 * program may have another root folder by now, or no descriptors. */
bool wm_region_target_grow_ring(const struct wm_region_target *target, struct wm_ring *ring,
                                uint64_t number, uint64_t capacity)
{
    char path[WM_RING_PATH_SIZE];

    if (madvise(ring, wm_ring_bytes(capacity), WM_POPULATE_WRITE) == 0)
        return true;
    if (errno != EINVAL)
        return false;

    snprintf(path, sizeof(path), "%s/%llu", target->path, (unsigned long long)number);
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool is_grown = reserve(fd, wm_ring_bytes(capacity));
    close(fd);
    return is_grown;
}

bool wm_region_target_has_tracker(const struct wm_region_target *target)
{
    char path[WM_RING_PATH_SIZE];

    snprintf(path, sizeof(path), "%s/" WM_CONTROL_FILE, target->path);
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return true;
    bool is_locked = flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
    close(fd);
    return is_locked;
}

void wm_region_target_wake(const struct wm_region_target *target)
{
    char path[WM_RING_PATH_SIZE];

    snprintf(path, sizeof(path), "%s/" WM_WAKE_FILE, target->path);
    int fd = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t written = write(fd, "", 1);
    (void)written; /* a full pipe wakes as well */
    close(fd);
}
