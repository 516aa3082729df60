/* SPDX-License-Identifier: Apache-2.0 */
/*
 * track_batch.h - a command that is run several times back to back, as one command.
 *
 * A process of ours takes the place of the command and starts one run after the other. It
 * keeps the figures of each run in memory that it shares with the tracker.
 */
#ifndef WM_TRACK_BATCH_H
#define WM_TRACK_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include "base/base_error.h"

struct wm_batch_run {
    int64_t begin_ns, end_ns; /* CLOCK_MONOTONIC */
    int wait_status;
    struct rusage usage;
};

struct wm_batch {
    size_t count;      /* the runs that are wanted */
    bool goes_on;      /* after a run that fails */
    long inherited_kb; /* the high-water mark of memory that each run begins with */
    size_t done;       /* the runs that have ended */
    struct wm_batch_run runs[];
};

int wm_batch_new(size_t count, bool goes_on, struct wm_batch **ret_batch,
                 struct wm_error *err);

/* Accepts NULL. */
void wm_batch_free(struct wm_batch *batch);

/* Is the command from here on, in a process that has just been forked. `exec_fd` is closed
 * once the first run has been executed; returns the errno of one that cannot be. */
int wm_batch_be(struct wm_batch *batch, const char *path, char *const argv[],
                char *const environment[], int exec_fd);

#endif
