/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region_calls.c - each thread's stack, what was started by itself, and the paths.
 *
 * An event that fails changes nothing that it would not change again: all memory is had
 * before an edge is handed out, and a call is only open, or not any more, once its edge
 * was taken. So the inbox can bring the same event again.
 */
#include "region/drain/region_calls.h"

#include <stdlib.h>
#include <string.h>

#include "base/base_array.h"
#include "base/base_map.h"
#include "base/text/base_names.h"

#define NONE WM_MAP_NONE

/* Of all names together: a program may make long ones out of what it works on. */
#define NAME_BYTES_MAX ((size_t)64 << 20)

struct open_call {
    int64_t start_ns;
    uint32_t path;
};

struct thread {
    uint32_t process; /* in `processes` */
    bool is_gone;
    struct open_call *stack;
    size_t depth, room;
    size_t reached; /* the greatest depth: above it are calls that are over */
    size_t beyond;  /* calls that were dropped, inside all those of the stack */
};

/* What was started by itself, and is open. */
struct free_call {
    int64_t start_ns;
    uint64_t id;
    uint32_t path, thread;
};

struct process {
    uint32_t number;  /* as the inbox counts */
    uint32_t threads; /* threads that have not ended */
    struct free_call *calls;
    size_t call_count, call_room;
    uint64_t dropped_starts; /* whose stops have not come */
};

struct wm_region_calls {
    struct wm_names names;
    size_t name_bytes; /* of all of them */
    struct wm_map path_map, thread_map, process_map, call_map;
    struct wm_region_path *paths;
    struct wm_region_thread *told; /* of each thread */
    struct thread *threads;
    struct process *processes;
    size_t path_count, thread_count, process_count;
    size_t path_room, told_room, thread_room, process_room;
    int64_t last_ns; /* time of the latest event */
    uint64_t stray, dropped;

    /* Whom edges are handed out to. */
    wm_region_take_edge *take;
    void *context;
};

/* For one more element of that size; `array` is where the pointer to them stands. */
static int reserve(void *array, size_t count, size_t *room, size_t size)
{
    return count < NONE ? wm_array_reserve(array, count, room, size) : WM_ENOMEM;
}

static bool is_further(const char *name)
{
    return strcmp(name, WM_REGION_FURTHER) == 0;
}

static bool is_full(const struct wm_region_calls *calls)
{
    return calls->path_count >= WM_REGION_PATHS_MOST || calls->name_bytes >= NAME_BYTES_MAX;
}

/* A name that there will be no path for is not kept. */
static int find_name(struct wm_region_calls *calls, const char *name, uint32_t *ret_name)
{
    bool is_kept = !is_full(calls);

    *ret_name = wm_names_find(&calls->names, name);
    if (*ret_name != NONE)
        return WM_OK;
    *ret_name = wm_names_add(&calls->names, is_kept ? name : WM_REGION_FURTHER);
    if (*ret_name == NONE)
        return WM_ENOMEM;
    calls->name_bytes += is_kept ? strlen(name) : 0;
    return WM_OK;
}

static int find_path(struct wm_region_calls *calls, uint32_t parent, bool is_free,
                     const char *name, uint32_t *ret_path)
{
    uint32_t name_number = 0;

    if (find_name(calls, name ? name : "", &name_number) < 0)
        return WM_ENOMEM;
    uint64_t key = (uint64_t)parent << 32 | name_number;
    *ret_path = wm_map_find(&calls->path_map, key, is_free);
    if (*ret_path != NONE)
        return WM_OK;
    if (is_full(calls)) {
        if (parent != WM_REGION_NO_PATH && is_further(calls->paths[parent].name)) {
            *ret_path = parent;
            return WM_OK;
        }
        if (!is_further(calls->names.texts[name_number]))
            return find_path(calls, parent, is_free, WM_REGION_FURTHER, ret_path);
    }

    if (wm_map_reserve(&calls->path_map) < 0 ||
        reserve(&calls->paths, calls->path_count, &calls->path_room,
                sizeof(*calls->paths)) < 0)
        return WM_ENOMEM;
    *ret_path = (uint32_t)calls->path_count;
    calls->paths[calls->path_count++] = (struct wm_region_path) {
        .name = calls->names.texts[name_number],
        .parent = parent,
        .depth = parent == WM_REGION_NO_PATH ? 0 : calls->paths[parent].depth + 1,
        .is_free = is_free,
    };
    wm_map_put(&calls->path_map, key, is_free, *ret_path);
    return WM_OK;
}

