/* SPDX-License-Identifier: Apache-2.0 */
/* source_nvml_power.h - the power of one GPU, in the meanings that NVML has. */
#ifndef WM_SOURCE_NVML_POWER_H
#define WM_SOURCE_NVML_POWER_H

#include <stdbool.h>

#include "source/gpu/nvml/source_nvml_abi.h"
#include "wattmeter/source.h"

struct nvml_api;

/* In the order in which they are tried. */
enum nvml_power_way {
    NVML_POWER_BY_GPU_FIELD,
    NVML_POWER_BY_MODULE_FIELD, /* with the CPU and the memory beside the GPU */
    NVML_POWER_BY_USAGE,
    NVML_POWER_BY_NOTHING, /* none is supported */
};

enum nvml_power_meaning { NVML_POWER_INSTANT, NVML_POWER_AVERAGE, NVML_POWER_COUNT };

/* All zero: nothing is known yet of what the driver supports. */
struct nvml_power {
    struct nvml_power_value {
        enum nvml_power_way way;
        int status;
        int field_status; /* of the last field that was asked */
        double watts;     /* of NVML_SUCCESS alone */
    } values[NVML_POWER_COUNT];
};

/* Asks for all of them. What turns out not to be supported is not asked again. */
void nvml_power_read(struct nvml_power *power, const struct nvml_api *api,
                     nvml_device device);

/* Whether the board has a CPU, too: then its energy counter, and power without a scope, are
 * those of the module with CPU, GPU and memory. `model` is its name. */
bool nvml_is_module(const struct nvml_api *api, nvml_device device, const char *model);

/* What a value of that meaning contains. */
enum wm_contains nvml_power_contains(const struct nvml_power *power,
                                     enum nvml_power_meaning meaning, bool is_module);

/* For people: what the figures are of. Equal for equal ways, and a constant. */
const char *nvml_power_text(const struct nvml_power *power);

/* The sensor behind energy and power of a board of that name, "" where it has none.
 * `is_usage`: the value is what nvmlDeviceGetPowerUsage tells. */
struct wm_sensor nvml_sensor(const char *model, bool is_usage);

#endif
