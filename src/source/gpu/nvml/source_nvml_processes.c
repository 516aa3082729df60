/* SPDX-License-Identifier: Apache-2.0 */
/* source_nvml_processes.c - asks NVML who uses a GPU, whatever its version. */
#include "source/gpu/nvml/source_nvml_processes.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_clock.h"

/* Processes that fit before the first allocation while reading, and where a
 * count is taken for a mistake. */
enum { START = 32, PROCESSES_MAX = 65536 };

/* What the buffer holds before the driver writes; no field that ends an entry
 * is ever made of such bytes. */
enum { UNTOUCHED = 0xA5 };

enum { LARGEST = sizeof(struct nvml_process_535) };

/* The driver samples a few times a second at best: asking more often costs and
 * tells nothing. An answer holds while no newer one comes, and then no process
 * has used the GPU: the driver speaks of those only that did. */
#define SM_ASK_NS (100 * WM_NS_PER_MS)
#define SM_HOLD_NS (2 * WM_NS_PER_S)

/* Where the entry of a pid is: in a hash table that is at most half full. */
struct nvml_place {
    unsigned pid; /* 0: free */
    unsigned index;
    unsigned long long sampled_us; /* of the newest sample so far */
};

/* The driver's list. */

int nvml_raw_list_init(struct nvml_raw_list *list)
{
    list->room = START;
    list->entries = calloc(list->room, LARGEST);
    return list->entries ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

void nvml_raw_list_release(struct nvml_raw_list *list)
{
    free(list->entries);
}

/* How far the driver's entries stand apart. It says so nowhere: drivers 535.43
 * to 535.86 wrote 32 bytes per entry where the same call writes 24 before and
 * after, so that readers took memory for a pid. What it wrote shows. */
static size_t entry_size(const struct nvml_raw_list *list, size_t declared)
{
    static const size_t sizes[] = { sizeof(struct nvml_process_v1),
                                    sizeof(struct nvml_process_v2),
                                    sizeof(struct nvml_process_535) };
    size_t written = list->count * (size_t)LARGEST;

    while (written > 0 && list->entries[written - 1] == UNTOUCHED)
        written--;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        if (written <= list->count * sizes[i])
            return sizes[i];
    }
    return declared;
}

static int ask_list(struct nvml_raw_list *list, const struct nvml_list_calls *calls,
                    nvml_device device)
{
    const struct {
        int (*call)(nvml_device device, unsigned *count, void *entries);
        size_t declared;
    } versions[] = {
        { calls->v3, sizeof(struct nvml_process_v2) },
        { calls->v2, sizeof(struct nvml_process_v2) },
        { calls->v1, sizeof(struct nvml_process_v1) },
    };
    int status = NVML_ERROR_FUNCTION_NOT_FOUND;

    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
        if (!versions[i].call)
            continue;
        list->count = (unsigned)list->room;
        memset(list->entries, UNTOUCHED, list->room * LARGEST);
        status = versions[i].call(device, &list->count, list->entries);
        if (nvml_lacks_call(status))
            continue;
        if (status == NVML_SUCCESS && list->count > list->room)
            return NVML_IMPOSSIBLE_VALUE;
        if (status == NVML_SUCCESS)
            list->size = entry_size(list, versions[i].declared);
        break;
    }
    return status;
}

/* How many are to fit after `wanted` did not; 0: that cannot be. */
static size_t larger_room(unsigned wanted, size_t room)
{
    /* With room for those that start meanwhile. */
    return wanted > room && wanted <= PROCESSES_MAX ? (size_t)wanted + START : 0;
}

static int grow_list(struct nvml_raw_list *list)
{
    size_t room = larger_room(list->count, list->room);
    if (room == 0)
        return NVML_IMPOSSIBLE_VALUE;

    unsigned char *entries = realloc(list->entries, room * LARGEST);
    if (!entries)
        return NVML_ERROR_MEMORY;
    list->entries = entries;
    list->room = room;
    return NVML_SUCCESS;
}

int nvml_raw_list_read(struct nvml_raw_list *list, const struct nvml_list_calls *calls,
                       nvml_device device)
{
    int status = ask_list(list, calls, device);

    if (status == NVML_ERROR_INSUFFICIENT_SIZE) {
        status = grow_list(list);
        if (status == NVML_SUCCESS)
            status = ask_list(list, calls, device);
    }
    if (status != NVML_SUCCESS)
        list->count = 0;
    return status;
}

/* The processes in them. */

static struct nvml_place *find_place(const struct nvml_processes *processes, unsigned pid)
{
    size_t mask = processes->place_count - 1;
    size_t i = (pid * 0x9E3779B97F4A7C15 >> 32) & mask;

    while (processes->places[i].pid != 0 && processes->places[i].pid != pid)
        i = (i + 1) & mask;
    return &processes->places[i];
}

static void index_found(struct nvml_processes *processes)
{
    memset(processes->places, 0, processes->place_count * sizeof(*processes->places));
    for (size_t i = 0; i < processes->count; i++) {
        unsigned pid = (unsigned)processes->found[i].pid;
        *find_place(processes, pid) = (struct nvml_place) { pid, (unsigned)i, 0 };
    }
}

