/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_block_json.c - an analysis of blocks as JSON, and out of JSON: ours, and
 * gpu_tracker's. */
#include "analyze/analyze_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_file.h"
#include "base/text/base_json.h"
#include "base/text/base_text.h"
#include "base/text/base_utf8.h"

void wm_report_put_origin(json_t **object, enum wm_origin origin)
{
    const char *word = origin == WM_SIMULATED ? "simulated" : "estimated";

    if (origin == WM_MEASURED)
        return;
    wm_json_set(object, "origin", json_string(word));
    wm_json_set(object, word, json_true());
}

/* What objects are made with. */
struct writer {
    const struct wm_report *results;
    bool details;
    json_t *why; /* path of what is null, and the reason; NULL without details */
};

static void put_count(json_t **object, const char *key, uint64_t count)
{
    wm_json_set(object, key, json_integer((json_int_t)count));
}

static void put_number(json_t **object, const char *key, struct wm_known value)
{
    wm_json_set(object, key, wm_json_known(value.known, value.number));
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

static json_t *json_figures(const struct wm_block_figures *figures)
{
    json_t *json = json_object();

    for (size_t i = 0; i < WM_BLOCK_STATISTICS; i++)
        put_number(&json, wm_block_figure_names[i], figures->of[i]);
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
        if (wm_report_lacks(writer->results, i))
            put_why(writer, inner, name, wm_report_no_gpu);
        else if (timepoints == 1)
            continue;
        else if (!usage[i].of[WM_BLOCK_MEAN].known)
            put_why(writer, inner, name, "no timepoint has it");
        else if (!usage[i].of[WM_BLOCK_STD].known)
            put_why(writer, inner, name, "a single value has no standard deviation");
    }
}

static json_t *json_usage(struct writer *writer, const struct wm_block_figures *usage)
{
    static const struct wm_block_figures none;
    json_t *json = json_object();

    for (size_t i = 0; i < WM_MEASUREMENT_COUNT; i++) {
        bool lacks = writer->details && wm_report_lacks(writer->results, i);
        json_t *figures = json_figures(lacks ? &none : &usage[i]);
        enum wm_origin origin = wm_report_usage_origin(writer->results, i);
        if (writer->details && !lacks && usage[i].of[WM_BLOCK_MEAN].known)
            wm_report_put_origin(&figures, origin);
        wm_json_set(&json, wm_measurement_name((enum wm_measurement)i), figures);
    }
    return json;
}

