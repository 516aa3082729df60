/* SPDX-License-Identifier: Apache-2.0 */
/*
 * track_processes.c - what each process of the tree is and takes.
 *
 * The joules of a process are those of the report: the tree's of the CPUs by CPU time, and
 * the tree's of each GPU by the use of it. The watts divide what the tree has got since the
 * last report in the same way, by what each process has done since then.
 */
#include "track/account/track_processes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_map.h"

enum { GPU_MAX = 256 };

/* A process as it was when it was asked for last. */
struct known {
    pid_t pid;
    uint64_t start_time, image; /* the same process, and the same program in it */
    bool is_identified;
    uid_t user;
    char command[WM_TRACKER_COMMAND_SIZE];
    double cpu_s;
};

/* What the tree has got of a device, and what it did for it. */
struct tally {
    double joules, work; /* NAN: not known */
    double whole;        /* joules of the device */
};

struct wm_track_processes {
    struct known *known;
    size_t count;
    struct wm_map places; /* of the processes in that list, by pid */
    double time_s;        /* of the report before; NAN: there was none */
    struct tally cpu, gpus[GPU_MAX];
};

/* From one time to the next. */
struct step {
    double seconds; /* NAN: there was no report before */
    struct tally cpu, gpus[GPU_MAX];
};

int wm_track_processes_new(struct wm_track_processes **ret_processes, struct wm_error *err)
{
    *ret_processes = calloc(1, sizeof(**ret_processes));
    if (!*ret_processes)
        return wm_fail_memory(err, "processes");
    (*ret_processes)->time_s = NAN;
    return WM_OK;
}

void wm_track_processes_free(struct wm_track_processes *processes)
{
    if (!processes)
        return;
    wm_map_release(&processes->places);
    free(processes->known);
    free(processes);
}

/* The division of earlier joules may change, so that the tree seems to get more in a step
 * than the device took. */
static struct tally take(struct tally *before, struct tally now)
{
    struct tally step = { now.joules - before->joules, now.work - before->work,
                          now.whole - before->whole };

    if (step.joules > step.whole)
        step.joules = step.whole;
    *before = now;
    return step;
}

static double number_of(const struct wm_value *value)
{
    return value->known ? value->number : NAN;
}

/* The GPU of the shares in the report. */
static const struct wm_gpu_usage *find_gpu(const struct wm_report *report,
                                           const char *device)
{
    for (size_t i = 0; i < report->gpu_count; i++) {
        if (report->gpus[i].uuid && strcmp(report->gpus[i].uuid, device) == 0)
            return &report->gpus[i];
    }
    return NULL;
}

static void take_step(struct wm_track_processes *processes, const struct wm_shares *shares,
                      const struct wm_report *report, struct step *ret_step)
{
    const char *device;

    *ret_step = (struct step) { 0 };
    double time_s = number_of(&report->compute_time);
    ret_step->seconds = time_s - processes->time_s;
    processes->time_s = time_s;
    ret_step->cpu =
        take(&processes->cpu, (struct tally) { number_of(&report->cpu_energy.split.tree),
                                               number_of(&report->cpu_total),
                                               number_of(&report->cpu_energy.energy) });
    for (size_t i = 0; i < GPU_MAX && (device = wm_shares_gpu(shares, i)); i++) {
        const struct wm_gpu_usage *gpu = find_gpu(report, device);
        ret_step->gpus[i] =
            take(&processes->gpus[i],
                 (struct tally) { gpu ? number_of(&gpu->split.tree) : NAN,
                                  wm_shares_use_s(shares, i),
                                  gpu ? number_of(&gpu->figure.energy) : NAN });
    }
}

/* So much of the joules as of the work. */
static double part(const struct tally *whole, double work)
{
    if (isnan(whole->joules) || isnan(whole->work)) /* fmax() would make it 0 */
        return NAN;
    if (whole->work <= 0)
        return 0;
    return fmax(whole->joules, 0) * fmin(work / whole->work, 1);
}

static struct known *find_known(const struct wm_track_processes *processes,
                                const struct wm_process *process)
{
    uint32_t place = wm_map_find(&processes->places, (uint64_t)process->pid, 0);
    struct known *known = place == WM_MAP_NONE ? NULL : &processes->known[place];

    return known && known->start_time == process->start_time ? known : NULL;
}

/* Who it is; nobody knows yet where it has executed another program. */
static struct known recall(const struct known *before, const struct wm_process *process)
{
    if (before && before->image == process->image)
        return *before;
    return (struct known) { .pid = process->pid,
                            .start_time = process->start_time,
                            .image = process->image,
                            .user = (uid_t)-1 };
}

