/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_block_json.c - an analysis of blocks as JSON. */
#include "analyze/region/analyze_block_analysis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/base_json.h"

void wm_block_analysis_put_origin(json_t **object, enum wm_origin origin)
{
    const char *word = origin == WM_SIMULATED ? "simulated" : "estimated";

    if (origin == WM_MEASURED)
        return;
    wm_json_set(object, "origin", json_string(word));
    wm_json_set(object, word, json_true());
}

/* What objects are made with. */
struct writer {
    const struct wm_block_analysis *results;
    bool details;
    json_t *why; /* path of what is null, and the reason; NULL without details */
};

static void put_count(json_t **object, const char *key, uint64_t count)
{
    wm_json_set(object, key, json_integer((json_int_t)count));
}

static void put_number(json_t **object, const char *key, double value)
{
    wm_json_set(object, key, wm_json_known(isfinite(value), value));
}

static void put_why(struct writer *writer, const char *path, const char *key,
                    const char *why)
{
    char name[128];

    if (!writer->details)
        return;
    snprintf(name, sizeof(name), "%s%s%s", path, path[0] ? "." : "", key);
    wm_json_set(&writer->why, name, json_string(why));
}

static json_t *json_figures(struct writer *writer, const struct wm_block_figures *figures)
{
    json_t *json = json_object();

    put_number(&json, "min", figures->min);
    put_number(&json, "max", figures->max);
    put_number(&json, "mean", figures->mean);
    put_number(&json, "std", figures->std);
    if (writer->details)
        put_number(&json, "n_effective", figures->effective);
    return json;
}

/* One reason for all measurements where it is the same for all. */
static void put_usage_why(struct writer *writer, const struct wm_block_figures *usage,
                          uint64_t timepoints, const char *path, const char *key)
{
    char inner[96];

    snprintf(inner, sizeof(inner), "%s%s%s", path, path[0] ? "." : "", key);
    if (timepoints == 0)
        put_why(writer, path, key, "there is no timepoint in it");
    if (timepoints == 1)
        put_why(writer, path, key, "a single timepoint has no standard deviation");
    for (size_t i = 0; i < WM_MEASUREMENT_COUNT && timepoints > 0; i++) {
        const char *name = wm_measurement_name((enum wm_measurement)i);
        if (wm_block_analysis_lack(writer->results, i))
            put_why(writer, inner, name, wm_block_analysis_no_gpu);
        else if (timepoints == 1)
            continue;
        else if (isnan(usage[i].mean))
            put_why(writer, inner, name, "no timepoint has it");
        else if (isnan(usage[i].std))
            put_why(writer, inner, name, "a single value has no standard deviation");
    }
}

static json_t *json_usage(struct writer *writer, const struct wm_block_figures *usage)
{
    static const struct wm_block_figures none = { NAN, NAN, NAN, NAN, NAN, NAN, 0 };
    json_t *json = json_object();

    for (size_t i = 0; i < WM_MEASUREMENT_COUNT; i++) {
        bool lacks = writer->details && wm_block_analysis_lack(writer->results, i);
        json_t *figures = json_figures(writer, lacks ? &none : &usage[i]);
        enum wm_origin origin = wm_block_analysis_origin(writer->results, i);
        if (writer->details && !lacks && !isnan(usage[i].mean))
            wm_block_analysis_put_origin(&figures, origin);
        wm_json_set(&json, wm_measurement_name((enum wm_measurement)i), figures);
    }
    return json;
}

