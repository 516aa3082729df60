/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_regions.c - time of regions, their own and while they are open.
 *
 * The innermost calls share each moment evenly. So there is a clock that runs slower the
 * more of them there are: what passes on it while a region has an innermost call is its
 * own time of that call, and an edge concerns no region but its own and the one around it.
 * A call is innermost while no other is open right inside it, so it is enough to count
 * calls for each path, whatever thread they are of.
 */
#include "analyze/analyze_regions.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze_region_open.h"
#include "analyze/analyze_stats.h"

#define NO_INDEX SIZE_MAX

/* A tick looks at regions that have closed since a sensor told something last; after so
 * many ticks without a word it no longer does, and all are looked at when it speaks. */
#define MOST_WAITED 64

#define FURTHER "(further regions)"

enum part {
    OPEN, /* while a call is open, whatever happened inside */
    OWN,
    PARTS,
};

/* The clock of own time, and that of its squares. They start again at each tick, as the
 * sum of many small steps is the less exact the greater it gets. */
struct clock {
    double ns, squares;
};

/* A name or a path. */
struct item {
    const char *name; /* of the block of its name */
    size_t of_name;   /* a path's */
    size_t parent;    /* the same, or NO_INDEX */
    uint32_t parent_path, depth;
    bool is_free, is_active;
    uint64_t open, inside; /* calls; and calls right inside those, of a path */
    uint64_t leaves;       /* calls that are innermost */
    uint64_t openings;
    int64_t open_from_ns;
    struct clock own_from;
    struct wm_region_time time[PARTS];
    struct wm_region_share shares[PARTS][WM_REGION_RESOURCES];
};

struct items {
    struct item **list;
    size_t count, room;
};

struct waiting_tick {
    struct wm_region_totals totals;
    struct wm_timepoint timepoint;
    bool has_timepoint;
};

struct wm_regions {
    struct items paths, names;
    struct wm_blocks *path_blocks, *name_blocks; /* in the same order */
    size_t *path_items; /* of the numbers of paths; NO_INDEX: none yet */
    size_t path_item_count, path_item_room;
    size_t further; /* of all from WM_REGIONS_MOST on; NO_INDEX: none */
    struct wm_open_calls calls;

    struct item **active; /* has room for all of them */
    size_t active_count, active_room;

    bool started;
    int64_t now_ns, end_ns; /* the last: no time passes after it */
    struct clock clock;
    uint64_t leaves; /* of all paths */
    struct item rest;
    struct wm_region_meter meters[WM_REGION_RESOURCES];

    struct waiting_tick *ticks; /* a ring */
    size_t tick_room, first_tick, tick_count;

    /* What closes now; first comes what else is of this moment. */
    struct wm_region_edge *closing;
    size_t closing_count, closing_room;

    uint32_t *threads, *processes; /* sorted */
    size_t thread_count, thread_room, process_count, process_room;
};

/* Ticks that wait at most. */
static size_t find_room(int64_t interval_ns)
{
    if (interval_ns <= 0 || WM_REGIONS_WAIT_NS / interval_ns < WM_REGIONS_WAITING_LEAST)
        return WM_REGIONS_WAITING_LEAST;
    if (WM_REGIONS_WAIT_NS / interval_ns > WM_REGIONS_WAITING_MOST)
        return WM_REGIONS_WAITING_MOST;
    return (size_t)(WM_REGIONS_WAIT_NS / interval_ns);
}

int wm_regions_new(int64_t interval_ns, struct wm_regions **ret_regions,
                   struct wm_error *err)
{
    struct wm_regions *regions = calloc(1, sizeof(*regions));
    int status = regions ? WM_OK : WM_ENOMEM;

    if (status == WM_OK) {
        regions->further = NO_INDEX;
        regions->end_ns = INT64_MAX;
        regions->tick_room = find_room(interval_ns);
        regions->ticks = calloc(regions->tick_room, sizeof(*regions->ticks));
        if (!regions->ticks)
            status = WM_ENOMEM;
    }
    if (status == WM_OK)
        status = wm_blocks_new(&regions->path_blocks, err);
    if (status == WM_OK)
        status = wm_blocks_new(&regions->name_blocks, err);
    if (status < 0) {
        wm_regions_free(regions);
        return wm_fail(err, WM_ENOMEM, "regions: out of memory");
    }
    *ret_regions = regions;
    return WM_OK;
}

