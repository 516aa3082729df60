/* SPDX-License-Identifier: Apache-2.0 */
/* view_flame.c - the tree of a run's regions by joules or seconds. */
#include "view/chart/view_flame.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_utf8.h"

const struct wm_flame_measure wm_flame_measures[WM_FLAME_MEASURES] = {
    { "energy", "J", "Energy", "Energy without regions inside", "Energy by region" },
    { "time", "s", "Time", "Time without regions inside", "Time by region" },
};

bool wm_flame_has(const struct wm_report_figure *figure)
{
    bool is_energy = strcmp(figure->unit, "J") == 0;

    return figure->state == WM_REPORT_KNOWN && (!is_energy || figure->has_range);
}

const char *wm_flame_why_no_energy(const struct wm_report *report)
{
    struct wm_report_part part = { .kind = WM_REPORT_REGION, .share = WM_REPORT_EXCLUSIVE };
    struct wm_report_figure figure, run = { 0 };
    const char *why = NULL;

    wm_report_figure(report, NULL, "energy", &run);
    for (; wm_report_figure(report, &part, "energy", &figure) == WM_OK; part.index++) {
        if (wm_flame_has(&figure))
            return NULL;
        why = figure.why ? figure.why : run.why;
    }
    return why;
}

int wm_flame_note_time(const struct wm_flame_measure *found, bool by_energy,
                       const struct wm_report *report, const char *path, FILE *notes,
                       struct wm_error *err)
{
    const char *why = wm_flame_why_no_energy(report);

    why = why ? why : "unknown";
    path = wm_text_path(path);
    if (strcmp(found->unit, "J") == 0)
        return WM_OK;
    if (by_energy)
        return wm_fail(err, WM_ENODEV, "%s: no energy by region (%s)", path, why);
    if (notes)
        fprintf(notes, "note: %s: by time, as there is no energy by region (%s)\n", path,
                why);
    return WM_OK;
}

static double own_of(const struct wm_flame *flame, const struct wm_report_part *part)
{
    struct wm_report_figure figure;

    if (wm_report_figure(flame->report, part, flame->measure->key, &figure) < 0 ||
        !wm_flame_has(&figure))
        return 0;
    return fmax(figure.value, 0);
}

/* A path comes before those inside it, so that a node has its parent's number below it. */
static void add_nodes(struct wm_flame *flame, size_t paths)
{
    flame->nodes[0].part.kind = WM_REPORT_RUN;
    flame->count = 1;
    for (size_t i = 0; i < paths; i++) {
        struct wm_flame_node node = {
            .part = { .kind = WM_REPORT_PATH, .index = i, .share = WM_REPORT_EXCLUSIVE }
        };
        wm_report_region(flame->report, WM_REPORT_PATH, i, &node.region);
        bool is_outer = node.region.parent == WM_REPORT_NO_PARENT;
        node.parent = is_outer ? 0 : node.region.parent + 1;
        node.row = node.region.depth + 1;
        node.own = own_of(flame, &node.part);
        flame->nodes[flame->count++] = node;
        flame->rows = node.row + 1 > flame->rows ? node.row + 1 : flame->rows;
    }
    struct wm_flame_node rest = { .part = { .kind = WM_REPORT_REST }, .row = 1 };
    rest.own = own_of(flame, &rest.part);
    if (rest.own > 0)
        flame->nodes[flame->count++] = rest;
    for (size_t i = flame->count; i-- > 0;) {
        flame->nodes[i].whole += flame->nodes[i].own;
        if (i > 0)
            flame->nodes[flame->nodes[i].parent].whole += flame->nodes[i].whole;
    }
}

int wm_flame_init(struct wm_flame *flame, const struct wm_report *report, bool by_time,
                  const char *path, struct wm_error *err)
{
    size_t paths = wm_report_count(report, WM_REPORT_PATH);

    *flame = (struct wm_flame) { .report = report };
    if (paths == 0)
        return wm_fail(err, WM_ENODEV, "%s: has no regions", wm_text_path(path));
    for (size_t m = by_time; m < WM_FLAME_MEASURES; m++) {
        free(flame->nodes);
        flame->nodes = calloc(paths + 2, sizeof(*flame->nodes));
        if (!flame->nodes)
            return wm_fail_memory(err, "tree of regions");
        flame->measure = &wm_flame_measures[m];
        add_nodes(flame, paths);
        if (flame->nodes[0].whole > 0)
            return WM_OK;
    }
    return wm_fail(err, WM_ENODEV, "%s: its regions have neither energy nor time",
                   wm_text_path(path));
}

void wm_flame_release(struct wm_flame *flame)
{
    free(flame->nodes);
}

const char *wm_flame_name(const struct wm_flame_node *node)
{
    if (node->part.kind == WM_REPORT_RUN)
        return "(run)";
    if (node->part.kind == WM_REPORT_REST)
        return "(outside of all regions)";
    return node->region.name[0] ? node->region.name : "(no name)";
}
