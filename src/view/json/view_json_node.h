/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view_json_node.h - writing a report, or what is known of GPUs, as JSON; for src/view
 * alone.
 *
 * What is not known is null, and the object "why" of the view gets the reason under
 * the path of the null. Memory that runs out is noted in the view; whatever has been
 * built by then is thrown away in the end.
 */
#ifndef WM_VIEW_JSON_NODE_H
#define WM_VIEW_JSON_NODE_H

#include <stdbool.h>

#include "analyze/analyze_figures.h"
#include "view/view.h"

struct wm_json_view {
    const struct wm_report *report;
    const struct wm_units *units;
    json_t *why;
    bool failed; /* out of memory: whatever has been built is thrown away */
};

/* An object or array of the report, and its path. */
struct wm_json_node {
    struct wm_json_view *view;
    json_t *json;
    char path[128];
};

/* Takes `value` over; false when it could not, and it is gone. */
bool wm_json_put(const struct wm_json_node *node, const char *key, json_t *value);

void wm_json_text(const struct wm_json_node *node, const char *key, const char *text);

struct wm_json_node wm_json_node(const struct wm_json_node *parent, const char *key,
                                 json_t *json);

struct wm_json_node wm_json_object(const struct wm_json_node *parent, const char *key);

/* An object that is there already; its `json` is NULL where it is not. */
struct wm_json_node wm_json_find(const struct wm_json_node *parent, const char *key);

/* The figures of one kind in the JSON of `of`, at their paths in `node`: those whose path
 * begins with `prefix`, but for what is there already. Objects inside get a "unit" where it
 * is another one than that of the object around them. */
void wm_json_figures(const struct wm_json_node *node, enum wm_report_kind kind,
                     const void *of, const char *prefix);

struct wm_json_node wm_json_append(const struct wm_json_node *array, size_t index);

/* Puts `value`, which is taken over, into `object` under the path of what `node` has at
 * that key. */
void wm_json_beside(const struct wm_json_node *node, json_t *object, const char *key,
                    json_t *value);

/* What was built, the caller's; NULL, and all of it freed, when memory ran out. */
json_t *wm_json_end(const struct wm_json_node *root);

void wm_json_missing(const struct wm_json_node *node, const char *key, const char *why);

/* Whole numbers without a fraction; null for what JSON cannot hold. */
json_t *wm_json_number(double value);

/* A number of something continuous. */
void wm_json_value(const struct wm_json_node *node, const char *key,
                   const struct wm_value *value);

/* A ratio in percent. */
void wm_json_percent(const struct wm_json_node *node, const char *key,
                     const struct wm_value *ratio);

/* Between which joules the truth lies, where that is known. */
void wm_json_between(const struct wm_json_node *node, const struct wm_value *low,
                     const struct wm_value *high);

/* Beside each figure that was not measured. */
void wm_json_origin(const struct wm_json_node *node, enum wm_origin origin);

/* The energy of the run and of each device; in view_json_energy.c. */
void wm_json_energy(const struct wm_json_node *root);
void wm_json_covers(const struct wm_json_node *node, const struct wm_cover *cover);
void wm_json_gpu_identity(const struct wm_json_node *node, const struct wm_gpu_usage *gpu);

/* How a command ended; `result` is NULL where there is none. */
json_t *wm_json_exit(const struct wm_result *result);

/* The words of a command line, as an array. */
json_t *wm_json_command(const struct wm_run *run);

void wm_json_remarks(const struct wm_json_node *node, const struct wm_report *report);

/* What regions cost, where there are any; in view_json_regions.c. */
void wm_json_regions(const struct wm_json_node *root);

/* A column of what gpu_tracker keeps of the machine; null where it is not known. */
json_t *wm_static_data_json(const struct wm_static_data *data, size_t column);

#endif
