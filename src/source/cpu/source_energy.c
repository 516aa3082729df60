/* SPDX-License-Identifier: Apache-2.0 */
/* source_energy.c - the best first: counters of the CPU itself, sensors beside it, what
 * another tool told, and a model. */
#include "source/cpu/source_energy.h"

#include <string.h>

const char *wm_energy_source(size_t index)
{
    static const char *const sources[] = { "rapl", "hwmon", "aipowermeter", "estimate" };

    return index < sizeof(sources) / sizeof(sources[0]) ? sources[index] : NULL;
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
        choice.is_known &= offer.is_known;
        choice.is_estimated |= offer.origin == WM_ESTIMATED;
        found++;
    }
    *ret_choice = choice;
    return found;
}

static void choose(const struct wm_energy_offers *offers, enum wm_device_kind kind,
                   bool refuses_estimates, struct wm_energy_choice *ret_choice)
{
    struct wm_energy_choice choice, best = { 0 };
    const char *source;

    for (size_t i = 0; !best.is_known && (source = wm_energy_source(i)) != NULL; i++) {
        if (look_at(offers, kind, source, &choice) == 0)
            continue;
        if (refuses_estimates && choice.is_estimated)
            best.is_refused = true;
        else if (!best.source || choice.is_known)
            best = choice;
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
