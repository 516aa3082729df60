/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repeat.h - `wattmeter run --repeat`: commands that are run again and again, and how they
 * compare. repeat.c has the options and the results, repeat_commands.c makes command lines,
 * repeat_rounds.c runs them, repeat_hook.c runs what the user wants in between.
 */
#ifndef WM_REPEAT_H
#define WM_REPEAT_H

#include "cmd.h"
#include "measure.h"
#include "wattmeter/repeat.h"

/* When a command of the user's runs. */
enum repeat_when {
    REPEAT_SETUP,    /* once before all runs */
    REPEAT_PREPARE,  /* before each run */
    REPEAT_CONCLUDE, /* after each run */
    REPEAT_CLEANUP,  /* once after all runs */
    REPEAT_HOOKS,
};

/* The first member of the command's arguments. */
struct repeat_args {
    struct measure_args measure;
    struct cmd_list command;
    struct cmd_count repeat, warmup, seed;
    struct cmd_list vs, names, parameters, hooks[REPEAT_HOOKS];
    const char *shell, *reference, *until, *markdown, *csv, *threshold;
    int64_t limit_ns;
    bool ignore_failure, settle, show_output;
};

extern const struct cmd_option repeat_options[];

/* Whether the command is to be repeated. CMD_DONE, or CMD_MISUSED with a complaint about an
 * option that needs --repeat. */
int repeat_find_wanted(const struct repeat_args *args, const struct cmd_streams *io,
                       bool *ret_is_wanted);

/* Runs the commands and prints the results. `cap` is a tag of each run; it may be NULL. The
 * status of the process; `ret_signal` is the signal that ended a command. */
int repeat_run(const struct repeat_args *args, const char *cap,
               const struct cmd_streams *io, int *ret_signal);

/* Command lines; in repeat_commands.c. */

enum { REPEAT_MOST_PARAMETERS = 16 };

struct repeat_command {
    char **argv;                                      /* ends with NULL */
    char *line, *name;                                /* for people */
    char *parameters[2 * REPEAT_MOST_PARAMETERS + 1]; /* name, value, ..., NULL */
    char **hooks[REPEAT_HOOKS];                       /* argv, or NULL */
    size_t batch; /* runs back to back; 0: not known yet */
};

struct repeat_commands {
    struct repeat_command *all;
    size_t count;
};

/* Makes all command lines; CMD_DONE, or a status after saying what is wrong. The commands
 * need their release in either case. */
int repeat_make_commands(const struct repeat_args *args, const struct cmd_streams *io,
                         struct repeat_commands *commands);
void repeat_release_commands(struct repeat_commands *commands);

/* The words that start `text` in the shell; NULL when out of memory. */
char **repeat_shell_words(const char *shell, const char *text);
void repeat_free_words(char **words);

/* All rounds. */
struct repeat_work {
    const struct repeat_args *args;
    const struct cmd_streams *io;
    const char *cap;
    struct repeat_commands commands;
    struct wm_tracker *tracker;
    struct wm_repeat *repeat;
    size_t rounds;  /* at most */
    size_t counted; /* runs, or batches, of all commands in the results */
    double until;   /* a ratio; 0: all rounds */
    uint64_t seed;
    bool has_recorded; /* the recording has a run */
    int exit_signal;
    struct wm_meter *meter; /* with --settle */
    double idle_watts;      /* 0: not known */
    bool is_unsettled;      /* it was said that power did not come back */
};

/* Runs what the user wants then with that command, if anything, and waits for it. CMD_DONE,
 * or a status after saying how it failed. */
int repeat_hook(const struct repeat_work *work, size_t command, enum repeat_when when);

/* The option that asks for it: "prepare". */
const char *repeat_hook_name(enum repeat_when when);

/* The status of the process; what was measured is in work->repeat in any case. */
int repeat_rounds(struct repeat_work *work);

/* Waits until power is back at idle; in repeat_settle.c. */
int repeat_settle_begin(struct repeat_work *work);
int repeat_settle(struct repeat_work *work);
void repeat_settle_end(struct repeat_work *work);

#endif
