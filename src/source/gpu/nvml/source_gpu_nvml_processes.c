/* SPDX-License-Identifier: Apache-2.0 */
/* source_gpu_nvml_processes.c - who uses a GPU: NVML's lists of processes and its samples
 * of what they do, put together. */
#include "source/gpu/nvml/source_gpu_nvml.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base_clock.h"

/* What fits before the first allocation while asking, and where a count is taken for
 * a mistake. */
enum { START = 32, USERS_MAX = 65536 };

/* The driver samples once a second at worst, and speaks only of what came since it
 * was asked last: its answer holds until there is a newer one, or that has been due
 * for long. */
#define SAMPLES_HOLD_NS (2 * WM_NS_PER_S)

/* Of what the driver calls a process; the command line may follow the program. */
enum { NAME_SIZE = 1024 };

/* A process, as one list or as all of them have it. */
struct gpu_nvml_user {
    unsigned pid;
    int gpu_instance, compute_instance; /* as in struct wm_gpu_process_told */
    unsigned lists;                     /* bits: 1 << enum nvml_list */
    bool knows_memory;
    unsigned long long memory;
};

int gpu_nvml_processes_init(struct gpu_nvml_processes *processes)
{
    return nvml_raw_list_init(&processes->raw);
}

void gpu_nvml_processes_release(struct gpu_nvml_processes *processes)
{
    free(processes->fresh);
    free(processes->samples);
    free(processes->users);
    nvml_raw_list_release(&processes->raw);
}

/* The lists. */

static int make_user_room(struct gpu_nvml_processes *processes, size_t more)
{
    size_t wanted = processes->user_count + more;

    if (wanted <= processes->user_room)
        return NVML_SUCCESS;
    if (wanted > USERS_MAX)
        return NVML_IMPOSSIBLE_VALUE;

    struct gpu_nvml_user *users =
        realloc(processes->users, (wanted + START) * sizeof(*users));
    if (!users)
        return NVML_ERROR_MEMORY;
    processes->users = users;
    processes->user_room = wanted + START;
    return NVML_SUCCESS;
}

static int instance_of(unsigned id)
{
    return id <= INT_MAX ? (int)id : WM_GPU_INSTANCE_NOT_TOLD;
}

/* Whether the GPU is surely not partitioned. */
static bool is_whole(const struct gpu_nvml_gpu *gpu)
{
    enum wm_reading_state state = nvml_state(gpu->mig_status);

    return state == WM_READING_UNSUPPORTED ||
           (state == WM_READING_OK && !gpu_nvml_is_partitioned(gpu));
}

/* `part` is whose list it is, or NULL for that of the whole GPU, which tells the part
 * of each process. */
static void add_user(const struct gpu_nvml_asking *asking, const unsigned char *raw,
                     size_t size, enum nvml_list list, const struct gpu_nvml_mig *part)
{
    struct gpu_nvml_processes *processes = &asking->gpu->processes;
    struct nvml_process_v2 entry = { .gpu_instance = NVML_NO_INSTANCE,
                                     .compute_instance = NVML_NO_INSTANCE };

    memcpy(&entry, raw, size < sizeof(entry) ? size : sizeof(entry));
    if (entry.pid == 0 || entry.pid > INT_MAX)
        return;

    int otherwise =
        is_whole(asking->gpu) ? WM_GPU_NOT_PARTITIONED : WM_GPU_INSTANCE_NOT_TOLD;
    struct gpu_nvml_user *user = &processes->users[processes->user_count++];
    *user = (struct gpu_nvml_user) {
        .pid = entry.pid,
        .gpu_instance = otherwise,
        .compute_instance = otherwise,
        .lists = 1U << list,
        .knows_memory = entry.memory != NVML_NOT_AVAILABLE,
        .memory = entry.memory,
    };
    if (part) {
        user->gpu_instance = part->gpu_instance;
        user->compute_instance = part->compute_instance;
    } else if (gpu_nvml_is_partitioned(asking->gpu)) {
        user->gpu_instance = instance_of(entry.gpu_instance);
        user->compute_instance = instance_of(entry.compute_instance);
    }
}

/* Boards that only compute have no list of those who draw, and few have one of MPS:
 * what is not supported has no processes. Without the first list there is nothing
 * to go by. */
