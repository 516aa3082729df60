/* SPDX-License-Identifier: Apache-2.0 */
/* view_json_node.c - objects, numbers and reasons of a report in JSON. */
#include "view/json/view_json_node.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text/base_json.h"
#include "record/record_channel.h"

/* Above it a double does not tell one whole number from the next. */
#define MOST_WHOLE 9007199254740992.0

bool wm_json_put(const struct wm_json_node *node, const char *key, json_t *value)
{
    if (json_object_set_new(node->json, key, value) == 0)
        return true;
    node->view->failed = true;
    return false;
}

void wm_json_text(const struct wm_json_node *node, const char *key, const char *text)
{
    if (text)
        wm_json_put(node, key, wm_text_json(text));
    else
        wm_json_missing(node, key, "not reported");
}

static void set_path(struct wm_json_node *node, const struct wm_json_node *parent,
                     const char *key)
{
    snprintf(node->path, sizeof(node->path), "%.72s%.50s.", parent->path, key);
}

struct wm_json_node wm_json_node(const struct wm_json_node *parent, const char *key,
                                 json_t *json)
{
    struct wm_json_node node = { .view = parent->view };

    set_path(&node, parent, key);
    if (wm_json_put(parent, key, json))
        node.json = json;
    return node;
}

struct wm_json_node wm_json_object(const struct wm_json_node *parent, const char *key)
{
    return wm_json_node(parent, key, json_object());
}

struct wm_json_node wm_json_find(const struct wm_json_node *parent, const char *key)
{
    struct wm_json_node node = { .view = parent->view,
                                 .json = json_object_get(parent->json, key) };

    set_path(&node, parent, key);
    return node;
}

struct wm_json_node wm_json_append(const struct wm_json_node *array, size_t index)
{
    struct wm_json_node node = { .view = array->view };
    json_t *json = json_object();

    snprintf(node.path, sizeof(node.path), "%.72s%zu.", array->path, index);
    if (json_array_append_new(array->json, json) == 0)
        node.json = json;
    else
        array->view->failed = true;
    return node;
}

void wm_json_beside(const struct wm_json_node *node, json_t *object, const char *key,
                    json_t *value)
{
    char path[192];

    snprintf(path, sizeof(path), "%s%s", node->path, key);
    if (json_object_set_new(object, path, value) != 0)
        node->view->failed = true;
}

static void put_why(const struct wm_json_node *node, const char *key, const char *why)
{
    wm_json_beside(node, node->view->why, key, wm_text_json(why));
}

json_t *wm_json_end(const struct wm_json_node *root)
{
    if (!root->view->failed)
        return root->json;
    json_decref(root->json);
    return NULL;
}

void wm_json_missing(const struct wm_json_node *node, const char *key, const char *why)
{
    wm_json_put(node, key, json_null());
    put_why(node, key, why ? why : "unknown");
}

json_t *wm_json_number(double value)
{
    if (value == floor(value) && fabs(value) <= MOST_WHOLE)
        return json_integer((json_int_t)value);
    return wm_json_known(true, value);
}

static void put_value(const struct wm_json_node *node, const char *key,
                      const struct wm_value *value, json_t *(*make)(double number))
{
    if (!value->known || !isfinite(value->number)) {
        wm_json_missing(node, key, value->why);
        return;
    }
    wm_json_put(node, key, make(value->number));
    if (value->why)
        put_why(node, key, value->why);
}

void wm_json_value(const struct wm_json_node *node, const char *key,
                   const struct wm_value *value)
{
    put_value(node, key, value, json_real);
}

void wm_json_percent(const struct wm_json_node *node, const char *key,
                     const struct wm_value *ratio)
{
    struct wm_value percent = *ratio;

    percent.number *= 100;
    wm_json_value(node, key, &percent);
}

void wm_json_between(const struct wm_json_node *node, const struct wm_value *low,
                     const struct wm_value *high)
{
    if (!low->known || !high->known)
        return;
    wm_json_value(node, "low", low);
    wm_json_value(node, "high", high);
}

