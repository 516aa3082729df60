/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_edges.h - stored calls as edges in the order of time: from a stream that is
 * ordered by starts, with a heap of the stops that are still to come. So the memory is that
 * of the calls that are open at once.
 *
 *     while ((status = wm_edges_next(edges, &edge, &process, err)) > 0)
 *         take(&edge, process);
 */
#ifndef WM_ANALYZE_EDGES_H
#define WM_ANALYZE_EDGES_H

#include <stdint.h>

#include "record/calls/record_calls.h"

struct wm_edges;

/* `calls` stays the caller's and lives as long as the result. `are_told`: the calls have
 * times of their own, which their edges tell, and one that never ended is
 * WM_REGION_UNFINISHED. */
int wm_edges_new(struct wm_calls *calls, bool are_told, struct wm_edges **ret_edges,
                 struct wm_error *err);

/* Accepts NULL. */
void wm_edges_free(struct wm_edges *edges);

/* 1 and `ret_edge`, with the process of a call that opens; 0 past the last one. At equal
 * times calls open before others close; a call that stops before it starts is closed where
 * it starts. WM_EFORMAT when the calls are not in order. */
int wm_edges_next(struct wm_edges *edges, struct wm_region_edge *ret_edge,
                  uint32_t *ret_process, struct wm_error *err);

#endif
