/* SPDX-License-Identifier: Apache-2.0 */
/* record_regions.c - a batch of regions that grows. */
#include "record/record_regions.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_array.h"
#include "base/base_clock.h"
#include "base/base_text.h"

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

const struct wm_region_fold *wm_region_batch_fold(const struct wm_region_batch *batch,
                                                  const struct wm_region_record *call)
{
    return call->fold > 0 ? &batch->folds[call->fold - 1] : NULL;
}

static int add_fold(struct wm_regions_part *part, const struct wm_region_fold *fold,
                    uint32_t *ret_number)
{
    *ret_number = 0;
    if (!fold)
        return WM_OK;
    if (wm_array_reserve(&part->folds, part->fold_count, &part->fold_room,
                         sizeof(*part->folds)) < 0)
        return WM_ENOMEM;
    part->folds[part->fold_count++] = *fold;
    *ret_number = (uint32_t)part->fold_count;
    return WM_OK;
}

int wm_regions_part_add_call(struct wm_regions_part *part,
                             const struct wm_region_record *call,
                             const struct wm_region_fold *fold)
{
    uint32_t number;

    if (wm_array_reserve(&part->calls, part->call_count, &part->call_room,
                         sizeof(*part->calls)) < 0)
        return WM_ENOMEM;
    if (add_fold(part, fold, &number) < 0)
        return WM_ENOMEM;
    part->calls[part->call_count] = *call;
    part->calls[part->call_count++].fold = number;
    return WM_OK;
}

void wm_regions_part_drop_calls(struct wm_regions_part *part, size_t first)
{
    size_t folds = 0;

    part->call_count -= first;
    for (size_t i = 0; i < part->call_count; i++) {
        part->calls[i] = part->calls[first + i];
        if (part->calls[i].fold == 0)
            continue;
        part->folds[folds++] = part->folds[part->calls[i].fold - 1];
        part->calls[i].fold = (uint32_t)folds;
    }
    part->fold_count = folds;
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
        .folds = part->folds,
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
    part->call_count = part->fold_count = 0;
}

void wm_regions_part_next(struct wm_regions_part *part)
{
    part->old_paths = part->path_count;
    part->old_threads = part->thread_count;
    part->call_count = part->fold_count = 0;
}

void wm_regions_part_release(struct wm_regions_part *part)
{
    free_names(part);
    free(part->paths);
    free(part->threads);
    free(part->calls);
    free(part->folds);
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

void wm_region_fold_cells(const struct wm_region_fold *fold,
                          int64_t ret_cells[WM_REGION_FOLD_CELLS])
{
    ret_cells[0] = (int64_t)fold->calls;
    ret_cells[1] = (int64_t)fold->sum_ns;
    ret_cells[2] = (int64_t)fold->squares;
    ret_cells[3] = fold->min_ns;
    ret_cells[4] = fold->max_ns;
    for (int i = 0; i < WM_REGION_FOLD_BUCKETS; i++)
        ret_cells[5 + i] = fold->buckets[i];
}

void wm_region_buckets_format(const struct wm_region_fold *fold,
                              char text[WM_REGION_BUCKETS_SIZE])
{
    size_t used = 0;

    for (int i = 0; i < WM_REGION_FOLD_BUCKETS; i++)
        used += (size_t)snprintf(text + used, WM_REGION_BUCKETS_SIZE - used, "%s%u",
                                 i > 0 ? " " : "", (unsigned)fold->buckets[i]);
}

void wm_region_buckets_parse(const char *text, int64_t cells[WM_REGION_FOLD_BUCKETS])
{
    bool is_sound = text != NULL;

    for (int i = 0; i < WM_REGION_FOLD_BUCKETS; i++) {
        uint64_t number = 0;
        const char *end = text;
        is_sound = is_sound && wm_text_u64(text, &end, &number) && number <= UINT32_MAX &&
                   *end == (i + 1 < WM_REGION_FOLD_BUCKETS ? ' ' : '\0');
        cells[i] = is_sound ? (int64_t)number : -1;
        text = is_sound ? end + 1 : text;
    }
}

/* False where the numbers contradict each other. */
static bool read_fold(const struct wm_regions_row *row, struct wm_region_fold *ret_fold)
{
    const int64_t *cells = row->fold;
    uint64_t calls = 0;

    *ret_fold = (struct wm_region_fold) { 0 };
    if (cells[0] <= 0)
        return true;
    for (int i = 0; i < WM_REGION_FOLD_CELLS; i++)
        if (cells[i] < 0 || (i >= 3 && cells[i] > UINT32_MAX))
            return false;
    *ret_fold = (struct wm_region_fold) {
        .calls = (uint64_t)cells[0],
        .sum_ns = (uint64_t)cells[1],
        .squares = (uint64_t)cells[2],
        .min_ns = (uint32_t)cells[3],
        .max_ns = (uint32_t)cells[4],
    };
    for (int i = 0; i < WM_REGION_FOLD_BUCKETS; i++) {
        ret_fold->buckets[i] = (uint32_t)cells[5 + i];
        calls += ret_fold->buckets[i];
    }
    return calls == ret_fold->calls && ret_fold->min_ns <= ret_fold->max_ns;
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
    struct wm_region_fold fold;
    struct wm_region_record call = {
        .start_ns = row->start_ns,
        .stop_ns = row->stop_ns,
        .path = (uint32_t)row->path,
        .thread = (uint32_t)row->thread,
        .is_open = row->is_open == 1,
        .clocked = row->clocked > 0 ? (uint64_t)row->clocked : 0,
    };
    uint64_t most = (uint64_t)(row->stop_ns - row->start_ns) + 1;
    if (call.clocked > most)
        call.clocked = most;
    if (!read_fold(row, &fold))
        return wm_fail(err, WM_EFORMAT, "%lld calls in one row, of which it makes no sense",
                       (long long)row->fold[0]);
    return wm_regions_part_add_call(part, &call, fold.calls > 0 ? &fold : NULL) < 0
               ? wm_fail_memory(err, NULL)
               : WM_OK;
}
