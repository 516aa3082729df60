/* SPDX-License-Identifier: Apache-2.0 */
/*
 * track_events.h - hardware events of a command and of all that it starts, counted by the
 * kernel's perf from its exec on. What the machine does not count is missing, with a note.
 */
#ifndef WM_TRACK_EVENTS_H
#define WM_TRACK_EVENTS_H

#include <linux/perf_event.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base_error.h"
#include "record/run/record_run.h"

/* The system calls, so that a test may give the machine a PMU. `open` returns a descriptor
 * or -1 with errno. */
struct wm_events_calls {
    int (*open)(const struct perf_event_attr *attr, pid_t pid);
    ssize_t (*read)(int fd, void *buffer, size_t size);
};

extern const struct wm_events_calls wm_events_kernel;

/* The events that were asked for are bits, by enum wm_event. */
struct wm_events {
    uint32_t wanted;
    uint32_t users_only; /* of that, those that the kernel counts in user space alone */
    int fds[WM_EVENTS];  /* negative: the errno value with which perf refused */
};

/* A list of names with commas. WM_EINVAL lists what there is. */
int wm_events_parse(const char *list, uint32_t *ret_wanted, struct wm_error *err);

/* The process has no children or threads yet, and waits for its exec. */
void wm_events_open(struct wm_events *events, uint32_t wanted, pid_t pid,
                    const struct wm_events_calls *calls);

/* Reads the counters into the result, with a note on what is missing, and closes them. */
void wm_events_take(struct wm_events *events, const struct wm_events_calls *calls,
                    struct wm_result *result);

/* All zero is closed. */
void wm_events_close(struct wm_events *events);

#endif
