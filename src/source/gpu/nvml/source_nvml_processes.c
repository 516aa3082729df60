/* SPDX-License-Identifier: Apache-2.0 */
/* source_nvml_processes.c - asks NVML who uses a GPU, whatever its version. */
#include "source/gpu/nvml/source_nvml_processes.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_array.h"
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
 * more often costs and reports nothing. An answer holds while no newer one comes, and then
 * no process has used the GPU: the driver speaks of those only that did. */
#define SAMPLES_ASK_NS (100 * WM_NS_PER_MS)
#define SAMPLES_HOLD_NS (2 * WM_NS_PER_S)

/* A list takes 75 to 100 us on an H200, and few processes use graphics or MPS: these two
 * lists, if they were empty, are asked for again after this time. */
#define EMPTY_LISTS_NS WM_NS_PER_S

/* Of a process that has used nothing of late. */
static const struct nvml_process_sample no_sample;

/* The driver's list. */

/* How far the driver's entries stand apart. It says so nowhere: drivers 535.43
 * to 535.86 wrote 32 bytes per entry where the same call writes 24 before and
 * after, so that readers took memory for a pid. What it wrote shows. */
static size_t entry_size(struct nvml_raw_list *list, size_t declared)
{
    static const size_t sizes[] = { sizeof(struct nvml_process_v1),
                                    sizeof(struct nvml_process_v2),
                                    sizeof(struct nvml_process_535) };
    size_t written = list->count * (size_t)LARGEST;
    uint64_t untouched; /* as long as the field that ends an entry */

    memset(&untouched, UNTOUCHED, sizeof(untouched));
    while (written > 0 && memcmp(list->entries + written - sizeof(untouched), &untouched,
                                 sizeof(untouched)) == 0)
        written -= sizeof(untouched);
    list->touched = written;
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
        memset(list->entries, UNTOUCHED, list->touched);
        list->touched = list->room * LARGEST;
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
    void *entries = realloc(list->entries, room * LARGEST);
    list->entries = entries ? entries : list->entries;
    void *kept = realloc(list->kept, room * LARGEST);
    list->kept = kept ? kept : list->kept;
    if (!entries || !kept)
        return NVML_ERROR_MEMORY;
    list->room = room;
    list->touched = room * LARGEST;
    return NVML_SUCCESS;
}

