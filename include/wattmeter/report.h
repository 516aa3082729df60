/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - computes the cost of a session from a tracker or a recording, with the same
 * code for both.
 *
 *     struct wm_report *report;
 *     struct wm_report_figure energy;
 *     if (wm_report_from_recording(rec, &report, &err) < 0)
 *         return fail(&err);
 *     if (wm_report_figure(report, NULL, "energy", &energy) == WM_OK &&
 *         energy.state == WM_REPORT_KNOWN)
 *         printf("%.1f %s\n", energy.value, energy.unit);
 *     for (size_t i = 0; i < wm_report_count(report, WM_REPORT_GPU); i++) {
 *         const struct wm_report_part gpu = { .kind = WM_REPORT_GPU, .index = i };
 *         if (wm_report_figure(report, &gpu, "energy", &energy) == WM_OK &&
 *             energy.state == WM_REPORT_MISSING)
 *             printf("GPU %zu: n/a (%s)\n", i, energy.why);
 *     }
 *     wm_report_print(report, WM_FORMAT_JSON, NULL, stdout, &err);
 *     wm_report_free(report);
 *
 * A report has parts: the run, its regions, its GPUs and other devices. A part has facts,
 * in one struct for each kind, and figures, which have keys. All strings belong to the
 * report and live as long as it does. The rules of source.h hold here too.
 */
#ifndef WATTMETER_REPORT_H
#define WATTMETER_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "wattmeter/api.h"
#include "wattmeter/error.h"
#include "wattmeter/format.h"
#include "wattmeter/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wm_report;

/* How a report is printed. Zero-initialize it for the defaults. A unit is one of
 * gpu_tracker's words: bytes, kilobytes, megabytes, gigabytes, terabytes (powers of 1000);
 * seconds, minutes, hours, days. NULL is bytes and seconds in JSON, the most readable unit
 * in text, and gigabytes and hours in gpu_tracker's layouts.
 *
 * With a price or the grams of CO2e per kilowatt-hour, the report has the cost of its
 * energy in money or in CO2e. 0: not given.
 *
 * Text has the main figures, in the digits that the uncertainty allows. A verbosity of 1
 * adds all other figures and how they were obtained; 2 adds the reason for each missing
 * one. JSON is always complete. */
struct wm_report_style {
    size_t size; /* sizeof this struct */
    const char *ram_unit;
    const char *gpu_ram_unit;
    const char *time_unit;
    double price_per_kwh;    /* up to 1000000 */
    const char *currency;    /* currency of the price, "EUR"; up to 15 bytes; NULL: none */
    double carbon_g_per_kwh; /* up to 100000 */
    double pue;              /* power usage effectiveness of the data centre, 1 to 100; cost
                              * and CO2e are multiplied by it; 0: 1 */
    int verbosity;
    bool for_terminal; /* text with colours and bars */
    bool blocks_only;  /* the blocks of code and their statistics (analysis.h) */
};

/* Computes a report from `recording`, which stands at the start of its run, and reads it to
 * the end. */
WM_API int wm_report_from_recording(struct wm_recording *recording,
                                    struct wm_report **ret_report, struct wm_error *err);

/* Accepts NULL. */
WM_API void wm_report_free(struct wm_report *report);

/* Checks that every unit in `style` is a known one and every number is within its range.
 * The error lists the known units. */
WM_API int wm_report_style_check(const struct wm_report_style *style, struct wm_error *err);

/* Prints text, JSON (docs/report.md describes the structure; of blocks docs/analysis.md) or
 * one of gpu_tracker's layouts. `style` may be NULL. Returns WM_EIO if `out` did not take
 * all of it. */
WM_API int wm_report_print(const struct wm_report *report, enum wm_format format,
                           const struct wm_report_style *style, FILE *out,
                           struct wm_error *err);

/* Lists the runs of the recording at `path`, in any format: a line for each, or with
 * WM_FORMAT_JSON an object. It shows figures that need no reading of every sample; the time
 * of a run without a result is the exception. The energy is in the report of each run. A
 * run that cannot be read has a line with the reason. */
WM_API int wm_report_print_list(const char *path, enum wm_format format, FILE *out,
                                struct wm_error *err);

/* Prints a table of runs as CSV: of each recording the run of that number, WM_LAST_RUN or
 * WM_ALL_RUNS. `count` is 1 at least. A line identifies the run and has its figures by
 * their keys, in SI base units; unknown values are empty. The first line has the names. */
WM_API int wm_report_print_csv(const char *const *paths, size_t count, size_t run,
                               FILE *out, struct wm_error *err);

/* Adds one row to the file at `path`, in the format of CodeCarbon's emissions.csv: energy
 * in kWh, CO2e in kg, both multiplied by the `pue` of `style`, which may be NULL. Unknown
 * values are empty; docs/cost.md has the columns. `mode` says what to do if the file
 * exists: leave it alone (WM_EEXIST), replace it, or append the row. WM_EINVAL: its columns
 * are not CodeCarbon's. */
