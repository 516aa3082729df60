/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_regions.c - inclusive and exclusive time of regions.
 *
 * The innermost calls share each moment evenly. So there is a clock that runs slower the
 * more of them there are: what passes on it while a region has an innermost call is the
 * exclusive time of that call, and an edge concerns no region but its own and the one
 * around it. A call is innermost while no other is open right inside it, so it is enough to
 * count calls for each path, whatever thread they are of.
 */
#include "analyze/region/analyze_regions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/region/analyze_region_items.h"
#include "base/base_array.h"
#include "base/base_map.h"
#include "record/record_stats.h"

/* A region may be open since a little before the first tick. */
#define EARLY_NS INT64_C(100000000)

/* A tick goes over the regions that have closed since a sensor last had something new;
 * after so many ticks without that it no longer does, and goes over all of them when the
 * sensor has. */
#define MOST_WAITED 64

struct waiting_tick {
    int64_t when_ns;
    bool has_totals, has_timepoint;
    struct wm_region_totals totals;
    struct wm_timepoint timepoint;
};

struct wm_regions {
    struct wm_region_items items;
    struct wm_open_calls calls;
    struct wm_blocks blocks; /* of all names, and of paths */
    bool paths_have_blocks;

    struct wm_region_item **active; /* has room for all of them */
    size_t active_count, active_room;

    bool started;
    int64_t now_ns;
    int64_t begin_ns, end_ns; /* no time passes before the one and after the other */
    uint64_t early_count, folded_count;

    /* The clock of exclusive time, and that of its squares. They start again at each tick,
     * as the sum of many small steps is the less exact the greater it gets. */
    struct wm_region_time clock;
    uint64_t leaves; /* of all paths */
    struct wm_region_item rest;
    struct wm_region_meter meters[WM_REGION_RESOURCES];

    struct waiting_tick *ticks; /* a ring */
    size_t tick_room, first_tick, tick_count;

    /* What closes now; first comes what else is of this moment. */
    struct closing {
        struct wm_region_edge edge;
        struct wm_region_fold fold; /* `calls` 0: none */
    } * closing;
    size_t closing_count, closing_room;

    bool is_clocked;      /* a call is */
    bool has_clocks;      /* the CPU time of paths and names is that by the clocks */
    double exclusive_cpu; /* of all paths then */
    struct wm_region_line line;
    struct wm_region_rates rates; /* that energies follow it at */
    bool is_package_alone;        /* all of the tree's energy is the packages' */
    double left_s;                /* CPU time that no clock tells of */

    struct wm_map threads, processes; /* sets of those that had a region open */
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

int wm_regions_new(int64_t interval_ns, uint32_t most_paths,
                   struct wm_regions **ret_regions, struct wm_error *err)
{
    struct wm_regions *regions = calloc(1, sizeof(*regions));

    if (regions) {
        regions->begin_ns = INT64_MIN;
        regions->end_ns = INT64_MAX;
        regions->paths_have_blocks = most_paths <= WM_REGIONS_MOST;
        regions->tick_room = find_room(interval_ns);
        regions->ticks = calloc(regions->tick_room, sizeof(*regions->ticks));
        wm_region_items_init(&regions->items, most_paths);
    }
    if (!regions || !regions->ticks || wm_blocks_reserve(&regions->blocks) < 0) {
        wm_regions_free(regions);
        return wm_fail_memory(err, "regions");
    }
    *ret_regions = regions;
    return WM_OK;
}

void wm_regions_free(struct wm_regions *regions)
{
    if (!regions)
        return;
    wm_region_items_release(&regions->items);
    wm_open_calls_release(&regions->calls);
    wm_blocks_release(&regions->blocks);
    free(regions->active);
    free(regions->ticks);
    free(regions->closing);
    wm_map_release(&regions->threads);
    wm_map_release(&regions->processes);
    free(regions);
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
        regions->rest.time[WM_REGION_EXCLUSIVE].ns += ns;
        regions->rest.time[WM_REGION_EXCLUSIVE].squares += ns;
    }
    regions->now_ns = when_ns;
}

/* What has come to an item's times up to now. */
static void add_times(const struct wm_regions *regions, const struct wm_region_item *item,
                      struct wm_region_time times[WM_REGION_PARTS])
{
    const struct wm_region_time *clock = &regions->clock;
    double leaves = (double)item->leaves;

