/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region_tail.c - folds short calls that come fast, in the thread that makes them: all
 * calls of a name at a place within a slice of time become one, with their number, sum,
 * minimum, maximum and histogram.
 *
 * A tail is two copies of the slice, with events behind them as everywhere in the ring.
 * Every BATCH events the thread adds them to the slice, writes it to the copy that is not
 * valid, and with one store makes that copy the valid one and the events void
 * (region_ring.h). Calls that cannot be folded settle the tail: its content stays as it is.
 */
#include "region/mark/region_writer.h"

#include "base/base_clock.h"

/* Slots of events that are folded at a time. A call with more than twice as many slots in
 * it is not folded; the calls in it are. */
enum { BATCH = 512 };

/* After events that could not be folded, the next AGAIN slots are not folded; after a call
 * with too much in it, the next UNFOLDED calls of its name. */
enum { AGAIN = 4096, UNFOLDED = 64 };

/* A slice with fewer calls is not worth the room of a tail. */
enum { LEAST = 16 };

/* Up to half a million calls a second are not folded. Slower times leave credit for a first
 * burst, but not in a loop that has been folded: it is folded on after it lost its
 * processor. After a faster time folding goes on for a moment. */
#define PACE_CALL_NS INT64_C(2000)
#define PACE_KEPT_NS (4 * WM_NS_PER_MS)
#define PACE_OVER_NS WM_NS_PER_MS

/* The next slice begins early enough for a batch of calls at that pace. */
#define RENEW_NS (WM_RING_SLICE_NS - 2 * BATCH * PACE_CALL_NS)

enum { COPIES = 2 * WM_RING_SLICE_SLOTS, TAIL_MOST = COPIES + 2 * BATCH + 4 };

_Static_assert((uint64_t)TAIL_MOST < WM_RING_UNIT / WM_RING_TAIL, "the word has room");

static void set_check(struct wm_region_writer *writer, uint64_t slots)
{
    writer->tail.check = writer->count + writer->open + 1 + slots;
    wm_region_writer_set_limit(writer);
}

/* Whether the calls since the last check came so fast that they are folded. */
static bool is_fast(struct wm_region_writer *writer, int64_t now_ns)
{
    struct wm_region_tail *tail = &writer->tail;
    int64_t calls = (int64_t)(writer->count - tail->checked) / 2;
    bool has_folded = tail->from > 0;
    int64_t kept_ns = has_folded ? 0 : PACE_KEPT_NS;

    tail->checked = writer->count;
    tail->paced_ns += calls * PACE_CALL_NS;
    if (tail->paced_ns < now_ns - kept_ns)
        tail->paced_ns = now_ns - kept_ns;
    if (tail->paced_ns > now_ns + PACE_OVER_NS)
        tail->paced_ns = now_ns + PACE_OVER_NS;
    return tail->paced_ns > now_ns ||
           atomic_load_explicit(&writer->target->control->folds_all, memory_order_relaxed);
}

static void write_slots(struct wm_region_writer *writer, uint64_t position,
                        const void *slots, size_t count)
{
    for (size_t i = 0; i < count; i++)
        memcpy(&writer->events[(position + i) & writer->mask],
               (const char *)slots + i * sizeof(*writer->events), sizeof(*writer->events));
}

/* Writes the slice to one of its copies, as one that takes `slots`. */
static void write_slice(struct wm_region_writer *writer, unsigned copy, uint64_t slots)
{
    const struct wm_region_tail *tail = &writer->tail;
    const struct wm_ring_event head = {
        .when_ns = tail->from_ns,
        .what = wm_region_writer_what(WM_RING_SLICE, tail->place_count | slots << 8),
    };
    uint64_t at = tail->from + copy * (uint64_t)WM_RING_SLICE_SLOTS;

    write_slots(writer, at, &head, 1);
    write_slots(writer, at + 1, tail->places,
                (size_t)tail->place_count * WM_RING_PLACE_SLOTS);
}

static void set_word(struct wm_region_writer *writer)
{
    const struct wm_region_tail *tail = &writer->tail;

    writer->unit = WM_RING_UNIT + (tail->is_open ? WM_RING_TAIL : 0);
    writer->word = writer->count * WM_RING_UNIT;
    if (tail->is_open)
        writer->word +=
            (writer->count - tail->from) * WM_RING_TAIL + tail->copy * WM_RING_COPY;
}

static void open_tail(struct wm_region_writer *writer)
{
    struct wm_region_tail *tail = &writer->tail;

    wm_region_writer_enter(writer);
    tail->is_open = true;
    tail->copy = 0;
    tail->from = writer->count;
    tail->base = writer->floor = writer->open;
    tail->from_ns = wm_region_writer_now();
    tail->calls = tail->place_count = 0;
    write_slice(writer, 0, WM_RING_SLICE_SLOTS);
    writer->count += COPIES;
    tail->checked = writer->count;
    set_word(writer);
    wm_region_writer_publish(writer);
    set_check(writer, BATCH);
}

