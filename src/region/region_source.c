/* SPDX-License-Identifier: Apache-2.0 */
/* region_source.c - reading one ring. */
#include "region/region_source.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/base_clock.h"

/* A thread that stopped in the middle of an event is not waited for any longer. */
#define STUCK_NS WM_NS_PER_S

/* MADV_POPULATE_READ, which older headers lack. */
enum { WM_POPULATE_READ = 22 };

static bool is_power_of_two(uint64_t number)
{
    return number > 0 && (number & (number - 1)) == 0;
}

struct file_name {
    char text[16];
};

static struct file_name name_of(uint32_t number)
{
    struct file_name name;

    snprintf(name.text, sizeof(name.text), "%lu", (unsigned long)number);
    return name;
}

static int open_file(int folder, uint32_t number, int mode)
{
    return openat(folder, name_of(number).text, mode | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

/* Pages of tmpfs that were not reserved are made when they are read, for which there may
 * be no room; then it takes SIGBUS. Other file systems have their own ways to reserve. */
static bool is_reserved(const struct stat *info, const struct statfs *system,
                        uint64_t capacity)
{
    return info->st_size >= (off_t)wm_ring_bytes(capacity) &&
           (system->f_type != TMPFS_MAGIC ||
            (uint64_t)info->st_blocks * 512 >= wm_ring_bytes(capacity));
}

/* The head of a ring that can be mapped. */
static bool is_ring(int fd, struct wm_ring *ret_head)
{
    struct stat info;
    struct statfs system;

    return fstat(fd, &info) == 0 && fstatfs(fd, &system) == 0 && S_ISREG(info.st_mode) &&
           info.st_uid == geteuid() &&
           pread(fd, ret_head, sizeof(*ret_head), 0) == (ssize_t)sizeof(*ret_head) &&
           ret_head->magic == WM_RING_MAGIC && ret_head->version == WM_RING_VERSION &&
           is_power_of_two(ret_head->size) && ret_head->size >= WM_RING_CAPACITY_MIN &&
           ret_head->size <= WM_RING_SIZE_MAX &&
           info.st_size >= (off_t)wm_ring_bytes(ret_head->size) &&
           is_reserved(&info, &system, WM_RING_CAPACITY_MIN);
}

static bool is_process(pid_t pid)
{
    return pid > 0 && (kill(pid, 0) == 0 || errno == EPERM);
}

static int map(int fd, uint32_t number, int protection,
               struct wm_region_source **ret_source)
{
    struct wm_ring head;

    if (!is_ring(fd, &head))
        return WM_EFORMAT;
    struct wm_region_source *source = calloc(1, sizeof(*source));
    if (!source)
        return WM_ENOMEM;
    source->bytes = wm_ring_bytes(head.size);
    void *ring = mmap(NULL, source->bytes, protection, MAP_SHARED, fd, 0);
    if (ring == MAP_FAILED) {
        free(source);
        return WM_EIO;
    }
    source->ring = ring;
    source->events = (const struct wm_ring_event *)((const char *)ring + WM_RING_EVENTS_AT);
    source->number = number;
    source->thread = (struct wm_region_thread) {
        .pid = head.pid > 0 ? head.pid : 0,
        .tid = head.tid > 0 ? head.tid : 0,
        .process = head.process,
    };
    source->has_pid = is_process(source->thread.pid);
    source->size = head.size;
    source->capacity = WM_RING_CAPACITY_MIN;
    memset(source->names, 0xff, sizeof(source->names));
    *ret_source = source;
    return WM_OK;
}

static int open_in_mode(int folder, uint32_t number, int mode, int protection,
                        struct wm_region_source **ret_source)
{
    int fd = open_file(folder, number, mode);

    if (fd < 0)
        return errno == ENOMEM || errno == EMFILE || errno == ENFILE ? WM_EIO : WM_EFORMAT;
    int status = map(fd, number, protection, ret_source);
    close(fd);
    return status;
}

int wm_region_source_open(int folder, uint32_t number, struct wm_region_source **ret_source)
{
    return open_in_mode(folder, number, O_RDWR, PROT_READ | PROT_WRITE, ret_source);
}

int wm_region_source_open_left(int folder, uint32_t number,
                               struct wm_region_source **ret_source)
{
    struct wm_region_source *source;

    int status = open_in_mode(folder, number, O_RDONLY, PROT_READ, &source);
    if (status < 0)
        return status;
    source->taken = atomic_load_explicit(&source->ring->taken, memory_order_acquire);
    source->written = source->taken;
    *ret_source = source;
    return WM_OK;
}

void wm_region_source_close(struct wm_region_source *source)
{
    if (!source)
        return;
    munmap(source->ring, source->bytes);
    free(source);
}

static bool is_capacity(const struct wm_region_source *source, uint64_t capacity)
{
    return is_power_of_two(capacity) && capacity >= source->capacity &&
           capacity <= source->size;
}

/* By its name: descriptors are the process's, which may have none left. Where somebody
 * has removed the name, by touching the pages, which takes Linux 5.14. False where it
 * cannot be told now. */
static bool look_at_capacity(struct wm_region_source *source, int folder)
{
    uint64_t capacity = atomic_load_explicit(&source->ring->capacity, memory_order_acquire);
    struct stat info;
    struct statfs system;

    if (capacity == source->capacity)
        return true;
    if (fstatat(folder, name_of(source->number).text, &info, AT_SYMLINK_NOFOLLOW) < 0 ||
        fstatfs(folder, &system) < 0) {
        if (errno != ENOENT)
            return false;
        source->is_broken =
            !is_capacity(source, capacity) ||
            madvise(source->ring, wm_ring_bytes(capacity), WM_POPULATE_READ) < 0;
        if (!source->is_broken)
            source->capacity = capacity;
        return true;
    }
    if (!S_ISREG(info.st_mode) || !is_capacity(source, capacity) ||
        !is_reserved(&info, &system, capacity))
        source->is_broken = true;
    else
        source->capacity = capacity;
    return true;
}

void wm_region_source_look(struct wm_region_source *source, int folder, int64_t now_ns)
{
    if (source->is_broken || source->gone_ns != 0)
        return;
    uint64_t sequence = atomic_load_explicit(&source->ring->sequence, memory_order_acquire);
    uint64_t written = sequence / 2;
    source->lost = atomic_load_explicit(&source->ring->lost, memory_order_relaxed);

    if (written < source->written) {
        source->is_broken = true;
        return;
    }
    /* The capacity was there before what needs it. */
    if ((written - source->taken > source->capacity || written > source->capacity) &&
        !look_at_capacity(source, folder))
        return;
    if (written - source->taken > source->capacity) {
        source->is_broken = true;
        return;
    }
    source->written = written;
    source->is_writing = sequence % 2 != 0;
    if (!source->is_writing || sequence != source->stuck_sequence) {
        source->stuck_sequence = sequence;
        source->stuck_ns = now_ns;
    } else if (now_ns - source->stuck_ns > STUCK_NS) {
        source->is_writing = false;
    }
}

/* Who removes the files takes nothing from a thread that has its ring mapped. Of another
 * PID namespace it is not known whether it lives; then it may. */
static bool is_left_without_name(const struct wm_region_source *source)
{
    return atomic_load(&source->ring->closed_ns) > 0 ||
           (source->has_pid && !is_process(source->thread.pid));
}

void wm_region_source_check(struct wm_region_source *source, int folder, int64_t now_ns)
{
    int fd = open_file(folder, source->number, O_RDWR);
    bool is_gone = fd >= 0 ? flock(fd, LOCK_SH | LOCK_NB) == 0
                           : errno == ENOENT && is_left_without_name(source);

    if (fd >= 0)
        close(fd);
    if (!is_gone)
        return;
    wm_region_source_look(source, folder, now_ns);
    int64_t closed_ns = atomic_load(&source->ring->closed_ns);
    source->gone_ns = closed_ns > 0 && closed_ns < now_ns ? closed_ns : now_ns;
    source->is_writing = false;
}

static const struct wm_ring_event *slot(const struct wm_region_source *source, uint64_t at)
{
    return &source->events[at & (source->capacity - 1)];
}

/* At a name that begins at `taken`. 1, or 0 where it is no name. */
static int take_name(struct wm_region_source *source, uint64_t local, uint64_t length,
                     wm_region_intern *intern, void *context)
{
    char name[WM_REGION_NAME_MAX + sizeof(struct wm_ring_event)];
    uint64_t slots = wm_ring_slots_of_name((size_t)length);

    if (local >= WM_RING_NAMES || length > WM_REGION_NAME_MAX ||
        source->written - source->taken < 1 + slots)
        return 0;
    for (uint64_t i = 0; i < slots; i++)
        memcpy(name + i * sizeof(struct wm_ring_event), slot(source, source->taken + 1 + i),
               sizeof(struct wm_ring_event));
    int status = intern(context, source->number, (uint32_t)local, name, (size_t)length,
                        &source->names[local]);
    if (status < 0)
        return status;
    source->taken += 1 + slots;
    return 1;
}

static int64_t between(int64_t low_ns, int64_t value_ns, int64_t high_ns)
{
    if (value_ns > high_ns)
        value_ns = high_ns;
    return value_ns > low_ns ? value_ns : low_ns;
}

/* The event at `taken`; false where it is none. */
static bool decode(struct wm_region_source *source, const struct wm_ring_event *event)
{
    struct wm_region_event *next = &source->next;
    uint64_t value = event->what >> 8;

    *next = (struct wm_region_event) { .thread = source->number };
    source->next_slots = 1;
    switch (event->what & 0xff) {
    case WM_RING_BEGIN:
        next->kind = WM_REGION_BEGINS;
        break;
    case WM_RING_END:
        next->kind = WM_REGION_ENDS;
        return true;
    case WM_RING_START:
        if (source->written - source->taken < 2)
            return false;
        next->kind = WM_REGION_STARTS;
        next->id =
            __atomic_load_n(&slot(source, source->taken + 1)->what, __ATOMIC_RELAXED);
        source->next_slots = 2;
        break;
    case WM_RING_STOP:
        next->kind = WM_REGION_STOPS;
        next->id = value;
        return true;
    default:
        return false;
    }
    if (value >= WM_RING_NAMES || source->names[value] == WM_REGION_NAMELESS)
        return false;
    next->name = source->names[value];
    return true;
}

int wm_region_source_peek(struct wm_region_source *source, int64_t floor_ns, int64_t now_ns,
                          wm_region_intern *intern, void *context)
{
    if (source->has_next)
        return 1;
    if (floor_ns < source->last_ns)
        floor_ns = source->last_ns;
    while (!source->is_broken && source->taken < source->written) {
        /* Each once: what writes it may not be as careful as we are. */
        const struct wm_ring_event *at = slot(source, source->taken);
        const struct wm_ring_event event = {
            .when_ns = __atomic_load_n(&at->when_ns, __ATOMIC_RELAXED),
            .what = __atomic_load_n(&at->what, __ATOMIC_RELAXED),
        };
        if ((event.what & 0xff) == WM_RING_NAME) {
            int status = take_name(source, event.what >> 8, (uint64_t)event.when_ns, intern,
                                   context);
            if (status < 0)
                return status;
            source->is_broken = status == 0;
        } else if (decode(source, &event)) {
            source->next.when_ns = between(floor_ns, event.when_ns, now_ns);
            source->has_next = true;
            return 1;
        } else {
            source->is_broken = true;
        }
    }
    if (source->is_over || (!source->is_broken && source->gone_ns == 0))
        return 0;
    if (!source->has_spoken) {
        source->is_over = true;
        return 0;
    }
    source->next = (struct wm_region_event) {
        .kind = WM_REGION_GONE,
        .thread = source->number,
        .when_ns = between(floor_ns, source->gone_ns, now_ns),
    };
    source->next_slots = 0;
    source->has_next = true;
    return 1;
}

void wm_region_source_next(struct wm_region_source *source)
{
    source->taken += source->next_slots;
    source->last_ns = source->next.when_ns;
    source->is_over = source->next.kind == WM_REGION_GONE;
    source->has_next = false;
    source->has_spoken = true;
}

void wm_region_source_release(struct wm_region_source *source)
{
    atomic_store_explicit(&source->ring->taken, source->taken, memory_order_release);
}