/* Makes room for `room` processes. On failure nothing has changed. */
static int make_room(struct nvml_processes *processes, size_t room)
{
    size_t place_count = 2 * START;
    while (place_count < 2 * room)
        place_count *= 2;

    struct wm_gpu_process *found = realloc(processes->found, room * sizeof(*found));
    if (!found)
        return NVML_ERROR_MEMORY;
    processes->found = found;

    struct nvml_place *places = realloc(processes->places, place_count * sizeof(*places));
    if (!places)
        return NVML_ERROR_MEMORY;
    processes->places = places;
    processes->place_count = place_count;
    processes->room = room;
    index_found(processes);
    return NVML_SUCCESS;
}

/* A list may hold a process once per context, and several lists the same one,
 * with the same memory or with the part of it that the list is about. Which of
 * the two is not known: of the largest figure it uses so much at least. */
static void add(struct nvml_processes *processes, const unsigned char *raw)
{
    struct nvml_process_v1 entry; /* every kind begins like the smallest */

    memcpy(&entry, raw, sizeof(entry));
    if (entry.pid == 0 || entry.pid > INT_MAX)
        return;

    struct nvml_place *place = find_place(processes, entry.pid);
    if (place->pid == 0) {
        *place = (struct nvml_place) { entry.pid, (unsigned)processes->count, 0 };
        processes->found[processes->count++] = (struct wm_gpu_process) {
            .device = processes->id,
            .pid = (pid_t)entry.pid,
            .state = WM_READING_UNSUPPORTED,
        };
    }
    if (entry.memory == NVML_NOT_AVAILABLE)
        return;

    struct wm_gpu_process *process = &processes->found[place->index];
    process->state = WM_READING_OK;
    if ((double)entry.memory > process->memory_bytes)
        process->memory_bytes = (double)entry.memory;
}

static int add_list(struct nvml_processes *processes)
{
    const struct nvml_raw_list *raw = &processes->raw;
    size_t most = processes->count + raw->count + 1; /* add_unknown() needs no memory */

    if (most > processes->room) {
        int status = make_room(processes, most + START);
        if (status != NVML_SUCCESS)
            return status;
    }
    for (size_t i = 0; i < raw->count; i++)
        add(processes, raw->entries + i * raw->size);
    return NVML_SUCCESS;
}

/* How much of the GPU's time they use. */

static int make_sample_room(struct nvml_sm_use *sm, size_t room)
{
    struct nvml_process_sample *held = realloc(sm->held, room * sizeof(*held));
    if (!held)
        return NVML_ERROR_MEMORY;
    sm->held = held;

    struct nvml_process_sample *fresh = realloc(sm->fresh, room * sizeof(*fresh));
    if (!fresh)
        return NVML_ERROR_MEMORY;
    sm->fresh = fresh;
    sm->room = room;
    return NVML_SUCCESS;
}

static int ask_samples(struct nvml_sm_use *sm, const struct nvml_process_calls *calls,
                       nvml_device device, unsigned *ret_count)
{
    if (!calls->utilization)
        return NVML_ERROR_FUNCTION_NOT_FOUND;

    unsigned count = (unsigned)sm->room;
    int status = calls->utilization(device, sm->fresh, &count, sm->last_seen_us);
    if (status == NVML_ERROR_INSUFFICIENT_SIZE) {
        size_t room = larger_room(count, sm->room);
        if (room == 0)
            return NVML_IMPOSSIBLE_VALUE;
        status = make_sample_room(sm, room);
        if (status != NVML_SUCCESS)
            return status;
        count = (unsigned)sm->room;
        status = calls->utilization(device, sm->fresh, &count, sm->last_seen_us);
    }
    if (status == NVML_SUCCESS && count > sm->room)
        return NVML_IMPOSSIBLE_VALUE;
    *ret_count = count;
    return status;
}

/* Drivers were seen to repeat samples that are older than was asked for, and to
 * leave entries with neither a percentage nor a time in between
 * (https://github.com/Syllo/nvtop/issues/110): the time of such an entry must
 * not become the one that is asked from. */
static size_t drop_old_samples(struct nvml_sm_use *sm, size_t count)
{
    unsigned long long newest_us = sm->last_seen_us;
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        if (sm->fresh[i].timestamp_us <= sm->last_seen_us)
            continue;
        sm->fresh[kept++] = sm->fresh[i];
        if (sm->fresh[i].sm <= 100 && sm->fresh[i].timestamp_us > newest_us)
            newest_us = sm->fresh[i].timestamp_us;
    }
    sm->last_seen_us = newest_us;
    return kept;
}

