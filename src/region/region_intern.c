/* SPDX-License-Identifier: Apache-2.0 */
/* region_intern.c - names by their hash. */
#include "region/region_intern.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_text.h"
#include "wattmeter/region.h"

/* A program may make names out of numbers, one for each request it serves. */
#define BYTES_MAX ((size_t)64 << 20)
#define BYTES_PER_NAME 128 /* of the tables */
static const char one_for_all[] = "(one of too many names)";

/* The number of the text, or WM_MAP_NONE and the key that it would get. */
static uint32_t find(const struct wm_region_interned *interned, const char *text,
                     uint64_t *ret_hash, uint64_t *ret_nth)
{
    uint32_t found;

    *ret_hash = wm_map_hash(text, strlen(text));
    *ret_nth = 0;
    while ((found = wm_map_find(&interned->map, *ret_hash, *ret_nth)) != WM_MAP_NONE &&
           strcmp(interned->texts[found], text) != 0)
        ++*ret_nth;
    return found;
}

static bool make_room(struct wm_region_interned *interned)
{
    if (wm_map_reserve(&interned->map) < 0)
        return false;
    if (interned->count < interned->text_room)
        return true;
    uint32_t room = interned->text_room > 0 ? 2 * interned->text_room : 64;
    char **texts = realloc(interned->texts, room * sizeof(*texts));
    if (!texts)
        return false;
    interned->texts = texts;
    interned->text_room = room;
    return true;
}

int wm_region_interned_add(struct wm_region_interned *interned, const char *text,
                           size_t length, uint32_t *ret_number)
{
    char clean[WM_REGION_NAME_MAX + 1];
    uint64_t hash, nth;

    length = wm_text_utf8(clean, sizeof(clean), text, length);
    uint32_t found = find(interned, clean, &hash, &nth);
    if (found == WM_MAP_NONE && interned->bytes + length + BYTES_PER_NAME > BYTES_MAX) {
        memcpy(clean, one_for_all, sizeof(one_for_all));
        found = find(interned, clean, &hash, &nth);
    }
    if (found == WM_MAP_NONE) {
        char *copy = make_room(interned) ? strdup(clean) : NULL;
        if (!copy)
            return WM_ENOMEM;
        found = interned->count++;
        interned->texts[found] = copy;
        interned->bytes += length + BYTES_PER_NAME;
        wm_map_put(&interned->map, hash, nth, found);
    }
    *ret_number = found;
    return WM_OK;
}

void wm_region_interned_clear(struct wm_region_interned *interned)
{
    for (uint32_t i = 0; i < interned->count; i++)
        free(interned->texts[i]);
    free(interned->texts);
    wm_map_release(&interned->map);
    *interned = (struct wm_region_interned) { 0 };
}
