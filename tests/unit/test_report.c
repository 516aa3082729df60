/* SPDX-License-Identifier: Apache-2.0 */
/* test_report.c - what made-up sessions come to: values, reasons and remarks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "session.h"

#define KNOWN(field_, number_)                                                             \
    {                                                                                      \
        .name = #field_, .slot = offsetof(struct wm_report, field_), .number = number_     \
    }
#define UNKNOWN(field_, why_)                                                              \
    {                                                                                      \
        .name = #field_, .slot = offsetof(struct wm_report, field_), .why = why_           \
    }

/* A highest value that may have been higher. */
#define AT_LEAST(field_, number_, why_)                                                    \
    {                                                                                      \
        .name = #field_, .slot = offsetof(struct wm_report, field_), .number = number_,    \
        .why = why_, .is_least = true                                                      \
    }

/* What one value of a report has to be. */
struct expected {
    const char *name;
    size_t slot;
    double number;
    const char *why; /* a part of the reason for which it is missing, or is the least that
                        it may be; NULL: it is known */
    bool is_least;
};

static const struct wm_value *value_at(const struct wm_report *report, size_t slot)
{
    return (const void *)((const char *)report + slot);
}

static void check_value(const char *session, const struct wm_report *report,
                        const struct expected *expected)
{
    const struct wm_value *value = value_at(report, expected->slot);

    if (value->known != (expected->why == NULL || expected->is_least))
        fail_msg("%s: %s is %sknown (%s)", session, expected->name,
                 value->known ? "" : "not ", value->known ? "" : value->why);
    if (value->known && (value->why != NULL) != expected->is_least)
        fail_msg("%s: %s may %sbe more (%s)", session, expected->name,
                 value->why ? "" : "not ", value->why ? value->why : "");
    if (value->known &&
        fabs(value->number - expected->number) > 1e-9 * fmax(1, fabs(expected->number)))
        fail_msg("%s: %s is %.12g, not %.12g", session, expected->name, value->number,
                 expected->number);
    if (value->why && !strstr(value->why, expected->why))
        fail_msg("%s: %s is missing because '%s'", session, expected->name, value->why);
}

static struct wm_source_status no_driver[] = {
    { .name = "tree", .available = true, .detail = NULL },
    { .name = "host", .available = true, .detail = NULL },
    { .name = "hwmon", .available = false, .detail = "no sensor" },
    { .name = "nvml", .available = false, .detail = "no NVIDIA driver" },
};
static struct wm_source_status no_gpu_anywhere[] = {
    { .name = "nvml", .available = false, .detail = "no NVIDIA driver" },
    { .name = "hwmon", .available = false, .detail = "no sensor" },
    { .name = "drm", .available = false, .detail = "no GPU in /sys" },
};
static struct wm_source_status one_driver[] = {
    { .name = "nvml", .available = false, .detail = "no NVIDIA driver" },
    { .name = "drm", .available = true, .detail = NULL },
};
static struct wm_source_status all_there[] = {
    { .name = "tree", .available = true, .detail = NULL },
    { .name = "host", .available = true, .detail = NULL },
    { .name = "hwmon", .available = true, .detail = NULL },
    { .name = "nvml", .available = true, .detail = "driver 550" },
};

#define RUN(sources_)                                                                      \
    .sources = sources_, .source_count = ARRAY_LEN(sources_), .interval_ns = SECOND_NS,    \
    .core_count = 4, .anchor_ns = SESSION_START_NS, .anchor_unix_ns = 1000 * SECOND_NS

#define SERIES(series_) .series = series_, .series_count = ARRAY_LEN(series_)

#define RESULT                                                                             \
    .end_ns = SESSION_START_NS + 4 * SECOND_NS, .cpu_total_seconds = { 0 },                \
    .cpu_main_seconds = { 0 }, .cpu_descendants_seconds = { 0 }, .peak_rss_bytes = { 0 },  \
    .peak_rss_bound_bytes = { 0 }, .ticks = 5

static const struct wm_result plain_result = { RESULT };
static const struct wm_result exact_result = {
    .end_ns = SESSION_START_NS + 4 * SECOND_NS,
    .cpu_total_seconds = { true, 6 },
    .cpu_main_seconds = { true, 2 },
    .cpu_descendants_seconds = { true, 4 },
    .cpu_method = "exactly",
    .peak_rss_bytes = { true, 500 },
    .peak_rss_is_main = true,
    .ticks = 5,
};
static const struct wm_result child_peak_result = {
    .end_ns = SESSION_START_NS + 4 * SECOND_NS,
    .cpu_total_seconds = { 0 },
    .cpu_main_seconds = { 0 },
    .cpu_descendants_seconds = { 0 },
    .peak_rss_bytes = { true, 700 },
    .ticks = 5,
};

static const struct wm_result unseen_child_result = {
    .end_ns = SESSION_START_NS + 4 * SECOND_NS,
    .cpu_total_seconds = { true, 2.001 },
    .cpu_main_seconds = { true, 2 },
    .cpu_descendants_seconds = { true, 0.001 },
    .peak_rss_bytes = { true, 90 },
    .processes_seen = 1,
    .ticks = 5,
};

static const struct wm_result zombies_result = {
    .end_ns = SESSION_START_NS + 4 * SECOND_NS,
    .cpu_total_seconds = { true, 2 },
    .cpu_main_seconds = { true, 2 },
    .cpu_descendants_seconds = { true, 0 },
    .peak_rss_bytes = { true, 90 },
    .processes_seen = 4,
    .ticks = 5,
};

static const struct series cpu_series[] = {
    { HOST("cpu_time", "s", WM_COUNTER, 10000000), { 100, 101, 104, 105, 106 } },
    { HOST("memory_used", "B", WM_GAUGE, 0), { 900, 800, 700, 800, 700 } },
    { HOST("memory_total", "B", WM_GAUGE, 0), { 4000, 4000, 4000, 4000, 4000 } },
    { TRACKER("main", "cpu_time", "s", WM_COUNTER), { 0, 1, 1, 1, 1.5 } },
    { TRACKER("descendants", "cpu_time", "s", WM_COUNTER), { 0, 0, 2.5, 2.5, 3 } },
    { TRACKER("tree", "cpu_time", "s", WM_COUNTER), { 0, 1, 3.5, 3.5, 4.5 } },
    { TREE("main", "memory_total", "B"), { 400, 100, 100, 100, 100 } },
    { TREE("descendants", "memory_total", "B"), { 0, 50, 200, 50, MISSING } },
    { TREE("tree", "memory_total", "B"), { 400, 150, 300, 150, MISSING } },
    { TREE("main", "memory_private", "B"), { 300, 50, 50, 50, 50 } },
    { TREE("tree", "memory_shared", "B"), { MISSING, MISSING, MISSING, MISSING, MISSING } },
    { TREE("main", "threads", "count"), { 1, 2, 1, 1, 1 } },
    { TREE("tree", "processes", "count"), { 1, 3, 2, 1, 1 } },
    { CPU_SENSOR("cpu_package0"), { 40, 50, 60, 50, 40 } },
    { CPU_SENSOR("cpu_package1"), { MISSING, 70, 50, MISSING, 40 } },
};
static const struct wm_gap shared_gap[] = {
    { .channel = 10, .state = WM_READING_DENIED, .why = "first reason" },
    { .channel = 10, .state = WM_READING_DENIED, .why = "no permission for pid 1" },
    { .channel = 999, .state = WM_READING_FAILED, .why = "of no channel" },
};

