/* SPDX-License-Identifier: Apache-2.0 */
/* view_flame.h - the tree of a run's regions by joules or seconds: the run at its root,
 * then each path, then what is outside of all regions. */
#ifndef WM_VIEW_FLAME_H
#define WM_VIEW_FLAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/base_error.h"
#include "wattmeter/report.h"

/* What a tree, or a figure of regions, is of. */
enum { WM_FLAME_MEASURES = 2 };
struct wm_flame_measure {
    const char *key, *unit, *heading;
    const char *bars_heading; /* of regions without those inside */
    const char *title;
};
extern const struct wm_flame_measure wm_flame_measures[WM_FLAME_MEASURES];

struct wm_flame_node {
    struct wm_report_part part;
    struct wm_report_region region; /* of a path */
    size_t parent;                  /* number of a node before this one */
    size_t row;                     /* 0: the run */
    double own, whole;              /* without the nodes inside, and with them */
};

/* Borrows from the report. */
struct wm_flame {
    const struct wm_report *report;
    const struct wm_flame_measure *measure;
    struct wm_flame_node *nodes;
    size_t count, rows;
};

/* By energy if any region has some, else by time, or `by_time`. `path` is the recording's,
 * for messages. WM_ENODEV: the run has no regions, or they have neither. The release is due
 * in any case. */
int wm_flame_init(struct wm_flame *flame, const struct wm_report *report, bool by_time,
                  const char *path, struct wm_error *err);
/* Why no region has energy, from the report; NULL: one has, or the reason is unknown. */
const char *wm_flame_why_no_energy(const struct wm_report *report);

/* If time was found and not asked for: fails with the reason if energy was, else notes it;
 * `notes` may be NULL. */
int wm_flame_note_time(const struct wm_flame_measure *found, bool by_energy,
                       const struct wm_report *report, const char *path, FILE *notes,
                       struct wm_error *err);
void wm_flame_release(struct wm_flame *flame);

/* Whether a figure of a region is drawn. Energy without an interval is not: it leaves out a
 * device, or a part of the time. */
bool wm_flame_has(const struct wm_report_figure *figure);

/* "(run)", "epoch", "(outside of all regions)". */
const char *wm_flame_name(const struct wm_flame_node *node);

#endif