static void free_items(struct items *items)
{
    for (size_t i = 0; i < items->count; i++)
        free(items->list[i]);
    free(items->list);
}

void wm_regions_free(struct wm_regions *regions)
{
    if (!regions)
        return;
    free_items(&regions->paths);
    free_items(&regions->names);
    wm_blocks_free(regions->path_blocks);
    wm_blocks_free(regions->name_blocks);
    wm_open_calls_release(&regions->calls);
    free(regions->path_items);
    free(regions->active);
    free(regions->ticks);
    free(regions->closing);
    free(regions->threads);
    free(regions->processes);
    free(regions);
}

/* Makes room for one more in the list that `list` points to. */
static int reserve(void *list, size_t count, size_t *room, size_t size)
{
    size_t more = *room ? *room * 2 : 16;
    void *grown;

    if (count < *room)
        return WM_OK;
    memcpy(&grown, list, sizeof(grown));
    grown = realloc(grown, more * size);
    if (!grown)
        return WM_ENOMEM;
    memcpy(list, &grown, sizeof(grown));
    *room = more;
    return WM_OK;
}

/* The next one of `items`, whose number is that of its block. */
static int add_item(struct wm_regions *regions, struct items *items, const char *name,
                    struct item **ret_item)
{
    size_t all = regions->paths.count + regions->names.count;

    if (reserve(&items->list, items->count, &items->room, sizeof(*items->list)) < 0 ||
        reserve(&regions->active, all, &regions->active_room, sizeof(*regions->active)) < 0)
        return WM_ENOMEM;
    struct item *item = calloc(1, sizeof(*item));
    if (!item)
        return WM_ENOMEM;
    *item = (struct item) {
        .name = name,
        .parent = NO_INDEX,
        .parent_path = WM_REGION_NO_PATH,
    };
    items->list[items->count++] = item;
    *ret_item = item;
    return WM_OK;
}

static int find_name(struct wm_regions *regions, const char *name, size_t *ret_index)
{
    struct item *item;

    if (wm_blocks_find(regions->name_blocks, name, ret_index) < 0)
        return WM_ENOMEM;
    if (*ret_index < regions->names.count)
        return WM_OK;
    return add_item(regions, &regions->names,
                    wm_blocks_get(regions->name_blocks, *ret_index)->name, &item);
}

static int add_path(struct wm_regions *regions, const char *key,
                    const struct item *described, const char *name, size_t *ret_index)
{
    struct item *item;
    size_t of_name, block;

    if (find_name(regions, name, &of_name) < 0 ||
        wm_blocks_find(regions->path_blocks, key, &block) < 0)
        return WM_ENOMEM;
    if (block == regions->paths.count &&
        add_item(regions, &regions->paths, regions->names.list[of_name]->name, &item) < 0)
        return WM_ENOMEM;
    item = regions->paths.list[block];
    item->of_name = of_name;
    item->parent = described->parent;
    item->parent_path = described->parent_path;
    item->depth = described->depth;
    item->is_free = described->is_free;
    *ret_index = block;
    return WM_OK;
}

static int find_further(struct wm_regions *regions, size_t *ret_index)
{
    const struct item described = {
        .parent = NO_INDEX,
        .parent_path = WM_REGION_NO_PATH,
    };
    int status = WM_OK;

    if (regions->further == NO_INDEX)
        status = add_path(regions, FURTHER, &described, FURTHER, &regions->further);
    *ret_index = regions->further;
    return status;
}

static int make_path(struct wm_regions *regions, uint32_t number,
                     const struct wm_region_path *path)
{
    const bool has_parent = path->parent < number;
    const struct item described = {
        .parent = has_parent ? regions->path_items[path->parent] : NO_INDEX,
        .parent_path = has_parent ? path->parent : WM_REGION_NO_PATH,
        .depth = path->depth,
        .is_free = path->is_free,
    };
    char key[16];

    snprintf(key, sizeof(key), "%u", (unsigned)number);
    return add_path(regions, key, &described, path->name ? path->name : "",
                    &regions->path_items[number]);
}

/* NO_INDEX: there is none. */
static size_t item_of(const struct wm_regions *regions, uint32_t number)
{
    if (number >= WM_REGIONS_MOST)
        return regions->further;
    return number < regions->path_item_count ? regions->path_items[number] : NO_INDEX;
}