/* A child that lived between two samples. */
static const struct series unseen_child_series[] = {
    { TREE("main", "memory_total", "B"), { 100, 100, 100, 100, 100 } },
    { TREE("descendants", "memory_total", "B"), { 0, 0, 0, 0, 0 } },
    { TREE("descendants", "memory_private", "B"), { 0, 0, 0, 0, 0 } },
    { TREE("descendants", "memory_shared", "B"), { 0, 0, 0, 0, 0 } },
    { TREE("tree", "memory_total", "B"), { 100, 100, 100, 100, 100 } },
};

/* A command that had ended, and given back its memory, whenever a sample was taken. */
static const struct wm_result unsampled_result = {
    .end_ns = SESSION_START_NS + 4 * SECOND_NS,
    .cpu_total_seconds = { true, 0.001 },
    .cpu_main_seconds = { true, 0.001 },
    .cpu_descendants_seconds = { true, 0 },
    .peak_rss_bound_bytes = { true, 900 },
    .peak_rss_is_main = true,
    .processes_seen = 1,
    .ticks = 5,
};
static const struct series unsampled_series[] = {
    { TREE("main", "memory_total", "B"), { 0, 0, 0, 0, 0 } },
    { TREE("main", "memory_private", "B"), { 0, 0, 0, 0, 0 } },
    { TREE("tree", "memory_total", "B"), { 0, 0, 0, 0, 0 } },
};

static const struct series barely_sampled_series[] = {
    { TREE("main", "memory_total", "B"), { 0, 100, 100, 0, 0 } },
    { TREE("tree", "memory_total", "B"), { 0, 100, 100, 0, 0 } },
    { TREE("tree", "memory_total_low", "B"), { 0, 100, 100, 0, 0 } },
    { TREE("tree", "memory_total_high", "B"), { 0, 100, 100, 0, 0 } },
};

/* The tree forks again and again, and what it has is known while its main process is
 * alone, which has most before that. */
static const struct series forking_series[] = {
    { TREE("main", "memory_total", "B"), { 100, 400, 500, 450, 100 } },
    { TREE("main", "memory_private", "B"), { 80, MISSING, MISSING, 420, 80 } },
    { TREE("main", "memory_shared", "B"), { 20, 30, 30, 30, 20 } },
    { TREE("descendants", "memory_total", "B"), { 0, 350, 600, 20, 20 } },
    { TREE("tree", "memory_total", "B"), { 100, MISSING, MISSING, MISSING, 110 } },
    { TREE("tree", "memory_private", "B"), { 80, MISSING, MISSING, MISSING, 85 } },
    { TREE("tree", "memory_shared", "B"), { 20, 20, 20, MISSING, 20 } },
};
#define FORKED(channel_, from_, to_)                                                       \
    {                                                                                      \
        .channel = channel_, .from_ns = SESSION_START_NS + (from_)*SECOND_NS,              \
        .to_ns = SESSION_START_NS + (to_)*SECOND_NS, .state = WM_READING_STALE,            \
        .why = "not known since the last fork"                                             \
    }
static const struct wm_gap forking_gaps[] = {
    FORKED(1, 1, 2),
    FORKED(4, 1, 3),
    FORKED(5, 1, 3),
    FORKED(6, 3, 3),
};

#define H100(index_, metric_, unit_, kind_) GPU(index_, metric_, unit_, kind_, WM_MEASURED)
static const struct series gpu_series[] = {
    { H100("3", "energy", "J", WM_COUNTER), { 0, 100, 200, 300, 400 } },
    { H100("3", "power", "W", WM_GAUGE), { 100, 100, 100, 100, 100 } },
    { H100("3", "utilization", "ratio", WM_GAUGE), { 0, 1, 1, 1, 0 } },
    { H100("3", "memory_used", "B", WM_GAUGE), { 10, 20, 30, 20, 10 } },
    { H100("3", "memory_total", "B", WM_GAUGE), { 100, 100, 100, 100, 100 } },
    { H100("7", "energy", "J", WM_COUNTER), { 0, 50, 100, 150, 200 } },
    { H100("7", "power", "W", WM_GAUGE), { 50, 50, 50, 50, 50 } },
    { H100("7", "utilization", "ratio", WM_GAUGE), { 1, 1, MISSING, 1, 1 } },
    { H100("7", "memory_used", "B", WM_GAUGE), { 30, 20, 50, 20, 10 } },
    { H100("7", "memory_total", "B", WM_GAUGE), { 200, 200, 200, 200, 200 } },
    { TRACKER("main", "gpu_memory", "B", WM_GAUGE), { 0, 5, 9, 5, 0 } },
    { TRACKER("tree", "gpu_memory", "B", WM_GAUGE), { 0, 5, 19, 5, 0 } },
    { TREE_ON_GPU("7"), { 0, 5, 12, 5, 0 } },
};

/* One GPU cannot say how busy it is, and neither is its energy known. */
static const struct series half_series[] = {
    { H100("0", "energy", "J", WM_COUNTER), { 0, 100, 200, 300, 400 } },
    { H100("0", "utilization", "ratio", WM_GAUGE), { 0.5, 0.5, 0.5, 0.5, 0.5 } },
    { H100("0", "memory_used", "B", WM_GAUGE), { 10, MISSING, 10, MISSING, 10 } },
    { H100("1", "energy", "J", WM_COUNTER), { 7, 7, 7, 7, 7 } },
    { H100("1", "utilization", "ratio", WM_GAUGE),
      { MISSING, MISSING, MISSING, MISSING, MISSING } },
    { H100("1", "memory_used", "B", WM_GAUGE), { MISSING, 10, MISSING, 10, MISSING } },
};
static const struct wm_gap mig_gap[] = {
    { .channel = 4, .state = WM_READING_UNSUPPORTED, .why = "not supported under MIG" },
};

#define SILENT(channel_, from_s, to_s)                                                     \
    {                                                                                      \
        .channel = channel_, .from_ns = SESSION_START_NS + (from_s)*SECOND_NS,             \
        .to_ns = SESSION_START_NS + (to_s)*SECOND_NS, .state = WM_READING_STALE,           \
        .why = "the driver did not answer"                                                 \
    }
static const struct wm_gap silent_gap[] = { SILENT(0, 1, 3), SILENT(1, 1, 3) };
static const struct wm_gap jumped_gap[] = {
    { .from_ns = 2 * SECOND_NS, .to_ns = 2 * SECOND_NS, .state = WM_READING_JUMPED },
};
static const struct wm_gap often_silent_gap[] = {
    SILENT(1, 0, 1),
    SILENT(1, 2, 2),
    SILENT(1, 3, 4),
    SILENT(6, 4, 4), /* for a moment only */
    { .channel = 6, .to_ns = SECOND_NS, .state = WM_READING_FAILED, .why = "lost" },
};

