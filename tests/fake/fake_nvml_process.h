/* SPDX-License-Identifier: Apache-2.0 */
/* fake_nvml_process.h - who computes on a simulated GPU. */
#ifndef FAKE_NVML_PROCESS_H
#define FAKE_NVML_PROCESS_H

#include <stddef.h>

#include "fake_nvml_scenario.h"

struct fake_running {
    unsigned pid;
    unsigned long long memory;
};

/* The processes on `gpu` now, while it has `memory_used` bytes in use. The
 * caller frees the list, which is NULL when it is empty. */
size_t fake_running(const struct nvmlDevice_st *gpu, double memory_used,
                    struct fake_running **ret_list);

#endif
