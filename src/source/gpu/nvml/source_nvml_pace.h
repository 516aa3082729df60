/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_nvml_pace.h - limits how often an expensive call of NVML is made: on an H100
 * reading the energy counter takes 2.4 ms of CPU time, the samples of processes 1.4 to 2.5
 * ms.
 *
 *     if (!nvml_pace_is_due(&pace, now_ns, is_end))
 *         return;                                  the last answer stands
 *     int64_t begun_ns = nvml_pace_begin(&pace);
 *     ask();
 *     nvml_pace_end(&pace, now_ns, begun_ns);
 */
#ifndef WM_SOURCE_NVML_PACE_H
#define WM_SOURCE_NVML_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One kind of call about one GPU. All zero: it has not been made yet. */
struct nvml_pace {
    size_t gpus; /* that share the budget; 0 is 1 */
    uint64_t calls;
    int64_t cost_ns; /* CPU time of a call */
    int64_t due_ns;  /* when it may be made again */
};

/* `is_end`: a measurement begins or ends, so the call is made whatever it costs. */
bool nvml_pace_is_due(const struct nvml_pace *pace, int64_t now_ns, bool is_end);

/* Whether the call is so expensive that it is made less often than it is asked for. */
bool nvml_pace_costs(const struct nvml_pace *pace);

/* Call these before and after it: the first returns this thread's CPU time, or -1 if this
 * call is not timed. */
int64_t nvml_pace_begin(const struct nvml_pace *pace);
void nvml_pace_end(struct nvml_pace *pace, int64_t now_ns, int64_t begun_ns);

/* Notes the CPU time of a call. */
void nvml_pace_note(struct nvml_pace *pace, int64_t now_ns, int64_t cpu_ns);

#endif
