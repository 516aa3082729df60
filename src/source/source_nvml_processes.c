/* SPDX-License-Identifier: Apache-2.0 */
/* source_nvml_processes.c - asks NVML who computes, whatever its version. */
#include "source/source_nvml_processes.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Processes that fit before the first allocation while reading, and where a
 * count is taken for a mistake. */
enum { START = 32, PROCESSES_MAX = 65536 };

/* What the buffer holds before the driver writes; no field that ends an entry
 * is ever made of such bytes. */
enum { UNTOUCHED = 0xA5 };

enum { LARGEST = sizeof(struct nvml_process_535) };

int nvml_processes_init(struct nvml_processes *list, size_t gpu_count)
{
    list->raw_room = START;
    list->raw = calloc(list->raw_room, LARGEST);
    list->room = gpu_count + START;
    list->found = calloc(list->room, sizeof(*list->found));
    return list->raw && list->found ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

void nvml_processes_release(struct nvml_processes *list)
{
    free(list->found);
    free(list->raw);
}

void nvml_processes_clear(struct nvml_processes *list)
{
    list->count = 0;
}

/* How far the driver's entries stand apart. It says so nowhere: drivers 535.43
 * to 535.86 wrote 32 bytes per entry where the same call writes 24 before and
 * after, so that readers took memory for a pid. What it wrote shows. */
static size_t entry_size(const struct nvml_processes *list, unsigned count, size_t declared)
{
    static const size_t sizes[] = { sizeof(struct nvml_process_v1),
                                    sizeof(struct nvml_process_v2),
                                    sizeof(struct nvml_process_535) };
    size_t written = list->raw_room * LARGEST;

    while (written > 0 && list->raw[written - 1] == UNTOUCHED)
        written--;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        if (written <= count * sizes[i])
            return sizes[i];
    }
    return declared;
}

static int ask(struct nvml_processes *list, const struct nvml_process_calls *calls,
               nvml_device device, unsigned *ret_count, size_t *ret_size)
{
    const struct {
        int (*call)(nvml_device device, unsigned *count, void *entries);
        size_t declared;
    } versions[] = {
        { calls->v3, sizeof(struct nvml_process_v2) },
        { calls->v2, sizeof(struct nvml_process_v2) },
        { calls->v1, sizeof(struct nvml_process_v1) },
    };
    unsigned count = 0;
    int status = NVML_ERROR_FUNCTION_NOT_FOUND;

    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
        if (!versions[i].call)
            continue;
        count = (unsigned)list->raw_room;
        memset(list->raw, UNTOUCHED, list->raw_room * LARGEST);
        status = versions[i].call(device, &count, list->raw);
        if (nvml_lacks_call(status))
            continue;
        if (status == NVML_SUCCESS && count > list->raw_room)
            return NVML_IMPOSSIBLE_VALUE;
        *ret_count = count;
        *ret_size = entry_size(list, count, versions[i].declared);
        break;
    }
    return status;
}

static int grow_raw(struct nvml_processes *list, unsigned wanted)
{
    if (wanted > PROCESSES_MAX)
        return NVML_IMPOSSIBLE_VALUE;

    /* With room for those that start meanwhile. */
    size_t room = (size_t)wanted + START;
    unsigned char *raw = realloc(list->raw, room * LARGEST);
    if (!raw)
        return NVML_ERROR_MEMORY;
    list->raw = raw;
    list->raw_room = room;
    return NVML_SUCCESS;
}

/* Room for `wanted` more, and for one each of the `others` still to come. */
static int reserve(struct nvml_processes *list, size_t wanted, size_t others)
{
    size_t room = list->count + wanted + others;
    if (room <= list->room)
        return NVML_SUCCESS;

    room += START;
    struct wm_gpu_process *found = realloc(list->found, room * sizeof(*found));
    if (!found)
        return NVML_ERROR_MEMORY;
    list->found = found;
    list->room = room;
    return NVML_SUCCESS;
}

/* Every kind of entry begins like the smallest. */
static void add(struct nvml_processes *list, const unsigned char *raw, const char *id)
{
    struct nvml_process_v1 entry;

    memcpy(&entry, raw, sizeof(entry));
    if (entry.pid == 0 || entry.pid > INT_MAX)
        return;

    bool known = entry.memory != NVML_NOT_AVAILABLE;
    list->found[list->count++] = (struct wm_gpu_process) {
        .device = id,
        .pid = (pid_t)entry.pid,
        .memory_bytes = known ? (double)entry.memory : 0,
        .state = known ? WM_READING_OK : WM_READING_UNSUPPORTED,
    };
}

int nvml_processes_read(struct nvml_processes *list, const struct nvml_process_calls *calls,
                        nvml_device device, const char *id, size_t others)
{
    unsigned count = 0;
    size_t size = 0;

    int status = ask(list, calls, device, &count, &size);
    if (status == NVML_ERROR_INSUFFICIENT_SIZE) {
        status = grow_raw(list, count);
        if (status == NVML_SUCCESS)
            status = ask(list, calls, device, &count, &size);
    }
    if (status == NVML_SUCCESS)
        status = reserve(list, count, others);
    if (status != NVML_SUCCESS)
        return status;

    for (size_t i = 0; i < count; i++)
        add(list, list->raw + i * size, id);
    return NVML_SUCCESS;
}

void nvml_processes_add_unknown(struct nvml_processes *list, const char *id,
                                enum wm_reading_state state)
{
    list->found[list->count++] = (struct wm_gpu_process) { .device = id, .state = state };
}
