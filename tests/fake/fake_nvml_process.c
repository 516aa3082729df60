/* SPDX-License-Identifier: Apache-2.0 */
/* fake_nvml_process.c - given pids, and the members of process trees. */
#include "fake_nvml_process.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

struct list {
    struct fake_running *items;
    size_t count;
    size_t room;
    size_t sharing; /* of them, those that share the memory in use */
};

/* Stands for a share until it is known how many there are. */
#define SHARE (~0ULL - 1)

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
    switch (like->memory) {
    case FAKE_MEMORY_SHARE:
        item->memory = SHARE;
        list->sharing++;
        break;
    case FAKE_MEMORY_GIVEN:
        item->memory = (unsigned long long)like->memory_bytes;
        break;
    case FAKE_MEMORY_UNKNOWN:
        item->memory = ~0ULL;
        break;
    }
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

size_t fake_running(const struct nvmlDevice_st *gpu, double memory_used,
                    struct fake_running **ret_list)
{
    struct list list = { 0 };

    for (size_t i = 0; i < gpu->process_count; i++) {
        const struct fake_process *process = &gpu->processes[i];
        if (process->tree)
            append_tree(&list, process->pid, 0, process);
        else
            append(&list, process->pid, process);
    }
    for (size_t i = 0; i < list.count; i++) {
        if (list.items[i].memory == SHARE)
            list.items[i].memory = (unsigned long long)(memory_used / (double)list.sharing);
    }
    *ret_list = list.items;
    return list.count;
}
