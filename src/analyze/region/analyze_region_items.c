/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_region_items.c - names and paths, found by their blocks; open calls, found by
 * what distinguishes them. */
#include "analyze/region/analyze_region_items.h"

#include <stdlib.h>

#include "base/base_array.h"

void wm_region_items_init(struct wm_region_items *items, uint32_t most_paths)
{
    *items = (struct wm_region_items) { .most = most_paths, .further = WM_REGION_NO_ITEM };
}

static void release_list(struct wm_region_item_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->list[i]);
    free(list->list);
}

void wm_region_items_release(struct wm_region_items *items)
{
    release_list(&items->paths);
    release_list(&items->names);
    wm_names_release(&items->texts);
    free(items->numbers);
    *items = (struct wm_region_items) { 0 };
}

static struct wm_region_item *add_item(struct wm_region_item_list *list)
{
    if (wm_array_reserve(&list->list, list->count, &list->room, sizeof(*list->list)) < 0)
        return NULL;
    struct wm_region_item *item = calloc(1, sizeof(*item));
    if (item)
        list->list[list->count++] = item;
    return item;
}

static struct wm_region_item *find_name(struct wm_region_items *items, const char *name,
                                        size_t *ret_index)
{
    struct wm_region_item_list *names = &items->names;
    uint32_t found = wm_names_find(&items->texts, name);

    /* Its item first, so that no text stands there without one. */
    if (found == WM_MAP_NONE) {
        struct wm_region_item *item = add_item(names);
        found = item ? wm_names_add(&items->texts, name) : WM_MAP_NONE;
        if (found == WM_MAP_NONE) {
            free(item ? names->list[--names->count] : NULL);
            return NULL;
        }
        item->name = items->texts.texts[found];
    }
    *ret_index = found;
    return names->list[found];
}

static int add_path(struct wm_region_items *items, const struct wm_region_path *path,
                    size_t parent, size_t *ret_index)
{
    size_t of_name;
    const struct wm_region_item *name =
        find_name(items, path->name ? path->name : "", &of_name);
    struct wm_region_item *item = name ? add_item(&items->paths) : NULL;

    if (!item)
        return WM_ENOMEM;
    *item = (struct wm_region_item) {
        .name = name->name,
        .of_name = of_name,
        .parent = parent,
        .parent_path = parent == WM_REGION_NO_ITEM ? WM_REGION_NO_PATH : path->parent,
        .depth = path->depth,
        .is_free = path->is_free,
    };
    *ret_index = items->paths.count - 1;
    return WM_OK;
}

static int find_further(struct wm_region_items *items, size_t *ret_index)
{
    const struct wm_region_path further = { .name = WM_REGION_FURTHER };
    int status = WM_OK;

    if (items->further == WM_REGION_NO_ITEM)
        status = add_path(items, &further, WM_REGION_NO_ITEM, &items->further);
    *ret_index = items->further;
    return status;
}

static int make_path(struct wm_region_items *items, uint32_t number,
                     const struct wm_region_path *path)
{
    size_t parent =
        path->parent < number ? items->numbers[path->parent] : WM_REGION_NO_ITEM;

    return add_path(items, path, parent, &items->numbers[number]);
}

static int reserve_number(struct wm_region_items *items, uint32_t number)
{
    while (items->number_count <= number) {
        if (wm_array_reserve(&items->numbers, items->number_count, &items->number_room,
                             sizeof(*items->numbers)) < 0)
            return WM_ENOMEM;
        items->numbers[items->number_count++] = WM_REGION_NO_ITEM;
    }
    return WM_OK;
}

int wm_region_items_find(struct wm_region_items *items, uint32_t path,
                         const struct wm_region_paths *paths, size_t *ret_index)
{
    if (path >= items->most)
        return find_further(items, ret_index);
    if (reserve_number(items, path) < 0)
        return WM_ENOMEM;
    /* Those around it, which have lower numbers, come first. */
    while (items->numbers[path] == WM_REGION_NO_ITEM) {
        uint32_t at = path;
        const struct wm_region_path *found = paths->find(paths->context, at);
        while (found->parent < at && items->numbers[found->parent] == WM_REGION_NO_ITEM) {
            at = found->parent;
            found = paths->find(paths->context, at);
        }
        if (make_path(items, at, found) < 0)
            return WM_ENOMEM;
    }
    *ret_index = items->numbers[path];
    return WM_OK;
}

size_t wm_region_items_index(const struct wm_region_items *items, uint32_t path)
{
    if (path >= items->most)
        return items->further;
    return path < items->number_count ? items->numbers[path] : WM_REGION_NO_ITEM;
}

size_t wm_region_items_parent(const struct wm_region_items *items, uint32_t path,
                              size_t index, const struct wm_region_paths *paths)
{
    if (path < items->most)
        return items->paths.list[index]->parent;
    uint32_t parent = paths->find(paths->context, path)->parent;
    return parent < path ? wm_region_items_index(items, parent) : WM_REGION_NO_ITEM;
}

void wm_open_calls_release(struct wm_open_calls *calls)
{
    wm_map_release(&calls->places);
    free(calls->list);
    *calls = (struct wm_open_calls) { 0 };
}

static uint64_t key_of(const struct wm_open_call *call)
{
    return (uint64_t)call->path << 32 | call->thread;
}

static int reserve_calls(struct wm_open_calls *calls)
{
    int status = wm_map_reserve(&calls->places);

    if (status < 0 || calls->used > calls->count)
        return status;
    return wm_array_reserve(&calls->list, calls->used, &calls->room, sizeof(*calls->list));
}

int wm_open_calls_add(struct wm_open_calls *calls, const struct wm_open_call *call)
{
    uint64_t start = (uint64_t)call->start_ns;
    uint32_t place = (uint32_t)calls->used;

    if (reserve_calls(calls) < 0)
        return WM_ENOMEM;
    if (calls->used > calls->count) {
        place = calls->free;
        calls->free = calls->list[place].next;
    } else {
        calls->used++;
    }
    calls->list[place] = *call;
    calls->list[place].next = wm_map_find(&calls->places, start, key_of(call));
    wm_map_put(&calls->places, start, key_of(call), place);
    calls->count++;
    return WM_OK;
}

bool wm_open_calls_take(struct wm_open_calls *calls, struct wm_open_call *call)
{
    uint64_t start = (uint64_t)call->start_ns, key = key_of(call);
    uint32_t place = wm_map_find(&calls->places, start, key);

    if (place == WM_MAP_NONE)
        return false;
    *call = calls->list[place];
    if (call->next == WM_MAP_NONE)
        wm_map_remove(&calls->places, start, key);
    else
        wm_map_put(&calls->places, start, key, call->next);
    calls->list[place].next = calls->free;
    calls->free = place;
    calls->count--;
    return true;
}
