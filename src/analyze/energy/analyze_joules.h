/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_joules.h - energy in a report: of one device, whose it was, and sums over
 * devices; for src/analyze alone.
 */
#ifndef WM_ANALYZE_JOULES_H
#define WM_ANALYZE_JOULES_H

#include "analyze/analyze_build.h"

/* A device whose joules were counted. */
struct wm_figure_of {
    const char *label;
    const struct wm_channel *channel; /* any of its */
    size_t energy, power;             /* WM_NO_CHANNEL for what it lacks */
    const struct wm_energy *joules;
};

/* Its energy, and remarks on it. */
void wm_build_figure(struct wm_report_builder *builder, const struct wm_figure_of *device,
                     struct wm_energy_figure *figure);

/* Whose the energy was, as it was divided tick by tick; `why` where it is not known what
 * it would be divided by. */
void wm_build_split(const struct wm_share *divided, const struct wm_energy_figure *figure,
                    const char *why, struct wm_energy_split *split);
void wm_build_split_miss(struct wm_energy_split *split, const struct wm_value *missing);

/* What the baseline said of the device, and that its energy cannot be divided by it
 * where that cannot be right. */
void wm_build_baseline(struct wm_report_builder *builder, const struct wm_figure_of *device,
                       const struct wm_share *divided,
                       const struct wm_energy_figure *figure, struct wm_value *ret_idle,
                       struct wm_energy_split *split);

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
