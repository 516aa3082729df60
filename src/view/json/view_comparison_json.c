/* SPDX-License-Identifier: Apache-2.0 */
/* view_comparison_json.c - a comparison as JSON; docs/analysis.md has the structure. What a
 * part of did not fit into memory is NULL, and so is the whole. */
#include <math.h>
#include <stdlib.h>

#include "base/text/base_json.h"
#include "view/view.h"

const char *wm_view_comparison_unit(const struct wm_compare *compare, unsigned item)
{
    const struct wm_static_data *data = &compare->sessions[0].analysis->static_data;

    if (item <= WM_SYSTEM_RAM)
        return data->ram_unit;
    if (item <= WM_SYSTEM_GPU_RAM)
        return data->gpu_ram_unit;
    if (item >= WM_MAIN_THREADS && item <= WM_COMBINED_THREADS)
        return "count";
    if (item < WM_COMPARE_TIME)
        return "percent";
    return wm_unit_plain(wm_compare_item_row(item)->unit)->name;
}

static json_t *number(struct wm_known value)
{
    return wm_json_known(value.known, value.number);
}

static json_t *json_cell(const struct wm_compare_cell *cell, bool is_first)
{
    json_t *json = json_object();

    wm_json_set(&json, "value", number(cell->value));
    if (cell->value.known)
        wm_block_analysis_put_origin(&json, cell->origin);
    if (cell->lacks)
        wm_json_set(&json, "at_least", json_string(cell->lacks));
    if (cell->off.known && cell->off.number > 0 && cell->value.number > 0)
        wm_json_set(&json, "uncertainty",
                    wm_json_known(true, cell->off.number / cell->value.number));
    if (is_first)
        return json;
    wm_json_set(&json, "change", number(cell->change));
    wm_json_set(&json, "noise", number(cell->noise));
    wm_json_set(&json, "beyond_noise",
                cell->verdict == WM_COMPARE_NOT_TESTED
                    ? json_null()
                    : json_boolean(cell->verdict == WM_COMPARE_BEYOND));
    if (cell->why)
        wm_json_set(&json, "why", json_string(cell->why));
    else if (isinf(cell->change.number))
        wm_json_set(&json, "why", json_string("the first is 0"));
    return json;
}

static json_t *json_figure(const struct wm_compare *compare, unsigned item,
                           const struct wm_compare_cell *cells)
{
    json_t *json = json_object(), *sessions = json_object();

    for (size_t i = 0; i < compare->session_count; i++)
        wm_json_set(&sessions, compare->sessions[i].name, json_cell(&cells[i], i == 0));
    wm_json_set(&json, "unit", json_string(wm_view_comparison_unit(compare, item)));
    wm_json_set(&json, "matters", json_boolean(wm_compare_item_matters(item)));
    wm_json_set(&json, "sessions", sessions);
    return json;
}

/* Only what some session knows. */
static json_t *json_figures(const struct wm_compare *compare, size_t group,
                            struct wm_compare_cell *cells)
{
    json_t *json = json_object();

    for (unsigned item = 0; item < wm_compare_items(); item++) {
        bool is_known = false;
        wm_compare_cells(compare, group, item, cells);
        for (size_t i = 0; i < compare->session_count; i++)
            is_known = is_known || cells[i].value.known;
        if (!is_known)
            continue;
        wm_json_set(&json, wm_compare_item_name(item), json_figure(compare, item, cells));
    }
    return json;
}

static json_t *json_block(const struct wm_compare *compare, size_t index,
                          struct wm_compare_cell *cells)
{
    const struct wm_compare_group *group = &compare->groups[index];
    json_t *json = json_object(), *names = json_object(), *calls = json_object();

    for (size_t i = 0; i < compare->session_count; i++) {
        const struct wm_region_usage *block = group->blocks[i];
        const char *session = compare->sessions[i].name;
        wm_json_set(&names, session, block ? wm_text_json(block->name) : json_null());
        wm_json_set(&calls, session,
                    block ? json_integer((json_int_t)block->calls) : json_null());
    }
    wm_json_set(&json, "label", wm_text_json(group->label));
    wm_json_set(&json, "names", names);
    wm_json_set(&json, "calls", calls);
    wm_json_set(&json, "figures", json_figures(compare, index, cells));
    return json;
}

static json_t *json_worst(const struct wm_comparison *comparison)
{
    const char *figure = wm_comparison_worst_figure(comparison);

    if (!figure)
        return json_null();
    json_t *json = json_object();
    wm_json_set(&json, "figure", json_string(figure));
    wm_json_set(&json, "change", wm_json_known(true, wm_comparison_worst(comparison)));
    return json;
}

static json_t *make(const struct wm_comparison *comparison, struct wm_compare_cell *cells)
{
    static const char *const statistics[] = { "min", "max", "mean", "std", "total" };
    const struct wm_compare *compare = wm_comparison_compare(comparison);
    json_t *root = json_object(), *sessions = json_array(), *blocks = json_array();
    json_t *remarks = json_array();
    const char *remark;

    for (size_t i = 0; i < compare->session_count; i++)
        wm_json_add(&sessions, json_string(compare->sessions[i].name));
    for (size_t i = 0; i < compare->group_count && blocks; i++)
        wm_json_add(&blocks, json_block(compare, i, cells));
    for (size_t i = 0; (remark = wm_comparison_remark(comparison, i)) != NULL; i++)
        wm_json_add(&remarks, json_string(remark));
    wm_json_set(&root, "statistic", json_string(statistics[compare->statistic]));
    wm_json_set(&root, "sessions", sessions);
    wm_json_set(&root, "overall", json_figures(compare, WM_COMPARE_OVERALL, cells));
    wm_json_set(&root, "blocks", blocks);
    wm_json_set(&root, "worst", json_worst(comparison));
    wm_json_set(&root, "remarks", remarks);
    return root;
}

json_t *wm_view_comparison_json(const struct wm_comparison *comparison)
{
    const struct wm_compare *compare = wm_comparison_compare(comparison);
    struct wm_compare_cell *cells = calloc(compare->session_count, sizeof(*cells));
    json_t *root = cells ? make(comparison, cells) : NULL;

    free(cells);
    return root;
}