    if (item->open > 0) {
        times[WM_REGION_INCLUSIVE].ns += (double)(regions->now_ns - item->open_from_ns);
        times[WM_REGION_INCLUSIVE].squares = times[WM_REGION_INCLUSIVE].ns;
    }
    if (item->leaves > 0) {
        times[WM_REGION_EXCLUSIVE].ns += leaves * (clock->ns - item->exclusive_from.ns);
        times[WM_REGION_EXCLUSIVE].squares +=
            leaves * leaves * (clock->squares - item->exclusive_from.squares);
    }
}

/* Brings an item up to now, before something in it changes. */
static void settle(struct wm_regions *regions, struct wm_region_item *item)
{
    add_times(regions, item, item->time);
    item->open_from_ns = regions->now_ns;
    item->exclusive_from = regions->clock;
}

static void touch(struct wm_regions *regions, struct wm_region_item *item)
{
    settle(regions, item);
    if (!item->is_active)
        regions->active[regions->active_count++] = item;
    item->is_active = true;
}

/* A call that is lost from a recording, though calls inside it are not, is not there. */
static void count_leaves(struct wm_regions *regions, struct wm_region_item *path)
{
    struct wm_region_item *name = regions->items.names.list[path->of_name];
    uint64_t leaves = path->open > path->inside ? path->open - path->inside : 0;

    name->leaves += leaves - path->leaves;
    regions->leaves += leaves - path->leaves;
    path->leaves = leaves;
}

static void begin_call(struct wm_regions *regions, struct wm_region_item *item,
                       bool has_block)
{
    if (item->open++ > 0)
        return;
    item->openings++;
    if (has_block)
        wm_blocks_open(&regions->blocks, &item->block);
}

static double seconds_of(const struct wm_region_edge *edge)
{
    return edge->recorded_s > 0 ? edge->recorded_s
                                : wm_stats_seconds(edge->start_ns, edge->when_ns);
}

static void end_call(struct wm_regions *regions, struct wm_region_item *item,
                     bool has_block, const struct wm_region_edge *edge, bool has_timepoint)
{
    if (edge->kind == WM_REGION_CLOSES && edge->fold)
        wm_block_add_calls(&item->block, edge->fold, has_timepoint);
    else if (edge->kind == WM_REGION_CLOSES)
        wm_block_add_call(&item->block, seconds_of(edge), has_timepoint);
    else
        item->block.unfinished++;
    if (--item->open == 0 && has_block)
        wm_blocks_close(&regions->blocks, &item->block);
}

static void add_clocked(struct wm_regions *regions, struct wm_region_item *path,
                        const struct wm_region_edge *edge)
{
    uint64_t ns = (uint64_t)(edge->when_ns - edge->start_ns);

    path->start_sum -= (uint64_t)edge->start_ns;
    regions->folded_count += edge->fold ? edge->fold->calls : 0;
    if (edge->clocked == 0) {
        path->clocked.others_ns += ns;
        return;
    }
    regions->is_clocked = true;
    path->clocked.calls++;
    path->clocked.ns += ns;
    path->clocked.cpu_ns += edge->clocked - 1;
}

static void touch_path(struct wm_regions *regions, struct wm_region_item *path)
{
    touch(regions, path);
    touch(regions, regions->items.names.list[path->of_name]);
}

static int reserve_active(struct wm_regions *regions)
{
    size_t all = regions->items.paths.count + regions->items.names.count;
    int status = WM_OK;

    while (status == WM_OK && regions->active_room < all)
        status = wm_array_reserve(&regions->active, regions->active_room,
                                  &regions->active_room, sizeof(*regions->active));
    return status;
}

/* A path has one call more, or one less, right inside. */
static void change_inside(struct wm_regions *regions, size_t parent, int change)
{
    if (parent == WM_REGION_NO_ITEM)
        return;
    struct wm_region_item *path = regions->items.paths.list[parent];
    touch_path(regions, path);
    path->inside += (uint64_t)change;
    count_leaves(regions, path);
}

static struct wm_open_call call_of(const struct wm_region_edge *edge)
{
    return (struct wm_open_call) {
        .start_ns = edge->start_ns,
        .path = edge->path,
        .thread = edge->thread,
    };
}

