/* SPDX-License-Identifier: Apache-2.0 */
/* record_regions.c - a batch of regions that grows. */
#include "record/record_regions.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_array.h"
#include "base/base_clock.h"

uint32_t wm_regions_part_next_path(const struct wm_regions_part *part)
{
    return part->first_path + (uint32_t)part->path_count;
}

uint32_t wm_regions_part_next_thread(const struct wm_regions_part *part)
{
    return part->first_thread + (uint32_t)part->thread_count;
}

int wm_regions_part_add_path(struct wm_regions_part *part,
                             const struct wm_region_path *path)
{
    if (wm_array_reserve(&part->paths, part->path_count, &part->path_room,
                         sizeof(*part->paths)) < 0)
        return WM_ENOMEM;
    char *name = strdup(path->name);
    if (!name)
        return WM_ENOMEM;
    part->paths[part->path_count] = *path;
    part->paths[part->path_count++].name = name;
    return WM_OK;
}

int wm_regions_part_add_thread(struct wm_regions_part *part, struct wm_region_thread thread)
{
    if (wm_array_reserve(&part->threads, part->thread_count, &part->thread_room,
                         sizeof(*part->threads)) < 0)
        return WM_ENOMEM;
    part->threads[part->thread_count++] = thread;
    return WM_OK;
}

int wm_regions_part_add_call(struct wm_regions_part *part,
                             const struct wm_region_record *call)
{
    if (wm_array_reserve(&part->calls, part->call_count, &part->call_room,
                         sizeof(*part->calls)) < 0)
        return WM_ENOMEM;
    part->calls[part->call_count++] = *call;
    return WM_OK;
}

int wm_regions_part_add_new(struct wm_regions_part *part,
                            const struct wm_region_batch *batch)
{
    int status = WM_OK;
    uint32_t next;

    while (status == WM_OK &&
           (next = wm_regions_part_next_path(part)) >= batch->first_path &&
           next - batch->first_path < batch->path_count)
        status = wm_regions_part_add_path(part, &batch->paths[next - batch->first_path]);
    while (status == WM_OK &&
           (next = wm_regions_part_next_thread(part)) >= batch->first_thread &&
           next - batch->first_thread < batch->thread_count)
        status =
            wm_regions_part_add_thread(part, batch->threads[next - batch->first_thread]);
    return status;
}

bool wm_regions_part_is_empty(const struct wm_regions_part *part)
{
    return part->call_count == 0 && part->path_count == part->old_paths &&
           part->thread_count == part->old_threads;
}

struct wm_region_batch wm_regions_part_batch(const struct wm_regions_part *part)
{
    return (struct wm_region_batch) {
        .paths = part->paths ? part->paths + part->old_paths : NULL,
        .threads = part->threads ? part->threads + part->old_threads : NULL,
        .calls = part->calls,
        .first_path = part->first_path + (uint32_t)part->old_paths,
        .path_count = (uint32_t)(part->path_count - part->old_paths),
        .first_thread = part->first_thread + (uint32_t)part->old_threads,
        .thread_count = (uint32_t)(part->thread_count - part->old_threads),
        .call_count = part->call_count,
    };
}

static void free_names(struct wm_regions_part *part)
{
    /* Const for readers of the path; the text itself is the part's own. */
    for (size_t i = 0; i < part->path_count; i++)
        free((char *)(uintptr_t)part->paths[i].name);
}

void wm_regions_part_clear(struct wm_regions_part *part)
{
    free_names(part);
    part->first_path += (uint32_t)part->path_count;
    part->first_thread += (uint32_t)part->thread_count;
    part->path_count = part->old_paths = 0;
    part->thread_count = part->old_threads = 0;
    part->call_count = 0;
}

void wm_regions_part_next(struct wm_regions_part *part)
{
    part->old_paths = part->path_count;
    part->old_threads = part->thread_count;
    part->call_count = 0;
}

void wm_regions_part_release(struct wm_regions_part *part)
{
    free_names(part);
    free(part->paths);
    free(part->threads);
    free(part->calls);
    *part = (struct wm_regions_part) { 0 };
}

int wm_regions_read_path(struct wm_regions_part *part, const struct wm_regions_row *row,
                         struct wm_error *err)
{
    int64_t next = wm_regions_part_next_path(part);
    bool has_parent = row->parent != -1;

    if (row->number != next || next >= WM_REGION_NO_PATH - 1)
        return wm_fail(err, WM_EFORMAT, "path %lld is not the next one, %lld",
                       (long long)row->number, (long long)next);
    if (has_parent && (row->parent < 0 || row->parent >= next))
        return wm_fail(err, WM_EFORMAT, "path %lld lies in none before it",
                       (long long)row->number);
    if (row->name && strlen(row->name) > WM_REGIONS_NAME_MAX)
        return wm_fail(err, WM_EFORMAT, "path %lld has a name of more than %d bytes",
                       (long long)row->number, WM_REGIONS_NAME_MAX);
    const struct wm_region_path path = {
        .name = row->name ? row->name : "",
        .parent = has_parent ? (uint32_t)row->parent : WM_REGION_NO_PATH,
        .depth = has_parent ? part->paths[row->parent].depth + 1 : 0,
        .is_free = row->is_free == 1,
    };
    return wm_regions_part_add_path(part, &path) < 0 ? wm_fail_memory(err, NULL) : WM_OK;
}

static bool is_pid(int64_t number)
{
    return number >= 0 && number <= INT_MAX;
}

int wm_regions_read_thread(struct wm_regions_part *part, const struct wm_regions_row *row,
                           struct wm_error *err)
{
    int64_t next = wm_regions_part_next_thread(part);

    if (row->number != next || next >= UINT32_MAX)
        return wm_fail(err, WM_EFORMAT, "thread %lld is not the next one, %lld",
                       (long long)row->number, (long long)next);
    if (!is_pid(row->pid) || !is_pid(row->tid) || row->process < 0 ||
        row->process > UINT32_MAX)
        return wm_fail(err, WM_EFORMAT, "thread %lld is of no process",
                       (long long)row->number);
    const struct wm_region_thread thread = {
        .pid = (pid_t)row->pid,
        .tid = (pid_t)row->tid,
        .process = (uint32_t)row->process,
    };
    return wm_regions_part_add_thread(part, thread) < 0 ? wm_fail_memory(err, NULL) : WM_OK;
}

int wm_regions_read_call(struct wm_regions_part *part, const struct wm_regions_row *row,
                         struct wm_error *err)
{
    if (row->path < 0 || row->path >= wm_regions_part_next_path(part) || row->thread < 0 ||
        row->thread >= wm_regions_part_next_thread(part))
        return wm_fail(err, WM_EFORMAT,
                       "a call of path %lld and thread %lld, which are"
                       " not there",
                       (long long)row->path, (long long)row->thread);
    if (row->start_ns < 0 || row->stop_ns < row->start_ns || row->stop_ns > WM_TIME_MAX_NS)
        return wm_fail(err, WM_EFORMAT, "a call from %lld to %lld ns",
                       (long long)row->start_ns, (long long)row->stop_ns);
    const struct wm_region_record call = {
        .start_ns = row->start_ns,
        .stop_ns = row->stop_ns,
        .path = (uint32_t)row->path,
        .thread = (uint32_t)row->thread,
        .is_open = row->is_open == 1,
    };
    return wm_regions_part_add_call(part, &call) < 0 ? wm_fail_memory(err, NULL) : WM_OK;
}
