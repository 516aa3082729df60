/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_nvml_bus.h - NVIDIA's GPUs as the kernel has them, which tells without a call of
 * NVML whether one is asleep: starting NVML, or asking it about a GPU, wakes that GPU.
 */
#ifndef WM_SOURCE_NVML_BUS_H
#define WM_SOURCE_NVML_BUS_H

#include <stdbool.h>
#include <stddef.h>

/* In the order of their addresses, which is NVML's. All zero: none. */
struct nvml_bus {
    struct nvml_slot {
        char address[16]; /* "0000:01:00.0" */
        int sleep_fd;     /* its power/runtime_status, or below 0 */
    } * slots;
    size_t count, room;
};

/* WM_ENOMEM leaves some out. */
int nvml_bus_open(const char *sysfs, struct nvml_bus *bus);
void nvml_bus_close(struct nvml_bus *bus);

/* Whether the GPU at `place` of NVML's `count` GPUs is asleep. If the kernel has another
 * number of GPUs, nobody knows which is which, and the answer is false. */
bool nvml_bus_is_asleep(const struct nvml_bus *bus, size_t place, size_t count);

/* Whether there are GPUs and all of them are asleep. */
bool nvml_bus_are_all_asleep(const struct nvml_bus *bus);

#endif
