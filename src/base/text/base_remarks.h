/* SPDX-License-Identifier: Apache-2.0 */
/* base_remarks.h - what a person should know of a result that is good all the same: lines
 * of text. All zero is an empty list. */
#ifndef WM_BASE_REMARKS_H
#define WM_BASE_REMARKS_H

#include <stddef.h>

struct wm_remarks {
    char **all;
    size_t count, room;
};

/* Adds a line, in which whatever could trouble a terminal is replaced. WM_OK or
 * WM_ENOMEM. */
int wm_remarks_add(struct wm_remarks *remarks, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The index-th line, or NULL past the last one. */
const char *wm_remarks_get(const struct wm_remarks *remarks, size_t index);

void wm_remarks_release(struct wm_remarks *remarks);

#endif
