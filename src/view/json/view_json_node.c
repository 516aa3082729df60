/* SPDX-License-Identifier: Apache-2.0 */
/* view_json_node.c - objects, numbers and reasons of a report in JSON. */
#include "view/json/view_json_node.h"

#include <math.h>
#include <stdio.h>

#include "base/text/base_json.h"

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
        wm_json_missing(node, key, "not told");
}

struct wm_json_node wm_json_node(const struct wm_json_node *parent, const char *key,
                                 json_t *json)
{
    struct wm_json_node node = { .view = parent->view };

    snprintf(node.path, sizeof(node.path), "%.72s%.50s.", parent->path, key);
    if (wm_json_put(parent, key, json))
        node.json = json;
    return node;
}

struct wm_json_node wm_json_object(const struct wm_json_node *parent, const char *key)
{
    return wm_json_node(parent, key, json_object());
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

static void put_why(const struct wm_json_node *node, const char *key, const char *why)
{
    char path[192];

    snprintf(path, sizeof(path), "%s%s", node->path, key);
    if (json_object_set_new(node->view->why, path, wm_text_json(why)) != 0)
        node->view->failed = true;
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
    return json_real(value);
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

void wm_json_whole(const struct wm_json_node *node, const char *key,
                   const struct wm_value *value)
{
    put_value(node, key, value, wm_json_number);
}

void wm_json_bytes(const struct wm_json_node *node, const char *key,
                   const struct wm_value *value, const struct wm_unit *unit)
{
    struct wm_value scaled = *value;

    if (unit == wm_unit_bytes()) {
        wm_json_whole(node, key, value);
        return;
    }
    scaled.number /= unit->size;
    wm_json_value(node, key, &scaled);
}

void wm_json_origin(const struct wm_json_node *node, enum wm_origin origin)
{
    if (origin == WM_MEASURED)
        return;
    const char *word = origin == WM_SIMULATED ? "simulated" : "estimated";
    wm_json_text(node, "origin", word);
    wm_json_put(node, word, json_true());
}

void wm_json_spread(const struct wm_json_node *parent, const char *key, const char *unit,
                    const struct wm_spread *spread)
{
    struct wm_json_node node = wm_json_object(parent, key);

    wm_json_text(&node, "unit", unit);
    wm_json_value(&node, "mean", &spread->mean);
    wm_json_value(&node, "max", &spread->max);
}
