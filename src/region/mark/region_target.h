/* SPDX-License-Identifier: Apache-2.0 */
/* region_target.h - the inbox's folder as the measured process sees it, and the files of
 * rings in it. No descriptor stays open: a program may close any that it did not open.
 * Calls are made under the lock of region.c, but for those that say otherwise. */
#ifndef WM_REGION_TARGET_H
#define WM_REGION_TARGET_H

#include "base/base_error.h"
#include "region/region_ring.h"

struct wm_region_target {
    char path[WM_FOLDER_SIZE];
    struct wm_ring_control *control;
    unsigned users;        /* threads that write here, and one for itself */
    uint32_t process;      /* this one's number here */
    struct wm_ring *first; /* of this process; NULL: it has made none yet */
    size_t first_bytes;    /* that are mapped */
    bool is_left;          /* its thread has ended */
};

/* WM_ENOENT, WM_EACCES or WM_EFORMAT where there is no inbox of this user and version. */
int wm_region_target_open(const char *path, struct wm_region_target **ret_target,
                          struct wm_error *err);

/* One user less; the last one frees it. */
void wm_region_target_drop(struct wm_region_target *target);

/* In the child of a fork(): a process of its own, without rings. */
void wm_region_target_forget(struct wm_region_target *target);

/* A ring for the calling thread, mapped, with its number and size; NULL where none could
 * be made. Its first WM_RING_CAPACITY_MIN slots are there. */
struct wm_ring *wm_region_target_make_ring(struct wm_region_target *target,
                                           uint64_t *ret_number, uint64_t *ret_size);

/* Lets go of a ring: its thread has ended, or the process goes on elsewhere. The first of a
 * process stays mapped, if `is_kept`, and with it the lock that says that the process is
 * alive: what it started by itself may yet be stopped by a thread that has no ring. */
void wm_region_target_leave_ring(struct wm_region_target *target, struct wm_ring *ring,
                                 size_t bytes, bool is_kept);

/* Reserves slots up to `capacity`. Without the lock. */
bool wm_region_target_grow_ring(const struct wm_region_target *target, struct wm_ring *ring,
                                uint64_t number, uint64_t capacity);

/* Whether the tracker lives, or it cannot be told. Without the lock. */
bool wm_region_target_has_tracker(const struct wm_region_target *target);

/* Asks the tracker to drain. Without the lock. */
void wm_region_target_wake(const struct wm_region_target *target);

#endif
