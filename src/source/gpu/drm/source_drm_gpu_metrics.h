/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_drm_gpu_metrics.h - the binary file gpu_metrics of amdgpu.
 *
 * It is one of several structs of drivers/gpu/drm/amd/include/kgd_pp_interface.h
 * of the kernel, which state their size and revision in the first four bytes.
 */
#ifndef WM_SOURCE_DRM_GPU_METRICS_H
#define WM_SOURCE_DRM_GPU_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wattmeter/error.h"

/* Room for the largest that is known, and to see that one is larger. */
enum { WM_GPU_METRICS_SIZE = 4096 };

/* Which fields of a struct wm_gpu_metrics the file had. */
enum wm_gpu_metrics_field {
    WM_GPU_METRICS_ENERGY = 1 << 0,
    WM_GPU_METRICS_POWER = 1 << 1,
    WM_GPU_METRICS_UTILIZATION = 1 << 2,
    WM_GPU_METRICS_TEMPERATURE = 1 << 3,
    WM_GPU_METRICS_MEMORY_TEMPERATURE = 1 << 4,
    WM_GPU_METRICS_THROTTLE = 1 << 5,
};

struct wm_gpu_metrics {
    bool integrated;  /* the GPU is a part of a processor, an APU */
    unsigned present; /* of enum wm_gpu_metrics_field; the others are 0 */
    double energy;    /* J, a total since some time in the past */
    double power;     /* W, of the whole package */
    double utilization;
    double temperature; /* of the edge, else of the hottest spot */
    double memory_temperature;
    uint64_t throttle; /* why it is slowed down: bits of the kernel's amdgpu_smu.h */
};

/* Takes what has a documented unit. WM_EFORMAT for a revision that is not known
 * and for a size that does not fit the revision; then nothing is written. */
int wm_parse_gpu_metrics(const void *bytes, size_t size,
                         struct wm_gpu_metrics *ret_metrics);

#endif