static const struct {
    const char *name;
    struct session session;
    struct expected expected[32]; /* ends with a zeroed one */
} rows[] = {
    {
        "sampled CPU",
        { .run = { RUN(no_driver) },
          SERIES(cpu_series),
          .ticks = 5,
          .step_ns = SECOND_NS,
          .gaps = shared_gap,
          .gap_count = ARRAY_LEN(shared_gap),
          .result = &plain_result },
        {
            KNOWN(compute_time, 4),
            KNOWN(cpu_total, 4.5),
            KNOWN(cpu_main_time, 1.5),
            KNOWN(cpu_descendants_time, 3),
            KNOWN(cpu_combined.mean_sum, 112.5),
            KNOWN(cpu_combined.mean_hardware, 112.5 / 4),
            KNOWN(cpu_combined.max_sum, 250),
            KNOWN(cpu_main.max_sum, 100),
            KNOWN(cpu_descendants.max_hardware, 250 / 4.0),
            KNOWN(cpu_system.mean_sum, 150),
            KNOWN(cpu_system.max_sum, 300),
            KNOWN(cpu_system.max_hardware, 75),
            KNOWN(ram_capacity, 4000),
            KNOWN(ram_system, 900), /* of the first tick */
            KNOWN(ram_main.total, 400),
            KNOWN(ram_combined.total, 400),
            KNOWN(ram_descendants.total, 200),
            UNKNOWN(ram_combined.shared, "no permission for pid 1"),
            UNKNOWN(ram_combined.private_, "tree: not reported"),
            KNOWN(main_threads, 2),
            UNKNOWN(combined_threads, "tree: not reported"),
            KNOWN(max_processes, 3),
            KNOWN(cpu_temperature.max, 70),
            KNOWN(cpu_temperature.mean, 55),
        },
    },
    {
        "samples of descendants that had stolen time, which the result says was nobody's",
        { .run = { RUN(no_driver) },
          SERIES(cpu_series),
          .ticks = 5,
          .step_ns = SECOND_NS,
          .result = &zombies_result },
        {
            KNOWN(cpu_combined.mean_sum, 50),
            KNOWN(cpu_combined.max_sum, 100),
            KNOWN(cpu_combined.max_hardware, 25),
            KNOWN(cpu_main.max_sum, 100),
            KNOWN(cpu_descendants.mean_sum, 0),
            KNOWN(cpu_descendants.max_sum, 0),
            KNOWN(cpu_descendants.max_hardware, 0),
        },
    },
    {
        "exact CPU, expected cores, peak of the main process",
        { .run = { RUN(no_driver), .expected_cores = 2 },
          SERIES(cpu_series),
          .ticks = 5,
          .step_ns = SECOND_NS,
          .result = &exact_result },
        {
            KNOWN(cpu_total, 6),
            KNOWN(cpu_main_time, 2),
            KNOWN(cpu_descendants_time, 4),
            KNOWN(cpu_combined.mean_sum, 150),
            KNOWN(cpu_combined.mean_hardware, 75),
            KNOWN(cpu_combined.max_sum, 250),
            KNOWN(cpu_combined.max_hardware, 125),
            KNOWN(cpu_system.max_hardware, 75), /* of all cores, whatever is expected */
            KNOWN(ram_main.total, 500),
            KNOWN(ram_combined.total, 500),
            KNOWN(ram_descendants.total, 200),
            UNKNOWN(ram_combined.shared, "could not be read"),
        },
    },
    {
        "peak of another process, between two ticks",
        { .run = { RUN(no_driver) },
          SERIES(cpu_series),
          .ticks = 5,
          .step_ns = SECOND_NS,
          .result = &child_peak_result },
        {
            KNOWN(ram_main.total, 400),
            KNOWN(ram_combined.total, 700),
        },
    },
    {
        "a child that has used CPU time and was never seen has no memory of 0",
        { .run = { RUN(no_driver) },
          SERIES(unseen_child_series),
          .ticks = 5,
          .step_ns = SECOND_NS,
          .result = &unseen_child_result },
        {
            KNOWN(ram_main.total, 100),
            UNKNOWN(ram_descendants.total, "no descendant lived at a sample"),
            UNKNOWN(ram_descendants.private_, "no descendant lived at a sample"),
            UNKNOWN(ram_descendants.shared, "no descendant lived at a sample"),
            AT_LEAST(ram_combined.total, 100, "no descendant lived at a sample"),
        },
    },
    {
        "nor have those that were dead when they were seen",
        { .run = { RUN(no_driver) },
          SERIES(unseen_child_series),
          .ticks = 5,
          .step_ns = SECOND_NS,
          .result = &zombies_result },
        {
            KNOWN(ram_main.total, 100),
            UNKNOWN(ram_descendants.total, "no descendant lived at a sample"),
            UNKNOWN(ram_descendants.private_, "no descendant lived at a sample"),
            AT_LEAST(ram_combined.total, 100, "no descendant lived at a sample"),
        },
    },
    {
        "a command that had ended at every sample has no memory of 0",
        { .run = { RUN(no_driver) },
          SERIES(unsampled_series),
          .ticks = 5,
          .step_ns = SECOND_NS,
          .result = &unsampled_result },
        {
            KNOWN(ram_main.total, 900),
            UNKNOWN(ram_main.private_, "no sample was taken between its start and its end"),
            KNOWN(ram_combined.total, 900),
        },
    },
    {
        "what no sample saw of a small command is below the mark that it inherited",
        { .run = { RUN(no_driver) },
          SERIES(barely_sampled_series),
          .ticks = 5,
          .step_ns = SECOND_NS,
          .result = &unsampled_result },
        {
            KNOWN(ram_combined.total, 100),
            KNOWN(ram_combined.low, 100),
            KNOWN(ram_combined.high, 900),
        },
    },
    {
        "memory that is not known for most of the run",
        { .run = { RUN(no_driver) },
          SERIES(forking_series),
          .ticks = 5,
          .step_ns = SECOND_NS,
          .gaps = forking_gaps,
          .gap_count = ARRAY_LEN(forking_gaps),
          .result = &plain_result },
        {
            KNOWN(ram_main.total, 500),
            KNOWN(ram_main.private_, 420), /* half of it is not most */
            KNOWN(ram_main.shared, 30),
            KNOWN(ram_descendants.total, 600),
            AT_LEAST(ram_combined.total, 600, "not known since the last fork for 2 of 2 s"),
            AT_LEAST(ram_combined.private_, 420,
                     "not known since the last fork for 2 of 2 s"),
            KNOWN(ram_combined.shared, 30),
        },
    },
    {
        "memory of the tree that is never known",
        { .run = { RUN(no_driver) },
          .series = forking_series,
          .series_count = 4,
          .ticks = 5,
          .step_ns = SECOND_NS,
          .result = &child_peak_result },
        {
            KNOWN(ram_main.total, 500),
            AT_LEAST(ram_combined.total, 700, "tree: not reported"),
            UNKNOWN(ram_combined.private_, "tree: not reported"),
        },
    },
    {
        "no result",
        { .run = { RUN(no_driver) }, SERIES(cpu_series), .ticks = 3, .step_ns = SECOND_NS },
        {
            KNOWN(compute_time, 2),
            KNOWN(cpu_total, 3.5),
            KNOWN(cpu_combined.mean_sum, 175),
            KNOWN(ram_combined.total, 400),
        },
    },
    {
        "a single tick",
        { .run = { RUN(no_driver) }, SERIES(cpu_series), .ticks = 1, .step_ns = SECOND_NS },
        {
            KNOWN(compute_time, 0),
            UNKNOWN(cpu_combined.mean_sum, "no time passed"),
            UNKNOWN(cpu_combined.max_sum, "no time passed"),
            UNKNOWN(cpu_system.mean_sum, "three updates"),
            KNOWN(ram_combined.total, 400),
        },
    },
    {
        "too short for the CPU counters",
        { .run = { RUN(no_driver) }, SERIES(cpu_series), .ticks = 4, .step_ns = 7000000 },
        {
            KNOWN(compute_time, 0.021),
            UNKNOWN(cpu_system.mean_sum, "three updates"),
            UNKNOWN(cpu_system.max_hardware, "three updates"),
        },
    },
    {
        "no tick",
        { .run = { RUN(no_driver) }, SERIES(cpu_series), .step_ns = SECOND_NS },
        {
            UNKNOWN(compute_time, "no sample"),
            UNKNOWN(cpu_total, "never read"),
            UNKNOWN(ram_combined.total, "never read"),
            UNKNOWN(ram_system, "never read"),
        },
    },
    {
        "no driver, no sensor",
        { .run = { RUN(no_driver) }, .step_ns = SECOND_NS, .ticks = 2 },
        {
            UNKNOWN(gpu_energy.energy, "nvml: no NVIDIA driver"),
            UNKNOWN(gpu_ram_capacity, "nvml: no NVIDIA driver"),
            UNKNOWN(gpu_ram_system, "nvml: no NVIDIA driver"),
            UNKNOWN(gpu_ram_main, "nvml: no NVIDIA driver"),
            UNKNOWN(gpu_ram_descendants, "nvml: no NVIDIA driver"),
            UNKNOWN(gpu_ram_combined, "nvml: no NVIDIA driver"),
            UNKNOWN(gpu_percentages.max_sum, "nvml: no NVIDIA driver"),
            UNKNOWN(gpu_percentages.mean_hardware, "nvml: no NVIDIA driver"),
            UNKNOWN(cpu_temperature.max, "hwmon: no sensor"),
            UNKNOWN(cpu_total, "tracker: not recorded"),
            UNKNOWN(ram_main.private_, "tree: not reported"),
        },
    },
    {
        "no GPU chosen",
        { .run = { RUN(all_there), .gpu_count = 2 } },
        { UNKNOWN(gpu_energy.energy, "no GPU was chosen") },
    },
    {
        "a driver without a GPU",
        { .run = { RUN(all_there) } },
        { UNKNOWN(gpu_energy.energy, "there is no GPU") },
    },
    {
        "neither driver",
        { .run = { RUN(no_gpu_anywhere) } },
        { UNKNOWN(gpu_energy.energy, "nvml: no NVIDIA driver; drm: no GPU in /sys") },
    },
    {
        "the other driver, and no GPU chosen",
        { .run = { RUN(one_driver), .gpu_count = 1 } },
        { UNKNOWN(gpu_energy.energy, "no GPU was chosen") },
    },
    {
        "nobody asked for GPUs",
        { .run = { .interval_ns = SECOND_NS } },
        {
            UNKNOWN(gpu_energy.energy, "no source of GPU values"),
            UNKNOWN(ram_capacity, "host: not recorded"),
            UNKNOWN(cpu_system.max_hardware, "host: not recorded"),
        },
    },
    {
        "two GPUs of four",
        { .run = { RUN(all_there), .gpu_count = 4, .expected_gpu_count = 2 },
          SERIES(gpu_series),
          .ticks = 5,
          .step_ns = SECOND_NS,
          .result = &plain_result },
        {
            KNOWN(gpu_energy.energy, 600),
            KNOWN(gpu_ram_capacity, 300),
            KNOWN(gpu_ram_system, 80),
            KNOWN(gpu_ram_main, 9),
            KNOWN(gpu_ram_combined, 19),
            UNKNOWN(gpu_ram_descendants, "tracker: not recorded"),
            KNOWN(gpu_percentages.max_sum, 200),
            KNOWN(gpu_percentages.max_hardware, 100),
            KNOWN(gpu_percentages.mean_sum, 150), /* of the two seconds that are known */
            KNOWN(gpu_percentages.mean_hardware, 75),
        },
    },
    {
        "what one GPU lacks, the sum lacks, and of joules it is the rest",
        { .run = { RUN(all_there), .gpu_count = 2, .expected_gpu_count = 2 },
          SERIES(half_series),
          .ticks = 5,
          .step_ns = SECOND_NS,
          .gaps = mig_gap,
          .gap_count = 1,
          .result = &plain_result },
        {
            AT_LEAST(gpu_energy.energy, 400, "gpu1: the energy counter did not move"),
            UNKNOWN(gpu_energy.uncertainty, "the figure leaves out a part"),
            UNKNOWN(gpu_energy.split.tree, "gpu1: the energy counter did not move"),
            UNKNOWN(gpu_percentages.max_sum, "gpu1: not supported under MIG"),
            UNKNOWN(gpu_percentages.mean_hardware, "gpu1: not supported under MIG"),
            UNKNOWN(gpu_ram_system, "never known for all GPUs at once: of 5 samples gpu0 "
                                    "lacks 2, gpu1 lacks 3"),
            UNKNOWN(gpu_ram_capacity, "gpu0, gpu1: nvml: not reported"),
        },
    },
};

