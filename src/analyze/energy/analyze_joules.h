/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_joules.h - energy in a report: of one device, whose it was, and sums over
 * devices; for src/analyze alone.
 */
#ifndef WM_ANALYZE_JOULES_H
#define WM_ANALYZE_JOULES_H

#include "analyze/analyze_build.h"

/* The energy of a device, remarks on it, whose it was as it was divided tick by tick, and
 * what the baseline said of the device: the energy cannot be divided by one that cannot be
 * right. `why` is said where it is not known what it would be divided by, and `unfit`,
 * unless it is NULL, in place of whatever was found. */
void wm_build_device(struct wm_report_builder *builder,
                     const struct wm_device_stats *device, const char *why,
                     const char *unfit, struct wm_energy_figure *figure,
                     struct wm_energy_split *split, struct wm_value *ret_idle);

/* A figure as a sum of one. */
struct wm_energy_sum wm_build_sum_of(const struct wm_energy_figure *figure,
                                     const struct wm_energy_split *split,
                                     enum wm_origin origin);

/* A sum over devices, or of such sums: it starts, each is added, it ends. What one of
 * them does not know is unknown in the sum. */
void wm_build_sum_start(struct wm_energy_sum *sum);
void wm_build_sum_add(struct wm_energy_sum *sum, const struct wm_energy_sum *part);
void wm_build_sum_end(struct wm_energy_sum *sum);

/* Nothing of it is known. */
void wm_build_sum_miss(struct wm_energy_sum *sum, const char *why);

#endif