void wm_json_origin(const struct wm_json_node *node, enum wm_origin origin)
{
    if (origin == WM_MEASURED)
        return;
    const char *word = wm_word(WM_WORDS_ORIGIN, (int)origin);
    wm_json_text(node, "origin", word);
    wm_json_put(node, word, json_true());
}

/* The unit as it stands beside figures, and what it is scaled by; NULL where the key says
 * it. */
static const struct wm_unit *unit_of(const struct wm_units *units, enum wm_figure_unit unit)
{
    switch (unit) {
    case WM_UNIT_TIME:
        return units->time;
    case WM_UNIT_RAM:
        return units->ram;
    case WM_UNIT_GPU_RAM:
        return units->gpu_ram;
    case WM_UNIT_PERCENT:
    case WM_UNIT_COUNT:
        return NULL;
    default:
        return wm_unit_plain(unit);
    }
}

/* Whether whole numbers have no fraction: counts, and bytes in bytes. */
static bool is_whole(const struct wm_figure_row *row, const struct wm_unit *unit)
{
    return row->unit == WM_UNIT_COUNT || row->unit == WM_UNIT_BYTES ||
           ((row->unit == WM_UNIT_RAM || row->unit == WM_UNIT_GPU_RAM) && unit->size == 1);
}

/* What one figure is put by. */
struct putting {
    const struct wm_figure_row *row;
    const struct wm_figure_place *place;
    struct wm_found found;
    const struct wm_unit *unit; /* NULL: it is said nowhere */
    bool tells_origin;
};

static void put_leaf(const struct wm_json_node *node, const struct putting *putting,
                     const char *key)
{
    struct wm_value value = putting->found.value;

    if (json_object_get(node->json, key))
        return;
    if (putting->unit)
        value.number /= putting->unit->size;
    put_value(node, key, &value,
              is_whole(putting->row, putting->unit) ? wm_json_number : json_real);
    if (putting->place->uncertainty_key) {
        wm_json_percent(node, putting->place->uncertainty_key, &putting->found.uncertainty);
        wm_json_between(node, &putting->found.low, &putting->found.high);
    }
    if (putting->tells_origin)
        wm_json_origin(node, putting->found.origin);
}

/* The object of that key, which is made where it is not there yet. */
static struct wm_json_node find_object(const struct wm_json_node *parent,
                                       const struct putting *putting, const char *key)
{
    struct wm_json_node node = wm_json_find(parent, key);

    if (node.json)
        return node;
    node = wm_json_object(parent, key);
    const char *around = json_string_value(json_object_get(parent->json, "unit"));
    if (putting->unit && (!around || strcmp(around, putting->unit->name) != 0))
        wm_json_text(&node, "unit", putting->unit->name);
    return node;
}

static void put_figure(const struct wm_json_node *node, const struct putting *putting)
{
    const char *path = putting->place->path, *dot;
    struct wm_json_node inner = *node;
    char key[64];

    for (; (dot = strchr(path, '.')) != NULL; path = dot + 1) {
        snprintf(key, sizeof(key), "%.*s", (int)(dot - path), path);
        inner = find_object(&inner, putting, key);
    }
    put_leaf(&inner, putting, path);
}

void wm_json_figures(const struct wm_json_node *node, enum wm_report_kind kind,
                     const void *of, const char *prefix)
{
    const struct wm_json_view *view = node->view;
    const struct wm_figure_row *row;
    bool has_units = kind == WM_REPORT_RUN || kind == WM_REPORT_GPU;

    for (size_t i = 0; (row = wm_figure_row(i)) != NULL; i++) {
        struct putting putting = { .row = row, .place = wm_figure_place(row, kind) };
        if (!putting.place || !putting.place->path ||
            strncmp(putting.place->path, prefix, strlen(prefix)) != 0)
            continue;
        putting.found = wm_figure_of(row, kind, view->report, of);
        if (has_units)
            putting.unit = unit_of(view->units, row->unit);
        putting.tells_origin = putting.place->tells_origin &&
                               (kind == WM_REPORT_RUN || putting.found.value.known);
        if (putting.found.value.known || !putting.place->only_known)
            put_figure(node, &putting);
    }
}
