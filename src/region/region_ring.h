/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region_ring.h - what a measured program and its tracker share: the files in the inbox's
 * folder.
 *
 *     control     what all have in common; the tracker holds a lock on it (flock)
 *     wake        a FIFO; a byte in it asks for draining before it is time
 *     0, 1, ...   a ring per thread and program, numbered by control.rings_made
 *
 * A ring is made under a name with a dot before it, and renamed when it is ready. Its
 * thread locks it (flock), maps it and closes it: the mapping holds the lock, so that it
 * is gone when the thread or the program is, by whatever way, and a program that closes
 * descriptors which are not its own breaks nothing. A child of fork() does not get the
 * mapping.
 *
 * One thread writes a ring and one inbox reads it. Positions count slots from the ring's
 * beginning and never wrap; the slot of position p is events[p % capacity]. The capacity
 * doubles while the ring is filled for the first time, up to `size`, so that memory is
 * reserved as it is needed: what does not fit into a full /dev/shm stops the growth and
 * is not found out by SIGBUS.
 *
 * A thread whose calls are short and come fast folds them: at the end of its ring it keeps
 * a tail, which is a slice in two copies with events behind it. From time to time it adds
 * the events to the copy that is not valid, and one store makes that copy valid and the
 * events void. So the ring is consistent whenever its thread is killed. The inbox reads a
 * tail only when the thread can no longer fold into it: when it is settled, which makes it
 * a part of the ring, or WM_RING_SLICE_NS after its beginning, by a clock that both share.
 *
 * Each end takes what it reads here for the word of a stranger. A file that is cut short
 * is noticed by the inbox, which has it read by the kernel; the thread, which cannot
 * afford that, gets SIGBUS.
 */
#ifndef WM_REGION_RING_H
#define WM_REGION_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "wattmeter/region.h"

#define WM_RING_VERSION 4
#define WM_RING_MAGIC UINT64_C(0x31676e69726d7777)    /* "wwmring1" */
#define WM_CONTROL_MAGIC UINT64_C(0x31746c63726d7777) /* "wwmrclt1" */

/* The environment's name for where a program's regions go: the folder of an inbox, or a
 * sub-tracking file. */
#define WM_REGIONS_VARIABLE "WATTMETER_REGIONS"

/* Where inboxes and the links to them are: what is written there never waits for a disk. */
#define WM_MEMORY_FOLDER "/dev/shm"

/* The folder's name goes on with the user's number and six random characters. */
#define WM_INBOX_PREFIX "wattmeter-"

/* Longest path of a folder, and of a file in it. */
enum { WM_FOLDER_SIZE = 256, WM_RING_PATH_SIZE = WM_FOLDER_SIZE + 24 };

/* The names of the other files. */
#define WM_CONTROL_FILE "control"
#define WM_WAKE_FILE "wake"

/* Slots; powers of two. */
enum {
    WM_RING_CAPACITY_MIN = 1 << 10,
    WM_RING_SIZE_MAX = 1 << 16,
    WM_RING_NAMES = 256,    /* names that a ring holds at one time */
    WM_RINGS_MAX = 1 << 24, /* in all; numbers of rings are below that */
    WM_RING_PLACES = 32,    /* of calls in a slice */
    WM_RING_PLACE_SLOTS = 5,
    WM_RING_SLICE_SLOTS = 1 + WM_RING_PLACES * WM_RING_PLACE_SLOTS, /* at most */
};

/* How long a thread may fold calls into a slice. */
#define WM_RING_SLICE_NS INT64_C(10000000)

enum wm_ring_kind {
    WM_RING_NAME = 1, /* value: its number here; when_ns: its length; its bytes follow in
                       * slots of their own */
    WM_RING_BEGIN,    /* value: the name's number */
    WM_RING_END,      /* value: one more than the CPU time in ns that the thread had in the
                       * call, by its own clock; 0: it was not read */
    WM_RING_LEAVE,    /* value: this many calls lie on the one that ends, and go on */
    WM_RING_START,    /* value: the name's number; the next slot's `what` is its id, and its
                       * `when_ns` what it lies in: 0, an id or WM_REGION_INNERMOST */
    WM_RING_STOP,     /* value: the id; the next slot's `what` is as the value of an end */
    WM_RING_SLICE,    /* value: the number of its places, and 8 bits further up that of its
                       * slots; when_ns: the calls came after that. Its places follow. */
    WM_RING_VOID,     /* value: the number of slots, all of which mean nothing */
};

/* Ids of what is started by itself have so many bits. */
enum { WM_RING_VALUE_BITS = 56 };

struct wm_ring_event {
    int64_t when_ns; /* CLOCK_MONOTONIC */
    uint64_t what;   /* the kind, and a value 8 bits further up */
};

/* Buckets of times by powers of two of a microsecond, as in a report: the first up to 1 us.
 */
enum { WM_REGION_FOLD_BUCKETS = 10 };

/* The longest call that is folded. */
#define WM_REGION_FOLD_LONGEST_NS (INT64_C(1000) << (WM_REGION_FOLD_BUCKETS - 1))