static int read_lists(const struct gpu_nvml_asking *asking, nvml_device device,
                      const struct gpu_nvml_mig *part)
{
    struct gpu_nvml_processes *processes = &asking->gpu->processes;
    struct nvml_raw_list *raw = &processes->raw;
    int worst = NVML_SUCCESS;

    for (enum nvml_list list = 0; list < NVML_LIST_COUNT; list++) {
        int status = nvml_raw_list_read(raw, &asking->api->processes.lists[list], device);
        if (status == NVML_SUCCESS)
            status = make_user_room(processes, raw->count);
        if (status == NVML_SUCCESS) {
            for (size_t i = 0; i < raw->count; i++)
                add_user(asking, raw->entries + i * raw->size, raw->size, list, part);
        } else if (worst == NVML_SUCCESS &&
                   (list == NVML_LIST_COMPUTE ||
                    nvml_state(status) != WM_READING_UNSUPPORTED)) {
            worst = status;
        }
    }
    return worst;
}

/* Of a partitioned GPU as a whole the driver may tell administrators alone; of the
 * parts that one has been given it tells everybody. */
static int read_users(const struct gpu_nvml_asking *asking)
{
    struct gpu_nvml_gpu *gpu = asking->gpu;

    gpu->processes.user_count = 0;
    int status = read_lists(asking, asking->device, NULL);
    if (status == NVML_SUCCESS || gpu->mig_count == 0)
        return status;

    gpu->processes.user_count = 0;
    status = NVML_SUCCESS;
    for (size_t i = 0; i < gpu->mig_count; i++) {
        int of_part = read_lists(asking, gpu->migs[i].handle, &gpu->migs[i]);
        if (status == NVML_SUCCESS)
            status = of_part;
    }
    return status;
}

static int compare_users(const void *left, const void *right)
{
    const struct gpu_nvml_user *a = left, *b = right;

    if (a->pid != b->pid)
        return a->pid < b->pid ? -1 : 1;
    if (a->gpu_instance != b->gpu_instance)
        return a->gpu_instance < b->gpu_instance ? -1 : 1;
    if (a->compute_instance != b->compute_instance)
        return a->compute_instance < b->compute_instance ? -1 : 1;
    return 0;
}

/* Each list may tell all memory of a process or the part that the list is about. Of
 * the largest figure it uses so much at least. */
static void merge_into(struct gpu_nvml_user *user, const struct gpu_nvml_user *other)
{
    user->lists |= other->lists;
    if (other->knows_memory && (!user->knows_memory || other->memory > user->memory)) {
        user->knows_memory = true;
        user->memory = other->memory;
    }
}

static void merge_users(struct gpu_nvml_processes *processes)
{
    size_t kept = 0;

    if (processes->user_count == 0)
        return;
    qsort(processes->users, processes->user_count, sizeof(*processes->users),
          compare_users);
    for (size_t i = 1; i < processes->user_count; i++) {
        if (compare_users(&processes->users[kept], &processes->users[i]) == 0)
            merge_into(&processes->users[kept], &processes->users[i]);
        else
            processes->users[++kept] = processes->users[i];
    }
    processes->user_count = kept + 1;
}

/* The samples. */

static int make_sample_room(struct gpu_nvml_processes *processes, size_t room)
{
    if (room <= processes->sample_room)
        return NVML_SUCCESS;
    if (room > USERS_MAX + START)
        return NVML_IMPOSSIBLE_VALUE;

    struct nvml_process_sample *samples =
        realloc(processes->samples, room * sizeof(*samples));
    if (!samples)
        return NVML_ERROR_MEMORY;
    processes->samples = samples;

    struct nvml_process_sample *fresh = realloc(processes->fresh, room * sizeof(*fresh));
    if (!fresh)
        return NVML_ERROR_MEMORY;
    processes->fresh = fresh;
    processes->sample_room = room;
    return NVML_SUCCESS;
}

/* Twice, for more processes than fit may be there than last time. */
static int ask_older(const struct gpu_nvml_asking *asking, unsigned *ret_count)
{
    struct gpu_nvml_processes *processes = &asking->gpu->processes;
    int status = NVML_ERROR_INSUFFICIENT_SIZE;
    unsigned count = START;

    if (!asking->api->processes.utilization)
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    for (int i = 0; i < 2 && status == NVML_ERROR_INSUFFICIENT_SIZE; i++) {
        status = make_sample_room(processes, (size_t)count + START);
        if (status != NVML_SUCCESS)
            return status;
        count = (unsigned)processes->sample_room;
        status = asking->api->processes.utilization(asking->device, processes->fresh,
                                                    &count, processes->last_seen_us);
    }
    *ret_count = count;
    return status;
}

