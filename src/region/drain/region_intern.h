/* SPDX-License-Identifier: Apache-2.0 */
/* region_intern.h - names by number, each text once. */
#ifndef WM_REGION_INTERN_H
#define WM_REGION_INTERN_H

#include <stddef.h>
#include <stdint.h>

#include "base/base_error.h"
#include "base/text/base_names.h"

struct wm_region_interned {
    struct wm_names kept;
    size_t bytes; /* of all of them */
};

/* The number of text[0..length), which is made valid UTF-8. Where there are too many texts
 * to keep, one stands for all that are new. WM_ENOMEM. */
int wm_region_interned_add(struct wm_region_interned *interned, const char *text,
                           size_t length, uint32_t *ret_number);

void wm_region_interned_clear(struct wm_region_interned *interned);

#endif