static json_t *json_static_data(struct writer *writer)
{
    struct wm_static_data data = writer->results->static_data;
    bool lacks =
        writer->details && wm_block_analysis_lack(writer->results, WM_SYSTEM_GPU_RAM);
    json_t *json = json_object();

    if (lacks)
        data.gpu_ram_capacity = NAN;
    for (size_t i = 0; i < WM_STATIC_COLUMNS; i++) {
        struct wm_static_entry entry = wm_static_data_entry(&data, i);
        if (entry.text)
            wm_json_set(&json, entry.key, wm_text_json(entry.text));
        else if (isnan(entry.number))
            wm_json_set(&json, entry.key, json_null());
        else if (entry.is_whole)
            wm_json_set(&json, entry.key, json_integer((json_int_t)entry.number));
        else
            put_number(&json, entry.key, entry.number);
        if (!entry.text && isnan(entry.number))
            put_why(writer, "static_data", entry.key,
                    lacks && strcmp(entry.key, "gpu_ram_system_capacity") == 0
                        ? wm_block_analysis_no_gpu
                        : "it is not known");
    }
    return json;
}

static json_t *json_histogram(const uint64_t *histogram)
{
    json_t *json = json_array();

    for (size_t i = 0; i < WM_BLOCK_BUCKETS; i++) {
        if (histogram[i] == 0)
            continue;
        json_t *bucket = json_object();
        bool is_last = i + 1 == WM_BLOCK_BUCKETS;
        put_number(&bucket, "up_to", is_last ? NAN : ldexp(1e-6, (int)i));
        put_count(&bucket, "calls", histogram[i]);
        wm_json_add(&json, bucket);
    }
    return json;
}

static json_t *json_time(struct writer *writer, const struct wm_region_usage *block,
                         const char *path)
{
    json_t *json = json_figures(writer, &block->time);

    put_number(&json, "total", block->time.total);
    if (block->calls == 0)
        put_why(writer, path, "compute_time", "no call of it ended");
    if (block->calls == 1) {
        put_why(writer, path, "compute_time.std",
                "a single call has no standard deviation");
        put_why(writer, path, "compute_time.n_effective",
                "a single call depends on no other");
    }
    if (!writer->details)
        return json;
    wm_json_set(&json, "unit", json_string("seconds"));
    put_number(&json, "inclusive", block->inclusive.time.number);
    wm_json_set(&json, "histogram", json_histogram(block->histogram));
    return json;
}

static json_t *json_block(struct writer *writer, const struct wm_region_usage *block,
                          size_t index)
{
    json_t *json = json_object();
    char path[64];

    snprintf(path, sizeof(path), "code_block_results.%zu", index);
    wm_json_set(&json, "name", wm_text_json(block->name));
    put_count(&json, "num_timepoints", block->timepoints);
    put_count(&json, "num_calls", block->calls);
    put_count(&json, "num_non_empty_calls", block->nonempty_calls);
    if (writer->details)
        put_count(&json, "num_unfinished_calls", block->unfinished);
    wm_json_set(&json, "compute_time", json_time(writer, block, path));
    wm_json_set(&json, "resource_usage", json_usage(writer, block->usage));
    put_usage_why(writer, block->usage, block->timepoints, path, "resource_usage");
    return json;
}

static json_t *json_remarks(const struct wm_remarks *remarks)
{
    json_t *json = json_array();

    for (size_t i = 0; i < remarks->count; i++)
        wm_json_add(&json, wm_text_json(remarks->all[i]));
    return json;
}

json_t *wm_block_analysis_json(const struct wm_block_analysis *results, bool details)
{
    struct writer writer = { .results = results, .details = details };
    json_t *root = json_object(), *blocks = json_array();

    if (details) {
        writer.why = json_object();
        put_count(&root, "num_timepoints", results->timepoints);
        put_count(&root, "num_stray_stops", results->stray);
    }
    wm_json_set(&root, "overall", json_usage(&writer, results->overall));
    put_usage_why(&writer, results->overall, results->timepoints, "", "overall");
    wm_json_set(&root, "static_data", json_static_data(&writer));
    for (size_t i = 0; i < results->count && blocks; i++)
        wm_json_add(&blocks, json_block(&writer, &results->blocks[i], i));
    wm_json_set(&root, "code_block_results", blocks);
    if (details) {
        wm_json_set(&root, "why", writer.why);
        wm_json_set(&root, "remarks", json_remarks(&results->remarks));
    }
    return root;
}