static int ask_newer(const struct gpu_nvml_asking *asking, unsigned *ret_count)
{
    struct gpu_nvml_processes *processes = &asking->gpu->processes;
    struct nvml_processes_use_v1 answer = { .version = NVML_PROCESSES_USE_V1,
                                            .last_seen_us = processes->last_seen_us };
    if (!asking->api->processes_utilization)
        return NVML_ERROR_FUNCTION_NOT_FOUND;

    int status = asking->api->processes_utilization(asking->device, &answer);
    size_t room = (size_t)answer.count + START;
    if (status != NVML_ERROR_INSUFFICIENT_SIZE) {
        *ret_count = 0;
        return status;
    }
    status = make_sample_room(processes, room);
    if (status != NVML_SUCCESS)
        return status;
    struct nvml_process_use_v1 *uses = calloc(room, sizeof(*uses));
    if (!uses)
        return NVML_ERROR_MEMORY;

    answer.version = NVML_PROCESSES_USE_V1;
    answer.count = (unsigned)room;
    answer.uses = uses;
    status = asking->api->processes_utilization(asking->device, &answer);
    for (size_t i = 0; status == NVML_SUCCESS && i < answer.count && i < room; i++) {
        processes->fresh[i] = (struct nvml_process_sample) {
            .pid = uses[i].pid,
            .timestamp_us = uses[i].timestamp_us,
            .sm = uses[i].sm,
            .memory = uses[i].memory,
            .encoder = uses[i].encoder,
            .decoder = uses[i].decoder,
        };
    }
    free(uses);
    *ret_count = answer.count;
    return status;
}

static int compare_pids(const void *left, const void *right)
{
    const struct nvml_process_sample *a = left, *b = right;

    return (a->pid > b->pid) - (a->pid < b->pid);
}

/* By pid, and the newest of each first. */
static int compare_samples(const void *left, const void *right)
{
    const struct nvml_process_sample *a = left, *b = right;
    int by_pid = compare_pids(left, right);

    return by_pid
               ? by_pid
               : (a->timestamp_us < b->timestamp_us) - (a->timestamp_us > b->timestamp_us);
}

/* Drivers were seen to repeat samples that are older than was asked for, and to leave
 * entries with neither a percentage nor a time in between
 * (https://github.com/Syllo/nvtop/issues/110): the time of such an entry must not
 * become the one that is asked from. Keeps one sample of each process. */
static size_t choose_samples(struct gpu_nvml_processes *processes, size_t count)
{
    struct nvml_process_sample *fresh = processes->fresh;
    unsigned long long newest_us = processes->last_seen_us;
    size_t kept = 0;

    qsort(fresh, count, sizeof(*fresh), compare_samples);
    for (size_t i = 0; i < count; i++) {
        if (fresh[i].pid == 0 || fresh[i].timestamp_us <= processes->last_seen_us)
            continue;
        if (fresh[i].sm <= 100 && fresh[i].timestamp_us > newest_us)
            newest_us = fresh[i].timestamp_us;
        if (kept == 0 || fresh[kept - 1].pid != fresh[i].pid)
            fresh[kept++] = fresh[i];
    }
    processes->last_seen_us = newest_us;
    return kept;
}

/* NVML_ERROR_NOT_FOUND is "no samples": nobody used the GPU since. */
static int read_samples(const struct gpu_nvml_asking *asking)
{
    struct gpu_nvml_processes *processes = &asking->gpu->processes;
    int64_t now_ns = wm_clock_monotonic_ns();
    unsigned count = 0;

    int status = ask_older(asking, &count);
    if (nvml_lacks_call(status))
        status = ask_newer(asking, &count);
    if (status == NVML_ERROR_NOT_FOUND) {
        status = NVML_SUCCESS;
        count = 0;
    }
    if (status == NVML_SUCCESS && count > processes->sample_room)
        status = NVML_IMPOSSIBLE_VALUE;
    if (status != NVML_SUCCESS)
        return status;

    size_t kept = count > 0 ? choose_samples(processes, count) : 0;
    if (kept > 0) {
        struct nvml_process_sample *fresh = processes->fresh;
        processes->fresh = processes->samples;
        processes->samples = fresh;
        processes->sample_count = kept;
        processes->sampled_ns = now_ns;
    } else if (now_ns - processes->sampled_ns > SAMPLES_HOLD_NS) {
        processes->sample_count = 0;
    }
    return NVML_SUCCESS;
}

