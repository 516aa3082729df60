/* SPDX-License-Identifier: Apache-2.0 */
/* output.h - where a report goes and how it is printed: the options that all
 * commands with a report share. */
#ifndef WM_OUTPUT_H
#define WM_OUTPUT_H

#include "cmd.h"
#include "wattmeter/format.h"
#include "wattmeter/report.h"

/* The first member of such a command's arguments. */
struct output_args {
    const char *path;
    struct cmd_count fd; /* in place of the path, of `run` and `attach` alone */
    bool json, overwrite;
    struct wm_report_style style;
};

extern const struct cmd_option output_options[]; /* all but the style */
extern const struct cmd_option output_unit_options[];
extern const struct cmd_option output_carbon_options[];
extern const struct cmd_option output_price_options[];

/* The option --run of a command that reads a recording, a struct cmd_count at that slot,
 * and which run it means. */
#define OUTPUT_RUN_OPTION(slot_)                                                           \
    {                                                                                      \
        .name = "run", .type = CMD_COUNT, .slot = slot_, .placeholder = "N",               \
        .help = "run number N of the recording, from 0 (the newest)"                       \
    }
size_t output_run(const struct cmd_count *run);

/* Says that the newest run was taken if the file has several and --run is not given: a file
 * by `run --repeat` has all its repeats. */
void output_note_run(const char *name, const char *path, const struct cmd_count *run,
                     const struct cmd_streams *io);

/* A session's path: what follows "NAME=", or all of the word, which may be the URL of a
 * database. A file that is called so is meant, whatever is in its name. */
const char *output_session_path(const char *word);

/* Fills in an error of a command's own; returns `status`. */
__attribute__((format(printf, 3, 4))) int output_fail(struct wm_error *err, int status,
                                                      const char *format, ...);

/* Says "wattmeter NAME: text"; the status of the process for it. */
int output_failure(const char *name, const struct wm_error *err,
                   const struct cmd_streams *io);

/* Where a recording can be added to, for the function below. */
#define OUTPUT_APPENDABLE ", --append adds to .sqlite and .aipm"

/* The same where `path` could not be written in that mode. If it exists already the options
 * say what helps, as the library's modes have other names; `append` is what --append does.
 */
int output_target_failure(const char *name, const char *path, enum wm_record_mode mode,
                          const char *append, const struct wm_error *err,
                          const struct cmd_streams *io);

/* Says "wattmeter NAME: ..."; CMD_MISUSED. */
int output_misused(const char *name, const struct cmd_streams *io, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Room for a path and what is wrong with it. */
enum { OUTPUT_PROBLEM_SIZE = 4352 };

/* Whether `path`, which --output names, can be written, as far as can be said without
 * touching it; else `ret_problem` has the reason. "-" is standard output. */
bool output_is_writable(const char *path, bool overwrite,
                        char ret_problem[OUTPUT_PROBLEM_SIZE]);

/* The same for the path and the units in `args`; says what is wrong. */
int output_check(const char *name, const struct output_args *args,
                 const struct cmd_streams *io);

/* Whether a path, which may be NULL, stands for standard output. */
bool output_is_standard(const char *path);

/* Whether the report goes to a file or descriptor, and so is not talk. */
bool output_has_place(const struct output_args *args);

/* Whether the report goes to standard output, with --json or where an option says so. */
bool output_is_to_stdout(const struct output_args *args);

/* Whether both paths lead to one file, be it there or not. */
bool output_is_same_file(const char *path, const char *other);

/* Whether no two of these files are the same: what is read twice would count twice.
 * CMD_DONE, or CMD_MISUSED with a complaint. */
int output_check_twice(const char *name, const struct cmd_list *paths,
                       const struct cmd_streams *io);

/* Whether the output is another file than this one, which is read. CMD_DONE, or CMD_MISUSED
 * with a complaint. */
int output_check_input(const char *name, const struct output_args *args, const char *input,
                       const struct cmd_streams *io);

/* Which of `words`, with blanks between them, that is, from 0; -1: none. */
int output_find_word(const char *words, const char *word);

/* The format that --format names, which has to be one of `words`, names of formats with
 * blanks between them. Without it text, or JSON with --json. CMD_DONE, or CMD_MISUSED with
 * a complaint. */
int output_find_format(const char *name, const struct output_args *args, const char *format,
                       const char *words, const struct cmd_streams *io,
                       enum wm_format *ret_format);

/* Whether a layout of gpu_tracker's goes to the screen, where its print() adds a line
 * end. */
bool output_adds_line_end(const struct output_args *args, enum wm_format format);

/* What prints what a command has found out. */
typedef int output_printer(const void *found, FILE *out, struct wm_error *err);

/* Has it printed to its place, which was checked: rather nothing stays in a file than half
 * of it. `err` names the place. */
int output_to_file(const struct output_args *args, output_printer *print, const void *found,
                   struct wm_error *err);

/* The same, or without a place to io->out; the status of the process for it. */
int output_print(const char *name, const struct output_args *args, output_printer *print,
                 const void *found, const struct cmd_streams *io);

/* A report and how it is printed, for output_report_print(). */
struct output_report {
    const struct wm_report *report;
    enum wm_format format;
    const struct wm_report_style *style;
};

output_printer output_report_print;

/* Prints the report to its place; without one, JSON to io->out and text to
 * `screen`, NULL for nowhere. What the place does not take goes to io->chat, so that
 * it is not lost. */
int output_write(const char *name, const struct output_args *args,
                 const struct wm_report *report, FILE *screen,
                 const struct cmd_streams *io);

#endif
