/* SPDX-License-Identifier: Apache-2.0 */
/* compat_gpu_tracker_comparison.c - a comparison in gpu_tracker's layout and structure. */
#include <math.h>
#include <stdlib.h>

#include "base/text/base_utf8.h"
#include "compat/gpu_tracker/compat_gpu_tracker_print.h"

/* One, two and three tabs, as its documents show them. */
#define MEASUREMENT_INDENT 4
#define BLOCK_INDENT 12
#define DEEP_TABLE_INDENT 20

/* A figure's sessions by their values, and a place to print them from. */
struct series {
    const struct wm_compare *compare;
    struct wm_compare_cell *cells; /* by session */
    size_t *order;
    const char **names; /* in that order, as the values are */
    double *values;
};

static void release(struct series *series)
{
    free(series->cells);
    free(series->order);
    free(series->names);
    free(series->values);
}

static int init(struct series *series, const struct wm_compare *compare)
{
    size_t count = compare->session_count;

    *series = (struct series) { .compare = compare,
                                .cells = calloc(count, sizeof(*series->cells)),
                                .order = calloc(count, sizeof(*series->order)),
                                .names = calloc(count, sizeof(*series->names)),
                                .values = calloc(count, sizeof(*series->values)) };
    if (series->cells && series->order && series->names && series->values)
        return WM_OK;
    release(series);
    return WM_ENOMEM;
}

/* What is not known comes last, as with pandas. */
static bool is_before(double one, double other)
{
    return one < other || (isnan(other) && !isnan(one));
}

/* Equal values stay in the order of their sessions, so what is inserted goes past them. */
static void fill(struct series *series, size_t group, unsigned item)
{
    const struct wm_compare *compare = series->compare;

    wm_compare_cells(compare, group, item, series->cells);
    for (size_t i = 0; i < compare->session_count; i++) {
        size_t at = i;
        double value = series->cells[i].value;
        for (; at > 0 && is_before(value, series->cells[series->order[at - 1]].value); at--)
            series->order[at] = series->order[at - 1];
        series->order[at] = i;
    }
    for (size_t i = 0; i < compare->session_count; i++) {
        series->names[i] = compare->sessions[series->order[i]].name;
        series->values[i] = series->cells[series->order[i]].value;
    }
}

static int print_series(struct series *series, size_t group, unsigned item, int indent,
                        FILE *out)
{
    fill(series, group, item);
    const struct wm_gpu_tracker_table table = {
        .indent = indent,
        .row_count = 1,
        .columns = series->names,
        .column_count = series->compare->session_count,
        .cells = series->values,
    };
    return wm_gpu_tracker_table(&table, out);
}

/* "Main Ram" of main_ram. */
static void print_title(unsigned item, FILE *out)
{
    bool is_first = true;

    fprintf(out, "%*s", MEASUREMENT_INDENT, "");
    for (const char *c = wm_compare_item_name(item); *c; c++) {
        bool is_small = *c >= 'a' && *c <= 'z';
        fputc(*c == '_' ? ' ' : is_first && is_small ? *c - 'a' + 'A' : *c, out);
        is_first = *c == '_';
    }
    fputs(":\n", out);
}

static int print_overall(struct series *series, FILE *out)
{
    int status = WM_OK;

    fputs("Overall Resource Usage:\n", out);
    for (unsigned item = 0; item < WM_MEASUREMENT_COUNT && status == WM_OK; item++) {
        print_title(item, out);
        status = print_series(series, WM_COMPARE_OVERALL, item, BLOCK_INDENT, out);
    }
    return status;
}

static int print_blocks(struct series *series, unsigned item, int indent, int table_indent,
                        FILE *out)
{
    const struct wm_compare *compare = series->compare;
    int status = WM_OK;

    for (size_t i = 0; i < compare->group_count && status == WM_OK; i++) {
        fprintf(out, "%*s%s:\n", indent, "", compare->groups[i].label);
        status = print_series(series, i, item, table_indent, out);
    }
    return status;
}

int wm_gpu_tracker_comparison(const struct wm_compare *compare, bool is_cli, FILE *out)
{
    struct series series;

    if (init(&series, compare) < 0)
        return WM_ENOMEM;
    int status = print_overall(&series, out);
    fputs("Code Block Resource Usage:\n", out);
    for (unsigned item = 0;
         item < WM_MEASUREMENT_COUNT && status == WM_OK && compare->group_count > 0;
         item++) {
        print_title(item, out);
        status =
            print_blocks(&series, item, is_cli ? 0 : BLOCK_INDENT, DEEP_TABLE_INDENT, out);
    }
    fputs("Code Block Compute Time:\n", out);
    if (status == WM_OK)
        status = print_blocks(&series, WM_COMPARE_TIME, is_cli ? 0 : MEASUREMENT_INDENT,
                              BLOCK_INDENT, out);
    release(&series);
    return status;
}

/* NULL when out of memory, as of all below; what is put in is taken over. */
static json_t *json_series(struct series *series, size_t group, unsigned item)
{
    json_t *json = json_object();

    fill(series, group, item);
    for (size_t i = 0; json && i < series->compare->session_count; i++) {
        double value = series->values[i];
        if (json_object_set_new(json, series->names[i],
                                isfinite(value) ? json_real(value) : json_null()) != 0) {
            json_decref(json);
            json = NULL;
        }
    }
    return json;
}

static json_t *json_blocks(struct series *series, unsigned item)
{
    const struct wm_compare *compare = series->compare;
    json_t *json = json_object();

    for (size_t i = 0; json && i < compare->group_count; i++) {
        char *label = wm_text_copy(compare->groups[i].label);
        if (!label || json_object_set_new(json, label, json_series(series, i, item)) != 0) {
            json_decref(json);
            json = NULL;
        }
        free(label);
    }
    return json;
}

static json_t *json_measurements(struct series *series, bool of_blocks)
{
    json_t *json = json_object();

    for (unsigned item = 0; json && item < WM_MEASUREMENT_COUNT; item++) {
        json_t *value = of_blocks ? json_blocks(series, item)
                                  : json_series(series, WM_COMPARE_OVERALL, item);
        if (json_object_set_new(json, wm_compare_item_name(item), value) != 0) {
            json_decref(json);
            json = NULL;
        }
    }
    return json;
}

json_t *wm_gpu_tracker_comparison_json(const struct wm_compare *compare)
{
    struct series series;
    json_t *root = NULL;

    if (init(&series, compare) < 0)
        return NULL;
    json_t *overall = json_measurements(&series, false);
    json_t *usage =
        compare->group_count > 0 ? json_measurements(&series, true) : json_object();
    json_t *time = json_blocks(&series, WM_COMPARE_TIME);
    release(&series);

    if (overall && usage && time)
        root =
            json_pack("{s:O, s:O, s:O}", "overall_resource_usage", overall,
                      "code_block_resource_usage", usage, "code_block_compute_time", time);
    json_decref(overall);
    json_decref(usage);
    json_decref(time);
    return root;
}
