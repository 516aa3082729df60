/* SPDX-License-Identifier: Apache-2.0 */
/* view_experiment.h - the forms that an experiment can take; for src/view alone. */
#ifndef WM_VIEW_EXPERIMENT_H
#define WM_VIEW_EXPERIMENT_H

#include <jansson.h>

#include "analyze/experiment/analyze_experiment.h"
#include "view/text/view_units.h"

/* What is shown together. */
struct wm_experiment_view {
    const struct wm_experiment *experiment;
    const struct wm_experiment_summary *summary;
    const struct wm_units *units;
    const char *per; /* NULL: no steps were asked for */
};

void wm_view_experiment_text(const struct wm_experiment_view *view, FILE *out);

/* The caller's; NULL when out of memory. */
json_t *wm_view_experiment_json(const struct wm_experiment_view *view);

/* "measured", "estimated" or "simulated". */
const char *wm_view_origin_word(enum wm_origin origin);

/* Writes JSON, which is taken over, and NULL is out of memory. */
int wm_view_dump(json_t *root, FILE *out, struct wm_error *err);

/* WM_EIO where `out` did not take it all. */
int wm_view_flush(FILE *out, struct wm_error *err);

#endif
