/* SPDX-License-Identifier: Apache-2.0 */
/* view_comparison_json.c - a comparison as JSON; docs/analysis.md has the structure. */
#include <math.h>
#include <stdlib.h>

#include "base/text/base_json.h"
#include "view/view.h"

/* What is put together; a failure is seen at the end. An object is complete before it is
 * put into another, as it is gone where that fails. */
struct writer {
    const struct wm_compare *compare;
    struct wm_compare_cell *cells;
    bool failed;
};

static void put(struct writer *writer, json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) != 0)
        writer->failed = true;
}

static void append(struct writer *writer, json_t *array, json_t *value)
{
    if (json_array_append_new(array, value) != 0)
        writer->failed = true;
}

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

static json_t *json_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *json_cell(struct writer *writer, const struct wm_compare_cell *cell,
                         bool is_first)
{
    json_t *json = json_object();

    put(writer, json, "value", json_number(cell->value));
    if (!isnan(cell->value) && !wm_block_analysis_put_origin(json, cell->origin))
        writer->failed = true;
    if (cell->off > 0 && cell->value > 0)
        put(writer, json, "uncertainty", json_number(cell->off / cell->value));
    if (is_first)
        return json;
    put(writer, json, "change", json_number(cell->change));
    put(writer, json, "noise", json_number(cell->noise));
    put(writer, json, "beyond_noise",
        cell->verdict == WM_COMPARE_NOT_TESTED
            ? json_null()
            : json_boolean(cell->verdict == WM_COMPARE_BEYOND));
    if (cell->why)
        put(writer, json, "why", json_string(cell->why));
    else if (isinf(cell->change))
        put(writer, json, "why", json_string("the first is 0"));
    return json;
}

static json_t *json_figure(struct writer *writer, unsigned item)
{
    const struct wm_compare *compare = writer->compare;
    json_t *json = json_object(), *sessions = json_object();

    for (size_t i = 0; i < compare->session_count; i++)
        put(writer, sessions, compare->sessions[i].name,
            json_cell(writer, &writer->cells[i], i == 0));
    put(writer, json, "unit", json_string(wm_view_comparison_unit(compare, item)));
    put(writer, json, "matters", json_boolean(wm_compare_item_matters(item)));
    put(writer, json, "sessions", sessions);
    return json;
}

/* Only what some session knows. */
static json_t *json_figures(struct writer *writer, size_t group)
{
    const struct wm_compare *compare = writer->compare;
    json_t *json = json_object();

    for (unsigned item = 0; item < wm_compare_items(); item++) {
        bool is_known = false;
        wm_compare_cells(compare, group, item, writer->cells);
        for (size_t i = 0; i < compare->session_count; i++)
            is_known = is_known || !isnan(writer->cells[i].value);
        if (!is_known)
            continue;
        put(writer, json, wm_compare_item_name(item), json_figure(writer, item));
    }
    return json;
}

static json_t *json_block(struct writer *writer, size_t index)
{
    const struct wm_compare *compare = writer->compare;
    const struct wm_compare_group *group = &compare->groups[index];
    json_t *json = json_object(), *names = json_object(), *calls = json_object();

    for (size_t i = 0; i < compare->session_count; i++) {
        const struct wm_block_result *block = group->blocks[i];
        const char *session = compare->sessions[i].name;
        put(writer, names, session, block ? wm_text_json(block->name) : json_null());
        put(writer, calls, session,
            block ? json_integer((json_int_t)block->calls) : json_null());
    }
    put(writer, json, "label", wm_text_json(group->label));
    put(writer, json, "names", names);
    put(writer, json, "calls", calls);
    put(writer, json, "figures", json_figures(writer, index));
    return json;
}

static json_t *json_worst(struct writer *writer, const struct wm_comparison *comparison)
{
    const char *figure = wm_comparison_worst_figure(comparison);

    if (!figure)
        return json_null();
    json_t *json = json_object();
    put(writer, json, "figure", json_string(figure));
    put(writer, json, "change", json_number(wm_comparison_worst(comparison)));
    return json;
}

static json_t *make(struct writer *writer, const struct wm_comparison *comparison)
{
    static const char *const statistics[] = { "min", "max", "mean", "std", "total" };
    const struct wm_compare *compare = writer->compare;
    json_t *root = json_object(), *sessions = json_array(), *blocks = json_array();
    json_t *remarks = json_array();
    const char *remark;

    for (size_t i = 0; i < compare->session_count; i++)
        append(writer, sessions, json_string(compare->sessions[i].name));
    for (size_t i = 0; i < compare->group_count && !writer->failed; i++)
        append(writer, blocks, json_block(writer, i));
    for (size_t i = 0; (remark = wm_comparison_remark(comparison, i)) != NULL; i++)
        append(writer, remarks, json_string(remark));
    put(writer, root, "statistic", json_string(statistics[compare->statistic]));
    put(writer, root, "sessions", sessions);
    put(writer, root, "overall", json_figures(writer, WM_COMPARE_OVERALL));
    put(writer, root, "blocks", blocks);
    put(writer, root, "worst", json_worst(writer, comparison));
    put(writer, root, "remarks", remarks);
    return root;
}

json_t *wm_view_comparison_json(const struct wm_comparison *comparison)
{
    const struct wm_compare *compare = wm_comparison_compare(comparison);
    struct writer writer = {
        .compare = compare,
        .cells = calloc(compare->session_count, sizeof(*writer.cells)),
    };

    if (!writer.cells)
        return NULL;
    json_t *root = make(&writer, comparison);
    free(writer.cells);
    if (writer.failed) {
        json_decref(root);
        return NULL;
    }
    return root;
}
