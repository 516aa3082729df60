/* SPDX-License-Identifier: Apache-2.0 */
/* region_source.c - reading one ring. */
#include "region/drain/region_source.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "base/base_shared.h"
#include "base/text/base_text.h"

/* A thread that stopped in the middle of an event is not waited for any longer. */
#define STUCK_NS WM_NS_PER_S

/* Names of all rings together, with what the allocator takes for each: a ring of 20 KiB
 * can tell 2 MiB of them, one after the other. */
#define NAME_BYTES_MAX ((size_t)64 << 20)
#define BYTES_PER_NAME 16

static bool is_power_of_two(uint64_t number)
{
    return number > 0 && (number & (number - 1)) == 0;
}

static int open_file(int folder, uint32_t number)
{
    char name[16];

    snprintf(name, sizeof(name), "%lu", (unsigned long)number);
    return openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

/* The head of a ring that can be mapped. */
static bool is_ring(int fd, struct wm_ring *ret_head)
{
    struct stat info;

    return fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
           pread(fd, ret_head, sizeof(*ret_head), 0) == (ssize_t)sizeof(*ret_head) &&
           ret_head->magic == WM_RING_MAGIC && ret_head->version == WM_RING_VERSION &&
           is_power_of_two(ret_head->size) && ret_head->size >= WM_RING_CAPACITY_MIN &&
           ret_head->size <= WM_RING_SIZE_MAX &&
           info.st_size >= (off_t)wm_ring_bytes(ret_head->size);
}

static bool is_process(pid_t pid)
{
    return pid > 0 && (kill(pid, 0) == 0 || errno == EPERM);
}

static int map(int fd, uint32_t number, int64_t since_ns,
               struct wm_region_source **ret_source)
{
    struct wm_ring head;

    if (!is_ring(fd, &head))
        return WM_EFORMAT;
    struct wm_region_source *source = calloc(1, sizeof(*source));
    if (!source)
        return WM_ENOMEM;
    source->bytes = wm_ring_bytes(head.size);
    void *ring = mmap(NULL, source->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (ring == MAP_FAILED) {
        free(source);
        return WM_EIO;
    }
    source->ring = ring;
    source->events = (const struct wm_ring_event *)((const char *)ring + WM_RING_EVENTS_AT);
    source->number = number;
    source->since_ns = since_ns;
    source->thread = (struct wm_region_thread) {
        .pid = head.pid > 0 ? head.pid : 0,
        .tid = head.tid > 0 ? head.tid : 0,
        .process = head.process,
    };
    source->has_pid = is_process(source->thread.pid);
    source->size = head.size;
    source->capacity = WM_RING_CAPACITY_MIN;
    *ret_source = source;
    return WM_OK;
}

int wm_region_source_open(int folder, uint32_t number, int64_t since_ns, size_t *name_bytes,
                          struct wm_region_source **ret_source)
{
    int fd = open_file(folder, number);

    if (fd < 0)
        return errno == ENOMEM || errno == EMFILE || errno == ENFILE ? WM_EIO : WM_EFORMAT;
    int status = map(fd, number, since_ns, ret_source);
    close(fd);
    if (status == WM_OK)
        (*ret_source)->name_bytes = name_bytes;
    return status;
}

static size_t bytes_of(const char *name)
{
    return name ? strlen(name) + 1 + BYTES_PER_NAME : 0;
}

void wm_region_source_close(struct wm_region_source *source)
{
    if (!source)
        return;
    for (size_t i = 0; i < WM_RING_NAMES; i++) {
        *source->name_bytes -= bytes_of(source->names[i]);
        free(source->names[i]);
    }
    munmap(source->ring, source->bytes);
    free(source);
}

/* As long as it is filled for the first time the ring grows; and the capacity was there
 * before what needs it, so that it is looked at after that. */
static bool look_at_capacity(struct wm_region_source *source, uint64_t written)
{
    uint64_t capacity;

    if (source->capacity == source->size || written <= source->capacity)
        return true;
    if (!wm_shared_read(&capacity, &source->ring->capacity, sizeof(capacity)) ||
        !is_power_of_two(capacity) || capacity < source->capacity ||
        capacity > source->size)
        return false;
    source->capacity = capacity;
    return true;
}

void wm_region_source_look(struct wm_region_source *source, int64_t now_ns)
{
    struct wm_ring head;

    if (source->is_broken || source->gone_ns != 0)
        return;
    source->is_broken = true;
    if (!wm_shared_read(&head, source->ring, sizeof(head)))
        return;
    uint64_t sequence = atomic_load(&head.sequence), written = sequence / 2;
    uint64_t lost = atomic_load(&head.lost);

    if (written < source->written || !look_at_capacity(source, written) ||
        written - source->taken > source->capacity ||
        !wm_ring_is_count(lost, source->lost, now_ns - source->since_ns))
        return;
    source->is_broken = false;
    source->written = written;
    source->lost = lost;
    source->is_writing = sequence % 2 != 0;
    if (!source->is_writing || sequence != source->stuck_sequence) {
        source->stuck_sequence = sequence;
        source->stuck_ns = now_ns;
    } else if (now_ns - source->stuck_ns > STUCK_NS) {
        source->is_writing = false;
    }
}

/* When its thread ended; 0: it has not said so. */
static int64_t closed_ns(const struct wm_region_source *source)
{
    int64_t closed_ns;

    return wm_shared_read(&closed_ns, &source->ring->closed_ns, sizeof(closed_ns))
               ? closed_ns
               : 0;
}

/* Who removes the files takes nothing from a thread that has its ring mapped. Of another
 * PID namespace it is not known whether it lives; then it may. */
static bool is_left_without_name(const struct wm_region_source *source)
{
    return closed_ns(source) > 0 || (source->has_pid && !is_process(source->thread.pid));
}

void wm_region_source_check(struct wm_region_source *source, int folder, int64_t now_ns)
{
    int fd = open_file(folder, source->number);
    bool is_gone = fd >= 0 ? flock(fd, LOCK_SH | LOCK_NB) == 0
                           : errno == ENOENT && is_left_without_name(source);

    if (fd >= 0)
        close(fd);
    if (!is_gone)
        return;
    wm_region_source_look(source, now_ns);
    int64_t when_ns = closed_ns(source);
    source->gone_ns = when_ns > 0 && when_ns < now_ns ? when_ns : now_ns;
    source->is_writing = false;
}

/* Copies what is written from `position` on, as far as it is next to it and finds room: so
 * many slots, or 0 where they cannot be read. */
static uint64_t copy_slots(const struct wm_region_source *source, uint64_t position,
                           struct wm_ring_event *slots, uint64_t room)
{
    uint64_t at = position & (source->capacity - 1);
    uint64_t count = source->written - position;

    if (count > source->capacity - at)
        count = source->capacity - at;
    if (count > room)
        count = room;
    return wm_shared_read(slots, &source->events[at], count * sizeof(*slots)) ? count : 0;
}

/* Copies a slot, with those behind it. */
static bool read_slot(struct wm_region_source *source, uint64_t position,
                      struct wm_ring_event *ret_event)
{
    if (position - source->copied_from >= source->copied_count) {
        source->copied_from = position;
        source->copied_count =
            copy_slots(source, position, source->copied, WM_REGION_SLOTS);
        if (source->copied_count == 0)
            return false;
    }
    *ret_event = source->copied[position - source->copied_from];
    return true;
}

static int keep_name(struct wm_region_source *source, uint64_t local, const char *name)
{
    size_t others = *source->name_bytes - bytes_of(source->names[local]);

    char *kept =
        strdup(others + bytes_of(name) > NAME_BYTES_MAX ? WM_REGION_FURTHER : name);
    if (!kept)
        return WM_ENOMEM;
    free(source->names[local]);
    source->names[local] = kept;
    *source->name_bytes = others + bytes_of(kept);
    return WM_OK;
}

/* At a name that begins at `taken`. 1, or 0 where it is no name. */
static int take_name(struct wm_region_source *source, uint64_t local, uint64_t length)
{
    char name[WM_REGION_NAME_MAX + sizeof(struct wm_ring_event)];
    char clean[WM_REGION_NAME_MAX + 1];
    uint64_t slots = wm_ring_slots_of_name((size_t)length);

    if (local >= WM_RING_NAMES || length > WM_REGION_NAME_MAX ||
        source->written - source->taken < 1 + slots)
        return 0;
    for (uint64_t i = 0; i < slots; i++) {
        struct wm_ring_event part;
        if (!read_slot(source, source->taken + 1 + i, &part))
            return 0;
        memcpy(name + i * sizeof(part), &part, sizeof(part));
    }
    wm_text_utf8(clean, sizeof(clean), name, (size_t)length);
    if (keep_name(source, local, clean) < 0)
        return WM_ENOMEM;
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
    struct wm_ring_event second;
    uint64_t value = event->what >> 8;

    *next = (struct wm_region_event) { .thread = source->number, .who = &source->thread };
    source->next_slots = 1;
    switch (event->what & 0xff) {
    case WM_RING_BEGIN:
        next->kind = WM_REGION_BEGINS;
        break;
    case WM_RING_END:
        next->kind = WM_REGION_ENDS;
        next->clocked = value;
        return true;
    case WM_RING_START:
        if (source->written - source->taken < 2 ||
            !read_slot(source, source->taken + 1, &second))
            return false;
        next->kind = WM_REGION_STARTS;
        next->id = second.what;
        source->next_slots = 2;
        break;
    case WM_RING_STOP:
        if (source->written - source->taken < 2 ||
            !read_slot(source, source->taken + 1, &second))
            return false;
        next->kind = WM_REGION_STOPS;
        next->id = value;
        next->clocked = second.what;
        source->next_slots = 2;
        return true;
    default:
        return false;
    }
    if (value >= WM_RING_NAMES || !source->names[value])
        return false;
    next->name = source->names[value];
    return true;
}

/* At least so many calls are taken together, over so much time. Longer ones never are:
 * their buckets would be others. Where it fails it is tried again so many slots further on:
 * a prime, for calls come in periods, and one that begins inside of a call fails. */
enum { FOLD_AGAIN = 61, FOLD_LEAST = 16, FOLD_DEPTH = 4, FOLD_ENDS = 16 };
#define FOLD_SPAN_NS (10 * WM_NS_PER_MS)
#define FOLD_LONGEST_NS (INT64_C(1000) << (WM_REGION_FOLD_BUCKETS - 1))

/* Half a million calls a second are handed out one by one. What a slower time has left of
 * that is kept for a burst, of so many that the ring does not fill up meanwhile; and after
 * a faster one it takes a moment to be back. */
#define PACE_CALL_NS INT64_C(2000)
#define PACE_KEPT_NS (4 * WM_NS_PER_MS)
#define PACE_OVER_NS WM_NS_PER_MS

/* So many slots are copied at a time: a copy by way of the kernel takes as long as going
 * through some hundred of them. */
enum { FOLD_COPY = 1024 };

/* When the calls so far, and one at `when_ns`, would be over at that pace. */
static int64_t add_to_pace(int64_t paced_ns, int64_t when_ns)
{
    return between(when_ns - PACE_KEPT_NS, paced_ns, when_ns + PACE_OVER_NS) + PACE_CALL_NS;
}

/* Calls that are being looked through: a call counts when the outermost around it is over.
 */
struct folding {
    struct wm_region_folds *folds;
    uint64_t calls;
    int64_t paced_ns;
    struct {
        size_t place;
        int64_t start_ns;
    } stack[FOLD_DEPTH];
    size_t depth;
    struct {
        size_t place;
        int64_t ns;
    } ended[FOLD_ENDS];
    size_t ended_count;
};

static bool begin_folded(struct folding *folding, uint64_t number, int64_t when_ns)
{
    struct wm_region_folds *folds = folding->folds;
    size_t parent = folding->depth > 0 ? folding->stack[folding->depth - 1].place
                                       : (size_t)WM_REGION_FOLDS;
    size_t place = 0;

    while (place < folds->count &&
           (folds->places[place].number != number || folds->places[place].parent != parent))
        place++;
    if (place == WM_REGION_FOLDS || folding->depth == FOLD_DEPTH)
        return false;
    folding->paced_ns = add_to_pace(folding->paced_ns, when_ns);
    if (place == folds->count) {
        folds->places[place].number = number;
        folds->places[place].parent = parent;
        folds->places[place].calls = (struct wm_region_fold) { 0 };
        folds->count++;
    }
    folding->stack[folding->depth].place = place;
    folding->stack[folding->depth++].start_ns = when_ns;
    return true;
}

static void count_folded(struct wm_region_fold *fold, uint64_t ns)
{
    int bucket = ns <= 1000 ? 0 : 64 - __builtin_clzll((ns - 1) / 1000);

    if (fold->calls == 0 || ns < fold->min_ns)
        fold->min_ns = (uint32_t)ns;
    if (ns > fold->max_ns)
        fold->max_ns = (uint32_t)ns;
    fold->calls++;
    fold->sum_ns += ns;
    fold->squares += ns * ns;
    fold->buckets[bucket]++;
}

static bool end_folded(struct folding *folding, int64_t when_ns)
{
    if (folding->depth == 0 || folding->ended_count == FOLD_ENDS)
        return false;
    int64_t ns = when_ns - folding->stack[--folding->depth].start_ns;
    if (ns > FOLD_LONGEST_NS)
        return false;
    folding->ended[folding->ended_count].place = folding->stack[folding->depth].place;
    folding->ended[folding->ended_count++].ns = ns;
    if (folding->depth > 0)
        return true;
    for (size_t i = 0; i < folding->ended_count; i++)
        count_folded(&folding->folds->places[folding->ended[i].place].calls,
                     (uint64_t)folding->ended[i].ns);
    folding->calls += folding->ended_count;
    folding->ended_count = 0;
    return true;
}

/* Whether calls come so fast that they are taken together. */
static bool is_fast(const struct wm_region_source *source, int64_t paced_ns,
                    int64_t when_ns)
{
    return source->folds_all || paced_ns > when_ns;
}

static bool fold_event(const struct wm_region_source *source, struct folding *folding,
                       const struct wm_ring_event *event)
{
    uint64_t value = event->what >> 8;

    if (folding->depth == 0 && !is_fast(source, folding->paced_ns, event->when_ns))
        return false;
    if ((event->what & 0xff) == WM_RING_BEGIN)
        return value < WM_RING_NAMES && source->names[value] &&
               begin_folded(folding, value, event->when_ns);
    return event->what == WM_RING_END && end_folded(folding, event->when_ns);
}

/* Looks through what is written up to the last call that can be taken, and says how many
 * there are. */
static uint64_t fold_calls(struct wm_region_source *source)
{
    struct wm_region_folds *folds = &source->folds;
    struct folding folding = { .folds = folds, .paced_ns = source->paced_ns };
    const struct wm_ring_event *slots = source->copied;
    struct wm_ring_event further[FOLD_COPY];
    uint64_t from = source->copied_from, count = source->copied_count;
    int64_t last_ns = 0;

    folds->count = 0;
    folds->end = source->taken;
    for (uint64_t at = source->taken; at < source->written; at++) {
        if (at - from >= count) {
            from = at;
            count = copy_slots(source, from, further, FOLD_COPY);
            slots = further;
        }
        const struct wm_ring_event *event = &slots[at - from];
        if (count == 0 || event->when_ns < last_ns || event->when_ns > source->until_ns)
            break;
        if (at == source->taken)
            folds->from_ns = event->when_ns;
        last_ns = event->when_ns;
        if (last_ns - folds->from_ns > FOLD_SPAN_NS || !fold_event(source, &folding, event))
            break;
        if (folding.depth == 0) {
            folds->end = at + 1;
            folds->paced_ns = folding.paced_ns;
        }
    }
    return folding.calls;
}

static void add_folded(struct wm_region_folds *folds, enum wm_region_event_kind kind,
                       size_t place, int64_t when_ns)
{
    folds->events[folds->event_count].kind = kind;
    folds->events[folds->event_count].place = place;
    folds->events[folds->event_count++].when_ns = when_ns;
}

/* One after the other, with what is in each at its beginning. A place may have come up in a
 * call that did not count. */
static void lay_out(struct wm_region_folds *folds, size_t parent, int64_t when_ns)
{
    for (size_t i = 0; i < folds->count; i++) {
        const struct wm_region_fold *calls = &folds->places[i].calls;
        if (folds->places[i].parent != parent || calls->calls == 0)
            continue;
        add_folded(folds, WM_REGION_BEGINS, i, when_ns);
        lay_out(folds, i, when_ns);
        when_ns += (int64_t)calls->sum_ns;
        add_folded(folds, WM_REGION_ENDS, i, when_ns);
    }
}

/* At a begin: whether calls were taken together. */
static bool try_fold(struct wm_region_source *source, const struct wm_ring_event *first)
{
    struct wm_region_folds *folds = &source->folds;

    if (source->taken < source->try_at || (first->what & 0xff) != WM_RING_BEGIN ||
        !is_fast(source, source->paced_ns, first->when_ns))
        return false;
    source->try_at = source->taken + FOLD_AGAIN;
    if (fold_calls(source) < FOLD_LEAST)
        return false;
    source->try_at = folds->end;
    source->paced_ns = folds->paced_ns;
    folds->event_count = folds->next = 0;
    lay_out(folds, WM_REGION_FOLDS, folds->from_ns);
    return true;
}

/* The next of the events that were taken together. */
static bool next_folded(struct wm_region_source *source)
{
    const struct wm_region_folds *folds = &source->folds;

    if (folds->next == folds->event_count)
        return false;
    size_t place = folds->events[folds->next].place;
    bool is_end = folds->events[folds->next].kind == WM_REGION_ENDS;
    source->next = (struct wm_region_event) {
        .when_ns = folds->events[folds->next].when_ns,
        .kind = folds->events[folds->next].kind,
        .thread = source->number,
        .who = &source->thread,
        .name = is_end ? NULL : source->names[folds->places[place].number],
        .fold = is_end ? &folds->places[place].calls : NULL,
    };
    source->next_slots =
        folds->next + 1 == folds->event_count ? folds->end - source->taken : 0;
    return true;
}

int wm_region_source_peek(struct wm_region_source *source, int64_t floor_ns, int64_t now_ns)
{
    if (source->has_next)
        return 1;
    if (floor_ns < source->last_ns)
        floor_ns = source->last_ns;
    while (!source->is_broken && source->taken < source->written) {
        struct wm_ring_event event;
        if (next_folded(source)) {
            source->next.when_ns = between(floor_ns, source->next.when_ns, now_ns);
            source->has_next = true;
            return 1;
        }
        if (!read_slot(source, source->taken, &event)) {
            source->is_broken = true;
        } else if (try_fold(source, &event)) {
            continue;
        } else if ((event.what & 0xff) == WM_RING_NAME) {
            int status = take_name(source, event.what >> 8, (uint64_t)event.when_ns);
            if (status < 0)
                return status;
            source->is_broken = status == 0;
        } else if (decode(source, &event)) {
            source->next.when_ns = between(floor_ns, event.when_ns, now_ns);
            if (source->next.name)
                source->paced_ns = add_to_pace(source->paced_ns, source->next.when_ns);
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
        .who = &source->thread,
        .when_ns = between(floor_ns, source->gone_ns, now_ns),
    };
    source->next_slots = 0;
    source->has_next = true;
    return 1;
}

void wm_region_source_next(struct wm_region_source *source)
{
    source->taken += source->next_slots;
    if (source->folds.next < source->folds.event_count)
        source->folds.next++;
    source->last_ns = source->next.when_ns;
    source->is_over = source->next.kind == WM_REGION_GONE;
    source->has_next = false;
    source->has_spoken = true;
}

/* A thread whose ring is given up is to wait for no room in it. */
bool wm_region_source_release(struct wm_region_source *source, uint64_t least)
{
    uint64_t taken = source->is_broken ? WM_RING_GIVEN_UP : source->taken;

    if (taken - source->released < least)
        return false;
    source->released = taken;
    wm_shared_write(&source->ring->taken, &source->released, sizeof(source->released));
    return true;
}
