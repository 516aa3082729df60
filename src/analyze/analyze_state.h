/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_state.h - what an analysis keeps between ticks; for src/analyze alone. */
#ifndef WM_ANALYZE_STATE_H
#define WM_ANALYZE_STATE_H

#include "analyze/energy/analyze_energy.h"
#include "analyze/region/analyze_regions.h"
#include "base/text/base_number.h"
#include "record/record.h"
#include "record/record_stats.h"
#include "record/record_timepoint.h"

/*
 * Whose joules they were: one device's energy, divided among the
 * tracked tree, everybody else, and nobody (the device's idling).
 *
 *     struct wm_share share = { .shortest_s = 0.05 };
 *     wm_share_add(&share, joules_so_far, &work);     each tick
 *     wm_share_end(&share, joules);
 *
 * A device's energy moves in steps that are slower than ticks, and so do the
 * counters of work. A step is divided by the work since the step before, and where that
 * takes the busy time, no window is shorter than `shortest_s`: with a measured idle, and
 * for what is idle and of others. However the joules are corrected later, the parts add up
 * to them at every tick.
 */

/* What was done on the device since the last tick. */
struct wm_work {
    double seconds;
    bool is_known;   /* the three that follow are */
    double capacity; /* what it could have done: cores times seconds */
    double busy;     /* what it did, in the unit of `capacity` */
    double tree;     /* what the tracked tree did of `busy` */

    /* The tree's part of what it keeps awake (memory), 0 to 1. Where idling was measured,
     * it was with nothing kept awake. */
    struct wm_known tree_hold;
};

struct wm_share {
    double shortest_s;
    struct wm_known idle_watts; /* of the device with nothing to do, if it was measured */
    double idle_off;            /* W that they may be off by */
    double busy_step;           /* steps in which work->busy is counted; 0: exact */

    double joules_now;       /* at the last tick */
    double joules;           /* what of them is divided by now */
    double tree, idle, rest; /* they add up to `joules` */

    /* Since joules were divided. Only the time in which work was known counts
     * for the shares of work, and `hold` is weighted by time. */
    double seconds, known_s, capacity, busy, tree_work, hold_s, hold;
    /* The tree's part of the steps since then, up to the last; and the work since that. */
    double tree_steps, step_joules, step_capacity, step_tree;
    double unknown_joules; /* divided without knowing the work: all in `rest` */

    /* By how many joules the tree's part changes with a step of `busy`: where joules were
     * divided last, and the most; and the squares of its changes. */
    double slope, most_slope, slopes2;
};

/* `joules`: of the device since the start, as far as they are known by now. */
void wm_share_add(struct wm_share *share, double joules, const struct wm_work *work);

/* Divides what is left, up to the final `joules`. */
void wm_share_end(struct wm_share *share, double joules);

/* The error of the tree's part, with 95 % confidence, as `busy` is counted in steps. */
double wm_share_off(const struct wm_share *share);

/* In place of a channel's index: there is no such channel. */
#define WM_NO_CHANNEL ((size_t)-1)

/* The times in which a channel was stale. */
struct wm_silence {
    double seconds;
    char why[sizeof(((struct wm_gap *)NULL)->why)]; /* of the first */
};

struct wm_channel_stats {
    struct wm_gauge_stats gauge;     /* of a gauge */
    struct wm_counter_stats counter; /* of a counter */
    enum wm_reading_state state;     /* of the last reading */
    bool is_cpu_temperature;
    char why[sizeof(((struct wm_gap *)NULL)->why)]; /* of its last gap; may be empty */
    struct wm_silence silence;
    double unknown_s; /* the time of all gaps */
    uint64_t jumps;   /* gaps of a counter that jumped */
};

/* One device that energy or power is known of, or a GPU. */
struct wm_device_stats {
    const struct wm_channel *channel; /* any of its, one of its own source's if it can be */
    size_t energy, power;             /* channels, or WM_NO_CHANNEL */
    struct wm_energy joules;
    struct wm_share share;   /* of a package, of memory or of a GPU */
    bool counts;             /* towards the sum over CPUs, memory and GPUs */
    bool heads;              /* the energy of all together is of it */
    enum wm_contains within; /* what contains all that is known of it; of a GPU */
    bool is_busy_before;     /* it had something to do in the baseline, which is not used */
};

/* A GPU, and its other channels. One within a package does not count, as its power is in
 * that of the processor. */
struct wm_gpu_stats {
    struct wm_device_stats device;
    size_t utilization, memory_used, memory_total, temperature;
    size_t tree_memory, tree_utilization;
};

/* A counter of work, read from tick to tick. */
struct wm_work_counter {
    size_t channel;
    struct wm_stride stride; /* whether it was known at the last tick */
};

/* What the CPUs did, as far as it can be told from one tick to the next. */
struct wm_cpu_work {
    struct wm_work_counter host, tree;
    size_t memory_used, tree_memory; /* gauges */

    struct wm_known ratio;          /* how busy they were of late */
    double busy, capacity, seconds; /* since `ratio` was found */
};

/* The parts of the CPU's use whose peak rate is taken. */
enum wm_cpu_part {
    WM_CPU_PART_SYSTEM,
    WM_CPU_PART_MAIN,
    WM_CPU_PART_DESCENDANTS,
    WM_CPU_PART_COMBINED,
    WM_CPU_PART_COUNT,
};

struct wm_analysis {
    const struct wm_run *run;
    const struct wm_channel *channels;
    size_t count;
    struct wm_channel_stats *stats; /* one for each channel */

    struct wm_gpu_stats *gpus;
    size_t gpu_count;
    struct wm_gauge_stats gpu_utilization_sum, gpu_memory_sum; /* over all GPUs */

    struct wm_device_stats *devices;
    size_t device_count;
    struct wm_cpu_work cpu_work;

    struct wm_gauge_stats cpu_temperature; /* of the hottest sensor */

    struct wm_timepoint_builder *timepoints;
    struct wm_timepoint point; /* of the last tick, where that gave one */
    bool has_point;
    struct wm_known ram_capacity, gpu_ram_capacity;  /* at the first tick */
    struct wm_window_max cpu_max[WM_CPU_PART_COUNT]; /* percent of one core */
    int64_t host_read_ns, tree_read_ns;              /* when CPU time was read last */
    struct wm_window_max power_max;                  /* W of all that counts */
    struct wm_stride whole; /* the joules of all that counts, when all are known */

    struct wm_regions *regions; /* NULL: none are taken in */
    unsigned energies_told;     /* WM_REGION_BIT() of those that have been known */

    uint64_t ticks;
    int64_t first_ns, last_ns;
    size_t segments; /* stretches of ticks, each with something new */
    bool in_segment; /* the last tick is in such a stretch */
    double active_s; /* the time of all stretches */
};

/* The channel with this metric on the device that `source` labels so;
 * WM_NO_CHANNEL if there is none. */
size_t wm_analysis_find(const struct wm_analysis *analysis, const char *source,
                        const char *label, const char *metric);

/* The reading of a channel; NULL of WM_NO_CHANNEL. And its value, where it is there. */
const struct wm_reading *wm_tick_reading(const struct wm_tick *tick, size_t channel);
struct wm_known wm_tick_value(const struct wm_tick *tick, size_t channel);

/* Of all of them: first those that are no GPUs, then the GPUs. */
size_t wm_device_count(const struct wm_analysis *analysis);
const struct wm_device_stats *wm_device_at(const struct wm_analysis *analysis,
                                           size_t index);

#endif
