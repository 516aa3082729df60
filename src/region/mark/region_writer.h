/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region_writer.h - the measured process's end of the rings: a thread's writer, and the
 * folder that its ring is in.
 *
 * The common case is inline and does nothing but read the clock and store: the name is one
 * that the ring knows, and there is room. All else is done by the functions.
 *
 * Room is kept for the end of each region that is open, so that no end is ever lost whose
 * beginning is there. A beginning that finds no room is dropped, counted, and so is its
 * end: from then on until that one is over, `levels` says of each open region whether it
 * is in the ring.
 */
#ifndef WM_REGION_WRITER_H
#define WM_REGION_WRITER_H

#include <stdbool.h>
#include <time.h>

#include "base/base_error.h"
#include "region/region_ring.h"

/* The inbox's folder as the measured process sees it, and the files of rings in it. No
 * descriptor stays open: a program may close any that it did not open. Calls are made under
 * the lock of region.c, but for those that say otherwise. */
struct wm_region_target {
    char path[WM_FOLDER_SIZE];
    struct wm_ring_control *control;
    unsigned users;        /* threads that write here, and one for itself */
    uint32_t process;      /* this one's number here */
    struct wm_ring *first; /* of this process; NULL: it has made none yet */
    size_t first_bytes;    /* that are mapped */
    bool is_left;          /* its thread has ended, or goes on elsewhere */
    uint64_t clock;        /* the tracker's wm_clock_namespace() */
    bool has_clock;        /* which is this one's, too */
};

/* WM_ENOENT, WM_EACCES or WM_EFORMAT where there is no inbox of this user and version. */
int wm_region_target_open(const char *path, struct wm_region_target **ret_target,
                          struct wm_error *err);

/* Whether the tracker lives, or it cannot be told. Without the lock, too. */
bool wm_region_target_has_tracker(const struct wm_region_target *target);

/* One user less; the last one frees it. */
void wm_region_target_drop(struct wm_region_target *target);

/* In the child of a fork(): a process of its own, without rings. */
void wm_region_target_forget(struct wm_region_target *target);

enum { WM_REGION_TEXTS = 1 << 16 };

/* Calls that last so long, on average, have the thread's CPU clock read at both ends: two
 * system calls of some 0.7 us each at worst, as on a virtual machine, are 1.4 %. */
enum { WM_REGION_LONG_NS = 100000 };

/* So many calls that are open have what is known of them here; those inside are not
 * clocked.
 */
enum { WM_REGION_FRAMES = 64 };

/* A call that is open. */
struct wm_region_frame {
    int64_t start_ns;
    int64_t cpu_ns;   /* the thread's CPU clock at its beginning; -1: it was not read */
    uint32_t number;  /* of its name */
    const char *name; /* where the program had it */
};

/* The end of the ring where calls are folded, and the slice that they are folded into, as
 * it will be written next. */
struct wm_region_tail {
    bool is_open;
    bool is_due;   /* fold when the outermost call that began in the tail is over */
    unsigned copy; /* the valid copy of the slice */
    uint64_t from; /* its position */
    uint64_t base; /* regions that were open before it */
    int64_t from_ns;
    uint64_t calls;
    uint32_t place_count;
    uint8_t last_places[WM_RING_NAMES]; /* of each name */
    struct wm_ring_place places[WM_RING_PLACES];

    uint64_t check;   /* what count + open may come to before the next check */
    uint64_t checked; /* position up to which calls have been checked */
    int64_t
        paced_ns; /* when these would be over at the pace at which calls are not folded */
};

struct wm_region_writer {
    struct wm_ring_event *events;
    struct wm_ring *ring; /* NULL: none could be made */
    uint64_t count;       /* position behind the last event */
    uint64_t open;        /* regions in the ring that have not ended */
    uint64_t floor;       /* the ends of the outermost `floor` regions take the slow way */
    uint64_t limit;       /* the lower of `room` and of the tail's `check` */
    uint64_t mask;        /* capacity - 1 */
    uint64_t word,
        unit; /* the ring's word (region_ring.h), and what each slot adds to it */
    unsigned generation; /* of the target */

    /* Where the program had names: two places for each hash of a pointer. A program that
     * copies a name for each call has it at many pointers, and many names at one. */
    struct {
        const char *pointer;
        uint32_t number; /* of the name that was last there */
    } places[WM_RING_NAMES];
    uint8_t next_place[WM_RING_NAMES / 2];
    const char *names[WM_RING_NAMES]; /* by number; NULL: none */
    uint32_t hashes[WM_RING_NAMES];   /* of these */
    bool is_clocked[WM_RING_NAMES];   /* whether its calls are */
    uint8_t unfolded[WM_RING_NAMES];  /* this many of the next calls are not folded, as one
                                       * was too long, or had too many in it */

