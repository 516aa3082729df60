/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_region_cpu.c - see analyze_region_cpu.h. */
#include "analyze/region/analyze_region_cpu.h"

#include <math.h>

/* Of a call that is clocked so much of reading the clock is in what it tells, or is not. */
#define CLOCK_OFF_S 1e-6

/* Where the CPU time of all processes is sampled by the kernel's ticks, two of these, and
 * a hundredth, may be missing in it: no reason to change what the threads' clocks told. */
#define TOTAL_OFF_S 0.02
#define TOTAL_OFF 0.01

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

static double all_s(const struct wm_region_clocked *clocked)
{
    return clocked->s + clocked->others_s;
}

void wm_region_cpu_begin(struct wm_region_item *path, struct wm_region_use by_time,
                         double open_s, const struct wm_region_time times[WM_REGION_PARTS])
{
    struct wm_region_clocked *clocked = &path->clocked;

    clocked->cpu_s = (double)clocked->cpu_ns / 1e9;
    clocked->s = (double)clocked->ns / 1e9;
    clocked->others_s = (double)clocked->others_ns / 1e9 + open_s;
    clocked->inside_cpu_s = clocked->inside_s = 0;
    double part = all_s(clocked) > 0 ? clocked->others_s / all_s(clocked) : 0;
    clocked->attributed_s = part * fmax(by_time.used.number, 0);
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
    }
}

/* CPU time of a path but for the clocked calls right inside, and its time. */
static double left_cpu_s(const struct wm_region_clocked *clocked)
{
    return fmax(clocked->cpu_s + clocked->attributed_s - clocked->inside_cpu_s, 0);
}

static double left_s(const struct wm_region_clocked *clocked)
{
    return fmax(all_s(clocked) - clocked->inside_s, 0);
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

/* Those around a path come before it. */
static void find_paths(struct wm_region_items *items)
{
    for (size_t i = 0; i <= items->number_count; i++) {
        struct wm_region_item *path = path_at(items, i);
        if (!path)
            continue;
        struct wm_region_item *parent = parent_of(items, path);
        struct wm_region_clocked *clocked = &path->clocked;
        if (parent)
            attribute(clocked, &parent->clocked);
        double off = clocked->off_s + CLOCK_OFF_S * (double)clocked->calls;
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

static double sum_exclusive(const struct wm_region_items *items)
{
    double sum = 0;

    for (size_t i = 0; i <= items->number_count; i++) {
        const struct wm_region_item *path = path_at(items, i);
        sum += path ? path->clocked.uses[WM_REGION_EXCLUSIVE].used.number : 0;
    }
    return sum;
}

static bool lies_in_its_name(const struct wm_region_items *items,
                             const struct wm_region_item *path)
{
    const struct wm_region_item *around = parent_of(items, path);

    while (around && around->of_name != path->of_name)
        around = parent_of(items, around);
    return around != NULL;
}

static void add_use(struct wm_region_use *sum, const struct wm_region_use *use)
{
    set_use(sum, sum->used.number + use->used.number, sum->random + use->random);
}

static void find_names(struct wm_region_items *items)
{
    for (size_t i = 0; i < items->names.count; i++) {
        struct wm_region_clocked *name = &items->names.list[i]->clocked;
        name->calls = 0;
        set_use(&name->uses[WM_REGION_INCLUSIVE], 0, 0);
        set_use(&name->uses[WM_REGION_EXCLUSIVE], 0, 0);
    }
    for (size_t i = 0; i <= items->number_count; i++) {
        const struct wm_region_item *path = path_at(items, i);
        if (!path)
            continue;
        struct wm_region_clocked *name = &items->names.list[path->of_name]->clocked;
        name->calls += path->clocked.calls;
        add_use(&name->uses[WM_REGION_EXCLUSIVE], &path->clocked.uses[WM_REGION_EXCLUSIVE]);
        if (!lies_in_its_name(items, path))
            add_use(&name->uses[WM_REGION_INCLUSIVE],
                    &path->clocked.uses[WM_REGION_INCLUSIVE]);
    }
}

double wm_region_cpu_find(struct wm_region_items *items, double total)
{
    sum_inside(items);
    find_paths(items);
    double sum = sum_exclusive(items);
    if (sum > total * (1 + TOTAL_OFF) + TOTAL_OFF_S) {
        for (size_t i = 0; i < items->paths.count; i++) {
            struct wm_region_use *use =
                &items->paths.list[i]->clocked.uses[WM_REGION_EXCLUSIVE];
            set_use(use, use->used.number * total / sum, use->random);
        }
        sum = total;
    }
    find_names(items);
    return sum;
}

/* Of the CPU time by time; the rest has no clock. */
static double excess_s(const struct wm_region_items *items, size_t i,
                       const struct wm_region_by_time *by_time)
{
    double clocked =
        i < items->paths.count
            ? items->paths.list[i]->clocked.uses[WM_REGION_EXCLUSIVE].used.number
            : 0;

    return by_time[i].cpu_s - clocked;
}

static void clear_moved(struct wm_region_item *item)
{
    item->moved_j[WM_REGION_INCLUSIVE] = item->moved_j[WM_REGION_EXCLUSIVE] = 0;
}

/* What an item has is its own, its name's, and of all that is around it. */
static void give(struct wm_region_items *items, struct wm_region_item *path, double joules,
                 bool is_in_turn)
{
    path->moved_j[WM_REGION_EXCLUSIVE] = joules;
    items->names.list[path->of_name]->moved_j[WM_REGION_EXCLUSIVE] += joules;
    for (struct wm_region_item *around = path; around && is_in_turn;
         around = parent_of(items, around)) {
        around->moved_j[WM_REGION_INCLUSIVE] += joules;
        if (!lies_in_its_name(items, around))
            items->names.list[around->of_name]->moved_j[WM_REGION_INCLUSIVE] += joules;
    }
}

/* What paths lack by time, in all, and the part of their excesses that the others give up
 * for it: the rest of these is CPU time that no clock tells of. */
static double find_lacking_s(const struct wm_region_items *items,
                             const struct wm_region_by_time *by_time, double *ret_part)
{
    double lacking = 0, excess = 0;

    for (size_t i = 0; i <= items->paths.count; i++) {
        double s = excess_s(items, i, by_time);
        lacking += fmax(-s, 0);
        excess += fmax(s, 0);
    }
    *ret_part = excess > 0 ? fmin(lacking / excess, 1) : 0;
    return lacking;
}

void wm_region_cpu_move(struct wm_region_items *items, const struct wm_region_move *move,
                        const struct wm_region_by_time *by_time)
{
    double part, lost = 0, lacking_s = find_lacking_s(items, by_time, &part);

    for (size_t i = 0; i < items->paths.count; i++)
        clear_moved(items->paths.list[i]);
    for (size_t i = 0; i < items->names.count; i++)
        clear_moved(items->names.list[i]);
    clear_moved(move->rest);
    for (size_t i = 0; i <= items->paths.count; i++) {
        double s = fmax(excess_s(items, i, by_time), 0) * part;
        double joules = fmin(s * move->joules_per_s, fmax(by_time[i].joules, 0));
        lost += joules;
        if (i == items->paths.count)
            move->rest->moved_j[WM_REGION_EXCLUSIVE] = -joules;
        else if (joules > 0)
            give(items, items->paths.list[i], -joules, move->is_in_turn);
    }
    for (size_t i = 0; i < items->paths.count; i++) {
        double s = fmax(-excess_s(items, i, by_time), 0);
        if (s > 0)
            give(items, items->paths.list[i], lost * s / lacking_s, move->is_in_turn);
    }
}
