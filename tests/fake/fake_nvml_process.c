/* SPDX-License-Identifier: Apache-2.0 */
/* fake_nvml_process.c - given pids, and the members of process trees. */
#include "fake_nvml_process.h"

#include <dirent.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PROCESSES_MAX = 100000 };

static bool parse_type(const struct place *place, const char *text, unsigned *type)
{
    static const struct {
        const char *text;
        unsigned type;
    } types[] = {
        { "C", FAKE_COMPUTES },
        { "G", FAKE_DRAWS },
        { "C+G", FAKE_COMPUTES | FAKE_DRAWS },
        { "M", FAKE_SERVED },
    };

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (strcmp(text, types[i].text) == 0) {
            *type = types[i].type;
            return true;
        }
    }
    return refuse(place, "type '%s' is none of C, G, C+G, M", text);
}

static bool parse_memory(const struct place *place, json_t *memory,
                         struct fake_process *process)
{
    if (json_is_null(memory))
        process->memory = FAKE_MEMORY_UNKNOWN;
    else if (json_is_number(memory))
        process->memory = FAKE_MEMORY_GIVEN;
    else if (memory)
        return refuse(place, "memory is a number of bytes or null");
    process->memory_bytes = json_number_value(memory);
    return process->memory_bytes >= 0 || refuse(place, "memory is below 0");
}

/* How much of the GPU's time it uses: its share, so much, or no sample at all. */
static bool parse_sm(const struct place *place, json_t *sm, struct fake_process *process)
{
    process->sm = -1;
    if (json_is_null(sm))
        process->sm = NAN;
    else if (sm && (!json_is_number(sm) || json_number_value(sm) < 0))
        return refuse(place, "sm is a number from 0 on, or null");
    else if (sm)
        process->sm = json_number_value(sm);
    return true;
}

static bool parse_whose(const struct place *place, json_int_t pid,
                        struct fake_process *process)
{
    if (pid < 0 || pid > UINT32_MAX)
        return refuse(place, "pids are 0 to %u", UINT32_MAX);

    process->pid = (pid_t)(uint32_t)pid;
    if (process->tree && pid == 0) {
        /* The process that loaded us is a tracker, and its child the launcher
         * that it starts a command from; neither of them computes. */
        process->pid = getpid();
        process->from_depth = 2;
    }
    return true;
}

static bool parse_process(const struct place *place, json_t *json,
                          struct fake_process *process)
{
    json_t *memory = NULL, *sm = NULL;
    const char *type = "C", *name = "";
    int count = 1, gpu_instance = -1, compute_instance = -1;
    json_int_t pid = 0;

    process->tree = true;
    if (!json_is_string(json) || strcmp(json_string_value(json), "tree") != 0) {
        process->tree = json_object_get(json, "tree_of") != NULL;
        if (!unpack(place, json, "{sI, s?i, s?o, s?s, s?s, s?o, s?F, s?F, s?F, s?i, s?i !}",
                    process->tree ? "tree_of" : "pid", &pid, "count", &count, "memory",
                    &memory, "type", &type, "name", &name, "sm", &sm, "memory_utilization",
                    &process->memory_utilization, "encoder", &process->encoder, "decoder",
                    &process->decoder, "gpu_instance", &gpu_instance, "compute_instance",
                    &compute_instance))
            return false;
    }
    if (count < 1 || count > PROCESSES_MAX || (count > 1 && process->tree))
        return refuse(place, "count is 1 to %d, and not of a tree", PROCESSES_MAX);
    if (process->memory_utilization < 0 || process->encoder < 0 || process->decoder < 0)
        return refuse(place, "what it uses is not below 0");

    process->count = (unsigned)count;
    process->gpu_instance = (unsigned)gpu_instance;
    process->compute_instance = (unsigned)compute_instance;
    return copy_text(place, process->name, sizeof(process->name), name) &&
           parse_whose(place, pid, process) && parse_type(place, type, &process->type) &&
           parse_memory(place, memory, process) && parse_sm(place, sm, process);
}

/* A single entry needs no list around it. */
bool fake_processes_parse(const struct place *gpu, json_t *json,
                          struct fake_process **ret_processes, size_t *ret_count)
{
    size_t count = json_is_array(json) ? json_array_size(json) : 1;

    if (!json || count == 0)
        return true;
    *ret_processes = calloc(count, sizeof(**ret_processes));
    if (!*ret_processes)
        return false;

    for (size_t i = 0; i < count; i++) {
        struct place place = inside(gpu, ".processes[%zu]", i);
        json_t *entry = json_is_array(json) ? json_array_get(json, i) : json;

        if (!parse_process(&place, entry, &(*ret_processes)[i]))
            return false;
    }
    *ret_count = count;
    return true;
}

struct list {
    struct fake_running *items;
    size_t count;
    size_t room;
    size_t sharing; /* number of processes that share the memory in use */
};

static void append(struct list *list, pid_t pid, const struct fake_process *like)
{
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 16;
        struct fake_running *items = realloc(list->items, room * sizeof(*items));
        if (!items)
            return;
        list->items = items;
        list->room = room;
    }

    struct fake_running *item = &list->items[list->count++];
    item->pid = (unsigned)pid;
    item->like = like;
    item->memory = ~0ULL;
    if (like->memory == FAKE_MEMORY_GIVEN)
        item->memory = (unsigned long long)like->memory_bytes;
    list->sharing += like->memory == FAKE_MEMORY_SHARE;
}

static void append_tree(struct list *list, pid_t pid, int depth,
                        const struct fake_process *tree);

static void append_children(struct list *list, pid_t pid, const char *thread, int depth,
                            const struct fake_process *tree)
{
    char path[320];
    int child = 0;

    snprintf(path, sizeof(path), "/proc/%d/task/%s/children", pid, thread);
    FILE *file = fopen(path, "re");
    if (!file)
        return;
    while (fscanf(file, "%d", &child) == 1)
        append_tree(list, child, depth, tree);
    fclose(file);
}

/* The kernel lists the children of each thread apart. */
static void append_tree(struct list *list, pid_t pid, int depth,
                        const struct fake_process *tree)
{
    char path[64];
    struct dirent *entry;

    if (depth >= tree->from_depth)
        append(list, pid, tree);

    snprintf(path, sizeof(path), "/proc/%d/task", pid);
    DIR *threads = opendir(path);
    if (!threads)
        return;
    while ((entry = readdir(threads))) {
        if (entry->d_name[0] != '.')
            append_children(list, pid, entry->d_name, depth + 1, tree);
    }
    closedir(threads);
}

size_t fake_running(const struct nvmlDevice_st *gpu, double time,
                    struct fake_running **ret_list)
{
    struct list list = { 0 };

    for (size_t i = 0; i < gpu->process_count; i++) {
        const struct fake_process *process = &gpu->processes[i];
        if (process->tree)
            append_tree(&list, process->pid, 0, process);
        for (unsigned n = 0; !process->tree && n < process->count; n++)
            append(&list, process->pid + (pid_t)n, process);
    }
    for (size_t i = 0; list.sharing > 0 && i < list.count; i++) {
        if (list.items[i].like->memory == FAKE_MEMORY_SHARE)
            list.items[i].memory =
                (unsigned long long)(fmax(curve_value(&gpu->memory_used, time), 0) /
                                     (double)list.sharing);
    }
    *ret_list = list.items;
    return list.count;
}
