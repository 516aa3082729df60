/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_ops.h - what a recording format provides; src/record and src/compat alone
 * see it.
 *
 * To add a format: copy record_csv.c (and record_csv_read.c, if it can be read back),
 * fill in one `const struct`, name it at the end of this file and in the table
 * of record.c. No other file changes, the command line included.
 */
#ifndef WM_RECORD_OPS_H
#define WM_RECORD_OPS_H

#include "base/text/base_remarks.h"
#include "record/record_channel.h"
#include "record/record_regions.h"
#include "record/run/record_run.h"
#include "wattmeter/recording.h"

struct wm_static_data;
struct wm_timepoint;

struct wm_recorder_ops {
    const char *name;
    const char *const *suffixes; /* ".sqlite", ".db"; ends with NULL; for files */

    /* A recording that is no file but named by a URL has these three instead of
     * suffixes. The core then makes, replaces, watches and removes nothing: a run
     * is added to what is there, and taking it out again, when it never got a
     * tick, is close()'s.
     *
     * Whether `target` is such a URL. */
    bool (*is_target)(const char *target);

    /* Whether open() would succeed as far as can be said without changing
     * anything there. */
    int (*check)(const char *target, struct wm_error *err);

    /* What messages call it: a URL may hold a password. The caller's to free;
     * NULL when out of memory. */
    char *(*shown)(const char *target);

    /* A target of this format is a folder, which is made where it is missing, and
     * this the file in it that the rest of this contract speaks of. NULL: a target
     * is that file itself. */
    const char *file;

    /* A target of this format has words before the path of its file: where in `target`
     * that begins, NULL where it is no such target. open() gets all of it. Instead of
     * suffixes; may be missing. */
    const char *(*path_in)(const char *target);

    /* Whether the file at `target` may be replaced; missing: any may. */
    int (*may_replace)(const char *target, struct wm_error *err);

    /* What is added to a file's name for the files that belong to it: "-wal".
     * Ends with NULL; may be missing. */
    const char *const *companions;

    bool can_append;
    bool one_writer; /* at a time: two that add to a file would write over each other */

    /* Whether a file cut off in the middle is still a recording. A format that
     * has to be whole is written by export alone. */
    bool survives_kill;

    size_t state_size; /* the core allocates this many zeroed bytes */

    /* Before open(): the run is written at once, by an export, and close() without
     * finish() leaves a file that it is added to as it was, where nobody records into it
     * meanwhile. Missing: nothing can be added to a file, or what was is of use without
     * its rest. */
    void (*as_whole)(void *state);

    /* Opens the file at `target`, which the core has just made, empty, unless
     * it adds a run to one that is there. All arguments outlive the recorder.
     * When open fails, close() is called, and the core removes what it made. */
    int (*open)(void *state, const char *target, const struct wm_run *run,
                const struct wm_channel *channels, size_t count, struct wm_error *err);

    /* Writes all of these ticks or none of them; may be called again with the
     * same ones after a failure. From the recorder's thread. */
    int (*write)(void *state, const struct wm_tick *ticks, size_t count,
                 struct wm_error *err);

    /* Same rules. */
    int (*gap)(void *state, const struct wm_gap *gap, struct wm_error *err);

    /* Adds regions that ended, or broke off. Same rules. Missing: the format keeps
     * none. */
    int (*regions)(void *state, const struct wm_region_batch *batch, struct wm_error *err);

    /* Adds the result, NULL for a run that was exported without one; the
     * recording is whole after it. */
    int (*finish)(void *state, const struct wm_result *result, struct wm_error *err);

    /* CPU time of threads that the format has of its own; may be missing. */
    int64_t (*cpu_ns)(void *state);

    /* Copes with any state that open() can leave, all zero included. */
    void (*close)(void *state);
};

/* What can be said of a recording before its first tick; the first member of the state
 * of each reader, which has it filled in once open() has succeeded. The rest is the
 * reader's own, to be kept up by next(). */
