/* SPDX-License-Identifier: Apache-2.0 */
/* region_intern.c - names by their hash. */
#include "region/drain/region_intern.h"

#include <string.h>

#include "base/text/base_text.h"
#include "wattmeter/region.h"

/* A program may make names out of numbers, one for each request it serves. */
#define BYTES_MAX ((size_t)64 << 20)
#define BYTES_PER_NAME 128 /* of the tables */
static const char one_for_all[] = "(one of too many names)";

int wm_region_interned_add(struct wm_region_interned *interned, const char *text,
                           size_t length, uint32_t *ret_number)
{
    char clean[WM_REGION_NAME_MAX + 1];

    length = wm_text_utf8(clean, sizeof(clean), text, length);
    uint32_t found = wm_names_find(&interned->kept, clean);
    if (found == WM_MAP_NONE) {
        if (interned->bytes + length + BYTES_PER_NAME > BYTES_MAX)
            memcpy(clean, one_for_all, sizeof(one_for_all));
        size_t count = interned->kept.count;
        found = wm_names_add(&interned->kept, clean);
        if (found == WM_MAP_NONE)
            return WM_ENOMEM;
        if (interned->kept.count > count)
            interned->bytes += length + BYTES_PER_NAME;
    }
    *ret_number = found;
    return WM_OK;
}

void wm_region_interned_clear(struct wm_region_interned *interned)
{
    wm_names_release(&interned->kept);
    *interned = (struct wm_region_interned) { 0 };
}
