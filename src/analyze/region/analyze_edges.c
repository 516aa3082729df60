/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_edges.c - stored calls as edges, by a binary heap of stops. */
#include "analyze/region/analyze_regions.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/base_array.h"

struct edge {
    struct wm_region_edge edge;
    struct wm_region_fold fold; /* that it points to */
};

struct wm_edges {
    struct wm_calls *calls;
    bool are_told;
    struct wm_call next; /* read, and not yet open */
    bool has_read, has_next, at_end;

    struct edge *heap; /* the other edges of what is open, the earliest first */
    size_t count, room;
    struct wm_region_fold fold; /* of the one that was handed out last */
};

int wm_edges_new(struct wm_calls *calls, bool are_told, struct wm_edges **ret_edges,
                 struct wm_error *err)
{
    struct wm_edges *edges = calloc(1, sizeof(*edges));

    if (!edges)
        return wm_fail_memory(err, "calls");
    edges->calls = calls;
    edges->are_told = are_told;
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

/* Of two that end at once the one that opened later ends first, as calls nest. */
static bool is_before(const struct edge *one, const struct edge *other)
{
    if (one->edge.when_ns != other->edge.when_ns)
        return one->edge.when_ns < other->edge.when_ns;
    return one->edge.start_ns > other->edge.start_ns;
}

static void push(struct wm_edges *edges, struct edge edge)
{
    size_t at = edges->count++;

    while (at > 0 && is_before(&edge, &edges->heap[(at - 1) / 2])) {
        edges->heap[at] = edges->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    edges->heap[at] = edge;
}

static struct edge pop(struct wm_edges *edges)
{
    struct edge first = edges->heap[0], last = edges->heap[--edges->count];
    size_t at = 0, child;

    while ((child = 2 * at + 1) < edges->count) {
        if (child + 1 < edges->count &&
            is_before(&edges->heap[child + 1], &edges->heap[child]))
            child++;
        if (!is_before(&edges->heap[child], &last))
            break;
        edges->heap[at] = edges->heap[child];
        at = child;
    }
    edges->heap[at] = last;
    return first;
}

static int read_next(struct wm_edges *edges, struct wm_error *err)
{
    int64_t last_ns = edges->next.monotonic_start_ns;

    if (edges->has_next || edges->at_end)
        return WM_OK;
    int status = wm_calls_next(edges->calls, &edges->next, err);
    if (status < 0)
        return status;
    edges->has_next = status > 0;
    edges->at_end = status == 0;
    if (edges->has_next && edges->has_read && edges->next.monotonic_start_ns < last_ns)
        return wm_fail(err, WM_EFORMAT, "the calls are not in the order of their starts");
    edges->has_read = true;
    return WM_OK;
}

/* Opens the call that was read, and puts its other edge, if it has one, among those to
 * come. */
static int open_next(struct wm_edges *edges, struct wm_region_edge *ret_edge,
                     uint32_t *ret_process, struct wm_error *err)
{
    const struct wm_call *call = &edges->next;
    int64_t start_ns = call->monotonic_start_ns, stop_ns = call->monotonic_stop_ns;
    struct wm_region_edge edge = {
        .when_ns = start_ns,
        .start_ns = start_ns,
        .path = call->path,
        .thread = call->thread,
        .kind = WM_REGION_OPENS,
    };

    if (wm_array_reserve(&edges->heap, edges->count, &edges->room, sizeof(*edges->heap)) <
        0)
        return wm_fail_memory(err, "calls");
    *ret_process = call->process;
    edges->has_next = false;
    if (edges->are_told && call->is_open)
        edge.kind = WM_REGION_UNFINISHED;
    *ret_edge = edge;
    if (edge.kind == WM_REGION_UNFINISHED)
        return 1;
    edge.kind = call->is_open ? WM_REGION_BREAKS_OFF : WM_REGION_CLOSES;
    edge.recorded_s = edges->are_told ? call->seconds : 0;
    if (stop_ns > start_ns)
        edge.when_ns = stop_ns;
    edge.clocked = call->is_open ? 0 : call->clocked;
    push(edges, (struct edge) { edge, call->fold });
    return 1;
}

int wm_edges_next(struct wm_edges *edges, struct wm_region_edge *ret_edge,
                  uint32_t *ret_process, struct wm_error *err)
{
    int status = read_next(edges, err);

    if (status < 0)
        return status;
    if (edges->has_next && (edges->count == 0 ||
                            edges->next.monotonic_start_ns <= edges->heap[0].edge.when_ns))
        return open_next(edges, ret_edge, ret_process, err);
    if (edges->count == 0)
        return 0;
    struct edge next = pop(edges);
    edges->fold = next.fold;
    *ret_edge = next.edge;
    if (edges->fold.calls > 0)
        ret_edge->fold = &edges->fold;
    return 1;
}
