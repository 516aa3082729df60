/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_drm_text.h - what graphics drivers write into sysfs and /proc, as structs.
 *
 * For every function here:
 *   - the text ends with a NUL and is not changed; nothing is allocated;
 *   - the return value is WM_OK, or WM_EFORMAT for text that no driver would
 *     have written;
 *   - out-parameters (`ret_...`) are written on success and only then.
 */
#ifndef WM_SOURCE_DRM_TEXT_H
#define WM_SOURCE_DRM_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wattmeter/error.h"

/* A file of sysfs that holds one whole number and nothing else. */
int wm_parse_sysfs_number(const char *text, int64_t *ret_value);

/* DEVICE/uevent: who drives the device and, on PCI, where and what it is. Texts
 * that are not there are empty, and so is a name that is too long to be one. */
struct wm_drm_uevent {
    char driver[32]; /* "amdgpu" */
    char slot[32];   /* "0000:03:00.0" */
    bool has_ids;
    uint16_t vendor, device; /* 0x1002, 0x744c */
};

int wm_parse_drm_uevent(const char *text, struct wm_drm_uevent *ret_uevent);

enum {
    WM_DRM_NAME = 32,    /* room for the name of an engine or of a kind of memory */
    WM_DRM_ENGINES = 16, /* most kinds of engines that are told apart */
};

/* Which counters of an engine a text had. */
enum wm_drm_counter {
    WM_DRM_BUSY_NS = 1 << 0,
    WM_DRM_CYCLES = 1 << 1,
    WM_DRM_TOTAL_CYCLES = 1 << 2,
};

/* What one client had of the engines of one kind since it was opened. Any
 * counter may step back for a while. */
struct wm_drm_engine {
    char name[WM_DRM_NAME]; /* "gfx", "render", "rcs" */
    unsigned present;       /* of enum wm_drm_counter; the others are 0 */
    uint64_t busy_ns;
    uint64_t cycles;
    uint64_t total_cycles; /* the engine's clock, which runs always */
    uint64_t capacity;     /* engines of this kind; at least 1 */
};

/* The kinds of memory that buffers of a client can be in. */
enum wm_drm_memory {
    WM_DRM_LOCAL,  /* the GPU's own: "vram", "vram0", "local0" */
    WM_DRM_GTT,    /* the machine's, mapped for the GPU */
    WM_DRM_SYSTEM, /* the machine's: "system", "memory", "stolen" */
    WM_DRM_MEMORY_COUNT,
};

/* /proc/PID/fdinfo/FD of a file that is a DRM device. A client is what one
 * open() of the device made; dup() and fork() share it. */
struct wm_drm_fdinfo {
    char driver[WM_DRM_NAME];
    char slot[WM_DRM_NAME]; /* "0000:03:00.0"; empty where the GPU is not on PCI */
    bool has_client;
    uint64_t client; /* unique among those of the device */
    bool has_memory[WM_DRM_MEMORY_COUNT];
    uint64_t memory_bytes[WM_DRM_MEMORY_COUNT];
    struct wm_drm_engine engines[WM_DRM_ENGINES];
    size_t engine_count;
    bool counts_otherwise; /* has engines whose time is not told as a counter */
};

/* Follows Documentation/gpu/drm-usage-stats.rst of the kernel. A line that makes
 * no sense, or was cut off, costs only itself; WM_ENOENT where none says that
 * this is a DRM file. */
int wm_parse_drm_fdinfo(const char *text, struct wm_drm_fdinfo *ret_fdinfo);

/* amdgpu's binary file gpu_metrics, of which alone the first rule does not hold. It is one
 * of several structs of drivers/gpu/drm/amd/include/kgd_pp_interface.h of the kernel, which
 * state their size and revision in the first four bytes. */

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
