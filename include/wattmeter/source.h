/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.h - reads values from the hardware and the kernel.
 *
 * A source reads values from one place: a driver library, a sysfs tree, /proc. Open one,
 * get its channels once, then read all of them as often as you like:
 *
 *     struct wm_source *gpu;
 *     struct wm_error err;
 *     if (wm_source_open("nvml", NULL, &gpu, &err) < 0)
 *         return report(&err);
 *     size_t n = wm_source_channel_count(gpu);
 *     struct wm_reading *now = calloc(n, sizeof(*now));
 *     while (now && !done && wm_source_read(gpu, now, n, &err) >= 0)
 *         wait_for_next_tick();
 *     free(now);
 *     wm_source_close(gpu);
 *
 * For every function here:
 *   - zero or more is success, a negative `enum wm_status` is failure;
 *   - out-parameters (`ret_...`) are written on success and only then;
 *   - `err` may be NULL: the return value is for programs, `err` for people;
 *   - a pointer returned as const belongs to the source and lives as long;
 *   - nothing is printed, and no state outside the source is changed. A source
 *     may move between threads, but only one may use it at a time. The source calls
 *     GPU drivers in separate threads, where all signals are blocked.
 */
#ifndef WATTMETER_SOURCE_H
#define WATTMETER_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wattmeter/api.h"
#include "wattmeter/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wm_source;

enum wm_kind {
    WM_GAUGE = 0,   /* the value now: watts, bytes in use */
    WM_COUNTER = 1, /* a total that only grows: joules, seconds of CPU time */
};

/* The kind of device of a channel, so that a program can ask for "every GPU" without
 * knowing the vendors. */
enum wm_device_kind {
    WM_DEVICE_HOST = 0, /* the machine as a whole */
    WM_DEVICE_CPU = 1,  /* one core, package or CPU sensor; has energy: a whole package */
    WM_DEVICE_GPU = 2,
    WM_DEVICE_TREE = 3,     /* the tracked processes: "main", "descendants", "tree" */
    WM_DEVICE_CPU_PART = 4, /* a part of a package's energy: its cores, its uncore */
    WM_DEVICE_DRAM = 5,     /* memory, not included in any package */
    WM_DEVICE_PLATFORM = 6, /* all of the board or the machine: psys, a battery, a meter */
    WM_DEVICE_OTHER = 7,    /* a sensor of unknown purpose */
};

/* How a value was obtained. Every view marks values that were not measured. */
enum wm_origin {
    WM_MEASURED = 0,
    WM_ESTIMATED = 1, /* from a model */
    WM_SIMULATED = 2, /* from a driver that reports a simulation */
};

/* The kind of sensor of a value. */
enum wm_sensor_kind {
    WM_SENSOR_UNKNOWN = 0,
    WM_SENSOR_BUILT_IN = 1, /* a meter inside the device: RAPL, a GPU's meter */
    WM_SENSOR_BOARD = 2,    /* a meter beside the device, on its board */
    WM_SENSOR_TOOL = 3,     /* another tool */
    WM_SENSOR_MODEL = 4,    /* no meter: a model, whose value changes without steps */
    WM_SENSOR_BATTERY = 5,  /* a battery's own gauge */
    WM_SENSOR_METER = 6,    /* an external meter, whose readings have a time */
};

/* The parts that a value of power or energy covers. Each covers those before it; wattmeter
 * never adds a value to one that covers it. */
enum wm_contains {
    WM_CONTAINS_DEVICE = 0,   /* the device of the channel alone */
    WM_CONTAINS_PACKAGE = 1,  /* a processor with everything inside, such as a GPU */
    WM_CONTAINS_MODULE = 2,   /* a board with a CPU, its GPUs and their memory */
    WM_CONTAINS_PLATFORM = 3, /* the machine, or the part that its maker wired up */
};

/* The properties of the sensor behind power or energy: published, given by its driver, or
 * assumed. All zero: unknown. Errors are at k = 2: they cover 95 of 100 sensors of that
 * design. */
struct wm_sensor {
    enum wm_sensor_kind kind;
    enum wm_contains contains;
    int64_t period_ns; /* between two updates of the sensor; 0: as the channel */

    /* For a gauge without a published period: an unchanged value may be as old as this. 0:
     * the period holds. */
    int64_t longest_ns;

    /* A value is the mean over this time before it; 0: over a period. If the window is
     * shorter than the period, the sensor misses the rest of each period: its dead time. */
    double window_s;
    bool is_sample; /* the sensor measures only at the moment it is read */

