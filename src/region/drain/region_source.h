/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region_source.h - what an inbox is made of: its folder, made and removed with what is in
 * it, and the rings there, as they are read. Whatever is in a ring may be garbage, and its
 * file may be cut short at any time: then it is given up, and what had been read by then
 * stands.
 */
#ifndef WM_REGION_SOURCE_H
#define WM_REGION_SOURCE_H

#include <dirent.h>
#include <stdbool.h>

#include "base/base_error.h"
#include "region/drain/region_calls.h"
#include "region/region_ring.h"

struct wm_region_folder {
    char path[WM_FOLDER_SIZE];
    DIR *dir; /* for all who read it: it takes but one descriptor */
    int wake_fd;
    struct wm_ring_control *control;
};

/* Makes it, in memory if possible, with `control`, which is locked. On failure nothing is
 * left behind. */
int wm_region_folder_make(struct wm_region_folder *folder, struct wm_error *err);

/* Opens it, and makes `wake` in it: apart from the rest, for no program has to wait for
 * that. */
int wm_region_folder_open(struct wm_region_folder *folder, struct wm_error *err);

/* Programs wait for room in its rings no longer. */
void wm_region_folder_end_waits(struct wm_region_folder *folder);

/* Closes it and removes it. */
void wm_region_folder_remove(struct wm_region_folder *folder);

/* Removes what dead trackers of this user left behind. */
void wm_region_folder_remove_stale(void);

/* Slots that are copied out of a ring at a time. */
enum { WM_REGION_SLOTS = 128 };

/* The events that a slice of folded calls is handed out as: the calls of each place are one
 * call, as long as all of them. */
struct wm_region_folds {
    struct {
        int64_t when_ns;
        uint8_t place; /* its number */
        bool is_end;
    } events[2 * WM_RING_PLACES];
    size_t count, next;         /* `next` is the first that was not handed out */
    uint64_t at;                /* position of the first place */
    uint64_t slots;             /* of the slice */
    struct wm_ring_place place; /* of the event that is handed out */
};

struct wm_region_source {
    struct wm_ring *ring; /* mapped; the kernel reads and writes it (region_shared.h) */
    const struct wm_ring_event *events; /* mapped, and read likewise */
    size_t bytes;                       /* bytes that are mapped */
    uint32_t number;                    /* of the ring, and of the thread */
    struct wm_region_thread thread;
    uint64_t size, capacity; /* checked */
    uint64_t taken, written; /* positions: read up to, written up to as far as it stays */
    uint64_t released;       /* what the ring says of `taken` */
    uint64_t lost;
    int64_t since_ns; /* there was no ring before */
    int64_t last_ns;  /* of the event that was read last */
    int64_t gone_ns;  /* when it was seen to be written no more; 0: it may be */
    bool has_pid;     /* its process was there, by the number that it has for itself */
    bool is_broken;

    /* What the thread says. An event that is being written may be as old as the last one,
     * and as `quiet_ns`. */
    struct wm_ring_state state;
    int64_t quiet_ns;
    uint64_t stuck_sequence; /* since stuck_ns */
    int64_t stuck_ns;
    bool is_stuck; /* for so long that it is waited for no more */

    /* The next event, when `has_next`; it takes so many slots. */
    struct wm_region_event next;
    bool has_next;
    bool has_spoken; /* an event was handed out */
    bool is_over;    /* the thread's last event was handed out */
    uint64_t next_slots;

    int64_t tail_ns; /* beginning of its tail */
    struct wm_region_folds folds;

    struct wm_ring_event copied[WM_REGION_SLOTS];
    uint64_t copied_from, copied_count; /* positions */

    /* Valid UTF-8, of WM_REGION_NAME_MAX bytes at most; NULL: not reported yet. All rings
     * of an inbox count together what these take. */
    char *names[WM_RING_NAMES];
    size_t *name_bytes;
};

/* Maps the ring's file in the folder, in which there was none before `since_ns`. Of
 * `name_bytes`, which is shared with other rings and outlives this one, a name that finds
 * no room is WM_REGION_FURTHER. WM_EFORMAT where it is none; others may be tried again. */
int wm_region_source_open(int folder, uint32_t number, int64_t since_ns, size_t *name_bytes,
                          struct wm_region_source **ret_source);

/* Accepts NULL. */
void wm_region_source_close(struct wm_region_source *source);

/* Looks at what has been written up to now. */
void wm_region_source_look(struct wm_region_source *source, int64_t now_ns);

/* Whether nobody writes it any more; if so what is written now is all. Where that cannot
 * be told, for want of a descriptor, say, it counts as written. */
void wm_region_source_check(struct wm_region_source *source, int folder, int64_t now_ns);

/* Whether it has a tail that may still change. */
bool wm_region_source_has_tail(const struct wm_region_source *source);

/* Has the tail read as it is. */
void wm_region_source_take_tail(struct wm_region_source *source);

/* Reads up to the next event, of which the time is between `floor_ns` and `now_ns`.
 * 1, 0 where there is none, or WM_ENOMEM. */
int wm_region_source_peek(struct wm_region_source *source, int64_t floor_ns,
                          int64_t now_ns);

/* It was handed out. */
void wm_region_source_next(struct wm_region_source *source);

/* Gives back the room of what was handed out, if it comes to so many slots: whether it
 * did. */
bool wm_region_source_release(struct wm_region_source *source, uint64_t least);

#endif
