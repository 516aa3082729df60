/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_gpu_drm_text.h - what graphics drivers and PCI write into sysfs beside plain
 * numbers.
 *
 * For every function here:
 *   - the text ends with a NUL and is not changed; nothing is allocated;
 *   - the return value is WM_OK, or WM_EFORMAT for text that no driver would
 *     have written;
 *   - out-parameters (`ret_...`) are written on success and only then.
 */
#ifndef WM_SOURCE_GPU_DRM_TEXT_H
#define WM_SOURCE_GPU_DRM_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "wattmeter/error.h"

/* A file that holds one line of visible characters and nothing else; at most
 * WM_DRM_LINE of them with the NUL. */
enum { WM_DRM_LINE = 104 };

int wm_parse_drm_line(const char *text, char ret_line[WM_DRM_LINE]);

/* One hexadecimal number and nothing else, "0x1002\n". */
int wm_parse_drm_hex(const char *text, uint64_t *ret_value);

/* current_link_speed of a PCI device, "16.0 GT/s PCIe\n", as the generation of
 * PCIe. WM_ENODEV for "Unknown", which a device without such a link says. */
int wm_parse_link_speed(const char *text, double *ret_generation);

/* current_link_width, "16\n". WM_ENODEV for 0 and 255, which mean the same. */
int wm_parse_link_width(const char *text, double *ret_lanes);

/* The levels that a clock of amdgpu can have, pp_dpm_sclk:
 *
 *     0: 500Mhz
 *     1: 2371Mhz *
 *
 * where the star is at the level it has now, and "S:" is deep sleep. */
struct wm_dpm_levels {
    bool has_now;
    double now, max; /* Hz */
};

int wm_parse_dpm_levels(const char *text, struct wm_dpm_levels *ret_levels);

/* The number in the line that begins with `name`: "ue: 3\n", "simd_count 240\n".
 * WM_ENOENT where there is no such line. */
int wm_parse_named_number(const char *text, const char *name, uint64_t *ret_value);

#endif
