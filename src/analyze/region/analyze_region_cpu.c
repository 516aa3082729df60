/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_region_cpu.c - see analyze_region_cpu.h. */
#include "analyze/region/analyze_region_items.h"

#include <math.h>
#include <string.h>

/* Of a call that is clocked so much of reading the clock is in what it tells, or is not. */
#define CLOCK_OFF_S 1e-6

/* Where the CPU time of all processes is sampled by the kernel's ticks, two of these, and
 * a hundredth, may be missing in it: no reason to change what the threads' clocks told. */
#define TOTAL_OFF_S 0.02
#define TOTAL_OFF 0.01

/* What is left of equal sums of seconds is rounding. */
#define ROUNDING 1e-9

static struct wm_region_item *parent_of(const struct wm_region_items *items,
                                        const struct wm_region_item *path)
{
    return path->parent == WM_REGION_NO_ITEM ? NULL : items->paths.list[path->parent];
}

/* By their numbers, which are the same wherever they come from, and so is each sum: the one
 * of the paths, and then that of all further ones. NULL: none. */
static struct wm_region_item *path_at(const struct wm_region_items *items, size_t number)
{
    size_t index = number < items->number_count ? items->numbers[number] : items->further;

    return index == WM_REGION_NO_ITEM ? NULL : items->paths.list[index];
}

static double all_s_of(const struct wm_region_clocked *clocked)
{
    return clocked->s + clocked->others_s;
}

static double clock_off_s(const struct wm_region_clocked *clocked)
{
    return CLOCK_OFF_S * (double)clocked->calls;
}

void wm_region_cpu_begin(struct wm_region_item *path, struct wm_region_use by_time,
                         double open_s, const struct wm_region_time times[WM_REGION_PARTS])
{
    struct wm_region_clocked *clocked = &path->clocked;

    clocked->cpu_s = (double)clocked->cpu_ns / 1e9;
    clocked->s = (double)clocked->ns / 1e9;
    clocked->others_s = (double)clocked->others_ns / 1e9 + open_s;
    clocked->inside_cpu_s = clocked->inside_s = clocked->inside_off_s = 0;
    clocked->has_started = false;
    double part = all_s_of(clocked) > 0 ? clocked->others_s / all_s_of(clocked) : 0;
    clocked->attributed_s = fmin(part * fmax(by_time.used.number, 0), clocked->others_s);
    clocked->off_s = part * hypot(by_time.systematic, by_time.random);
    /* Calls that were started by themselves may overlap others of their thread. */
    clocked->alone = path->is_free && times[WM_REGION_INCLUSIVE].ns > 0
                         ? times[WM_REGION_EXCLUSIVE].ns / times[WM_REGION_INCLUSIVE].ns
                         : 1;
}

/* What the clocked calls right inside a path have, which its others have not. */
static void sum_inside(struct wm_region_items *items)
{
    for (size_t i = 0; i <= items->number_count; i++) {
        struct wm_region_item *path = path_at(items, i);
        struct wm_region_item *parent = path ? parent_of(items, path) : NULL;
        if (!parent)
            continue;
        parent->clocked.inside_cpu_s += path->clocked.cpu_s;
        parent->clocked.inside_s += path->clocked.s;
        parent->clocked.inside_off_s += clock_off_s(&path->clocked);
        parent->clocked.has_started |= path->is_free;
    }
}

/* CPU time of a path but for the clocked calls right inside, and its time. */
static double left_cpu_s(const struct wm_region_clocked *clocked)
{
    return fmax(clocked->cpu_s + clocked->attributed_s - clocked->inside_cpu_s, 0);
}

static double left_s(const struct wm_region_clocked *clocked)
{
    return fmax(all_s_of(clocked) - clocked->inside_s, 0);
}

/* A path's calls that are not clocked, of which none has more than its time, and the rest
 * of what is around them no more than its own. */
static void attribute(struct wm_region_clocked *path,
                      const struct wm_region_clocked *parent)
{
    double cpu_s = left_cpu_s(parent), s = left_s(parent), others = path->others_s;

    path->attributed_s = s > 0 ? cpu_s * fmin(others / s, 1) : 0;
    double most = fmin(others, cpu_s), least = fmax(cpu_s - fmax(s - others, 0), 0);
    path->off_s = fmax(fmax(most - path->attributed_s, path->attributed_s - least), 0);
}

static void set_use(struct wm_region_use *use, double used, double off)
{
    *use = (struct wm_region_use) {
        .used = { true, used },
        .has_uncertainty = true,
        .random = off,
    };
}

/* CPU time that was attributed comes from the path around, which may itself have it by
 * time. */
