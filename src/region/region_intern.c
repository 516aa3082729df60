/* SPDX-License-Identifier: Apache-2.0 */
/* region_intern.c - a hash table of names, with open addressing. */
#include "region/region_intern.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_text.h"
#include "wattmeter/region.h"

/* A program may make names out of numbers, one for each request it serves. */
#define BYTES_MAX ((size_t)64 << 20)
#define BYTES_PER_NAME 64 /* of the tables */
static const char one_for_all[] = "(one of too many names)";

/* FNV-1a. */
static uint32_t hash(const char *text)
{
    uint32_t value = 2166136261u;

    for (; *text; text++)
        value = (value ^ (unsigned char)*text) * 16777619u;
    return value;
}

/* The slot that has the text, or that it would go to. */
static uint32_t *find(const struct wm_region_interned *interned, const char *text)
{
    uint32_t at = hash(text);

    for (;; at++) {
        uint32_t *slot = &interned->slots[at & (interned->slot_room - 1)];
        if (*slot == UINT32_MAX || strcmp(interned->texts[*slot], text) == 0)
            return slot;
    }
}

/* At most half of the slots are in use. */
static bool make_room(struct wm_region_interned *interned)
{
    if (interned->count < interned->text_room)
        return true;
    uint32_t room = interned->text_room > 0 ? 2 * interned->text_room : 64;
    char **texts = realloc(interned->texts, room * sizeof(*texts));
    if (!texts)
        return false;
    interned->texts = texts;
    uint32_t *slots = malloc(2 * (size_t)room * sizeof(*slots));
    if (!slots)
        return false;
    memset(slots, 0xff, 2 * (size_t)room * sizeof(*slots));
    free(interned->slots);
    interned->slots = slots;
    interned->slot_room = 2 * room;
    interned->text_room = room;
    for (uint32_t i = 0; i < interned->count; i++)
        *find(interned, texts[i]) = i;
    return true;
}

int wm_region_interned_add(struct wm_region_interned *interned, const char *text,
                           size_t length, uint32_t *ret_number)
{
    char clean[WM_REGION_NAME_MAX + 1];

    length = wm_text_utf8(clean, sizeof(clean), text, length);
    if (!make_room(interned))
        return WM_ENOMEM;
    uint32_t *slot = find(interned, clean);
    if (*slot == UINT32_MAX && interned->bytes + length + BYTES_PER_NAME > BYTES_MAX) {
        memcpy(clean, one_for_all, sizeof(one_for_all));
        slot = find(interned, clean);
    }
    if (*slot == UINT32_MAX) {
        char *copy = strdup(clean);
        if (!copy)
            return WM_ENOMEM;
        interned->texts[interned->count] = copy;
        interned->bytes += length + BYTES_PER_NAME;
        *slot = interned->count++;
    }
    *ret_number = *slot;
    return WM_OK;
}

void wm_region_interned_clear(struct wm_region_interned *interned)
{
    for (uint32_t i = 0; i < interned->count; i++)
        free(interned->texts[i]);
    free(interned->texts);
    free(interned->slots);
    *interned = (struct wm_region_interned) { 0 };
}
