/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_block_json_parse.c - an analysis of blocks out of JSON: ours, and gpu_tracker's.
 */
#include "analyze/region/analyze_block_analysis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/base_text.h"
#include "base/text/base_utf8.h"

static int no_memory(struct wm_error *err)
{
    return wm_fail(err, WM_ENOMEM, "analysis: out of memory");
}

/* What is being read, for its messages. */
struct reader {
    const char *name;
    struct wm_error *err;
};

static int wrong(const struct reader *reader, const char *what)
{
    return wm_fail(reader->err, WM_EFORMAT, "%s: not the JSON of an analysis: %.60s",
                   wm_text_path(reader->name), what);
}

static int read_count(const struct reader *reader, const json_t *object, const char *key,
                      bool may_miss, uint64_t *ret_count)
{
    const json_t *value = json_object_get(object, key);

    *ret_count = 0;
    if (!value && may_miss)
        return WM_OK;
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return wrong(reader, key);
    *ret_count = (uint64_t)json_integer_value(value);
    return WM_OK;
}

static int read_number(const struct reader *reader, const json_t *object, const char *key,
                       double *ret_number)
{
    const json_t *value = json_object_get(object, key);

    *ret_number = NAN;
    if (!value || json_is_null(value))
        return WM_OK;
    if (!json_is_number(value))
        return wrong(reader, key);
    *ret_number = json_number_value(value);
    return WM_OK;
}

/* What is measured is never negative. A mean is as exact as a sum of doubles. No number
 * that is not known fails. */
static bool are_possible(const struct wm_block_figures *figures)
{
    double slack = 1e-6 * fabs(figures->mean);

    return !(figures->min < 0 || figures->std < 0 || figures->total < 0 ||
             figures->effective < 0 || figures->min > figures->max ||
             figures->mean < figures->min - slack || figures->mean > figures->max + slack);
}

static int read_figures(const struct reader *reader, const json_t *json, const char *what,
                        struct wm_block_figures *ret_figures)
{
    if (json && !json_is_object(json))
        return wrong(reader, what);

    int status = read_number(reader, json, "min", &ret_figures->min);
    if (status == WM_OK)
        status = read_number(reader, json, "max", &ret_figures->max);
    if (status == WM_OK)
        status = read_number(reader, json, "mean", &ret_figures->mean);
    if (status == WM_OK)
        status = read_number(reader, json, "std", &ret_figures->std);
    if (status == WM_OK)
        status = read_number(reader, json, "total", &ret_figures->total);
    if (status == WM_OK)
        status = read_number(reader, json, "n_effective", &ret_figures->effective);
    if (status == WM_OK && !are_possible(ret_figures))
        status = wm_fail(reader->err, WM_EFORMAT,
                         "%s: %.60s: a negative number, or a mean that is not between "
                         "minimum and maximum",
                         wm_text_path(reader->name), what);
    return status;
}

static int read_usage(const struct reader *reader, const json_t *json, const char *what,
                      struct wm_block_figures *ret_usage)
{
    if (!json_is_object(json))
        return wrong(reader, what);
    for (size_t i = 0; i < WM_MEASUREMENT_COUNT; i++) {
        const char *name = wm_measurement_name((enum wm_measurement)i);
        int status = read_figures(reader, json_object_get(json, name), name, &ret_usage[i]);
        if (status < 0)
            return status;
    }
    return WM_OK;
}

static int read_unit(const struct reader *reader, const json_t *object, const char *key,
                     char *ret_unit)
{
    const json_t *value = json_object_get(object, key);

    if (!json_is_string(value) || json_string_length(value) > 15)
        return wrong(reader, key);
    memcpy(ret_unit, json_string_value(value), json_string_length(value) + 1);
    return WM_OK;
}

static int read_whole(const struct reader *reader, const json_t *object, const char *key,
                      int *ret_whole)
{
    double number;

    int status = read_number(reader, object, key, &number);
    *ret_whole = number >= 0 && number <= 1e9 ? (int)number : -1;
    return status;
}

static int read_static_data(const struct reader *reader, const json_t *json,
                            struct wm_static_data *data)
{
    int status = WM_OK;