WM_API int wm_report_write_codecarbon(const struct wm_report *report, const char *path,
                                      enum wm_record_mode mode,
                                      const struct wm_report_style *style,
                                      struct wm_error *err);

/* The kinds of parts of a report. */
enum wm_report_kind {
    WM_REPORT_RUN = 0, /* the whole run: the only one of its kind */
    /* All calls of one name, in the order in which names were first seen. */
    WM_REPORT_REGION = 1,
    WM_REPORT_PATH = 2, /* the calls of one name in one place of the tree of calls; a place
                         * comes before those inside it */
    WM_REPORT_REST = 3, /* the remainder outside of regions: one, if there are regions */
    WM_REPORT_GPU = 4,
    WM_REPORT_DEVICE = 5, /* other devices: a CPU package or a part of one, memory, ... */
};

/* The two ways to count a region's figures; docs/report.md explains them. */
enum wm_report_share {
    WM_REPORT_INCLUSIVE = 0, /* everything while a call was open */
    /* Its share of that, without the regions inside; shares add up. */
    WM_REPORT_EXCLUSIVE = 1,
};

/* The part of a figure. Zero-initialize it for the run. */
struct wm_report_part {
    enum wm_report_kind kind;
    size_t index;               /* below wm_report_count() */
    enum wm_report_share share; /* of a region or a path */
};

/* The number of parts of a kind. */
WM_API size_t wm_report_count(const struct wm_report *report, enum wm_report_kind kind);

/* Finds the first region or path of that name, GPU of that UUID or label ("gpu0"), or
 * device of that name. WM_ENOENT: no such part. */
WM_API int wm_report_find(const struct wm_report *report, enum wm_report_kind kind,
                          const char *name, size_t *ret_index);

enum wm_report_state {
    WM_REPORT_MISSING = 0, /* unknown; `why` has the reason */
    WM_REPORT_KNOWN = 1,
    WM_REPORT_AT_LEAST = 2, /* a peak that may have been higher; `why` has the reason */
};

/* A figure, in SI base units or percent. */
struct wm_report_figure {
    const char *key;  /* "energy", "max_ram.main.total_rss" */
    const char *path; /* in the JSON report, within its part; NULL: not in it */
    const char *unit; /* "s", "J", "W", "B", "percent", "ratio", "celsius", "count" */
    enum wm_report_state state;
    double value; /* unless it is missing; then 0 */
    bool has_range;
    double low, high; /* limits of the true value, with 95 % confidence */
    enum wm_origin origin;
    const char *why; /* NULL: no reason */
};

/* Gives a figure by its key, or by its path in the JSON report of the run: "energy" and
 * "energy.total" are the same. `part` NULL is the run. WM_ENOENT: the part does not exist
 * or has no such figure. */
WM_API int wm_report_figure(const struct wm_report *report,
                            const struct wm_report_part *part, const char *key,
                            struct wm_report_figure *ret_figure);

/* Gives the figures of a part one by one, from 0; WM_ENOENT past the last, and if the part
 * does not exist. */
WM_API int wm_report_figure_at(const struct wm_report *report,
                               const struct wm_report_part *part, size_t index,
                               struct wm_report_figure *ret_figure);

/* Writes a figure for people to `text`, in the digits that its range allows: "2.54 kJ ± 2.5
 * %", "about 3 mJ (0 J to 8 mJ) (estimated)", "n/a (no permission)". The text is cut to
 * `size`. Returns the size of the whole text, with the NUL. Only unit, state, value, range,
 * origin and `why` matter. */
WM_API size_t wm_report_figure_text(const struct wm_report_figure *figure, char *text,
                                    size_t size);

enum wm_report_end {
    WM_REPORT_END_UNKNOWN = 0, /* not observed, or the recording ends before it */
    WM_REPORT_EXITED = 1,
    WM_REPORT_KILLED = 2, /* by a signal */
};

/* Facts about the run. A string is NULL if it is unknown. */
struct wm_report_run {
    const char *id;      /* random UUID */
    const char *mode;    /* "run", "attach", "self" */
    const char *version; /* of wattmeter */
    const char *host, *cpu_model, *kernel, *boot_id;
    const char *cpu_method; /* how the CPU time was obtained */
    const char *trouble;    /* the error of its recording */
    int64_t start_unix_ns;  /* of the first tick */
    int64_t interval_ns;    /* between two ticks */
    bool is_complete;       /* false: the recording has no result; its writer was killed */
    enum wm_report_end end;
    int exit_status, signal_number; /* if it exited or was killed; else 0 */

    /* Unpaired calls of regions: stops without a start, and starts without a stop. */
    uint64_t stray_stops, unfinished_starts;
};