    double gain;   /* relative error of a value */
    double offset; /* absolute error of a value, in the channel's unit; of a counter: per
                      second */
    double step;   /* the smallest difference between two values; 0: not known */
    double range;  /* no value is higher; of a counter: per second; 0: not known */

    const char *text; /* describes it for people; may be NULL */
};

/* One series of numbers, in the base unit, never in milli- or mega-units, so that no
 * program has to know their source. */
struct wm_channel {
    const char *source; /* name of the source: "nvml" */
    const char *device; /* identity, stable across reboots: "GPU-7c1f...", "host" */
    const char *label;  /* short, unique in one session: "gpu0"; names columns */
    const char *model;  /* the product: "NVIDIA H100"; may be NULL */
    const char *metric; /* "power", "energy", "utilization", "memory_used" */
    const char *unit;   /* "W", "J", "B", "s", "Hz", "ratio", "celsius", "count" */
    enum wm_device_kind device_kind;
    enum wm_kind kind;
    enum wm_origin origin;
    int64_t period_ns;       /* shortest time between two changes of the value; 0: any */
    struct wm_sensor sensor; /* of power and energy */
};

/* Zero is WM_READING_NONE, so that uninitialized memory never counts as a measurement of 0
 * W. */
enum wm_reading_state {
    WM_READING_NONE = 0, /* nothing yet */
    WM_READING_OK = 1,
    WM_READING_UNSUPPORTED = 2, /* this device will never have it */
    WM_READING_DENIED = 3,      /* this user may not read it */
    WM_READING_FAILED = 4,      /* it did not answer, but may next time */
    WM_READING_STALE = 5,  /* too old to be valid now, or too expensive to read again */
    WM_READING_JUMPED = 6, /* a counter: by more than the device can; it starts again */
};

struct wm_reading {
    int64_t when_ns; /* CLOCK_MONOTONIC in the middle of the call that asked the device */
    double value;    /* meaningful in WM_READING_OK alone */
    enum wm_reading_state state;
};

/* Where a source finds its files and drivers. Zero-initialize it for the defaults: the
 * environment (WATTMETER_PROCFS, WATTMETER_SYSFS, WATTMETER_NVML), then the usual places.
 * The strings are copied. */
struct wm_source_config {
    size_t size;           /* sizeof this struct */
    const char *procfs;    /* instead of /proc */
    const char *sysfs;     /* instead of /sys */
    const char *nvml;      /* path of the NVML library */
    const char *gpus;      /* "all" (NULL too), "none", or a list: "0,2", "GPU-7c1f" */
    const char *channels;  /* of GPUs, beyond the usual: "all" or "fan,clock_graphics" */
    pid_t pid;             /* root of the process tree; 0 is the calling process */
    const char *cpu_watts; /* "IDLE:MAX" of all CPUs, for "estimate"; NULL: looked up */
};

/* The names of the sources of this build, available on this machine or not; NULL past the
 * last. They are constants. */
WM_API const char *wm_source_name(size_t index);

/* Opens the source called `name`; close it with wm_source_close(). `config` may be NULL.
 * WM_ENODEV: this machine lacks the hardware or its driver, which is a normal result.
 * WM_EIO: the driver did not answer within ten seconds. */
WM_API int wm_source_open(const char *name, const struct wm_source_config *config,
                          struct wm_source **ret_source, struct wm_error *err);

/* Accepts NULL. Waits at most a second for a driver that hangs. After that the thread in
 * the driver keeps its memory and ends when the driver returns. */
WM_API void wm_source_close(struct wm_source *source);

WM_API size_t wm_source_channel_count(const struct wm_source *source);

/* `index` is below wm_source_channel_count(). */
WM_API const struct wm_channel *wm_source_channel(const struct wm_source *source,
                                                  size_t index);

/* Why the last reading of a channel was not WM_READING_OK: "not supported by this GPU".
 * Before the first reading: why there will be none, if known. NULL if there is no
 * reason. */
WM_API const char *wm_source_why(const struct wm_source *source, size_t index);

/* The file or driver behind the source: "driver 550.54, /usr/lib/...". NULL if the name is
 * enough. */
WM_API const char *wm_source_detail(const struct wm_source *source);

/* Reads every channel into readings[0..count); `count` is the channel count. A channel that
 * fails has the failure in its reading, and the others are valid. The call fails only if no
 * channel could be read. It waits at most a second for a driver that hangs. Readings of
 * that driver are then WM_READING_STALE, with the time of the request; other GPUs are read
 * on. Allocates nothing once the set of processes is stable. */
WM_API int wm_source_read(struct wm_source *source, struct wm_reading *readings,
                          size_t count, struct wm_error *err);

#ifdef __cplusplus
}
#endif
#endif
