/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_nvml_values.h - the numbers of one GPU, or of a part of one: for `info` as for
 * sampling. In a round each call of NVML is made once at most, however many fields it
 * serves.
 *
 *     nvml_values_begin(&values);
 *     const struct nvml_answer *used = nvml_ask(&values, WM_GPU_MEMORY_USED);
 *     const struct nvml_answer *total = nvml_ask(&values, WM_GPU_MEMORY_TOTAL);
 */
#ifndef WM_SOURCE_NVML_VALUES_H
#define WM_SOURCE_NVML_VALUES_H

#include <stdbool.h>

#include "source/gpu/nvml/source_nvml_library.h"
#include "source/gpu/nvml/source_nvml_power.h"
#include "wattmeter/gpu.h"

struct nvml_answer {
    int status;
    double number; /* of NVML_SUCCESS alone, in our unit */
};

/* All zero but for the first two: nothing has been asked yet. */
struct nvml_values {
    const struct nvml_api *api;
    nvml_device device;
    struct nvml_power power;      /* with what is known of the ways to ask for it */
    unsigned long long reasons;   /* of WM_GPU_THROTTLE, as NVML has them */
    bool is_asked[WM_GPU_FIELDS]; /* in this round */
    struct nvml_answer answers[WM_GPU_FIELDS];
};

/* Begins a round. */
void nvml_values_begin(struct nvml_values *values);

/* The value of a field in this round, asked for if it has not been. The field has a row in
 * the table of source_nvml_values.c. */
const struct nvml_answer *nvml_ask(struct nvml_values *values, enum wm_gpu_field field);

/* The same, but for power that no field of NVML reports: then it is the usage, whatever
 * that means on this board. */
struct nvml_answer nvml_ask_sampled(struct nvml_values *values, enum wm_gpu_field field);

/* Whether the table has a row for the field. */
bool nvml_has_query(enum wm_gpu_field field);

/* The shortest time between two changes of the value; 0: any. */
int64_t nvml_period_ns(enum wm_gpu_field field);

#endif
