/* SPDX-License-Identifier: Apache-2.0 */
/* source_nvml_processes.c - asks NVML who uses a GPU, whatever its version. */
#include "source/gpu/nvml/source_nvml_processes.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_clock.h"
#include "wattmeter/source.h"

/* Processes that fit before the first allocation while reading, and where a
 * count is taken for a mistake. */
enum { START = 32, PROCESSES_MAX = 65536 };

/* What the buffer holds before the driver writes; no field that ends an entry
 * is ever made of such bytes. */
enum { UNTOUCHED = 0xA5 };

enum { LARGEST = sizeof(struct nvml_process_535) };

/* The driver samples a few times a second at best and once a second at worst: asking
 * more often costs and tells nothing. An answer holds while no newer one comes, and then
 * no process has used the GPU: the driver speaks of those only that did. */
#define SAMPLES_ASK_NS (100 * WM_NS_PER_MS)
#define SAMPLES_HOLD_NS (2 * WM_NS_PER_S)

/* Where the first entry of a pid is: in a hash table that is at most half full. */
struct nvml_place {
    unsigned pid; /* 0: free */
    size_t index;
};

/* The driver's list. */

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

static int make_list_room(struct nvml_raw_list *list, size_t room)
{
    if (room == 0)
        return NVML_IMPOSSIBLE_VALUE;
    unsigned char *entries = realloc(list->entries, room * LARGEST);
    if (!entries)
        return NVML_ERROR_MEMORY;
    list->entries = entries;
    list->room = room;
    return NVML_SUCCESS;
}

