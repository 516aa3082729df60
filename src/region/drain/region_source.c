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
#include "base/base_text.h"
#include "region/drain/region_shared.h"

/* How long a thread that stopped in the middle of an event is waited for. */
#define STUCK_NS WM_NS_PER_S

/* Names of all rings together, with what the allocator takes for each: a ring of 20 KiB
 * can tell 2 MiB of them, one after the other. */
#define NAME_BYTES_MAX ((size_t)64 << 20)
#define BYTES_PER_NAME 16

/* A look fails while the thread changes its tail; more than a few in a row are unlikely. */
enum { LOOKS = 100 };

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

static int64_t between(int64_t low_ns, int64_t value_ns, int64_t high_ns)
{
    if (value_ns > high_ns)
        value_ns = high_ns;
    return value_ns > low_ns ? value_ns : low_ns;
}

static uint64_t tail_begin(const struct wm_region_source *source)
{
    return source->state.end - source->state.tail;
}

bool wm_region_source_has_tail(const struct wm_region_source *source)
{
    return !source->is_broken && source->written < source->state.end;
}

void wm_region_source_take_tail(struct wm_region_source *source)
{
    source->written = source->state.end;
}

/* Reads when the tail began. WM_EIO: the thread has begun another one meanwhile. */
static int look_at_tail(struct wm_region_source *source)
{
    struct wm_ring_event first;
    uint64_t begin = tail_begin(source), sequence;

    if (source->state.tail == 0)
        return WM_OK;
    if (source->state.tail < 2 * WM_RING_SLICE_SLOTS ||
        !wm_shared_read(&first, &source->events[begin & (source->capacity - 1)],
                        sizeof(first)) ||
        !wm_shared_read(&sequence, &source->ring->sequence, sizeof(sequence)))
        return WM_EFORMAT;
    const struct wm_ring_state state = wm_ring_state(sequence);
    source->tail_ns = between(0, first.when_ns, WM_TIME_MAX_NS);
    return state.tail > 0 && state.end - state.tail == begin ? WM_OK : WM_EIO;
}

/* Whether the thread can no longer change what it has written. */
static bool is_settled(const struct wm_region_source *source, int64_t now_ns)
{
    return source->state.tail == 0 ||
           (!source->state.is_writing && now_ns - source->tail_ns > WM_RING_SLICE_NS);
}

/* Whether the thread stopped in the middle of an event. */
static void look_for_stop(struct wm_region_source *source, uint64_t sequence,
                          int64_t now_ns)
{
    if (sequence != source->stuck_sequence) {
        source->stuck_sequence = sequence;
        source->stuck_ns = now_ns;
    }
    source->is_stuck = source->state.is_writing && now_ns - source->stuck_ns > STUCK_NS;
}

static int look(struct wm_region_source *source, int64_t now_ns)
{
    struct wm_ring head;

    if (!wm_shared_read(&head, source->ring, sizeof(head)))
        return WM_EFORMAT;
    uint64_t sequence = atomic_load(&head.sequence), lost = atomic_load(&head.lost);
    const struct wm_ring_state state = wm_ring_state(sequence);

    if (state.tail > state.end || state.end < source->written ||
        state.end - state.tail < tail_begin(source) ||
        !look_at_capacity(source, state.end) ||
        state.end - source->taken > source->capacity ||
        !wm_ring_is_count(lost, source->lost, now_ns - source->since_ns))
        return WM_EFORMAT;
    source->state = state;
    source->lost = lost;
    source->copied_count = 0; /* a tail that is settled has one copy voided in place */
    look_for_stop(source, sequence, now_ns);
    return look_at_tail(source);
}

