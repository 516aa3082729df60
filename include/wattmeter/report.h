/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - what a session cost, computed from a tracker or from a recording
 * by the same code, so that the two cannot disagree.
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
 *     wm_report_print(report, WM_REPORT_JSON, NULL, stdout, &err);
 *     wm_report_free(report);
 *
 * A report has parts: the run, its regions, its GPUs and other devices. A part has facts,
 * which one struct holds for each kind, and figures, which have keys. All texts belong to
 * the report and live as long as it does. The rules of source.h hold here too.
 */
#ifndef WATTMETER_REPORT_H
#define WATTMETER_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "wattmeter/api.h"
#include "wattmeter/error.h"
#include "wattmeter/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wm_report;

enum wm_report_format {
    WM_REPORT_TEXT, /* for people */
    WM_REPORT_JSON, /* for programs; the structure is described in docs/report.md */
    /* gpu_tracker's own layouts, byte by byte, without the line end that it adds on the
     * screen; described in docs/gpu-tracker.md. */
    WM_REPORT_GPU_TRACKER_TEXT,
    WM_REPORT_GPU_TRACKER_JSON,
    WM_REPORT_GPU_TRACKER_CLI, /* of a comparison the text as the documents of its command
                                * print it: names of blocks are not indented */
};

/* How a report is printed; all zero is right for nearly everybody. A unit is
 * one of gpu_tracker's words: bytes, kilobytes, megabytes, gigabytes,
 * terabytes (powers of 1000); seconds, minutes, hours, days. NULL is bytes and
 * seconds in JSON, whatever reads best in text, and gigabytes and hours in
 * gpu_tracker's layouts.
 *
 * With a price or the grams of CO2e of a kilowatt-hour, the report also has what its
 * energy comes to in money or in CO2e; 0 is not given.
 *
 * Text has what most people want, in digits that the uncertainty leaves; with a verbosity
 * of 1 every figure with how it was obtained, with 2 also why each that is missing is. JSON
 * is always complete. */
struct wm_report_style {
    const char *ram_unit;
    const char *gpu_ram_unit;
    const char *time_unit;
    double price_per_kwh; /* up to 1000000 */
    const char *currency; /* currency of the price, "EUR"; up to 15 bytes; NULL: not said */
    double carbon_g_per_kwh; /* up to 100000 */
    double pue;              /* power usage effectiveness of the data centre, 1 to 100, by
                              * which cost and CO2e are multiplied; 0: 1 */
    int verbosity;
    bool for_terminal; /* text with colours and bars */
};

/* Reads the rest of `recording`, which stands at the start of its run. */
WM_API int wm_report_from_recording(struct wm_recording *recording,
                                    struct wm_report **ret_report, struct wm_error *err);

/* Accepts NULL. */
WM_API void wm_report_free(struct wm_report *report);

/* Whether every unit in `style` is a known one, which the error lists otherwise, and
 * every number within its range. */
WM_API int wm_report_style_check(const struct wm_report_style *style, struct wm_error *err);

/* `style` may be NULL. WM_EIO when `out` did not take all of it. */
WM_API int wm_report_print(const struct wm_report *report, enum wm_report_format format,
                           const struct wm_report_style *style, FILE *out,
                           struct wm_error *err);

/* The runs of the recording at `path`, of whatever format: a line for each, or with
 * WM_REPORT_JSON an object. Their figures are those that need no reading of every sample,
 * but of a run without a result for its time; what energy they took is in their reports. A
 * run that cannot be read has a line that says why.
 */
WM_API int wm_report_print_list(const char *path, enum wm_report_format format, FILE *out,
                                struct wm_error *err);

/* A table of runs as CSV: of each of these recordings, there is at least one, the run of
 * that number, WM_LAST_RUN or WM_ALL_RUNS. A line has what identifies the run and the
 * figures of the run by their keys, in SI base units; what is not known is empty. The
 * first line has the names. */
WM_API int wm_report_print_csv(const char *const *paths, size_t count, size_t run,
                               FILE *out, struct wm_error *err);

/* Adds one row to the file at `path`, which is what CodeCarbon calls emissions.csv:
 * energy in kWh, CO2e in kg, both multiplied by the `pue` of `style`, which may be
 * NULL. What is not known is left empty; docs/report.md has the columns. A file that
 * is there is left alone (WM_EEXIST), replaced, or gets the row at its end, as `mode`
 * says; WM_EINVAL when its columns are not CodeCarbon's. */
