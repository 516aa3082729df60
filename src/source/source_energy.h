/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_energy.h - which sources know the energy of CPUs and memory, and which of
 * several that do counts.
 *
 *     const struct wm_energy_offers offers = { channels, channel_count, offer_of };
 *     struct wm_energy_choice cpus;
 *     wm_energy_choose(&offers, WM_DEVICE_CPU, &cpus);
 */
#ifndef WM_SOURCE_ENERGY_H
#define WM_SOURCE_ENERGY_H

#include <stdbool.h>
#include <stddef.h>

#include "wattmeter/source.h"

/* How far an estimate by a model, not a sensor, may be off, a ratio at k = 2: our
 * assumption. */
#define WM_MODEL_GAIN 0.50

/* The sources of this build that know the energy of CPUs and memory, the best first; NULL
 * past the last. */
const char *wm_energy_source(size_t index);

/* A device that a source has energy or power of. */
struct wm_energy_offer {
    const char *source;
    enum wm_sensor_kind sensor;
    enum wm_device_kind kind;
    enum wm_origin origin;
    bool is_known; /* its energy; true where that is not known yet */
    enum wm_contains contains;
};

/* The power that a sensor cannot exceed because it is a model; infinite where anything is
 * measured. */
double wm_energy_modelled_watts(const struct wm_sensor *sensor);

/* Whether it is a channel of power or energy. */
bool wm_channel_is_energy(const struct wm_channel *channel);

/* What a channel of power or energy offers, before it is known; any other channel is of
 * WM_DEVICE_OTHER. */
struct wm_energy_offer wm_energy_offer_of(const struct wm_channel *channel);

/* A list of such, in whatever form the caller has them. */
struct wm_energy_offers {
    const void *list;
    size_t count;
    struct wm_energy_offer (*offer)(const void *list, size_t index);
};

struct wm_energy_choice {
    const char *source; /* all of whose devices of that kind count; NULL: none has any */
    enum wm_sensor_kind sensor;
    bool is_known;     /* the energy of all devices is known */
    bool is_part;      /* of some devices only */
    bool is_estimated; /* of one device at least */
    bool has_memory;   /* of CPUs: the memory's is in it */
    bool is_refused;   /* of memory: there is an estimate, but the CPUs' is measured */
};

/* For CPUs or memory. What the CPUs themselves count is better than a sensor of the board,
 * that is better than what another tool has recorded: the first source that has measured
 * all its devices of that kind, else the first that has measured some of them, else a
 * model, else the first that has any. An estimate for CPUs that has none for memory is of
 * both together. An estimate for memory does not count beside another source's CPUs: it is
 * a part of a model of the whole, and they may have measured some of the same. */
void wm_energy_choose(const struct wm_energy_offers *offers, enum wm_device_kind kind,
                      struct wm_energy_choice *ret_choice);

/* A meter of CPUs, memory and GPUs together: all offers of this source and kind of sensor
 * that contain the same. */
struct wm_energy_meter {
    const char *source; /* NULL: there is none */
    enum wm_sensor_kind sensor;
    enum wm_contains contains;
};

/* Finds the meter of known values that contains the least beyond CPUs, memory and GPUs: one
 * of the module, else one of the platform if `most` allows it, an external one first and
 * batteries last. Several modules, or batteries, are added up. Several other meters of one
 * kind, or GPUs that may share a module, are no meter: one may contain the other. */
void wm_energy_find_meter(const struct wm_energy_offers *offers, enum wm_contains most,
                          struct wm_energy_meter *ret_meter);

/* Whether that offer is one of the meter's. */
bool wm_energy_is_of_meter(const struct wm_energy_offers *offers,
                           const struct wm_energy_meter *meter, size_t index);

/* Whether a channel of power or energy counts towards the sum over CPUs, memory and GPUs,
 * as far as the channels tell. */
bool wm_energy_is_summed(const struct wm_channel *channels, size_t count, size_t index);

#endif
