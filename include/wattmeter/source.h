/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.h - where readings come from.
 *
 * A source is one way of asking a machine for numbers: a driver library, a
 * sysfs tree, /proc. Open one, look once at the channels it offers, then read
 * all of them as often as you like:
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
 *   - a pointer returned as const belongs to the source and dies with it;
 *   - nothing is printed, and no state outside the source is touched. A source
 *     may move between threads but serves one at a time. GPU drivers are called
 *     in threads of the source's own, where all signals are blocked.
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
    WM_GAUGE,   /* the value now: watts, bytes in use */
    WM_COUNTER, /* a total that only grows: joules, seconds of CPU time */
};

/* What a channel speaks of, so that a consumer can ask for "every GPU"
 * without knowing the vendors. */
enum wm_device_kind {
    WM_DEVICE_HOST, /* the machine as a whole */
    WM_DEVICE_CPU,  /* one core, package or CPU sensor; has energy: a whole package */
    WM_DEVICE_GPU,
    WM_DEVICE_TREE,     /* the tracked processes: "main", "descendants", "tree" */
    WM_DEVICE_CPU_PART, /* energy inside that of a package: its cores, its uncore */
    WM_DEVICE_DRAM,     /* memory, which no package includes */
    WM_DEVICE_PLATFORM, /* all of the board or the machine: psys, a battery, a meter */
    WM_DEVICE_OTHER,    /* a sensor of which nothing more is known */
};

/* How a value came to be. Anything but measured is labelled in every view. */
enum wm_origin {
    WM_MEASURED,
    WM_ESTIMATED, /* from a model */
    WM_SIMULATED, /* from a driver that says it is not real */
};

/* What a value is read from. */
enum wm_sensor_kind {
    WM_SENSOR_UNKNOWN,
    WM_SENSOR_BUILT_IN, /* a meter inside the device itself: RAPL, that of a GPU */
    WM_SENSOR_BOARD,    /* a meter beside the device, on its board */
    WM_SENSOR_TOOL,     /* another tool */
    WM_SENSOR_MODEL,    /* no meter: the value of a model, which goes on without steps */
    WM_SENSOR_BATTERY,  /* a battery's own gauge */
    WM_SENSOR_METER,    /* an external meter, whose readings carry the time they are of */
};

/* How much a value of power or energy contains. Each holds those before it, whatever made
 * them: what contains another is never added to it. */
enum wm_contains {
    WM_CONTAINS_DEVICE,   /* the device of the channel alone */
    WM_CONTAINS_PACKAGE,  /* a processor with all that is in it, such as a GPU */
    WM_CONTAINS_MODULE,   /* a board with a CPU, its GPUs and their memory */
    WM_CONTAINS_PLATFORM, /* all of the machine, or as much as its maker wired up */
};

/* What is known beforehand of the sensor behind power or energy: what was published of
 * it, what its driver says, or what is assumed. All zero: nothing is known. Errors are
 * at k = 2: 95 of 100 sensors of that design lie within them. */
struct wm_sensor {
    enum wm_sensor_kind kind;
    enum wm_contains contains;
    int64_t period_ns; /* the sensor has something new so often; 0: as the channel */

    /* A gauge whose period nobody has published: while its value does not change the value
     * may be as old as this. 0: the period holds. */
    int64_t longest_ns;

    /* A value is the mean over so long before it; 0: over a period. A sensor whose
     * window is shorter than its period is blind for the rest of each period: that is
     * its dead time. */
    double window_s;
    bool is_sample; /* the sensor measures only at the moment it is read */

    double gain;   /* relative error of a value */
    double offset; /* absolute error of a value, in the channel's unit; of a counter: per
                      second */
    double step;   /* the smallest difference between two values; 0: not known */
    double range;  /* no value is higher; of a counter: per second; 0: not known */

    const char *text; /* what it is, for people; may be NULL */
};

/* One series of numbers. Values are in the base unit, never in milli- or
 * mega-anything, so that no consumer has to know where they came from. */
struct wm_channel {
    const char *source; /* name of the source: "nvml" */
    const char *device; /* identity, stable across reboots: "GPU-7c1f...", "host" */
    const char *label;  /* short, unique in one session: "gpu0"; names columns */
    const char *model;  /* what people call the device: "NVIDIA H100"; may be NULL */
    const char *metric; /* "power", "energy", "utilization", "memory_used" */
    const char *unit;   /* "W", "J", "B", "s", "Hz", "ratio", "celsius", "count" */
    enum wm_device_kind device_kind;
    enum wm_kind kind;
    enum wm_origin origin;
    int64_t period_ns;       /* how often the value can change at best; 0: at any time */
    struct wm_sensor sensor; /* of power and energy */
};

