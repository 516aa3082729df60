/* SPDX-License-Identifier: Apache-2.0 */
/* track_snippet_result.h - what all devices of a window come to. */
#ifndef WM_TRACK_SNIPPET_RESULT_H
#define WM_TRACK_SNIPPET_RESULT_H

#include "track/snippet/track_snippet_window.h"

/* Fills in one entry of `ret_devices` per device, and their sums. */
void wm_meter_result(struct wm_meter_window *window, const struct wm_meter_inputs *inputs,
                     struct wm_meter_reading *ret_reading,
                     struct wm_meter_energy *ret_devices);

#endif
