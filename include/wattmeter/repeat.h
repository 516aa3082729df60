/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repeat.h - compares commands that are run repeatedly.
 *
 *     const struct wm_repeat_options options = { .seed = 1 };
 *     const struct wm_repeat_command commands[] = { { .command = "old" },
 *                                                    { .command = "new" } };
 *     struct wm_repeat *repeat;
 *     struct wm_report *cost;
 *     size_t order[2];
 *     if (wm_repeat_new(&options, &repeat, &err) < 0)
 *         return fail(&err);
 *     for (size_t i = 0; i < 2; i++)
 *         wm_repeat_add_command(repeat, &commands[i], &err);
 *     for (size_t round = 0; round < 20; round++) {
 *         wm_repeat_order(repeat, round, order);
 *         for (size_t i = 0; i < 2; i++) {
 *             train(); // as commands[order[i]] has it, under a tracker
 *             if (wm_tracker_report(tracker, &cost, &err) < 0)
 *                 return fail(&err);
 *             const struct wm_repeat_run run = { .report = cost };
 *             wm_repeat_add_run(repeat, order[i], &run, &err);
 *             wm_report_free(cost);
 *         }
 *     }
 *     wm_repeat_print(repeat, WM_FORMAT_TEXT, 0, stdout, &err);
 *     wm_repeat_free(repeat);
 *
 * The runs of one round are a pair. Commands change places from one round to the next (A B
 * B A), so that a machine that becomes warmer or slower affects all of them alike. The
 * strings are copied. The rules of source.h hold here too.
 */
#ifndef WATTMETER_REPEAT_H
#define WATTMETER_REPEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "wattmeter/api.h"
#include "wattmeter/error.h"
#include "wattmeter/format.h"
#include "wattmeter/report.h"
#include "wattmeter/tracker.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wm_repeat;

/* Zero-initialize it for the defaults. */
struct wm_repeat_options {
    size_t size;      /* sizeof this struct */
    uint64_t seed;    /* of the order of the commands */
    double threshold; /* a smaller difference counts as none, a ratio; 0: 0.01 */
    size_t reference; /* the command that the others are compared with */
};

WM_API int wm_repeat_new(const struct wm_repeat_options *options,
                         struct wm_repeat **ret_repeat, struct wm_error *err);

/* Accepts NULL. */
WM_API void wm_repeat_free(struct wm_repeat *repeat);

struct wm_repeat_command {
    const char *command;           /* the command line */
    const char *name;              /* NULL: the command line */
    const char *const *parameters; /* name, value, name, value, ..., NULL; may be NULL */
};

/* Adds the next command; commands are numbered from 0. Call it before the first run. */
WM_API int wm_repeat_add_command(struct wm_repeat *repeat,
                                 const struct wm_repeat_command *command,
                                 struct wm_error *err);

/* The order of the commands in a round, from 0. `ret_commands` has room for all. */
WM_API void wm_repeat_order(const struct wm_repeat *repeat, size_t round,
                            size_t *ret_commands);

struct wm_repeat_run {
    const struct wm_report *report;
    int exit_code;

    /* From wm_tracker_batch_run(); NULL: not known. The figures of the report are divided
     * by the number of runs. */
    const struct wm_tracker_run *batch;
    size_t batch_count;
};

/* The number of runs that a batch needs to last ten periods of the slowest energy sensor,
 * computed from `run`. 1 if one run is long enough, or no sensor measures energy. */
WM_API size_t wm_repeat_batch_size(const struct wm_repeat_run *run);

/* In place of a command's number: a run of the shell that starts the commands. Its figures
 * are subtracted from the figures of runs that are added later. */
#define WM_REPEAT_SHELL ((size_t)-1)

/* Adds the next run of a command. */
WM_API int wm_repeat_add_run(struct wm_repeat *repeat, size_t command,
                             const struct wm_repeat_run *run, struct wm_error *err);

/* Adds a note to the results. */
WM_API int wm_repeat_note(struct wm_repeat *repeat, const char *note, struct wm_error *err);

/* Notes that the repeats were stopped after `runs` of `planned` runs, of all commands. */
WM_API int wm_repeat_stopped(struct wm_repeat *repeat, size_t runs, size_t planned,
                             struct wm_error *err);

/* The next number of rounds above `rounds` after which wm_repeat_is_narrow() may be called;
 * 0: none. */
WM_API size_t wm_repeat_next_look(size_t rounds);

/* Whether each command's intervals of time and of energy, if known, lie within the median
 * plus or minus `ratio`. All these tests together have a confidence of 95 %. */
WM_API bool wm_repeat_is_narrow(const struct wm_repeat *repeat, double ratio);

/* Prints text, a table in Markdown, CSV with a row for each command, or JSON: hyperfine's
 * structure with more in it, see docs/repeat.md. With a `verbosity` of 1 text has more.
 * Returns WM_EIO if `out` did not take all of it. */
WM_API int wm_repeat_print(const struct wm_repeat *repeat, enum wm_format format,
                           int verbosity, FILE *out, struct wm_error *err);

#ifdef __cplusplus
}
#endif
#endif
