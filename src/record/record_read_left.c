/* SPDX-License-Identifier: Apache-2.0 */
/* record_read_left.c - what was left behind is numbered as the recording has it, and what
 * that has already is passed over. */
#include "record/record_read_left.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base_array.h"
#include "base/base_file.h"
#include "region/drain/region_left.h"

static int out_of_memory(struct wm_error *err)
{
    return wm_fail(err, WM_ENOMEM, "out of memory");
}

static int note_call(struct wm_left *left, const struct wm_region_record *call)
{
    if (call->stop_ns < left->last_ns)
        return WM_OK;
    if (call->stop_ns > left->last_ns)
        left->last_count = 0;
    if (wm_array_reserve(&left->last, left->last_count, &left->last_room,
                         sizeof(*left->last)) < 0)
        return WM_ENOMEM;
    left->last[left->last_count++] = *call;
    left->last_ns = call->stop_ns;
    return WM_OK;
}

int wm_left_note(struct wm_left *left, const struct wm_region_batch *batch,
                 struct wm_error *err)
{
    int status = WM_OK;

    for (uint32_t i = 0; i < batch->path_count && status == WM_OK; i++)
        status = wm_regions_part_add_path(&left->known, &batch->paths[i]);
    for (uint32_t i = 0; i < batch->thread_count && status == WM_OK; i++)
        status = wm_regions_part_add_thread(&left->known, batch->threads[i]);
    for (size_t i = 0; i < batch->call_count && status == WM_OK; i++)
        status = note_call(left, &batch->calls[i]);
    return status < 0 ? out_of_memory(err) : WM_OK;
}

static int compare_paths(const struct wm_region_path *a, const struct wm_region_path *b)
{
    if (a->parent != b->parent)
        return a->parent < b->parent ? -1 : 1;
    if (a->is_free != b->is_free)
        return a->is_free ? 1 : -1;
    return strcmp(a->name, b->name);
}

static int compare_threads(const struct wm_region_thread *a,
                           const struct wm_region_thread *b)
{
    if (a->process != b->process)
        return a->process < b->process ? -1 : 1;
    if (a->pid != b->pid)
        return a->pid < b->pid ? -1 : 1;
    return (a->tid > b->tid) - (a->tid < b->tid);
}

static int by_path(const void *a, const void *b, void *paths)
{
    const struct wm_region_path *all = paths;

    return compare_paths(&all[*(const uint32_t *)a], &all[*(const uint32_t *)b]);
}

static int by_thread(const void *a, const void *b, void *threads)
{
    const struct wm_region_thread *all = threads;

    return compare_threads(&all[*(const uint32_t *)a], &all[*(const uint32_t *)b]);
}

/* NULL when out of memory. */
static uint32_t *make_index(size_t count,
                            int (*compare)(const void *, const void *, void *), void *all)
{
    uint32_t *index = malloc((count + 1) * sizeof(*index));

    if (!index)
        return NULL;
    for (size_t i = 0; i < count; i++)
        index[i] = (uint32_t)i;
    if (count > 0)
        qsort_r(index, count, sizeof(*index), compare, all);
    return index;
}

/* What one reading of it needs. */
struct joining {
    struct wm_left *left;
    struct wm_region_calls *calls;
    uint32_t *path_index, *thread_index; /* of what the recording has */
    uint32_t *paths, *threads;           /* from the numbers of `calls` to those */
    size_t path_count, path_room, thread_count, thread_room;
    bool is_end; /* what comes now is open still */
};

static int append(uint32_t **array, size_t *count, size_t *room, uint32_t number)
{
    if (wm_array_reserve(array, *count, room, sizeof(**array)) < 0)
        return WM_ENOMEM;
    (*array)[(*count)++] = number;
    return WM_OK;
}

static int map_path(struct joining *joining, const struct wm_region_path *path)
{
    const struct wm_regions_part *known = &joining->left->known;
    struct wm_regions_part *found = &joining->left->found;
    struct wm_region_path wanted = *path;
    size_t low = 0, high = known->path_count;
    int status = WM_OK;

    if (wanted.parent != WM_REGION_NO_PATH)
        wanted.parent = joining->paths[wanted.parent];
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        uint32_t number = joining->path_index[middle];
        int order = compare_paths(&wanted, &known->paths[number]);
        if (order == 0)
            return append(&joining->paths, &joining->path_count, &joining->path_room,
                          number);
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    status = append(&joining->paths, &joining->path_count, &joining->path_room,
                    wm_regions_part_next_path(found));
    return status < 0 ? status : wm_regions_part_add_path(found, &wanted);
}

static int map_thread(struct joining *joining, struct wm_region_thread wanted)
{
    const struct wm_regions_part *known = &joining->left->known;
    struct wm_regions_part *found = &joining->left->found;
    size_t low = 0, high = known->thread_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        uint32_t number = joining->thread_index[middle];
        int order = compare_threads(&wanted, &known->threads[number]);
        if (order == 0)
            return append(&joining->threads, &joining->thread_count, &joining->thread_room,
                          number);
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    int status = append(&joining->threads, &joining->thread_count, &joining->thread_room,
                        wm_regions_part_next_thread(found));
    return status < 0 ? status : wm_regions_part_add_thread(found, wanted);
}

static int map_new(struct joining *joining)
{
    const struct wm_region_calls *calls = joining->calls;
    int status = WM_OK;

    while (joining->path_count < wm_region_calls_path_count(calls) && status == WM_OK)
        status =
            map_path(joining, wm_region_calls_path(calls, (uint32_t)joining->path_count));
    while (joining->thread_count < wm_region_calls_thread_count(calls) && status == WM_OK)
        status = map_thread(joining,
                            wm_region_calls_thread(calls, (uint32_t)joining->thread_count));
    return status;
}

