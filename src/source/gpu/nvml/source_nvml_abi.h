/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_nvml_abi.h - the part of NVML's published ABI that we use, declared here so
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
    NVML_ERROR_LIBRARY_NOT_FOUND = 12,
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

    /* Ours; NVML's own are all positive. The call returned an impossible value, has not
     * returned, or was not made as the GPU is asleep. */
    NVML_IMPOSSIBLE_VALUE = -1,
    NVML_NO_ANSWER = -2,
    NVML_ASLEEP = -3,
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
    NVML_PCI_BUS_ID_SIZE = 32,
    NVML_PCI_BUS_ID_V2_SIZE = 16,
};

enum nvml_enable { NVML_DISABLED = 0, NVML_ENABLED = 1 };

enum nvml_temperature_sensor { NVML_TEMPERATURE_GPU = 0 };

enum nvml_temperature_threshold {
    NVML_TEMPERATURE_SHUTDOWN = 0,
    NVML_TEMPERATURE_SLOWDOWN = 1,
    NVML_TEMPERATURE_MEMORY_MAX = 2,
};

enum nvml_clock {
    NVML_CLOCK_GRAPHICS = 0,
    NVML_CLOCK_SM = 1,
    NVML_CLOCK_MEMORY = 2,
    NVML_CLOCK_VIDEO = 3,
};

enum nvml_compute_mode {
    NVML_COMPUTE_DEFAULT = 0,
    NVML_COMPUTE_EXCLUSIVE_THREAD = 1,
    NVML_COMPUTE_PROHIBITED = 2,
    NVML_COMPUTE_EXCLUSIVE_PROCESS = 3,
};

enum nvml_architecture {
    NVML_ARCHITECTURE_KEPLER = 2,
    NVML_ARCHITECTURE_MAXWELL = 3,
    NVML_ARCHITECTURE_PASCAL = 4,
    NVML_ARCHITECTURE_VOLTA = 5,
    NVML_ARCHITECTURE_TURING = 6,
    NVML_ARCHITECTURE_AMPERE = 7,
    NVML_ARCHITECTURE_ADA = 8,
    NVML_ARCHITECTURE_HOPPER = 9,
    NVML_ARCHITECTURE_BLACKWELL = 10,
};

/* Performance states are 0 (most) to 15. */
enum { NVML_PSTATE_LAST = 15, NVML_PSTATE_UNKNOWN = 32 };

enum nvml_pcie_counter { NVML_PCIE_SENT = 0, NVML_PCIE_RECEIVED = 1 };

enum nvml_memory_error { NVML_ERRORS_CORRECTED = 0, NVML_ERRORS_UNCORRECTED = 1 };

enum nvml_ecc_counter {
    NVML_ECC_VOLATILE = 0,  /* since the driver was loaded */
    NVML_ECC_AGGREGATE = 1, /* ever */
};

/* Why the clocks are not higher; bits. */
enum nvml_clock_reason {
    NVML_CLOCK_GPU_IDLE = 0x1,
    NVML_CLOCK_APPLICATIONS_SETTING = 0x2,
    NVML_CLOCK_SW_POWER_CAP = 0x4,
    NVML_CLOCK_HW_SLOWDOWN = 0x8,
    NVML_CLOCK_SYNC_BOOST = 0x10,
    NVML_CLOCK_SW_THERMAL_SLOWDOWN = 0x20,
    NVML_CLOCK_HW_THERMAL_SLOWDOWN = 0x40,
    NVML_CLOCK_HW_POWER_BRAKE = 0x80,
    NVML_CLOCK_DISPLAY_SETTING = 0x100,
    NVML_CLOCK_BOARD_LIMIT = 0x200,
    NVML_CLOCK_RELIABILITY = 0x400,
};

/* For nvmlDeviceGetFieldValues(). */
enum nvml_field {
    NVML_FIELD_MEMORY_TEMPERATURE = 82, /* celsius */
    NVML_FIELD_NVLINK_SENT = 138,       /* KiB of data, without the protocol's own */
    NVML_FIELD_NVLINK_RECEIVED = 139,
    NVML_FIELD_POWER_AVERAGE = 185, /* mW over the last second */
    NVML_FIELD_POWER_INSTANT = 186, /* mW */
};

/* The scope of a power field, and of an NVLink field: one link, or this. */
enum nvml_power_scope { NVML_POWER_GPU = 0, NVML_POWER_MODULE = 1 };
#define NVML_NVLINK_ALL (~0U)

enum { NVML_NVLINKS_MAX = 36 };

