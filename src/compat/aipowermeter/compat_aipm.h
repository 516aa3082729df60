/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat_aipm.h - what the files of this folder share: AIPowerMeter's metrics, the records
 * that hold them, and the files that lie beside the recording.
 */
#ifndef WM_COMPAT_AIPM_H
#define WM_COMPAT_AIPM_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/base_error.h"
#include "base/text/base_lines.h"
#include "record/record.h"
#include "record/record_stats.h"
#include "record/run/record_metrics.h"
#include "record/run/record_run.h"

/* The metrics: one table, by which records are read and written. */

/* How the value of a metric stands in a record. */
enum wm_aipm_form {
    WM_AIPM_NUMBER,      /* a number, or a list of one, as one generation wrote it */
    WM_AIPM_SUM,         /* one for each process, to be added */
    WM_AIPM_PER_GPU,     /* one for each GPU */
    WM_AIPM_PER_GPU_SUM, /* one for each process of each GPU */
};

struct wm_aipm_metric {
    const char *group, *key;
    enum wm_aipm_form form;
    struct wm_channel channel; /* a GPU has its names from its number */
    double scale;              /* of the file's unit in the channel's */

    /* The generation of AIPowerMeter that it shows, for people; NULL: it shows none. */
    const char *generation;

    /* Where it stands among the metrics of a record that is written, from 1; 0: the latest
     * generation has no such metric. */
    int place;
};

/* Ends with one that is all NULL. */
extern const struct wm_aipm_metric wm_aipm_metrics[];

/* Reading: the channels of a file, in the order in which they appeared. */
struct wm_aipm_channels {
    struct wm_channel *channels;
    size_t count, room;
    json_t *index;               /* the place of each in `channels`, by "device metric" */
    struct wm_reading *readings; /* where values go; NULL: channels are being added */
    bool failed;                 /* one could not be added */
    size_t left_out; /* values of channels beyond the most that a recording holds */
};

int wm_aipm_channels_init(struct wm_aipm_channels *set, struct wm_error *err);

/* Copes with what is all zero. */
void wm_aipm_channels_release(struct wm_aipm_channels *set);

/* Adds the channels of one record that are new. WM_ENOMEM is the only failure. */
int wm_aipm_discover(struct wm_aipm_channels *set, const json_t *metrics);

/* Puts the values of one record where the channels of the set have their place; those
 * that are not there, or are no measurement, stay as they are. */
void wm_aipm_values(struct wm_aipm_channels *set, const json_t *metrics,
                    struct wm_reading *readings);

/* The power of all packages in one record, which is what AIPowerMeter calls the power of
 * the CPU. `ret_is_there`: the record speaks of it, with a number
 * or not. */
struct wm_known wm_aipm_package_watts(const json_t *metrics, bool *ret_is_there);

/* Which generation of AIPowerMeter wrote such a record, for people; NULL where it does not
 * show. */
const char *wm_aipm_generation(const json_t *metrics);

/*
 * Writing: ticks in the form of the latest generation, a record for each window.
 *
 *     wm_aipm_window_init(&window, run, channels, count);
 *     wm_aipm_window_pass(&window, &tick);      a tick where a window begins
 *     text = wm_aipm_window_record(&window, &tick, &replaces);
 *     wm_aipm_window_release(&window);
 *
 * Its powers are averages over the window: the increase of the energy counter by the time,
 * or what a device says of its power that has none, or one that reports nothing of the
 * window: it may be dead, and is not 0 W. The tracked processes are one process there, the
 * one that was started.
 *
 * The last window of a run ends with the run. If it is too short for a record of its own,
 * the record before it is extended to the end. If a counter has too few steps in it, the
 * power that the device reports is used for that time.
 */
struct wm_aipm_window {
    const struct wm_run *run;
    const struct wm_channel *channels;
    size_t count;
    struct wm_aipm_device *devices;
    size_t device_count;
    int gpu_count;
    enum wm_origin origins[WM_DEVICE_OTHER + 1]; /* the worst, by kind of device */

    struct wm_aipm_series *before, *before_saved; /* of each channel */
    struct wm_aipm_times {
        bool has_record;              /* there is a record before it */
        int64_t window_ns, record_ns; /* where the two begin */
    } times, times_saved;
};

/* The arguments outlive it. wm_aipm_window_release() is due whatever this returned; the
 * only failure is WM_ENOMEM. */
int wm_aipm_window_init(struct wm_aipm_window *window, const struct wm_run *run,
                        const struct wm_channel *channels, size_t count);

/* The record of the window that ends with this tick, as a line that the caller frees; NULL
 * when out of memory. `ret_replaces`: it extends the record before it and replaces that. */
char *wm_aipm_window_record(struct wm_aipm_window *window, const struct wm_tick *tick,
                            bool *ret_replaces);

/* From this tick on counters are counted. */
void wm_aipm_window_pass(struct wm_aipm_window *window, const struct wm_tick *tick);

/* There is no tick before the next. */
void wm_aipm_window_restart(struct wm_aipm_window *window);

