/* SPDX-License-Identifier: Apache-2.0 */
/* compat_gpu_tracker_blocks.c - an analysis of blocks in gpu_tracker's layout. */
#include <inttypes.h>
#include <string.h>

#include "base/text/base_json.h"
#include "compat/gpu_tracker/compat_gpu_tracker_print.h"
#include "view/json/view_json_node.h"
#include "view/text/view_text_line.h"

/* Its tables are one tab deeper than their titles, and a tab is eight columns from where
 * it stands; these are the blanks that its documents show. */
#define BLOCK_INDENT 4
#define OUTER_TABLE_INDENT 4
#define TIME_TABLE_INDENT 12

static int print_usage(const struct wm_block_figures *usage, int indent, FILE *out,
                       struct wm_error *err)
{
    const char *names[WM_MEASUREMENT_COUNT];
    struct wm_known cells[WM_MEASUREMENT_COUNT][WM_BLOCK_STATISTICS];
    const struct wm_gpu_tracker_table table = {
        .indent = indent,
        .rows = names,
        .row_count = WM_MEASUREMENT_COUNT,
        .columns = wm_block_figure_names,
        .column_count = WM_BLOCK_STATISTICS,
        .cells = cells[0],
    };

    for (size_t i = 0; i < WM_MEASUREMENT_COUNT; i++) {
        names[i] = wm_measurement_name((enum wm_measurement)i);
        memcpy(cells[i], usage[i].of, sizeof(cells[i]));
    }
    return wm_gpu_tracker_table(&table, out, err);
}

static int print_time(const struct wm_block_figures *time, FILE *out, struct wm_error *err)
{
    const struct wm_gpu_tracker_table table = {
        .indent = TIME_TABLE_INDENT,
        .row_count = 1,
        .columns = wm_block_figure_names,
        .column_count = WM_BLOCK_TOTAL + 1,
        .cells = time->of,
    };

    return wm_gpu_tracker_table(&table, out, err);
}

static void format_entry(const struct wm_static_entry *entry,
                         char text[WM_GPU_TRACKER_NUMBER_SIZE])
{
    if (entry->text)
        snprintf(text, WM_GPU_TRACKER_NUMBER_SIZE, " %s", entry->text);
    else if (entry->is_whole && entry->number.known)
        snprintf(text, WM_GPU_TRACKER_NUMBER_SIZE, " %.0f", entry->number.number);
    else
        wm_gpu_tracker_number(text, entry->number, wm_gpu_tracker_decimals(entry->number));
}

/* A table whose columns are of many kinds, for which pandas leaves less room. */
static void print_static_data(const struct wm_static_data *data, FILE *out)
{
    char text[WM_GPU_TRACKER_NUMBER_SIZE];

    for (int line = 0; line < 2; line++) {
        fprintf(out, "%*s", OUTER_TABLE_INDENT, "");
        for (size_t i = 0; i < WM_STATIC_COLUMNS; i++) {
            struct wm_static_entry entry = wm_static_data_entry(data, i);
            int width = wm_view_width(entry.key);
            format_entry(&entry, text);
            if (wm_view_width(text) > width)
                width = wm_view_width(text);
            fputc(' ', out);
            wm_view_right(out, line == 0 ? entry.key : text, width);
        }
        fputc('\n', out);
    }
}

static int print_block(const struct wm_region_usage *block, FILE *out, struct wm_error *err)
{
    static const char format[] = "%*s%-20s %" PRIu64 "\n";

    fprintf(out, "%*s%-20s %s\n", BLOCK_INDENT, "", "Name:", block->name);
    fprintf(out, format, BLOCK_INDENT, "", "Num Timepoints:", block->timepoints);
    fprintf(out, format, BLOCK_INDENT, "", "Num Calls:", block->calls);
    fprintf(out, format, BLOCK_INDENT, "", "Num Non Empty Calls:", block->nonempty_calls);
    fprintf(out, "%*sCompute Time:\n", BLOCK_INDENT, "");
    int status = print_time(&block->time, out, err);
    fprintf(out, "%*sResource Usage:\n", BLOCK_INDENT, "");
    if (status == WM_OK)
        status = print_usage(block->usage, TIME_TABLE_INDENT, out, err);
    fputc('\n', out);
    return status;
}

int wm_gpu_tracker_blocks_text(const struct wm_report *report, FILE *out,
                               struct wm_error *err)
{
    fputs("Overall:\n", out);
    int status = print_usage(report->usage.overall, OUTER_TABLE_INDENT, out, err);

    fputs("Static Data:\n", out);
    print_static_data(&report->usage.machine, out);
    fputs("Code Block Results:\n", out);
    for (size_t i = 0; i < report->regions.name_count && status == WM_OK; i++)
        status = print_block(&report->regions.names[i], out, err);
    return status;
}

static json_t *json_figures(const struct wm_block_figures *figures, size_t count)
{
    json_t *json = json_object();

    for (size_t i = 0; i < count; i++)
        wm_json_set(&json, wm_block_figure_names[i],
                    wm_json_known(figures->of[i].known, figures->of[i].number));
    return json;
}

static json_t *json_usage(const struct wm_block_figures *usage)
{
    json_t *json = json_object();

    for (size_t i = 0; i < WM_MEASUREMENT_COUNT; i++)
        wm_json_set(&json, wm_measurement_name((enum wm_measurement)i),
                    json_figures(&usage[i], WM_BLOCK_STATISTICS));
    return json;
}

static json_t *json_static_data(const struct wm_static_data *data)
{
    json_t *json = json_object();

    for (size_t i = 0; i < WM_STATIC_COLUMNS; i++)
        wm_json_set(&json, wm_static_columns[i].name, wm_static_data_json(data, i));
    return json;
}

static json_t *json_block(const struct wm_region_usage *block)
{
    json_t *json = json_object();

    wm_json_set(&json, "name", wm_text_json(block->name));
    wm_json_set(&json, "num_timepoints", json_integer((json_int_t)block->timepoints));
    wm_json_set(&json, "num_calls", json_integer((json_int_t)block->calls));
    wm_json_set(&json, "num_non_empty_calls",
                json_integer((json_int_t)block->nonempty_calls));
    wm_json_set(&json, "compute_time", json_figures(&block->time, WM_BLOCK_FIGURES));
    wm_json_set(&json, "resource_usage", json_usage(block->usage));
    return json;
}

/* Its structure, with null for what is not known. */
static json_t *json_of(const struct wm_report *report)
{
    json_t *root = json_object(), *blocks = json_array();

    wm_json_set(&root, "overall", json_usage(report->usage.overall));
    wm_json_set(&root, "static_data", json_static_data(&report->usage.machine));
    for (size_t i = 0; i < report->regions.name_count && blocks; i++)
        wm_json_add(&blocks, json_block(&report->regions.names[i]));
    wm_json_set(&root, "code_block_results", blocks);
    return root;
}

int wm_gpu_tracker_blocks_json(const struct wm_report *report, FILE *out,
                               struct wm_error *err)
{
    return wm_gpu_tracker_json(json_of(report), out, err);
}