/* Mostly a list is the same as at the reading before. Returns whether it is another. */
static bool keep_list(struct nvml_raw_list *list)
{
    size_t length = list->count * list->size;

    if (list->kept_count == list->count && list->kept_size == list->size &&
        memcmp(list->kept, list->entries, length) == 0)
        return false;
    memcpy(list->kept, list->entries, length);
    list->kept_count = list->count;
    list->kept_size = list->size;
    return true;
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

static bool is_before(const struct nvml_user *a, const struct nvml_user *b)
{
    if (a->pid != b->pid)
        return a->pid < b->pid;
    if (a->gpu_instance != b->gpu_instance)
        return a->gpu_instance < b->gpu_instance;
    return a->compute_instance < b->compute_instance;
}

/* The first in `found` that is not before `user`. */
static size_t place_of(const struct nvml_processes *processes, struct nvml_user user)
{
    size_t low = 0, high = processes->count;

    if (high > 0 && is_before(&processes->found[high - 1].user, &user))
        return high;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (is_before(&processes->found[middle].user, &user))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* NULL: there is no memory for it. */
static struct nvml_process *insert(struct nvml_processes *processes, size_t place,
                                   struct nvml_user user)
{
    if (wm_array_reserve(&processes->found, processes->count, &processes->room,
                         sizeof(*processes->found)) < 0)
        return NULL;
    struct nvml_process *process = &processes->found[place];
    memmove(process + 1, process, (processes->count++ - place) * sizeof(*process));
    *process = (struct nvml_process) { .user = user, .sample = &no_sample };
    return process;
}

static struct nvml_process *find_or_insert(struct nvml_processes *processes,
                                           struct nvml_user user)
{
    size_t place = place_of(processes, user);
    struct nvml_process *process = &processes->found[place];

    return place < processes->count && !is_before(&user, &process->user)
               ? process
               : insert(processes, place, user);
}

static struct nvml_process_v2 entry_at(const struct nvml_raw_list *list, size_t index)
{
    struct nvml_process_v2 entry = { .gpu_instance = NVML_NO_INSTANCE,
                                     .compute_instance = NVML_NO_INSTANCE };
    const unsigned char *raw = list->kept + index * list->kept_size;

    if (list->kept_size < sizeof(entry))
        memcpy(&entry, raw, sizeof(struct nvml_process_v1));
    else
        memcpy(&entry, raw, sizeof(entry));
    return entry;
}

static int instance_of(unsigned id)
{
    return id <= INT_MAX ? (int)id : NVML_INSTANCE_NOT_TOLD;
}

/* A list may hold a process once per context, and several lists the same one,
 * with the same memory or with the part of it that the list is about. Which of
 * the two is not known: of the largest figure it uses so much at least. */
static void note_use(struct nvml_process *process, enum nvml_list list,
                     unsigned long long memory)
{
    process->lists |= 1U << list;
    if (memory == NVML_NOT_AVAILABLE)
        return;
    process->knows_memory = true;
    if (memory > process->memory)
        process->memory = memory;
}

static struct nvml_user user_of(const struct nvml_process_v2 *entry,
                                const struct nvml_part *part)
{
    if (part)
        return (struct nvml_user) { entry->pid, part->gpu_instance,
                                    part->compute_instance };
    return (struct nvml_user) { entry->pid, instance_of(entry->gpu_instance),
                                instance_of(entry->compute_instance) };
}

static int add_list(struct nvml_processes *processes, enum nvml_list list,
                    const struct nvml_part *part)
{
    for (size_t i = 0; i < processes->lists[list].kept_count; i++) {
        const struct nvml_process_v2 entry = entry_at(&processes->lists[list], i);
        if (entry.pid == 0 || entry.pid > INT_MAX)
            continue;
        struct nvml_process *process = find_or_insert(processes, user_of(&entry, part));
        if (!process)
            return NVML_ERROR_MEMORY;
        note_use(process, list, entry.memory);
    }
    return NVML_SUCCESS;
}

/* `part` is whose lists they are, in place of what each entry says; NULL where that
 * matters. */
static int add_lists(struct nvml_processes *processes, const struct nvml_part *part)
{
    int status = NVML_SUCCESS;

    for (enum nvml_list list = 0; list < NVML_LIST_COUNT && status == NVML_SUCCESS; list++)
        status = add_list(processes, list, part);
    return status;
}

/* The GPU's own list is not asked for again where it is not supported. */
static int read_list(struct nvml_processes *processes, const struct nvml_api *api,
                     enum nvml_list list, nvml_device device, bool is_part)
{
    struct nvml_raw_list *raw = &processes->lists[list];
    int status = is_part ? NVML_SUCCESS : processes->statuses[list];

    if (processes->skips_empty && !is_part && list != NVML_LIST_COMPUTE &&
        status == NVML_SUCCESS && raw->kept_count == 0)
        return status;
    if (nvml_state(status) != WM_READING_UNSUPPORTED)
        status = read_raw_list(raw, &api->lists[list], device);
    if (status != NVML_SUCCESS)
        raw->count = 0;
    processes->is_old |= keep_list(raw);
    if (!is_part)
        processes->statuses[list] = status;
    return status;
}

/* Boards that only compute have no list of those who draw, and few drivers have
 * one of MPS: what is not supported has no processes. One that fails may have
 * some, or more memory of those that are known; and without the first list there
 * is nothing to go by. */
static int read_lists(struct nvml_processes *processes, const struct nvml_api *api,
                      nvml_device device, bool is_part)
{
    int worst = NVML_SUCCESS;

    for (enum nvml_list list = 0; list < NVML_LIST_COUNT; list++) {
        int status = read_list(processes, api, list, device, is_part);
        if (worst == NVML_SUCCESS &&
            (list == NVML_LIST_COMPUTE || nvml_state(status) != WM_READING_UNSUPPORTED))
            worst = status;
    }
    return worst;
}

static int worse(int status, int other)
{
    return status == NVML_SUCCESS ? other : status;
}

/* Of a partitioned GPU as a whole the driver may report to administrators alone; of the
 * parts that one has been given it reports to everybody. */
static int read_all_lists(struct nvml_processes *processes, const struct nvml_api *api,
                          nvml_device device, const struct nvml_parts *parts)
{
    static const struct nvml_part whole = { NULL, NVML_INSTANCE_NOT_TOLD,
                                            NVML_INSTANCE_NOT_TOLD };

    int status = read_lists(processes, api, device, false);
    bool by_parts = status != NVML_SUCCESS && parts && parts->count > 0;
    if (!by_parts && !processes->is_old)
        return status;

    processes->count = 0;
    processes->is_put = false;
    if (!by_parts) {
        int added = add_lists(processes, parts ? NULL : &whole);
        processes->is_old = added != NVML_SUCCESS;
        return worse(status, added);
    }
    status = NVML_SUCCESS;
    for (size_t i = 0; i < parts->count; i++) {
        const struct nvml_part *part = &parts->items[i];
        status = worse(status, read_lists(processes, api, part->handle, true));
        status = worse(status, add_lists(processes, part));
    }
    processes->is_old = true;
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

/* Whether it is time to ask for samples again. */
static bool is_worth_asking(const struct nvml_processes *processes, int64_t now_ns,
                            bool is_end)
{
    if (nvml_state(processes->sample_status) == WM_READING_UNSUPPORTED)
        return false;
    return processes->asked_ns == 0 || (now_ns - processes->asked_ns >= SAMPLES_ASK_NS &&
                                        nvml_pace_is_due(&processes->pace, now_ns, is_end));
}

static void refresh_samples(struct nvml_processes *processes, const struct nvml_api *api,
                            nvml_device device, int64_t now_ns)
{
    unsigned count = 0;
    int64_t begun_ns = nvml_pace_begin(&processes->pace);

    processes->asked_ns = now_ns;
    processes->sample_status = ask_samples(processes, api, device, &count);
    nvml_pace_end(&processes->pace, now_ns, begun_ns);
    if (processes->sample_status != NVML_SUCCESS)
        return;

    size_t kept = drop_old_samples(processes, count);
    if (kept > 0) {
        struct nvml_process_sample *fresh = processes->fresh;
        processes->fresh = processes->held;
        processes->held = fresh;
        processes->held_count = kept;
        processes->is_put = false;
        processes->held_ns = now_ns;
    }
}

/* Drivers report processes and samples in the same order as a rule, so that the next one is
 * looked for only where it is not behind the last one. */
static void replace_samples(struct nvml_processes *processes, size_t count)
{
    struct nvml_process *found = processes->found;
    size_t place = 0;

    for (size_t i = 0; i < processes->count; i++)
        found[i].sample = &no_sample;
    for (size_t i = 0; i < count; i++) {
        const struct nvml_process_sample *sample = &processes->held[i];
        if (place == processes->count || found[place].user.pid != sample->pid)
            place = place_of(processes,
                             (struct nvml_user) { sample->pid, NVML_INSTANCE_NOT_TOLD,
                                                  NVML_INSTANCE_NOT_TOLD });
        for (; place < processes->count && found[place].user.pid == sample->pid; place++) {
            if (sample->timestamp_us > found[place].sample->timestamp_us)
                found[place].sample = sample;
        }
    }
}

/* By NVML's documentation of nvmlDeviceGetProcessUtilization there is a sample of
 * each process that used any of the GPU during the last sample period: one without
 * a sample used nothing, which is 0, and known. Not known is what the driver will
 * not say of anybody, and a sample that cannot be. NVML_ERROR_NOT_FOUND, no sample
 * at all, is "nobody used it since", or not yet: the two can only be distinguished by
 * how long ago the last sample was. */
static void put_samples(struct nvml_processes *processes)
{
    bool holds = processes->held_count > 0 &&
                 processes->asked_ns - processes->held_ns <= SAMPLES_HOLD_NS;
    bool known = holds || processes->sample_status == NVML_ERROR_NOT_FOUND;
    int status = known ? NVML_SUCCESS : processes->sample_status;

    if (processes->is_put && processes->holds == holds && processes->share_status == status)
        return;
    replace_samples(processes, holds ? processes->held_count : 0);
    processes->is_put = true;
    processes->holds = holds;
    processes->share_status = status;
    processes->version++;
}

/* All of it. */

int nvml_processes_init(struct nvml_processes *processes)
{
    int status = NVML_SUCCESS;

    for (enum nvml_list list = 0; list < NVML_LIST_COUNT && status == NVML_SUCCESS; list++)
        status = make_list_room(&processes->lists[list], START);
    if (wm_array_reserve(&processes->found, 0, &processes->room,
                         sizeof(*processes->found)) < 0)
        status = NVML_ERROR_MEMORY;
    if (status == NVML_SUCCESS)
        status = make_sample_room(processes, START);
    return status;
}

void nvml_processes_release(struct nvml_processes *processes)
{
    free(processes->fresh);
    free(processes->held);
    free(processes->found);
    for (enum nvml_list list = 0; list < NVML_LIST_COUNT; list++) {
        free(processes->lists[list].entries);
        free(processes->lists[list].kept);
    }
}

void nvml_processes_restart(struct nvml_processes *processes)
{
    memset(processes->statuses, NVML_SUCCESS, sizeof(processes->statuses));
    processes->is_old = true;
    processes->lists_ns = 0;
    processes->held_count = 0;
    processes->last_seen_us = 0;
    processes->asked_ns = 0;
    processes->pace.due_ns = 0;
    processes->sample_status = NVML_SUCCESS;
}

int nvml_processes_read(struct nvml_processes *processes, const struct nvml_api *api,
                        nvml_device device, const struct nvml_parts *parts, int64_t now_ns,
                        bool is_end)
{
    processes->skips_empty =
        !is_end && processes->lists_ns > 0 && now_ns - processes->lists_ns < EMPTY_LISTS_NS;
    if (!processes->skips_empty)
        processes->lists_ns = now_ns;
    int status = read_all_lists(processes, api, device, parts);

    if (processes->count > 0 && is_worth_asking(processes, now_ns, is_end))
        refresh_samples(processes, api, device, now_ns);
    put_samples(processes);
    return status;
}