static void test_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct wm_report *report = session_report(&rows[i].session);
        for (size_t k = 0; rows[i].expected[k].name; k++)
            check_value(rows[i].name, report, &rows[i].expected[k]);
        wm_report_free(report);
    }
}

/* What the sensors themselves are off adds up, what is random does so in part. */
static void test_uncertainty_of_a_sum(void **state)
{
    const struct session session = {
        .run = { RUN(all_there) },
        SERIES(gpu_series),
        .ticks = 5,
        .step_ns = SECOND_NS,
        .result = &plain_result,
    };
    struct wm_report *report = session_report(&session);
    const struct wm_energy_figure *one = &report->gpus[0].figure;
    const struct wm_energy_figure *two = &report->gpus[1].figure;
    const struct wm_energy_sum *sum = &report->gpu_energy;

    (void)state;
    assert_true(one->systematic > 0 && one->random > 0);
    assert_true(fabs(one->uncertainty.number - hypot(one->systematic, one->random)) <
                1e-12);
    assert_true(fabs(600 * sum->systematic -
                     (400 * one->systematic + 200 * two->systematic)) < 1e-9);
    assert_true(fabs(600 * sum->random - hypot(400 * one->random, 200 * two->random)) <
                1e-9);
    assert_true(fabs(sum->uncertainty.number - hypot(sum->systematic, sum->random)) <
                1e-12);
    /* The total has the GPUs alone, and is no surer of them. */
    assert_true(fabs(report->energy.uncertainty.number - sum->uncertainty.number) < 1e-12);
    assert_string_equal(one->sensor,
                        "H100: 25 of each 100 ms; new every 100 ms, as stated");
    wm_report_free(report);
}

