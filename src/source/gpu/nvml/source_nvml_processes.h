/* SPDX-License-Identifier: Apache-2.0 */
/* source_nvml_processes.h - who uses a GPU, and how much of its time. */
#ifndef WM_SOURCE_NVML_PROCESSES_H
#define WM_SOURCE_NVML_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "source/gpu/nvml/source_nvml_library.h"
#include "source/gpu/nvml/source_nvml_pace.h"

/* In place of the number of an instance (MIG). */
enum { NVML_INSTANCE_NOT_TOLD = -1 };

/* The parts of a partitioned GPU; none has more than seven so far. */
enum { NVML_PARTS_MAX = 64 };
struct nvml_parts {
    struct nvml_part {
        nvml_device handle;
        int gpu_instance, compute_instance; /* or NVML_INSTANCE_NOT_TOLD */
    } items[NVML_PARTS_MAX];
    size_t count;
};

/* A process, as all lists together have it; one for each part that it uses. */
struct nvml_process {
    struct nvml_user {
        unsigned pid;
        int gpu_instance, compute_instance; /* or NVML_INSTANCE_NOT_TOLD */
    } user;
    unsigned lists; /* bits: 1 << enum nvml_list */
    bool knows_memory;
    unsigned long long memory;
    const struct nvml_process_sample *sample; /* its newest; all zero where there is none */
};

/* One list as the driver wrote it: `count` entries that stand `size` bytes
 * apart. Each begins like struct nvml_process_v1, and like struct
 * nvml_process_v2 where `size` has room for it. */
struct nvml_raw_list {
    unsigned char *entries;
    unsigned char *kept; /* the entries of the last reading */
    unsigned count, kept_count;
    size_t size, kept_size;
    size_t room;    /* in entries of the largest kind */
    size_t touched; /* bytes that have been written to */
};

/* The processes of one GPU, in the order of their pids and parts. */
struct nvml_processes {
    struct nvml_process *found;
    size_t count;
    size_t room;
    unsigned version; /* changes with what is known of them */
    bool is_old;      /* one of the lists has changed since they were found there */
    bool is_put;      /* they have the samples that are held */
    bool holds;       /* these are recent enough */

    struct nvml_raw_list lists[NVML_LIST_COUNT];
    int statuses[NVML_LIST_COUNT];
    int64_t lists_ns; /* when all of them were asked for last; 0: never */
    bool skips_empty; /* this time lists that were empty are not asked for, but for compute
                       */

    struct nvml_process_sample *held;  /* the last samples there were */
    struct nvml_process_sample *fresh; /* for the driver to write */
    size_t held_count;
    size_t sample_room;
    unsigned long long last_seen_us; /* the driver's time of the newest of them */
    int64_t held_ns;                 /* when they were given */
    struct nvml_pace pace;           /* of asking for them */
    int64_t asked_ns;                /* when the driver was asked last; 0: never */
    int sample_status;               /* its answer */
    int share_status;                /* NVML_SUCCESS: what the last reading put is known */
};

/* NVML_SUCCESS or NVML_ERROR_MEMORY. */
int nvml_processes_init(struct nvml_processes *processes);
void nvml_processes_release(struct nvml_processes *processes);

/* Asks again what was not supported, as another driver may answer now. */
void nvml_processes_restart(struct nvml_processes *processes);

/* Fills in `found`. Where the driver does not say who computes, or one of the other
 * lists fails that it does support, there may be more, and its status is returned. `parts`
 * are those of a GPU that is partitioned, where processes are to be distinguished by them;
 * NULL else. Allocates only when there are more processes than ever before. Samples are
 * asked for as often as their pace allows, and at an end. */
int nvml_processes_read(struct nvml_processes *processes, const struct nvml_api *api,
                        nvml_device device, const struct nvml_parts *parts, int64_t now_ns,
                        bool is_end);

/* One of the percentages in a process' sample as a ratio; the status says whether it is
 * known. A process of which there is no sample has used nothing of late. */
static inline int nvml_process_share(const struct nvml_processes *processes,
                                     unsigned percent, double *ret_ratio)
{
    int status = processes->share_status;

    if (status == NVML_SUCCESS && percent > 100)
        status = NVML_IMPOSSIBLE_VALUE;
    *ret_ratio = status == NVML_SUCCESS ? percent / 1e2 : 0;
    return status;
}

#endif