static double unknown_part(const struct wm_region_clocked *path,
                           const struct wm_region_clocked *parent)
{
    double all_s = path->cpu_s + path->attributed_s;

    return all_s > 0 ? path->attributed_s / all_s * (parent ? parent->unknown : 1) : 0;
}

/* Whether all calls of a path lie in calls whose time is known. Calls that were started may
 * outlive those around; in the recording of a killed tracker a call may have no end. */
static bool lies_in_known(const struct wm_region_item *path,
                          const struct wm_region_item *parent)
{
    return parent && !path->is_free && parent->block.unfinished == 0 &&
           all_s_of(&parent->clocked) >= all_s_of(&path->clocked) * (1 - ROUNDING);
}

/* Of a path's calls that are not clocked: none has more than its time; together they have
 * no more than the calls around leave, and no less than those cannot have had themselves.
 * Outside of other calls they have at most what all processes used. Calls that were started
 * overlap the others in the call around. */
static struct wm_region_bounds bound_others(const struct wm_region_item *path,
                                            const struct wm_region_item *parent,
                                            double total)
{
    double others = path->clocked.others_s;

    if (!lies_in_known(path, parent))
        return (struct wm_region_bounds) { 0, fmin(others, total) };
    const struct wm_region_clocked *around = &parent->clocked;
    struct wm_region_bounds left = around->bounds[WM_REGION_INCLUSIVE];
    if (around->has_started)
        return (struct wm_region_bounds) { 0, fmin(others, left.most) };
    left.least -= around->inside_cpu_s + around->inside_off_s;
    left.most -= around->inside_cpu_s - around->inside_off_s;
    return (struct wm_region_bounds) {
        .least = fmax(left.least - fmax(left_s(around) - others, 0), 0),
        .most = fmin(others, fmax(left.most, 0)),
    };
}

/* Exclusively a path has what it has inclusively, less what each path inside has. */
static void find_bounds(struct wm_region_item *path, struct wm_region_item *parent,
                        double total)
{
    struct wm_region_clocked *clocked = &path->clocked;
    struct wm_region_bounds others = bound_others(path, parent, total);
    double least = clocked->cpu_s + others.least - clock_off_s(clocked);
    double most = clocked->cpu_s + others.most + clock_off_s(clocked);

    clocked->bounds[WM_REGION_INCLUSIVE] = (struct wm_region_bounds) { least, most };
    clocked->bounds[WM_REGION_EXCLUSIVE] =
        (struct wm_region_bounds) { clocked->alone * least, clocked->alone * most };
    if (!parent)
        return;
    parent->clocked.bounds[WM_REGION_EXCLUSIVE].least -= parent->clocked.alone * most;
    parent->clocked.bounds[WM_REGION_EXCLUSIVE].most -= parent->clocked.alone * least;
}

/* Those around a path come before it. */
static void find_paths(struct wm_region_items *items, double total)
{
    for (size_t i = 0; i <= items->number_count; i++) {
        struct wm_region_item *path = path_at(items, i);
        if (!path)
            continue;
        struct wm_region_item *parent = parent_of(items, path);
        struct wm_region_clocked *clocked = &path->clocked;
        if (parent)
            attribute(clocked, &parent->clocked);
        clocked->unknown = unknown_part(clocked, parent ? &parent->clocked : NULL);
        find_bounds(path, parent, total);
        double off = clocked->off_s + clock_off_s(clocked);
        double inclusive =
            fmax(clocked->cpu_s + clocked->attributed_s, clocked->inside_cpu_s);
        set_use(&clocked->uses[WM_REGION_INCLUSIVE], inclusive, off);
        set_use(&clocked->uses[WM_REGION_EXCLUSIVE], clocked->alone * left_cpu_s(clocked),
                off);
        if (!parent)
            continue;
        struct wm_region_use *around = &parent->clocked.uses[WM_REGION_EXCLUSIVE];
        set_use(around, fmax(around->used.number - clocked->attributed_s, 0),
                around->random + off);
    }
}

/* The sum of what paths have exclusively: by time, or else by their clocks. */
static double sum_exclusive(const struct wm_region_items *items, bool is_unknown)
{
    double sum = 0;

    for (size_t i = 0; i <= items->number_count; i++) {
        const struct wm_region_item *path = path_at(items, i);
        if (!path)
            continue;
        double part = path->clocked.unknown;
        sum += path->clocked.uses[WM_REGION_EXCLUSIVE].used.number *
               (is_unknown ? part : 1 - part);
    }
    return sum;
}

