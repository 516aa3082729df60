/* SPDX-License-Identifier: Apache-2.0 */
/*
 * energy.h - measures the energy of a piece of a program: the joules of CPUs, memory and
 * GPUs between two lines, and a table of them while it runs.
 *
 *     struct wm_meter *meter;
 *     struct wm_meter_reading cost;
 *     uint64_t epoch;
 *     if (wm_meter_open(NULL, &meter, &err) < 0)
 *         return report(&err);
 *     if (wm_meter_start(meter, "epoch", &epoch, &err) == WM_OK) {
 *         train();
 *         wm_meter_stop(meter, epoch, &cost, NULL, &err);
 *         if (cost.gpu.state == WM_READING_OK)
 *             printf("%.3f s, GPUs %.1f J\n", cost.elapsed_s, cost.gpu.joules);
 *         else
 *             printf("%.3f s, GPUs n/a: %s\n", cost.elapsed_s, cost.gpu.why);
 *     }
 *     wm_meter_close(meter, &err);
 *
 * The meter measures the whole machine between start and stop, including other programs.
 * GPU work that is queued and not finished at the stop is not included, so wait for the GPU
 * first. docs/measure-a-snippet.md explains the methods, the cost of a call and the files.
 *
 * Snippets may be nested and overlap, and may end in another thread than they began in.
 * Many threads may call all functions but wm_meter_open() and wm_meter_close() at once: one
 * of them reads the devices, and the others wait. The wait is tens of microseconds as a
 * rule, and at most 0.1 s for a GPU driver that hangs. Do not call them in a signal
 * handler.
 *
 * While a snippet runs, a thread of the meter reads some devices every 0.1 s: those without
 * an energy counter, those whose counter has not changed yet, and those whose sensor
 * measures only part of the time (A100, H100). It reads counters that wrap every 20 s. The
 * thread starts with the first snippet and blocks all signals.
 *
 * After a fork() a meter belongs to the parent. In the child its functions return
 * WM_EINVAL, and wm_meter_close() does nothing. The child opens another meter.
 *
 * The rules of source.h hold here too.
 */
#ifndef WATTMETER_ENERGY_H
#define WATTMETER_ENERGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wattmeter/api.h"
#include "wattmeter/error.h"
#include "wattmeter/recording.h"
#include "wattmeter/source.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wm_meter;

/* Zero-initialize it for the defaults. The strings are copied. */
struct wm_meter_options {
    size_t size; /* sizeof this struct */
    /* GPUs of all vendors, by the words of wm_gpu_select() in gpu.h. NULL: all. */
    const char *gpus;

    /* Estimate the energy of CPUs without a sensor, and of their memory; the figures are
     * marked as estimates. */
    bool estimate;
    const char *cpu_watts; /* "IDLE:MAX" of all CPUs for the estimate; implies `estimate` */

    /* Read all devices at this interval while a snippet runs, 1 ms to 1 h, even if they do
     * not need it. Counter and power are then checked against each other. 0: as often as
     * needed. */
    int64_t interval_ns;

    /* A CSV file that gets a row at each wm_meter_stop(). NULL: none. */
    const char *snippets;
    enum wm_record_mode mode; /* for that file and the files of wm_meter_run() */

    /* The files have the columns of the tool of the thesis, without a header, in seconds,
     * kWh, percent, degrees Celsius and watts. */
    bool seed_format;
};

/* How a figure was obtained. */
enum wm_meter_method {
    WM_METER_NO_METHOD = 0, /* there is no figure */
    WM_METER_COUNTER = 1,   /* a counter of energy */
    WM_METER_FILLED = 2,    /* a counter, its gaps filled by the integral of power */
    WM_METER_INTEGRAL = 3,  /* the integral of power */
    WM_METER_MIXED = 4,     /* a sum of figures with several methods */
    WM_METER_MODEL = 5,     /* an estimate: no sensor measured it */
};

/* "", "counter", "filled", "integral", "mixed", "model". */
WM_API const char *wm_meter_method_name(enum wm_meter_method method);

