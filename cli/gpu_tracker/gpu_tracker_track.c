/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_tracker_track.c - `gpu-tracker --execute`: tracks a command, and reports as
 * gpu_tracker does. */
#include <stdlib.h>
#include <string.h>

#include "gpu_tracker/gpu_tracker.h"
#include "measure.h"
#include "shell_words.h"
#include "wattmeter/report.h"

/* wattmeter's own report says what is not known and why. NULL when out of memory. */
static json_t *own_report(const struct wm_report *report)
{
    char *text = NULL;
    size_t size;
    json_t *root = NULL;
    struct wm_error err;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return NULL;
    int status = wm_report_print(report, WM_REPORT_JSON, NULL, out, &err);
    if (fclose(out) == 0 && status == WM_OK)
        root = json_loads(text, 0, NULL);
    free(text);
    return root;
}

/* Whether gpu_tracker's report has this number of ours. */
static bool is_shown(const char *key, bool without_gpus)
{
    static const char *const parts[] = { "max_ram.", "cpu_utilization.", "compute_time.",
                                         "max_gpu_ram.", "gpu_utilization." };
    enum { OF_GPUS = 3, PARTS = 5 };

    for (size_t i = 0; i < PARTS; i++) {
        if (strncmp(key, parts[i], strlen(parts[i])) == 0)
            return i < OF_GPUS || !without_gpus;
    }
    return false;
}

/* One line for each reason, at the first number that lacks it. */
static void warn_of_reason(const json_t *reasons, const char *first, const char *reason,
                           bool without_gpus, const struct cmd_streams *io)
{
    const char *key;
    json_t *other;
    size_t more = 0;
    bool behind = false;

    json_object_foreach((json_t *)reasons, key, other)
    {
        bool same =
            is_shown(key, without_gpus) && strcmp(json_string_value(other), reason) == 0;
        if (same && strcmp(key, first) != 0 && !behind)
            return; /* told by that one */
        behind = behind || strcmp(key, first) == 0;
        more += same && strcmp(key, first) != 0;
    }
    if (more > 0)
        gpu_tracker_warn(io, "%s and %zu more are not known: %s", first, more, reason);
    else
        gpu_tracker_warn(io, "%s is not known: %s", first, reason);
}

/* gpu_tracker's report has no place for it, so no setting switches it off. */
static void warn_of_simulation(const json_t *gpus, const struct cmd_streams *io)
{
    size_t index, simulated = 0;
    json_t *gpu;

    json_array_foreach(gpus, index, gpu)
    {
        simulated += json_is_true(json_object_get(gpu, "simulated"));
    }
    if (simulated > 0)
        gpu_tracker_warn(
            io,
            "The GPU numbers are SIMULATED: the driver says of %zu of %zu GPUs "
            "that they are not real.",
            simulated, json_array_size(gpus));
}

static void warn_of_report(const struct wm_report *report, bool disable_logs,
                           bool without_gpus, const struct cmd_streams *io)
{
    json_t *root = own_report(report), *value;
    const char *key;
    size_t index;

    warn_of_simulation(json_object_get(root, "gpus"), io);
    if (disable_logs) {
        json_decref(root);
        return;
    }
    const json_t *reasons = json_object_get(root, "why");
    json_object_foreach((json_t *)reasons, key, value)
    {
        if (is_shown(key, without_gpus))
            warn_of_reason(reasons, key, json_string_value(value), without_gpus, io);
    }
    json_array_foreach(json_object_get(root, "remarks"), index, value)
    {
        gpu_tracker_warn(io, "%s", json_string_value(value));
    }
    json_decref(root);
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
    if (wm_tracker_start_command(tracker, command, &err) == WM_OK) {
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
    double signal_number;

    fputs("Resource tracking complete. Process completed with status code: ", io->out);
    if (wm_report_number(report, "exit.signal", &signal_number) == WM_OK)
        fprintf(io->out, "%d\n", -(int)signal_number);
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

    /* What went wrong here went wrong with the tracking file; the report is whole. */
    if (wm_tracker_stop(tracker, &err) < 0)
        code = gpu_tracker_error(io, "%s", err.text);
    measure_forward_signals(NULL);
    if (wm_tracker_report(tracker, &report, &err) < 0)
        return gpu_tracker_error(io, "%s", err.text);

    print_end(tracker, report, io);
    const struct output_report printed_report = {
        .report = report,
        .format = output->json ? WM_REPORT_GPU_TRACKER_JSON : WM_REPORT_GPU_TRACKER_TEXT,
        .style = &style,
    };
    int printed = gpu_tracker_print(output, io, output_report_print, &printed_report);
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
