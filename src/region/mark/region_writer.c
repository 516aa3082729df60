/* SPDX-License-Identifier: Apache-2.0 */
/* region_writer.c - the files of the inbox, as the measured process opens them, and what a
 * thread does beside storing events: new names, a ring that grows, is full, or cannot be
 * made. */
#include "region/mark/region_writer.h"

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

/* How long a full ring is waited for while nothing is taken out of any ring: a tracker that
 * lives may not have been given a processor among hundreds of busy threads, and when it
 * starts it opens its sensors and the recording first. */
#define PATIENCE_NS (10 * WM_NS_PER_S)
/* A program that tracks itself may be the one that would have to take. */
#define PATIENCE_WITH_ITSELF_NS (2 * WM_NS_PER_S)

/* After so long it is worth while to see whether it does live; and to make a ring again
 * where none could be made. */
#define DOUBT_NS (100 * WM_NS_PER_MS)

/* Naps while it waits. */
enum { NAP_MIN_NS = 50000, NAP_MAX_NS = 10000000 };

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

static void look_at_clock(struct wm_region_target *target)
{
    target->has_clock = target->clock != 0 && target->clock == wm_clock_namespace();
}

int wm_region_target_open(const char *path, struct wm_region_target **ret_target,
                          struct wm_error *err)
{
    char control[WM_RING_PATH_SIZE];

