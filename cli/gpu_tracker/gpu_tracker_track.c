/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_tracker_track.c - `gpu-tracker --execute`: tracks a command, and reports as
 * gpu_tracker does. */
#include <stdlib.h>
#include <string.h>

#include "gpu_tracker/gpu_tracker.h"
#include "measure.h"
#include "shell_words.h"
#include "wattmeter/report.h"

static bool ends_in(const char *text, const char *end)
{
    size_t length = strlen(text), last = strlen(end);

    return length >= last && strcmp(text + length - last, end) == 0;
}

/* Whether gpu_tracker's report has this number of ours. It has no intervals. */
static bool is_shown(const struct wm_report_figure *figure, bool without_gpus)
{
    static const char *const parts[] = { "max_ram.", "cpu_utilization.", "compute_time.",
                                         "max_gpu_ram.", "gpu_utilization." };
    enum { OF_GPUS = 3, PARTS = 5 };

    if (figure->path && (ends_in(figure->path, "_low") || ends_in(figure->path, "_high")))
        return false;
    for (size_t i = 0; i < PARTS && figure->path; i++) {
        if (strncmp(figure->path, parts[i], strlen(parts[i])) == 0)
            return i < OF_GPUS || !without_gpus;
    }
    return false;
}

/* The next figure of gpu_tracker's report, from number `*at` on, that has a reason. */
static bool next_reason(const struct wm_report *report, bool without_gpus, size_t *at,
                        struct wm_report_figure *ret_figure)
{
    while (wm_report_figure_at(report, NULL, (*at)++, ret_figure) == WM_OK) {
        if (ret_figure->why && is_shown(ret_figure, without_gpus))
            return true;
    }
    return false;
}

/* What is printed of a number with a reason. */
static const char *state_text(enum wm_report_state state, bool is_one)
{
    if (state == WM_REPORT_MISSING)
        return is_one ? "is not known" : "are not known";
    return "may have been more";
}

/* One line for each reason, at the first number that has it, which is the one before
 * number `at`. */
static void warn_of_reason(const struct wm_report *report,
                           const struct wm_report_figure *first, size_t at,
                           bool without_gpus, const struct cmd_streams *io)
{
    struct wm_report_figure other;
    size_t more = 0, other_at = 0;

    while (next_reason(report, without_gpus, &other_at, &other)) {
        if (strcmp(other.why, first->why) != 0 || other.state != first->state ||
            other_at == at)
            continue;
        if (other_at < at)
            return; /* told by that one */
        more++;
    }
    if (more > 0)
        gpu_tracker_warn(io, "%s and %zu more %s: %s", first->path, more,
                         state_text(first->state, false), first->why);
    else
        gpu_tracker_warn(io, "%s %s: %s", first->path, state_text(first->state, true),
                         first->why);
}

/* gpu_tracker's report has no place for it, so no setting switches it off. */
static void warn_of_simulation(const struct wm_report *report, const struct cmd_streams *io)
{
    size_t count = wm_report_count(report, WM_REPORT_GPU), simulated = 0;
    struct wm_report_device gpu;

    for (size_t i = 0; i < count; i++)
        simulated += wm_report_device(report, WM_REPORT_GPU, i, &gpu) == WM_OK &&
                     gpu.origin == WM_SIMULATED;
    if (simulated > 0)
        gpu_tracker_warn(
            io,
            "The GPU numbers are SIMULATED: the driver says of %zu of %zu GPUs "
            "that they are not real.",
            simulated, count);
}

static void warn_of_report(const struct wm_report *report, bool disable_logs,
                           bool without_gpus, const struct cmd_streams *io)
{
    struct wm_report_figure figure;
    const char *remark;
    size_t at = 0;

    warn_of_simulation(report, io);
    if (disable_logs)
        return;
    while (next_reason(report, without_gpus, &at, &figure))
        warn_of_reason(report, &figure, at, without_gpus, io);
    /* Its report has no energy. */
    for (size_t i = 0;
         (remark = wm_report_text(report, WM_REPORT_OTHER_NOTES, i, NULL)) != NULL; i++)
        gpu_tracker_warn(io, "%s", remark);
}

static int record(struct wm_tracker *tracker, const struct gpu_tracker_settings *settings,
                  const struct cmd_streams *io)
{
    const char *file = settings->tracking_file;
    struct wm_error err;
    char *target;

    if (!file)
        return CMD_DONE;
    if (asprintf(&target, "gpu-tracker:%s,%s,%s:%s", settings->ram_unit,
                 settings->gpu_ram_unit, settings->time_unit, file) < 0)
        return gpu_tracker_error(io, "out of memory");
    int status = wm_tracker_record(
        tracker, target, settings->overwrite ? WM_RECORD_OVERWRITE : WM_RECORD_NEW, &err);
    free(target);
    if (status == WM_EEXIST)
        return gpu_tracker_error(
            io,
            "File %s already exists. Set overwrite to True to overwrite the existing file.",
            file);
    return status < 0 ? gpu_tracker_error(io, "%s", err.text) : CMD_DONE;
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
                  const struct gpu_tracker_output *output, bool without_gpus,
                  const struct cmd_streams *io)
{
    const struct wm_report_style style = {
        .ram_unit = settings->ram_unit,
        .gpu_ram_unit = settings->gpu_ram_unit,
        .time_unit = settings->time_unit,
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
    warn_of_report(report, settings->disable_logs, without_gpus, io);
    wm_report_free(report);
    return code == CMD_DONE ? printed : code;
}

static int track(struct wm_tracker *tracker, char *const command[],
                 const struct gpu_tracker_settings *settings,
                 const struct gpu_tracker_output *output, bool without_gpus,
                 const struct cmd_streams *io)
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

    int finished = finish(tracker, settings, output, without_gpus, io);
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
    bool without_gpus = false;
    char **command;

    int code = split(args, io, &command);
    if (code != CMD_DONE)
        return code;
    code = gpu_tracker_settings_of(args, io, &settings);
    const char *const inputs[] = { settings.tracking_file, args->tconfig };
    if (code == CMD_DONE)
        code = gpu_tracker_find_output(args, io, inputs, 2, &output);
    if (code == CMD_DONE) {
        struct wm_tracker *tracker = gpu_tracker_new_tracker(&settings, io, &without_gpus);
        code = tracker ? record(tracker, &settings, io) : CMD_FAILED;
        if (code == CMD_DONE)
            code = track(tracker, command, &settings, &output, without_gpus, io);
        wm_tracker_free(tracker);
    }
    gpu_tracker_settings_release(&settings);
    free(command);
    return code;
}
