/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_devices.h - energy of everything but GPUs: CPU packages and their parts,
 * memory, the platform; for src/analyze alone.
 */
#ifndef WM_ANALYZE_DEVICES_H
#define WM_ANALYZE_DEVICES_H

#include "analyze/energy/analyze_energy.h"
#include "analyze/energy/analyze_share.h"
#include "source/cpu/source_energy.h"
#include "wattmeter/recording.h"

struct wm_analysis;

/* One device that energy or power is known of. */
struct wm_device_stats {
    const struct wm_channel *channel; /* any of its */
    size_t energy, power;             /* channels, or WM_NO_CHANNEL */
    struct wm_energy joules;
    struct wm_share share; /* of a package or of memory */
    bool counts;           /* towards the energy of all together */
};

/* A counter of work that is looked at from tick to tick. */
struct wm_work_counter {
    size_t channel;
    bool known; /* at the last tick */
    double value;
};

/* What the CPUs did, as far as it can be told from one tick to the next. */
struct wm_cpu_work {
    struct wm_work_counter host, tree;
    size_t memory_used, tree_memory; /* gauges */

    double ratio;                   /* how busy they were of late, NAN: not known; and */
    double busy, capacity, seconds; /* since that was found */
};

/* Which sources know what by now. It is looked up in the analysis when it is asked. */
struct wm_energy_offers wm_devices_offers(const struct wm_analysis *analysis);

/* Whether a device is of that kind and that source; `source` may be NULL. */
bool wm_device_is(const struct wm_device_stats *device, enum wm_device_kind kind,
                  const char *source);

/* Whether a channel is one of such a device's. */
bool wm_is_device_channel(const struct wm_channel *channel);

/* Fills in analysis->devices, which has room for all channels; after the GPUs. */
void wm_devices_find(struct wm_analysis *analysis);

/* Before analysis->last_ns moves on to this tick. */
void wm_devices_tick(struct wm_analysis *analysis, const struct wm_tick *tick);

#endif