static int read_raw_list(struct nvml_raw_list *list, const struct nvml_list_calls *calls,
                         nvml_device device)
{
    int status = ask_list(list, calls, device);

    if (status == NVML_ERROR_INSUFFICIENT_SIZE) {
        status = make_list_room(list, larger_room(list->count, list->room));
        if (status == NVML_SUCCESS)
            status = ask_list(list, calls, device);
    }
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

static void index_process(struct nvml_processes *processes, size_t index)
{
    struct nvml_process *process = &processes->found[index];
    struct nvml_place *place = find_place(processes, process->pid);

    process->next = place->pid != 0 ? place->index : SIZE_MAX;
    *place = (struct nvml_place) { process->pid, index };
}

static void index_found(struct nvml_processes *processes)
{
    memset(processes->places, 0, processes->place_count * sizeof(*processes->places));
    for (size_t i = 0; i < processes->count; i++)
        index_process(processes, i);
}

/* Makes room for `room` processes. On failure nothing has changed. */
static int make_room(struct nvml_processes *processes, size_t room)
{
    size_t place_count = 2 * START;
    while (place_count < 2 * room)
        place_count *= 2;

    struct nvml_process *found = realloc(processes->found, room * sizeof(*found));
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

/* The entry of the process in that part; a new one where there is none yet. */
static struct nvml_process *find_process(struct nvml_processes *processes, unsigned pid,
                                         int gpu_instance, int compute_instance)
{
    const struct nvml_place *place = find_place(processes, pid);

    for (size_t i = place->pid != 0 ? place->index : SIZE_MAX; i != SIZE_MAX;
         i = processes->found[i].next) {
        struct nvml_process *process = &processes->found[i];
        if (process->gpu_instance == gpu_instance &&
            process->compute_instance == compute_instance)
            return process;
    }
    size_t index = processes->count++;
    processes->found[index] = (struct nvml_process) {
        .pid = pid,
        .gpu_instance = gpu_instance,
        .compute_instance = compute_instance,
    };
    index_process(processes, index);
    return &processes->found[index];
}

static int instance_of(unsigned id)
{
    return id <= INT_MAX ? (int)id : NVML_INSTANCE_NOT_TOLD;
}

/* A list may hold a process once per context, and several lists the same one,
 * with the same memory or with the part of it that the list is about. Which of
 * the two is not known: of the largest figure it uses so much at least. */
static void add(struct nvml_processes *processes, const unsigned char *raw,
                enum nvml_list list, const struct nvml_part *part)
{
    struct nvml_process_v2 entry = { .gpu_instance = NVML_NO_INSTANCE,
                                     .compute_instance = NVML_NO_INSTANCE };
    size_t size = processes->raw.size;

    memcpy(&entry, raw, size < sizeof(entry) ? size : sizeof(entry));
    if (entry.pid == 0 || entry.pid > INT_MAX)
        return;

    struct nvml_process *process =
        part
            ? find_process(processes, entry.pid, part->gpu_instance, part->compute_instance)
            : find_process(processes, entry.pid, instance_of(entry.gpu_instance),
                           instance_of(entry.compute_instance));
    process->lists |= 1U << list;
    if (entry.memory != NVML_NOT_AVAILABLE &&
        (!process->knows_memory || entry.memory > process->memory)) {
        process->knows_memory = true;
        process->memory = entry.memory;
    }
}

static int add_list(struct nvml_processes *processes, enum nvml_list list,
                    const struct nvml_part *part)
{
    const struct nvml_raw_list *raw = &processes->raw;
    size_t most = processes->count + raw->count;

    if (most > processes->room) {
        int status = make_room(processes, most + START);
        if (status != NVML_SUCCESS)
            return status;
    }
    for (size_t i = 0; i < raw->count; i++)
        add(processes, raw->entries + i * raw->size, list, part);
    return NVML_SUCCESS;
}

/* `part` is whose lists they are, in place of what each entry says; NULL where that
 * matters. The GPU's own list is not asked for again where it is not supported. */
static int read_list(struct nvml_processes *processes, const struct nvml_api *api,
                     enum nvml_list list, nvml_device device, const struct nvml_part *part)
{
    int *known = part && part->handle ? NULL : &processes->statuses[list];

    if (known && nvml_state(*known) == WM_READING_UNSUPPORTED)
        return *known;
    int status = read_raw_list(&processes->raw, &api->lists[list], device);
    if (status == NVML_SUCCESS)
        status = add_list(processes, list, part);
    if (known)
        *known = status;
    return status;
}

/* Boards that only compute have no list of those who draw, and few drivers have
 * one of MPS: what is not supported has no processes. One that fails may have
 * some, or more memory of those that are known; and without the first list there
 * is nothing to go by. */
static int read_lists(struct nvml_processes *processes, const struct nvml_api *api,
                      nvml_device device, const struct nvml_part *part)
{
    int worst = NVML_SUCCESS;

    for (enum nvml_list list = 0; list < NVML_LIST_COUNT; list++) {
        int status = read_list(processes, api, list, device, part);
        if (worst == NVML_SUCCESS &&
            (list == NVML_LIST_COMPUTE || nvml_state(status) != WM_READING_UNSUPPORTED))
            worst = status;
    }
    return worst;
}

static void clear(struct nvml_processes *processes)
{
    processes->count = 0;
    index_found(processes);
}

/* Of a partitioned GPU as a whole the driver may tell administrators alone; of the
 * parts that one has been given it tells everybody. */
static int read_all_lists(struct nvml_processes *processes, const struct nvml_api *api,
                          nvml_device device, const struct nvml_parts *parts)
{
    static const struct nvml_part whole = { NULL, NVML_INSTANCE_NOT_TOLD,
                                            NVML_INSTANCE_NOT_TOLD };

    clear(processes);
    int status = read_lists(processes, api, device, parts ? NULL : &whole);
    if (status == NVML_SUCCESS || !parts || parts->count == 0)
        return status;

    clear(processes);
    status = NVML_SUCCESS;
    for (size_t i = 0; i < parts->count; i++) {
        const struct nvml_part *part = &parts->items[i];
        int of_part = read_lists(processes, api, part->handle, part);
        if (status == NVML_SUCCESS)
            status = of_part;
    }
    return status;
}

/* How much of the GPU's time they use. */

static int make_sample_room(struct nvml_processes *processes, size_t room)
{
    if (room == 0)
        return NVML_IMPOSSIBLE_VALUE;
    void *held = realloc(processes->held, room * sizeof(*processes->held));
    processes->held = held ? held : processes->held;
    void *fresh = realloc(processes->fresh, room * sizeof(*processes->fresh));
    processes->fresh = fresh ? fresh : processes->fresh;
    if (!held || !fresh)
        return NVML_ERROR_MEMORY;
    processes->sample_room = room;
    return NVML_SUCCESS;
}

static int ask_once(struct nvml_processes *processes, const struct nvml_api *api,
                    nvml_device device, unsigned *ret_count)
{
    *ret_count = (unsigned)processes->sample_room;
    return NVML_ASK(api, process_utilization, device, processes->fresh, ret_count,
                    processes->last_seen_us);
}

/* Twice, for more may be there than ever before. */
static int ask_samples(struct nvml_processes *processes, const struct nvml_api *api,
                       nvml_device device, unsigned *ret_count)
{
    int status = ask_once(processes, api, device, ret_count);

    if (status == NVML_ERROR_INSUFFICIENT_SIZE) {
        status =
            make_sample_room(processes, larger_room(*ret_count, processes->sample_room));
        if (status == NVML_SUCCESS)
            status = ask_once(processes, api, device, ret_count);
    }
    if (status == NVML_SUCCESS && *ret_count > processes->sample_room)
        status = NVML_IMPOSSIBLE_VALUE;
    return status;
}

/* Drivers were seen to repeat samples that are older than was asked for, and to
 * leave entries with neither a percentage nor a time in between
 * (https://github.com/Syllo/nvtop/issues/110): the time of such an entry must
 * not become the one that is asked from. */
static size_t drop_old_samples(struct nvml_processes *processes, size_t count)
{
    struct nvml_process_sample *fresh = processes->fresh;
    unsigned long long newest_us = processes->last_seen_us;
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        if (fresh[i].pid == 0 || fresh[i].timestamp_us <= processes->last_seen_us)
            continue;
        fresh[kept++] = fresh[i];
        if (fresh[i].sm <= 100 && fresh[i].timestamp_us > newest_us)
            newest_us = fresh[i].timestamp_us;
    }
    processes->last_seen_us = newest_us;
    return kept;
}

static void refresh_samples(struct nvml_processes *processes, const struct nvml_api *api,
                            nvml_device device, int64_t now_ns)
{
    unsigned count = 0;

    if (nvml_state(processes->sample_status) == WM_READING_UNSUPPORTED ||
        (processes->asked_ns != 0 && now_ns - processes->asked_ns < SAMPLES_ASK_NS))
        return;

    processes->asked_ns = now_ns;
    processes->sample_status = ask_samples(processes, api, device, &count);
    if (processes->sample_status != NVML_SUCCESS)
        return;

    size_t kept = drop_old_samples(processes, count);
    if (kept > 0) {
        struct nvml_process_sample *fresh = processes->fresh;
        processes->fresh = processes->held;
        processes->held = fresh;
        processes->held_count = kept;
        processes->held_ns = now_ns;
    }
}

/* By NVML's documentation of nvmlDeviceGetProcessUtilization there is a sample of
 * each process that used any of the GPU during the last sample period: one without
 * a sample used nothing, which is 0, and known. Not known is what the driver will
 * not say of anybody, and a sample that cannot be. NVML_ERROR_NOT_FOUND, no sample
 * at all, is "nobody used it since", or not yet: the two can only be told apart by
 * how long ago the last sample was. */
static void put_samples(struct nvml_processes *processes, int64_t now_ns)
{
    bool holds =
        processes->held_count > 0 && now_ns - processes->held_ns <= SAMPLES_HOLD_NS;
    bool known = holds || processes->sample_status == NVML_ERROR_NOT_FOUND;

    processes->share_status = known ? NVML_SUCCESS : processes->sample_status;
    for (size_t i = 0; holds && i < processes->held_count; i++) {
        const struct nvml_process_sample *sample = &processes->held[i];
        const struct nvml_place *place = find_place(processes, sample->pid);

        if (sample->pid == 0 || place->pid == 0)
            continue;
        for (size_t k = place->index; k != SIZE_MAX; k = processes->found[k].next) {
            struct nvml_process *process = &processes->found[k];
            if (sample->timestamp_us > process->sample.timestamp_us)
                process->sample = *sample;
        }
    }
}

int nvml_process_share(const struct nvml_processes *processes, unsigned percent,
                       double *ret_ratio)
{
    int status = processes->share_status;

    if (status == NVML_SUCCESS && percent > 100)
        status = NVML_IMPOSSIBLE_VALUE;
    *ret_ratio = status == NVML_SUCCESS ? percent / 1e2 : 0;
    return status;
}

/* All of it. */

int nvml_processes_init(struct nvml_processes *processes)
{
    int status = make_list_room(&processes->raw, START);
    if (status == NVML_SUCCESS)
        status = make_room(processes, START);
    if (status == NVML_SUCCESS)
        status = make_sample_room(processes, START);
    return status;
}

void nvml_processes_release(struct nvml_processes *processes)
{
    free(processes->fresh);
    free(processes->held);
    free(processes->places);
    free(processes->found);
    free(processes->raw.entries);
}

void nvml_processes_restart(struct nvml_processes *processes)
{
    memset(processes->statuses, NVML_SUCCESS, sizeof(processes->statuses));
    processes->held_count = 0;
    processes->last_seen_us = 0;
    processes->asked_ns = 0;
    processes->sample_status = NVML_SUCCESS;
}

int nvml_processes_read(struct nvml_processes *processes, const struct nvml_api *api,
                        nvml_device device, const struct nvml_parts *parts, int64_t now_ns)
{
    int status = read_all_lists(processes, api, device, parts);

    if (processes->count > 0)
        refresh_samples(processes, api, device, now_ns);
    put_samples(processes, now_ns);
    return status;
}