    if (path[0] != '/' || strlen(path) >= WM_FOLDER_SIZE)
        return wm_fail(err, WM_EINVAL, "not the path of an inbox");
    struct wm_region_target *target = calloc(1, sizeof(*target));
    if (!target)
        return wm_fail_memory(err, NULL);
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
    target->clock = target->control->clock;
    look_at_clock(target);
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
    look_at_clock(target);
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

/* A ring for the calling thread, mapped, with its number and size; NULL where none could
 * be made. Its first WM_RING_CAPACITY_MIN slots are there. */
static struct wm_ring *make_ring(struct wm_region_target *target, uint64_t *ret_number,
                                 uint64_t *ret_size)
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

/* Lets go of a ring: its thread has ended, or the process goes on elsewhere. The first of a
 * process stays mapped, and with it the lock that says that the process is alive: what it
 * started by itself may yet be stopped by a thread that has no ring. */
static void leave_ring(struct wm_region_target *target, struct wm_ring *ring, size_t bytes)
{
    atomic_store(&ring->closed_ns, wm_clock_monotonic_ns());
    if (ring == target->first)
        target->is_left = true;
    else
        munmap(ring, bytes);
}

static int open_in(const struct wm_region_target *target, const char *name, int flags)
{
    char path[WM_RING_PATH_SIZE];

    snprintf(path, sizeof(path), "%s/%s", target->path, name);
    return open(path, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

/* Reserves slots up to `capacity`. Without the lock, as all that follows. Since Linux 5.14
 * by touching it in a way that is no signal where there is no memory: a program may have
 * another root folder by now, or no descriptors. */
static bool grow_ring(const struct wm_region_target *target, struct wm_ring *ring,
                      uint64_t number, uint64_t capacity)
{
    char name[24];

    if (madvise(ring, wm_ring_bytes(capacity), WM_POPULATE_WRITE) == 0)
        return true;
    if (errno != EINVAL)
        return false;

    snprintf(name, sizeof(name), "%llu", (unsigned long long)number);
    int fd = open_in(target, name, O_RDWR);
    if (fd < 0)
        return false;
    bool is_grown = reserve(fd, wm_ring_bytes(capacity));
    close(fd);
    return is_grown;
}

bool wm_region_target_has_tracker(const struct wm_region_target *target)
{
    int fd = open_in(target, WM_CONTROL_FILE, O_RDONLY);
    if (fd < 0)
        return true;
    bool is_locked = flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
    close(fd);
    return is_locked;
}

/* Asks the tracker to drain. */
static void wake(const struct wm_region_target *target)
{
    int fd = open_in(target, WM_WAKE_FILE, O_WRONLY);
    if (fd < 0)
        return;
    ssize_t written = write(fd, "", 1);
    (void)written; /* a full pipe wakes as well */
    close(fd);
}

/* The first calls of a number are clocked; how long they are decides for the rest. A name
 * that replaces another continues with its credit: of names that are used once, each call
 * would be a first one. */
enum { FIRST_CALLS = 4 };

static void start_credit(struct wm_region_writer *writer)
{
    for (uint32_t i = 0; i < WM_RING_NAMES; i++) {
        writer->is_clocked[i] = true;
        writer->credit_ns[i] = FIRST_CALLS * WM_REGION_LONG_NS;
    }
}

struct wm_region_writer *wm_region_writer_new(struct wm_region_target *target,
                                              unsigned generation)
{
    struct wm_region_writer *writer = calloc(1, sizeof(*writer));
    if (!writer)
        return NULL;
    writer->generation = generation;
    writer->target = target;
    start_credit(writer);
    target->users++;
    return writer;
}

void wm_region_writer_attach(struct wm_region_writer *writer)
{
    int64_t now_ns = wm_clock_monotonic_ns();
    uint64_t size = 0;

    if (now_ns < writer->retry_ns)
        return;
    writer->retry_ns = now_ns + DOUBT_NS;
    writer->ring = make_ring(writer->target, &writer->number, &size);
    if (!writer->ring)
        return;
    writer->events = (struct wm_ring_event *)((char *)writer->ring + WM_RING_EVENTS_AT);
    writer->mask = WM_RING_CAPACITY_MIN - 1;
    writer->bytes = wm_ring_bytes(size);
    writer->size = size;
    writer->unit = WM_RING_UNIT;
}

void wm_region_writer_free(struct wm_region_writer *writer)
{
    if (!writer)
        return;
    if (writer->ring)
        leave_ring(writer->target, writer->ring, writer->bytes);
    wm_region_target_drop(writer->target);
    free(writer);
}

/* As long as it is filled for the first time it may grow. */
static bool can_grow(const struct wm_region_writer *writer)
{
    return writer->mask + 1 < writer->size;
}

static void grow(struct wm_region_writer *writer)
{
    uint64_t capacity = 2 * (writer->mask + 1);

    if (grow_ring(writer->target, writer->ring, writer->number, capacity)) {
        writer->mask = capacity - 1;
        atomic_store_explicit(&writer->ring->capacity, capacity, memory_order_release);
    } else {
        writer->size = writer->mask + 1;
    }
}

/* Whether `total`, of events and ends to come, fits now. Then `room` is no less. */
static bool fits(struct wm_region_writer *writer, uint64_t total)
{
    uint64_t taken = atomic_load_explicit(&writer->ring->taken, memory_order_acquire);
    uint64_t capacity = writer->mask + 1;

    if (taken > writer->count || total - taken > capacity)
        return false;
    uint64_t half = taken + (can_grow(writer) ? capacity : capacity / 2);
    if (total <= half) {
        writer->room = half;
    } else {
        writer->room = taken + capacity;
        wake(writer->target);
    }
    if (can_grow(writer) && writer->room > capacity)
        writer->room = capacity;
    wm_region_writer_set_limit(writer);
    return true;
}

/* Nobody takes anything out of it any more, or it is damaged. */
static bool is_given_up(const struct wm_region_writer *writer)
{
    return atomic_load_explicit(&writer->ring->taken, memory_order_relaxed) > writer->count;
}

/* All of it, however many signals come in between. */
static void take_nap(long nap_ns)
{
    struct timespec rest = { .tv_nsec = nap_ns };

    while (nanosleep(&rest, &rest) < 0 && errno == EINTR)
        ;
}

/* Until there is room for `total`, or there is no hope of it. Only naps are counted: where
 * so much is running that they take longer, the tracker gets no more of the machine than
 * this thread does. */
static bool wait_for_room(struct wm_region_writer *writer, uint64_t total)
{
    const struct wm_ring_control *control = writer->target->control;
    uint64_t progress = atomic_load(&control->progress);
    int64_t waited_ns = 0, doubt_ns = DOUBT_NS;
    int64_t most_ns = control->pid == getpid() ? PATIENCE_WITH_ITSELF_NS : PATIENCE_NS;
    long nap_ns = NAP_MIN_NS;

    while (waited_ns < most_ns && !atomic_load(&control->is_closed)) {
        wake(writer->target);
        take_nap(nap_ns);
        if (fits(writer, total))
            return true;
        if (is_given_up(writer))
            return false;
        waited_ns += nap_ns;
        nap_ns = nap_ns < NAP_MAX_NS / 2 ? 2 * nap_ns : (long)NAP_MAX_NS;

        /* Events are taken in the order of time, so that this ring's turn comes. */
        uint64_t moved = atomic_load(&control->progress);
        if (moved != progress) {
            waited_ns = 0;
            doubt_ns = DOUBT_NS;
        } else if (waited_ns >= doubt_ns) {
            if (!wm_region_target_has_tracker(writer->target))
                return false;
            doubt_ns += DOUBT_NS;
        }
        progress = moved;
    }
    return false;
}

bool wm_region_writer_has_room(struct wm_region_writer *writer, uint64_t slots)
{
    uint64_t total = writer->count + writer->open + slots;

    while (can_grow(writer) && total > writer->mask + 1)
        grow(writer);
    return total <= writer->room || fits(writer, total);
}

/* Makes sure of room for `slots` events, some of which may be ends that come later. */
static bool make_room(struct wm_region_writer *writer, uint64_t slots)
{
    if (!writer->ring)
        return false;
    if (wm_region_writer_has_room(writer, slots)) {
        writer->has_given_up = false;
        return true;
    }

    /* Once for each time that the ring is full; and what is open may itself be too much. */
    if (writer->has_given_up || writer->open + slots > writer->mask + 1)
        return false;
    if (wait_for_room(writer, writer->count + writer->open + slots))
        return true;
    writer->has_given_up = true;
    return false;
}

static void count_lost(const struct wm_region_writer *writer, uint64_t events)
{
    _Atomic uint64_t *lost =
        writer->ring ? &writer->ring->lost : &writer->target->control->lost;

    atomic_fetch_add_explicit(lost, events, memory_order_relaxed);
}

/* The most that long calls pay in advance: a program's first call may take minutes, and all
 * later ones be short. */
#define CREDIT_MOST_NS WM_NS_PER_S

/* A name whose calls are short, and one of which is long after all, is tried once more. */
void wm_region_writer_learn(struct wm_region_writer *writer,
                            const struct wm_region_frame *frame, int64_t now_ns)
{
    int64_t *credit_ns = &writer->credit_ns[frame->number];
    int64_t length_ns = now_ns - frame->start_ns;

    *credit_ns += length_ns - (frame->cpu_ns < 0 ? 0 : WM_REGION_LONG_NS);
    if (*credit_ns > CREDIT_MOST_NS)
        *credit_ns = CREDIT_MOST_NS;
    if (*credit_ns < 0) /* short calls that were all open at once */
        *credit_ns = 0;
    if (length_ns > WM_REGION_FOLD_LONGEST_NS)
        wm_region_tail_settle(writer);
    writer->is_clocked[frame->number] = *credit_ns >= WM_REGION_LONG_NS;
}

static void add_name(struct wm_region_writer *writer, uint32_t number, const char *name,
                     size_t length)
{
    struct wm_ring_event slot;

    wm_region_writer_add(writer, (int64_t)length,
                         wm_region_writer_what(WM_RING_NAME, number));
    for (size_t at = 0; at < length; at += sizeof(slot)) {
        size_t rest = length - at;
        memset(&slot, 0, sizeof(slot));
        memcpy(&slot, name + at, rest < sizeof(slot) ? rest : sizeof(slot));
        wm_region_writer_add(writer, slot.when_ns, slot.what);
    }
}

/* Before a call of that number, or of none that is known. */
static void look_at_tail(struct wm_region_writer *writer, enum wm_ring_kind kind,
                         uint32_t number)
{
    if (kind == WM_RING_BEGIN && number != WM_REGION_NO_NAME &&
        !writer->is_clocked[number] && writer->unfolded[number] == 0) {
        wm_region_tail_check(writer);
        return;
    }
    if (number != WM_REGION_NO_NAME && writer->unfolded[number] > 0)
        writer->unfolded[number]--;
    wm_region_tail_close(writer);
}

/* Adds a begin, for whose end a slot is kept free, or a start; before it the name if the
 * ring does not know it. */
static bool add_named(struct wm_region_writer *writer, const struct wm_region_mark *mark,
                      uint32_t *ret_number, int64_t *ret_now_ns)
{
    const char *name = mark->name;
    uint64_t slots = 2;

    size_t length = wm_region_name_length(name);
    uint32_t hash = 0, number = wm_region_writer_find(writer, name);
    bool has_place = number != WM_REGION_NO_NAME;
    if (!has_place) {
        hash = wm_region_writer_hash(name, length);
        number = wm_region_writer_find_text(writer, hash, name, length);
    }
    bool is_new = number == WM_REGION_NO_NAME;
    look_at_tail(writer, mark->kind, number);
    if (is_new)
        slots += 1 + wm_ring_slots_of_name(length);
    if (!make_room(writer, slots))
        return false;

    if (is_new)
        number = wm_region_writer_take_number(writer, hash, name, length);
    if (!has_place)
        wm_region_writer_note_place(writer, number, name);
    wm_region_writer_enter(writer);
    int64_t now_ns = wm_region_writer_now();
    if (is_new)
        add_name(writer, number, writer->names[number], length);
    wm_region_writer_add(writer, now_ns, wm_region_writer_what(mark->kind, number));
    if (mark->kind == WM_RING_START)
        wm_region_writer_add(writer, (int64_t)mark->parent, mark->id);
    wm_region_writer_publish(writer);
    *ret_number = number;
    *ret_now_ns = now_ns;
    return true;
}

enum { LEVELS = 64 };

/* Whether the innermost is in the ring. */
static bool pop_level(struct wm_region_writer *writer)
{
    if (--writer->level_count >= LEVELS)
        return false;
    bool is_there = writer->levels & 1;
    writer->levels >>= 1;
    return is_there;
}

static void begin(struct wm_region_writer *writer, const struct wm_region_mark *mark)
{
    bool is_deep = writer->level_count >= LEVELS;
    uint32_t number;
    int64_t now_ns;
    bool is_there = !is_deep && add_named(writer, mark, &number, &now_ns);

    if (is_there)
        wm_region_writer_push(writer, mark->name, number, now_ns);
    else
        count_lost(writer, 2);
    if (is_there && writer->level_count == 0)
        return;
    writer->level_count++;
    if (!is_deep)
        writer->levels = writer->levels << 1 | is_there;
}

/* Ends the call on which so many lie. One too many: the inbox is told all the same. */
static void end_below(struct wm_region_writer *writer, uint64_t above)
{
    bool is_there = above < writer->open;

    wm_region_tail_close(writer);
    if (!is_there && !make_room(writer, 1)) {
        count_lost(writer, 1);
        return;
    }
    wm_region_writer_enter(writer);
    wm_region_writer_add(writer, wm_region_writer_now(),
                         wm_region_writer_what(WM_RING_LEAVE, above));
    wm_region_writer_publish(writer);
    if (!is_there)
        return;
    struct wm_region_frame *frame = &writer->frames[--writer->open - above];
    memmove(frame, frame + 1, above * sizeof(*frame));
}

static void end(struct wm_region_writer *writer)
{
    if (writer->level_count > 0 && !pop_level(writer))
        return;
    if (writer->open == 0) {
        end_below(writer, 0);
        return;
    }
    wm_region_tail_end(writer);
}

/* Which call it is is known of those in `frames`, if all of them are in the ring; else it
 * counts as the innermost. */
static void leave(struct wm_region_writer *writer, const char *name)
{
    uint64_t above = 0;

    if (writer->level_count > 0 || writer->open > WM_REGION_FRAMES) {
        end(writer);
        return;
    }
    while (above < writer->open && writer->frames[writer->open - 1 - above].name != name)
        above++;
    if (above == 0)
        end(writer);
    else
        end_below(writer, above);
}

static bool start(struct wm_region_writer *writer, const struct wm_region_mark *mark)
{
    uint64_t id = mark->id;
    uint32_t number;
    int64_t now_ns;

    if (!add_named(writer, mark, &number, &now_ns)) {
        count_lost(writer, 2);
        return false;
    }
    writer->started[id % WM_REGION_FRAMES].id = id;
    writer->started[id % WM_REGION_FRAMES].frame = (struct wm_region_frame) {
        .start_ns = now_ns,
        .cpu_ns = writer->is_clocked[number] ? wm_region_writer_cpu_now() : -1,
        .number = number,
    };
    return true;
}

/* One that another thread started, or this one long ago, is not clocked. */
static void stop(struct wm_region_writer *writer, uint64_t id)
{
    const struct wm_region_frame *frame = &writer->started[id % WM_REGION_FRAMES].frame;
    bool is_known = writer->started[id % WM_REGION_FRAMES].id == id;
    uint64_t clocked = is_known ? wm_region_writer_clocked(frame) : 0;

    wm_region_tail_close(writer);
    if (!make_room(writer, 2)) {
        count_lost(writer, 1);
        return;
    }
    wm_region_writer_enter(writer);
    int64_t now_ns = wm_region_writer_now();
    wm_region_writer_add(writer, now_ns, wm_region_writer_what(WM_RING_STOP, id));
    wm_region_writer_add(writer, 0, clocked);
    wm_region_writer_publish(writer);
    if (is_known && (clocked != 0 || now_ns - frame->start_ns >= WM_REGION_LONG_NS))
        wm_region_writer_learn(writer, frame, now_ns);
}

bool wm_region_writer_mark(struct wm_region_writer *writer,
                           const struct wm_region_mark *mark)
{
    bool is_there = true;

    if (mark->kind == WM_RING_BEGIN)
        begin(writer, mark);
    else if (mark->kind == WM_RING_END)
        end(writer);
    else if (mark->kind == WM_RING_LEAVE)
        leave(writer, mark->name);
    else if (mark->kind == WM_RING_START)
        is_there = start(writer, mark);
    else
        stop(writer, mark->id);
    return is_there;
}
