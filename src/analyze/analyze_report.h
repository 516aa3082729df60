/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_report.h - what a report holds, in SI base units. Views turn it into
 * text and JSON; nothing is computed after this point but units and rounding.
 */
#ifndef WM_ANALYZE_REPORT_H
#define WM_ANALYZE_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/record_run.h"
#include "wattmeter/report.h"

/* A number that may be missing, with the reason. The text belongs to the report
 * or is a constant. */
struct wm_value {
    double number; /* meaningful when known */
    bool known;
    const char *why; /* why it is not known; NULL when it is */
};

struct wm_rss {
    struct wm_value total, private_, shared; /* bytes; maxima, each its own */
};

struct wm_percentages {
    struct wm_value max_sum, max_hardware, mean_sum, mean_hardware; /* percent */
};

struct wm_spread {
    struct wm_value mean, max; /* mean: weighted by time */
};

struct wm_gpu_usage {
    int index; /* NVML's, not CUDA's */
    char *uuid;
    char *name;
    enum wm_origin origin;
    struct wm_value energy;       /* J */
    char energy_method[64];       /* "counter", "integral of power", ... */
    struct wm_value energy_check; /* relative gap between counter and integral */
    struct wm_spread power;       /* W */
    struct wm_spread utilization; /* ratio */
    struct wm_spread memory;      /* B */
    struct wm_value memory_capacity;
    struct wm_value tree_memory_max; /* B used by the tracked tree */
    struct wm_spread temperature;    /* celsius */
};

struct wm_report {
    struct wm_run run; /* the report's own copies */
    struct wm_result result;
    bool complete; /* false: the recording has no result */

    struct wm_value compute_time; /* s */
    int64_t start_unix_ns;        /* of the first tick */

    struct wm_value ram_capacity, ram_system;
    struct wm_rss ram_main, ram_descendants, ram_combined;

    struct wm_value gpu_ram_capacity, gpu_ram_system;
    struct wm_value gpu_ram_main, gpu_ram_descendants, gpu_ram_combined;

    struct wm_percentages cpu_system, cpu_main, cpu_descendants, cpu_combined;
    struct wm_value main_threads, descendants_threads, combined_threads;
    struct wm_value max_processes; /* most at one tick */

    struct wm_percentages gpu_percentages;

    struct wm_value cpu_total, cpu_main_time, cpu_descendants_time; /* s */
    char cpu_method[160];

    struct wm_spread cpu_temperature; /* celsius */

    struct wm_gpu_usage *gpus;
    size_t gpu_count;
    struct wm_value gpu_energy; /* J, all chosen GPUs */
    enum wm_origin gpu_energy_origin;

    char **remarks; /* what a reader has to know: short windows, gaps, losses */
    size_t remark_count;

    char **texts; /* what the `why` of the values point to */
    size_t text_count;
};

#endif
