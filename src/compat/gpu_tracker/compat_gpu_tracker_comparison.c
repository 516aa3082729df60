/* SPDX-License-Identifier: Apache-2.0 */
/* compat_gpu_tracker_comparison.c - a comparison in gpu_tracker's layout and structure, and
 * all of its layouts as forms in which things are printed. */
#include <stdlib.h>

#include "base/base_utf8.h"
#include "base/text/base_json.h"
#include "compat/gpu_tracker/compat_gpu_tracker_print.h"

/* One, two and three tabs, as its documents show them. */
#define MEASUREMENT_INDENT 4
#define BLOCK_INDENT 12
#define DEEP_TABLE_INDENT 20

/* The sessions by their values of a figure. */
struct series {
    const struct wm_compare *compare;
    struct wm_compare_cell *cells; /* by session */
    const char **names;            /* by their values, as these are */
    struct wm_known *values;
};

static void release(struct series *series)
{
    free(series->cells);
    free(series->names);
    free(series->values);
}

/* The release is due in any case. */
static int init(struct series *series, const struct wm_comparison *comparison,
                struct wm_error *err)
{
    const struct wm_compare *compare = wm_comparison_compare(comparison);
    size_t count = compare->session_count;

    *series = (struct series) { .compare = compare,
                                .cells = calloc(count, sizeof(*series->cells)),
                                .names = calloc(count, sizeof(*series->names)),
                                .values = calloc(count, sizeof(*series->values)) };
    if (series->cells && series->names && series->values)
        return WM_OK;
    return wm_fail_memory(err, NULL);
}

/* What is not known comes last, as with pandas. */
static bool is_before(struct wm_known one, struct wm_known other)
{
    return one.known && (!other.known || one.number < other.number);
}

/* Equal values stay in the order of their sessions, so what is inserted goes past them. */
static void fill(struct series *series, size_t group, unsigned item)
{
    const struct wm_compare *compare = series->compare;

    wm_compare_cells(compare, group, item, series->cells);
    for (size_t i = 0; i < compare->session_count; i++) {
        size_t at = i;
        struct wm_known value = series->cells[i].value;
        for (; at > 0 && is_before(value, series->values[at - 1]); at--) {
            series->names[at] = series->names[at - 1];
            series->values[at] = series->values[at - 1];
        }
        series->names[at] = compare->sessions[i].name;
        series->values[at] = value;
    }
}

static int print_series(struct series *series, size_t group, unsigned item, int indent,
                        FILE *out, struct wm_error *err)
{
    fill(series, group, item);
    const struct wm_gpu_tracker_table table = {
        .indent = indent,
        .row_count = 1,
        .columns = series->names,
        .column_count = series->compare->session_count,
        .cells = series->values,
    };
    return wm_gpu_tracker_table(&table, out, err);
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

static int print_overall(struct series *series, FILE *out, struct wm_error *err)
{
    int status = WM_OK;

    fputs("Overall Resource Usage:\n", out);
    for (unsigned item = 0; item < WM_MEASUREMENT_COUNT && status == WM_OK; item++) {
        print_title(item, out);
        status = print_series(series, WM_COMPARE_OVERALL, item, BLOCK_INDENT, out, err);
    }
    return status;
}

static int print_blocks(struct series *series, unsigned item, int indent, int table_indent,
                        FILE *out, struct wm_error *err)
{
    const struct wm_compare *compare = series->compare;
    int status = WM_OK;

    for (size_t i = 0; i < compare->group_count && status == WM_OK; i++) {
        fprintf(out, "%*s%s:\n", indent, "", compare->groups[i].label);
        status = print_series(series, i, item, table_indent, out, err);
    }
    return status;
}

/* `is_cli`: the names of blocks stand at the start of their lines. */
static int print_text(const struct wm_comparison *comparison, bool is_cli, FILE *out,
                      struct wm_error *err)
{
    struct series series;

    int status = init(&series, comparison, err);
    unsigned items = series.compare->group_count > 0 ? WM_MEASUREMENT_COUNT : 0;
    if (status == WM_OK)
        status = print_overall(&series, out, err);
    fputs("Code Block Resource Usage:\n", out);
    for (unsigned item = 0; item < items && status == WM_OK; item++) {
        print_title(item, out);
        status = print_blocks(&series, item, is_cli ? 0 : BLOCK_INDENT, DEEP_TABLE_INDENT,
                              out, err);
    }
    fputs("Code Block Compute Time:\n", out);
    if (status == WM_OK)
        status = print_blocks(&series, wm_compare_item("time"),
                              is_cli ? 0 : MEASUREMENT_INDENT, BLOCK_INDENT, out, err);
    release(&series);
    return status;
}

static int text(const struct wm_comparison *comparison, int verbosity, FILE *out,
                struct wm_error *err)
{
    (void)verbosity;
    return print_text(comparison, true, out, err);
}

static int api_text(const struct wm_comparison *comparison, int verbosity, FILE *out,
                    struct wm_error *err)
{
    (void)verbosity;
    return print_text(comparison, false, out, err);
}

/* NULL when out of memory, as of all below. */
static json_t *json_series(struct series *series, size_t group, unsigned item)
{
    json_t *json = json_object();

    fill(series, group, item);
    for (size_t i = 0; i < series->compare->session_count; i++)
        wm_json_set(&json, series->names[i],
                    wm_json_known(series->values[i].known, series->values[i].number));
    return json;
}

static json_t *json_blocks(struct series *series, unsigned item)
{
    const struct wm_compare *compare = series->compare;
    json_t *json = json_object();

    for (size_t i = 0; i < compare->group_count; i++) {
        char *label = wm_text_copy(compare->groups[i].label);
        wm_json_set(&json, label, json_series(series, i, item));
        free(label);
    }
    return json;
}

/* `items` of the measurements. */
static json_t *json_measurements(struct series *series, bool of_blocks, unsigned items)
{
    json_t *json = json_object();

    for (unsigned item = 0; item < items; item++)
        wm_json_set(&json, wm_compare_item_name(item),
                    of_blocks ? json_blocks(series, item)
                              : json_series(series, WM_COMPARE_OVERALL, item));
    return json;
}

static int json(const struct wm_comparison *comparison, int verbosity, FILE *out,
                struct wm_error *err)
{
    (void)verbosity;
    json_t *root = json_object();
    struct series series;

    if (init(&series, comparison, err) == WM_OK) {
        unsigned items = series.compare->group_count > 0 ? WM_MEASUREMENT_COUNT : 0;
        wm_json_set(&root, "overall_resource_usage",
                    json_measurements(&series, false, WM_MEASUREMENT_COUNT));
        wm_json_set(&root, "code_block_resource_usage",
                    json_measurements(&series, true, items));
        wm_json_set(&root, "code_block_compute_time",
                    json_blocks(&series, wm_compare_item("time")));
    } else {
        json_decref(root);
        root = NULL;
    }
    release(&series);
    return wm_gpu_tracker_json(root, out, err);
}

const struct wm_print_format wm_gpu_tracker_print_api = {
    .report = wm_gpu_tracker_report_text,
    .blocks = wm_gpu_tracker_blocks_text,
    .comparison = api_text,
};

const struct wm_print_format wm_gpu_tracker_print = {
    .report = wm_gpu_tracker_report_text,
    .blocks = wm_gpu_tracker_blocks_text,
    .comparison = text,
};

const struct wm_print_format wm_gpu_tracker_print_json = {
    .report = wm_gpu_tracker_report_json,
    .blocks = wm_gpu_tracker_blocks_json,
    .comparison = json,
};
