/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu.h - properties and live values of all GPUs of a machine, of all vendors.
 *
 *     struct wm_gpus *gpus;
 *     struct wm_gpu_value power;
 *     struct wm_error err;
 *     if (wm_gpus_open(NULL, &gpus, &err) < 0)
 *         return report(&err);
 *     for (size_t g = 0; g < wm_gpus_count(gpus); g++) {
 *         wm_gpu_get(gpus, g, WM_GPU_POWER_DRAW, &power);
 *         if (power.state == WM_READING_OK)
 *             printf("GPU %zu: %.1f W\n", g, power.number);
 *         else
 *             printf("GPU %zu: n/a, %s\n", g, power.why);
 *     }
 *     wm_gpus_close(gpus);
 *
 * Use this to show GPUs: once, or every second or so with wm_gpus_refresh(). To measure
 * with them, read a source (source.h) or run a tracker (tracker.h).
 *
 * For every function here:
 *   - zero or more is success, a negative `enum wm_status` is failure;
 *   - out-parameters (`ret_...`) are written on success and only then;
 *   - `err` may be NULL;
 *   - texts are borrowed and live until the next refresh or close;
 *   - a machine without a GPU is no failure: the count is 0, and
 *     wm_gpus_looked() lists where wattmeter searched;
 *   - a driver that hangs costs at most WM_GPU_PATIENCE_S seconds; values that it has
 *     not given by then are WM_READING_FAILED, and all others are valid;
 *   - a value that cannot be read does not affect the others.
 */
#ifndef WATTMETER_GPU_H
#define WATTMETER_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "wattmeter/api.h"
#include "wattmeter/error.h"
#include "wattmeter/format.h"
#include "wattmeter/source.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wm_gpus;

/* How long a refresh waits for all drivers together, in seconds. */
#define WM_GPU_PATIENCE_S 5

/* Groups of values that are read together. */
enum wm_gpu_group {
    WM_GPU_GENERAL = 1 << 0, /* identity and settings */
    WM_GPU_MEMORY = 1 << 1,
    WM_GPU_UTILIZATION = 1 << 2, /* with temperatures and fan */
    WM_GPU_PCI = 1 << 3,
    WM_GPU_CLOCKS = 1 << 4,
    WM_GPU_POWER = 1 << 5,
    WM_GPU_ECC = 1 << 6,
    WM_GPU_NVLINK = 1 << 7,
    WM_GPU_THROUGHPUT = 1 << 8, /* of PCIe: takes the driver 20 ms per direction */
    WM_GPU_PROCESSES = 1 << 9,
    WM_GPU_EVERYTHING = (1 << 10) - 1,
};

/* The values of a GPU. wm_gpu_field_info() has their names, units and types. The numbers
 * are fixed: a new value gets the next one, whatever its group. */
enum wm_gpu_field {
    /* WM_GPU_GENERAL */
    /* Its place among all GPUs of the machine; NVIDIA's come first, in the order of
     * nvidia-smi. */
    WM_GPU_INDEX = 0,
    WM_GPU_NAME = 1,
    WM_GPU_SERIAL = 2,
    WM_GPU_UUID = 3, /* the identity: "GPU-7c1f..."; of other vendors as in the kernel */
    WM_GPU_BIOS = 4,
    WM_GPU_LABEL = 5, /* as in recordings: "gpu0", "card1" */
    WM_GPU_VENDOR = 6,
    WM_GPU_SOURCE = 7, /* source of these values: "nvml", "drm" */
    WM_GPU_ARCHITECTURE = 8,
    WM_GPU_COMPUTE_CAPABILITY = 9, /* "9.0" */
    WM_GPU_CORES = 10,
    WM_GPU_MULTIPROCESSORS = 11, /* SMs, compute units, Xe cores */
    WM_GPU_KERNEL_DRIVER = 12,   /* "nvidia", "amdgpu", "i915", "xe" */
    WM_GPU_DRIVER_VERSION = 13,
    WM_GPU_NVML_VERSION = 14,
    WM_GPU_CUDA_VERSION = 15, /* newest that the driver serves: "12.4" */
    WM_GPU_COMPUTE_MODE = 16, /* "Default", "Exclusive_Process", "Prohibited" */
    WM_GPU_PERSISTENCE = 17,  /* "Enabled", "Disabled" */
    WM_GPU_MIG_MODE = 18,
    WM_GPU_MIG_MODE_PENDING = 19,
    WM_GPU_DISPLAY_ACTIVE = 20,
    WM_GPU_SIMULATED = 21, /* the driver reports a simulated GPU */