void wm_region_source_look(struct wm_region_source *source, int64_t now_ns)
{
    int status = WM_EIO;

    if (source->is_broken || source->gone_ns != 0)
        return;
    for (int i = 0; i < LOOKS && status == WM_EIO; i++)
        status = look(source, now_ns);
    source->is_broken = status == WM_EFORMAT;
    if (status == WM_OK && is_settled(source, now_ns))
        source->written = source->state.end;
    else if (source->written < tail_begin(source))
        source->written = tail_begin(source);
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
    source->state.is_writing = false;
    wm_region_source_take_tail(source);
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

/* The event at `taken`; false where it is none. */
static bool decode(struct wm_region_source *source, const struct wm_ring_event *event)
{
    struct wm_region_event *next = &source->next;
    struct wm_ring_event second;
    uint64_t value = event->what >> 8;

    *next = (struct wm_region_event) {
        .when_ns = event->when_ns,
        .thread = source->number,
        .who = &source->thread,
    };
    source->next_slots = 1;
    switch (event->what & 0xff) {
    case WM_RING_BEGIN:
        next->kind = WM_REGION_BEGINS;
        break;
    case WM_RING_END:
        next->kind = WM_REGION_ENDS;
        next->clocked = value;
        return true;
    case WM_RING_LEAVE:
        next->kind = WM_REGION_ENDS;
        next->above = value;
        return true;
    case WM_RING_START:
        if (source->written - source->taken < 2 ||
            !read_slot(source, source->taken + 1, &second))
            return false;
        next->kind = WM_REGION_STARTS;
        next->id = second.what;
        next->parent = (uint64_t)second.when_ns;
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

/* Whether a thread writes that of a place, behind `before` others. */
static bool is_place(const struct wm_region_source *source,
                     const struct wm_ring_place *place, size_t before)
{
    const struct wm_region_fold *calls = &place->calls;
    uint64_t counted = 0;

    for (size_t i = 0; i < WM_REGION_FOLD_BUCKETS; i++)
        counted += calls->buckets[i];
    return place->number < WM_RING_NAMES && source->names[place->number] &&
           (place->parent < before || place->parent == WM_RING_PLACES) &&
           calls->calls > 0 && calls->calls == counted && calls->min_ns <= calls->max_ns &&
           calls->sum_ns <= WM_RING_SLICE_NS;
}

static bool read_place(struct wm_region_source *source, uint64_t first, size_t number,
                       struct wm_ring_place *ret_place)
{
    struct wm_ring_event slots[WM_RING_PLACE_SLOTS];

    for (size_t i = 0; i < WM_RING_PLACE_SLOTS; i++)
        if (!read_slot(source, first + number * WM_RING_PLACE_SLOTS + i, &slots[i]))
            return false;
    memcpy(ret_place, slots, sizeof(*ret_place));
    return is_place(source, ret_place, number);
}

static void add_folded(struct wm_region_folds *folds, size_t place, bool is_end,
                       int64_t when_ns)
{
    folds->events[folds->count].place = (uint8_t)place;
    folds->events[folds->count].is_end = is_end;
    folds->events[folds->count++].when_ns = when_ns;
}

/* One after the other, with what is in each at its beginning. */
static void lay_out(struct wm_region_folds *folds, const struct wm_ring_place *places,
                    size_t count, size_t parent, int64_t when_ns)
{
    for (size_t i = 0; i < count; i++) {
        if (places[i].parent != parent)
            continue;
        add_folded(folds, i, false, when_ns);
        lay_out(folds, places, count, i, when_ns);
        when_ns += (int64_t)places[i].calls.sum_ns;
        add_folded(folds, i, true, when_ns);
    }
}

/* At a slice that begins at `taken`: false where it is none. Of a tail one copy holds. */
static bool take_slice(struct wm_region_source *source, struct wm_ring_event head)
{
    struct wm_region_folds *folds = &source->folds;
    struct wm_ring_place places[WM_RING_PLACES];

    folds->at = source->taken + 1;
    folds->slots = head.what >> 16;
    if (source->state.tail > 0 && source->taken == tail_begin(source)) {
        folds->at += source->state.copy * (uint64_t)WM_RING_SLICE_SLOTS;
        folds->slots = 2 * WM_RING_SLICE_SLOTS;
        if (!read_slot(source, folds->at - 1, &head))
            return false;
    }
    size_t count = head.what >> 8 & 0xff;
    if ((head.what & 0xff) != WM_RING_SLICE || count > WM_RING_PLACES ||
        folds->slots < 1 + count * WM_RING_PLACE_SLOTS ||
        folds->slots > source->written - source->taken)
        return false;
    for (size_t i = 0; i < count; i++)
        if (!read_place(source, folds->at, i, &places[i]))
            return false;
    folds->count = folds->next = 0;
    lay_out(folds, places, count, WM_RING_PLACES, head.when_ns);
    if (count == 0)
        source->taken += folds->slots;
    return true;
}

/* At slots that mean nothing. */
static bool skip(struct wm_region_source *source, uint64_t slots)
{
    if (slots == 0 || slots > source->written - source->taken)
        return false;
    source->taken += slots;
    return true;
}

static bool is_in_slice(const struct wm_region_source *source)
{
    return source->folds.next < source->folds.count;
}

/* The next of the events that a slice comes to. */
static bool next_folded(struct wm_region_source *source)
{
    struct wm_region_folds *folds = &source->folds;
    bool is_end = folds->events[folds->next].is_end;

    if (!read_place(source, folds->at, folds->events[folds->next].place, &folds->place))
        return false;
    source->next = (struct wm_region_event) {
        .when_ns = folds->events[folds->next].when_ns,
        .kind = is_end ? WM_REGION_ENDS : WM_REGION_BEGINS,
        .thread = source->number,
        .who = &source->thread,
        .name = is_end ? NULL : source->names[folds->place.number],
        .fold = is_end ? &folds->place.calls : NULL,
    };
    source->next_slots = folds->next + 1 == folds->count ? folds->slots : 0;
    return true;
}

/* Reads what is at `taken`: 1 where it is an event, which is the next; else 0, or
 * WM_ENOMEM. It may turn out to be broken. */
static int read_on(struct wm_region_source *source)
{
    struct wm_ring_event event;
    int status = 0;

    if (is_in_slice(source)) {
        source->is_broken = !next_folded(source);
        return !source->is_broken;
    }
    source->is_broken = !read_slot(source, source->taken, &event);
    if (source->is_broken)
        return 0;
    switch (event.what & 0xff) {
    case WM_RING_NAME:
        status = take_name(source, event.what >> 8, (uint64_t)event.when_ns);
        source->is_broken = status == 0;
        return status < 0 ? status : 0;
    case WM_RING_SLICE:
        source->is_broken = !take_slice(source, event);
        return 0;
    case WM_RING_VOID:
        source->is_broken = !skip(source, event.what >> 8);
        return 0;
    default:
        source->is_broken = !decode(source, &event);
        return !source->is_broken;
    }
}

int wm_region_source_peek(struct wm_region_source *source, int64_t floor_ns, int64_t now_ns)
{
    int status = 0;

    if (source->has_next)
        return 1;
    if (floor_ns < source->last_ns)
        floor_ns = source->last_ns;
    while (status == 0 && !source->is_broken && source->taken < source->written)
        status = read_on(source);
    if (status < 0)
        return status;
    if (status > 0) {
        source->next.when_ns = between(floor_ns, source->next.when_ns, now_ns);
        source->has_next = true;
        return 1;
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
    source->folds.next += is_in_slice(source);
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
