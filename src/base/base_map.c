/* SPDX-License-Identifier: Apache-2.0 */
/* base_map.c - from a pair of numbers to one: open addressing, linear probing, at most half
 * full. */
#include "base/base_map.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/base_error.h"

/* Whoever knows neither number knows nothing of the result: the four products of their
 * halves, as wyhash mixes them where no multiplication gives 128 bits. */
static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t a_low = (uint32_t)a, a_high = a >> 32, b_low = (uint32_t)b, b_high = b >> 32;
    uint64_t middle = (a_high * b_low) ^ (a_low * b_high);

    return (a_low * b_low) ^ (a_high * b_high) ^ (middle << 32 | middle >> 32);
}

static uint64_t home_of(const struct wm_map *map, uint64_t a, uint64_t b)
{
    return mix(a ^ map->seed[0], b ^ map->seed[1]);
}

uint64_t wm_map_hash(const struct wm_map *map, const char *text, size_t length)
{
    uint64_t hash = length ^ map->seed[0], word;

    for (; length >= sizeof(word); text += sizeof(word), length -= sizeof(word)) {
        memcpy(&word, text, sizeof(word));
        hash = mix(hash ^ word, map->seed[1]);
    }
    word = 0;
    memcpy(&word, text, length);
    return mix(hash ^ word, map->seed[1]);
}

/* The address stands in where the kernel has no random numbers yet. */
static void draw_seed(struct wm_map *map)
{
    if (getrandom(map->seed, sizeof(map->seed), GRND_NONBLOCK) !=
        (ssize_t)sizeof(map->seed)) {
        map->seed[0] = (uintptr_t)map;
        map->seed[1] = (uintptr_t)map->slots * UINT64_C(0x9e3779b97f4a7c15);
    }
}

/* The slot of the pair, or the empty one where it would go. The map has room. */
static struct wm_map_slot *slot_of(const struct wm_map *map, uint64_t a, uint64_t b)
{
    size_t i = (size_t)home_of(map, a, b) & (map->room - 1);

    while (map->slots[i].value != WM_MAP_NONE &&
           (map->slots[i].a != a || map->slots[i].b != b))
        i = (i + 1) & (map->room - 1);
    return &map->slots[i];
}

uint32_t wm_map_find(const struct wm_map *map, uint64_t a, uint64_t b)
{
    return map->room > 0 ? slot_of(map, a, b)->value : WM_MAP_NONE;
}

int wm_map_reserve(struct wm_map *map)
{
    struct wm_map grown = *map;

    if (2 * (map->count + 1) <= map->room)
        return WM_OK;
    grown.room = map->room > 0 ? 2 * map->room : 16;
    grown.slots = malloc(grown.room * sizeof(*grown.slots));
    if (!grown.slots)
        return WM_ENOMEM;
    if (map->room == 0)
        draw_seed(&grown);
    for (size_t i = 0; i < grown.room; i++)
        grown.slots[i].value = WM_MAP_NONE;
    for (size_t i = 0; i < map->room; i++) {
        const struct wm_map_slot *slot = &map->slots[i];
        if (slot->value != WM_MAP_NONE)
            *slot_of(&grown, slot->a, slot->b) = *slot;
    }
    free(map->slots);
    *map = grown;
    return WM_OK;
}

void wm_map_put(struct wm_map *map, uint64_t a, uint64_t b, uint32_t value)
{
    struct wm_map_slot *slot = slot_of(map, a, b);

    map->count += slot->value == WM_MAP_NONE;
    *slot = (struct wm_map_slot) { a, b, value };
}

/* Later slots move up into the gap, where that is on their way. */
void wm_map_remove(struct wm_map *map, uint64_t a, uint64_t b)
{
    size_t mask = map->room - 1;
    size_t gap = (size_t)(slot_of(map, a, b) - map->slots);

    for (size_t i = (gap + 1) & mask; map->slots[i].value != WM_MAP_NONE;
         i = (i + 1) & mask) {
        size_t home = (size_t)home_of(map, map->slots[i].a, map->slots[i].b) & mask;
        if (((i - home) & mask) >= ((i - gap) & mask)) {
            map->slots[gap] = map->slots[i];
            gap = i;
        }
    }
    map->slots[gap].value = WM_MAP_NONE;
    map->count--;
}

void wm_map_release(struct wm_map *map)
{
    free(map->slots);
    *map = (struct wm_map) { 0 };
}
