/* SPDX-License-Identifier: Apache-2.0 */
/* source_traits.h - what is known of a source by its name alone: of one that is not open,
 * or that a recording tells of. */
#ifndef WM_SOURCE_TRAITS_H
#define WM_SOURCE_TRAITS_H

#include <stdbool.h>

/* Several sources may know the energy of the same CPUs and memory; the best first. */
enum wm_energy_rank {
    WM_ENERGY_NONE,     /* it knows nothing of them that counts */
    WM_ENERGY_COUNTERS, /* counters of the CPUs themselves */
    WM_ENERGY_SENSORS,  /* beside the CPUs */
    WM_ENERGY_FOREIGN,  /* what another tool has recorded */
    WM_ENERGY_MODEL,    /* opened where nothing measures, or where it is asked for */
    WM_ENERGY_RANK_COUNT,
};

struct wm_source_traits {
    enum wm_energy_rank energy_rank;
    bool has_gpus;         /* where it finds none, that is why a report lacks them */
    bool takes_gpu_places; /* a list of its GPUs may say "0=GPU-7c1f": it need ask no other
                            */
    bool is_battery;       /* beside what is drawn from the grid */
    bool is_of_every_target; /* the tracker reads it in any case */
};

/* Never NULL: a name that this build does not know is that of another tool. */
const struct wm_source_traits *wm_source_traits(const char *name);

#endif