/* Short calls one after the other that their thread folded. All zero: it is one call by
 * itself. */
struct wm_region_fold {
    uint64_t calls;
    uint64_t sum_ns, squares; /* of their times, and of these in ns squared */
    uint32_t min_ns, max_ns;
    uint32_t buckets[WM_REGION_FOLD_BUCKETS];
};

/* Of a slice: all calls of a name at a place in the tree of calls. */
struct wm_ring_place {
    uint32_t number; /* of the name */
    uint32_t parent; /* the place around it, which is before this one; WM_RING_PLACES: the
                      * thread's innermost open call */
    struct wm_region_fold calls;
};

struct wm_ring {
    /* Written before the ring has its name. */
    uint64_t magic;
    uint32_t version;
    int32_t pid, tid;
    uint32_t process; /* a number that no other process of this inbox has */
    uint64_t size;    /* greatest capacity */

    /* The thread's. `sequence` is a wm_ring_state in one word. */
    _Alignas(64) _Atomic uint64_t sequence;
    _Atomic uint64_t capacity;
    _Atomic uint64_t lost;     /* events that found no room */
    _Atomic int64_t closed_ns; /* when the thread ended, or 0 */

    /* The inbox's. */
    _Alignas(64) _Atomic uint64_t taken; /* position up to which there is room again */
};

/* `taken` of a ring that the inbox reads no more. */
#define WM_RING_GIVEN_UP UINT64_MAX

/* Where events begin: a page that a hole may be next to. */
enum { WM_RING_EVENTS_AT = 4096 };

struct wm_ring_control {
    uint64_t magic;
    uint32_t version;
    int32_t pid;    /* of the tracker, as it knows itself */
    uint64_t clock; /* the tracker's wm_clock_namespace() */
    _Alignas(64) _Atomic uint64_t rings_made;
    _Atomic uint64_t rings_ready; /* those that have their name */
    _Atomic uint64_t processes;
    _Atomic uint64_t lost;          /* events of threads that could not make a ring */
    _Atomic uint32_t no_ring_errno; /* why the last of these threads could not */
    _Alignas(64) _Atomic uint64_t rings_gone;
    _Atomic uint64_t progress; /* moves while rings are opened or emptied */
    _Atomic uint32_t is_closed;
    _Atomic uint32_t folds_all; /* short calls are folded however slowly they come */
    _Atomic int32_t other_pid;  /* a process whose regions go to its own tracker instead, by
                                 * its own pid; 0: none */
};

_Static_assert(sizeof(struct wm_ring) <= WM_RING_EVENTS_AT, "events begin behind it");
_Static_assert(sizeof(struct wm_ring_event) == 16, "the layout is shared");
_Static_assert(sizeof(struct wm_ring_place) ==
                   WM_RING_PLACE_SLOTS * sizeof(struct wm_ring_event),
               "the layout is shared");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "a lock would be in one process only");

/* The state that a thread publishes in one word. */
struct wm_ring_state {
    uint64_t end;    /* position behind the last event */
    uint64_t tail;   /* slots of the tail, which ends there; 0: no tail */
    unsigned copy;   /* the valid copy of the slice */
    bool is_writing; /* from before the clock is read for an event until that is there */
};

/* The word is `end * UNIT`, and in a tail `end * (UNIT + TAIL)` less `TAIL` for each slot
 * before it. */
#define WM_RING_WRITING UINT64_C(1)
#define WM_RING_COPY UINT64_C(2)
#define WM_RING_TAIL UINT64_C(4)
#define WM_RING_UNIT (UINT64_C(1) << 14)

static inline struct wm_ring_state wm_ring_state(uint64_t sequence)
{
    return (struct wm_ring_state) {
        .end = sequence / WM_RING_UNIT,
        .tail = sequence % WM_RING_UNIT / WM_RING_TAIL,
        .copy = sequence & WM_RING_COPY ? 1 : 0,
        .is_writing = sequence & WM_RING_WRITING,
    };
}

/* Whether so many events may have been lost, `before` of which it was known: a thread needs
 * more than a nanosecond for each. */
static inline bool wm_ring_is_count(uint64_t lost, uint64_t before, int64_t duration_ns)
{
    return lost >= before && lost <= (uint64_t)duration_ns;
}

static inline size_t wm_ring_bytes(uint64_t capacity)
{
    return WM_RING_EVENTS_AT + (size_t)capacity * sizeof(struct wm_ring_event);
}

static inline uint64_t wm_ring_slots_of_name(size_t length)
{
    return (length + sizeof(struct wm_ring_event) - 1) / sizeof(struct wm_ring_event);
}

/* The length of a name, or of as much of it as is taken, which ends with a whole
 * character of UTF-8. */
static inline size_t wm_region_name_length(const char *name)
{
    size_t length = strnlen(name, WM_REGION_NAME_MAX + 1);

    if (length <= WM_REGION_NAME_MAX)
        return length;
    length = WM_REGION_NAME_MAX;
    for (int i = 0; i < 3 && ((unsigned char)name[length] & 0xc0) == 0x80; i++)
        length--;
    return length;
}

#endif
