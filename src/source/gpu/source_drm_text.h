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

/* The number of "card1" or "renderD129", of which `start` is the beginning. */
int wm_parse_drm_node(const char *name, const char *start, unsigned *ret_number);

/* Room for a whole file: twice what one of sysfs can have. */
enum { WM_DRM_TEXT = 8192 };

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

/* DEVICE/uevent: who drives the device and, on PCI, where and what it is. Texts
 * that are not there are empty, and so is a name that is too long to be one. */
struct wm_drm_uevent {
    char driver[32]; /* "amdgpu" */
    char slot[32];   /* "0000:03:00.0" */
    bool has_ids;
    uint16_t vendor, device; /* 0x1002, 0x744c */
    uint16_t sub_vendor, sub_device;
    uint32_t class; /* 0x030000; 0: not known */
};

int wm_parse_drm_uevent(const char *text, struct wm_drm_uevent *ret_uevent);

enum {
    WM_DRM_NAME = 32,    /* room for the name of an engine or of a kind of memory */
    WM_DRM_ENGINES = 16, /* most kinds of engines that are distinguished */
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
    bool counts_otherwise; /* has engines whose time is not reported as a counter */
};

/* Follows Documentation/gpu/drm-usage-stats.rst of the kernel. A line that makes
 * no sense, or was cut off, costs only itself; WM_ENOENT where none says that
 * this is a DRM file. */
int wm_parse_drm_fdinfo(const char *text, struct wm_drm_fdinfo *ret_fdinfo);

/* Who makes chips of that number, or NULL. */
const char *wm_drm_vendor(uint64_t id);

#endif
