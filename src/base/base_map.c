/* SPDX-License-Identifier: Apache-2.0 */
/* base_map.c - from a pair of numbers to one: open addressing, linear probing, at most half
 * full. */
#include "base/base_map.h"

#include <stdlib.h>
#include <string.h>

#include "base/base_error.h"

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t hash = (a ^ (b * UINT64_C(0x9e3779b97f4a7c15))) * UINT64_C(0xff51afd7ed558ccd);

    hash = (hash ^ (hash >> 32)) * UINT64_C(0xc4ceb9fe1a85ec53);
    return hash ^ (hash >> 29);
}

uint64_t wm_map_hash(const char *text, size_t length)
{
    uint64_t hash = length, word;

    for (; length >= sizeof(word); text += sizeof(word), length -= sizeof(word)) {
        memcpy(&word, text, sizeof(word));
        hash = mix(hash, word);
    }
    word = 0;
    memcpy(&word, text, length);
    return mix(hash, word);
}

/* The slot of the pair, or the empty one where it would go. The map has room. */
static struct wm_map_slot *slot_of(const struct wm_map *map, uint64_t a, uint64_t b)
{
    size_t i = (size_t)mix(a, b) & (map->room - 1);

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
    struct wm_map grown = { .room = map->room > 0 ? 2 * map->room : 16,
                            .count = map->count };

    if (2 * (map->count + 1) <= map->room)
        return WM_OK;
    grown.slots = malloc(grown.room * sizeof(*grown.slots));
    if (!grown.slots)
        return WM_ENOMEM;
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
        size_t home = (size_t)mix(map->slots[i].a, map->slots[i].b) & mask;
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