/* Calls are recorded in the order of their stops. */
static bool is_recorded(const struct wm_left *left, const struct wm_region_record *call)
{
    if (call->stop_ns != left->last_ns)
        return call->stop_ns < left->last_ns;
    for (size_t i = 0; i < left->last_count; i++) {
        const struct wm_region_record *other = &left->last[i];
        if (other->start_ns == call->start_ns && other->path == call->path &&
            other->thread == call->thread)
            return true;
    }
    return false;
}

static int take_edge(void *context, const struct wm_region_edge *edge)
{
    struct joining *joining = context;

    if (edge->kind == WM_REGION_OPENS)
        return WM_OK;
    int status = map_new(joining);
    if (status < 0)
        return status;
    const struct wm_region_record call = {
        .start_ns = edge->start_ns,
        .stop_ns = edge->when_ns,
        .path = joining->paths[edge->path],
        .thread = joining->threads[edge->thread],
        .is_open = edge->kind == WM_REGION_BREAKS_OFF,
    };
    if (!joining->is_end && is_recorded(joining->left, &call))
        return WM_OK;
    return wm_regions_part_add_call(&joining->left->found, &call);
}

static void write_remark(char remark[WM_LEFT_REMARK], const struct wm_region_left *found)
{
    char reason[96];

    remark[0] = '\0';
    if (found->dropped > 0)
        snprintf(remark, WM_LEFT_REMARK,
                 "%llu event%s (begins, ends) found no %s%s and are missing%s",
                 (unsigned long long)found->dropped, found->dropped == 1 ? "" : "s",
                 found->no_ring_errno == 0 ? "room" : "room, or no ring at all: ",
                 found->no_ring_errno == 0
                     ? ""
                     : strerror_r(found->no_ring_errno, reason, sizeof(reason)),
                 found->trouble[0] ? "; " : "");
    if (found->trouble[0]) {
        size_t used = strlen(remark);
        snprintf(remark + used, WM_LEFT_REMARK - used,
                 "the last ones before the tracker was killed may be missing: %s",
                 found->trouble);
    }
}

static int join(struct joining *joining, const char *folder, int64_t end_ns,
                struct wm_error *err)
{
    struct wm_left *left = joining->left;
    struct wm_region_left found = { 0 };

    left->found.first_path = wm_regions_part_next_path(&left->known);
    left->found.first_thread = wm_regions_part_next_thread(&left->known);
    joining->path_index = make_index(left->known.path_count, by_path, left->known.paths);
    joining->thread_index =
        make_index(left->known.thread_count, by_thread, left->known.threads);
    if (!joining->path_index || !joining->thread_index)
        return out_of_memory(err);

    int status = wm_region_calls_new(&joining->calls, err);
    if (status == WM_OK)
        status =
            wm_region_left_read(folder, joining->calls, take_edge, joining, &found, err);
    if (status < 0)
        return status;
    write_remark(left->remark, &found);
    joining->is_end = true;
    if (end_ns < left->last_ns)
        end_ns = left->last_ns;
    if (end_ns < found.last_ns)
        end_ns = found.last_ns;
    status = wm_region_calls_end(joining->calls, end_ns, take_edge, joining);
    return status < 0 ? out_of_memory(err) : WM_OK;
}

/* Since the machine was started anew nothing of it is there, whatever has its name. */
static bool is_of_this_boot(const struct wm_run *run)
{
    char boot_id[64];

    return run->boot_id &&
           wm_file_read_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", boot_id,
                           sizeof(boot_id)) > 0 &&
           strncmp(boot_id, run->boot_id, strcspn(boot_id, "\n")) == 0;
}

bool wm_left_is_there(const struct wm_run *run)
{
    return run->regions_folder && is_of_this_boot(run) &&
           (access(run->regions_folder, F_OK) == 0 || errno != ENOENT);
}

static int ignore_edge(void *context, const struct wm_region_edge *edge)
{
    (void)context, (void)edge;
    return WM_OK;
}

int wm_left_look(const struct wm_run *run, char ret_remark[WM_LEFT_REMARK],
                 struct wm_error *err)
{
    struct wm_region_calls *calls = NULL;
    struct wm_region_left found = { 0 };

    if (!wm_left_is_there(run))
        return 0;
    int status = wm_region_calls_new(&calls, err);
    if (status == WM_OK)
        status =
            wm_region_left_read(run->regions_folder, calls, ignore_edge, NULL, &found, err);
    wm_region_calls_free(calls);
    if (status < 0)
        return status == WM_ENOMEM ? status : 0;
    write_remark(ret_remark, &found);
    return 1;
}

int wm_left_read(struct wm_left *left, const struct wm_run *run, int64_t end_ns,
                 struct wm_region_batch *ret_batch, struct wm_error *err)
{
    struct joining joining = { .left = left };
    struct wm_error why = { 0 };

    left->remark[0] = '\0';
    if (!wm_left_is_there(run))
        return 0;
    int status = join(&joining, run->regions_folder, end_ns, &why);
    wm_region_calls_free(joining.calls);
    free(joining.path_index);
    free(joining.thread_index);
    free(joining.paths);
    free(joining.threads);
    if (status == WM_ENOMEM)
        return wm_fail(err, status, "%s", why.text);
    if (wm_regions_part_is_empty(&left->found))
        return 0;
    *ret_batch = wm_regions_part_batch(&left->found);
    return 1;
}

void wm_left_release(struct wm_left *left)
{
    wm_regions_part_release(&left->known);
    wm_regions_part_release(&left->found);
    free(left->last);
    *left = (struct wm_left) { 0 };
}
