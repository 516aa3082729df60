/* SPDX-License-Identifier: Apache-2.0 */
/* region_left_journal.h - reads the journal (region_journal.h) of a tracker that is dead.
 */
#ifndef WM_REGION_LEFT_JOURNAL_H
#define WM_REGION_LEFT_JOURNAL_H

#include "base/base_map.h"
#include "region/drain/region_inbox.h"
#include "region/drain/region_intern.h"

/* A thread, and how far the journal knows of it. */
struct wm_left_thread {
    struct wm_region_thread name;
    int64_t last_ns;  /* of its last event, */
    uint64_t at_last; /* and how many there are at that time */
};

/* All zero is an empty one. Its memory is bounded by the length of the files, whatever
 * numbers are in them. */
struct wm_left_journal {
    struct wm_region_interned names;
    struct wm_map name_map;   /* the number there, 0 -> in `names` */
    struct wm_map local_map;  /* thread, what its ring calls a name -> in `names` */
    struct wm_map thread_map; /* number, 0 -> in `threads` */
    struct wm_left_thread *threads;
    size_t thread_count, thread_room;
    bool is_there;
};

typedef int wm_left_take(void *context, const struct wm_region_event *event,
                         struct wm_region_thread thread, const char *name);

/* Hands out its events, none of which is later than `now_ns`. WM_ENOMEM, WM_EFORMAT or
 * WM_EIO, or what `take` said: what came until then stands. */
int wm_left_journal_read(struct wm_left_journal *journal, int folder, int64_t now_ns,
                         wm_left_take *take, void *context, struct wm_error *err);

/* NULL where nothing is known of it. */
const struct wm_left_thread *wm_left_journal_thread(const struct wm_left_journal *journal,
                                                    uint32_t number);

void wm_left_journal_release(struct wm_left_journal *journal);

#endif
