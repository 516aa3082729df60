/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_read_left.h - regions that a recording lacks because its tracker was killed, and
 * that are still where the program had written them (region_left.h).
 *
 *     wm_left_note(&left, &batch, err);              each batch of the recording,
 *     wm_left_read(&left, run, end_ns, &batch, err); and at the end what goes on from there
 *     wm_left_release(&left);
 *
 * All zero is a new one.
 */
#ifndef WM_RECORD_READ_LEFT_H
#define WM_RECORD_READ_LEFT_H

#include "record/record_regions.h"
#include "record/run/record_run.h"

enum { WM_LEFT_REMARK = 384 };

struct wm_left {
    struct wm_regions_part known;  /* the recording's paths and threads, */
    struct wm_regions_part found;  /* and those that follow, with the calls */
    int64_t last_ns;               /* the latest stop in the recording, */
    struct wm_region_record *last; /* and the calls that stopped then */
    size_t last_count, last_room;
    char remark[WM_LEFT_REMARK]; /* after the reading: what may be missing; or empty */
};

/* WM_ENOMEM is the only failure. */
int wm_left_note(struct wm_left *left, const struct wm_region_batch *batch,
                 struct wm_error *err);

/* Whether there may be anything for wm_left_read() to find. */
bool wm_left_is_there(const struct wm_run *run);

/* Before anything is read: 1, and the remark that there will be; 0: nothing was left. */
int wm_left_look(const struct wm_run *run, char ret_remark[WM_LEFT_REMARK],
                 struct wm_error *err);

/* 1 and what is borrowed until the release; 0: nothing was left, or it is gone, or the
 * tracker is not dead. What is still open broke off at `end_ns`, where the recording ends,
 * or with the last event if that is later. */
int wm_left_read(struct wm_left *left, const struct wm_run *run, int64_t end_ns,
                 struct wm_region_batch *ret_batch, struct wm_error *err);

void wm_left_release(struct wm_left *left);

#endif