    /* WM_GPU_MEMORY */
    WM_GPU_MEMORY_TOTAL = 22,
    WM_GPU_MEMORY_USED = 23, /* without what the driver reserves, if that is known */
    WM_GPU_MEMORY_FREE = 24,
    WM_GPU_MEMORY_RESERVED = 25,
    WM_GPU_MEMORY_BAR1_TOTAL = 26,
    WM_GPU_MEMORY_BAR1_USED = 27,
    WM_GPU_MEMORY_SHARED_TOTAL = 28, /* the machine's, that the GPU may use (GTT) */
    WM_GPU_MEMORY_SHARED_USED = 29,

    /* WM_GPU_UTILIZATION */
    WM_GPU_UTILIZATION_GPU = 30,    /* share of time in which anything ran on it */
    WM_GPU_UTILIZATION_MEMORY = 31, /* the same of its memory being read or written */
    WM_GPU_UTILIZATION_ENCODER = 32,
    WM_GPU_UTILIZATION_DECODER = 33,
    WM_GPU_FAN = 34, /* of its highest speed */
    WM_GPU_FAN_SPEED = 35,
    WM_GPU_TEMPERATURE = 36,
    WM_GPU_TEMPERATURE_MEMORY = 37,
    WM_GPU_TEMPERATURE_HOTSPOT = 38,
    WM_GPU_TEMPERATURE_SLOWDOWN = 39, /* at which it throttles */
    WM_GPU_TEMPERATURE_SHUTDOWN = 40,
    WM_GPU_PERFORMANCE = 41, /* "P0" (most) to "P15"; other vendors have words */

    /* WM_GPU_PCI */
    WM_GPU_PCI_BUS = 42, /* two hexadecimal digits */
    WM_GPU_PCI_BUS_ID = 43,
    WM_GPU_PCI_DEVICE = 44,
    WM_GPU_PCI_DEVICE_ID = 45,     /* eight: device, then vendor */
    WM_GPU_PCI_SUB_SYSTEM_ID = 46, /* eight: device of the board, then vendor */
    WM_GPU_PCI_LINK_GEN = 47,
    WM_GPU_PCI_LINK_GEN_MAX = 48,
    WM_GPU_PCI_LINK_WIDTH = 49,
    WM_GPU_PCI_LINK_WIDTH_MAX = 50,
    WM_GPU_PCI_REPLAYS = 51,

    /* WM_GPU_CLOCKS */
    WM_GPU_CLOCK_GRAPHICS = 52,
    WM_GPU_CLOCK_SM = 53,
    WM_GPU_CLOCK_MEMORY = 54,
    WM_GPU_CLOCK_VIDEO = 55,
    WM_GPU_CLOCK_GRAPHICS_MAX = 56,
    WM_GPU_CLOCK_SM_MAX = 57,
    WM_GPU_CLOCK_MEMORY_MAX = 58,
    WM_GPU_CLOCK_VIDEO_MAX = 59,
    /* Why the clocks are not higher: "none", "gpu_idle",
     * "sw_power_cap, hw_thermal_slowdown". `number` has the bits of enum wm_gpu_throttle.
     */
    WM_GPU_THROTTLE = 60,

