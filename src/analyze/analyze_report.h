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

#include "analyze/region/analyze_blocks.h"
#include "record/record_timepoint.h"
#include "record/run/record_run.h"
#include "wattmeter/report.h"

/* A number that may be missing, with the reason. The text belongs to the report
 * or is a constant. */
struct wm_value {
    double number; /* meaningful when known */
    bool known;
    const char *why; /* why it is not known; of a highest value that is known also why it */
                     /* may have been higher; else NULL */
};

struct wm_value wm_value_known(double number);

/* A part of a whole that was had by taking away the others: what rounding left of it is
 * nothing, and so is the negative zero. */
struct wm_value wm_value_part(double number, double whole);

/* `why` lives as long as the value: it belongs to the report or is a constant. */
struct wm_value wm_value_missing(const char *why);

/* A part that is unknown leaves the sum unknown, for the same reason. */
void wm_value_add(struct wm_value *sum, const struct wm_value *part);

/* A highest value is no lower than that of a part, where both are known. */
void wm_value_raise(struct wm_value *whole, const struct wm_value *part);

struct wm_rss {
    struct wm_value total, private_, shared; /* bytes; maxima, each its own */
    struct wm_value low, high; /* the total lies between them; not of the main process */
};

struct wm_percentages {
    struct wm_value max_sum, max_hardware, mean_sum, mean_hardware; /* percent */
};

struct wm_spread {
    struct wm_value mean, max; /* mean: weighted by time */
};

/* One device's energy. */
struct wm_energy_figure {
    struct wm_value energy;      /* J */
    double covered_s;            /* the time that it covers */
    double period_s;             /* of its sensor; 0: not known */
    char method[64];             /* "counter", "integral of power", ... */
    struct wm_value uncertainty; /* ratio: the truth lies within it with 95 % confidence */
    double systematic, random;   /* what it is made of, where it is known: the sensor's */
                                 /* own error, and all that is another in each run: */
    double below, above;         /* how much less the truth may be by that, or more */
    struct wm_value low, high;   /* J: between which the truth lies with that confidence */
    char sensor[128];            /* what is known of it: "H100: 25 of each 100 ms; ..." */
    struct wm_value check;       /* relative gap between counter and integral */
};

/* Whose the energy was; the parts add up to it. */
struct wm_energy_split {
    struct wm_value tree; /* J of the tracked processes */
    struct wm_value idle; /* J of nobody: what the device takes with nothing to do */
    struct wm_value rest; /* J of all others */
    struct wm_value tree_uncertainty; /* ratio, as of a figure */
    double tree_off; /* J: what of it is of the division, and not of the energy */
    /* J, and squares of J: what the energy of the devices adds to that. */
    double tree_systematic, tree_random;
};

/* What is no GPU: a CPU package or a part of one, memory, the platform. */
struct wm_device_energy {
    char *name; /* "package0" */
    char *model;
    char *source;
    enum wm_device_kind kind;
    enum wm_sensor_kind sensor;
    enum wm_contains contains;
    bool heads; /* the energy of all together is its, in place of the sum over the parts */
    enum wm_origin origin;
    struct wm_energy_figure figure;
    struct wm_energy_split split; /* of packages, memory and what contains no GPU */
    struct wm_value idle_power;   /* W in the baseline that it was divided by */
    struct wm_value power;        /* W on average */
};

/* The kinds of device that an energy is the sum of, and what of it all is the machine's
 * idling and what the work's. */
enum wm_cost_part {
    WM_COST_CPU,
    WM_COST_DRAM,
    WM_COST_GPUS,
    WM_COST_IDLE,
    WM_COST_DYNAMIC,
    WM_COST_COUNT,
    WM_COST_DEVICES = WM_COST_IDLE, /* the kinds before this one are of devices */
};

/* Those kinds of device that an energy is of; or the meter that contains them all. */
struct wm_cover {
    bool has[WM_COST_DEVICES]; /* beside a meter: those that are known apart */
    enum wm_contains meter; /* WM_CONTAINS_DEVICE: the energy is a sum over the devices */
    char name[64];          /* the meter's */
};

/* A sum over devices. */
struct wm_energy_sum {
    struct wm_value energy;
    double watts; /* on average while it was known */
    bool is_part; /* it lacks a device, and so do the watts */
    struct wm_value uncertainty;
    double systematic, random, below, above; /* as of a figure, and so are */
    struct wm_value low, high;
    struct wm_energy_split split;
    enum wm_origin origin; /* measured: all of it was */
};

/* A figure of a metric that is recorded on demand. Its texts are the report's. */
struct wm_gpu_figure {
    const char *key;    /* "fan", "max_fan" */
    const char *path;   /* in JSON: "channels.fan.mean" */
    const char *metric; /* "fan" */
    const char *part;   /* "mean" and "max" of a gauge, "total" of a counter */
    const char *unit;
    struct wm_value value;
};

struct wm_gpu_usage {
    bool has_index;
    int index; /* NVML's, not CUDA's */
    char *uuid;
    char *name;
    char *label; /* "gpu0", "card1" */
    enum wm_origin origin;
    struct wm_energy_figure figure;
    struct wm_energy_split split;
    struct wm_value idle_power;   /* W in the baseline that it was divided by */
    struct wm_spread power;       /* W */
    struct wm_spread utilization; /* ratio */
    struct wm_spread memory;      /* B */
    struct wm_value memory_capacity;
    struct wm_value tree_memory_max; /* B used by the tracked tree */
    struct wm_spread temperature;    /* celsius */
    struct wm_gpu_figure *more;      /* those of a metric stand together */
    size_t more_count, more_room;
};

