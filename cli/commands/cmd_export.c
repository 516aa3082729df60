/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_export.c - `wattmeter export`: a recording in another format. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "interrupt.h"
#include "output.h"
#include "wattmeter/trace.h"

struct export_args {
    struct output_args output; /* of its style the factors of CO2e alone */
    const char *codecarbon, *gpu_tracker, *sub_tracking, *format, *by, *with;
    struct cmd_count run;
    bool append;
    struct cmd_list recording;
};

#define EXPORT(member) offsetof(struct export_args, member)

#define FORMATS "chrome firefox speedscope folded"
#define MEASURES "energy time"

static const struct cmd_option export_options[] = {
    { .letter = 'o',
      .name = "output",
      .slot = EXPORT(output.path),
      .placeholder = "FILE|URL",
      .help =
          "where to: .sqlite, .csv, .json, .aipm, or postgresql://...; with --format any "
          "file, or -" },
    { .name = "format",
      .slot = EXPORT(format),
      .placeholder = "FORMAT",
      .help = "a trace for a viewer: chrome (Perfetto), firefox, speedscope or folded "
              "(flame graphs)",
      .words = FORMATS },
    { .name = "by",
      .slot = EXPORT(by),
      .placeholder = "MEASURE",
      .help = "energy or time of --format speedscope or folded (energy if all devices have "
              "it)",
      .words = MEASURES },
    { .name = "with",
      .slot = EXPORT(with),
      .placeholder = "FILE",
      .help = "add the events of a PyTorch profiler trace to --format chrome" },
    { .name = "codecarbon",
      .slot = EXPORT(codecarbon),
      .placeholder = "FILE",
      .help = "instead: a row of totals for CodeCarbon's emissions.csv" },
    { .name = "gpu-tracker",
      .slot = EXPORT(gpu_tracker),
      .placeholder = "FILE",
      .help = "instead: gpu_tracker's tracking file, .csv or .sqlite" },
    { .name = "sub-tracking",
      .slot = EXPORT(sub_tracking),
      .placeholder = "FILE",
      .help = "instead: the regions for gpu_tracker, .csv or .sqlite" },
    OUTPUT_RUN_OPTION(EXPORT(run)),
    { .name = "overwrite",
      .slot = EXPORT(output.overwrite),
      .help = "replace a file that exists" },
    { .name = "append",
      .slot = EXPORT(append),
      .help = "add the run to a recording that exists" },
    { 0 },
};
static const struct cmd_option *const options[] = { export_options, output_carbon_options,
                                                    NULL };

static int write_codecarbon(const struct export_args *args, struct wm_recording *recording,
                            enum wm_record_mode mode, const struct cmd_streams *io,
                            struct wm_error *err)
{
    struct wm_report_figure energy;
    struct wm_report *report;

    int status = wm_report_from_recording(recording, &report, err);
    if (status < 0)
        return status;
    status = wm_report_write_codecarbon(report, args->codecarbon, mode, &args->output.style,
                                        err);
    if (status == WM_OK && wm_report_figure(report, NULL, "energy", &energy) == WM_OK &&
        energy.value > 0 && !energy.has_range)
        fprintf(io->chat, "wattmeter export: the energy leaves out a part of the time, and "
                          "the row says 'incomplete'\n");
    wm_report_free(report);
    return status;
}

static int write_sub_tracking(const struct export_args *args,
                              struct wm_recording *recording, enum wm_record_mode mode,
                              const struct cmd_streams *io, struct wm_error *err)
{
    uint64_t left_out = 0;

    int status = wm_recording_export_sub_tracking(recording, args->sub_tracking, mode,
                                                  &left_out, err);
    if (status == WM_OK && left_out > 0)
        fprintf(io->chat,
                "wattmeter export: left out: %" PRIu64
                " calls that never ended, of regions "
                "of which no call has; gpu_tracker's analysis fails on such\n",
                left_out);
    return status;
}

struct traced {
    struct wm_recording *recording;
    struct wm_trace_request request;
};

static int print_trace(const void *found, FILE *out, struct wm_error *err)
{
    const struct traced *traced = found;

    return wm_recording_trace(traced->recording, &traced->request, out, err);
}

static int check_trace(const struct export_args *args, struct wm_trace_request *request,
                       const struct cmd_streams *io)
{
    const struct output_args plain = { 0 };
    int measure = args->by ? output_find_word(MEASURES, args->by) : 0;

    int code =
        output_find_format("export", &plain, args->format, FORMATS, io, &request->format);
    if (code != CMD_DONE)
        return code;
    if (measure < 0)
        return output_misused("export", io, "--by: '%s' is none of " MEASURES,
                              cmd_shown(args->by));
    request->by_time = measure == 1;
    request->by_energy = args->by && measure == 0;
    request->notes = io->chat;
    request->with = args->with;
    request->carbon_g_per_kwh = args->output.style.carbon_g_per_kwh;
    if (args->by && request->format != WM_FORMAT_SPEEDSCOPE &&
        request->format != WM_FORMAT_FOLDED)
        return output_misused("export", io, "--by: is for --format speedscope or folded");
    if (args->with && request->format != WM_FORMAT_CHROME)
        return output_misused("export", io, "--with: is for --format chrome");
    if (args->append)
        return output_misused("export", io, "--append: nothing is added to a trace");
    code = output_check_input("export", &args->output, args->recording.words[0], io);
    if (code == CMD_DONE && args->with)
        code = output_check_input("export", &args->output, args->with, io);
    return code == CMD_DONE ? output_check("export", &args->output, io) : code;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);

    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

