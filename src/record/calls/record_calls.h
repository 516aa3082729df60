/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_calls.h - calls of blocks of code as files hold them, in the order of their
 * starts: those of a recording, and of gpu_tracker's sub-tracking files.
 */
#ifndef WM_RECORD_CALLS_H
#define WM_RECORD_CALLS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "region/drain/region_calls.h"
#include "wattmeter/recording.h"

struct wm_call {
    const char *name;          /* good until the next one */
    int64_t pid;               /* of sub-tracking files whatever number stands there */
    pid_t tid;                 /* 0: not known */
    int64_t start_ns, stop_ns; /* since 1970, UTC; stop_ns is meaningless for one that */
    bool is_open;              /* never ended */
    uint32_t path, thread, process; /* of a recording's; WM_REGION_NO_PATH, 0 and 0 of
                                     * other files */
    int64_t monotonic_start_ns, monotonic_stop_ns; /* CLOCK_MONOTONIC, of a recording's */
    double seconds;                                /* its time, by the file's own numbers */
};

struct wm_calls;

/* Reads the sub-tracking files at `paths` (CSV or SQLite by content), as if they were one.
 * WM_EFORMAT with the line of what is broken: a header that is not gpu_tracker's, a row
 * that is no row. Calls of one process and name are paired as they nest or follow each
 * other; a start without a stop is a call that never ended, a stop without a start is
 * counted. Calls are kept in memory, 40 bytes each and each name once. */
int wm_calls_open_files(const char *const *paths, size_t count, struct wm_calls **ret_calls,
                        struct wm_error *err);

/* The regions of a run of one of our recordings, in bounded memory. WM_ENODEV: there are
 * none. */
int wm_calls_open_recording(const char *path, size_t run, struct wm_calls **ret_calls,
                            struct wm_error *err);

/* The same for one that is open, whatever tick it stands at. */
int wm_calls_of_recording(struct wm_recording *recording, struct wm_calls **ret_calls,
                          struct wm_error *err);

/* 1 and `ret_call`, 0 past the last one. */
int wm_calls_next(struct wm_calls *calls, struct wm_call *ret_call, struct wm_error *err);

/* What the paths of a recording's calls stand for; `path` is one that a call had. */
const struct wm_region_path *wm_calls_path(const struct wm_calls *calls, uint32_t path);

/* Stops that nothing had started. */
uint64_t wm_calls_stray(const struct wm_calls *calls);

/* What a person should know of the files: the index-th of it, or NULL. */
const char *wm_calls_remark(const struct wm_calls *calls, size_t index);

/* Accepts NULL. */
void wm_calls_close(struct wm_calls *calls);

/* Joins sub-tracking files of one format into a new one, which must not be there, as rows
 * in the order given; nothing is changed in them. A path that is a folder stands for the
 * sub-tracking files of that format in it, in the order of their names. `tell` (may be
 * NULL) gets a line for whatever is left out, `*stop` (may be NULL) ends it. WM_EINVAL
 * where a file is given twice. */
int wm_calls_combine(const char *const *paths, size_t count, const char *target,
                     void (*tell)(void *opaque, const char *remark), void *opaque,
                     const volatile sig_atomic_t *stop, struct wm_error *err);

#endif
