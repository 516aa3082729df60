/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_tracker.h - gpu_tracker's command line: what its parts share. */
#ifndef WM_GPU_TRACKER_H
#define WM_GPU_TRACKER_H

#include <jansson.h>

#include "cmd.h"
#include "output.h"
#include "wattmeter/error.h"
#include "wattmeter/tracker.h"

/* The words of the command line; what was not given is NULL, false or empty. */
struct gpu_tracker_args {
    const char *execute, *output, *format;
    const char *tconfig, *sleep_time, *ram_unit, *gpu_ram_unit, *time_unit, *cores;
    const char *gpu_uuids, *brand, *tracking_file;
    bool disable_logs, overwrite;
    const char *sub_tracking_file;
    struct cmd_list paths;
    const char *cconfig, *statistic;
    struct cmd_list sessions; /* NAME=PATH */
    bool help, version;
};

void gpu_tracker_print_help(FILE *out);
void gpu_tracker_print_usage(FILE *out);

/* What --execute and what sub-track's commands do: the status of the process. */
int gpu_tracker_track(const struct gpu_tracker_args *args, const struct cmd_streams *io);
int gpu_tracker_combine(const struct gpu_tracker_args *args, const struct cmd_streams *io);
int gpu_tracker_analyze(const struct gpu_tracker_args *args, const struct cmd_streams *io);
int gpu_tracker_compare(const struct gpu_tracker_args *args, const struct cmd_streams *io);

/* Says so as gpu_tracker does, whose messages are those of Python's logging. An error
 * is CMD_FAILED. */
int gpu_tracker_error(const struct cmd_streams *io, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void gpu_tracker_warn(const struct cmd_streams *io, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A warning for each line of `text`, which is changed; NULL has none. */
void gpu_tracker_warn_lines(const struct cmd_streams *io, char *text);

/* Where results go and in which form. */
struct gpu_tracker_output {
    const char *path; /* NULL: the screen */
    bool json;        /* or a pickle that cannot be written */
    bool pickle;
};

/* What --output and --format come to, checked as far as can be without touching anything;
 * `inputs` are files that are read, or written by something else: the output must be none
 * of them. CMD_DONE or CMD_FAILED. */
int gpu_tracker_find_output(const struct gpu_tracker_args *args,
                            const struct cmd_streams *io, const char *const *inputs,
                            size_t input_count, struct gpu_tracker_output *ret_output);

/* Prints by `print`: on the screen with a line end, in a file without; one that is there
 * is replaced. CMD_DONE or CMD_FAILED. */
int gpu_tracker_print(const struct gpu_tracker_output *output, const struct cmd_streams *io,
                      output_printer *print, const void *found);

/* Has our package for Python do what `words` say from their fourth on, the first three
 * being for its interpreter; they end with NULL. False where that is not installed. */
bool gpu_tracker_python(const struct cmd_streams *io, const char **words, int *ret_code);

/* The same where the output is to be a pickle: false, after a warning, where it cannot. */
bool gpu_tracker_pickle(const struct gpu_tracker_output *output,
                        const struct cmd_streams *io, const char **words, int *ret_code);

/* A configuration file, which is a JSON object; the caller's to json_decref(). NULL after
 * saying why. */
json_t *gpu_tracker_load_config(const char *path, const struct cmd_streams *io);

/* How to track, from the command line and the file that --tconfig names. */
struct gpu_tracker_settings {
    struct wm_tracker_options tracker;
    struct wm_gpu_tracker_options own;
    bool disable_logs;
    const char *config_path;
    json_t *config; /* of both, to which the texts belong; the caller's to json_decref() */
};

/* CMD_DONE or, after saying what is wrong, CMD_FAILED. */
int gpu_tracker_settings_of(const struct gpu_tracker_args *args,
                            const struct cmd_streams *io,
                            struct gpu_tracker_settings *ret_settings);

#endif