static int find_process(struct wm_region_calls *calls, uint32_t number, uint32_t *ret_index)
{
    *ret_index = wm_map_find(&calls->process_map, number, 0);
    if (*ret_index != NONE)
        return WM_OK;
    if (wm_map_reserve(&calls->process_map) < 0 ||
        reserve(&calls->processes, calls->process_count, &calls->process_room,
                sizeof(*calls->processes)) < 0)
        return WM_ENOMEM;
    *ret_index = (uint32_t)calls->process_count;
    calls->processes[calls->process_count++] = (struct process) { .number = number };
    wm_map_put(&calls->process_map, number, 0, *ret_index);
    return WM_OK;
}

static int find_thread(struct wm_region_calls *calls, uint32_t number,
                       const struct wm_region_thread *told, uint32_t *ret_thread)
{
    uint32_t process = 0;

    *ret_thread = wm_map_find(&calls->thread_map, number, 0);
    if (*ret_thread != NONE)
        return WM_OK;
    if (find_process(calls, told->process, &process) < 0 ||
        wm_map_reserve(&calls->thread_map) < 0 ||
        reserve(&calls->told, calls->thread_count, &calls->told_room,
                sizeof(*calls->told)) < 0 ||
        reserve(&calls->threads, calls->thread_count, &calls->thread_room,
                sizeof(*calls->threads)) < 0)
        return WM_ENOMEM;
    *ret_thread = (uint32_t)calls->thread_count;
    calls->told[calls->thread_count] = *told;
    calls->threads[calls->thread_count++] = (struct thread) { .process = process };
    calls->processes[process].threads++;
    wm_map_put(&calls->thread_map, number, 0, *ret_thread);
    return WM_OK;
}

/* What a stranger says of a call's CPU time, as far as it can be. */
static uint64_t possible(uint64_t clocked, int64_t time_ns)
{
    uint64_t most = (uint64_t)(time_ns > 0 ? time_ns : 0) + 1;

    return clocked < most ? clocked : most;
}

static int hand_out(struct wm_region_calls *calls, enum wm_region_edge_kind kind,
                    int64_t start_ns, uint32_t path, uint32_t thread,
                    const struct wm_region_event *end)
{
    const struct wm_region_edge edge = {
        .when_ns = calls->last_ns,
        .start_ns = start_ns,
        .path = path,
        .thread = thread,
        .kind = kind,
        .clocked = end ? possible(end->clocked, calls->last_ns - start_ns) : 0,
        .fold = end ? end->fold : NULL,
    };

    return calls->take(calls->context, &edge);
}

/* Whether the thread's last call at this depth was the same, as in a loop: that is found
 * out sooner than the path is. */
static bool is_repeated(const struct wm_region_calls *calls, const struct thread *thread,
                        uint32_t parent, const char *name)
{
    if (thread->depth >= thread->reached || !name)
        return false;
    const struct wm_region_path *last = &calls->paths[thread->stack[thread->depth].path];
    return last->parent == parent && strcmp(last->name, name) == 0;
}

static int begin_call(struct wm_region_calls *calls, uint32_t index, const char *name)
{
    struct thread *thread = &calls->threads[index];
    uint32_t parent =
        thread->depth > 0 ? thread->stack[thread->depth - 1].path : WM_REGION_NO_PATH;
    uint32_t path = 0;

    if (thread->beyond > 0 || thread->depth >= WM_REGION_DEPTH_MOST) {
        thread->beyond++;
        calls->dropped++;
        return WM_OK;
    }
    if (is_repeated(calls, thread, parent, name))
        path = thread->stack[thread->depth].path;
    else if (find_path(calls, parent, false, name, &path) < 0 ||
             reserve(&thread->stack, thread->depth, &thread->room, sizeof(*thread->stack)) <
                 0)
        return WM_ENOMEM;
    int status = hand_out(calls, WM_REGION_OPENS, calls->last_ns, path, index, NULL);
    if (status < 0)
        return status;
    thread->stack[thread->depth++] = (struct open_call) { calls->last_ns, path };
    if (thread->depth > thread->reached)
        thread->reached = thread->depth;
    return WM_OK;
}

static int end_call(struct wm_region_calls *calls, uint32_t index,
                    enum wm_region_edge_kind kind, const struct wm_region_event *end)
{
    struct thread *thread = &calls->threads[index];
    uint64_t above = end ? end->above : 0;