static void test_each_gpu(void **state)
{
    const struct session session = {
        .run = { RUN(all_there) },
        SERIES(gpu_series),
        .ticks = 5,
        .step_ns = SECOND_NS,
        .result = &plain_result,
    };
    struct wm_report *report = session_report(&session);

    (void)state;
    assert_int_equal(report->gpu_count, 2);
    assert_int_equal(report->gpus[0].index, 3);
    assert_int_equal(report->gpus[1].index, 7);
    assert_string_equal(report->gpus[1].uuid, "GPU-00007");
    assert_string_equal(report->gpus[1].name, "NVIDIA H100");
    assert_string_equal(report->gpus[1].figure.method, "counter");
    assert_true(report->gpus[0].figure.energy.number == 400);
    assert_true(report->gpus[1].figure.energy.number == 200);
    assert_true(report->gpus[1].figure.check.known);
    assert_true(report->gpus[1].power.mean.number == 50);
    assert_true(report->gpus[0].utilization.max.number == 1);
    assert_true(report->gpus[0].utilization.mean.number == 0.75);
    assert_true(report->gpus[0].memory.max.number == 30);
    assert_false(report->gpus[0].tree_memory_max.known);
    assert_true(report->gpus[1].tree_memory_max.number == 12);
    assert_false(report->gpus[0].temperature.mean.known);
    assert_int_equal(report->gpu_energy.origin, WM_MEASURED);
    wm_report_free(report);
}

#define NEVER                                                                              \
    {                                                                                      \
        MISSING, MISSING, MISSING, MISSING, MISSING                                        \
    }

/* A card that may not tell what all processes have of it was no less busy than the tracked
 * ones made it; without any use of theirs that says nothing. */
static void test_gpu_denied(void **state)
{
    static const struct series busy[] = {
        { H100("0", "utilization", "ratio", WM_GAUGE), NEVER },
        { H100("0", "memory_used", "B", WM_GAUGE), NEVER },
        { H100("0", "tree_utilization", "ratio", WM_GAUGE), { 0, 0.5, 0.5, 0.5, 0 } },
        { H100("0", "tree_memory_used", "B", WM_GAUGE), { 0, 0, 0, 0, 0 } },
    };
    static const struct wm_gap gaps[] = {
        { .channel = 0, .state = WM_READING_DENIED, .why = "1 process may not be read" },
        { .channel = 1, .state = WM_READING_DENIED, .why = "1 process may not be read" },
    };
    const struct session session = {
        .run = { .interval_ns = SECOND_NS },
        SERIES(busy),
        .ticks = 5,
        .step_ns = SECOND_NS,
        .gaps = gaps,
        .gap_count = ARRAY_LEN(gaps),
        .result = &plain_result,
    };
    struct wm_report *report = session_report(&session);
    const struct wm_gpu_usage *gpu = &report->gpus[0];

    (void)state;
    assert_int_equal(report->gpu_count, 1);
    assert_true(gpu->utilization.max.known && gpu->utilization.max.number == 0.5);
    assert_true(gpu->utilization.mean.number == 0.375);
    assert_string_equal(gpu->utilization.mean.why, "1 process may not be read");
    assert_false(gpu->memory.max.known);
    assert_string_equal(gpu->memory.max.why, "1 process may not be read");
    assert_false(report->gpu_percentages.max_sum.known);
    wm_report_free(report);
}

static const struct wm_result troubled_result = {
    RESULT,
    .late_ticks = 1,
    .memory_note = "read less often",
    .regions_note = "the last ones are missing",
    .dropped_regions = 2,
    .recording_trouble = "disk full",
    .lost_ticks = 3,
};
static const struct wm_result punctual_result = {
    RESULT,
    .missed_ticks = 9,
};

/* A board whose sensor looks at all of the time. */
#define FULL_TIME(metric_, unit_, kind_)                                                   \
    {                                                                                      \
        .source = "nvml", .device = "GPU-00000", .label = "gpu0",                          \
        .model = "NVIDIA GeForce RTX 3090", .metric = metric_, .unit = unit_,              \
        .device_kind = WM_DEVICE_GPU, .kind = kind_, .period_ns = 100000000, .sensor = {   \
            .kind = WM_SENSOR_BUILT_IN,                                                    \
            .window_s = 0.1,                                                               \
            .gain = 0.07,                                                                  \
            .offset = 11                                                                   \
        }                                                                                  \
    }

static const struct series stuck_series[] = {
    { FULL_TIME("energy", "J", WM_COUNTER), { 5, 5, 5, 5, 5 } },
    { FULL_TIME("power", "W", WM_GAUGE), { 100, 100, 100, 100, 100 } },
};
static const struct series stall_series[] = {
    { FULL_TIME("energy", "J", WM_COUNTER), { 5, 5, 5, 50, 150 } },
    { FULL_TIME("power", "W", WM_GAUGE), { 100, 100, 100, 100, 100 } },
};
static const struct series caught_up_series[] = {
    { FULL_TIME("energy", "J", WM_COUNTER), { 5, 5, 5, 305, 405 } },
    { FULL_TIME("power", "W", WM_GAUGE), { 100, 100, 100, 100, 100 } },
};
static const struct series ended_series[] = {
    { FULL_TIME("energy", "J", WM_COUNTER), { 5, 105, 205, 205, 205 } },
    { FULL_TIME("power", "W", WM_GAUGE), { 100, 100, 100, 100, 100 } },
};
static const struct series reset_series[] = {
    { FULL_TIME("energy", "J", WM_COUNTER), { 500, 600, 50, 150, 250 } },
    { FULL_TIME("power", "W", WM_GAUGE), { 100, 100, 100, 100, 100 } },
};
static const struct series blind_reset_series[] = {
    { FULL_TIME("energy", "J", WM_COUNTER), { 500, 600, 50, 150, 250 } },
};
static const struct series twice_reset_series[] = {
    { FULL_TIME("energy", "J", WM_COUNTER), { 500, 600, NAN, 50, 20 } },
    { FULL_TIME("power", "W", WM_GAUGE), { 100, 100, 100, 100, 100 } },
};
static const struct series jump_series[] = {
    { FULL_TIME("energy", "J", WM_COUNTER), { 0, 100, 1e9, 1e9 + 100, 1e9 + 200 } },
    { FULL_TIME("power", "W", WM_GAUGE), { 100, 100, 100, 100, 100 } },
};
static const struct series reset_and_jump_series[] = {
    { FULL_TIME("energy", "J", WM_COUNTER), { 500, 600, 50, 1e9, 1e9 + 100 } },
    { FULL_TIME("power", "W", WM_GAUGE), { 100, 100, 100, 100, 100 } },
};
static const struct series gap_series[] = {
    { FULL_TIME("energy", "J", WM_COUNTER), { 0, 100, 200, 300, 400 } },
    { FULL_TIME("power", "W", WM_GAUGE), { 120, 120, 120, 120, 120 } },
};
static const struct series hole_series[] = {
    { FULL_TIME("power", "W", WM_GAUGE), { 100, 100, MISSING, 100, 100 } },
};
static const struct series late_series[] = {
    { FULL_TIME("energy", "J", WM_COUNTER), { MISSING, 100, 200, 300, 400 } },
    { FULL_TIME("power", "W", WM_GAUGE), { 100, 100, 100, 100, 100 } },
};
static const struct series half_busy_series[] = {
    { H100("0", "energy", "J", WM_COUNTER), { 0, 100, 200, 300, 400 } },
    { H100("0", "power", "W", WM_GAUGE), { 100, 100, 100, 100, 100 } },
    { H100("0", "utilization", "ratio", WM_GAUGE), { 0.5, 0.5, 0.4, 0.6, 0.5 } },
};

