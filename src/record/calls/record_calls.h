/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_calls.h - calls of blocks of code as files hold them, in the order of their
 * starts: those of a recording, and of gpu_tracker's sub-tracking files.
 */
#ifndef WM_RECORD_CALLS_H
#define WM_RECORD_CALLS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/record_regions.h"
#include "wattmeter/recording.h"

struct wm_call {
    const char *name;          /* good until the next one */
    pid_t pid, tid;            /* 0: not known */
    int64_t start_ns, stop_ns; /* since 1970, UTC */
    bool is_open;              /* it never ended: stop_ns is when this became known, or */
                               /* WM_CALL_NEVER_STOPS */
    uint32_t path, thread, process;
    int64_t monotonic_start_ns, monotonic_stop_ns; /* CLOCK_MONOTONIC, of a recording's */
    uint64_t clocked;                              /* as in a record */
    struct wm_region_fold fold;
    double seconds; /* its time where it ended, by the file's own numbers */
};

struct wm_calls;

/* Reads the sub-tracking files at `paths` (CSV or SQLite by content), as if they were one.
 * WM_EFORMAT with the line of what is broken: a header that is not gpu_tracker's, a row
 * that is no row. */
int wm_calls_open_files(const char *const *paths, size_t count, struct wm_calls **ret_calls,
                        struct wm_error *err);

/* The regions of a recording, whatever tick it stands at, in bounded memory. It stays the
 * caller's. WM_ENODEV: there are none. */
int wm_calls_of_recording(struct wm_recording *recording, struct wm_calls **ret_calls,
                          struct wm_error *err);

/* 1 and `ret_call`, 0 past the last one. */
int wm_calls_next(struct wm_calls *calls, struct wm_call *ret_call, struct wm_error *err);

/* What the paths of calls stand for; `path` is one that a call had. */
const struct wm_region_path *wm_calls_path(const struct wm_calls *calls, uint32_t path);

/* Stops that nothing had started. */
uint64_t wm_calls_stray(const struct wm_calls *calls);

/* What a person should know of the files: the index-th of it, or NULL. */
const char *wm_calls_remark(const struct wm_calls *calls, size_t index);

/* Accepts NULL. */
void wm_calls_close(struct wm_calls *calls);

#endif