/* Both together. */

static const char *type_of(unsigned lists)
{
    const unsigned graphics = 1U << NVML_LIST_GRAPHICS;

    if (lists & 1U << NVML_LIST_MPS)
        return "M";
    if (lists & 1U << NVML_LIST_COMPUTE)
        return lists & graphics ? "C+G" : "C";
    return "G";
}

static struct wm_gpu_value share_of(const struct gpu_nvml_asking *asking, int status,
                                    unsigned percent)
{
    if (status == NVML_SUCCESS && percent > 100)
        status = NVML_IMPOSSIBLE_VALUE;
    return gpu_nvml_number(asking, status, percent / 1e2);
}

static struct wm_gpu_value memory_of(const struct gpu_nvml_user *user)
{
    if (user->knows_memory)
        return wm_gpu_number((double)user->memory);
    return wm_gpu_missing(WM_READING_UNSUPPORTED,
                          "the driver does not tell the memory of this process");
}

/* Where /proc does not show the process: hidden from this user, or in another pid
 * namespace. NULL where the driver does not know it either. */
static const char *ask_name(const struct gpu_nvml_asking *asking, unsigned pid, char *text)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/%u/stat", asking->procfs, pid);
    if (!asking->api->process_name || access(path, R_OK) == 0 ||
        asking->api->process_name(pid, text, NAME_SIZE) != NVML_SUCCESS)
        return NULL;

    /* The path of a program, and its arguments in some drivers. */
    text[NAME_SIZE - 1] = '\0';
    if (text[0] != '/')
        return text;
    text[strcspn(text, " ")] = '\0';
    return strrchr(text, '/') + 1;
}

static int tell_user(const struct gpu_nvml_asking *asking, const struct gpu_nvml_user *user,
                     int sample_status)
{
    const struct gpu_nvml_processes *processes = &asking->gpu->processes;
    const struct nvml_process_sample wanted = { .pid = user->pid };
    const struct nvml_process_sample *sample = NULL;
    char name[NAME_SIZE];

    if (sample_status == NVML_SUCCESS && processes->sample_count > 0)
        sample = bsearch(&wanted, processes->samples, processes->sample_count,
                         sizeof(*sample), compare_pids);
    if (!sample)
        sample = &wanted; /* NVML has one of each process that used anything */

    const struct wm_gpu_value row[WM_GPU_PROCESS_FIELDS] = {
        [WM_GPU_PROCESS_DRIVER_PID] = wm_gpu_number(user->pid),
        [WM_GPU_PROCESS_TYPE] = wm_gpu_words(type_of(user->lists)),
        [WM_GPU_PROCESS_NAME] = wm_gpu_words(ask_name(asking, user->pid, name)),
        [WM_GPU_PROCESS_MEMORY] = memory_of(user),
        [WM_GPU_PROCESS_SM] = share_of(asking, sample_status, sample->sm),
        [WM_GPU_PROCESS_MEMORY_UTILIZATION] =
            share_of(asking, sample_status, sample->memory),
        [WM_GPU_PROCESS_ENCODER] = share_of(asking, sample_status, sample->encoder),
        [WM_GPU_PROCESS_DECODER] = share_of(asking, sample_status, sample->decoder),
        [WM_GPU_PROCESS_GPU_INSTANCE] = gpu_nvml_instance(user->gpu_instance),
        [WM_GPU_PROCESS_COMPUTE_INSTANCE] = gpu_nvml_instance(user->compute_instance),
    };
    return wm_gpu_add_row(asking->sheet, WM_GPU_PROCESS_LIST, row);
}

void gpu_nvml_tell_processes(const struct gpu_nvml_asking *asking)
{
    struct gpu_nvml_processes *processes = &asking->gpu->processes;
    int status = read_users(asking);
    int added = WM_OK;

    gpu_nvml_note(asking, status);
    merge_users(processes);

    wm_gpu_begin_list(asking->sheet, WM_GPU_PROCESS_LIST);
    if (processes->user_count > 0) {
        int sample_status = read_samples(asking);
        for (size_t i = 0; i < processes->user_count && added == WM_OK; i++)
            added = tell_user(asking, &processes->users[i], sample_status);
    }
    wm_gpu_end_list(asking->sheet, WM_GPU_PROCESS_LIST, nvml_state(status),
                    status == NVML_SUCCESS ? NULL : nvml_text(asking->library, status));
}
