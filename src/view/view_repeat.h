/* SPDX-License-Identifier: Apache-2.0 */
/* view_repeat.h - what the views of repeated commands share; for src/view alone. */
#ifndef WM_VIEW_REPEAT_H
#define WM_VIEW_REPEAT_H

#include <jansson.h>
#include <stdio.h>

#include "analyze/experiment/analyze_repeat.h"

/* The caller's; NULL when out of memory. */
json_t *wm_view_repeat_json(const struct wm_repeat *repeat);

/* Tables; in view_repeat_table.c. */
void wm_view_repeat_markdown(const struct wm_repeat *repeat, FILE *out);
void wm_view_repeat_csv(const struct wm_repeat *repeat, FILE *out);

#endif
