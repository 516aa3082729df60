/* SPDX-License-Identifier: Apache-2.0 */
/* source_traits.h - what the rest of the library asks of a source: what is known before it
 * is open, how readings went, and the processes that use its GPUs. */
#ifndef WM_SOURCE_TRAITS_H
#define WM_SOURCE_TRAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

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

/* A process that uses a GPU, as reported by the driver. Pid 0 stands for a GPU whose list
 * of processes is missing or incomplete; `state` and `why` have the reason. "Unknown" is
 * not "none". */
struct wm_gpu_process {
    const char *device;  /* the GPU's identity, as in its channels */
    pid_t pid;           /* as the driver sees it */
    double memory_bytes; /* meaningful in WM_READING_OK alone */
    enum wm_reading_state state;
    double sm_ratio; /* its share of the GPU's time, in the last second; likewise */
    enum wm_reading_state sm_state;
    const char *why; /* of pid 0; NULL: only the state is known */
};

/* A line that describes the source called `name`; NULL if the name is unknown. */
const char *wm_source_summary(const char *name);

/* The GPU processes seen by the last wm_source_read(); valid until the next read or close.
 * Zero if the source has no GPU. */
size_t wm_source_gpu_processes(const struct wm_source *source,
                               const struct wm_gpu_process **ret_processes);

/* The number of devices of its kind in the machine, chosen by the configuration or not; 0
 * if the source has no such devices. */
size_t wm_source_device_count(const struct wm_source *source);

#endif
