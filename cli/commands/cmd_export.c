/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_export.c - `wattmeter export`: a recording in another format. */
#include <inttypes.h>
#include <string.h>

#include "interrupt.h"
#include "output.h"

struct export_args {
    struct output_args output; /* its style alone: the factors of CO2e */
    const char *path, *codecarbon, *sub_tracking;
    struct cmd_count run;
    bool overwrite, append;
    struct cmd_list recording;
};

#define EXPORT(member) offsetof(struct export_args, member)

static const struct cmd_option export_options[] = {
    { .letter = 'o',
      .name = "output",
      .slot = EXPORT(path),
      .placeholder = "FILE|URL",
      .help = "where to: .sqlite, .csv, .json, .aipm, or postgresql://..." },
    { .name = "codecarbon",
      .slot = EXPORT(codecarbon),
      .placeholder = "FILE",
      .help = "instead: a row of totals for CodeCarbon's emissions.csv" },
    { .name = "sub-tracking",
      .slot = EXPORT(sub_tracking),
      .placeholder = "FILE",
      .help = "instead: the regions for gpu_tracker, .csv or .sqlite" },
    OUTPUT_RUN_OPTION(EXPORT(run)),
    { .name = "overwrite",
      .slot = EXPORT(overwrite),
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

static int run_export(const void *opaque, const struct cmd_streams *io)
{
    const struct export_args *args = opaque;
    size_t run = output_run(&args->run);
    struct wm_recording *recording = NULL;
    struct wm_error err;
    enum wm_record_mode mode = WM_RECORD_NEW;

    int targets = !!args->path + !!args->codecarbon + !!args->sub_tracking;
    if (targets == 0)
        return output_misused("export", io, "--output FILE is missing");
    if (targets > 1)
        return output_misused(
            "export", io, "--output, --codecarbon and --sub-tracking exclude each other");
    if (args->codecarbon && output_is_same_file(args->codecarbon, args->recording.words[0]))
        return output_misused("export", io, "--codecarbon: is the recording itself");
    if (args->codecarbon && strcmp(args->codecarbon, "-") == 0)
        return output_misused("export", io, "--codecarbon: '-' is no file");
    if (args->append && args->overwrite)
        return output_misused("export", io, "--append and --overwrite exclude each other");
    if (args->append)
        mode = WM_RECORD_APPEND;
    if (args->overwrite)
        mode = WM_RECORD_OVERWRITE;

    int status = wm_recording_open(args->recording.words[0], run, &recording, &err);
    if (status < 0)
        return output_failure("export", &err, io);
    wm_recording_stop_on(recording, interrupt_catch());
    if (args->codecarbon)
        status = write_codecarbon(args, recording, mode, io, &err);
    else if (args->sub_tracking)
        status = write_sub_tracking(args, recording, mode, io, &err);
    else
        status = wm_recording_export(recording, args->path, mode, &err);
    wm_recording_close(recording);
    int code = status < 0 ? output_failure("export", &err, io) : CMD_DONE;
    return interrupt_end(code);
}

const struct cmd cmd_export = {
    .name = "export",
    .summary = "Write a recording in another format.",
    .details = "The suffix of FILE names the format. The new recording gives the same "
               "report as the old one. JSON is for other programs and cannot be read back. "
               "If a run is in the database of URL already, the export continues where it "
               "ends there. It also loads spools that a run left because its server was "
               "unreachable.\n"
               "\n"
               "--codecarbon writes the totals of the run as one row, like CodeCarbon, "
               "with the CO2e by --carbon; --append adds the row to an existing file.\n"
               "\n"
               "--sub-tracking writes the regions of the run as gpu_tracker's sub-tracking "
               "file; it belongs to an SQLite or CSV recording as the tracking file.",
    .example = "wattmeter export run.sqlite -o run.csv",
    .operands = "RECORDING",
    .operands_slot = offsetof(struct export_args, recording),
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .args_size = sizeof(struct export_args),
    .run = run_export,
};
