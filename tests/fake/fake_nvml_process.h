/* SPDX-License-Identifier: Apache-2.0 */
/* fake_nvml_process.h - who works on a simulated GPU. */
#ifndef FAKE_NVML_PROCESS_H
#define FAKE_NVML_PROCESS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "fake_nvml_gpu.h"

/* The "processes" of a GPU: one entry or a list of them. */
bool fake_processes_parse(const struct place *gpu, json_t *json,
                          struct fake_process **ret_processes, size_t *ret_count);

struct fake_running {
    unsigned pid;
    const struct fake_process *like;
    unsigned long long memory;
};

/* The processes on `gpu` now. The caller frees the list, which is NULL when it is
 * empty. */
size_t fake_running(const struct nvmlDevice_st *gpu, double time,
                    struct fake_running **ret_list);

#endif