    struct wm_region_target *target;
    uint64_t number;  /* number of the ring */
    size_t bytes;     /* bytes of the ring that are mapped */
    uint64_t size;    /* capacity up to which the ring may grow */
    int64_t retry_ns; /* when a ring may be tried to be made again */
    bool has_given_up;
    uint64_t room; /* what count + open may come to before the ring is looked at */
    struct wm_region_tail tail;

    /* Regions opened since the first of those that are open and were dropped. */
    uint64_t level_count;
    uint64_t levels; /* a bit for each: it is in the ring; those beyond 64 are not */

    /* Of each number: the time of long calls and clocked calls, less WM_REGION_LONG_NS for
     * each clocked call. Calls are clocked while it pays for the next one. */
    int64_t credit_ns[WM_RING_NAMES];
    uint8_t next_number; /* selects the name that loses its number to a new one */

    /* Of the stack, with one more place for all that is deeper. */
    struct wm_region_frame frames[WM_REGION_FRAMES + 1];

    /* What this thread started by itself last, each at its id's remainder. */
    struct {
        uint64_t id;
        struct wm_region_frame frame;
    } started[WM_REGION_FRAMES];

    size_t text_used;
    char texts[WM_REGION_TEXTS];
};

enum { WM_REGION_NO_NAME = WM_RING_NAMES };

/* The first of the two places of a pointer. */
static inline uint32_t wm_region_writer_place(const char *name)
{
    return (uint32_t)((uint64_t)(uintptr_t)name * UINT64_C(0x9e3779b97f4a7c15) >> 57) * 2;
}

/* Its number, or WM_REGION_NO_NAME. A buffer may hold another name than last time; one
 * that was cut is not found here. */
static inline uint32_t wm_region_writer_find(const struct wm_region_writer *writer,
                                             const char *name)
{
    uint32_t place = wm_region_writer_place(name);

    for (uint32_t i = place; i < place + 2; i++) {
        uint32_t number = writer->places[i].number;
        if (writer->places[i].pointer == name && strcmp(writer->names[number], name) == 0)
            return number;
    }
    return WM_REGION_NO_NAME;
}

static inline uint64_t wm_region_writer_what(enum wm_ring_kind kind, uint64_t value)
{
    return value << 8 | kind;
}

static inline void wm_region_writer_say(const struct wm_region_writer *writer,
                                        uint64_t is_writing, memory_order order)
{
    atomic_store_explicit(&writer->ring->sequence, writer->word + is_writing, order);
}

/* From here on the inbox does not go past this thread's last event. The store may be seen
 * by others a little after the clock was read, which is why the inbox stays a little
 * behind; a fence would cost more than all the rest. */