/* Every remark that is due, and no other. */
static void test_remarks(void **state)
{
    static const struct {
        const char *name;
        struct session session;
        const char *remarks[7];
    } cases[] = {
        { "all is well",
          { .run = { RUN(all_there) },
            SERIES(caught_up_series),
            .ticks = 5,
            .step_ns = SECOND_NS,
            .result = &punctual_result },
          { NULL } },
        { "for a while nobody knows how busy it is",
          { .run = { RUN(all_there) },
            SERIES(gpu_series),
            .ticks = 5,
            .step_ns = SECOND_NS,
            .result = &punctual_result },
          { "gpu7: its sensor measures a part of the time only" } },
        { "killed",
          { .run = { RUN(no_driver) }, .ticks = 2, .step_ns = SECOND_NS },
          { "the recording ends without a result: it is still being written, or wattmeter "
            "was killed; figures reach to its last sample" } },
        { "troubles",
          { .run = { RUN(no_driver) },
            .ticks = 5,
            .step_ns = SECOND_NS,
            .result = &troubled_result },
          { "recording: disk full", "the recording lacks 3 of 5 samples",
            "regions: the last ones are missing", "memory: read less often",
            "late samples: 1 of 5; the machine was busy, or 1000 ms between samples is too "
            "short",
            "regions: 2 events (begins, ends) are missing" } },
        { "stuck",
          { .run = { RUN(all_there) },
            SERIES(stuck_series),
            .ticks = 5,
            .step_ns = SECOND_NS,
            .result = &plain_result },
          { "gpu0: the energy counter stood still while power was drawn; the integral of "
            "power "
            "is used" } },
        { "stuck in a short run",
          { .run = { RUN(all_there) },
            SERIES(stuck_series),
            .ticks = 3,
            .step_ns = 100000000,
            .result = &plain_result },
          { "gpu0: the run is shorter than three updates of the power sensor" } },
        { "stuck until the end",
          { .run = { RUN(all_there) },
            SERIES(ended_series),
            .ticks = 5,
            .step_ns = SECOND_NS,
            .result = &plain_result },
          { "gpu0: the energy counter stood still until the end while power was drawn; the "
            "integral of power is used from there on" } },
        { "a stall",
          { .run = { RUN(all_there) },
            SERIES(stall_series),
            .ticks = 5,
            .step_ns = SECOND_NS,
            .result = &plain_result },
          { "gpu0: the energy counter stood still while power was drawn and did not make "
            "up "
            "for it (1 time); the integral of power is used there" } },
        { "a stall that was made up for",
          { .run = { RUN(all_there) },
            SERIES(caught_up_series),
            .ticks = 5,
            .step_ns = SECOND_NS,
            .result = &plain_result },
          { NULL } },
        { "a short run",
          { .run = { RUN(all_there) },
            SERIES(gap_series),
            .ticks = 3,
            .step_ns = 100000000,
            .result = &plain_result },
          { "gpu0: the run is shorter than three updates of the power sensor (one in 100 "
            "ms)" } },
        { "set back",
          { .run = { RUN(all_there) },
            SERIES(reset_series),
            .ticks = 5,
            .step_ns = SECOND_NS,
            .result = &plain_result },
          { "gpu0: the energy counter was set back (1 time); the integral of power is "
            "used" } },
        { "set back without power",
          { .run = { RUN(all_there) },
            SERIES(blind_reset_series),
            .ticks = 5,
            .step_ns = SECOND_NS,
            .result = &plain_result },
          { "gpu0: the energy counter was set back (1 time); that is left out, and the "
            "figure "
            "is a lower bound",
            "gpu0: energy does not cover 1 s of 4 s" } },
        { "a jump that its source saw, and set back",
          { .run = { RUN(all_there) },
            SERIES(twice_reset_series),
            .ticks = 5,
            .step_ns = SECOND_NS,
            .gaps = jumped_gap,
            .gap_count = ARRAY_LEN(jumped_gap),
            .result = &plain_result },
          { "gpu0: the energy counter was set back (1 time); the integral of power is "
            "used there",
            "gpu0: the energy counter jumped by more than the device can draw (1 time); "
            "the integral of power is used there" } },
        { "a jump",
          { .run = { RUN(all_there) },
            SERIES(jump_series),
            .ticks = 5,
            .step_ns = SECOND_NS,
            .result = &plain_result },
          { "gpu0: the energy counter jumped by more than the device can draw (1 time); "
            "the "
            "integral of power is used there" } },
        { "set back, and a jump",
          { .run = { RUN(all_there) },
            SERIES(reset_and_jump_series),
            .ticks = 5,
            .step_ns = SECOND_NS,
            .result = &plain_result },
          { "gpu0: the energy counter was set back (1 time); the integral of power is "
            "used there",
            "gpu0: the energy counter jumped by more than the device can draw (1 time); "
            "the integral of power is used there" } },
        { "a gap of 20 %",
          { .run = { RUN(all_there) },
            SERIES(gap_series),
            .ticks = 5,
            .step_ns = SECOND_NS,
            .result = &plain_result },
          { "gpu0: energy counter (400 J) and integral of power (480 J) differ by 20 %" } },
        { "a hole",
          { .run = { RUN(all_there) },
            SERIES(hole_series),
            .ticks = 5,
            .step_ns = SECOND_NS,
            .result = &plain_result },
          { "gpu0: energy does not cover 2 s of 4 s" } },
        { "a driver that hung",
          { .run = { RUN(all_there) },
            SERIES(gpu_series),
            .ticks = 5,
            .step_ns = SECOND_NS,
            .gaps = silent_gap,
            .gap_count = ARRAY_LEN(silent_gap),
            .result = &punctual_result },
          { "gpu3: the driver did not answer, for 2 of 4 s",
            "gpu7: its sensor measures" } },
        { "a driver that hung several times",
          { .run = { RUN(all_there) },
            SERIES(gpu_series),
            .ticks = 5,
            .step_ns = SECOND_NS,
            .gaps = often_silent_gap,
            .gap_count = ARRAY_LEN(often_silent_gap),
            .result = &punctual_result },
          { "gpu3: the driver did not answer, for 2 of 4 s",
            "gpu7: its sensor measures" } },
        { "a late counter",
          { .run = { RUN(all_there) },
            SERIES(late_series),
            .ticks = 5,
            .step_ns = SECOND_NS,
            .result = &plain_result },
          { "gpu0: for 1 s without the energy counter the integral of power is used" } },
        { "half busy before a sensor that looks at a quarter of the time",
          { .run = { RUN(all_there) },
            SERIES(half_busy_series),
            .ticks = 5,
            .step_ns = SECOND_NS,
            .result = &plain_result },
          { "gpu0: its sensor measures a part of the time only" } },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_report *report = session_report(&cases[i].session);
        size_t expected = 0;
        while (cases[i].remarks[expected])
            expected++;
        for (size_t k = 0; k < report->remark_count || k < expected; k++) {
            const char *found = wm_report_text(report, WM_REPORT_NOTES, k, NULL);
            found = found ? found : "nothing";
            if (k >= expected || !strstr(found, cases[i].remarks[k]))
                fail_msg("%s: '%s'", cases[i].name, found);
        }
        wm_report_free(report);
    }
}

