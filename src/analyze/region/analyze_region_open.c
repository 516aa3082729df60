/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_region_open.c - a hash table with linear probing, at most half full. */
#include "analyze/region/analyze_region_open.h"

#include <stdlib.h>

#include "base/base_error.h"

#define FIRST_ROOM 64

static size_t home_of(const struct wm_open_calls *calls, const struct wm_open_call *call)
{
    uint64_t hash = (uint64_t)call->start_ns * UINT64_C(0x9e3779b97f4a7c15);

    hash ^= ((uint64_t)call->path << 32 | call->thread) * UINT64_C(0xc2b2ae3d27d4eb4f);
    hash ^= hash >> 29;
    hash *= UINT64_C(0xbf58476d1ce4e5b9);
    return (size_t)(hash >> 32) & (calls->room - 1);
}

static bool is_same(const struct wm_open_call *one, const struct wm_open_call *other)
{
    return one->start_ns == other->start_ns && one->path == other->path &&
           one->thread == other->thread;
}

void wm_open_calls_release(struct wm_open_calls *calls)
{
    free(calls->slots);
    free(calls->is_used);
    *calls = (struct wm_open_calls) { 0 };
}

static void put(struct wm_open_calls *calls, const struct wm_open_call *call)
{
    size_t at = home_of(calls, call);

    while (calls->is_used[at])
        at = (at + 1) & (calls->room - 1);
    calls->slots[at] = *call;
    calls->is_used[at] = true;
    calls->count++;
}

static int grow(struct wm_open_calls *calls)
{
    struct wm_open_calls grown = { .room = calls->room ? calls->room * 2 : FIRST_ROOM };

    grown.slots = calloc(grown.room, sizeof(*grown.slots));
    grown.is_used = calloc(grown.room, sizeof(*grown.is_used));
    if (!grown.slots || !grown.is_used) {
        wm_open_calls_release(&grown);
        return WM_ENOMEM;
    }
    for (size_t i = 0; i < calls->room; i++) {
        if (calls->is_used[i])
            put(&grown, &calls->slots[i]);
    }
    wm_open_calls_release(calls);
    *calls = grown;
    return WM_OK;
}

int wm_open_calls_reserve(struct wm_open_calls *calls)
{
    return 2 * (calls->count + 1) > calls->room ? grow(calls) : WM_OK;
}

int wm_open_calls_add(struct wm_open_calls *calls, const struct wm_open_call *call)
{
    if (wm_open_calls_reserve(calls) < 0)
        return WM_ENOMEM;
    put(calls, call);
    return WM_OK;
}

/* Moves up those behind a place that is free now, so that they are still found. */
static void close_hole(struct wm_open_calls *calls, size_t hole)
{
    size_t mask = calls->room - 1;

    for (size_t at = (hole + 1) & mask; calls->is_used[at]; at = (at + 1) & mask) {
        size_t home = home_of(calls, &calls->slots[at]);
        if (((at - home) & mask) < ((at - hole) & mask))
            continue;
        calls->slots[hole] = calls->slots[at];
        hole = at;
    }
    calls->is_used[hole] = false;
}

bool wm_open_calls_take(struct wm_open_calls *calls, struct wm_open_call *call)
{
    if (calls->count == 0)
        return false;

    size_t at = home_of(calls, call);
    while (calls->is_used[at] && !is_same(&calls->slots[at], call))
        at = (at + 1) & (calls->room - 1);
    if (!calls->is_used[at])
        return false;
    *call = calls->slots[at];
    close_hole(calls, at);
    calls->count--;
    return true;
}