static json_t *json_static_data(struct writer *writer)
{
    struct wm_static_data data = writer->results->usage.machine;
    bool lacks = writer->details && wm_report_lacks(writer->results, WM_SYSTEM_GPU_RAM);
    json_t *json = json_object();

    if (lacks)
        data.gpu_ram_capacity = (struct wm_known) { 0 };
    for (size_t i = 0; i < WM_STATIC_COLUMNS; i++) {
        struct wm_static_entry entry = wm_static_data_entry(&data, i);
        if (entry.text)
            wm_json_set(&json, entry.key, wm_text_json(entry.text));
        else if (entry.is_whole && entry.number.known)
            wm_json_set(&json, entry.key, json_integer((json_int_t)entry.number.number));
        else
            wm_json_set(&json, entry.key,
                        wm_json_known(entry.number.known, entry.number.number));
        if (!entry.text && !entry.number.known)
            put_why(writer, "static_data", entry.key,
                    lacks && strcmp(entry.key, "gpu_ram_system_capacity") == 0
                        ? wm_report_no_gpu
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
        wm_json_set(&bucket, "up_to", wm_json_known(!is_last, ldexp(1e-6, (int)i)));
        put_count(&bucket, "calls", histogram[i]);
        wm_json_add(&json, bucket);
    }
    return json;
}

static json_t *json_time(struct writer *writer, const struct wm_region_usage *block,
                         const char *path)
{
    const struct wm_value *inclusive = &block->inclusive.time;
    json_t *json = json_figures(&block->time);

    put_number(&json, "total", block->time.of[WM_BLOCK_TOTAL]);
    if (block->calls == 0)
        put_why(writer, path, "compute_time", "no call of it ended");
    if (block->calls == 1)
        put_why(writer, path, "compute_time.std",
                "a single call has no standard deviation");
    if (!writer->details)
        return json;
    wm_json_set(&json, "unit", json_string("seconds"));
    wm_json_set(&json, "inclusive", wm_json_known(inclusive->known, inclusive->number));
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

static json_t *json_remarks(const struct wm_report *report)
{
    json_t *json = json_array();

    for (size_t i = report->file_remarks; i < report->remark_count; i++)
        wm_json_add(&json, wm_text_json(report->remarks[i]));
    return json;
}

static void put_total(struct writer *writer, json_t **root, const char *key, uint64_t count)
{
    if (!writer->results->usage.lacks_counts) {
        put_count(root, key, count);
        return;
    }
    wm_json_set(root, key, json_null());
    put_why(writer, "", key, "gpu_tracker's JSON does not tell");
}

json_t *wm_report_blocks_json(const struct wm_report *results, bool details)
{
    struct writer writer = { .results = results, .details = details };
    json_t *root = json_object(), *blocks = json_array();

    if (details) {
        writer.why = json_object();
        put_total(&writer, &root, "num_timepoints", results->usage.timepoints);
        put_total(&writer, &root, "num_stray_stops", results->usage.stray);
    }
    wm_json_set(&root, "overall", json_usage(&writer, results->usage.overall));
    put_usage_why(&writer, results->usage.overall,
                  results->usage.lacks_counts ? UINT64_MAX : results->usage.timepoints, "",
                  "overall");
    wm_json_set(&root, "static_data", json_static_data(&writer));
    for (size_t i = 0; i < results->regions.name_count && blocks; i++)
        wm_json_add(&blocks, json_block(&writer, &results->regions.names[i], i));
    wm_json_set(&root, "code_block_results", blocks);
    if (details) {
        wm_json_set(&root, "why", writer.why);
        wm_json_set(&root, "remarks", json_remarks(results));
    }
    return root;
}

/* What is being read, and what became of it: after the first failure nothing counts. */
struct reader {
    const char *name;
    struct wm_error *err;
    int status;
};

static void fail(struct reader *reader, int status, const char *what)
{
    if (reader->status < 0)
        return;
    reader->status = status;
    if (status == WM_ENOMEM)
        wm_fail(reader->err, status, "analysis: out of memory");
    else
        wm_fail(reader->err, status, "%s: not the JSON of an analysis: %.60s",
                wm_text_path(reader->name), what);
}

static uint64_t read_count(struct reader *reader, const json_t *object, const char *key,
                           bool may_miss)
{
    const json_t *value = json_object_get(object, key);

    if (!value && may_miss)
        return 0;
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        fail(reader, WM_EFORMAT, key);
    return (uint64_t)json_integer_value(value);
}

/* False where it is not told. */
static bool read_total(struct reader *reader, const json_t *root, const char *key,
                       uint64_t *ret_count)
{
    const json_t *value = json_object_get(root, key);

    if (!value || json_is_null(value))
        return false;
    *ret_count = read_count(reader, root, key, false);
    return true;
}

static struct wm_known read_number(struct reader *reader, const json_t *object,
                                   const char *key)
{
    const json_t *value = json_object_get(object, key);

    if (!value || json_is_null(value))
        return (struct wm_known) { 0 };
    if (!json_is_number(value))
        fail(reader, WM_EFORMAT, key);
    return (struct wm_known) { true, json_number_value(value) };
}

static const json_t *read_object(struct reader *reader, const json_t *object,
                                 const char *key)
{
    const json_t *value = json_object_get(object, key);

    if (!json_is_object(value))
        fail(reader, WM_EFORMAT, key);
    return value;
}

static bool is_above(struct wm_known one, struct wm_known other, double slack)
{
    return one.known && other.known && one.number > other.number + slack;
}

/* What is measured is never negative. A mean is as exact as a sum of doubles. */
static bool are_possible(const struct wm_known of[WM_BLOCK_FIGURES])
{
    double slack = 1e-6 * fabs(of[WM_BLOCK_MEAN].number);

    for (size_t i = 0; i < WM_BLOCK_FIGURES; i++) {
        if (of[i].known && of[i].number < 0)
            return false;
    }
    return !is_above(of[WM_BLOCK_MIN], of[WM_BLOCK_MAX], 0) &&
           !is_above(of[WM_BLOCK_MIN], of[WM_BLOCK_MEAN], slack) &&
           !is_above(of[WM_BLOCK_MEAN], of[WM_BLOCK_MAX], slack);
}

static struct wm_block_figures read_figures(struct reader *reader, const json_t *json,
                                            const char *what)
{
    struct wm_block_figures figures = { .count = 0 };

    if (json && !json_is_object(json))
        fail(reader, WM_EFORMAT, what);
    for (size_t i = 0; i < WM_BLOCK_FIGURES; i++)
        figures.of[i] = read_number(reader, json, wm_block_figure_names[i]);
    if (reader->status == WM_OK && !are_possible(figures.of))
        reader->status = wm_fail(reader->err, WM_EFORMAT,
                                 "%s: %.60s: a negative number, or a mean that is not "
                                 "between minimum and maximum",
                                 wm_text_path(reader->name), what);
    return figures;
}

static void read_usage(struct reader *reader, const json_t *object, const char *what,
                       struct wm_block_figures *ret_usage)
{
    const json_t *json = read_object(reader, object, what);

    for (size_t i = 0; i < WM_MEASUREMENT_COUNT; i++) {
        const char *name = wm_measurement_name((enum wm_measurement)i);
        ret_usage[i] = read_figures(reader, json_object_get(json, name), name);
    }
}

static void read_unit(struct reader *reader, const json_t *object, const char *key,
                      char *ret_unit)
{
    const json_t *value = json_object_get(object, key);

    if (json_is_string(value) && json_string_length(value) <= 15)
        memcpy(ret_unit, json_string_value(value), json_string_length(value) + 1);
    else
        fail(reader, WM_EFORMAT, key);
}

static struct wm_known read_whole(struct reader *reader, const json_t *object,
                                  const char *key)
{
    struct wm_known number = read_number(reader, object, key);

    if (!number.known || !(number.number >= 0 && number.number <= 1e9))
        return (struct wm_known) { 0 };
    return (struct wm_known) { true, trunc(number.number) };
}

static void read_static_data(struct reader *reader, const json_t *root,
                             struct wm_static_data *data)
{
    const json_t *json = read_object(reader, root, "static_data");

    for (size_t i = 0; i < WM_STATIC_COLUMNS; i++) {
        const struct wm_static_column *column = &wm_static_columns[i];
        void *place = (char *)data + column->offset;
        if (column->kind == WM_STATIC_COUNT)
            *(struct wm_known *)place = read_whole(reader, json, column->name);
        else if (column->kind == WM_STATIC_CAPACITY)
            *(struct wm_known *)place = read_number(reader, json, column->name);
        else
            read_unit(reader, json, column->name, place);
    }
}

/* Calls of our own JSON; `up_to` is the bucket's own limit, null for the last. */
static void read_histogram(struct reader *reader, const json_t *json,
                           uint64_t *ret_histogram)
{
    size_t index;
    json_t *bucket;

    json_array_foreach(json, index, bucket)
    {
        struct wm_known up_to = read_number(reader, bucket, "up_to");
        uint64_t calls = read_count(reader, bucket, "calls", false);
        double exponent =
            up_to.known ? round(log2(up_to.number * 1e6)) : WM_BLOCK_BUCKETS - 1;
        if (exponent >= 0 && exponent < WM_BLOCK_BUCKETS)
            ret_histogram[(size_t)exponent] = calls;
        else
            fail(reader, WM_EFORMAT, "histogram");
    }
}

static void read_block(struct reader *reader, const json_t *json,
                       struct wm_region_usage *block)
{
    const json_t *name = json_object_get(json, "name");

    if (!json_is_string(name))
        fail(reader, WM_EFORMAT, "name");
    else if ((block->name = strdup(json_string_value(name))) == NULL)
        fail(reader, WM_ENOMEM, NULL);
    block->timepoints = read_count(reader, json, "num_timepoints", false);
    block->calls = read_count(reader, json, "num_calls", false);
    block->nonempty_calls = read_count(reader, json, "num_non_empty_calls", false);
    if (block->nonempty_calls > block->calls)
        fail(reader, WM_EFORMAT, "num_non_empty_calls");
    block->unfinished = read_count(reader, json, "num_unfinished_calls", true);

    const json_t *time = read_object(reader, json, "compute_time");
    block->time = read_figures(reader, time, "compute_time");
    struct wm_known inclusive = read_number(reader, time, "inclusive");
    block->inclusive.time = inclusive.known ? wm_value_known(inclusive.number)
                                            : wm_value_missing("the file does not have it");
    read_histogram(reader, json_object_get(time, "histogram"), block->histogram);
    read_usage(reader, json, "resource_usage", block->usage);
}

static void read_blocks(struct reader *reader, const json_t *root,
                        struct wm_report *results)
{
    const json_t *json = json_object_get(root, "code_block_results");
    size_t count = json_array_size(json);

    if (!json_is_array(json))
        fail(reader, WM_EFORMAT, "code_block_results");
    results->regions.names = calloc(count + 1, sizeof(*results->regions.names));
    if (!results->regions.names)
        fail(reader, WM_ENOMEM, NULL);
    for (size_t i = 0; i < count && reader->status == WM_OK; i++)
        read_block(reader, json_array_get(json, i),
                   &results->regions.names[results->regions.name_count++]);
}

/* What gpu_tracker has where no GPU was measured, and our JSON leaves out. */
static void fill_lack(const struct wm_report *results, uint64_t timepoints,
                      struct wm_block_figures *usage)
{
    const struct wm_known none = { true, 0 };

    for (size_t i = 0; i < WM_MEASUREMENT_COUNT && timepoints > 0; i++) {
        struct wm_known *of = usage[i].of;
        if (!wm_report_lacks(results, i) || of[WM_BLOCK_MEAN].known)
            continue;
        of[WM_BLOCK_MIN] = of[WM_BLOCK_MAX] = of[WM_BLOCK_MEAN] = none;
        of[WM_BLOCK_STD].known = timepoints > 1;
    }
}

static void fill_lacks(struct wm_report *results)
{
    if (wm_report_lacks(results, WM_SYSTEM_GPU_RAM) &&
        !results->usage.machine.gpu_ram_capacity.known)
        results->usage.machine.gpu_ram_capacity = (struct wm_known) { .known = true };
    for (size_t i = 0; i < results->regions.name_count; i++)
        fill_lack(results, results->regions.names[i].timepoints,
                  results->regions.names[i].usage);
    fill_lack(results, results->usage.timepoints, results->usage.overall);
}

/* Our JSON has it beside each figure of GPUs. */
static void read_origin(const json_t *root, struct wm_report *results)
{
    const json_t *overall = json_object_get(root, "overall");

    for (size_t i = 0; i < WM_MEASUREMENT_COUNT; i++) {
        const char *name = wm_measurement_name((enum wm_measurement)i);
        const json_t *figures = json_object_get(overall, name);
        if (json_is_true(json_object_get(figures, "simulated")))
            results->usage.gpu_origin = WM_SIMULATED;
        else if (json_is_true(json_object_get(figures, "estimated")))
            results->usage.gpu_origin = WM_ESTIMATED;
    }
}

static void read_results(struct reader *reader, const json_t *root,
                         struct wm_report *results)
{
    if (!json_is_object(root))
        fail(reader, WM_EFORMAT, "no object");
    results->is_foreign = true;
    read_usage(reader, root, "overall", results->usage.overall);
    results->usage.lacks_counts =
        !read_total(reader, root, "num_timepoints", &results->usage.timepoints);
    read_total(reader, root, "num_stray_stops", &results->usage.stray);
    read_static_data(reader, root, &results->usage.machine);
    read_blocks(reader, root, results);
    if (reader->status < 0)
        return;
    wm_region_usages_sort(results->regions.names, results->regions.name_count);
    read_origin(root, results);
    fill_lacks(results);
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

bool wm_report_is_json(const char *path)
{
    char head[64];
    size_t length;

    if (wm_file_head(path, head, sizeof(head), &length, NULL) < 0)
        return false;
    size_t start = wm_text_mark(head, length);
    while (start < length && strchr(" \t\r\n", head[start]))
        start++;
    return start < length && head[start] == '{';
}

int wm_report_parse(const char *text, size_t length, const char *name,
                    struct wm_report **ret_results, struct wm_error *err)
{
    struct reader reader = { name, err, WM_OK };
    struct wm_report *results = calloc(1, sizeof(*results));
    json_error_t trouble;
    size_t used, mark = wm_text_mark(text, length);
    char *copy = without_nan(text + mark, length - mark, &used);
    json_t *root = copy ? json_loadb(copy, used, 0, &trouble) : NULL;

    if (!results || !copy ||
        (!root && json_error_code(&trouble) == json_error_out_of_memory))
        fail(&reader, WM_ENOMEM, NULL);
    else if (!root)
        reader.status = wm_fail(err, WM_EFORMAT, "%s: line %d: not JSON: %.80s",
                                wm_text_path(name), trouble.line, trouble.text);
    else
        read_results(&reader, root, results);
    free(copy);
    json_decref(root);
    if (reader.status < 0)
        wm_report_free(results);
    else
        *ret_results = results;
    return reader.status;
}
