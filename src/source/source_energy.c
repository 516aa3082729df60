/* SPDX-License-Identifier: Apache-2.0 */
/* source_energy.c - sources in the order of what they read. */
#include "source/source_energy.h"

#include <limits.h>
#include <math.h>
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

double wm_energy_modelled_watts(const struct wm_sensor *sensor)
{
    return sensor->kind == WM_SENSOR_MODEL && sensor->range > 0 ? sensor->range : HUGE_VAL;
}

bool wm_channel_is_energy(const struct wm_channel *channel)
{
    return strcmp(channel->metric, "energy") == 0 || strcmp(channel->metric, "power") == 0;
}

struct wm_energy_offer wm_energy_offer_of(const struct wm_channel *channel)
{
    return (struct wm_energy_offer) {
        .source = channel->source,
        .sensor = channel->sensor.kind,
        .kind = wm_channel_is_energy(channel) ? channel->device_kind : WM_DEVICE_OTHER,
        .origin = channel->origin,
        .is_known = true,
        .contains = channel->sensor.contains,
    };
}

/* The devices of a kind that one source has; how many. */
static size_t look_at(const struct wm_energy_offers *offers, enum wm_device_kind kind,
                      const char *source, struct wm_energy_choice *ret_choice)
{
    struct wm_energy_choice choice = { .source = source };
    size_t found = 0, known = 0;

    for (size_t i = 0; i < offers->count; i++) {
        struct wm_energy_offer offer = offers->offer(offers->list, i);
        if (offer.kind != kind || strcmp(offer.source, source) != 0)
            continue;
        choice.sensor = offer.sensor;
        choice.is_estimated |= offer.origin == WM_ESTIMATED;
        known += offer.is_known;
        found++;
    }
    choice.is_known = known == found;
    choice.is_part = known > 0 && known < found;
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

/* The less the better. */
static int place_of(const struct wm_energy_choice *choice)
{
    bool is_measured = !choice->is_estimated;

    if (choice->is_known)
        return is_measured ? 0 : 2;
    return is_measured && choice->is_part ? 1 : 3;
}

static void choose(const struct wm_energy_offers *offers, enum wm_device_kind kind,
                   bool refuses_estimates, struct wm_energy_choice *ret_choice)
{
    struct wm_energy_choice choice, best = { 0 };

    for (size_t rank = 0; rank < RANK_COUNT; rank++) {
        for (size_t i = 0; i < offers->count; i++) {
            struct wm_energy_offer offer = offers->offer(offers->list, i);
            if (offer.kind != kind || !is_of_rank(&offer, rank) || is_seen(offers, i))
                continue;
            look_at(offers, kind, offer.source, &choice);
            if (refuses_estimates && choice.is_estimated)
                best.is_refused = true;
            else if (!best.source || place_of(&choice) < place_of(&best))
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

/* Of meters that contain the same, the best first. */
static const enum wm_sensor_kind best_meters[] = {
    WM_SENSOR_METER, WM_SENSOR_BUILT_IN, WM_SENSOR_BOARD,
    WM_SENSOR_TOOL,  WM_SENSOR_UNKNOWN,  WM_SENSOR_BATTERY,
};

enum { METER_COUNT = sizeof(best_meters) / sizeof(best_meters[0]) };

bool wm_energy_is_of_meter(const struct wm_energy_offers *offers,
                           const struct wm_energy_meter *meter, size_t index)
{
    const struct wm_energy_offer offer = offers->offer(offers->list, index);

    return meter->source && offer.is_known && offer.sensor == meter->sensor &&
           offer.contains == meter->contains && offer.origin != WM_ESTIMATED &&
           strcmp(offer.source, meter->source) == 0;
}

/* The meter that this offer is of, and how good it is, the less the better; INT_MAX: it is
 * of none. */
static int meter_of(const struct wm_energy_offers *offers, enum wm_contains most,
                    size_t index, struct wm_energy_meter *meter)
{
    const struct wm_energy_offer offer = offers->offer(offers->list, index);
    bool is_gpu = offer.kind == WM_DEVICE_GPU;
    bool stand_side_by_side = (offer.contains == WM_CONTAINS_MODULE && !is_gpu) ||
                              offer.sensor == WM_SENSOR_BATTERY;
    size_t count = 0;
    int place = 0;

    *meter = (struct wm_energy_meter) { offer.source, offer.sensor, offer.contains };
    for (size_t i = 0; i < offers->count; i++)
        count += wm_energy_is_of_meter(offers, meter, i);
    if (offer.contains < WM_CONTAINS_MODULE || offer.contains > most || count == 0 ||
        (count > 1 && !stand_side_by_side))
        return INT_MAX;
    while (place < METER_COUNT - 1 && best_meters[place] != offer.sensor)
        place++;
    /* The board's own meters are one for each module for certain. */
    return ((int)offer.contains * 2 + is_gpu) * METER_COUNT + place;
}

void wm_energy_find_meter(const struct wm_energy_offers *offers, enum wm_contains most,
                          struct wm_energy_meter *ret_meter)
{
    struct wm_energy_meter best = { 0 }, meter;
    int best_place = INT_MAX;

    for (size_t i = 0; i < offers->count; i++) {
        int place = meter_of(offers, most, i, &meter);
        if (place >= best_place)
            continue;
        best_place = place;
        best = meter;
    }
    *ret_meter = best;
}

static struct wm_energy_offer offer_at(const void *list, size_t index)
{
    return wm_energy_offer_of(&((const struct wm_channel *)list)[index]);
}

bool wm_energy_is_summed(const struct wm_channel *channels, size_t count, size_t index)
{
    const struct wm_energy_offers offers = { channels, count, offer_at };
    const struct wm_energy_offer offer = offer_at(channels, index);
    struct wm_energy_choice choice;

    if (offer.kind == WM_DEVICE_GPU)
        return offer.contains == WM_CONTAINS_DEVICE;
    if (offer.kind != WM_DEVICE_CPU && offer.kind != WM_DEVICE_DRAM)
        return false;
    wm_energy_choose(&offers, offer.kind, &choice);
    return choice.source && strcmp(offer.source, choice.source) == 0;
}