    if (!json_is_object(json))
        return wrong(reader, "static_data");

    for (size_t i = 0; i < WM_STATIC_COLUMNS && status == WM_OK; i++) {
        const struct wm_static_column *column = &wm_static_columns[i];
        void *place = (char *)data + column->offset;
        if (column->kind == WM_STATIC_COUNT)
            status = read_whole(reader, json, column->name, place);
        else if (column->kind == WM_STATIC_CAPACITY)
            status = read_number(reader, json, column->name, place);
        else
            status = read_unit(reader, json, column->name, place);
    }
    return status;
}

/* Calls of our own JSON; `up_to` is the bucket's own limit, null for the last. */
static int read_histogram(const struct reader *reader, const json_t *json,
                          uint64_t *ret_histogram)
{
    size_t index;
    json_t *bucket;

    json_array_foreach(json, index, bucket)
    {
        double up_to;
        uint64_t calls;
        int status = read_number(reader, bucket, "up_to", &up_to);
        if (status == WM_OK)
            status = read_count(reader, bucket, "calls", false, &calls);
        if (status < 0)
            return status;
        double exponent = isnan(up_to) ? WM_BLOCK_BUCKETS - 1 : round(log2(up_to * 1e6));
        if (!(exponent >= 0 && exponent < WM_BLOCK_BUCKETS))
            return wrong(reader, "histogram");
        ret_histogram[(size_t)exponent] = calls;
    }
    return WM_OK;
}

/* Earlier versions called the inclusive time "open". */
static int read_time(const struct reader *reader, const json_t *json,
                     struct wm_region_usage *result)
{
    if (!json_is_object(json))
        return wrong(reader, "compute_time");

    const char *key = json_object_get(json, "open") ? "open" : "inclusive";
    int status = read_figures(reader, json, "compute_time", &result->time);
    if (status == WM_OK)
        status = read_number(reader, json, key, &result->inclusive.time.number);
    if (status == WM_OK)
        status =
            read_histogram(reader, json_object_get(json, "histogram"), result->histogram);
    return status;
}

static int read_block(const struct reader *reader, const json_t *json,
                      struct wm_region_usage *result)
{
    const json_t *name = json_object_get(json, "name");

    if (!json_is_string(name))
        return wrong(reader, "name");
    result->name = strdup(json_string_value(name));
    if (!result->name)
        return no_memory(reader->err);

    int status = read_count(reader, json, "num_timepoints", false, &result->timepoints);
    if (status == WM_OK)
        status = read_count(reader, json, "num_calls", false, &result->calls);
    if (status == WM_OK)
        status =
            read_count(reader, json, "num_non_empty_calls", false, &result->nonempty_calls);
    if (status == WM_OK && result->nonempty_calls > result->calls)
        status = wrong(reader, "num_non_empty_calls");
    if (status == WM_OK)
        status =
            read_count(reader, json, "num_unfinished_calls", true, &result->unfinished);
    if (status == WM_OK)
        status = read_time(reader, json_object_get(json, "compute_time"), result);
    if (status == WM_OK)
        status = read_usage(reader, json_object_get(json, "resource_usage"),
                            "resource_usage", result->usage);
    return status;
}

static int read_blocks(const struct reader *reader, const json_t *json,
                       struct wm_block_analysis *results)
{
    size_t count = json_array_size(json);

    if (!json_is_array(json))
        return wrong(reader, "code_block_results");
    if (count == 0)
        return WM_OK;
    results->blocks = calloc(count, sizeof(*results->blocks));
    if (!results->blocks)
        return no_memory(reader->err);
    while (results->count < count) {
        size_t index = results->count++;
        int status =
            read_block(reader, json_array_get(json, index), &results->blocks[index]);
        if (status < 0)
            return status;
    }
    wm_block_analysis_sort(results);
    return WM_OK;
}

/* What gpu_tracker has where no GPU was measured, and our JSON leaves out. */
static void fill_lack(const struct wm_block_analysis *results, uint64_t timepoints,
                      struct wm_block_figures *usage)
{
    bool is_series = timepoints > 1;

