/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_edges.c - stored calls as edges, by a binary heap of stops. */
#include "analyze/region/analyze_edges.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/base_array.h"

/* A call that is open: its other edge, and when it came, so that of two that end at once
 * the one that opened later ends first, as calls nest. */
struct open_call {
    struct wm_call_edge edge;
    uint64_t number;
};

struct wm_edges {
    struct wm_calls *calls;
    struct wm_call next; /* read, and not yet open */
    bool has_next, at_end;
    bool has_opened;            /* `opened` is not in the heap yet, as it may be marked */
    struct wm_call_edge opened; /* its other edge */

    struct open_call *heap; /* the earliest first */
    size_t count, room;
    uint64_t opened_count;
};

int wm_edges_new(struct wm_calls *calls, struct wm_edges **ret_edges, struct wm_error *err)
{
    struct wm_edges *edges = calloc(1, sizeof(*edges));

    if (!edges)
        return wm_fail(err, WM_ENOMEM, "calls: out of memory");
    edges->calls = calls;
    *ret_edges = edges;
    return WM_OK;
}

void wm_edges_free(struct wm_edges *edges)
{
    if (!edges)
        return;
    free(edges->heap);
    free(edges);
}

static bool is_before(const struct open_call *one, const struct open_call *other)
{
    if (one->edge.when_ns != other->edge.when_ns)
        return one->edge.when_ns < other->edge.when_ns;
    return one->number > other->number;
}

static void sift_up(struct wm_edges *edges, size_t at, struct open_call call)
{
    while (at > 0 && is_before(&call, &edges->heap[(at - 1) / 2])) {
        edges->heap[at] = edges->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    edges->heap[at] = call;
}

static void pop(struct wm_edges *edges)
{
    struct open_call last = edges->heap[--edges->count];
    size_t at = 0;

    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= edges->count)
            break;
        if (child + 1 < edges->count &&
            is_before(&edges->heap[child + 1], &edges->heap[child]))
            child++;
        if (!is_before(&edges->heap[child], &last))
            break;
        edges->heap[at] = edges->heap[child];
        at = child;
    }
    if (edges->count > 0)
        edges->heap[at] = last;
}

/* Puts the call that was handed out last among those that are open. */
static int keep_opened(struct wm_edges *edges, struct wm_error *err)
{
    if (!edges->has_opened)
        return WM_OK;
    if (wm_array_reserve(&edges->heap, edges->count, &edges->room, sizeof(*edges->heap)) <
        0)
        return wm_fail(err, WM_ENOMEM, "calls: out of memory");
    edges->has_opened = false;
    sift_up(edges, edges->count++,
            (struct open_call) { edges->opened, edges->opened_count++ });
    return WM_OK;
}

static int read_next(struct wm_edges *edges, struct wm_error *err)
{
    int64_t last_ns = edges->next.start_ns;
    bool is_first = edges->opened_count == 0;

    if (edges->has_next || edges->at_end)
        return WM_OK;
    int status = wm_calls_next(edges->calls, &edges->next, err);
    if (status < 0)
        return status;
    edges->has_next = status > 0;
    edges->at_end = status == 0;
    if (edges->has_next && !is_first && edges->next.start_ns < last_ns)
        return wm_fail(err, WM_EFORMAT, "the calls are not in the order of their starts");
    return WM_OK;
}

static void open_next(struct wm_edges *edges, struct wm_call_edge *ret_edge)
{
    const struct wm_call *call = &edges->next;
    struct wm_call_edge *opened = &edges->opened;

    *ret_edge = (struct wm_call_edge) { .when_ns = call->start_ns,
                                        .kind = WM_REGION_OPENS,
                                        .call = *call };
    *opened = (struct wm_call_edge) { .call = *call };
    opened->call.name = NULL;
    opened->kind = call->is_open ? WM_REGION_BREAKS_OFF : WM_REGION_CLOSES;
    opened->when_ns = call->stop_ns > call->start_ns ? call->stop_ns : call->start_ns;
    edges->has_opened = true;
    edges->has_next = false;
}

int wm_edges_next(struct wm_edges *edges, struct wm_call_edge *ret_edge,
                  struct wm_error *err)
{
    int status = keep_opened(edges, err);

    if (status == WM_OK)
        status = read_next(edges, err);
    if (status < 0)
        return status;

    if (edges->has_next &&
        (edges->count == 0 || edges->next.start_ns <= edges->heap[0].edge.when_ns)) {
        open_next(edges, ret_edge);
        return 1;
    }
    if (edges->count == 0)
        return 0;
    *ret_edge = edges->heap[0].edge;
    pop(edges);
    return 1;
}

void wm_edges_mark(struct wm_edges *edges, uint64_t mark)
{
    edges->opened.mark = mark;
}