static int open_call(struct wm_regions *regions, const struct wm_region_edge *edge,
                     const struct wm_region_paths *paths)
{
    struct wm_region_items *items = &regions->items;
    struct wm_open_call call = call_of(edge);

    /* It is open everywhere or nowhere: the edge comes again. */
    if (wm_region_items_find(items, edge->path, paths, &call.item) < 0 ||
        reserve_active(regions) < 0 || wm_blocks_reserve(&regions->blocks) < 0)
        return WM_ENOMEM;
    call.parent = wm_region_items_parent(items, edge->path, call.item, paths);
    call.timepoints = regions->blocks.timepoints;
    if (wm_open_calls_add(&regions->calls, &call) < 0)
        return WM_ENOMEM;

    struct wm_region_item *path = items->paths.list[call.item];
    touch_path(regions, path);
    begin_call(regions, path, regions->paths_have_blocks);
    path->start_sum += (uint64_t)edge->start_ns;
    begin_call(regions, items->names.list[path->of_name], true);
    count_leaves(regions, path);
    change_inside(regions, call.parent, 1);
    return WM_OK;
}

/* It is only counted: nobody knows how long it went on. */
static int count_unfinished(struct wm_regions *regions, const struct wm_region_edge *edge,
                            const struct wm_region_paths *paths)
{
    struct wm_region_items *items = &regions->items;
    size_t item;

    if (wm_region_items_find(items, edge->path, paths, &item) < 0)
        return WM_ENOMEM;
    items->paths.list[item]->block.unfinished++;
    items->names.list[items->paths.list[item]->of_name]->block.unfinished++;
    return WM_OK;
}

static void close_call(struct wm_regions *regions, const struct wm_region_edge *edge)
{
    struct wm_open_call call = call_of(edge);

    if (!wm_open_calls_take(&regions->calls, &call))
        return;
    bool has_timepoint = regions->blocks.timepoints != call.timepoints;
    struct wm_region_item *path = regions->items.paths.list[call.item];
    touch_path(regions, path);
    end_call(regions, path, regions->paths_have_blocks, edge, has_timepoint);
    add_clocked(regions, path, edge);
    end_call(regions, regions->items.names.list[path->of_name], true, edge, has_timepoint);
    count_leaves(regions, path);
    change_inside(regions, call.parent, -1);
}

static void take_parts(struct wm_region_item *item, const struct wm_region_meter *meter,
                       enum wm_region_resource resource,
                       const struct wm_region_totals *totals)
{
    for (int part = 0; part < WM_REGION_PARTS; part++)
        wm_region_share_take(&item->shares[part][resource], meter, &item->time[part],
                             totals->when_ns, totals->used[resource]);
}

static void take_all(const struct wm_region_item_list *items,
                     const struct wm_region_meter *meter, enum wm_region_resource resource,
                     const struct wm_region_totals *totals)
{
    for (size_t i = 0; i < items->count; i++)
        take_parts(items->list[i], meter, resource, totals);
}

static void take_resource(struct wm_regions *regions, enum wm_region_resource resource,
                          const struct wm_region_totals *totals)
{
    struct wm_region_meter *meter = &regions->meters[resource];
    bool is_known = totals->known & WM_REGION_BIT(resource);
    double used = is_known ? totals->used[resource] : 0;

    meter->is_absent = !(totals->measured & WM_REGION_BIT(resource));
    if (!meter->is_absent)
        meter->period_s = totals->period_s[resource];
    if (!meter->started) {
        wm_region_meter_start(meter, totals->when_ns, used);
        if (resource == WM_REGION_CPU_ENERGY)
            wm_region_line_take(&regions->line, 0, used, totals->busy_s);
        regions->rest.shares[WM_REGION_EXCLUSIVE][resource].used = meter->base;
        return;
    }
    meter->waited++;
    if (!is_known || !wm_region_meter_is_due(meter, totals->when_ns, used))
        return;

    if (meter->waited > MOST_WAITED) {
        take_all(&regions->items.paths, meter, resource, totals);
        take_all(&regions->items.names, meter, resource, totals);
    } else {
        for (size_t i = 0; i < regions->active_count; i++)
            take_parts(regions->active[i], meter, resource, totals);
    }
    take_parts(&regions->rest, meter, resource, totals);
    wm_region_meter_take(meter, totals->when_ns, used);
    if (resource == WM_REGION_CPU_ENERGY)
        wm_region_line_take(&regions->line, meter->last_s, used, totals->busy_s);
}

