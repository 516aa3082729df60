/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region_journal.h - the events that a tracker has taken from the rings and whose calls
 * are not in its recording yet. They are in memory that outlives a tracker which is
 * killed: in two files of the inbox's folder that take turns. Each begins with what was
 * open then, so that the one before is of no use any more once its calls are recorded.
 *
 *     wm_region_journal_add(journal, event, thread, name);      before it takes effect
 *     wm_region_journal_keep(journal);                before its ring has it no more
 *     wm_region_journal_settle(journal, inbox, calls, given, written);
 *
 * region_left.h reads it.
 */
#ifndef WM_REGION_JOURNAL_H
#define WM_REGION_JOURNAL_H

#include "region/drain/region_calls.h"

struct wm_region_journal;

/* `folder` is the inbox's. */
int wm_region_journal_new(const char *folder, struct wm_region_journal **ret_journal,
                          struct wm_error *err);

/* Accepts NULL. The files stay, to go with the folder. */
void wm_region_journal_free(struct wm_region_journal *journal);

/* Whether there is room for more; if not, settling may help, or waiting for the recording.
 * `name` is NULL where the event has none. A journal that finds no memory is given up: it
 * takes everything and keeps nothing. */
bool wm_region_journal_add(struct wm_region_journal *journal,
                           const struct wm_region_event *event,
                           struct wm_region_thread thread, const char *name);

/* What was added outlives us from now on. */
void wm_region_journal_keep(struct wm_region_journal *journal);

/* All that was added has gone through `calls`; `given` calls have come of it since the
 * start, and `written` of them will not be asked for again. Between two drainings. */
void wm_region_journal_settle(struct wm_region_journal *journal,
                              const struct wm_region_inbox *inbox,
                              const struct wm_region_calls *calls, uint64_t given,
                              uint64_t written);

/* A thread's ring calls a name `local` from now on. There is always room for it. */
void wm_region_journal_add_name(struct wm_region_journal *journal, uint32_t thread,
                                uint32_t local, uint32_t number, const char *name);

/* The layout of the files, for region_left.c: entries follow the head, each with its text
 * padded to eight bytes. */
#define WM_JOURNAL_MAGIC UINT64_C(0x316c6e726a6d7777) /* "wwmjrnl1" */
#define WM_JOURNAL_MAX ((size_t)16 << 20)

struct wm_journal_head {
    uint64_t magic;
    uint64_t turn;      /* which of them it is, from 1; 0: not in use */
    uint64_t used;      /* bytes, those of the head too */
    uint64_t opens_end; /* where the entries end that say how things stood then */
};

enum wm_journal_kind {
    WM_JOURNAL_THREAD = 1, /* thread; name: its process; id: pid and, 32 bits up, tid */
    WM_JOURNAL_NAME,       /* name, and its text */
    WM_JOURNAL_LOCAL,      /* thread; id: what its ring calls it; name */
    WM_JOURNAL_EVENT,
    WM_JOURNAL_OPEN, /* an event of before; its name is its text */
};

struct wm_journal_entry {
    int64_t when_ns;
    uint64_t id;
    uint32_t thread, name;
    uint16_t kind, event_kind;
    uint32_t length; /* of the text, without padding */
};

/* The name of a file in the folder; `which` is 0 or 1. */
const char *wm_journal_file(int which);

#endif
