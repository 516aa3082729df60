/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_region_items.c - names and paths, found by their blocks; open calls, found by
 * what tells them apart. */
#include "analyze/region/analyze_region_items.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/base_array.h"

#define FURTHER "(further regions)"

int wm_region_items_init(struct wm_region_items *items, struct wm_error *err)
{
    *items = (struct wm_region_items) { .further = WM_REGION_NO_ITEM };
    int status = wm_blocks_new(&items->paths.blocks, err);

    return status < 0 ? status : wm_blocks_new(&items->names.blocks, err);
}

static void release_list(struct wm_region_item_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->list[i]);
    free(list->list);
    wm_blocks_free(list->blocks);
}

void wm_region_items_release(struct wm_region_items *items)
{
    release_list(&items->paths);
    release_list(&items->names);
    free(items->numbers);
    *items = (struct wm_region_items) { 0 };
}

/* The next one of the list, whose number is that of its block. */
static int add_item(struct wm_region_item_list *list, const char *name)
{
    if (wm_array_reserve(&list->list, list->count, &list->room, sizeof(*list->list)) < 0)
        return WM_ENOMEM;
    struct wm_region_item *item = calloc(1, sizeof(*item));
    if (!item)
        return WM_ENOMEM;
    *item = (struct wm_region_item) {
        .name = name,
        .parent = WM_REGION_NO_ITEM,
        .parent_path = WM_REGION_NO_PATH,
    };
    list->list[list->count++] = item;
    return WM_OK;
}

static int find_name(struct wm_region_item_list *names, const char *name, size_t *ret_index)
{
    if (wm_blocks_find(names->blocks, name, ret_index) < 0)
        return WM_ENOMEM;
    if (*ret_index < names->count)
        return WM_OK;
    return add_item(names, wm_blocks_get(names->blocks, *ret_index)->name);
}

static int add_path(struct wm_region_items *items, const char *key,
                    const struct wm_region_item *described, const char *name,
                    size_t *ret_index)
{
    struct wm_region_item_list *paths = &items->paths;
    size_t of_name, index;

    if (find_name(&items->names, name, &of_name) < 0 ||
        wm_blocks_find(paths->blocks, key, &index) < 0)
        return WM_ENOMEM;
    if (index == paths->count && add_item(paths, items->names.list[of_name]->name) < 0)
        return WM_ENOMEM;
    struct wm_region_item *item = paths->list[index];
    item->of_name = of_name;
    item->parent = described->parent;
    item->parent_path = described->parent_path;
    item->depth = described->depth;
    item->is_free = described->is_free;
    *ret_index = index;
    return WM_OK;
}

static int find_further(struct wm_region_items *items, size_t *ret_index)
{
    const struct wm_region_item described = {
        .parent = WM_REGION_NO_ITEM,
        .parent_path = WM_REGION_NO_PATH,
    };
    int status = WM_OK;

    if (items->further == WM_REGION_NO_ITEM)
        status = add_path(items, FURTHER, &described, FURTHER, &items->further);
    *ret_index = items->further;
    return status;
}

static int make_path(struct wm_region_items *items, uint32_t number,
                     const struct wm_region_path *path)
{
    const bool has_parent = path->parent < number;
    const struct wm_region_item described = {
        .parent = has_parent ? items->numbers[path->parent] : WM_REGION_NO_ITEM,
        .parent_path = has_parent ? path->parent : WM_REGION_NO_PATH,
        .depth = path->depth,
        .is_free = path->is_free,
    };
    char key[16];

    snprintf(key, sizeof(key), "%u", (unsigned)number);
    return add_path(items, key, &described, path->name ? path->name : "",
                    &items->numbers[number]);
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
    if (path >= WM_REGIONS_MOST)
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
    if (path >= WM_REGIONS_MOST)
        return items->further;
    return path < items->number_count ? items->numbers[path] : WM_REGION_NO_ITEM;
}

size_t wm_region_items_parent(const struct wm_region_items *items, uint32_t path,
                              size_t index, const struct wm_region_paths *paths)
{
    if (path < WM_REGIONS_MOST)
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

int wm_open_calls_reserve(struct wm_open_calls *calls)
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

    if (wm_open_calls_reserve(calls) < 0)
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