/* Cuts the paths' CPU time down to `total`: first what they have by time, then the rest. */
static double limit_to(struct wm_region_items *items, double total, double known,
                       double unknown)
{
    double of_known = known > total ? total / known : 1;
    double of_unknown = unknown > 0 ? fmax(total - known, 0) / unknown : 1;

    for (size_t i = 0; i < items->paths.count; i++) {
        struct wm_region_clocked *clocked = &items->paths.list[i]->clocked;
        struct wm_region_use *use = &clocked->uses[WM_REGION_EXCLUSIVE];
        double by_time = use->used.number * clocked->unknown * of_unknown;
        double told = use->used.number * (1 - clocked->unknown) * of_known;
        set_use(use, told + by_time, use->random);
        clocked->unknown = told + by_time > 0 ? by_time / (told + by_time) : 0;
        clocked->bounds[WM_REGION_EXCLUSIVE].least *= of_known;
        clocked->bounds[WM_REGION_EXCLUSIVE].most *= of_known;
    }
    return total;
}

static bool lies_in_its_name(const struct wm_region_items *items,
                             const struct wm_region_item *path)
{
    const struct wm_region_item *around = parent_of(items, path);

    while (around && around->of_name != path->of_name)
        around = parent_of(items, around);
    return around != NULL;
}

static void add_cpu(struct wm_region_clocked *sum, const struct wm_region_clocked *path,
                    enum wm_region_part part)
{
    struct wm_region_use *all = &sum->uses[part];
    const struct wm_region_use *use = &path->uses[part];

    set_use(all, all->used.number + use->used.number, all->random + use->random);
    sum->bounds[part].least += fmax(path->bounds[part].least, 0);
    sum->bounds[part].most += fmax(path->bounds[part].most, 0);
}

static void find_names(struct wm_region_items *items)
{
    for (size_t i = 0; i < items->names.count; i++) {
        struct wm_region_clocked *name = &items->names.list[i]->clocked;
        name->calls = 0;
        set_use(&name->uses[WM_REGION_INCLUSIVE], 0, 0);
        set_use(&name->uses[WM_REGION_EXCLUSIVE], 0, 0);
        memset(name->bounds, 0, sizeof(name->bounds));
    }
    for (size_t i = 0; i <= items->number_count; i++) {
        const struct wm_region_item *path = path_at(items, i);
        if (!path)
            continue;
        struct wm_region_clocked *name = &items->names.list[path->of_name]->clocked;
        name->calls += path->clocked.calls;
        add_cpu(name, &path->clocked, WM_REGION_EXCLUSIVE);
        if (!lies_in_its_name(items, path))
            add_cpu(name, &path->clocked, WM_REGION_INCLUSIVE);
    }
}

double wm_region_cpu_find(struct wm_region_items *items,
                          const struct wm_region_whole *whole)
{
    double total = whole->used.number;
    double most = whole->is_lower_bound ? INFINITY : total * (1 + TOTAL_OFF) + TOTAL_OFF_S;

    sum_inside(items);
    find_paths(items, most);
    double known = sum_exclusive(items, false), unknown = sum_exclusive(items, true);
    double sum = known + unknown;
    if (sum > most)
        sum = limit_to(items, total, known, unknown);
    find_names(items);
    return sum;
}

/* CPU time by clocks; the rest has none. */
static double clocked_s(const struct wm_region_by_time *part)
{
    const struct wm_region_clocked *clocked = &part->item->clocked;

    return part->is_rest
               ? 0
               : clocked->uses[WM_REGION_EXCLUSIVE].used.number * (1 - clocked->unknown);
}

static double excess_s(const struct wm_region_by_time *part)
{
    return part->cpu_s - clocked_s(part);
}

/* Items that have more by time than their clocks say give up this part of their excess to
 * those that have less. No clock reports what they keep. */
static double part_given_up(const struct wm_region_by_time *parts, size_t count)
{
    double lacking = 0, excess = 0;

    for (size_t i = 0; i < count; i++) {
        double s = excess_s(&parts[i]);
        lacking += fmax(-s, 0);
        excess += fmax(s, 0);
    }
    return excess > 0 ? fmin(lacking / excess, 1) : 0;
}

/* CPU time that no clock reports was used when it is left over; or at any time, if the
 * stretches are too coarse to tell or other regions were open, too. The middle of the two
 * is taken, and half of their difference is the uncertainty. */
static void find_moved_s(struct wm_region_by_time *parts, size_t count)
{
    double given_up = part_given_up(parts, count), pool_s = 0, all_s = 0;

    for (size_t i = 0; i < count; i++) {
        parts[i].left_s = fmax(excess_s(&parts[i]), 0) * (1 - given_up);
        pool_s += parts[i].loose * parts[i].left_s;
        all_s += parts[i].loose * parts[i].seconds;
    }
    for (size_t i = 0; i < count; i++) {
        struct wm_region_by_time *part = &parts[i];
        double other_s = all_s > 0 ? pool_s * part->loose * part->seconds / all_s : 0;
        double change_s = (other_s - part->loose * part->left_s) / 2;
        part->off_s = fabs(change_s);
        part->moved_s = part->left_s + change_s - excess_s(part);
    }
}

