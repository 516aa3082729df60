/* SPDX-License-Identifier: Apache-2.0 */
/* base_map.h - from a pair of numbers to one: what is known by two keys, and where it
 * stands in an array. Where a pair goes depends on numbers that each map draws for itself,
 * so that nobody can choose keys that all meet in one place. All zero is an empty map. */
#ifndef WM_BASE_MAP_H
#define WM_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

#define WM_MAP_NONE UINT32_MAX

struct wm_map {
    struct wm_map_slot {
        uint64_t a, b;
        uint32_t value; /* WM_MAP_NONE: the slot is empty */
    } * slots;
    size_t room; /* a power of two */
    size_t count;
    uint64_t seed[2]; /* drawn with the first room */
};

/* WM_MAP_NONE where there is none. */
uint32_t wm_map_find(const struct wm_map *map, uint64_t a, uint64_t b);

/* Makes room for one more pair. WM_ENOMEM is the only failure. */
int wm_map_reserve(struct wm_map *map);

/* After wm_map_reserve(). A pair that is there gets the new value. */
void wm_map_put(struct wm_map *map, uint64_t a, uint64_t b, uint32_t value);

/* The pair is there. */
void wm_map_remove(struct wm_map *map, uint64_t a, uint64_t b);

void wm_map_release(struct wm_map *map);

/* For keys that are texts: other texts may have the same. It holds for this map, once it
 * has had wm_map_reserve(); base_names.h has maps of texts. */
uint64_t wm_map_hash(const struct wm_map *map, const char *text, size_t length);

#endif
