/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_drm_search.h - goes over the descriptors of all processes in search of
 * DRM devices, piece by piece.
 *
 * No list of a GPU's users is open to everybody, so each descriptor of each
 * process has to be looked at. That is dear, and is therefore done between the
 * readings, in at most a hundredth of the time.
 */
#ifndef WM_SOURCE_DRM_SEARCH_H
#define WM_SOURCE_DRM_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base_error.h"

struct wm_drm_search {
    bool started;             /* from here on `proc` means something */
    int proc;                 /* descriptor of /proc, or -1 */
    struct wm_error proc_err; /* why there is none */
    bool sees_all;            /* this /proc shows all processes of the machine */

    /* One round goes over all processes and their descriptors. */
    bool running;       /* a round is under way */
    unsigned round;     /* number of the one under way, or of the last */
    unsigned completed; /* rounds */
    int64_t round_ns, turn_ns;
    int64_t earned_ns; /* time that went by and is not paid for by searching */
    pid_t *pids;
    size_t pid_count, pid_next;
    int *numbers; /* of the descriptors of pids[pid_next - 1] */
    size_t number_count, number_next;

    /* In this round and in the last one: */
    size_t denied, denied_before;   /* processes that may not be looked at */
    bool left_out, left_out_before; /* there was more than there is room for */
};

/* Called for descriptor `number` of process `pid`, which is, or may be, a DRM
 * device; `node` is the last part of its path, "renderD128", or empty. */
typedef void wm_drm_found(void *context, pid_t pid, int number, const char *node);

/* A /proc that cannot be read is no failure: see proc_err. Release it in either
 * case; all zero is fine too. */
int wm_drm_search_init(struct wm_drm_search *search, const char *procfs,
                       struct wm_error *err);
void wm_drm_search_release(struct wm_drm_search *search);

/* Searches until a round is complete, which is when it returns true, or
 * `limit_ns` have passed. */
bool wm_drm_search_run(struct wm_drm_search *search, int64_t limit_ns, wm_drm_found *found,
                       void *context);

/* The same, for as long as the share of the time allows and only where a new
 * round is due. */
bool wm_drm_search_turn(struct wm_drm_search *search, wm_drm_found *found, void *context);

#endif