struct wm_reader_head {
    size_t run_count;
    struct wm_run run;
    struct wm_result result;
    bool has_result;                   /* false: the writer was killed, or still writes */
    const struct wm_channel *channels; /* the reader releases these */
    size_t channel_count;
    struct wm_gap *gaps;
    size_t gap_count;
    struct wm_remarks remarks; /* what a person should know of what was read so far */

    /* Of gpu_tracker's tracking file, which has no channels: its ticks, whose times are
     * since 1970, and of which several may have one time, are a timepoint each. The
     * reader's own; NULL: it is a recording. */
    const struct wm_static_data *static_data;
    const struct wm_timepoint *timepoint; /* the timepoint of the latest tick */
};

/* All but the channels and the static data. */
void wm_reader_head_release(struct wm_reader_head *head);

struct wm_reader_ops {
    const char *name;

    /* Whether a file that begins with these bytes is of this format, or whether
     * a URL names one: a format has one of the two. */
    bool (*recognises)(const char *head, size_t length);
    bool (*is_target)(const char *target);

    /* Files of this format are no recordings of ours: what they hold is for the analysis of
     * blocks alone. */
    bool is_foreign;

    size_t state_size; /* begins with a struct wm_reader_head */

    /* `run` counts from 0 or is WM_LAST_RUN; `path` outlives the reader. When
     * open fails, close() is called. WM_ENODEV: the file is not of this format after all,
     * and one of those further down the table may recognise it. */
    int (*open)(void *state, const char *path, size_t run, struct wm_error *err);

    /* Adds what another file of this format holds, as if both were one; before calls().
     * May be missing. */
    int (*add)(void *state, const char *path, struct wm_error *err);

    /* As wm_recording_next(); each tick is later than the one before. Readings
     * that are missing are all zero, WM_READING_NONE. */
    int (*next)(void *state, struct wm_tick *ret_tick, struct wm_error *err);

    /* The next regions, in the order in which they were written, wherever next()
     * is: 1 and what is borrowed until the next call; 0 past the last. Missing:
     * the format keeps none. */
    int (*regions)(void *state, struct wm_region_batch *ret_batch, struct wm_error *err);

    /* The same by their starts, with all paths and threads in the first batch; of calls
     * that start at once the one of the outer path comes first. Of a reader either this or
     * regions() is asked. Missing where that is. */
    int (*calls)(void *state, struct wm_region_batch *ret_batch, struct wm_error *err);

    void (*close)(void *state);
};

/* The file in the folder of an AIPowerMeter recording. */
#define WM_AIPM_FILE "power_metrics.json"

/* Which of `count` runs is meant by `run`; WM_EINVAL when there is none. */
int wm_reader_choose_run(const char *path, size_t run, size_t count, size_t *ret_index,
                         struct wm_error *err);

/* The format that `target`, a URL or the suffix of a file, names; WM_EINVAL, with a list of
 * those there are, when it names none. `exporting`: whether the recording will be written
 * in one go, for which every format is good. */
int wm_recorder_format(const char *target, bool exporting,
                       const struct wm_recorder_ops **ret_ops, struct wm_error *err);

extern const struct wm_recorder_ops wm_recorder_sqlite;
extern const struct wm_recorder_ops wm_recorder_csv;
extern const struct wm_recorder_ops wm_recorder_json;
extern const struct wm_recorder_ops wm_recorder_aipm;
extern const struct wm_recorder_ops wm_recorder_gpu_tracker_csv;
extern const struct wm_recorder_ops wm_recorder_gpu_tracker_sqlite;
extern const struct wm_recorder_ops wm_recorder_postgres;
extern const struct wm_reader_ops wm_reader_sqlite;
extern const struct wm_reader_ops wm_reader_csv;
extern const struct wm_reader_ops wm_reader_aipm;
extern const struct wm_reader_ops wm_reader_meter;
extern const struct wm_reader_ops wm_reader_postgres;
extern const struct wm_reader_ops wm_reader_gpu_tracker_csv;
extern const struct wm_reader_ops wm_reader_gpu_tracker_sqlite;
extern const struct wm_reader_ops wm_reader_sub_tracking;

#endif
