/* SPDX-License-Identifier: Apache-2.0 */
/* view_comparison_json.c - a comparison as JSON; docs/analysis.md has the structure. What a
 * part of did not fit into memory is NULL, and so is the whole. */
#include <math.h>
#include <stdlib.h>

#include "base/text/base_json.h"
#include "record/record_channel.h"
#include "view/view.h"

const char *wm_view_comparison_unit(const struct wm_compare *compare, unsigned item)
{
    const struct wm_report *first = compare->sessions[0].runs[0].report;

    if (item < WM_COMPARE_FIGURES)
        return wm_measurement_unit(&first->usage.machine, item);
    return wm_unit_plain(wm_compare_item_row(item)->unit)->name;
}

static json_t *number(struct wm_known value)
{
    return wm_json_known(value.known, value.number);
}

/* An infinite ratio is null, too. */
static json_t *change_json(bool is_known, double change)
{
    return wm_json_known(is_known && isfinite(change), change);
}

/* As in a report. */
static void put_origin(json_t **object, enum wm_origin origin)
{
    const char *word = origin == WM_MEASURED ? NULL : wm_word(WM_WORDS_ORIGIN, (int)origin);

    if (!word)
        return;
    wm_json_set(object, "origin", json_string(word));
    wm_json_set(object, word, json_true());
}

static json_t *json_cell(const struct wm_compare_cell *cell, bool is_reference)
{
    bool is_tested = cell->to.verdict != WM_RUNS_NOT_TESTED;
    json_t *json = json_object();

    wm_json_set(&json, "value", number(cell->value));
    wm_json_set(&json, "runs", json_integer((json_int_t)cell->runs));
    if (cell->value.known)
        put_origin(&json, cell->origin);
    if (cell->lacks)
        wm_json_set(&json, "at_least", json_string(cell->lacks));
    if (cell->off.known && cell->off.number > 0 && cell->value.number > 0)
        wm_json_set(&json, "uncertainty",
                    wm_json_known(true, cell->off.number / cell->value.number));
    if (is_reference)
        return json;
    wm_json_set(&json, "change", change_json(cell->change.known, cell->change.number));
    wm_json_set(&json, "low", change_json(is_tested, cell->to.low - 1));
    wm_json_set(&json, "high", change_json(is_tested, cell->to.high - 1));
    wm_json_set(&json, "verdict", json_string(wm_runs_verdicts[cell->to.verdict]));
    if (is_tested)
        wm_json_set(&json, "paired", json_boolean(cell->is_paired));
    if (cell->to.why)
        wm_json_set(&json, "why", json_string(cell->to.why));
    else if (isinf(cell->change.number))
        wm_json_set(&json, "why", json_string("the reference is 0"));
    return json;
}

static json_t *json_figure(const struct wm_compare *compare, size_t group, unsigned item,
                           const struct wm_compare_cell *cells)
{
    json_t *json = json_object(), *sessions = json_object();

    for (size_t i = 0; i < compare->session_count; i++)
        wm_json_set(&sessions, compare->sessions[i].name,
                    json_cell(&cells[i], compare->sessions[i].reference == i));
    wm_json_set(&json, "unit", json_string(wm_view_comparison_unit(compare, item)));
    enum wm_compare_family family = wm_compare_family_of(compare, group, item);
    wm_json_set(&json, "family", json_string(wm_compare_families[family]));
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
        wm_json_set(&json, wm_compare_item_name(item),
                    json_figure(compare, group, item, cells));
    }
    return json;
}

/* The name of a block in a session, and its calls in all of its runs. */
static void put_block(const struct wm_compare_group *group,
                      const struct wm_compare_session *session, json_t **names,
                      json_t **calls)
{
    const struct wm_region_usage *block = NULL;
    json_int_t count = 0;

    for (size_t i = session->first; i < session->first + session->count; i++) {
        if (!group->blocks[i])
            continue;
        block = group->blocks[i];
        count += (json_int_t)block->calls;
    }
    wm_json_set(names, session->name, block ? wm_text_json(block->name) : json_null());
    wm_json_set(calls, session->name, block ? json_integer(count) : json_null());
}

static json_t *json_block(const struct wm_compare *compare, size_t index,
                          struct wm_compare_cell *cells)
{
    const struct wm_compare_group *group = &compare->groups[index];
    json_t *json = json_object(), *names = json_object(), *calls = json_object();

    for (size_t i = 0; i < compare->session_count; i++)
        put_block(group, &compare->sessions[i], &names, &calls);
    wm_json_set(&json, "label", wm_text_json(group->label));
    wm_json_set(&json, "names", names);
    wm_json_set(&json, "calls", calls);
    wm_json_set(&json, "figures", json_figures(compare, index, cells));
    return json;
}

static json_t *json_worst(const struct wm_comparison *comparison)
{
    const struct wm_comparison_result result = wm_comparison_result(comparison);

    if (!result.worst_figure)
        return json_null();
    json_t *json = json_object();
    wm_json_set(&json, "figure", json_string(result.worst_figure));
    wm_json_set(&json, "at_least", change_json(true, result.worst));
    return json;
}

static json_t *make(const struct wm_comparison *comparison, struct wm_compare_cell *cells)
{
    static const char *const statistics[] = { "min", "max", "mean", "std", "total" };
    const struct wm_compare *compare = wm_comparison_compare(comparison);
    json_t *root = json_object(), *sessions = json_array(), *blocks = json_array();
    json_t *remarks = json_array(), *references = json_object();
    const char *remark;

    for (size_t i = 0; i < compare->session_count; i++) {
        size_t reference = compare->sessions[i].reference;
        wm_json_add(&sessions, json_string(compare->sessions[i].name));
        if (reference != i)
            wm_json_set(&references, compare->sessions[i].name,
                        json_string(compare->sessions[reference].name));
    }
    for (size_t i = 0; i < compare->group_count && blocks; i++)
        wm_json_add(&blocks, json_block(compare, i, cells));
    for (size_t i = 0; (remark = wm_comparison_remark(comparison, i)) != NULL; i++)
        wm_json_add(&remarks, json_string(remark));
    wm_json_set(&root, "statistic", json_string(statistics[compare->statistic]));
    wm_json_set(&root, "sessions", sessions);
    wm_json_set(&root, "references", references);
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