    /* WM_GPU_POWER */
    WM_GPU_POWER_MANAGEMENT = 61, /* "Supported" */
    WM_GPU_POWER_DRAW = 62,       /* nvidia-smi's power.draw: depends on board and driver */
    WM_GPU_POWER_INSTANT = 63,
    WM_GPU_POWER_AVERAGE = 64, /* over the last second */
    WM_GPU_POWER_SCOPE = 65,   /* of the two above: "gpu", or "module" with the CPU in it */
    WM_GPU_POWER_LIMIT = 66,
    WM_GPU_POWER_LIMIT_DEFAULT = 67,
    WM_GPU_POWER_LIMIT_ENFORCED = 68,
    WM_GPU_POWER_LIMIT_MIN = 69,
    WM_GPU_POWER_LIMIT_MAX = 70,
    WM_GPU_ENERGY = 71, /* since the driver was loaded */

    /* WM_GPU_ECC */
    WM_GPU_ECC_MODE = 72,
    WM_GPU_ECC_MODE_PENDING = 73,
    WM_GPU_ECC_CORRECTED = 74, /* since the driver was loaded */
    WM_GPU_ECC_UNCORRECTED = 75,
    WM_GPU_ECC_CORRECTED_LIFETIME = 76,
    WM_GPU_ECC_UNCORRECTED_LIFETIME = 77,

    /* WM_GPU_NVLINK */
    WM_GPU_NVLINK_LINKS = 78, /* number of links that are up */
    WM_GPU_NVLINK_SENT = 79,  /* over all links, since they came up; may wrap or be reset */
    WM_GPU_NVLINK_RECEIVED = 80,

    /* WM_GPU_THROUGHPUT */
    WM_GPU_PCI_SENT = 81, /* per second, by the GPU */
    WM_GPU_PCI_RECEIVED = 82,

    WM_GPU_FIELDS
};

/* The values of a process on a GPU; all in WM_GPU_PROCESSES. */
enum wm_gpu_process_field {
    WM_GPU_PROCESS_PID = 0, /* in our pid namespace; else missing, with the reason */
    WM_GPU_PROCESS_NAME = 1,
    WM_GPU_PROCESS_USER = 2,
    WM_GPU_PROCESS_PARENT_PID = 3,
    WM_GPU_PROCESS_PARENT_NAME = 4,
    WM_GPU_PROCESS_CREATE_TIME = 5, /* seconds since 1970, UTC */
    WM_GPU_PROCESS_MEMORY = 6,
    WM_GPU_PROCESS_TYPE = 7,       /* "C" computes, "G" draws, "C+G", "M" through MPS */
    WM_GPU_PROCESS_DRIVER_PID = 8, /* as the driver reports it */
    WM_GPU_PROCESS_SM = 9,         /* share of the GPU's time, in the last second */
    WM_GPU_PROCESS_MEMORY_UTILIZATION = 10,
    WM_GPU_PROCESS_ENCODER = 11,
    WM_GPU_PROCESS_DECODER = 12,
    WM_GPU_PROCESS_GPU_TIME = 13,     /* seconds of engine time since it opened the GPU */
    WM_GPU_PROCESS_GPU_INSTANCE = 14, /* of a partitioned GPU (MIG) */
    WM_GPU_PROCESS_COMPUTE_INSTANCE = 15,

    WM_GPU_PROCESS_FIELDS
};

/* The values of a part of a partitioned GPU (MIG); all in WM_GPU_GENERAL, but the used
 * memory is in WM_GPU_MEMORY. */
enum wm_gpu_mig_field {
    WM_GPU_MIG_INDEX = 0, /* among the parts of its GPU */
    WM_GPU_MIG_UUID = 1,
    WM_GPU_MIG_NAME = 2,
    WM_GPU_MIG_GPU_INSTANCE = 3,
    WM_GPU_MIG_COMPUTE_INSTANCE = 4,
    WM_GPU_MIG_MULTIPROCESSORS = 5,
    WM_GPU_MIG_MEMORY_TOTAL = 6,
    WM_GPU_MIG_MEMORY_USED = 7,

