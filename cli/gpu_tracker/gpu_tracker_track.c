/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_tracker_track.c - `gpu-tracker --execute`: tracks a command, and reports as
 * gpu_tracker does. */
#include <stdlib.h>
#include <string.h>

#include "gpu_tracker/gpu_tracker.h"
#include "measure.h"
#include "shell_words.h"
#include "wattmeter/report.h"

/* A tracker for the machine and its GPUs as the settings choose them; NULL after saying
 * why. */
static struct wm_tracker *new_tracker(const struct gpu_tracker_settings *settings,
                                      const struct cmd_streams *io)
{
    struct wm_tracker *tracker = NULL;
    char *text = NULL;
    size_t size;

    FILE *said = open_memstream(&text, &size);
    int status = said ? wm_tracker_new_as_gpu_tracker(&settings->tracker, &settings->own,
                                                      said, &tracker)
                      : WM_ENOMEM;
    if (!said || fclose(said) != 0)
        gpu_tracker_error(io, "out of memory");
    else if (status < 0)
        gpu_tracker_error(io, "%.*s", (int)strcspn(text, "\n"), text);
    else if (!settings->disable_logs)
        gpu_tracker_warn_lines(io, text);
    free(text);
    return tracker;
}

static void warn_of_report(const struct wm_report *report, bool disable_logs,
                           const struct cmd_streams *io)
{
    const struct wm_report_style style = { .verbosity = !disable_logs };
    char *text = NULL;
    size_t size;

    FILE *lines = open_memstream(&text, &size);
    if (lines) {
        wm_report_print(report, WM_FORMAT_GPU_TRACKER_WARNINGS, &style, lines, NULL);
        fclose(lines);
    }
    gpu_tracker_warn_lines(io, text);
    free(text);
}

static int start(struct wm_tracker *tracker, char *const command[],
                 const struct cmd_streams *io)
{
    struct wm_error err;

    measure_catch_signals();
    if (wm_tracker_start(tracker, &(struct wm_tracker_target) { .argv = command }, &err) ==
        WM_OK) {
        measure_forward_signals(tracker);
        measure_release_streams(true);
        return CMD_DONE;
    }
    if (err.status == WM_ENOENT)
        return gpu_tracker_error(io, "Command not found: \"%s\"", command[0]);
    return gpu_tracker_error(
        io, "The following error occurred when starting the command \"%s\":\n%s",
        command[0], err.text);
}

/* A signal is a negative number, as Python has it. */
static void print_end(const struct wm_tracker *tracker, const struct wm_report *report,
                      const struct cmd_streams *io)
{
    int code = wm_tracker_exit_code(tracker);
    struct wm_report_run run;

    wm_report_run(report, &run);
    fputs("Resource tracking complete. Process completed with status code: ", io->out);
    if (run.end == WM_REPORT_KILLED)
        fprintf(io->out, "%d\n", -run.signal_number);
    else if (code >= 0)
        fprintf(io->out, "%d\n", code);
    else
        fputs("unknown\n", io->out);
}

static int finish(struct wm_tracker *tracker, const struct gpu_tracker_settings *settings,
                  const struct gpu_tracker_output *output, const struct cmd_streams *io)
{
    const struct wm_report_style style = {
        .ram_unit = settings->own.ram_unit,
        .gpu_ram_unit = settings->own.gpu_ram_unit,
        .time_unit = settings->own.time_unit,
    };
    struct wm_report *report;
    struct wm_error err;
    int code = CMD_DONE;

    measure_end_line_of_key(io);
    /* What went wrong here went wrong with the tracking file; the report is whole. */
    if (wm_tracker_stop(tracker, &err) < 0)
        code = gpu_tracker_error(io, "%s", err.text);
    measure_forward_signals(NULL);
    if (wm_tracker_report(tracker, &report, &err) < 0)
        return gpu_tracker_error(io, "%s", err.text);

    print_end(tracker, report, io);
    const struct output_report printed_report = {
        .report = report,
        .format = output->json ? WM_FORMAT_GPU_TRACKER_JSON : WM_FORMAT_GPU_TRACKER_API,
        .style = &style,
    };
    int printed = gpu_tracker_print(output, io, output_report_print, &printed_report);
    const char *words[] = { NULL, NULL, NULL, "usage", output->path, NULL };
    if (printed == CMD_DONE && output->path)
        gpu_tracker_pickle(output, io, words, &printed);
    else if (output->pickle && !output->path)
        gpu_tracker_warn(io, "A pickle is written to a file, which --output names. The "
                             "results are printed as JSON instead.");
    warn_of_report(report, settings->disable_logs, io);
    wm_report_free(report);
    return code == CMD_DONE ? printed : code;
}

static int track(struct wm_tracker *tracker, char *const command[],
                 const struct gpu_tracker_settings *settings,
                 const struct gpu_tracker_output *output, const struct cmd_streams *io)
{
    struct wm_error err;
    int state;

    int code = start(tracker, command, io);
    if (code != CMD_DONE)
        return code;
    do
        state = wm_tracker_poll(tracker, -1, &err);
    while (state == WM_TRACKER_RUNNING);
    if (state < 0)
        gpu_tracker_error(io, "%s", err.text);

    int finished = finish(tracker, settings, output, io);
    code = wm_tracker_exit_code(tracker);
    if (code < 0)
        return CMD_FAILED;
    return code == CMD_DONE ? finished : code;
}

static int split(const struct gpu_tracker_args *args, const struct cmd_streams *io,
                 char ***ret_command)
{
    const char *problem;
    size_t count;

    if (!shell_words_split(args->execute, ret_command, &count, &problem))
        return gpu_tracker_error(io, "The command cannot be split into words: %s.",
                                 problem);
    if (count > 0)
        return CMD_DONE;
    free(*ret_command);
    return gpu_tracker_error(io, "Empty command provided.");
}

int gpu_tracker_track(const struct gpu_tracker_args *args, const struct cmd_streams *io)
{
    struct gpu_tracker_settings settings;
    struct gpu_tracker_output output;
    char **command;

    int code = split(args, io, &command);
    if (code != CMD_DONE)
        return code;
    code = gpu_tracker_settings_of(args, io, &settings);
    const char *const inputs[] = { settings.own.tracking_file, args->tconfig };
    if (code == CMD_DONE)
        code = gpu_tracker_find_output(args, io, inputs, 2, &output);
    if (code == CMD_DONE) {
        struct wm_tracker *tracker = new_tracker(&settings, io);
        code = tracker ? track(tracker, command, &settings, &output, io) : CMD_FAILED;
        wm_tracker_free(tracker);
    }
    json_decref(settings.config);
    free(command);
    return code;
}