static inline void wm_region_writer_enter(const struct wm_region_writer *writer)
{
    wm_region_writer_say(writer, WM_RING_WRITING, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
}

static inline void wm_region_writer_add(struct wm_region_writer *writer, int64_t when_ns,
                                        uint64_t what)
{
    writer->events[writer->count++ & writer->mask] =
        (struct wm_ring_event) { .when_ns = when_ns, .what = what };
    writer->word += writer->unit;
}

static inline void wm_region_writer_publish(const struct wm_region_writer *writer)
{
    wm_region_writer_say(writer, 0, memory_order_release);
}

static inline int64_t wm_region_writer_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline int64_t wm_region_writer_cpu_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline struct wm_region_frame *
wm_region_writer_frame(struct wm_region_writer *writer, uint64_t depth)
{
    return &writer->frames[depth < WM_REGION_FRAMES ? depth : WM_REGION_FRAMES];
}

/* The call that was written last is open. */
static inline void wm_region_writer_push(struct wm_region_writer *writer, const char *name,
                                         uint32_t number, int64_t now_ns)
{
    bool is_clocked = writer->is_clocked[number] && writer->open < WM_REGION_FRAMES;

    *wm_region_writer_frame(writer, writer->open++) = (struct wm_region_frame) {
        .start_ns = now_ns,
        .cpu_ns = is_clocked ? wm_region_writer_cpu_now() : -1,
        .number = number,
        .name = name,
    };
}

/* Whether the innermost call has its name there. */
static inline bool wm_region_writer_is_innermost(const struct wm_region_writer *writer,
                                                 const char *name)
{
    return writer->open - 1 < WM_REGION_FRAMES &&
           writer->frames[writer->open - 1].name == name;
}

/* What the end of a call says of its CPU time. */
static inline uint64_t wm_region_writer_clocked(const struct wm_region_frame *frame)
{
    return frame->cpu_ns < 0 ? 0
                             : (uint64_t)(wm_region_writer_cpu_now() - frame->cpu_ns) + 1;
}

/* Decides whether the next call of the name is clocked, after one that was clocked or long.
 */
void wm_region_writer_learn(struct wm_region_writer *writer,
                            const struct wm_region_frame *frame, int64_t now_ns);

/* True when it is done. The writer is one that wm_region_writer_is_quick(). */
static inline bool wm_region_writer_begin_quickly(struct wm_region_writer *writer,
                                                  const char *name)
{
    if (writer->count + writer->open + 2 > writer->limit || !name)
        return false;
    uint32_t number = wm_region_writer_find(writer, name);
    if (number == WM_REGION_NO_NAME || writer->is_clocked[number] ||
        writer->unfolded[number] > 0)
        return false;
    wm_region_writer_enter(writer);
    int64_t now_ns = wm_region_writer_now();
    wm_region_writer_add(writer, now_ns, wm_region_writer_what(WM_RING_BEGIN, number));
    wm_region_writer_publish(writer);
    wm_region_writer_push(writer, name, number, now_ns);
    return true;
}

/* The innermost call. */
static inline void wm_region_writer_close(struct wm_region_writer *writer)
{
    const struct wm_region_frame *frame = wm_region_writer_frame(writer, --writer->open);
    uint64_t clocked = wm_region_writer_clocked(frame);
    wm_region_writer_enter(writer);
    int64_t now_ns = wm_region_writer_now();
    wm_region_writer_add(writer, now_ns, wm_region_writer_what(WM_RING_END, clocked));
    wm_region_writer_publish(writer);
    if (clocked != 0 || now_ns - frame->start_ns >= WM_REGION_LONG_NS)
        wm_region_writer_learn(writer, frame, now_ns);
}

static inline bool wm_region_writer_end_quickly(struct wm_region_writer *writer)
{
    if (writer->open <= writer->floor)
        return false;
    wm_region_writer_close(writer);
    return true;
}

/* Has a ring, and no region open that is not in it. */
static inline bool wm_region_writer_is_quick(const struct wm_region_writer *writer)
{
    return writer->ring && writer->level_count == 0;
}

/* Of the text of a name, for the two functions below. */
uint32_t wm_region_writer_hash(const char *name, size_t length);

/* The number of a name that is at a new pointer, or is cut; or WM_REGION_NO_NAME. */
uint32_t wm_region_writer_find_text(const struct wm_region_writer *writer, uint32_t hash,
                                    const char *name, size_t length);

/* Gives a name, of which the text is copied, a number: an unused one, or else that of
 * another name, which is forgotten. */
uint32_t wm_region_writer_take_number(struct wm_region_writer *writer, uint32_t hash,
                                      const char *name, size_t length);

/* Notes that the name of that number is at this pointer. */
void wm_region_writer_note_place(struct wm_region_writer *writer, uint32_t number,
                                 const char *name);

/* NULL when out of memory. It has no ring yet. These three are called under the lock of
 * region.c. */
struct wm_region_writer *wm_region_writer_new(struct wm_region_target *target,
                                              unsigned generation);

/* Makes the ring, or tries to: not again at once where it failed. */
void wm_region_writer_attach(struct wm_region_writer *writer);

/* Accepts NULL. Where its ring is the first of the process it stays mapped, and with it the
 * lock that says that the process is alive. In the child of a fork() the ring is not
 * mapped, and the writer is but memory: free(). */
void wm_region_writer_free(struct wm_region_writer *writer);

/* What a thread marks. */
struct wm_region_mark {
    enum wm_ring_kind kind;
    const char *name;    /* of a BEGIN, a LEAVE and a START */
    uint64_t id, parent; /* of a START and a STOP, and of a START */
};

/* A begin or an end, which are what the quick ones do, in all other cases; all others.
 * False: a start found no room. */
bool wm_region_writer_mark(struct wm_region_writer *writer,
                           const struct wm_region_mark *mark);

/* Before a call that may be folded: folds if that is due, and opens or settles the tail,
 * depending on how fast calls come. */
void wm_region_tail_check(struct wm_region_writer *writer);

/* Ends the innermost call if it is around the tail, or if folding may be due after it. */
void wm_region_tail_end(struct wm_region_writer *writer);

/* Before an event that is not folded: ends the tail. */
void wm_region_tail_close(struct wm_region_writer *writer);

/* Leaves the content of the tail as it is, as it cannot be folded. */
void wm_region_tail_settle(struct wm_region_writer *writer);

/* Whether there is room for so many slots, without waiting for it. */
bool wm_region_writer_has_room(struct wm_region_writer *writer, uint64_t slots);

/* Call this after a change of the tail's check or of the ring's room. */
static inline void wm_region_writer_set_limit(struct wm_region_writer *writer)
{
    writer->limit = writer->room < writer->tail.check ? writer->room : writer->tail.check;
}

#endif
