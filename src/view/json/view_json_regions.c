/* SPDX-License-Identifier: Apache-2.0 */
/* view_json_regions.c - what regions cost, in JSON. */
#include <math.h>

#include "base/text/base_json.h"
#include "record/record_timepoint.h"
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

/* The first figures of `stats`; the total, where it is one of them, is that of calls. */
static void put_stats(const struct wm_json_node *node, const struct wm_block_figures *stats,
                      size_t count, const char *why)
{
    for (size_t i = 0; i < count; i++) {
        const char *key = wm_block_figure_names[i];
        bool is_one = i == WM_BLOCK_STD && stats->of[WM_BLOCK_MEAN].known;
        if (stats->of[i].known && isfinite(stats->of[i].number))
            wm_json_put(node, key, json_real(stats->of[i].number));
        else
            wm_json_missing(node, key, is_one ? "there is but one" : why);
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
        put_stats(&node, &measured[i], WM_BLOCK_STATISTICS, "not reported");
        wm_json_origin(&node, wm_report_usage_origin(parent->view->report, i));
    }
}

static void put_region(const struct wm_json_node *node,
                       const struct wm_region_usage *region)
{
    put_count(node, "calls", region->calls);
    put_count(node, "unfinished", region->unfinished);
    put_count(node, "clocked_calls", region->clocked_calls);
    struct wm_json_node time = wm_json_object(node, "time");
    put_stats(&time, &region->time, WM_BLOCK_FIGURES,
              region->calls == 0 ? "no call ended" : "not reported");
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

    if (regions->name_count == 0)
        return;
    struct wm_json_node node = wm_json_object(root, "regions");
    put_names(&node, regions);
    if (regions->path_count == 0) /* they are those of files */
        return;
    put_paths(&node, regions);
    put_spending(&node, "rest", &regions->rest);
    put_count(&node, "threads", regions->threads);
    put_count(&node, "processes", regions->processes);
    put_loss(&node, "lost", report->result.lost_regions);
    put_loss(&node, "stray", report->result.stray_regions);
    put_loss(&node, "dropped", report->result.dropped_regions);
}

json_t *wm_static_data_json(const struct wm_static_data *data, size_t column)
{
    const struct wm_static_entry entry = wm_static_data_entry(data, column);

    if (entry.text)
        return wm_text_json(entry.text);
    if (entry.is_whole && entry.number.known)
        return json_integer((json_int_t)entry.number.number);
    return wm_json_known(entry.number.known, entry.number.number);
}

static void put_static_data(const struct wm_json_node *root)
{
    const struct wm_report *report = root->view->report;
    struct wm_json_node node = wm_json_object(root, "static_data");
    struct wm_static_data data = report->usage.machine;

    if (wm_report_lacks(report, WM_SYSTEM_GPU_RAM))
        data.gpu_ram_capacity = (struct wm_known) { 0 };
    for (size_t i = 0; i < WM_STATIC_COLUMNS; i++) {
        json_t *value = wm_static_data_json(&data, i);
        bool is_known = value && !json_is_null(value);
        wm_json_put(&node, wm_static_columns[i].name, value);
        if (!is_known)
            wm_json_missing(&node, wm_static_columns[i].name, "it is not known");
    }
}

static void put_total(const struct wm_json_node *root, const char *key, uint64_t count)
{
    if (root->view->report->usage.lacks_counts)
        wm_json_missing(root, key, "gpu_tracker's JSON does not have it");
    else
        put_count(root, key, count);
}

json_t *wm_view_blocks_json(const struct wm_report *report)
{
    struct wm_json_view view = { .report = report, .why = json_object() };
    struct wm_json_node root = { .view = &view, .json = json_object() };
    json_t *remarks = json_array();

    put_total(&root, "timepoints", report->usage.timepoints);
    put_total(&root, "stray", report->usage.stray);
    put_usage(&root, report->usage.overall);
    struct wm_json_node usage = wm_json_find(&root, "usage");
    for (size_t i = 0; i < WM_MEASUREMENT_COUNT; i++) {
        if (wm_report_lacks(report, i))
            wm_json_missing(&usage, wm_measurement_name((enum wm_measurement)i),
                            wm_report_no_gpu);
    }
    put_static_data(&root);
    wm_json_regions(&root);
    wm_json_put(&root, "why", view.why);
    for (size_t i = report->file_remarks; i < report->remark_count; i++)
        wm_json_add(&remarks, wm_text_json(report->remarks[i]));
    wm_json_put(&root, "remarks", remarks);
    return wm_json_end(&root);
}