/* Whether no tick has to go over it until it opens again. */
static bool is_still(const struct wm_regions *regions, const struct wm_region_item *item)
{
    if (item->open > 0)
        return false;
    for (int resource = 0; resource < WM_REGION_RESOURCES; resource++) {
        const struct wm_region_meter *meter = &regions->meters[resource];
        if (meter->is_absent || meter->waited > MOST_WAITED)
            continue;
        for (int part = 0; part < WM_REGION_PARTS; part++) {
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
        struct wm_region_item *item = regions->active[i];
        item->is_active = !is_still(regions, item);
        if (item->is_active)
            regions->active[kept++] = item;
    }
    regions->active_count = kept;
}

static void take_totals(struct wm_regions *regions, struct wm_region_totals totals)
{
    advance(regions, totals.when_ns);
    totals.when_ns = regions->now_ns;
    for (size_t i = 0; i < regions->active_count; i++) {
        settle(regions, regions->active[i]);
        regions->active[i]->exclusive_from = (struct wm_region_time) { 0 };
    }
    regions->clock = (struct wm_region_time) { 0 };
    for (int resource = 0; resource < WM_REGION_RESOURCES; resource++)
        take_resource(regions, (enum wm_region_resource)resource, &totals);
    drop_still(regions);
}

static void take_ticks(struct wm_regions *regions, int64_t until_ns)
{
    while (regions->tick_count > 0 &&
           regions->ticks[regions->first_tick].when_ns <= until_ns) {
        const struct waiting_tick *tick = &regions->ticks[regions->first_tick];
        if (tick->has_totals)
            take_totals(regions, tick->totals);
        if (tick->has_timepoint)
            wm_blocks_timepoint(&regions->blocks, &tick->timepoint);
        regions->first_tick = (regions->first_tick + 1) % regions->tick_room;
        regions->tick_count--;
    }
    if (regions->tick_count == 0)
        regions->first_tick = 0; /* where memory has been used already */
}

/* An order of their own, so that which of two came first does not matter. */
static int compare_edges(const void *left, const void *right)
{
    const struct wm_region_edge *one = &((const struct closing *)left)->edge;
    const struct wm_region_edge *other = &((const struct closing *)right)->edge;

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
    int64_t when_ns = regions->closing[0].edge.when_ns;
    take_ticks(regions, when_ns);
    advance(regions, when_ns);
    if (regions->closing_count > 1)
        qsort(regions->closing, regions->closing_count, sizeof(*regions->closing),
              compare_edges);
    for (size_t i = 0; i < regions->closing_count; i++) {
        struct closing *closing = &regions->closing[i];
        closing->edge.fold = closing->fold.calls > 0 ? &closing->fold : NULL;
        close_call(regions, &closing->edge);
    }
    regions->closing_count = 0;
}

static int note_number(struct wm_map *numbers, uint32_t number)
{
    if (wm_map_find(numbers, number, 0) != WM_MAP_NONE)
        return WM_OK;
    if (wm_map_reserve(numbers) < 0)
        return WM_ENOMEM;
    wm_map_put(numbers, number, 0, 0);
    return WM_OK;
}

static int take_edge(struct wm_regions *regions, const struct wm_region_edge *edge,
                     uint32_t process, const struct wm_region_paths *paths)
{
    if (regions->closing_count > 0 && edge->when_ns > regions->closing[0].edge.when_ns)
        close_calls(regions);
    take_ticks(regions, edge->when_ns - 1);
    if (edge->kind == WM_REGION_OPENS) {
        advance(regions, edge->when_ns);
        if (note_number(&regions->threads, edge->thread) < 0 ||
            note_number(&regions->processes, process) < 0)
            return WM_ENOMEM;
        return open_call(regions, edge, paths);
    }
    if (edge->kind == WM_REGION_UNFINISHED)
        return count_unfinished(regions, edge, paths);

    if (wm_array_reserve(&regions->closing, regions->closing_count, &regions->closing_room,
                         sizeof(*regions->closing)) < 0)
        return WM_ENOMEM;
    struct closing *closing = &regions->closing[regions->closing_count++];
    *closing = (struct closing) { .edge = *edge };
    if (edge->fold)
        closing->fold = *edge->fold;
    return WM_OK;
}

int wm_regions_edge(struct wm_regions *regions, const struct wm_region_edge *edge,
                    uint32_t process, const struct wm_region_paths *paths)
{
    struct wm_region_edge held = *edge;

    if (held.start_ns < regions->begin_ns)
        held.start_ns = regions->begin_ns;
    if (held.when_ns < held.start_ns)
        held.when_ns = held.start_ns;
    int status = take_edge(regions, &held, process, paths);
    if (status == WM_OK && held.kind == WM_REGION_OPENS)
        regions->early_count += held.start_ns - edge->start_ns > EARLY_NS;
    return status;
}

void wm_regions_tick(struct wm_regions *regions, const struct wm_region_totals *totals,
                     const struct wm_timepoint *timepoint)
{
    if (regions->tick_count == regions->tick_room)
        wm_regions_complete(regions, regions->ticks[regions->first_tick].when_ns);

    size_t at = (regions->first_tick + regions->tick_count++) % regions->tick_room;
    struct waiting_tick *tick = &regions->ticks[at];
    tick->when_ns = totals ? totals->when_ns : timepoint->when_ns;
    tick->has_totals = totals != NULL;
    tick->has_timepoint = timepoint != NULL;
    if (totals)
        tick->totals = *totals;
    if (timepoint)
        tick->timepoint = *timepoint;
}

bool wm_regions_is_behind(const struct wm_regions *regions)
{
    return regions->tick_count > regions->tick_room / 2;
}

void wm_regions_complete(struct wm_regions *regions, int64_t when_ns)
{
    if (regions->closing_count > 0 && regions->closing[0].edge.when_ns <= when_ns)
        close_calls(regions);
    take_ticks(regions, when_ns);
}

void wm_regions_begin(struct wm_regions *regions, int64_t when_ns)
{
    regions->begin_ns = when_ns;
}

void wm_regions_end(struct wm_regions *regions, int64_t when_ns)
{
    regions->end_ns = when_ns > regions->now_ns ? when_ns : regions->now_ns;
}

const struct wm_blocks *wm_regions_blocks(struct wm_regions *regions)
{
    wm_blocks_settle(&regions->blocks);
    return &regions->blocks;
}

struct wm_regions_facts wm_regions_facts(const struct wm_regions *regions)
{
    return (struct wm_regions_facts) {
        .paths = regions->items.paths.count,
        .names = regions->items.names.count,
        .threads = regions->threads.count,
        .processes = regions->processes.count,
        .folded = regions->folded_count,
        .early = regions->early_count,
        .now_ns = regions->now_ns,
    };
}

/* What an item has of a resource by its time, whoever used it. */
static struct wm_region_use divide(const struct wm_regions *regions,
                                   const struct wm_region_item *item,
                                   enum wm_region_part part,
                                   enum wm_region_resource resource,
                                   const struct wm_region_whole *wholes)
{
    struct wm_region_time times[WM_REGION_PARTS];
    struct wm_region_use use;

    memcpy(times, item->time, sizeof(times));
    add_times(regions, item, times);
    wm_region_share_result(&item->shares[part][resource], &regions->meters[resource],
                           &times[part], regions->now_ns, item->openings, &wholes[resource],
                           NULL, &use);
    return use;
}

/* Time of calls that are open, up to now. */
static double open_s(const struct wm_regions *regions, const struct wm_region_item *path)
{
    uint64_t ns = path->open * (uint64_t)regions->now_ns - path->start_sum;

    return (int64_t)ns > 0 ? (double)ns / 1e9 : 0;
}

/* The part of an item's own time in which others were innermost, too. */
static double shared_part(const struct wm_region_time *time)
{
    return time->ns > 0 ? fmin(2 * (1 - time->squares / time->ns), 1) : 0;
}

/* Calls of an item that are open together, while one is. */
static double calls_at_once(const struct wm_region_item *item,
                            const struct wm_region_time times[WM_REGION_PARTS])
{
    double all_s = item->clocked.s + item->clocked.others_s;
    double any_s = times[WM_REGION_INCLUSIVE].ns / 1e9;

    return any_s > 0 ? fmax(all_s / any_s, 1) : 1;
}

static struct wm_region_by_time by_time_of(struct wm_regions *regions,
                                           struct wm_region_item *item,
                                           const struct wm_region_whole *wholes)
{
    enum wm_region_part part = WM_REGION_EXCLUSIVE;
    const struct wm_region_share *share = &item->shares[part][WM_REGION_CPU_TIME];
    struct wm_region_time times[WM_REGION_PARTS];

    memcpy(times, item->time, sizeof(times));
    add_times(regions, item, times);
    double seconds = times[part].ns / 1e9;
    double weight = seconds > 0 ? times[part].squares / times[part].ns : 1;
    double doubt = seconds > 0 ? fmin(2 * share->doubt_s / seconds, 1) : 0;
    return (struct wm_region_by_time) {
        .item = item,
        .is_rest = item == &regions->rest,
        .seconds = seconds,
        .own_s = weight > 0 ? seconds / weight * calls_at_once(item, times) : 0,
        .cpu_s = divide(regions, item, part, WM_REGION_CPU_TIME, wholes).used.number,
        .shared = shared_part(&times[part]),
        .loose = fmax(shared_part(&times[part]), doubt),
    };
}

/* In the order of their numbers, and the rest behind them. */
static size_t find_by_time(struct wm_regions *regions, const struct wm_region_whole *wholes,
                           struct wm_region_by_time *parts)
{
    const struct wm_region_items *items = &regions->items;
    size_t count = 0;

    for (size_t i = 0; i <= items->number_count; i++) {
        size_t index = i < items->number_count ? items->numbers[i] : items->further;
        if (index != WM_REGION_NO_ITEM)
            parts[count++] = by_time_of(regions, items->paths.list[index], wholes);
    }
    parts[count++] = by_time_of(regions, &regions->rest, wholes);
    return count;
}

static void move_energy(struct wm_regions *regions, enum wm_region_rate rate,
                        enum wm_region_resource energy,
                        const struct wm_region_whole *wholes,
                        struct wm_region_by_time *parts, size_t count)
{
    bool is_moved = regions->has_clocks && wholes[energy].used.known;
    const struct wm_region_move move = {
        .rate = rate,
        .joules_per_s = is_moved ? regions->rates.of[rate] : 0,
        .is_in_turn = regions->threads.count == 1,
    };

    for (size_t i = 0; i < count; i++)
        parts[i].joules =
            divide(regions, parts[i].item, WM_REGION_EXCLUSIVE, energy, wholes).used.number;
    wm_region_cpu_move(&regions->items, &move, parts, count);
}

static int move_energies(struct wm_regions *regions, const struct wm_region_whole *wholes)
{
    struct wm_region_by_time *parts =
        calloc(regions->items.paths.count + 1, sizeof(*parts));

    if (!parts)
        return WM_ENOMEM;
    size_t count = find_by_time(regions, wholes, parts);
    regions->left_s = wm_region_cpu_divide(&regions->items, parts, count);
    move_energy(regions, WM_REGION_RATE_TREE, WM_REGION_TREE_ENERGY, wholes, parts, count);
    for (int rate = WM_REGION_RATE_LOW; rate < WM_REGION_RATES; rate++)
        move_energy(regions, (enum wm_region_rate)rate, WM_REGION_CPU_ENERGY, wholes, parts,
                    count);
    free(parts);
    return WM_OK;
}

/* The CPU time of all paths and names. */
static void find_cpu_time(struct wm_regions *regions, const struct wm_region_whole *wholes)
{
    struct wm_region_items *items = &regions->items;

    for (size_t i = 0; i < items->paths.count; i++) {
        struct wm_region_item *path = items->paths.list[i];
        struct wm_region_time times[WM_REGION_PARTS];
        memcpy(times, path->time, sizeof(times));
        add_times(regions, path, times);
        wm_region_cpu_begin(
            path, divide(regions, path, WM_REGION_INCLUSIVE, WM_REGION_CPU_TIME, wholes),
            open_s(regions, path), times);
    }
    regions->exclusive_cpu = wm_region_cpu_find(items, &wholes[WM_REGION_CPU_TIME]);
}

int wm_regions_clock(struct wm_regions *regions, const struct wm_region_whole *wholes,
                     const struct wm_region_package *package)
{
    bool is_known = wholes[WM_REGION_CPU_TIME].used.known;

    regions->has_clocks = regions->is_clocked && is_known;
    regions->rates = (struct wm_region_rates) { 0 };
    if (!is_known)
        return WM_OK;
    find_cpu_time(regions, wholes);
    if (package)
        regions->rates = wm_region_rates_of(package, &regions->line);
    regions->is_package_alone = package && package->is_alone;
    return move_energies(regions, wholes);
}

/* How many cores are busy on average for regions that no clock names. */
static double loose_cores(const struct wm_regions *regions)
{
    const struct wm_region_meter *meter = &regions->meters[WM_REGION_CPU_TIME];
    double left_s = regions->has_clocks ? regions->left_s : meter->used;

    return meter->seconds > 0 ? left_s / meter->seconds : 0;
}

/* The error if the item's work takes another power per CPU second than the mean: it applies
 * to all joules that move, and to its CPU time while others worked, too. */
static double mix_of(const struct wm_regions *regions, const struct wm_region_item *item,
                     double moved, double rate)
{
    return regions->rates.mix * fmax(fabs(moved), rate * item->moved.shared_s);
}

/* The uncertainty of an item's CPU time. Exclusively it has no more than its own time. */
static double off_s_of(const struct wm_region_item *item, enum wm_region_part part)
{
    const struct wm_region_use *use = &item->clocked.uses[part];
    double most =
        part == WM_REGION_EXCLUSIVE ? fmax(use->used.number, item->moved.own_s) : INFINITY;

    return item->moved.off_s + fmin(use->random, most);
}

/* The tree's part of the packages' energy follows CPU time by definition. The clocks say
 * nothing about memory and GPUs, so with these in the energy the difference has no bound.
 */
static struct wm_region_shift shift_of_tree(const struct wm_regions *regions,
                                            const struct wm_region_item *item,
                                            enum wm_region_part part)
{
    const struct wm_region_rates *rates = &regions->rates;
    bool is_alone = regions->is_package_alone;
    double rate = rates->of[WM_REGION_RATE_TREE];
    double moved = item->moved.j[WM_REGION_RATE_TREE][part];
    double off_s = is_alone ? off_s_of(item, part) : item->moved.off_s;

    return (struct wm_region_shift) {
        .moved = moved,
        .off = mix_of(regions, item, moved, rate) + rate * off_s,
        .difference = INFINITY,
        .residual = is_alone ? rates->residual_w : INFINITY,
        .loose = rate * loose_cores(regions),
    };
}

static struct wm_region_shift shift_of_packages(const struct wm_regions *regions,
                                                const struct wm_region_item *item,
                                                enum wm_region_part part)
{
    const struct wm_region_rates *rates = &regions->rates;
    double middle = rates->of[WM_REGION_RATE_MIDDLE], high = rates->of[WM_REGION_RATE_HIGH];
    double moved = item->moved.j[WM_REGION_RATE_MIDDLE][part];
    double range = fmax(fabs(moved - item->moved.j[WM_REGION_RATE_LOW][part]),
                        fabs(item->moved.j[WM_REGION_RATE_HIGH][part] - moved));

    return (struct wm_region_shift) {
        .moved = moved,
        .off = hypot(range, mix_of(regions, item, moved, middle)) +
               high * off_s_of(item, part),
        .difference =
            high * ceil(regions->meters[WM_REGION_CPU_TIME].most) + rates->residual_w,
        .residual = rates->residual_w,
        .loose = high * loose_cores(regions),
    };
}

/* False if the clocks say nothing about an energy, as of inclusive energy while other
 * threads run. */
static bool find_shift(const struct wm_regions *regions, const struct wm_region_item *item,
                       enum wm_region_part part, enum wm_region_resource resource,
                       struct wm_region_shift *ret_shift)
{
    bool is_tree = resource == WM_REGION_TREE_ENERGY;
    enum wm_region_rate rate = is_tree ? WM_REGION_RATE_TREE : WM_REGION_RATE_MIDDLE;

    if (regions->rates.of[rate] <= 0 || (!is_tree && resource != WM_REGION_CPU_ENERGY) ||
        (part == WM_REGION_INCLUSIVE && regions->threads.count != 1))
        return false;
    *ret_shift = is_tree ? shift_of_tree(regions, item, part)
                         : shift_of_packages(regions, item, part);
    return true;
}

/* Any thread of the tree may have used the tree's part of a GPU. */
static void add_unassigned(const struct wm_region_time *time,
                           const struct wm_region_whole *whole, struct wm_region_use *use)
{
    double used = use->used.number, shared = shared_part(time);

    if (!use->used.known || whole->unassigned <= 0 || shared <= 0)
        return;
    double others = time->ns / time->squares - 1; /* on average */
    double off = shared * whole->unassigned * fabs(used) * fmax(others, 1);
    use->random = fmin(use->random + off, fmax(fabs(used), whole->used.number - used));
}

static void find_cost(const struct wm_regions *regions, const struct wm_region_item *item,
                      enum wm_region_part part, const struct wm_region_time *time,
                      const struct wm_region_whole *wholes, struct wm_region_cost *ret_cost)
{
    struct wm_region_shift shift;

    ret_cost->seconds = time->ns / 1e9;
    for (int i = 0; i < WM_REGION_RESOURCES; i++) {
        enum wm_region_resource resource = (enum wm_region_resource)i;
        bool is_shifted = find_shift(regions, item, part, resource, &shift);
        wm_region_share_result(&item->shares[part][resource], &regions->meters[resource],
                               time, regions->now_ns, item->openings, &wholes[resource],
                               is_shifted ? &shift : NULL, &ret_cost->uses[resource]);
        if (part == WM_REGION_EXCLUSIVE)
            add_unassigned(time, &wholes[resource], &ret_cost->uses[resource]);
    }
    if (item == &regions->rest)
        return;
    struct wm_region_use *cpu = &ret_cost->uses[WM_REGION_CPU_TIME];
    const struct wm_region_clocked *clocked = &item->clocked;
    if (regions->has_clocks) {
        double used = clocked->uses[part].used.number;
        *cpu = clocked->uses[part];
        cpu->random = fmax(
            fmax(used - clocked->bounds[part].least, clocked->bounds[part].most - used), 0);
    } else if (part == WM_REGION_EXCLUSIVE && clocked->unknown > 0) {
        cpu->random = fmax(cpu->random, item->moved.off_s);
    }
}

static void find_figures(const struct wm_regions *regions,
                         const struct wm_region_item *item,
                         const struct wm_region_whole *wholes,
                         struct wm_region_figures *ret_figures)
{
    struct wm_region_time times[WM_REGION_PARTS];

    memcpy(times, item->time, sizeof(times));
    add_times(regions, item, times);
    *ret_figures = (struct wm_region_figures) {
        .name = item->name,
        .block = &item->block,
        .of_name = item->of_name,
        .parent = item->parent_path,
        .depth = item->depth,
        .is_free = item->is_free,
        .openings = item->openings,
        .clocked = item->clocked.calls,
    };
    find_cost(regions, item, WM_REGION_INCLUSIVE, &times[WM_REGION_INCLUSIVE], wholes,
              &ret_figures->inclusive);
    find_cost(regions, item, WM_REGION_EXCLUSIVE, &times[WM_REGION_EXCLUSIVE], wholes,
              &ret_figures->exclusive);
}

bool wm_regions_path(const struct wm_regions *regions, uint32_t path,
                     const struct wm_region_whole *wholes,
                     struct wm_region_figures *ret_figures)
{
    size_t index = wm_region_items_index(&regions->items, path);

    if (index == WM_REGION_NO_ITEM)
        return false;
    find_figures(regions, regions->items.paths.list[index], wholes, ret_figures);
    return true;
}

void wm_regions_name(const struct wm_regions *regions, size_t name,
                     const struct wm_region_whole *wholes,
                     struct wm_region_figures *ret_figures)
{
    find_figures(regions, regions->items.names.list[name], wholes, ret_figures);
}

void wm_regions_rest(const struct wm_regions *regions, const struct wm_region_whole *wholes,
                     struct wm_region_cost *ret_rest)
{
    find_cost(regions, &regions->rest, WM_REGION_EXCLUSIVE,
              &regions->rest.time[WM_REGION_EXCLUSIVE], wholes, ret_rest);

    if (regions->has_clocks) {
        struct wm_known *rest = &ret_rest->uses[WM_REGION_CPU_TIME].used;
        rest->number =
            fmax(wholes[WM_REGION_CPU_TIME].used.number - regions->exclusive_cpu, 0);
        return;
    }

    /* Of a run in which no time passed all is the rest. */
    for (int resource = 0; resource < WM_REGION_RESOURCES; resource++) {
        const struct wm_region_meter *meter = &regions->meters[resource];
        if (meter->count == 0 && regions->now_ns <= meter->from_ns)
            ret_rest->uses[resource].used.number +=
                wholes[resource].used.number - meter->base;
    }
}
