/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_edges.h - stored calls as edges in the order of time: from a stream that is
 * ordered by starts, with a heap of the stops that are still to come. So the memory is that
 * of the calls that are open at once.
 *
 *     while ((status = wm_edges_next(edges, &edge, err)) > 0) {
 *         if (edge.kind == WM_REGION_OPENS)
 *             wm_edges_mark(edges, number_of(edge.call.name));
 *         else
 *             close(edge.mark, edge.when_ns);
 *     }
 */
#ifndef WM_ANALYZE_EDGES_H
#define WM_ANALYZE_EDGES_H

#include <stdint.h>

#include "record/calls/record_calls.h"

/* Later than anything: when a call breaks off of which nobody knows more. */
#define WM_EDGES_END WM_CALL_NEVER_STOPS

struct wm_call_edge {
    int64_t when_ns; /* of a call that breaks off: when a recording says that this became */
                     /* known, else WM_EDGES_END */
    enum wm_region_edge_kind kind;
    struct wm_call call; /* its name is there as long as it opens */
    uint64_t mark;       /* what wm_edges_mark() gave the call; 0 */
};

struct wm_edges;

/* `calls` stays the caller's and lives as long as the result. */
int wm_edges_new(struct wm_calls *calls, struct wm_edges **ret_edges, struct wm_error *err);

/* Accepts NULL. */
void wm_edges_free(struct wm_edges *edges);

/* 1 and `ret_edge`, 0 past the last one. At equal times calls open before others close; a
 * call that stops before it starts is closed where it starts. WM_EFORMAT when the calls
 * are not in order. */
int wm_edges_next(struct wm_edges *edges, struct wm_call_edge *ret_edge,
                  struct wm_error *err);

/* Of the call that has just opened: comes back with its other edge. */
void wm_edges_mark(struct wm_edges *edges, uint64_t mark);

#endif
