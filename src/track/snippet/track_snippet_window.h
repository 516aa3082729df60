/* SPDX-License-Identifier: Apache-2.0 */
/*
 * track_snippet_window.h - the joules of every device over one stretch of time.
 *
 *     wm_meter_window_add(window, inputs, WM_METER_FIRST);
 *     wm_meter_window_add(window, inputs, WM_METER_BETWEEN);    any number of times
 *     wm_meter_window_add(window, inputs, WM_METER_LAST);
 *     wm_meter_result(window, inputs, &reading, devices);
 *
 * The counter of a device that is known to work needs no power beside it, and must
 * not have it from two moments only: seen before and after a short burst, power makes
 * the burst look impossible.
 */
#ifndef WM_TRACK_SNIPPET_WINDOW_H
#define WM_TRACK_SNIPPET_WINDOW_H

#include "analyze/energy/analyze_energy.h"
#include "analyze/energy/analyze_uncertainty.h"
#include "track/snippet/track_snippet_inputs.h"

/* One device. */
struct wm_meter_span {
    struct wm_energy energy;
    struct wm_reading first_counter, first_power; /* until there is a second reading */
    struct wm_uncertainty uncertainty;            /* of the joules last told of it */
};

struct wm_meter_window {
    int64_t first_ns, last_ns;
    bool is_checked;              /* power is read beside counters that need it not */
    struct wm_meter_span spans[]; /* one per device */
};

enum wm_meter_moment {
    WM_METER_FIRST,
    WM_METER_BETWEEN,
    WM_METER_LAST,
};

/* For so many devices; free() gives it back. NULL when out of memory. */
struct wm_meter_window *wm_meter_window_new(size_t devices);

/* Takes the last round of readings; the first one starts the window anew. */
void wm_meter_window_add(struct wm_meter_window *window,
                         const struct wm_meter_inputs *inputs, enum wm_meter_moment moment);

/* What each device took from the first reading to the last, one entry of `ret_devices` per
 * device, and their sums. */
void wm_meter_result(struct wm_meter_window *window, const struct wm_meter_inputs *inputs,
                     struct wm_meter_reading *ret_reading,
                     struct wm_meter_energy *ret_devices);

#endif
