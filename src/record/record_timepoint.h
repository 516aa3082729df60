/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_timepoint.h - gpu_tracker's view of a tick: the 21 measurements of its
 * tracking files, computed over the window that ends with that tick.
 *
 * Rates need two ticks, so the first tick gives no timepoint. A counter that
 * moves in steps (channel period_ns) is looked at over windows of at least
 * three periods; in between its last rate stands.
 */
#ifndef WM_RECORD_TIMEPOINT_H
#define WM_RECORD_TIMEPOINT_H

#include <stdbool.h>

#include "base/base_error.h"
#include "base/text/base_number.h"
#include "wattmeter/recording.h"

enum wm_measurement {
    WM_MAIN_RAM,
    WM_DESCENDANTS_RAM,
    WM_COMBINED_RAM,
    WM_SYSTEM_RAM,
    WM_MAIN_GPU_RAM,
    WM_DESCENDANTS_GPU_RAM,
    WM_COMBINED_GPU_RAM,
    WM_SYSTEM_GPU_RAM,
    WM_GPU_SUM_UTILIZATION,
    WM_GPU_HARDWARE_UTILIZATION,
    WM_MAIN_THREADS,
    WM_DESCENDANTS_THREADS,
    WM_COMBINED_THREADS,
    WM_CPU_SYSTEM_SUM,
    WM_CPU_SYSTEM_HARDWARE,
    WM_CPU_MAIN_SUM,
    WM_CPU_MAIN_HARDWARE,
    WM_CPU_DESCENDANTS_SUM,
    WM_CPU_DESCENDANTS_HARDWARE,
    WM_CPU_COMBINED_SUM,
    WM_CPU_COMBINED_HARDWARE,
    WM_MEASUREMENT_COUNT,
};

/* gpu_tracker's columns of a timepoint: the measurements, then "timestamp". */
enum { WM_TIMESTAMP = WM_MEASUREMENT_COUNT, WM_TIMEPOINT_COLUMNS };
extern const char *const wm_timepoint_columns[WM_TIMEPOINT_COLUMNS];

/* gpu_tracker's column name: "main_ram", "cpu_system_sum_utilization_percent". */
const char *wm_measurement_name(enum wm_measurement measurement);

bool wm_measurement_is_gpu(enum wm_measurement measurement);

/* Memory in bytes, utilisation in percent, threads as counts.
 * Where it is known that there is no GPU, the GPU values are 0, which is true and
 * what gpu_tracker writes. */
struct wm_timepoint {
    int64_t when_ns;
    uint32_t known; /* a bit for each of `values`, which is 0 where it is not known */
    double values[WM_MEASUREMENT_COUNT];
};

#define WM_ALL_MEASUREMENTS ((UINT32_C(1) << WM_MEASUREMENT_COUNT) - 1)

static inline struct wm_known wm_timepoint_value(const struct wm_timepoint *timepoint,
                                                 size_t measurement)
{
    return (struct wm_known) { timepoint->known >> measurement & 1,
                               timepoint->values[measurement] };
}

struct wm_timepoint_builder;

struct wm_run;

int wm_timepoint_builder_new(const struct wm_run *run, const struct wm_channel *channels,
                             size_t count, struct wm_timepoint_builder **ret_builder,
                             struct wm_error *err);

/* Accepts NULL. */
void wm_timepoint_builder_free(struct wm_timepoint_builder *builder);

/* Takes the next tick; true and `ret_timepoint` from the second one on. */
bool wm_timepoint_next(struct wm_timepoint_builder *builder, const struct wm_tick *tick,
                       struct wm_timepoint *ret_timepoint);

/* gpu_tracker's time stamp of a tick: seconds since 1970, UTC. */
double wm_timepoint_unix_seconds(const struct wm_run *run, int64_t when_ns);

/* Brings `to` where `from` is, so that ticks whose writing failed can be taken
 * again. Both were made with the same arguments. */
void wm_timepoint_builder_copy(struct wm_timepoint_builder *to,
                               const struct wm_timepoint_builder *from);

/* The memory of the machine and of the chosen GPUs together, in bytes, as this
 * tick tells it. */
void wm_timepoint_capacities(const struct wm_timepoint_builder *builder,
                             const struct wm_tick *tick, struct wm_known *ret_ram,
                             struct wm_known *ret_gpu_ram);

/* What gpu_tracker keeps of the machine. A number that is not known is 0. */
struct wm_static_data {
    char ram_unit[16], gpu_ram_unit[16], time_unit[16]; /* "gigabytes", "hours" */
    struct wm_known ram_capacity, gpu_ram_capacity;
    struct wm_known system_cores, expected_cores, gpus, expected_gpus; /* whole ones */
};

/* That of a run of ours, but for the capacities. */
struct wm_static_data wm_static_data_of(const struct wm_run *run);

/* Its columns in gpu_tracker's order. */
enum wm_static_kind {
    WM_STATIC_MEMORY_UNIT,
    WM_STATIC_TIME_UNIT,
    WM_STATIC_CAPACITY,
    WM_STATIC_COUNT,
};

struct wm_static_column {
    const char *name;
    enum wm_static_kind kind;
    size_t offset; /* in struct wm_static_data */
};

enum { WM_STATIC_COLUMNS = 9 };
extern const struct wm_static_column wm_static_columns[WM_STATIC_COLUMNS];

/* The value of a column. */
struct wm_static_entry {
    const char *key;
    const char *text; /* NULL: it is a number */
    struct wm_known number;
    bool is_whole;
};

/* "gigabytes", "count", "percent". */
const char *wm_measurement_unit(const struct wm_static_data *data, size_t measurement);

struct wm_static_entry wm_static_data_entry(const struct wm_static_data *data,
                                            size_t index);

/* In place of 1, wm_recording_next() says so once at most, of gpu_tracker's files: the file
 * is not in the order of time, which comes of a clock that was set back; what was handed
 * out so far is void, and from the next call on ticks come anew, from the first one,
 * sorted. */
#define WM_TIMEPOINTS_ANEW 2

#endif
