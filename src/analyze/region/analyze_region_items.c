/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_region_items.c - names and paths, found by their blocks; open calls, found in a
 * hash table with linear probing that is at most half full. */
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

#define FIRST_ROOM 64

static size_t home_of(const struct wm_open_calls *calls, const struct wm_open_call *call)
{
    uint64_t hash = (uint64_t)call->start_ns * UINT64_C(0x9e3779b97f4a7c15);

    hash ^= ((uint64_t)call->path << 32 | call->thread) * UINT64_C(0xc2b2ae3d27d4eb4f);
    hash ^= hash >> 29;
    hash *= UINT64_C(0xbf58476d1ce4e5b9);
    return (size_t)(hash >> 32) & (calls->room - 1);
}

static bool is_same(const struct wm_open_call *one, const struct wm_open_call *other)
{
    return one->start_ns == other->start_ns && one->path == other->path &&
           one->thread == other->thread;
}

void wm_open_calls_release(struct wm_open_calls *calls)
{
    free(calls->slots);
    free(calls->is_used);
    *calls = (struct wm_open_calls) { 0 };
}

static void put(struct wm_open_calls *calls, const struct wm_open_call *call)
{
    size_t at = home_of(calls, call);

    while (calls->is_used[at])
        at = (at + 1) & (calls->room - 1);
    calls->slots[at] = *call;
    calls->is_used[at] = true;
    calls->count++;
}

static int grow(struct wm_open_calls *calls)
{
    struct wm_open_calls grown = { .room = calls->room ? calls->room * 2 : FIRST_ROOM };

    grown.slots = calloc(grown.room, sizeof(*grown.slots));
    grown.is_used = calloc(grown.room, sizeof(*grown.is_used));
    if (!grown.slots || !grown.is_used) {
        wm_open_calls_release(&grown);
        return WM_ENOMEM;
    }
    for (size_t i = 0; i < calls->room; i++) {
        if (calls->is_used[i])
            put(&grown, &calls->slots[i]);
    }
    wm_open_calls_release(calls);
    *calls = grown;
    return WM_OK;
}

int wm_open_calls_reserve(struct wm_open_calls *calls)
{
    return 2 * (calls->count + 1) > calls->room ? grow(calls) : WM_OK;
}

int wm_open_calls_add(struct wm_open_calls *calls, const struct wm_open_call *call)
{
    if (wm_open_calls_reserve(calls) < 0)
        return WM_ENOMEM;
    put(calls, call);
    return WM_OK;
}

/* Moves up those behind a place that is free now, so that they are still found. */
static void close_hole(struct wm_open_calls *calls, size_t hole)
{
    size_t mask = calls->room - 1;

    for (size_t at = (hole + 1) & mask; calls->is_used[at]; at = (at + 1) & mask) {
        size_t home = home_of(calls, &calls->slots[at]);
        if (((at - home) & mask) < ((at - hole) & mask))
            continue;
        calls->slots[hole] = calls->slots[at];
        hole = at;
    }
    calls->is_used[hole] = false;
}

bool wm_open_calls_take(struct wm_open_calls *calls, struct wm_open_call *call)
{
    if (calls->count == 0)
        return false;

    size_t at = home_of(calls, call);
    while (calls->is_used[at] && !is_same(&calls->slots[at], call))
        at = (at + 1) & (calls->room - 1);
    if (!calls->is_used[at])
        return false;
    *call = calls->slots[at];
    close_hole(calls, at);
    calls->count--;
    return true;
}