    if (above < thread->beyond) {
        thread->beyond--;
        calls->dropped++;
        return WM_OK;
    }
    above -= thread->beyond;
    if (above >= thread->depth) {
        calls->stray++;
        return WM_OK;
    }
    struct open_call *call = &thread->stack[thread->depth - 1 - above];
    int status = hand_out(calls, kind, call->start_ns, call->path, index, end);
    if (status < 0)
        return status;
    thread->depth--;
    memmove(call, call + 1, above * sizeof(*call));
    return WM_OK;
}

/* The last one takes its place. */
static void remove_call(struct wm_region_calls *calls, struct process *process,
                        uint32_t index)
{
    struct free_call *call = &process->calls[index];
    const struct free_call *last = &process->calls[--process->call_count];

    wm_map_remove(&calls->call_map, process->number, call->id);
    if (call == last)
        return;
    *call = *last;
    wm_map_put(&calls->call_map, process->number, call->id, index);
}

static int stop_call(struct wm_region_calls *calls, struct process *process, uint32_t index,
                     enum wm_region_edge_kind kind, const struct wm_region_event *end)
{
    const struct free_call *call = &process->calls[index];
    int status = hand_out(calls, kind, call->start_ns, call->path, call->thread, end);

    if (status == WM_OK)
        remove_call(calls, process, index);
    return status;
}

/* The path of what a start lies in. */
static uint32_t parent_of(const struct wm_region_calls *calls, const struct thread *thread,
                          const struct process *process, uint64_t parent)
{
    if (parent == 0)
        return WM_REGION_NO_PATH;
    if (parent == WM_REGION_INNERMOST)
        return thread->depth > 0 ? thread->stack[thread->depth - 1].path
                                 : WM_REGION_NO_PATH;
    uint32_t call = wm_map_find(&calls->call_map, process->number, parent);
    return call != NONE ? process->calls[call].path : WM_REGION_NO_PATH;
}

/* One that is started while it goes on has broken off. */
static int start_call(struct wm_region_calls *calls, uint32_t thread,
                      const struct wm_region_event *start)
{
    struct process *process = &calls->processes[calls->threads[thread].process];
    uint32_t parent = parent_of(calls, &calls->threads[thread], process, start->parent);
    uint64_t id = start->id;
    uint32_t path = 0;
    int status = WM_OK;

    uint32_t same = wm_map_find(&calls->call_map, process->number, id);
    if (same == NONE && calls->call_map.count >= WM_REGION_STARTED_MOST) {
        process->dropped_starts++;
        calls->dropped++;
        return WM_OK;
    }
    if (find_path(calls, parent, true, start->name, &path) < 0 ||
        wm_map_reserve(&calls->call_map) < 0 ||
        reserve(&process->calls, process->call_count, &process->call_room,
                sizeof(*process->calls)) < 0)
        return WM_ENOMEM;

    if (same != NONE)
        status = stop_call(calls, process, same, WM_REGION_BREAKS_OFF, NULL);
    if (status == WM_OK)
        status = hand_out(calls, WM_REGION_OPENS, calls->last_ns, path, thread, NULL);
    if (status < 0)
        return status;
    wm_map_put(&calls->call_map, process->number, id, (uint32_t)process->call_count);
    process->calls[process->call_count++] =
        (struct free_call) { calls->last_ns, id, path, thread };
    return WM_OK;
}

/* A stop of what is not open: of a start that was dropped, as long as there are such. */
static void count_stop(struct wm_region_calls *calls, struct process *process)
{
    if (process->dropped_starts == 0) {
        calls->stray++;
        return;
    }
    process->dropped_starts--;
    calls->dropped++;
}

static int break_off_stack(struct wm_region_calls *calls, uint32_t thread)
{
    int status = WM_OK;

    calls->threads[thread].beyond = 0;
    while (calls->threads[thread].depth > 0 && status == WM_OK)
        status = end_call(calls, thread, WM_REGION_BREAKS_OFF, NULL);
    return status;
}

static int break_off_started(struct wm_region_calls *calls, struct process *process)
{
    int status = WM_OK;

    while (process->call_count > 0 && status == WM_OK)
        status = stop_call(calls, process, (uint32_t)process->call_count - 1,
                           WM_REGION_BREAKS_OFF, NULL);
    if (status < 0)
        return status;
    free(process->calls);
    process->calls = NULL;
    process->call_room = 0;
    process->dropped_starts = 0;
    return WM_OK;
}