/* A call without a clock, beside those of other threads, may have used no CPU time or all
 * of its own time, up to all that was used. */
static double unclocked_off_s(const struct wm_region_by_time *part, double all_s)
{
    const struct wm_region_clocked *clocked = &part->item->clocked;

    if (part->is_rest || clocked->unknown <= 0)
        return 0;
    double unclocked = all_s_of(clocked) > 0 ? clocked->others_s / all_s_of(clocked) : 0;
    double most_s = fmin(unclocked * part->own_s, all_s);
    return part->shared * fmax(fmin(part->left_s, most_s), most_s - part->left_s);
}

/* What one call without a clock has more, the others have less. */
static void add_unclocked(struct wm_region_by_time *parts, size_t count)
{
    double all_s = 0, sum_s = 0;

    for (size_t i = 0; i < count; i++)
        all_s += parts[i].cpu_s;
    for (size_t i = 0; i < count; i++)
        sum_s += unclocked_off_s(&parts[i], all_s);
    for (size_t i = 0; i < count; i++) {
        double own_s = unclocked_off_s(&parts[i], all_s);
        if (!parts[i].is_rest)
            parts[i].off_s += fmax(own_s, fmin(sum_s - own_s, parts[i].left_s));
    }
}

/* An item's, and its name's. */
static void note_part(struct wm_region_items *items, const struct wm_region_by_time *part)
{
    struct wm_region_item *item = part->item;

    item->moved.off_s = part->off_s;
    if (part->is_rest)
        return;
    struct wm_region_item *name = items->names.list[item->of_name];
    item->moved.shared_s = part->shared * clocked_s(part);
    item->moved.own_s = part->own_s;
    name->moved.off_s += item->moved.off_s;
    name->moved.shared_s += item->moved.shared_s;
    name->moved.own_s += item->moved.own_s;
    name->clocked.unknown += item->clocked.unknown;
}

double wm_region_cpu_divide(struct wm_region_items *items, struct wm_region_by_time *parts,
                            size_t count)
{
    double left_s = 0;

    find_moved_s(parts, count);
    add_unclocked(parts, count);
    for (size_t i = 0; i < items->names.count; i++) {
        items->names.list[i]->moved = (struct wm_region_moved) { 0 };
        items->names.list[i]->clocked.unknown = 0;
    }
    for (size_t i = 0; i < count; i++) {
        note_part(items, &parts[i]);
        left_s += parts[i].left_s;
    }
    return left_s;
}

/* What an item has is its own, its name's, and of all that is around it. */
static void give(struct wm_region_items *items, const struct wm_region_move *move,
                 struct wm_region_item *path, double joules)
{
    enum wm_region_rate rate = move->rate;

    path->moved.j[rate][WM_REGION_EXCLUSIVE] = joules;
    items->names.list[path->of_name]->moved.j[rate][WM_REGION_EXCLUSIVE] += joules;
    for (struct wm_region_item *around = path; around && move->is_in_turn;
         around = parent_of(items, around)) {
        around->moved.j[rate][WM_REGION_INCLUSIVE] += joules;
        if (!lies_in_its_name(items, around))
            items->names.list[around->of_name]->moved.j[rate][WM_REGION_INCLUSIVE] +=
                joules;
    }
}

/* No item gives more than it has. */
static double joules_lost(const struct wm_region_move *move,
                          const struct wm_region_by_time *part)
{
    return fmin(fmax(-part->moved_s, 0) * move->joules_per_s, fmax(part->joules, 0));
}

void wm_region_cpu_move(struct wm_region_items *items, const struct wm_region_move *move,
                        const struct wm_region_by_time *parts, size_t count)
{
    double lost = 0, gained_s = 0;

    for (size_t i = 0; i < count; i++) {
        memset(parts[i].item->moved.j[move->rate], 0, sizeof(double[WM_REGION_PARTS]));
        lost += joules_lost(move, &parts[i]);
        gained_s += fmax(parts[i].moved_s, 0);
    }
    for (size_t i = 0; i < count && gained_s > 0; i++) {
        double joules =
            lost * fmax(parts[i].moved_s, 0) / gained_s - joules_lost(move, &parts[i]);
        if (parts[i].is_rest)
            parts[i].item->moved.j[move->rate][WM_REGION_EXCLUSIVE] = joules;
        else if (joules != 0)
            give(items, move, parts[i].item, joules);
    }
}