static void refresh_samples(struct nvml_sm_use *sm, const struct nvml_process_calls *calls,
                            nvml_device device, int64_t now_ns)
{
    unsigned count = 0;

    if (nvml_state(sm->status) == WM_READING_UNSUPPORTED ||
        (sm->asked_ns != 0 && now_ns - sm->asked_ns < SM_ASK_NS))
        return;

    sm->asked_ns = now_ns;
    sm->status = ask_samples(sm, calls, device, &count);
    if (sm->status != NVML_SUCCESS)
        return;

    size_t kept = drop_old_samples(sm, count);
    if (kept > 0) {
        struct nvml_process_sample *fresh = sm->fresh;
        sm->fresh = sm->held;
        sm->held = fresh;
        sm->held_count = kept;
        sm->held_ns = now_ns;
    }
}

/* By NVML's documentation of nvmlDeviceGetProcessUtilization there is a sample of
 * each process that used any of the GPU during the last sample period: one without
 * a sample used nothing, which is 0, and known. Not known is what the driver will
 * not say of anybody, and a sample that cannot be. NVML_ERROR_NOT_FOUND, no sample
 * at all, is "nobody used it since", or not yet: the two can only be told apart by
 * how long ago the last sample was. */
static void put_sm(struct nvml_processes *processes, int64_t now_ns)
{
    const struct nvml_sm_use *sm = &processes->sm;
    bool holds = sm->held_count > 0 && now_ns - sm->held_ns <= SM_HOLD_NS;
    bool known = holds || sm->status == NVML_SUCCESS || sm->status == NVML_ERROR_NOT_FOUND;
    enum wm_reading_state state = known ? WM_READING_OK : nvml_state(sm->status);

    for (size_t i = 0; i < processes->count; i++)
        processes->found[i].sm_state = state;

    for (size_t i = 0; holds && i < sm->held_count; i++) {
        const struct nvml_process_sample *sample = &sm->held[i];
        struct nvml_place *place = find_place(processes, sample->pid);

        if (sample->pid == 0 || place->pid == 0 ||
            sample->timestamp_us <= place->sampled_us)
            continue;
        place->sampled_us = sample->timestamp_us;

        struct wm_gpu_process *process = &processes->found[place->index];
        process->sm_state = sample->sm <= 100 ? WM_READING_OK : WM_READING_FAILED;
        process->sm_ratio = sample->sm <= 100 ? sample->sm / 1e2 : 0;
    }
}

/* All of it. */

int nvml_processes_init(struct nvml_processes *processes, const char *id)
{
    processes->id = id;
    int status = nvml_raw_list_init(&processes->raw);
    if (status == NVML_SUCCESS)
        status = make_room(processes, START);
    if (status == NVML_SUCCESS)
        status = make_sample_room(&processes->sm, START);
    return status;
}

void nvml_processes_release(struct nvml_processes *processes)
{
    free(processes->sm.fresh);
    free(processes->sm.held);
    free(processes->places);
    free(processes->found);
    nvml_raw_list_release(&processes->raw);
}

void nvml_processes_restart(struct nvml_processes *processes)
{
    struct nvml_sm_use *sm = &processes->sm;

    memset(processes->statuses, NVML_SUCCESS, sizeof(processes->statuses));
    sm->held_count = 0;
    sm->last_seen_us = 0;
    sm->asked_ns = 0;
    sm->status = NVML_SUCCESS;
}

/* Says that some are not known, or all; there is always room for that. */
static void add_unknown(struct nvml_processes *processes, int status)
{
    enum wm_reading_state state = nvml_state(status);

    processes->found[processes->count++] = (struct wm_gpu_process) {
        .device = processes->id,
        .state = state,
        .sm_state = state,
    };
}

void nvml_processes_set_unknown(struct nvml_processes *processes, int status)
{
    processes->count = 0;
    add_unknown(processes, status);
}

static int read_list(struct nvml_processes *processes, enum nvml_list list,
                     const struct nvml_process_calls *calls, nvml_device device)
{
    int *status = &processes->statuses[list];

    if (nvml_state(*status) == WM_READING_UNSUPPORTED)
        return *status;
    *status = nvml_raw_list_read(&processes->raw, &calls->lists[list], device);
    if (*status == NVML_SUCCESS)
        *status = add_list(processes);
    return *status;
}

/* Boards that only compute have no list of those who draw, and few drivers have
 * one of MPS: what is not supported has no processes. One that fails may have
 * some, or more memory of those that are known; and without the first list there
 * is nothing to go by. */
int nvml_processes_read(struct nvml_processes *processes,
                        const struct nvml_process_calls *calls, nvml_device device,
                        int64_t now_ns)
{
    int worst = NVML_SUCCESS;

    processes->count = 0;
    index_found(processes);
    for (enum nvml_list list = 0; list < NVML_LIST_COUNT; list++) {
        int status = read_list(processes, list, calls, device);
        if (worst == NVML_SUCCESS &&
            (list == NVML_LIST_COMPUTE || nvml_state(status) != WM_READING_UNSUPPORTED))
            worst = status;
    }
    if (processes->count > 0)
        refresh_samples(&processes->sm, calls, device, now_ns);
    put_sm(processes, now_ns);
    if (worst != NVML_SUCCESS)
        add_unknown(processes, worst);
    return worst;
}
