/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_nvml_library.h - NVML, the library behind nvidia-smi, opened at run time:
 * one binary serves machines with and without the driver.
 *
 *     struct nvml_library library = { 0 };
 *     if (nvml_library_open(&library, NULL, err) == WM_OK)
 *         status = library.api.device_count(&count);
 *     nvml_library_close(&library);
 */
#ifndef WM_SOURCE_NVML_LIBRARY_H
#define WM_SOURCE_NVML_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/base_error.h"
#include "source/gpu/nvml/source_nvml_abi.h"
#include "wattmeter/source.h"

/* NVML has a list of its own for each way of using a GPU. A process may stand in
 * several; clients of MPS do so in the last, where computing ends up that their
 * server does for them. */
enum nvml_list { NVML_LIST_COMPUTE, NVML_LIST_GRAPHICS, NVML_LIST_MPS, NVML_LIST_COUNT };

/* The call for one list in its versions, NULL where the driver lacks one. */
struct nvml_list_calls {
    int (*v3)(nvml_device device, unsigned *count, void *entries);
    int (*v2)(nvml_device device, unsigned *count, void *entries);
    int (*v1)(nvml_device device, unsigned *count, void *entries);
};

struct nvml_process_calls {
    struct nvml_list_calls lists[NVML_LIST_COUNT];
    int (*utilization)(nvml_device device, struct nvml_process_sample *samples,
                       unsigned *count, unsigned long long last_seen);
};

/* NVML's functions. Those that this driver lacks are NULL; the required ones of
 * nvml_library_symbol() never are. None of them changes anything. */
struct nvml_api {
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error_string)(int status);

    int (*driver_version)(char *text, unsigned size);
    int (*nvml_version)(char *text, unsigned size);
    int (*cuda_version_v2)(int *version); /* 12040 is 12.4 */
    int (*cuda_version_v1)(int *version); /* a known one where there is no CUDA */
    int (*process_name)(unsigned pid, char *name, unsigned size);

    int (*device_count)(unsigned *count);
    int (*device_at)(unsigned index, nvml_device *device);
    int (*device_by_uuid)(const char *uuid, nvml_device *device);
    int (*uuid)(nvml_device device, char *uuid, unsigned size);
    int (*name)(nvml_device device, char *name, unsigned size);
    int (*serial)(nvml_device device, char *serial, unsigned size);
    int (*vbios_version)(nvml_device device, char *version, unsigned size);
    int (*architecture)(nvml_device device, unsigned *architecture);
    int (*compute_capability)(nvml_device device, int *major, int *minor);
    int (*cores)(nvml_device device, unsigned *count);
    int (*attributes)(nvml_device device, struct nvml_attributes *attributes);
    int (*compute_mode)(nvml_device device, unsigned *mode);
    int (*persistence)(nvml_device device, unsigned *enabled);
    int (*display_active)(nvml_device device, unsigned *enabled);

    int (*memory_v2)(nvml_device device, struct nvml_memory_v2 *memory);
    int (*memory_v1)(nvml_device device, struct nvml_memory_v1 *memory);
    int (*bar1_memory)(nvml_device device, struct nvml_bar1_memory *memory);

    int (*utilization)(nvml_device device, struct nvml_utilization *percent);
    int (*encoder_utilization)(nvml_device device, unsigned *percent, unsigned *period_us);
    int (*decoder_utilization)(nvml_device device, unsigned *percent, unsigned *period_us);
    int (*fan_speed_v2)(nvml_device device, unsigned fan, unsigned *percent);
    int (*fan_speed_v1)(nvml_device device, unsigned *percent);
    int (*fan_rpm)(nvml_device device, struct nvml_fan_speed_v1 *speed);
    int (*temperature)(nvml_device device, int sensor, unsigned *celsius);
    int (*temperature_v)(nvml_device device, struct nvml_temperature_v1 *temperature);
    int (*temperature_threshold)(nvml_device device, int threshold, unsigned *celsius);
    int (*performance)(nvml_device device, unsigned *state);

    int (*pci_v3)(nvml_device device, struct nvml_pci *pci);
    int (*pci_v2)(nvml_device device, struct nvml_pci_v2 *pci);
    int (*link_generation)(nvml_device device, unsigned *generation);
    int (*link_generation_max)(nvml_device device, unsigned *generation);
    int (*link_width)(nvml_device device, unsigned *lanes);
    int (*link_width_max)(nvml_device device, unsigned *lanes);
    int (*replays)(nvml_device device, unsigned *count);
    int (*throughput)(nvml_device device, int counter, unsigned *kb_per_s);

    int (*clock)(nvml_device device, int clock, unsigned *mhz);
    int (*clock_max)(nvml_device device, int clock, unsigned *mhz);
    int (*clock_event_reasons)(nvml_device device, unsigned long long *reasons);
    int (*clock_throttle_reasons)(nvml_device device, unsigned long long *reasons);

    int (*power_management)(nvml_device device, unsigned *enabled);
    int (*power_mw)(nvml_device device, unsigned *milliwatts);
    int (*power_limit_mw)(nvml_device device, unsigned *milliwatts);
    int (*power_limit_default_mw)(nvml_device device, unsigned *milliwatts);
    int (*power_limit_enforced_mw)(nvml_device device, unsigned *milliwatts);
    int (*power_limit_range_mw)(nvml_device device, unsigned *lowest, unsigned *highest);
    int (*energy_mj)(nvml_device device, unsigned long long *millijoules);
    int (*field_values)(nvml_device device, int count, struct nvml_field_value *values);

    int (*ecc_mode)(nvml_device device, unsigned *current, unsigned *pending);
    int (*ecc_errors)(nvml_device device, int error, int counter,
                      unsigned long long *count);
    int (*nvlink_state)(nvml_device device, unsigned link, unsigned *is_up);

    struct nvml_process_calls processes;
    int (*processes_utilization)(nvml_device device, struct nvml_processes_use_v1 *uses);

    int (*mig_mode)(nvml_device device, unsigned *current, unsigned *pending);
    int (*mig_count_max)(nvml_device device, unsigned *count);
    int (*mig_at)(nvml_device device, unsigned index, nvml_device *mig);
    int (*gpu_instance)(nvml_device mig, unsigned *id);
    int (*compute_instance)(nvml_device mig, unsigned *id);
};