/* What has been passed since it was saved can be taken back. */
void wm_aipm_window_save(struct wm_aipm_window *window);
void wm_aipm_window_restore(struct wm_aipm_window *window);

void wm_aipm_window_release(struct wm_aipm_window *window);

/*
 * The lines of a file, one record after the other, of all of it or of one of its runs. The
 * last run of a file is all of it, as AIPowerMeter has it. What stands before each end of a
 * recording segment is a run as well, where there is more than one of them.
 *
 * A record stands for a window before it. Within a segment that begins at the record
 * before; the first window of a segment is taken to be as long as they usually are, but
 * that of the file where its beginning is known. Times only grow, whatever the clock
 * did.
 */

/* The end of a segment, as the file has it. */
#define WM_AIPM_SEGMENT_END "\"END OF RECORDING SEGMENT\""

/* In place of a run's number: all that the file holds. */
#define WM_AIPM_WHOLE ((size_t)-1)

/* A record, and the ticks that it comes to. */
struct wm_aipm_record {
    json_t *line; /* owns all of it, and is the caller's */
    const json_t *metrics;
    int64_t date_ns; /* since 1970 */
    const char *why; /* it begins a segment, after another one; or NULL */
    bool has_hole, has_window, is_start_known;
    int64_t hole_ns;   /* the first one without values, after a segment */
    int64_t window_ns; /* where the window of a segment's first record begins */
    int64_t when_ns;
};

/* All zero is a closed one. */
struct wm_aipm_records {
    const char *path; /* for messages */
    struct wm_lines lines;
    size_t chosen;      /* the run that is read, or WM_AIPM_WHOLE */
    size_t part;        /* the run at the file's position */
    bool in_part;       /* there was something of it */
    int64_t spacing_ns; /* the usual one; 0: unknown */
    int64_t start_ns;   /* when the file's first window began; 0: unknown */
    uint64_t count;     /* of the records so far */
    int64_t date_ns;    /* of the last one */
    int64_t when_ns;    /* where it lies */
    int64_t shift_ns;   /* of where they lie from their dates */
    const char *why;    /* the next one begins a segment, by what stands before it */
    uint64_t set_back, same_dates;
    uint64_t bad_lines;
    size_t first_bad_line;
    bool is_torn; /* the last line is */
};

/* Whether a file that begins with these bytes is AIPowerMeter's. */
bool wm_aipm_recognises(const char *head, size_t length);

/* `path` outlives it. All of the file is read, until a run is chosen. */
int wm_aipm_records_open(struct wm_aipm_records *records, const char *path,
                         size_t *ret_run_count, struct wm_error *err);

void wm_aipm_records_close(struct wm_aipm_records *records);

/* 1 and the next record; 0 past the last one. WM_EFORMAT: it would lie beyond all times. */
int wm_aipm_records_next(struct wm_aipm_records *records, struct wm_aipm_record *ret_record,
                         struct wm_error *err);

/* Back to the first, with no trouble noted yet. */
int wm_aipm_records_rewind(struct wm_aipm_records *records, struct wm_error *err);

/* Past the last record of a run: when the first one of the run behind it was written;
 * INT64_MAX where there is none. */
int wm_aipm_records_next_run(struct wm_aipm_records *records, int64_t *ret_date_ns,
                             struct wm_error *err);

/*
 * The other files in the folder of the recording at `path`. Those that are not there, or
 * cannot be read, cost nothing.
 */
#define WM_AIPM_METADATA "metadata.json"

/* The name of one of them, the caller's to free; NULL when out of memory. */
char *wm_aipm_beside(const char *path, const char *name);

/* Replaces it, or makes it, whole or not at all. */
int wm_aipm_write_beside(const char *path, const char *name, const char *text,
                         struct wm_error *err);

/* Whether wattmeter wrote the metadata. */
bool wm_aipm_is_ours(const char *path);

/* What metadata.json says of the run, if wattmeter wrote it. Where it did not, the run is
 * left as it is. */
int wm_aipm_read_run(const char *path, struct wm_run *run, struct wm_error *err);

/* When the first window began, if wattmeter wrote metadata.json, which says it; else 0. */
int wm_aipm_read_start(const char *path, int64_t *ret_start_ns, struct wm_error *err);

/* Notes on what metadata.json, results_exp.json and model_summary.json say. */
int wm_aipm_read_notes(const char *path, struct wm_run *run, struct wm_error *err);

/*
 * results_exp.json, in which AIPowerMeter's readers look for what an experiment told of
 * itself: an array of records, each with numbers and the local time "end_training_epoch"
 * at which they were true. AIPowerMeter's own writer leaves a record {"date", "metrics"}
 * per line instead, which is read as well.
 */

/* Adds the metrics of the result. The file is there as it was or with all of them; one that
 * is no such array stays as it is (WM_EFORMAT). */
int wm_aipm_write_results(const char *path, const struct wm_run *run,
                          const struct wm_result *result, struct wm_error *err);

/* Adds what it says of the time of the window. */
int wm_aipm_read_results(const char *path, const struct wm_metrics_window *window,
                         struct wm_metrics *metrics, struct wm_error *err);

#endif
