/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region_calls.h - from events to calls: each thread's stack, and the places in the
 * tree of calls. Feeds both the analysis and the recording.
 *
 * A path is a name below a path: "epoch" > "batch" and "batch" by itself are two. What was
 * started by itself (and so may overlap anything) has paths of its own.
 */
#ifndef WM_REGION_CALLS_H
#define WM_REGION_CALLS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base_error.h"
#include "region/region_ring.h"

/* What comes out of the rings, one after the other in the order of time. */
enum wm_region_event_kind {
    WM_REGION_BEGINS, /* on the thread's stack */
    WM_REGION_ENDS,   /* a call of the stack */
    WM_REGION_STARTS, /* a call outside of the stack begins */
    WM_REGION_STOPS,  /* a call outside of the stack ends, perhaps by another thread */
    WM_REGION_GONE, /* the thread has ended: what its stack holds never does, nor, with the
                     * last thread of a process, what that has started */
};

struct wm_region_thread {
    pid_t pid, tid;   /* as the process itself knows them */
    uint32_t process; /* number of the process */
};

struct wm_region_event {
    int64_t when_ns; /* CLOCK_MONOTONIC */
    enum wm_region_event_kind kind;
    uint32_t thread; /* the number of its ring's file */
    const struct wm_region_thread *who;
    const char *name; /* of BEGINS and STARTS; NULL else */
    uint64_t id;      /* of STARTS and STOPS: which, within the process */
    uint64_t clocked; /* of ENDS and STOPS: one more than the CPU time in ns that the thread
                       * had in the call; 0: it is not known */
    const struct wm_region_fold *fold; /* of ENDS: of so many calls; NULL: of one */
    uint64_t above;  /* of ENDS: calls that lie on the one that ends, and go on */
    uint64_t parent; /* of STARTS: the id of what it lies in; WM_REGION_INNERMOST: what is
                      * on top of the stack; 0: nothing */
};

#define WM_REGION_NO_PATH UINT32_MAX

/* When there are so many paths, or 64 MiB of names, new ones inside one another count as
 * one, by a name that says so; and there may be as many of these. A recursion may have any
 * number of paths. */
#define WM_REGION_PATHS_MOST 65536
#define WM_REGION_FURTHER "(further regions)"

/* Calls that may be open at a time: outside of the stacks, and on a thread's stack, as a
 * ring has room for the ends of no more. What begins beyond that is dropped, and its end
 * with it. */
#define WM_REGION_STARTED_MOST (1 << 18)
#define WM_REGION_DEPTH_MOST (1 << 16)

struct wm_region_path {
    const char *name;
    uint32_t parent; /* WM_REGION_NO_PATH: none */
    uint32_t depth;  /* 0 for those */
    bool is_free;    /* of calls that were started by themselves */
};

enum wm_region_edge_kind {
    WM_REGION_OPENS,
    WM_REGION_CLOSES,
    WM_REGION_BREAKS_OFF, /* it never ended; that is when this became known */
    WM_REGION_UNFINISHED, /* it never ended, and how long it went on is not known: its only
                           * edge, which counts it and gives it neither time nor samples */
};

/* A call opens or closes. */
struct wm_region_edge {
    int64_t when_ns;
    int64_t start_ns; /* of the call: when_ns for one that opens */
    uint32_t path, thread;
    enum wm_region_edge_kind kind;
    uint64_t clocked; /* of a call that closes: one more than its thread's CPU time in ns,
                       * which is no more than its time; 0: it is not known */
    const struct wm_region_fold *fold; /* of what closes: so many calls, as if they had been
                                        * one that lasted as long; NULL: it is one */
    double recorded_s; /* of a call that closes, where a file reports its time itself; else
                          0 */
};

typedef int wm_region_take_edge(void *context, const struct wm_region_edge *edge);

struct wm_region_calls;

int wm_region_calls_new(struct wm_region_calls **ret_calls, struct wm_error *err);

/* Accepts NULL. */
void wm_region_calls_free(struct wm_region_calls *calls);

/* The next event in the order of time, of which the name and the thread are copied. Hands
 * out one edge, or none, or many for a thread that is gone. WM_ENOMEM, or what `take` said.
 */
int wm_region_calls_event(struct wm_region_calls *calls,
                          const struct wm_region_event *event, wm_region_take_edge *take,
                          void *context);

/* Breaks off all that is still open. */
int wm_region_calls_end(struct wm_region_calls *calls, int64_t when_ns,
                        wm_region_take_edge *take, void *context);

/* Numbers count from 0; what they stand for stays as it is, and those behind it follow in
 * memory, until the next event. */
size_t wm_region_calls_path_count(const struct wm_region_calls *calls);
const struct wm_region_path *wm_region_calls_path(const struct wm_region_calls *calls,
                                                  uint32_t path);
size_t wm_region_calls_thread_count(const struct wm_region_calls *calls);
const struct wm_region_thread *wm_region_calls_thread(const struct wm_region_calls *calls,
                                                      uint32_t thread);

/* Ends and stops that nothing had begun. */
uint64_t wm_region_calls_stray(const struct wm_region_calls *calls);

/* Events that there was no room for. */
uint64_t wm_region_calls_dropped(const struct wm_region_calls *calls);

#endif
