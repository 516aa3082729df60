/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_block_analysis.c - an analysis of blocks, as plain data. */
#include "analyze/region/analyze_block_analysis.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/analyze_build.h"

static int by_name(const void *one, const void *other)
{
    const struct wm_region_usage *a = one, *b = other;

    return strcmp(a->name, b->name);
}

void wm_block_analysis_sort(struct wm_block_analysis *results)
{
    if (results->count > 1)
        qsort(results->blocks, results->count, sizeof(*results->blocks), by_name);
}

/* Takes `blocks` over, but for what no call is known of. */
static void take_blocks(struct wm_block_analysis *results, struct wm_region_usage *blocks,
                        size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (blocks[i].calls + blocks[i].unfinished > 0)
            blocks[results->count++] = blocks[i];
        else
            free(blocks[i].name);
    }
    results->blocks = blocks;
    wm_block_analysis_sort(results);
}

int wm_block_analysis_of(struct wm_regions *regions,
                         const struct wm_static_data *static_data, uint64_t stray,
                         struct wm_region_report *costs,
                         struct wm_block_analysis **ret_results, struct wm_error *err)
{
    const struct wm_blocks *blocks = wm_regions_blocks(regions);
    struct wm_block_analysis *results = calloc(1, sizeof(*results));
    struct wm_region_report named = { 0 };

    if (!costs)
        costs = &named;
    if (!results || (costs == &named &&
                     wm_regions_usages(regions, &named.names, &named.name_count) < 0)) {
        free(results);
        return wm_fail_memory(err, "analysis");
    }
    results->static_data = *static_data;
    results->stray = stray;
    results->timepoints = blocks->timepoints;
    for (size_t i = 0; i < WM_MEASUREMENT_COUNT; i++)
        results->overall[i] = wm_block_figures_of(&blocks->overall[i]);
    take_blocks(results, costs->names, costs->name_count);
    costs->names = NULL;
    costs->name_count = 0;
    *ret_results = results;
    return WM_OK;
}

void wm_block_analysis_free(struct wm_block_analysis *results)
{
    if (!results)
        return;
    wm_region_usages_free(results->blocks, results->count);
    wm_report_free(results->report);
    wm_remarks_release(&results->remarks);
    free(results);
}

const char wm_block_analysis_no_gpu[] = "no GPU was measured";

bool wm_block_analysis_lack(const struct wm_block_analysis *results, size_t measurement)
{
    struct wm_known gpus = results->static_data.expected_gpus;
    struct wm_known most = results->overall[measurement].of[WM_BLOCK_MAX];

    return gpus.known && gpus.number == 0 &&
           wm_measurement_is_gpu((enum wm_measurement)measurement) &&
           !(most.known && most.number > 0);
}

enum wm_origin wm_block_analysis_origin(const struct wm_block_analysis *results,
                                        size_t measurement)
{
    return wm_measurement_is_gpu((enum wm_measurement)measurement) ? results->gpu_origin
                                                                   : WM_MEASURED;
}

void wm_block_analysis_unpaired(const struct wm_block_analysis *analysis,
                                uint64_t *ret_stray, uint64_t *ret_unfinished)
{
    *ret_stray = analysis->stray;
    *ret_unfinished = 0;
    for (size_t i = 0; i < analysis->count; i++)
        *ret_unfinished += analysis->blocks[i].unfinished;
}

const char *wm_block_analysis_remark(const struct wm_block_analysis *analysis, size_t index)
{
    return wm_remarks_get(&analysis->remarks, index);
}
