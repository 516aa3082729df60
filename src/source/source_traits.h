/* SPDX-License-Identifier: Apache-2.0 */
/* source_traits.h - what is known of a source before it is open, and how readings went. */
#ifndef WM_SOURCE_TRAITS_H
#define WM_SOURCE_TRAITS_H

#include <stdbool.h>

#include "wattmeter/source.h"

struct wm_source_traits {
    /* What it has the energy of CPUs and memory from; WM_SENSOR_UNKNOWN: it has none. A
     * model is opened where nothing measures, or where it is asked for. */
    enum wm_sensor_kind cpu_sensor;
    bool has_gpus;           /* where it finds none, that is why a report lacks them */
    bool is_of_every_target; /* the tracker reads it in any case */
};

/* By name, for those alone who have no channel of it to ask: who opens sources that a user
 * names, who chooses GPUs for a source that is not open yet, and the report, which says why
 * there is no energy of CPUs or no GPU out of a recording's list of sources. Never NULL:
 * nothing is known of a name that is not in this build. */
const struct wm_source_traits *wm_source_traits(const char *name);

/* How a reading went, by the status of what was asked for it. */
enum wm_reading_state wm_reading_state_of(int status);

#endif
