/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_ops.h - what a recording format provides; nothing outside src/record
 * sees it.
 *
 * To add a format: copy record_csv.c (and read_csv.c, if it can be read back),
 * fill in one `const struct`, name it at the end of this file and in the table
 * of record.c. No other file changes, the command line included.
 */
#ifndef WM_RECORD_OPS_H
#define WM_RECORD_OPS_H

#include "record/record.h"
#include "record/record_run.h"

struct wm_recorder_ops {
    const char *name;
    const char *const *suffixes; /* ".sqlite", ".db"; ends with NULL */

    /* What is added to a file's name for the files that belong to it: "-wal".
     * Ends with NULL; may be missing. */
    const char *const *companions;

    bool can_append;

    /* Whether a file cut off in the middle is still a recording. A format that
     * has to be whole is written by export alone. */
    bool survives_kill;

    size_t state_size; /* the core allocates this many zeroed bytes */

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

    /* Adds the result, NULL for a run that was exported without one; the
     * recording is whole after it. */
    int (*finish)(void *state, const struct wm_result *result, struct wm_error *err);

    /* Copes with any state that open() can leave, all zero included. */
    void (*close)(void *state);
};

struct wm_reader_ops {
    const char *name;

    /* Whether a file that begins with these bytes is of this format. */
    bool (*recognises)(const char *head, size_t length);

    size_t state_size;

    /* `run` counts from 0 or is WM_LAST_RUN; `path` outlives the reader. When
     * open fails, close() is called. */
    int (*open)(void *state, const char *path, size_t run, struct wm_error *err);

    size_t (*run_count)(const void *state);

    /* Borrowed, as is the result, which is NULL when the writer was killed. */
    const struct wm_run *(*run)(const void *state);
    const struct wm_result *(*result)(const void *state);
    size_t (*channels)(const void *state, const struct wm_channel **ret_channels);
    size_t (*gaps)(const void *state, const struct wm_gap **ret_gaps);

    /* As wm_recording_next(); each tick is later than the one before. Readings
     * that are missing are all zero, WM_READING_NONE. */
    int (*next)(void *state, struct wm_tick *ret_tick, struct wm_error *err);

    void (*close)(void *state);
};

/* Which of `count` runs is meant by `run`; WM_EINVAL when there is none. */
int wm_reader_choose_run(const char *path, size_t run, size_t count, size_t *ret_index,
                         struct wm_error *err);

/* The format that the suffix of `target` names; WM_EINVAL, with a list of those
 * there are, when it names none. `exporting`: whether the recording will be
 * written in one go, for which every format is good. */
int wm_recorder_format(const char *target, bool exporting,
                       const struct wm_recorder_ops **ret_ops, struct wm_error *err);

extern const struct wm_recorder_ops wm_recorder_sqlite;
extern const struct wm_recorder_ops wm_recorder_csv;
extern const struct wm_recorder_ops wm_recorder_json;
extern const struct wm_reader_ops wm_reader_sqlite;
extern const struct wm_reader_ops wm_reader_csv;

#endif
