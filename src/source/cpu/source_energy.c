/* SPDX-License-Identifier: Apache-2.0 */
/* source_energy.c - sources in the order of what they read. */
#include "source/cpu/source_energy.h"

#include <string.h>

#include "source/source_traits.h"

/* Kinds of sensors, the best first; one that is not known is of another tool. */
static const enum wm_sensor_kind best_first[] = {
    WM_SENSOR_BUILT_IN,
    WM_SENSOR_BOARD,
    WM_SENSOR_TOOL,
    WM_SENSOR_MODEL,
};

enum { RANK_COUNT = sizeof(best_first) / sizeof(best_first[0]) };

static bool is_of_rank(const struct wm_energy_offer *offer, size_t rank)
{
    enum wm_sensor_kind sensor = offer->sensor;

    return best_first[rank] == (sensor == WM_SENSOR_UNKNOWN ? WM_SENSOR_TOOL : sensor);
}

const char *wm_energy_source(size_t index)
{
    const char *name;

    for (size_t rank = 0; rank < RANK_COUNT; rank++) {
        for (size_t i = 0; (name = wm_source_name(i)) != NULL; i++) {
            if (wm_source_traits(name)->cpu_sensor == best_first[rank] && index-- == 0)
                return name;
        }
    }
    return NULL;
}

/* The devices of a kind that one source has; how many. */
static size_t look_at(const struct wm_energy_offers *offers, enum wm_device_kind kind,
                      const char *source, struct wm_energy_choice *ret_choice)
{
    struct wm_energy_choice choice = { .source = source, .is_known = true };
    size_t found = 0;

    for (size_t i = 0; i < offers->count; i++) {
        struct wm_energy_offer offer = offers->offer(offers->list, i);
        if (offer.kind != kind || strcmp(offer.source, source) != 0)
            continue;
        choice.sensor = offer.sensor;
        choice.is_known &= offer.is_known;
        choice.is_estimated |= offer.origin == WM_ESTIMATED;
        found++;
    }
    *ret_choice = choice;
    return found;
}

/* Whether one before it is of the same source and kind. */
static bool is_seen(const struct wm_energy_offers *offers, size_t index)
{
    struct wm_energy_offer offer = offers->offer(offers->list, index), before;

    for (size_t i = 0; i < index; i++) {
        before = offers->offer(offers->list, i);
        if (before.kind == offer.kind && strcmp(before.source, offer.source) == 0)
            return true;
    }
    return false;
}

static void choose(const struct wm_energy_offers *offers, enum wm_device_kind kind,
                   bool refuses_estimates, struct wm_energy_choice *ret_choice)
{
    struct wm_energy_choice choice, best = { 0 };

    for (size_t rank = 0; rank < RANK_COUNT; rank++) {
        for (size_t i = 0; i < offers->count && !best.is_known; i++) {
            struct wm_energy_offer offer = offers->offer(offers->list, i);
            if (offer.kind != kind || !is_of_rank(&offer, rank) || is_seen(offers, i))
                continue;
            look_at(offers, kind, offer.source, &choice);
            if (refuses_estimates && choice.is_estimated)
                best.is_refused = true;
            else if (!best.source || choice.is_known)
                best = choice;
        }
    }
    best.is_refused &= !best.source;
    *ret_choice = best;
}

void wm_energy_choose(const struct wm_energy_offers *offers, enum wm_device_kind kind,
                      struct wm_energy_choice *ret_choice)
{
    struct wm_energy_choice cpus, memory;

    choose(offers, WM_DEVICE_CPU, false, &cpus);
    if (kind == WM_DEVICE_DRAM) {
        choose(offers, kind, cpus.source && !cpus.is_estimated, ret_choice);
        return;
    }
    cpus.has_memory = cpus.is_known && cpus.is_estimated &&
                      look_at(offers, WM_DEVICE_DRAM, cpus.source, &memory) == 0;
    *ret_choice = cpus;
}