WM_API int wm_report_write_codecarbon(const struct wm_report *report, const char *path,
                                      enum wm_record_mode mode,
                                      const struct wm_report_style *style,
                                      struct wm_error *err);

/* What a report has facts and figures of. */
enum wm_report_kind {
    WM_REPORT_RUN,    /* all of it: the one of its kind */
    WM_REPORT_REGION, /* all calls of one name, in the order in which names were first seen
                       */
    WM_REPORT_PATH,   /* the calls of one name in one place of the tree of calls; a place
                       * comes before those inside it */
    WM_REPORT_REST,   /* what no region has: one, where there are regions */
    WM_REPORT_GPU,
    WM_REPORT_DEVICE, /* what is no GPU: a CPU package or a part of one, memory, ... */
};

/* Which of its times a region's figures are of; docs/report.md explains the two. */
enum wm_report_share {
    WM_REPORT_INCLUSIVE, /* all that went on while a call was open */
    WM_REPORT_EXCLUSIVE, /* its share of that, without the regions inside; these add up */
};

/* What a figure is of. All zero is the run. */
struct wm_report_part {
    enum wm_report_kind kind;
    size_t index;               /* below wm_report_count() */
    enum wm_report_share share; /* of a region or a path */
};

/* How many parts of a kind there are. */
WM_API size_t wm_report_count(const struct wm_report *report, enum wm_report_kind kind);

/* The first region or path of that name, GPU of that UUID or label ("gpu0"), or device of
 * that name; WM_ENOENT where there is none. */
WM_API int wm_report_find(const struct wm_report *report, enum wm_report_kind kind,
                          const char *name, size_t *ret_index);

enum wm_report_state {
    WM_REPORT_MISSING, /* not known; `why` says the reason */
    WM_REPORT_KNOWN,
    WM_REPORT_AT_LEAST, /* a highest value, which may have been higher; `why` says why */
};

/* A figure. It is in SI base units, but for percentages. */
struct wm_report_figure {
    const char *key;  /* "energy", "max_ram.main.total_rss" */
    const char *path; /* in the JSON report, within its part; NULL: it is not there */
    const char *unit; /* "s", "J", "W", "B", "percent", "ratio", "celsius", "count" */
    enum wm_report_state state;
    double value; /* unless it is missing; then 0 */
    bool has_range;
    double low, high; /* the truth lies between them with 95 % confidence */
    enum wm_origin origin;
    const char *why; /* NULL: there is nothing to say */
};

/* A figure by its key, or by its path in the JSON report of the run: "energy" and
 * "energy.total" are the same. `part` NULL is the run. WM_ENOENT where such a part has no
 * figure of that key, or there is no such part. */
WM_API int wm_report_figure(const struct wm_report *report,
                            const struct wm_report_part *part, const char *key,
                            struct wm_report_figure *ret_figure);

/* The figures of a part one after the other, from 0; WM_ENOENT past the last, and where
 * there is no such part. */
WM_API int wm_report_figure_at(const struct wm_report *report,
                               const struct wm_report_part *part, size_t index,
                               struct wm_report_figure *ret_figure);

/* A figure as people read it, in as many digits as its range leaves, into `text`: "2.54 kJ
 * ± 2.5 %", "about 3 mJ (0 J to 8 mJ) (estimated)", "n/a (no permission)". What has no room
 * is left out; the room that all of it needs, with the NUL, is returned. Only its unit,
 * state, value, range, origin and `why` are looked at. */
WM_API size_t wm_report_figure_text(const struct wm_report_figure *figure, char *text,
                                    size_t size);

enum wm_report_end {
    WM_REPORT_END_UNKNOWN, /* it was not seen, or the recording ends before it */
    WM_REPORT_EXITED,
    WM_REPORT_KILLED, /* by a signal */
};

/* What is known of the run besides its figures. A text is NULL where it is not known. */
struct wm_report_run {
    const char *id;      /* random UUID */
    const char *mode;    /* "run", "attach", "self" */
    const char *version; /* of wattmeter */
    const char *host, *cpu_model, *kernel, *boot_id;
    const char *cpu_method; /* how the CPU time was obtained */
    const char *trouble;    /* what went wrong with its recording */
    int64_t start_unix_ns;  /* of the first tick */
    int64_t interval_ns;    /* between two ticks */
    bool is_complete;       /* false: the recording has no result, as of a killed writer */
    enum wm_report_end end;
    int exit_status, signal_number; /* of one that exited, or was killed; else 0 */
};

