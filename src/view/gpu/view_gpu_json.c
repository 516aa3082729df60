/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view_gpu_json.c - the GPUs of a machine for programs, described in
 * docs/gpu-info.md.
 *
 * All of it comes from the tables of fields: what is added there is here, with
 * its unit in its name. What is not known is null; beside it the objects "why"
 * and "states" have the reason under the path of the null.
 */
#include <stdbool.h>
#include <stdio.h>

#include "base/base_clock.h"
#include "base/text/base_json.h"
#include "view/gpu/view_gpu.h"
#include "view/json/view_json_node.h"

/* What is being built for one GPU. */
struct gpu_json {
    const struct wm_gpus *gpus;
    size_t gpu;
    struct wm_json_node root;
    json_t *states;
};

static const char *state_name(enum wm_reading_state state)
{
    switch (state) {
    case WM_READING_UNSUPPORTED:
        return "unsupported";
    case WM_READING_DENIED:
        return "denied";
    case WM_READING_STALE:
        return "stale";
    case WM_READING_NONE:
        return "not asked";
    case WM_READING_OK:
    case WM_READING_FAILED:
    case WM_READING_JUMPED:
        break;
    }
    return "failed";
}

static void put_why(const struct gpu_json *view, const struct wm_json_node *node,
                    const char *key, const struct wm_gpu_value *value)
{
    wm_json_beside(node, node->view->why, key,
                   wm_text_json(value->why ? value->why : "unknown"));
    wm_json_beside(node, view->states, key, json_string(state_name(value->state)));
}

static json_t *value_json(const struct wm_gpu_field_info *info,
                          const struct wm_gpu_value *value)
{
    switch (info->type) {
    case WM_GPU_TEXT:
        return wm_text_json(value->text);
    case WM_GPU_YES_NO:
        return json_boolean(value->number != 0);
    case WM_GPU_WHOLE:
        return wm_json_number(value->number);
    case WM_GPU_REAL:
        break;
    }
    return json_real(value->number);
}

static void put_field(const struct gpu_json *view, const struct wm_json_node *node,
                      const struct wm_gpu_field_info *info,
                      const struct wm_gpu_value *value)
{
    char key[80];

    snprintf(key, sizeof(key), "%s%s", info->key, wm_gpu_key_suffix(info));
    if (value->state == WM_READING_OK) {
        wm_json_put(node, key, value_json(info, value));
        return;
    }
    wm_json_put(node, key, json_null());
    put_why(view, node, key, value);
}

/* Reported by no driver, so in no table of fields. */
static void put_seen_as(const struct gpu_json *view)
{
    static const struct wm_gpu_field_info info = { .key = "seen_as",
                                                   .unit = "count",
                                                   .type = WM_GPU_WHOLE };
    struct wm_gpu_value value;

    wm_gpu_seen_as(view->gpus, view->gpu, &value);
    put_field(view, &view->root, &info, &value);
}

/* The fields of a group stand in an object called after it. */
static void put_gpu_fields(const struct gpu_json *view)
{
    const struct wm_gpu_field_info *info;

    for (size_t i = 0; (info = wm_gpu_field_info((enum wm_gpu_field)i)) != NULL; i++) {
        struct wm_gpu_value value =
            wm_gpu_table_get(WM_GPU_TABLE_GPU, view->gpus, view->gpu, 0, i);
        struct wm_json_node node = view->root;

        if (info->group[0])
            node = wm_json_find(&view->root, info->group);
        if (!node.json)
            node = wm_json_object(&view->root, info->group);
        put_field(view, &node, info, &value);
    }
}

static void put_items(const struct gpu_json *view, const char *name,
                      enum wm_gpu_table table, size_t count)
{
    struct wm_json_node list = wm_json_node(&view->root, name, json_array());
    const struct wm_gpu_field_info *info;

    for (size_t item = 0; item < count; item++) {
        struct wm_json_node node = wm_json_append(&list, item);
        for (size_t i = 0; (info = wm_gpu_table_info(table, i)) != NULL; i++) {
            struct wm_gpu_value value =
                wm_gpu_table_get(table, view->gpus, view->gpu, item, i);
            put_field(view, &node, info, &value);
        }
    }
}

/* A list that is not known is null. One of which no more is known than that it
 * may not be whole is a list, but has a reason all the same. */
static void put_processes(const struct gpu_json *view)
{
    struct wm_gpu_value list;
    size_t count = wm_gpu_process_count(view->gpus, view->gpu, &list);

    if (list.state != WM_READING_OK)
        put_why(view, &view->root, "processes", &list);
    if (list.state != WM_READING_OK && count == 0)
        wm_json_put(&view->root, "processes", json_null());
    else
        put_items(view, "processes", WM_GPU_TABLE_PROCESS, count);
}

static json_t *gpu_json(const struct wm_gpus *gpus, size_t gpu)
{
    struct wm_json_view json = { .why = json_object() };
    struct gpu_json view = { .gpus = gpus,
                             .gpu = gpu,
                             .root = { .view = &json, .json = json_object() },
                             .states = json_object() };

    put_gpu_fields(&view);
    put_seen_as(&view);
    put_items(&view, "migs", WM_GPU_TABLE_MIG, wm_gpu_mig_count(gpus, gpu));
    put_processes(&view);
    wm_json_put(&view.root, "why", json.why);
    wm_json_put(&view.root, "states", view.states);
    return wm_json_end(&view.root);
}

/* One entry for each way to find GPUs, as in a report's "sources". */
static json_t *looked_json(const struct wm_gpu_looked *looked)
{
    json_t *object = json_object();
    bool available = looked->status == WM_OK;

    wm_json_set(&object, "source", wm_text_json(looked->source));
    wm_json_set(&object, "present", json_integer((json_int_t)looked->present));
    wm_json_set(&object, "available", json_boolean(available));
    wm_json_set(&object, available ? "detail" : "why", wm_text_json(looked->detail));
    return object;
}

json_t *wm_view_gpu_json(const struct wm_gpus *gpus)
{
    const struct wm_gpu_looked *looked;
    json_t *root = json_object(), *list = json_array(), *ways = json_array();
    char time[40];

    for (size_t gpu = 0; gpu < wm_gpus_count(gpus) && list; gpu++)
        wm_json_add(&list, gpu_json(gpus, gpu));
    for (size_t i = 0; (looked = wm_gpus_looked(gpus, i)) != NULL && ways; i++)
        wm_json_add(&ways, looked_json(looked));

    wm_clock_rfc3339(wm_clock_unix_ns(), time, sizeof(time));
    wm_json_set(&root, "time", json_string(time));
    wm_json_set(&root, "present", json_integer((json_int_t)wm_gpus_present(gpus)));
    wm_json_set(&root, "gpus", list);
    wm_json_set(&root, "looked", ways);
    return root;
}