static void leave_tail(struct wm_region_writer *writer)
{
    writer->tail.is_open = writer->tail.is_due = false;
    writer->tail.base = writer->floor = 0;
    writer->tail.checked = writer->count;
    set_word(writer);
    wm_region_writer_publish(writer);
}

/* NULL: there is no room for it. */
static struct wm_ring_place *find_place(struct wm_region_tail *tail, uint64_t number,
                                        const struct wm_ring_place *around)
{
    uint32_t parent = around ? (uint32_t)(around - tail->places) : WM_RING_PLACES;
    uint32_t i = tail->last_places[number];

    if (i < tail->place_count && tail->places[i].number == number &&
        tail->places[i].parent == parent)
        return &tail->places[i];
    for (i = 0; i < tail->place_count; i++)
        if (tail->places[i].number == number && tail->places[i].parent == parent)
            break;
    if (i == WM_RING_PLACES)
        return NULL;
    if (i == tail->place_count)
        tail->places[tail->place_count++] =
            (struct wm_ring_place) { .number = (uint32_t)number, .parent = parent };
    tail->last_places[number] = (uint8_t)i;
    return &tail->places[i];
}

struct sum {
    uint64_t calls, ns, squares, min_ns, max_ns;
};

static void add(struct wm_region_fold *fold, const struct sum *sum, int bucket)
{
    if (fold->calls == 0 || sum->min_ns < fold->min_ns)
        fold->min_ns = (uint32_t)sum->min_ns;
    if (sum->max_ns > fold->max_ns)
        fold->max_ns = (uint32_t)sum->max_ns;
    fold->calls += sum->calls;
    fold->sum_ns += sum->ns;
    fold->squares += sum->squares;
    fold->buckets[bucket] += (uint32_t)sum->calls;
}

/* Adds the calls from `at` on that are alike: of one name, with none in them, in the first
 * bucket. Returns how many. A fast loop has hardly any others, and takes half the time so.
 */
static uint64_t add_loop(const struct wm_region_writer *writer, uint64_t at,
                         struct wm_region_fold *fold)
{
    struct sum sum = { .min_ns = UINT64_MAX };
    uint64_t what = writer->events[at & writer->mask].what;

    for (; at + 1 < writer->count; at += 2) {
        const struct wm_ring_event *begin = &writer->events[at & writer->mask];
        const struct wm_ring_event *end = &writer->events[(at + 1) & writer->mask];
        uint64_t ns = (uint64_t)(end->when_ns - begin->when_ns);
        if (begin->what != what || end->what != WM_RING_END || ns > 1000)
            break;
        sum.calls++;
        sum.ns += ns;
        sum.squares += ns * ns;
        sum.min_ns = ns < sum.min_ns ? ns : sum.min_ns;
        sum.max_ns = ns > sum.max_ns ? ns : sum.max_ns;
    }
    if (sum.calls > 0)
        add(fold, &sum, 0);
    return sum.calls;
}

static bool add_call(struct wm_region_fold *fold, int64_t length_ns)
{
    uint64_t ns = (uint64_t)length_ns;

    if (ns > WM_REGION_FOLD_LONGEST_NS)
        return false;
    add(fold, &(struct sum) { 1, ns, ns * ns, ns, ns },
        ns <= 1000 ? 0 : 64 - __builtin_clzll((ns - 1) / 1000));
    return true;
}

/* Adds the events of the tail, which are whole calls. Each that is open has a place of its
 * own, so that there are no more levels than places. */
static bool add_events(struct wm_region_writer *writer)
{
    struct wm_region_tail *tail = &writer->tail;
    uint64_t at = tail->from + COPIES;
    struct wm_ring_place *stack[WM_RING_PLACES + 1];
    int64_t starts_ns[WM_RING_PLACES];
    size_t depth = 0;

    tail->calls += (writer->count - at) / 2;
    while (at < writer->count) {
        const struct wm_ring_event *event = &writer->events[at & writer->mask];
        uint64_t calls = 0;
        if (event->what == WM_RING_END) {
            depth--;
            if (!add_call(&stack[depth]->calls, event->when_ns - starts_ns[depth]))
                return false;
        } else {
            stack[depth] =
                find_place(tail, event->what >> 8, depth > 0 ? stack[depth - 1] : NULL);
            if (!stack[depth])
                return false;
            calls = add_loop(writer, at, &stack[depth]->calls);
            starts_ns[depth] = event->when_ns;
            depth += calls == 0;
        }
        at += calls > 0 ? 2 * calls : 1;
    }
    return true;
}