    for (size_t i = 0; i < WM_MEASUREMENT_COUNT && timepoints > 0; i++) {
        if (wm_block_analysis_lack(results, i) && isnan(usage[i].mean))
            usage[i] =
                (struct wm_block_figures) { .std = is_series ? 0 : NAN,
                                            .total = NAN,
                                            .effective =
                                                is_series ? (double)timepoints : NAN };
    }
}

static void fill_lacks(struct wm_block_analysis *results)
{
    if (wm_block_analysis_lack(results, WM_SYSTEM_GPU_RAM) &&
        isnan(results->static_data.gpu_ram_capacity))
        results->static_data.gpu_ram_capacity = 0;
    for (size_t i = 0; i < results->count; i++)
        fill_lack(results, results->blocks[i].timepoints, results->blocks[i].usage);
    fill_lack(results, results->timepoints, results->overall);
}

/* Our JSON has it beside each figure of GPUs. */
static void read_origin(const json_t *root, struct wm_block_analysis *results)
{
    const json_t *overall = json_object_get(root, "overall");

    for (size_t i = 0; i < WM_MEASUREMENT_COUNT; i++) {
        const char *name = wm_measurement_name((enum wm_measurement)i);
        const json_t *figures = json_object_get(overall, name);
        if (json_is_true(json_object_get(figures, "simulated")))
            results->gpu_origin = WM_SIMULATED;
        else if (json_is_true(json_object_get(figures, "estimated")))
            results->gpu_origin = WM_ESTIMATED;
    }
}

static int read_results(const struct reader *reader, const json_t *root,
                        struct wm_block_analysis *results)
{
    if (!json_is_object(root))
        return wrong(reader, "no object");

    int status =
        read_usage(reader, json_object_get(root, "overall"), "overall", results->overall);
    if (status == WM_OK)
        status = read_count(reader, root, "num_timepoints", true, &results->timepoints);
    if (status == WM_OK)
        status = read_count(reader, root, "num_stray_stops", true, &results->stray);
    if (status == WM_OK)
        status = read_static_data(reader, json_object_get(root, "static_data"),
                                  &results->static_data);
    if (status == WM_OK)
        status = read_blocks(reader, json_object_get(root, "code_block_results"), results);
    if (status < 0)
        return status;
    read_origin(root, results);
    fill_lacks(results);
    return WM_OK;
}

/* Python writes NaN, which is not JSON; null says the same here. */
static char *without_nan(const char *text, size_t length, size_t *ret_length)
{
    static const char word[] = "NaN";
    char *copy = malloc(2 * length + 1); /* NaN grows by a byte */
    size_t used = 0;
    bool in_string = false;

    for (size_t i = 0; copy && i < length;) {
        if (!in_string && length - i >= strlen(word) &&
            memcmp(text + i, word, strlen(word)) == 0) {
            memcpy(copy + used, "null", 4);
            used += 4;
            i += strlen(word);
            continue;
        }
        if (text[i] == '"')
            in_string = !in_string;
        if (in_string && text[i] == '\\' && i + 1 < length)
            copy[used++] = text[i++];
        copy[used++] = text[i++];
    }
    *ret_length = used;
    return copy;
}

int wm_block_analysis_parse(const char *text, size_t length, const char *name,
                            struct wm_block_analysis **ret_results, struct wm_error *err)
{
    const struct reader reader = { name, err };
    json_error_t trouble;
    size_t used, mark = wm_text_mark(text, length);
    char *copy = without_nan(text + mark, length - mark, &used);

    if (!copy)
        return no_memory(err);
    json_t *root = json_loadb(copy, used, 0, &trouble);
    free(copy);
    if (!root && json_error_code(&trouble) == json_error_out_of_memory)
        return no_memory(err);
    if (!root)
        return wm_fail(err, WM_EFORMAT, "%s: line %d: not JSON: %.80s", wm_text_path(name),
                       trouble.line, trouble.text);

    struct wm_block_analysis *results = calloc(1, sizeof(*results));
    int status = results ? read_results(&reader, root, results) : no_memory(err);
    json_decref(root);
    if (status < 0) {
        wm_block_analysis_free(results);
        return status;
    }
    *ret_results = results;
    return WM_OK;
}
