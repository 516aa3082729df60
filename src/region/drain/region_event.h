/* SPDX-License-Identifier: Apache-2.0 */
/* region_event.h - what comes out of the rings, one after the other in the order of time.
 */
#ifndef WM_REGION_EVENT_H
#define WM_REGION_EVENT_H

#include <stdint.h>
#include <sys/types.h>

enum wm_region_event_kind {
    WM_REGION_BEGINS, /* on the thread's stack */
    WM_REGION_ENDS,   /* whatever is on top of it */
    WM_REGION_STARTS, /* by itself, */
    WM_REGION_STOPS,  /* and this one of them, perhaps of another thread */
    WM_REGION_GONE,   /* the thread is: what its stack holds never ended; and with the last
                       * of a process, what it has started */
};

struct wm_region_thread {
    pid_t pid, tid;   /* as the process itself knows them */
    uint32_t process; /* the same number for all threads of a process, and no other */
};

struct wm_region_event {
    int64_t when_ns; /* CLOCK_MONOTONIC */
    enum wm_region_event_kind kind;
    uint32_t thread; /* the number of its ring's file */
    const struct wm_region_thread *who;
    const char *name; /* of BEGINS and STARTS; NULL else */
    uint64_t id;      /* of STARTS and STOPS: which, within the process */
};

#endif