static int reserve_path(struct wm_regions *regions, uint32_t number)
{
    while (regions->path_item_count <= number) {
        if (reserve(&regions->path_items, regions->path_item_count,
                    &regions->path_item_room, sizeof(*regions->path_items)) < 0)
            return WM_ENOMEM;
        regions->path_items[regions->path_item_count++] = NO_INDEX;
    }
    return WM_OK;
}

/* Those around it are made first, which have lower numbers. */
static int find_path(struct wm_regions *regions, uint32_t number,
                     const struct wm_region_paths *paths, size_t *ret_index)
{
    if (number >= WM_REGIONS_MOST)
        return find_further(regions, ret_index);
    if (reserve_path(regions, number) < 0)
        return WM_ENOMEM;
    while (regions->path_items[number] == NO_INDEX) {
        uint32_t at = number;
        const struct wm_region_path *path = paths->find(paths->context, at);
        while (path->parent < at && regions->path_items[path->parent] == NO_INDEX) {
            at = path->parent;
            path = paths->find(paths->context, at);
        }
        if (make_path(regions, at, path) < 0)
            return WM_ENOMEM;
    }
    *ret_index = regions->path_items[number];
    return WM_OK;
}

/* The path right around one that has been found; NO_INDEX: none. */
static size_t find_parent(const struct wm_regions *regions, uint32_t number, size_t index,
                          const struct wm_region_paths *paths)
{
    if (number < WM_REGIONS_MOST)
        return regions->paths.list[index]->parent;
    uint32_t parent = paths->find(paths->context, number)->parent;
    return parent < number ? item_of(regions, parent) : NO_INDEX;
}

static void advance(struct wm_regions *regions, int64_t when_ns)
{
    if (when_ns > regions->end_ns)
        when_ns = regions->end_ns;
    if (!regions->started) {
        regions->started = true;
        regions->now_ns = when_ns;
    }
    if (when_ns <= regions->now_ns)
        return;

    double ns = (double)(when_ns - regions->now_ns);
    if (regions->leaves > 0) {
        double slow = ns / (double)regions->leaves;
        regions->clock.ns += slow;
        regions->clock.squares += slow / (double)regions->leaves;
    } else {
        regions->rest.time[OWN].ns += ns;
        regions->rest.time[OWN].squares += ns;
    }
    regions->now_ns = when_ns;
}

/* The times of an item up to now. */
static void times_of(const struct wm_regions *regions, const struct item *item,
                     struct wm_region_time ret_times[PARTS])
{
    const struct clock *clock = &regions->clock;
    double leaves = (double)item->leaves;

    memcpy(ret_times, item->time, sizeof(item->time));
    if (item->open > 0) {
        ret_times[OPEN].ns += (double)(regions->now_ns - item->open_from_ns);
        ret_times[OPEN].squares = ret_times[OPEN].ns;
    }
    if (item->leaves > 0) {
        ret_times[OWN].ns += leaves * (clock->ns - item->own_from.ns);
        ret_times[OWN].squares +=
            leaves * leaves * (clock->squares - item->own_from.squares);
    }
}

/* Brings an item up to now, before something in it changes. */
static void settle(struct wm_regions *regions, struct item *item)
{
    struct wm_region_time times[PARTS];

    times_of(regions, item, times);
    memcpy(item->time, times, sizeof(item->time));
    item->open_from_ns = regions->now_ns;
    item->own_from = regions->clock;
}

static void touch(struct wm_regions *regions, struct item *item)
{
    settle(regions, item);
    if (!item->is_active)
        regions->active[regions->active_count++] = item;
    item->is_active = true;
}

/* A call that is lost from a recording, though calls inside it are not, is not there. */
static void count_leaves(struct wm_regions *regions, struct item *path)
{
    struct item *name = regions->names.list[path->of_name];
    uint64_t leaves = path->open > path->inside ? path->open - path->inside : 0;

    name->leaves += leaves - path->leaves;
    regions->leaves += leaves - path->leaves;
    path->leaves = leaves;
}

static void add_call(struct item *item)
{
    if (item->open++ == 0)
        item->openings++;
}

static void touch_path(struct wm_regions *regions, struct item *path)
{
    touch(regions, path);
    touch(regions, regions->names.list[path->of_name]);
}