    WM_GPU_MIG_FIELDS
};

enum wm_gpu_type {
    WM_GPU_TEXT = 0,
    WM_GPU_WHOLE = 1, /* a number without a fraction */
    WM_GPU_REAL = 2,
    WM_GPU_YES_NO = 3, /* 1 and 0 */
};

/* Why the clocks are not higher, for all vendors. */
enum wm_gpu_throttle {
    WM_GPU_THROTTLE_IDLE = 1 << 0,
    WM_GPU_THROTTLE_SETTING = 1 << 1, /* somebody has set the clocks */
    WM_GPU_THROTTLE_POWER = 1 << 2,   /* the power limit, or a limit of current */
    WM_GPU_THROTTLE_HEAT = 1 << 3,
    WM_GPU_THROTTLE_HARDWARE = 1 << 4, /* the board's brake: heat or power */
    WM_GPU_THROTTLE_OTHER = 1 << 5,
};

/* The properties of a field. */
struct wm_gpu_field_info {
    const char *group;   /* in JSON and in Python: "power"; "" at the top */
    const char *key;     /* within the group: "limit" */
    const char *label;   /* for people: "Limit" */
    const char *unit;    /* "W", "J", "B", "Hz", "ratio", "celsius", "rpm", "B/s", "s",
                            "count"; "" for texts */
    const char *summary; /* one line */
    enum wm_gpu_type type;
    unsigned asked_with; /* the enum wm_gpu_group */
    bool fixed;          /* does not change while the driver runs: read once */
    const char *metric;  /* of its channel (source.h): "power_limit"; NULL: not sampled */
    enum wm_kind kind;   /* of that channel */
    bool on_demand;      /* sampled if a run's `channels` name it; a source may sample it in
                            every run */
};

/* The properties of a field; NULL past the last one. Constants. */
WM_API const struct wm_gpu_field_info *wm_gpu_field_info(enum wm_gpu_field field);
WM_API const struct wm_gpu_field_info *
wm_gpu_process_field_info(enum wm_gpu_process_field field);
WM_API const struct wm_gpu_field_info *wm_gpu_mig_field_info(enum wm_gpu_mig_field field);

struct wm_gpu_value {
    enum wm_reading_state state;
    double number;    /* of all types but WM_GPU_TEXT, and of WM_GPU_THROTTLE; meaningful in
                         WM_READING_OK alone */
    const char *text; /* of WM_GPU_TEXT; else NULL, and if the state is not ok */
    const char *why;  /* NULL only if the state is ok */
    int code;         /* of a missing value, as in struct wm_error */
};

/* Finds the GPUs that config->gpus chooses (see wm_gpu_select()) and reads all their values
 * once, except `WM_GPU_THROUGHPUT`. `config` may be NULL. GPUs that do not answer are
 * included, with the reason in their values. If the choice is a list of numbers, wattmeter
 * does not ask the other GPUs. WM_EINVAL: the choice is wrong; the error lists the GPUs. */
WM_API int wm_gpus_open(const struct wm_source_config *config, struct wm_gpus **ret_gpus,
                        struct wm_error *err);

/* Accepts NULL. Waits for a hanging driver no longer than a refresh does. */
WM_API void wm_gpus_close(struct wm_gpus *gpus);

/* The number of chosen GPUs, and of all GPUs of the machine. */
WM_API size_t wm_gpus_count(const struct wm_gpus *gpus);
WM_API size_t wm_gpus_present(const struct wm_gpus *gpus);

/* Reads the values of the chosen GPUs that may have changed; `groups` is of enum
 * wm_gpu_group. Values of other groups stay as they are. If a GPU is gone or does not
 * answer, its values have the reason. Returns 1 if GPUs came or went since they were found:
 * open them again then. Otherwise 0. */
WM_API int wm_gpus_refresh(struct wm_gpus *gpus, unsigned groups, struct wm_error *err);

