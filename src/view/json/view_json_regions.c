/* SPDX-License-Identifier: Apache-2.0 */
/* view_json_regions.c - what regions cost, in JSON. */
#include <math.h>

#include "record/calls/record_timepoint.h"
#include "view/json/view_json_node.h"

static const char no_result[] = "the recording ends without a result";

static void put_count(const struct wm_json_node *node, const char *key, uint64_t count)
{
    wm_json_put(node, key, json_integer((json_int_t)count));
}

static void put_spending(const struct wm_json_node *parent, const char *key,
                         const struct wm_region_spending *spending)
{
    struct wm_json_node node = wm_json_object(parent, key);

    wm_json_figures(&node, WM_REPORT_REGION, spending, "");
}

static void put_stats(const struct wm_json_node *node, const struct wm_block_figures *stats,
                      const char *why)
{
    for (size_t i = 0; i < WM_BLOCK_STATISTICS; i++) {
        const char *key = wm_block_figure_names[i];
        if (stats->of[i].known && isfinite(stats->of[i].number))
            wm_json_put(node, key, json_real(stats->of[i].number));
        else
            wm_json_missing(node, key,
                            stats->of[WM_BLOCK_MEAN].known ? "there is but one" : why);
    }
}

/* Only the powers of two that calls took. */
static void put_histogram(const struct wm_json_node *parent, const uint64_t *histogram)
{
    struct wm_json_node array = wm_json_node(parent, "histogram", json_array());
    size_t count = 0;

    for (int i = 0; i < WM_BLOCK_BUCKETS; i++) {
        if (histogram[i] == 0)
            continue;
        struct wm_json_node node = wm_json_append(&array, count++);
        if (i + 1 < WM_BLOCK_BUCKETS)
            wm_json_put(&node, "up_to", json_real(ldexp(1e-6, i)));
        else
            wm_json_missing(&node, "up_to", "it has no end");
        put_count(&node, "calls", histogram[i]);
    }
}

/* Only what was known at a timepoint inside. */
static void put_usage(const struct wm_json_node *parent,
                      const struct wm_block_figures *measured)
{
    struct wm_json_node usage = wm_json_object(parent, "usage");

    for (size_t i = 0; i < WM_MEASUREMENT_COUNT; i++) {
        if (!measured[i].of[WM_BLOCK_MEAN].known ||
            wm_report_lacks(parent->view->report, i))
            continue;
        struct wm_json_node node =
            wm_json_object(&usage, wm_measurement_name((enum wm_measurement)i));
        put_stats(&node, &measured[i], "not reported");
    }
}

static void put_region(const struct wm_json_node *node,
                       const struct wm_region_usage *region)
{
    put_count(node, "calls", region->calls);
    put_count(node, "unfinished", region->unfinished);
    put_count(node, "clocked_calls", region->clocked_calls);
    struct wm_json_node time = wm_json_object(node, "time");
    put_stats(&time, &region->time, "no call ended");
    wm_json_put(&time, "total", json_real(region->time.of[WM_BLOCK_TOTAL].number));
    put_histogram(node, region->histogram);
    put_spending(node, "inclusive", &region->inclusive);
    put_spending(node, "exclusive", &region->exclusive);
    wm_json_put(node, "short", json_boolean(region->is_short));
    put_count(node, "timepoints", region->timepoints);
    put_count(node, "calls_with_timepoints", region->nonempty_calls);
    put_usage(node, region->usage);
}

static void put_names(const struct wm_json_node *parent,
                      const struct wm_region_report *regions)
{
    struct wm_json_node array = wm_json_node(parent, "by_name", json_array());

    for (size_t i = 0; i < regions->name_count; i++) {
        struct wm_json_node node = wm_json_append(&array, i);
        wm_json_text(&node, "name", regions->names[i].name);
        put_region(&node, &regions->names[i]);
    }
}

static void put_paths(const struct wm_json_node *parent,
                      const struct wm_region_report *regions)
{
    struct wm_json_node array = wm_json_node(parent, "by_path", json_array());

    for (size_t i = 0; i < regions->path_count; i++) {
        const struct wm_region_usage *region = &regions->paths[i];
        struct wm_json_node node = wm_json_append(&array, i);
        wm_json_text(&node, "name", region->name);
        if (region->parent != WM_NO_REGION)
            put_count(&node, "parent", region->parent);
        else
            wm_json_missing(&node, "parent", "it is in no other region");
        put_count(&node, "depth", region->depth);
        wm_json_put(&node, "by_itself", json_boolean(region->is_free));
        put_region(&node, region);
    }
}

static void put_loss(const struct wm_json_node *node, const char *key, uint64_t count)
{
    if (node->view->report->complete)
        put_count(node, key, count);
    else
        wm_json_missing(node, key, no_result);
}

void wm_json_regions(const struct wm_json_node *root)
{
    const struct wm_report *report = root->view->report;
    const struct wm_region_report *regions = &report->regions;

    if (regions->path_count == 0)
        return;
    struct wm_json_node node = wm_json_object(root, "regions");
    put_names(&node, regions);
    put_paths(&node, regions);
    put_spending(&node, "rest", &regions->rest);
    put_count(&node, "threads", regions->threads);
    put_count(&node, "processes", regions->processes);
    put_loss(&node, "lost", report->result.lost_regions);
    put_loss(&node, "stray", report->result.stray_regions);
    put_loss(&node, "dropped", report->result.dropped_regions);
}
