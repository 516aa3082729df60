/* SPDX-License-Identifier: Apache-2.0 */
/* base_names.c - names by number. */
#include "base/text/base_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/base_array.h"

/* The number of the text, or WM_MAP_NONE and the key that it would get. */
static uint32_t find(const struct wm_names *names, const char *text, uint64_t *ret_hash,
                     uint64_t *ret_nth)
{
    uint32_t found;

    *ret_hash = wm_map_hash(&names->numbers, text, strlen(text));
    *ret_nth = 0;
    while ((found = wm_map_find(&names->numbers, *ret_hash, *ret_nth)) != WM_MAP_NONE &&
           strcmp(names->texts[found], text) != 0)
        ++*ret_nth;
    return found;
}

uint32_t wm_names_find(const struct wm_names *names, const char *text)
{
    uint64_t hash, nth;

    return find(names, text, &hash, &nth);
}

uint32_t wm_names_add(struct wm_names *names, const char *text)
{
    uint64_t hash, nth;

    /* Hashes hold from the first reserve on. */
    if (names->count == 0 && wm_map_reserve(&names->numbers) < 0)
        return WM_MAP_NONE;
    uint32_t found = find(names, text, &hash, &nth);
    if (found != WM_MAP_NONE)
        return found;
    if (names->count == WM_MAP_NONE || wm_map_reserve(&names->numbers) < 0 ||
        wm_array_reserve(&names->texts, names->count, &names->room, sizeof(*names->texts)) <
            0)
        return WM_MAP_NONE;
    char *copy = strdup(text);
    if (!copy)
        return WM_MAP_NONE;
    found = (uint32_t)names->count++;
    names->texts[found] = copy;
    wm_map_put(&names->numbers, hash, nth, found);
    return found;
}

void wm_names_release(struct wm_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->texts[i]);
    free(names->texts);
    wm_map_release(&names->numbers);
    *names = (struct wm_names) { 0 };
}