static int open_call(struct wm_regions *regions, const struct wm_region_edge *edge,
                     const struct wm_region_paths *paths)
{
    struct wm_open_call call = {
        .start_ns = edge->start_ns,
        .path = edge->path,
        .thread = edge->thread,
    };

    if (find_path(regions, edge->path, paths, &call.item) < 0)
        return WM_ENOMEM;
    call.parent = find_parent(regions, edge->path, call.item, paths);
    struct item *path = regions->paths.list[call.item];

    /* It is open everywhere or nowhere: the edge comes again. */
    if (wm_blocks_reserve(regions->path_blocks) < 0 ||
        wm_blocks_reserve(regions->name_blocks) < 0 ||
        wm_open_calls_reserve(&regions->calls) < 0 ||
        wm_blocks_open(regions->path_blocks, call.item, regions->now_ns, &call.of_path) <
            0 ||
        wm_blocks_open(regions->name_blocks, path->of_name, regions->now_ns,
                       &call.of_name) < 0 ||
        wm_open_calls_add(&regions->calls, &call) < 0)
        return WM_ENOMEM;

    touch_path(regions, path);
    add_call(path);
    add_call(regions->names.list[path->of_name]);
    count_leaves(regions, path);
    if (call.parent != NO_INDEX) {
        struct item *parent = regions->paths.list[call.parent];
        touch_path(regions, parent);
        parent->inside++;
        count_leaves(regions, parent);
    }
    return WM_OK;
}

static void close_call(struct wm_regions *regions, const struct wm_region_edge *edge)
{
    struct wm_open_call call = {
        .start_ns = edge->start_ns,
        .path = edge->path,
        .thread = edge->thread,
    };
    double seconds = edge->kind == WM_REGION_CLOSES
                         ? wm_stats_seconds(edge->start_ns, edge->when_ns)
                         : NAN;

    if (!wm_open_calls_take(&regions->calls, &call))
        return;
    struct item *path = regions->paths.list[call.item];
    wm_blocks_close(regions->path_blocks, call.of_path, regions->now_ns, seconds);
    wm_blocks_close(regions->name_blocks, call.of_name, regions->now_ns, seconds);

    touch_path(regions, path);
    path->open--;
    regions->names.list[path->of_name]->open--;
    count_leaves(regions, path);
    if (call.parent != NO_INDEX) {
        struct item *parent = regions->paths.list[call.parent];
        touch_path(regions, parent);
        parent->inside--;
        count_leaves(regions, parent);
    }
}

static void take_parts(struct item *item, const struct wm_region_meter *meter,
                       enum wm_region_resource resource,
                       const struct wm_region_totals *totals)
{
    for (int part = 0; part < PARTS; part++)
        wm_region_share_take(&item->shares[part][resource], meter, &item->time[part],
                             totals->when_ns, totals->used[resource]);
}

static void take_all(const struct items *items, const struct wm_region_meter *meter,
                     enum wm_region_resource resource,
                     const struct wm_region_totals *totals)
{
    for (size_t i = 0; i < items->count; i++)
        take_parts(items->list[i], meter, resource, totals);
}

static void take_resource(struct wm_regions *regions, enum wm_region_resource resource,
                          const struct wm_region_totals *totals)
{
    struct wm_region_meter *meter = &regions->meters[resource];
    double used = totals->used[resource];

    meter->is_absent = isnan(totals->period_s[resource]);
    if (!meter->is_absent)
        meter->period_s = totals->period_s[resource];
    if (!meter->started) {
        wm_region_meter_start(meter, totals->when_ns, used);
        regions->rest.shares[OWN][resource].used = meter->base;
        return;
    }
    meter->waited++;
    if (!wm_region_meter_is_due(meter, totals->when_ns, used))
        return;

    if (meter->waited > MOST_WAITED) {
        take_all(&regions->paths, meter, resource, totals);
        take_all(&regions->names, meter, resource, totals);
    } else {
        for (size_t i = 0; i < regions->active_count; i++)
            take_parts(regions->active[i], meter, resource, totals);
    }
    take_parts(&regions->rest, meter, resource, totals);
    wm_region_meter_take(meter, totals->when_ns, used);
}

/* Whether no tick has to look at it until it opens again. */
static bool is_still(const struct wm_regions *regions, const struct item *item)
{
    if (item->open > 0)
        return false;
    for (int resource = 0; resource < WM_REGION_RESOURCES; resource++) {
        const struct wm_region_meter *meter = &regions->meters[resource];
        if (meter->is_absent || meter->waited > MOST_WAITED)
            continue;
        for (int part = 0; part < PARTS; part++) {
            if (!wm_region_share_is_still(&item->shares[part][resource], &item->time[part]))
                return false;
        }
    }
    return true;
}