/* Where counter and power differ, either may be right: the uncertainty reaches from one to
 * the other. */
static void test_uncertainty_of_a_gap(void **state)
{
    const struct session session = {
        .run = { RUN(all_there) },
        SERIES(gap_series),
        .ticks = 5,
        .step_ns = SECOND_NS,
        .result = &plain_result,
    };
    struct wm_report *report = session_report(&session);
    const struct wm_energy_figure *figure = &report->gpus[0].figure;

    (void)state;
    print_message("  %g J, %.3f\n", figure->energy.number, figure->systematic);
    assert_true(figure->energy.number == 400);
    assert_true(figure->uncertainty.known && figure->uncertainty.number >= 0.2);
    wm_report_free(report);
}

/* The memory of the tree: of all of it, of its main process, and on three GPUs. */
#define ON_TREE(label_) TRACKER(label_, "gpu_memory", "B", WM_GAUGE)
#define ON_CARD                                                                            \
    {                                                                                      \
        .source = "tracker", .device = "0000:03:00.0", .label = "card1",                   \
        .metric = "tree_memory_used", .unit = "B", .device_kind = WM_DEVICE_GPU            \
    }

/* What is said of the memory of the tree where some GPU does not tell it. */
static void test_gpu_that_does_not_tell(void **state)
{
    static const struct {
        const char *name;
        struct series series[5];
        size_t count, gap; /* the channel with the reason */
        struct expected expected[5];
        const char *remark;
    } cases[] = {
        { "one never does",
          { { ON_TREE("tree"), NEVER },
            { ON_TREE("main"), NEVER },
            { TREE_ON_GPU("0"), { 0, 5, 5, 5, 0 } },
            { TREE_ON_GPU("1"), NEVER } },
          4,
          3,
          { UNKNOWN(gpu_ram_combined, "gpu1: will not tell"),
            UNKNOWN(gpu_ram_main, "gpu1: will not tell"),
            UNKNOWN(gpu_ram_descendants, "tracker: not recorded") },
          NULL },
        { "another vendor's never does",
          { { ON_TREE("tree"), NEVER },
            { TREE_ON_GPU("0"), { 0, 5, 5, 5, 0 } },
            { ON_CARD, NEVER } },
          3,
          2,
          { UNKNOWN(gpu_ram_combined, "card1: will not tell") },
          NULL },
        { "each for its own reason",
          { { ON_TREE("tree"), NEVER }, { TREE_ON_GPU("0"), NEVER }, { ON_CARD, NEVER } },
          3,
          2,
          { UNKNOWN(gpu_ram_combined, "gpu0: could not be read; card1: will not tell") },
          NULL },
        { "never all at once",
          { { ON_TREE("tree"), NEVER },
            { TREE_ON_GPU("0"), { 0, MISSING, 5, MISSING, MISSING } },
            { TREE_ON_GPU("1"), { MISSING, 5, MISSING, 5, 5 } } },
          3,
          0,
          { UNKNOWN(gpu_ram_combined, "never known for all GPUs at once: of 5 samples "
                                      "gpu0 lacks 3, gpu1 lacks 2") },
          NULL },
        { "nothing was found, and one did not tell at times",
          { { ON_TREE("tree"), { 0, MISSING, MISSING, 0, 0 } },
            { ON_TREE("main"), { 0, MISSING, MISSING, 0, 0 } },
            { TREE_ON_GPU("0"), { 0, 0, 0, 0, 0 } },
            { TREE_ON_GPU("1"), { 0, MISSING, MISSING, 0, 0 } } },
          4,
          0,
          { UNKNOWN(gpu_ram_combined,
                    "none was found, but of 5 samples gpu1 lacks 2: will not tell"),
            UNKNOWN(gpu_ram_main, "none was found, but of 5 samples gpu1 lacks 2") },
          NULL },
        { "some was found, and one did not tell at times",
          { { ON_TREE("tree"), { 0, MISSING, 7, 0, 0 } },
            { ON_TREE("main"), { 0, MISSING, 0, 0, 0 } },
            { TREE_ON_GPU("0"), { 0, 0, 7, 0, 0 } },
            { TREE_ON_GPU("1"), { 0, MISSING, 0, 0, 0 } } },
          4,
          0,
          { KNOWN(gpu_ram_combined, 7),
            UNKNOWN(gpu_ram_main, "none was found, but of 5 samples gpu1 lacks 1") },
          "GPU memory: may have been more than is shown, as of 5 samples gpu1 lacks 1: "
          "will not tell" },
        { "nothing was found, and all was told",
          { { ON_TREE("tree"), { 0, 0, 0, 0, 0 } }, { TREE_ON_GPU("0"), { 0 } } },
          2,
          0,
          { KNOWN(gpu_ram_combined, 0) },
          NULL },
        { "a recording without a channel for each GPU",
          { { ON_TREE("tree"), { 0, MISSING, 0, 0, 0 } },
            { ON_TREE("main"), NEVER },
            { H100("0", "power", "W", WM_GAUGE), { 1, 1, 1, 1, 1 } } },
          3,
          1,
          { UNKNOWN(gpu_ram_combined, "none was found, but it was not known in 1 of 5"),
            UNKNOWN(gpu_ram_main, "will not tell") },
          NULL },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct wm_gap gap = { .channel = cases[i].gap,
                                    .state = WM_READING_DENIED,
                                    .why = "will not tell" };
        const struct session session = {
            .run = { .interval_ns = SECOND_NS },
            .series = cases[i].series,
            .series_count = cases[i].count,
            .ticks = 5,
            .step_ns = SECOND_NS,
            .gaps = &gap,
            .gap_count = 1,
            .result = &plain_result,
        };
        struct wm_report *report = session_report(&session);
        size_t found = 0;

        for (size_t k = 0; cases[i].expected[k].name; k++)
            check_value(cases[i].name, report, &cases[i].expected[k]);
        for (size_t k = 0; k < report->remark_count; k++) {
            found += strncmp(report->remarks[k], "GPU memory: ", 12) == 0;
            if (cases[i].remark && strcmp(report->remarks[k], cases[i].remark) == 0)
                found += 100;
        }
        if (found != (cases[i].remark ? 101 : 0))
            fail_msg("%s: %zu", cases[i].name, found);
        wm_report_free(report);
    }
}

