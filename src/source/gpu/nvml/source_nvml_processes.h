/* SPDX-License-Identifier: Apache-2.0 */
/* source_nvml_processes.h - who uses a GPU, and how much of its time. */
#ifndef WM_SOURCE_NVML_PROCESSES_H
#define WM_SOURCE_NVML_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "source/gpu/nvml/source_nvml_library.h"
#include "wattmeter/source.h"

/* One list as the driver wrote it: `count` entries that stand `size` bytes
 * apart. Each begins like struct nvml_process_v1, and like struct
 * nvml_process_v2 where `size` has room for it. */
struct nvml_raw_list {
    unsigned char *entries;
    unsigned count;
    size_t size;
    size_t room; /* in entries of the largest kind */
};

/* NVML_SUCCESS or NVML_ERROR_MEMORY. */
int nvml_raw_list_init(struct nvml_raw_list *list);
void nvml_raw_list_release(struct nvml_raw_list *list);

/* Asks for a list; NVML's status. Allocates only when there are more processes
 * than ever before. */
int nvml_raw_list_read(struct nvml_raw_list *list, const struct nvml_list_calls *calls,
                       nvml_device device);

/* Samples of who kept the GPU's multiprocessors (SM) busy. */
struct nvml_sm_use {
    struct nvml_process_sample *held;  /* the last there were */
    struct nvml_process_sample *fresh; /* for the driver to write */
    size_t held_count;
    size_t room;
    unsigned long long last_seen_us; /* the driver's time of the newest of them */
    int64_t held_ns;                 /* when they were given */
    int64_t asked_ns;                /* when the driver was asked last; 0: never */
    int status;                      /* its answer */
};

struct nvml_place;

/* The processes of one GPU, in an order of no meaning. */
struct nvml_processes {
    const char *id;
    struct wm_gpu_process *found;
    size_t count;
    size_t room;

    struct nvml_place *places; /* finds a pid in `found` */
    size_t place_count;
    struct nvml_raw_list raw;
    int statuses[NVML_LIST_COUNT];
    struct nvml_sm_use sm;
};

/* `id`, the GPU's, is kept. NVML_SUCCESS or NVML_ERROR_MEMORY. */
int nvml_processes_init(struct nvml_processes *processes, const char *id);
void nvml_processes_release(struct nvml_processes *processes);

/* Asks again what was not supported, as another driver may answer now. */
void nvml_processes_restart(struct nvml_processes *processes);

/* Fills in `found`. Where the driver does not say who computes, or one of the other
 * lists fails that it does support, what it did say is followed by an entry of pid
 * 0, which says that there may be more, and its status is returned. A process of which
 * there is no sample has used nothing of late: its `sm_ratio` is 0, and WM_READING_OK.
 * Allocates only when there are more processes than ever before. */
int nvml_processes_read(struct nvml_processes *processes,
                        const struct nvml_process_calls *calls, nvml_device device,
                        int64_t now_ns);

/* Makes `found` the one entry that says that they are not known, because of
 * NVML's `status`. */
void nvml_processes_set_unknown(struct nvml_processes *processes, int status);

#endif
