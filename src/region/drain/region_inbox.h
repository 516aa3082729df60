/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region_inbox.h - the tracker's end of the rings: what the threads of the measured
 * processes wrote, merged into one stream in the order of time.
 *
 * An inbox is a folder in memory (/dev/shm). Its path goes to the measured program in
 * WATTMETER_REGIONS; each thread that opens a region makes a ring there (region_ring.h). A
 * ring outlives its writer, so nothing is lost with a process that is killed.
 */
#ifndef WM_REGION_INBOX_H
#define WM_REGION_INBOX_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base_error.h"
#include "region/drain/region_calls.h"

struct wm_region_inbox;

/* Makes the folder, open to this user alone: programs may be told of it. */
int wm_region_inbox_new(struct wm_region_inbox **ret_inbox, struct wm_error *err);

/* Makes the tracker's end ready, once; before that nothing is drained. Removes what dead
 * trackers left behind. Apart from the folder, for a program need not wait for this,
 * neither at its start nor for its end to be told. */
int wm_region_inbox_open(struct wm_region_inbox *inbox, struct wm_error *err);

/* Removes the folder. Accepts NULL. Not in a child of fork(). */
void wm_region_inbox_free(struct wm_region_inbox *inbox);

/* The value of WATTMETER_REGIONS. */
const char *wm_region_inbox_path(const struct wm_region_inbox *inbox);

/* Becomes readable when a ring is half full, so that draining is due before the tick. */
int wm_region_inbox_fd(const struct wm_region_inbox *inbox);

/* Whether no thread has made a ring yet: then draining can wait. */
bool wm_region_inbox_is_idle(const struct wm_region_inbox *inbox);

/* Nobody waits for room any more: what comes from now on is not taken. */
void wm_region_inbox_close(struct wm_region_inbox *inbox);

/* Threads fold short calls that come fast, which are handed out as one: from now on however
 * slowly they come, or no longer so. */
void wm_region_inbox_fold_all(struct wm_region_inbox *inbox, bool folds_all);

/* Takes an event; negative stops the draining, and the event comes again. Its name and its
 * thread are borrowed for this call. */
typedef int wm_region_take(void *context, const struct wm_region_event *event);

/* Hands out, in the order of time over all threads, the events up to `*ret_complete_ns`;
 * whatever comes later is later than that. 1: there are more, and it is `deadline_ns`,
 * which is looked at after some events only; INT64_MAX: there is none. `is_last`: nothing
 * is waited for, the writers are gone or are given up. */
int wm_region_inbox_drain(struct wm_region_inbox *inbox, bool is_last, int64_t deadline_ns,
                          wm_region_take *take, void *context, int64_t *ret_complete_ns,
                          struct wm_error *err);

/* What was in the way. */
struct wm_region_trouble {
    uint64_t lost; /* events that found no room, for a ring stayed full too long, or that
                    * had no ring */
    int no_ring_errno; /* why a thread could not make its ring; 0: all could, or it is not
                        * known */

    /* How many of the files had something in them that no thread writes there, or were cut
     * short: what came before that stands. The process is that of the first; 0: it is not
     * known. */
    uint64_t damaged;
    pid_t damaged_pid;

    /* Somebody has removed its files, or cut its control short: rings that are there go on,
     * no new ones come, and nobody can ask for draining. */
    bool is_cut_off;

    pid_t other_pid; /* a process whose regions go to its own tracker instead; 0: none */
};

/* As of the last time that it was drained. */
const struct wm_region_trouble *
wm_region_inbox_trouble(const struct wm_region_inbox *inbox);

#endif