static int check_targets(const struct export_args *args, const struct cmd_streams *io)
{
    int others = !!args->codecarbon + !!args->gpu_tracker + !!args->sub_tracking;
    int targets = !!args->output.path + others;

    if (args->format && others > 0)
        return output_misused("export", io,
                              "--format, --codecarbon, --gpu-tracker and --sub-tracking "
                              "exclude each other");
    if (!args->format && (args->by || args->with))
        return output_misused("export", io, "--%s: is for --format",
                              args->by ? "by" : "with");
    if (targets == 0 && !args->format)
        return output_misused("export", io, "--output FILE is missing");
    if (targets > 1)
        return output_misused("export", io,
                              "--output, --codecarbon, --gpu-tracker and --sub-tracking "
                              "exclude each other");
    if (args->codecarbon && output_is_same_file(args->codecarbon, args->recording.words[0]))
        return output_misused("export", io, "--codecarbon: is the recording itself");
    if (args->codecarbon && strcmp(args->codecarbon, "-") == 0)
        return output_misused("export", io, "--codecarbon: '-' is no file");
    if (args->gpu_tracker && !ends_with(args->gpu_tracker, ".csv") &&
        !ends_with(args->gpu_tracker, ".sqlite"))
        return output_misused("export", io, "--gpu-tracker: FILE ends in .csv or .sqlite");
    if (args->append && args->output.overwrite)
        return output_misused("export", io, "--append and --overwrite exclude each other");
    return CMD_DONE;
}

/* In bytes and seconds. */
static int write_gpu_tracker(const struct export_args *args, struct wm_recording *recording,
                             enum wm_record_mode mode, struct wm_error *err)
{
    char target[PATH_MAX];

    int length = snprintf(target, sizeof(target), "gpu-tracker:bytes,bytes,seconds:%s",
                          args->gpu_tracker);
    if (length >= (int)sizeof(target))
        return output_fail(err, WM_EINVAL, "--gpu-tracker: the name is too long");
    return wm_recording_export(recording, target, mode, err);
}

/* The status of the process. */
static int write_target(const struct export_args *args, struct traced *traced,
                        const struct cmd_streams *io)
{
    struct wm_recording *recording = traced->recording;
    enum wm_record_mode mode = args->append             ? WM_RECORD_APPEND
                               : args->output.overwrite ? WM_RECORD_OVERWRITE
                                                        : WM_RECORD_NEW;
    const char *path = args->output.path, *append = OUTPUT_APPENDABLE;
    struct wm_error err;
    int status;

    if (args->format)
        return output_print("export", &args->output, print_trace, traced, io);
    if (args->codecarbon) {
        path = args->codecarbon;
        append = ", --append adds to it";
        status = write_codecarbon(args, recording, mode, io, &err);
    } else if (args->gpu_tracker) {
        path = args->gpu_tracker;
        append = "";
        status = write_gpu_tracker(args, recording, mode, &err);
    } else if (args->sub_tracking) {
        path = args->sub_tracking;
        append = "";
        status = write_sub_tracking(args, recording, mode, io, &err);
    } else {
        status = wm_recording_export(recording, path, mode, &err);
    }
    return status < 0 ? output_target_failure("export", path, mode, append, &err, io)
                      : CMD_DONE;
}

static int run_export(const void *opaque, const struct cmd_streams *io)
{
    const struct export_args *args = opaque;
    struct traced traced = { 0 };
    struct wm_error err;

    int code = check_targets(args, io);
    if (code == CMD_DONE && args->format)
        code = check_trace(args, &traced.request, io);
    if (code != CMD_DONE)
        return code;
    int status = wm_recording_open(args->recording.words[0], output_run(&args->run),
                                   &traced.recording, &err);
    if (status < 0)
        return output_failure("export", &err, io);
    wm_recording_stop_on(traced.recording, interrupt_catch());
    code = write_target(args, &traced, io);
    if (code == CMD_DONE)
        output_note_run("export", args->recording.words[0], &args->run, io);
    wm_recording_close(traced.recording);
    return interrupt_end(code);
}

const struct cmd cmd_export = {
    .name = "export",
    .summary = "Write a recording in another format.",
    .details =
        "The suffix of FILE names the format. The new recording gives the same report "
        "as the old one; JSON is for other programs and is not read back. A run that is in "
        "the database of URL already is gone on with where it ends there; so are spools "
        "loaded that a run left behind because its server was away.\n"
        "\n"
        "--codecarbon writes the totals of the run as one row, as CodeCarbon does, with "
        "the "
        "CO2e that --carbon says; --append adds it to the rows of a file that is there.\n"
        "\n"
        "--format writes a trace for a viewer, to standard output unless -o is given. "
        "chrome "
        "has a counter for each channel and a slice for each call of a region; --with adds "
        "the events of a PyTorch profiler trace, on one clock. firefox has a power track "
        "for "
        "each device and a marker for each call; --carbon sets its CO2e. speedscope and "
        "folded have the joules or seconds of each stack of regions.\n"
        "\n"
        "--sub-tracking writes the regions of the run as gpu_tracker's sub-tracking file; "
        "an SQLite or CSV recording is the tracking file that goes with it.",
    .example = "wattmeter export run.sqlite -o run.csv",
    .operands = "RECORDING",
    .operands_slot = offsetof(struct export_args, recording),
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .args_size = sizeof(struct export_args),
    .run = run_export,
};