/* `gpu` is below wm_gpus_count() in all of these. WM_READING_NONE, with a reason: not read
 * yet. */
WM_API void wm_gpu_get(const struct wm_gpus *gpus, size_t gpu, enum wm_gpu_field field,
                       struct wm_gpu_value *ret_value);

/* The processes on a GPU, by the last refresh. If `ret_list` (may be NULL) is not ok, the
 * list is unknown or may be incomplete, and it has the reason. */
WM_API size_t wm_gpu_process_count(const struct wm_gpus *gpus, size_t gpu,
                                   struct wm_gpu_value *ret_list);
WM_API void wm_gpu_process_get(const struct wm_gpus *gpus, size_t gpu, size_t process,
                               enum wm_gpu_process_field field,
                               struct wm_gpu_value *ret_value);

WM_API size_t wm_gpu_mig_count(const struct wm_gpus *gpus, size_t gpu);
WM_API void wm_gpu_mig_get(const struct wm_gpus *gpus, size_t gpu, size_t mig,
                           enum wm_gpu_mig_field field, struct wm_gpu_value *ret_value);

/* A place where GPUs were searched: one entry for each source, available or not. */
struct wm_gpu_looked {
    const char *source; /* "nvml", "drm" */
    size_t present;
    int status;         /* WM_OK, or why it found none: WM_ENODEV ... */
    const char *detail; /* what it found, or why it found none */
    int code;           /* as in struct wm_error */
};

/* NULL past the last. */
WM_API const struct wm_gpu_looked *wm_gpus_looked(const struct wm_gpus *gpus, size_t index);

/* The number by which a program sees the GPU, such as CUDA's device number. It is a whole
 * number if the GPUs were chosen by "visible". Otherwise, and if the driver's way to count
 * is uncertain, it is missing. */
WM_API void wm_gpu_seen_as(const struct wm_gpus *gpus, size_t gpu,
                           struct wm_gpu_value *ret_value);

/* Chooses among all GPUs, chosen at open or not, by `words`. Writes their WM_GPU_INDEX to
 * `ret_chosen` (room for wm_gpus_present()) and their number. They are in ascending order;
 * for "visible" they are in the order of the program, vendor by vendor. A GPU that does not
 * answer can be chosen too: its WM_GPU_UUID has the reason. For GPUs that wm_gpus_open()
 * has not asked only the number and the label are known.
 *
 *   NULL, "all"      every GPU
 *   "none"           none
 *   "visible"        the GPUs that CUDA_VISIBLE_DEVICES and similar variables leave
 *                    to a program (docs/gpu-selection.md); `environment` has the
 *                    variables as "NAME=VALUE" and ends with NULL; if it is NULL,
 *                    the environment of the calling process counts
 *   "0,GPU-7c1f,card1,0000:3b:00.0"
 *                    indices, identities or their beginnings if these fit one
 *                    GPU, labels, PCI addresses; a MIG device means its GPU
 *
 * Returns WM_EINVAL for a wrong word, and lists the valid ones. Other failures are not
 * caused by the words: a driver failed (with its status), so no GPU fits or a number is
 * ambiguous.
 *
 * `ret_remark` (may be NULL) gets a note on a choice that is valid but notable, such as a
 * mask of which CUDA uses only a part; NULL if there is no note. It lives until the next
 * choice. */
WM_API int wm_gpu_select(const struct wm_gpus *gpus, const char *words,
                         const char *const *environment, size_t *ret_chosen,
                         size_t *ret_count, const char **ret_remark, struct wm_error *err);

/* Prints text in the layout of igpu, a line for each GPU (WM_FORMAT_BRIEF), or JSON, in one
 * line too; docs/gpu-info.md describes it. Returns WM_EIO if `out` did not take all of
 * it. */
WM_API int wm_gpus_print(const struct wm_gpus *gpus, enum wm_format format, FILE *out,
                         struct wm_error *err);

#ifdef __cplusplus
}
#endif
#endif