/* A long list of names ends in a number. */
static void test_many_gpus_that_do_not_tell(void **state)
{
    static const struct series series[] = {
        { H100("0", "power", "W", WM_GAUGE), { 0 } },
        { H100("1", "power", "W", WM_GAUGE), { 0 } },
        { H100("2", "power", "W", WM_GAUGE), { 0 } },
        { H100("3", "power", "W", WM_GAUGE), { 0 } },
        { H100("4", "power", "W", WM_GAUGE), { 0 } },
        { H100("5", "power", "W", WM_GAUGE), { 0 } },
        { H100("6", "power", "W", WM_GAUGE), { 0 } },
        { H100("7", "power", "W", WM_GAUGE), { 0 } },
        { H100("8", "power", "W", WM_GAUGE), { 0 } },
        { H100("9", "power", "W", WM_GAUGE), { 0 } },
    };
    const struct session session = {
        .run = { RUN(all_there) },
        SERIES(series),
        .ticks = 2,
        .step_ns = SECOND_NS,
    };
    struct wm_report *report = session_report(&session);

    (void)state;
    assert_string_equal(report->gpu_ram_capacity.why,
                        "gpu0, gpu1, gpu2, gpu3, gpu4, gpu5, gpu6, gpu7 and 2 more: "
                        "nvml: not reported here");
    wm_report_free(report);
}

static void test_methods_and_start(void **state)
{
    struct session session = {
        .run = { RUN(no_driver) },
        SERIES(cpu_series),
        .ticks = 3,
        .step_ns = SECOND_NS,
    };
    struct wm_report *report = session_report(&session);

    (void)state;
    assert_string_equal(report->cpu_method, "sampled until the recording ends");
    assert_false(report->complete);
    assert_int_equal(report->result.ticks, 3);
    assert_false(report->result.exit_status.known);
    assert_true(report->start_unix_ns == 1000 * SECOND_NS);
    wm_report_free(report);

    session.result = &exact_result;
    session.run.anchor_ns -= 5;
    report = session_report(&session);
    assert_string_equal(report->cpu_method, "exactly");
    assert_true(report->complete);
    assert_true(report->start_unix_ns == 1000 * SECOND_NS + 5);
    wm_report_free(report);
}

/* The last tick comes when the command ends, maybe right after the one before: its rate is
 * that of a moment, and no maximum. Nor is that of the moment after a reading whose time
 * was taken too late. */
static void test_short_window(void **state)
{
    static const struct {
        int64_t tick_ms[4], read_ms[4];
        double cpu_seconds[4];
        double most;
    } cases[] = {
        { { 0, 1000, 2000, 2001 }, { 0, 1000, 2000, 2001 }, { 0, 1, 1.5, 1.509 }, 100 },
        { { 0, 1000, 2000, 3000 }, { 0, 1000, 2970, 3000 }, { 0, 0.4, 0.8, 1.2 }, 40 },
    };
    const struct wm_channel channel = TRACKER("tree", "cpu_time", "s", WM_COUNTER);
    const struct wm_run run = { .interval_ns = SECOND_NS, .core_count = 8 };

    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(cases); k++) {
        struct wm_analysis *analysis;
        struct wm_report *report;

        assert_int_equal(wm_analysis_new(&run, &channel, 1, &analysis, NULL), WM_OK);
        test_fail_allocation(0); /* a tick allocates nothing */
        for (size_t i = 0; i < ARRAY_LEN(cases[k].tick_ms); i++) {
            struct wm_reading reading = { cases[k].read_ms[i] * 1000000,
                                          cases[k].cpu_seconds[i], WM_READING_OK };
            struct wm_tick tick = { cases[k].tick_ms[i] * 1000000, &reading, 1 };
            wm_analysis_tick(analysis, &tick);
        }
        assert_int_equal(test_fail_allocation(-1), 0);
        assert_int_equal(wm_analysis_report(analysis, NULL, &report, NULL), WM_OK);
        assert_true(fabs(report->cpu_combined.max_sum.number - cases[k].most) < 1e-9);
        wm_report_free(report);
        wm_analysis_free(analysis);
    }
}

/* Nothing in a report points into what it was made from. */
static void test_copies(void **state)
{
    char *words[] = { strdup("make"), strdup("all") };
    struct session session = {
        .run = { .version = strdup("0.1.0"),
                 .host = strdup("node7"),
                 .command = words,
                 .command_count = 2,
                 .interval_ns = SECOND_NS },
    };
    struct wm_report *report = session_report(&session);

    (void)state;
    free(session.run.version);
    free(session.run.host);
    free(words[0]);
    free(words[1]);
    assert_string_equal(report->run.version, "0.1.0");
    assert_string_equal(report->run.host, "node7");
    assert_int_equal(report->run.command_count, 2);
    assert_string_equal(report->run.command[1], "all");
    wm_report_free(report);
    wm_report_free(NULL);
    wm_analysis_free(NULL);
}

static const struct session *session_named(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i].session;
    }
    fail_msg("no session is called '%s'", name);
    return NULL;
}

static void test_out_of_memory(void **state)
{
    static const char *const names[] = {
        "two GPUs of four", "neither driver",
        "what one GPU lacks, the sum lacks, and of joules it is the rest"
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const struct session *session = session_named(names[i]);
        struct wm_report *report;
        struct wm_error err;
        int status;

        for (long nth = 0;; nth++) {
            test_fail_allocation(nth);
            status = session_try_report(session, &report, &err);
            test_fail_allocation(-1);
            if (status == WM_OK)
                break;
            assert_int_equal(status, WM_ENOMEM);
            assert_true(err.text[0] != '\0');
        }
        wm_report_free(report);
    }
}

UNIT(report)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_each_gpu),
        cmocka_unit_test(test_gpu_denied),
        cmocka_unit_test(test_uncertainty_of_a_sum),
        cmocka_unit_test(test_uncertainty_of_a_gap),
        cmocka_unit_test(test_remarks),
        cmocka_unit_test(test_gpu_that_does_not_tell),
        cmocka_unit_test(test_many_gpus_that_do_not_tell),
        cmocka_unit_test(test_methods_and_start),
        cmocka_unit_test(test_short_window),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_out_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
