/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_calls_ops.h - what a kind of file with calls provides; nothing outside
 * src/record sees it. Each kind has a struct of its own that begins with a struct
 * wm_calls, which its wm_calls_open_...() allocates and hands out.
 */
#ifndef WM_RECORD_CALLS_OPS_H
#define WM_RECORD_CALLS_OPS_H

#include "base/text/base_remarks.h"
#include "record/calls/record_calls.h"

struct wm_calls_ops {
    /* As wm_calls_next(). */
    int (*next)(struct wm_calls *calls, struct wm_call *ret_call, struct wm_error *err);

    /* As wm_calls_path(). Missing: no call has one. */
    const struct wm_region_path *(*path)(const struct wm_calls *calls, uint32_t path);

    /* As wm_calls_stray(). */
    uint64_t (*stray)(const struct wm_calls *calls);

    /* Frees `calls` too. */
    void (*close)(struct wm_calls *calls);
};

struct wm_calls {
    const struct wm_calls_ops *ops;
    struct wm_remarks remarks;
};

#endif
