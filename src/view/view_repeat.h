/* SPDX-License-Identifier: Apache-2.0 */
/* view_repeat.h - what the views of repeated commands share; for src/view alone. */
#ifndef WM_VIEW_REPEAT_H
#define WM_VIEW_REPEAT_H

#include <jansson.h>

#include "analyze/experiment/analyze_repeat.h"

/* The caller's; NULL when out of memory. */
json_t *wm_view_repeat_json(const struct wm_repeat *repeat);

#endif