WM_API void wm_report_run(const struct wm_report *report, struct wm_report_run *ret_run);

/* Each gives NULL past the last: words of the command line, what a reader has to know of
 * the figures, the user's notes and the environment as "KEY=VALUE" apart. `ret_value`, and
 * the pointers of wm_report_source(), must not be NULL. */
WM_API const char *wm_report_word(const struct wm_report *report, size_t index);
WM_API const char *wm_report_remark(const struct wm_report *report, size_t index);

/* Whether that remark is of energy; false past the last. */
WM_API bool wm_report_remark_is_of_energy(const struct wm_report *report, size_t index);
WM_API const char *wm_report_note(const struct wm_report *report, size_t index,
                                  const char **ret_value);
WM_API const char *wm_report_variable(const struct wm_report *report, size_t index,
                                      const char **ret_value);

/* Of a name: whether that source was there, and what it read or why there is nothing to
 * read (may be NULL). NULL past the last. */
WM_API const char *wm_report_source(const struct wm_report *report, size_t index,
                                    bool *ret_is_available, const char **ret_detail);

#define WM_REPORT_NO_PARENT ((size_t)-1)

/* A region, or a path in the tree of calls. */
struct wm_report_region {
    const char *name;
    size_t parent;   /* of a path: the one around it, or WM_REPORT_NO_PARENT */
    size_t depth;    /* of a path: how many are around it */
    size_t children; /* of a path: how many are right inside */
    bool by_itself;  /* of calls that were started, not begun */
    bool is_short;   /* its energy is a rough figure: calls are shorter than its steps */
    uint64_t calls;  /* calls that ended */
    uint64_t unfinished;
    uint64_t timepoints;            /* ticks inside */
    uint64_t calls_with_timepoints; /* one at least */
    double total_s;                 /* of the calls that ended */
    double min_s, max_s, mean_s;    /* 0 where `calls` is 0 */
    double std_s;                   /* n - 1; 0 where `calls` is below 2 */
    uint64_t clocked_calls; /* whose CPU time is that of their thread's own clock; */
                            /* that of the others is attributed by time */
};

/* `kind` is WM_REPORT_REGION or WM_REPORT_PATH. WM_ENOENT where there is no such one. */
WM_API int wm_report_region(const struct wm_report *report, enum wm_report_kind kind,
                            size_t index, struct wm_report_region *ret_region);

/* How many of its calls took up to `up_to_s`, and longer than the bucket before has it. */
struct wm_report_bucket {
    double up_to_s; /* a power of two in microseconds; of the last one INFINITY */
    uint64_t calls;
};

/* The buckets of a region's times that have calls, from 0, the shortest first. WM_ENOENT
 * past the last, and where there is no such region or path. */
WM_API int wm_report_bucket(const struct wm_report *report, enum wm_report_kind kind,
                            size_t region, size_t index,
                            struct wm_report_bucket *ret_bucket);

/* What the ticks inside a region say of one of gpu_tracker's measurements, in its units:
 * bytes and percent. */
struct wm_report_usage {
    const char *name; /* "main_ram" */
    uint64_t count;   /* of the ticks that know it, 1 at least */
    double min, max, mean;
    double std; /* n - 1; 0 where `count` is 1 */
};

/* The measurements that are known, from 0. WM_ENOENT past the last, and where there is no
 * such region or path. */
WM_API int wm_report_usage(const struct wm_report *report, enum wm_report_kind kind,
                           size_t region, size_t index, struct wm_report_usage *ret_usage);

/* A GPU, or a device that is none. A text is NULL where it is not known. */
struct wm_report_device {
    const char *name;       /* "package0"; of a GPU its label: "gpu0" */
    const char *model;      /* "NVIDIA H100" */
    const char *uuid;       /* of a GPU */
    const char *source;     /* of what is no GPU: "rapl" */
    const char *method;     /* of its energy: "counter", "integral of power" */
    const char *sensor;     /* what is known of it */
    double period_s;        /* between two updates of it; 0: not known */
    bool has_driver_number; /* of a GPU: */
    int driver_number;      /* NVML's, which may differ from CUDA's */
    enum wm_device_kind kind;
    enum wm_origin origin;
};

/* `kind` is WM_REPORT_GPU or WM_REPORT_DEVICE. WM_ENOENT where there is no such one. */
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
