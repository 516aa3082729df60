/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml_abi.h - the part of NVML's published ABI that we use, declared here so
 * that no build needs an NVIDIA header. The fake driver of the tests is built
 * on it too; that it is right is shown by NVIDIA's own Python client, which
 * tests/system/test_nvml_abi.py runs against that fake.
 */
#ifndef WM_SOURCE_NVML_ABI_H
#define WM_SOURCE_NVML_ABI_H

#include <stdbool.h>

enum nvml_status {
    NVML_SUCCESS = 0,
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NO_PERMISSION = 4,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_DRIVER_NOT_LOADED = 9,
    NVML_ERROR_TIMEOUT = 10,
    NVML_ERROR_FUNCTION_NOT_FOUND = 13,
    NVML_ERROR_GPU_IS_LOST = 15,
    NVML_ERROR_RESET_REQUIRED = 16,
    NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
    NVML_ERROR_MEMORY = 20,
    NVML_ERROR_NO_DATA = 21,
    NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
    NVML_ERROR_DEPRECATED = 26,
    NVML_ERROR_GPU_NOT_FOUND = 28,
    NVML_ERROR_UNKNOWN = 999,

    /* Ours, beside NVML's own, which are all positive: the call succeeded, with
     * a value that cannot be. */
    NVML_IMPOSSIBLE_VALUE = -1,
};

/* Whether this driver lacks the call itself, so that an older or newer form of
 * it may still answer. */
static inline bool nvml_lacks_call(int status)
{
    return status == NVML_ERROR_FUNCTION_NOT_FOUND || status == NVML_ERROR_DEPRECATED ||
           status == NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
}

/* Sizes that NVML promises are enough for its texts, the final NUL included. */
enum {
    NVML_UUID_SIZE = 96,
    NVML_NAME_SIZE = 96,
    NVML_VERSION_SIZE = 80,
};

enum { NVML_TEMPERATURE_GPU = 0 };

/* In a field of a structure: this value is not to be had. */
#define NVML_NOT_AVAILABLE (~0ULL)

typedef struct nvmlDevice_st *nvml_device;

struct nvml_utilization {
    unsigned gpu; /* percent of the last sample period in which a kernel ran */
    unsigned memory;
};

struct nvml_memory_v1 {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used; /* with what the driver keeps for itself */
};

struct nvml_memory_v2 {
    unsigned version; /* in: NVML_MEMORY_V2 */
    unsigned long long total;
    unsigned long long reserved; /* what the driver keeps for itself */
    unsigned long long free;
    unsigned long long used; /* without it, as nvidia-smi shows it */
};

struct nvml_temperature_v1 {
    unsigned version; /* in: NVML_TEMPERATURE_V1 */
    unsigned sensor;  /* in */
    int celsius;
};

/* One process, in the three sizes that drivers have written. The first two
 * fields never moved. */
struct nvml_process_v1 {
    unsigned pid;
    unsigned long long memory;
};

struct nvml_process_v2 {
    unsigned pid;
    unsigned long long memory;
    unsigned gpu_instance; /* of a partitioned GPU (MIG), else all ones */
    unsigned compute_instance;
};

struct nvml_process_535 {
    unsigned pid;
    unsigned long long memory;
    unsigned gpu_instance;
    unsigned compute_instance;
    unsigned long long protected_memory;
};

/* A versioned structure begins with its own size and version. */
#define NVML_STRUCT_VERSION(type, version) ((unsigned)(sizeof(type) | (version) << 24U))
#define NVML_MEMORY_V2 NVML_STRUCT_VERSION(struct nvml_memory_v2, 2U)
#define NVML_TEMPERATURE_V1 NVML_STRUCT_VERSION(struct nvml_temperature_v1, 1U)

_Static_assert(sizeof(struct nvml_utilization) == 8, "layout of nvmlUtilization_t");
_Static_assert(sizeof(struct nvml_memory_v1) == 24, "layout of nvmlMemory_t");
_Static_assert(NVML_MEMORY_V2 == 0x02000028, "layout of nvmlMemory_v2_t");
_Static_assert(NVML_TEMPERATURE_V1 == 0x0100000C, "layout of nvmlTemperature_v1_t");
_Static_assert(sizeof(struct nvml_process_v1) == 16, "layout of nvmlProcessInfo_v1_t");
_Static_assert(sizeof(struct nvml_process_v2) == 24, "layout of nvmlProcessInfo_v2_t");
_Static_assert(sizeof(struct nvml_process_535) == 32, "layout of nvmlProcessDetail_v1_t");

#endif
