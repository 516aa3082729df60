/* SPDX-License-Identifier: Apache-2.0 */
/* track_snippet_host.h - how busy and how hot the CPUs are. One thread at a time. */
#ifndef WM_TRACK_SNIPPET_HOST_H
#define WM_TRACK_SNIPPET_HOST_H

#include "track/snippet/track_snippet_columns.h"

struct wm_meter_host;

/* What is not here is missing in each reading. Fails for want of memory alone. */
int wm_meter_host_open(struct wm_meter_host **ret_host, struct wm_error *err);

/* Accepts NULL. */
void wm_meter_host_close(struct wm_meter_host *host);

/* Utilization since the last reading, of all cores together; the temperature now, of
 * the hottest package. */
void wm_meter_host_read(struct wm_meter_host *host, struct wm_meter_gauges *ret_gauges);

#endif
