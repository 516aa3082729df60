/* SPDX-License-Identifier: Apache-2.0 */
/* measure.h - what `run`, `attach` and `watch` share: options, the set-up of a tracker,
 * signals, and the report at the end. */
#ifndef WM_MEASURE_H
#define WM_MEASURE_H

#include "cmd.h"
#include "output.h"
#include "wattmeter/tracker.h"

/* The first member of such a command's arguments. */
struct measure_args {
    struct output_args output;
    int64_t interval_ns;
    const char *record;
    bool append, quiet;
    double expected_cores;
    const char *gpus;
    const char *channels;
    const char *cpu_watts;
    int64_t baseline_ns; /* these four of `run` alone */
    bool baseline_anyway;
    const char *events;
    bool wait_all;
    bool silent, wait_for_drivers; /* of repeated commands */
    struct cmd_list notes;
    const char *experiment, *name, *description, *model_card, *metrics;
};

extern const struct cmd_option measure_options[];
extern const struct cmd_option measure_experiment_options[];

/* Checks all that can be wrong before anything is started, and makes the tracker;
 * the caller frees it. `pid` is the process to attach to, and 0 for a command.
 * CMD_DONE, or the status of the process after saying why. */
int measure_prepare(const char *name, const struct measure_args *args, pid_t pid,
                    const struct cmd_streams *io, struct wm_tracker **ret_tracker);

/* Gives a new tracker its tags and the place that the options name. The first run decides
 * whether that is replaced; the others are appended. */
int measure_describe(const struct measure_args *args, bool is_first,
                     struct wm_tracker *tracker, struct wm_error *err);

/* From here on the signals that end a process are caught, unless they were ignored. */
void measure_catch_signals(void);

/* From here on the signals that somebody sent to us go on to the target, or, with NULL,
 * nowhere any more. Signals of a terminal (Ctrl-C) and of the target itself do not: the
 * process group, and so the target, has got them as well. */
void measure_forward_signals(const struct wm_tracker *tracker);

/* The signal that came before there was a target to send it on to, or 0. */
int measure_early_signal(void);

/* Says why the command could not be started, and gives the status for it. */
int measure_start_failure(const char *name, const struct wm_error *err,
                          const struct cmd_streams *io);

/* Lets go of the command's pipes: its readers see the end when the command
 * closes it, and its writers never wait for us. */
void measure_release_streams(bool keep_output);

/* Ends the line on which the terminal has left its "^C", if it has. */
void measure_end_line_of_key(const struct cmd_streams *io);

/* Whether a signal came that asks a process to end. */
bool measure_is_interrupted(void);

/* Which one; 0: none came. */
int measure_interruption(void);

/* Dies of the signal that ended the command, where it is one that asks a process to end
 * and reached us as well: so a shell ends its own loop. Else returns `code`. */
int measure_end(int signal_number, int code);

/* Stops the tracker and writes its report. */
int measure_finish(const char *name, const struct measure_args *args,
                   const struct cmd_streams *io, struct wm_tracker *tracker);

#endif