static int end_thread(struct wm_region_calls *calls, uint32_t index)
{
    struct thread *thread = &calls->threads[index];
    struct process *process = &calls->processes[thread->process];

    int status = break_off_stack(calls, index);
    if (status == WM_OK && process->threads == 1)
        status = break_off_started(calls, process);
    if (status < 0)
        return status;
    free(thread->stack);
    thread->stack = NULL;
    thread->room = thread->reached = 0;
    thread->is_gone = true;
    process->threads--;
    return WM_OK;
}

int wm_region_calls_new(struct wm_region_calls **ret_calls, struct wm_error *err)
{
    struct wm_region_calls *calls = calloc(1, sizeof(*calls));

    if (!calls)
        return wm_fail_memory(err, NULL);
    calls->last_ns = INT64_MIN;
    *ret_calls = calls;
    return WM_OK;
}

void wm_region_calls_free(struct wm_region_calls *calls)
{
    if (!calls)
        return;
    for (size_t i = 0; i < calls->thread_count; i++)
        free(calls->threads[i].stack);
    for (size_t i = 0; i < calls->process_count; i++)
        free(calls->processes[i].calls);
    free(calls->paths);
    free(calls->told);
    free(calls->threads);
    free(calls->processes);
    wm_names_release(&calls->names);
    wm_map_release(&calls->path_map);
    wm_map_release(&calls->thread_map);
    wm_map_release(&calls->process_map);
    wm_map_release(&calls->call_map);
    free(calls);
}

static void set_taker(struct wm_region_calls *calls, int64_t when_ns,
                      wm_region_take_edge *take, void *context)
{
    if (when_ns > calls->last_ns)
        calls->last_ns = when_ns;
    calls->take = take;
    calls->context = context;
}

int wm_region_calls_event(struct wm_region_calls *calls,
                          const struct wm_region_event *event, wm_region_take_edge *take,
                          void *context)
{
    uint32_t index = 0;

    set_taker(calls, event->when_ns, take, context);
    if (find_thread(calls, event->thread, event->who, &index) < 0)
        return WM_ENOMEM;
    struct thread *known = &calls->threads[index];
    struct process *process = &calls->processes[known->process];
    if (known->is_gone && event->kind == WM_REGION_GONE)
        return WM_OK;
    if (known->is_gone) {
        known->is_gone = false;
        process->threads++;
    }

    switch (event->kind) {
    case WM_REGION_BEGINS:
        return begin_call(calls, index, event->name);
    case WM_REGION_ENDS:
        return end_call(calls, index, WM_REGION_CLOSES, event);
    case WM_REGION_STARTS:
        return start_call(calls, index, event);
    case WM_REGION_STOPS: {
        uint32_t call = wm_map_find(&calls->call_map, process->number, event->id);
        if (call != NONE)
            return stop_call(calls, process, call, WM_REGION_CLOSES, event);
        count_stop(calls, process);
        return WM_OK;
    }
    case WM_REGION_GONE:
        return end_thread(calls, index);
    }
    return WM_OK;
}

int wm_region_calls_end(struct wm_region_calls *calls, int64_t when_ns,
                        wm_region_take_edge *take, void *context)
{
    int status = WM_OK;

    set_taker(calls, when_ns, take, context);
    for (size_t i = 0; i < calls->thread_count && status == WM_OK; i++)
        status = break_off_stack(calls, (uint32_t)i);
    for (size_t i = 0; i < calls->process_count && status == WM_OK; i++)
        status = break_off_started(calls, &calls->processes[i]);
    return status;
}

size_t wm_region_calls_path_count(const struct wm_region_calls *calls)
{
    return calls->path_count;
}

const struct wm_region_path *wm_region_calls_path(const struct wm_region_calls *calls,
                                                  uint32_t path)
{
    return &calls->paths[path];
}

size_t wm_region_calls_thread_count(const struct wm_region_calls *calls)
{
    return calls->thread_count;
}

const struct wm_region_thread *wm_region_calls_thread(const struct wm_region_calls *calls,
                                                      uint32_t thread)
{
    return &calls->told[thread];
}

uint64_t wm_region_calls_stray(const struct wm_region_calls *calls)
{
    return calls->stray;
}

uint64_t wm_region_calls_dropped(const struct wm_region_calls *calls)
{
    return calls->dropped;
}