/* What was used in the time of a region, and how far it may be off. */
struct wm_region_value {
    struct wm_value value;
    struct wm_value uncertainty; /* ratio: the truth lies within it with 95 % confidence */
};

struct wm_region_spending {
    struct wm_value time;            /* s */
    struct wm_region_value cpu_time; /* s, of the tracked processes */
    struct wm_region_value energy;   /* J, of what wm_report.energy is */
    struct wm_region_value cpu_energy, dram_energy, gpu_energy; /* J of its parts */
    struct wm_region_value tree_energy; /* J of the tracked processes */
};

#define WM_NO_REGION ((size_t)-1)

/* All calls of one name, or of one place in the tree of calls; for gpu_tracker a block of
 * code. Files that were read tell of some of it: what they lack is 0 or missing. */
struct wm_region_usage {
    char *name;
    uint64_t calls, nonempty_calls; /* calls that ended; calls with a timepoint inside */
    uint64_t unfinished, timepoints;
    uint64_t clocked_calls;       /* whose CPU time is by their thread's own clock */
    struct wm_block_figures time; /* s */
    uint64_t histogram[WM_BLOCK_BUCKETS];
    struct wm_block_figures usage[WM_MEASUREMENT_COUNT];

    size_t parent;   /* of a place: index of the one around it, or WM_NO_REGION */
    size_t children; /* of a place: how many are right inside */
    uint32_t depth;  /* of a place: how many are around it */
    bool is_free;    /* of calls that were started by themselves */
    bool is_short;   /* the source of its energy */
    struct wm_region_spending inclusive; /* of all that went on meanwhile */
    struct wm_region_spending exclusive; /* its share, inner regions not counted */
};

/* Accepts NULL. */
void wm_region_usages_free(struct wm_region_usage *usages, size_t count);

/* Puts them in the order of their names. */
void wm_region_usages_sort(struct wm_region_usage *usages, size_t count);

struct wm_region_report {
    struct wm_region_usage *names; /* in the order in which they were first seen */
    size_t name_count;
    struct wm_region_usage *paths; /* as first seen; parents before their children */
    size_t path_count;
    struct wm_region_spending rest; /* of no region */
    size_t threads, processes;
};

/* The run as gpu_tracker's analysis has it, beside its regions: their memory, too, is in
 * the units of `machine`. */
struct wm_usage_report {
    struct wm_static_data machine;
    enum wm_origin gpu_origin; /* measured: all GPUs were; so it is in gpu_tracker's */
    bool lacks_counts;         /* gpu_tracker's JSON does not have the next two: 0 */
    uint64_t timepoints;
    uint64_t stray;                                        /* stops without a start */
    struct wm_block_figures overall[WM_MEASUREMENT_COUNT]; /* of all timepoints */
};

struct wm_report {
    struct wm_run run; /* the report's own copies */
    struct wm_result result;
    bool complete; /* false: the recording has no result */

    struct wm_value compute_time; /* s */
    int64_t start_unix_ns;        /* of the first tick */
    size_t segments;              /* of the run: ticks without a reading are pauses */
    struct wm_value active_time;  /* s, without them */

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
    struct wm_energy_sum gpu_energy; /* all chosen GPUs */

    struct wm_device_energy *devices; /* packages first, then their parts, memory, ... */
    size_t device_count;
    struct wm_energy_sum cpu_energy;  /* packages */
    struct wm_energy_sum dram_energy; /* memory outside of the packages */
    struct wm_energy_sum energy; /* packages, memory and GPUs, whichever are known; or a */
                                 /* meter of all of them */
    struct wm_cover cover;       /* the devices that `energy` covers */
    struct wm_spread power;      /* W, of the same; the most */
    double power_max_s;          /* over that time at least; 0: over all of it */
    struct wm_region_report regions;
    struct wm_usage_report usage; /* of a report that wm_report_from_files() made */
    bool is_foreign; /* of gpu_tracker's files: the usage is all that is known, and the
                      * calls, times and usage of regions */
    struct wm_value *process_energies; /* J of the CPUs, of each of result.processes */

    char **remarks; /* what a reader has to know: short windows, gaps, losses */
    size_t remark_count;
    size_t file_remarks; /* the first of them that is on a file, as are those after it */
    char **facts;        /* how figures were obtained, where that is unusual */
    size_t fact_count;
    const char **energy_notes; /* those of the remarks and facts that are of energy */
    size_t energy_note_count;

    char **texts; /* texts that the `why` of the values point to */
    size_t text_count;
};

/* Whether a measurement is of GPUs, and none was measured: gpu_tracker's layouts have 0
 * then, which stands in the figures, and ours nothing. */
bool wm_report_lacks(const struct wm_report *report, size_t measurement);
extern const char wm_report_no_gpu[];

/* Where the values of a measurement come from. */
enum wm_origin wm_report_usage_origin(const struct wm_report *report, size_t measurement);

/* Reads gpu_tracker's JSON of an analysis, in which NaN may stand. WM_EFORMAT says what is
 * missing; `name` is what it calls the file. */
int wm_report_parse(const char *text, size_t length, const char *name,
                    struct wm_report **ret_report, struct wm_error *err);

/* Whether the file begins with a brace, a byte order mark and blanks aside. */
bool wm_report_is_json(const char *path);

/* What a process used of the CPUs' energy that has used so much CPU time: of what the tree
 * used, in proportion. */
struct wm_value wm_report_energy_of(const struct wm_report *report,
                                    const struct wm_known *cpu_s);

#endif
