/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view_gpu_json.c - the GPUs of a machine for programs, described in
 * docs/gpu-info.md.
 *
 * All of it comes from the tables of fields: what is added there is here, with
 * its unit in its name. What is not known is null; beside it the objects "why"
 * and "states" have the reason under the path of the null.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/base_clock.h"
#include "base/text/base_json.h"
#include "view/gpu/view_gpu.h"

/* Above it a double does not tell one whole number from the next. */
#define MOST_WHOLE 9007199254740992.0

/* What is being built for one GPU. */
struct gpu_json {
    const struct wm_gpus *gpus;
    size_t gpu;
    json_t *object, *why, *states; /* borrowed */
    bool failed;                   /* out of memory: all of it is thrown away */
};

/* Takes `value` over; what went wrong with it before, it shows by being NULL. */
static void put(struct gpu_json *view, json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) != 0)
        view->failed = true;
}

/* Takes `value` over and gives it back, borrowed. */
static json_t *put_node(struct gpu_json *view, json_t *object, const char *key,
                        json_t *value)
{
    put(view, object, key, value);
    return json_object_get(object, key);
}

static json_t *append_node(struct gpu_json *view, json_t *array, json_t *value)
{
    if (json_array_append_new(array, value) != 0) {
        view->failed = true;
        return NULL;
    }
    return value;
}

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
        break;
    }
    return "failed";
}

static void put_why(struct gpu_json *view, const char *path,
                    const struct wm_gpu_value *value)
{
    put(view, view->why, path, wm_text_json(value->why ? value->why : "unknown"));
    put(view, view->states, path, json_string(state_name(value->state)));
}

static json_t *value_json(const struct wm_gpu_field_info *info,
                          const struct wm_gpu_value *value)
{
    double number = value->number;

    switch (info->type) {
    case WM_GPU_TEXT:
        return wm_text_json(value->text);
    case WM_GPU_YES_NO:
        return json_boolean(number != 0);
    case WM_GPU_WHOLE:
        if (number == floor(number) && fabs(number) <= MOST_WHOLE)
            return json_integer((json_int_t)number);
        break;
    case WM_GPU_REAL:
        break;
    }
    return json_real(number);
}

/* `path` is that of `object`, with a dot at its end. */
static void put_field(struct gpu_json *view, json_t *object, const char *path,
                      const struct wm_gpu_field_info *info,
                      const struct wm_gpu_value *value)
{
    char key[80], full[160];

    snprintf(key, sizeof(key), "%s%s", info->key, wm_gpu_key_suffix(info));
    if (value->state == WM_READING_OK) {
        put(view, object, key, value_json(info, value));
        return;
    }
    put(view, object, key, json_null());
    snprintf(full, sizeof(full), "%s%s", path, key);
    put_why(view, full, value);
}

/* The fields of a group stand in an object called after it. */
static void put_gpu_fields(struct gpu_json *view)
{
    const struct wm_gpu_table *table = &wm_gpu_table_gpu;
    const struct wm_gpu_field_info *info;

    for (size_t i = 0; (info = table->info(i)) != NULL; i++) {
        struct wm_gpu_value value = table->get(view->gpus, view->gpu, 0, i);
        json_t *object = view->object;
        char path[80] = "";

        if (info->group[0]) {
            object = json_object_get(view->object, info->group);
            if (!object)
                object = put_node(view, view->object, info->group, json_object());
            snprintf(path, sizeof(path), "%s.", info->group);
        }
        put_field(view, object, path, info, &value);
    }
}

static void put_items(struct gpu_json *view, const char *name,
                      const struct wm_gpu_table *table, size_t count)
{
    json_t *list = put_node(view, view->object, name, json_array());
    const struct wm_gpu_field_info *info;

    for (size_t item = 0; item < count && !view->failed; item++) {
        json_t *object = append_node(view, list, json_object());
        char path[64];

        snprintf(path, sizeof(path), "%s.%zu.", name, item);
        for (size_t i = 0; (info = table->info(i)) != NULL; i++) {
            struct wm_gpu_value value = table->get(view->gpus, view->gpu, item, i);
            put_field(view, object, path, info, &value);
        }
    }
}

/* A list that is not known is null. One of which no more is known than that it
 * may not be whole is a list, but has a reason all the same. */
static void put_processes(struct gpu_json *view)
{
    struct wm_gpu_value list;
    size_t count = wm_gpu_process_count(view->gpus, view->gpu, &list);

    if (list.state != WM_READING_OK)
        put_why(view, "processes", &list);
    if (list.state != WM_READING_OK && count == 0)
        put(view, view->object, "processes", json_null());
    else
        put_items(view, "processes", &wm_gpu_table_process, count);
}

static bool append_gpu(json_t *list, const struct wm_gpus *gpus, size_t gpu)
{
    struct gpu_json view = { .gpus = gpus, .gpu = gpu };
    json_t *why = json_object(), *states = json_object();

    view.object = append_node(&view, list, json_object());
    view.why = why;
    view.states = states;
    put_gpu_fields(&view);
    put_items(&view, "migs", &wm_gpu_table_mig, wm_gpu_mig_count(gpus, gpu));
    put_processes(&view);
    put(&view, view.object, "why", why);
    put(&view, view.object, "states", states);
    return !view.failed;
}

/* One entry for each way to find GPUs, as in a report's "sources". */
static bool append_looked(json_t *list, const struct wm_gpu_looked *looked)
{
    json_t *object = json_object();
    bool available = looked->status == WM_OK;

    int failed = json_object_set_new(object, "source", wm_text_json(looked->source));
    failed |=
        json_object_set_new(object, "present", json_integer((json_int_t)looked->present));
    failed |= json_object_set_new(object, "available", json_boolean(available));
    failed |= json_object_set_new(object, available ? "detail" : "why",
                                  wm_text_json(looked->detail));
    failed |= json_array_append_new(list, object);
    return !failed;
}

json_t *wm_view_gpu_json(const struct wm_gpus *gpus)
{
    const struct wm_gpu_looked *looked;
    json_t *root = json_object(), *list = json_array(), *ways = json_array();
    char time[40];
    bool good = true;

    for (size_t gpu = 0; gpu < wm_gpus_count(gpus) && good; gpu++)
        good = append_gpu(list, gpus, gpu);
    for (size_t i = 0; (looked = wm_gpus_looked(gpus, i)) != NULL && good; i++)
        good = append_looked(ways, looked);

    wm_clock_rfc3339(wm_clock_unix_ns(), time, sizeof(time));
    int failed = json_object_set_new(root, "time", json_string(time));
    failed |= json_object_set_new(root, "present",
                                  json_integer((json_int_t)wm_gpus_present(gpus)));
    failed |= json_object_set_new(root, "gpus", list);
    failed |= json_object_set_new(root, "looked", ways);
    if (good && !failed)
        return root;
    json_decref(root);
    return NULL;
}
