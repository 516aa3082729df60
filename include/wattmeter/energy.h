/* SPDX-License-Identifier: Apache-2.0 */
/*
 * energy.h - what a piece of a program costs: the joules of CPUs, memory and GPUs
 * between two of its lines, and a table of them while it runs.
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
 * What is measured is the whole machine between start and stop, whoever used it; GPU
 * work that is queued and not done by then is not in it, so wait for the GPU before
 * the stop. docs/measure-a-snippet.md says what the figures rest on, what a call
 * costs, and what is in the files.
 *
 * Snippets may be nested, overlap, and begin in one thread and end in another, any
 * number at a time. All functions but wm_meter_open() and wm_meter_close() may be
 * called by many threads at once: one of them reads the devices, the others wait for
 * it, tens of microseconds as a rule, and 0.1 s at most for a GPU driver that hangs.
 * None may be called in a signal handler.
 *
 * A device that has no counter of energy, one that has not been seen to move yet, or
 * one whose sensor looks at a part of the time only (A100, H100) is read every 0.1 s
 * while a snippet runs, and counters that run over every 20 s. A thread of the meter's
 * does that, with all signals blocked; it begins with the first snippet.
 *
 * After a fork() a meter belongs to the parent. In the child its functions return
 * WM_EINVAL, and wm_meter_close() does nothing; the child opens one of its own.
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

/* All zero is right for nearly everybody. Texts are copied. */
struct wm_meter_options {
    /* Which GPUs of all vendors, as wm_gpu_select() in gpu.h has it. NULL: all. */
    const char *gpus;

    /* What nothing measures of CPUs is estimated, and their memory with them, and
     * labelled so. */
    bool estimate;
    const char *cpu_watts; /* "IDLE:MAX" of all CPUs for that; implies `estimate` */

    /* Reads all devices so often while a snippet runs, 1 ms to 1 h, whether they
     * need it or not: counter and power are then checked against each other. 0: as
     * often as they need. */
    int64_t interval_ns;

    /* A CSV file that gets a row at each wm_meter_stop(). NULL: none. */
    const char *snippets;
    enum wm_record_mode mode; /* of that file and of those of wm_meter_run() */

    /* The files have the columns of the tool of the thesis, without a header, in
     * seconds, kWh, percent, degrees Celsius and watts. */
    bool seed_format;
};

/* What a figure rests on. */
enum wm_meter_method {
    WM_METER_NO_METHOD, /* there is no figure */
    WM_METER_COUNTER,   /* a counter of energy */
    WM_METER_FILLED,    /* a counter, and the integral of power where that has gaps */
    WM_METER_INTEGRAL,  /* the integral of power */
    WM_METER_MIXED,     /* a sum of figures with several methods */
    WM_METER_MODEL,     /* an estimate: nothing measured it */
};

/* "", "counter", "filled", "integral", "mixed", "model". */
WM_API const char *wm_meter_method_name(enum wm_meter_method method);

/* The energy of a device, or of several together. */
struct wm_meter_energy {
    enum wm_reading_state state;
    double joules; /* this and the next six: in WM_READING_OK alone */

    /* J: the truth lies within the uncertainty with 95 % confidence, and with the same
     * confidence between `low` and `high`, which need not be equally far from the joules.
     */
    double uncertainty;
    double low, high;

    enum wm_meter_method method;
    enum wm_origin origin; /* of a sum: the worst of its parts' */
    bool is_short;         /* fewer than three new values of the sensor */
    char why[256];         /* why there is no figure; empty where there is */
};

struct wm_meter_reading {
    /* From the reading of the devices at the start to that at the stop, which is
     * the time that the energy is of. */
    double elapsed_s;
    struct wm_meter_energy cpu;  /* of all packages */
    struct wm_meter_energy dram; /* of all memory, which no package includes */
    struct wm_meter_energy gpu;  /* of all chosen GPUs, but for those in a CPU */
};

/* Opens everything that knows the energy of CPUs, memory and GPUs. A machine where
 * nothing does is no failure: the figures say why. WM_EINVAL: an option is wrong;
 * WM_EEXIST: the file is there already, is being written by another meter, or has
 * other columns than it would get. */
WM_API int wm_meter_open(const struct wm_meter_options *options,
                         struct wm_meter **ret_meter, struct wm_error *err);

/* Ends a wm_meter_run() and all that is left open. Returns how many snippets were
 * never stopped: their rows, up to now, are marked unfinished (with `seed_format`
 * they have none). WM_EIO: a file lacks rows. In each case the meter is gone. No
 * other function may be at work on it. Accepts NULL. */
WM_API int wm_meter_close(struct wm_meter *meter, struct wm_error *err);

/* A device with figures of its own. */
struct wm_meter_device {
    const char *label;                   /* "package0", "gpu0" */
    const char *device, *model, *source; /* as in struct wm_channel */
    enum wm_device_kind kind; /* WM_DEVICE_CPU, WM_DEVICE_DRAM or WM_DEVICE_GPU */
    enum wm_origin origin;
};

/* The devices that are read. Where several sources know the same CPUs all are here,
 * and the best that has a figure is in the sum. */
WM_API size_t wm_meter_device_count(const struct wm_meter *meter);

/* `index` is below that count. */
WM_API const struct wm_meter_device *wm_meter_device(const struct wm_meter *meter,
                                                     size_t index);

/* What a person should know of the choice of GPUs, such as one that does not answer
 * and is not measured, or is left out of the sum; NULL where there is nothing. */
WM_API const char *wm_meter_remark(const struct wm_meter *meter);

/* Starts a snippet. `name` is for the file; it may be NULL, and of a long one the
 * first WM_METER_NAME_MAX bytes count. `ret_id` is never 0. WM_EIO where the thread
 * that it needs cannot be made; WM_EINVAL where a million are open already. */
WM_API int wm_meter_start(struct wm_meter *meter, const char *name, uint64_t *ret_id,
                          struct wm_error *err);

#define WM_METER_NAME_MAX 4096

/* Ends the snippet and gives what it used; `ret_devices`, which may be NULL as
 * `ret_reading` may, has room for one entry per device. WM_EINVAL: there is no such
 * snippet, or it has been stopped. WM_EIO: its row could not be written; the snippet is
 * over, and the figures are there. */
WM_API int wm_meter_stop(struct wm_meter *meter, uint64_t id,
                         struct wm_meter_reading *ret_reading,
                         struct wm_meter_energy *ret_devices, struct wm_error *err);

/* From now on adds a row to the CSV file at `path` every `interval_ns` (1 ms to 1 h):
 * time and energy since now, and how busy and how hot CPUs and GPUs are. Rows are
 * due at fixed moments and written as they come. One run at a time: else
 * WM_EINVAL. */
WM_API int wm_meter_run(struct wm_meter *meter, const char *path, int64_t interval_ns,
                        struct wm_error *err);

/* Writes the last row; on return the file is complete and closed. WM_EIO: it lacks
 * rows; WM_EINVAL: nothing runs. */
WM_API int wm_meter_halt(struct wm_meter *meter, struct wm_error *err);

#ifdef __cplusplus
}
#endif
#endif