struct nvml_library {
    void *handle;
    bool initialised;
    struct nvml_api api;
    char driver[NVML_VERSION_SIZE];  /* "" where it is not told */
    char version[NVML_VERSION_SIZE]; /* of NVML, likewise */
    char detail[512];                /* "driver 550.54, NVML 12.550.54, /usr/lib/..." */
};

/* A function of NVML that is looked for. A driver too old for an optional one
 * loses what it tells and nothing else. */
struct nvml_symbol {
    const char *name;
    size_t slot; /* offset of its pointer in struct nvml_api */
    bool required;
};

/* NULL past the last one. */
const struct nvml_symbol *nvml_library_symbol(size_t index);

/* Whether there is a library of that name; nothing of it is called. */
int nvml_library_look(const char *name, struct wm_error *err);

/* Loads NVML into the zeroed `library` and starts it. `name` may be NULL: the
 * driver's own, where the loader finds it. WM_ENODEV: no driver here. Close what
 * open leaves in any case. */
int nvml_library_open(struct nvml_library *library, const char *name, struct wm_error *err);

/* The GPU's temperature by the call that this driver has; NVML's status, or
 * NVML_IMPOSSIBLE_VALUE. */
int nvml_temperature(const struct nvml_api *api, nvml_device device, double *ret_celsius);

/* The value of a field that succeeded, whatever type it says that it is of. */
int nvml_field_number(const struct nvml_field_value *field, double *ret_value);

/* More than any machine has; beyond it a count is taken for a mistake. */
enum { NVML_GPUS_MAX = 1024 };

/* How many GPUs there are, at least one. WM_ENODEV: none. */
int nvml_library_count(const struct nvml_library *library, unsigned *ret_count,
                       struct wm_error *err);

/* Copes with all zero. */
void nvml_library_close(struct nvml_library *library);

/* NVML's text for what a call returned, or ours for our own;
 * lives as long as the library is open. */
const char *nvml_text(const struct nvml_library *library, int nvml_status);

enum wm_reading_state nvml_state(int nvml_status);

/* Ends `text` within `size`, and cleans it as wm_text_clean() does: NVML's texts end
 * up in reports and recordings. */
void nvml_clean_text(char *text, size_t size);

/* What keeps NVIDIA's GPUs from being read, such as a library that is not here; for the
 * doctor. */
struct wm_source_case;
void wm_nvml_advise(const struct wm_source_case *asked);

#endif
