/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_estimate_model.h - how much a CPU draws, by how busy it is, where nothing
 * measures it; and the joules that this makes.
 *
 *     struct wm_cpu_model model;
 *     struct wm_cpu_estimate estimate;
 *     if (wm_cpu_model_choose(&inputs, &model, &err) == WM_OK) {
 *         wm_cpu_estimate_start(&estimate, &model, now_ns, busy_s);
 *         wm_cpu_estimate_add(&estimate, later_ns, busier_s, cpus, &joules, &err);
 *     }
 */
#ifndef WM_SOURCE_ESTIMATE_MODEL_H
#define WM_SOURCE_ESTIMATE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base_error.h"
#include "source/source_kernel_text.h"

/* Where a model says what is drawn: 0, 10, 50 and 100 % busy. In between it is a
 * straight line. */
enum { WM_CPU_LOADS = 4 };

struct wm_cpu_model {
    double watts[WM_CPU_LOADS]; /* of all CPUs together; never falls */
    size_t cpu_count;
    bool has_memory; /* counts the memory too, as it is of whole servers */
    char text[160];  /* what it is and where it comes from, for people */
};

/* What a model is chosen by. */
struct wm_cpu_model_inputs {
    const char *cpu_watts; /* "IDLE:MAX"; NULL where nobody said so */
    const char *sysfs;
    struct wm_cpuinfo cpuinfo;
    size_t cpu_count; /* online CPUs, as /proc/stat counts them; not 0 */
};

/* The first that there is: what was given, the packages' own power limits, Cloud
 * Carbon Footprint's coefficients. WM_EINVAL where what was given is wrong. */
int wm_cpu_model_choose(const struct wm_cpu_model_inputs *inputs,
                        struct wm_cpu_model *ret_model, struct wm_error *err);

/* Of all CPUs, while the part `load` of their time is busy: 0 to 1. */
double wm_cpu_model_watts(const struct wm_cpu_model *model, double load);

/* Watts of one thread of a CPU without and with work. */
struct wm_cpu_coefficients {
    const char *name; /* "EPYC 4th Gen" */
    double idle_watts, max_watts;
};

/* Cloud Carbon Footprint's, for that CPU or else for the average one: never NULL. */
const struct wm_cpu_coefficients *wm_cpu_coefficients(const struct wm_cpuinfo *cpuinfo);

/* An integral over time. With a curve the result depends on the window in which load is
 * taken, so that is at least half a second: the joules of the window that has begun are
 * reported with the load that it has had so far. */
struct wm_cpu_estimate {
    const struct wm_cpu_model *model; /* borrowed */
    int64_t window_ns;                /* begin of the window */
    double window_busy_s;             /* busy time until then, as far as it has been used */
    double window_joules;
    double joules;
    int64_t seen_ns;    /* when the busy time was last read */
    double seen_joules; /* the joules at that time */
    double start_j;     /* what they began with, as in struct wm_rapl_total */
    bool is_lost;       /* the last step: the total must begin again */
};

void wm_cpu_estimate_start(struct wm_cpu_estimate *estimate,
                           const struct wm_cpu_model *model, int64_t when_ns,
                           double busy_s);

/* Joules since the start, which is at a microjoule. `busy_s` is a total of all CPUs, of
 * which `cpu_count` are online. Where it has gone back, or has come further than time
 * has, the estimate says so (WM_EIO) and begins again with the next value that is good,
 * a trifle lower than ever before: what was lost must not pass for nothing. */
int wm_cpu_estimate_add(struct wm_cpu_estimate *estimate, int64_t when_ns, double busy_s,
                        size_t cpu_count, double *ret_joules, struct wm_error *err);

/* The same for a moment right after it, at which the busy time is not read: what is
 * drawn without work is certain, and the rest comes with the next reading. */
double wm_cpu_estimate_rest(struct wm_cpu_estimate *estimate, int64_t when_ns);

#endif