static void drop_still(struct wm_regions *regions)
{
    size_t kept = 0;

    for (size_t i = 0; i < regions->active_count; i++) {
        struct item *item = regions->active[i];
        item->is_active = !is_still(regions, item);
        if (item->is_active)
            regions->active[kept++] = item;
    }
    regions->active_count = kept;
}

static void take_tick(struct wm_regions *regions, const struct waiting_tick *tick)
{
    struct wm_region_totals totals = tick->totals;

    advance(regions, totals.when_ns);
    totals.when_ns = regions->now_ns;
    for (size_t i = 0; i < regions->active_count; i++) {
        settle(regions, regions->active[i]);
        regions->active[i]->own_from = (struct clock) { 0 };
    }
    regions->clock = (struct clock) { 0 };
    for (int resource = 0; resource < WM_REGION_RESOURCES; resource++)
        take_resource(regions, (enum wm_region_resource)resource, &totals);
    if (tick->has_timepoint && regions->calls.count > 0) {
        wm_blocks_timepoint(regions->path_blocks, &tick->timepoint);
        wm_blocks_timepoint(regions->name_blocks, &tick->timepoint);
    }
    drop_still(regions);
}

static void take_ticks(struct wm_regions *regions, int64_t until_ns)
{
    while (regions->tick_count > 0 &&
           regions->ticks[regions->first_tick].totals.when_ns <= until_ns) {
        take_tick(regions, &regions->ticks[regions->first_tick]);
        regions->first_tick = (regions->first_tick + 1) % regions->tick_room;
        regions->tick_count--;
    }
    if (regions->tick_count == 0)
        regions->first_tick = 0; /* where memory has been used already */
}

/* An order of their own, so that which of two came first does not matter. */
static int compare_edges(const void *left, const void *right)
{
    const struct wm_region_edge *one = left, *other = right;

    if (one->start_ns != other->start_ns)
        return one->start_ns > other->start_ns ? -1 : 1;
    if (one->path != other->path)
        return one->path > other->path ? -1 : 1;
    if (one->thread != other->thread)
        return one->thread > other->thread ? -1 : 1;
    return (one->kind > other->kind) - (one->kind < other->kind);
}

/* The moment of what closes is over. */
static void close_calls(struct wm_regions *regions)
{
    if (regions->closing_count == 0)
        return;
    int64_t when_ns = regions->closing[0].when_ns;
    take_ticks(regions, when_ns);
    advance(regions, when_ns);
    if (regions->closing_count > 1)
        qsort(regions->closing, regions->closing_count, sizeof(*regions->closing),
              compare_edges);
    for (size_t i = 0; i < regions->closing_count; i++)
        close_call(regions, &regions->closing[i]);
    regions->closing_count = 0;
}

/* Adds `number` to a sorted list of few. */
static int note_number(uint32_t **list, size_t *count, size_t *room, uint32_t number)
{
    size_t low = 0, high = *count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if ((*list)[middle] < number)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < *count && (*list)[low] == number)
        return WM_OK;
    if (reserve(list, *count, room, sizeof(**list)) < 0)
        return WM_ENOMEM;
    memmove(*list + low + 1, *list + low, (*count - low) * sizeof(**list));
    (*list)[low] = number;
    ++*count;
    return WM_OK;
}

static int note_thread(struct wm_regions *regions, uint32_t thread, uint32_t process)
{
    if (note_number(&regions->threads, &regions->thread_count, &regions->thread_room,
                    thread) < 0)
        return WM_ENOMEM;
    return note_number(&regions->processes, &regions->process_count, &regions->process_room,
                       process);
}

int wm_regions_edge(struct wm_regions *regions, const struct wm_region_edge *edge,
                    uint32_t process, const struct wm_region_paths *paths)
{
    int64_t when_ns = edge->when_ns;

    if (regions->closing_count > 0 && when_ns > regions->closing[0].when_ns)
        close_calls(regions);
    take_ticks(regions, when_ns - 1);
    if (edge->kind == WM_REGION_OPENS) {
        advance(regions, when_ns);
        if (note_thread(regions, edge->thread, process) < 0)
            return WM_ENOMEM;
        return open_call(regions, edge, paths);
    }

    if (reserve(&regions->closing, regions->closing_count, &regions->closing_room,
                sizeof(*regions->closing)) < 0)
        return WM_ENOMEM;
    regions->closing[regions->closing_count++] = *edge;
    return WM_OK;
}