/* The energy of a device, or of several together. */
struct wm_meter_energy {
    enum wm_reading_state state;
    double joules; /* this and the next six: only if WM_READING_OK */

    /* J: the true value lies within the uncertainty with 95 % confidence. With the same
     * confidence it lies between `low` and `high`, which may be at different distances. */
    double uncertainty;
    double low, high;

    enum wm_meter_method method;
    enum wm_origin origin; /* of a sum: the worst of its parts */
    bool is_short;         /* fewer than three new values of the sensor */
    char why[256];         /* why there is no figure; else empty */
};

struct wm_meter_reading {
    /* The time that the energy covers: from the reading of the devices at the start to the
     * reading at the stop. */
    double elapsed_s;
    struct wm_meter_energy cpu;  /* of all packages */
    struct wm_meter_energy dram; /* of all memory outside of the packages */
    struct wm_meter_energy gpu;  /* of all chosen GPUs, except those inside a CPU */
};

/* Opens all energy sensors of CPUs, memory and GPUs. Succeeds without any; the figures then
 * have the reason. WM_EINVAL: an option is wrong. WM_EEXIST: the file exists, is being
 * written by another meter, or has other columns. */
WM_API int wm_meter_open(const struct wm_meter_options *options,
                         struct wm_meter **ret_meter, struct wm_error *err);

/* Ends a wm_meter_run() and all open snippets, and frees the meter in any case. Returns the
 * number of snippets that were never stopped; their rows end here and are marked unfinished
 * (with `seed_format` they have none). WM_EIO: a file lacks rows. No other function may be
 * at work on the meter. Accepts NULL. */
WM_API int wm_meter_close(struct wm_meter *meter, struct wm_error *err);

/* A device that is measured. */
struct wm_meter_device {
    const char *label;                   /* "package0", "gpu0" */
    const char *device, *model, *source; /* as in struct wm_channel */
    enum wm_device_kind kind; /* WM_DEVICE_CPU, WM_DEVICE_DRAM or WM_DEVICE_GPU */
    enum wm_origin origin;
};

/* The devices that are read. If several sources measure the same CPUs, all are listed; the
 * total has the best one that has a figure. */
WM_API size_t wm_meter_device_count(const struct wm_meter *meter);

/* `index` is below that count. */
WM_API const struct wm_meter_device *wm_meter_device(const struct wm_meter *meter,
                                                     size_t index);

/* A note on the choice of GPUs, such as one that does not answer, or one that is not
 * included in the total; NULL if there is no note. */
WM_API const char *wm_meter_remark(const struct wm_meter *meter);

/* Starts a snippet. `name` is for the file; it may be NULL, and is cut after
 * WM_METER_NAME_MAX bytes. `ret_id` is never 0. WM_EIO: its thread cannot be started.
 * WM_EINVAL: a million snippets are open. */
WM_API int wm_meter_start(struct wm_meter *meter, const char *name, uint64_t *ret_id,
                          struct wm_error *err);

#define WM_METER_NAME_MAX 4096

/* Ends the snippet and gives its energy. `ret_devices` has room for one entry per device;
 * it and `ret_reading` may be NULL. WM_EINVAL: no such snippet, or it was stopped already.
 * WM_EIO: its row could not be written; the snippet has ended, and the figures are
 * valid. */
WM_API int wm_meter_stop(struct wm_meter *meter, uint64_t id,
                         struct wm_meter_reading *ret_reading,
                         struct wm_meter_energy *ret_devices, struct wm_error *err);

/* Starts adding a row to the CSV file at `path` every `interval_ns` (1 ms to 1 h). A row
 * has time and energy since this call, and utilization and temperature of CPUs and GPUs.
 * Rows are due at fixed moments and written at once. WM_EINVAL: another run is open. */
WM_API int wm_meter_run(struct wm_meter *meter, const char *path, int64_t interval_ns,
                        struct wm_error *err);

/* Writes the last row, completes the file and closes it. WM_EIO: it lacks rows; WM_EINVAL:
 * no run is open. */
WM_API int wm_meter_halt(struct wm_meter *meter, struct wm_error *err);

#ifdef __cplusplus
}
#endif
#endif