void wm_track_processes_identify(struct wm_track_processes *processes,
                                 const struct wm_tree *tree,
                                 struct wm_tracker_process *list)
{
    for (size_t i = 0; i < processes->count; i++) {
        struct known *known = &processes->known[i];
        if (known->is_identified)
            continue;
        known->is_identified = true;
        wm_tree_identify(tree, known->pid, &known->user, known->command,
                         sizeof(known->command));
        list[i].user = known->user;
        memcpy(list[i].command, known->command, sizeof(known->command));
    }
}

static void add_gpus(const struct wm_share_use *uses, size_t count,
                     const struct wm_track_processes *processes, const struct step *step,
                     struct wm_tracker_process *process)
{
    for (size_t i = 0; i < count; i++) {
        const struct wm_share_use *use = &uses[i];
        if (use->pid != process->pid)
            continue;
        process->gpus += use->is_there;
        process->gpu_use += use->is_there ? use->use : 0;
        process->gpu_memory_bytes += use->is_there ? use->memory_bytes : 0;
        if (isnan(use->use)) {
            process->energy_j = process->power_w = NAN;
            continue;
        }
        process->energy_j += part(&processes->gpus[use->gpu], use->use_s);
        process->power_w +=
            part(&step->gpus[use->gpu], use->use_s - use->asked_s) / step->seconds;
    }
}

static void describe(const struct wm_process *here, const struct known *known,
                     struct wm_tracker_process *ret_process)
{
    *ret_process = (struct wm_tracker_process) {
        .pid = here->pid,
        .parent = here->parent,
        .start_time = here->start_time,
        .cpu_s = (double)(here->cpu_ns - here->cpu_base_ns) / 1e9,
        .memory_bytes = (double)here->rss_bytes,
        .threads = here->threads,
        .state = here->state,
        .user = known->user,
        .energy_j = NAN,
        .power_w = NAN,
    };
    memcpy(ret_process->name, here->name, sizeof(here->name));
    memcpy(ret_process->command, known->command, sizeof(known->command));
}

/* The new list in the place of the old one. */
static void keep(struct wm_track_processes *processes, struct known *list, size_t count)
{
    free(processes->known);
    processes->known = list;
    processes->count = 0;
    wm_map_release(&processes->places);
    processes->places = (struct wm_map) { 0 };
    for (size_t i = 0; i < count && wm_map_reserve(&processes->places) == WM_OK; i++) {
        wm_map_put(&processes->places, (uint64_t)list[i].pid, 0, (uint32_t)i);
        processes->count++;
    }
}

void wm_track_processes_list(struct wm_track_processes *processes,
                             const struct wm_tree *tree, struct wm_shares *shares,
                             const struct wm_report *report,
                             struct wm_tracker_process *ret_list, size_t room,
                             size_t *ret_count)
{
    size_t use_count = 0;
    struct wm_share_use *uses = wm_shares_uses(shares, &use_count);
    const struct wm_process *here = wm_tree_processes(tree, ret_count);
    size_t count = *ret_count < room ? *ret_count : room;
    struct known *list = calloc(*ret_count + 1, sizeof(*list));
    struct step step = { 0 };

    if (!list)
        *ret_count = 0;
    if (count < *ret_count || !list) { /* the caller comes again with more room */
        free(list);
        return;
    }
    if (report)
        take_step(processes, shares, report, &step);
    for (size_t i = 0; i < count; i++) {
        const struct known *before = find_known(processes, &here[i]);
        list[i] = recall(before, &here[i]);
        describe(&here[i], &list[i], &ret_list[i]);
        list[i].cpu_s = ret_list[i].cpu_s;
        if (!report)
            continue;
        const struct wm_known cpu_s = { true, ret_list[i].cpu_s };
        const struct wm_value energy = wm_report_energy_of(report, &cpu_s);
        double done_s = cpu_s.number - (before ? before->cpu_s : 0);
        ret_list[i].energy_j = number_of(&energy);
        ret_list[i].power_w =
            step.seconds > 0 ? part(&step.cpu, fmax(done_s, 0)) / step.seconds : NAN;
        add_gpus(uses, use_count, processes, &step, &ret_list[i]);
    }
    for (size_t i = 0; i < use_count && report; i++)
        uses[i].asked_s = uses[i].use_s;
    keep(processes, list, count);
}
