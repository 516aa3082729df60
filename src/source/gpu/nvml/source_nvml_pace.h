/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_nvml_pace.h - how often a call of NVML may be made that costs CPU time: on an H100
 * the energy counter takes 2.4 ms, the samples of processes take 1.4 to 2.5 ms.
 *
 *     if (!nvml_pace_is_due(&pace, now_ns, must))
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

/* `must`: at an end of what is measured it is made, whatever it costs. */
bool nvml_pace_is_due(const struct nvml_pace *pace, int64_t now_ns, bool must);

/* Whether it is made more seldom than it could be. */
bool nvml_pace_costs(const struct nvml_pace *pace);

/* Around a call: the CPU time of this thread, or below 0 where it is not looked at. */
int64_t nvml_pace_begin(const struct nvml_pace *pace);
void nvml_pace_end(struct nvml_pace *pace, int64_t now_ns, int64_t begun_ns);

/* That the call was made, with the CPU time that it used. */
void nvml_pace_note(struct nvml_pace *pace, int64_t now_ns, int64_t cpu_ns);

#endif
