/* SPDX-License-Identifier: Apache-2.0 */
/* region_writer.c - what a thread does beside storing events: new names, a ring that
 * grows, is full, or cannot be made. */
#include "region/mark/region_writer.h"

#include <errno.h>
#include <stdlib.h>

#include "base/base_clock.h"

/* How long a full ring is waited for while nothing is taken out of any ring: a tracker that
 * lives may not have been given a processor among hundreds of busy threads. */
#define PATIENCE_NS (2 * WM_NS_PER_S)

/* After so long it is worth while to see whether it does live; and to make a ring again
 * where none could be made. */
#define DOUBT_NS (100 * WM_NS_PER_MS)

/* Naps while it waits. */
enum { NAP_MIN_NS = 50000, NAP_MAX_NS = 10000000 };

struct wm_region_writer *wm_region_writer_new(struct wm_region_target *target,
                                              unsigned generation)
{
    struct wm_region_writer *writer = calloc(1, sizeof(*writer));
    if (!writer)
        return NULL;
    writer->generation = generation;
    writer->target = target;
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
    writer->ring = wm_region_target_make_ring(writer->target, &writer->number, &size);
    if (!writer->ring)
        return;
    writer->events = (struct wm_ring_event *)((char *)writer->ring + WM_RING_EVENTS_AT);
    writer->mask = WM_RING_CAPACITY_MIN - 1;
    writer->bytes = wm_ring_bytes(size);
    writer->size = size;
}

void wm_region_writer_free(struct wm_region_writer *writer, bool is_kept)
{
    if (!writer)
        return;
    if (writer->ring)
        wm_region_target_leave_ring(writer->target, writer->ring, writer->bytes, is_kept);
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

    if (wm_region_target_grow_ring(writer->target, writer->ring, writer->number,
                                   capacity)) {
        writer->mask = capacity - 1;
        atomic_store_explicit(&writer->ring->capacity, capacity, memory_order_release);
    } else {
        writer->size = writer->mask + 1;
    }
}

/* Whether `total`, of events and ends to come, fits now. Then `limit` is no less. */
static bool fits(struct wm_region_writer *writer, uint64_t total)
{
    uint64_t taken = atomic_load_explicit(&writer->ring->taken, memory_order_acquire);
    uint64_t capacity = writer->mask + 1;

    if (taken > writer->count || total - taken > capacity)
        return false;
    uint64_t half = taken + (can_grow(writer) ? capacity : capacity / 2);
    if (total <= half) {
        writer->limit = half;
    } else {
        writer->limit = taken + capacity;
        wm_region_target_wake(writer->target);
    }
    if (can_grow(writer) && writer->limit > capacity)
        writer->limit = capacity;
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
    long nap_ns = NAP_MIN_NS;

    while (waited_ns < PATIENCE_NS && !atomic_load(&control->is_closed)) {
        wm_region_target_wake(writer->target);
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

/* Makes sure of room for `slots` events, some of which may be ends that come later. */
static bool make_room(struct wm_region_writer *writer, uint64_t slots)
{
    if (!writer->ring)
        return false;
    uint64_t total = writer->count + writer->open + slots;
    while (can_grow(writer) && total > writer->mask + 1)
        grow(writer);
    if (total <= writer->limit || fits(writer, total)) {
        writer->has_given_up = false;
        return true;
    }

    /* Once for each time that the ring is full; and what is open may itself be too much. */
    if (writer->has_given_up || writer->open + slots > writer->mask + 1)
        return false;
    if (wait_for_room(writer, total))
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

/* The number of a name that stood elsewhere when it was last used, or is cut. */
static uint32_t find_text(const struct wm_region_writer *writer, const char *name,
                          size_t length)
{
    uint32_t place = wm_region_writer_place(name);

    for (uint32_t i = place; i < place + 2; i++) {
        const char *text = writer->names[i].text;
        if (text && strncmp(text, name, length) == 0 && text[length] == '\0')
            return i;
    }
    return WM_REGION_NO_NAME;
}

/* A place for a name that is in none, and whose text has been made room for. */
static uint32_t take_place(struct wm_region_writer *writer, const char *name, size_t length)
{
    uint32_t place = wm_region_writer_place(name);
    uint32_t number = place + (writer->next_place[place / 2]++ & 1);

    /* All are forgotten when there are too many: what is used will be back. */
    if (WM_REGION_TEXTS - writer->text_used < length + 1) {
        memset(writer->names, 0, sizeof(writer->names));
        writer->text_used = 0;
    }
    char *text = writer->texts + writer->text_used;
    memcpy(text, name, length);
    text[length] = '\0';
    writer->text_used += length + 1;
    writer->names[number].text = text;
    return number;
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

/* Adds an event of that kind, the name before it if the ring does not know it, and `id`
 * behind it unless that is 0. `later` slots are kept free beside. */
static bool add_named(struct wm_region_writer *writer, enum wm_ring_kind kind,
                      const char *name, uint64_t id, uint64_t later)
{
    uint64_t slots = (id != 0 ? 2 : 1) + later;

    size_t length = wm_region_name_length(name);
    uint32_t number = find_text(writer, name, length);
    bool is_new = number == WM_REGION_NO_NAME;
    if (is_new)
        slots += 1 + wm_ring_slots_of_name(length);
    if (!make_room(writer, slots))
        return false;

    if (is_new)
        number = take_place(writer, name, length);
    writer->names[number].pointer = name;
    wm_region_writer_enter(writer);
    int64_t now_ns = wm_region_writer_now();
    if (is_new)
        add_name(writer, number, writer->names[number].text, length);
    wm_region_writer_add(writer, now_ns, wm_region_writer_what(kind, number));
    if (id != 0)
        wm_region_writer_add(writer, 0, id);
    wm_region_writer_publish(writer);
    return true;
}

static bool add_plain(struct wm_region_writer *writer, enum wm_ring_kind kind, uint64_t id)
{
    if (!make_room(writer, 1))
        return false;
    wm_region_writer_enter(writer);
    wm_region_writer_add(writer, wm_region_writer_now(), wm_region_writer_what(kind, id));
    wm_region_writer_publish(writer);
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

static void begin(struct wm_region_writer *writer, const char *name)
{
    bool is_deep = writer->level_count >= LEVELS;
    bool is_there = !is_deep && add_named(writer, WM_RING_BEGIN, name, 0, 1);

    writer->open += is_there;
    if (!is_there)
        count_lost(writer, 2);
    if (is_there && writer->level_count == 0)
        return;
    writer->level_count++;
    if (!is_deep)
        writer->levels = writer->levels << 1 | is_there;
}

static void end(struct wm_region_writer *writer)
{
    if (writer->level_count > 0 && !pop_level(writer))
        return;
    if (wm_region_writer_end_quickly(writer))
        return;
    /* One too many: the inbox is told all the same. */
    if (!add_plain(writer, WM_RING_END, 0))
        count_lost(writer, 1);
}

bool wm_region_writer_mark(struct wm_region_writer *writer, enum wm_ring_kind kind,
                           const char *name, uint64_t id)
{
    bool is_there = true;

    if (kind == WM_RING_BEGIN)
        begin(writer, name);
    else if (kind == WM_RING_END)
        end(writer);
    else if (kind == WM_RING_START)
        is_there = add_named(writer, kind, name, id, 0);
    else if (!add_plain(writer, kind, id))
        count_lost(writer, 1);
    if (!is_there)
        count_lost(writer, 2);
    return is_there;
}
