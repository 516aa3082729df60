/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_devices.h - the devices of a run and their joules from tick to tick: GPUs, CPU
 * packages and their parts, memory, the platform; for src/analyze alone.
 */
#ifndef WM_ANALYZE_DEVICES_H
#define WM_ANALYZE_DEVICES_H

#include "analyze/analyze_state.h"
#include "source/source_energy.h"

/* Which sources know what by now. It is looked up in the analysis when it is asked. */
struct wm_energy_offers wm_devices_offers(const struct wm_analysis *analysis);

/* Finds the meter that replaces the sum over CPUs, memory and GPUs as the total: if not all
 * of `cpus` are measured, or if a GPU reports only the power of its whole module. */
void wm_devices_find_meter(const struct wm_analysis *analysis,
                           const struct wm_energy_offers *offers,
                           const struct wm_energy_choice *cpus,
                           struct wm_energy_meter *ret_meter);

/* Whether a device's energy is divided by the use of the CPUs. That of a meter which
 * contains GPUs is not divided, as they may have used it. */
bool wm_devices_follow_cpus(const struct wm_analysis *analysis,
                            const struct wm_channel *channel);

/* Whether a device is of that kind and that source; `source` may be NULL. */
bool wm_device_is(const struct wm_device_stats *device, enum wm_device_kind kind,
                  const char *source);

/* Fills in the GPUs and the devices of the analysis, which has room for as many as there
 * are channels, and gives each the idle power that was measured for the run. */
void wm_devices_find(struct wm_analysis *analysis);

/* Before analysis->last_ns moves on to this tick. `ret_totals` is what all have come to by
 * then, for the regions. */
void wm_devices_tick(struct wm_analysis *analysis, const struct wm_tick *tick,
                     struct wm_region_totals *ret_totals);

/* The least time over which the highest power of all is a mean. */
double wm_devices_power_window_s(const struct wm_analysis *analysis);

#endif
