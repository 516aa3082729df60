/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_block_json.c - gpu_tracker's JSON of an analysis of blocks as a report. */
#include "analyze/analyze_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_file.h"
#include "base/base_text.h"
#include "base/base_utf8.h"
#include "base/text/base_json.h"

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
        wm_fail(reader->err, status, "%s: not gpu_tracker's JSON of an analysis: %.60s",
                wm_text_path(reader->name), what);
}

static uint64_t read_count(struct reader *reader, const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    if (!json_is_integer(value) || json_integer_value(value) < 0)
        fail(reader, WM_EFORMAT, key);
    return (uint64_t)json_integer_value(value);
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

static void read_block(struct reader *reader, const json_t *json,
                       struct wm_region_usage *block)
{
    const json_t *name = json_object_get(json, "name");

    if (!json_is_string(name))
        fail(reader, WM_EFORMAT, "name");
    else if ((block->name = strdup(json_string_value(name))) == NULL)
        fail(reader, WM_ENOMEM, NULL);
    block->timepoints = read_count(reader, json, "num_timepoints");
    block->calls = read_count(reader, json, "num_calls");
    block->nonempty_calls = read_count(reader, json, "num_non_empty_calls");
    if (block->nonempty_calls > block->calls)
        fail(reader, WM_EFORMAT, "num_non_empty_calls");
    block->time =
        read_figures(reader, read_object(reader, json, "compute_time"), "compute_time");
    block->parent = WM_NO_REGION;
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

static void read_results(struct reader *reader, const json_t *root,
                         struct wm_report *results)
{
    if (!json_is_object(root))
        fail(reader, WM_EFORMAT, "no object");
    else if (!json_object_get(root, "overall"))
        reader->status = wm_fail(
            reader->err, WM_EFORMAT,
            "%s: not gpu_tracker's JSON of an analysis; give the recording itself, or what "
            "wattmeter analyze --format gpu-tracker-json has written",
            wm_text_path(reader->name));
    if (reader->status < 0)
        return;
    results->is_foreign = true;
    results->usage.lacks_counts = true;
    read_usage(reader, root, "overall", results->usage.overall);
    read_static_data(reader, root, &results->usage.machine);
    read_blocks(reader, root, results);
    if (reader->status == WM_OK)
        wm_region_usages_sort(results->regions.names, results->regions.name_count);
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