/* The slice has all calls of the tail in it. */
static void replace_events(struct wm_region_writer *writer)
{
    struct wm_region_tail *tail = &writer->tail;

    write_slice(writer, 1 - tail->copy, WM_RING_SLICE_SLOTS);
    tail->copy = 1 - tail->copy;
    tail->is_due = false;
    tail->checked = writer->count = tail->from + COPIES;
    writer->floor = tail->base;
    set_word(writer);
    wm_region_writer_say(writer, WM_RING_WRITING, memory_order_release);
    atomic_signal_fence(memory_order_seq_cst);
}

/* With the next call. */
static void open_next(struct wm_region_writer *writer)
{
    writer->tail.check = 0;
    wm_region_writer_set_limit(writer);
}

/* The slice becomes a settled one, of no more slots than it needs. The copy that holds, if
 * it is the first, is written as it is. */
static void end_slice(struct wm_region_writer *writer)
{
    struct wm_region_tail *tail = &writer->tail;
    uint64_t slots = 1 + (uint64_t)tail->place_count * WM_RING_PLACE_SLOTS;

    if (tail->calls > 0)
        write_slice(writer, 0, slots);
    writer->count = tail->from + (tail->calls > 0 ? slots : 0);
    leave_tail(writer);
    if (tail->calls < LEAST)
        set_check(writer, BATCH);
    else
        open_next(writer);
}

/* Between calls. The inbox reads a tail that is as old as a slice can be and is not being
 * written. The fence makes the mark of writing visible before this thread reads the clock,
 * so that the inbox sees it if the tail is not yet that old. */
static bool fold(struct wm_region_writer *writer, bool is_over)
{
    struct wm_region_tail *tail = &writer->tail;

    wm_region_writer_enter(writer);
    atomic_thread_fence(memory_order_seq_cst);
    int64_t age_ns = wm_region_writer_now() - tail->from_ns;
    if (age_ns > WM_RING_SLICE_NS || !is_fast(writer, tail->from_ns + age_ns)) {
        wm_region_tail_settle(writer);
        return false;
    }
    if (!add_events(writer)) {
        wm_region_tail_settle(writer);
        set_check(writer, AGAIN);
        return false;
    }
    if (writer->count > tail->from + COPIES)
        replace_events(writer);
    if (is_over || age_ns > RENEW_NS) {
        end_slice(writer);
        return true;
    }
    wm_region_writer_publish(writer);
    set_check(writer, BATCH);
    return true;
}

void wm_region_tail_settle(struct wm_region_writer *writer)
{
    const struct wm_region_tail *tail = &writer->tail;
    const struct wm_ring_event nothing = {
        .what = wm_region_writer_what(WM_RING_VOID, WM_RING_SLICE_SLOTS),
    };

    if (!tail->is_open)
        return;
    wm_region_writer_enter(writer);
    write_slots(writer, tail->from + (1 - tail->copy) * (uint64_t)WM_RING_SLICE_SLOTS,
                &nothing, 1);
    leave_tail(writer);
    set_check(writer, BATCH);
}

/* Whether all of it was folded. */
static bool close_tail(struct wm_region_writer *writer)
{
    if (writer->open == writer->tail.base)
        return fold(writer, true);
    wm_region_tail_settle(writer);
    return false;
}

void wm_region_tail_close(struct wm_region_writer *writer)
{
    if (writer->tail.is_open)
        close_tail(writer);
}

/* A call that is around the tail ends: the next one may be around such a tail, too. */
void wm_region_tail_end(struct wm_region_writer *writer)
{
    const struct wm_region_tail *tail = &writer->tail;
    bool is_next = tail->is_open && writer->open == tail->base && close_tail(writer);

    wm_region_writer_close(writer);
    if (is_next)
        open_next(writer);
    else if (tail->is_due && writer->open == tail->base)
        fold(writer, false);
}

/* In a call that began in the tail: folds when that call is over, unless it has too much in
 * it. */
static void fold_later(struct wm_region_writer *writer)
{
    struct wm_region_tail *tail = &writer->tail;

    if (tail->is_due) {
        writer->unfolded[wm_region_writer_frame(writer, tail->base)->number] = UNFOLDED;
        wm_region_tail_settle(writer);
        return;
    }
    tail->is_due = true;
    writer->floor = tail->base + 1;
    set_check(writer, BATCH);
}

static bool is_check_due(const struct wm_region_writer *writer)
{
    return writer->ring && writer->count + writer->open + 2 > writer->tail.check;
}

void wm_region_tail_check(struct wm_region_writer *writer)
{
    const struct wm_region_tail *tail = &writer->tail;

    if (is_check_due(writer) && tail->is_open && writer->open > tail->base)
        fold_later(writer);
    else if (is_check_due(writer) && tail->is_open)
        fold(writer, false);
    if (!is_check_due(writer))
        return;
    if (writer->target->has_clock && is_fast(writer, wm_region_writer_now()) &&
        wm_region_writer_has_room(writer, TAIL_MOST))
        open_tail(writer);
    else
        set_check(writer, BATCH);
}