WM_API void wm_report_run(const struct wm_report *report, struct wm_report_run *ret_run);

/* The lists of texts of a report. */
enum wm_report_list {
    WM_REPORT_WORDS = 0,          /* words of the command line */
    WM_REPORT_TAGS = 1,           /* tags and their values */
    WM_REPORT_VARIABLES = 2,      /* variables of the environment and their values */
    WM_REPORT_NOTES = 3,          /* notes on the figures */
    WM_REPORT_OTHER_NOTES = 4,    /* those notes, except on energy */
    WM_REPORT_FILE_NOTES = 5,     /* notes on the files, such as a last line that was cut */
    WM_REPORT_SOURCES = 6,        /* available sources, and what they read, or NULL */
    WM_REPORT_ABSENT_SOURCES = 7, /* sources that were not available, and why, or NULL */
};

/* Gives a text of a list and its value, from 0; NULL past the last. `ret_value` may be
 * NULL. */
WM_API const char *wm_report_text(const struct wm_report *report, enum wm_report_list list,
                                  size_t index, const char **ret_value);

#define WM_REPORT_NO_PARENT ((size_t)-1)

/* A region, or a path in the tree of calls. */
struct wm_report_region {
    const char *name;
    size_t parent;   /* of a path: the one around it, or WM_REPORT_NO_PARENT */
    size_t depth;    /* of a path: how many are around it */
    size_t children; /* of a path: how many are right inside */
    bool by_itself;  /* its calls were started, not begun */
    bool is_short;   /* its energy is a rough figure: calls are shorter than its steps */
    uint64_t calls;  /* calls that ended */
    uint64_t unfinished;
    uint64_t timepoints;            /* ticks inside */
    uint64_t calls_with_timepoints; /* one at least */
    double total_s;                 /* of the calls that ended */
    double min_s, max_s, mean_s;    /* 0 where `calls` is 0 */
    double std_s;                   /* n - 1; 0 where `calls` is below 2 */
    uint64_t clocked_calls; /* calls with the CPU time of their thread's clock; the */
                            /* CPU time of the others is attributed by time */
};

/* `kind` is WM_REPORT_REGION or WM_REPORT_PATH. WM_ENOENT: no such one. */
WM_API int wm_report_region(const struct wm_report *report, enum wm_report_kind kind,
                            size_t index, struct wm_report_region *ret_region);

/* The number of its calls that took up to `up_to_s` and longer than the limit of the bucket
 * before. */
struct wm_report_bucket {
    double up_to_s; /* a power of two in microseconds; of the last one INFINITY */
    uint64_t calls;
};

/* Gives the buckets of a region's times that have calls, from 0, the shortest first.
 * WM_ENOENT past the last, and if there is no such region or path. */
WM_API int wm_report_bucket(const struct wm_report *report, enum wm_report_kind kind,
                            size_t region, size_t index,
                            struct wm_report_bucket *ret_bucket);

/* One of gpu_tracker's measurements in the ticks inside a region, in its units: bytes and
 * percent. */
struct wm_report_usage {
    const char *name; /* "main_ram" */
    uint64_t count;   /* of the ticks that know it, 1 at least */
    double min, max, mean;
    double std; /* n - 1; 0 where `count` is 1 */
};

/* Gives the known measurements, from 0. WM_ENOENT past the last, and if there is no such
 * region or path. */
WM_API int wm_report_usage(const struct wm_report *report, enum wm_report_kind kind,
                           size_t region, size_t index, struct wm_report_usage *ret_usage);

/* A GPU or another device. A string is NULL if it is unknown. */
struct wm_report_device {
    const char *name;       /* "package0"; of a GPU its label: "gpu0" */
    const char *model;      /* "NVIDIA H100" */
    const char *uuid;       /* of a GPU */
    const char *source;     /* of other devices: "rapl" */
    const char *method;     /* of its energy: "counter", "integral of power" */
    const char *sensor;     /* a description of it */
    double period_s;        /* between two updates of it; 0: not known */
    bool has_driver_number; /* of a GPU: */
    int driver_number;      /* NVML's, which may differ from CUDA's */
    enum wm_device_kind kind;
    enum wm_origin origin;
};

/* `kind` is WM_REPORT_GPU or WM_REPORT_DEVICE. WM_ENOENT: no such one. */
WM_API int wm_report_device(const struct wm_report *report, enum wm_report_kind kind,
                            size_t index, struct wm_report_device *ret_device);

/* A process of the measured tree. */
struct wm_report_process {
    int pid, parent;
    const char *name;
    int max_threads;
    struct wm_report_figure cpu_time, cpu_energy, max_memory, max_private_memory;
};

/* The processes that used most CPU time, in that order; WM_ENOENT past the last. */
WM_API int wm_report_process(const struct wm_report *report, size_t index,
                             struct wm_report_process *ret_process);

#ifdef __cplusplus
}
#endif
#endif