void wm_regions_tick(struct wm_regions *regions, const struct wm_region_totals *totals,
                     const struct wm_timepoint *timepoint)
{
    if (regions->tick_count == regions->tick_room)
        wm_regions_complete(regions, regions->ticks[regions->first_tick].totals.when_ns);

    size_t at = (regions->first_tick + regions->tick_count++) % regions->tick_room;
    regions->ticks[at] = (struct waiting_tick) { .totals = *totals };
    if (timepoint) {
        regions->ticks[at].timepoint = *timepoint;
        regions->ticks[at].has_timepoint = true;
    }
}

void wm_regions_complete(struct wm_regions *regions, int64_t when_ns)
{
    if (regions->closing_count > 0 && regions->closing[0].when_ns <= when_ns)
        close_calls(regions);
    take_ticks(regions, when_ns);
}

void wm_regions_end(struct wm_regions *regions, int64_t when_ns)
{
    regions->end_ns = when_ns > regions->now_ns ? when_ns : regions->now_ns;
}

int64_t wm_regions_now_ns(const struct wm_regions *regions)
{
    return regions->now_ns;
}

size_t wm_regions_path_count(const struct wm_regions *regions)
{
    return regions->paths.count;
}

size_t wm_regions_name_count(const struct wm_regions *regions)
{
    return regions->names.count;
}

size_t wm_regions_thread_count(const struct wm_regions *regions)
{
    return regions->thread_count;
}

size_t wm_regions_process_count(const struct wm_regions *regions)
{
    return regions->process_count;
}

static void find_cost(const struct wm_regions *regions, const struct item *item,
                      enum part part, const struct wm_region_time *time,
                      const struct wm_region_whole *wholes, struct wm_region_cost *ret_cost)
{
    ret_cost->seconds = time->ns / 1e9;
    for (int resource = 0; resource < WM_REGION_RESOURCES; resource++)
        wm_region_share_result(&item->shares[part][resource], &regions->meters[resource],
                               time, regions->now_ns, item->openings, &wholes[resource],
                               &ret_cost->uses[resource]);
}

static void find_figures(const struct wm_regions *regions, const struct item *item,
                         const struct wm_block *block, const struct wm_region_whole *wholes,
                         struct wm_region_figures *ret_figures)
{
    struct wm_region_time times[PARTS];

    times_of(regions, item, times);
    *ret_figures = (struct wm_region_figures) {
        .name = item->name,
        .block = block,
        .of_name = item->of_name,
        .parent = item->parent_path,
        .depth = item->depth,
        .is_free = item->is_free,
        .openings = item->openings,
    };
    find_cost(regions, item, OPEN, &times[OPEN], wholes, &ret_figures->open);
    find_cost(regions, item, OWN, &times[OWN], wholes, &ret_figures->own);
}

bool wm_regions_path(const struct wm_regions *regions, uint32_t path,
                     const struct wm_region_whole *wholes,
                     struct wm_region_figures *ret_figures)
{
    size_t index = item_of(regions, path);

    if (index == NO_INDEX)
        return false;
    find_figures(regions, regions->paths.list[index],
                 wm_blocks_get(regions->path_blocks, index), wholes, ret_figures);
    return true;
}

void wm_regions_name(const struct wm_regions *regions, size_t name,
                     const struct wm_region_whole *wholes,
                     struct wm_region_figures *ret_figures)
{
    find_figures(regions, regions->names.list[name],
                 wm_blocks_get(regions->name_blocks, name), wholes, ret_figures);
}

void wm_regions_rest(const struct wm_regions *regions, const struct wm_region_whole *wholes,
                     struct wm_region_cost *ret_rest)
{
    find_cost(regions, &regions->rest, OWN, &regions->rest.time[OWN], wholes, ret_rest);

    /* Of a run in which no time passed all is the rest. */
    for (int resource = 0; resource < WM_REGION_RESOURCES; resource++) {
        const struct wm_region_meter *meter = &regions->meters[resource];
        if (meter->count == 0 && regions->now_ns <= meter->from_ns)
            ret_rest->uses[resource].used += wholes[resource].used - meter->base;
    }
}
