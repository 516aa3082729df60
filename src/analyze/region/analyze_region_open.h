/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_region_open.h - the calls that are open, by what tells them apart, with what is
 * known of them elsewhere; for src/analyze alone. Two that nothing tells apart are as good
 * as each other.
 */
#ifndef WM_ANALYZE_REGION_OPEN_H
#define WM_ANALYZE_REGION_OPEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wm_open_call {
    int64_t start_ns;
    uint32_t path, thread;
    uint64_t of_path, of_name; /* its keys in two struct wm_blocks */
    size_t item, parent;       /* and its path, and the one around it */
};

/* All zero is the right start. */
struct wm_open_calls {
    struct wm_open_call *slots; /* a hash table; `is_used` says which of them hold one */
    bool *is_used;
    size_t count, room; /* a power of two, or 0 */
};

void wm_open_calls_release(struct wm_open_calls *calls);

/* WM_ENOMEM is the only failure; with room made before there is none. */
int wm_open_calls_reserve(struct wm_open_calls *calls);
int wm_open_calls_add(struct wm_open_calls *calls, const struct wm_open_call *call);

/* Takes out a call of that path, thread and start; false where there is none. */
bool wm_open_calls_take(struct wm_open_calls *calls, struct wm_open_call *call);

#endif
