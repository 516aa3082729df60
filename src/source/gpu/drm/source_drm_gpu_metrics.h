/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_drm_gpu_metrics.h - amdgpu's binary file gpu_metrics: one of several structs of
 * drivers/gpu/drm/amd/include/kgd_pp_interface.h of the kernel, which state their size and
 * revision in the first four bytes.
 */
#ifndef WM_SOURCE_DRM_GPU_METRICS_H
#define WM_SOURCE_DRM_GPU_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wattmeter/error.h"

/* Room for the largest that is known, and to see that one is larger. */
enum { WM_GPU_METRICS_SIZE = 4096 };

/* What is measured of a card. Energy first: of all values a counter loses most by being
 * late. */
enum wm_drm_metric {
    WM_DRM_ENERGY,
    WM_DRM_POWER, /* in gpu_metrics that of the whole package */
    WM_DRM_UTILIZATION,
    WM_DRM_MEMORY_USED,
    WM_DRM_MEMORY_TOTAL,
    WM_DRM_TEMPERATURE, /* of the edge, else of the hottest spot */
    WM_DRM_MEMORY_TEMPERATURE,
    WM_DRM_METRICS,
};

struct wm_gpu_metrics {
    bool integrated;    /* the GPU is a part of a processor, an APU */
    bool is_second_die; /* of a package that is measured at the first one: 0 J */
    bool has[WM_DRM_METRICS];
    double values[WM_DRM_METRICS];
    bool has_throttle;
    uint64_t throttle; /* why it is slowed down: bits of the kernel's amdgpu_smu.h */
};

/* Takes what has a documented unit. WM_EFORMAT for a revision that is not known
 * and for a size that does not fit the revision; then nothing is written. */
int wm_parse_gpu_metrics(const void *bytes, size_t size,
                         struct wm_gpu_metrics *ret_metrics);

#endif