/* Zero is WM_READING_NONE, so that memory nobody filled in can never pass for
 * a measurement of 0 W. */
enum wm_reading_state {
    WM_READING_NONE, /* nothing yet */
    WM_READING_OK,
    WM_READING_UNSUPPORTED, /* this device will never have it */
    WM_READING_DENIED,      /* it is there, but not for this user */
    WM_READING_FAILED,      /* it should have answered, and may next time */
    WM_READING_STALE,       /* too old to stand for now, or too expensive to ask again */
    WM_READING_JUMPED,      /* a counter: by more than the device can; it begins again */
};

struct wm_reading {
    int64_t when_ns; /* CLOCK_MONOTONIC in the middle of the call that asked the device */
    double value;    /* meaningful in WM_READING_OK alone */
    enum wm_reading_state state;
};

/* Where a source finds its files and drivers. All zero is right for nearly everybody:
 * then the environment (WATTMETER_PROCFS, WATTMETER_SYSFS, WATTMETER_NVML) decides, and
 * after it the usual places. Strings are copied. */
struct wm_source_config {
    const char *procfs;    /* instead of /proc */
    const char *sysfs;     /* instead of /sys */
    const char *nvml;      /* path of the NVML library */
    const char *gpus;      /* "all" (NULL too), "none", or a list: "0,2", "GPU-7c1f" */
    pid_t pid;             /* root of the process tree; 0 is the calling process */
    const char *cpu_watts; /* "IDLE:MAX" of all CPUs, for "estimate"; NULL: looked up */
};

/* The sources this build knows, present on this machine or not; NULL past the
 * last. A constant: it needs no release and outlives everything. */
WM_API const char *wm_source_name(size_t index);

/* One line on what the source called `name` asks; NULL if there is none. */
WM_API const char *wm_source_summary(const char *name);

/* Opens the source called `name`; wm_source_close() gives it back. `config`
 * may be NULL. WM_ENODEV means that this machine lacks the hardware or its
 * driver, which is an ordinary answer and not a fault; WM_EIO comes after ten
 * seconds in which a driver did not answer. */
WM_API int wm_source_open(const char *name, const struct wm_source_config *config,
                          struct wm_source **ret_source, struct wm_error *err);

/* Accepts NULL. A driver that hangs is waited for a second at most; then the
 * thread that is in it goes on, with the memory that it uses, until it is back. */
WM_API void wm_source_close(struct wm_source *source);

WM_API size_t wm_source_channel_count(const struct wm_source *source);

/* `index` is below wm_source_channel_count(). */
WM_API const struct wm_channel *wm_source_channel(const struct wm_source *source,
                                                  size_t index);

/* Why the last reading of a channel was not WM_READING_OK: "not supported by
 * this GPU". Before the first one: why none can be, as far as that is known. NULL when
 * there is nothing to say. */
WM_API const char *wm_source_why(const struct wm_source *source, size_t index);

/* What exactly is being read: "driver 550.54, /usr/lib/...". NULL if the name
 * says it all. */
WM_API const char *wm_source_detail(const struct wm_source *source);

/* Reads every channel into readings[0..count); `count` is the channel count.
 * A channel that fails says so in its own reading and the rest still count;
 * the call itself fails only when nothing could be asked at all. Waits at most a
 * second for a driver that hangs, whose readings are WM_READING_STALE then, at
 * the time when it was asked; the GPUs beside it are read on. Allocates nothing
 * once the set of processes it sees is stable. */
WM_API int wm_source_read(struct wm_source *source, struct wm_reading *readings,
                          size_t count, struct wm_error *err);

/* A process that uses a GPU, as the driver names it. Pid 0 stands for a GPU
 * whose processes the driver would not list, or not all of them; `state` says in
 * what way, and `why` the reason: "not known" is not "none". */
struct wm_gpu_process {
    const char *device;  /* the GPU's identity, as in its channels */
    pid_t pid;           /* as the driver sees it */
    double memory_bytes; /* meaningful in WM_READING_OK alone */
    enum wm_reading_state state;
    double sm_ratio; /* its share of the GPU's time, of late; the same holds for it */
    enum wm_reading_state sm_state;
    const char *why; /* of pid 0; NULL: the state says it all */
};

/* The GPU processes seen by the last wm_source_read(); valid until the next
 * read or close. Zero where the source knows of no GPU. */
WM_API size_t wm_source_gpu_processes(const struct wm_source *source,
                                      const struct wm_gpu_process **ret_processes);

/* How many devices of its kind the machine has, chosen by the configuration or
 * not; 0 where the question makes no sense. */
WM_API size_t wm_source_device_count(const struct wm_source *source);

#ifdef __cplusplus
}
#endif
#endif