enum nvml_value_type {
    NVML_VALUE_DOUBLE = 0,
    NVML_VALUE_UNSIGNED_INT = 1,
    NVML_VALUE_UNSIGNED_LONG = 2,
    NVML_VALUE_UNSIGNED_LONG_LONG = 3,
    NVML_VALUE_SIGNED_LONG_LONG = 4,
    NVML_VALUE_SIGNED_INT = 5,
    NVML_VALUE_UNSIGNED_SHORT = 6,
};

/* In a field of a structure: this value is not to be had. */
#define NVML_NOT_AVAILABLE (~0ULL)
#define NVML_NO_INSTANCE (~0U)

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

struct nvml_bar1_memory {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
};

struct nvml_fan_speed_v1 {
    unsigned version; /* in: NVML_FAN_SPEED_V1 */
    unsigned fan;     /* in: from 0 */
    unsigned rpm;
};

struct nvml_pci {
    char bus_id_v2[NVML_PCI_BUS_ID_V2_SIZE];
    unsigned domain;
    unsigned bus;
    unsigned device;
    unsigned device_id;     /* device in the upper half, vendor in the lower */
    unsigned sub_system_id; /* device in the upper half, vendor in the lower */
    char bus_id[NVML_PCI_BUS_ID_SIZE];
};

/* As written by nvmlDeviceGetPciInfo_v2, which has no room for long domains. */
struct nvml_pci_v2 {
    char bus_id[NVML_PCI_BUS_ID_V2_SIZE];
    unsigned domain;
    unsigned bus;
    unsigned device;
    unsigned device_id;
    unsigned sub_system_id;
    unsigned reserved[4];
};

union nvml_value {
    double real;
    unsigned unsigned_int;
    unsigned long unsigned_long;
    unsigned long long unsigned_long_long;
    long long signed_long_long;
    int signed_int;
    unsigned short unsigned_short;
};

struct nvml_field_value {
    unsigned field; /* in: enum nvml_field */
    unsigned scope; /* in */
    long long timestamp_us;
    long long latency_us;
    unsigned type; /* enum nvml_value_type */
    int status;    /* of this field; the call's own is of all */
    union nvml_value value;
};

/* Of a partition (MIG). */
struct nvml_attributes {
    unsigned multiprocessors;
    unsigned shared_copy_engines;
    unsigned shared_decoders;
    unsigned shared_encoders;
    unsigned shared_jpeg_decoders;
    unsigned shared_optical_flow;
    unsigned gpu_instance_slices;
    unsigned compute_instance_slices;
    unsigned long long memory_mib;
};

/* Recent use of a GPU by one process, in percent. */
struct nvml_process_sample {
    unsigned pid;
    unsigned long long timestamp_us;
    unsigned sm;
    unsigned memory;
    unsigned encoder;
    unsigned decoder;
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
#define NVML_FAN_SPEED_V1 NVML_STRUCT_VERSION(struct nvml_fan_speed_v1, 1U)

_Static_assert(sizeof(struct nvml_utilization) == 8, "layout of nvmlUtilization_t");
_Static_assert(sizeof(struct nvml_memory_v1) == 24, "layout of nvmlMemory_t");
_Static_assert(NVML_MEMORY_V2 == 0x02000028, "layout of nvmlMemory_v2_t");
_Static_assert(NVML_TEMPERATURE_V1 == 0x0100000C, "layout of nvmlTemperature_v1_t");
_Static_assert(NVML_FAN_SPEED_V1 == 0x0100000C, "layout of nvmlFanSpeedInfo_v1_t");
_Static_assert(sizeof(struct nvml_process_sample) == 32,
               "layout of nvmlProcessUtilizationSample_t");
_Static_assert(sizeof(struct nvml_bar1_memory) == 24, "layout of nvmlBAR1Memory_t");
_Static_assert(sizeof(struct nvml_pci) == 68, "layout of nvmlPciInfo_t");
_Static_assert(sizeof(struct nvml_pci_v2) == 52, "layout of nvmlPciInfo_v2_t");
_Static_assert(sizeof(union nvml_value) == 8, "layout of nvmlValue_t");
_Static_assert(sizeof(struct nvml_field_value) == 40, "layout of nvmlFieldValue_t");
_Static_assert(sizeof(struct nvml_attributes) == 40, "layout of nvmlDeviceAttributes_t");
_Static_assert(sizeof(struct nvml_process_v1) == 16, "layout of nvmlProcessInfo_v1_t");
_Static_assert(sizeof(struct nvml_process_v2) == 24, "layout of nvmlProcessInfo_v2_t");
_Static_assert(sizeof(struct nvml_process_535) == 32, "layout of nvmlProcessDetail_v1_t");

#endif
